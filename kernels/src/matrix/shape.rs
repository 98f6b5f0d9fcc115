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
    /// The entry's place in the transposed matrix.
    #[inline]
    #[must_use]
    pub fn transposed(self) -> EntryIndex {
        EntryIndex { row: self.col, col: self.row }
    }
}

/// Which triangle of a symmetric matrix is meant.
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

/// On which side of the unknown a triangular matrix stands.
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
    /// The entries stored there.
    #[default]
    NonUnit,
    /// Ones; the entries stored there are not read.
    Unit,
}
