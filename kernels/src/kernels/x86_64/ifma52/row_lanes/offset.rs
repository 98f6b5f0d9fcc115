//! Entries made positive by an offset, and the correction that removes it from sums of products again.
//!
//! An entry `x` is stored as `u = x + c`, `c = 2^(52 d - 1)`; rows that are padding as 0. Then
//! `sum x y = sum u v - c (sum u + sum v) + k c^2` over `k` rows. The part of one column, `k c^2 / 2 - c sum u` modulo
//! `2^(104 d)`, is kept with it, lane by lane. Bounds: docs/ALGORITHM.md, "Columns of digits".

use super::super::digits::ROWS;
use super::{DIGIT_BITS, MASK, load, store as store_vector};
use crate::kernels::radix::CutLanes;
use crate::plan::BLOCK;
use std::arch::x86_64::*;

/// Eights of rows whose digits are added up without a carry.
pub const MOST_EIGHTS: usize = 1 << 10;

/// Writes eight entries, digit `i` of their magnitudes at `i ROWS` vectors with anything above its 52 bits, with their
/// signs and the carries of rounding, for the rows that are live; adds their digits to `totals`.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn store(from: &[u64], cut: CutLanes, live: u8, cell: &mut [u64], totals: &mut [u64]) {
    let CutLanes { signs, carries } = cut;
    let (mask, zero) = (_mm512_set1_epi64(MASK), _mm512_setzero_si512());
    let (mut more, mut flow) = (_mm512_maskz_set1_epi64(carries, 1), zero);
    let digits = cell.len() / BLOCK;
    for at in 0..digits {
        let digit = _mm512_add_epi64(_mm512_and_si512(load(from, at * ROWS), mask), more);
        more = zero;
        let mut sum = _mm512_add_epi64(_mm512_mask_sub_epi64(digit, signs, zero, digit), flow);
        if at + 1 == digits {
            sum = _mm512_add_epi64(sum, _mm512_set1_epi64(1 << (DIGIT_BITS - 1)));
        }
        flow = _mm512_srai_epi64::<52>(sum);
        let digit = _mm512_maskz_and_epi64(live, sum, mask);
        store_vector(cell, at, digit);
        store_vector(totals, at, _mm512_add_epi64(load(totals, at), digit));
    }
}

/// Carries through totals: digits below `2^52`, the highest one of 53 bits; no other bits are used.
#[target_feature(enable = "avx512f")]
pub fn carry(digits: usize, totals: &mut [u64]) {
    let (mask, mut flow) = (_mm512_set1_epi64(MASK), _mm512_setzero_si512());
    for at in 0..digits {
        let own = _mm512_add_epi64(load(totals, at), flow);
        flow = _mm512_srli_epi64::<52>(own);
        let kept = if at + 1 == digits { _mm512_set1_epi64(2 * MASK + 1) } else { mask };
        store_vector(totals, at, _mm512_and_si512(own, kept));
    }
}

/// Turns the totals of a column of `rows` rows into the digits `d - 1` to `2 d - 1` of the initial value of sums with
/// it.
#[target_feature(enable = "avx512f")]
pub fn finish(digits: usize, rows: usize, totals: &mut [u64]) {
    let mask = _mm512_set1_epi64(MASK);
    let lanes = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    // Rows of each lane.
    let full = _mm512_set1_epi64((rows / BLOCK) as i64);
    let more = _mm512_cmplt_epi64_mask(lanes, _mm512_set1_epi64((rows % BLOCK) as i64));
    let rows = _mm512_mask_add_epi64(full, more, full, _mm512_set1_epi64(1));
    let (mut below, mut flow) = (_mm512_setzero_si512(), _mm512_setzero_si512());
    carry(digits, totals);
    for at in 0..=digits {
        // Half of a digit belongs to one digit of the product, the remaining bit to the one before.
        let own = if at < digits { load(totals, at) } else { _mm512_setzero_si512() };
        let odd = _mm512_and_si512(_mm512_slli_epi64::<51>(own), mask);
        let mut value = _mm512_sub_epi64(_mm512_sub_epi64(flow, below), odd);
        below = _mm512_srli_epi64::<1>(own);
        if at == digits {
            value = _mm512_add_epi64(value, _mm512_slli_epi64::<49>(rows));
        }
        flow = _mm512_srai_epi64::<52>(value);
        store_vector(totals, at, _mm512_and_si512(value, mask));
    }
}
