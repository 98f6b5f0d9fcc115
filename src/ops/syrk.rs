//! `syrk`: `Q := alpha * P^T P + beta * C`, a symmetric matrix.
//!
//! The page of the verb: its options, its forms, its contract. The work is that of every product, `ops::product`.

use crate::context::Context;
use crate::error::Result;
use crate::matrix::mirror::Workers;
use crate::matrix::{Matrix, MatrixView, Op, Symmetric, SymmetricMatrix, Uplo};
use crate::ops::product::call;
use crate::ops::product::combine::{Addend, Combination};
use crate::ops::product::problem::{FaultHook, Problem, Target};
use crate::ops::product::report::{Outcome, Report};
use crate::plan::{Cut, DeviceCut};
use rug::Float;
use std::time::Instant;

/// Rows from which the triangle of a result is mirrored by all threads: below, waking them takes longer.
const MIRROR_ROWS_OF_THREADS: usize = 256;

/// Choices of a SYRK beyond the operand and the precision.
#[derive(Clone, Debug, Default)]
pub struct SyrkOptions<'a> {
    /// `NoTranspose` gives `P^T P` (the default), `Transpose` gives `P P^T`.
    pub op: Op,
    /// The triangle of the result that is computed; the other is its mirror image. Never shows in the result.
    pub uplo: Uplo,
    /// `P` holds integers and the result is exact; `precision_bits` is then only a lower bound for the bits stored.
    pub exact_integers: bool,
    /// Scalar of the product; `None` is 1.
    pub alpha: Option<&'a Float>,
    /// Scalar of `accumulate`; `None` is 1.
    pub beta: Option<&'a Float>,
    /// A symmetric matrix to add: the result is `alpha * P^T P + beta * accumulate`, rounded once. A plain matrix is
    /// checked, see [`Symmetric`].
    pub accumulate: Option<Symmetric<'a>>,
}

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
/// Accuracy: without scalars, `|computed - exact| <= 2^(1 - precision_bits) * ||p_i|| * ||p_j||`; with them, the same
/// product before its rounding, times alpha, plus beta times C, rounded once. With `exact_integers` the result is
/// exact, at a precision that holds it.
/// The bits depend on the operands, the precision and the options alone: not on threads, memory limit or kernel.
/// Cost: `K * N * (N + 1) / 2` word products for each of about `(2 precision_bits + log2 K) / 52` primes.
///
/// # Errors
/// [`crate::Error::Precision`]; [`crate::Error::ShapeMismatch`] and [`crate::Error::NotSymmetric`] for `accumulate`;
/// [`crate::Error::MemoryLimit`] with the least limit that would do; [`crate::Error::NotInteger`] with
/// `exact_integers`; [`crate::Error::InvalidArgument`] for scalars that are not finite, or not integers with
/// `exact_integers`; [`crate::Error::ExponentRange`] where an entry of the result leaves the exponent range;
/// [`crate::Error::SelfCheck`]; [`crate::Error::Cancelled`]; [`crate::Error::OutOfMemory`].
pub fn syrk_with<'a>(
    ctx: &Context,
    p: impl Into<MatrixView<'a>>,
    precision_bits: u32,
    options: &SyrkOptions<'_>,
) -> Result<Outcome<SymmetricMatrix>> {
    symmetric_outcome(ctx, &problem(p.into(), precision_bits, options)?)
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
    Ok(call::run(ctx, &problem(p.into(), precision_bits, options)?, Target::Into(result))?.1)
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
    symmetric_outcome(ctx, &Problem { fault: Some(fault), ..problem(p.into(), precision_bits, options)? })
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
    symmetric_outcome(ctx, &Problem { cut: Some(cut), ..problem(p.into(), precision_bits, options)? })
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
    symmetric_outcome(ctx, &Problem { device_cut: Some(cut), ..problem(p.into(), precision_bits, options)? })
}

fn symmetric_outcome(ctx: &Context, problem: &Problem<'_>) -> Result<Outcome<SymmetricMatrix>> {
    let Outcome { result, mut report } = call::outcome(ctx, problem)?;
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

fn problem<'a>(p: MatrixView<'a>, precision_bits: u32, options: &SyrkOptions<'a>) -> Result<Problem<'a>> {
    let uplo = options.uplo;
    let view = options.accumulate.map(|matrix| matrix.triangle_view(uplo, "accumulate")).transpose()?;
    let addend = view.map(|view| Addend::Triangle(view, uplo));
    let combination = Combination::new(options.alpha, options.beta, addend);
    let exact_integers = options.exact_integers;
    Ok(Problem { uplo, combination, exact_integers, ..Problem::syrk(p, options.op, precision_bits) })
}
