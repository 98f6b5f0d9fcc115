//! Substitution for one column, scalar by scalar: exact products in a fixed-point window, one rounding per unknown.
//!
//! Promise: `|w - T x|_i <= 1.01 * 2^-p (||t_i|| ||x|| + |w_i|)` for a working precision of `p` bits and at most
//! [`crate::math::bound::TRSM_BLOCK_ROWS`] unknowns. Depends on its operands alone.

use crate::error::{Error, Result};
use crate::matrix::MAXIMUM_EXPONENT;
use crate::ops::columns::Column;
use crate::ops::trsm::triangle::Triangle;
use crate::ops::window::{OwnFloat, Sign, Window, product_top};
use std::ops::Range;

/// A diagonal block that is solved by substitution.
pub(super) struct Substitution {
    /// Its rows in the triangle.
    pub rows: Range<usize>,
    /// `1 / t_ii` for each of them; empty for a unit triangle.
    pub reciprocals: Vec<OwnFloat>,
}

impl Substitution {
    /// Prepares the block `rows` for unknowns of `working_bits`.
    pub fn new(triangle: &Triangle<'_>, rows: Range<usize>, working_bits: u32) -> Substitution {
        let reciprocals = match triangle.is_unit() {
            true => Vec::new(),
            false => rows.clone().map(|i| OwnFloat::reciprocal(triangle.get(i, i), working_bits)).collect(),
        };
        Substitution { rows, reciprocals }
    }

    /// Replaces the right side in the block's rows of `column` by the unknowns.
    ///
    /// # Errors
    /// [`Error::ExponentRange`] with the place of an unknown that leaves the exponent range.
    pub fn run(&self, triangle: &Triangle<'_>, window: &mut Window, column: &mut Column<'_>) -> Result<()> {
        for step in 0..self.rows.len() {
            let at = if triangle.is_lower() { step } else { self.rows.len() - 1 - step };
            let row = self.rows.start + at;
            let others = triangle.others(row, &self.rows);
            sum_of_row(triangle, (row, others), window, column);
            let write = |limbs: &mut [u64]| match self.reciprocals.get(at) {
                Some(reciprocal) => window.round_product(reciprocal.get(), limbs),
                None => window.round(limbs),
            };
            column.set(row, write);
            let exponent = column.get(row).head.exponent();
            if exponent.abs() > MAXIMUM_EXPONENT {
                return Err(Error::ExponentRange { row, column: column.index, exponent, limit: MAXIMUM_EXPONENT });
            }
        }
        Ok(())
    }
}

/// `w_row - sum over k of t_(row, k) x_k`, in the window.
fn sum_of_row(triangle: &Triangle<'_>, (row, others): (usize, Range<usize>), window: &mut Window, column: &Column<'_>) {
    let own = column.get(row);
    let top_of = |k: usize| product_top(triangle.get(row, k).head, column.get(k).head);
    let tops = others.clone().filter_map(top_of);
    let top = tops.chain((!own.head.is_zero()).then(|| own.head.exponent())).max().unwrap_or(0);
    window.open(top);
    window.add(own, Sign::Plus);
    for k in others {
        window.add_product(triangle.get(row, k), column.get(k), Sign::Minus);
    }
}
