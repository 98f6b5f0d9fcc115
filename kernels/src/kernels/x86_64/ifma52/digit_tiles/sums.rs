//! Sums of products of finished entries, 8 rows at once, subtracted from a cell.
//!
//! With an entry's digits `u = l + 2^(52 d) [l < 0]`, the product of two is `u v - 2^(52 d) ([l < 0] v + [m < 0] u)`
//! modulo `2^(104 d)`: products of digits without signs, and two sums of digits for the signs.
//! Bounds: docs/ALGORITHM.md, "Tiles of digits".

use super::EntryDigits;
use crate::plan::BLOCK;
use std::arch::x86_64::*;
use std::ops::Range;

/// Digits of a group, at most: sums of twice as many and a few vectors fit the registers.
pub const GROUP: usize = 7;

/// Columns of sums, at most, of which lower and upper halves of products are summed apart.
const MOST_APART: usize = 10;

const MASK: i64 = (1 << 52) - 1;

/// Pairs of cells in neighbouring columns.
#[derive(Clone, Copy)]
pub struct CellTerms {
    /// The first cell of the 8 rows.
    pub x: *const u64,
    /// The lane of the other row in its first cell.
    pub y: *const u64,
    /// Number of columns.
    pub count: usize,
    /// Digits of the sum below this one need not be complete; 0 where all of them are wanted.
    pub from: usize,
}

impl CellTerms {
    /// With all digits wanted where products cannot be left out: in halves, and where they do not fit one sum.
    pub fn cut_for(self, digits: EntryDigits, part: Part) -> CellTerms {
        let from = if part == Part::All && self.count <= digits.terms { self.from } else { 0 };
        CellTerms { from, ..self }
    }
}

/// The first columns other than 0 of products of two groups of 5 and of 6 digits that there are loops for.
const FIRST_OF_FIVE: [usize; 4] = [3, 4, 8, 10];
const FIRST_OF_SIX: [usize; 4] = [4, 5, 10, 12];

/// The same for a group of any number of digits; none where all products are formed.
const fn first_columns(group: usize) -> [usize; 4] {
    match group {
        5 => FIRST_OF_FIVE,
        6 => FIRST_OF_SIX,
        _ => [0; 4],
    }
}

/// Whether products of groups of this size can be left out.
pub const fn can_leave_out(group: usize) -> bool {
    first_columns(group)[0] > 0
}

/// The first column of the products of two groups that is formed where digits from `local` on, counted from the lowest
/// one of these products, are wanted: one of those that there are loops for.
fn first_column(group: usize, local: usize) -> usize {
    first_columns(group).into_iter().rev().find(|first| *first <= local).unwrap_or(0)
}

/// Makes the digits of a cell those of a number modulo `2^(104 d)`, each below `2^52`.
///
/// # Safety
/// `cell` has `2 d` vectors.
#[inline]
#[target_feature(enable = "avx512f")]
pub unsafe fn normalize(digits: EntryDigits, from: *const u64, to: *mut u64) -> __m512i {
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

/// `T := T - sum of x y` in some of the lanes, in whole cells but for the products that [`subtract_left_out`] takes
/// off: they come to less than `(2 from + 1)` units of digit `from` for each term. The digits of T are below `2^52` in
/// magnitude before; they are less than `2^63` afterwards.
///
/// # Safety
/// `cell` has `2 d` vectors, and so has every cell of `terms`, which are finished and lie elsewhere.
#[target_feature(enable = "avx512f,avx512vl,avx512ifma")]
pub unsafe fn subtract(digits: EntryDigits, terms: CellTerms, part: Part, cell: *mut u64) {
    let (most, stride) = (digits.terms, digits.cell_words());
    for start in (0..terms.count).step_by(most) {
        let count = most.min(terms.count - start);
        // SAFETY: the terms from `start` on, of the caller's.
        unsafe {
            if start > 0 {
                normalize(digits, cell, cell);
            }
            let some = CellTerms { x: terms.x.add(start * stride), y: terms.y.add(start * stride), count, ..terms };
            macro_rules! of_group {
                ($($size:literal)*) => {
                    match digits.group {
                        $($size => {
                            const FIRST: [usize; 4] = first_columns($size);
                            all_groups::<$size, { FIRST[0] }, { FIRST[1] }, { FIRST[2] }, { FIRST[3] }>(
                                digits, some, part, cell,
                            );
                        })*
                        other => unreachable!("groups of {other} digits"),
                    }
                };
            }
            of_group!(1 2 3 4 5 6 7);
        }
    }
}

/// The products of all pairs of groups of `W` digits; `A` to `D` are the values of [`first_column`] other than 0.
///
/// # Safety
/// As [`subtract`].
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512ifma")]
unsafe fn all_groups<const W: usize, const A: usize, const B: usize, const C: usize, const D: usize>(
    digits: EntryDigits,
    terms: CellTerms,
    part: Part,
    cell: *mut u64,
) {
    let groups = digits.count / W;
    let lane = if part == Part::High { BLOCK / 2 } else { 0 };
    // SAFETY: the caller's promise: a half of the lanes begins there.
    let (some, from) = unsafe { (CellTerms { x: terms.x.add(lane), ..terms }, cell.add(lane)) };
    for (x, y) in (0..groups).flat_map(|x| (0..groups).map(move |y| (x, y))) {
        let at = (x * W, y * W);
        let first = first_column(W, terms.from.saturating_sub(at.0 + at.1));
        macro_rules! whole {
            ($x:literal $y:literal) => {
                match first {
                    0 => group::<W, $x, $y, 0>(digits, terms, at.0, at.1, cell),
                    first if first == A => group::<W, $x, $y, A>(digits, terms, at.0, at.1, cell),
                    first if first == B => group::<W, $x, $y, B>(digits, terms, at.0, at.1, cell),
                    first if first == C => group::<W, $x, $y, C>(digits, terms, at.0, at.1, cell),
                    _ => group::<W, $x, $y, D>(digits, terms, at.0, at.1, cell),
                }
            };
        }
        // SAFETY: as above.
        unsafe {
            match (part, at) {
                (Part::All, (0, 0)) => whole!(true true),
                (Part::All, (0, _)) => whole!(true false),
                (Part::All, (_, 0)) => whole!(false true),
                (Part::All, _) => whole!(false false),
                (_, (0, 0)) => half_group::<W, true, true, 0>(digits, some, at.0, at.1, from),
                (_, (0, _)) => half_group::<W, true, false, 0>(digits, some, at.0, at.1, from),
                (_, (_, 0)) => half_group::<W, false, true, 0>(digits, some, at.0, at.1, from),
                _ => half_group::<W, false, false, 0>(digits, some, at.0, at.1, from),
            }
        }
    }
}

/// Subtracts what [`subtract`] has left out of whole cells with the same `terms`, of which there are at most
/// `digits.terms`.
///
/// # Safety
/// As [`subtract`].
#[cold]
pub unsafe fn subtract_left_out(digits: EntryDigits, terms: CellTerms, cell: *mut u64) {
    let (stride, group, from) = (digits.cell_words(), digits.group, terms.from);
    let pairs = (0..digits.count).flat_map(|i| (0..digits.count).map(move |j| (i, j)));
    for (i, j) in pairs {
        let (x, y) = (i - i % group, j - j % group);
        // Columns of the whole sum below this one are left out.
        let first = x + y + first_column(group, from.saturating_sub(x + y));
        let (low, high) = (i + j < first, i + j + 1 < first);
        for (term, lane) in (0..terms.count).flat_map(|term| (0..BLOCK).map(move |lane| (term, lane))) {
            // SAFETY: digits of the cells of the terms are read, and the cell's are written: `i + j + 1 < 2 d`.
            unsafe {
                let x = *terms.x.add(term * stride + i * BLOCK + lane);
                let product = u128::from(x) * u128::from(*terms.y.add(term * stride + j * BLOCK));
                let take = |at: usize, half: u64| {
                    let slot = cell.add(at * BLOCK + lane);
                    *slot = (*slot).wrapping_sub(half);
                };
                if low {
                    take(i + j, product as u64 & MASK as u64);
                }
                if high {
                    take(i + j + 1, (product >> 52) as u64);
                }
            }
        }
    }
}

/// The products of groups, in whole vectors and in half vectors.
macro_rules! groups {
    ($($name:ident $vector:ident: $zero:ident $set:ident $load:ident $store:ident $low:ident $high:ident $add:ident
        $mask_add:ident $sub:ident $test:ident;)*) => {$(
        /// The products of `W` digits of x with `W` digits of y, from these on; with the digits of y where x is
        /// negative (`X`), and those of x where y is (`Y`): both only for the lowest groups. Of the products only the
        /// columns from `C` on are formed.
        ///
        /// # Safety
        /// As [`subtract`]; the groups lie among the digits.
        #[inline]
        #[target_feature(enable = "avx512f,avx512vl,avx512ifma")]
        unsafe fn $name<const W: usize, const X: bool, const Y: bool, const C: usize>(
            digits: EntryDigits,
            CellTerms { x, y, count, .. }: CellTerms,
            x_digit: usize,
            y_digit: usize,
            cell: *mut u64,
        ) {
            let (stride, signs) = (digits.cell_words(), digits.count * BLOCK);
            let zero = $zero();
            // With both `X` and `Y` the two groups are the lowest ones, so that their sums belong to the same digits.
            // Lower and upper halves have sums of their own, up to the number of columns for which they fit the
            // registers: a sum of both would wait for its own additions.
            let (mut low, mut high, mut by_sign) = ([[zero; W]; 2], [[zero; W]; 2], [zero; W]);
            let upper = usize::from(2 * W <= MOST_APART + C);
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
                            if lo >= C {
                                let sum = if lo < W { &mut low[0][lo] } else { &mut high[0][lo - W] };
                                *sum = $low(*sum, digit, factor);
                            }
                            if hi >= C {
                                let sum = if hi < W { &mut low[upper][hi] } else { &mut high[upper][hi - W] };
                                *sum = $high(*sum, digit, factor);
                            }
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
                    let both = |sums: [[$vector; W]; 2]| {
                        if upper == 0 { sums[0][at] } else { $add(sums[0][at], sums[1][at]) }
                    };
                    if at >= C {
                        change(x_digit + y_digit + at, both(low), true);
                    }
                    if W + at >= C {
                        change(x_digit + y_digit + W + at, both(high), true);
                    }
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
