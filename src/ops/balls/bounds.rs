//! Upper bounds of magnitudes: matrices of numbers that are not negative, of 64 bits, each operation rounded up.

use crate::context::Context;
use crate::error::Result;
use crate::matrix::{Matrix, MatrixView};
use crate::ops::estimate::{ESTIMATE_BITS, Upper, magnitude};
use crate::ops::gemm::{GemmOptions, gemm_with};
use crate::ops::product::problem::Accuracy;
use rug::Float;
use std::collections::VecDeque;

/// Bits of radii and bounds.
pub(super) const RADIUS_BITS: u32 = ESTIMATE_BITS;

/// Bits of products of bounds.
const PRODUCT_BITS: u32 = 32;

/// The magnitudes of all entries, rounded up.
///
/// # Errors
/// [`crate::Error::OutOfMemory`].
pub(super) fn magnitudes(matrix: MatrixView<'_>) -> Result<Matrix> {
    Matrix::from_fn(matrix.rows(), matrix.cols(), RADIUS_BITS, |row, col| magnitude(matrix.get(row, col)))
}

/// The entry as a number.
fn entry(bounds: MatrixView<'_>, row: usize, col: usize) -> Float {
    bounds.get(row, col).to_float(RADIUS_BITS)
}

/// An upper bound of `A B` for matrices that are not negative, at most `1 + 2^-29` times it.
///
/// Entry by entry a product of `b` bits is off by at most `2^(1-b) A B` (docs/ALGORITHM.md, (3a)), so `A B` is at most
/// `1 / (1 - 2^(1-b))` times the computed product.
///
/// # Errors
/// The errors of [`gemm_with`].
pub(super) fn product(ctx: &Context, a: MatrixView<'_>, b: MatrixView<'_>) -> Result<Matrix> {
    let options = GemmOptions::new().accuracy(Accuracy::Entrywise);
    let computed = gemm_with(ctx, a, b, PRODUCT_BITS, &options)?.result;
    let inflation = Upper(power_above_one(2 - PRODUCT_BITS as i32));
    let (rows, cols) = (computed.rows(), computed.cols());
    Matrix::from_fn(rows, cols, RADIUS_BITS, |row, col| {
        inflation.clone().times(&computed.get(row, col).to_float(PRODUCT_BITS)).0
    })
}

/// `1 + 2^exponent`, for `exponent > -64`.
pub(super) fn power_above_one(exponent: i32) -> Float {
    (Float::with_val(RADIUS_BITS, 1) << exponent) + 1u32
}

/// `A + B`, rounded up.
///
/// # Errors
/// [`crate::Error::ExponentRange`], [`crate::Error::OutOfMemory`].
pub(super) fn sum(a: MatrixView<'_>, b: MatrixView<'_>) -> Result<Matrix> {
    Matrix::from_fn(a.rows(), a.cols(), RADIUS_BITS, |row, col| Upper(entry(a, row, col)).add(&entry(b, row, col)).0)
}

/// `E v`, rounded up.
pub(super) fn image(e: &Matrix, v: &[Float]) -> Vec<Float> {
    let mut sums = vec![Upper::zero(); e.rows()];
    for (col, factor) in v.iter().enumerate().filter(|(_, factor)| !factor.is_zero()) {
        for (row, sum) in sums.iter_mut().enumerate().filter(|(row, _)| !e.get(*row, col).head.is_zero()) {
            *sum = std::mem::replace(sum, Upper::zero()).add(&Upper(e.float(row, col)).times(factor).0);
        }
    }
    sums.into_iter().map(|sum| sum.0).collect()
}

/// The rows in which a power of `E` times a vector may be nonzero, from the rows `start` in which the vector is.
pub(super) fn reached(e: &Matrix, start: &[bool]) -> Vec<bool> {
    let mut reached = start.to_vec();
    let mut queue: VecDeque<usize> = (0..start.len()).filter(|&row| start[row]).collect();
    while let Some(col) = queue.pop_front() {
        for (row, seen) in reached.iter_mut().enumerate().filter(|(_, seen)| !**seen) {
            if !e.get(row, col).head.is_zero() {
                *seen = true;
                queue.push_back(row);
            }
        }
    }
    reached
}

/// Approximately the largest sum of the entries of a row.
pub(super) fn largest_row_sum(matrix: &Matrix) -> f64 {
    let sum = |row: usize| (0..matrix.cols()).map(|col| matrix.get(row, col).to_f64()).sum::<f64>();
    (0..matrix.rows()).map(sum).fold(0.0, f64::max)
}
