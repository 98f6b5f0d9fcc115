//! One column of 8 rows, from the rests of its entries to finished entries.

use super::super::factor::divide::{self, PivotDivisor, digit_of, divide};
use super::super::factor::weights::{First, LaneWeights, Live};
use super::sums::CellTerms;
use super::{DigitTiles, EntryDigits, sums};
use crate::kernels::limbs;
use crate::kernels::radix::CutLanes;
use crate::math::pivot::round_quotient;
use crate::plan::BLOCK;
use rug::Integer;
use rug::integer::Order;
use std::arch::x86_64::*;

const MASK: i64 = (1 << 52) - 1;

/// Words of scratch for one column.
pub fn scratch_words(digits: EntryDigits) -> usize {
    3 * digits.count * BLOCK
}

/// Limbs of the rest of an entry: of the entry less the products so far.
pub fn value_limbs(digits: EntryDigits) -> usize {
    (104 * digits.count).div_ceil(64) + 1
}

/// The rests of the entries of a cell, as magnitudes in `scratch`, and its signs; the limbs of the one in `lane`,
/// without the zeros below it, into `out`.
///
/// # Safety
/// `cell` has `2 d` vectors, `scratch` [`scratch_words`]; `out` has [`value_limbs`].
#[target_feature(enable = "avx512f")]
pub unsafe fn value(digits: EntryDigits, cell: *const u64, lane: usize, scratch: *mut u64, out: &mut [u64]) -> u8 {
    // SAFETY: the caller's promise.
    unsafe {
        let signs = magnitudes(digits, cell, scratch);
        write_limbs(digits, scratch, lane, out);
        signs
    }
}

/// A cell from which the products of `terms` have been subtracted.
#[derive(Clone, Copy)]
pub struct Reduced {
    /// The rests of its entries.
    pub cell: *mut u64,
    /// The terms, of which some products may have been left out.
    pub terms: CellTerms,
}

/// Finishes a cell: quotients by the pivot, of rows that are not rejected.
///
/// # Safety
/// As [`value`]; the digits of the cell are less than `2^63` in magnitude, and its terms as in
/// [`sums::subtract_left_out`].
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub unsafe fn finish(
    tiles: &DigitTiles,
    reduced: Reduced,
    pivot: &PivotDivisor<'_>,
    weights: LaneWeights<'_>,
    scratch: *mut u64,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let signs = magnitudes(tiles.digits, reduced.cell, scratch);
        finish_magnitudes(tiles, reduced, signs, pivot, First::Below, weights, scratch);
    }
}

/// The same of a cell of which [`value`] has left the magnitudes in `scratch`. The lane of the diagonal takes the
/// pivot.
///
/// # Safety
/// As [`finish`].
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub unsafe fn finish_magnitudes(
    tiles: &DigitTiles,
    Reduced { cell, terms }: Reduced,
    mut signs: u8,
    pivot: &PivotDivisor<'_>,
    first: First,
    weights: LaneWeights<'_>,
    scratch: *mut u64,
) {
    let digits = tiles.digits;
    let (all, live) = (2 * digits.count, first.live());
    // SAFETY: the caller's promise; the scratch has room for the magnitudes, and behind them for the quotients.
    unsafe {
        let quotients = scratch.add(all * BLOCK);
        signs ^= if pivot.negative { u8::MAX } else { 0 };
        let verdict = divide::<1>(pivot, scratch, all, quotients, digits.count, tiles.window);
        let mut beyond = verdict.beyond[0];
        let mut unclear = verdict.unclear[0] & !beyond & live;
        if unclear != 0 && terms.from > 0 {
            sums::subtract_left_out(digits, terms, cell);
            signs = magnitudes(digits, cell, scratch) ^ if pivot.negative { u8::MAX } else { 0 };
        }
        while unclear != 0 {
            let lane = unclear.trailing_zeros() as usize;
            unclear &= unclear - 1;
            let fits = divide_exactly(digits, scratch, quotients, lane, pivot);
            beyond |= u8::from(!fits) << lane;
        }
        let rejected = tiles.rule.add::<1>(quotients, 0, Live { beyond, live }, weights);
        let clear = rejected | !live;
        if clear != 0 {
            signs &= !clear;
            for at in 0..digits.count {
                let slot = quotients.add(at * BLOCK);
                // No masked stores, nor one of a lane: a read after them waits for memory.
                let digit = _mm512_loadu_si512(slot.cast());
                let mut digit = _mm512_mask_mov_epi64(digit, clear, _mm512_setzero_si512());
                if let First::Diagonal(lane) = first {
                    digit = _mm512_mask_mov_epi64(digit, 1 << lane, _mm512_set1_epi64(pivot.digit(at) as i64));
                }
                _mm512_storeu_si512(slot.cast(), digit);
            }
        }
        store(digits, quotients, BLOCK, CutLanes::exact(signs), cell);
    }
}

/// Default half-width of the window in which quotients are divided exactly.
pub const WINDOW: u64 = divide::WINDOW;

/// Writes magnitudes, digit `i` at `i step`, with their signs and the carries of rounding, as a finished cell with the
/// zeros below all entries.
///
/// # Safety
/// `from` has as many digits, of 52 bits and anything above them; `cell` has `2 d` vectors.
#[inline]
#[target_feature(enable = "avx512f")]
pub unsafe fn store(digits: EntryDigits, from: *const u64, step: usize, cut: CutLanes, cell: *mut u64) {
    let CutLanes { signs, carries } = cut;
    let mask = _mm512_set1_epi64(MASK);
    let zero = _mm512_setzero_si512();
    let (mut more, mut carry) = (_mm512_maskz_set1_epi64(carries, 1), zero);
    let (raise, mut below) = (Raise::new(digits.below), zero);
    for at in 0..digits.count {
        // SAFETY: the caller's promise.
        unsafe {
            let digit = _mm512_and_si512(_mm512_loadu_si512(from.add(at * step).cast()), mask);
            let digit = _mm512_add_epi64(digit, more);
            more = zero;
            let raised = raise.above(digit, below);
            below = digit;
            let value = _mm512_add_epi64(_mm512_mask_sub_epi64(raised, signs, zero, raised), carry);
            carry = _mm512_srai_epi64::<52>(value);
            _mm512_storeu_si512(cell.add(at * BLOCK).cast(), _mm512_and_si512(value, mask));
        }
    }
    // The borrow from above the digits, 1 for a number below 0.
    // SAFETY: the vector behind the digits.
    unsafe { _mm512_storeu_si512(cell.add(digits.count * BLOCK).cast(), _mm512_srli_epi64::<63>(carry)) };
}

/// Numbers times a power of two below that of a digit.
#[derive(Clone, Copy)]
pub struct Raise {
    up: __m512i,
    down: __m512i,
}

impl Raise {
    /// By 2 to the power `bits`, fewer than a digit has.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn new(bits: u32) -> Raise {
        Raise { up: _mm512_set1_epi64(bits.into()), down: _mm512_set1_epi64(52 - i64::from(bits)) }
    }

    /// A digit of the product, from the same digit of the number and the one `below` it. Either may have one unit of
    /// the next digit, and so may the result.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn above(self, digit: __m512i, below: __m512i) -> __m512i {
        let own = _mm512_and_si512(_mm512_sllv_epi64(digit, self.up), _mm512_set1_epi64(MASK));
        _mm512_add_epi64(own, _mm512_srlv_epi64(below, self.down))
    }

    /// A digit of the number, from the same digit of the product and the one above it.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn undone(self, digit: __m512i, above: __m512i) -> __m512i {
        let own = _mm512_srlv_epi64(digit, self.up);
        _mm512_or_si512(own, _mm512_and_si512(_mm512_sllv_epi64(above, self.down), _mm512_set1_epi64(MASK)))
    }
}

/// The magnitudes of the rests of a cell into `2 d` vectors of `out`, which may be the same; the signs.
///
/// # Safety
/// Both have `2 d` vectors.
#[inline]
#[target_feature(enable = "avx512f")]
pub unsafe fn magnitudes(digits: EntryDigits, cell: *const u64, out: *mut u64) -> u8 {
    // SAFETY: the caller's promise.
    unsafe {
        let top = sums::normalize(digits, cell, out);
        let signs = _mm512_test_epi64_mask(top, _mm512_set1_epi64(1 << 51));
        if signs != 0 {
            let mask = _mm512_set1_epi64(MASK);
            let mut carry = _mm512_set1_epi64(1);
            for at in 0..2 * digits.count {
                let slot = out.add(at * BLOCK);
                let digit = _mm512_loadu_si512(slot.cast());
                let sum = _mm512_add_epi64(_mm512_andnot_si512(digit, mask), carry);
                carry = _mm512_srli_epi64::<52>(sum);
                // No masked store: a read after one waits for memory.
                _mm512_storeu_si512(slot.cast(), _mm512_mask_mov_epi64(digit, signs, _mm512_and_si512(sum, mask)));
            }
        }
        signs
    }
}

/// Replaces one quotient by the exactly rounded one; whether it fits.
///
/// # Safety
/// `magnitudes` has `2 d` vectors, `quotients` `d`.
#[cold]
pub unsafe fn divide_exactly(
    digits: EntryDigits,
    magnitudes: *const u64,
    quotients: *mut u64,
    lane: usize,
    pivot: &PivotDivisor<'_>,
) -> bool {
    // SAFETY: the caller's promise.
    let quotient = round_quotient(&unsafe { integer(digits, magnitudes, lane) }, &pivot.integer());
    for at in 0..digits.count {
        // SAFETY: one of the digits.
        unsafe { *quotients.add(at * BLOCK + lane) = digit_of(quotient.as_limbs(), at) };
    }
    quotient.significant_bits() as usize <= 52 * digits.count
}

/// The rest of an entry in one lane, without the zeros below it.
///
/// # Safety
/// `magnitudes` has `2 d` vectors.
unsafe fn integer(digits: EntryDigits, magnitudes: *const u64, lane: usize) -> Integer {
    let mut limbs = vec![0; value_limbs(digits)];
    // SAFETY: the caller's promise.
    unsafe { write_limbs(digits, magnitudes, lane, &mut limbs) };
    Integer::from_digits(&limbs, Order::Lsf)
}

/// Writes the limbs of the rest of an entry in one lane, without the zeros below it.
///
/// # Safety
/// `magnitudes` has `2 d` vectors.
unsafe fn write_limbs(digits: EntryDigits, magnitudes: *const u64, lane: usize, limbs: &mut [u64]) {
    // SAFETY: the caller's promise.
    let magnitudes = unsafe { std::slice::from_raw_parts(magnitudes, 2 * digits.count * BLOCK) };
    let (empty, bits) = digits.below_rest();
    limbs::from_lane(&magnitudes[empty * BLOCK..], lane, limbs);
    if bits > 0 {
        for at in 0..limbs.len() {
            let above = limbs.get(at + 1).copied().unwrap_or(0);
            limbs[at] = limbs[at] >> bits | above << (64 - bits);
        }
    }
}
