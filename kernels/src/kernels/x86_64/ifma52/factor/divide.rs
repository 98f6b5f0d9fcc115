//! Exact rounding of `T / L` for a column that shares its pivot `L`: a product with the reciprocal, eight rows at once.
//!
//! The product is formed from the digits that matter; its error is below `2^-43`. Where the quotient lies closer than
//! that to half an integer, the caller divides exactly. Bounds: docs/ALGORITHM.md, "Quotients by a common pivot".

use crate::kernels::entries;
use crate::kernels::inverse_roots::{self, RootAndInverse, bits_at};
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

/// The sizes of quotients by a pivot, and of their numerators.
#[derive(Clone, Copy)]
pub struct QuotientBits {
    /// Numerators are at most 2 to this power times the pivot.
    pub working: u32,
    /// Bits of zeros below numerators: they are given times 2 to this power.
    pub raised: u32,
}

/// A pivot as divisor.
#[derive(Clone, Copy)]
pub struct PivotDivisor<'a> {
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
    /// Digits of `floor(2^(52 (fraction + first) - raised) / L)`.
    reciprocal: &'a [u64],
}

impl<'a> PivotDivisor<'a> {
    /// The pivot nearest to the square root of `square`, which has the limbs of the rest of a diagonal entry; `None`
    /// for 0. `space` has [`space_words`].
    pub fn root(square: &[u64], bits: QuotientBits, space: &'a mut [u64]) -> Option<PivotDivisor<'a>> {
        let working_bits = bits.working;
        let (of_both, space) = space.split_at_mut(inverse_roots::words(working_bits));
        let (of_root, rest) = space.split_at_mut(root_words(working_bits));
        if let Some(both) = inverse_roots::root_and_inverse(square, working_bits, of_both) {
            return Some(PivotDivisor::with_inverse(both, bits, rest));
        }
        let root = entries::root(square, of_root)?;
        let count = root.iter().rposition(|&limb| limb != 0)? + 1;
        Some(PivotDivisor::new(&root[..count], bits, rest))
    }

    /// From a root and its reciprocal.
    fn with_inverse(both: RootAndInverse<'a>, bits: QuotientBits, space: &'a mut [u64]) -> PivotDivisor<'a> {
        let RootAndInverse { root: value, inverse } = both;
        let length = bit_length(value) as u32 + bits.raised;
        let Cuts { first, used, fraction, terms } = Cuts::new(length, bits.working);
        // The reciprocal is at least a half of this power of two, and below it.
        let bits = DIGIT * (fraction + first) + 1 - length;
        let below = inverse.len() as i64 * i64::from(LIMB_BITS) - i64::from(bits);
        let reciprocal = &mut space[..terms.unwrap_or(bits.div_ceil(DIGIT) as usize)];
        for (at, digit) in reciprocal.iter_mut().enumerate() {
            *digit = bits_at(inverse, below + (at * DIGIT as usize) as i64) & MASK;
        }
        let (first, used, fraction) = (first as usize, used as usize, fraction as usize);
        PivotDivisor { value, negative: false, first, used, fraction, reciprocal }
    }

    /// A pivot of a magnitude other than 0.
    fn new(value: &'a [u64], bits: QuotientBits, space: &'a mut [u64]) -> PivotDivisor<'a> {
        let length = bit_length(value) as u32 + bits.raised;
        let Cuts { first, used, fraction, terms } = Cuts::new(length, bits.working);
        let bit = DIGIT * (fraction + first) - bits.raised;
        let (power, space) = space.split_at_mut(limbs_for(bit + 1));
        power.fill(0);
        power[(bit / LIMB_BITS) as usize] = 1 << (bit % LIMB_BITS);
        let (remainder, space) = space.split_at_mut(value.len());
        let (limbs, space) = space.split_at_mut(power.len() - value.len() + 1);
        limbs::divide(limbs, remainder, power, value);
        let count = (bit_length(limbs) as u32).div_ceil(DIGIT) as usize;
        let reciprocal = &mut space[..terms.unwrap_or(count)];
        for (at, digit) in reciprocal.iter_mut().enumerate() {
            *digit = digit_of(limbs, at);
        }
        let (first, used, fraction) = (first as usize, used as usize, fraction as usize);
        PivotDivisor { value, negative: false, first, used, fraction, reciprocal }
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

/// The largest number of digits of a reciprocal whose products are formed without loops.
const SHORT_TERMS: usize = 8;

/// Digits of the reciprocals of pivots of at least 64 bits, zeros above them included, where they are few: one less
/// than [`Cuts::fraction`].
///
/// A reciprocal is at most `2^(52 fraction + 1 - 64)`, so it has no more digits than that; and `used` is at most
/// `ceil((working_bits + 117) / 52)`.
fn short_terms(working_bits: u32) -> Option<usize> {
    let terms = (working_bits + 2 * CHOLESKY_GUARD_BITS + DIGIT).div_ceil(DIGIT) as usize - 1;
    (terms <= SHORT_TERMS).then_some(terms)
}

/// Digits of numerators and products that count, see [`PivotDivisor`].
struct Cuts {
    first: u32,
    used: u32,
    fraction: u32,
    /// Digits of the reciprocal, zeros above it included, where that is a fixed number.
    terms: Option<usize>,
}

impl Cuts {
    /// The cuts for a pivot of `length` bits, those that numerators are raised by included.
    fn new(length: u32, working_bits: u32) -> Cuts {
        let first = length.saturating_sub(CHOLESKY_GUARD_BITS) / DIGIT;
        let below = DIGIT * first;
        let used = (length + working_bits + 2 - below).div_ceil(DIGIT);
        let terms = short_terms(working_bits).filter(|_| length >= CHOLESKY_GUARD_BITS);
        // The same for pivots of all lengths where the loops are written for that: 115 bits at most.
        let most = if terms.is_some() { CHOLESKY_GUARD_BITS + DIGIT - 1 } else { length - below };
        let fraction = (working_bits + most + CHOLESKY_GUARD_BITS + 1).div_ceil(DIGIT);
        Cuts { first, used, fraction, terms }
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
    /// A pivot that is not 0.
    pub fn new(value: &Integer, bits: QuotientBits) -> OwnPivot {
        let mut space = vec![0; space_words(bits.working)];
        let pivot = PivotDivisor::new(value.as_limbs(), bits, &mut space);
        OwnPivot::from(&PivotDivisor { negative: *value < 0, ..pivot })
    }

    /// The pivot, borrowed.
    pub fn get(&self) -> PivotDivisor<'_> {
        let OwnPivot { negative, first, used, fraction, .. } = *self;
        let (value, reciprocal) = self.words.split_at(self.limbs);
        PivotDivisor { value, negative, first, used, fraction, reciprocal }
    }

    /// Bytes held.
    pub fn bytes(digits: usize) -> u64 {
        (8 * (2 * digits + 8) + size_of::<OwnPivot>()) as u64
    }
}

impl From<&PivotDivisor<'_>> for OwnPivot {
    fn from(pivot: &PivotDivisor<'_>) -> OwnPivot {
        let PivotDivisor { value, negative, first, used, fraction, reciprocal } = *pivot;
        OwnPivot { words: [value, reciprocal].concat().into(), limbs: value.len(), negative, first, used, fraction }
    }
}

/// Words of scratch for the square root of the rest of a diagonal entry.
fn root_words(working_bits: u32) -> usize {
    2 * limbs_for(2 * working_bits + 2 * LIMB_BITS) + 2
}

/// Words of scratch for [`PivotDivisor::root`].
pub fn space_words(working_bits: u32) -> usize {
    // The power of two; as many limbs for the reciprocal and the remainder; the reciprocal's digits.
    let longest = 2 * working_bits + 3 * CHOLESKY_GUARD_BITS;
    inverse_roots::words(working_bits)
        + root_words(working_bits)
        + 2 * limbs_for(longest)
        + 2
        + (longest / DIGIT + 1) as usize
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

/// The outcome of 8 `V` quotients; a bit for each lane.
pub struct Verdict<const V: usize> {
    /// The quotient does not fit its digits.
    pub beyond: [u8; V],
    /// The quotient is too close to half an integer.
    pub unclear: [u8; V],
}

/// `q := round(T / L)` for magnitudes that are in `numerators` times the power of two that they are raised by, digit
/// `d` of vector `v` at `(d V + v) 8`, of `all` digits; the quotients are written with `digits` digits in the same
/// form.
///
/// # Safety
/// `numerators` has `all * V * 8` words, `quotients` has `digits * V * 8`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub unsafe fn divide<const V: usize>(
    pivot: &PivotDivisor<'_>,
    numerators: *const u64,
    all: usize,
    quotients: *mut u64,
    digits: usize,
    window: u64,
) -> Verdict<V> {
    assert!(pivot.first <= all);
    let zero = _mm512_setzero_si512();
    let mask = _mm512_set1_epi64(MASK as i64);
    let mut verdict = Verdict { beyond: [0; V], unclear: [0; V] };
    // SAFETY: the caller's promise.
    let short = || unsafe { divide_short(pivot, numerators, all, quotients, digits, window) };
    if let Some(Verdict { beyond: [beyond], unclear: [unclear] }) = (V == 1).then(short).flatten() {
        return Verdict { beyond: [beyond; V], unclear: [unclear; V] };
    }
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

/// [`divide`] of one vector where the reciprocal has few digits.
///
/// # Safety
/// As [`divide`].
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn divide_short(
    pivot: &PivotDivisor<'_>,
    numerators: *const u64,
    all: usize,
    quotients: *mut u64,
    digits: usize,
    window: u64,
) -> Option<Verdict<1>> {
    macro_rules! of_terms {
        ($($terms:literal)*) => {
            match pivot.reciprocal.len() {
                $($terms if pivot.fraction == $terms + 1 => {
                    // SAFETY: the caller's promise.
                    Some(unsafe { divide_fixed::<$terms>(pivot, numerators, all, quotients, digits, window) })
                })*
                _ => None,
            }
        };
    }
    of_terms!(4 5 6 7 8)
}

/// The same with `U` digits of the reciprocal, as many of the numerator, and `U + 1` below the quotient's.
///
/// # Safety
/// As [`divide`]; the pivot has a reciprocal of `U` digits, and a fraction of `U + 1`.
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn divide_fixed<const U: usize>(
    pivot: &PivotDivisor<'_>,
    numerators: *const u64,
    all: usize,
    quotients: *mut u64,
    digits: usize,
    window: u64,
) -> Verdict<1> {
    let zero = _mm512_setzero_si512();
    let mask = _mm512_set1_epi64(MASK as i64);
    let reciprocal: &[u64; U] = pivot.reciprocal.try_into().expect("a reciprocal of this number of digits");
    // Sums of the columns from `U - 1` on.
    let (mut low, mut high, mut above) = ([zero; U], [zero; U], zero);
    // SAFETY: digits below `all` are read and `digits` digits written, as the caller promises.
    unsafe {
        let numerator: [__m512i; U] = std::array::from_fn(|at| match pivot.first + at < all {
            true => _mm512_loadu_si512(numerators.add((pivot.first + at) * BLOCK).cast()),
            false => zero,
        });
        for at in pivot.first + U..all {
            above = _mm512_or_si512(above, _mm512_loadu_si512(numerators.add(at * BLOCK).cast()));
        }
        for (j, &factor) in reciprocal.iter().enumerate() {
            let factor = _mm512_set1_epi64(factor as i64);
            for (i, &term) in numerator.iter().enumerate() {
                if i + j + 1 >= U {
                    let column = i + j + 1 - U;
                    low[column] = _mm512_madd52lo_epu64(low[column], term, factor);
                    high[column] = _mm512_madd52hi_epu64(high[column], term, factor);
                }
            }
        }
        // The carry of the low halves of the first column is below 2^-44.
        let sum = _mm512_add_epi64(low[1], high[0]);
        let fraction = _mm512_and_si512(sum, mask);
        let half = _mm512_set1_epi64(1 << (DIGIT - 1));
        let up = _mm512_cmpgt_epu64_mask(fraction, half);
        let distance = _mm512_abs_epi64(_mm512_sub_epi64(fraction, half));
        let unclear = _mm512_cmple_epu64_mask(distance, _mm512_set1_epi64(window as i64));
        let mut flow = _mm512_add_epi64(high[1], _mm512_srli_epi64::<52>(sum));
        flow = _mm512_mask_add_epi64(flow, up, flow, _mm512_set1_epi64(1));
        for at in 0..U - 1 {
            let (lo, hi) = if at + 2 < U { (low[at + 2], high[at + 2]) } else { (zero, zero) };
            let sum = _mm512_add_epi64(lo, flow);
            let digit = _mm512_and_si512(sum, mask);
            flow = _mm512_add_epi64(hi, _mm512_srli_epi64::<52>(sum));
            match at < digits {
                true => _mm512_storeu_si512(quotients.add(at * BLOCK).cast(), digit),
                false => above = _mm512_or_si512(above, digit),
            }
        }
        for at in U - 1..digits {
            _mm512_storeu_si512(quotients.add(at * BLOCK).cast(), zero);
        }
        above = _mm512_or_si512(above, flow);
        Verdict { beyond: [_mm512_test_epi64_mask(above, above)], unclear: [unclear] }
    }
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
    pivot: &PivotDivisor<'_>,
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
