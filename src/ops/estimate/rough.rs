//! Solves with a factor to a few bits: in doubles, with eight right-hand sides at a time, where doubles suffice for the
//! condition number, else in as many bits as are needed.

use super::power;
use crate::context::Context;
use crate::error::Result;
use crate::kernels::f64::packed::{LANES, RightSideRow, solve_packed};
use crate::math::float::{FloatRef, Head};
use crate::matrix::Matrix;
use crate::ops::cholesky::Cholesky;
use rug::Float;
use std::sync::Arc;

/// Entries below `2^LEAST_EXPONENT` count as 0: the others have a unit in the last place that is a normal number.
const LEAST_EXPONENT: i64 = -900;

/// Exponents above this count as infinite.
const MOST_EXPONENT: i64 = 1000;

/// Below this power of two of the scaled condition doubles are enough: each of the two substitutions loses half of it.
pub(crate) const DOUBLES_LOG2: i64 = 80;

/// Bits of right-hand sides.
const RIGHT_BITS: u32 = 53;

/// Solutions in doubles are accurate relative to the largest scaled unknown; with scales further apart than this that
/// is not enough.
const EVEN_SCALES: i64 = 8;

/// A vector: doubles times one power of two.
pub(crate) struct Vector {
    pub values: Vec<f64>,
    pub exponent: i64,
}

/// A factor, and how solves with it run.
pub(crate) struct Rough<'a> {
    ctx: &'a Context,
    factor: &'a Cholesky,
    /// Row `i` of the factor is scaled by `2^-exponents[i]`.
    pub exponents: &'a [i64],
    doubles: Option<ScaledDoubles>,
    /// Bits of solves that are not in doubles.
    bits: u32,
    /// Bits of solves for one column beyond those.
    more_bits: u32,
}

impl<'a> Rough<'a> {
    /// Solves in doubles, where there is room for them.
    ///
    /// # Errors
    /// The errors of reading the factor.
    pub fn in_doubles(factor: &'a Cholesky, ctx: &'a Context) -> Result<Option<Rough<'a>>> {
        let exponents = factor.row_exponents(ctx)?;
        let doubles = ScaledDoubles::new(factor, ctx)?;
        Ok(doubles.map(|doubles| Rough {
            ctx,
            factor,
            exponents,
            doubles: Some(doubles),
            bits: RIGHT_BITS,
            more_bits: 0,
        }))
    }

    /// Solves with `bits` bits.
    ///
    /// # Errors
    /// The errors of reading the factor.
    pub fn in_bits(factor: &'a Cholesky, ctx: &'a Context, bits: u32) -> Result<Rough<'a>> {
        Ok(Rough { ctx, factor, exponents: factor.row_exponents(ctx)?, doubles: None, bits, more_bits: 0 })
    }

    /// Solves that give at least one correct digit of any solution, normwise.
    ///
    /// # Errors
    /// As [`Cholesky::scaled_condition`].
    pub fn for_condition(factor: &'a Cholesky, ctx: &'a Context) -> Result<Rough<'a>> {
        let found = factor.scaled_inverse_norm(ctx)?;
        let doubles = if found.norm < power(DOUBLES_LOG2) { Rough::in_doubles(factor, ctx)? } else { None };
        doubles.map_or_else(|| Rough::in_bits(factor, ctx, found.solve_bits), Ok)
    }

    /// The same, with `more_bits` additional bits for rows whose scales lie far apart.
    pub fn with_more_bits(self, more_bits: u32) -> Rough<'a> {
        Rough { more_bits, ..self }
    }

    /// `D A^-1 D X`, for at most eight columns.
    ///
    /// # Errors
    /// The errors of a solve.
    pub fn scaled_images(&self, columns: &[Vec<f64>]) -> Result<Vec<Vector>> {
        let order = self.exponents.len();
        if let Some(doubles) = &self.doubles {
            let mut rows: Vec<RightSideRow> = vec![[0.0; LANES]; order];
            for (lane, column) in columns.iter().enumerate() {
                rows.iter_mut().zip(column).for_each(|(row, value)| row[lane] = *value);
            }
            doubles.solve(&mut rows);
            let lane = |lane: usize| Vector { values: rows.iter().map(|row| row[lane]).collect(), exponent: 0 };
            return Ok((0..columns.len()).map(lane).collect());
        }
        let mut right = Matrix::zeros(order, columns.len(), RIGHT_BITS)?;
        for (col, column) in columns.iter().enumerate() {
            for (row, value) in column.iter().enumerate() {
                right.set_float(row, col, &(Float::with_val(RIGHT_BITS, value) * power(self.exponents[row])))?;
            }
        }
        let found = self.factor.solve_columns(self.ctx, right.view(), self.bits)?;
        Ok((0..columns.len()).map(|col| vector(&found, col, |row| self.exponents[row])).collect())
    }

    /// `A^-1 r` for one column.
    ///
    /// # Errors
    /// The errors of a solve.
    pub fn solve(&self, right: &Matrix) -> Result<Matrix> {
        let (least, most) = (self.exponents.iter().min(), self.exponents.iter().max());
        let even = most.zip(least).is_none_or(|(most, least)| most - least <= EVEN_SCALES);
        if self.doubles.is_none() || !even {
            return self.factor.solve_columns(self.ctx, right.view(), self.bits_of_solves()?);
        }
        // Doubles end at 2^-1074: the column is brought near 1.
        let Vector { values, exponent } = vector(right, 0, |row| -self.exponents[row]);
        let images = self.scaled_images(&[values])?;
        let mut found = Matrix::zeros(right.rows(), 1, RIGHT_BITS)?;
        for (row, value) in images.iter().flat_map(|image| &image.values).enumerate() {
            let value = Float::with_val(RIGHT_BITS, value) * power(exponent - self.exponents[row]);
            found.set_float(row, 0, &value)?;
        }
        Ok(found)
    }

    fn bits_of_solves(&self) -> Result<u32> {
        let in_doubles = self.doubles.is_some();
        let bits = if in_doubles { self.factor.scaled_inverse_norm(self.ctx)?.solve_bits } else { self.bits };
        Ok(bits.saturating_add(self.more_bits).min(self.factor.factor().precision_bits().max(bits)))
    }
}

/// Column `col`, its row `i` times `2^exponent(i)`, with a largest entry near 1.
pub(crate) fn vector(matrix: &Matrix, col: usize, exponent: impl Fn(usize) -> i64) -> Vector {
    let entries = || (0..matrix.rows()).map(|row| (matrix.get(row, col), exponent(row)));
    let sizes =
        entries().filter(|(value, _)| !value.head.is_zero()).map(|(value, shift)| value.head.exponent() + shift);
    let largest = sizes.max().unwrap_or(0);
    Vector { values: entries().map(|(value, shift)| double(value, largest - shift)).collect(), exponent: largest }
}

/// `D^-1 L` with rows of norm at most 1, rounded to doubles.
struct ScaledDoubles {
    /// Column `j` from its diagonal entry on, one column after the other.
    entries: Arc<Vec<f64>>,
}

impl ScaledDoubles {
    /// Row `i` is scaled by `2^-exponents[i]`; `None` where there is no room. Without a memory limit the factor keeps
    /// them, until a call with one.
    ///
    /// # Errors
    /// The errors of reading the factor.
    fn new(factor: &Cholesky, ctx: &Context) -> Result<Option<ScaledDoubles>> {
        let exponents = factor.row_exponents(ctx)?;
        let order = exponents.len();
        if let Some(entries) = factor.scaled_doubles.for_call(ctx) {
            return Ok(Some(ScaledDoubles { entries }));
        }
        if ctx.admit(4 * (order as u64).saturating_mul(order as u64 + 1)).is_err() {
            return Ok(None);
        }
        let (lower, mut entries) = (factor.factor(), Vec::with_capacity(order * (order + 1) / 2));
        let ((heads, limbs), width) = (lower.parts(), lower.limbs_per_element());
        for col in 0..order {
            let places = col * (order + 1)..(col + 1) * order;
            let limbs = limbs[places.start * width..places.end * width].chunks_exact(width);
            let numbers = heads[places].iter().zip(limbs).map(|(&head, limbs)| FloatRef { head: Head(head), limbs });
            entries.extend(numbers.zip(&exponents[col..]).map(|(number, &exponent)| double(number, exponent)));
        }
        let entries = Arc::new(entries);
        factor.scaled_doubles.keep(ctx, &entries);
        Ok(Some(ScaledDoubles { entries }))
    }

    /// Replaces right-hand sides, row by row, by the solutions of `L L^T X = B` for the scaled factor.
    fn solve(&self, rows: &mut [RightSideRow]) {
        solve_packed(&self.entries, rows);
    }
}

/// A number times `2^-exponent`, its last bits cut off.
#[inline]
pub(super) fn double(value: FloatRef<'_>, exponent: i64) -> f64 {
    let scaled = value.head.exponent() - exponent;
    let Some(&top) = value.limbs.last().filter(|_| !value.head.is_zero() && scaled > LEAST_EXPONENT) else {
        return 0.0;
    };
    // The top limb is at least 2^63.
    let power = f64::from_bits(((scaled.min(MOST_EXPONENT) - 64 + 1023) as u64) << 52);
    let size = top as f64 * power;
    if value.head.is_negative() { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::SymmetricMatrix;

    #[test]
    fn what_calls_without_a_limit_keep_is_given_back_before_one_with_a_limit() {
        let free = Context::builder().threads(1).build().unwrap();
        let limited = free.with_memory_bytes(Some(64 << 20));
        let (order, bits) = (24, 100);
        let b = Matrix::zeros(order, 2, bits).unwrap();
        let a = SymmetricMatrix::trusted(Matrix::identity(order, bits).unwrap());
        for verb in 0..5 {
            let call = |factor: &Cholesky, ctx: &Context| match verb {
                0 => drop(factor.solve(ctx, &b, bits).unwrap()),
                1 => drop(factor.inverse(ctx, bits).unwrap()),
                2 => drop(factor.solve_columns(ctx, b.view(), bits).unwrap()),
                3 => drop(factor.certify(ctx, &a).unwrap().unwrap()),
                _ => drop(ScaledDoubles::new(factor, ctx).unwrap().unwrap()),
            };
            let factor = Cholesky::from_factor(Matrix::identity(order, bits).unwrap()).unwrap();
            ScaledDoubles::new(&factor, &free).unwrap().unwrap();
            call(&factor, &free);
            let kept = Arc::downgrade(&factor.scaled_doubles.for_call(&free).expect("without a limit they are kept"));
            assert!(factor.clone().scaled_doubles.for_call(&free).is_none(), "verb {verb}");
            call(&factor, &limited);
            assert!(kept.upgrade().is_none(), "verb {verb}");
            assert!(factor.scaled_doubles.for_call(&free).is_none(), "verb {verb}");
        }
    }
}
