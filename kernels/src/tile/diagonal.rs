//! Where the diagonal of a matrix passes through the part of it that one rank has.

/// The diagonal of a matrix within the part of one rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocalDiagonal {
    pub(super) rows: Line,
    pub(super) cols: Line,
    /// Rows and columns of the part.
    pub(super) count: usize,
    pub(super) width: usize,
}

impl LocalDiagonal {
    /// The diagonal within the transposed part.
    pub fn transposed(self) -> LocalDiagonal {
        LocalDiagonal { rows: self.cols, cols: self.rows, count: self.width, width: self.count }
    }

    /// The first row of the part that is on the diagonal or below it in column `col` of the part.
    pub fn row_on(&self, col: usize) -> usize {
        self.rows.below(self.cols.index(col)).min(self.count)
    }

    /// The first row of the part that is below the diagonal in column `col` of the part.
    pub fn row_below(&self, col: usize) -> usize {
        self.rows.below(self.cols.index(col) + 1).min(self.count)
    }
}

/// The indices of one number: in blocks of `block` at distances of `step`, from `start` on, less `offset`; the first
/// block lacks its first `lacks`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Line {
    pub start: usize,
    pub block: usize,
    pub step: usize,
    pub offset: usize,
    pub lacks: usize,
}

impl Line {
    /// All indices from `start` on.
    pub fn from(start: usize) -> Line {
        Line { start, block: usize::MAX, step: usize::MAX, offset: 0, lacks: 0 }
    }

    /// The index at place `local`.
    pub fn index(&self, local: usize) -> usize {
        let at = local + self.lacks;
        self.start + at / self.block * self.step + at % self.block - self.offset
    }

    /// The number of indices below `end`.
    fn below(&self, end: usize) -> usize {
        let end = (end + self.offset).saturating_sub(self.start);
        end / self.step * self.block + (end % self.step).min(self.block) - self.lacks
    }
}
