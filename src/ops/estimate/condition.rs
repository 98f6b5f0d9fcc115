//! The condition of a factored matrix, as it is and scaled to a diagonal of about 1, estimated by a few solves.

use super::rough::{DOUBLES_LOG2, Rough, Vector, vector};
use super::{ESTIMATE_BITS, power};
use crate::context::Context;
use crate::error::Result;
use crate::kernels::f64::packed::LANES;
use crate::matrix::Matrix;
use crate::ops::cholesky::{Cholesky, ScaledInverseNorm};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rug::Float;

/// Bits of right-hand sides.
pub(crate) const RIGHT_BITS: u32 = 53;

/// Most steps of the ascent; two are enough nearly always.
const STEPS: usize = 2;

/// Columns that the ascent works on in big floats, where each costs a solve of its own.
pub(crate) const BIT_COLUMNS: usize = 2;

/// Fewest bits of solves that are not in doubles.
const FIRST_BITS: u32 = 64;

/// Bits that an estimate takes beyond those that its solves lose.
const SPARE_BITS: f64 = 24.0;

impl Cholesky {
    /// A lower bound, usually within a factor of 3, of the condition `||A||_1 ||A^-1||_1` of the factored matrix, whose
    /// 1-norm is `one_norm` (see [`Matrix::one_norm`]). It has 53 bits, and is 0 for an empty matrix.
    ///
    /// Deterministic. Cost: at most five solves with two right-hand sides, at the factor's precision; the result is
    /// kept. The number of lost digits follows from [`Cholesky::scaled_condition`]. Source: N. J. Higham, F. Tisseur,
    /// *A block algorithm for matrix 1-norm estimation, with an application to 1-norm pseudospectra*, SIAM J. Matrix
    /// Anal. Appl. 21 (2000).
    ///
    /// ```
    /// use sunzi::{Context, Matrix};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[3.0, 0.0, 0.0, 0.5])?;
    /// let factor = sunzi::cholesky(&ctx, &a, 128)?;
    /// let condition = factor.condition_estimate(&ctx, &a.one_norm())?;
    /// assert!((condition - 6u32).abs() < 1e-10);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`crate::trsm()`].
    pub fn condition_estimate(&self, ctx: &Context, one_norm: &Float) -> Result<Float> {
        if self.inverse_norm.get().is_none() {
            let bits = self.factor().precision_bits();
            let order = self.factor().rows();
            let images = |columns: &[Vec<f64>]| {
                let mut right = Matrix::zeros(order, columns.len(), RIGHT_BITS)?;
                for (col, column) in columns.iter().enumerate() {
                    column.iter().enumerate().try_for_each(|(row, &value)| right.set_f64(row, col, value))?;
                }
                let found = self.solve(ctx, &right, bits)?;
                Ok((0..columns.len()).map(|col| vector(&found, col, |_| 0)).collect())
            };
            let norm = inverse_norm(order, BIT_COLUMNS, &images, &images)?;
            self.inverse_norm.get_or_init(|| norm);
        }
        let norm = self.inverse_norm.get().map_or_else(|| Float::new(RIGHT_BITS), Float::clone);
        Ok(Float::with_val(RIGHT_BITS, norm * one_norm))
    }

    /// A lower bound, usually within a factor of 3, of `||(D^-1 A D^-1)^-1||_1`, where the powers of two `D` scale the
    /// diagonal of `A = L L^T` to between 1/25 and 1. It has 53 bits, and is 0 for an empty matrix.
    ///
    /// The logarithm to base 2 of the bound is about the number of bits that solves with this factor lose, for any
    /// scaling of the rows of `A`: with `b` bits the error of a solution is about `2^-b` times the bound. The condition
    /// number in the 1-norm, [`Cholesky::condition_estimate`], may be larger by any factor. Deterministic. Cost: at
    /// most five solves with a few right-hand sides, in doubles for bounds below `2^80`, and otherwise with 24 bits
    /// more than the logarithm of the bound; the result is kept. Source: as [`Cholesky::condition_estimate`]; A. van
    /// der Sluis, *Condition numbers and equilibration of matrices*, Numer. Math. 14 (1969).
    ///
    /// ```
    /// use sunzi::{Context, Matrix};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[1e30, 0.0, 0.0, 1e-30])?; // badly scaled, but no solve loses digits
    /// let factor = sunzi::cholesky(&ctx, &a, 128)?;
    /// assert!(factor.scaled_condition(&ctx)? < 25);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`crate::trsm()`].
    pub fn scaled_condition(&self, ctx: &Context) -> Result<Float> {
        Ok(Float::with_val(RIGHT_BITS, &self.scaled_inverse_norm(ctx)?.norm))
    }

    /// Whether [`Cholesky::scaled_condition`] is close to the condition of the factored matrix `A`.
    ///
    /// `L L^T` differs from `A` by the rounding errors `E` of the factorisation. If the least eigenvalue of the scaled
    /// matrix is no larger than its change by `E`, the least eigenvalue of `L L^T` consists of rounding errors: the
    /// factor exists by chance and has no information on that eigenvector, and the condition of `A` is only known to be
    /// at least about that of `L L^T`. The correct digits of solutions are then unknown, and estimated as 0. The test
    /// accepts the factor if an estimate of `tr(A^-1 E)`, the sum of the relative changes of the eigenvalues, is at
    /// most 1; it has the margin of [`Cholesky::log_det_digits`]. Cost: that of [`Cholesky::scaled_condition`], and six
    /// solves with equally few bits; the result is kept.
    ///
    /// ```
    /// use sunzi::{Context, Matrix};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 1.0, 2.0])?;
    /// assert!(sunzi::cholesky(&ctx, &a, 128)?.tells_condition(&ctx)?);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`crate::trsm()`].
    pub fn tells_condition(&self, ctx: &Context) -> Result<bool> {
        Ok(*self.log_det_spread(ctx)? <= 1)
    }

    pub(crate) fn scaled_inverse_norm(&self, ctx: &Context) -> Result<&ScaledInverseNorm> {
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
        let mut bits = FIRST_BITS;
        if let Some(rough) = Rough::in_doubles(self, ctx)? {
            let images = |columns: &[Vec<f64>]| rough.scaled_images(columns);
            let norm = inverse_norm(order, LANES, &images, &images)?;
            bits = needed_bits(&norm);
            if norm < power(DOUBLES_LOG2) {
                return Ok(ScaledInverseNorm { norm, solve_bits: bits.min(most) });
            }
        }
        with_enough_bits(bits, most, |bits| {
            let rough = Rough::in_bits(self, ctx, bits)?;
            let images = |columns: &[Vec<f64>]| rough.scaled_images(columns);
            inverse_norm(order, BIT_COLUMNS, &images, &images)
        })
    }
}

/// Bits of solves that lose as many bits as the logarithm of the norm.
fn needed_bits(norm: &Float) -> u32 {
    let lost = Float::with_val(RIGHT_BITS, norm.log2_ref()).to_f64();
    ((lost + SPARE_BITS).clamp(0.0, f64::from(u32::MAX)).ceil() as u32).max(FIRST_BITS)
}

/// The norm of an inverse by solves with as many bits as they need, from `bits` to at most `most`.
pub(crate) fn with_enough_bits(
    bits: u32,
    most: u32,
    norm_at: impl Fn(u32) -> Result<Float>,
) -> Result<ScaledInverseNorm> {
    let mut bits = bits.max(FIRST_BITS).min(most);
    loop {
        let norm = norm_at(bits)?;
        let enough = needed_bits(&norm);
        if enough <= bits || bits == most {
            return Ok(ScaledInverseNorm { norm, solve_bits: enough.min(most) });
        }
        bits = enough.max(bits.saturating_mul(2)).min(most);
    }
}

/// The images of columns under the inverse of a matrix, or of its transpose.
type Images<'a> = dyn Fn(&[Vec<f64>]) -> Result<Vec<Vector>> + 'a;

/// The 1-norm of the inverse of a matrix, given its `images` of `block` columns at a time, at least 2, and those of
/// its transpose, which are the same function for a symmetric matrix; 0 for one of order 0.
///
/// The first columns are a column of ones, a column of alternating signs, which detects matrices constructed to mislead
/// the iteration, and columns of random signs. Each step applies the transposed inverse to the signs of all images, and
/// continues with the unit vectors of the largest entries of the result.
pub(crate) fn inverse_norm(order: usize, block: usize, images: &Images<'_>, transposed: &Images<'_>) -> Result<Float> {
    if order == 0 {
        return Ok(Float::new(ESTIMATE_BITS));
    }
    let mut rng = ChaCha8Rng::seed_from_u64(0x5eed_c0de);
    // All have 1-norm 1, but for the alternating ones, whose sizes go from 1 to 2, in parts of 3 n / 2.
    let alternating = |i: usize| {
        let size = (1.0 + i as f64 / (order.max(2) - 1) as f64) / (1.5 * order as f64);
        if i.is_multiple_of(2) { size } else { -size }
    };
    let mut columns = vec![vec![(order as f64).recip(); order], (0..order).map(alternating).collect()];
    let mut random = || if rng.next_u32() & 1 == 1 { 1.0 } else { -1.0 } / order as f64;
    columns.extend((2..block).map(|_| (0..order).map(|_| random()).collect()));
    let mut found = images(&columns)?;
    let mut largest = largest_norm(&found);
    let mut used = vec![false; order];
    for _ in 0..STEPS {
        let signs = |column: &Vector| column.values.iter().map(|value| 1f64.copysign(*value)).collect();
        let slopes = transposed(&found.iter().map(signs).collect::<Vec<Vec<f64>>>())?;
        let (promises, exponent) = largest_in_rows(&slopes, order);
        let mut rows: Vec<usize> = (0..order).filter(|&row| !used[row]).collect();
        rows.sort_by(|&left, &right| promises[right].total_cmp(&promises[left]));
        rows.truncate(block);
        let promise = |&row: &usize| Float::with_val(ESTIMATE_BITS, promises[row]) * power(exponent);
        if rows.first().map(promise).is_none_or(|promise| promise <= largest) {
            break;
        }
        rows.iter().for_each(|&row| used[row] = true);
        let unit = |&row: &usize| (0..order).map(|at| if at == row { 1.0 } else { 0.0 }).collect();
        found = images(&rows.iter().map(unit).collect::<Vec<Vec<f64>>>())?;
        let next = largest_norm(&found);
        if next <= largest {
            break;
        }
        largest = next;
    }
    Ok(largest)
}

/// The largest 1-norm of a column.
fn largest_norm(columns: &[Vector]) -> Float {
    columns.iter().fold(Float::new(ESTIMATE_BITS), |most, column| {
        let sum: f64 = column.values.iter().map(|value| value.abs()).sum();
        // Where a pivot is 0 in doubles the solves have no bits left.
        let sum = if sum.is_nan() { f64::INFINITY } else { sum };
        most.max(&(Float::with_val(ESTIMATE_BITS, sum) * power(column.exponent)))
    })
}

/// The largest magnitude in each row, and the exponent of the power of two that all of them are multiplied by.
fn largest_in_rows(columns: &[Vector], order: usize) -> (Vec<f64>, i64) {
    let exponent = columns.iter().map(|column| column.exponent).max().unwrap_or(0);
    let mut largest = vec![0.0f64; order];
    for column in columns {
        let scale = power(column.exponent - exponent).to_f64();
        largest.iter_mut().zip(&column.values).for_each(|(most, value)| *most = most.max(value.abs() * scale));
    }
    (largest, exponent)
}
