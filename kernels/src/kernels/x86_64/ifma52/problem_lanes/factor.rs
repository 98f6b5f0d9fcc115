//! Cholesky factors of eight matrices of one order, side by side.

use super::super::factor::weights::LaneWeights;
use super::numbers::lengths;
use super::pivots::{self, Reciprocals};
use super::remainder::{Remainder, ScaledNumbers, Subtracted, pivot_words, replace_squares};
use super::sums::{self, Terms};
use super::{Matrices, ProblemLanes, Rounded};
use crate::math::bound::{lane_first_column, lane_root_bits};
use crate::plan::BLOCK;

/// Words of everything.
pub fn words(lanes: &ProblemLanes, order: usize, precision_bits: u32) -> usize {
    let entries = (order * (order + 1) / 2 + order) * lanes.digits + order;
    let reciprocals = pivots::reciprocal_digits(lanes.bits);
    (entries + reciprocals) * BLOCK + pivot_words(lanes) + Remainder::words(lanes, precision_bits)
}

/// The factors at work.
struct FactorWork<'a> {
    lanes: &'a ProblemLanes,
    matrices: &'a Matrices<'a>,
    remainder: Remainder<'a>,
    /// Entries with their offset, row by row below the diagonal.
    entries: &'a mut [u64],
    /// For each row the sums of its entries so far, digit by digit.
    totals: &'a mut [u64],
    /// For each row the running sums of its weights.
    weights: &'a mut [u64],
    roots: &'a mut [u64],
    reciprocals: &'a mut [u64],
    space: &'a mut [u64],
}

/// The pivots of a column and numbers derived from them.
struct ColumnPivots {
    /// Lanes that are not done here.
    dead: u8,
    /// The first column of digits that the rest of the column takes.
    from: usize,
    reciprocals: Reciprocals,
}

impl<'a> FactorWork<'a> {
    fn new(lanes: &'a ProblemLanes, matrices: &'a Matrices<'a>, words: &'a mut [u64]) -> FactorWork<'a> {
        let (digits, order) = (lanes.digits, matrices.order);
        let (remainder, words) = Remainder::new(lanes, matrices.precision_bits, words);
        let (entries, words) = words.split_at_mut(order * (order + 1) / 2 * digits * BLOCK);
        let (totals, words) = words.split_at_mut(order * digits * BLOCK);
        let (weights, words) = words.split_at_mut(order * BLOCK);
        let (roots, words) = words.split_at_mut(digits * BLOCK);
        let (reciprocals, words) = words.split_at_mut(pivots::reciprocal_digits(lanes.bits) * BLOCK);
        let space = &mut words[..pivots::space_words(lanes.bits, digits)];
        totals.fill(0);
        weights.fill(0);
        FactorWork { lanes, matrices, remainder, entries, totals, weights, roots, reciprocals, space }
    }

    fn cell(&self, row: usize, col: usize) -> usize {
        (row * (row + 1) / 2 + col) * self.lanes.digits * BLOCK
    }

    /// An entry less the products of the columns before, without the columns of digits below `from`; the lanes below 0.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512ifma")]
    fn reduce(&mut self, row: usize, col: usize, from: usize) -> u8 {
        let (digits, bits) = (self.lanes.digits, 2 * i64::from(self.lanes.bits));
        let exponents = |of: usize| &self.matrices.exponents[of * BLOCK..][..BLOCK];
        let (rows, cols) = (exponents(row), exponents(col));
        let shifts = std::array::from_fn(|lane| bits - rows[lane] - cols[lane]);
        let numbers = std::array::from_fn(|lane| self.matrices.views[lane].get(row, col));
        let (x, y) = (&self.entries[self.cell(row, 0)..], &self.entries[self.cell(col, 0)..]);
        assert!(x.len() >= col * digits * BLOCK && y.len() >= col * digits * BLOCK);
        let terms = Terms { x: x.as_ptr(), y: y.as_ptr(), count: col };
        let totals = [row, col].map(|of| &self.totals[of * digits * BLOCK..][..digits * BLOCK]);
        // SAFETY: both rows have entries in all columns before `col` (asserted).
        unsafe { self.remainder.reduce(&ScaledNumbers { numbers, shifts }, Subtracted { terms, totals }, from) }
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
            dead |= self.reduce(col, col, from);
            found = lengths(self.remainder.left);
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
            replace_squares(bits, dead, self.remainder.left);
            found = lengths(self.remainder.left);
        }
        let (unclear, reciprocals) =
            pivots::find(bits, self.remainder.left, &found, self.roots, self.reciprocals, self.space);
        ColumnPivots { dead: dead | unclear, from, reciprocals }
    }

    /// Keeps the entry with these signs, and hands it out rounded.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512cd,avx512vbmi")]
    fn finish(&mut self, row: usize, col: usize, signs: u8, out: &mut Rounded<'_>) {
        let (digits, cell) = (self.lanes.digits, self.cell(row, col));
        let totals = &mut self.totals[row * digits * BLOCK..][..digits * BLOCK];
        // The last entry of a row is in no sum.
        self.remainder.keep(signs, &mut self.entries[cell..], (row > col).then_some(totals));
        let exponents = &self.matrices.exponents[row * BLOCK..][..BLOCK];
        let exponents = std::array::from_fn(|lane| exponents[lane] - i64::from(self.lanes.bits));
        let mut heads = [0; BLOCK];
        let limbs = self.remainder.round(signs, &exponents, &mut heads);
        out((row, col), &heads, limbs);
    }
}

/// Factors the matrices; returns the lanes whose factor is right.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vbmi,avx512ifma")]
pub fn factor(lanes: &ProblemLanes, matrices: &Matrices<'_>, words: &mut [u64], out: &mut Rounded<'_>) -> u8 {
    let digits = lanes.digits;
    let mut work = FactorWork::new(lanes, matrices, words);
    let mut dead = 0;
    for col in 0..matrices.order {
        let ColumnPivots { dead: now_dead, from, reciprocals } = work.pivots(col, dead);
        dead = now_dead;
        work.remainder.entry[..digits * BLOCK].copy_from_slice(work.roots);
        work.finish(col, col, 0, out);
        for row in col + 1..matrices.order {
            let signs = work.reduce(row, col, from);
            let beyond = work.remainder.divide(work.reciprocals, &reciprocals, from);
            let own = row * BLOCK..(row + 1) * BLOCK;
            let weights = LaneWeights { sums: &mut work.weights[own.clone()], limits: &matrices.limits[own] };
            dead |= beyond | work.remainder.add_weights(weights);
            work.finish(row, col, signs, out);
        }
        if dead == u8::MAX {
            break;
        }
    }
    !dead
}
