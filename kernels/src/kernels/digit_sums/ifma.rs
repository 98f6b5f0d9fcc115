//! Sums of products digit by digit on AVX-512 IFMA: eight terms to a vector, one lane each.
//!
//! The digits of a number are cut eight at a time, and those of eight numbers transposed, so that a vector has one
//! digit of each. A lane whose term is subtracted is complemented before and after: `!(!s + p) = s - p`.

use super::{CHUNK, DIGIT_BITS, DigitTerms, DigitVector, EightDigits, MASK, ROOM, SKIPPED, Significands, Sums};
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

/// The largest number of groups of eight numbers that are cut before they are multiplied.
const GROUPS: usize = CHUNK / 8;

/// Eight significands, and the powers of two below 1 that they are multiplied by.
pub(super) type EightSignificands<'a> = [(&'a [u64], u32); 8];

/// See [`Sums::add`].
///
/// # Safety
/// The processor has AVX-512 F, IFMA and VBMI2.
#[target_feature(enable = "avx512f,avx512ifma,avx512vbmi2")]
pub unsafe fn add_terms(sums: &mut Sums, terms: &DigitTerms<'_>, right: &DigitVector) {
    let columns = right.columns();
    let end = (terms.right + terms.marks.len()).div_ceil(8);
    let most = GROUPS.min(ROOM / columns);
    let mut room = [MaybeUninit::<EightDigits>::uninit(); ROOM];
    for first in (terms.right / 8..end).step_by(most) {
        let groups = first..(first + most).min(end);
        let mut signs = [0; GROUPS];
        for (group, (signs, left)) in groups.clone().zip(signs.iter_mut().zip(room.chunks_exact_mut(columns))) {
            *signs = cut_group(terms, group, left);
        }
        let count = groups.len() * columns;
        assert!(count <= ROOM);
        let factors = TermFactors {
            // SAFETY: the first `count` eights were written by the loop above, as `cut_group` writes all of its slice.
            left: unsafe { std::slice::from_raw_parts(room.as_ptr().cast(), count) },
            right: &right.digits[groups.start * columns..groups.end * columns],
            signs: &signs[..groups.len()],
            columns,
        };
        let (blocks, mut start) = (columns.div_ceil(8), 0);
        for block in 0..blocks {
            let width = (columns - start).div_ceil(blocks - block);
            let columns = &mut sums.columns[start..start + width + 1];
            match width {
                1 => factors.add_columns::<1>(start, columns),
                2 => factors.add_columns::<2>(start, columns),
                3 => factors.add_columns::<3>(start, columns),
                4 => factors.add_columns::<4>(start, columns),
                5 => factors.add_columns::<5>(start, columns),
                6 => factors.add_columns::<6>(start, columns),
                7 => factors.add_columns::<7>(start, columns),
                _ => factors.add_columns::<8>(start, columns),
            }
            start += width;
        }
    }
}

/// The digits of both factors of some eights of terms.
struct TermFactors<'a> {
    left: &'a [EightDigits],
    right: &'a [EightDigits],
    /// The lanes that are subtracted.
    signs: &'a [u8],
    columns: usize,
}

impl TermFactors<'_> {
    /// Adds the pairs that meet in `W` columns from `start` on to `sums`, of which the first takes what is carried out.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma,avx512vbmi2")]
    fn add_columns<const W: usize>(&self, start: usize, sums: &mut [i128]) {
        let count = self.signs.len() * self.columns;
        assert!(start + W <= self.columns && self.left.len() == count && self.right.len() == count);
        let (mut low, mut high) = ([_mm512_setzero_si512(); W], [_mm512_setzero_si512(); W]);
        let ones = _mm512_set1_epi64(-1);
        let mut before = 0;
        for (group, &signs) in self.signs.iter().enumerate() {
            let changed = signs ^ before;
            before = signs;
            for column in 0..W {
                low[column] = _mm512_mask_xor_epi64(low[column], changed, low[column], ones);
                high[column] = _mm512_mask_xor_epi64(high[column], changed, high[column], ones);
            }
            let base = group * self.columns;
            // SAFETY: `base + digit` is below `count`, the length of both slices (asserted), for the digits below
            // `columns`; all requested ones are below `start + W`, which is not above it.
            let left = |digit: usize| unsafe { load(self.left.get_unchecked(base + digit)) };
            // SAFETY: as above.
            let right = |digit: usize| unsafe { load(self.right.get_unchecked(base + digit)) };
            for digit in 0..=start {
                let x = left(digit);
                for column in 0..W {
                    let y = right(start + column - digit);
                    low[column] = _mm512_madd52lo_epu64(low[column], x, y);
                    high[column] = _mm512_madd52hi_epu64(high[column], x, y);
                }
            }
            for past in 1..W {
                let x = left(start + past);
                for column in past..W {
                    let y = right(column - past);
                    low[column] = _mm512_madd52lo_epu64(low[column], x, y);
                    high[column] = _mm512_madd52hi_epu64(high[column], x, y);
                }
            }
        }
        let signed = |sum| _mm512_mask_xor_epi64(sum, before, sum, ones);
        let mut carried = _mm512_setzero_si512();
        for column in (0..W).rev() {
            let total = _mm512_add_epi64(carried, signed(low[column]));
            sums[column + 1] += i128::from(_mm512_reduce_add_epi64(total));
            carried = signed(high[column]);
        }
        sums[0] += i128::from(_mm512_reduce_add_epi64(carried));
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load(eight: &EightDigits) -> __m512i {
    // SAFETY: the 64 bytes of the reference, aligned as the type says.
    unsafe { _mm512_load_si512(eight.0.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store(eight: &mut EightDigits, digits: __m512i) {
    // SAFETY: the 64 bytes of the reference, aligned as the type says.
    unsafe { _mm512_store_si512(eight.0.as_mut_ptr().cast(), digits) };
}

/// Cuts the left factors of the terms whose right ones are the eight of a group, zeros for those that do not count;
/// gives the lanes that are subtracted.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi2")]
fn cut_group(terms: &DigitTerms<'_>, group: usize, out: &mut [MaybeUninit<EightDigits>]) -> u8 {
    if terms.left.stride != terms.left.width {
        fetch(terms, group + GROUPS);
    }
    let mut lanes: EightSignificands<'_> = [(&[], 0); 8];
    let mut signs = 0;
    for (lane, number) in lanes.iter_mut().enumerate() {
        let k = (8 * group + lane).wrapping_sub(terms.right);
        if k < terms.marks.len() && terms.marks[k] != SKIPPED {
            let mark = terms.marks[k];
            *number = (terms.left.get(k), (mark >> 1) as u32);
            signs |= ((mark & 1) as u8) << lane;
        }
    }
    cut_eight(&lanes, out.len(), |at, digits| {
        out[at].write(eight(digits));
    });
    signs
}

/// Fetches the significands of the left factors of a group that is cut later: numbers at a distance, as those of a row
/// in a matrix by columns, would be waited for one after the other.
#[inline]
#[target_feature(enable = "avx512f")]
fn fetch(terms: &DigitTerms<'_>, group: usize) {
    let Significands { limbs, width, first, stride, count } = terms.left;
    for lane in 0..8 {
        let k = (8 * group + lane).wrapping_sub(terms.right);
        if k < count {
            let number = limbs.as_ptr().wrapping_add(first.wrapping_add(k.wrapping_mul(stride)));
            for line in (0..width).step_by(8) {
                _mm_prefetch::<_MM_HINT_T0>(number.wrapping_add(line).cast());
            }
            _mm_prefetch::<_MM_HINT_T0>(number.wrapping_add(width.saturating_sub(1)).cast());
        }
    }
}

/// See [`super::place_terms`].
///
/// # Safety
/// The processor has AVX-512 F.
#[target_feature(enable = "avx512f")]
pub unsafe fn place_terms(sizes: &mut [i64], columns: usize) -> Option<i64> {
    super::place_plainly(sizes, columns)
}

/// The first `count` digits of eight numbers times powers of two, one after the other side by side, each given to
/// `put` with its index.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi2")]
pub(super) fn cut_eight(lanes: &EightSignificands<'_>, count: usize, mut put: impl FnMut(usize, __m512i)) {
    let end = |(limbs, shift): &(&[u64], u32)| (64 * limbs.len() + *shift as usize).div_ceil(DIGIT_BITS as usize);
    for first in (0..count).step_by(8) {
        let mut digits = [_mm512_setzero_si512(); 8];
        if first == 0 || lanes.iter().any(|lane| end(lane) > first) {
            for (row, (limbs, shift)) in digits.iter_mut().zip(lanes) {
                *row = cut(limbs, *shift, first);
            }
            digits = transpose(digits);
        }
        for (at, digits) in digits.iter().enumerate() {
            if first + at < count {
                put(first + at, *digits);
            }
        }
    }
}

/// One digit of eight numbers.
#[inline]
#[target_feature(enable = "avx512f")]
fn eight(digits: __m512i) -> EightDigits {
    // SAFETY: both are 64 bytes of any value.
    unsafe { std::mem::transmute::<__m512i, EightDigits>(digits) }
}

/// See [`DigitVector::set_all`], for whole eights of numbers.
///
/// # Safety
/// The processor has AVX-512 F and VBMI2.
#[target_feature(enable = "avx512f,avx512vbmi2")]
pub unsafe fn cut_all(numbers: &Significands<'_>, columns: usize, out: &mut [EightDigits]) {
    for (group, out) in out.chunks_exact_mut(columns).enumerate() {
        let mut lanes: EightSignificands<'_> = [(&[], 0); 8];
        lanes.iter_mut().enumerate().for_each(|(lane, number)| number.0 = numbers.get(8 * group + lane));
        cut_eight(&lanes, columns, |at, digits| store(&mut out[at], digits));
    }
}

/// The leading digits of one number.
///
/// # Safety
/// The processor has AVX-512 F and VBMI2.
#[target_feature(enable = "avx512f,avx512vbmi2")]
pub unsafe fn cut_number(limbs: &[u64], digits: &mut [u64]) {
    for (part, digits) in digits.chunks_mut(8).enumerate() {
        let mut eight = EightDigits([0; 8]);
        store(&mut eight, cut(limbs, 0, 8 * part));
        digits.copy_from_slice(&eight.0[..digits.len()]);
    }
}

/// Eight digits of a significand times `2^-shift`, from `first` on.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi2")]
fn cut(limbs: &[u64], shift: u32, first: usize) -> __m512i {
    // They lie in eight limbs, of which the first one has the lowest bit of the last digit.
    let step = i64::from(DIGIT_BITS);
    let low = 64 * limbs.len() as i64 + i64::from(shift) - step * (first as i64 + 8);
    let (base, bits) = (low >> 6, low & 63);
    let (begin, end) = ((-base).clamp(0, 8), (limbs.len() as i64 - base).clamp(0, 8));
    let lanes = ((1u32 << end) - 1) as u8 & !((1u32 << begin) - 1) as u8;
    if lanes == 0 {
        // Where nothing is read the address may be anywhere, which the processor handles slowly.
        return _mm512_setzero_si512();
    }
    let source = limbs.as_ptr().cast::<i64>().wrapping_offset(base as isize);
    // SAFETY: the lanes that are read are limbs of the slice; the others of a masked load touch no memory.
    let window = unsafe { _mm512_maskz_loadu_epi64(lanes, source) };
    let steps = _mm512_setr_epi64(7 * step, 6 * step, 5 * step, 4 * step, 3 * step, 2 * step, step, 0);
    let place = _mm512_add_epi64(_mm512_set1_epi64(bits), steps);
    let lane = _mm512_srli_epi64::<6>(place);
    let next = _mm512_add_epi64(lane, _mm512_set1_epi64(1));
    let (below, above) = (_mm512_permutexvar_epi64(lane, window), _mm512_permutexvar_epi64(next, window));
    _mm512_and_epi64(_mm512_shrdv_epi64(below, above, place), _mm512_set1_epi64(MASK as i64))
}

/// Rows become columns.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn transpose(rows: [__m512i; 8]) -> [__m512i; 8] {
    let even = |at: usize| _mm512_unpacklo_epi64(rows[at], rows[at + 1]);
    let odd = |at: usize| _mm512_unpackhi_epi64(rows[at], rows[at + 1]);
    let four = |[a, b, c, d]: [__m512i; 4]| {
        // The first and third quarters of all four, and the second and fourth ones.
        let (first, second) = (_mm512_shuffle_i64x2::<0x88>(a, b), _mm512_shuffle_i64x2::<0x88>(c, d));
        let (third, fourth) = (_mm512_shuffle_i64x2::<0xdd>(a, b), _mm512_shuffle_i64x2::<0xdd>(c, d));
        [
            _mm512_shuffle_i64x2::<0x88>(first, second),
            _mm512_shuffle_i64x2::<0x88>(third, fourth),
            _mm512_shuffle_i64x2::<0xdd>(first, second),
            _mm512_shuffle_i64x2::<0xdd>(third, fourth),
        ]
    };
    let [zero, two, four_, six] = four([even(0), even(2), even(4), even(6)]);
    let [one, three, five, seven] = four([odd(0), odd(2), odd(4), odd(6)]);
    [zero, one, two, three, four_, five, six, seven]
}
