//! How the rows of a matrix, or its columns, are dealt out: a formula.

use super::RankGrid;

/// The number of a rank that decides which indices of an axis are its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Along {
    /// Its row in the grid; Elemental's `MC`.
    GridRow,
    /// Its column in the grid; Elemental's `MR`.
    GridCol,
    /// Its number among all ranks of the grid, counted column by column; Elemental's `VC`.
    ColumnMajor,
    /// Its number among all ranks of the grid, counted row by row; Elemental's `VR`.
    RowMajor,
}

/// How the rows of a matrix, or its columns, are dealt out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Axis {
    /// Every rank has all of them; Elemental's `STAR`.
    Whole,
    /// In blocks of `block` indices, dealt in turn, from number `first` on.
    Cyclic {
        /// Indices of a block; from 1 on.
        block: usize,
        /// The number that has the first block.
        first: usize,
        /// Indices that the first block lacks, as that of a part of a matrix may; fewer than `block`.
        offset: usize,
        /// Which number of a rank counts.
        along: Along,
    },
    /// Number `k` has the indices from `starts[k]` to `starts[k + 1]`.
    Consecutive {
        /// One more than there are numbers, ascending, from 0 to the length of the axis.
        starts: Vec<usize>,
        /// Which number of a rank counts.
        along: Along,
    },
}

impl Axis {
    pub(super) fn along(&self) -> Option<Along> {
        match self {
            Axis::Whole => None,
            Axis::Cyclic { along, .. } | Axis::Consecutive { along, .. } => Some(*along),
        }
    }

    /// How many numbers there are along the axis.
    pub(super) fn numbers(&self, grid: RankGrid) -> usize {
        match self.along() {
            None => 1,
            Some(Along::GridRow) => grid.rows,
            Some(Along::GridCol) => grid.cols,
            Some(Along::ColumnMajor | Along::RowMajor) => grid.size(),
        }
    }
}
