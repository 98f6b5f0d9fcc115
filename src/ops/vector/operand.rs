//! Vectors as the calls take them, and their scalars.

use crate::error::{Error, Result};
use crate::math::float::{FloatRef, Head};
use crate::matrix::{MAXIMUM_PRECISION_BITS, Matrix, MatrixView};
use rug::Float;

/// A matrix of one column or one row, as a column.
///
/// # Errors
/// [`Error::ShapeMismatch`] for anything else.
pub(super) fn vector<'a>(operation: &'static str, view: MatrixView<'a>) -> Result<MatrixView<'a>> {
    match (view.rows(), view.cols()) {
        (_, 1) | (0, 0) => Ok(view),
        (1, _) => Ok(view.transposed()),
        (rows, cols) => Err(Error::shape_mismatch(operation, (rows, cols), (rows, 1))),
    }
}

/// A vector of `len` entries, as a column.
///
/// # Errors
/// [`Error::ShapeMismatch`].
pub(super) fn vector_of<'a>(operation: &'static str, view: MatrixView<'a>, len: usize) -> Result<MatrixView<'a>> {
    let column = vector(operation, view)?;
    match column.rows() == len {
        true => Ok(column),
        false => Err(Error::shape_mismatch(operation, (len, 1), (view.rows(), view.cols()))),
    }
}

/// Refuses a precision that no matrix can have.
///
/// # Errors
/// [`Error::Precision`].
pub(super) fn check_precision(precision_bits: u32) -> Result<()> {
    match (2..=MAXIMUM_PRECISION_BITS).contains(&precision_bits) {
        true => Ok(()),
        false => Err(Error::precision(precision_bits, MAXIMUM_PRECISION_BITS)),
    }
}

/// Refuses a scalar that is not finite.
///
/// # Errors
/// [`Error::InvalidArgument`].
pub(super) fn check_scalar(name: &str, value: &Float) -> Result<()> {
    match value.is_finite() {
        true => Ok(()),
        false => Err(Error::InvalidArgument(format!("{name} is {value}: it must be finite"))),
    }
}

/// A scalar as a matrix of one entry, exactly.
///
/// # Errors
/// [`Error::InvalidArgument`] where it is not finite.
pub(super) fn scalar(name: &str, value: &Float) -> Result<Matrix> {
    check_scalar(name, value)?;
    Matrix::from_floats(1, 1, value.prec().max(2), std::slice::from_ref(value))
}

/// The number 1 as a matrix of one entry.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(super) fn one() -> Result<Matrix> {
    Matrix::identity(1, 2)
}

/// A column of a view, whose entries are looked up without a check for each.
pub(super) struct Strided<'a> {
    heads: &'a [u64],
    limbs: &'a [u64],
    width: usize,
    first: usize,
    stride: usize,
}

impl<'a> Strided<'a> {
    /// Column `col`, which is there (asserted where it has entries).
    pub fn column(view: MatrixView<'a>, col: usize) -> Strided<'a> {
        let first = if view.rows() == 0 { 0 } else { view.element_index(0, col) };
        let (heads, limbs, width) = (view.all_heads(), view.all_limbs(), view.limbs_per_element());
        Strided { heads, limbs, width, first, stride: view.row_stride() }
    }

    /// The entry in this row.
    #[inline]
    pub fn get(&self, row: usize) -> FloatRef<'a> {
        let index = self.first.wrapping_add(row.wrapping_mul(self.stride));
        FloatRef { head: Head(self.heads[index]), limbs: &self.limbs[index * self.width..][..self.width] }
    }
}
