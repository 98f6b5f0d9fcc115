//! Solves with a factor to a few bits: in doubles where the condition leaves them some, else in as many bits as it
//! takes.

use super::doubles::{LANES, Row, ScaledDoubles};
use super::{ESTIMATE_BITS, power};
use crate::context::Context;
use crate::error::Result;
use crate::matrix::Matrix;
use crate::ops::cholesky::Cholesky;
use rug::Float;

/// Below this power of two of the scaled condition doubles are enough: each of the two substitutions loses half of it.
pub(super) const DOUBLES_LOG2: i64 = 80;

/// Bits of right sides.
const RIGHT_BITS: u32 = 53;

/// Solutions in doubles are right beside the largest scaled unknown; scales further apart than this would show it.
const EVEN_SCALES: i64 = 8;

/// A factor, and how solves with it run.
pub(super) struct Rough<'a> {
    ctx: &'a Context,
    factor: &'a Cholesky,
    /// Row `i` of the factor is scaled by `2^-exponents[i]`.
    pub exponents: &'a [i64],
    doubles: Option<ScaledDoubles>,
    /// Bits of solves that are not in doubles.
    bits: u32,
}

impl<'a> Rough<'a> {
    /// Solves in doubles, where there is room for them.
    ///
    /// # Errors
    /// Those of reading the factor.
    pub fn in_doubles(factor: &'a Cholesky, ctx: &'a Context) -> Result<Option<Rough<'a>>> {
        let exponents = factor.row_exponents(ctx)?;
        if ctx.admit(ScaledDoubles::bytes(exponents.len())).is_err() {
            return Ok(None);
        }
        let doubles = Some(ScaledDoubles::new(factor, exponents));
        Ok(Some(Rough { ctx, factor, exponents, doubles, bits: RIGHT_BITS }))
    }

    /// Solves with so many bits.
    ///
    /// # Errors
    /// Those of reading the factor.
    pub fn in_bits(factor: &'a Cholesky, ctx: &'a Context, bits: u32) -> Result<Rough<'a>> {
        Ok(Rough { ctx, factor, exponents: factor.row_exponents(ctx)?, doubles: None, bits })
    }

    /// Solves that tell at least a digit of any solution, normwise.
    ///
    /// # Errors
    /// As [`Cholesky::scaled_condition`].
    pub fn for_condition(factor: &'a Cholesky, ctx: &'a Context) -> Result<Rough<'a>> {
        let found = factor.scaled_inverse_norm(ctx)?;
        let doubles = if found.norm < power(DOUBLES_LOG2) { Rough::in_doubles(factor, ctx)? } else { None };
        doubles.map_or_else(|| Rough::in_bits(factor, ctx, found.solve_bits), Ok)
    }

    /// `D A^-1 D X`, for at most eight columns.
    ///
    /// # Errors
    /// Those of a solve.
    pub fn scaled_images(&self, columns: &[Vec<Float>]) -> Result<Vec<Vec<Float>>> {
        let order = self.exponents.len();
        if let Some(doubles) = &self.doubles {
            let mut rows: Vec<Row> = vec![[0.0; LANES]; order];
            for (lane, column) in columns.iter().enumerate() {
                rows.iter_mut().zip(column).for_each(|(row, value)| row[lane] = value.to_f64());
            }
            doubles.solve(&mut rows);
            let lane = |lane: usize| rows.iter().map(|row| Float::with_val(ESTIMATE_BITS, row[lane])).collect();
            return Ok((0..columns.len()).map(lane).collect());
        }
        let mut right = Matrix::zeros(order, columns.len(), RIGHT_BITS)?;
        for (col, column) in columns.iter().enumerate() {
            for (row, value) in column.iter().enumerate() {
                let value = Float::with_val(RIGHT_BITS, value) * power(self.exponents[row]);
                right.set_float(row, col, &Float::with_val(RIGHT_BITS, value))?;
            }
        }
        let found = self.factor.solve_columns(self.ctx, right.view(), self.bits)?;
        let entry =
            |row: usize, col: usize| Float::with_val(ESTIMATE_BITS, found.float(row, col)) * power(self.exponents[row]);
        Ok((0..columns.len()).map(|col| (0..order).map(|row| entry(row, col)).collect()).collect())
    }

    /// `A^-1 r` for one column.
    ///
    /// # Errors
    /// Those of a solve.
    pub fn solve(&self, right: &Matrix) -> Result<Matrix> {
        let (least, most) = (self.exponents.iter().min(), self.exponents.iter().max());
        let even = most.zip(least).is_none_or(|(most, least)| most - least <= EVEN_SCALES);
        if self.doubles.is_none() || !even {
            return self.factor.solve_columns(self.ctx, right.view(), self.bits_of_solves()?);
        }
        let scaled: Vec<Float> = (0..right.rows())
            .map(|row| Float::with_val(ESTIMATE_BITS, right.float(row, 0)) * power(-self.exponents[row]))
            .collect();
        // Doubles end at 2^-1074: the column is brought near 1.
        let largest = scaled.iter().filter_map(Float::get_exp).max().map_or(0, i64::from);
        let near_one = scaled.into_iter().map(|value| value * power(-largest)).collect();
        let images = self.scaled_images(&[near_one])?;
        let mut found = Matrix::zeros(right.rows(), 1, RIGHT_BITS)?;
        for (row, value) in images.into_iter().flatten().enumerate() {
            let value = value * power(largest - self.exponents[row]);
            found.set_float(row, 0, &Float::with_val(RIGHT_BITS, value))?;
        }
        Ok(found)
    }

    fn bits_of_solves(&self) -> Result<u32> {
        Ok(if self.doubles.is_some() { self.factor.scaled_inverse_norm(self.ctx)?.solve_bits } else { self.bits })
    }
}
