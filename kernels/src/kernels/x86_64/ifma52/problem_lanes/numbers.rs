//! Arithmetic on eight integers at once, one in each lane: vectors of digits of 52 bits, the lowest first.

use super::columns::{Factor, two_columns};
use crate::plan::BLOCK;
use std::arch::x86_64::*;

pub const DIGIT_BITS: usize = 52;
pub const MASK: i64 = (1 << DIGIT_BITS) - 1;

#[inline]
#[target_feature(enable = "avx512f")]
pub fn load(digits: &[u64], at: usize) -> __m512i {
    let digit = &digits[at * BLOCK..][..BLOCK];
    // SAFETY: the slice has 8 words.
    unsafe { _mm512_loadu_si512(digit.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub fn store(digits: &mut [u64], at: usize, value: __m512i) {
    let digit = &mut digits[at * BLOCK..][..BLOCK];
    // SAFETY: the slice has 8 words.
    unsafe { _mm512_storeu_si512(digit.as_mut_ptr().cast(), value) };
}

/// The lanes of a vector as words.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn lanes(vector: __m512i) -> [i64; BLOCK] {
    let mut words = [0; BLOCK];
    // SAFETY: the array has 8 words.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), vector) };
    words
}

/// A vector of these lanes.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn vector(words: &[i64; BLOCK]) -> __m512i {
    // SAFETY: the array has 8 words.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// Digits below `2^52` of the same number, from digits with signs; the carry of the top digit is dropped.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn carry(digits: &mut [u64]) {
    let (mask, mut more) = (_mm512_set1_epi64(MASK), _mm512_setzero_si512());
    for at in 0..digits.len() / BLOCK {
        let sum = _mm512_add_epi64(load(digits, at), more);
        store(digits, at, _mm512_and_si512(sum, mask));
        more = _mm512_srai_epi64::<52>(sum);
    }
}

/// The magnitudes of numbers modulo a power of two, in place; the lanes below 0.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn magnitudes(digits: &mut [u64]) -> u8 {
    let count = digits.len() / BLOCK;
    let signs = _mm512_test_epi64_mask(load(digits, count - 1), _mm512_set1_epi64(1 << (DIGIT_BITS - 1)));
    if signs != 0 {
        let (mask, mut more) = (_mm512_set1_epi64(MASK), _mm512_maskz_set1_epi64(signs, 1));
        for at in 0..count {
            let own = load(digits, at);
            let sum = _mm512_add_epi64(_mm512_mask_andnot_epi64(own, signs, own, mask), more);
            more = _mm512_srli_epi64::<52>(sum);
            store(digits, at, _mm512_and_si512(sum, mask));
        }
    }
    signs
}

/// Bits of the numbers; 0 for 0.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512cd")]
pub fn lengths(digits: &[u64]) -> [i64; BLOCK] {
    let (mut live, mut leading, mut below) = (0, _mm512_setzero_si512(), _mm512_setzero_si512());
    for at in (0..digits.len() / BLOCK).rev() {
        let digit = load(digits, at);
        let new = _mm512_test_epi64_mask(digit, digit) & !live;
        leading = _mm512_mask_mov_epi64(leading, new, digit);
        below = _mm512_mask_mov_epi64(below, new, _mm512_set1_epi64((at * DIGIT_BITS) as i64));
        live |= new;
        if live == u8::MAX {
            break;
        }
    }
    let bits = _mm512_sub_epi64(_mm512_set1_epi64(64), _mm512_lzcnt_epi64(leading));
    lanes(_mm512_add_epi64(below, bits))
}

/// The columns of `x y` from `from` on, without the carry of the columns below: less than the product over
/// `2^(52 from)` by less than `2 n` for factors of `n` digits, of which the shorter counts. Digits below `2^52`.
#[target_feature(enable = "avx512f,avx512ifma")]
pub fn multiply(x: &[u64], y: &[u64], from: usize, out: &mut [u64]) {
    let (x, y, mask) = (Factor::of(x), Factor::of(y), _mm512_set1_epi64(MASK));
    let mut flow = _mm512_setzero_si512();
    if from > 0 {
        // SAFETY: the factors are those of the slices, here and below.
        flow = unsafe { two_columns(x, y, from - 1) }[0].1;
    }
    let end = x.count + y.count;
    for at in (from..end).step_by(2) {
        // SAFETY: as above.
        let columns = unsafe { two_columns(x, y, at) };
        for (at, (low, high)) in (at..end).zip(columns) {
            let sum = _mm512_add_epi64(low, flow);
            store(out, at - from, _mm512_and_si512(sum, mask));
            flow = _mm512_add_epi64(high, _mm512_srli_epi64::<52>(sum));
        }
    }
}

/// `floor(x 2^shift)` in all of `out`, each lane with a shift of its own; higher bits are lost.
#[target_feature(enable = "avx512f")]
pub fn shift(x: &[u64], shifts: &[i64; BLOCK], out: &mut [u64]) {
    let (count, bits, mask) = (x.len() / BLOCK, DIGIT_BITS as i64, _mm512_set1_epi64(MASK));
    let firsts = shifts.map(|shift| (-shift).div_euclid(bits));
    let down = vector(&shifts.map(|shift| (-shift).rem_euclid(bits)));
    let up = _mm512_sub_epi64(_mm512_set1_epi64(bits), down);
    let digit = |at: i64| match usize::try_from(at) {
        Ok(at) if at < count => load(x, at),
        _ => _mm512_setzero_si512(),
    };
    let mut left = u8::MAX;
    while left != 0 {
        // All lanes that begin at one digit.
        let (first, is_first) = (firsts[left.trailing_zeros() as usize], left == u8::MAX);
        let own = _mm512_cmpeq_epi64_mask(vector(&firsts), _mm512_set1_epi64(first));
        left &= !own;
        let mut low = digit(first);
        for at in 0..out.len() / BLOCK {
            let high = digit(first + 1 + at as i64);
            let value = _mm512_or_si512(_mm512_srlv_epi64(low, down), _mm512_sllv_epi64(high, up));
            let value = _mm512_and_si512(value, mask);
            store(out, at, if is_first { value } else { _mm512_mask_mov_epi64(load(out, at), own, value) });
            low = high;
        }
    }
}
