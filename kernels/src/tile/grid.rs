//! A grid of ranks, and the one formula for the owner of a tile.

use super::TileId;
use crate::error::{Error, Result};
use serde::Serialize;
use std::ops::Range;

/// A grid of ranks, numbered row by row: tile `(i, j)` belongs to the rank at `(i mod rows, j mod cols)`.
///
/// The devices of one rank also form such a grid, over the tiles that the rank owns ([`RankGrid::within`]). Calls
/// refuse a grid without rows or columns; the functions for owners and readers of tiles treat it as a grid with one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct RankGrid {
    /// Rows of ranks.
    pub rows: usize,
    /// Columns of ranks.
    pub cols: usize,
}

/// The row and column of a rank in its grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RankPlace {
    /// Row of ranks.
    pub row: usize,
    /// Column of ranks.
    pub col: usize,
}

impl RankGrid {
    /// A nearly square grid of at most `ranks` ranks, at least as wide as high.
    ///
    /// The grid contains all ranks if they form a grid at most four times as wide as high, or if there are only a few
    /// ranks; otherwise it is the largest such grid. For example, 13 ranks form a grid of 3 x 4, in which one rank has
    /// no tiles, since in one row of 13 every tile would be sent to all ranks.
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

    /// Number of ranks in the grid.
    pub fn size(&self) -> usize {
        self.rows.saturating_mul(self.cols)
    }

    /// Returns an error for a grid without ranks, and for a grid with more ranks than there are.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`].
    #[doc(hidden)]
    pub fn check_ranks(&self, ranks: usize) -> Result<()> {
        if (1..=ranks).contains(&self.size()) {
            return Ok(());
        }
        let RankGrid { rows, cols } = self;
        Err(Error::InvalidArgument(match self.size() {
            0 => format!("a grid of {rows} x {cols} ranks has no rank: both numbers must be at least 1"),
            size => format!("a grid of {rows} x {cols} ranks has {size} ranks, but there are only {ranks}"),
        }))
    }

    /// The rank that owns a tile.
    pub fn owner(&self, tile: TileId) -> usize {
        let RankGrid { rows, cols } = self.counted();
        tile.row % rows * cols + tile.col % cols
    }

    /// The row and column of a rank; ranks outside the grid have rows outside it.
    pub fn place(&self, rank: usize) -> RankPlace {
        let cols = self.counted().cols;
        RankPlace { row: rank / cols, col: rank % cols }
    }

    /// The grid of all owners if each rank of this grid assigns its tiles to an inner grid.
    pub fn refined(&self, inner: RankGrid) -> RankGrid {
        RankGrid { rows: self.rows * inner.rows, cols: self.cols * inner.cols }
    }

    /// The number in [`RankGrid::refined`] of owner `number` of `inner` on rank `rank`.
    pub fn refined_number(&self, inner: RankGrid, rank: usize, number: usize) -> usize {
        let (outer, inner_place) = (self.place(rank), inner.place(number));
        let (row, col) = (outer.row + self.rows * inner_place.row, outer.col + self.cols * inner_place.col);
        row * self.refined(inner).cols + col
    }

    /// The position of a tile among the tiles of its owner: an inner grid finds its owner from this position.
    pub fn within(&self, tile: TileId) -> TileId {
        let RankGrid { rows, cols } = self.counted();
        TileId { row: tile.row / rows, col: tile.col / cols }
    }

    /// The grid to count by: with at least one row and one column.
    pub(crate) fn counted(&self) -> RankGrid {
        RankGrid { rows: self.rows.max(1), cols: self.cols.max(1) }
    }
}

/// The first number from `from` on that is `residue` modulo `modulus`.
pub fn first_from(from: usize, residue: usize, modulus: usize) -> usize {
    from + (residue + modulus - from % modulus) % modulus
}

/// The count of numbers in `range` that are `residue` modulo `modulus`.
pub fn count_in(range: Range<usize>, residue: usize, modulus: usize) -> usize {
    let first = first_from(range.start, residue, modulus);
    if first >= range.end { 0 } else { (range.end - first).div_ceil(modulus) }
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
    fn a_grid_without_ranks_counts_by_one() {
        let tile = TileId { row: 3, col: 5 };
        for (rows, cols) in [(0, 0), (0, 2), (2, 0)] {
            let (empty, one) = (RankGrid { rows, cols }, RankGrid { rows: rows.max(1), cols: cols.max(1) });
            assert!(empty.size() == 0 && empty.check_ranks(usize::MAX).is_err() && one.check_ranks(one.size()).is_ok());
            assert!(one.check_ranks(one.size() - 1).is_err());
            assert_eq!((empty.owner(tile), empty.within(tile)), (one.owner(tile), one.within(tile)));
            assert_eq!(empty.place(7), one.place(7));
        }
    }

    #[test]
    fn a_refined_grid_names_the_owners_within_ranks() {
        let sizes = [(1, 1), (1, 3), (2, 2), (3, 2)].map(|(rows, cols)| RankGrid { rows, cols });
        for (outer, inner) in sizes.into_iter().flat_map(|outer| sizes.map(|inner| (outer, inner))) {
            for tile in (0..20).flat_map(|row| (0..20).map(move |col| TileId { row, col })) {
                let number = outer.refined_number(inner, outer.owner(tile), inner.owner(outer.within(tile)));
                assert_eq!(outer.refined(inner).owner(tile), number, "{tile:?}, {outer:?}, {inner:?}");
            }
        }
    }
}
