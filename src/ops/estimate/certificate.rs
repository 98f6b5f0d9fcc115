//! Proven bounds of the errors of answers.
//!
//! `A - s D^2` with a Cholesky factor shows that no eigenvalue of `D^-1 A D^-1` is below about `s`; the inverse times a
//! residual is then bounded, and a correction by the factor, whose own residual is known, makes the bound sharp. Proof:
//! docs/CHECKS.md, "Correct digits".

use super::bounds::Upper;
use super::proven::Proven;
use super::{ESTIMATE_BITS, correct_digits, power};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound::ceil_log2;
use crate::math::pivot::diagonal_exponent;
use crate::matrix::{Matrix, MatrixView, Symmetric};
use crate::ops::cholesky::{Cholesky, CholeskyOptions, cholesky_with, log_det_of};
use crate::ops::input_rounding::InputRounding;
use crate::ops::product::problem::Accuracy;
use crate::ops::shift::shifted_lower;
use rug::Float;
use rug::float::Round;

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

    /// A lower bound of the correct digits of [`Cholesky::log_det`]: `-log10` of a bound of its relative error. It may
    /// be 0 if the determinant is near 1; then [`Certificate::log_det_error`] is more informative.
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
