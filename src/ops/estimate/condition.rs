//! The condition of a factored matrix, as it is and scaled to a diagonal of about 1, estimated by a few solves.

use super::doubles::LANES;
use super::rough::{DOUBLES_LOG2, Rough};
use super::{ESTIMATE_BITS, power};
use crate::context::Context;
use crate::error::Result;
use crate::matrix::Matrix;
use crate::ops::cholesky::{Cholesky, ScaledInverseNorm};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rug::Float;

/// Bits of right sides.
const RIGHT_BITS: u32 = 53;

/// Most steps of the ascent; two are enough nearly always.
const STEPS: usize = 2;

/// Columns that the ascent works on in big floats, where each costs a solve of its own.
const BIT_COLUMNS: usize = 2;

/// Fewest bits of solves that are not in doubles.
const FIRST_BITS: u32 = 64;

/// Bits that an estimate takes beyond those that its solves lose.
const SPARE_BITS: f64 = 24.0;

impl Cholesky {
    /// A lower bound, rarely off by more than a factor of 3, of the condition `||A||_1 ||A^-1||_1` of the factored
    /// matrix, whose 1-norm is `one_norm` (see [`Matrix::one_norm`]); 53 bits. 0 for an empty matrix.
    ///
    /// Deterministic. Cost: at most five solves with two right sides, at the factor's precision; found once and kept.
    /// How many digits are lost is told by [`Cholesky::scaled_condition`].
    /// Source: N. J. Higham, F. Tisseur, *A block algorithm for matrix 1-norm estimation, with an application to 1-norm
    /// pseudospectra*, SIAM J. Matrix Anal. Appl. 21 (2000).
    ///
    /// # Errors
    /// As [`crate::trsm()`].
    pub fn condition_estimate(&self, ctx: &Context, one_norm: &Float) -> Result<Float> {
        if self.inverse_norm.get().is_none() {
            let bits = self.factor().precision_bits();
            let order = self.factor().rows();
            let norm = inverse_norm(order, BIT_COLUMNS, |columns| {
                let all: Vec<Float> = columns.iter().flatten().cloned().collect();
                let found = self.solve(ctx, &Matrix::from_floats(order, columns.len(), RIGHT_BITS, &all)?, bits)?;
                Ok(found.view().to_floats().chunks(order).map(<[Float]>::to_vec).collect())
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
    /// Deterministic. Cost: at most five solves with a few right sides, in doubles for numbers below `2^80`, else at as
    /// many bits as this number has and 24 more; found once and kept. Source: as [`Cholesky::condition_estimate`]; A.
    /// van der Sluis, *Condition numbers and equilibration of matrices*, Numer. Math. 14 (1969).
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
        let needed = |norm: &Float| {
            let lost = Float::with_val(RIGHT_BITS, norm.log2_ref()).to_f64();
            ((lost + SPARE_BITS).clamp(0.0, f64::from(u32::MAX)).ceil() as u32).max(FIRST_BITS)
        };
        let mut bits = FIRST_BITS;
        if let Some(rough) = Rough::in_doubles(self, ctx)? {
            let norm = inverse_norm(order, LANES, |columns| rough.scaled_images(columns))?;
            bits = needed(&norm);
            if norm < power(DOUBLES_LOG2) {
                return Ok(ScaledInverseNorm { norm, solve_bits: bits.min(most) });
            }
        }
        bits = bits.min(most);
        loop {
            let rough = Rough::in_bits(self, ctx, bits)?;
            let norm = inverse_norm(order, BIT_COLUMNS, |columns| rough.scaled_images(columns))?;
            let enough = needed(&norm);
            if enough <= bits || bits == most {
                return Ok(ScaledInverseNorm { norm, solve_bits: enough.min(most) });
            }
            bits = enough.max(bits.saturating_mul(2)).min(most);
        }
    }
}

/// The norm of the inverse of a symmetric matrix, given its images of `block` columns at a time, at least 2; 0 for one
/// of order 0.
///
/// The first columns are all ones, alternating signs, which catch matrices that are built to mislead the ascent, and
/// random signs; each step takes the signs of all images, and from their images the unit vectors that promise most.
fn inverse_norm(
    order: usize,
    block: usize,
    images: impl Fn(&[Vec<Float>]) -> Result<Vec<Vec<Float>>>,
) -> Result<Float> {
    if order == 0 {
        return Ok(Float::new(ESTIMATE_BITS));
    }
    let mut rng = ChaCha8Rng::seed_from_u64(0x5eed_c0de);
    let number = |value: f64| Float::with_val(RIGHT_BITS, value);
    // All have 1-norm 1, but for the alternating ones, whose sizes go from 1 to 2, in parts of 3 n / 2.
    let alternating = |i: usize| {
        let size = (1.0 + i as f64 / (order.max(2) - 1) as f64) / (1.5 * order as f64);
        number(if i.is_multiple_of(2) { size } else { -size })
    };
    let mut columns = vec![vec![number((order as f64).recip()); order], (0..order).map(alternating).collect()];
    let mut random = || number(if rng.next_u32() & 1 == 1 { 1.0 } else { -1.0 } / order as f64);
    columns.extend((2..block).map(|_| (0..order).map(|_| random()).collect()));
    let mut found = images(&columns)?;
    let largest_of = |found: &[Vec<Float>]| {
        found.iter().map(|column| sum_of_sizes(column)).fold(Float::new(ESTIMATE_BITS), |most, sum| most.max(&sum))
    };
    let mut largest = largest_of(&found);
    let mut used = vec![false; order];
    for _ in 0..STEPS {
        let signs = |column: &Vec<Float>| -> Vec<Float> {
            column.iter().map(|value| number(if value.is_sign_negative() { -1.0 } else { 1.0 })).collect()
        };
        let slopes = images(&found.iter().map(signs).collect::<Vec<_>>())?;
        let promise = |row: usize| {
            let sizes = slopes.iter().map(|column| Float::with_val(ESTIMATE_BITS, column[row].abs_ref()));
            sizes.fold(Float::new(ESTIMATE_BITS), |most, size| most.max(&size))
        };
        let mut rows: Vec<(usize, Float)> =
            (0..order).filter(|&row| !used[row]).map(|row| (row, promise(row))).collect();
        rows.sort_by(|left, right| right.1.total_cmp(&left.1));
        rows.truncate(block);
        if rows.first().is_none_or(|(_, promise)| *promise <= largest) {
            break;
        }
        rows.iter().for_each(|&(row, _)| used[row] = true);
        let unit = |&(row, _): &(usize, Float)| -> Vec<Float> {
            (0..order).map(|at| number(if at == row { 1.0 } else { 0.0 })).collect()
        };
        found = images(&rows.iter().map(unit).collect::<Vec<_>>())?;
        let next = largest_of(&found);
        if next <= largest {
            break;
        }
        largest = next;
    }
    Ok(largest)
}

fn sum_of_sizes(x: &[Float]) -> Float {
    x.iter().fold(Float::new(ESTIMATE_BITS), |sum, value| sum + Float::with_val(ESTIMATE_BITS, value.abs_ref()))
}
