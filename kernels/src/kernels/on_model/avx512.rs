//! The instructions of AVX-512 that the kernels take, in plain Rust, by the names and with the arguments of
//! `std::arch::x86_64`.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, the operations of each instruction.
#![allow(non_camel_case_types)]

/// Eight lanes of 64 bits.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct __m512i(pub [u64; 8]);

/// Four lanes of 64 bits.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub struct __m256i(pub [u64; 4]);

/// Eight doubles.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct __m512d(pub [f64; 8]);

pub const _MM_HINT_T0: i32 = 3;
pub const _MM_HINT_T1: i32 = 2;

const DIGIT: u64 = (1 << 52) - 1;

fn each(lane: impl Fn(usize) -> u64) -> __m512i {
    __m512i(std::array::from_fn(lane))
}

fn pairs(a: __m512i, b: __m512i, of: impl Fn(u64, u64) -> u64) -> __m512i {
    each(|lane| of(a.0[lane], b.0[lane]))
}

fn lanes(a: __m512i, b: __m512i, holds: impl Fn(u64, u64) -> bool) -> u8 {
    (0..8).fold(0, |mask, lane| mask | u8::from(holds(a.0[lane], b.0[lane])) << lane)
}

/// `yes` in the lanes of the mask, `no` elsewhere.
fn select(mask: u8, yes: __m512i, no: __m512i) -> __m512i {
    each(|lane| if mask >> lane & 1 == 1 { yes.0[lane] } else { no.0[lane] })
}

fn bytes(a: __m512i) -> [u8; 64] {
    std::array::from_fn(|at| a.0[at / 8].to_le_bytes()[at % 8])
}

fn from_bytes(bytes: [u8; 64]) -> __m512i {
    each(|lane| u64::from_le_bytes(bytes[8 * lane..][..8].try_into().expect("eight bytes")))
}

// Constants.

pub fn _mm512_setzero_si512() -> __m512i {
    __m512i([0; 8])
}

pub fn _mm512_set1_epi64(a: i64) -> __m512i {
    __m512i([a as u64; 8])
}

pub fn _mm512_maskz_set1_epi64(k: u8, a: i64) -> __m512i {
    select(k, _mm512_set1_epi64(a), _mm512_setzero_si512())
}

pub fn _mm512_set_epi64(h: i64, g: i64, f: i64, e: i64, d: i64, c: i64, b: i64, a: i64) -> __m512i {
    _mm512_setr_epi64(a, b, c, d, e, f, g, h)
}

pub fn _mm512_setr_epi64(a: i64, b: i64, c: i64, d: i64, e: i64, f: i64, g: i64, h: i64) -> __m512i {
    __m512i([a, b, c, d, e, f, g, h].map(|a| a as u64))
}

pub fn _mm512_setzero_pd() -> __m512d {
    __m512d([0.0; 8])
}

pub fn _mm512_set1_pd(a: f64) -> __m512d {
    __m512d([a; 8])
}

// Memory.

/// # Safety
/// 64 bytes can be read.
pub unsafe fn _mm512_loadu_si512(from: *const __m512i) -> __m512i {
    // SAFETY: the caller's promise.
    __m512i(unsafe { from.cast::<[u64; 8]>().read_unaligned() })
}

/// # Safety
/// 64 bytes can be read.
pub unsafe fn _mm512_load_si512(from: *const __m512i) -> __m512i {
    assert!(from.is_aligned(), "a general protection fault");
    // SAFETY: the caller's promise.
    unsafe { _mm512_loadu_si512(from) }
}

/// # Safety
/// 64 bytes can be written.
pub unsafe fn _mm512_storeu_si512(to: *mut __m512i, a: __m512i) {
    // SAFETY: the caller's promise.
    unsafe { to.cast::<[u64; 8]>().write_unaligned(a.0) }
}

/// # Safety
/// 64 bytes can be written.
pub unsafe fn _mm512_store_si512(to: *mut __m512i, a: __m512i) {
    assert!(to.is_aligned(), "a general protection fault");
    // SAFETY: the caller's promise.
    unsafe { _mm512_storeu_si512(to, a) }
}

/// # Safety
/// 64 bytes can be written.
pub unsafe fn _mm512_stream_si512(to: *mut __m512i, a: __m512i) {
    // SAFETY: the caller's promise.
    unsafe { _mm512_store_si512(to, a) }
}

/// # Safety
/// The bytes of the mask can be read.
pub unsafe fn _mm512_maskz_loadu_epi8(k: u64, from: *const i8) -> __m512i {
    let mut bytes = [0; 64];
    for (at, byte) in bytes.iter_mut().enumerate().filter(|(at, _)| k >> at & 1 == 1) {
        // SAFETY: the caller's promise.
        *byte = unsafe { *from.cast::<u8>().wrapping_add(at) };
    }
    from_bytes(bytes)
}

/// # Safety
/// The lanes of the mask can be read.
pub unsafe fn _mm512_maskz_loadu_epi64(k: u8, from: *const i64) -> __m512i {
    // SAFETY: the caller's promise, which is about the bytes of whole lanes.
    unsafe { _mm512_maskz_loadu_epi8(wide(k), from.cast()) }
}

/// # Safety
/// The bytes of the mask can be written.
pub unsafe fn _mm512_mask_storeu_epi8(to: *mut i8, k: u64, a: __m512i) {
    for (at, byte) in bytes(a).into_iter().enumerate().filter(|(at, _)| k >> at & 1 == 1) {
        // SAFETY: the caller's promise.
        unsafe { *to.cast::<u8>().wrapping_add(at) = byte };
    }
}

/// # Safety
/// The lanes of the mask can be written.
pub unsafe fn _mm512_mask_storeu_epi64(to: *mut i64, k: u8, a: __m512i) {
    // SAFETY: the caller's promise, which is about the bytes of whole lanes.
    unsafe { _mm512_mask_storeu_epi8(to.cast(), wide(k), a) }
}

/// Eight bits for each.
fn wide(k: u8) -> u64 {
    (0..8).filter(|lane| k >> lane & 1 == 1).fold(0, |mask, lane| mask | 0xff << (8 * lane))
}

/// # Safety
/// The lanes of the mask can be read at their offsets.
pub unsafe fn _mm512_mask_i64gather_epi64<const SCALE: i32>(
    src: __m512i,
    k: u8,
    offsets: __m512i,
    from: *const i64,
) -> __m512i {
    each(|lane| match k >> lane & 1 {
        0 => src.0[lane],
        // SAFETY: the caller's promise.
        _ => unsafe {
            let offset = (offsets.0[lane] as isize).wrapping_mul(SCALE as isize);
            from.wrapping_byte_offset(offset).cast::<u64>().read_unaligned()
        },
    })
}

pub fn _mm_prefetch<const STRATEGY: i32>(_: *const i8) {}

pub fn _mm_sfence() {}

// Arithmetic.

pub fn _mm512_madd52lo_epu64(sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
    each(|lane| sum.0[lane].wrapping_add((a.0[lane] & DIGIT).wrapping_mul(b.0[lane] & DIGIT) & DIGIT))
}

pub fn _mm512_madd52hi_epu64(sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
    let high = |a: u64, b: u64| ((u128::from(a & DIGIT) * u128::from(b & DIGIT)) >> 52) as u64;
    each(|lane| sum.0[lane].wrapping_add(high(a.0[lane], b.0[lane])))
}

pub fn _mm512_add_epi64(a: __m512i, b: __m512i) -> __m512i {
    pairs(a, b, u64::wrapping_add)
}

pub fn _mm512_mask_add_epi64(src: __m512i, k: u8, a: __m512i, b: __m512i) -> __m512i {
    select(k, _mm512_add_epi64(a, b), src)
}

pub fn _mm512_sub_epi64(a: __m512i, b: __m512i) -> __m512i {
    pairs(a, b, u64::wrapping_sub)
}

pub fn _mm512_mask_sub_epi64(src: __m512i, k: u8, a: __m512i, b: __m512i) -> __m512i {
    select(k, _mm512_sub_epi64(a, b), src)
}

pub fn _mm512_mullo_epi64(a: __m512i, b: __m512i) -> __m512i {
    pairs(a, b, u64::wrapping_mul)
}

pub fn _mm512_abs_epi64(a: __m512i) -> __m512i {
    each(|lane| (a.0[lane] as i64).unsigned_abs())
}

pub fn _mm512_min_epu64(a: __m512i, b: __m512i) -> __m512i {
    pairs(a, b, u64::min)
}

pub fn _mm512_min_epi64(a: __m512i, b: __m512i) -> __m512i {
    pairs(a, b, |a, b| (a as i64).min(b as i64) as u64)
}

pub fn _mm512_max_epi64(a: __m512i, b: __m512i) -> __m512i {
    pairs(a, b, |a, b| (a as i64).max(b as i64) as u64)
}

pub fn _mm512_reduce_add_epi64(a: __m512i) -> i64 {
    a.0.into_iter().fold(0, u64::wrapping_add) as i64
}

pub fn _mm512_lzcnt_epi64(a: __m512i) -> __m512i {
    each(|lane| u64::from(a.0[lane].leading_zeros()))
}

pub fn _mm512_fmadd_pd(a: __m512d, b: __m512d, c: __m512d) -> __m512d {
    __m512d(std::array::from_fn(|lane| a.0[lane].mul_add(b.0[lane], c.0[lane])))
}

pub fn _mm512_cvtepu64_pd(a: __m512i) -> __m512d {
    __m512d(a.0.map(|a| a as f64))
}

/// To nearest, ties to even; all ones for numbers that do not fit.
pub fn _mm512_cvtpd_epu64(a: __m512d) -> __m512i {
    __m512i(a.0.map(|a| {
        let whole = a.round_ties_even();
        if (0.0..18_446_744_073_709_551_616.0).contains(&whole) { whole as u64 } else { u64::MAX }
    }))
}

// Bits.

pub fn _mm512_and_si512(a: __m512i, b: __m512i) -> __m512i {
    pairs(a, b, |a, b| a & b)
}

pub fn _mm512_and_epi64(a: __m512i, b: __m512i) -> __m512i {
    _mm512_and_si512(a, b)
}

pub fn _mm512_maskz_and_epi64(k: u8, a: __m512i, b: __m512i) -> __m512i {
    select(k, _mm512_and_si512(a, b), _mm512_setzero_si512())
}

pub fn _mm512_andnot_si512(a: __m512i, b: __m512i) -> __m512i {
    pairs(a, b, |a, b| !a & b)
}

pub fn _mm512_mask_andnot_epi64(src: __m512i, k: u8, a: __m512i, b: __m512i) -> __m512i {
    select(k, _mm512_andnot_si512(a, b), src)
}

pub fn _mm512_or_si512(a: __m512i, b: __m512i) -> __m512i {
    pairs(a, b, |a, b| a | b)
}

pub fn _mm512_mask_or_epi64(src: __m512i, k: u8, a: __m512i, b: __m512i) -> __m512i {
    select(k, _mm512_or_si512(a, b), src)
}

pub fn _mm512_mask_xor_epi64(src: __m512i, k: u8, a: __m512i, b: __m512i) -> __m512i {
    select(k, pairs(a, b, |a, b| a ^ b), src)
}

/// Counts of 64 and more shift everything out, here and below.
pub fn _mm512_srlv_epi64(a: __m512i, count: __m512i) -> __m512i {
    pairs(a, count, |a, count| if count < 64 { a >> count } else { 0 })
}

pub fn _mm512_sllv_epi64(a: __m512i, count: __m512i) -> __m512i {
    pairs(a, count, |a, count| if count < 64 { a << count } else { 0 })
}

pub fn _mm512_srli_epi64<const COUNT: u32>(a: __m512i) -> __m512i {
    _mm512_srlv_epi64(a, _mm512_set1_epi64(i64::from(COUNT)))
}

pub fn _mm512_mask_srli_epi64<const COUNT: u32>(src: __m512i, k: u8, a: __m512i) -> __m512i {
    select(k, _mm512_srli_epi64::<COUNT>(a), src)
}

pub fn _mm512_slli_epi64<const COUNT: u32>(a: __m512i) -> __m512i {
    _mm512_sllv_epi64(a, _mm512_set1_epi64(i64::from(COUNT)))
}

pub fn _mm512_srai_epi64<const COUNT: u32>(a: __m512i) -> __m512i {
    each(|lane| (a.0[lane] as i64 >> COUNT.min(63)) as u64)
}

/// The lower half of `b a` shifted right.
pub fn _mm512_shrdv_epi64(a: __m512i, b: __m512i, count: __m512i) -> __m512i {
    let both = |lane: usize| u128::from(b.0[lane]) << 64 | u128::from(a.0[lane]);
    each(|lane| (both(lane) >> (count.0[lane] & 63)) as u64)
}

// Comparisons.

pub fn _mm512_test_epi64_mask(a: __m512i, b: __m512i) -> u8 {
    lanes(a, b, |a, b| a & b != 0)
}

pub fn _mm512_cmpeq_epi64_mask(a: __m512i, b: __m512i) -> u8 {
    lanes(a, b, |a, b| a == b)
}

pub fn _mm512_cmpgt_epi64_mask(a: __m512i, b: __m512i) -> u8 {
    lanes(a, b, |a, b| a as i64 > b as i64)
}

pub fn _mm512_cmplt_epi64_mask(a: __m512i, b: __m512i) -> u8 {
    lanes(a, b, |a, b| (a as i64) < b as i64)
}

pub fn _mm512_cmpgt_epu64_mask(a: __m512i, b: __m512i) -> u8 {
    lanes(a, b, |a, b| a > b)
}

pub fn _mm512_cmple_epu64_mask(a: __m512i, b: __m512i) -> u8 {
    lanes(a, b, |a, b| a <= b)
}

// Halves of 16 bits.

fn halves(a: __m512i) -> [i16; 32] {
    std::array::from_fn(|at| (a.0[at / 4] >> (16 * (at % 4))) as i16)
}

fn from_halves(halves: [i16; 32]) -> __m512i {
    each(|lane| (0..4).fold(0, |word, at| word | u64::from(halves[4 * lane + at] as u16) << (16 * at)))
}

fn half_pairs(a: __m512i, b: __m512i, of: impl Fn(i16, i16) -> i16) -> __m512i {
    let (a, b) = (halves(a), halves(b));
    from_halves(std::array::from_fn(|at| of(a[at], b[at])))
}

pub fn _mm512_set1_epi16(a: i16) -> __m512i {
    from_halves([a; 32])
}

pub fn _mm512_mullo_epi16(a: __m512i, b: __m512i) -> __m512i {
    half_pairs(a, b, i16::wrapping_mul)
}

pub fn _mm512_sub_epi16(a: __m512i, b: __m512i) -> __m512i {
    half_pairs(a, b, i16::wrapping_sub)
}

pub fn _mm512_add_epi16(a: __m512i, b: __m512i) -> __m512i {
    half_pairs(a, b, i16::wrapping_add)
}

pub fn _mm512_min_epu16(a: __m512i, b: __m512i) -> __m512i {
    half_pairs(a, b, |a, b| (a as u16).min(b as u16) as i16)
}

/// Products over `2^15`, rounded.
pub fn _mm512_mulhrs_epi16(a: __m512i, b: __m512i) -> __m512i {
    half_pairs(a, b, |a, b| ((i32::from(a) * i32::from(b) + (1 << 14)) >> 15) as i16)
}

pub fn _mm512_mask_sub_epi16(src: __m512i, k: u32, a: __m512i, b: __m512i) -> __m512i {
    _mm512_mask_mov_epi16(src, k, _mm512_sub_epi16(a, b))
}

pub fn _mm512_mask_mov_epi16(src: __m512i, k: u32, a: __m512i) -> __m512i {
    let (src, a) = (halves(src), halves(a));
    from_halves(std::array::from_fn(|at| if k >> at & 1 == 1 { a[at] } else { src[at] }))
}

pub fn _mm512_cmpgt_epi16_mask(a: __m512i, b: __m512i) -> u32 {
    let (a, b) = (halves(a), halves(b));
    (0..32).fold(0, |mask, at| mask | u32::from(a[at] > b[at]) << at)
}

// Places.

pub fn _mm512_mask_mov_epi64(src: __m512i, k: u8, a: __m512i) -> __m512i {
    select(k, a, src)
}

pub fn _mm512_mask_blend_epi64(k: u8, a: __m512i, b: __m512i) -> __m512i {
    select(k, b, a)
}

pub fn _mm512_unpacklo_epi64(a: __m512i, b: __m512i) -> __m512i {
    each(|lane| if lane % 2 == 0 { a.0[lane] } else { b.0[lane - 1] })
}

pub fn _mm512_unpackhi_epi64(a: __m512i, b: __m512i) -> __m512i {
    each(|lane| if lane % 2 == 0 { a.0[lane + 1] } else { b.0[lane] })
}

/// Pairs of lanes: two of `a`, then two of `b`, each by two bits of the immediate.
pub fn _mm512_shuffle_i64x2<const MASK: i32>(a: __m512i, b: __m512i) -> __m512i {
    each(|lane| {
        let from = if lane < 4 { a } else { b };
        from.0[2 * (MASK >> (2 * (lane / 2)) & 3) as usize + lane % 2]
    })
}

pub fn _mm512_permutexvar_epi64(index: __m512i, a: __m512i) -> __m512i {
    each(|lane| a.0[index.0[lane] as usize % 8])
}

pub fn _mm512_permutexvar_epi8(index: __m512i, a: __m512i) -> __m512i {
    _mm512_maskz_permutexvar_epi8(u64::MAX, index, a)
}

pub fn _mm512_maskz_permutexvar_epi8(k: u64, index: __m512i, a: __m512i) -> __m512i {
    let (index, a) = (bytes(index), bytes(a));
    from_bytes(std::array::from_fn(|at| if k >> at & 1 == 1 { a[index[at] as usize % 64] } else { 0 }))
}

// Half vectors: the same in four lanes.

pub fn _mm512_zextsi256_si512(a: __m256i) -> __m512i {
    each(|lane| if lane < 4 { a.0[lane] } else { 0 })
}

fn half(a: __m512i) -> __m256i {
    __m256i(std::array::from_fn(|lane| a.0[lane]))
}

pub fn _mm256_setzero_si256() -> __m256i {
    __m256i([0; 4])
}

pub fn _mm256_set1_epi64x(a: i64) -> __m256i {
    __m256i([a as u64; 4])
}

/// # Safety
/// 32 bytes can be read.
pub unsafe fn _mm256_loadu_si256(from: *const __m256i) -> __m256i {
    // SAFETY: the caller's promise.
    __m256i(unsafe { from.cast::<[u64; 4]>().read_unaligned() })
}

/// # Safety
/// 32 bytes can be written.
pub unsafe fn _mm256_storeu_si256(to: *mut __m256i, a: __m256i) {
    // SAFETY: the caller's promise.
    unsafe { to.cast::<[u64; 4]>().write_unaligned(a.0) }
}

macro_rules! on_halves {
    ($($name:ident is $whole:ident($($value:ident),*);)*) => {$(
        pub fn $name($($value: __m256i),*) -> __m256i {
            half($whole($(_mm512_zextsi256_si512($value)),*))
        }
    )*};
}

on_halves! {
    _mm256_madd52lo_epu64 is _mm512_madd52lo_epu64(sum, a, b);
    _mm256_madd52hi_epu64 is _mm512_madd52hi_epu64(sum, a, b);
    _mm256_add_epi64 is _mm512_add_epi64(a, b);
    _mm256_sub_epi64 is _mm512_sub_epi64(a, b);
}

pub fn _mm256_mask_add_epi64(src: __m256i, k: u8, a: __m256i, b: __m256i) -> __m256i {
    let [src, a, b] = [src, a, b].map(_mm512_zextsi256_si512);
    half(_mm512_mask_add_epi64(src, k, a, b))
}

pub fn _mm256_test_epi64_mask(a: __m256i, b: __m256i) -> u8 {
    _mm512_test_epi64_mask(_mm512_zextsi256_si512(a), _mm512_zextsi256_si512(b))
}
