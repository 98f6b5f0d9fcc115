//! The distribution of the rows of a matrix, or of its columns, as a formula.

use super::RankGrid;

/// The coordinate of a rank that determines its indices on an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Along {
    /// The row of the rank in the grid; Elemental's `MC`.
    GridRow,
    /// The column of the rank in the grid; Elemental's `MR`.
    GridCol,
    /// The number of the rank in the grid, counted column by column; Elemental's `VC`.
    ColumnMajor,
    /// The number of the rank in the grid, counted row by row; Elemental's `VR`.
    RowMajor,
}

/// The distribution of the rows, or of the columns, of a matrix over ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Axis {
    /// Every rank has all indices; Elemental's `STAR`.
    Whole,
    /// Blocks of `block` indices, assigned cyclically, starting with coordinate `first`.
    Cyclic {
        /// Number of indices in a block; at least 1.
        block: usize,
        /// The coordinate of the first block.
        first: usize,
        /// Number of indices missing from the first block, as in a part of a matrix; fewer than `block`.
        offset: usize,
        /// The coordinate of a rank that selects its blocks.
        along: Along,
    },
    /// Coordinate `k` has the indices from `starts[k]` to `starts[k + 1]`.
    Consecutive {
        /// One value more than there are coordinates, ascending, from 0 to the length of the axis.
        starts: Vec<usize>,
        /// The coordinate of a rank that selects its indices.
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

    /// The number of positions along the axis.
    pub(super) fn numbers(&self, grid: RankGrid) -> usize {
        match self.along() {
            None => 1,
            Some(Along::GridRow) => grid.rows,
            Some(Along::GridCol) => grid.cols,
            Some(Along::ColumnMajor | Along::RowMajor) => grid.size(),
        }
    }
}
