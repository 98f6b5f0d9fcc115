//! Eight lanes of 64 bits in two registers of AVX2, by the names and with the arguments of AVX-512 in
//! `std::arch::x86_64`: the functions that `problem_lanes` uses in addition to products.
#![allow(non_camel_case_types)]

use std::arch::x86_64::*;

/// Eight lanes of 64 bits.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct __m512i(pub __m256i, pub __m256i);

/// The same instruction on both halves.
macro_rules! pairs {
    ($($name:ident $of:ident;)*) => {$(
        #[inline]
        #[target_feature(enable = "avx2,fma")]
        pub fn $name(a: __m512i, b: __m512i) -> __m512i {
            __m512i($of(a.0, b.0), $of(a.1, b.1))
        }
    )*};
}

pairs! {
    _mm512_add_epi64 _mm256_add_epi64;
    _mm512_sub_epi64 _mm256_sub_epi64;
    _mm512_and_si512 _mm256_and_si256;
    _mm512_andnot_si512 _mm256_andnot_si256;
    _mm512_or_si512 _mm256_or_si256;
    _mm512_srlv_epi64 _mm256_srlv_epi64;
    _mm512_sllv_epi64 _mm256_sllv_epi64;
}

/// The result of a comparison of both halves, a bit for each lane.
macro_rules! comparisons {
    ($($name:ident $a:ident $b:ident: $of:expr;)*) => {$(
        #[inline]
        #[target_feature(enable = "avx2,fma")]
        pub fn $name($a: __m512i, $b: __m512i) -> u8 {
            let (low, high) = {
                let of = |$a: __m256i, $b: __m256i| $of;
                (of($a.0, $b.0), of($a.1, $b.1))
            };
            bits(low) | bits(high) << 4
        }
    )*};
}

comparisons! {
    _mm512_cmpeq_epi64_mask a b: _mm256_cmpeq_epi64(a, b);
    _mm512_cmpgt_epi64_mask a b: _mm256_cmpgt_epi64(a, b);
    _mm512_cmplt_epi64_mask a b: _mm256_cmpgt_epi64(b, a);
    _mm512_cmpgt_epu64_mask a b: _mm256_cmpgt_epi64(signed(a), signed(b));
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub fn _mm512_cmple_epu64_mask(a: __m512i, b: __m512i) -> u8 {
    !_mm512_cmpgt_epu64_mask(a, b)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub fn _mm512_test_epi64_mask(a: __m512i, b: __m512i) -> u8 {
    !_mm512_cmpeq_epi64_mask(_mm512_and_si512(a, b), _mm512_setzero_si512())
}

/// Numbers without signs in the order of those with signs.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn signed(a: __m256i) -> __m256i {
    _mm256_xor_si256(a, _mm256_set1_epi64x(i64::MIN))
}

/// The highest bit of each lane.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn bits(a: __m256i) -> u8 {
    _mm256_movemask_pd(_mm256_castsi256_pd(a)) as u8
}

/// Ones in the lanes of the mask.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn lanes(mask: u8) -> __m512i {
    let all = _mm256_set1_epi64x(mask.into());
    let of = |places: __m256i| _mm256_cmpeq_epi64(_mm256_and_si256(all, places), places);
    __m512i(of(_mm256_setr_epi64x(1, 2, 4, 8)), of(_mm256_setr_epi64x(16, 32, 64, 128)))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub fn _mm512_set1_epi64(value: i64) -> __m512i {
    __m512i(_mm256_set1_epi64x(value), _mm256_set1_epi64x(value))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub fn _mm512_setzero_si512() -> __m512i {
    __m512i(_mm256_setzero_si256(), _mm256_setzero_si256())
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub fn _mm512_maskz_set1_epi64(mask: u8, value: i64) -> __m512i {
    _mm512_and_si512(lanes(mask), _mm512_set1_epi64(value))
}

/// # Safety
/// The eight words can be read.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub unsafe fn _mm512_loadu_si512(from: *const __m512i) -> __m512i {
    let from = from.cast::<__m256i>();
    // SAFETY: the caller's promise.
    unsafe { __m512i(_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))) }
}

/// # Safety
/// The eight words can be written.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub unsafe fn _mm512_storeu_si512(to: *mut __m512i, a: __m512i) {
    let to = to.cast::<__m256i>();
    // SAFETY: the caller's promise.
    unsafe {
        _mm256_storeu_si256(to, a.0);
        _mm256_storeu_si256(to.add(1), a.1);
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub fn _mm512_mask_mov_epi64(a: __m512i, mask: u8, b: __m512i) -> __m512i {
    let lanes = lanes(mask);
    __m512i(_mm256_blendv_epi8(a.0, b.0, lanes.0), _mm256_blendv_epi8(a.1, b.1, lanes.1))
}

/// An instruction whose result counts in the lanes of a mask.
macro_rules! masked {
    ($($name:ident $of:ident;)*) => {$(
        #[inline]
        #[target_feature(enable = "avx2,fma")]
        pub fn $name(other: __m512i, mask: u8, a: __m512i, b: __m512i) -> __m512i {
            _mm512_mask_mov_epi64(other, mask, $of(a, b))
        }
    )*};
}

masked! {
    _mm512_mask_add_epi64 _mm512_add_epi64;
    _mm512_mask_sub_epi64 _mm512_sub_epi64;
    _mm512_mask_or_epi64 _mm512_or_si512;
    _mm512_mask_andnot_epi64 _mm512_andnot_si512;
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub fn _mm512_slli_epi64<const BITS: i32>(a: __m512i) -> __m512i {
    __m512i(_mm256_slli_epi64::<BITS>(a.0), _mm256_slli_epi64::<BITS>(a.1))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub fn _mm512_srli_epi64<const BITS: i32>(a: __m512i) -> __m512i {
    __m512i(_mm256_srli_epi64::<BITS>(a.0), _mm256_srli_epi64::<BITS>(a.1))
}

/// As many bits as a digit: the sign is moved up by hand.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub fn _mm512_srai_epi64<const BITS: i32>(a: __m512i) -> __m512i {
    let sign = _mm512_set1_epi64(1 << (63 - BITS));
    let moved = _mm512_srli_epi64::<BITS>(a);
    let flipped = __m512i(_mm256_xor_si256(moved.0, sign.0), _mm256_xor_si256(moved.1, sign.1));
    _mm512_sub_epi64(flipped, sign)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub fn _mm512_abs_epi64(a: __m512i) -> __m512i {
    let of = |a: __m256i| {
        let sign = _mm256_cmpgt_epi64(_mm256_setzero_si256(), a);
        _mm256_sub_epi64(_mm256_xor_si256(a, sign), sign)
    };
    __m512i(of(a.0), of(a.1))
}

/// The lower 64 bits of products.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub fn _mm512_mullo_epi64(a: __m512i, b: __m512i) -> __m512i {
    let of = |a: __m256i, b: __m256i| {
        let cross = _mm256_add_epi64(
            _mm256_mul_epu32(_mm256_srli_epi64::<32>(a), b),
            _mm256_mul_epu32(a, _mm256_srli_epi64::<32>(b)),
        );
        _mm256_add_epi64(_mm256_mul_epu32(a, b), _mm256_slli_epi64::<32>(cross))
    };
    __m512i(of(a.0, b.0), of(a.1, b.1))
}

/// Zeros above the highest bit, lane by lane: once for each number.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub fn _mm512_lzcnt_epi64(a: __m512i) -> __m512i {
    let mut words = [0u64; 8];
    // SAFETY: the array has 8 words.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), a) };
    for word in &mut words {
        *word = word.leading_zeros().into();
    }
    // SAFETY: as above.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}
