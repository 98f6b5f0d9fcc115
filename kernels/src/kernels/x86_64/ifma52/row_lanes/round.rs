//! Magnitudes of eight integers in digits, one in each lane, rounded to floats side by side.
//!
//! The significant bits of a lane are moved to the same digits in all lanes; the rest is one rounding at a fixed place.
//! Same definition as `math::float::round_integer`, to nearest, ties to even.

use super::super::reconstruct::pack_group;
use super::{DIGIT_BITS, MASK, load, store};
use crate::math::bound::LANE_CHECK_BITS;
use crate::math::float::{LIMB_BITS, limbs_for};
use crate::plan::BLOCK;
use std::arch::x86_64::*;

/// Rounding to one precision.
#[derive(Clone, Copy)]
pub struct Rounding {
    precision_bits: u32,
    /// Limbs of a significand.
    limbs: usize,
    /// Digits of as many bits.
    digits: usize,
}

/// The numbers to round: vectors of digits below `2^52`, and for each lane a power of two and a sign.
#[derive(Clone, Copy)]
pub struct Magnitudes<'a> {
    /// The digits.
    pub digits: &'a [u64],
    /// One for each lane.
    pub exponents: &'a [i64; BLOCK],
    /// The lanes below 0.
    pub signs: u8,
}

/// Where each lane's significand begins.
struct Windows {
    /// Lanes other than 0.
    live: u8,
    /// Bits of the integers.
    lengths: __m512i,
    /// First digit of the window, and bits of it that lie below.
    firsts: __m512i,
    shifts: __m512i,
}

impl Rounding {
    /// Rounding to `precision_bits` bits.
    pub fn new(precision_bits: u32) -> Rounding {
        let limbs = limbs_for(precision_bits);
        Rounding { precision_bits, limbs, digits: (limbs * LIMB_BITS as usize).div_ceil(DIGIT_BITS) }
    }

    /// Words of scratch: the digits of a window, one below it for the bits that are cut, one above it for a carry.
    pub fn scratch_words(&self) -> usize {
        (self.digits + 2) * BLOCK
    }

    /// Writes the heads, and the significands one after the other into `limbs`.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512cd,avx512vbmi")]
    pub fn round(&self, from: Magnitudes<'_>, heads: &mut [u64; BLOCK], limbs: &mut [u64], window: &mut [u64]) {
        self.round_known(from, i64::MIN, heads, limbs, window);
    }

    /// The same for magnitudes that are known to within `2^known_bits`; returns the lanes whose rounding that could
    /// change; `i64::MIN` for exact ones.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512cd,avx512vbmi")]
    pub fn round_known(
        &self,
        from: Magnitudes<'_>,
        known_bits: i64,
        heads: &mut [u64; BLOCK],
        limbs: &mut [u64],
        window: &mut [u64],
    ) -> u8 {
        let zero = _mm512_setzero_si512();
        let windows = self.windows(from.digits);
        let sticky = self.cut(from.digits, &windows, window);
        let unclear = if known_bits == i64::MIN { 0 } else { self.unclear(known_bits, &windows, window) };
        let above = self.add_rounding(sticky, window);
        // SAFETY: both arrays have 8 words.
        let exponents = unsafe { _mm512_loadu_si512(from.exponents.as_ptr().cast()) };
        let exponent = _mm512_add_epi64(windows.lengths, exponents);
        let exponent = _mm512_mask_add_epi64(exponent, above, exponent, _mm512_set1_epi64(1));
        let head = _mm512_or_si512(_mm512_slli_epi64::<2>(exponent), _mm512_set1_epi64(2));
        let head = _mm512_mask_or_epi64(head, from.signs, head, _mm512_set1_epi64(1));
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(heads.as_mut_ptr().cast(), _mm512_mask_mov_epi64(zero, windows.live, head)) };
        for group in (0..self.digits).step_by(8) {
            let digit = |at: usize| if group + at < self.digits { load(window, 1 + group + at) } else { zero };
            let rows = [digit(0), digit(1), digit(2), digit(3), digit(4), digit(5), digit(6), digit(7)];
            pack_group(rows, group / 8, self.limbs, limbs);
        }
        unclear
    }

    /// The lanes in which a change by `2^known_bits` could carry the part that is cut over one half: the bits from the
    /// first one cut on are a half, one more or one less, or are not all known.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn unclear(&self, known_bits: i64, windows: &Windows, window: &[u64]) -> u8 {
        let set = |value: i64| _mm512_set1_epi64(value);
        let all = self.limbs * LIMB_BITS as usize;
        // The first bit cut, counted from the digit below the window, is its last one or lies above that.
        let low = DIGIT_BITS + all - self.precision_bits as usize - 1 - LANE_CHECK_BITS as usize;
        let (at, bit) = (low / DIGIT_BITS, low % DIGIT_BITS);
        let below = _mm512_srlv_epi64(load(window, at), set(bit as i64));
        let above = _mm512_sllv_epi64(load(window, at + 1), set((DIGIT_BITS - bit) as i64));
        let cut = _mm512_and_si512(_mm512_or_si512(below, above), set((2 << LANE_CHECK_BITS) - 1));
        let distance = _mm512_abs_epi64(_mm512_sub_epi64(cut, set(1 << LANE_CHECK_BITS)));
        let least = known_bits + i64::from(self.precision_bits + LANE_CHECK_BITS + 1);
        _mm512_cmple_epu64_mask(distance, set(1)) | _mm512_cmplt_epi64_mask(windows.lengths, set(least))
    }

    /// The lengths of the integers, and where the windows of all their leading limbs begin.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512cd")]
    fn windows(&self, digits: &[u64]) -> Windows {
        let set = |value: usize| _mm512_set1_epi64(value as i64);
        let (mut live, mut index, mut leading) = (0, set(0), set(0));
        for at in (0..digits.len() / BLOCK).rev() {
            let digit = load(digits, at);
            let new = _mm512_test_epi64_mask(digit, digit) & !live;
            leading = _mm512_mask_mov_epi64(leading, new, digit);
            index = _mm512_mask_mov_epi64(index, new, set(at));
            live |= new;
            if live == u8::MAX {
                break;
            }
        }
        let bits = _mm512_sub_epi64(set(64), _mm512_lzcnt_epi64(leading));
        let all = self.limbs * LIMB_BITS as usize;
        let part = set(all % DIGIT_BITS);
        let borrows = _mm512_cmplt_epi64_mask(bits, part);
        let shifts = _mm512_sub_epi64(bits, part);
        let firsts = _mm512_sub_epi64(index, set(all / DIGIT_BITS));
        Windows {
            live,
            lengths: _mm512_add_epi64(_mm512_mullo_epi64(index, set(DIGIT_BITS)), bits),
            firsts: _mm512_mask_sub_epi64(firsts, borrows, firsts, set(1)),
            shifts: _mm512_mask_add_epi64(shifts, borrows, shifts, set(DIGIT_BITS)),
        }
    }

    /// Writes the digits of the windows from the one below them on; returns the bits that lie still lower.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn cut(&self, digits: &[u64], windows: &Windows, window: &mut [u64]) -> __m512i {
        let (mask, zero) = (_mm512_set1_epi64(MASK), _mm512_setzero_si512());
        let shifts = windows.shifts;
        let up_shifts = _mm512_sub_epi64(_mm512_set1_epi64(DIGIT_BITS as i64), shifts);
        let one = _mm512_set1_epi64(1);
        let cut_bits = _mm512_sub_epi64(_mm512_sllv_epi64(one, shifts), one);
        let digit = |at: i64| match usize::try_from(at) {
            Ok(at) if at < digits.len() / BLOCK => load(digits, at),
            _ => zero,
        };
        let mut firsts = [0i64; BLOCK];
        // SAFETY: the array has 8 words.
        unsafe { _mm512_storeu_si512(firsts.as_mut_ptr().cast(), windows.firsts) };
        let (mut sticky, mut left) = (zero, windows.live);
        while left != 0 {
            // All lanes that begin at one digit: mostly all lanes, or all but one.
            let first = firsts[left.trailing_zeros() as usize];
            let lanes = _mm512_cmpeq_epi64_mask(windows.firsts, _mm512_set1_epi64(first)) & windows.live;
            let is_first = left == windows.live;
            left &= !lanes;
            let mut low = digit(first - 1);
            let mut below = _mm512_and_si512(low, cut_bits);
            for at in 0..first - 1 {
                below = _mm512_or_si512(below, digit(at));
            }
            sticky = _mm512_mask_mov_epi64(sticky, lanes, below);
            for at in 0..=self.digits {
                let high = digit(first + at as i64);
                let value = _mm512_or_si512(_mm512_srlv_epi64(low, shifts), _mm512_sllv_epi64(high, up_shifts));
                let value = _mm512_and_si512(value, mask);
                // No masked stores: a read after one waits for memory.
                store(window, at, if is_first { value } else { _mm512_mask_mov_epi64(load(window, at), lanes, value) });
                low = high;
            }
        }
        if windows.live == 0 {
            window[..(self.digits + 1) * BLOCK].fill(0);
        }
        store(window, self.digits + 1, zero);
        sticky
    }

    /// Rounds the windows at their last bits that are kept; the lanes that become the next power of two.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn add_rounding(&self, mut sticky: __m512i, window: &mut [u64]) -> u8 {
        let bit = |bit: usize| _mm512_set1_epi64(1 << bit);
        let mask = _mm512_set1_epi64(MASK);
        let all = self.limbs * LIMB_BITS as usize;
        // Places of the last bit kept and of the first one cut, counted from the digit below the window.
        let kept = DIGIT_BITS + all - self.precision_bits as usize;
        let (kept, half) = ((kept / DIGIT_BITS, kept % DIGIT_BITS), ((kept - 1) / DIGIT_BITS, (kept - 1) % DIGIT_BITS));
        for at in 0..half.0 {
            sticky = _mm512_or_si512(sticky, load(window, at));
        }
        let halves = load(window, half.0);
        sticky = _mm512_or_si512(sticky, _mm512_and_si512(halves, _mm512_set1_epi64((1 << half.1) - 1)));
        let last = load(window, kept.0);
        let odd_or_more = _mm512_test_epi64_mask(last, bit(kept.1)) | _mm512_test_epi64_mask(sticky, sticky);
        let up = _mm512_test_epi64_mask(halves, bit(half.1)) & odd_or_more;
        for at in 1..kept.0 {
            store(window, at, _mm512_setzero_si512());
        }
        let mut own = _mm512_andnot_si512(_mm512_set1_epi64((1 << kept.1) - 1), last);
        own = _mm512_mask_add_epi64(own, up, own, bit(kept.1));
        for at in kept.0.. {
            let carries = _mm512_cmpgt_epu64_mask(own, mask);
            store(window, at, _mm512_and_si512(own, mask));
            if carries == 0 || at == self.digits + 1 {
                break;
            }
            own = load(window, at + 1);
            own = _mm512_mask_add_epi64(own, carries, own, bit(0));
        }
        let end = DIGIT_BITS + all;
        let above = _mm512_test_epi64_mask(load(window, end / DIGIT_BITS), bit(end % DIGIT_BITS));
        if above != 0 {
            // All ones: the significand becomes one half of the next power of two.
            let (top, place) = ((end - 1) / DIGIT_BITS, (end - 1) % DIGIT_BITS);
            let own = load(window, top);
            store(window, top, _mm512_mask_mov_epi64(own, above, _mm512_or_si512(own, bit(place))));
        }
        above
    }
}
