//! Vectors of AVX-512.
//!
//! The type never leaves this module but as the vectors of a unit that only runs where the CPU has AVX-512 F, BW, DQ,
//! VL, VBMI and VNNI, so its methods only execute there.

use super::{GROUP_ROWS, HALVES, HalfwordVector, ROUNDER, Vector, WORDS};
use std::arch::x86_64::*;

/// A 512-bit register.
#[derive(Clone, Copy)]
pub struct I8Avx512(__m512i);

/// Methods that are one instruction, or two.
macro_rules! operations {
    ($($name:ident($($arg:ident),*) = |$x:ident| $body:expr;)*) => {
        $(
            #[inline(always)]
            fn $name(self $(, $arg: Self)*) -> Self {
                let $x = self.0;
                $(let $arg = $arg.0;)*
                // SAFETY: see the note on top of this module; only registers are touched.
                unsafe { I8Avx512($body) }
            }
        )*
    };
}

impl HalfwordVector for I8Avx512 {
    #[inline(always)]
    fn load_halves(from: &[u16; HALVES]) -> Self {
        // SAFETY: see the note on top of this module; the array has 64 bytes.
        unsafe { I8Avx512(_mm512_loadu_si512(from.as_ptr().cast())) }
    }

    #[inline(always)]
    fn store_halves(self, to: &mut [u16; HALVES]) {
        // SAFETY: see the note on top of this module; the array has 64 bytes.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn stream_halves(self, to: &mut [u16; HALVES]) {
        let to = to.as_mut_ptr();
        if to.addr().is_multiple_of(64) {
            // SAFETY: see the note on top of this module; the array has 64 bytes and begins a cache line.
            unsafe { _mm512_stream_si512(to.cast(), self.0) }
        } else {
            // SAFETY: see the note on top of this module; the array has 64 bytes.
            unsafe { _mm512_storeu_si512(to.cast(), self.0) }
        }
    }

    #[inline(always)]
    fn fence() {
        // SAFETY: every CPU of this architecture has the instruction.
        unsafe { _mm_sfence() }
    }

    #[inline(always)]
    fn prefetch(from: &[u16]) {
        for line in from.chunks(HALVES) {
            // SAFETY: every CPU of this architecture has the instruction, which changes no memory.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast()) }
        }
    }

    #[inline(always)]
    fn splat_half(x: u16) -> Self {
        // SAFETY: see the note on top of this module.
        unsafe { I8Avx512(_mm512_set1_epi16(x as i16)) }
    }

    operations! {
        add_halves(other) = |x| _mm512_add_epi16(x, other);
        subtract_halves(other) = |x| _mm512_sub_epi16(x, other);
        multiply_halves(other) = |x| _mm512_mullo_epi16(x, other);
        least_halves(other) = |x| _mm512_min_epu16(x, other);
        add_bytes(other) = |x| _mm512_add_epi8(x, other);
        join_low_halves(high) = |x| select(_mm512_set1_epi32(0xffff), x, _mm512_slli_epi32::<16>(high));
    }

    #[inline(always)]
    fn digits(self) -> Self {
        // SAFETY: see the note on top of this module.
        unsafe {
            let shifted = _mm512_add_epi16(self.0, _mm512_set1_epi16(64));
            let low = _mm512_and_si512(shifted, _mm512_set1_epi16(127));
            let both = select(_mm512_set1_epi16(0xff), low, _mm512_slli_epi16::<1>(shifted));
            I8Avx512(_mm512_sub_epi8(both, _mm512_set1_epi16(64)))
        }
    }

    #[inline(always)]
    fn group_rows(self) -> Self {
        // SAFETY: see the note on top of this module; the array has 64 bytes.
        unsafe { I8Avx512(_mm512_permutexvar_epi8(_mm512_loadu_si512(GROUP_ROWS.as_ptr().cast()), self.0)) }
    }
}

impl Vector for I8Avx512 {
    #[inline(always)]
    fn load(from: &[u32; WORDS]) -> Self {
        // SAFETY: see the note on top of this module; the array has 64 bytes.
        unsafe { I8Avx512(_mm512_loadu_si512(from.as_ptr().cast())) }
    }

    #[inline(always)]
    fn store(self, to: &mut [u32; WORDS]) {
        // SAFETY: see the note on top of this module; the array has 64 bytes.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn splat(x: u32) -> Self {
        // SAFETY: see the note on top of this module.
        unsafe { I8Avx512(_mm512_set1_epi32(x as i32)) }
    }

    operations! {
        xor(other) = |x| _mm512_xor_si512(x, other);
        add(other) = |x| _mm512_add_epi32(x, other);
        subtract(other) = |x| _mm512_sub_epi32(x, other);
        multiply(other) = |x| _mm512_mullo_epi32(x, other);
        add_products(a, b) = |x| _mm512_dpwssd_epi32(x, a, b);
        least(other) = |x| _mm512_min_epu32(x, other);
        shift_left_7() = |x| _mm512_slli_epi32::<7>(x);
    }

    #[inline(always)]
    fn round_product(self, inverse: f32) -> Self {
        // SAFETY: see the note on top of this module.
        unsafe {
            let (inverse, rounder) = (_mm512_set1_ps(inverse), _mm512_set1_ps(ROUNDER));
            I8Avx512(_mm512_castps_si512(_mm512_fmadd_ps(_mm512_cvtepi32_ps(self.0), inverse, rounder)))
        }
    }

    #[inline(always)]
    fn turn_quarters(vectors: [Self; 4]) -> [Self; 4] {
        let [I8Avx512(a), I8Avx512(b), I8Avx512(c), I8Avx512(d)] = vectors;
        // SAFETY: see the note on top of this module.
        unsafe {
            let (low_ab, high_ab) = (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
            let (low_cd, high_cd) = (_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
            [
                I8Avx512(_mm512_unpacklo_epi64(low_ab, low_cd)),
                I8Avx512(_mm512_unpackhi_epi64(low_ab, low_cd)),
                I8Avx512(_mm512_unpacklo_epi64(high_ab, high_cd)),
                I8Avx512(_mm512_unpackhi_epi64(high_ab, high_cd)),
            ]
        }
    }

    #[inline(always)]
    fn swap_quarters(vectors: [Self; 4]) -> [Self; 4] {
        let [I8Avx512(a), I8Avx512(b), I8Avx512(c), I8Avx512(d)] = vectors;
        // SAFETY: see the note on top of this module.
        unsafe {
            // Quarters 0 and 2 of two vectors, then 1 and 3.
            let (even_ab, odd_ab) = (_mm512_shuffle_i32x4::<0x88>(a, b), _mm512_shuffle_i32x4::<0xdd>(a, b));
            let (even_cd, odd_cd) = (_mm512_shuffle_i32x4::<0x88>(c, d), _mm512_shuffle_i32x4::<0xdd>(c, d));
            [
                I8Avx512(_mm512_shuffle_i32x4::<0x88>(even_ab, even_cd)),
                I8Avx512(_mm512_shuffle_i32x4::<0x88>(odd_ab, odd_cd)),
                I8Avx512(_mm512_shuffle_i32x4::<0xdd>(even_ab, even_cd)),
                I8Avx512(_mm512_shuffle_i32x4::<0xdd>(odd_ab, odd_cd)),
            ]
        }
    }

    #[inline(always)]
    fn bits_from(limbs: &[u64], first: i64) -> Self {
        let (start, right) = (first >> 6, first & 63);
        let (low, high) = (load_limbs(limbs, start), load_limbs(limbs, start + 1));
        // SAFETY: see the note on top of this module. A shift by 64 bits leaves nothing.
        unsafe {
            let low = _mm512_srl_epi64(low, _mm_cvtsi64_si128(right));
            let high = _mm512_sll_epi64(high, _mm_cvtsi64_si128(64 - right));
            I8Avx512(_mm512_or_si512(low, high))
        }
    }
}

/// Bits of `x` where `mask` is set, else of `y`.
#[inline(always)]
fn select(mask: __m512i, x: __m512i, y: __m512i) -> __m512i {
    // SAFETY: see the note on top of this module.
    unsafe { _mm512_ternarylogic_epi32::<0xca>(mask, x, y) }
}

/// Eight limbs from number `start` on; those that there are none of are 0.
#[inline(always)]
fn load_limbs(limbs: &[u64], start: i64) -> __m512i {
    let before = start.saturating_neg().clamp(0, 8) as u32;
    let there = (limbs.len() as i64).saturating_sub(start).clamp(0, 8) as u32;
    let mask = (0xff << before) & ((1u32 << there) - 1);
    let at = limbs.as_ptr().wrapping_offset(start as isize);
    // SAFETY: see the note on top of this module; the mask keeps only limbs of the slice.
    unsafe { _mm512_maskz_loadu_epi64(mask as u8, at.cast()) }
}
