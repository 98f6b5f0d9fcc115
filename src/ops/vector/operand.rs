//! Vectors as the calls take them, and the scalars beside them.

use crate::error::{Error, Result};
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

/// A vector of so many entries, as a column.
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

/// A scalar as a matrix of one entry, exactly.
///
/// # Errors
/// [`Error::InvalidArgument`] where it is not finite.
pub(super) fn scalar(name: &str, value: &Float) -> Result<Matrix> {
    if !value.is_finite() {
        return Err(Error::InvalidArgument(format!("{name} is {value}: it must be finite")));
    }
    Matrix::from_floats(1, 1, value.prec().max(2), std::slice::from_ref(value))
}

/// The number 1 as a matrix of one entry.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(super) fn one() -> Result<Matrix> {
    Matrix::identity(1, 2)
}
