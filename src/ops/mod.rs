//! The public verbs: `syrk`, `gemm`, and how their results are verified.
//!
//! Joins `plan`, `kernels` and the context's threads. Does not know: files, the command line.

mod block;
pub mod cholesky;
mod columns;
mod combine;
mod convert;
pub mod device;
mod direct;
pub mod distributed;
pub mod double;
mod fixed_sum;
mod inner_check;
pub mod ldlt;
mod multiply;
mod plan;
mod planes;
mod problem;
mod recover;
mod report;
mod run;
mod scale;
mod segments;
pub mod solve;
mod sum;
pub mod trsm;
pub mod verify;

pub use cholesky::{Cholesky, CholeskyOptions, CholeskyReport, Span, TaskKind, cholesky, cholesky_into, cholesky_with};
pub use cholesky::{CholeskyPlan, UpdatePlan, log_det_of, plan_cholesky};
pub use ldlt::{Inertia, Ldlt, ldlt};
pub use plan::{Plan, plan_gemm, plan_syrk};
pub use problem::FaultHook;
pub use report::{Outcome, Phases, Report};
pub use solve::{RefineOptions, Refined, solve, solve_refined};
pub use trsm::{TrsmOptions, trsm, trsm_into};
pub use verify::{Verification, VerifyOptions, freivalds_gemm, freivalds_syrk};
pub use verify::{verify_cholesky, verify_gemm, verify_syrk};

use crate::context::Context;
use crate::error::Result;
use crate::matrix::mirror::Workers;
use crate::matrix::{Matrix, MatrixView, Op, Symmetric, SymmetricMatrix, Uplo};
use crate::ops::combine::Combination;
use crate::ops::problem::{Inner, Operand, Problem, Target};
use crate::plan::{Cut, DeviceCut};
use rug::Float;
use std::time::Instant;

/// Choices of a SYRK beyond the operand and the precision.
#[derive(Clone, Debug, Default)]
pub struct SyrkOptions<'a> {
    /// `NoTranspose` gives `P^T P` (the default), `Transpose` gives `P P^T`.
    pub op: Op,
    /// The triangle of the result that is computed; the other is its mirror image. Never shows in the result.
    pub uplo: Uplo,
    /// `P` holds integers and the result is exact; `precision_bits` is then only a lower bound for the bits stored.
    pub exact_integers: bool,
    /// Factor of the product; `None` is 1.
    pub alpha: Option<&'a Float>,
    /// Factor of `accumulate`; `None` is 1.
    pub beta: Option<&'a Float>,
    /// A symmetric matrix to add: the result is `alpha * P^T P + beta * accumulate`, rounded once. A plain matrix is
    /// checked, see [`Symmetric`].
    pub accumulate: Option<Symmetric<'a>>,
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

/// Rows from which the triangle of a result is mirrored by all threads: below, waking them takes longer.
const MIRROR_ROWS_OF_THREADS: usize = 256;

/// `Q := P^T P`; see [`syrk_with`].
///
/// # Errors
/// As [`syrk_with`].
pub fn syrk<'a>(ctx: &Context, p: impl Into<MatrixView<'a>>, precision_bits: u32) -> Result<SymmetricMatrix> {
    Ok(syrk_with(ctx, p, precision_bits, &SyrkOptions::default())?.result)
}

/// `Q := alpha * P^T P + beta * C` for a big-float matrix `P` and a symmetric `C`, rounded to `precision_bits` bits.
///
/// Shapes: `p` is `K x N` (either may be 0), read only; with [`Op::Transpose`] it is `N x K` and the result is
/// `P P^T`. The result and `accumulate` are `N x N`; one triangle is computed and mirrored.
/// Accuracy: without factors, `|computed - exact| <= 2^(1 - precision_bits) * ||p_i|| * ||p_j||`; with them, the same
/// product before its rounding, times alpha, plus beta times C, rounded once. With `exact_integers` the result is
/// exact, at a precision that holds it.
/// The bits depend on the operands, the precision and the options alone: not on threads, memory limit or kernel.
/// Cost: `K * N * (N + 1) / 2` word products for each of about `(2 precision_bits + log2 K) / 52` primes.
///
/// # Errors
/// [`crate::Error::Precision`]; [`crate::Error::ShapeMismatch`] and [`crate::Error::NotSymmetric`] for `accumulate`;
/// [`crate::Error::MemoryLimit`] with the least limit that would do; [`crate::Error::NotInteger`] with
/// `exact_integers`; [`crate::Error::InvalidArgument`] for factors that are not finite, or not integers with
/// `exact_integers`; [`crate::Error::ExponentRange`] where an entry of the result leaves the exponent range;
/// [`crate::Error::SelfCheck`]; [`crate::Error::Cancelled`]; [`crate::Error::OutOfMemory`].
pub fn syrk_with<'a>(
    ctx: &Context,
    p: impl Into<MatrixView<'a>>,
    precision_bits: u32,
    options: &SyrkOptions<'_>,
) -> Result<Outcome<SymmetricMatrix>> {
    symmetric_outcome(ctx, &syrk_problem(p.into(), precision_bits, options)?)
}

/// [`syrk_with`] into a matrix of the caller, which is replaced where its order or precision do not fit.
///
/// After an error it is empty.
///
/// # Errors
/// As [`syrk_with`].
pub fn syrk_into<'a>(
    ctx: &Context,
    p: impl Into<MatrixView<'a>>,
    precision_bits: u32,
    options: &SyrkOptions<'_>,
    result: &mut SymmetricMatrix,
) -> Result<Report> {
    // While it is half written it is not symmetric: nobody sees it then.
    let mut matrix = std::mem::take(result).into_matrix();
    let mut report = syrk_triangle_into(ctx, p, precision_bits, options, &mut matrix)?;
    *result = mirrored(ctx, matrix, options.uplo, &mut report);
    Ok(report)
}

/// [`syrk_with`] of one triangle into a plain matrix, as the BLAS has it; the other triangle may hold anything
/// afterwards.
///
/// For interfaces that hand out one triangle alone. After an error the contents of `result` are unspecified numbers.
///
/// # Errors
/// As [`syrk_with`].
pub fn syrk_triangle_into<'a>(
    ctx: &Context,
    p: impl Into<MatrixView<'a>>,
    precision_bits: u32,
    options: &SyrkOptions<'_>,
    result: &mut Matrix,
) -> Result<Report> {
    Ok(run::run(ctx, &syrk_problem(p.into(), precision_bits, options)?, Target::Into(result))?.1)
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
) -> Result<Outcome<SymmetricMatrix>> {
    symmetric_outcome(ctx, &Problem { fault: Some(fault), ..syrk_problem(p.into(), precision_bits, options)? })
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
) -> Result<Outcome<SymmetricMatrix>> {
    symmetric_outcome(ctx, &Problem { cut: Some(cut), ..syrk_problem(p.into(), precision_bits, options)? })
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
) -> Result<Outcome<SymmetricMatrix>> {
    symmetric_outcome(ctx, &Problem { device_cut: Some(cut), ..syrk_problem(p.into(), precision_bits, options)? })
}

/// [`gemm_with`] of `operands` A and B on devices under a given cut; see [`syrk_with_device_cut`].
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
    let problem = gemm_problem(operands.0.into(), operands.1.into(), precision_bits, options);
    outcome(ctx, &Problem { device_cut: Some(cut), ..problem })
}

/// [`gemm_with`] of `operands` A and B that shows the product window to `fault`; see [`syrk_with_fault`].
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
    let problem = gemm_problem(operands.0.into(), operands.1.into(), precision_bits, options);
    outcome(ctx, &Problem { fault: Some(fault), ..problem })
}

/// [`gemm_with`] of `operands` A and B under a given cut; see [`syrk_with_cut`].
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
    let problem = gemm_problem(operands.0.into(), operands.1.into(), precision_bits, options);
    outcome(ctx, &Problem { cut: Some(cut), ..problem })
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
/// and column `j` of `op(B)`; factors and exact integers as in [`syrk_with`]. The same bits on any number of threads,
/// memory limit and kernel. Cost: `M * N * K` word products for each prime.
///
/// # Errors
/// As [`syrk_with`]; [`crate::Error::ShapeMismatch`] also where the contracted sizes differ.
pub fn gemm_with<'a, 'b>(
    ctx: &Context,
    a: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
    options: &GemmOptions<'_>,
) -> Result<Outcome> {
    outcome(ctx, &gemm_problem(a.into(), b.into(), precision_bits, options))
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
    Ok(run::run(ctx, &gemm_problem(a, b, precision_bits, options), Target::Into(result))?.1)
}

fn outcome(ctx: &Context, problem: &Problem<'_>) -> Result<Outcome> {
    let (result, report) = run::run(ctx, problem, Target::New)?;
    Ok(Outcome { result: result.expect("a new target gives a matrix"), report })
}

fn symmetric_outcome(ctx: &Context, problem: &Problem<'_>) -> Result<Outcome<SymmetricMatrix>> {
    let Outcome { result, mut report } = outcome(ctx, problem)?;
    Ok(Outcome { result: mirrored(ctx, result, problem.uplo, &mut report), report })
}

/// The symmetric matrix of which `triangle` holds the triangle `uplo`; adds its time to the report.
fn mirrored(ctx: &Context, triangle: Matrix, uplo: Uplo, report: &mut Report) -> SymmetricMatrix {
    let start = Instant::now();
    let result = match ctx.threads() > 1 && triangle.rows() >= MIRROR_ROWS_OF_THREADS {
        true => ctx.install(|| SymmetricMatrix::mirrored(triangle, uplo, Workers::Pool)),
        false => SymmetricMatrix::mirrored(triangle, uplo, Workers::One),
    };
    report.seconds += start.elapsed().as_secs_f64();
    result
}

fn syrk_problem<'a>(p: MatrixView<'a>, precision_bits: u32, options: &SyrkOptions<'a>) -> Result<Problem<'a>> {
    let added = |matrix: Symmetric<'a>| matrix.triangle_view(options.uplo, "accumulate");
    let accumulate = options.accumulate.map(added).transpose()?;
    Ok(Problem {
        operation: "syrk",
        left: Operand::new(p, options.op),
        right: None,
        uplo: options.uplo,
        precision_bits,
        exact_integers: options.exact_integers,
        combination: Combination::new(options.alpha, options.beta, accumulate).of_triangle(options.uplo),
        fault: None,
        cut: None,
        device_cut: None,
        inner: Inner::default(),
    })
}

fn gemm_problem<'a>(
    a: MatrixView<'a>,
    b: MatrixView<'a>,
    precision_bits: u32,
    options: &GemmOptions<'a>,
) -> Problem<'a> {
    // The columns of the left operand are the rows of op(A).
    let flipped = match options.op_a {
        Op::NoTranspose => Op::Transpose,
        Op::Transpose => Op::NoTranspose,
    };
    Problem {
        operation: "gemm",
        left: Operand::new(a, flipped),
        right: Some(Operand::new(b, options.op_b)),
        uplo: Uplo::Lower,
        precision_bits,
        exact_integers: options.exact_integers,
        combination: Combination::new(options.alpha, options.beta, options.accumulate.map(Matrix::view)),
        fault: None,
        cut: None,
        device_cut: None,
        inner: Inner::default(),
    }
}
