//! `weighted_gram_batch`: `Q_i := alpha * P_i^T diag(d_i) P_i + beta * C_i` for many `P_i` and `d_i`.

use super::BatchReport;
use super::products::gram_shape;
use super::run::{CallFigures, Item, LanePath, ProblemShape, Verb, run_into, run_new};
use crate::context::Context;
use crate::error::Result;
use crate::matrix::{MatrixView, Symmetric, SymmetricDestination, SymmetricMatrix};
use crate::ops::product::plan::ProductPlanOptions;
use crate::ops::product::problem::Accuracy;
use crate::ops::product::report::Outcome;
use crate::ops::product::together::{LaneProducts, LanesDone};
use crate::ops::syrk::SyrkOptions;
use crate::ops::weighted_gram::{plan_weighted_gram, weighted_gram_into};

/// One weighted Gram matrix of a batch.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct WeightedGramProblem<'a> {
    /// The operand.
    pub p: MatrixView<'a>,
    /// The weights of its rows.
    pub d: MatrixView<'a>,
    /// A symmetric matrix to add; with `None` the matrix in the options is added.
    pub accumulate: Option<Symmetric<'a>>,
}

impl<'a> WeightedGramProblem<'a> {
    /// `p` with the weights `d`, and no matrix to add.
    pub fn new(p: impl Into<MatrixView<'a>>, d: impl Into<MatrixView<'a>>) -> WeightedGramProblem<'a> {
        WeightedGramProblem { p: p.into(), d: d.into(), accumulate: None }
    }

    /// The same problem with a symmetric matrix to add.
    pub fn accumulate(self, matrix: impl Into<Symmetric<'a>>) -> WeightedGramProblem<'a> {
        WeightedGramProblem { accumulate: Some(matrix.into()), ..self }
    }
}

/// The matrices `P_i^T diag(d_i) P_i` of many pairs; see [`weighted_gram_batch_with`].
///
/// ```
/// use sunzi::batch::{WeightedGramProblem, weighted_gram_batch};
/// use sunzi::{Context, Matrix};
/// let ctx = Context::new()?;
/// let p = Matrix::from_f64s(2, 1, 128, &[3.0, 4.0])?;
/// let d = Matrix::from_f64s(2, 1, 128, &[1.0, -1.0])?;
/// assert_eq!(weighted_gram_batch(&ctx, [WeightedGramProblem::new(&p, &d)], 128)?[0].view().to_f64s(), [-7.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`weighted_gram_batch_with`], and [`crate::Error::Problem`] for the first problem that has no result.
pub fn weighted_gram_batch<'a>(
    ctx: &Context,
    problems: impl IntoIterator<Item = WeightedGramProblem<'a>>,
    precision_bits: u32,
) -> Result<Vec<SymmetricMatrix>> {
    weighted_gram_batch_with(ctx, problems, precision_bits, &SyrkOptions::default())?.result.into_iter().collect()
}

/// `Q_i := alpha * P_i^T diag(d_i) P_i + beta * C_i` for many problems, each with the bits of
/// [`crate::weighted_gram_with`]. Shapes, precisions, failing problems, threads and memory as in
/// [`crate::batch::syrk_batch_with`]; each thread computes one problem at a time.
///
/// ```
/// use sunzi::batch::{WeightedGramProblem, weighted_gram_batch_with};
/// use sunzi::{Context, Matrix, SyrkOptions};
/// let ctx = Context::new()?;
/// let p = Matrix::from_f64s(2, 1, 128, &[3.0, 4.0])?;
/// let d = Matrix::from_f64s(2, 1, 128, &[1.0, -1.0])?;
/// let identity = Matrix::identity(1, 128)?;
/// let problem = WeightedGramProblem::new(&p, &d).accumulate(&identity);
/// let made = weighted_gram_batch_with(&ctx, [problem], 128, &SyrkOptions::new())?;
/// assert_eq!(made.result[0].as_ref().unwrap().view().to_f64s(), [-6.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`crate::batch::syrk_batch_with`]; for a single problem the errors of [`crate::weighted_gram_with`].
pub fn weighted_gram_batch_with<'a>(
    ctx: &Context,
    problems: impl IntoIterator<Item = WeightedGramProblem<'a>>,
    precision_bits: u32,
    options: &SyrkOptions<'_>,
) -> Result<Outcome<Vec<Result<SymmetricMatrix>>, BatchReport>> {
    let problems = problems.into_iter().collect::<Vec<_>>();
    run_new(ctx, &WeightedGram::new(options, precision_bits, &problems), problems.into_iter())
}

/// [`weighted_gram_batch_with`] into the caller's memory, as [`crate::batch::syrk_batch_into`].
///
/// # Errors
/// As [`weighted_gram_batch_with`] and [`crate::batch::syrk_batch_into`].
pub fn weighted_gram_batch_into<'a, 'r, R: Into<SymmetricDestination<'r>>>(
    ctx: &Context,
    problems: impl IntoIterator<Item = WeightedGramProblem<'a>>,
    precision_bits: u32,
    options: &SyrkOptions<'_>,
    results: impl IntoIterator<Item = R>,
) -> Result<Outcome<Vec<Result<()>>, BatchReport>> {
    let problems = problems.into_iter().collect::<Vec<_>>();
    let verb = WeightedGram::new(options, precision_bits, &problems);
    run_into(ctx, &verb, problems.into_iter(), results.into_iter().map(Into::into))
}

struct WeightedGram<'o> {
    options: &'o SyrkOptions<'o>,
    precision_bits: u32,
    /// The most bits of an operand and its weights together.
    operand_bits: u32,
    /// Whether some operand is a block of a larger matrix, whose heads are copied with it.
    has_blocks: bool,
}

impl<'o> WeightedGram<'o> {
    fn new(
        options: &'o SyrkOptions<'o>,
        precision_bits: u32,
        problems: &[WeightedGramProblem<'_>],
    ) -> WeightedGram<'o> {
        let bits = |problem: &WeightedGramProblem<'_>| problem.p.precision_bits() + problem.d.precision_bits();
        let is_block =
            |WeightedGramProblem { p, .. }: &WeightedGramProblem<'_>| p.all_heads().len() > p.rows() * p.cols();
        WeightedGram {
            options,
            precision_bits,
            operand_bits: problems.iter().map(bits).max().unwrap_or(0),
            has_blocks: problems.iter().any(is_block),
        }
    }
}

impl Verb for WeightedGram<'_> {
    const OPERATION: &'static str = "weighted_gram_batch";
    type Problem<'p> = WeightedGramProblem<'p>;
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
        self.options.accuracy == Accuracy::Norm && !self.options.exact_integers && !self.has_blocks
    }

    fn shape(&self, problem: &WeightedGramProblem<'_>) -> ProblemShape {
        gram_shape(problem.p, self.options.op)
    }

    fn plan(&self, ctx: &Context, ProblemShape { rows, depth, .. }: ProblemShape) -> Result<u64> {
        let options = ProductPlanOptions::new().accuracy(self.options.accuracy);
        let plan = plan_weighted_gram(ctx, depth, rows, self.operand_bits, self.precision_bits, &options)?;
        Ok(plan.planned_bytes)
    }

    fn lanes(&self, _: &Context, _: ProblemShape) -> Option<LanePath<LaneProducts>> {
        None
    }

    fn run_lanes(&self, _: &Context, _: LaneProducts, _: &mut [Item<'_, '_, Self>]) -> Result<LanesDone> {
        unreachable!("no problems go side by side")
    }

    fn run(
        &self,
        ctx: &Context,
        problem: &WeightedGramProblem<'_>,
        output: &mut SymmetricDestination<'_>,
    ) -> Result<CallFigures> {
        let accumulate = problem.accumulate.or(self.options.accumulate);
        let options = SyrkOptions { accumulate, ..self.options.clone() };
        let (p, d) = (problem.p, problem.d);
        Ok(CallFigures::product(&weighted_gram_into(ctx, p, d, self.precision_bits, &options, output.reborrow())?))
    }
}
