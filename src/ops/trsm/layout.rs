//! How a triangle is cut, from numbers alone: what a solve holds, and the products that it may run.
//!
//! The plan takes the worst that the entries can ask for, so a limit that it accepts is enough whatever they are.

use crate::context::Context;
use crate::error::Result;
use crate::math::bound::{COMMON_WORKING_BITS, TRSM_BLOCK_ROWS, TRSM_GROUP_ROWS, guard_bits};
use crate::math::float::limbs_for;
use crate::matrix::Matrix;
use crate::ops::block::{BlockShape, largest_need, plan};
use crate::ops::problem::Inner;
use std::ops::Range;

/// Parts into which a range of groups is cut.
const PARTS: usize = 4;

/// From this many right sides on, the inverse of a diagonal block costs less than substitution.
const INVERSE_COLUMNS: usize = 40;

/// Rows of the blocks that are solved by substitution.
const SUBSTITUTION_ROWS: usize = 16;

/// Extra bits of inverses are tried in multiples of this: about one prime more for each.
pub(super) const EXTRA_BITS_STEP: u32 = 24;

/// The numbers that decide how a triangle is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Rows of the triangle.
    pub order: usize,
    /// Bits of right sides and solutions.
    pub working_bits: u32,
    /// Right sides of the whole call.
    pub columns: usize,
}

impl Layout {
    /// Bits of the scaled integers in all products off the diagonal blocks, the same so that one engine serves all.
    pub fn product_bits(&self) -> u32 {
        self.working_bits + guard_bits(self.order)
    }

    /// Most extra bits of an inverse: beyond a quarter of the precision two smaller ones cost less than one.
    pub fn most_extra_bits(&self) -> u32 {
        (3 * EXTRA_BITS_STEP).max(self.working_bits / 4)
    }

    /// Whether so many rows may be solved by products with inverses.
    pub fn takes_group(&self, rows: usize) -> bool {
        self.columns >= INVERSE_COLUMNS && rows <= TRSM_GROUP_ROWS
    }

    /// The parts into which a range of rows is cut, first to last; `None` where it is solved by substitution.
    pub fn parts(&self, rows: &Range<usize>) -> Option<impl DoubleEndedIterator<Item = Range<usize>> + Clone> {
        let count = match rows.len() {
            0..=SUBSTITUTION_ROWS => return None,
            count if count <= TRSM_BLOCK_ROWS => rows.len().div_ceil(2).next_multiple_of(8),
            count if count <= TRSM_GROUP_ROWS => rows.len().div_ceil(2).next_multiple_of(TRSM_BLOCK_ROWS),
            _ => rows.len().div_ceil(TRSM_GROUP_ROWS).div_ceil(PARTS) * TRSM_GROUP_ROWS,
        };
        Some(pieces(rows, count))
    }

    /// Most bytes that a prepared triangle holds.
    pub fn prepared_bytes(&self) -> u64 {
        let reciprocals = (self.order * (limbs_for(self.working_bits) + 8) * 8) as u64;
        let bytes = |block: &Range<usize>, sources| Matrix::bytes_for(block.len(), sources, self.inverse_bits());
        let mut factors = (0, 0); // of a lower triangle, and of an upper one
        for group in pieces(&(0..self.order), TRSM_GROUP_ROWS).filter(|group| self.takes_group(group.len())) {
            for block in pieces(&group, TRSM_BLOCK_ROWS) {
                factors.0 += bytes(&block, block.end - group.start);
                factors.1 += bytes(&block, group.end - block.start);
            }
        }
        factors.0.max(factors.1).saturating_add(reciprocals)
    }

    /// Rows of the largest result of a product.
    pub fn scratch_rows(&self) -> usize {
        let mut rows = 0;
        self.visit(&(0..self.order), &mut |shape, _| rows = rows.max(shape.rows));
        rows
    }

    /// Bytes of the right sides and of the scratch of a band of so many columns.
    pub fn band_bytes(&self, columns: usize) -> u64 {
        let bytes = |rows| Matrix::bytes_for(rows, columns, self.working_bits);
        bytes(self.order).saturating_add(bytes(self.scratch_rows()))
    }

    /// Asks whether all products, on bands of so many columns, fit the memory limit beside `held_bytes`, which include
    /// those of the band.
    ///
    /// # Errors
    /// [`crate::Error::MemoryLimit`] with the least that the most demanding product needs.
    pub fn plan(&self, ctx: &Context, columns: usize, held_bytes: u64) -> Result<()> {
        let mut needs = self.plan_inverses(ctx, held_bytes);
        self.visit(&(0..self.order), &mut |shape, bits| {
            // The result of the product lies in the scratch, which is held.
            let result_bytes = Matrix::bytes_for(shape.rows, columns, self.working_bits);
            let inner = Inner { working_bits: Some(bits), held_bytes: held_bytes.saturating_sub(result_bytes) };
            let planned = plan(ctx, BlockShape { cols: columns, ..shape }, self.working_bits, inner).map(|_| ());
            needs = largest_need(std::mem::replace(&mut needs, Ok(())), planned);
        });
        needs
    }

    /// The products that prepare the groups.
    fn plan_inverses(&self, ctx: &Context, held_bytes: u64) -> Result<()> {
        if self.columns < INVERSE_COLUMNS {
            return Ok(());
        }
        let (block, group) = (self.order.min(TRSM_BLOCK_ROWS), self.order.min(TRSM_GROUP_ROWS));
        let inverse_bits = self.inverse_bits();
        let inner = Layout { order: block, working_bits: inverse_bits, columns: 0 };
        // Beside the inverse: the scaled block, and the scaled rectangle beside it.
        let held_bytes = held_bytes.saturating_add(self.preparing_bytes()).saturating_add(inner.band_bytes(block));
        let inverses = inner.plan(ctx, block, held_bytes);
        let shape = BlockShape { rows: block, cols: group - block, contracted: block };
        let product = Inner { working_bits: Some(self.group_product_bits()), held_bytes };
        largest_need(inverses, plan(ctx, shape, inverse_bits, product).map(|_| ()))
    }

    /// Bytes of copies of the triangle's entries, of any precision up to the largest that a solve can have.
    fn preparing_bytes(&self) -> u64 {
        let (block, group) = (self.order.min(TRSM_BLOCK_ROWS), self.order.min(TRSM_GROUP_ROWS));
        Matrix::bytes_for(block, group, COMMON_WORKING_BITS)
    }

    fn inverse_bits(&self) -> u32 {
        self.working_bits + self.most_extra_bits()
    }

    fn group_product_bits(&self) -> u32 {
        (self.inverse_bits() + guard_bits(TRSM_GROUP_ROWS)).min(COMMON_WORKING_BITS)
    }

    /// Shows the shape of each product that may run, but for its columns, to `see`, and the bits of its integers.
    fn visit(&self, rows: &Range<usize>, see: &mut impl FnMut(BlockShape, u32)) {
        if self.takes_group(rows.len()) {
            for block in pieces(rows, TRSM_BLOCK_ROWS) {
                let contracted = (block.end - rows.start).max(rows.end - block.start);
                see(BlockShape { rows: block.len(), cols: 0, contracted }, self.group_product_bits());
            }
        }
        let Some(parts) = self.parts(rows) else { return };
        for part in parts {
            // From the first row down in a lower triangle, from the last one up in an upper one: the larger of the two.
            let contracted = (part.start - rows.start).max(rows.end - part.end);
            see(BlockShape { rows: part.len(), cols: 0, contracted }, self.product_bits());
            self.visit(&part, see);
        }
    }
}

/// Pieces of `count` rows each, the last with what is left.
pub(super) fn pieces(rows: &Range<usize>, count: usize) -> impl DoubleEndedIterator<Item = Range<usize>> + Clone {
    let rows = rows.clone();
    rows.clone().step_by(count).map(move |start| start..(start + count).min(rows.end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::bound::ceil_log2;

    /// Most cuts above any row, by the rule of the tree without groups.
    fn depth(layout: &Layout, rows: Range<usize>) -> u32 {
        let Some(parts) = layout.parts(&rows) else { return 0 };
        let mut next = rows.start;
        let mut deepest = 0;
        for part in parts {
            assert_eq!(part.start, next, "parts of {rows:?} follow each other");
            assert!(!part.is_empty() && part.len() < rows.len(), "{part:?} of {rows:?}");
            next = part.end;
            deepest = deepest.max(depth(layout, part));
        }
        assert_eq!(next, rows.end);
        1 + deepest
    }

    #[test]
    fn no_row_is_updated_more_often_than_the_bound_allows() {
        for order in (0..1200).chain([4097, 10_000, 16_384, 16_385, 100_001]) {
            let layout = Layout { order, working_bits: 100, columns: 1 };
            assert!(depth(&layout, 0..order) <= ceil_log2(order), "order {order}");
        }
    }

    #[test]
    fn plans_of_larger_solves_hold_more() {
        let layout = |order, columns| Layout { order, working_bits: 200, columns };
        for (small, large) in [((10, 5), (11, 5)), ((100, 50), (101, 50)), ((300, 50), (600, 50)), ((70, 5), (70, 50))]
        {
            let (small, large) = (layout(small.0, small.1), layout(large.0, large.1));
            assert!(small.prepared_bytes() < large.prepared_bytes(), "{small:?}");
            assert!(small.scratch_rows() <= large.scratch_rows() && small.band_bytes(8) <= large.band_bytes(8));
        }
        assert_eq!(layout(0, 0).scratch_rows(), 0);
    }
}
