//! `syrk`: one triangle of `Q := alpha * P^T P + beta * C`.
//!
//! The page of the verb: its options, its forms, its contract. The work is that of every product, `ops::product`.

use crate::context::Context;
use crate::error::Result;
use crate::matrix::{Matrix, MatrixView, Op, Uplo};
use crate::ops::product::call;
use crate::ops::product::combine::{Addend, Combination};
use crate::ops::product::problem::{FaultHook, Problem, Target};
use crate::ops::product::report::{Outcome, Report};
use crate::plan::{Cut, DeviceCut};
use rug::Float;

/// Choices of a SYRK beyond the operand and the precision.
#[derive(Clone, Debug, Default)]
pub struct SyrkOptions<'a> {
    /// `NoTranspose` gives `P^T P` (the default), `Transpose` gives `P P^T`.
    pub op: Op,
    /// The triangle of the result that is computed; the other is zero.
    pub uplo: Uplo,
    /// `P` holds integers and the result is exact; `precision_bits` is then only a lower bound for the bits stored.
    pub exact_integers: bool,
    /// Scalar of the product; `None` is 1.
    pub alpha: Option<&'a Float>,
    /// Scalar of `accumulate`; `None` is 1.
    pub beta: Option<&'a Float>,
    /// A matrix to add: the result is `alpha * P^T P + beta * accumulate`, rounded once.
    pub accumulate: Option<&'a Matrix>,
}

/// Lower triangle of `Q := P^T P`; see [`syrk_with`].
///
/// # Errors
/// As [`syrk_with`].
pub fn syrk<'a>(ctx: &Context, p: impl Into<MatrixView<'a>>, precision_bits: u32) -> Result<Matrix> {
    Ok(syrk_with(ctx, p, precision_bits, &SyrkOptions::default())?.result)
}

/// One triangle of `Q := alpha * P^T P + beta * C` for a big-float matrix `P`, rounded to `precision_bits` bits.
///
/// Shapes: `p` is `K x N` (either may be 0), read only; with [`Op::Transpose`] it is `N x K` and the result is
/// `P P^T`. The result is `N x N`, zero outside the wanted triangle; `accumulate` must be `N x N`, of which only the
/// wanted triangle is read.
/// Accuracy: without scalars, `|computed - exact| <= 2^(1 - precision_bits) * ||p_i|| * ||p_j||`; with them, the same
/// product before its rounding, times alpha, plus beta times C, rounded once. With `exact_integers` the result is
/// exact, at a precision that holds it.
/// The bits depend on the operands, the precision and the options alone: not on threads, memory limit or kernel.
/// Cost: `K * N * (N + 1) / 2` word products for each of about `(2 precision_bits + log2 K) / 52` primes.
///
/// # Errors
/// [`crate::Error::Precision`]; [`crate::Error::ShapeMismatch`] for `accumulate`; [`crate::Error::MemoryLimit`] with
/// the least limit that would do; [`crate::Error::NotInteger`] with `exact_integers`;
/// [`crate::Error::InvalidArgument`] for scalars that are not finite, or not integers with `exact_integers`;
/// [`crate::Error::ExponentRange`] where an entry of the result leaves the exponent range;
/// [`crate::Error::SelfCheck`]; [`crate::Error::Cancelled`]; [`crate::Error::OutOfMemory`].
pub fn syrk_with<'a>(
    ctx: &Context,
    p: impl Into<MatrixView<'a>>,
    precision_bits: u32,
    options: &SyrkOptions<'_>,
) -> Result<Outcome> {
    call::outcome(ctx, &problem(p.into(), precision_bits, options))
}

/// [`syrk_with`] into a matrix of the caller, which is replaced where its shape or precision do not fit.
///
/// After an error its contents are unspecified numbers.
///
/// # Errors
/// As [`syrk_with`].
pub fn syrk_into<'a>(
    ctx: &Context,
    p: impl Into<MatrixView<'a>>,
    precision_bits: u32,
    options: &SyrkOptions<'_>,
    result: &mut Matrix,
) -> Result<Report> {
    Ok(call::run(ctx, &problem(p.into(), precision_bits, options), Target::Into(result))?.1)
}

/// [`syrk_with`] that shows the product window to `fault` before reconstruction, so that tests can damage it.
///
/// # Errors
/// As [`syrk_with`].
#[doc(hidden)]
pub fn syrk_with_fault<'a>(
    ctx: &Context,
    p: impl Into<MatrixView<'a>>,
    precision_bits: u32,
    options: &SyrkOptions<'_>,
    fault: &FaultHook<'_>,
) -> Result<Outcome> {
    call::outcome(ctx, &Problem { fault: Some(fault), ..problem(p.into(), precision_bits, options) })
}

/// [`syrk_with`] under a given cut, whatever the memory limit, so that tests can try every one.
///
/// # Errors
/// As [`syrk_with`].
#[doc(hidden)]
pub fn syrk_with_cut<'a>(
    ctx: &Context,
    p: impl Into<MatrixView<'a>>,
    precision_bits: u32,
    options: &SyrkOptions<'_>,
    cut: Cut,
) -> Result<Outcome> {
    call::outcome(ctx, &Problem { cut: Some(cut), ..problem(p.into(), precision_bits, options) })
}

/// [`syrk_with`] on devices under a given cut, so that tests can try every one.
///
/// # Errors
/// As [`syrk_with`].
#[doc(hidden)]
pub fn syrk_with_device_cut<'a>(
    ctx: &Context,
    p: impl Into<MatrixView<'a>>,
    precision_bits: u32,
    options: &SyrkOptions<'_>,
    cut: DeviceCut,
) -> Result<Outcome> {
    call::outcome(ctx, &Problem { device_cut: Some(cut), ..problem(p.into(), precision_bits, options) })
}

fn problem<'a>(p: MatrixView<'a>, precision_bits: u32, options: &SyrkOptions<'a>) -> Problem<'a> {
    let combination =
        Combination::new(options.alpha, options.beta, options.accumulate.map(|matrix| Addend::Whole(matrix.view())));
    let exact_integers = options.exact_integers;
    Problem { uplo: options.uplo, combination, exact_integers, ..Problem::syrk(p, options.op, precision_bits) }
}
