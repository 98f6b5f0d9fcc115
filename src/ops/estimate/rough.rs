//! Solves with a factor to a few bits: in doubles where the condition leaves them some, else in as many bits as it
//! takes.

use super::doubles::{ScaledDoubles, double};
use super::power;
use crate::context::Context;
use crate::error::Result;
use crate::kernels::f64::packed::{LANES, RightSideRow};
use crate::matrix::Matrix;
use crate::ops::cholesky::Cholesky;
use rug::Float;

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
