//! Sums of products of finished entries, 8 rows at once, taken off what is left of a cell.
//!
//! With an entry's digits `u = l + 2^(52 d) [l < 0]`, the product of two is `u v - 2^(52 d) ([l < 0] v + [m < 0] u)`
//! modulo `2^(104 d)`: products of digits without signs, and two sums of digits for the signs.
//! Bounds: docs/ALGORITHM.md, "Tiles of digits".

use super::Digits;
use crate::math::bound::digit_sum_terms;
use crate::plan::BLOCK;
use std::arch::x86_64::*;
use std::ops::Range;

/// Digits of a group, at most: sums of twice as many and a few vectors fit the registers.
pub const GROUP: usize = 7;

const MASK: i64 = (1 << 52) - 1;

/// Pairs of cells in neighbouring columns.
#[derive(Clone, Copy)]
pub struct Terms {
    /// The first cell of the 8 rows.
    pub x: *const u64,
    /// The lane of the other row in its first cell.
    pub y: *const u64,
    /// Number of columns.
    pub count: usize,
}

/// Makes the digits of a cell those of a number modulo `2^(104 d)`, each below `2^52`.
///
/// # Safety
/// `cell` has `2 d` vectors.
#[inline]
#[target_feature(enable = "avx512f")]
pub unsafe fn normalize(digits: Digits, from: *const u64, to: *mut u64) -> __m512i {
    let mask = _mm512_set1_epi64(MASK);
    let (mut carry, mut top) = (_mm512_setzero_si512(), _mm512_setzero_si512());
    for at in 0..2 * digits.count {
        // SAFETY: the caller's promise.
        unsafe {
            let value = _mm512_add_epi64(_mm512_loadu_si512(from.add(at * BLOCK).cast()), carry);
            top = _mm512_and_si512(value, mask);
            carry = _mm512_srai_epi64::<52>(value);
            _mm512_storeu_si512(to.add(at * BLOCK).cast(), top);
        }
    }
    top
}

/// The lanes of a cell that are wanted: half vectors go through twice as fast.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    All,
    /// The first four.
    Low,
    /// The last four.
    High,
}

impl Part {
    /// The smallest that has all of some lanes.
    pub fn of(lanes: Range<usize>) -> Part {
        match (lanes.start >= BLOCK / 2, lanes.end <= BLOCK / 2) {
            (_, true) => Part::Low,
            (true, _) => Part::High,
            _ => Part::All,
        }
    }
}

/// `T := T - sum of x y` in some of the lanes. The digits of T are below `2^52` in magnitude before; they are less than
/// `2^63` afterwards.
///
/// # Safety
/// `cell` has `2 d` vectors, and so has every cell of `terms`, which are finished and lie elsewhere.
#[target_feature(enable = "avx512f,avx512vl,avx512ifma")]
pub unsafe fn subtract(digits: Digits, terms: Terms, part: Part, cell: *mut u64) {
    let most = digit_sum_terms(digits.count);
    let stride = digits.cell_words();
    for start in (0..terms.count).step_by(most) {
        let count = most.min(terms.count - start);
        // SAFETY: the terms from `start` on, of the caller's.
        unsafe {
            if start > 0 {
                normalize(digits, cell, cell);
            }
            let some = Terms { x: terms.x.add(start * stride), y: terms.y.add(start * stride), count };
            macro_rules! of_group {
                ($($size:literal)*) => {
                    match digits.group {
                        $($size => all_groups::<$size>(digits, some, part, cell),)*
                        other => unreachable!("groups of {other} digits"),
                    }
                };
            }
            of_group!(1 2 3 4 5 6 7);
        }
    }
}

/// The products of all pairs of groups of `W` digits.
///
/// # Safety
/// As [`subtract`].
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512ifma")]
unsafe fn all_groups<const W: usize>(digits: Digits, terms: Terms, part: Part, cell: *mut u64) {
    let groups = digits.count / W;
    let lane = if part == Part::High { BLOCK / 2 } else { 0 };
    // SAFETY: the caller's promise: a half of the lanes begins there.
    let (some, from) = unsafe { (Terms { x: terms.x.add(lane), ..terms }, cell.add(lane)) };
    for (x, y) in (0..groups).flat_map(|x| (0..groups).map(move |y| (x, y))) {
        let at = (x * W, y * W);
        // SAFETY: as above.
        unsafe {
            match (part, at) {
                (Part::All, (0, 0)) => group::<W, true, true>(digits, terms, at, cell),
                (Part::All, (0, _)) => group::<W, true, false>(digits, terms, at, cell),
                (Part::All, (_, 0)) => group::<W, false, true>(digits, terms, at, cell),
                (Part::All, _) => group::<W, false, false>(digits, terms, at, cell),
                (_, (0, 0)) => half_group::<W, true, true>(digits, some, at, from),
                (_, (0, _)) => half_group::<W, true, false>(digits, some, at, from),
                (_, (_, 0)) => half_group::<W, false, true>(digits, some, at, from),
                _ => half_group::<W, false, false>(digits, some, at, from),
            }
        }
    }
}

/// The products of groups, in whole vectors and in half vectors.
macro_rules! groups {
    ($($name:ident $vector:ident: $zero:ident $set:ident $load:ident $store:ident $low:ident $high:ident $add:ident
        $mask_add:ident $sub:ident $test:ident;)*) => {$(
        /// The products of `W` digits of x with `W` digits of y, from these on; with the digits of y where x is
        /// negative (`X`), and those of x where y is (`Y`): both for the lowest groups alone.
        ///
        /// # Safety
        /// As [`subtract`]; the groups lie among the digits.
        #[inline]
        #[target_feature(enable = "avx512f,avx512vl,avx512ifma")]
        unsafe fn $name<const W: usize, const X: bool, const Y: bool>(
            digits: Digits,
            Terms { x, y, count }: Terms,
            (x_digit, y_digit): (usize, usize),
            cell: *mut u64,
        ) {
            let (stride, signs) = (digits.cell_words(), digits.count * BLOCK);
            let zero = $zero();
            // With both `X` and `Y` the two groups are the lowest ones, so that their sums belong to the same digits.
            let (mut low, mut high, mut by_sign) = ([zero; W], [zero; W], [zero; W]);
            // SAFETY: all digits that are read lie in the cells of the terms; those written are the cell's:
            // `x_digit + y_digit + 2 W` is `2 d` at most.
            unsafe {
                for term in 0..count {
                    let (x, y) = (x.add(term * stride), y.add(term * stride));
                    let row: [$vector; W] = std::array::from_fn(|at| $load(x.add((x_digit + at) * BLOCK).cast()));
                    let x_signs = $load(x.add(signs).cast());
                    let x_signs = if X { $test(x_signs, x_signs) } else { 0 };
                    let y_sign = if Y { (*y.add(signs) as u8).wrapping_neg() } else { 0 };
                    for (j, by_sign) in by_sign.iter_mut().enumerate() {
                        let factor = $set(*y.add((y_digit + j) * BLOCK) as i64);
                        for (i, &digit) in row.iter().enumerate() {
                            let (lo, hi) = (i + j, i + j + 1);
                            let sum = if lo < W { &mut low[lo] } else { &mut high[lo - W] };
                            *sum = $low(*sum, digit, factor);
                            let sum = if hi < W { &mut low[hi] } else { &mut high[hi - W] };
                            *sum = $high(*sum, digit, factor);
                        }
                        if X {
                            *by_sign = $mask_add(*by_sign, x_signs, *by_sign, factor);
                        }
                    }
                    if Y {
                        for (sum, &digit) in by_sign.iter_mut().zip(&row) {
                            *sum = $mask_add(*sum, y_sign, *sum, digit);
                        }
                    }
                }
                let change = |at: usize, sum: $vector, subtract: bool| {
                    let slot = cell.add(at * BLOCK);
                    let before = $load(slot.cast());
                    let after = if subtract { $sub(before, sum) } else { $add(before, sum) };
                    $store(slot.cast(), after);
                };
                for at in 0..W {
                    change(x_digit + y_digit + at, low[at], true);
                    change(x_digit + y_digit + W + at, high[at], true);
                    if X || Y {
                        change(digits.count + if X { y_digit } else { x_digit } + at, by_sign[at], false);
                    }
                }
            }
        }
    )*};
}

groups! {
    group __m512i: _mm512_setzero_si512 _mm512_set1_epi64 _mm512_loadu_si512 _mm512_storeu_si512
        _mm512_madd52lo_epu64 _mm512_madd52hi_epu64 _mm512_add_epi64 _mm512_mask_add_epi64 _mm512_sub_epi64
        _mm512_test_epi64_mask;
    half_group __m256i: _mm256_setzero_si256 _mm256_set1_epi64x _mm256_loadu_si256 _mm256_storeu_si256
        _mm256_madd52lo_epu64 _mm256_madd52hi_epu64 _mm256_add_epi64 _mm256_mask_add_epi64 _mm256_sub_epi64
        _mm256_test_epi64_mask;
}
