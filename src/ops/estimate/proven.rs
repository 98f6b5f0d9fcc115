//! Proven bounds of the errors of answers.
//!
//! `A - s D^2` with a Cholesky factor shows that no eigenvalue of `D^-1 A D^-1` is below about `s`. The inverse times a
//! residual is then bounded by the least eigenvalue, and a correction by a factor, whose own residual is known, makes
//! the bound sharp; for solutions it does not matter what kind of factor that is.
//! Proof: docs/CHECKS.md, "Correct digits".

use super::{ESTIMATE_BITS, Upper, all_digits, correct_digits, magnitude, power, spread_bits};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound::{EXPECTED_SPREAD_BITS, ceil_log2, guard_bits};
use crate::math::float::FloatRef;
use crate::math::pivot::diagonal_exponent;
use crate::matrix::{Matrix, MatrixView, Symmetric};
use crate::ops::cholesky::{Cholesky, CholeskyOptions, cholesky_with, log_det_of};
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

/// Number of shifts that are tried, each a sixteenth of the previous one.
const TRIES: i64 = 4;

/// Bits of the factorisation that proves, beyond those of the condition.
const PROOF_BITS: i64 = 6;

/// Fewest bits of the factorisation that proves.
const LEAST_PROOF_BITS: i64 = 32;

/// Bits of the second factorisation for a logarithm, beyond those that make its bound as small as the error to be
/// bounded.
const LOG_DET_BITS: i64 = 8;

/// A positive definite matrix, its factor, and a lower bound of the eigenvalues of the scaled matrix, from which error
/// bounds are proven. Made by [`Cholesky::certify`].
#[derive(Clone, Debug)]
pub struct Certificate<'a> {
    factor: &'a Cholesky,
    proven: Proven<'a>,
}

impl Cholesky {
    /// Proves a lower bound of the eigenvalues of the factored matrix `A`, scaled to a diagonal of at most 1; the
    /// resulting [`Certificate`] proves how many digits of a solution, an inverse or a determinant are correct.
    ///
    /// `None` if no proof is found: the condition requires more bits than the kernel has, or the estimate of the
    /// condition is wrong by more than a factor of a thousand. Cost: that of [`Cholesky::scaled_condition`], a copy of
    /// the lower triangle and a factorisation with some tens of bits more than the scaled condition. Source: S. M.
    /// Rump, *Verification of positive definiteness*, BIT 46 (2006); docs/CHECKS.md, "Correct digits".
    ///
    /// ```
    /// use sunzi::{Context, Matrix};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 1.0, 2.0])?;
    /// let b = Matrix::from_f64s(2, 1, 128, &[1.0, 0.0])?; // X is (2/3, -1/3)
    /// let factor = sunzi::cholesky(&ctx, &a, 128)?;
    /// let x = factor.solve(&ctx, &b, 128)?;
    /// let certificate = factor.certify(&ctx, &a)?.expect("the condition is small");
    /// assert!(certificate.solution_digits(&ctx, &b, &x)? > 35.0); // proven
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`], [`Error::NotSymmetric`]; the errors of [`crate::cholesky_with`] except
    /// [`Error::NotPositiveDefinite`].
    pub fn certify<'a>(&'a self, ctx: &Context, a: impl Into<Symmetric<'a>>) -> Result<Option<Certificate<'a>>> {
        self.certify_with(ctx, a, InputRounding::new())
    }

    /// [`Cholesky::certify`] if `a` and the right-hand sides may have been rounded: the proof holds for every matrix
    /// within the rounding of `a`, and so for the matrix before rounding.
    ///
    /// `None` also if the rounding is as large as the least eigenvalue.
    ///
    /// ```
    /// use sunzi::{Context, Matrix, estimate::InputRounding};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 1.0, 2.0])?; // known to 64 bits only
    /// let b = Matrix::from_f64s(2, 1, 128, &[1.0, 0.0])?;
    /// let factor = sunzi::cholesky(&ctx, &a, 128)?;
    /// let x = factor.solve(&ctx, &b, 128)?;
    /// let rounding = InputRounding::new().matrix_bits(64);
    /// let certificate = factor.certify_with(&ctx, &a, rounding)?.expect("the condition is small");
    /// let digits = certificate.solution_digits(&ctx, &b, &x)?;
    /// assert!(digits > 17.0 && digits < 20.0);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cholesky::certify`].
    pub fn certify_with<'a>(
        &'a self,
        ctx: &Context,
        a: impl Into<Symmetric<'a>>,
        rounding: InputRounding,
    ) -> Result<Option<Certificate<'a>>> {
        self.scaled_doubles.heed_limit(ctx);
        let lower = a.into().lower_view("certify")?;
        let order = lower.rows();
        self.check_order("certify", order)?;
        let exponents: Vec<i64> = (0..order).map(|i| diagonal_exponent(lower.get(i, i).head.exponent())).collect();
        let least = self.scaled_inverse_norm(ctx)?.norm.get_exp().map_or(0, i64::from).max(0);
        for attempt in 0..TRIES {
            // No eigenvalue is expected below 2^-shift.
            let shift = least + 4 * attempt;
            let bits = (shift + i64::from(ceil_log2(order)) + PROOF_BITS).max(LEAST_PROOF_BITS);
            let Ok(bits) = u32::try_from(bits) else { return Ok(None) };
            match proves(ctx, lower, &exponents, shift, bits) {
                Ok(true) => {
                    let (order, shifted) = (Float::with_val(ESTIMATE_BITS, order), power(-shift));
                    let lost = Upper(order).times(&power(2 - i64::from(bits)));
                    let eigenvalue = Float::with_val_round(ESTIMATE_BITS, &shifted - &lost.0, Round::Down).0;
                    let proven = Proven::new(self, lower, exponents, &eigenvalue, rounding);
                    return Ok(proven.map(|proven| Certificate { factor: self, proven }));
                }
                Ok(false) => {}
                Err(Error::Precision { .. }) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// The options for the factors of a proof, which needs only bounds by norms.
fn by_norms() -> CholeskyOptions {
    CholeskyOptions::new().accuracy(Accuracy::Norm)
}

/// Whether `A - 2^-shift D^2` has a Cholesky factor at `bits` bits.
fn proves(ctx: &Context, lower: MatrixView<'_>, exponents: &[i64], shift: i64, bits: u32) -> Result<bool> {
    let copy_bits = lower.precision_bits().max(bits);
    let copy_bytes = Matrix::bytes_for(lower.rows(), lower.rows(), copy_bits);
    ctx.admit(copy_bytes)?;
    let shifted = shifted_lower(lower, copy_bits, |row, entry| {
        let part = power(2 * exponents[row] - shift);
        Float::with_val_round(copy_bits, entry - &part, Round::Down).0
    })?;
    match cholesky_with(&ctx.holding(copy_bytes), Symmetric::lower(&shifted), bits, &by_norms()) {
        Ok(_) => Ok(true),
        Err(Error::NotPositiveDefinite { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

impl Certificate<'_> {
    /// A lower bound of the eigenvalues of the matrix, scaled by powers of two to a diagonal of at least 1/4 and below
    /// 1.
    pub fn scaled_eigenvalue(&self) -> &Float {
        &self.proven.eigenvalue
    }

    /// A lower bound of the correct digits of [`Cholesky::log_det`]: `-log10` of a bound of its relative error. The
    /// bound may be 0 if the determinant is near 1; then [`Certificate::log_det_error`] is more informative.
    ///
    /// Cost: as [`Certificate::log_det_error`].
    ///
    /// # Errors
    /// The errors of [`crate::cholesky_with`].
    pub fn log_det_digits(&self, ctx: &Context) -> Result<f64> {
        let bits = self.factor.factor().precision_bits();
        let size = Float::with_val_round(ESTIMATE_BITS, self.factor.log_det().abs(), Round::Down).0;
        Ok(self.log_det_error(ctx)?.map_or(0.0, |error| correct_digits(&error, &size, bits)))
    }

    /// A proven bound of the absolute error of [`Cholesky::log_det`]; `None` if none is found.
    ///
    /// Cost: a factorisation with more bits than the factor has: usually some tens, at most the bits that the condition
    /// requires.
    ///
    /// ```
    /// use sunzi::{Context, Matrix};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 1.0, 2.0])?;
    /// let factor = sunzi::cholesky(&ctx, &a, 128)?;
    /// let certificate = factor.certify(&ctx, &a)?.expect("the condition is small");
    /// assert!(certificate.log_det_error(&ctx)?.expect("a bound") < 1e-35);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`crate::cholesky_with`].
    pub fn log_det_error(&self, ctx: &Context) -> Result<Option<Float>> {
        let order = self.proven.lower.rows();
        let bits = self.factor.factor().precision_bits();
        let better_bits = self.better_bits(ctx)?;
        let beside = ctx.holding(self.factor.factor().bytes());
        let made = cholesky_with(&beside, Symmetric::lower(self.proven.lower), better_bits, &by_norms());
        let better = match made {
            Ok(outcome) => outcome.result,
            Err(Error::Precision { .. } | Error::NotPositiveDefinite { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let count = Float::with_val(ESTIMATE_BITS, order);
        // `phi` bounds the eigenvalues of (L L^T)^-1 E.
        let residual = Upper(count.clone()).times(&power(2 - i64::from(better_bits)));
        let mut left = self.proven.eigenvalue.clone();
        left = Float::with_val_round(ESTIMATE_BITS, &left - &residual.0, Round::Down).0;
        if left <= 0 {
            return Ok(None);
        }
        let phi = residual.over(&left);
        if phi.0 >= 0.5 {
            return Ok(None);
        }
        // The same for the matrix that was rounded: `A^-1 dA`.
        let input = Upper(count.clone()).times(&self.proven.rounding.units()[0]).over(&self.proven.eigenvalue);
        if input.0 >= 0.5 {
            return Ok(None);
        }
        let truncation = phi.add(&input.0).times(&count).times(&power(1));
        // Sizes of the logarithms, from exponents: |ln l| <= |e| + 1 for l in [2^(e-1), 2^e).
        let sizes = (0..order).map(|i| better.factor().get(i, i).head.exponent().unsigned_abs() + 1).sum::<u64>();
        let sizes = Upper(Float::with_val_round(ESTIMATE_BITS, sizes, Round::Up).0);
        let summing = sizes.clone().times(&(count + 2u32)).times(&power(1 - i64::from(better_bits) - 32));
        let rounding = sizes.times(&power(1 - i64::from(better_bits)));
        let own = self.factor.log_det();
        let exact_bits = bits + better_bits + 64;
        let difference = Float::with_val(exact_bits, &own - &log_det_of(better.factor(), better_bits)).abs();
        let difference = Float::with_val_round(ESTIMATE_BITS, &difference, Round::Up).0;
        Ok(Some(truncation.add(&summing.0).add(&rounding.0).add(&difference).0))
    }

    /// Bits of a factorisation whose proven bound is small relative to the expected error of the logarithm.
    fn better_bits(&self, ctx: &Context) -> Result<u32> {
        let bits = self.factor.factor().precision_bits();
        let spread = self.factor.log_det_spread(ctx)?.get_exp().map_or(0, i64::from);
        let unit =
            i64::from(self.proven.condition_bits()) + 2 * i64::from(ceil_log2(self.proven.lower.rows())) + LOG_DET_BITS;
        let most = i64::from(bits) + unit;
        Ok((unit - spread).clamp(i64::from(bits) + LOG_DET_BITS, most.max(i64::from(bits) + LOG_DET_BITS)) as u32)
    }

    /// A lower bound of the correct digits of each column of a solution `X` of `A X = B`, in the maximum norm: `-log10`
    /// of a bound of the relative error of the worst column.
    ///
    /// Shapes: `b` and `x` are `n x m`; `x` may come from any solve. Cost: two products with `A` and a solve, for all
    /// columns together.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; the errors of [`crate::symm_with`] and [`crate::trsm()`].
    pub fn solution_digits<'b, 'x>(
        &self,
        ctx: &Context,
        b: impl Into<MatrixView<'b>>,
        x: impl Into<MatrixView<'x>>,
    ) -> Result<f64> {
        let (b, x) = (b.into(), x.into());
        let order = self.proven.lower.rows();
        self.factor.check_order("solution_digits", order)?;
        self.factor.check_solution("solution_digits", &b, &x)?;
        self.proven.solution_digits(ctx, b, x)
    }

    /// A lower bound of the correct digits of an inverse: `-log10` of a bound of its relative error in the maximum
    /// norm.
    ///
    /// Shapes: `inverse` is `n x n`. Cost: as [`Certificate::solution_digits`] for `n` columns.
    ///
    /// # Errors
    /// As [`Certificate::solution_digits`].
    pub fn inverse_digits<'x>(&self, ctx: &Context, inverse: impl Into<MatrixView<'x>>) -> Result<f64> {
        let (order, x) = (self.proven.lower.rows(), inverse.into());
        self.factor.check_order("inverse_digits", order)?;
        self.factor.check_inverse("inverse_digits", &x)?;
        self.proven.inverse_digits(ctx, x)
    }
}

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
    /// A positive lower bound of the magnitudes of the eigenvalues of the scaled matrix.
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

/// The lower triangle of `matrix` at `precision_bits`, at least its own, where `diagonal(i, a_ii)` stands for the
/// diagonal entry `i`; entries above the diagonal are 0.
///
/// # Errors
/// [`crate::Error::OutOfMemory`]; [`crate::Error::ExponentRange`] for a diagonal entry out of range.
pub(crate) fn shifted_lower(
    matrix: MatrixView<'_>,
    precision_bits: u32,
    diagonal: impl Fn(usize, &Float) -> Float,
) -> Result<Matrix> {
    let order = matrix.rows();
    let mut shifted = Matrix::zeros(order, order, precision_bits)?;
    let width = shifted.limbs_per_element();
    let mut limbs = vec![0; width];
    for (row, col) in (0..order).flat_map(|col| (col + 1..order).map(move |row| (row, col))) {
        let entry = matrix.get(row, col);
        let (low, high) = limbs.split_at_mut(width - entry.limbs.len());
        low.fill(0);
        high.copy_from_slice(entry.limbs);
        shifted.set(row, col, FloatRef { head: entry.head, limbs: &limbs });
    }
    for at in 0..order {
        let entry = matrix.get(at, at).to_float(matrix.precision_bits());
        shifted.set_float(at, at, &diagonal(at, &entry))?;
    }
    Ok(shifted)
}
