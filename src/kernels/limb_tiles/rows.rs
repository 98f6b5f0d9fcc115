//! Rows of a block of 8 columns on integers: what is left of each entry, its quotient by the pivot, roots of pivots.

use super::{LimbTiles, Reciprocal};
use crate::kernels::IntegerBlock;
use crate::kernels::entries::{self, Widths};
use crate::kernels::limbs;
use crate::kernels::tiles::FailedPivot;
use crate::math::pivot::RowWeight;
use crate::plan::BLOCK;
use rug::Integer;
use rug::integer::Order;

/// Scratch of one entry.
pub struct Space<'s> {
    /// What is left of it.
    rest: &'s mut [u64],
    product: &'s mut [u64],
    quotient: &'s mut [u64],
}

impl<'s> Space<'s> {
    /// Words that it takes.
    pub fn words(widths: Widths, working_bits: u32) -> usize {
        widths.rest + 2 * widths.entry + entries::quotient_words(widths, working_bits)
    }

    /// Cut from the front of `scratch`, and what is left.
    pub fn new(widths: Widths, working_bits: u32, scratch: &'s mut [u64]) -> (Space<'s>, &'s mut [u64]) {
        let (rest, scratch) = scratch.split_at_mut(widths.rest);
        let (product, scratch) = scratch.split_at_mut(2 * widths.entry);
        let (quotient, scratch) = scratch.split_at_mut(entries::quotient_words(widths, working_bits));
        (Space { rest, product, quotient }, scratch)
    }
}

/// The rules of one block.
pub struct Rows<'a, 's> {
    /// The kernels.
    pub kernels: &'a LimbTiles,
    /// The sums that are to be taken off: those of the panel's rows.
    pub integers: &'a IntegerBlock,
    /// Columns of the block.
    pub cols: usize,
    /// Scratch.
    pub space: &'a mut Space<'s>,
}

impl Rows<'_, '_> {
    fn row_words(&self) -> usize {
        BLOCK * self.kernels.slot_words()
    }

    /// Finishes rows below the triangle `above` of the block, whose pivots are given: one for each weight.
    pub fn solve(&mut self, slots: &mut [u64], (above, pivots): (&[u64], &[Reciprocal]), weights: &mut [RowWeight]) {
        let row_words = self.row_words();
        for ((lane, row), weight) in slots.chunks_exact_mut(row_words).enumerate().zip(weights) {
            for col in 0..self.cols {
                self.entry((lane, col), row, (&above[col * row_words..][..row_words], &pivots[col]), weight);
            }
        }
    }

    /// Factors the block's triangle, as far as its pivots are positive, and adds these to `pivots`.
    ///
    /// # Errors
    /// The first pivot that is not, its column counted within the block.
    pub fn factor(
        &mut self,
        slots: &mut [u64],
        weights: &mut [RowWeight],
        pivots: &mut Vec<Reciprocal>,
    ) -> Result<(), FailedPivot> {
        let (row_words, slot_words, first) = (self.row_words(), self.kernels.slot_words(), pivots.len());
        for (lane, weight) in weights.iter_mut().enumerate().take(self.cols) {
            let (above, row) = slots.split_at_mut(lane * row_words);
            let row = &mut row[..row_words];
            for col in 0..lane {
                let above = &above[col * row_words..][..row_words];
                self.entry((lane, col), row, (above, &pivots[first + col]), weight);
            }
            if weight.is_rejected() {
                return Err(FailedPivot { column: lane, value: None });
            }
            let (before, slot) = row.split_at_mut(lane * slot_words);
            self.take_off((lane, lane), &slot[..slot_words], (before, before));
            let Space { rest, quotient, .. } = &mut *self.space;
            let negative = limbs::to_magnitude(rest);
            match entries::root(rest, quotient).filter(|_| !negative) {
                Some(root) => {
                    set(&mut slot[..slot_words], self.kernels.widths.entry, false, root);
                    pivots.push(Reciprocal::boxed(root, self.kernels.working_bits));
                }
                None => {
                    let value = -Integer::from_digits(rest, Order::Lsf);
                    return Err(FailedPivot { column: lane, value: Some(value) });
                }
            }
        }
        Ok(())
    }

    /// Finishes one entry: its quotient by the pivot at the end of `above`, 0 in a row that is rejected.
    #[inline]
    fn entry(
        &mut self,
        (lane, col): (usize, usize),
        row: &mut [u64],
        (above, reciprocal): (&[u64], &Reciprocal),
        weight: &mut RowWeight,
    ) {
        let (slot_words, widths) = (self.kernels.slot_words(), self.kernels.widths);
        let (before, slot) = row.split_at_mut(col * slot_words);
        let slot = &mut slot[..slot_words];
        if weight.is_rejected() {
            return slot.fill(0);
        }
        let (products, pivot) = above.split_at(col * slot_words);
        self.take_off((lane, col), slot, (before, products));
        let Space { rest, quotient, .. } = &mut *self.space;
        let negative = limbs::to_magnitude(rest) != (pivot[0] == 1);
        let quotient = reciprocal.quotient(rest, &pivot[1..=widths.entry], quotient);
        weight.add_limbs(quotient, self.kernels.working_bits);
        let kept = if weight.is_rejected() { &[] } else { quotient };
        set(slot, widths.entry, negative, kept);
    }

    /// What is left of an entry, in two's complement: `slot` less its sum and the products of finished entries.
    #[inline]
    fn take_off(&mut self, (lane, col): (usize, usize), slot: &[u64], (x, y): (&[u64], &[u64])) {
        let entry = self.kernels.widths.entry;
        let Space { rest, product, .. } = &mut *self.space;
        let extension = u64::from(slot[slot.len() - 1] >> 63 == 1).wrapping_neg();
        let given = slot.len().min(rest.len());
        rest[..given].copy_from_slice(&slot[..given]);
        rest[given..].fill(extension);
        let number = BLOCK * col + lane;
        let sum = self.integers.magnitude(number);
        // A true sum has no more limbs than what is left.
        let sum = &sum[..sum.len().min(rest.len() - 1)];
        match self.integers.negative[number] {
            true => limbs::add_assign(rest, sum),
            false => limbs::subtract_assign(rest, sum),
        }
        for (x, y) in x.chunks_exact(slot.len()).zip(y.chunks_exact(slot.len())) {
            limbs::add_product(rest, (&x[1..=entry], &y[1..=entry]), x[0] == y[0], product);
        }
    }
}

/// Sets a slot to an entry that fits.
#[inline]
fn set(slot: &mut [u64], entry: usize, negative: bool, magnitude: &[u64]) {
    let (sign, slot) = slot.split_at_mut(1);
    let count = magnitude.len().min(entry);
    slot[..count].copy_from_slice(&magnitude[..count]);
    slot[count..].fill(0);
    sign[0] = u64::from(negative && magnitude.iter().any(|&limb| limb != 0));
}
