//! Proven bounds of the errors of solutions, of a symmetric matrix whose eigenvalues are known not to be near 0.
//!
//! The inverse times a residual is bounded by the least eigenvalue, and a correction by a factor, whose own residual is
//! known, makes the bound sharp. Independent of: how eigenvalues are bounded, what kind of factor there is. Proof:
//! docs/CHECKS.md, "Correct digits".

use super::bounds::{Upper, magnitude, spread_bits};
use super::{ESTIMATE_BITS, all_digits, correct_digits, power};
use crate::context::Context;
use crate::error::Result;
use crate::math::bound::{EXPECTED_SPREAD_BITS, guard_bits};
use crate::matrix::{Matrix, MatrixView, Symmetric};
use crate::ops::cholesky::Cholesky;
use crate::ops::input_rounding::InputRounding;
use crate::ops::product::block::preferred_working_bits;
use crate::ops::product::problem::Accuracy;
use crate::ops::symm::{SymmOptions, symm_with};
use rug::Float;
use rug::float::Round;

/// Bits of residuals beyond those that the condition and the scaling take.
const SPARE_BITS: u32 = 24;

/// Corrections, at most: each gains as many bits as the factor has beyond the condition.
const MOST_CORRECTIONS: usize = 12;

/// An approximate solver.
pub(crate) trait Solver: std::fmt::Debug + Sync {
    /// Bits of the factor.
    fn precision_bits(&self) -> u32;

    /// About `A^-1 B`.
    ///
    /// # Errors
    /// The errors of the solve.
    fn solve_nearly(&self, ctx: &Context, b: &Matrix, precision_bits: u32) -> Result<Matrix>;
}

impl Solver for Cholesky {
    fn precision_bits(&self) -> u32 {
        self.factor().precision_bits()
    }

    fn solve_nearly(&self, ctx: &Context, b: &Matrix, precision_bits: u32) -> Result<Matrix> {
        self.solve(ctx, b, precision_bits)
    }
}

/// A symmetric matrix `A` and diagonal powers of two `D` such that `|a_ij| < d_i d_j`, and no eigenvalue of
/// `D^-1 A D^-1` lies nearer to 0 than a bound; the same of each matrix within the rounding of the input.
#[derive(Clone, Debug)]
pub(crate) struct Proven<'a> {
    pub solver: &'a dyn Solver,
    pub lower: MatrixView<'a>,
    /// `d_i = 2^exponents[i]`.
    pub exponents: Vec<i64>,
    /// No eigenvalue of the scaled matrix is nearer to 0; positive.
    pub eigenvalue: Float,
    pub rounding: InputRounding,
}

/// Bounds of a column.
struct ColumnBound {
    /// An upper bound of its error.
    error: Float,
    /// The part of it that the corrections have.
    known: Float,
    /// A lower bound of the size of the answer.
    size: Float,
}

impl<'a> Proven<'a> {
    /// The bounds where no eigenvalue of the scaled matrix, as it was read, lies nearer to 0 than `eigenvalue`; `None`
    /// where the rounding of the input is as large.
    pub fn new(
        solver: &'a dyn Solver,
        lower: MatrixView<'a>,
        exponents: Vec<i64>,
        eigenvalue: &Float,
        rounding: InputRounding,
    ) -> Option<Proven<'a>> {
        let order = Float::with_val(ESTIMATE_BITS, lower.rows());
        let lost = Upper(order).times(&rounding.units()[0]);
        let eigenvalue = Float::with_val_round(ESTIMATE_BITS, eigenvalue - &lost.0, Round::Down).0;
        (eigenvalue > 0).then_some(Proven { solver, lower, exponents, eigenvalue, rounding })
    }

    /// `-log2` of the bound of the eigenvalues, rounded up.
    pub fn condition_bits(&self) -> u32 {
        self.eigenvalue.get_exp().map_or(0, |exponent| 1 - exponent).max(0) as u32
    }

    /// A lower bound of the correct digits of each column of a solution.
    pub fn solution_digits(&self, ctx: &Context, b: MatrixView<'_>, x: MatrixView<'_>) -> Result<f64> {
        let columns = self.bounds(ctx, b, x)?;
        let digits = columns.iter().map(|column| correct_digits(&column.error, &column.size, x.precision_bits()));
        Ok(digits.fold(all_digits(x.precision_bits()), f64::min))
    }

    /// A lower bound of the correct digits of an inverse.
    pub fn inverse_digits(&self, ctx: &Context, x: MatrixView<'_>) -> Result<f64> {
        let unit = Matrix::identity(self.lower.rows(), 2)?;
        let exact_right = Proven { rounding: InputRounding { right_bits: None, ..self.rounding }, ..self.clone() };
        let columns = exact_right.bounds(ctx, unit.view(), x)?;
        let most = |part: fn(&ColumnBound) -> &Float| {
            columns.iter().fold(Float::new(ESTIMATE_BITS), |most, column| most.max(part(column)))
        };
        Ok(correct_digits(&most(|column| &column.error), &most(|column| &column.size), x.precision_bits()))
    }

    fn bounds(&self, ctx: &Context, b: MatrixView<'_>, x: MatrixView<'_>) -> Result<Vec<ColumnBound>> {
        let (order, cols) = (x.rows(), x.cols());
        if order == 0 || cols == 0 {
            return Ok(Vec::new());
        }
        let factor_bits = self.solver.precision_bits();
        let guard = guard_bits(order) + 1;
        let lost_bits =
            self.condition_bits().saturating_add(spread_bits(&self.exponents, x)).saturating_add(SPARE_BITS);
        // A condition that takes more than a kernel has leaves fewer digits proven, whichever kernel it is.
        let least_bits = x.precision_bits().saturating_add(lost_bits.min(EXPECTED_SPREAD_BITS));
        let reach = preferred_working_bits(ctx, least_bits.saturating_add(guard)).saturating_sub(guard);
        let bits = x.precision_bits().saturating_add(lost_bits).min(reach);
        let rest_bits = lost_bits.max(64).min(reach);
        let residual = self.residual(ctx, b, x, bits)?;
        let mut correction =
            self.solver.solve_nearly(&ctx.holding(residual.bytes()), &residual, factor_bits.min(rest_bits))?;
        let mut best = Vec::new();
        for _ in 0..MOST_CORRECTIONS {
            let held = ctx.holding(residual.bytes()).holding(correction.bytes());
            let rest = self.residual(&held, residual.view(), correction.view(), rest_bits)?;
            let call = Bounding { proven: self, b, x, residual: &residual, correction: &correction, rest: &rest };
            let columns: Vec<ColumnBound> = (0..cols).map(|col| call.column(col, [bits, rest_bits])).collect();
            let is_better = best.is_empty() || columns.iter().zip(&best).any(|(own, other)| own.is_half(other));
            let is_sharp = columns.iter().all(ColumnBound::is_sharp);
            if is_better {
                best = columns;
            }
            if is_sharp || !is_better {
                break;
            }
            let more = self.solver.solve_nearly(&held.holding(rest.bytes()), &rest, factor_bits.min(rest_bits))?;
            drop(rest);
            correction = correction.add(&more, rest_bits)?;
        }
        Ok(best)
    }

    /// `B - A X`, each entry accurate relative to its own terms.
    fn residual(&self, ctx: &Context, b: MatrixView<'_>, x: MatrixView<'_>, bits: u32) -> Result<Matrix> {
        let minus = Float::with_val(2, -1);
        let options = SymmOptions::new().alpha(&minus).accumulate(b).accuracy(Accuracy::Entrywise);
        Ok(symm_with(ctx, Symmetric::lower(self.lower), x, bits, &options)?.result)
    }
}

/// The data for the bounds of columns.
struct Bounding<'a> {
    proven: &'a Proven<'a>,
    b: MatrixView<'a>,
    x: MatrixView<'a>,
    /// `B - A X`, to some bits.
    residual: &'a Matrix,
    /// The correction of the residual by the factor.
    correction: &'a Matrix,
    /// The residual after the correction, to some bits.
    rest: &'a Matrix,
}

impl Bounding<'_> {
    /// The bound of a column, where the residual and the rest have these bits relative to their terms.
    fn column(&self, col: usize, bits: [u32; 2]) -> ColumnBound {
        let Proven { exponents, eigenvalue, rounding, .. } = self.proven;
        let [own, rest_own] = bits.map(|bits| power(1 - i64::from(bits)));
        // The error of a product, and of a right side, relative to its terms: its own rounding and that of the input.
        let [matrix_unit, right_unit] = rounding.units();
        let own_product = Upper(own.clone()).add(&matrix_unit).0;
        let own_right = Upper(own).add(&right_unit).0;
        let rest_product = Upper(rest_own.clone()).add(&matrix_unit).0;
        let size = |matrix: MatrixView<'_>, row: usize| magnitude(matrix.get(row, col));
        let scaled_sum = |matrix: MatrixView<'_>| {
            let terms = exponents.iter().enumerate().map(|(row, &exponent)| size(matrix, row) * power(exponent));
            terms.fold(Upper::zero(), |sum, term| sum.add(&term))
        };
        let [solution, change] = [self.x, self.correction.view()].map(scaled_sum);
        let mut squares = Upper::zero();
        for (row, &exponent) in exponents.iter().enumerate() {
            let scaled = |matrix: MatrixView<'_>| Upper(size(matrix, row) * power(-exponent));
            let first = scaled(self.b).times(&own_right).add(&solution.clone().times(&own_product).0);
            let second = scaled(self.residual.view()).times(&rest_own).add(&change.clone().times(&rest_product).0);
            let all = scaled(self.rest.view()).add(&first.0).add(&second.0);
            squares = squares.add(&all.clone().times(&all.0).0);
        }
        let spread = squares.root().over(eigenvalue);
        let mut bound = ColumnBound {
            error: Float::new(ESTIMATE_BITS),
            known: Float::new(ESTIMATE_BITS),
            size: Float::new(ESTIMATE_BITS),
        };
        for (row, &exponent) in exponents.iter().enumerate() {
            let known = size(self.correction.view(), row);
            bound.error.max_mut(&Upper(Float::with_val(ESTIMATE_BITS, &spread.0) * power(-exponent)).add(&known).0);
            bound.known.max_mut(&known);
            let entry = self.x.get(row, col).to_float(self.x.precision_bits()).abs();
            bound.size.max_mut(&Float::with_val_round(ESTIMATE_BITS, &entry, Round::Down).0);
        }
        bound
    }
}

impl ColumnBound {
    /// Whether more corrections would not help much.
    fn is_sharp(&self) -> bool {
        self.error <= Float::with_val(ESTIMATE_BITS, &self.known * 1.125)
    }

    /// Whether this bound is at most half of the other.
    fn is_half(&self, other: &ColumnBound) -> bool {
        self.error <= Float::with_val(ESTIMATE_BITS, &other.error >> 1)
    }
}
