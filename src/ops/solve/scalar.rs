//! Substitution for one column, scalar by scalar: one sum of products and one rounding per unknown.
//!
//! Promise: `|w - T x|_i <= 1.01 * 2^-p ||t_i|| ||x|| + 0.01 * 2^-p |w_i|` for a working precision of `p` bits. Depends
//! only on its operands.

use crate::error::Result;
use crate::matrix::check_exponent;
use crate::ops::columns::Column;
use crate::ops::fixed_sum::{FixedSum, OwnFloat, Sign};
use crate::ops::solve::triangle::Triangle;
use std::ops::Range;

/// A diagonal block that is solved scalar by scalar.
pub(super) struct ScalarBlock<'a> {
    triangle: Triangle<'a>,
    /// Its rows in the whole triangle.
    rows: Range<usize>,
    /// `1 / t_ii` for each of them; empty for a unit triangle.
    reciprocals: Vec<OwnFloat>,
}

impl<'a> ScalarBlock<'a> {
    /// Prepares a block, which has the rows `rows` of a larger one, for unknowns of `working_bits`.
    pub fn new(triangle: Triangle<'a>, rows: Range<usize>, working_bits: u32) -> ScalarBlock<'a> {
        let reciprocals = match triangle.is_unit() {
            true => Vec::new(),
            false => (0..rows.len()).map(|i| OwnFloat::reciprocal(triangle.get(i, i), working_bits)).collect(),
        };
        ScalarBlock { triangle, rows, reciprocals }
    }

    /// Replaces the right side in the block's rows of `column` by the unknowns.
    ///
    /// # Errors
    /// [`crate::Error::ExponentRange`] with the place of an unknown that leaves the exponent range.
    pub fn run(&self, sum: &mut FixedSum, column: &mut Column<'_>) -> Result<()> {
        let ScalarBlock { triangle, rows, .. } = self;
        for step in 0..rows.len() {
            let at = if triangle.is_lower() { step } else { rows.len() - 1 - step };
            let row = rows.start + at;
            let others = triangle.others(at, &(0..rows.len()));
            let products = others.map(|k| (triangle.get(at, k), column.get(rows.start + k)));
            sum.set(column.get(row), products, Sign::Minus);
            column.set(row, |limbs| match self.reciprocals.get(at) {
                Some(reciprocal) => sum.round_product(reciprocal, limbs),
                None => sum.round(limbs),
            });
            check_exponent(column.get(row).head.exponent(), row, column.index)?;
        }
        Ok(())
    }
}
