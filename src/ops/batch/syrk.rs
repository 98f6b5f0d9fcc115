//! `syrk_batch`: `Q_i := alpha * P_i^T P_i + beta * C_i` for many `P_i`.

use crate::context::Context;
use crate::error::Result;
use crate::kernels::problem_lanes::are_slow;
use crate::matrix::{Destination, Matrix, MatrixView, Op, Symmetric, SymmetricDestination, SymmetricMatrix};
use crate::ops::batch::operand::Operand;
use crate::ops::batch::report::BatchReport;
use crate::ops::batch::run::{all_or_first, pair, run, with_outcomes};
use crate::ops::batch::verb::{CallFigures, Item, PROBLEMS, ProblemShape, Verb};
use crate::ops::product::plan::{ProductPlanOptions, plan_syrk_with};
use crate::ops::product::problem::{Accuracy, ProductProblem, ProductSize};
use crate::ops::product::report::{Outcome, Report};
use crate::ops::product::together::{LaneProducts, LanesDone};
use crate::ops::syrk::{SyrkOptions, syrk_into};

/// One SYRK of a batch: from `p`, or from `(p, accumulate)`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SyrkProblem<'a> {
    /// The operand.
    pub p: MatrixView<'a>,
    /// A symmetric matrix to add; with `None` the matrix in the options is added.
    pub accumulate: Option<Symmetric<'a>>,
}

impl<'a, P: Operand<'a>> From<P> for SyrkProblem<'a> {
    fn from(p: P) -> Self {
        SyrkProblem { p: p.into(), accumulate: None }
    }
}

impl<'a, P: Operand<'a>, C: Into<Symmetric<'a>>> From<(P, C)> for SyrkProblem<'a> {
    fn from((p, accumulate): (P, C)) -> Self {
        SyrkProblem { p: p.into(), accumulate: Some(accumulate.into()) }
    }
}

/// The products `P_i^T P_i` of many matrices; see [`syrk_batch_with`].
///
/// ```
/// use sunzi::{Context, Matrix};
/// let ctx = Context::builder().threads(1).build()?;
/// let ps = [Matrix::from_f64s(2, 1, 256, &[3.0, 4.0])?, Matrix::from_f64s(1, 2, 256, &[1.0, 2.0])?];
/// let qs = sunzi::batch::syrk_batch(&ctx, &ps, 256)?;
/// assert_eq!(qs[0].view().to_f64s(), [25.0]);
/// assert_eq!(qs[1], sunzi::syrk(&ctx, &ps[1], 256)?);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`syrk_batch_with`], and [`crate::Error::Problem`] for the first problem that has no result.
pub fn syrk_batch<'a, P: Into<SyrkProblem<'a>>>(
    ctx: &Context,
    problems: impl IntoIterator<Item = P>,
    precision_bits: u32,
) -> Result<Vec<SymmetricMatrix>> {
    all_or_first(syrk_batch_with(ctx, problems, precision_bits, &SyrkOptions::default())?.result)
}

/// `Q_i := alpha * P_i^T P_i + beta * C_i` for many problems, each with the bits of [`crate::syrk_with`].
///
/// Shapes and precisions of the operands may differ from problem to problem; the precision of the results and the
/// options are common to all. The result of a problem that fails is its error, as [`crate::Error::Problem`] with its
/// number; all other problems are computed. The threads of the context share the problems: each problem is computed by
/// one thread, on the CPU. Memory in addition to the results is allocated once for each thread. Under a memory limit
/// there are only as many workers as the limit allows. Cost: the sum of the single calls, without their startup costs.
/// On CPUs with AVX-512 IFMA, and for larger products with AVX2 and FMA, up to eight problems of one shape are computed
/// at once.
///
/// ```
/// use sunzi::{Context, Matrix, Op, SyrkOptions, batch};
/// let ctx = Context::new()?;
/// let ps = [Matrix::from_f64s(2, 1, 128, &[3.0, 4.0])?, Matrix::from_f64s(1, 2, 128, &[1.0, 2.0])?];
/// let qs = batch::syrk_batch_with(&ctx, &ps, 128, &SyrkOptions::new().op(Op::Transpose))?; // P P^T
/// assert_eq!(qs.result[0].as_ref().unwrap().view().to_f64s(), [9.0, 12.0, 12.0, 16.0]);
/// assert_eq!(qs.result[1].as_ref().unwrap().view().to_f64s(), [5.0]);
/// assert_eq!((qs.report.problems, qs.report.failed), (2, 0));
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// Errors of the whole call: [`crate::Error::MemoryLimit`] with the smallest limit that suffices, before any work;
/// [`crate::Error::Cancelled`]; [`crate::Error::OutOfMemory`]. Errors of a single problem: those of
/// [`crate::syrk_with`].
pub fn syrk_batch_with<'a, P: Into<SyrkProblem<'a>>>(
    ctx: &Context,
    problems: impl IntoIterator<Item = P>,
    precision_bits: u32,
    options: &SyrkOptions<'_>,
) -> Result<Outcome<Vec<Result<SymmetricMatrix>>, BatchReport>> {
    let problems = problems.into_iter().map(Into::into).collect::<Vec<SyrkProblem<'_>>>();
    let mut results = vec![SymmetricMatrix::default(); problems.len()];
    let Outcome { result, report } = syrk_batch_into(ctx, problems, precision_bits, options, &mut results)?;
    Ok(Outcome { result: with_outcomes(results, result), report })
}

/// [`syrk_batch_with`] into the caller's memory, one place for each problem; see [`SymmetricDestination`]. Returns the
/// outcome of each problem.
///
/// After an error of a problem, the contents of its place are as after an error of [`crate::syrk_into`].
///
/// # Errors
/// As [`syrk_batch_with`]; [`crate::Error::InvalidArgument`] if the numbers of places and problems differ.
pub fn syrk_batch_into<'a, 'r, P: Into<SyrkProblem<'a>>, R: Into<SymmetricDestination<'r>>>(
    ctx: &Context,
    problems: impl IntoIterator<Item = P>,
    precision_bits: u32,
    options: &SyrkOptions<'_>,
    results: impl IntoIterator<Item = R>,
) -> Result<Outcome<Vec<Result<()>>, BatchReport>> {
    let verb = Syrk { options, precision_bits };
    let items = pair(&verb, problems.into_iter().map(Into::into), results.into_iter().map(Into::into))?;
    let (result, report) = run(ctx, &verb, items)?;
    Ok(Outcome { result, report })
}

struct Syrk<'o> {
    options: &'o SyrkOptions<'o>,
    precision_bits: u32,
}

impl Syrk<'_> {
    /// Products without scalars and addends go side by side.
    fn together(&self, ctx: &Context, ProblemShape { rows, cols, depth }: ProblemShape) -> Option<LaneProducts> {
        let SyrkOptions { alpha, beta, accumulate, exact_integers, accuracy, .. } = *self.options;
        // One that is not finite is refused also where nothing is added.
        let has_scalar = alpha.is_some() || beta.is_some_and(|beta| !beta.is_finite());
        let is_plain = !has_scalar && accumulate.is_none() && !exact_integers;
        let size = ProductSize { contracted: depth, rows, cols, triangle: true };
        if is_plain { LaneProducts::choose(ctx, size, self.precision_bits, accuracy) } else { None }
    }
}

impl Verb for Syrk<'_> {
    const OPERATION: &'static str = "syrk_batch";
    type Problem<'p> = SyrkProblem<'p>;
    type Output<'p> = SymmetricDestination<'p>;
    type Result = SymmetricMatrix;

    fn precision_bits(&self) -> u32 {
        self.precision_bits
    }

    fn accuracy(&self) -> Accuracy {
        self.options.accuracy
    }

    fn plans_are_bounds(&self) -> bool {
        self.options.accuracy == Accuracy::Norm && !self.options.exact_integers
    }

    fn shape(&self, problem: &SyrkProblem<'_>) -> ProblemShape {
        let (rows, cols) = (problem.p.rows(), problem.p.cols());
        let (depth, order) = if self.options.op == Op::NoTranspose { (rows, cols) } else { (cols, rows) };
        ProblemShape { rows: order, cols: order, depth }
    }

    fn plan(&self, ctx: &Context, ProblemShape { rows, depth, .. }: ProblemShape) -> Result<u64> {
        let options = ProductPlanOptions::new().accuracy(self.options.accuracy);
        Ok(plan_syrk_with(ctx, (depth, rows), self.precision_bits, &options)?.planned_bytes)
    }

    fn together_bytes(&self, ctx: &Context, shape: ProblemShape) -> Option<u64> {
        if are_slow() && !shape.is_large_product() {
            return None; // single calls are faster
        }
        Some(self.together(ctx, shape)?.bytes())
    }

    fn run_together(&self, ctx: &Context, items: &mut [Item<'_, '_, Self>]) -> Result<LanesDone> {
        let Some(together) = self.together(ctx, items[0].shape) else { return Ok(LanesDone::default()) };
        let SyrkOptions { op, uplo, accuracy, .. } = *self.options;
        let mut matrices: [Matrix; PROBLEMS] = std::array::from_fn(|_| Matrix::empty());
        let (mut problems, mut destinations) = (std::array::from_fn(|_| None), std::array::from_fn(|_| None));
        for ((at, item), memory) in items.iter_mut().enumerate().zip(&mut matrices) {
            let Item { problem: SyrkProblem { p, accumulate }, output, .. } = item;
            if accumulate.is_some() {
                continue;
            }
            let triangle = ProductProblem { uplo, accuracy, ..ProductProblem::syrk(*p, op, self.precision_bits) };
            let mirrored = !matches!(output, SymmetricDestination::Triangle(_));
            problems[at] = Some(ProductProblem { mirrored, ..triangle });
            destinations[at] = Some(match output {
                SymmetricDestination::Matrix(result) => {
                    // While it is half written it is not symmetric, so it is moved out of sight.
                    *memory = std::mem::take(*result).into_matrix();
                    Destination::Matrix(memory)
                }
                SymmetricDestination::Block(block) => Destination::Block(block.reborrow()),
                SymmetricDestination::Triangle(result) => result.reborrow(),
            });
        }
        let done = together.run(ctx, &problems, destinations)?;
        for ((at, item), memory) in items.iter_mut().enumerate().zip(matrices) {
            if let (1, SymmetricDestination::Matrix(result)) = (done.mask >> at & 1, &mut item.output) {
                **result = SymmetricMatrix::trusted(memory);
            }
        }
        Ok(done)
    }

    fn run(
        &self,
        ctx: &Context,
        problem: &SyrkProblem<'_>,
        output: &mut SymmetricDestination<'_>,
    ) -> Result<CallFigures> {
        let accumulate = problem.accumulate.or(self.options.accumulate);
        let options = SyrkOptions { accumulate, ..self.options.clone() };
        Ok(CallFigures::product(&syrk_into(ctx, problem.p, self.precision_bits, &options, output.reborrow())?))
    }
}

impl CallFigures {
    /// The figures of a product.
    pub fn product(report: &Report) -> CallFigures {
        let direct = report.kernel == crate::ops::product::direct::NAME;
        let (accuracy, range_bits) = (report.accuracy, report.range_bits);
        CallFigures { planned_bytes: report.planned_bytes, direct, accuracy, range_bits }
    }
}
