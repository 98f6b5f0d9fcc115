//! Exact rounding of `T / L` for a column that shares its pivot `L`: a product with the reciprocal, eight rows at once.
//!
//! The product is formed from the digits that matter; its error is below `2^-43`. Where the quotient lies closer than
//! that to half an integer, the caller divides exactly. Bounds: docs/ALGORITHM.md, "Quotients by a common pivot".

use crate::math::bound::{CHOLESKY_GUARD_BITS, QUOTIENT_WINDOW};
use crate::math::family::IFMA52_BITS;
use crate::plan::BLOCK;
use rug::Integer;
use std::arch::x86_64::*;

const DIGIT: u32 = IFMA52_BITS;
const MASK: u64 = (1 << DIGIT) - 1;

/// A pivot as divisor.
pub struct Pivot {
    /// `L`, the pivot's magnitude, at least 1.
    pub value: Integer,
    /// Whether the pivot is negative.
    pub negative: bool,
    /// Digits of `T` below this one are not needed.
    pub first: usize,
    /// Digits of `T` that are used, from `first` on.
    pub used: usize,
    /// Digits of the product below the integer part of the quotient.
    fraction: usize,
    /// Digits of `floor(2^(52 (fraction + first)) / L)`.
    reciprocal: Vec<u64>,
}

impl Pivot {
    /// For numerators of at most `2^working_bits L`.
    pub fn new(value: Integer, working_bits: u32) -> Pivot {
        let length = value.significant_bits();
        let first = length.saturating_sub(CHOLESKY_GUARD_BITS) / DIGIT;
        let below = DIGIT * first;
        let used = (length + working_bits + 2 - below).div_ceil(DIGIT);
        let fraction = (working_bits + length + CHOLESKY_GUARD_BITS + 1 - below).div_ceil(DIGIT);
        let power = Integer::from(1) << (DIGIT * fraction + below);
        let reciprocal = power / &value;
        let count = reciprocal.significant_bits().div_ceil(DIGIT) as usize;
        Pivot {
            reciprocal: (0..count).map(|at| digit(&reciprocal, at)).collect(),
            first: first as usize,
            used: used as usize,
            fraction: fraction as usize,
            value,
            negative: false,
        }
    }

    /// A pivot with a sign, not 0.
    pub fn signed(value: &Integer, working_bits: u32) -> Pivot {
        Pivot { negative: *value < 0, ..Pivot::new(Integer::from(value.abs_ref()), working_bits) }
    }

    /// Bytes held.
    pub fn bytes(digits: usize) -> u64 {
        (8 * (2 * digits + 8) + size_of::<Pivot>()) as u64
    }
}

/// Digit number `at` of a non-negative integer.
pub fn digit(value: &Integer, at: usize) -> u64 {
    let bit = at * DIGIT as usize;
    let limb = |index: usize| value.as_limbs().get(index).copied().unwrap_or(0);
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
    pivot: &Pivot,
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
    pivot: &Pivot,
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
