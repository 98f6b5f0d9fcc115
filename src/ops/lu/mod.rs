//! `P A = L U` with partial pivoting, for any square matrix: exact sums, one rounding per entry of the factors.
//!
//! Promise: the bits of the factors and the order of the rows depend only on the matrix, the precision and the
//! accuracy.

mod check;
pub(crate) mod condition;
mod digits;
mod direct;
mod lane_run;
mod lanes;
mod leaf;
mod plan;
mod planes;
pub(crate) mod problem;
#[cfg(test)]
mod reference;
mod report;
mod run;
mod solve;

#[cfg(test)]
mod tests;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound::lu_first_growth_bits;
use crate::matrix::{Matrix, MatrixView};
use crate::ops::factor::entrywise::RangeBits;
use crate::ops::product::problem::Accuracy;
use crate::ops::product::report::Outcome;
use crate::options::setters;
use plan::LuPlan;
pub use plan::{plan_lu, plan_lu_solve};
use problem::{Headroom, LuProblem, LuStop, Stopped};
pub use report::LuReport;
use run::Factors;
use std::time::Instant;

/// The operation in reports and errors.
const NAME: &str = "lu";

/// Options of an LU factorisation in addition to the matrix and the precision.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct LuOptions {
    /// Accuracy of each entry of `P A - L U`.
    pub accuracy: Accuracy,
    /// The first attempt at entrywise accuracy has at least this number of additional bits. If a similar matrix has
    /// been factored before, pass the `range_bits` of its report: this can save repetitions. Unused for accuracy by
    /// norms.
    pub range_bits: u32,
}

setters! { new LuOptions { accuracy: Accuracy, range_bits: u32 } }

/// Factors `L`, unit lower triangular, and `U`, upper triangular, of `P A = L U`, where `P` orders the rows; the
/// default value has the factors of the 0 x 0 matrix.
#[derive(Clone, Debug, Default)]
pub struct Lu {
    /// `U` on and above the diagonal, `L` below it.
    factors: Matrix,
    /// Row `i` of `P A` is row `rows[i]` of `A`.
    rows: Vec<usize>,
}

/// Factors `P A = L U`; see [`lu_with`].
///
/// ```
/// use sunzi::{Context, Matrix};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[1.0, 4.0, 2.0, 4.0])?; // [1 2; 4 4], column by column
/// let factors = sunzi::lu(&ctx, &a, 128)?;
/// assert_eq!(factors.rows(), [1, 0]); // the larger entry of the first column becomes the pivot
/// assert_eq!(factors.lower()?.view().to_f64s(), [1.0, 0.25, 0.0, 1.0]);
/// assert_eq!(factors.upper()?.view().to_f64s(), [4.0, 0.0, 4.0, 1.0]);
/// assert_eq!(factors.det()?, -4);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`lu_with`].
pub fn lu<'a>(ctx: &Context, a: impl Into<MatrixView<'a>>, precision_bits: u32) -> Result<Lu> {
    Ok(lu_with(ctx, a, precision_bits, &LuOptions::default())?.result)
}

/// Factors `P A = L U` of a square matrix with partial pivoting, rounded to `precision_bits` bits.
///
/// In each column the largest candidate becomes the pivot, in comparisons of exact integers; among equals it is the
/// first, as in LAPACK's `getrf`. So `|l_ij| <= 1` up to rounding. If the largest entries of the rows, relative to
/// those of their columns, differ by more than `2^32`, pivots are chosen as if powers of two had scaled the rows to
/// equal size.
///
/// Shapes: `a` is `n x n` (n may be 0). Accuracy: `|P A - L U|_ij <= 2^(2 - precision_bits) (|L| |U|)_ij` for any n;
/// with [`Accuracy::Norm`] `|P A - L U|_ij <= 2^(2 - precision_bits) ((|L| |U|)_ij + max(m_j, |u_jj|))`, where `m_j` is
/// the largest magnitude in column `j` of `A`. The report states whether the entrywise bound was reached, and the
/// growth of `U`. The bits depend only on `A`, the precision and the accuracy, not on threads, kernel or memory limit.
/// Cost: `n^3 / 3` word products for each of about `2 precision_bits / 52` primes, and `n^2` conversions each way.
/// Entrywise accuracy needs primes for `range_bits` more (see the report), and repeats the factorisation if these were
/// too few; so does an entry of `U` that exceeds the room for growth. Devices are not used. Source: docs/ALGORITHM.md,
/// "LU with partial pivoting".
///
/// ```
/// use sunzi::{Accuracy, Context, LuOptions, Matrix};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[1.0, 4.0, 2.0, 4.0])?;
/// let made = sunzi::lu_with(&ctx, &a, 128, &LuOptions::new().accuracy(Accuracy::Norm))?;
/// assert_eq!((made.report.operation, made.report.order), ("lu", 2));
/// let b = Matrix::from_f64s(2, 1, 128, &[5.0, 12.0])?;
/// assert_eq!(made.result.solve(&ctx, &b, 128)?.view().to_f64s(), [1.0, 2.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`Error::NoPivot`] with the first column in which all candidates for the pivot are 0 at the working precision;
/// [`Error::NotSquare`]; [`Error::Precision`]; [`Error::ExponentRange`]; [`Error::MemoryLimit`]; [`Error::Cancelled`];
/// [`Error::OutOfMemory`].
pub fn lu_with<'a>(
    ctx: &Context,
    a: impl Into<MatrixView<'a>>,
    precision_bits: u32,
    options: &LuOptions,
) -> Result<Outcome<Lu, LuReport>> {
    let mut result = Lu::default();
    let report = lu_into(ctx, a, precision_bits, options, &mut result)?;
    Ok(Outcome { result, report })
}

/// [`lu_with`] in the memory of factors that are no longer needed, such as the result of an earlier call.
///
/// Allocating fresh memory is slow, so repeated factorisations of one size are faster this way. The memory is released
/// if the order or the precision of the old factors do not fit. After an error `result` has the factors of the 0 x 0
/// matrix.
///
/// ```
/// use sunzi::{Context, LuOptions, Matrix};
/// let ctx = Context::new()?;
/// let first = Matrix::from_f64s(2, 2, 128, &[1.0, 4.0, 2.0, 4.0])?;
/// let second = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 4.0, 8.0])?; // [2 4; 1 8]
/// let mut factors = sunzi::lu(&ctx, &first, 128)?;
/// sunzi::lu_into(&ctx, &second, 128, &LuOptions::new(), &mut factors)?;
/// assert_eq!(factors.det()?, 12);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`lu_with`].
pub fn lu_into<'a>(
    ctx: &Context,
    a: impl Into<MatrixView<'a>>,
    precision_bits: u32,
    options: &LuOptions,
    result: &mut Lu,
) -> Result<LuReport> {
    let memory = std::mem::take(result).factors;
    let mut factoring = LuCall { ctx, a: a.into(), precision_bits, start: Instant::now(), memory };
    let (factors, report) = match options.accuracy {
        Accuracy::Norm => factoring.by_norms()?,
        Accuracy::Entrywise => factoring.entrywise(options.range_bits)?,
    };
    *result = Lu { factors: factors.entries, rows: factors.rows };
    Ok(report)
}

/// A factorisation, and when it began.
struct LuCall<'a> {
    ctx: &'a Context,
    a: MatrixView<'a>,
    precision_bits: u32,
    start: Instant,
    /// For the factors, where it fits.
    memory: Matrix,
}

impl LuCall<'_> {
    fn by_norms(&mut self) -> Result<(Factors, LuReport)> {
        self.run(self.ctx, &self.problem(0)?)
    }

    /// Factors with more and more bits, until each entry of the residual is as small as its own terms require.
    fn entrywise(&mut self, least_bits: u32) -> Result<(Factors, LuReport)> {
        let order = self.a.rows();
        let mut range = RangeBits::first(order, self.precision_bits, least_bits);
        let mut problem = self.problem(range.bits)?;
        range = range.for_depth(check::deepest_entry(&problem, &self.a));
        let check_bytes = check::bytes(order);
        let beside = self.ctx.holding(check_bytes);
        loop {
            problem = self.problem(range.bits)?;
            let (factors, report) = match self.run(&beside, &problem) {
                // Perhaps the pivot only lies below so few bits.
                Err(Error::NoPivot { .. }) if range.at_least(u32::MAX).bits > range.bits => {
                    range = range.at_least(u32::MAX);
                    continue;
                }
                done => done?,
            };
            let needed = check::needed_bits(&beside, &problem, &self.a, &factors)?;
            match range.next(needed) {
                Some(next) => (range, self.memory) = (next, factors.entries),
                None => return Ok((factors, report.entrywise(range, needed, check_bytes))),
            }
        }
    }

    /// The problem with `range_bits` bits beyond those of accuracy by norms.
    fn problem(&self, range_bits: u32) -> Result<LuProblem> {
        let problem = LuProblem::new(self.a, self.precision_bits, range_bits)?;
        plan::check_precision(self.ctx, problem.order, self.precision_bits, range_bits)?;
        Ok(problem)
    }

    /// One factorisation, with more room for growth where that is needed.
    fn run(&mut self, ctx: &Context, problem: &LuProblem) -> Result<(Factors, LuReport)> {
        let mut growth_bits = lu_first_growth_bits(problem.order);
        loop {
            let headroom = problem.headroom(growth_bits);
            match self.with_headroom(ctx, problem, headroom) {
                Ok(done) => return Ok(done),
                Err(LuStop::Growth(bits)) => growth_bits = bits.max(2 * growth_bits),
                Err(LuStop::NoPivot(index)) => {
                    return Err(Error::NoPivot { index, working_bits: problem.working_bits });
                }
                Err(LuStop::Failed(error)) => return Err(error),
            }
        }
    }

    fn with_headroom(
        &mut self,
        ctx: &Context,
        problem: &LuProblem,
        headroom: Headroom,
    ) -> Stopped<(Factors, LuReport)> {
        let plan = LuPlan::new(ctx, problem, headroom)?;
        let factors = plan.run(ctx, self.a, problem, std::mem::take(&mut self.memory))?;
        let report = plan.report(LuReport::new(self.ctx, problem)).made(&factors, self.start);
        Ok((factors, report))
    }
}
