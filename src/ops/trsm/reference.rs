//! A triangular solve by substitution on MPFR numbers, one after the other.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound::ceil_log2;
use crate::matrix::{Diag, Matrix, MatrixView, Op, Side, Uplo};
use crate::ops::problem::check_precision;
use crate::ops::trsm::TrsmOptions;
use rug::Float;

/// Solves with `ceil(log2 n) + 16` more bits than asked for.
pub(super) fn solve(
    ctx: &Context,
    (t, b): (MatrixView<'_>, MatrixView<'_>),
    precision_bits: u32,
    options: &TrsmOptions<'_>,
) -> Result<Matrix> {
    let t = if options.op == Op::Transpose { t.transposed() } else { t };
    let lower = (options.uplo == Uplo::Lower) != (options.op == Op::Transpose);
    // X op(T) = B is op(T)^T X^T = B^T.
    let (t, b, lower) = match options.side {
        Side::Left => (t, b, lower),
        Side::Right => (t.transposed(), b.transposed(), !lower),
    };
    let (n, m) = (b.rows(), b.cols());
    if t.rows() != t.cols() || t.cols() != n {
        return Err(Error::ShapeMismatch {
            operation: "trsm",
            left_rows: t.rows(),
            left_cols: t.cols(),
            right_rows: n,
            right_cols: m,
        });
    }
    check_precision(ctx.kernel(), precision_bits, n)?;
    let unit = options.diag == Diag::Unit;
    if let Some(index) = (0..n).find(|&i| !unit && t.get(i, i).head.is_zero()) {
        return Err(Error::Singular { index });
    }
    let bits = precision_bits + ceil_log2(n) + 16;
    let (rows, cols) = if options.side == Side::Left { (n, m) } else { (m, n) };
    let mut result = Matrix::zeros(rows, cols, precision_bits)?;
    for j in 0..m {
        let mut x = vec![Float::new(bits); n];
        for step in 0..n {
            let i = if lower { step } else { n - 1 - step };
            let known = if lower { 0..i } else { i + 1..n };
            let mut sum = b.get(i, j).to_float(b.precision_bits());
            sum = Float::with_val(bits, options.alpha.map_or(sum.clone(), |alpha| Float::with_val(bits, alpha * &sum)));
            for k in known {
                sum -= Float::with_val(bits, &x[k] * t.get(i, k).to_float(t.precision_bits()));
            }
            x[i] = if unit { sum } else { sum / t.get(i, i).to_float(t.precision_bits()) };
        }
        for (i, value) in x.iter().enumerate() {
            let (row, col) = if options.side == Side::Left { (i, j) } else { (j, i) };
            result.set_float(row, col, value)?;
        }
    }
    Ok(result)
}
