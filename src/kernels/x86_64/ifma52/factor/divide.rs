//! Exact rounding of `T / L` for a column that shares its pivot `L`: a product with the reciprocal, eight rows at once.
//!
//! The product is formed from the digits that matter; its error is below `2^-43`. Where the quotient lies closer than
//! that to half an integer, the caller divides exactly. Bounds: docs/ALGORITHM.md, "Quotients by a common pivot".

use crate::kernels::entries;
use crate::kernels::limbs;
use crate::math::bound::{CHOLESKY_GUARD_BITS, QUOTIENT_WINDOW};
use crate::math::family::IFMA52_BITS;
use crate::math::float::{LIMB_BITS, bit_length, limbs_for};
use crate::plan::BLOCK;
use rug::Integer;
use rug::integer::Order;
use std::arch::x86_64::*;

const DIGIT: u32 = IFMA52_BITS;
const MASK: u64 = (1 << DIGIT) - 1;

/// A pivot as divisor.
#[derive(Clone, Copy)]
pub struct Pivot<'a> {
    /// Limbs of `L`, the pivot's magnitude, which is at least 1; the top one is not 0.
    value: &'a [u64],
    /// Whether the pivot is negative.
    pub negative: bool,
    /// Digits of `T` below this one are not needed.
    pub first: usize,
    /// Digits of `T` that are used, from `first` on.
    pub used: usize,
    /// Digits of the product below the integer part of the quotient.
    fraction: usize,
    /// Digits of `floor(2^(52 (fraction + first)) / L)`.
    reciprocal: &'a [u64],
}

impl<'a> Pivot<'a> {
    /// The pivot nearest to the square root of `square`, whose limbs are those of what is left of a diagonal entry, for
    /// numerators of at most `2^working_bits` times the pivot; `None` for 0. `space` has [`space_words`].
    pub fn root(square: &[u64], working_bits: u32, space: &'a mut [u64]) -> Option<Pivot<'a>> {
        let (of_root, rest) = space.split_at_mut(root_words(working_bits));
        let root = entries::root(square, of_root)?;
        let count = root.iter().rposition(|&limb| limb != 0)? + 1;
        Some(Pivot::new(&root[..count], working_bits, rest))
    }

    /// Of a magnitude other than 0.
    fn new(value: &'a [u64], working_bits: u32, space: &'a mut [u64]) -> Pivot<'a> {
        let length = bit_length(value) as u32;
        let first = length.saturating_sub(CHOLESKY_GUARD_BITS) / DIGIT;
        let below = DIGIT * first;
        let used = (length + working_bits + 2 - below).div_ceil(DIGIT);
        let fraction = (working_bits + length + CHOLESKY_GUARD_BITS + 1 - below).div_ceil(DIGIT);
        let bit = DIGIT * fraction + below;
        let (power, space) = space.split_at_mut(limbs_for(bit + 1));
        power.fill(0);
        power[(bit / LIMB_BITS) as usize] = 1 << (bit % LIMB_BITS);
        let (remainder, space) = space.split_at_mut(value.len());
        let (limbs, space) = space.split_at_mut(power.len() - value.len() + 1);
        limbs::divide(limbs, remainder, power, value);
        let count = (bit_length(limbs) as u32).div_ceil(DIGIT) as usize;
        let reciprocal = &mut space[..count];
        for (at, digit) in reciprocal.iter_mut().enumerate() {
            *digit = digit_of(limbs, at);
        }
        let (first, used, fraction) = (first as usize, used as usize, fraction as usize);
        Pivot { value, negative: false, first, used, fraction, reciprocal }
    }

    /// Digit number `at` of the magnitude.
    pub fn digit(&self, at: usize) -> u64 {
        digit_of(self.value, at)
    }

    /// The magnitude.
    pub fn integer(&self) -> Integer {
        Integer::from_digits(self.value, Order::Lsf)
    }
}

/// A pivot that holds its own words.
pub struct OwnPivot {
    /// The limbs of the magnitude, and the digits of the reciprocal behind them.
    words: Box<[u64]>,
    limbs: usize,
    negative: bool,
    first: usize,
    used: usize,
    fraction: usize,
}

impl OwnPivot {
    /// A pivot that is not 0, for numerators of at most `2^working_bits` times its magnitude.
    pub fn new(value: &Integer, working_bits: u32) -> OwnPivot {
        let mut space = vec![0; space_words(working_bits)];
        let pivot = Pivot::new(value.as_limbs(), working_bits, &mut space);
        OwnPivot::from(&Pivot { negative: *value < 0, ..pivot })
    }

    /// The pivot, borrowed.
    pub fn get(&self) -> Pivot<'_> {
        let OwnPivot { negative, first, used, fraction, .. } = *self;
        let (value, reciprocal) = self.words.split_at(self.limbs);
        Pivot { value, negative, first, used, fraction, reciprocal }
    }

    /// Bytes held.
    pub fn bytes(digits: usize) -> u64 {
        (8 * (2 * digits + 8) + size_of::<OwnPivot>()) as u64
    }
}

impl From<&Pivot<'_>> for OwnPivot {
    fn from(pivot: &Pivot<'_>) -> OwnPivot {
        let Pivot { value, negative, first, used, fraction, reciprocal } = *pivot;
        OwnPivot { words: [value, reciprocal].concat().into(), limbs: value.len(), negative, first, used, fraction }
    }
}

/// Words of scratch for the square root of what is left of a diagonal entry.
fn root_words(working_bits: u32) -> usize {
    2 * limbs_for(2 * working_bits + 2 * LIMB_BITS) + 2
}

/// Words of scratch for [`Pivot::root`].
pub fn space_words(working_bits: u32) -> usize {
    // The power of two; as many limbs for the reciprocal and what is left over; the reciprocal's digits.
    let longest = 2 * working_bits + 3 * CHOLESKY_GUARD_BITS;
    root_words(working_bits) + 2 * limbs_for(longest) + 2 + (longest / DIGIT + 1) as usize
}

/// Digit number `at` of a non-negative integer.
#[cfg(test)]
pub fn digit(value: &Integer, at: usize) -> u64 {
    digit_of(value.as_limbs(), at)
}

/// Digit number `at` of a magnitude.
pub fn digit_of(limbs: &[u64], at: usize) -> u64 {
    let bit = at * DIGIT as usize;
    let limb = |index: usize| limbs.get(index).copied().unwrap_or(0);
    let pair = (u128::from(limb(bit / 64 + 1)) << 64) | u128::from(limb(bit / 64));
    (pair >> (bit % 64)) as u64 & MASK
}

/// What became of 8 `V` quotients; a bit for each lane.
pub struct Verdict<const V: usize> {
    /// The quotient does not fit its digits.
    pub beyond: [u8; V],
    /// The quotient is too close to half an integer.
    pub unclear: [u8; V],
}

/// `q := round(T / L)` for the magnitudes in `numerators`, digit `d` of vector `v` at `(d V + v) 8`, of `all` digits;
/// the quotients are written with `digits` digits in the same form.
///
/// # Safety
/// `numerators` has `all * V * 8` words, `quotients` has `digits * V * 8`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub unsafe fn divide<const V: usize>(
    pivot: &Pivot<'_>,
    (numerators, all): (*const u64, usize),
    (quotients, digits): (*mut u64, usize),
    window: u64,
) -> Verdict<V> {
    assert!(pivot.first <= all);
    let zero = _mm512_setzero_si512();
    let mask = _mm512_set1_epi64(MASK as i64);
    let mut verdict = Verdict { beyond: [0; V], unclear: [0; V] };
    let (used, fraction) = (pivot.used.min(all - pivot.first), pivot.fraction);
    let terms = pivot.reciprocal.len();
    let mut above = [zero; V];
    // SAFETY: digits `first .. all` are read and `digits` digits written, as the caller promises.
    unsafe {
        for at in pivot.first + used..all {
            for (v, above) in above.iter_mut().enumerate() {
                *above = _mm512_or_si512(*above, _mm512_loadu_si512(numerators.add((at * V + v) * BLOCK).cast()));
            }
        }
        let mut flow = [zero; V];
        for column in fraction - 2..(fraction + digits).max(used + terms) + 1 {
            let (lo, hi) = column_sums::<V>(pivot, numerators, used, column);
            if column == fraction - 2 {
                flow = hi; // what its own low halves carry is below 2^-44
                continue;
            }
            for v in 0..V {
                let sum = _mm512_add_epi64(lo[v], flow[v]);
                let digit = _mm512_and_si512(sum, mask);
                flow[v] = _mm512_add_epi64(hi[v], _mm512_srli_epi64::<52>(sum));
                if column == fraction - 1 {
                    let half = _mm512_set1_epi64(1 << (DIGIT - 1));
                    let up = _mm512_cmpgt_epu64_mask(digit, half);
                    let distance = _mm512_abs_epi64(_mm512_sub_epi64(digit, half));
                    verdict.unclear[v] = _mm512_cmple_epu64_mask(distance, _mm512_set1_epi64(window as i64));
                    flow[v] = _mm512_mask_add_epi64(flow[v], up, flow[v], _mm512_set1_epi64(1));
                } else if column - fraction < digits {
                    _mm512_storeu_si512(quotients.add(((column - fraction) * V + v) * BLOCK).cast(), digit);
                } else {
                    above[v] = _mm512_or_si512(above[v], digit);
                }
            }
        }
    }
    for (beyond, above) in verdict.beyond.iter_mut().zip(above) {
        *beyond = _mm512_test_epi64_mask(above, above);
    }
    verdict
}

/// Default half-width of the window around one half in which a quotient is unclear.
pub const WINDOW: u64 = QUOTIENT_WINDOW;

/// Low and high halves of all products of a numerator digit and a reciprocal digit that meet in `column`.
///
/// # Safety
/// `numerators` has `used` digits after the pivot's first.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn column_sums<const V: usize>(
    pivot: &Pivot<'_>,
    numerators: *const u64,
    used: usize,
    column: usize,
) -> ([__m512i; V], [__m512i; V]) {
    let mut lo = [_mm512_setzero_si512(); V];
    let mut hi = lo;
    let start = (column + 1).saturating_sub(pivot.reciprocal.len());
    for at in start..(column + 1).min(used) {
        // SAFETY: `at < used` digits after `first` exist, and `column - at` is below the reciprocal's length.
        unsafe {
            let factor = _mm512_set1_epi64(*pivot.reciprocal.as_ptr().add(column - at) as i64);
            for v in 0..V {
                let term = _mm512_loadu_si512(numerators.add(((pivot.first + at) * V + v) * BLOCK).cast());
                lo[v] = _mm512_madd52lo_epu64(lo[v], term, factor);
                hi[v] = _mm512_madd52hi_epu64(hi[v], term, factor);
            }
        }
    }
    (lo, hi)
}
