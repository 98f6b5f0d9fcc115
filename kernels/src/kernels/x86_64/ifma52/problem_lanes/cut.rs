//! Digits of eight numbers of different matrices, straight from their limbs, one number in each lane.
//!
//! As `digits::Cutter`, whose numbers lie in one matrix: the lowest digit cut is the first that rounding drops.

use super::super::digits::{DIGIT_BYTES, GROUP_DIGITS, load_bytes};
use super::super::transpose::transpose;
use super::numbers::{DIGIT_BITS, load, store};
use crate::kernels::radix::CutLanes;
use crate::math::float::{FloatRef, any_below};
use crate::plan::BLOCK;
use std::arch::x86_64::*;

/// Shifts beyond this leave no bit of any number.
const LARGEST_SHIFT: i64 = 1 << 30;

/// Bytes from one group of digits to the next.
const GROUP_BYTES: i64 = DIGIT_BITS as i64;

/// Words of the digits of numbers of `digits` digits, and one digit below them.
pub fn words(digits: usize) -> usize {
    (digits + 1).next_multiple_of(GROUP_DIGITS) * BLOCK
}

/// Writes the digits of `|x| 2^shift`, the first one those of the 52 bits below 1; bits above a digit's 52 may be
/// anything. Groups of digits that lie below digit `from` are left out. Gives the signs, and, where the lowest are cut,
/// the lanes that rounding to nearest, ties to even, adds 1 to.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub fn cut(numbers: &[FloatRef<'_>; BLOCK], shifts: &[i64; BLOCK], from: usize, out: &mut [u64]) -> CutLanes {
    let mut signs = 0;
    let mut drops = [0; BLOCK];
    for (lane, number) in numbers.iter().enumerate() {
        signs |= u8::from(number.head.is_negative()) << lane;
        let bits = 64 * number.limbs.len() as i64 - number.head.exponent() - shifts[lane];
        drops[lane] = bits.clamp(-LARGEST_SHIFT, LARGEST_SHIFT) - DIGIT_BITS as i64;
    }
    let pick = load_bytes(&DIGIT_BYTES);
    let odd = _mm512_set_epi64(4, 0, 4, 0, 4, 0, 4, 0);
    let shifts: [__m512i; BLOCK] =
        std::array::from_fn(|lane| _mm512_add_epi64(odd, _mm512_set1_epi64(drops[lane] & 7)));
    let first = (from + 1) / GROUP_DIGITS;
    for group in first..out.len() / (GROUP_DIGITS * BLOCK) {
        let entries: [__m512i; BLOCK] = std::array::from_fn(|lane| {
            let (limbs, drop) = (numbers[lane].limbs, drops[lane]);
            let start = (drop >> 3) + GROUP_BYTES * group as i64;
            let bytes = if numbers[lane].head.is_zero() { 0 } else { 8 * limbs.len() as i64 };
            let end = (bytes - start).clamp(0, 64) as u32;
            let before = (-start).clamp(0, 64) as u32;
            let mask = u64::MAX.checked_shr(64 - end).unwrap_or(0) & u64::MAX.checked_shl(before).unwrap_or(0);
            let from = limbs.as_ptr().cast::<i8>().wrapping_offset(start as isize);
            // SAFETY: the mask keeps only bytes of the number's own limbs.
            let loaded = unsafe { _mm512_maskz_loadu_epi8(mask, from) };
            _mm512_srlv_epi64(_mm512_permutexvar_epi8(pick, loaded), shifts[lane])
        });
        for (digit, vector) in transpose(entries).into_iter().enumerate() {
            store(out, group * GROUP_DIGITS + digit, vector);
        }
    }
    CutLanes { signs, carries: if first == 0 { carries(numbers, &drops, out) } else { 0 } }
}

/// The lanes that are rounded up.
#[target_feature(enable = "avx512f")]
fn carries(numbers: &[FloatRef<'_>; BLOCK], drops: &[i64; BLOCK], digits: &[u64]) -> u8 {
    let dropped = _mm512_and_si512(load(digits, 0), _mm512_set1_epi64(super::numbers::MASK));
    let half = _mm512_set1_epi64(1 << (DIGIT_BITS - 1));
    let (above, equal) = (_mm512_cmpgt_epi64_mask(dropped, half), _mm512_cmpeq_epi64_mask(dropped, half));
    if equal == 0 {
        return above;
    }
    let odd = _mm512_test_epi64_mask(load(digits, 1), _mm512_set1_epi64(1));
    let more = |&lane: &usize| drops[lane] > 0 && any_below(numbers[lane].limbs, drops[lane]);
    let more = (0..BLOCK).filter(more).fold(0, |bits, lane| bits | 1 << lane);
    above | equal & (odd | more)
}
