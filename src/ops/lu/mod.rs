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
use crate::kernels::{self, EngineSpec, PlaneKernel};
use crate::math::bound::{LU_GUARD_BITS, lu_first_growth_bits, lu_modulus_bits};
use crate::matrix::{Matrix, MatrixView};
use crate::ops::factor::entrywise::RangeBits;
use crate::ops::factor::kernel::choose_kernel;
use crate::ops::product::problem::Accuracy;
use crate::ops::product::report::Outcome;
use crate::options::setters;
use leaf::Rules;
use problem::{Headroom, LuProblem, LuStop};
pub use report::LuReport;
use run::{Factors, LuSizes};
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
    let factoring = LuCall { ctx, a: a.into(), precision_bits, start: Instant::now() };
    let (factors, report) = match options.accuracy {
        Accuracy::Norm => factoring.by_norms()?,
        Accuracy::Entrywise => factoring.entrywise(options.range_bits)?,
    };
    Ok(Outcome { result: Lu { factors: factors.entries, rows: factors.rows }, report })
}

/// A factorisation, and when it began.
struct LuCall<'a> {
    ctx: &'a Context,
    a: MatrixView<'a>,
    precision_bits: u32,
    start: Instant,
}

impl LuCall<'_> {
    fn by_norms(&self) -> Result<(Factors, LuReport)> {
        self.run(self.ctx, &self.problem(0)?)
    }

    /// Factors with more and more bits, until each entry of the residual is as small as its own terms require.
    fn entrywise(&self, least_bits: u32) -> Result<(Factors, LuReport)> {
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
                Some(next) => range = next,
                None => return Ok((factors, report.entrywise(range, needed, check_bytes))),
            }
        }
    }

    /// The problem with `range_bits` bits beyond those of accuracy by norms.
    fn problem(&self, range_bits: u32) -> Result<LuProblem> {
        let problem = LuProblem::new(self.a, self.precision_bits, range_bits)?;
        let most = self.ctx.maximum_modulus_bits();
        let fits = |precision_bits: u32| {
            let growth_bits = lu_first_growth_bits(problem.order);
            lu_modulus_bits(precision_bits + LU_GUARD_BITS + range_bits, growth_bits, problem.order) <= most
        };
        if self.precision_bits < 2 || self.precision_bits > most / 2 || !fits(self.precision_bits) {
            let maximum_bits = (2..=most / 2).rev().find(|&bits| fits(bits)).unwrap_or(0);
            return Err(Error::precision(self.precision_bits, maximum_bits));
        }
        Ok(problem)
    }

    /// One factorisation, with more room for growth where that is needed.
    fn run(&self, ctx: &Context, problem: &LuProblem) -> Result<(Factors, LuReport)> {
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
        &self,
        ctx: &Context,
        problem: &LuProblem,
        headroom: Headroom,
    ) -> std::result::Result<(Factors, LuReport), LuStop> {
        let rules = Rules::new(problem, headroom);
        let factors_bytes = Matrix::bytes_for(problem.order, problem.order, problem.precision_bits);
        let report = LuReport::new(ctx, problem);
        if direct::is_best(ctx, problem) {
            let planned_bytes = ctx.memory().admit(factors_bytes + direct::bytes(problem, &rules))?;
            let factors = direct::factor(ctx, self.a, problem, rules)?;
            let report = report.made(direct::NAME, 0, planned_bytes, &factors, self.start);
            return Ok((factors, LuReport { threads: 1, ..report }));
        }
        let (kernel, engine) = {
            let kernel = self.kernel(ctx, problem, headroom)?;
            let operand_bits = problem.working_bits + headroom.growth_bits;
            let spec = EngineSpec { operand_bits, modulus_bits: headroom.modulus_bits, redundant: false };
            ctx.settle(kernel, headroom.modulus_bits, (problem.order as f64).powi(3) / 3.0);
            (kernel, ctx.engine_for_tiles(kernel, spec)?)
        };
        let sizes = LuSizes::new(problem.order, ctx.threads());
        let planned_bytes = ctx.memory().admit(factors_bytes + sizes.bytes(&*engine, &rules))?;
        let factors = run::factor(ctx, self.a, problem, &*engine, rules, sizes)?;
        let report = report.made(kernel.name(), engine.moduli().len(), planned_bytes, &factors, self.start);
        Ok((factors, report))
    }

    fn kernel(&self, ctx: &Context, problem: &LuProblem, headroom: Headroom) -> Result<&'static dyn PlaneKernel> {
        let own = choose_kernel(ctx, kernels::preferred_for_large_factors, problem.order, problem.working_bits);
        let reaches = |kernel: &dyn PlaneKernel| headroom.modulus_bits <= kernel.maximum_modulus_bits();
        if reaches(own) {
            return Ok(own);
        }
        let other = ctx.kernel_for(headroom.modulus_bits);
        let beyond = headroom.modulus_bits.saturating_sub(other.maximum_modulus_bits()).div_ceil(2);
        match reaches(other) {
            true => Ok(other),
            false => Err(Error::precision(problem.precision_bits, problem.precision_bits.saturating_sub(beyond))),
        }
    }
}
