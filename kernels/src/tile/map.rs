//! How a matrix is cut into tiles, and which rank owns which of them: a 2D block-cyclic distribution, as in ScaLAPACK.

use super::grid::first_from;
use super::{RankGrid, RankPlace, TileId};
use crate::matrix::Uplo;
use std::ops::Range;

/// The tiles of a `rows x cols` matrix and their owners.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TileMap {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// Rows and columns of a tile; the last tiles may have fewer. Calls refuse 0; the functions here treat it as 1.
    pub tile_size: usize,
    /// The grid of ranks.
    pub grid: RankGrid,
    /// The triangle that is stored, diagonal tiles included; `None` for all tiles.
    pub triangle: Option<Uplo>,
}

impl TileMap {
    /// The lower triangle of a symmetric `order x order` matrix on one rank, in tiles of at least one row.
    pub fn symmetric(order: usize, tile_size: usize) -> TileMap {
        let grid = RankGrid { rows: 1, cols: 1 };
        TileMap { rows: order, cols: order, tile_size: tile_size.max(1), grid, triangle: Some(Uplo::Lower) }
    }

    /// Number of tile rows.
    pub fn tile_rows(&self) -> usize {
        self.rows.div_ceil(self.side())
    }

    /// Number of tile columns.
    pub fn tile_cols(&self) -> usize {
        self.cols.div_ceil(self.side())
    }

    /// The rank that owns a tile.
    pub fn owner(&self, tile: TileId) -> usize {
        self.grid.owner(tile)
    }

    /// The range of rows of the matrix that tile row `row` contains.
    pub fn row_range(&self, row: usize) -> Range<usize> {
        span(row, self.side(), self.rows)
    }

    /// The range of columns of the matrix that tile column `col` contains.
    pub fn col_range(&self, col: usize) -> Range<usize> {
        span(col, self.side(), self.cols)
    }

    /// Numbers of rows and columns of the matrix that a tile contains.
    pub fn shape(&self, tile: TileId) -> (usize, usize) {
        (self.row_range(tile.row).len(), self.col_range(tile.col).len())
    }

    /// Number of entries of the matrix that a tile contains.
    pub fn entries(&self, tile: TileId) -> usize {
        let (rows, cols) = self.shape(tile);
        rows * cols
    }

    /// Number of entries of the largest possible tile.
    pub fn most_entries(&self) -> usize {
        self.side().min(self.rows) * self.side().min(self.cols)
    }

    /// The tile rows of the tiles that exist in tile column `col`.
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
        let (RankPlace { row, col }, grid) = (map.grid.place(rank), map.grid.counted());
        let cols = (col..map.tile_cols()).step_by(grid.cols).filter(move |_| row < grid.rows);
        cols.flat_map(move |col| {
            let rows = map.tile_rows_of(col);
            (first_from(rows.start, row, grid.rows)..rows.end).step_by(grid.rows).map(move |row| TileId { row, col })
        })
    }

    /// Number of entries that `rank` stores.
    pub fn entries_of(&self, rank: usize) -> usize {
        self.tiles_of(rank).map(|tile| self.entries(tile)).sum()
    }

    /// Rows and columns to count by, never 0.
    fn side(&self) -> usize {
        self.tile_size.max(1)
    }
}

/// Numbers below `end` in part `number` of `side` numbers each; none for a part beyond them.
fn span(number: usize, side: usize, end: usize) -> Range<usize> {
    let first = number.saturating_mul(side).min(end);
    first..first.saturating_add(side).min(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_of_no_rows_count_by_one() {
        let map = TileMap { tile_size: 0, ..TileMap::symmetric(3, 1) };
        assert_eq!((map.tile_rows(), map.row_range(1), map.most_entries()), (3, 1..2, 1));
        let none = TileMap { grid: RankGrid { rows: 0, cols: 0 }, ..map };
        assert_eq!(none.tiles_of(0).count(), 6);
        // Beyond the matrix there is nothing.
        assert_eq!((map.row_range(3), map.col_range(usize::MAX)), (3..3, 3..3));
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
