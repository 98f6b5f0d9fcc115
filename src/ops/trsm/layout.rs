//! How a triangle is cut, from numbers alone: what a solve holds, and the products that it may run.
//!
//! The plan takes the worst that the entries can ask for, so a limit that it accepts is enough whatever they are.

use crate::context::Context;
use crate::error::Result;
use crate::math::bound::guard_bits;
use crate::math::float::limbs_for;
use crate::matrix::Matrix;
use crate::ops::product::block::{BlockShape, largest_need, plan};
use crate::ops::product::problem::Inner;
use crate::ops::trsm::fixed;
use std::ops::Range;

/// Rows of a part that is not cut further by more than two.
const GROUP_ROWS: usize = 256;

/// Parts into which a larger range of rows is cut.
const PARTS: usize = 4;

/// From this many right sides on, and for triangles larger than a block, tiles cost less than parts.
const TILE_COLUMNS: usize = 8;

/// Rows of the blocks that are solved by substitution.
const SUBSTITUTION_ROWS: usize = 16;

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

    /// Whether columns are first tried in fixed point, in tiles.
    pub fn takes_tiles(&self) -> bool {
        self.columns >= TILE_COLUMNS && self.order > SUBSTITUTION_ROWS
    }

    /// The parts into which a range of rows is cut, first to last; `None` where it is solved by substitution.
    pub fn parts(&self, rows: &Range<usize>) -> Option<impl DoubleEndedIterator<Item = Range<usize>> + Clone> {
        let count = match rows.len() {
            0..=SUBSTITUTION_ROWS => return None,
            count if count <= GROUP_ROWS => rows.len().div_ceil(2).next_multiple_of(8),
            _ => rows.len().div_ceil(GROUP_ROWS).div_ceil(PARTS) * GROUP_ROWS,
        };
        Some(pieces(rows, count))
    }

    /// Most bytes that a prepared triangle holds.
    pub fn prepared_bytes(&self) -> u64 {
        (self.order * (limbs_for(self.working_bits) + 9) * 8) as u64
    }

    /// Rows of the largest result of a product.
    pub fn scratch_rows(&self) -> usize {
        let mut rows = 0;
        self.visit(&(0..self.order), &mut |shape, _| rows = rows.max(shape.rows));
        rows
    }

    /// Bytes of the right sides, of those that are tried again, and of the scratch, for a band of so many columns.
    pub fn band_bytes(&self, columns: usize) -> u64 {
        let bytes = |rows| Matrix::bytes_for(rows, columns, self.working_bits);
        let copies = if self.takes_tiles() { 2 } else { 1 };
        bytes(self.order).saturating_mul(copies).saturating_add(bytes(self.scratch_rows()))
    }

    /// Asks whether all products, on bands of so many columns, fit the memory limit beside `held_bytes`, which include
    /// those of the band.
    ///
    /// # Errors
    /// [`crate::Error::MemoryLimit`] with the least that the most demanding product needs.
    pub fn plan(&self, ctx: &Context, columns: usize, held_bytes: u64) -> Result<()> {
        let tiles = fixed::least_bytes(ctx, self, columns)?;
        let mut needs = ctx.admit(tiles.saturating_add(held_bytes));
        self.visit(&(0..self.order), &mut |shape, bits| {
            // The result of the product lies in the scratch, which is held.
            let result_bytes = Matrix::bytes_for(shape.rows, columns, self.working_bits);
            let inner = Inner { working_bits: Some(bits), held_bytes: held_bytes.saturating_sub(result_bytes) };
            let planned = plan(ctx, BlockShape { cols: columns, ..shape }, self.working_bits, inner).map(|_| ());
            needs = largest_need(std::mem::replace(&mut needs, Ok(())), planned);
        });
        needs
    }

    /// Shows the shape of each product that may run, but for its columns, to `see`, and the bits of its integers.
    fn visit(&self, rows: &Range<usize>, see: &mut impl FnMut(BlockShape, u32)) {
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
fn pieces(rows: &Range<usize>, count: usize) -> impl DoubleEndedIterator<Item = Range<usize>> + Clone {
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
            let bytes = |layout: &Layout| layout.prepared_bytes() + layout.band_bytes(8);
            assert!(bytes(&small) < bytes(&large) && small.scratch_rows() <= large.scratch_rows(), "{small:?}");
        }
        assert_eq!(layout(0, 0).scratch_rows(), 0);
    }
}
