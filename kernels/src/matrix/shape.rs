//! The small words of matrix shapes, as in BLAS.

/// Row and column of an entry, from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EntryIndex {
    /// Row of the entry.
    pub row: usize,
    /// Column of the entry.
    pub col: usize,
}

impl EntryIndex {
    /// The place of the entry in the transposed matrix.
    #[inline]
    #[must_use]
    pub fn transposed(self) -> EntryIndex {
        EntryIndex { row: self.col, col: self.row }
    }
}

/// Selects the lower or the upper triangle of a matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Uplo {
    /// Entries with `row >= column`.
    #[default]
    Lower,
    /// Entries with `row <= column`.
    Upper,
}

/// Whether an operand is used as it is or transposed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Op {
    /// The matrix itself.
    #[default]
    NoTranspose,
    /// Its transpose.
    Transpose,
}

/// The side on which a triangular matrix is multiplied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Side {
    /// `op(T) X = alpha B`.
    #[default]
    Left,
    /// `X op(T) = alpha B`.
    Right,
}

/// The diagonal of a triangular matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Diag {
    /// The diagonal is read.
    #[default]
    NonUnit,
    /// The diagonal is taken as ones; the stored entries are not read.
    Unit,
}
