//! The public verbs: `syrk`, `gemm`, and how their results are verified.
//!
//! Joins `plan`, `kernels` and the context's threads. Does not know: files, the command line.

mod report;

pub use report::{Outcome, Phases, Report};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::{Matrix, MatrixView, Op, Uplo};
use rug::Float;

/// Choices of a SYRK beyond the operand and the precision.
#[derive(Clone, Debug, Default)]
pub struct SyrkOptions<'a> {
    /// `NoTranspose` gives `P^T P` (the default), `Transpose` gives `P P^T`.
    pub op: Op,
    /// The triangle of the result that is computed; the other is zero.
    pub uplo: Uplo,
    /// `P` holds integers and the result is exact; `precision_bits` is then only a lower bound for the result's storage.
    pub exact_integers: bool,
    /// Factor of the product; `None` is 1.
    pub alpha: Option<&'a Float>,
    /// Factor of `accumulate`; `None` is 1.
    pub beta: Option<&'a Float>,
    /// A matrix to add: the result is `alpha * P^T P + beta * accumulate`, rounded once.
    pub accumulate: Option<&'a Matrix>,
}

/// Choices of a GEMM beyond the operands and the precision.
#[derive(Clone, Debug, Default)]
pub struct GemmOptions<'a> {
    /// Whether `A` is used transposed.
    pub op_a: Op,
    /// Whether `B` is used transposed.
    pub op_b: Op,
    /// Operands hold integers and the result is exact, as in [`SyrkOptions::exact_integers`].
    pub exact_integers: bool,
    /// Factor of the product; `None` is 1.
    pub alpha: Option<&'a Float>,
    /// Factor of `accumulate`; `None` is 1.
    pub beta: Option<&'a Float>,
    /// A matrix to add: the result is `alpha * op(A) op(B) + beta * accumulate`, rounded once.
    pub accumulate: Option<&'a Matrix>,
}

/// Lower triangle of `Q := P^T P`; see [`syrk_with`].
///
/// # Errors
/// As [`syrk_with`].
pub fn syrk<'a>(ctx: &Context, p: impl Into<MatrixView<'a>>, precision_bits: u32) -> Result<Matrix> {
    Ok(syrk_with(ctx, p, precision_bits, &SyrkOptions::default())?.result)
}

/// One triangle of `Q := alpha * P^T P + beta * C` for a big-float matrix `P`.
pub fn syrk_with<'a>(
    _ctx: &Context,
    _p: impl Into<MatrixView<'a>>,
    _precision_bits: u32,
    _options: &SyrkOptions<'_>,
) -> Result<Outcome> {
    Err(Error::InvalidArgument("syrk is not wired up".into()))
}

/// `C := A B`; see [`gemm_with`].
///
/// # Errors
/// As [`gemm_with`].
pub fn gemm<'a, 'b>(
    ctx: &Context,
    a: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
) -> Result<Matrix> {
    Ok(gemm_with(ctx, a, b, precision_bits, &GemmOptions::default())?.result)
}

/// `C := alpha * op(A) op(B) + beta * C0` for big-float matrices.
pub fn gemm_with<'a, 'b>(
    _ctx: &Context,
    _a: impl Into<MatrixView<'a>>,
    _b: impl Into<MatrixView<'b>>,
    _precision_bits: u32,
    _options: &GemmOptions<'_>,
) -> Result<Outcome> {
    Err(Error::InvalidArgument("gemm is not wired up".into()))
}
