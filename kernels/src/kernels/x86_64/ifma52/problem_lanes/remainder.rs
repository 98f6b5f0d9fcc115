//! One entry of eight recurrences at a time, side by side: `round((a - sum x y) / l)` in digits, kept with its offset
//! for the sums to come, and rounded to a float.

use super::super::factor::weights::{LaneWeights, Live};
use super::super::row_lanes::round::{Magnitudes, Rounding};
use super::columns::{Factor, two_columns};
use super::cut::cut;
use super::numbers::{DIGIT_BITS, MASK, load, magnitudes, store};
use super::pivots::{self, Reciprocals, WINDOW};
use super::sums::{self, Terms};
use super::{ProblemLanes, cut_words};
use crate::kernels::radix::CutLanes;
use crate::math::float::{FloatRef, limbs_for};
use crate::plan::BLOCK;
use std::arch::x86_64::*;

/// Eight numbers, and by which powers of two they are scaled.
pub struct ScaledNumbers<'a> {
    pub numbers: [FloatRef<'a>; BLOCK],
    pub shifts: [i64; BLOCK],
}

/// Sums of products that are subtracted, and for both factors the sums of their entries digit by digit.
#[derive(Clone, Copy)]
pub struct Subtracted<'a> {
    pub terms: Terms,
    pub totals: [&'a [u64]; 2],
}

/// Memory of one entry.
pub struct Remainder<'a> {
    lanes: &'a ProblemLanes,
    rounding: Rounding,
    /// The rest of an entry: the entry less the products so far.
    pub left: &'a mut [u64],
    /// An entry of the result.
    pub entry: &'a mut [u64],
    cut: &'a mut [u64],
    window: &'a mut [u64],
    limbs: &'a mut [u64],
}

impl<'a> Remainder<'a> {
    /// Words of the memory, for entries that are rounded to `precision_bits` bits.
    pub fn words(lanes: &ProblemLanes, precision_bits: u32) -> usize {
        let rounded = Rounding::new(precision_bits).scratch_words() + BLOCK * limbs_for(precision_bits);
        (3 * lanes.digits + 1) * BLOCK + cut_words(2 * lanes.digits) + rounded
    }

    /// Takes that much of `words`; returns the rest of them, too.
    pub fn new(lanes: &'a ProblemLanes, precision_bits: u32, words: &'a mut [u64]) -> (Remainder<'a>, &'a mut [u64]) {
        let (digits, rounding) = (lanes.digits, Rounding::new(precision_bits));
        let (left, words) = words.split_at_mut(2 * digits * BLOCK);
        let (entry, words) = words.split_at_mut((digits + 1) * BLOCK);
        let (cut, words) = words.split_at_mut(cut_words(2 * digits));
        let (window, words) = words.split_at_mut(rounding.scratch_words());
        let (limbs, words) = words.split_at_mut(BLOCK * limbs_for(precision_bits));
        (Remainder { lanes, rounding, left, entry, cut, window, limbs }, words)
    }

    /// An entry less sums of products, without the columns of digits below `from`: its magnitude goes into `left`;
    /// returns the lanes below 0.
    ///
    /// # Safety
    /// The terms have their digits.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512ifma")]
    pub unsafe fn reduce(
        &mut self,
        ScaledNumbers { numbers, shifts }: &ScaledNumbers<'_>,
        products: Subtracted<'_>,
        from: usize,
    ) -> u8 {
        let CutLanes { signs, carries } = cut(numbers, shifts, from, self.cut);
        assert!(self.left.len() == 2 * self.lanes.digits * BLOCK);
        // SAFETY: the caller's promise, and the sums have their words.
        unsafe { sums::multiply(self.lanes.digits, products.terms, from, self.left.as_mut_ptr()) };
        self.left[..from * BLOCK].fill(0);
        let carries = if from == 0 { carries } else { 0 };
        self.add_up(products, from, CutLanes { signs, carries });
        magnitudes(&mut self.left[from * BLOCK..])
    }

    /// The entry that was cut, plus the terms of the offsets, less the sums in `left`: the digits in their place, of a
    /// number modulo `2^(104 d)`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn add_up(&mut self, Subtracted { terms, totals }: Subtracted<'_>, from: usize, cut: CutLanes) {
        let CutLanes { signs, carries } = cut;
        let digits = self.lanes.digits;
        let cut = &self.cut[BLOCK..][..2 * digits * BLOCK];
        let left = &mut self.left[..2 * digits * BLOCK];
        let [rows, cols] = totals.map(|totals| &totals[..digits * BLOCK]);
        let (mask, zero) = (_mm512_set1_epi64(MASK), _mm512_setzero_si512());
        let mut flow =
            _mm512_mask_sub_epi64(_mm512_maskz_set1_epi64(carries, 1), signs & carries, zero, _mm512_set1_epi64(1));
        let mut below = zero;
        for at in from..2 * digits {
            let own = _mm512_and_si512(load(cut, at), mask);
            let own = _mm512_mask_sub_epi64(own, signs, zero, own);
            let mut own = _mm512_sub_epi64(_mm512_add_epi64(own, flow), load(left, at));
            // The offset 2^(52 d - 1) times the sums of both rows: half a digit in each of two columns.
            if at >= digits {
                own = _mm512_add_epi64(own, below);
            }
            if at + 1 >= digits && at + 1 < 2 * digits {
                let total = _mm512_add_epi64(load(rows, at + 1 - digits), load(cols, at + 1 - digits));
                own = _mm512_add_epi64(own, _mm512_and_si512(_mm512_slli_epi64::<51>(total), mask));
                below = _mm512_srli_epi64::<1>(total);
            }
            if at + 1 == 2 * digits {
                // Less its square for each term.
                own = _mm512_sub_epi64(own, _mm512_set1_epi64((terms.count as i64) << (DIGIT_BITS - 2)));
            }
            flow = _mm512_srai_epi64::<52>(own);
            store(left, at, _mm512_and_si512(own, mask));
        }
    }

    /// Divides the rest of an entry by pivots; returns the lanes whose quotient is too large, or too close to half an
    /// integer.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub fn divide(&mut self, reciprocals: &[u64], known: &Reciprocals, from: usize) -> u8 {
        let (digits, bits) = (self.lanes.digits, self.lanes.bits as usize);
        let Reciprocals { fraction, count, longest } = *known;
        let end = (bits + 2 + longest).div_ceil(DIGIT_BITS).min(2 * digits);
        assert!(from < end && fraction >= from + 2 && reciprocals.len() >= count * BLOCK);
        let mask = _mm512_set1_epi64(MASK);
        let (mut above, mut unclear) = (_mm512_setzero_si512(), 0);
        for at in end..2 * digits {
            above = _mm512_or_si512(above, load(self.left, at));
        }
        let numerator = Factor::of(&self.left[from * BLOCK..end * BLOCK]);
        let reciprocal = Factor::of(&reciprocals[..count * BLOCK]);
        // SAFETY: the factors are those of the slices, here and below. The carry of the first column's own low halves
        // is below 2^-46.
        let mut flow = unsafe { two_columns(numerator, reciprocal, fraction - 2 - from) }[0].1;
        let last = (fraction + digits).max(end + count);
        for first in (fraction - 1..=last).step_by(2) {
            // SAFETY: as above.
            let columns = unsafe { two_columns(numerator, reciprocal, first - from) };
            for (at, (low, high)) in (first..=last).zip(columns) {
                let sum = _mm512_add_epi64(low, flow);
                let digit = _mm512_and_si512(sum, mask);
                flow = _mm512_add_epi64(high, _mm512_srli_epi64::<52>(sum));
                if at + 1 == fraction {
                    let half = _mm512_set1_epi64(1 << (DIGIT_BITS - 1));
                    let distance = _mm512_abs_epi64(_mm512_sub_epi64(digit, half));
                    unclear = _mm512_cmple_epu64_mask(distance, _mm512_set1_epi64(WINDOW));
                    let up = _mm512_cmpgt_epu64_mask(digit, half);
                    flow = _mm512_mask_add_epi64(flow, up, flow, _mm512_set1_epi64(1));
                } else if at - fraction < digits {
                    store(self.entry, at - fraction, digit);
                } else {
                    above = _mm512_or_si512(above, digit);
                }
            }
        }
        unclear | _mm512_test_epi64_mask(above, above)
    }

    /// Adds the weights of the entry to those of its row; returns the lanes that are rejected by now.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn add_weights(&self, weights: LaneWeights<'_>) -> u8 {
        // SAFETY: the entry has its digits, in one vector each.
        unsafe { self.lanes.rule.add::<1>(self.entry.as_ptr(), 0, Live { beyond: 0, live: u8::MAX }, weights) }
    }

    /// Keeps the entry with these signs for sums to come; see [`keep`].
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn keep(&self, signs: u8, cell: &mut [u64], totals: Option<&mut [u64]>) {
        keep(self.lanes.digits, self.entry, CutLanes::exact(signs), cell, totals);
    }

    /// The entry with these signs times powers of two, rounded: its significands.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512cd,avx512vbmi")]
    pub fn round(&mut self, signs: u8, exponents: &[i64; BLOCK], heads: &mut [u64; BLOCK]) -> &[u64] {
        let from = Magnitudes { digits: &self.entry[..self.lanes.digits * BLOCK], exponents, signs };
        self.rounding.round(from, heads, self.limbs, self.window);
        self.limbs
    }
}

/// Writes digits with an offset, of magnitudes with these signs and carries of rounding; adds them to `totals`.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn keep(digits: usize, from: &[u64], cut: CutLanes, cell: &mut [u64], mut totals: Option<&mut [u64]>) {
    let CutLanes { signs, carries } = cut;
    let (mask, zero) = (_mm512_set1_epi64(MASK), _mm512_setzero_si512());
    let (mut more, mut flow) = (_mm512_maskz_set1_epi64(carries, 1), zero);
    for at in 0..digits {
        let own = _mm512_add_epi64(_mm512_and_si512(load(from, at), mask), more);
        more = zero;
        let mut sum = _mm512_add_epi64(_mm512_mask_sub_epi64(own, signs, zero, own), flow);
        if at + 1 == digits {
            sum = _mm512_add_epi64(sum, _mm512_set1_epi64(1 << (DIGIT_BITS - 1)));
        }
        flow = _mm512_srai_epi64::<52>(sum);
        let digit = _mm512_and_si512(sum, mask);
        store(cell, at, sums::form(digit));
        if let Some(totals) = &mut totals {
            store(totals, at, _mm512_add_epi64(load(totals, at), digit));
        }
    }
}

/// Harmless numbers, in the lanes that are dead, for the squares of pivots of `bits` bits.
#[target_feature(enable = "avx512f")]
pub fn replace_squares(bits: u32, dead: u8, squares: &mut [u64]) {
    let at = 2 * bits as usize;
    for digit in 0..squares.len() / BLOCK {
        let own = if digit == at / DIGIT_BITS { 1 << (at % DIGIT_BITS) } else { 0 };
        store(squares, digit, _mm512_mask_mov_epi64(load(squares, digit), dead, _mm512_set1_epi64(own)));
    }
}

/// Words of eight roots, and of the scratch that finds them and their reciprocals.
pub fn pivot_words(lanes: &ProblemLanes) -> usize {
    lanes.digits * BLOCK + pivots::space_words(lanes.bits, lanes.digits)
}
