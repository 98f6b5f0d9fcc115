//! Sums of the products of two columns: eight rows to a vector, a lane each.
//!
//! Digits without signs: an offset makes all entries positive, and the initial value of the sums removes it (`offset`).
//! Where the last rows are four or fewer they are multiplied in half vectors, twice as many of which are processed at a
//! time. The lanes are added up at the end, for eight pairs of columns together.

use super::super::digit_tiles::{EntryDigits, normalize};
use crate::math::bound::row_lane_terms;
use crate::plan::BLOCK;
use std::arch::x86_64::*;

/// The digits of two columns: `d` vectors for each eight rows.
#[derive(Clone, Copy)]
pub struct Pair {
    x: *const u64,
    y: *const u64,
    /// Eights of rows, the last of which is a half where `is_half`.
    eights: usize,
    is_half: bool,
}

impl Pair {
    /// Two columns of `rows` rows, in place.
    pub fn new(digits: usize, x: *const u64, y: *const u64, rows: usize) -> Pair {
        let start = (digits + 1) * BLOCK;
        let is_half = (1..=BLOCK / 2).contains(&(rows % BLOCK));
        Pair { x: x.wrapping_add(start), y: y.wrapping_add(start), eights: rows.div_ceil(BLOCK), is_half }
    }

    /// The initial value of the sum of digit `at`.
    ///
    /// # Safety
    /// The columns are whole, of `digits` digits.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn start(&self, digits: usize, at: usize) -> __m512i {
        if at + 1 < digits {
            return _mm512_setzero_si512();
        }
        // `2 d - at` vectors before the entries.
        let back = (2 * digits - at) * BLOCK;
        // SAFETY: the caller's promise.
        unsafe {
            _mm512_add_epi64(_mm512_loadu_si512(self.x.sub(back).cast()), _mm512_loadu_si512(self.y.sub(back).cast()))
        }
    }
}

/// The sums of the products of a pair in each lane, as `2 d` vectors.
///
/// # Safety
/// The columns are whole, of `digits` digits; `sums` has `2 d` vectors and lies elsewhere.
#[target_feature(enable = "avx512f,avx512vl,avx512ifma")]
pub unsafe fn multiply(digits: EntryDigits, pair: Pair, sums: *mut u64) {
    let most = row_lane_terms(digits.count);
    let stride = digits.count * BLOCK;
    let of_start = digits.count == digits.group && pair.eights <= most;
    // SAFETY: the caller's promise; some of the eights of the pair.
    unsafe {
        if !of_start {
            for at in 0..2 * digits.count {
                _mm512_storeu_si512(sums.add(at * BLOCK).cast(), pair.start(digits.count, at));
            }
        }
        for start in (0..pair.eights).step_by(most) {
            let eights = most.min(pair.eights - start);
            let is_half = pair.is_half && start + eights == pair.eights;
            let some = Pair { x: pair.x.add(start * stride), y: pair.y.add(start * stride), eights, is_half };
            macro_rules! of_group {
                ($($size:literal $both:literal)*) => {
                    match digits.group {
                        $($size => add::<$size, $both>(digits.count, some, of_start, sums),)*
                        other => unreachable!("groups of {other} digits"),
                    }
                };
            }
            of_group!(1 2 2 4 3 6 4 8 5 10 6 12 7 14);
            // The lanes are added up in the room that remains.
            if pair.eights * BLOCK > most {
                normalize(digits, sums, sums);
            }
        }
    }
}

/// Adds the products of some eights of rows; with `of_start` to the initial value of the pair.
///
/// # Safety
/// As [`multiply`], for groups of `W` digits; `B` is `2 W`.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512ifma")]
unsafe fn add<const W: usize, const B: usize>(count: usize, pair: Pair, of_start: bool, sums: *mut u64) {
    for x in (0..count).step_by(W) {
        for y in (0..count).step_by(W) {
            // SAFETY: the caller's promise.
            unsafe { group::<W, B>(count, pair, x, y, of_start, sums.add((x + y) * BLOCK)) };
        }
    }
}

/// Adds the products of `W` digits of x and as many of y, from these on, to `2 W` sums.
///
/// # Safety
/// As [`add`]; `sums` has `2 W` vectors.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512ifma")]
unsafe fn group<const W: usize, const B: usize>(
    count: usize,
    pair: Pair,
    x_digit: usize,
    y_digit: usize,
    of_start: bool,
    sums: *mut u64,
) {
    assert!(B == 2 * W);
    let (stride, whole) = (count * BLOCK, pair.eights - usize::from(pair.is_half));
    // SAFETY: the digits lie in the columns, and `sums` has `B` vectors.
    unsafe {
        let (mut x, mut y) = (pair.x.add(x_digit * BLOCK), pair.y.add(y_digit * BLOCK));
        let of_half = match pair.is_half {
            true => half::<W, B>(x.add(whole * stride), y.add(whole * stride)),
            false => [_mm256_setzero_si256(); B],
        };
        let mut own: [__m512i; B] = std::array::from_fn(|at| {
            let before = match of_start {
                true => pair.start(count, at),
                false => _mm512_loadu_si512(sums.add(at * BLOCK).cast()),
            };
            if pair.is_half { _mm512_add_epi64(before, _mm512_zextsi256_si512(of_half[at])) } else { before }
        });
        for _ in 0..whole {
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

/// The products of the digits of four rows.
///
/// # Safety
/// Both have `W` vectors.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512ifma")]
unsafe fn half<const W: usize, const B: usize>(x: *const u64, y: *const u64) -> [__m256i; B] {
    let mut own = [_mm256_setzero_si256(); B];
    // SAFETY: the caller's promise.
    unsafe {
        let row: [__m256i; W] = std::array::from_fn(|at| _mm256_loadu_si256(x.add(at * BLOCK).cast()));
        for j in 0..W {
            let factor = _mm256_loadu_si256(y.add(j * BLOCK).cast());
            for i in 0..W {
                own[i + j] = _mm256_madd52lo_epu64(own[i + j], row[i], factor);
                own[i + j + 1] = _mm256_madd52hi_epu64(own[i + j + 1], row[i], factor);
            }
        }
    }
    own
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
