//! Fixed-point digits of 52 bits, straight from the limbs.
//!
//! The 8 columns of a panel are 8 lanes. Per entry, a masked 64-byte load, a byte permutation and one variable shift
//! give 8 digits; bits above them may be garbage, which the multiply-adds ignore. The lowest digit cut is the first 52
//! bits that rounding drops: comparing it with one half gives the rounding bits. Only for an exact half are the limbs
//! read again; nothing else branches on the numbers.

use super::transpose::transpose;
use crate::kernels::PanelSource;
use crate::kernels::radix::CutLanes;
use crate::math::float::any_below;
use crate::plan::BLOCK;
use std::arch::x86_64::*;

/// Rows converted together.
pub const ROWS: usize = 4;

/// Rows ahead of their use at which heads and limbs are fetched: the conversion would wait for their latency.
const AHEAD: usize = 2 * ROWS;

/// Bits of a digit.
const DIGIT_BITS: i64 = 52;

/// Digits of a group, one for each lane of a vector.
pub const GROUP_DIGITS: usize = 8;

/// Words from a digit of a row to its next one.
const STEP: usize = ROWS * BLOCK;

/// Bytes from one group of 8 digits to the next.
const GROUP_BYTES: i64 = DIGIT_BITS;

/// Shifts beyond this leave no bit of any number; they are cut down to it, so that no address overflows.
const LARGEST_SHIFT: i64 = 1 << 30;

/// Digits cut for an operand of `digits` digits: one more, for rounding, and whole groups.
pub fn padded(digits: usize) -> usize {
    (digits + 1).next_multiple_of(8)
}

/// Takes a panel apart, row after row.
pub struct Cutter<'a> {
    heads: &'a [u64],
    limbs: &'a [u64],
    /// Bytes of the limbs of one element.
    width: usize,
    /// Index of each column's next element; columns that the panel lacks repeat the first.
    next: __m512i,
    /// Columns that the panel has.
    live: u8,
    /// Bits of a significand less the column's shift.
    fixed: __m512i,
    /// Elements from a row to the next, negative modulo the word size where a view is reversed.
    stride: usize,
    rows_left: usize,
}

impl<'a> Cutter<'a> {
    /// Begins at the first row of `source`.
    #[inline(never)] // once a panel; within the loop over rows its values would take registers from it
    #[target_feature(enable = "avx512f")]
    pub fn new(source: &PanelSource<'a>) -> Cutter<'a> {
        let (view, live) = (source.view, source.columns.len());
        assert!((1..=BLOCK).contains(&live) && source.columns.end <= source.shifts.len());
        let bits = view.limbs_per_element() as i64 * 64;
        let (mut next, mut fixed) = ([0i64; BLOCK], [0; BLOCK]);
        if !source.rows.is_empty() {
            // Both ends are looked up: every element between them exists too.
            let index = |row: usize, column: usize| view.element_index(row, column) as i64;
            for (lane, column) in source.columns.clone().enumerate() {
                let last = index(source.rows.end - 1, column);
                next[lane] = index(source.rows.start, column);
                assert!((last.max(next[lane]) as usize) < view.all_heads().len());
                fixed[lane] = bits - source.shifts[column];
            }
            assert!(view.all_limbs().len() == view.all_heads().len() * view.limbs_per_element());
            let first = next[0];
            next[live..].fill(first);
        }
        Cutter {
            heads: view.all_heads(),
            limbs: view.all_limbs(),
            width: view.limbs_per_element() * 8,
            next: load(&next),
            live: u8::MAX >> (BLOCK - live),
            fixed: load(&fixed),
            stride: view.row_stride(),
            rows_left: source.rows.len(),
        }
    }

    /// Writes the digits of the next row, `ROWS * 8` words from digit to digit, the one for rounding first; returns
    /// the signs and the carries of rounding of its columns.
    ///
    /// # Panics
    /// After the last row, or if `digits` is not a whole number of groups.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi")]
    pub fn next_row(&mut self, digits: &mut [u64]) -> CutLanes {
        self.next_row_of(u8::MAX, 0, digits)
    }

    /// As [`Cutter::next_row`], only for the columns in `lanes` (zeros elsewhere, where nothing is read), with the
    /// row's own scale shift added to the columns' shifts.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi")]
    pub fn next_row_of(&mut self, lanes: u8, row_shift: i64, digits: &mut [u64]) -> CutLanes {
        self.next_digits(lanes, row_shift, digits.len().div_ceil(GROUP_DIGITS * STEP) * GROUP_DIGITS, digits)
    }

    /// As [`Cutter::next_row_of`], of which the lowest `count` digits are wanted, the one for rounding included: groups
    /// of digits below the numbers of all lanes are not cut.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi")]
    pub fn next_digits(&mut self, lanes: u8, row_shift: i64, count: usize, digits: &mut [u64]) -> CutLanes {
        assert!(self.rows_left > 0);
        let groups = count.div_ceil(GROUP_DIGITS);
        assert!(groups > 0 && digits.len() >= (groups * GROUP_DIGITS - 1) * STEP + BLOCK);
        let elements = self.next;
        self.next = _mm512_add_epi64(elements, _mm512_set1_epi64(self.stride as i64));
        self.rows_left -= 1;
        let ahead = if self.rows_left >= AHEAD { AHEAD.wrapping_mul(self.stride) } else { 0 };
        // SAFETY: `new` looked up the first and the last element of each column, and no more rows are taken.
        let heads = unsafe {
            let lanes = self.live & lanes;
            _mm512_mask_i64gather_epi64::<8>(_mm512_setzero_si512(), lanes, elements, self.heads.as_ptr().cast())
        };
        let (nonzero, signs) =
            (_mm512_test_epi64_mask(heads, heads), _mm512_test_epi64_mask(heads, _mm512_set1_epi64(1)));
        // The scaled integer is the significand, an integer, shifted right by this; one digit more is cut below it.
        let fixed = _mm512_sub_epi64(self.fixed, _mm512_set1_epi64(row_shift));
        let shift = _mm512_sub_epi64(fixed, _mm512_srai_epi64::<2>(heads));
        let limit = _mm512_set1_epi64(LARGEST_SHIFT);
        let shift = _mm512_max_epi64(_mm512_min_epi64(shift, limit), _mm512_sub_epi64(_mm512_setzero_si512(), limit));
        let from_lowest = _mm512_sub_epi64(shift, _mm512_set1_epi64(DIGIT_BITS));
        let (empty, groups) = leading_groups(from_lowest, nonzero, count);
        for digit in digits.chunks_mut(STEP).take(empty) {
            // SAFETY: asserted above.
            unsafe { _mm512_storeu_si512(digit.as_mut_ptr().cast(), _mm512_setzero_si512()) };
        }
        let drop = _mm512_add_epi64(from_lowest, _mm512_set1_epi64(DIGIT_BITS * empty as i64));
        let mut start = _mm512_srai_epi64::<3>(drop);
        let bytes = _mm512_mullo_epi64(elements, _mm512_set1_epi64(self.width as i64));
        let at = store(_mm512_add_epi64(bytes, start));
        let indices = store(elements);
        if ahead != 0 {
            self.fetch(&indices, ahead);
        }
        let bits = store(_mm512_and_si512(drop, _mm512_set1_epi64(7)));
        let odd = _mm512_set_epi64(4, 0, 4, 0, 4, 0, 4, 0);
        let shifts: [__m512i; BLOCK] = std::array::from_fn(|lane| _mm512_add_epi64(odd, _mm512_set1_epi64(bits[lane])));
        let pick = load_bytes(&DIGIT_BYTES);
        let limbs = self.limbs.as_ptr().cast::<i8>();
        for group in 0..groups {
            let masks = store(masks(nonzero, start, self.width));
            let entries: [__m512i; BLOCK] = std::array::from_fn(|lane| {
                let from = limbs.wrapping_offset((at[lane] + GROUP_BYTES * group as i64) as isize);
                // SAFETY: the mask keeps only bytes of the element's own limbs.
                let loaded = unsafe { _mm512_maskz_loadu_epi8(masks[lane] as u64, from) };
                _mm512_srlv_epi64(_mm512_permutexvar_epi8(pick, loaded), shifts[lane])
            });
            for (digit, vector) in transpose(entries).into_iter().enumerate() {
                let at = empty + group * GROUP_DIGITS + digit;
                // SAFETY: asserted above, and as many groups fewer are cut as digits are empty.
                unsafe { _mm512_storeu_si512(digits.as_mut_ptr().add(at * STEP).cast(), vector) };
            }
            start = _mm512_add_epi64(start, _mm512_set1_epi64(GROUP_BYTES));
        }
        CutLanes { signs, carries: self.carries(digits, from_lowest, &indices) }
    }

    /// The rounding bits of a row from its two lowest digits: to nearest, ties to even.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn carries(&self, digits: &[u64], drop: __m512i, indices: &[i64; BLOCK]) -> u8 {
        // SAFETY: `next_row` asserts that there are at least 8 digits.
        let (dropped, kept) = unsafe {
            (_mm512_loadu_si512(digits.as_ptr().cast()), _mm512_loadu_si512(digits.as_ptr().add(ROWS * BLOCK).cast()))
        };
        let dropped = _mm512_and_si512(dropped, _mm512_set1_epi64((1 << DIGIT_BITS) - 1));
        let half = _mm512_set1_epi64(1 << (DIGIT_BITS - 1));
        let (above, equal) = (_mm512_cmpgt_epi64_mask(dropped, half), _mm512_cmpeq_epi64_mask(dropped, half));
        if equal == 0 {
            return above;
        }
        let (odd, drop) = (_mm512_test_epi64_mask(kept, _mm512_set1_epi64(1)), store(drop));
        let width = self.width / 8;
        let more = (0..BLOCK).filter(|&lane| {
            let limbs = &self.limbs[indices[lane] as usize * width..][..width];
            equal >> lane & 1 == 1 && drop[lane] > 0 && any_below(limbs, drop[lane])
        });
        above | equal & (odd | more.fold(0, |bits, lane| bits | 1 << lane))
    }

    /// Fetches heads and limbs `ahead` elements after these.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn fetch(&self, indices: &[i64; BLOCK], ahead: usize) {
        let limbs = self.limbs.as_ptr().cast::<i8>();
        for &index in indices {
            let element = (index as usize).wrapping_add(ahead);
            _mm_prefetch::<_MM_HINT_T0>(self.heads.as_ptr().wrapping_add(element).cast());
            for line in (0..self.width).step_by(64) {
                _mm_prefetch::<_MM_HINT_T0>(limbs.wrapping_add(element.wrapping_mul(self.width) + line));
            }
        }
    }
}

/// Writes the digits of 8 integers, whose limbs follow each other, `STEP` words from digit to digit.
///
/// The groups of digits that fill `out`; digits beyond the limbs are 0.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub fn cut_integers<const STEP: usize>(integers: &[u64], out: &mut [u64]) {
    let groups = out.len().div_ceil(GROUP_DIGITS * STEP);
    assert!(groups > 0 && out.len() >= (groups * GROUP_DIGITS - 1) * STEP + BLOCK);
    let bytes = integers.len() / BLOCK * 8;
    let (pick, odd) = (load_bytes(&DIGIT_BYTES), _mm512_set_epi64(4, 0, 4, 0, 4, 0, 4, 0));
    for group in 0..groups {
        let first = group * GROUP_BYTES as usize;
        let left = bytes.saturating_sub(first).min(64) as u32;
        let mask = u64::MAX.checked_shr(64 - left).unwrap_or(0);
        let entries: [__m512i; BLOCK] = std::array::from_fn(|lane| {
            let from = integers.as_ptr().cast::<i8>().wrapping_add(lane * bytes + first);
            // SAFETY: the mask keeps only bytes of the integer's own limbs.
            let loaded = unsafe { _mm512_maskz_loadu_epi8(mask, from) };
            _mm512_srlv_epi64(_mm512_permutexvar_epi8(pick, loaded), odd)
        });
        for (digit, vector) in transpose(entries).into_iter().enumerate() {
            // SAFETY: asserted above.
            unsafe { _mm512_storeu_si512(out.as_mut_ptr().add((group * GROUP_DIGITS + digit) * STEP).cast(), vector) };
        }
    }
}

/// How many of the lowest digits are 0 in all lanes, so that the others are a whole number of groups, and how many
/// groups: the fewest. The lowest bit of a lane is bit `-drop` of its digits.
#[inline]
#[target_feature(enable = "avx512f")]
fn leading_groups(drop: __m512i, nonzero: u8, count: usize) -> (usize, usize) {
    let all = count.div_ceil(GROUP_DIGITS);
    for groups in 1..all {
        let empty = count - groups * GROUP_DIGITS;
        let first = _mm512_set1_epi64(-DIGIT_BITS * empty as i64);
        if _mm512_cmpgt_epi64_mask(drop, first) & nonzero == 0 {
            return (empty, groups);
        }
    }
    (0, all)
}

/// For each lane, which of the 64 bytes from byte `start` of an element on belong to its `width` bytes; none for zeros.
#[inline]
#[target_feature(enable = "avx512f")]
fn masks(nonzero: u8, start: __m512i, width: usize) -> __m512i {
    let (ones, zero) = (_mm512_set1_epi64(-1), _mm512_setzero_si512());
    // Counts of 64 and more shift everything out.
    let past_end = _mm512_max_epi64(_mm512_sub_epi64(start, _mm512_set1_epi64(width as i64 - 64)), zero);
    let before = _mm512_max_epi64(_mm512_sub_epi64(zero, start), zero);
    _mm512_maskz_and_epi64(nonzero, _mm512_srlv_epi64(ones, past_end), _mm512_sllv_epi64(ones, before))
}

/// For each of 8 digits, the 8 bytes from the one in which it begins: digit `i` starts at bit `52 i`.
pub const DIGIT_BYTES: [u8; 64] = {
    let mut bytes = [0; 64];
    let mut at = 0;
    while at < 64 {
        bytes[at] = (at / 8 * 52 / 8 + at % 8) as u8;
        at += 1;
    }
    bytes
};

/// Bytes of a permutation of the bytes of a vector.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn load_bytes(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the array has 64 bytes.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(words: &[i64; BLOCK]) -> __m512i {
    // SAFETY: the array has 8 words.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(vector: __m512i) -> [i64; BLOCK] {
    let mut words = [0; BLOCK];
    // SAFETY: the array has 8 words.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), vector) };
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::x86_64::ifma52::probe;
    use crate::math::pivot::round_shift;
    use crate::matrix::Matrix;
    use rug::{Float, Integer, rand::RandState};

    /// Numbers whose lowest bits lie at each group of digits, one bit below and one above it, and far below and far
    /// above it.
    #[test]
    fn digits_below_all_numbers_are_zeros_and_the_others_are_right() {
        if probe().is_err() {
            return println!("skipped: no IFMA");
        }
        let mut rng = RandState::new();
        rng.seed(&Integer::from(41));
        for case in 0..3000usize {
            let (precision, count) = [(256u32, 11usize), (512, 21), (768, 31), (64, 7), (256, 8), (53, 17)][case % 6];
            // The top digit may be filled, but not passed.
            let room = 52 * (count as i64 - 1);
            let edge = |rng: &mut RandState<'_>| {
                let empty = count as i64 - 8 * (1 + i64::from(rng.below(3)));
                52 * (empty - 1) + i64::from(rng.below(3)) - 1
            };
            let lowest = edge(&mut rng);
            let mut a = Matrix::zeros(8, 1, precision).unwrap();
            for lane in 0..8usize {
                let place = match rng.below(6) {
                    0 if case % 4 == 0 => edge(&mut rng),
                    1 => lowest + i64::from(rng.below(20)),
                    2 if case % 5 == 0 => lowest - i64::from(rng.below(400)),
                    3 => continue, // zero
                    _ => lowest,
                };
                let place = place.min(room - i64::from(precision));
                let magnitude = Integer::from(Integer::random_bits(precision, &mut rng)) | 1u32;
                let magnitude = magnitude | Integer::from(1) << (precision - 1);
                let value = Float::with_val(precision, &magnitude) << place as i32;
                a.set_float(lane, 0, &if rng.below(2) == 0 { value } else { -value }).unwrap();
            }
            let live = 1 + rng.below(8) as usize;
            let shifts = [0i64; 8];
            let source =
                PanelSource { view: a.view().transposed(), columns: 0..live, rows: 0..1, shifts: &shifts[..live] };
            let mut digits = vec![u64::MAX; padded(count - 1) * STEP];
            // SAFETY: the CPU has the instructions.
            let CutLanes { signs, carries } =
                unsafe { Cutter::new(&source).next_digits(u8::MAX, 0, count, &mut digits) };
            for lane in 0..8 {
                let value = if lane < live { a.float(lane, 0) } else { Float::new(2) };
                let (integer, exponent) = value.to_integer_exp().unwrap();
                let mut got = Integer::new();
                for at in (1..count).rev() {
                    got = (got << 52u32) + (digits[at * STEP + lane] & ((1 << 52) - 1));
                }
                got += carries >> lane & 1;
                let got = if signs >> lane & 1 == 1 { -got } else { got };
                assert_eq!(got, round_shift(&integer, exponent.into()), "case {case}, lane {lane} of {live}: {value}");
            }
        }
    }
}
