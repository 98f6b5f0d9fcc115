//! The tiles of one rank, numbered.

use super::{RankGrid, RankPlace, TileId, count_in, first_from};
use std::ops::Range;

/// The tiles of the lower triangle that one rank of a grid owns, numbered column by column.
#[derive(Clone, Debug)]
pub struct OwnTiles {
    grid: RankGrid,
    tiles: usize,
    place: RankPlace,
    /// Number of own tiles left of each own column.
    starts: Vec<u32>,
    count: usize,
}

impl OwnTiles {
    /// The tiles of `rank`, of `tiles x tiles`; none for a rank outside the grid.
    pub fn new(grid: RankGrid, tiles: usize, rank: usize) -> OwnTiles {
        let grid = grid.counted();
        let place @ RankPlace { row: grid_row, col: grid_col } = grid.place(rank);
        let tiles = if grid_row < grid.rows { tiles } else { 0 };
        let (mut starts, mut count) = (Vec::with_capacity(count_in(0..tiles, grid_col, grid.cols)), 0);
        for col in (grid_col..tiles).step_by(grid.cols) {
            starts.push(count as u32);
            count += count_in(col..tiles, grid_row, grid.rows);
        }
        OwnTiles { grid, tiles, place, starts, count }
    }

    /// The grid.
    pub fn grid(&self) -> RankGrid {
        self.grid
    }

    /// Their number.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether this rank owns a tile.
    pub fn contains(&self, tile: TileId) -> bool {
        tile.row % self.grid.rows == self.place.row && tile.col % self.grid.cols == self.place.col
    }

    /// The number of an own tile.
    pub fn index(&self, tile: TileId) -> usize {
        debug_assert!(self.contains(tile) && tile.col <= tile.row && tile.row < self.tiles);
        let first = first_from(tile.col, self.place.row, self.grid.rows);
        self.starts[tile.col / self.grid.cols] as usize + (tile.row - first) / self.grid.rows
    }

    /// The tiles in some tile columns, in the order of their numbers.
    pub fn in_columns(&self, cols: Range<usize>) -> impl Iterator<Item = TileId> + use<> {
        let RankPlace { row: grid_row, col: grid_col } = self.place;
        let (grid, n) = (self.grid, self.tiles);
        let first_row = move |col: usize| first_from(col, grid_row, grid.rows);
        let mut col = first_from(cols.start, grid_col, grid.cols);
        let mut row = first_row(col);
        std::iter::from_fn(move || {
            while row >= n && col < cols.end {
                col += grid.cols;
                row = first_row(col);
            }
            let tile = (col < cols.end).then_some(TileId { row, col });
            row += grid.rows;
            tile
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_column_by_column() {
        for (rows, cols) in [(1, 1), (2, 3), (4, 1), (3, 5)] {
            let grid = RankGrid { rows, cols };
            for tiles in [0, 1, 2, 7, 12] {
                let mut all = 0;
                for rank in 0..grid.size() {
                    let own = OwnTiles::new(grid, tiles, rank);
                    let listed = own.in_columns(0..tiles).collect::<Vec<_>>();
                    assert!(listed.iter().all(|&tile| grid.owner(tile) == rank && own.contains(tile)));
                    assert!(listed.iter().enumerate().all(|(at, &tile)| own.index(tile) == at));
                    assert_eq!(own.count(), listed.len());
                    all += own.count();
                }
                assert_eq!(all, tiles * (tiles + 1) / 2, "{grid:?} {tiles}");
                let beyond = OwnTiles::new(grid, tiles, grid.size());
                assert_eq!((beyond.count(), beyond.in_columns(0..tiles).count()), (0, 0));
            }
        }
    }
}
