//! Residues back to signed integers: a small product with the digits of `M / p_i`, a quotient estimate, a carry run.
//!
//! Half a block (4 columns of 8 entries) at a time, so that the weighted residues stay in the first-level cache.
//! `x = sum_i y_i (M / p_i) - q M` with `y_i = r_i w_i mod p_i` and `q = round(sum_i y_i / p_i)`, taken modulo
//! `2^(52 n) > 2 |x|` in two's complement: subtracting `q M` is adding `q (2^(52 n) - M)`, one more table row.
//! Bounds: docs/ALGORITHM.md, "Reconstruction as a product".

use super::micro::Fold;
use super::tables::{Cofactors, Ifma52Tables};
use super::transpose::transpose;
use crate::kernels::{BlockResidues, IntegerBlock};
use crate::plan::{BLOCK, BLOCK_WORDS};
use std::arch::x86_64::*;

/// Vectors (columns of a block) handled together.
pub const COLUMNS: usize = 4;

/// Words of the weighted residues of half a block.
pub fn weighted_words(cofactors: Cofactors<'_>) -> usize {
    cofactors.terms * COLUMNS * BLOCK
}

/// Words of scratch for one call.
pub fn scratch_words(cofactors: Cofactors<'_>) -> usize {
    weighted_words(cofactors) + cofactors.digits.next_multiple_of(8) * COLUMNS * BLOCK
}

/// The integers of one block; see `PlaneEngine::reconstruct`.
#[target_feature(enable = "avx512f,avx512ifma,avx512bw,avx512dq,avx512vbmi")]
pub fn reconstruct(
    tables: &Ifma52Tables,
    residues: &BlockResidues<'_>,
    integers: &mut IntegerBlock,
    scratch: &mut [u64],
) {
    let cofactors = tables.cofactors();
    assert!(integers.limbs * 64 >= tables.count() * 52);
    let (weighted, digits) = scratch[..scratch_words(cofactors)].split_at_mut(weighted_words(cofactors));
    for half in 0..BLOCK / COLUMNS {
        weigh(tables, residues, half, weighted);
        put_together(cofactors, weighted, half, digits, integers);
    }
}

/// The integers of one half of a block, from weighted residues and the quotient behind them, 4 vectors each; `digits`
/// is scratch.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512bw,avx512vbmi")]
pub fn put_together(
    cofactors: Cofactors<'_>,
    weighted: &[u64],
    half: usize,
    digits: &mut [u64],
    integers: &mut IntegerBlock,
) {
    assert!(integers.magnitudes.len() == integers.limbs * BLOCK_WORDS);
    let signs = accumulate(cofactors, weighted, digits);
    for (column, sign) in signs.into_iter().enumerate() {
        if sign != 0 {
            negate(&mut digits[column * BLOCK..], cofactors.digits, sign);
        }
        let number = half * COLUMNS + column;
        for lane in 0..BLOCK {
            integers.negative[number * BLOCK + lane] = (sign >> lane) & 1 == 1;
        }
        pack(digits, column, cofactors.digits, number * BLOCK, integers);
    }
    // Digits end before limbs that are more than needed.
    let (limbs, written) = (integers.limbs, (52 * cofactors.digits).div_ceil(64));
    if written < limbs {
        for entry in 0..COLUMNS * BLOCK {
            let first = (half * COLUMNS * BLOCK + entry) * limbs;
            integers.magnitudes[first + written..first + limbs].fill(0);
        }
    }
}

/// `y_i` for every prime, and after them the quotient `q`, 4 vectors each.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
fn weigh(tables: &Ifma52Tables, residues: &BlockResidues<'_>, half: usize, weighted: &mut [u64]) {
    let mut quotients = [_mm512_setzero_pd(); COLUMNS];
    for (index, &prime) in tables.primes.iter().enumerate() {
        let fold = Fold::new(prime);
        let weight = _mm512_set1_epi64(tables.weights[index] as i64);
        let reciprocal = _mm512_set1_pd(tables.reciprocals[index]);
        let words = &residues.of_prime(index)[half * COLUMNS * BLOCK..][..COLUMNS * BLOCK];
        let out = &mut weighted[index * COLUMNS * BLOCK..][..COLUMNS * BLOCK];
        for (column, (word, slot)) in words.chunks_exact(BLOCK).zip(out.chunks_exact_mut(BLOCK)).enumerate() {
            // SAFETY: both chunks have 8 words.
            unsafe {
                let y = fold.multiply(_mm512_loadu_si512(word.as_ptr().cast()), weight);
                _mm512_storeu_si512(slot.as_mut_ptr().cast(), y);
                quotients[column] = _mm512_fmadd_pd(_mm512_cvtepu64_pd(y), reciprocal, quotients[column]);
            }
        }
    }
    write_quotients(quotients, &mut weighted[tables.count() * COLUMNS * BLOCK..]);
}

/// Writes sums of `y_i / p_i` rounded to integers.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub fn write_quotients(quotients: [__m512d; COLUMNS], out: &mut [u64]) {
    for (quotient, slot) in quotients.iter().zip(out[..COLUMNS * BLOCK].chunks_exact_mut(BLOCK)) {
        // SAFETY: the chunk has 8 words.
        unsafe { _mm512_storeu_si512(slot.as_mut_ptr().cast(), _mm512_cvtpd_epu64(*quotient)) };
    }
}

/// Digits in two's complement (4 vectors per digit, digits padded with zeros to a multiple of 8), and the signs.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub fn accumulate(cofactors: Cofactors<'_>, weighted: &[u64], digits: &mut [u64]) -> [u8; COLUMNS] {
    let count = cofactors.digits;
    let zero = _mm512_setzero_si512();
    let mask = _mm512_set1_epi64((1 << 52) - 1);
    // The sum that flows into the next digit: the high halves below it and the carry.
    let mut flow = [zero; COLUMNS];
    let mut top = [zero; COLUMNS];
    let mut finish = |digit: usize, lo: &[__m512i; COLUMNS], hi: &[__m512i; COLUMNS]| {
        for column in 0..COLUMNS {
            let sum = _mm512_add_epi64(lo[column], flow[column]);
            top[column] = _mm512_and_si512(sum, mask);
            flow[column] = _mm512_add_epi64(hi[column], _mm512_srli_epi64::<52>(sum));
            let slot = &mut digits[(digit * COLUMNS + column) * BLOCK..][..BLOCK];
            // SAFETY: the slot has 8 words.
            unsafe { _mm512_storeu_si512(slot.as_mut_ptr().cast(), top[column]) };
        }
    };
    let mut digit = 0;
    while digit + 2 <= count {
        let sums = digit_sums::<2>(cofactors, weighted, digit);
        finish(digit, &sums[0].0, &sums[0].1);
        finish(digit + 1, &sums[1].0, &sums[1].1);
        digit += 2;
    }
    if digit < count {
        let sums = digit_sums::<1>(cofactors, weighted, digit);
        finish(digit, &sums[0].0, &sums[0].1);
    }
    digits[count * COLUMNS * BLOCK..].fill(0);
    let mut signs = [0; COLUMNS];
    for column in 0..COLUMNS {
        signs[column] = _mm512_test_epi64_mask(top[column], _mm512_set1_epi64(1 << 51));
    }
    signs
}

/// Low and high sums over all table rows for `DIGITS` neighbouring digits.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn digit_sums<const DIGITS: usize>(
    cofactors: Cofactors<'_>,
    weighted: &[u64],
    digit: usize,
) -> [([__m512i; COLUMNS], [__m512i; COLUMNS]); DIGITS] {
    let terms = cofactors.terms;
    let zero = _mm512_setzero_si512();
    assert!(cofactors.table.len() >= (digit + DIGITS) * terms && weighted.len() >= terms * COLUMNS * BLOCK);
    let table = &cofactors.table[digit * terms..];
    let mut sums = [([zero; COLUMNS], [zero; COLUMNS]); DIGITS];
    for term in 0..terms {
        // SAFETY: the assert above covers `terms` vectors of each column and `DIGITS` rows of the table.
        unsafe {
            let values: [__m512i; COLUMNS] = std::array::from_fn(|column| {
                _mm512_loadu_si512(weighted.as_ptr().add((term * COLUMNS + column) * BLOCK).cast())
            });
            for (which, (lo, hi)) in sums.iter_mut().enumerate() {
                let factor = _mm512_set1_epi64(*table.as_ptr().add(which * terms + term) as i64);
                for column in 0..COLUMNS {
                    lo[column] = _mm512_madd52lo_epu64(lo[column], values[column], factor);
                    hi[column] = _mm512_madd52hi_epu64(hi[column], values[column], factor);
                }
            }
        }
    }
    sums
}

/// Two's complement of the lanes in `lanes`, over `count` digits that lie `COLUMNS * 8` words apart.
#[inline]
#[target_feature(enable = "avx512f")]
fn negate(digits: &mut [u64], count: usize, lanes: u8) {
    let mask = _mm512_set1_epi64((1 << 52) - 1);
    let mut carry = _mm512_set1_epi64(1);
    for digit in 0..count {
        let slot = &mut digits[digit * COLUMNS * BLOCK..][..BLOCK];
        // SAFETY: the slot has 8 words.
        unsafe {
            let value = _mm512_loadu_si512(slot.as_ptr().cast());
            let sum = _mm512_add_epi64(_mm512_andnot_si512(value, mask), carry);
            carry = _mm512_srli_epi64::<52>(sum);
            let result = _mm512_mask_mov_epi64(value, lanes, _mm512_and_si512(sum, mask));
            _mm512_storeu_si512(slot.as_mut_ptr().cast(), result);
        }
    }
}

/// For each pair of lanes, its 13 bytes next to one another: byte `13 q + b` comes from pair `q`.
const PACK_BYTES: [u8; 64] = {
    let mut bytes = [0; 64];
    let mut at = 0;
    while at < 52 {
        bytes[at] = (at / 13 * 16 + at % 13) as u8;
        at += 1;
    }
    bytes
};

/// Writes the 8 entries of one column as limbs, from their digits; `first` is the number of the first entry.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn pack(digits: &[u64], column: usize, count: usize, first: usize, integers: &mut IntegerBlock) {
    let limbs = integers.limbs;
    let out = &mut integers.magnitudes[first * limbs..][..BLOCK * limbs];
    for group in (0..count).step_by(8) {
        let rows = std::array::from_fn(|digit| {
            let at = ((group + digit) * COLUMNS + column) * BLOCK;
            // SAFETY: the digits are padded to groups of 8.
            unsafe { _mm512_loadu_si512(digits[at..at + BLOCK].as_ptr().cast()) }
        });
        pack_group(rows, group / 8, limbs, out);
    }
}

/// Writes 8 digits of 8 entries as limbs: digits `8 group ..` of the entries whose `limbs` limbs follow one another in
/// `out`; digits beyond an entry's limbs are dropped.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub fn pack_group(digits: [__m512i; BLOCK], group: usize, limbs: usize, out: &mut [u64]) {
    let (bytes, start) = (limbs * 8, group * 52);
    assert!(out.len() == BLOCK * limbs && start < bytes);
    let mask = u64::MAX >> (64 - (bytes - start).min(64));
    // SAFETY: the array has 64 bytes.
    let index = unsafe { _mm512_loadu_si512(PACK_BYTES.as_ptr().cast()) };
    for (lane, entry) in transpose(digits).into_iter().enumerate() {
        // Even lanes: the low 64 bits of a pair of digits; odd lanes: its high 40 bits.
        let odd = _mm512_unpackhi_epi64(entry, entry);
        let low = _mm512_or_si512(entry, _mm512_slli_epi64::<52>(odd));
        let pairs = _mm512_mask_srli_epi64::<12>(low, 0b1010_1010, entry);
        let packed = _mm512_maskz_permutexvar_epi8((1 << 52) - 1, index, pairs);
        // SAFETY: the mask keeps each store inside its entry's limbs.
        unsafe { _mm512_mask_storeu_epi8(out.as_mut_ptr().cast::<i8>().add(lane * bytes + start), mask, packed) };
    }
}
