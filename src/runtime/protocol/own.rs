//! The tiles of one process, numbered.

use super::ProcessGrid;
use crate::runtime::TileId;
use std::ops::Range;

/// The tiles of the lower triangle that one process of a grid owns, numbered column by column.
#[derive(Clone, Debug)]
pub struct OwnTiles {
    grid: ProcessGrid,
    tiles: usize,
    place: (usize, usize),
    /// Number of own tiles left of each own column.
    starts: Vec<u32>,
    count: usize,
}

impl OwnTiles {
    /// Those of `process`, of `tiles x tiles`.
    pub fn new(grid: ProcessGrid, tiles: usize, process: usize) -> OwnTiles {
        let place @ (grid_row, grid_col) = grid.place(process);
        let (mut starts, mut count) = (Vec::with_capacity(ProcessGrid::count_of(0..tiles, grid_col, grid.cols)), 0);
        for col in (grid_col..tiles).step_by(grid.cols) {
            starts.push(count as u32);
            count += ProcessGrid::count_of(col..tiles, grid_row, grid.rows);
        }
        OwnTiles { grid, tiles, place, starts, count }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether a tile is one of them.
    pub fn contains(&self, tile: TileId) -> bool {
        (tile.row % self.grid.rows, tile.col % self.grid.cols) == self.place
    }

    /// The number of an own tile.
    pub fn index(&self, tile: TileId) -> usize {
        debug_assert!(self.contains(tile) && tile.col <= tile.row && tile.row < self.tiles);
        let first = ProcessGrid::next_of(tile.col, self.place.0, self.grid.rows);
        self.starts[tile.col / self.grid.cols] as usize + (tile.row - first) / self.grid.rows
    }

    /// Those in some tile columns, in the order of their numbers.
    pub fn in_columns(&self, cols: Range<usize>) -> impl Iterator<Item = TileId> + use<> {
        let (grid, (grid_row, grid_col), n) = (self.grid, self.place, self.tiles);
        let cols = (ProcessGrid::next_of(cols.start, grid_col, grid.cols)..cols.end).step_by(grid.cols);
        cols.flat_map(move |col| {
            let rows = (ProcessGrid::next_of(col, grid_row, grid.rows)..n).step_by(grid.rows);
            rows.map(move |row| TileId { row, col })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_column_by_column() {
        for (rows, cols) in [(1, 1), (2, 3), (4, 1), (3, 5)] {
            let grid = ProcessGrid { rows, cols };
            for tiles in [0, 1, 2, 7, 12] {
                let mut all = 0;
                for process in 0..grid.size() {
                    let own = OwnTiles::new(grid, tiles, process);
                    let listed = own.in_columns(0..tiles).collect::<Vec<_>>();
                    assert!(listed.iter().all(|&tile| grid.owner(tile) == process && own.contains(tile)));
                    assert!(listed.iter().enumerate().all(|(at, &tile)| own.index(tile) == at));
                    assert_eq!(own.count(), listed.len());
                    all += own.count();
                }
                assert_eq!(all, tiles * (tiles + 1) / 2, "{grid:?} {tiles}");
            }
        }
    }
}
