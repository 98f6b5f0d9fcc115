//! The lanes of x86-64: AVX2, AVX-VNNI, and AVX-512 with VNNI.
//!
//! The vector types never leave this module but as the type parameter of a task that one of the `run` functions runs,
//! so their methods only execute on a CPU that has the instructions.

use super::{ByLanes, I8Lanes};
use crate::kernels::i8::tiles::I8Task;
use crate::kernels::i8::vectors;
use std::arch::x86_64::*;

/// # Safety
/// The CPU has AVX2.
#[target_feature(enable = "avx2")]
pub unsafe fn run_avx2<T: I8Task>(task: T) {
    task.run::<ByLanes<I8Avx2, 4, 2>>();
}

/// # Safety
/// The CPU has AVX2 and AVX-VNNI.
#[target_feature(enable = "avx2,avxvnni")]
pub unsafe fn run_avx_vnni<T: I8Task>(task: T) {
    task.run::<ByLanes<I8AvxVnni, 4, 2>>();
}

/// # Safety
/// The CPU has AVX2 and AVX-512 F, BW, DQ, VL, VBMI and VNNI.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni,avx2")]
pub unsafe fn run_vnni<T: I8Task>(task: T) {
    task.run::<ByLanes<I8Vnni, 8, 2>>();
}

/// Eight lanes; bytes are multiplied one by one, since pairs of their products do not fit 16 bits.
#[derive(Clone, Copy)]
struct I8Avx2(__m256i);

/// Eight lanes.
#[derive(Clone, Copy)]
struct I8AvxVnni(__m256i);

/// Sixteen lanes.
#[derive(Clone, Copy)]
struct I8Vnni(__m512i);

/// The lanes of a 256-bit register; the two types differ in how products are added.
macro_rules! narrow_lanes {
    ($lanes:ident, |$sum:ident, $unsigned:ident, $signed:ident| $add_products:expr) => {
        impl I8Lanes for $lanes {
            const WIDTH: usize = 8;
            type Vectors = vectors::PlainVector;

            #[inline(always)]
            fn zero() -> Self {
                // SAFETY: see the note on top of this module.
                unsafe { $lanes(_mm256_setzero_si256()) }
            }

            #[inline(always)]
            fn splat(x: u32) -> Self {
                // SAFETY: see the note on top of this module.
                unsafe { $lanes(_mm256_set1_epi32(x as i32)) }
            }

            #[inline(always)]
            fn load(from: &[u32]) -> Self {
                assert!(from.len() >= Self::WIDTH);
                // SAFETY: see the note on top of this module; the slice is long enough.
                unsafe { $lanes(_mm256_loadu_si256(from.as_ptr().cast())) }
            }

            #[inline(always)]
            fn store(self, to: &mut [i32]) {
                assert!(to.len() >= Self::WIDTH);
                // SAFETY: see the note on top of this module; the slice is long enough.
                unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), self.0) }
            }

            #[inline(always)]
            fn xor(self, other: Self) -> Self {
                // SAFETY: see the note on top of this module.
                unsafe { $lanes(_mm256_xor_si256(self.0, other.0)) }
            }

            #[inline(always)]
            fn add_products(self, unsigned: Self, signed: Self) -> Self {
                let ($sum, $unsigned, $signed) = (self.0, unsigned.0, signed.0);
                // SAFETY: see the note on top of this module.
                unsafe { $lanes($add_products) }
            }
        }
    };
}

narrow_lanes!(I8Avx2, |sum, unsigned, signed| {
    // Of each pair of bytes one is masked: 255 * 128 fits 16 bits.
    let even = _mm256_maddubs_epi16(unsigned, _mm256_and_si256(signed, _mm256_set1_epi16(0xff)));
    let odd = _mm256_maddubs_epi16(unsigned, _mm256_andnot_si256(_mm256_set1_epi16(0xff), signed));
    let ones = _mm256_set1_epi16(1);
    let sums = _mm256_add_epi32(sum, _mm256_madd_epi16(even, ones));
    _mm256_add_epi32(sums, _mm256_madd_epi16(odd, ones))
});
narrow_lanes!(I8AvxVnni, |sum, unsigned, signed| _mm256_dpbusd_avx_epi32(sum, unsigned, signed));

impl I8Lanes for I8Vnni {
    const WIDTH: usize = 16;
    type Vectors = vectors::x86::I8Avx512;

    #[inline(always)]
    fn zero() -> Self {
        // SAFETY: see the note on top of this module.
        unsafe { I8Vnni(_mm512_setzero_si512()) }
    }

    #[inline(always)]
    fn splat(x: u32) -> Self {
        // SAFETY: see the note on top of this module.
        unsafe { I8Vnni(_mm512_set1_epi32(x as i32)) }
    }

    #[inline(always)]
    fn load(from: &[u32]) -> Self {
        assert!(from.len() >= Self::WIDTH);
        // SAFETY: see the note on top of this module; the slice is long enough.
        unsafe { I8Vnni(_mm512_loadu_si512(from.as_ptr().cast())) }
    }

    #[inline(always)]
    fn store(self, to: &mut [i32]) {
        assert!(to.len() >= Self::WIDTH);
        // SAFETY: see the note on top of this module; the slice is long enough.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: see the note on top of this module.
        unsafe { I8Vnni(_mm512_xor_si512(self.0, other.0)) }
    }

    #[inline(always)]
    fn add_products(self, unsigned: Self, signed: Self) -> Self {
        // SAFETY: see the note on top of this module.
        unsafe { I8Vnni(_mm512_dpbusd_epi32(self.0, unsigned.0, signed.0)) }
    }
}
