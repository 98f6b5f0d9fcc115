//! Sums of the products of two columns: eight rows to a vector, a lane each.
//!
//! As in `digit_tiles::sums`, `x y` is a product of digits without signs, less `2^(52 d)` times one factor where the
//! other is below 0. The lanes are added up at the end, for eight pairs of columns at a time.

use super::super::digit_tiles::{Digits, normalize};
use crate::math::bound::digit_sum_terms;
use crate::plan::BLOCK;
use std::arch::x86_64::*;

/// The digits of two columns: `d` vectors and one of signs for each eight rows.
#[derive(Clone, Copy)]
pub struct Pair {
    pub x: *const u64,
    pub y: *const u64,
    /// Eights of rows.
    pub eights: usize,
}

/// The sums of the products of a pair in each lane, as `2 d` vectors.
///
/// # Safety
/// The columns have `eights (d + 1)` vectors each, `sums` `2 d` and lies elsewhere.
#[target_feature(enable = "avx512f,avx512ifma")]
pub unsafe fn multiply(digits: Digits, pair: Pair, sums: *mut u64) {
    let most = digit_sum_terms(digits.count);
    let stride = (digits.count + 1) * BLOCK;
    for start in (0..pair.eights).step_by(most) {
        let eights = most.min(pair.eights - start);
        // SAFETY: some of the eights of the pair.
        unsafe {
            let some = Pair { x: pair.x.add(start * stride), y: pair.y.add(start * stride), eights };
            macro_rules! of_group {
                ($($size:literal $both:literal)*) => {
                    match digits.group {
                        $($size => add::<$size, $both>(digits, some, (start == 0, sums)),)*
                        other => unreachable!("groups of {other} digits"),
                    }
                };
            }
            of_group!(1 2 2 4 3 6 4 8 5 10 6 12 7 14);
            // The lanes are added up in what room is left.
            if pair.eights * BLOCK > most {
                normalize(digits, sums, sums);
            }
        }
    }
}

/// Adds the products of some eights of rows.
///
/// # Safety
/// As [`multiply`], for groups of `W` digits; `B` is `2 W`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn add<const W: usize, const B: usize>(digits: Digits, pair: Pair, (is_first, sums): (bool, *mut u64)) {
    let count = digits.count;
    // SAFETY: the caller's promise.
    unsafe {
        if is_first && count > W {
            for at in 0..2 * count {
                _mm512_storeu_si512(sums.add(at * BLOCK).cast(), _mm512_setzero_si512());
            }
        }
        for x in (0..count).step_by(W) {
            for y in (0..count).step_by(W) {
                let from = is_first && count == W;
                group::<W, B>(count, pair, (x, y), (from, sums.add((x + y) * BLOCK)));
            }
        }
        take_signs_off(count, pair, sums.add(count * BLOCK));
    }
}

/// Adds the products of `W` digits of x and as many of y, from these on, to `2 W` sums, which are not read where they
/// are the first.
///
/// # Safety
/// As [`add`]; `sums` has `2 W` vectors.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn group<const W: usize, const B: usize>(
    count: usize,
    Pair { x, y, eights }: Pair,
    (x_digit, y_digit): (usize, usize),
    (is_first, sums): (bool, *mut u64),
) {
    assert!(B == 2 * W);
    let (stride, mut own) = ((count + 1) * BLOCK, [_mm512_setzero_si512(); B]);
    // SAFETY: the digits lie in the columns, and `sums` has `B` vectors.
    unsafe {
        if !is_first {
            own = std::array::from_fn(|at| _mm512_loadu_si512(sums.add(at * BLOCK).cast()));
        }
        let (mut x, mut y) = (x.add(x_digit * BLOCK), y.add(y_digit * BLOCK));
        for _ in 0..eights {
            let row: [__m512i; W] = std::array::from_fn(|at| _mm512_loadu_si512(x.add(at * BLOCK).cast()));
            for j in 0..W {
                let factor = _mm512_loadu_si512(y.add(j * BLOCK).cast());
                for i in 0..W {
                    own[i + j] = _mm512_madd52lo_epu64(own[i + j], row[i], factor);
                    own[i + j + 1] = _mm512_madd52hi_epu64(own[i + j + 1], row[i], factor);
                }
            }
            (x, y) = (x.wrapping_add(stride), y.wrapping_add(stride));
        }
        for (at, own) in own.iter().enumerate() {
            _mm512_storeu_si512(sums.add(at * BLOCK).cast(), *own);
        }
    }
}

/// Takes each factor off the upper half of the sums where the other one is below 0.
///
/// # Safety
/// As [`add`]; `sums` has `count` vectors.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn take_signs_off(count: usize, Pair { x, y, eights }: Pair, sums: *mut u64) {
    let stride = (count + 1) * BLOCK;
    for eight in 0..eights {
        // SAFETY: the digits and signs of the columns, and `count` sums.
        unsafe {
            let (x, y) = (x.add(eight * stride), y.add(eight * stride));
            let signs = |of: *const u64| {
                let signs = _mm512_loadu_si512(of.add(count * BLOCK).cast());
                _mm512_test_epi64_mask(signs, signs)
            };
            let (x_signs, y_signs) = (signs(x), signs(y));
            if x_signs | y_signs == 0 {
                continue;
            }
            for at in (0..count * BLOCK).step_by(BLOCK) {
                let digit = |of: *const u64| _mm512_loadu_si512(of.add(at).cast());
                let mut sum = _mm512_loadu_si512(sums.add(at).cast());
                sum = _mm512_mask_sub_epi64(sum, x_signs, sum, digit(y));
                sum = _mm512_mask_sub_epi64(sum, y_signs, sum, digit(x));
                _mm512_storeu_si512(sums.add(at).cast(), sum);
            }
        }
    }
}

/// Adds up the lanes of the sums of eight pairs, `count` vectors each one after the other: the sum of each in a lane of
/// its own.
///
/// # Safety
/// `sums` has `8 count` vectors, `out` `count`.
#[target_feature(enable = "avx512f")]
pub unsafe fn add_lanes(sums: *const u64, count: usize, out: *mut u64) {
    for at in 0..count {
        // SAFETY: the caller's promise.
        unsafe {
            let of = |pair: usize| _mm512_loadu_si512(sums.add((pair * count + at) * BLOCK).cast());
            // Neighbouring lanes of two pairs, then parts of two lanes of all the others.
            let two = |a, b| _mm512_add_epi64(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
            let parts = |a, b| _mm512_add_epi64(_mm512_shuffle_i64x2::<0x88>(a, b), _mm512_shuffle_i64x2::<0xDD>(a, b));
            let (low, high) = ((two(of(0), of(1)), two(of(2), of(3))), (two(of(4), of(5)), two(of(6), of(7))));
            let all = parts(parts(low.0, low.1), parts(high.0, high.1));
            _mm512_storeu_si512(out.add(at * BLOCK).cast(), all);
        }
    }
}
