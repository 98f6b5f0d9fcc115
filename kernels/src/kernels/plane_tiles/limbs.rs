//! Blocks of integers on limbs, one entry after the other: on any CPU.
//!
//! Layout of a block: slots `[row][column]`, an entry less the sums so far in two's complement or, once it is finished,
//! a sign and limbs.

use super::rules::{BlockRules, PivotedTriangle};
use crate::kernels::IntegerBlock;
use crate::kernels::entries::{self, Reciprocal, Widths};
use crate::kernels::limbs;
use crate::kernels::tiles::{FailedPivot, PANEL_ROWS, TileSource};
use crate::math::bound::TILE_SPARE_BITS;
use crate::math::float::{limbs_for, round_shifted};
use crate::math::pivot::RowWeight;
use crate::plan::BLOCK;
use rug::Integer;
use rug::integer::Order;

/// A pivot, ready for quotients.
pub struct LimbPivot {
    negative: bool,
    /// Limbs of its magnitude, equal in number to the limbs of an entry.
    limbs: Box<[u64]>,
    reciprocal: Reciprocal<Box<[u64]>>,
}

/// The rules on limbs for one precision.
pub struct LimbRules {
    working_bits: u32,
    widths: Widths,
}

impl LimbRules {
    /// Rules for `working_bits` working bits.
    pub fn new(working_bits: u32) -> LimbRules {
        LimbRules { working_bits, widths: Widths::new(working_bits) }
    }

    /// Words of an integer.
    fn slot_words(&self) -> usize {
        limbs_for(2 * self.working_bits + TILE_SPARE_BITS + 1).max(1 + self.widths.entry)
    }

    fn row_words(&self) -> usize {
        BLOCK * self.slot_words()
    }

    /// A sign and limbs in place of an integer in two's complement.
    fn to_signed(&self, slot: &mut [u64]) {
        let negative = limbs::to_magnitude(slot);
        slot.copy_within(..self.widths.entry, 1);
        slot[0] = u64::from(negative);
    }

    /// A positive pivot.
    fn pivot_of(&self, magnitude: &[u64]) -> LimbPivot {
        let mut limbs = vec![0; self.widths.entry].into_boxed_slice();
        let count = magnitude.len().min(limbs.len());
        limbs[..count].copy_from_slice(&magnitude[..count]);
        LimbPivot { negative: false, limbs, reciprocal: Reciprocal::boxed(magnitude, self.working_bits) }
    }

    /// The steps of one call.
    fn rows<'a>(&'a self, scratch: &'a mut [u64]) -> LimbRows<'a> {
        let (rest, scratch) = scratch.split_at_mut(self.widths.rest);
        let (product, scratch) = scratch.split_at_mut(2 * self.widths.entry);
        let quotient = &mut scratch[..entries::quotient_words(self.widths, self.working_bits)];
        LimbRows { rules: self, rest, product, quotient }
    }
}

impl BlockRules for LimbRules {
    type Pivot = LimbPivot;

    const FORM: &'static str = "planes and limbs";

    fn block_words(&self) -> usize {
        PANEL_ROWS * self.row_words()
    }

    fn entry_limbs(&self) -> usize {
        self.widths.entry
    }

    fn scratch_words(&self) -> usize {
        self.widths.rest + 2 * self.widths.entry + entries::quotient_words(self.widths, self.working_bits)
    }

    fn pivot_bytes(&self) -> u64 {
        Reciprocal::bytes(self.working_bits) + (size_of::<LimbPivot>() + 8 * self.widths.entry) as u64
    }

    fn call_bytes(&self) -> u64 {
        // The integers of GMP that a pivot takes.
        8 * (40 + 8 * self.slot_words() as u64)
    }

    fn pivot(&self, value: &Integer) -> LimbPivot {
        LimbPivot { negative: *value < 0, ..self.pivot_of(value.as_limbs()) }
    }

    fn load(&self, source: &TileSource<'_>, panel: usize, finished: bool, blocks: &mut [u64], _scratch: &mut [u64]) {
        blocks.fill(0);
        for (col, j) in source.cols.clone().enumerate() {
            let own = source.rows.clone().enumerate().skip(panel * PANEL_ROWS).take(PANEL_ROWS);
            for (row, i) in own.filter(|&(row, _)| source.offset().is_none_or(|offset| row >= col + offset)) {
                let value = source.matrix.get(i, j);
                if value.head.is_zero() {
                    continue;
                }
                let at = col / BLOCK * self.block_words() + row % PANEL_ROWS * self.row_words();
                let slot = &mut blocks[at + col % BLOCK * self.slot_words()..][..self.slot_words()];
                let shift = value.head.exponent() + source.row_shifts[i] + source.col_shifts[j];
                round_shifted(value.limbs, value.limbs.len() as i64 * 64 - shift, slot);
                if value.head.is_negative() {
                    limbs::negate(slot);
                }
                if finished {
                    self.to_signed(slot);
                }
            }
        }
    }

    fn set(&self, block: &mut [u64], col: usize, signs: u8, magnitudes: &[u64], _scratch: &mut [u64]) {
        let magnitudes = magnitudes.chunks_exact(magnitudes.len() / PANEL_ROWS);
        for ((lane, row), magnitude) in block.chunks_exact_mut(self.row_words()).enumerate().zip(magnitudes) {
            let slot = &mut row[col * self.slot_words()..][..self.slot_words()];
            set(slot, self.widths.entry, signs >> lane & 1 == 1, magnitude);
        }
    }

    fn get(&self, block: &[u64], col: usize, magnitudes: &mut [u64]) -> u8 {
        let entries = magnitudes.chunks_exact_mut(self.widths.entry);
        let slots = block.chunks_exact(self.row_words()).map(|row| &row[col * self.slot_words()..]);
        entries.zip(slots).enumerate().fold(0, |signs, (lane, (out, slot))| {
            out.copy_from_slice(&slot[1..1 + self.widths.entry]);
            signs | (slot[0] as u8) << lane
        })
    }

    fn take_off(&self, block: &mut [u64], sums: &IntegerBlock, cols: usize, _scratch: &mut [u64]) {
        for (lane, row) in block.chunks_exact_mut(self.row_words()).enumerate() {
            for (col, slot) in row.chunks_exact_mut(self.slot_words()).enumerate().take(cols) {
                let number = BLOCK * col + lane;
                let sum = sums.magnitude(number);
                // A correct sum has no limbs above those of the rest.
                let sum = sum.iter().copied().chain(std::iter::repeat(0));
                take_magnitude_off(slot, sum, sums.negative[number]);
            }
        }
    }

    fn factor(
        &self,
        block: &mut [u64],
        weights: &mut [RowWeight],
        pivots: &mut Vec<LimbPivot>,
        scratch: &mut [u64],
    ) -> Result<(), FailedPivot> {
        self.rows(scratch).factor(block, weights, pivots)
    }

    fn solve(
        &self,
        block: &mut [u64],
        above: PivotedTriangle<'_, LimbPivot>,
        weights: &mut [RowWeight],
        scratch: &mut [u64],
    ) {
        let PivotedTriangle { words: above, pivots } = above;
        let (mut rows, row_words) = (self.rows(scratch), self.row_words());
        for (row, weight) in block.chunks_exact_mut(row_words).zip(weights) {
            for (col, pivot) in pivots.iter().enumerate() {
                rows.entry(col, row, &above[col * row_words..][..row_words], pivot, weight);
            }
        }
    }
}

/// The entries of one block: the rest of each, its quotient by the pivot, roots of pivots.
struct LimbRows<'a> {
    rules: &'a LimbRules,
    /// The rest of an entry.
    rest: &'a mut [u64],
    product: &'a mut [u64],
    quotient: &'a mut [u64],
}

impl LimbRows<'_> {
    /// The triangle of a block, as far as its pivots are positive.
    fn factor(
        &mut self,
        block: &mut [u64],
        weights: &mut [RowWeight],
        pivots: &mut Vec<LimbPivot>,
    ) -> Result<(), FailedPivot> {
        let (row_words, slot_words, first) = (self.rules.row_words(), self.rules.slot_words(), pivots.len());
        for (lane, weight) in weights.iter_mut().enumerate() {
            let (above, row) = block.split_at_mut(lane * row_words);
            let row = &mut row[..row_words];
            for col in 0..lane {
                let above = &above[col * row_words..][..row_words];
                self.entry(col, row, above, &pivots[first + col], weight);
            }
            if weight.is_rejected() {
                return Err(FailedPivot { column: lane, value: None });
            }
            let (before, slot) = row.split_at_mut(lane * slot_words);
            let (slot, above) = slot.split_at_mut(slot_words);
            above.fill(0);
            self.take_off(slot, before, before);
            let negative = limbs::to_magnitude(self.rest);
            match entries::root(self.rest, self.quotient).filter(|_| !negative) {
                Some(root) => {
                    set(slot, self.rules.widths.entry, false, root);
                    pivots.push(self.rules.pivot_of(root));
                }
                None => {
                    let value = -Integer::from_digits(self.rest, Order::Lsf);
                    return Err(FailedPivot { column: lane, value: Some(value) });
                }
            }
        }
        Ok(())
    }

    /// Finishes one entry: its quotient by the pivot, 0 in a row that is rejected.
    #[inline]
    fn entry(&mut self, col: usize, row: &mut [u64], above: &[u64], pivot: &LimbPivot, weight: &mut RowWeight) {
        let (slot_words, widths) = (self.rules.slot_words(), self.rules.widths);
        let (before, slot) = row.split_at_mut(col * slot_words);
        let slot = &mut slot[..slot_words];
        if weight.is_rejected() {
            return slot.fill(0);
        }
        self.take_off(slot, before, &above[..col * slot_words]);
        let negative = limbs::to_magnitude(self.rest) != pivot.negative;
        let quotient = pivot.reciprocal.quotient(self.rest, &pivot.limbs, self.quotient);
        weight.add_limbs(quotient, self.rules.working_bits);
        let kept = if weight.is_rejected() { &[] } else { quotient };
        set(slot, widths.entry, negative, kept);
    }

    /// The rest of an entry, in two's complement: `slot` less the products of finished entries.
    #[inline]
    fn take_off(&mut self, slot: &[u64], x: &[u64], y: &[u64]) {
        let entry = self.rules.widths.entry;
        let extension = u64::from(slot[slot.len() - 1] >> 63 == 1).wrapping_neg();
        let given = slot.len().min(self.rest.len());
        self.rest[..given].copy_from_slice(&slot[..given]);
        self.rest[given..].fill(extension);
        for (x, y) in x.chunks_exact(slot.len()).zip(y.chunks_exact(slot.len())) {
            limbs::add_product(self.rest, &x[1..=entry], &y[1..=entry], x[0] == y[0], self.product);
        }
    }
}

/// Takes a number with this magnitude off an integer in two's complement, modulo its limbs.
#[inline]
fn take_magnitude_off(slot: &mut [u64], magnitude: impl Iterator<Item = u64>, negative: bool) {
    // `a - b` is `a + !b + 1`.
    let (mut carry, flip) = (!negative, u64::from(!negative).wrapping_neg());
    for (limb, other) in slot.iter_mut().zip(magnitude) {
        let (sum, first) = limb.overflowing_add(other ^ flip);
        let (sum, second) = sum.overflowing_add(u64::from(carry));
        (*limb, carry) = (sum, first | second);
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
