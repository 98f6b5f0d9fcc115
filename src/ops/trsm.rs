//! Triangular solves `op(T) X = alpha B` and `X op(T) = alpha B` in big floats.
//!
//! Promise: the bits of the solution depend on the operands, the precision, the options and the shape alone.

use crate::context::Context;
use crate::error::Result;
use crate::matrix::{Diag, Matrix, MatrixView, Op, Side, Uplo};
use crate::ops::solve::run::{self, Call};
use rug::Float;

/// Choices of a triangular solve beyond the operands and the precision.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrsmOptions<'a> {
    /// `Left` solves `op(T) X = alpha B` (the default), `Right` solves `X op(T) = alpha B`.
    pub side: Side,
    /// The triangle of `T` that is read; the other may hold anything.
    pub uplo: Uplo,
    /// Whether `T` is used transposed.
    pub op: Op,
    /// Whether the diagonal of `T` is read or taken as ones.
    pub diag: Diag,
    /// Factor of `B`; `None` is 1.
    pub alpha: Option<&'a Float>,
}

/// The solution `X` of `op(T) X = alpha B` or `X op(T) = alpha B` for a triangular `T`, rounded to `precision_bits`
/// bits.
///
/// Shapes: `t` is `n x n`, of which one triangle is read (with [`Diag::Unit`] without its diagonal); `b` and the
/// result are `n x m` on the left side, `m x n` on the right. Any of them may be empty.
/// Accuracy, on the left side, for row `t_i` of `op(T)` and column `x_j` of the result:
/// `|alpha b - op(T) x|_ij <= 2^(1 - precision_bits) (||t_i|| ||x_j|| + |alpha b_ij|)`, whatever the condition of `T`;
/// on the right side the same for `op(T)^T X^T = alpha B^T`. The bits depend on the operands, the precision and the
/// options alone: not on threads, kernel or memory limit.
/// Cost: `n^2 m / 2` word products for each of about `2 precision_bits / 52` primes.
/// Source: docs/ALGORITHM.md, "Triangular solves".
///
/// # Errors
/// [`crate::Error::ShapeMismatch`]; [`crate::Error::Singular`] with the first zero on the diagonal;
/// [`crate::Error::Precision`]; [`crate::Error::InvalidArgument`] where alpha is not finite;
/// [`crate::Error::ExponentRange`] where an entry of the solution, or a product on the way to it, leaves the exponent
/// range; [`crate::Error::MemoryLimit`]; [`crate::Error::Cancelled`]; [`crate::Error::OutOfMemory`].
pub fn trsm<'a, 'b>(
    ctx: &Context,
    t: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
    options: &TrsmOptions<'_>,
) -> Result<Matrix> {
    let mut result = Matrix::zeros(0, 0, 2)?;
    run::solve(
        ctx,
        &Call { t: t.into(), b: b.into(), precision_bits, options, among: None, held_bytes: 0 },
        &mut result,
    )?;
    Ok(result)
}

/// [`trsm`] into a matrix of the caller, which is replaced where its shape or precision do not fit.
///
/// `operands` are T and B. After an error the contents of `result` are unspecified numbers.
///
/// # Errors
/// As [`trsm`].
pub fn trsm_into<'a, 'b>(
    ctx: &Context,
    operands: (impl Into<MatrixView<'a>>, impl Into<MatrixView<'b>>),
    precision_bits: u32,
    options: &TrsmOptions<'_>,
    result: &mut Matrix,
) -> Result<()> {
    let (t, b) = (operands.0.into(), operands.1.into());
    run::solve(ctx, &Call { t, b, precision_bits, options, among: None, held_bytes: 0 }, result)
}

/// [`trsm`] on some of `among` right sides, with the bits that they have among all, where `held_bytes` of the memory
/// limit are taken.
///
/// # Errors
/// As [`trsm`].
pub(crate) fn trsm_among(
    ctx: &Context,
    (t, b): (MatrixView<'_>, MatrixView<'_>),
    precision_bits: u32,
    options: &TrsmOptions<'_>,
    (among, held_bytes): (usize, u64),
) -> Result<Matrix> {
    let mut result = Matrix::zeros(0, 0, 2)?;
    run::solve(ctx, &Call { t, b, precision_bits, options, among: Some(among), held_bytes }, &mut result)?;
    Ok(result)
}
