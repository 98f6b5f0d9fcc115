//! Iterative refinement: solve with a cheap factor, measure what is left, correct.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound::{REFINE_GUARD_BITS, guard_bits, residual_bits};
use crate::math::float::{FloatRef, round_integer};
use crate::matrix::{Matrix, MatrixView, Symmetric, check_exponent};
use crate::ops::cholesky::{Cholesky, cholesky};
use crate::ops::columns::each_column;
use crate::ops::product::block::maximum_working_bits;
use crate::ops::product::sum::ExactEntry;
use crate::ops::product::sum::round_sum;
use crate::ops::solve::residual::{Residual, ResidualSizes, SymmetricSystem};
use crate::ops::solve::run::{SolutionPlace, store};
use crate::ops::solve::{RefineOptions, Refined};

/// Corrections in a row that may gain less than a bit.
const IDLE_CORRECTIONS: usize = 2;

/// Refuses a matrix that is not square, and right sides of another number of rows.
pub(super) fn check_shapes(a: &MatrixView<'_>, b: &MatrixView<'_>) -> Result<()> {
    if a.rows() == a.cols() && a.rows() == b.rows() {
        return Ok(());
    }
    Err(Error::shape_mismatch("solve", (a.rows(), a.cols()), (b.rows(), b.cols())))
}

/// See [`crate::solve_refined`]; of `a` the lower triangle is read.
///
/// # Errors
/// Those of [`crate::solve_refined`].
pub(super) fn refine(
    ctx: &Context,
    (a, b): (MatrixView<'_>, MatrixView<'_>),
    precision_bits: u32,
    options: &RefineOptions,
) -> Result<Refined> {
    check_shapes(&a, &b)?;
    let order = a.rows();
    let most = residual_bits(precision_bits.saturating_add(REFINE_GUARD_BITS)).saturating_add(guard_bits(order));
    let maximum = maximum_working_bits(ctx);
    if precision_bits < 2 || most > maximum {
        let maximum_bits = maximum.saturating_sub(residual_bits(REFINE_GUARD_BITS) + guard_bits(order));
        return Err(Error::precision(precision_bits, maximum_bits));
    }
    let factor = cholesky(ctx, Symmetric::lower(a), options.factor_bits)?;
    let solution = Matrix::zeros(order, b.cols(), precision_bits)?;
    if order == 0 || b.cols() == 0 {
        return Ok(Refined { solution, iterations: 0, backward_error_log2: i64::MIN });
    }
    let system = SymmetricSystem::new(a, b)?;
    let x = Matrix::zeros(order, b.cols(), precision_bits + REFINE_GUARD_BITS)?;
    let held_bytes = system.bytes() + solution.bytes() + factor.factor().bytes() + 2 * x.bytes();
    let mut refinement = Refinement { ctx, factor, system, options: *options, precision_bits, held_bytes, x };
    let iterations = refinement.iterate(b)?;
    refinement.finish(solution, iterations)
}

struct Refinement<'a> {
    ctx: &'a Context,
    factor: Cholesky,
    system: SymmetricSystem<'a>,
    options: RefineOptions,
    precision_bits: u32,
    held_bytes: u64,
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
            let correction = self.factor.solve_beside(self.ctx, right, self.options.factor_bits, self.held_bytes)?;
            drop(residual);
            self.add(&correction)?;
            // The residual to come is as small as this correction makes it; it must be known to the factor's bits.
            let known = best.componentwise_log2.min(0).unsigned_abs() + 2 * u64::from(self.options.factor_bits);
            let bits = u64::from(full).min(known + u64::from(REFINE_GUARD_BITS)) as u32;
            let next = self.system.residual(self.ctx, &self.x, (bits, self.held_bytes))?;
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
        each_column(self.ctx, &mut self.x, Vec::new, |old: &mut Vec<u64>, mut column| {
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
                        // So far apart that the smaller one does not matter.
                        let larger = if known.top() > ExactEntry::from(added).top() { known } else { added.into() };
                        round_integer(larger.negative, larger.magnitude, larger.exponent, precision_bits, limbs)
                    })
                });
                check_exponent(column.get(row).head.exponent(), row, column.index)?;
            }
            Ok(())
        })
    }

    /// Rounds `x` into `solution` and measures it.
    fn finish(self, mut solution: Matrix, iterations: usize) -> Result<Refined> {
        let place = SolutionPlace { columns: 0..solution.cols(), transposed: false };
        store(self.ctx, &self.x, &place, &mut solution)?;
        let bits = self.precision_bits + REFINE_GUARD_BITS;
        let residual = self.system.residual(self.ctx, &solution, (bits, self.held_bytes))?;
        let backward_error_log2 = residual.size.componentwise_log2;
        Ok(Refined { solution, iterations, backward_error_log2 })
    }
}
