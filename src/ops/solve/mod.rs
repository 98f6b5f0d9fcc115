//! Linear systems with a symmetric positive definite matrix: by one factorisation, or refined from a cheaper one.

pub(crate) mod band;
pub(crate) mod cut;
pub mod disk;
mod dots;
mod fixed;
pub(crate) mod ldlt;
pub(crate) mod memory;
mod parts;
mod plan;
pub(crate) mod problem;
pub(crate) mod ranks;
mod refine;
pub(crate) mod run;
pub(crate) mod side_by_side;
mod sums;
pub(crate) mod system;
mod tiles;
pub(crate) mod triangle;

use crate::context::Context;
use crate::error::Result;
use crate::matrix::{Destination, Matrix, MatrixView, Symmetric};
use crate::ops::cholesky::{Cholesky, CholeskyOptions, cholesky_with};
use crate::ops::estimate::optional_estimate;
use crate::ops::product::report::Outcome;
pub(crate) use plan::{BeforeSolve, PlannedSolve, check_sizes};
pub use plan::{SolvePlan, plan_solve, plan_trsm};
pub use problem::Path;
pub(crate) use problem::{LOWER, SystemShape, solve_bits};
pub use refine::{RefineOptions, RefineReport, plan_solve_refined};
use std::time::Instant;
pub use system::SolveReport;

/// Solves `A X = B`; see [`solve_with`].
///
/// ```
/// use sunzi::{Context, Matrix};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[4.0, 2.0, 2.0, 5.0])?;
/// let b = Matrix::from_f64s(2, 1, 128, &[8.0, 12.0])?;
/// assert_eq!(sunzi::solve(&ctx, &a, &b, 128)?.view().to_f64s(), [1.0, 2.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`solve_with`].
pub fn solve<'a, 'b>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
) -> Result<Matrix> {
    Ok(solve_with(ctx, a, b, precision_bits, &CholeskyOptions::default())?.result)
}

/// The solution `X` of `A X = B` for a symmetric positive definite `A`, rounded to `precision_bits` bits.
///
/// Shapes: `a` is `n x n`, given as a plain matrix, a symmetric matrix or one triangle, see [`Symmetric`]; `b` and the
/// result are `n x m`. The options are options of the factorisation. Accuracy: `|b - A x|_i <= 2^(4 - precision_bits)
/// (sqrt(a_ii) sum_j sqrt(a_jj) |x_j| + |b_i|)` for each column; with [`Accuracy::Entrywise`](crate::Accuracy) in the
/// options `|b - A x|_i <= 2^(4 - precision_bits) (|L| |L^T| |x| + |b|)_i`, if the report states that the factorisation
/// reached this accuracy. The bits depend only on `A`, `B`, the precision and the accuracy. Cost: one factorisation,
/// `n^3 / 6` word products for each prime, and `n^2 m` word products for the solve. Source: docs/ALGORITHM.md, "Solves
/// with a Cholesky factor".
///
/// ```
/// use sunzi::{CholeskyOptions, Context, Matrix};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[4.0, 2.0, 2.0, 5.0])?;
/// let b = Matrix::from_f64s(2, 1, 128, &[1.0, 1.0])?;
/// let x = sunzi::solve_with(&ctx, &a, &b, 128, &CholeskyOptions::new().digits(true))?;
/// assert_eq!(x.result.view().to_f64s(), [0.1875, 0.125]);
/// assert!(x.report.digits.unwrap() > 35.0); // an estimate of the correct digits, of which 128 bits are about 38
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// The errors of [`crate::cholesky_with`] and [`crate::Cholesky::solve`].
pub fn solve_with<'a, 'b>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
    options: &CholeskyOptions,
) -> Result<Outcome<Matrix, SolveReport>> {
    let start = Instant::now();
    let (mut result, a, b) = (Matrix::empty(), a.into(), b.into());
    let (factor, mut report) = solve_and_keep(ctx, a, b, precision_bits, options, (&mut result).into())?;
    if options.digits {
        let held = ctx.holding(factor.factor().bytes()).holding(result.bytes());
        report.digits = optional_estimate(factor.solution_digits_with(&held, a, b, &result, options.rounding))?;
        report.seconds = start.elapsed().as_secs_f64();
    }
    Ok(Outcome { result, report })
}

/// [`solve_with`] into the caller's memory, see [`Destination`].
///
/// After an error the contents of `result` are unspecified numbers.
///
/// ```
/// use sunzi::{CholeskyOptions, Context, Matrix};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[4.0, 2.0, 2.0, 5.0])?;
/// let b = Matrix::from_f64s(2, 1, 128, &[8.0, 12.0])?;
/// let mut large = Matrix::zeros(3, 2, 128)?;
/// let block = large.view_mut().block(1..3, 1..2)?;
/// let report = sunzi::solve_into(&ctx, &a, &b, 128, &CholeskyOptions::new(), block)?;
/// assert_eq!(large.view().to_f64s(), [0.0, 0.0, 0.0, 0.0, 1.0, 2.0]);
/// assert_eq!((report.operation, report.columns), ("solve", 1));
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`solve_with`]; [`crate::Error::ShapeMismatch`] and [`crate::Error::InvalidArgument`] for a block of another
/// shape or precision.
pub fn solve_into<'a, 'b, 'r>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
    options: &CholeskyOptions,
    result: impl Into<Destination<'r>>,
) -> Result<SolveReport> {
    solve_and_keep(ctx, a.into(), b.into(), precision_bits, options, result.into()).map(|(_, report)| report)
}

/// [`solve_into`], and the factor.
fn solve_and_keep(
    ctx: &Context,
    a: Symmetric<'_>,
    b: MatrixView<'_>,
    precision_bits: u32,
    options: &CholeskyOptions,
    result: Destination<'_>,
) -> Result<(Cholesky, SolveReport)> {
    let start = Instant::now();
    let a = a.lower_view("solve")?;
    refine::check_shapes(&a, &b)?;
    if ctx.memory_bytes().is_some() {
        plan_solve(ctx, (a.rows(), b.cols()), precision_bits, options)?; // before the work of a factorisation
    }
    let Outcome { result: factor, report } = cholesky_with(ctx, Symmetric::lower(a), precision_bits, options)?;
    ctx.release(); // under a limit the tiles of the factorisation are in the way
    let solved = factor.solve_into(&ctx.holding(factor.factor().bytes()), b, precision_bits, result)?;
    Ok((factor, solved.after(report, start)))
}

/// Solves `A X = B` with iterative refinement; see [`solve_refined_with`].
///
/// ```
/// use sunzi::{Context, Matrix};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 512, &[4.0, 2.0, 2.0, 5.0])?;
/// let b = Matrix::from_f64s(2, 1, 512, &[8.0, 12.0])?;
/// assert_eq!(sunzi::solve_refined(&ctx, &a, &b, 512)?.view().to_f64s(), [1.0, 2.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`solve_refined_with`].
pub fn solve_refined<'a, 'b>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
) -> Result<Matrix> {
    Ok(solve_refined_with(ctx, a, b, precision_bits, &RefineOptions::default())?.result)
}

/// [`solve`] with a factor of lower precision, refined to the full precision.
///
/// Shapes as in [`solve_with`]. Accuracy: `|b - A x|_ij <= 2^(1 - precision_bits) (|A| |x| + |b|)_ij` for every entry:
/// a componentwise bound, which a solve without refinement does not give. The bits depend only on `A`, `B`, the
/// precision and the options. Cost: one factorisation at `factor_bits`; each correction needs a product with `A`,
/// computed with as many bits as are already correct, and a solve at `factor_bits`, and gains about
/// `factor_bits - log2(condition)` bits. Source: docs/ALGORITHM.md, "Refinement".
///
/// ```
/// use sunzi::{Context, Matrix, RefineOptions};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 512, &[2.0, 1.0, 1.0, 2.0])?;
/// let b = Matrix::from_f64s(2, 1, 512, &[1.0, 0.0])?; // X is (2/3, -1/3)
/// let x = sunzi::solve_refined_with(&ctx, &a, &b, 512, &RefineOptions::new().factor_bits(128))?;
/// assert!((x.result.float(0, 0) * 3u32 - 2u32).abs() < 1e-152);
/// assert!(x.report.iterations > 1 && x.report.backward_error_log2 <= -511);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`solve_with`]; [`crate::Error::NotPositiveDefinite`] also if `factor_bits` are too few to factor `A`;
/// [`crate::Error::RefinementStalls`] if the corrections do not converge.
pub fn solve_refined_with<'a, 'b>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
    options: &RefineOptions,
) -> Result<Outcome<Matrix, RefineReport>> {
    let mut result = Matrix::empty();
    let report = solve_refined_into(ctx, a, b, precision_bits, options, &mut result)?;
    Ok(Outcome { result, report })
}

/// [`solve_refined_with`] into a matrix of the caller, which is replaced if its shape or precision do not fit.
///
/// After an error the contents of `result` are unspecified numbers.
///
/// ```
/// use sunzi::{Context, Matrix, RefineOptions};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 512, &[2.0, 1.0, 1.0, 2.0])?;
/// let mut x = Matrix::zeros(2, 1, 512)?; // its memory serves in both calls
/// for right in [[3.0, 3.0], [3.0, 0.0]] {
///     let b = Matrix::from_f64s(2, 1, 512, &right)?;
///     sunzi::solve_refined_into(&ctx, &a, &b, 512, &RefineOptions::new(), &mut x)?;
/// }
/// assert_eq!(x.view().to_f64s(), [2.0, -1.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`solve_refined_with`].
pub fn solve_refined_into<'a, 'b>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
    options: &RefineOptions,
    result: &mut Matrix,
) -> Result<RefineReport> {
    refine::refine(ctx, a.into().lower_view("solve")?, b.into(), precision_bits, options, result)
}
