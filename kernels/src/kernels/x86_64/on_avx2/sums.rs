//! Sums of products of entries of eight problems: the columns of the product from one on, column by column.
//!
//! As `ifma52::problem_lanes::sums`, with entries that are kept as doubles. The columns below are left out with their
//! high halves, except for the whole carry of the column just below, so that no more is left out than there.

use super::columns::{ProductSums, doubles};
use super::vectors::{__m512i, _mm512_add_epi64, _mm512_setzero_si512, _mm512_storeu_si512};
use crate::plan::BLOCK;
use std::arch::x86_64::*;

/// The largest number of digits of an entry.
pub const MOST_DIGITS: usize = 24;

/// Columns below the middle of a product that are always summed.
const FIXED: usize = 2;

/// Entries of two rows, one behind the other, as [`form`] gives their digits.
#[derive(Clone, Copy)]
pub struct Terms {
    pub x: *const u64,
    pub y: *const u64,
    pub count: usize,
}

/// A digit in the form in which [`multiply`] takes those of its terms.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub fn form(digit: __m512i) -> __m512i {
    let [low, high] = doubles(digit).map(|half| _mm256_castpd_si256(half));
    __m512i(low, high)
}

/// First column that is summed by default.
pub fn first_column(digits: usize) -> usize {
    digits - FIXED
}

/// Writes the sums of the columns from `from <= first_column` on into `sums`, which has `2 d` vectors.
///
/// # Safety
/// Entries have `digits` vectors each, of doubles; the sums lie elsewhere.
#[target_feature(enable = "avx2,fma")]
pub unsafe fn multiply(digits: usize, terms: Terms, from: usize, sums: *mut u64) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut carried = if from > 0 { column(digits, terms, from - 1).1 } else { _mm512_setzero_si512() };
        for at in from..2 * digits {
            let (low, high) = if at + 1 < 2 * digits {
                column(digits, terms, at)
            } else {
                (_mm512_setzero_si512(), _mm512_setzero_si512())
            };
            _mm512_storeu_si512(sums.add(at * BLOCK).cast(), _mm512_add_epi64(low, carried));
            carried = high;
        }
    }
}

/// Low and high halves of the products of all terms that meet in a column.
///
/// # Safety
/// As [`multiply`]; the column is below `2 digits - 1`.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn column(digits: usize, terms: Terms, column: usize) -> (__m512i, __m512i) {
    let mut own = ProductSums::new();
    let (start, end) = ((column + 1).saturating_sub(digits), digits.min(column + 1));
    // SAFETY: digits `at` of x and `column - at` of y lie in their entries.
    unsafe {
        let load = |from: *const f64| [_mm256_loadu_pd(from), _mm256_loadu_pd(from.add(4))];
        for term in 0..terms.count {
            let first = term * digits;
            let mut x = terms.x.cast::<f64>().add((first + start) * BLOCK);
            let mut y = terms.y.cast::<f64>().add((first + column - start) * BLOCK);
            for _ in start..end {
                own.add(load(x), load(y));
                x = x.add(BLOCK);
                y = y.wrapping_sub(BLOCK);
            }
        }
    }
    own.halves()
}
