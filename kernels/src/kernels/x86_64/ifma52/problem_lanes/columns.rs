//! Columns of products of two numbers whose digits lie in eight lanes.

use crate::plan::BLOCK;
use std::arch::x86_64::*;

/// A factor: its digits, and how many.
#[derive(Clone, Copy)]
pub struct Factor {
    pub digits: *const u64,
    pub count: usize,
}

impl Factor {
    /// The digits of a slice.
    pub fn of(digits: &[u64]) -> Factor {
        Factor { digits: digits.as_ptr(), count: digits.len() / BLOCK }
    }
}

/// Low and high halves of all products of two digits that meet in a column, and the same of the next column.
///
/// # Safety
/// The factors have their digits.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub unsafe fn two_columns(x: Factor, y: Factor, column: usize) -> [(__m512i, __m512i); 2] {
    let zero = _mm512_setzero_si512();
    let (mut low, mut high, mut next_low, mut next_high) = (zero, zero, zero, zero);
    // Digits of x whose partners in both columns are digits of y.
    let (start, end) = ((column + 2).saturating_sub(y.count), (column + 1).min(x.count));
    // SAFETY: all digits lie in their factors.
    unsafe {
        let digit = |of: Factor, at: usize| _mm512_loadu_si512(of.digits.add(at * BLOCK).cast());
        if start > 0 && start <= x.count {
            let (left, right) = (digit(x, start - 1), digit(y, column + 1 - start));
            (low, high) = (_mm512_madd52lo_epu64(zero, left, right), _mm512_madd52hi_epu64(zero, left, right));
        }
        if end == column + 1 && end < x.count && y.count > 0 {
            let (left, right) = (digit(x, end), digit(y, 0));
            (next_low, next_high) =
                (_mm512_madd52lo_epu64(zero, left, right), _mm512_madd52hi_epu64(zero, left, right));
        }
        if start < end {
            let mut right = digit(y, column + 1 - start);
            for at in start..end {
                let left = digit(x, at);
                next_low = _mm512_madd52lo_epu64(next_low, left, right);
                next_high = _mm512_madd52hi_epu64(next_high, left, right);
                right = digit(y, column - at);
                low = _mm512_madd52lo_epu64(low, left, right);
                high = _mm512_madd52hi_epu64(high, left, right);
            }
        }
    }
    [(low, high), (next_low, next_high)]
}
