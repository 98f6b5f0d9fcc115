//! Triangular solves `op(T) X = alpha B` and `X op(T) = alpha B` in big floats.
//!
//! Promise: the bits of the solution depend only on the operands, the precision, the options and the shape.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::{Destination, Matrix, MatrixView, Op, Side, Uplo};
use crate::ops::product::report::Outcome;
use crate::ops::solve::system::{SolveReport, TriangularSystem, check_scalar};

pub use crate::ops::solve::system::TrsmOptions;

/// The solution `X` of `L X = B` for a lower triangular `L`; see [`trsm_with`].
///
/// ```
/// use sunzi::{Context, Matrix};
/// let ctx = Context::new()?;
/// let l = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 0.0, 3.0])?;
/// let b = Matrix::from_f64s(2, 1, 128, &[10.0, 23.0])?;
/// assert_eq!(sunzi::trsm(&ctx, &l, &b, 128)?.view().to_f64s(), [10.0, 1.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`trsm_with`].
pub fn trsm<'a, 'b>(
    ctx: &Context,
    t: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
) -> Result<Matrix> {
    Ok(trsm_with(ctx, t, b, precision_bits, &TrsmOptions::default())?.result)
}

/// The solution `X` of `op(T) X = alpha B` or `X op(T) = alpha B` for a triangular `T`, rounded to `precision_bits`
/// bits.
///
/// Shapes: `t` is `n x n`, of which one triangle is read (with [`crate::Diag::Unit`] without its diagonal); `b` and the
/// result are `n x m` for side left, `m x n` for side right. Any of them may be empty. Accuracy for side left, with row
/// `t_i` of `op(T)` and column `x_j` of the result: `|alpha b - op(T) x|_ij <= 2^(1 - precision_bits) (||t_i||
/// ||x_j|| + |alpha b_ij|)`, for any condition of `T`; with [`crate::Accuracy::Entrywise`], `|alpha b - op(T) x|_ij <=
/// 2^(1 - precision_bits) (|op(T)| |X|)_ij`. For side right the same bound holds for `op(T)^T X^T = alpha B^T`. The
/// bits depend only on the operands, the precision and the options, not on threads, kernel or memory limit. Cost:
/// `n^2 m / 2` word products for each of about `2 precision_bits / 52` primes. Source: docs/ALGORITHM.md, "Triangular
/// solves".
///
/// ```
/// use sunzi::{Context, Matrix, Op, TrsmOptions};
/// let ctx = Context::new()?;
/// let l = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 0.0, 3.0])?;
/// let b = Matrix::from_f64s(2, 1, 128, &[5.0, 6.0])?;
/// let x = sunzi::trsm_with(&ctx, &l, &b, 128, &TrsmOptions::new().op(Op::Transpose))?; // L^T X = B
/// assert_eq!(x.result.view().to_f64s(), [1.0, 2.0]);
/// assert_eq!((x.report.operation, x.report.order, x.report.columns), ("trsm", 2, 1));
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::ShapeMismatch`]; [`crate::Error::Singular`] with the first zero on the diagonal;
/// [`crate::Error::Precision`]; [`crate::Error::InvalidArgument`] if alpha is not finite;
/// [`crate::Error::ExponentRange`] if an entry of the solution, or an intermediate product, is outside the exponent
/// range; [`crate::Error::MemoryLimit`]; [`crate::Error::Cancelled`]; [`crate::Error::OutOfMemory`].
pub fn trsm_with<'a, 'b>(
    ctx: &Context,
    t: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
    options: &TrsmOptions<'_>,
) -> Result<Outcome<Matrix, SolveReport>> {
    let mut result = Matrix::empty();
    let report = trsm_into(ctx, t, b, precision_bits, options, &mut result)?;
    Ok(Outcome { result, report })
}

/// [`trsm_with`] into the caller's memory: a matrix, which is replaced if its shape or precision do not fit, or a block
/// of a larger one, see [`Destination`].
///
/// After an error the contents of `result` are unspecified numbers.
///
/// ```
/// use sunzi::{Context, Matrix, TrsmOptions};
/// let ctx = Context::new()?;
/// let l = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 0.0, 3.0])?;
/// let b = Matrix::from_f64s(2, 1, 128, &[10.0, 23.0])?;
/// let mut large = Matrix::zeros(2, 2, 128)?;
/// let second = large.view_mut().block(0..2, 1..2)?;
/// sunzi::trsm_into(&ctx, &l, &b, 128, &TrsmOptions::new(), second)?;
/// assert_eq!(large.view().to_f64s(), [0.0, 0.0, 10.0, 1.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`trsm_with`]; [`crate::Error::ShapeMismatch`] and [`crate::Error::InvalidArgument`] for a block of another shape
/// or precision.
pub fn trsm_into<'a, 'b, 'r>(
    ctx: &Context,
    t: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
    options: &TrsmOptions<'_>,
    result: impl Into<Destination<'r>>,
) -> Result<SolveReport> {
    oriented(t.into(), b.into(), precision_bits, options)?.solve(ctx, result.into())
}

/// The system with a triangle on the left that a call solves.
///
/// # Errors
/// [`Error::ShapeMismatch`]; [`Error::InvalidArgument`] where alpha is not finite.
pub(crate) fn oriented<'a>(
    t: MatrixView<'a>,
    b: MatrixView<'a>,
    precision_bits: u32,
    options: &TrsmOptions<'_>,
) -> Result<TriangularSystem<'a>> {
    let transposed = options.side == Side::Right;
    // X op(T) = B is op(T)^T X^T = B^T.
    let other = (options.op == Op::Transpose) != transposed;
    let (t, b) = (if other { t.transposed() } else { t }, if transposed { b.transposed() } else { b });
    let lower = (options.uplo == Uplo::Lower) != other;
    check_shapes(options.side, &t, &b)?;
    let alpha = options.alpha.map(check_scalar).transpose()?;
    Ok(TriangularSystem {
        t,
        uplo: if lower { Uplo::Lower } else { Uplo::Upper },
        diag: options.diag,
        b,
        alpha,
        transposed,
        precision_bits,
        accuracy: options.accuracy,
        total_columns: b.cols(),
    })
}

fn check_shapes(side: Side, t: &MatrixView<'_>, b: &MatrixView<'_>) -> Result<()> {
    if t.rows() == t.cols() && t.cols() == b.rows() {
        return Ok(());
    }
    let (t, b) = ((t.rows(), t.cols()), (b.rows(), b.cols()));
    Err(match side {
        Side::Left => Error::shape_mismatch("trsm", t, b),
        Side::Right => Error::shape_mismatch("trsm", (b.1, b.0), (t.1, t.0)),
    })
}
