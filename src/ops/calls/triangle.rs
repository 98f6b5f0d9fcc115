//! The entries of a triangle that lie on a rank.

use crate::matrix::Uplo;
use crate::tile::LocalDiagonal;
use std::ops::Range;

/// A triangle of a matrix over ranks, or its diagonal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrianglePart {
    /// `row >= column`.
    Lower,
    /// `row <= column`.
    Upper,
    /// `row > column`.
    StrictLower,
    /// `row < column`.
    StrictUpper,
    /// `row = column`.
    Diagonal,
}

impl TrianglePart {
    /// The triangle, of which this is all or a part.
    pub(super) fn uplo(self) -> Uplo {
        match self {
            TrianglePart::Lower | TrianglePart::StrictLower | TrianglePart::Diagonal => Uplo::Lower,
            TrianglePart::Upper | TrianglePart::StrictUpper => Uplo::Upper,
        }
    }

    fn transposed(self) -> TrianglePart {
        match self {
            TrianglePart::Lower => TrianglePart::Upper,
            TrianglePart::Upper => TrianglePart::Lower,
            TrianglePart::StrictLower => TrianglePart::StrictUpper,
            TrianglePart::StrictUpper => TrianglePart::StrictLower,
            TrianglePart::Diagonal => TrianglePart::Diagonal,
        }
    }
}

impl From<Uplo> for TrianglePart {
    /// The triangle with its diagonal.
    fn from(uplo: Uplo) -> TrianglePart {
        if uplo == Uplo::Lower { TrianglePart::Lower } else { TrianglePart::Upper }
    }
}

/// The entries of a triangle that lie on this rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocalTriangle {
    /// The diagonal within this rank's part.
    pub diagonal: LocalDiagonal,
    /// The side of the diagonal that is used.
    pub part: TrianglePart,
}

impl LocalTriangle {
    /// The same entries of the transpose.
    pub fn transposed(self) -> LocalTriangle {
        LocalTriangle { diagonal: self.diagonal.transposed(), part: self.part.transposed() }
    }

    /// The rows of column `col` in the part, of `rows` rows.
    pub fn rows(self, col: usize, rows: usize) -> Range<usize> {
        let LocalTriangle { diagonal, part } = self;
        match part {
            TrianglePart::Lower => diagonal.row_on(col)..rows,
            TrianglePart::Upper => 0..diagonal.row_below(col),
            TrianglePart::StrictLower => diagonal.row_below(col)..rows,
            TrianglePart::StrictUpper => 0..diagonal.row_on(col),
            TrianglePart::Diagonal => diagonal.row_on(col)..diagonal.row_below(col),
        }
    }

    /// Whether the triangle has no entry in a part of `rows` by `cols`.
    pub fn is_empty(self, rows: usize, cols: usize) -> bool {
        rows == 0 || (0..cols).all(|col| self.rows(col, rows).is_empty())
    }
}
