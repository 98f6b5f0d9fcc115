//! Cholesky factors of eight matrices of one order, side by side.

use super::super::factor::weights::{LaneWeights, Live};
use super::super::row_lanes::round::{Magnitudes, Rounding};
use super::cut::cut;
use super::numbers::{DIGIT_BITS, Factor, MASK, lengths, load, magnitudes, store, two_columns};
use super::pivots::{self, Reciprocals, WINDOW};
use super::sums::{self, Terms};
use super::{Matrices, ProblemLanes, Rounded, cut_words};
use crate::math::bound::{lane_first_column, lane_root_bits};
use crate::math::float::limbs_for;
use crate::plan::BLOCK;
use std::arch::x86_64::*;

/// Words of everything.
pub fn words(lanes: &ProblemLanes, order: usize, precision_bits: u32) -> usize {
    let digits = lanes.digits;
    let entries = (order * (order + 1) / 2 + order) * digits + order;
    let rest = 2 * digits + digits + 1 + digits + pivots::reciprocal_digits(lanes.bits);
    let rounded = Rounding::new(precision_bits).scratch_words() + BLOCK * limbs_for(precision_bits);
    (entries + rest) * BLOCK + cut_words(2 * digits) + pivots::space_words(lanes.bits, digits) + rounded
}

/// The factors at work.
struct Work<'a> {
    lanes: &'a ProblemLanes,
    matrices: &'a Matrices<'a>,
    rounding: Rounding,
    /// Entries with their offset, row by row below the diagonal.
    entries: &'a mut [u64],
    /// For each row the sums of its entries so far, digit by digit.
    totals: &'a mut [u64],
    /// For each row the running sums of its weights.
    weights: &'a mut [u64],
    /// What is left of an entry.
    left: &'a mut [u64],
    /// An entry of the factor.
    entry: &'a mut [u64],
    cut: &'a mut [u64],
    roots: &'a mut [u64],
    reciprocals: &'a mut [u64],
    space: &'a mut [u64],
    window: &'a mut [u64],
    limbs: &'a mut [u64],
}

/// What is known of the pivots of a column.
struct ColumnPivots {
    /// Lanes that are not done here.
    dead: u8,
    /// The first column of digits that the rest of the column takes.
    from: usize,
    reciprocals: Reciprocals,
}

impl<'a> Work<'a> {
    fn new(lanes: &'a ProblemLanes, matrices: &'a Matrices<'a>, words: &'a mut [u64]) -> Work<'a> {
        let (digits, order) = (lanes.digits, matrices.order);
        let rounding = Rounding::new(matrices.precision_bits);
        let (entries, words) = words.split_at_mut(order * (order + 1) / 2 * digits * BLOCK);
        let (totals, words) = words.split_at_mut(order * digits * BLOCK);
        let (weights, words) = words.split_at_mut(order * BLOCK);
        let (left, words) = words.split_at_mut(2 * digits * BLOCK);
        let (entry, words) = words.split_at_mut((digits + 1) * BLOCK);
        let (roots, words) = words.split_at_mut(digits * BLOCK);
        let (reciprocals, words) = words.split_at_mut(pivots::reciprocal_digits(lanes.bits) * BLOCK);
        let (cut, words) = words.split_at_mut(cut_words(2 * digits));
        let (space, words) = words.split_at_mut(pivots::space_words(lanes.bits, digits));
        let (window, words) = words.split_at_mut(rounding.scratch_words());
        let limbs = &mut words[..BLOCK * limbs_for(matrices.precision_bits)];
        totals.fill(0);
        weights.fill(0);
        Work {
            lanes,
            matrices,
            rounding,
            entries,
            totals,
            weights,
            left,
            entry,
            cut,
            roots,
            reciprocals,
            space,
            window,
            limbs,
        }
    }

    fn cell(&self, row: usize, col: usize) -> usize {
        (row * (row + 1) / 2 + col) * self.lanes.digits * BLOCK
    }

    /// What the columns before leave of an entry, without the columns of digits below `from`: its magnitude into
    /// `left`; the lanes below 0.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512ifma")]
    fn reduce(&mut self, (row, col): (usize, usize), from: usize) -> u8 {
        let (digits, bits) = (self.lanes.digits, 2 * i64::from(self.lanes.bits));
        let exponents = |of: usize| &self.matrices.exponents[of * BLOCK..][..BLOCK];
        let (rows, cols) = (exponents(row), exponents(col));
        let shifts = std::array::from_fn(|lane| bits - rows[lane] - cols[lane]);
        let numbers = std::array::from_fn(|lane| self.matrices.views[lane].get(row, col));
        let (signs, carries) = cut(&numbers, &shifts, from, self.cut);
        let (x, y) = (&self.entries[self.cell(row, 0)..], &self.entries[self.cell(col, 0)..]);
        assert!(x.len() >= col * digits * BLOCK && y.len() >= col * digits * BLOCK);
        assert!(self.left.len() == 2 * digits * BLOCK);
        // SAFETY: both rows have entries in all columns before `col` (asserted), and the sums have their words.
        unsafe {
            let terms = Terms { x: x.as_ptr(), y: y.as_ptr(), count: col };
            sums::multiply(digits, terms, from, self.left.as_mut_ptr());
        }
        self.left[..from * BLOCK].fill(0);
        let carries = if from == 0 { carries } else { 0 };
        self.add_up((row, col), from, (signs, carries));
        magnitudes(&mut self.left[from * BLOCK..])
    }

    /// The entry of the matrices, and what the offsets of entries added, less the sums in `left`: the digits in their
    /// place, of a number modulo `2^(104 d)`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn add_up(&mut self, (row, col): (usize, usize), from: usize, (signs, carries): (u8, u8)) {
        let digits = self.lanes.digits;
        let cut = &self.cut[BLOCK..][..2 * digits * BLOCK];
        let left = &mut self.left[..2 * digits * BLOCK];
        let totals = |row: usize| &self.totals[row * digits * BLOCK..][..digits * BLOCK];
        let (rows, cols) = (totals(row), totals(col));
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
                own = _mm512_sub_epi64(own, _mm512_set1_epi64((col as i64) << (DIGIT_BITS - 2)));
            }
            flow = _mm512_srai_epi64::<52>(own);
            store(left, at, _mm512_and_si512(own, mask));
        }
    }

    /// The pivots of a column, and their reciprocals, for lanes that are not `dead`; the lanes that are dead now, and
    /// the first column of digits that the rest of the column takes.
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vbmi,avx512ifma")]
    fn pivots(&mut self, col: usize, mut dead: u8) -> ColumnPivots {
        let (bits, digits) = (self.lanes.bits, self.lanes.digits);
        let needed = |length: i64| lane_first_column(length, digits, self.matrices.order);
        let mut from = needed(bits.into()).min(sums::first_column(digits));
        let mut found;
        loop {
            dead |= self.reduce((col, col), from);
            found = lengths(self.left);
            let mut least = i64::from(bits);
            for (lane, length) in found.iter().enumerate() {
                let half = (length + 1) / 2;
                if half < i64::from(lane_root_bits(bits)) {
                    dead |= 1 << lane;
                } else if dead >> lane & 1 == 0 {
                    least = least.min(half);
                }
            }
            if needed(least) >= from {
                break;
            }
            from = needed(least);
        }
        if dead != 0 {
            // Numbers that cannot do any harm.
            let at = 2 * bits as usize;
            for digit in 0..2 * digits {
                let own = if digit == at / DIGIT_BITS { 1 << (at % DIGIT_BITS) } else { 0 };
                store(self.left, digit, _mm512_mask_mov_epi64(load(self.left, digit), dead, _mm512_set1_epi64(own)));
            }
            found = lengths(self.left);
        }
        let into = (&mut *self.roots, &mut *self.reciprocals);
        let (unclear, reciprocals) = pivots::find(bits, (self.left, &found), into, self.space);
        ColumnPivots { dead: dead | unclear, from, reciprocals }
    }

    /// Divides what is left of an entry by the pivots: the lanes whose quotient is too large, or too close to half an
    /// integer.
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn divide(&mut self, reciprocals: &Reciprocals, from: usize) -> u8 {
        let (digits, bits) = (self.lanes.digits, self.lanes.bits as usize);
        let Reciprocals { fraction, count, longest } = *reciprocals;
        let end = (bits + 2 + longest).div_ceil(DIGIT_BITS).min(2 * digits);
        assert!(from < end && fraction >= from + 2 && self.reciprocals.len() >= count * BLOCK);
        let mask = _mm512_set1_epi64(MASK);
        let (mut above, mut unclear) = (_mm512_setzero_si512(), 0);
        for at in end..2 * digits {
            above = _mm512_or_si512(above, load(self.left, at));
        }
        let numerator = Factor::of(&self.left[from * BLOCK..end * BLOCK]);
        let reciprocal = Factor::of(&self.reciprocals[..count * BLOCK]);
        // SAFETY: the factors are those of the slices, here and below. What the first column's own low halves carry is
        // below 2^-46.
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

    /// Keeps the entry with these signs, and hands it out rounded.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512cd,avx512vbmi")]
    fn finish(&mut self, (row, col): (usize, usize), signs: u8, out: &mut Rounded<'_>) {
        let (digits, cell) = (self.lanes.digits, self.cell(row, col));
        let (cell, totals) = (&mut self.entries[cell..], &mut self.totals[row * digits * BLOCK..]);
        let (mask, mut flow) = (_mm512_set1_epi64(MASK), _mm512_setzero_si512());
        for at in 0..digits {
            let own = load(self.entry, at);
            let mut sum = _mm512_add_epi64(_mm512_mask_sub_epi64(own, signs, _mm512_setzero_si512(), own), flow);
            if at + 1 == digits {
                sum = _mm512_add_epi64(sum, _mm512_set1_epi64(1 << (DIGIT_BITS - 1)));
            }
            flow = _mm512_srai_epi64::<52>(sum);
            let digit = _mm512_and_si512(sum, mask);
            store(cell, at, digit);
            // The last entry of a row is in no sum.
            if row > col {
                store(totals, at, _mm512_add_epi64(load(totals, at), digit));
            }
        }
        let exponents = &self.matrices.exponents[row * BLOCK..][..BLOCK];
        let exponents = std::array::from_fn(|lane| exponents[lane] - i64::from(self.lanes.bits));
        let from = Magnitudes { digits: &self.entry[..digits * BLOCK], exponents: &exponents, signs };
        let mut heads = [0; BLOCK];
        self.rounding.round(from, (&mut heads, self.limbs), self.window);
        out((row, col), &heads, self.limbs);
    }
}

/// Factors the matrices: the lanes whose factor is right.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vbmi,avx512ifma")]
pub fn factor(lanes: &ProblemLanes, matrices: &Matrices<'_>, words: &mut [u64], out: &mut Rounded<'_>) -> u8 {
    let digits = lanes.digits;
    let mut work = Work::new(lanes, matrices, words);
    let mut dead = 0;
    for col in 0..matrices.order {
        let ColumnPivots { dead: now_dead, from, reciprocals } = work.pivots(col, dead);
        dead = now_dead;
        work.entry[..digits * BLOCK].copy_from_slice(work.roots);
        work.finish((col, col), 0, out);
        for row in col + 1..matrices.order {
            let signs = work.reduce((row, col), from);
            let beyond = work.divide(&reciprocals, from);
            let own = row * BLOCK..(row + 1) * BLOCK;
            let weights = LaneWeights { sums: &mut work.weights[own.clone()], limits: &matrices.limits[own] };
            // SAFETY: the entry has its digits, in one vector each.
            let rejected =
                unsafe { lanes.rule.add::<1>(work.entry.as_ptr(), 0, Live { beyond: 0, live: u8::MAX }, weights) };
            dead |= beyond | rejected;
            work.finish((row, col), signs, out);
        }
        if dead == u8::MAX {
            break;
        }
    }
    !dead
}
