//! The condition of a factored matrix, as it is and scaled to a diagonal of about 1, estimated by a few solves.

use super::rough::{DOUBLES_LOG2, Rough};
use super::{ESTIMATE_BITS, power};
use crate::context::Context;
use crate::error::Result;
use crate::matrix::Matrix;
use crate::ops::cholesky::{Cholesky, ScaledInverseNorm};
use rug::Float;

/// Bits of right sides.
const RIGHT_BITS: u32 = 53;

/// Most steps of the ascent; two are enough nearly always.
const STEPS: usize = 5;

/// Fewest bits of solves that are not in doubles.
const FIRST_BITS: u32 = 64;

/// Bits that an estimate takes beyond those that its solves lose.
const SPARE_BITS: f64 = 24.0;

impl Cholesky {
    /// A lower bound, rarely off by more than a factor of 3, of the condition `||A||_1 ||A^-1||_1` of the factored
    /// matrix, whose 1-norm is `one_norm` (see [`Matrix::one_norm`]); 53 bits. 0 for an empty matrix.
    ///
    /// Deterministic. Cost: at most eleven solves with one right side, at the factor's precision; found once and kept.
    /// How many digits are lost is told by [`Cholesky::scaled_condition`].
    /// Source: N. J. Higham, *FORTRAN codes for estimating the one-norm of a real or complex matrix*, ACM TOMS 14
    /// (1988), algorithm 4.1.
    ///
    /// # Errors
    /// As [`crate::trsm()`].
    pub fn condition_estimate(&self, ctx: &Context, one_norm: &Float) -> Result<Float> {
        if self.inverse_norm.get().is_none() {
            let bits = self.factor().precision_bits();
            let order = self.factor().rows();
            let norm = inverse_norm(order, |x| {
                let b = Matrix::from_floats(order, 1, RIGHT_BITS, x)?;
                Ok(self.solve(ctx, &b, bits)?.view().to_floats())
            })?;
            self.inverse_norm.get_or_init(|| norm);
        }
        let norm = self.inverse_norm.get().map_or_else(|| Float::new(RIGHT_BITS), Float::clone);
        Ok(Float::with_val(RIGHT_BITS, norm * one_norm))
    }

    /// A lower bound, rarely off by more than a factor of 3, of `||(D^-1 A D^-1)^-1||_1`, where the powers of two `D`
    /// scale the diagonal of `A = L L^T` to between 1/25 and 1; 53 bits. 0 for an empty matrix.
    ///
    /// Its logarithm to base 2 is about the number of bits that solves with this factor lose, however the rows of `A`
    /// are scaled: the error of a solution is about `2^-b` times this number. The condition in the 1-norm, as of
    /// [`Cholesky::condition_estimate`], may be larger by any factor.
    /// Deterministic. Cost: at most eleven solves with one right side, in doubles for numbers below `2^80`, else at as
    /// many bits as this number has and 24 more; found once and kept. Source: as [`Cholesky::condition_estimate`]; A. van der Sluis, *Condition numbers and
    /// equilibration of matrices*, Numer. Math. 14 (1969).
    ///
    /// # Errors
    /// As [`crate::trsm()`].
    pub fn scaled_condition(&self, ctx: &Context) -> Result<Float> {
        Ok(Float::with_val(RIGHT_BITS, &self.scaled_inverse_norm(ctx)?.norm))
    }

    pub(super) fn scaled_inverse_norm(&self, ctx: &Context) -> Result<&ScaledInverseNorm> {
        loop {
            if let Some(found) = self.scaled_inverse_norm.get() {
                return Ok(found);
            }
            let found = self.find_scaled_inverse_norm(ctx)?;
            self.scaled_inverse_norm.get_or_init(|| found);
        }
    }

    fn find_scaled_inverse_norm(&self, ctx: &Context) -> Result<ScaledInverseNorm> {
        let (order, most) = (self.factor().rows(), self.factor().precision_bits());
        let norm_of = |rough: &Rough<'_>| {
            let image = |x: &[Float]| Ok(rough.scaled_images(&[x.to_vec()])?.pop().unwrap_or_default());
            inverse_norm(order, image)
        };
        let needed = |norm: &Float| {
            let lost = Float::with_val(RIGHT_BITS, norm.log2_ref()).to_f64();
            ((lost + SPARE_BITS).clamp(0.0, f64::from(u32::MAX)).ceil() as u32).max(FIRST_BITS)
        };
        let mut bits = FIRST_BITS;
        if let Some(rough) = Rough::in_doubles(self, ctx)? {
            let norm = norm_of(&rough)?;
            bits = needed(&norm);
            if norm < power(DOUBLES_LOG2) {
                return Ok(ScaledInverseNorm { norm, solve_bits: bits.min(most) });
            }
        }
        bits = bits.min(most);
        loop {
            let norm = norm_of(&Rough::in_bits(self, ctx, bits)?)?;
            let enough = needed(&norm);
            if enough <= bits || bits == most {
                return Ok(ScaledInverseNorm { norm, solve_bits: enough.min(most) });
            }
            bits = enough.max(bits.saturating_mul(2)).min(most);
        }
    }
}

/// The norm of the inverse of a symmetric matrix, given its solves; 0 for one of order 0.
fn inverse_norm(order: usize, solve: impl Fn(&[Float]) -> Result<Vec<Float>>) -> Result<Float> {
    if order == 0 {
        return Ok(Float::new(ESTIMATE_BITS));
    }
    let mut x = vec![Float::with_val(RIGHT_BITS, order).recip(); order];
    let (mut largest, mut signs) = (Float::new(ESTIMATE_BITS), Vec::new());
    for step in 0..STEPS {
        let y = solve(&x)?;
        let norm = sum_of_sizes(&y);
        let new_signs: Vec<bool> = y.iter().map(Float::is_sign_negative).collect();
        if step > 0 && (norm <= largest || new_signs == signs) {
            largest.max_mut(&norm);
            break;
        }
        (largest, signs) = (norm, new_signs);
        let unit = |&negative: &bool| Float::with_val(RIGHT_BITS, if negative { -1 } else { 1 });
        let z = solve(&signs.iter().map(unit).collect::<Vec<_>>())?;
        let product = |z: &Float, x: &Float| Float::with_val(z.prec(), z * x);
        let slope = z.iter().zip(&x).fold(Float::new(z[0].prec()), |sum, (z, x)| sum + product(z, x));
        let steepest = (0..order)
            .fold(0, |best, i| if z[i].cmp_abs(&z[best]).is_some_and(|order| order.is_gt()) { i } else { best });
        if step > 0 && Float::with_val(slope.prec(), z[steepest].abs_ref()) <= slope {
            break;
        }
        x.fill(Float::new(RIGHT_BITS));
        x[steepest] = Float::with_val(RIGHT_BITS, 1);
    }
    // A vector of alternating signs catches matrices that are built to mislead the ascent.
    let alternating = |i: usize| {
        let size = Float::with_val(RIGHT_BITS, i) / Float::with_val(RIGHT_BITS, order.max(2) - 1) + 1u32;
        if i.is_multiple_of(2) { size } else { -size }
    };
    let y = solve(&(0..order).map(alternating).collect::<Vec<_>>())?;
    let other = sum_of_sizes(&y) * 2u32 / Float::with_val(RIGHT_BITS, 3 * order);
    Ok(largest.max(&other))
}

fn sum_of_sizes(x: &[Float]) -> Float {
    x.iter().fold(Float::new(ESTIMATE_BITS), |sum, value| sum + Float::with_val(ESTIMATE_BITS, value.abs_ref()))
}
