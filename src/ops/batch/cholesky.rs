//! `cholesky_batch`: `A_i = L_i L_i^T` for many `A_i`.

use super::BatchReport;
use super::run::{CallFigures, Item, LanePath, PROBLEMS, ProblemShape, Verb, run_into, run_new};
use crate::context::Context;
use crate::error::Result;
use crate::kernels::problem_lanes::are_slow;
use crate::matrix::{Matrix, MatrixView, Symmetric};
use crate::ops::cholesky::{Cholesky, CholeskyOptions, cholesky_into};
use crate::ops::factor::direct;
use crate::ops::factor::plan::plan_cholesky;
use crate::ops::factor::problem::SQUARE;
use crate::ops::factor::together::LaneFactors;
use crate::ops::product::problem::Accuracy;
use crate::ops::product::report::Outcome;
use crate::ops::product::together::LanesDone;

/// The factors of many matrices; see [`cholesky_batch_with`].
///
/// ```
/// use sunzi::{Context, Matrix, batch};
/// let ctx = Context::new()?;
/// let blocks = [Matrix::from_f64s(2, 2, 128, &[4.0, 2.0, 2.0, 5.0])?, Matrix::from_f64s(1, 1, 128, &[9.0])?];
/// let factors = batch::cholesky_batch(&ctx, &blocks, 128)?;
/// assert_eq!(factors[0].factor().view().to_f64s(), [2.0, 1.0, 0.0, 2.0]);
/// assert_eq!(factors[1].factor().view().to_f64s(), [3.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`cholesky_batch_with`], and [`crate::Error::Problem`] for the first matrix that has no factor.
pub fn cholesky_batch<'a, A: Into<Symmetric<'a>>>(
    ctx: &Context,
    matrices: impl IntoIterator<Item = A>,
    precision_bits: u32,
) -> Result<Vec<Cholesky>> {
    cholesky_batch_with(ctx, matrices, precision_bits, &CholeskyOptions::default())?.result.into_iter().collect()
}

/// The factors `L_i` with `A_i = L_i L_i^T` of many matrices, each with the bits of [`crate::cholesky_with`].
///
/// A matrix that is not positive definite does not affect the others: its result is [`crate::Error::Problem`] around
/// [`crate::Error::NotPositiveDefinite`], with the number of the matrix in the batch and the index of the pivot that is
/// not positive.
///
/// ```
/// use sunzi::{CholeskyOptions, Context, Error, Matrix};
/// let ctx = Context::builder().threads(1).build()?;
/// let blocks = [
///     Matrix::from_f64s(2, 2, 256, &[4.0, 2.0, 2.0, 5.0])?,
///     Matrix::from_f64s(2, 2, 256, &[1.0, 2.0, 2.0, 1.0])?, // eigenvalues 3 and -1
/// ];
/// let factors = sunzi::batch::cholesky_batch_with(&ctx, &blocks, 256, &CholeskyOptions::new())?;
/// assert_eq!(factors.report.failed, 1);
/// assert!(factors.result[0].is_ok());
/// assert!(matches!(factors.result[1], Err(Error::Problem { problem: 1, .. })));
/// # Ok::<(), Error>(())
/// ```
///
/// Shapes, precisions, threads and memory as in [`crate::batch::syrk_batch_with`].
///
/// # Errors
/// As [`crate::batch::syrk_batch_with`]; for a single matrix the errors of [`crate::cholesky_with`].
pub fn cholesky_batch_with<'a, A: Into<Symmetric<'a>>>(
    ctx: &Context,
    matrices: impl IntoIterator<Item = A>,
    precision_bits: u32,
    options: &CholeskyOptions,
) -> Result<Outcome<Vec<Result<Cholesky>>, BatchReport>> {
    run_new(ctx, &Factor { options, precision_bits }, matrices.into_iter().map(Into::into))
}

/// [`cholesky_batch_with`] in the memory of factors that are no longer needed, one factor for each matrix; see
/// [`crate::cholesky_into`]. Returns the outcome of each matrix.
///
/// ```
/// use sunzi::{Cholesky, CholeskyOptions, Context, Matrix, batch};
/// let ctx = Context::new()?;
/// let mut factors = [Cholesky::default(), Cholesky::default()]; // their memory serves again in later calls
/// for scale in [1.0, 4.0] {
///     let blocks = [Matrix::from_f64s(1, 1, 128, &[scale])?, Matrix::from_f64s(1, 1, 128, &[9.0 * scale])?];
///     batch::cholesky_batch_into(&ctx, &blocks, 128, &CholeskyOptions::new(), &mut factors)?;
/// }
/// assert_eq!(factors[1].factor().view().to_f64s(), [6.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`cholesky_batch_with`]; [`crate::Error::InvalidArgument`] if the numbers of places and matrices differ.
pub fn cholesky_batch_into<'a, 'r, A: Into<Symmetric<'a>>>(
    ctx: &Context,
    matrices: impl IntoIterator<Item = A>,
    precision_bits: u32,
    options: &CholeskyOptions,
    results: impl IntoIterator<Item = &'r mut Cholesky>,
) -> Result<Outcome<Vec<Result<()>>, BatchReport>> {
    run_into(ctx, &Factor { options, precision_bits }, matrices.into_iter().map(Into::into), results.into_iter())
}

struct Factor<'o> {
    options: &'o CholeskyOptions,
    precision_bits: u32,
}

impl Verb for Factor<'_> {
    const OPERATION: &'static str = "cholesky_batch";
    type Problem<'p> = Symmetric<'p>;
    type Output<'p> = &'p mut Cholesky;
    type Result = Cholesky;
    type Lanes = LaneFactors;

    fn precision_bits(&self) -> u32 {
        self.precision_bits
    }

    fn accuracy(&self) -> Accuracy {
        self.options.accuracy
    }

    fn shape(&self, matrix: &Symmetric<'_>) -> ProblemShape {
        let order = matrix.order();
        ProblemShape { rows: order, cols: order, depth: order / 3 }
    }

    fn plan(&self, ctx: &Context, shape: ProblemShape) -> Result<u64> {
        Ok(plan_cholesky(ctx, shape.rows, self.precision_bits, self.options)?.planned_bytes)
    }

    fn lanes(&self, ctx: &Context, shape: ProblemShape) -> Option<LanePath<LaneFactors>> {
        if are_slow() {
            return None; // single calls are faster
        }
        let lanes = LaneFactors::choose(ctx, shape.rows, self.precision_bits, self.options)?;
        Some(LanePath { bytes: lanes.bytes(), lanes })
    }

    fn run_lanes(&self, ctx: &Context, lanes: LaneFactors, items: &mut [Item<'_, '_, Self>]) -> Result<LanesDone> {
        assert!(items.len() <= PROBLEMS);
        let (order, precision_bits) = (items[0].shape.rows, self.precision_bits);
        // The single call reports matrices that are not symmetric.
        let mut lowers = [None::<(usize, MatrixView<'_>)>; PROBLEMS];
        let is_square = |view: &MatrixView<'_>| (view.rows(), view.cols()) == (order, order);
        let views = items.iter().enumerate().filter_map(|(at, item)| Some((at, item.problem.lower_view(SQUARE).ok()?)));
        let mut count = 0;
        for (at, view) in views.filter(|(_, view)| is_square(view)) {
            lowers[count] = Some((at, view));
            count += 1;
        }
        let Some(&Some((_, first))) = lowers[..count].first() else { return Ok(LanesDone::default()) };
        let views: [MatrixView<'_>; PROBLEMS] =
            std::array::from_fn(|lane| lowers[lane].map_or(first, |(_, view)| view));
        let mut factors: [Matrix; PROBLEMS] = std::array::from_fn(|_| Matrix::empty());
        let numbers: [usize; PROBLEMS] = std::array::from_fn(|lane| lowers[lane].map_or(0, |(at, _)| at));
        for (&at, factor) in numbers[..count].iter().zip(&mut factors) {
            let memory = std::mem::take(items[at].output).into_factor();
            *factor = if memory.fits(order, order, precision_bits) {
                memory
            } else {
                Matrix::zeros(order, order, precision_bits)?
            };
            factor.clear_above_diagonal();
        }
        let LanesDone { mask: of_lanes, range_bits } = lanes.factor(ctx, &views[..count], &mut factors[..count])?;
        let (mut mask, working_bits) = (0, lanes.working_bits(range_bits));
        for (lane, (&at, factor)) in numbers[..count].iter().zip(factors).enumerate() {
            let is_done = of_lanes >> lane & 1 == 1;
            mask |= u8::from(is_done) << at;
            *items[at].output = match is_done {
                true => Cholesky::made(factor, working_bits).with_accuracy(self.options.accuracy),
                false => Cholesky::default(), // what was begun is no factor
            };
        }
        Ok(LanesDone { mask, range_bits })
    }

    fn run(&self, ctx: &Context, matrix: &Symmetric<'_>, output: &mut &mut Cholesky) -> Result<CallFigures> {
        let report = cholesky_into(ctx, *matrix, self.precision_bits, self.options, output)?;
        let (accuracy, range_bits) = (report.accuracy, report.range_bits);
        Ok(CallFigures {
            planned_bytes: report.planned_bytes,
            direct: report.kernel == direct::NAME,
            accuracy,
            range_bits,
        })
    }
}
