//! Substitution for one column, scalar by scalar: one sum of products and one rounding per unknown.
//!
//! Promise: `|w - T x|_i <= 1.01 * 2^-p ||t_i|| ||x|| + 0.01 * 2^-p |w_i|` for a working precision of `p` bits. Depends
//! on its operands alone.

use crate::error::Result;
use crate::matrix::check_exponent;
use crate::ops::columns::Column;
use crate::ops::fixed_sum::{FixedSum, OwnFloat, Sign};
use crate::ops::solve::triangle::Triangle;
use std::ops::Range;

/// A diagonal block that is solved scalar by scalar.
pub(super) struct ScalarBlock {
    /// Its rows in the triangle.
    pub rows: Range<usize>,
    /// `1 / t_ii` for each of them; empty for a unit triangle.
    pub reciprocals: Vec<OwnFloat>,
}

impl ScalarBlock {
    /// Prepares the block `rows` for unknowns of `working_bits`.
    pub fn new(triangle: &Triangle<'_>, rows: Range<usize>, working_bits: u32) -> ScalarBlock {
        let reciprocals = match triangle.is_unit() {
            true => Vec::new(),
            false => rows.clone().map(|i| OwnFloat::reciprocal(triangle.get(i, i), working_bits)).collect(),
        };
        ScalarBlock { rows, reciprocals }
    }

    /// Replaces the right side in the block's rows of `column` by the unknowns.
    ///
    /// # Errors
    /// [`crate::Error::ExponentRange`] with the place of an unknown that leaves the exponent range.
    pub fn run(&self, triangle: &Triangle<'_>, sum: &mut FixedSum, column: &mut Column<'_>) -> Result<()> {
        for step in 0..self.rows.len() {
            let at = if triangle.is_lower() { step } else { self.rows.len() - 1 - step };
            let row = self.rows.start + at;
            let others = triangle.others(row, &self.rows);
            sum.set(column.get(row), others.map(|k| (triangle.get(row, k), column.get(k))), Sign::Minus);
            column.set(row, |limbs| match self.reciprocals.get(at) {
                Some(reciprocal) => sum.round_product(reciprocal, limbs),
                None => sum.round(limbs),
            });
            check_exponent(column.get(row).head.exponent(), row, column.index)?;
        }
        Ok(())
    }
}
