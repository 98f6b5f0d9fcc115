//! The blocks that a rank above a disk works by: of those that fit its memory, the ones that read the fewest bytes.
//!
//! Depends on: tiles and bytes. Independent of: how many bytes of memory a tile takes, and other contents of the
//! memory.

use crate::runtime::CholeskyGraph;
use crate::runtime::level_count::{LevelBytes, least_level_bytes};
use crate::runtime::policy::BlockShape;
use crate::runtime::residency::Owner;
use crate::runtime::tile_level::LevelShape;
use crate::tile::OwnTiles;

/// Largest number of tiles of a strip out of core.
pub const MOST_STRIP_TILES: usize = 8;

/// The data from which the shape is chosen.
#[derive(Clone, Copy)]
pub struct LevelSearch<'a> {
    /// The tiles.
    pub graph: CholeskyGraph,
    /// The owner of the tiles.
    pub owner: Owner,
    /// Tiles that there is room for.
    pub room_tiles: usize,
    /// Largest number of tiles of a run.
    pub strip_tiles: usize,
    /// Largest number of updates of a run on each of its tiles, if memory allows their operands.
    pub most_updates: usize,
    /// Workers of the rank.
    pub workers: usize,
    /// Bytes of a tile below the memory.
    pub bytes: LevelBytes<'a>,
}

impl LevelSearch<'_> {
    /// Square blocks, or panels if these read fewer bytes; blocks of one tile if memory allows no more.
    pub fn best(&self) -> LevelShape {
        let LevelSearch { graph, owner, room_tiles, most_updates, bytes, .. } = *self;
        let grid = owner.grid;
        let all = OwnTiles::new(grid, graph.tiles, owner.number).count();
        let own = OwnBlocks { rows: graph.tiles.div_ceil(grid.rows), cols: graph.tiles.div_ceil(grid.cols), all };
        for updates in [most_updates, 1] {
            let shapes =
                own.candidates(room_tiles, updates).into_iter().map(|blocks| self.with_blocks(blocks, updates));
            let fitting = shapes.filter(|shape| {
                let block = (shape.blocks.rows * shape.blocks.cols).min(all);
                block + shape.steps_room() <= room_tiles
            });
            if let Some(best) = fitting.min_by_key(|shape| least_level_bytes(graph, owner, shape.blocks, bytes)) {
                return best;
            }
        }
        LevelShape { room_tiles, ..LevelShape::SINGLE_TILES }
    }

    /// The runs for some blocks: every worker has two runs in a column of blocks.
    pub fn with_blocks(&self, blocks: BlockShape, most_updates: usize) -> LevelShape {
        let BlockShape { rows, cols } = blocks;
        let share = (rows * cols).div_ceil(2 * self.workers).max(1);
        // Strips of one height keep the columns of a block in step.
        let strip_tiles = rows.div_ceil(rows.div_ceil(self.strip_tiles.min(share)));
        LevelShape { room_tiles: self.room_tiles, blocks, strip_tiles, most_updates }
    }
}

/// The tiles of a rank: their rows and columns, and how many there are.
struct OwnBlocks {
    rows: usize,
    cols: usize,
    all: usize,
}

impl OwnBlocks {
    /// Squares and panels, the largest that fit and a few smaller ones.
    fn candidates(&self, room_tiles: usize, updates: usize) -> Vec<BlockShape> {
        let most = self.rows.max(self.cols);
        let fits = |rows: usize, cols: usize| (rows * cols).min(self.all) + 2 * (rows + cols) * updates <= room_tiles;
        let mut shapes = Vec::new();
        if let Some(side) = (1..=most).rev().find(|&side| fits(side, side)) {
            shapes.extend((side.saturating_sub(2).max(1)..=side).map(|side| BlockShape { rows: side, cols: side }));
            // A square that does not fill the room grows by a row or a column.
            shapes.extend(
                (side + 1..=most).take_while(|&rows| fits(rows, side)).map(|rows| BlockShape { rows, cols: side }),
            );
        }
        if let Some(cols) = (1..=self.cols).rev().find(|&cols| fits(self.rows, cols)) {
            shapes.push(BlockShape { rows: self.rows, cols });
        }
        shapes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tile::RankGrid;

    #[test]
    fn the_best_blocks_fit_and_read_no_more_than_others() {
        let bytes = LevelBytes { entries: &|_| 1, finished: &|_| 1 };
        for (tiles, grid) in [(1, (1, 1)), (7, (1, 1)), (30, (1, 1)), (24, (2, 2)), (25, (2, 3))] {
            let owner = Owner { grid: RankGrid { rows: grid.0, cols: grid.1 }, number: 0 };
            let graph = CholeskyGraph { tiles };
            for (room_tiles, updates) in [(3, 1), (5, 1), (12, 4), (33, 1), (60, 4), (1000, 4)] {
                let search =
                    LevelSearch { graph, owner, room_tiles, strip_tiles: 8, most_updates: updates, workers: 2, bytes };
                let best = search.best();
                let own = OwnTiles::new(owner.grid, tiles, 0).count();
                let block = (best.blocks.rows * best.blocks.cols).min(own);
                assert!(best.least_room(block) <= room_tiles, "{tiles} {best:?}");
                let read = |blocks: BlockShape| least_level_bytes(graph, owner, blocks, bytes);
                for side in 1..tiles {
                    let other = search.with_blocks(BlockShape { rows: side, cols: side }, 1);
                    if (side * side).min(own) + other.steps_room() <= room_tiles && best.most_updates == 1 {
                        assert!(read(best.blocks) <= read(other.blocks), "{tiles}: {best:?} against {other:?}");
                    }
                }
            }
        }
    }
}
