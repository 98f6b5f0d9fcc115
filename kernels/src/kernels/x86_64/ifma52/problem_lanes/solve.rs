//! Lower triangles with right-hand sides of eight problems of one shape, side by side, in fixed point.
//!
//! Unknown `i` of a right side is `round((b_i - sum t_ik x_k) / t_ii)`, all of it integers as a factor's entries below
//! its diagonal are. The reciprocal of a pivot is that of the root of its square, so that pivots and roots go one way.

use super::super::factor::weights::LaneWeights;
use super::cut::cut;
use super::numbers::{MASK, lengths, load, multiply, store};
use super::pivots::{self, Reciprocals};
use super::remainder::{Remainder, ScaledNumbers, Subtracted, keep, pivot_words, replace_squares};
use super::sums::{self, Terms};
use super::{ProblemLanes, Rounded, Systems, cut_words};
use crate::kernels::radix::CutLanes;
use crate::math::bound::{lane_first_column, lane_root_bits};
use crate::math::pivot::WEIGHT_BITS;
use crate::plan::BLOCK;
use std::arch::x86_64::*;

/// The sum of weights beyond which a right side is rejected: `2^60 + 1`.
const LIMITS: [u64; BLOCK] = [(1 << (2 * WEIGHT_BITS)) + 1; BLOCK];

/// Words of the data of a row's pivots in addition to their reciprocals.
const ROW_WORDS: usize = 5;

/// Words of everything.
pub fn words(lanes: &ProblemLanes, order: usize, precision_bits: u32) -> usize {
    let digits = lanes.digits;
    // The triangle and the sums of its rows, the unknowns of one right side and their sum.
    let entries = (order * (order - 1) / 2 + 2 * order + 1) * digits;
    let reciprocals = order * pivots::reciprocal_digits(lanes.bits);
    (entries + reciprocals) * BLOCK
        + order * ROW_WORDS
        + pivot_words(lanes)
        + cut_words(digits)
        + Remainder::words(lanes, precision_bits)
}

/// The pivots of a row.
struct RowPivots {
    /// The first column of digits that quotients by them take.
    from: usize,
    /// The lanes in which they are negative.
    signs: u8,
    reciprocals: Reciprocals,
}

impl RowPivots {
    fn to_words(&self) -> [u64; ROW_WORDS] {
        let Reciprocals { fraction, count, longest } = self.reciprocals;
        [self.from as u64, self.signs.into(), fraction as u64, count as u64, longest as u64]
    }

    fn of_words(words: &[u64]) -> RowPivots {
        let [from, signs, fraction, count, longest] = std::array::from_fn(|at| words[at] as usize);
        RowPivots { from, signs: signs as u8, reciprocals: Reciprocals { fraction, count, longest } }
    }
}

/// The systems at work.
struct SolveWork<'a> {
    lanes: &'a ProblemLanes,
    systems: &'a Systems<'a>,
    remainder: Remainder<'a>,
    /// Entries below the diagonal with their offset, row by row, and for each row their sums, digit by digit.
    entries: &'a mut [u64],
    totals: &'a mut [u64],
    reciprocals: &'a mut [u64],
    rows: &'a mut [u64],
    /// Unknowns of one right side with their offset, and their sums.
    unknowns: &'a mut [u64],
    unknown_totals: &'a mut [u64],
    roots: &'a mut [u64],
    space: &'a mut [u64],
    cut: &'a mut [u64],
}

impl<'a> SolveWork<'a> {
    fn new(lanes: &'a ProblemLanes, systems: &'a Systems<'a>, words: &'a mut [u64]) -> SolveWork<'a> {
        let (each, order) = (lanes.digits * BLOCK, systems.order);
        let (remainder, words) = Remainder::new(lanes, systems.precision_bits, words);
        let (entries, words) = words.split_at_mut(order * (order - 1) / 2 * each);
        let (totals, words) = words.split_at_mut(order * each);
        let (reciprocals, words) = words.split_at_mut(order * pivots::reciprocal_digits(lanes.bits) * BLOCK);
        let (rows, words) = words.split_at_mut(order * ROW_WORDS);
        let (unknowns, words) = words.split_at_mut(order * each);
        let (unknown_totals, words) = words.split_at_mut(each);
        let (roots, words) = words.split_at_mut(each);
        let (space, words) = words.split_at_mut(pivots::space_words(lanes.bits, lanes.digits));
        let cut = &mut words[..cut_words(lanes.digits)];
        totals.fill(0);
        SolveWork {
            lanes,
            systems,
            remainder,
            entries,
            totals,
            reciprocals,
            rows,
            unknowns,
            unknown_totals,
            roots,
            space,
            cut,
        }
    }

    /// Entries of row `row` of the triangles as integers with all digits: those before the diagonal into their places.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn load_row(&mut self, row: usize) {
        let (digits, bits) = (self.lanes.digits, i64::from(self.lanes.bits));
        let each = digits * BLOCK;
        let exponents = &self.systems.exponents[row * BLOCK..][..BLOCK];
        let shifts = std::array::from_fn(|lane| bits - exponents[lane]);
        let cells = &mut self.entries[row * row.saturating_sub(1) / 2 * each..][..row * each];
        let totals = &mut self.totals[row * each..][..each];
        for (col, cell) in cells.chunks_exact_mut(each).enumerate() {
            let numbers = std::array::from_fn(|lane| self.systems.triangles[lane].get(row, col));
            let rounded = cut(&numbers, &shifts, 0, self.cut);
            keep(digits, &self.cut[BLOCK..], rounded, cell, Some(&mut *totals));
        }
    }

    /// The pivots of a row as divisors; the lanes in which one is too small.
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vbmi,avx512ifma")]
    fn find_pivots(&mut self, row: usize) -> u8 {
        let (digits, bits) = (self.lanes.digits, self.lanes.bits);
        let exponents = &self.systems.exponents[row * BLOCK..][..BLOCK];
        let shifts = std::array::from_fn(|lane| i64::from(bits) - exponents[lane]);
        let numbers = std::array::from_fn(|lane| self.systems.pivot(lane, row));
        let CutLanes { signs, carries } = cut(&numbers, &shifts, 0, self.cut);
        let (mask, mut flow) = (_mm512_set1_epi64(MASK), _mm512_maskz_set1_epi64(carries, 1));
        for at in 0..digits {
            let sum = _mm512_add_epi64(_mm512_and_si512(load(self.cut, at + 1), mask), flow);
            store(self.roots, at, _mm512_and_si512(sum, mask));
            flow = _mm512_srli_epi64::<52>(sum);
        }
        let squares = &mut *self.remainder.left;
        multiply(self.roots, self.roots, 0, squares);
        let mut found = lengths(squares);
        let (mut dead, mut least) = (0, i64::from(bits));
        for (lane, length) in found.iter().enumerate() {
            let half = (length + 1) / 2;
            match half < i64::from(lane_root_bits(bits)) {
                true => dead |= 1 << lane,
                false => least = least.min(half),
            }
        }
        if dead != 0 {
            replace_squares(bits, dead, squares);
            found = lengths(squares);
        }
        let size = pivots::reciprocal_digits(bits) * BLOCK;
        let into = &mut self.reciprocals[row * size..][..size];
        let (unclear, reciprocals) = pivots::find(bits, squares, &found, self.roots, into, self.space);
        let from = lane_first_column(least, digits, self.systems.order).min(sums::first_column(digits));
        let known = RowPivots { from, signs, reciprocals };
        self.rows[row * ROW_WORDS..][..ROW_WORDS].copy_from_slice(&known.to_words());
        dead | unclear
    }

    /// The unknowns of one right side, from the first to the last; the lanes in which it is not held.
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vbmi,avx512ifma")]
    fn solve(&mut self, col: usize, out: &mut Rounded<'_>) -> u8 {
        let (digits, bits) = (self.lanes.digits, i64::from(self.lanes.bits));
        let (each, size) = (digits * BLOCK, pivots::reciprocal_digits(self.lanes.bits) * BLOCK);
        let scales: [i64; BLOCK] = std::array::from_fn(|lane| self.systems.scales[col * BLOCK + lane]);
        let mut weights = [0; BLOCK];
        let mut dead = 0;
        self.unknown_totals.fill(0);
        for row in 0..self.systems.order {
            let exponents = &self.systems.exponents[row * BLOCK..][..BLOCK];
            let shifts = std::array::from_fn(|lane| 2 * bits - scales[lane] - exponents[lane]);
            let numbers = std::array::from_fn(|lane| self.systems.rights[lane].get(row, col));
            let x = &self.entries[row * row.saturating_sub(1) / 2 * each..][..row * each];
            let y = &self.unknowns[..row * each];
            let terms = Terms { x: x.as_ptr(), y: y.as_ptr(), count: row };
            let totals = [&self.totals[row * each..][..each], &*self.unknown_totals];
            let RowPivots { from, signs: turned, reciprocals } = RowPivots::of_words(&self.rows[row * ROW_WORDS..]);
            // SAFETY: both slices have `row` entries.
            let signs = unsafe {
                self.remainder.reduce(&ScaledNumbers { numbers, shifts }, Subtracted { terms, totals }, from)
            };
            dead |= self.remainder.divide(&self.reciprocals[row * size..][..size], &reciprocals, from);
            dead |= self.remainder.add_weights(LaneWeights { sums: &mut weights, limits: &LIMITS });
            let signs = signs ^ turned;
            let cell = &mut self.unknowns[row * each..][..each];
            self.remainder.keep(signs, cell, Some(&mut *self.unknown_totals));
            let mut heads = [0; BLOCK];
            let limbs = self.remainder.round(signs, &scales.map(|scale| scale - bits), &mut heads);
            out((row, col), &heads, limbs);
        }
        dead
    }
}

/// Solves the systems; returns the lanes whose solutions are right.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vbmi,avx512ifma")]
pub fn solve(lanes: &ProblemLanes, systems: &Systems<'_>, words: &mut [u64], out: &mut Rounded<'_>) -> u8 {
    let mut work = SolveWork::new(lanes, systems, words);
    let mut dead = 0;
    for row in 0..systems.order {
        work.load_row(row);
        dead |= work.find_pivots(row);
    }
    for col in 0..systems.columns {
        if dead == u8::MAX {
            break;
        }
        dead |= work.solve(col, out);
    }
    !dead
}
