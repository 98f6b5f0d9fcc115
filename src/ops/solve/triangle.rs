//! A triangular matrix as a solve sees it: a view, which triangle of it counts, and its diagonal.

use crate::error::{Error, Result};
use crate::math::float::{FloatRef, Head};
use crate::math::scale::column_exponent;
use crate::matrix::{Diag, MatrixView, Uplo};
use std::ops::Range;

/// A triangular matrix; nothing outside its triangle is read, nor the diagonal of a unit triangle.
#[derive(Clone, Copy)]
pub(crate) struct Triangle<'a> {
    view: MatrixView<'a>,
    uplo: Uplo,
    diag: Diag,
}

impl<'a> Triangle<'a> {
    /// The triangle of a square view.
    ///
    /// # Errors
    /// [`Error::Singular`] with the first zero on the diagonal.
    pub fn new(view: MatrixView<'a>, uplo: Uplo, diag: Diag) -> Result<Triangle<'a>> {
        assert_eq!(view.rows(), view.cols(), "a triangle is square");
        let is_zero = |&i: &usize| diag == Diag::NonUnit && view.get(i, i).head.is_zero();
        match (0..view.rows()).find(is_zero) {
            Some(index) => Err(Error::Singular { index }),
            None => Ok(Triangle { view, uplo, diag }),
        }
    }

    /// A block on the diagonal of a triangle, whose pivots are not 0.
    pub fn of_block(view: MatrixView<'a>, uplo: Uplo, diag: Diag) -> Triangle<'a> {
        assert_eq!(view.rows(), view.cols(), "a block on the diagonal is square");
        Triangle { view, uplo, diag }
    }

    /// The triangle that is used, and its diagonal.
    pub fn kind(&self) -> (Uplo, Diag) {
        (self.uplo, self.diag)
    }

    /// Rows and columns.
    pub fn order(&self) -> usize {
        self.view.rows()
    }

    /// Whether the unknowns are found from the first to the last.
    pub fn is_lower(&self) -> bool {
        self.uplo == Uplo::Lower
    }

    /// Whether the diagonal is ones.
    pub fn is_unit(&self) -> bool {
        self.diag == Diag::Unit
    }

    /// The unknowns within `range` that row `row` needs in addition to its own.
    pub fn others(&self, row: usize, range: &Range<usize>) -> Range<usize> {
        if self.is_lower() { range.start..row } else { row + 1..range.end }
    }

    /// The element at `(row, col)` of the triangle; not the diagonal of a unit triangle.
    #[inline]
    pub fn get(&self, row: usize, col: usize) -> FloatRef<'a> {
        self.view.get(row, col)
    }

    /// The whole view, with the entries outside of the triangle.
    pub fn view(&self) -> MatrixView<'a> {
        self.view
    }

    /// The exponent of the norm of each row of the diagonal block `range`.
    pub fn row_exponents(&self, range: &Range<usize>) -> Vec<i64> {
        range.clone().map(|row| self.row_exponent(row, range)).collect()
    }

    /// The exponent of the norm of one row of the diagonal block `range`.
    pub fn row_exponent(&self, row: usize, range: &Range<usize>) -> i64 {
        column_exponent(self.row_heads(row, range))
    }

    fn row_heads(&self, row: usize, range: &Range<usize>) -> impl Iterator<Item = Head> + Clone {
        let own = if self.is_unit() { Head::new(false, 1) } else { self.get(row, row).head };
        self.others(row, range).map(move |col| self.get(row, col).head).chain(std::iter::once(own))
    }
}

/// `value * 2^shift`, exactly.
#[inline]
pub(crate) fn scaled(value: FloatRef<'_>, shift: i64) -> FloatRef<'_> {
    let head = value.head;
    if head.is_zero() {
        value
    } else {
        FloatRef { head: Head::new(head.is_negative(), head.exponent() + shift), ..value }
    }
}
