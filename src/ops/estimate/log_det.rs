//! The correct digits of `log det A`, estimated.
//!
//! The factorisation rounds each entry of the factor once in fixed point, so it factors `A - E` where
//! `e_ij = l_jj r_ij` for `i >= j`, and the `r_ij` are independent and uniform in `+-2^(s_i - w - 1)`. The logarithm is
//! off by `tr(A^-1 E)`, whose variance is at most `2^(-2w) / 3` times the sum of the squares of `D A^-1 diag(l)`: that
//! sum is the mean of `||D A^-1 (l z)||^2` over random signs `z`.

use super::doubles::double;
use super::rough::{Rough, Vector};
use super::{ESTIMATE_BITS, correct_digits, power};
use crate::context::Context;
use crate::error::Result;
use crate::ops::cholesky::Cholesky;
use crate::ops::input_rounding::InputRounding;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rug::Float;

/// Number of random vectors; the ratio of the error to the estimate from six of them has Student's distribution with
/// six degrees of freedom where one eigenvalue outweighs all others.
const PROBES: usize = 6;

/// Factor of the standard deviation: Student's distribution with six degrees of freedom exceeds it once in 2,000 times.
const MARGIN: f64 = 6.7;

impl Cholesky {
    /// Approximate number of correct digits of [`Cholesky::log_det`], `-log10` of its relative error. The estimate is
    /// usually about one digit too low; it is too high in less than one of a thousand cases.
    ///
    /// It includes the rounding errors of the factorisation and of the logarithms; the factored matrix is taken as
    /// exact. 0 if no digit is known to be correct. Cost: that of [`Cholesky::scaled_condition`], once, and six solves
    /// with equally few bits.
    ///
    /// ```
    /// use sunzi::{Context, Matrix};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 1.0, 2.0])?;
    /// let factor = sunzi::cholesky(&ctx, &a, 128)?;
    /// assert!(factor.log_det_digits(&ctx)? > 35.0);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`crate::trsm()`].
    pub fn log_det_digits(&self, ctx: &Context) -> Result<f64> {
        self.log_det_digits_with(ctx, InputRounding::new())
    }

    /// [`Cholesky::log_det_digits`], if the matrix may have been rounded.
    ///
    /// # Errors
    /// As [`Cholesky::log_det_digits`].
    pub fn log_det_digits_with(&self, ctx: &Context, rounding: InputRounding) -> Result<f64> {
        let bits = self.factor().precision_bits();
        let size = Float::with_val(ESTIMATE_BITS, self.log_det().abs_ref());
        let error = self.log_det_error(ctx, rounding)?;
        Ok(error.map_or(0.0, |error| correct_digits(&error, &size, bits)))
    }

    /// An estimate of the error of [`Cholesky::log_det`], usually about ten times the true error; `None` if nothing is
    /// known. For a matrix of determinant near 1 it is more informative than the number of correct digits, since a
    /// logarithm near 0 has none.
    ///
    /// # Errors
    /// As [`Cholesky::log_det_digits`].
    pub fn log_det_error(&self, ctx: &Context, rounding: InputRounding) -> Result<Option<Float>> {
        let spread = self.input_spread(ctx, rounding)? + self.log_det_spread(ctx)?;
        if spread > 1 {
            return Ok(None);
        }
        // Of the factor's own rounding only that of the diagonal counts.
        let bits = self.factor().precision_bits();
        let size = Float::with_val(ESTIMATE_BITS, self.log_det().abs_ref());
        let order = Float::with_val(ESTIMATE_BITS, self.factor().rows());
        Ok(Some(spread + order.sqrt() * power(1 - i64::from(bits)) + size * power(-i64::from(bits))))
    }

    /// Usual upper bound of the change of `log det A` by the rounding of the matrix.
    ///
    /// `tr(A^-1 dA)` with `|da_ij| <= 2^-bits d_i d_j`, independent but for the symmetry: the sum of the squares of
    /// `D A^-1 D` is the mean of `||D A^-1 D z||^2` over random signs.
    fn input_spread(&self, ctx: &Context, rounding: InputRounding) -> Result<Float> {
        if rounding.matrix_bits.is_none() {
            return Ok(Float::new(ESTIMATE_BITS));
        }
        let rough = Rough::for_condition(self, ctx)?;
        let mut rng = ChaCha8Rng::seed_from_u64(0x5eed_de7f);
        let sign = |rng: &mut ChaCha8Rng| if rng.next_u32() & 1 == 1 { 1.0 } else { -1.0 };
        let column = |rng: &mut ChaCha8Rng| (0..rough.exponents.len()).map(|_| sign(rng)).collect();
        let columns: Vec<Vec<f64>> = (0..PROBES).map(|_| column(&mut rng)).collect();
        let sum = sum_of_squares(&rough.scaled_images(&columns)?);
        Ok((sum * 2u32 / (3 * PROBES) as u32).sqrt() * &rounding.units()[0] * MARGIN)
    }

    /// Usual upper bound of the error of `log det A`.
    pub(super) fn log_det_spread(&self, ctx: &Context) -> Result<&Float> {
        loop {
            if let Some(found) = self.log_det_spread.get() {
                return Ok(found);
            }
            let found = self.find_log_det_spread(ctx)?;
            self.log_det_spread.get_or_init(|| found);
        }
    }

    fn find_log_det_spread(&self, ctx: &Context) -> Result<Float> {
        let rough = Rough::for_condition(self, ctx)?;
        let mut rng = ChaCha8Rng::seed_from_u64(0x5eed_de7e);
        let mut columns = vec![Vec::new(); PROBES];
        for (row, &exponent) in rough.exponents.iter().enumerate() {
            let entry = double(self.factor().get(row, row), exponent);
            let signs = rng.next_u32();
            for (probe, column) in columns.iter_mut().enumerate() {
                column.push(if signs >> probe & 1 == 1 { -entry } else { entry });
            }
        }
        let found = rough.scaled_images(&columns)?;
        let sum = sum_of_squares(&found);
        // For a factor made elsewhere the bits of the factorisation are unknown: its own bits count.
        let working_bits = self.working_bits.unwrap_or(self.factor().precision_bits());
        let deviation = (sum / (3 * PROBES) as u32).sqrt() * power(-i64::from(working_bits));
        Ok(deviation * MARGIN)
    }
}

/// The sum of the squares of all entries.
fn sum_of_squares(images: &[Vector]) -> Float {
    images.iter().fold(Float::new(ESTIMATE_BITS), |sum, image| {
        let squares: f64 = image.values.iter().map(|value| value * value).sum();
        sum + Float::with_val(ESTIMATE_BITS, squares) * power(2 * image.exponent)
    })
}
