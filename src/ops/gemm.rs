//! `gemm`: `C := alpha * op(A) op(B) + beta * C0`.
//!
//! The page of the verb: its options, its forms, its contract. The work is that of every product, `ops::product`.

use crate::context::Context;
use crate::error::Result;
use crate::matrix::{Matrix, MatrixView, Op};
use crate::ops::product::call;
use crate::ops::product::combine::{Addend, Combination};
use crate::ops::product::problem::{FaultHook, Problem, Target};
use crate::ops::product::report::{Outcome, Report};
use crate::plan::{Cut, DeviceCut};
use rug::Float;

/// Choices of a GEMM beyond the operands and the precision.
#[derive(Clone, Debug, Default)]
pub struct GemmOptions<'a> {
    /// Whether `A` is used transposed.
    pub op_a: Op,
    /// Whether `B` is used transposed.
    pub op_b: Op,
    /// Operands hold integers and the result is exact, as in [`crate::SyrkOptions::exact_integers`].
    pub exact_integers: bool,
    /// Scalar of the product; `None` is 1.
    pub alpha: Option<&'a Float>,
    /// Scalar of `accumulate`; `None` is 1.
    pub beta: Option<&'a Float>,
    /// A matrix to add: the result is `alpha * op(A) op(B) + beta * accumulate`, rounded once.
    pub accumulate: Option<&'a Matrix>,
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

/// `C := alpha * op(A) op(B) + beta * C0` for big-float matrices, rounded to `precision_bits` bits.
///
/// Shapes: `op(A)` is `M x K`, `op(B)` is `K x N`, the result and `accumulate` are `M x N`; any of them may be 0.
/// Accuracy: `|computed - exact| <= 2^(1 - precision_bits) * ||a_i|| * ||b_j||` with the norms of row `i` of `op(A)`
/// and column `j` of `op(B)`; scalars and exact integers as in [`crate::syrk_with`]. The same bits on any number of
/// threads, memory limit and kernel. Cost: `M * N * K` word products for each prime.
///
/// # Errors
/// As [`crate::syrk_with`]; [`crate::Error::ShapeMismatch`] also where the contracted sizes differ.
pub fn gemm_with<'a, 'b>(
    ctx: &Context,
    a: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
    options: &GemmOptions<'_>,
) -> Result<Outcome> {
    call::outcome(ctx, &problem(a.into(), b.into(), precision_bits, options))
}

/// [`gemm_with`] into a matrix of the caller, which is replaced where its shape or precision do not fit.
///
/// `operands` are A and B. After an error the contents of `result` are unspecified numbers.
///
/// # Errors
/// As [`gemm_with`].
pub fn gemm_into<'a, 'b>(
    ctx: &Context,
    operands: (impl Into<MatrixView<'a>>, impl Into<MatrixView<'b>>),
    precision_bits: u32,
    options: &GemmOptions<'_>,
    result: &mut Matrix,
) -> Result<Report> {
    let (a, b) = (operands.0.into(), operands.1.into());
    Ok(call::run(ctx, &problem(a, b, precision_bits, options), Target::Into(result))?.1)
}

/// [`gemm_with`] of `operands` A and B on devices under a given cut; see [`crate::ops::syrk_with_device_cut`].
///
/// # Errors
/// As [`gemm_with`].
#[doc(hidden)]
pub fn gemm_with_device_cut<'a, 'b>(
    ctx: &Context,
    operands: (impl Into<MatrixView<'a>>, impl Into<MatrixView<'b>>),
    precision_bits: u32,
    options: &GemmOptions<'_>,
    cut: DeviceCut,
) -> Result<Outcome> {
    let problem = problem(operands.0.into(), operands.1.into(), precision_bits, options);
    call::outcome(ctx, &Problem { device_cut: Some(cut), ..problem })
}

/// [`gemm_with`] of `operands` A and B that shows the product window to `fault`; see [`crate::ops::syrk_with_fault`].
///
/// # Errors
/// As [`gemm_with`].
#[doc(hidden)]
pub fn gemm_with_fault<'a, 'b>(
    ctx: &Context,
    operands: (impl Into<MatrixView<'a>>, impl Into<MatrixView<'b>>),
    precision_bits: u32,
    options: &GemmOptions<'_>,
    fault: &FaultHook<'_>,
) -> Result<Outcome> {
    let problem = problem(operands.0.into(), operands.1.into(), precision_bits, options);
    call::outcome(ctx, &Problem { fault: Some(fault), ..problem })
}

/// [`gemm_with`] of `operands` A and B under a given cut; see [`crate::ops::syrk_with_cut`].
///
/// # Errors
/// As [`gemm_with`].
#[doc(hidden)]
pub fn gemm_with_cut<'a, 'b>(
    ctx: &Context,
    operands: (impl Into<MatrixView<'a>>, impl Into<MatrixView<'b>>),
    precision_bits: u32,
    options: &GemmOptions<'_>,
    cut: Cut,
) -> Result<Outcome> {
    let problem = problem(operands.0.into(), operands.1.into(), precision_bits, options);
    call::outcome(ctx, &Problem { cut: Some(cut), ..problem })
}

fn problem<'a>(a: MatrixView<'a>, b: MatrixView<'a>, precision_bits: u32, options: &GemmOptions<'a>) -> Problem<'a> {
    let combination =
        Combination::new(options.alpha, options.beta, options.accumulate.map(|matrix| Addend::Whole(matrix.view())));
    let exact_integers = options.exact_integers;
    Problem { combination, exact_integers, ..Problem::gemm((a, options.op_a), (b, options.op_b), precision_bits) }
}
