//! A symmetric matrix with another diagonal: the existence of its Cholesky factor bounds the eigenvalues.

use crate::error::Result;
use crate::math::float::FloatRef;
use crate::matrix::{Matrix, MatrixView};
use rug::Float;

/// The lower triangle of `matrix` at `precision_bits`, at least its own, where `diagonal(i, a_ii)` stands for the
/// diagonal entry `i`; entries above the diagonal are 0.
///
/// # Errors
/// [`crate::Error::OutOfMemory`]; [`crate::Error::ExponentRange`] for a diagonal entry out of range.
pub(crate) fn shifted_lower(
    matrix: MatrixView<'_>,
    precision_bits: u32,
    diagonal: impl Fn(usize, &Float) -> Float,
) -> Result<Matrix> {
    let order = matrix.rows();
    let mut shifted = Matrix::zeros(order, order, precision_bits)?;
    let width = shifted.limbs_per_element();
    let mut limbs = vec![0; width];
    for (row, col) in (0..order).flat_map(|col| (col + 1..order).map(move |row| (row, col))) {
        let entry = matrix.get(row, col);
        let (low, high) = limbs.split_at_mut(width - entry.limbs.len());
        low.fill(0);
        high.copy_from_slice(entry.limbs);
        shifted.set(row, col, FloatRef { head: entry.head, limbs: &limbs });
    }
    for at in 0..order {
        let entry = matrix.get(at, at).to_float(matrix.precision_bits());
        shifted.set_float(at, at, &diagonal(at, &entry))?;
    }
    Ok(shifted)
}
