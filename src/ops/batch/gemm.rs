//! `gemm_batch`: `C_i := alpha * op(A_i) op(B_i) + beta * D_i` for many pairs.

use crate::context::Context;
use crate::error::Result;
use crate::kernels::problem_lanes::are_slow;
use crate::matrix::{Destination, Matrix, MatrixView, Op};
use crate::ops::batch::operand::Operand;
use crate::ops::batch::report::BatchReport;
use crate::ops::batch::run::{all_or_first, pair, run, with_outcomes};
use crate::ops::batch::verb::{CallFigures, Item, ProblemShape, Verb};
use crate::ops::gemm::{GemmOptions, gemm_into};
use crate::ops::product::plan::{ProductPlanOptions, plan_gemm_with};
use crate::ops::product::problem::{Accuracy, ProductProblem, ProductSize};
use crate::ops::product::report::Outcome;
use crate::ops::product::together::{LaneProducts, LanesDone};

/// One GEMM of a batch: from `(a, b)`, or from `((a, b), accumulate)`.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct GemmProblem<'a> {
    /// The left operand.
    pub a: MatrixView<'a>,
    /// The right operand.
    pub b: MatrixView<'a>,
    /// A matrix to add; with `None` the matrix in the options is added.
    pub accumulate: Option<MatrixView<'a>>,
}

impl<'a, A: Operand<'a>, B: Operand<'a>> From<(A, B)> for GemmProblem<'a> {
    fn from((a, b): (A, B)) -> Self {
        GemmProblem { a: a.into(), b: b.into(), accumulate: None }
    }
}

impl<'a, A: Operand<'a>, B: Operand<'a>, C: Operand<'a>> From<((A, B), C)> for GemmProblem<'a> {
    fn from((pair, accumulate): ((A, B), C)) -> Self {
        GemmProblem { accumulate: Some(accumulate.into()), ..GemmProblem::from(pair) }
    }
}

/// The products `A_i B_i` of many pairs; see [`gemm_batch_with`].
///
/// ```
/// use sunzi::{Context, Matrix, batch};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 3.0, 4.0])?;
/// let b = Matrix::from_f64s(2, 1, 128, &[5.0, 6.0])?;
/// let products = batch::gemm_batch(&ctx, [(&a, &a), (&a, &b)], 128)?;
/// assert_eq!(products[0].view().to_f64s(), [7.0, 10.0, 15.0, 22.0]);
/// assert_eq!(products[1].view().to_f64s(), [23.0, 34.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`gemm_batch_with`], and [`crate::Error::Problem`] for the first problem that has no result.
pub fn gemm_batch<'a, P: Into<GemmProblem<'a>>>(
    ctx: &Context,
    problems: impl IntoIterator<Item = P>,
    precision_bits: u32,
) -> Result<Vec<Matrix>> {
    all_or_first(gemm_batch_with(ctx, problems, precision_bits, &GemmOptions::default())?.result)
}

/// `C_i := alpha * op(A_i) op(B_i) + beta * D_i` for many problems, each with the bits of [`crate::gemm_with`].
///
/// Shapes, precisions, failing problems, threads and memory as in [`crate::batch::syrk_batch_with`].
///
/// ```
/// use sunzi::{Context, GemmOptions, Matrix, batch, rug::Float};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 3.0, 4.0])?;
/// let x = Matrix::from_f64s(2, 1, 128, &[5.0, 6.0])?;
/// let b = Matrix::from_f64s(2, 1, 128, &[24.0, 36.0])?;
/// let minus = Float::with_val(2, -1);
/// let residuals = batch::gemm_batch_with(&ctx, [((&a, &x), &b)], 128, &GemmOptions::new().alpha(&minus))?;
/// assert_eq!(residuals.result[0].as_ref().unwrap().view().to_f64s(), [1.0, 2.0]); // b - A x
/// assert_eq!((residuals.report.problems, residuals.report.failed), (1, 0));
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`crate::batch::syrk_batch_with`]; for a single problem the errors of [`crate::gemm_with`].
pub fn gemm_batch_with<'a, P: Into<GemmProblem<'a>>>(
    ctx: &Context,
    problems: impl IntoIterator<Item = P>,
    precision_bits: u32,
    options: &GemmOptions<'_>,
) -> Result<Outcome<Vec<Result<Matrix>>, BatchReport>> {
    let problems = problems.into_iter().map(Into::into).collect::<Vec<GemmProblem<'_>>>();
    let mut results = vec![Matrix::empty(); problems.len()];
    let Outcome { result, report } = gemm_batch_into(ctx, problems, precision_bits, options, &mut results)?;
    Ok(Outcome { result: with_outcomes(results, result), report })
}

/// [`gemm_batch_with`] into the caller's memory, one place for each problem; see [`Destination`]. Returns the outcome
/// of each problem.
///
/// ```
/// use sunzi::{Context, GemmOptions, Matrix, batch};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 3.0, 4.0])?;
/// let b = Matrix::from_f64s(2, 1, 128, &[5.0, 6.0])?;
/// let mut results = [Matrix::zeros(2, 2, 128)?, Matrix::zeros(2, 1, 128)?];
/// let outcome = batch::gemm_batch_into(&ctx, [(&a, &a), (&a, &b)], 128, &GemmOptions::new(), &mut results)?;
/// assert!(outcome.result.iter().all(|problem| problem.is_ok()));
/// assert_eq!(results[1].view().to_f64s(), [23.0, 34.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`gemm_batch_with`]; [`crate::Error::InvalidArgument`] if the numbers of places and problems differ.
pub fn gemm_batch_into<'a, 'r, P: Into<GemmProblem<'a>>, R: Into<Destination<'r>>>(
    ctx: &Context,
    problems: impl IntoIterator<Item = P>,
    precision_bits: u32,
    options: &GemmOptions<'_>,
    results: impl IntoIterator<Item = R>,
) -> Result<Outcome<Vec<Result<()>>, BatchReport>> {
    let verb = Gemm { options, precision_bits };
    let items = pair(&verb, problems.into_iter().map(Into::into), results.into_iter().map(Into::into))?;
    let (result, report) = run(ctx, &verb, items)?;
    Ok(Outcome { result, report })
}

struct Gemm<'o> {
    options: &'o GemmOptions<'o>,
    precision_bits: u32,
}

impl Gemm<'_> {
    /// Products without scalars and addends go side by side.
    fn together(&self, ctx: &Context, ProblemShape { rows, cols, depth }: ProblemShape) -> Option<LaneProducts> {
        let GemmOptions { alpha, beta, accumulate, exact_integers, accuracy, .. } = *self.options;
        // One that is not finite is refused also where nothing is added.
        let has_scalar = alpha.is_some() || beta.is_some_and(|beta| !beta.is_finite());
        let is_plain = !has_scalar && accumulate.is_none() && !exact_integers;
        let size = ProductSize { contracted: depth, rows, cols, triangle: false };
        if is_plain { LaneProducts::choose(ctx, size, self.precision_bits, accuracy) } else { None }
    }
}

impl Verb for Gemm<'_> {
    const OPERATION: &'static str = "gemm_batch";
    type Problem<'p> = GemmProblem<'p>;
    type Output<'p> = Destination<'p>;
    type Result = Matrix;

    fn precision_bits(&self) -> u32 {
        self.precision_bits
    }

    fn accuracy(&self) -> Accuracy {
        self.options.accuracy
    }

    fn plans_are_bounds(&self) -> bool {
        self.options.accuracy == Accuracy::Norm && !self.options.exact_integers
    }

    fn shape(&self, GemmProblem { a, b, .. }: &GemmProblem<'_>) -> ProblemShape {
        let turned = |view: &MatrixView<'_>, op| match op {
            Op::NoTranspose => (view.rows(), view.cols()),
            Op::Transpose => (view.cols(), view.rows()),
        };
        let ((rows, depth), (_, cols)) = (turned(a, self.options.op_a), turned(b, self.options.op_b));
        ProblemShape { rows, cols, depth }
    }

    fn plan(&self, ctx: &Context, ProblemShape { rows, cols, depth }: ProblemShape) -> Result<u64> {
        let options = ProductPlanOptions::new().accuracy(self.options.accuracy);
        Ok(plan_gemm_with(ctx, (rows, cols), depth, self.precision_bits, &options)?.planned_bytes)
    }

    fn together_bytes(&self, ctx: &Context, shape: ProblemShape) -> Option<u64> {
        if are_slow() && !shape.is_large_product() {
            return None; // single calls are faster
        }
        Some(self.together(ctx, shape)?.bytes())
    }

    fn run_together(&self, ctx: &Context, items: &mut [Item<'_, '_, Self>]) -> Result<LanesDone> {
        let Some(together) = self.together(ctx, items[0].shape) else { return Ok(LanesDone::default()) };
        let GemmOptions { op_a, op_b, accuracy, .. } = *self.options;
        let (mut problems, mut destinations) = (std::array::from_fn(|_| None), std::array::from_fn(|_| None));
        for (at, item) in items.iter_mut().enumerate() {
            let Item { problem: GemmProblem { a, b, accumulate }, output, .. } = item;
            if accumulate.is_none() {
                problems[at] =
                    Some(ProductProblem { accuracy, ..ProductProblem::gemm(*a, op_a, *b, op_b, self.precision_bits) });
                destinations[at] = Some(output.reborrow());
            }
        }
        together.run(ctx, &problems, destinations)
    }

    fn run(&self, ctx: &Context, problem: &GemmProblem<'_>, output: &mut Destination<'_>) -> Result<CallFigures> {
        let accumulate = problem.accumulate.or(self.options.accumulate);
        let options = GemmOptions { accumulate, ..self.options.clone() };
        let (a, b) = (problem.a, problem.b);
        Ok(CallFigures::product(&gemm_into(ctx, a, b, self.precision_bits, &options, output.reborrow())?))
    }
}
