//! Sums of products of entries of eight problems: the columns of the product from one on.
//!
//! All sums of a column of digits stay in registers for all terms. Entries have no signs here: an offset makes them
//! positive, and is removed once for each sum.

use super::columns::{Factor, two_columns};
use crate::plan::BLOCK;
use std::arch::x86_64::*;

/// The largest number of digits of an entry: the sums of as many columns and two more fit the registers.
pub const MOST_DIGITS: usize = 24;

/// Columns below the middle of a product that are always summed.
const FIXED: usize = 2;

/// Entries of two rows, one behind the other.
#[derive(Clone, Copy)]
pub struct Terms {
    pub x: *const u64,
    pub y: *const u64,
    pub count: usize,
}

/// A digit in the form in which [`multiply`] takes those of its terms.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn form(digit: __m512i) -> __m512i {
    digit
}

/// First column that [`multiply`] sums at its full speed.
pub fn first_column(digits: usize) -> usize {
    digits - FIXED
}

/// Writes the sums of the columns from `from <= first_column` on into `sums`, which has `2 d` vectors.
///
/// # Safety
/// Entries have `digits` vectors each; the sums lie elsewhere.
#[target_feature(enable = "avx512f,avx512ifma")]
pub unsafe fn multiply(digits: usize, terms: Terms, from: usize, sums: *mut u64) {
    macro_rules! of_digits {
        ($($digits:literal $columns:literal: $($row:literal)*;)*) => {
            match digits {
                $($digits => {
                    let mut own = [_mm512_setzero_si512(); $columns];
                    for term in 0..terms.count {
                        let at = term * $digits * BLOCK;
                        $(row::<$digits, $columns, $row>(&mut own, terms.x.add(at), terms.y.add(at));)*
                    }
                    for (at, own) in own.into_iter().enumerate() {
                        _mm512_storeu_si512(sums.add((2 * $digits - $columns + at) * BLOCK).cast(), own);
                    }
                })*
                other => unreachable!("entries of {other} digits"),
            }
        };
    }
    // SAFETY: the caller's promise.
    unsafe {
        of_digits! {
            2 4: 0 1;
            3 5: 0 1 2;
            4 6: 0 1 2 3;
            5 7: 0 1 2 3 4;
            6 8: 0 1 2 3 4 5;
            7 9: 0 1 2 3 4 5 6;
            8 10: 0 1 2 3 4 5 6 7;
            9 11: 0 1 2 3 4 5 6 7 8;
            10 12: 0 1 2 3 4 5 6 7 8 9;
            11 13: 0 1 2 3 4 5 6 7 8 9 10;
            12 14: 0 1 2 3 4 5 6 7 8 9 10 11;
            13 15: 0 1 2 3 4 5 6 7 8 9 10 11 12;
            14 16: 0 1 2 3 4 5 6 7 8 9 10 11 12 13;
            15 17: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14;
            16 18: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15;
            17 19: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16;
            18 20: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17;
            19 21: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18;
            20 22: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19;
            21 23: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20;
            22 24: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21;
            23 25: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22;
            24 26: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23;
        }
        for at in from..first_column(digits) {
            add_column(digits, terms, at, sums.add(at * BLOCK));
        }
    }
}

/// The products of one digit of x with all of y that meet in the `C` highest columns.
///
/// # Safety
/// Both have `D` vectors.
#[inline(always)]
unsafe fn row<const D: usize, const C: usize, const ROW: usize>(own: &mut [__m512i; C], x: *const u64, y: *const u64) {
    let first = 2 * D - C;
    // SAFETY: the caller's promise, and that of `multiply` for the instructions.
    unsafe {
        let left = _mm512_loadu_si512(x.add(ROW * BLOCK).cast());
        for at in first.saturating_sub(ROW + 1)..D {
            let right = _mm512_loadu_si512(y.add(at * BLOCK).cast());
            if ROW + at >= first {
                own[ROW + at - first] = _mm512_madd52lo_epu64(own[ROW + at - first], left, right);
            }
            own[ROW + at + 1 - first] = _mm512_madd52hi_epu64(own[ROW + at + 1 - first], left, right);
        }
    }
}

/// The sum of one column below those: its own low halves, and the high halves of the one before.
///
/// # Safety
/// As [`multiply`]; `sum` has one vector.
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn add_column(digits: usize, Terms { x, y, count }: Terms, at: usize, sum: *mut u64) {
    let mut own = _mm512_setzero_si512();
    // SAFETY: the caller's promise.
    unsafe {
        for term in (0..count).map(|term| term * digits * BLOCK) {
            let of = |digits: *const u64, count| Factor { digits: digits.add(term), count };
            let (x, y) = (of(x, digits), of(y, digits));
            own = _mm512_add_epi64(own, two_columns(x, y, at)[0].0);
            if at > 0 {
                own = _mm512_add_epi64(own, two_columns(x, y, at - 1)[0].1);
            }
        }
        _mm512_storeu_si512(sum.cast(), own);
    }
}
