//! Iterative refinement: solve with a cheap factor, compute the residual, correct.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound::{REFINE_GUARD_BITS, guard_bits, residual_bits};
use crate::math::float::{FloatRef, round_integer};
use crate::matrix::{Destination, Matrix, MatrixView, Symmetric, check_exponent};
use crate::ops::cholesky::{Cholesky, CholeskyReport, cholesky_with};
use crate::ops::columns::each_column;
use crate::ops::exact_sum::{ExactEntry, round_sum};
use crate::ops::product::block::maximum_working_bits;
use crate::ops::product::report::Outcome;
use crate::ops::solve::refine_plan::{RefineOptions, RefineShape, plan_refined};
use crate::ops::solve::residual::{Residual, ResidualSizes, SymmetricSystem};
use crate::ops::solve::run::{SolutionPlace, store};
use serde::Serialize;
use std::time::Instant;

/// The report of a refinement.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RefineReport {
    /// Number of corrections, including the first solution.
    pub iterations: usize,
    /// An upper bound of `log2` of the componentwise backward error of the solution, `max_ij |b - A x|_ij / (|A| |x| +
    /// |b|)_ij`; `i64::MIN` if all numbers are zero.
    pub backward_error_log2: i64,
    /// Wall-clock seconds of the call.
    pub seconds: f64,
    /// The largest number of bytes of the call, including the result, as in [`crate::plans::plan_solve_refined`].
    pub planned_bytes: u64,
    /// Name of the kernel of the last residual, which has the most bits.
    pub kernel: &'static str,
    /// The report of the factorisation at the start of the call.
    pub factorisation: CholeskyReport,
}

/// Corrections in a row that may gain less than a bit.
const IDLE_CORRECTIONS: usize = 2;

/// Refuses a matrix that is not square, and right-hand sides of another number of rows.
pub(super) fn check_shapes(a: &MatrixView<'_>, b: &MatrixView<'_>) -> Result<()> {
    if a.rows() == a.cols() && a.rows() == b.rows() {
        return Ok(());
    }
    Err(Error::shape_mismatch("solve", (a.rows(), a.cols()), (b.rows(), b.cols())))
}

/// See [`crate::solve_refined_into`]; of `a` the lower triangle is read.
///
/// # Errors
/// The errors of [`crate::solve_refined_into`].
pub(super) fn refine(
    ctx: &Context,
    a: MatrixView<'_>,
    b: MatrixView<'_>,
    precision_bits: u32,
    options: &RefineOptions,
    solution: &mut Matrix,
) -> Result<RefineReport> {
    let start = Instant::now();
    check_shapes(&a, &b)?;
    let order = a.rows();
    let most = residual_bits(precision_bits.saturating_add(REFINE_GUARD_BITS)).saturating_add(guard_bits(order));
    let maximum = maximum_working_bits(ctx);
    if precision_bits < 2 || most > maximum {
        let maximum_bits = maximum.saturating_sub(residual_bits(REFINE_GUARD_BITS) + guard_bits(order));
        return Err(Error::precision(precision_bits, maximum_bits));
    }
    let shape = RefineShape {
        order,
        columns: b.cols(),
        input_bits: a.precision_bits(),
        precision_bits,
        factor_bits: options.factor_bits,
    };
    // Planned before the work of a factorisation; without right sides there is nothing to plan.
    let plan = (b.cols() > 0).then(|| plan_refined(ctx, shape)).transpose()?;
    let choices = RefineShape::factor_options();
    let Outcome { result: factor, report } = cholesky_with(ctx, Symmetric::lower(a), options.factor_bits, &choices)?;
    Destination::Matrix(solution).prepare((order, b.cols()), precision_bits)?;
    let planned_bytes = plan.map_or(report.planned_bytes, |plan| plan.planned_bytes);
    let (iterations, backward_error_log2, kernel) = (0, i64::MIN, shape.kernel(ctx));
    let mut report =
        RefineReport { iterations, backward_error_log2, seconds: 0.0, planned_bytes, kernel, factorisation: report };
    if order == 0 || b.cols() == 0 {
        return Ok(report);
    }
    ctx.release(); // under a limit the tiles of the factorisation are in the way
    let system = SymmetricSystem::new(a, b)?;
    let x = Matrix::zeros(order, b.cols(), shape.full_bits())?;
    let ctx = ctx.holding(shape.held_bytes()).holding(shape.factorisation(ctx)?.table_bytes);
    let residual_bytes = shape.residual_bytes();
    let options = *options;
    let mut refinement = Refinement { ctx, factor, system, options, precision_bits, residual_bytes, planned_bytes, x };
    report.iterations = refinement.iterate(b)?;
    report.backward_error_log2 = refinement.finish(solution)?;
    report.seconds = start.elapsed().as_secs_f64();
    Ok(report)
}

struct Refinement<'a> {
    /// Holds all below, and the solution.
    ctx: Context,
    factor: Cholesky,
    system: SymmetricSystem<'a>,
    options: RefineOptions,
    precision_bits: u32,
    /// Most bytes of a residual, as the plan has it.
    residual_bytes: u64,
    /// Most bytes of the call, as the plan has it.
    planned_bytes: u64,
    x: Matrix,
}

impl Refinement<'_> {
    /// Corrects `x` until its backward error is at most `2^(-precision_bits - 1)`; returns the corrections made.
    fn iterate(&mut self, b: MatrixView<'_>) -> Result<usize> {
        let target = -i64::from(self.precision_bits) - 1;
        let full = self.precision_bits + REFINE_GUARD_BITS;
        let mut best = ResidualSizes { componentwise_log2: 0, normwise_log2: 0 };
        let (mut idle, mut residual) = (0, None::<Residual>);
        for iteration in 1..=self.options.max_iterations {
            let right = residual.as_ref().map_or(b, |residual| residual.matrix.view());
            let (bits, mut correction) = (self.options.factor_bits, Matrix::empty());
            // The first correction, without a residual, keeps to the plan of the others.
            let ctx = self.ctx.holding(self.residual_bytes);
            let planned_bytes = self.planned_bytes;
            ctx.within_plan(planned_bytes, |ctx| self.factor.solve_into(ctx, right, bits, &mut correction))?;
            drop(residual);
            self.add(&correction)?;
            drop(correction);
            // The residual to come is as small as this correction makes it; it must be known to the factor's bits.
            let known = best.componentwise_log2.min(0).unsigned_abs() + 2 * u64::from(self.options.factor_bits);
            let bits = u64::from(full).min(known + u64::from(REFINE_GUARD_BITS)) as u32;
            // Tables for more bits are made before windows are trimmed: under a limit the windows of the last step make
            // room.
            self.ctx.release();
            let next = self.ctx.within_plan(planned_bytes, |ctx| self.system.residual(ctx, &self.x, bits))?;
            let size = next.size;
            if size.componentwise_log2 <= target {
                return Ok(iteration);
            }
            let gains = size.componentwise_log2 < best.componentwise_log2 || size.normwise_log2 < best.normwise_log2;
            idle = if gains { 0 } else { idle + 1 };
            best.componentwise_log2 = best.componentwise_log2.min(size.componentwise_log2);
            best.normwise_log2 = best.normwise_log2.min(size.normwise_log2);
            if idle == IDLE_CORRECTIONS {
                return Err(self.stalled(iteration, best));
            }
            residual = Some(next);
        }
        Err(self.stalled(self.options.max_iterations, best))
    }

    fn stalled(&self, iterations: usize, best: ResidualSizes) -> Error {
        Error::RefinementStalls {
            iterations,
            reached_log2: best.componentwise_log2,
            wanted_log2: 1 - i64::from(self.precision_bits),
            factor_bits: self.options.factor_bits,
        }
    }

    /// `x := x + correction`, each entry rounded once.
    fn add(&mut self, correction: &Matrix) -> Result<()> {
        let precision_bits = self.x.precision_bits();
        each_column(&self.ctx, &mut self.x, Vec::new, |old: &mut Vec<u64>, mut column| {
            for row in 0..correction.rows() {
                let added = correction.get(row, column.index);
                if added.head.is_zero() {
                    continue;
                }
                let known = column.get(row);
                old.clear();
                old.extend_from_slice(known.limbs);
                let known = ExactEntry::from(FloatRef { limbs: old, ..known });
                column.set(row, |limbs| {
                    round_sum(&known, &ExactEntry::from(added), precision_bits, limbs).unwrap_or_else(|| {
                        // The exponents lie so far apart that the smaller number does not matter.
                        let larger = if known.top() > ExactEntry::from(added).top() { known } else { added.into() };
                        round_integer(larger.negative, larger.magnitude, larger.exponent, precision_bits, limbs)
                    })
                });
                check_exponent(column.get(row).head.exponent(), row, column.index)?;
            }
            Ok(())
        })
    }

    /// Rounds `x` into `solution` and measures it: the bound of its backward error.
    fn finish(self, solution: &mut Matrix) -> Result<i64> {
        let place = SolutionPlace { columns: 0..solution.cols(), transposed: false };
        store(&self.ctx, &self.x, &place, &mut *solution)?;
        let bits = self.precision_bits + REFINE_GUARD_BITS;
        self.ctx.release();
        let residual = self.system.residual(&self.ctx, solution, bits)?;
        Ok(residual.size.componentwise_log2)
    }
}
