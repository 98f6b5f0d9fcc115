//! Sums of products digit by digit on AVX-512 IFMA: eight columns of a product to a vector, and eight digits of a
//! number cut at a time.

use super::{Columns, DIGIT_BITS, DigitVector, MOST_COLUMNS, Term, cut, padding};
use std::arch::x86_64::*;

/// See [`super::add_terms`]; terms for one carry alone.
///
/// # Safety
/// The processor has AVX-512 F, IFMA and VBMI2.
pub unsafe fn add_terms(sums: &mut Columns, limbs: &[u64], width: usize, right: &DigitVector, terms: &[Term]) {
    macro_rules! with_vectors {
        ($($count:literal)*) => {
            match right.columns().div_ceil(8) {
                // SAFETY: the features are there, as the caller promises.
                $($count => unsafe { add_vectors::<$count>(sums, limbs, width, right, terms) },)*
                _ => unreachable!("at most {MOST_COLUMNS} columns"),
            }
        };
    }
    with_vectors!(1 2 3 4 5 6)
}

/// The same with `V` vectors of columns. Two sums of each kind keep the additions of neighbouring digits apart.
#[target_feature(enable = "avx512f,avx512ifma,avx512vbmi2")]
fn add_vectors<const V: usize>(sums: &mut Columns, limbs: &[u64], width: usize, right: &DigitVector, terms: &[Term]) {
    let columns = right.columns();
    let mut low = [[_mm512_setzero_si512(); V]; 2];
    let mut high = low;
    let mut buffer = [0; MOST_COLUMNS + 8];
    let before = padding(columns);
    for term in terms {
        let (skipped, bits) = ((term.shift / DIGIT_BITS) as usize, term.shift % DIGIT_BITS);
        // Of few columns all are gone through, since a branch that is taken wrongly costs more.
        let count = if V <= 2 { columns } else { columns - skipped };
        cut_digits(&limbs[term.limb..][..width], bits, &mut buffer, count);
        buffer[count] = 0; // digits go in pairs
        let others = right.padded(term.right);
        assert!(others.len() == before + 8 * V && count < buffer.len());
        for pair in (0..count).step_by(2) {
            for half in 0..2 {
                let (digit, place) = (_mm512_set1_epi64(buffer[pair + half] as i64), skipped + pair + half);
                let place = if V <= 2 { place.min(8 * V) } else { place };
                for vector in 0..V {
                    if V <= 2 || 8 * vector + 7 >= place {
                        // SAFETY: for V <= 2 there are 8 V words before the digits and place is not above that; else
                        // there are 8, and place is at most 8 vector + 7. The last word is one of the 8 V from the
                        // first digit on at most; the length of the padded entry is asserted.
                        let other =
                            unsafe { _mm512_loadu_si512(others.as_ptr().add(before + 8 * vector - place).cast()) };
                        low[half][vector] = _mm512_madd52lo_epu64(low[half][vector], digit, other);
                        high[half][vector] = _mm512_madd52hi_epu64(high[half][vector], digit, other);
                    }
                }
            }
        }
    }
    for vector in 0..V {
        let (mut lows, mut highs) = ([0u64; 8], [0u64; 8]);
        let sum = |halves: &[[__m512i; V]; 2]| _mm512_add_epi64(halves[0][vector], halves[1][vector]);
        // SAFETY: both arrays have the 64 bytes that are written.
        unsafe {
            _mm512_storeu_si512(lows.as_mut_ptr().cast(), sum(&low));
            _mm512_storeu_si512(highs.as_mut_ptr().cast(), sum(&high));
        }
        for (lane, (low, high)) in lows.into_iter().zip(highs).enumerate().take(columns - 8 * vector) {
            sums[8 * vector + lane + 1] += u128::from(low);
            sums[8 * vector + lane] += u128::from(high);
        }
    }
}

/// Limbs that fit three vectors with a zero on both sides.
const CUT_LIMBS: usize = 22;

/// See [`super::DigitVector::set`].
///
/// # Safety
/// The processor has AVX-512 F, IFMA and VBMI2.
pub unsafe fn cut_number(limbs: &[u64], digits: &mut [u64]) {
    // SAFETY: the features are there, as the caller promises.
    unsafe { cut_digits(limbs, 0, digits, digits.len()) };
}

/// The first `count` digits of a significand times `2^-bits`, as [`cut`] gives them, with room for whole groups of
/// eight (asserted).
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi2")]
fn cut_digits(limbs: &[u64], bits: u32, digits: &mut [u64], count: usize) {
    let width = limbs.len();
    assert!(count.next_multiple_of(8) <= digits.len());
    if width > CUT_LIMBS {
        return cut(limbs, bits, &mut digits[..count]);
    }
    // Lane l of the three vectors together is limb l - 1, and 0 beyond both ends.
    let lanes = ((1u32 << width) - 1) << 1;
    let first = limbs.as_ptr().cast::<i64>().wrapping_sub(1);
    let load = |vector: usize| match (lanes >> (8 * vector)) as u8 {
        0 => _mm512_setzero_si512(),
        // SAFETY: the lanes that are read are those of limbs of the slice; the others of a masked load touch no memory.
        lanes => unsafe { _mm512_maskz_loadu_epi64(lanes, first.wrapping_add(8 * vector)) },
    };
    let [low, middle, high] = [load(0), load(1), load(2)];
    let step = i64::from(DIGIT_BITS);
    let steps = _mm512_setr_epi64(0, step, 2 * step, 3 * step, 4 * step, 5 * step, 6 * step, 7 * step);
    let one = _mm512_set1_epi64(1);
    let fetch = |lane: __m512i| {
        if width <= 6 {
            return _mm512_permutexvar_epi64(lane, low);
        }
        let two = _mm512_permutex2var_epi64(low, lane, middle);
        if width <= 14 {
            return two;
        }
        let beyond = _mm512_cmpgt_epi64_mask(lane, _mm512_set1_epi64(15));
        _mm512_mask_permutexvar_epi64(two, beyond, lane, high)
    };
    let top = 64 * width as i64 + i64::from(bits) - step;
    for group in (0..count).step_by(8) {
        let place = _mm512_sub_epi64(_mm512_set1_epi64(top - step * group as i64), steps);
        let lane = _mm512_add_epi64(_mm512_srai_epi64::<6>(place), one);
        let digit = _mm512_shrdv_epi64(fetch(lane), fetch(_mm512_add_epi64(lane, one)), place);
        // Digits below the last limb are 0.
        let inside = _mm512_cmpgt_epi64_mask(place, _mm512_set1_epi64(-step));
        let digit = _mm512_maskz_and_epi64(inside, digit, _mm512_set1_epi64((1 << DIGIT_BITS) - 1));
        // SAFETY: the group begins below `count`, and whole groups are inside the slice (asserted).
        unsafe { _mm512_storeu_si512(digits.as_mut_ptr().add(group).cast(), digit) };
    }
}
