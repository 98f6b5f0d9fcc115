//! 2D block-cyclic distribution: which rank owns which tile of a matrix.
//!
//! Tile `(i, j)` of `tile_size x tile_size` entries belongs to the rank at `(i mod grid_rows, j mod grid_cols)` of a
//! grid of ranks, numbered row by row, as in ScaLAPACK. Ranks beyond the grid own nothing.

use crate::matrix::Uplo;
use crate::plan::BLOCK;
use std::ops::Range;

/// A tile of a matrix.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TileId {
    /// Row of tiles.
    pub row: usize,
    /// Column of tiles.
    pub col: usize,
}

/// A grid of ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RankGrid {
    /// Rows of ranks.
    pub rows: usize,
    /// Columns of ranks.
    pub cols: usize,
}

impl RankGrid {
    /// A grid of at most `ranks` ranks that is not much wider than high.
    ///
    /// All ranks where they form a grid at most four times as wide as high, or are few; else the largest such grid: 13
    /// ranks as one row would send every tile to everybody, as 3 x 4 one of them has no tiles.
    pub fn for_ranks(ranks: usize) -> RankGrid {
        let ranks = ranks.max(1);
        let root = (1..=ranks).take_while(|root| root * root <= ranks).last().unwrap_or(1);
        let exact = (1..=root).rev().find(|rows| ranks.is_multiple_of(*rows)).unwrap_or(1);
        if ranks < 8 || ranks / exact <= 4 * exact {
            return RankGrid { rows: exact, cols: ranks / exact };
        }
        let shapes = (1..=root).map(|rows| RankGrid { rows, cols: (ranks / rows).min(4 * rows) });
        shapes.max_by_key(|grid| (grid.rows * grid.cols, grid.rows)).expect("there is a shape")
    }

    /// Ranks in the grid.
    pub fn size(&self) -> usize {
        self.rows.saturating_mul(self.cols)
    }
}

/// The tiles of a `rows x cols` matrix and their owners.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TileMap {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// Rows and columns of a tile; the last ones may have fewer.
    pub tile_size: usize,
    /// The grid of ranks.
    pub grid: RankGrid,
    /// The triangle that exists, diagonal tiles included; `None` for all tiles.
    pub triangle: Option<Uplo>,
}

impl TileMap {
    /// The default size of tiles for an order and a grid: some tiles for each rank in both directions, whole blocks,
    /// between 16 and 256.
    pub fn default_tile_size(order: usize, grid: RankGrid) -> usize {
        order.div_ceil(4 * grid.rows.max(grid.cols)).next_multiple_of(BLOCK).clamp(2 * BLOCK, 256)
    }

    /// Rows of tiles.
    pub fn tile_rows(&self) -> usize {
        self.rows.div_ceil(self.tile_size)
    }

    /// Columns of tiles.
    pub fn tile_cols(&self) -> usize {
        self.cols.div_ceil(self.tile_size)
    }

    /// The rank that owns a tile.
    pub fn owner(&self, tile: TileId) -> usize {
        tile.row % self.grid.rows * self.grid.cols + tile.col % self.grid.cols
    }

    /// Rows of the matrix in row `row` of tiles.
    pub fn row_range(&self, row: usize) -> Range<usize> {
        row * self.tile_size..((row + 1) * self.tile_size).min(self.rows)
    }

    /// Columns of the matrix in column `col` of tiles.
    pub fn col_range(&self, col: usize) -> Range<usize> {
        col * self.tile_size..((col + 1) * self.tile_size).min(self.cols)
    }

    /// Rows of tiles that exist in column `col` of tiles.
    pub fn tile_rows_of(&self, col: usize) -> Range<usize> {
        match self.triangle {
            None => 0..self.tile_rows(),
            Some(Uplo::Lower) => col..self.tile_rows(),
            Some(Uplo::Upper) => 0..(col + 1).min(self.tile_rows()),
        }
    }

    /// All tiles that exist, column by column.
    pub fn tiles(&self) -> impl Iterator<Item = TileId> + use<> {
        let map = *self;
        (0..map.tile_cols()).flat_map(move |col| map.tile_rows_of(col).map(move |row| TileId { row, col }))
    }

    /// The tiles of `rank`, column by column.
    pub fn tiles_of(&self, rank: usize) -> impl Iterator<Item = TileId> + use<> {
        let map = *self;
        let (grid_row, grid_col) = (rank / map.grid.cols, rank % map.grid.cols);
        let cols = (grid_col..map.tile_cols()).step_by(map.grid.cols).filter(move |_| grid_row < map.grid.rows);
        cols.flat_map(move |col| {
            let rows = map.tile_rows_of(col);
            // The first of these rows that this row of ranks owns.
            let start = rows.start + (grid_row + map.grid.rows - rows.start % map.grid.rows) % map.grid.rows;
            (start..rows.end).step_by(map.grid.rows).map(move |row| TileId { row, col })
        })
    }

    /// Entries that `rank` stores.
    pub fn entries_of(&self, rank: usize) -> usize {
        self.tiles_of(rank).map(|tile| self.row_range(tile.row).len() * self.col_range(tile.col).len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_are_near_square_and_use_nearly_all_ranks() {
        let cases = [(1, 1, 1), (2, 1, 2), (3, 1, 3), (4, 2, 2), (6, 2, 3), (7, 1, 7), (12, 3, 4), (128, 8, 16)];
        for (ranks, rows, cols) in cases {
            assert_eq!(RankGrid::for_ranks(ranks), RankGrid { rows, cols }, "{ranks}");
        }
        for ranks in 8..2000 {
            let grid = RankGrid::for_ranks(ranks);
            assert!(grid.rows <= grid.cols && grid.cols <= 4 * grid.rows, "{ranks}: {grid:?}");
            assert!(grid.size() <= ranks && grid.size() * 100 >= ranks * 88, "{ranks}: {grid:?}");
        }
    }

    #[test]
    fn every_tile_has_one_owner_who_lists_it() {
        for ranks in [1, 2, 3, 4, 6, 7, 13, 16] {
            let (lower, upper) = (Some(Uplo::Lower), Some(Uplo::Upper));
            let cases = [(0, 0, lower), (1, 1, lower), (67, 67, lower), (67, 67, upper), (40, 100, None), (9, 0, None)];
            for (rows, cols, triangle) in cases {
                let map = TileMap { rows, cols, tile_size: 8, grid: RankGrid::for_ranks(ranks), triangle };
                let mut listed = (0..ranks).flat_map(|rank| map.tiles_of(rank)).collect::<Vec<_>>();
                for rank in 0..ranks {
                    assert!(map.tiles_of(rank).all(|tile| map.owner(tile) == rank));
                }
                listed.sort_by_key(|tile| (tile.col, tile.row));
                assert_eq!(listed, map.tiles().collect::<Vec<_>>());
                let entries: usize = (0..ranks).map(|rank| map.entries_of(rank)).sum();
                if triangle.is_none() {
                    assert_eq!(entries, rows * cols);
                }
            }
        }
    }
}
