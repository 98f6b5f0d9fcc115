//! The inverse of a diagonal block, at enough extra bits to be applied in place of a substitution.
//!
//! How many bits are enough is read off the inverse itself, so it depends on the block and the precision alone.
//! Source: docs/ALGORITHM.md, "Triangular solves".

use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound::{COMMON_WORKING_BITS, TRSM_BLOCK_ROWS, guard_bits, trsm_inverse_bits};
use crate::math::float::Head;
use crate::math::scale::column_exponent;
use crate::matrix::{Diag, Matrix};
use crate::ops::columns::each_column;
use crate::ops::trsm::triangle::Triangle;
use crate::ops::trsm::vector::Substitution;
use crate::ops::window::Window;
use std::ops::Range;

/// Extra bits are tried in multiples of this: about one prime more for each.
const EXTRA_BITS_STEP: i64 = 24;

/// `V = (S T)^-1` for a diagonal block `T` whose rows `S`, powers of two, scale to norms of about 1.
pub(super) struct Inverse {
    /// The block's rows in the triangle.
    pub rows: Range<usize>,
    /// `V`.
    pub scaled: Matrix,
    /// Row `i` of `S` is `2^-exponents[i]`.
    pub exponents: Vec<i64>,
    /// Bits of the scaled integers when `V` is applied.
    pub product_bits: u32,
}

impl Inverse {
    /// Inverts the block `rows` for solutions of `working_bits`; `None` where that takes too many extra bits.
    ///
    /// # Errors
    /// Those of a solve.
    pub fn new(
        ctx: &Context,
        triangle: &Triangle<'_>,
        rows: Range<usize>,
        working_bits: u32,
    ) -> Result<Option<Inverse>> {
        assert!(rows.len() <= TRSM_BLOCK_ROWS, "{} rows are too many", rows.len());
        let exponents = triangle.row_exponents(&rows);
        let block = triangle.scaled_block(&rows, &exponents)?;
        let block = Triangle::new(block.view(), triangle.uplo(), Diag::NonUnit)?;
        // Beyond a quarter of the precision two smaller inverses cost less than one of so many bits.
        let most = (3 * EXTRA_BITS_STEP).max(i64::from(working_bits / 4));
        let mut extra = EXTRA_BITS_STEP;
        while extra <= most {
            let inverse_bits = working_bits + extra as u32;
            let product_bits = inverse_bits + guard_bits(rows.len());
            if product_bits > COMMON_WORKING_BITS {
                return Ok(None);
            }
            let scaled = match invert(ctx, &block, inverse_bits) {
                Err(Error::ExponentRange { .. }) => return Ok(None),
                other => other?,
            };
            let norm_exponent = column_exponent(scaled.parts().0.iter().map(|&head| Head(head)));
            let needed = trsm_inverse_bits(norm_exponent);
            if needed <= extra {
                return Ok(Some(Inverse { rows, scaled, exponents, product_bits }));
            }
            extra = needed + (EXTRA_BITS_STEP - needed % EXTRA_BITS_STEP) % EXTRA_BITS_STEP;
        }
        Ok(None)
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.scaled.bytes() + 8 * self.exponents.len() as u64
    }
}

/// The inverse of a triangular block, by substitution on the unit matrix.
fn invert(ctx: &Context, block: &Triangle<'_>, precision_bits: u32) -> Result<Matrix> {
    let substitution = Substitution::new(block, 0..block.order(), precision_bits);
    let mut inverse = Matrix::zeros(block.order(), block.order(), precision_bits)?;
    let window = || Window::new(precision_bits);
    each_column(ctx, &mut inverse, window, |window, mut column| {
        column.set_one(column.index);
        substitution.run(block, window, &mut column)
    })?;
    Ok(inverse)
}
