//! Products of the columns of eight pairs of matrices of one shape, side by side.

use super::super::row_lanes::round::{Magnitudes, Rounding};
use super::cut::cut;
use super::numbers::{DIGIT_BITS, MASK, load, magnitudes, store};
use super::remainder::keep;
use super::sums::{self, Terms};
use super::{ProblemColumns, ProblemLanes, ProblemProducts, Rounded, cut_words};
use crate::math::bound::lane_sum_column;
use crate::math::float::limbs_for;
use crate::plan::BLOCK;
use std::arch::x86_64::*;

/// Words of everything, for operands of `columns` columns in all.
pub fn words(lanes: &ProblemLanes, columns: usize, rows: usize, precision_bits: u32) -> usize {
    let digits = lanes.digits;
    let rounded = Rounding::new(precision_bits).scratch_words() + BLOCK * limbs_for(precision_bits);
    (columns * (rows + 1) + 2) * digits * BLOCK + cut_words(digits) + rounded
}

/// Digits with an offset of eight operands: for each column its entries, and their sums digit by digit.
struct OperandDigits<'a> {
    entries: &'a mut [u64],
    totals: &'a mut [u64],
}

/// Writes the digits of all entries, rounded to integers.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn load_columns(lanes: &ProblemLanes, columns: &ProblemColumns<'_>, into: &mut OperandDigits<'_>, scratch: &mut [u64]) {
    let digits = lanes.digits;
    let (rows, cols) = (columns.views[0].rows(), columns.views[0].cols());
    into.totals[..cols * digits * BLOCK].fill(0);
    for col in 0..cols {
        let shifts = std::array::from_fn(|lane| columns.shifts[col * BLOCK + lane]);
        let totals = &mut into.totals[col * digits * BLOCK..][..digits * BLOCK];
        for row in 0..rows {
            let numbers = std::array::from_fn(|lane| columns.views[lane].get(row, col));
            let cut = cut(&numbers, &shifts, 0, scratch);
            let cell = &mut into.entries[(col * rows + row) * digits * BLOCK..][..digits * BLOCK];
            keep(digits, &scratch[BLOCK..], cut, cell, Some(&mut *totals));
        }
    }
}

/// The sum of the products of two columns, of which the columns of digits from `from` on are known: its magnitude into
/// `sums`; the lanes below 0.
#[target_feature(enable = "avx512f,avx512ifma")]
fn add_up(digits: usize, terms: Terms, left: &[u64], right: &[u64], from: usize, sums: &mut [u64]) -> u8 {
    assert!(sums.len() == 2 * digits * BLOCK);
    // SAFETY: the caller's terms lie in its operands, and the sums have their words.
    unsafe { sums::multiply(digits, terms, from, sums.as_mut_ptr()) };
    sums[..from * BLOCK].fill(0);
    let (mask, mut flow) = (_mm512_set1_epi64(MASK), _mm512_setzero_si512());
    let mut below = flow;
    for at in from..2 * digits {
        let mut own = _mm512_add_epi64(load(sums, at), flow);
        // Less the offset 2^(52 d - 1) times the sums of both columns: half a digit in each of two columns.
        if at >= digits {
            own = _mm512_sub_epi64(own, below);
        }
        if at + 1 >= digits && at + 1 < 2 * digits {
            let total = _mm512_add_epi64(load(left, at + 1 - digits), load(right, at + 1 - digits));
            own = _mm512_sub_epi64(own, _mm512_and_si512(_mm512_slli_epi64::<51>(total), mask));
            below = _mm512_srli_epi64::<1>(total);
        }
        if at + 1 == 2 * digits {
            // And its square for each term.
            own = _mm512_add_epi64(own, _mm512_set1_epi64((terms.count as i64) << (DIGIT_BITS - 2)));
        }
        flow = _mm512_srai_epi64::<52>(own);
        store(sums, at, _mm512_and_si512(own, mask));
    }
    magnitudes(&mut sums[from * BLOCK..])
}

/// Multiplies the columns, and passes on the wanted entries.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vbmi,avx512ifma")]
pub fn multiply(lanes: &ProblemLanes, products: &ProblemProducts<'_>, words: &mut [u64], out: &mut Rounded<'_>) {
    let ProblemProducts { left, right, precision_bits, wanted } = products;
    let (digits, rounding) = (lanes.digits, Rounding::new(*precision_bits));
    let rows = left.views[0].rows();
    let each = digits * BLOCK;
    let (sums, words) = words.split_at_mut(2 * each);
    let (scratch, words) = words.split_at_mut(cut_words(digits));
    let (window, words) = words.split_at_mut(rounding.scratch_words());
    let (limbs, words) = words.split_at_mut(BLOCK * limbs_for(*precision_bits));
    let (left_words, words) = words.split_at_mut(left.views[0].cols() * (rows + 1) * each);
    let (entries, totals) = left_words.split_at_mut(left.views[0].cols() * rows * each);
    load_columns(lanes, left, &mut OperandDigits { entries, totals }, scratch);
    let left_digits = (&*entries, &*totals);
    let (mut right_digits, mut right_columns) = (left_digits, left);
    if let Some(right) = right {
        let cols = right.views[0].cols();
        let (entries, totals) = words[..cols * (rows + 1) * each].split_at_mut(cols * rows * each);
        load_columns(lanes, right, &mut OperandDigits { entries, totals }, scratch);
        (right_digits, right_columns) = ((&*entries, &*totals), right);
    }
    let (from, known_bits) = lane_sum_column(lanes.bits, *precision_bits, digits, rows, sums::first_column(digits));
    let column = |words: &[u64], at: usize| words[at * rows * each..][..rows * each].as_ptr();
    for col in 0..right_columns.views[0].cols() {
        for row in (0..left.views[0].cols()).filter(|&row| wanted(row, col)) {
            let terms = Terms { x: column(left_digits.0, row), y: column(right_digits.0, col), count: rows };
            let totals = [&left_digits.1[row * each..][..each], &right_digits.1[col * each..][..each]];
            let exponents = std::array::from_fn(|lane| {
                -(left.shifts[row * BLOCK + lane] + right_columns.shifts[col * BLOCK + lane])
            });
            let mut heads = [0; BLOCK];
            for (from, known_bits) in [(from, known_bits), (0, i64::MIN)] {
                let signs = add_up(digits, terms, totals[0], totals[1], from, sums);
                let magnitudes = Magnitudes { digits: sums, exponents: &exponents, signs };
                if rounding.round_known(magnitudes, known_bits, &mut heads, limbs, window) == 0 {
                    break;
                }
            }
            out((row, col), &heads, limbs);
        }
    }
}
