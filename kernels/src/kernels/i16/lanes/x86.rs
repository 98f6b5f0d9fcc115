//! The lanes of x86-64: AVX2, AVX-VNNI, AVX-512, and AVX-512 with VNNI.
//!
//! The vector types never leave this module but as the type parameter of a task that one of the `run` functions runs,
//! so their methods only execute on a CPU that has the instructions.

use super::{HalfwordLanes, I16Task, INTERLEAVED, InterleavedRows, Lanes, RowPairs};
use std::arch::x86_64::*;

/// # Safety
/// The CPU has AVX2.
#[target_feature(enable = "avx2")]
pub unsafe fn run_avx2<T: I16Task>(task: T) {
    task.run::<I16Avx2, 2, 4>();
}

/// # Safety
/// The CPU has AVX2 and AVX-VNNI.
#[target_feature(enable = "avx2,avxvnni")]
pub unsafe fn run_avx_vnni<T: I16Task>(task: T) {
    // Without a product before its sum there is a register for a third vector of sums in each column.
    task.run::<I16AvxVnni, 3, 4>();
}

/// # Safety
/// The CPU has AVX2 and AVX-512 F, BW, DQ and VL.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2")]
pub unsafe fn run_avx512<T: I16Task>(task: T) {
    task.run::<I16Avx512, 3, 8>();
}

/// # Safety
/// The CPU has AVX2 and AVX-512 F, BW, DQ, VL and VNNI.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2")]
pub unsafe fn run_vnni<T: I16Task>(task: T) {
    task.run::<I16Vnni, 3, 8>();
}

/// Eight lanes.
#[derive(Clone, Copy)]
struct I16Avx2(__m256i);

/// Eight lanes; products are added to sums at once.
#[derive(Clone, Copy)]
struct I16AvxVnni(__m256i);

/// Sixteen lanes.
#[derive(Clone, Copy)]
struct I16Avx512(__m512i);

/// Sixteen lanes; products are added to sums at once.
#[derive(Clone, Copy)]
struct I16Vnni(__m512i);

/// Bytes of a 128-bit register when four halves of a row and those of the next one become pairs.
const BYTES_PAIRED: [i8; 16] = [0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15];

/// The other way.
const BYTES_APART: [i8; 16] = [0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15];

/// The lanes of a 256-bit register; the two types differ in how products are added.
macro_rules! narrow_lanes {
    ($lanes:ident, |$sum:ident, $a:ident, $b:ident| $multiply_add:expr) => {
        impl HalfwordLanes for $lanes {
            #[inline(always)]
            fn pair(self, high: Self) -> Self {
                // SAFETY: see the note on top of this module.
                unsafe { $lanes(_mm256_blend_epi16::<0b1010_1010>(self.0, _mm256_slli_epi32::<16>(high.0))) }
            }

            #[inline(always)]
            fn pair_upper(self, high: Self) -> Self {
                // SAFETY: see the note on top of this module.
                unsafe { $lanes(_mm256_blend_epi16::<0b1010_1010>(_mm256_srli_epi32::<16>(self.0), high.0)) }
            }

            #[inline(always)]
            fn low_halves(self, other: Self) -> Self {
                // SAFETY: see the note on top of this module.
                unsafe {
                    let mask = _mm256_set1_epi32(0xffff);
                    $lanes(_mm256_packus_epi32(_mm256_and_si256(self.0, mask), _mm256_and_si256(other.0, mask)))
                }
            }

            #[inline(always)]
            fn high_halves(self, other: Self) -> Self {
                // SAFETY: see the note on top of this module.
                unsafe { $lanes(_mm256_packs_epi32(_mm256_srai_epi32::<16>(self.0), _mm256_srai_epi32::<16>(other.0))) }
            }

            #[inline(always)]
            fn in_blocks(columns: [Self; 4]) -> [Self; 4] {
                let mut blocks = columns;
                for at in 0..4 {
                    // SAFETY: see the note on top of this module.
                    blocks[at] = unsafe { $lanes(_mm256_permute4x64_epi64::<0b11_01_10_00>(columns[at].0)) };
                }
                blocks
            }

            #[inline(always)]
            fn multiply_halves(self, other: Self) -> Self {
                // SAFETY: see the note on top of this module.
                unsafe { $lanes(_mm256_mullo_epi16(self.0, other.0)) }
            }

            #[inline(always)]
            fn multiply_halves_high(self, other: Self) -> Self {
                // SAFETY: see the note on top of this module.
                unsafe { $lanes(_mm256_mulhrs_epi16(self.0, other.0)) }
            }

            #[inline(always)]
            fn multiply_halves_top(self, other: Self) -> Self {
                // SAFETY: see the note on top of this module.
                unsafe { $lanes(_mm256_mulhi_epi16(self.0, other.0)) }
            }

            #[inline(always)]
            fn add_halves(self, other: Self) -> Self {
                // SAFETY: see the note on top of this module.
                unsafe { $lanes(_mm256_add_epi16(self.0, other.0)) }
            }

            #[inline(always)]
            fn sub_halves(self, other: Self) -> Self {
                // SAFETY: see the note on top of this module.
                unsafe { $lanes(_mm256_sub_epi16(self.0, other.0)) }
            }

            #[inline(always)]
            fn min_halves(self, other: Self) -> Self {
                // SAFETY: see the note on top of this module.
                unsafe { $lanes(_mm256_min_epu16(self.0, other.0)) }
            }
        }

        impl RowPairs for $lanes {
            #[inline(always)]
            fn load_rows(rows: &InterleavedRows, part: usize) -> Self {
                let rows = &rows.as_chunks::<16>().0[part];
                // SAFETY: see the note on top of this module; the array is a whole vector.
                unsafe { $lanes(_mm256_loadu_si256(rows.as_ptr().cast())) }
            }

            #[inline(always)]
            fn store_rows(self, to: &mut InterleavedRows, part: usize) {
                let to = &mut to.as_chunks_mut::<16>().0[part];
                // SAFETY: see the note on top of this module; the array is a whole vector.
                unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), self.0) }
            }

            #[inline(always)]
            fn paired(self) -> Self {
                // SAFETY: see the note on top of this module; the array is half a vector.
                unsafe {
                    let order = _mm256_broadcastsi128_si256(_mm_loadu_si128(BYTES_PAIRED.as_ptr().cast()));
                    $lanes(_mm256_shuffle_epi8(_mm256_permute4x64_epi64::<0b11_01_10_00>(self.0), order))
                }
            }

            #[inline(always)]
            fn apart(self) -> Self {
                // SAFETY: see the note on top of this module; the array is half a vector.
                unsafe {
                    let order = _mm256_broadcastsi128_si256(_mm_loadu_si128(BYTES_APART.as_ptr().cast()));
                    $lanes(_mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_shuffle_epi8(self.0, order)))
                }
            }

            #[inline(always)]
            fn store_paired(self, to: [&mut [i32; 8]; INTERLEAVED / 2], part: usize) {
                self.store(to[part]);
            }
        }

        impl Lanes for $lanes {
            const WIDTH: usize = 8;

            #[inline(always)]
            fn splat(x: i32) -> Self {
                // SAFETY: see the note on top of this module.
                unsafe { $lanes(_mm256_set1_epi32(x)) }
            }

            #[inline(always)]
            fn load(from: &[i32]) -> Self {
                assert!(from.len() >= Self::WIDTH);
                // SAFETY: see the note on top of this module; the slice is long enough.
                unsafe { $lanes(_mm256_loadu_si256(from.as_ptr().cast())) }
            }

            #[inline(always)]
            fn join(low: &[i32; 8], _high: &[i32; 8]) -> Self {
                // SAFETY: see the note on top of this module; the array is a whole vector.
                unsafe { $lanes(_mm256_loadu_si256(low.as_ptr().cast())) }
            }

            #[inline(always)]
            fn store(self, to: &mut [i32]) {
                assert!(to.len() >= Self::WIDTH);
                // SAFETY: see the note on top of this module; the slice is long enough.
                unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), self.0) }
            }

            #[inline(always)]
            fn widen(from: &[i16]) -> Self {
                assert!(from.len() >= Self::WIDTH);
                // SAFETY: see the note on top of this module; the slice is long enough.
                unsafe { $lanes(_mm256_cvtepi16_epi32(_mm_loadu_si128(from.as_ptr().cast()))) }
            }

            #[inline(always)]
            fn multiply_add(self, a: Self, b: Self) -> Self {
                let ($sum, $a, $b) = (self.0, a.0, b.0);
                // SAFETY: see the note on top of this module.
                unsafe { $lanes($multiply_add) }
            }

            #[inline(always)]
            fn xor(self, other: Self) -> Self {
                // SAFETY: see the note on top of this module.
                unsafe { $lanes(_mm256_xor_si256(self.0, other.0)) }
            }

            #[inline(always)]
            fn prefetch<T>(from: *const T) {
                // SAFETY: a hint, which reads nothing, whatever the address is.
                unsafe { _mm_prefetch::<_MM_HINT_T1>(from.cast()) };
            }
        }
    };
}

narrow_lanes!(I16Avx2, |sum, a, b| _mm256_add_epi32(sum, _mm256_madd_epi16(a, b)));
narrow_lanes!(I16AvxVnni, |sum, a, b| _mm256_dpwssd_avx_epi32(sum, a, b));

/// Where each 16-bit integer of four rows of 8 comes from when rows 0 and 1, 2 and 3 become pairs.
const PAIRED: [i16; 32] = {
    let mut order = [0; 32];
    let mut at = 0;
    while at < 32 {
        order[at] = (at / 16 * 16 + at % 2 * 8 + at % 16 / 2) as i16;
        at += 1;
    }
    order
};

/// The other way: where each 16-bit integer of two rows of 8 pairs comes from when they become four rows.
const APART: [i16; 32] = {
    let mut order = [0; 32];
    let mut at = 0;
    while at < 32 {
        order[PAIRED[at] as usize] = at as i16;
        at += 1;
    }
    order
};

/// Where each 16-bit integer of the first four columns of 8 rows of 8 comes from; the other columns are four further.
const TRANSPOSED: [i16; 32] = {
    let mut order = [0; 32];
    let mut at = 0;
    while at < 32 {
        order[at] = (at % 8 * 8 + at / 8) as i16;
        at += 1;
    }
    order
};

/// The lanes of a 512-bit register; the two types differ in how products are added.
macro_rules! wide_lanes {
    ($lanes:ident, |$sum:ident, $a:ident, $b:ident| $multiply_add:expr) => {
        impl HalfwordLanes for $lanes {
            #[inline(always)]
            fn pair(self, high: Self) -> Self {
                // SAFETY: see the note on top of this module.
                unsafe { $lanes(_mm512_mask_blend_epi16(0xaaaa_aaaa, self.0, _mm512_slli_epi32::<16>(high.0))) }
            }

            #[inline(always)]
            fn pair_upper(self, high: Self) -> Self {
                // SAFETY: see the note on top of this module.
                unsafe { $lanes(_mm512_mask_blend_epi16(0xaaaa_aaaa, _mm512_srli_epi32::<16>(self.0), high.0)) }
            }

            #[inline(always)]
            fn low_halves(self, other: Self) -> Self {
                // SAFETY: see the note on top of this module.
                unsafe {
                    let mask = _mm512_set1_epi32(0xffff);
                    let (low, other) = (_mm512_and_si512(self.0, mask), _mm512_and_si512(other.0, mask));
                    $lanes(_mm512_packus_epi32(low, other))
                }
            }

            #[inline(always)]
            fn high_halves(self, other: Self) -> Self {
                // SAFETY: see the note on top of this module.
                unsafe { $lanes(_mm512_packs_epi32(_mm512_srai_epi32::<16>(self.0), _mm512_srai_epi32::<16>(other.0))) }
            }

            #[inline(always)]
            fn in_blocks(columns: [Self; 4]) -> [Self; 4] {
                let mut blocks = columns;
                // SAFETY: see the note on top of this module.
                unsafe {
                    // Quarters of four rows: those of both columns alternate.
                    let upper = _mm512_set_epi64(11, 9, 10, 8, 3, 1, 2, 0);
                    let lower = _mm512_set_epi64(15, 13, 14, 12, 7, 5, 6, 4);
                    for half in 0..2 {
                        let (left, right) = (columns[2 * half].0, columns[2 * half + 1].0);
                        blocks[half] = $lanes(_mm512_permutex2var_epi64(left, upper, right));
                        blocks[2 + half] = $lanes(_mm512_permutex2var_epi64(left, lower, right));
                    }
                }
                blocks
            }

            #[inline(always)]
            fn multiply_halves(self, other: Self) -> Self {
                // SAFETY: see the note on top of this module.
                unsafe { $lanes(_mm512_mullo_epi16(self.0, other.0)) }
            }

            #[inline(always)]
            fn multiply_halves_high(self, other: Self) -> Self {
                // SAFETY: see the note on top of this module.
                unsafe { $lanes(_mm512_mulhrs_epi16(self.0, other.0)) }
            }

            #[inline(always)]
            fn multiply_halves_top(self, other: Self) -> Self {
                // SAFETY: see the note on top of this module.
                unsafe { $lanes(_mm512_mulhi_epi16(self.0, other.0)) }
            }

            #[inline(always)]
            fn add_halves(self, other: Self) -> Self {
                // SAFETY: see the note on top of this module.
                unsafe { $lanes(_mm512_add_epi16(self.0, other.0)) }
            }

            #[inline(always)]
            fn sub_halves(self, other: Self) -> Self {
                // SAFETY: see the note on top of this module.
                unsafe { $lanes(_mm512_sub_epi16(self.0, other.0)) }
            }

            #[inline(always)]
            fn min_halves(self, other: Self) -> Self {
                // SAFETY: see the note on top of this module.
                unsafe { $lanes(_mm512_min_epu16(self.0, other.0)) }
            }
        }

        impl RowPairs for $lanes {
            #[inline(always)]
            fn load_rows(rows: &InterleavedRows, _part: usize) -> Self {
                // SAFETY: see the note on top of this module; the array is a whole vector.
                unsafe { $lanes(_mm512_loadu_si512(rows.as_ptr().cast())) }
            }

            #[inline(always)]
            fn store_rows(self, to: &mut InterleavedRows, _part: usize) {
                // SAFETY: see the note on top of this module; the array is a whole vector.
                unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), self.0) }
            }

            #[inline(always)]
            fn paired(self) -> Self {
                // SAFETY: see the note on top of this module; the array is a whole vector.
                unsafe { $lanes(_mm512_permutexvar_epi16(_mm512_loadu_si512(PAIRED.as_ptr().cast()), self.0)) }
            }

            #[inline(always)]
            fn apart(self) -> Self {
                // SAFETY: see the note on top of this module; the array is a whole vector.
                unsafe { $lanes(_mm512_permutexvar_epi16(_mm512_loadu_si512(APART.as_ptr().cast()), self.0)) }
            }

            #[inline(always)]
            fn store_paired(self, to: [&mut [i32; 8]; INTERLEAVED / 2], _part: usize) {
                let [first, second] = to;
                // SAFETY: see the note on top of this module; both arrays are half a vector.
                unsafe {
                    _mm256_storeu_si256(first.as_mut_ptr().cast(), _mm512_castsi512_si256(self.0));
                    _mm256_storeu_si256(second.as_mut_ptr().cast(), _mm512_extracti64x4_epi64::<1>(self.0));
                }
            }

            #[inline(always)]
            fn transpose(rows: &[i16; 64]) -> [i16; 64] {
                let mut columns = [0; 64];
                // SAFETY: see the note on top of this module; loads and stores are halves of arrays.
                unsafe {
                    let (upper, lower) = (rows.as_ptr().cast(), rows.as_ptr().add(32).cast());
                    let (upper, lower) = (_mm512_loadu_si512(upper), _mm512_loadu_si512(lower));
                    let first = _mm512_loadu_si512(TRANSPOSED.as_ptr().cast());
                    let second = _mm512_add_epi16(first, _mm512_set1_epi16(4));
                    let (to, rest) = (columns.as_mut_ptr(), columns.as_mut_ptr().add(32));
                    _mm512_storeu_si512(to.cast(), _mm512_permutex2var_epi16(upper, first, lower));
                    _mm512_storeu_si512(rest.cast(), _mm512_permutex2var_epi16(upper, second, lower));
                }
                columns
            }
        }

        impl Lanes for $lanes {
            const WIDTH: usize = 16;

            #[inline(always)]
            fn splat(x: i32) -> Self {
                // SAFETY: see the note on top of this module.
                unsafe { $lanes(_mm512_set1_epi32(x)) }
            }

            #[inline(always)]
            fn load(from: &[i32]) -> Self {
                assert!(from.len() >= Self::WIDTH);
                // SAFETY: see the note on top of this module; the slice is long enough.
                unsafe { $lanes(_mm512_loadu_si512(from.as_ptr().cast())) }
            }

            #[inline(always)]
            fn join(low: &[i32; 8], high: &[i32; 8]) -> Self {
                // SAFETY: see the note on top of this module; both arrays are half a vector.
                unsafe {
                    let low = _mm512_castsi256_si512(_mm256_loadu_si256(low.as_ptr().cast()));
                    $lanes(_mm512_inserti64x4::<1>(low, _mm256_loadu_si256(high.as_ptr().cast())))
                }
            }

            #[inline(always)]
            fn store(self, to: &mut [i32]) {
                assert!(to.len() >= Self::WIDTH);
                // SAFETY: see the note on top of this module; the slice is long enough.
                unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), self.0) }
            }

            #[inline(always)]
            fn widen(from: &[i16]) -> Self {
                assert!(from.len() >= Self::WIDTH);
                // SAFETY: see the note on top of this module; the slice is long enough.
                unsafe { $lanes(_mm512_cvtepi16_epi32(_mm256_loadu_si256(from.as_ptr().cast()))) }
            }

            #[inline(always)]
            fn multiply_add(self, a: Self, b: Self) -> Self {
                let ($sum, $a, $b) = (self.0, a.0, b.0);
                // SAFETY: see the note on top of this module.
                unsafe { $lanes($multiply_add) }
            }

            #[inline(always)]
            fn xor(self, other: Self) -> Self {
                // SAFETY: see the note on top of this module.
                unsafe { $lanes(_mm512_xor_si512(self.0, other.0)) }
            }

            const STREAMS: bool = true;

            #[inline(always)]
            fn stream(self, to: &mut [i32]) {
                if !to.as_ptr().cast::<__m512i>().is_aligned() {
                    return self.store(to);
                }
                assert!(to.len() >= Self::WIDTH);
                // SAFETY: see the note on top of this module; the slice is long enough, and aligned as a vector is.
                unsafe { _mm512_stream_si512(to.as_mut_ptr().cast(), self.0) }
            }

            #[inline(always)]
            fn fence() {
                // SAFETY: see the note on top of this module.
                unsafe { _mm_sfence() }
            }

            #[inline(always)]
            fn prefetch<T>(from: *const T) {
                // SAFETY: a hint, which reads nothing, whatever the address is.
                unsafe { _mm_prefetch::<_MM_HINT_T1>(from.cast()) };
            }
        }
    };
}

wide_lanes!(I16Avx512, |sum, a, b| _mm512_add_epi32(sum, _mm512_madd_epi16(a, b)));
wide_lanes!(I16Vnni, |sum, a, b| _mm512_dpwssd_epi32(sum, a, b));
