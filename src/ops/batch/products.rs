//! `syrk_batch`: `Q_i := alpha * P_i^T P_i + beta * C_i` for many `P_i`; `gemm_batch`:
//! `C_i := alpha * op(A_i) op(B_i) + beta * D_i` for many pairs.

use super::run::{CallFigures, Item, LanePath, PROBLEMS, ProblemShape, Verb, run_into, run_new};
use super::{BatchReport, Operand};
use crate::context::Context;
use crate::error::Result;
use crate::kernels::problem_lanes::are_slow;
use crate::matrix::{Destination, Matrix, MatrixView, Op, Symmetric, SymmetricDestination, SymmetricMatrix};
use crate::ops::gemm::{GemmOptions, gemm_into};
use crate::ops::product::direct;
use crate::ops::product::plan::{ProductPlanOptions, plan_gemm_with, plan_syrk_with};
use crate::ops::product::problem::{Accuracy, ProductProblem, ProductSize};
use crate::ops::product::report::{Outcome, Report};
use crate::ops::product::together::{LaneProducts, LanesDone};
use crate::ops::syrk::{SyrkOptions, syrk_into};
use rug::Float;

/// One SYRK of a batch; `p` and `(p, accumulate)` convert to it.
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
    syrk_batch_with(ctx, problems, precision_bits, &SyrkOptions::default())?.result.into_iter().collect()
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
    run_new(ctx, &Syrk { options, precision_bits }, problems.into_iter().map(Into::into))
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
    run_into(
        ctx,
        &Syrk { options, precision_bits },
        problems.into_iter().map(Into::into),
        results.into_iter().map(Into::into),
    )
}

/// The shape of `P^T P`, or of `P P^T`, weighted or not.
pub(super) fn gram_shape(p: MatrixView<'_>, op: Op) -> ProblemShape {
    let (depth, order) = if op == Op::NoTranspose { (p.rows(), p.cols()) } else { (p.cols(), p.rows()) };
    ProblemShape { rows: order, cols: order, depth }
}

struct Syrk<'o> {
    options: &'o SyrkOptions<'o>,
    precision_bits: u32,
}

impl Verb for Syrk<'_> {
    const OPERATION: &'static str = "syrk_batch";
    type Problem<'p> = SyrkProblem<'p>;
    type Output<'p> = SymmetricDestination<'p>;
    type Result = SymmetricMatrix;
    type Lanes = LaneProducts;

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
        gram_shape(problem.p, self.options.op)
    }

    fn plan(&self, ctx: &Context, ProblemShape { rows, depth, .. }: ProblemShape) -> Result<u64> {
        let options = ProductPlanOptions::new().accuracy(self.options.accuracy);
        Ok(plan_syrk_with(ctx, (depth, rows), self.precision_bits, &options)?.planned_bytes)
    }

    fn lanes(&self, ctx: &Context, shape: ProblemShape) -> Option<LanePath<LaneProducts>> {
        let SyrkOptions { alpha, beta, accumulate, exact_integers, accuracy, .. } = *self.options;
        let is_plain = is_plain(alpha, beta, accumulate.is_some(), exact_integers);
        is_plain.then(|| lanes(ctx, shape, true, self.precision_bits, accuracy)).flatten()
    }

    fn run_lanes(&self, ctx: &Context, lanes: LaneProducts, items: &mut [Item<'_, '_, Self>]) -> Result<LanesDone> {
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
        let done = lanes.run(ctx, &problems, destinations)?;
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

/// One GEMM of a batch; `(a, b)` and `((a, b), accumulate)` convert to it.
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
    gemm_batch_with(ctx, problems, precision_bits, &GemmOptions::default())?.result.into_iter().collect()
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
    run_new(ctx, &Gemm { options, precision_bits }, problems.into_iter().map(Into::into))
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
    run_into(
        ctx,
        &Gemm { options, precision_bits },
        problems.into_iter().map(Into::into),
        results.into_iter().map(Into::into),
    )
}

struct Gemm<'o> {
    options: &'o GemmOptions<'o>,
    precision_bits: u32,
}

impl Verb for Gemm<'_> {
    const OPERATION: &'static str = "gemm_batch";
    type Problem<'p> = GemmProblem<'p>;
    type Output<'p> = Destination<'p>;
    type Result = Matrix;
    type Lanes = LaneProducts;

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

    fn lanes(&self, ctx: &Context, shape: ProblemShape) -> Option<LanePath<LaneProducts>> {
        let GemmOptions { alpha, beta, accumulate, exact_integers, accuracy, .. } = *self.options;
        let is_plain = is_plain(alpha, beta, accumulate.is_some(), exact_integers);
        is_plain.then(|| lanes(ctx, shape, false, self.precision_bits, accuracy)).flatten()
    }

    fn run_lanes(&self, ctx: &Context, lanes: LaneProducts, items: &mut [Item<'_, '_, Self>]) -> Result<LanesDone> {
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
        lanes.run(ctx, &problems, destinations)
    }

    fn run(&self, ctx: &Context, problem: &GemmProblem<'_>, output: &mut Destination<'_>) -> Result<CallFigures> {
        let accumulate = problem.accumulate.or(self.options.accumulate);
        let options = GemmOptions { accumulate, ..self.options.clone() };
        let (a, b) = (problem.a, problem.b);
        Ok(CallFigures::product(&gemm_into(ctx, a, b, self.precision_bits, &options, output.reborrow())?))
    }
}

/// Whether products with these scalars go side by side: those without scalars and addends.
fn is_plain(alpha: Option<&Float>, beta: Option<&Float>, adds: bool, exact_integers: bool) -> bool {
    // One that is not finite is refused also where nothing is added.
    let has_scalar = alpha.is_some() || beta.is_some_and(|beta| !beta.is_finite());
    !has_scalar && !adds && !exact_integers
}

/// The path of plain products of this shape, or of triangles of them.
fn lanes(
    ctx: &Context,
    shape: ProblemShape,
    triangle: bool,
    precision_bits: u32,
    accuracy: Accuracy,
) -> Option<LanePath<LaneProducts>> {
    if are_slow() && !shape.is_large_product() {
        return None; // single calls are faster
    }
    let ProblemShape { rows, cols, depth } = shape;
    let size = ProductSize { contracted: depth, rows, cols, triangle, half: None };
    let lanes = LaneProducts::choose(ctx, size, precision_bits, accuracy)?;
    Some(LanePath { bytes: lanes.bytes(), lanes })
}

impl CallFigures {
    /// The figures of a product.
    pub fn product(report: &Report) -> CallFigures {
        let direct = report.kernel == direct::NAME;
        let (accuracy, range_bits) = (report.accuracy, report.range_bits);
        CallFigures { planned_bytes: report.planned_bytes, direct, accuracy, range_bits }
    }
}
