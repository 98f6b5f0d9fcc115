//! Columns of products of digits of 52 bits, by doubles: AVX2 multiplies only integers of 32 bits.
//!
//! For integers `0 <= a, b < 2^52` the sum `h = 2^104 + a b`, rounded to nearest, is a multiple of `2^52` in a double
//! whose last bits count it; `l = a b - (h - 2^104)` is at most `2^51` in magnitude and exact, and so is
//! `1.5 2^52 + l`, whose last bits count `l`. Both are added up as integers, with the bits of the doubles above those,
//! which are subtracted once for each sum. Proof: docs/ALGORITHM.md, "Eight problems in lanes".

use crate::plan::BLOCK;
use std::arch::x86_64::*;

use super::vectors::{__m512i, _mm512_loadu_si512};

/// Bits of a digit.
const DIGIT_BITS: u32 = 52;
const MASK: i64 = (1 << DIGIT_BITS) - 1;

/// `2^104`, `2^52` and `1.5 2^52`.
const HIGH: f64 = (1u128 << 104) as f64;
const UNIT: f64 = (1u64 << DIGIT_BITS) as f64;
const LOW: f64 = 1.5 * UNIT;

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

/// Sums of low and high halves of products, as they are added up, and how many.
pub struct ProductSums {
    low: [__m256i; 2],
    high: [__m256i; 2],
    count: i64,
}

impl ProductSums {
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub fn new() -> ProductSums {
        let zero = _mm256_setzero_si256();
        ProductSums { low: [zero; 2], high: [zero; 2], count: 0 }
    }

    /// Adds the products of eight pairs of doubles that are digits.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub fn add(&mut self, x: [__m256d; 2], y: [__m256d; 2]) {
        let (top, low) = (_mm256_set1_pd(HIGH), _mm256_set1_pd(LOW));
        for half in 0..2 {
            let high = _mm256_fmadd_pd(x[half], y[half], top);
            let rest = _mm256_fmadd_pd(x[half], y[half], _mm256_sub_pd(top, high));
            let rest = _mm256_add_pd(rest, low);
            self.high[half] = _mm256_add_epi64(self.high[half], _mm256_castpd_si256(high));
            self.low[half] = _mm256_add_epi64(self.low[half], _mm256_castpd_si256(rest));
        }
        self.count += 1;
    }

    /// The same sum with `0 <= low < 2^52`: low and high halves.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub fn halves(&self) -> (__m512i, __m512i) {
        let bias = |of: f64| _mm256_set1_epi64x((of.to_bits() as i64).wrapping_mul(self.count));
        let (low_bias, high_bias, mask) = (bias(LOW), bias(HIGH), _mm256_set1_epi64x(MASK));
        let (sign, two) = (_mm256_set1_epi64x(1 << 11), [0usize, 1]);
        let low = two.map(|half| _mm256_sub_epi64(self.low[half], low_bias));
        let high = two.map(|half| {
            // The arithmetic shift that AVX2 lacks.
            let carry = _mm256_sub_epi64(_mm256_xor_si256(_mm256_srli_epi64::<52>(low[half]), sign), sign);
            _mm256_add_epi64(_mm256_sub_epi64(self.high[half], high_bias), carry)
        });
        let low = low.map(|low| _mm256_and_si256(low, mask));
        (__m512i(low[0], low[1]), __m512i(high[0], high[1]))
    }
}

/// Digits below `2^52` as doubles.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub fn doubles(digits: __m512i) -> [__m256d; 2] {
    let (bits, unit) = (_mm256_set1_epi64x(UNIT.to_bits() as i64), _mm256_set1_pd(UNIT));
    [digits.0, digits.1].map(|half| _mm256_sub_pd(_mm256_castsi256_pd(_mm256_or_si256(half, bits)), unit))
}

/// Low and high halves of all products of two digits that meet in a column, and the same of the next column; the low
/// halves are one digit, and the carry of their sum is with the high halves.
///
/// # Safety
/// The factors have their digits.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub unsafe fn two_columns(x: Factor, y: Factor, column: usize) -> [(__m512i, __m512i); 2] {
    let (mut own, mut next) = (ProductSums::new(), ProductSums::new());
    // Digits of x whose partners in both columns are digits of y.
    let (start, end) = ((column + 2).saturating_sub(y.count), (column + 1).min(x.count));
    // SAFETY: all digits lie in their factors.
    unsafe {
        let digit = |of: Factor, at: usize| doubles(_mm512_loadu_si512(of.digits.add(at * BLOCK).cast()));
        if start > 0 && start <= x.count {
            own.add(digit(x, start - 1), digit(y, column + 1 - start));
        }
        if end == column + 1 && end < x.count && y.count > 0 {
            next.add(digit(x, end), digit(y, 0));
        }
        if start < end {
            let mut right = digit(y, column + 1 - start);
            for at in start..end {
                let left = digit(x, at);
                next.add(left, right);
                right = digit(y, column - at);
                own.add(left, right);
            }
        }
    }
    [own.halves(), next.halves()]
}
