//! `trsm_batch`: `op(T_i) X_i = alpha B_i` and `X_i op(T_i) = alpha B_i` for many pairs.

use super::BatchReport;
use super::run::{CallFigures, Item, LanePath, PROBLEMS, ProblemShape, Verb, run_into, run_new};
use crate::context::Context;
use crate::error::Result;
use crate::kernels::problem_lanes::are_slow;
use crate::matrix::{Destination, Matrix, MatrixView, Side};
use crate::ops::product::problem::Accuracy;
use crate::ops::product::report::Outcome;
use crate::ops::product::together::LanesDone;
use crate::ops::solve::plan_trsm;
use crate::ops::solve::problem::SystemShape;
use crate::ops::solve::side_by_side::LaneSolves;
use crate::ops::trsm::{TrsmOptions, oriented, trsm_into};

/// One triangular solve of a batch; `(t, b)` converts to it.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct TrsmProblem<'a> {
    /// The triangular matrix.
    pub t: MatrixView<'a>,
    /// The right-hand sides.
    pub b: MatrixView<'a>,
}

impl<'a, T: Into<MatrixView<'a>>, B: Into<MatrixView<'a>>> From<(T, B)> for TrsmProblem<'a> {
    fn from((t, b): (T, B)) -> Self {
        TrsmProblem { t: t.into(), b: b.into() }
    }
}

/// The solutions `X_i` of many `L_i X_i = B_i` with lower triangular `L_i`; see [`trsm_batch_with`].
///
/// ```
/// use sunzi::{Context, Matrix, batch};
/// let ctx = Context::new()?;
/// let l = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 0.0, 3.0])?;
/// let b = Matrix::from_f64s(2, 1, 128, &[10.0, 23.0])?;
/// let solutions = batch::trsm_batch(&ctx, [(&l, &b), (&l, &l)], 128)?;
/// assert_eq!(solutions[0].view().to_f64s(), [10.0, 1.0]);
/// assert_eq!(solutions[1].view().to_f64s(), [1.0, 0.0, 0.0, 1.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`trsm_batch_with`], and [`crate::Error::Problem`] for the first problem that has no result.
pub fn trsm_batch<'a, P: Into<TrsmProblem<'a>>>(
    ctx: &Context,
    problems: impl IntoIterator<Item = P>,
    precision_bits: u32,
) -> Result<Vec<Matrix>> {
    trsm_batch_with(ctx, problems, precision_bits, &TrsmOptions::default())?.result.into_iter().collect()
}

/// The solutions of many triangular systems, each with the bits of [`crate::trsm_with`].
///
/// Shapes, precisions, failing problems, threads and memory as in [`crate::batch::syrk_batch_with`].
///
/// ```
/// use sunzi::{Context, Error, Matrix, Op, TrsmOptions, batch};
/// let ctx = Context::new()?;
/// let l = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 0.0, 3.0])?;
/// let singular = Matrix::from_f64s(2, 2, 128, &[0.0, 2.0, 0.0, 3.0])?;
/// let b = Matrix::from_f64s(2, 1, 128, &[5.0, 6.0])?;
/// let options = TrsmOptions::new().op(Op::Transpose);
/// let solutions = batch::trsm_batch_with(&ctx, [(&l, &b), (&singular, &b)], 128, &options)?; // L^T X = B
/// assert_eq!(solutions.result[0].as_ref().unwrap().view().to_f64s(), [1.0, 2.0]);
/// assert!(matches!(solutions.result[1], Err(Error::Problem { problem: 1, .. })));
/// assert_eq!(solutions.report.failed, 1);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// As [`crate::batch::syrk_batch_with`]; for a single problem the errors of [`crate::trsm_with`].
pub fn trsm_batch_with<'a, P: Into<TrsmProblem<'a>>>(
    ctx: &Context,
    problems: impl IntoIterator<Item = P>,
    precision_bits: u32,
    options: &TrsmOptions<'_>,
) -> Result<Outcome<Vec<Result<Matrix>>, BatchReport>> {
    run_new(ctx, &Trsm { options, precision_bits }, problems.into_iter().map(Into::into))
}

/// [`trsm_batch_with`] into the caller's memory, one place for each problem; see [`Destination`]. Returns the outcome
/// of each problem.
///
/// # Errors
/// As [`trsm_batch_with`]; [`crate::Error::InvalidArgument`] if the numbers of places and problems differ.
pub fn trsm_batch_into<'a, 'r, P: Into<TrsmProblem<'a>>, R: Into<Destination<'r>>>(
    ctx: &Context,
    problems: impl IntoIterator<Item = P>,
    precision_bits: u32,
    options: &TrsmOptions<'_>,
    results: impl IntoIterator<Item = R>,
) -> Result<Outcome<Vec<Result<()>>, BatchReport>> {
    run_into(
        ctx,
        &Trsm { options, precision_bits },
        problems.into_iter().map(Into::into),
        results.into_iter().map(Into::into),
    )
}

struct Trsm<'o> {
    options: &'o TrsmOptions<'o>,
    precision_bits: u32,
}

impl Trsm<'_> {
    /// Rows of the triangle, and right-hand sides.
    fn system_shape(&self, ProblemShape { rows, cols, .. }: ProblemShape) -> SystemShape {
        let (order, columns) = if self.options.side == Side::Left { (rows, cols) } else { (cols, rows) };
        SystemShape { order, columns }
    }
}

impl Verb for Trsm<'_> {
    const OPERATION: &'static str = "trsm_batch";
    type Problem<'p> = TrsmProblem<'p>;
    type Output<'p> = Destination<'p>;
    type Result = Matrix;
    type Lanes = LaneSolves;

    fn precision_bits(&self) -> u32 {
        self.precision_bits
    }

    fn accuracy(&self) -> Accuracy {
        self.options.accuracy
    }

    fn plans_are_bounds(&self) -> bool {
        false // right sides that outgrow a try take more
    }

    fn shape(&self, TrsmProblem { t, b }: &TrsmProblem<'_>) -> ProblemShape {
        ProblemShape { rows: b.rows(), cols: b.cols(), depth: t.rows() / 2 }
    }

    fn plan(&self, ctx: &Context, shape: ProblemShape) -> Result<u64> {
        let SystemShape { order, columns } = self.system_shape(shape);
        let plan = plan_trsm(ctx, (order, columns), self.precision_bits, self.options.accuracy)?;
        Ok(plan.planned_bytes)
    }

    fn lanes(&self, ctx: &Context, shape: ProblemShape) -> Option<LanePath<LaneSolves>> {
        let is_plain = self.options.alpha.is_none() && self.options.accuracy == Accuracy::Norm;
        if are_slow() || !is_plain {
            return None; // single calls are faster
        }
        let lanes = LaneSolves::choose(ctx, self.system_shape(shape), self.precision_bits)?;
        Some(LanePath { bytes: lanes.bytes(), lanes })
    }

    fn run_lanes(&self, ctx: &Context, lanes: LaneSolves, items: &mut [Item<'_, '_, Self>]) -> Result<LanesDone> {
        assert!(items.len() <= PROBLEMS);
        let system = |at: usize| {
            let TrsmProblem { t, b } = items.get(at)?.problem;
            // An error in a problem is reported where it runs.
            oriented(t, b, self.precision_bits, self.options).ok()
        };
        let systems = std::array::from_fn(system);
        let mut outputs = items.iter_mut().map(|item| item.output.reborrow());
        let mask = lanes.run(ctx, &systems, std::array::from_fn(|_| outputs.next()))?;
        Ok(LanesDone { mask, range_bits: 0 })
    }

    fn run(&self, ctx: &Context, problem: &TrsmProblem<'_>, output: &mut Destination<'_>) -> Result<CallFigures> {
        let TrsmProblem { t, b } = *problem;
        let report = trsm_into(ctx, t, b, self.precision_bits, self.options, output.reborrow())?;
        let (planned_bytes, accuracy) = (report.planned_bytes, report.accuracy);
        Ok(CallFigures { planned_bytes, direct: false, accuracy, range_bits: 0 })
    }
}
