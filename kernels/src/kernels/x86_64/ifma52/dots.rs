//! Products of a panel of 8 columns with one vector: digits of 52 bits, all pairs of them from a first column on.
//!
//! Sums are kept by column of digits, low and high halves apart. With `R = 2^52`, `D` digits and the first column `F`,
//! a negative term is added as the complement of its digits, `R - 1 - x_a` for each of them. As
//! `sum of (R - 1) y_b R^(a + b)` over `a + b >= F` is `R^D Y - sum of y_b R^max(b, F)`, these two sums over the
//! negative terms correct for that; both are kept per lane.

use super::digits::{Cutter, ROWS, padded};
use crate::kernels::dots::{DIGIT_BITS, DotSource, FixedVector, PADDING, first_column};
use crate::kernels::radix::CutLanes;
use crate::plan::BLOCK;
use rug::Integer;
use rug::integer::Order;
use std::arch::x86_64::*;

/// Columns of digits summed at the same time.
const GROUP: usize = 5;

/// Rows between two passes over the sums.
const CHUNK: usize = 4 * ROWS;

const _: () = assert!(GROUP <= PADDING, "a group reads up to this number of digits beyond an entry's own");

const MASK: u64 = (1 << DIGIT_BITS) - 1;

/// Digit columns, `[column][lane]`.
struct DigitColumnSums {
    digits: usize,
    /// Columns of the products from the first used column to `2 digits`, and some that stay 0.
    products: Vec<u64>,
    /// `digits + 1` columns of the vector's entries where a lane counts negative.
    negatives: Vec<u64>,
    /// Columns of these entries from the first used column on, which includes the digits below it.
    raised: Vec<u64>,
    /// Rows added since the last carry.
    rows: usize,
}

/// Columns of [`DigitColumnSums`]: of products, negatives and raised ones.
fn columns(digits: usize) -> [usize; 3] {
    let counted = 2 * digits + 1 - first_column(digits);
    [counted.next_multiple_of(GROUP) + GROUP, digits + 1, digits + 2 - first_column(digits)]
}

/// Words of the digits of [`CHUNK`] rows.
fn cut_words(digits: usize) -> usize {
    padded(digits) * CHUNK * BLOCK
}

/// Bytes that [`dots`] allocates for a vector of `digits` digits: columns, digits of rows, and three integers of a sum
/// with the parts that they are
/// made of.
pub fn bytes(digits: usize) -> u64 {
    let columns = columns(digits).into_iter().sum::<usize>();
    8 * (columns * BLOCK + cut_words(digits) + 6 * (2 * digits + GROUP)) as u64
}

/// See `kernels::dots::by_limbs`.
#[target_feature(enable = "avx512f,avx512ifma,avx512bw,avx512dq,avx512vbmi")]
pub fn dots(sources: &[DotSource<'_>], vector: &FixedVector, results: &mut [Integer; BLOCK]) {
    let digits = vector.digits_per_entry();
    let [products, negatives, raised] = columns(digits).map(|columns| vec![0; columns * BLOCK]);
    let mut sums = DigitColumnSums { digits, products, negatives, raised, rows: 0 };
    let mut cut = vec![0u64; cut_words(digits)];
    for source in sources {
        sums.add_panel(source, vector, &mut cut);
    }
    sums.carry();
    for (lane, result) in results.iter_mut().enumerate() {
        *result = sums.value(lane);
    }
}

/// Complements the digits of the lanes in `lanes`, after the one for rounding.
#[inline]
#[target_feature(enable = "avx512f")]
fn complement(cut: &mut [u64], digits: usize, lanes: u8) {
    let ones = _mm512_set1_epi64(-1);
    for at in 1..=digits {
        let slot = cut[at * ROWS * BLOCK..][..BLOCK].as_mut_ptr();
        // SAFETY: the slot has 8 words.
        unsafe {
            let value = _mm512_loadu_si512(slot.cast());
            _mm512_storeu_si512(slot.cast(), _mm512_mask_xor_epi64(value, lanes, value, ones));
        }
    }
}

/// Some rows, and columns of their products that are formed together.
struct ProductGroup {
    /// The vector's entry for the first row.
    first: usize,
    /// Number of rows.
    rows: usize,
    /// The first of the columns.
    column: usize,
}

impl DigitColumnSums {
    /// Adds the products of a panel; `cut` takes the digits of [`CHUNK`] rows.
    #[target_feature(enable = "avx512f,avx512ifma,avx512bw,avx512dq,avx512vbmi")]
    fn add_panel(&mut self, source: &DotSource<'_>, vector: &FixedVector, cut: &mut [u64]) {
        let (rows, entry) = (source.panel.rows.clone(), source.first_entry);
        assert!(rows.end <= vector.len().saturating_sub(entry) && rows.end <= source.row_shifts.len());
        let step = padded(self.digits) * ROWS * BLOCK;
        let mut cutter = Cutter::new(&source.panel);
        let mut first = rows.start;
        while first < rows.end {
            let count = CHUNK.min(rows.end - first);
            let mut lanes = [0u8; CHUNK];
            for (offset, lanes) in lanes.iter_mut().enumerate().take(count) {
                let row = first + offset;
                let digits = &mut cut[offset / ROWS * step + offset % ROWS * BLOCK..(offset / ROWS + 1) * step];
                let CutLanes { signs, .. } = cutter.next_row_of(u8::MAX, source.row_shifts[row], digits);
                *lanes = signs ^ if vector.is_negative(entry + row) { u8::MAX } else { 0 };
                complement(digits, self.digits, *lanes);
            }
            self.add(cut, step, entry + first, &lanes[..count], vector);
            first += count;
        }
    }

    /// Adds rows that meet the vector's entries from `first` on, one for each of `lanes`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn add(&mut self, cut: &[u64], step: usize, first: usize, lanes: &[u8], vector: &FixedVector) {
        // A column takes `digits` low and as many high halves of a row, and the carry.
        if (self.rows + lanes.len() + 1) * 2 * self.digits >= 4095 {
            self.carry();
        }
        self.rows += lanes.len();
        for group in (first_column(self.digits)..2 * self.digits).step_by(GROUP) {
            self.add_group(cut, step, &ProductGroup { first, rows: lanes.len(), column: group }, vector);
        }
        for at in 0..self.digits {
            let raised = at.saturating_sub(first_column(self.digits));
            let slots = [&mut self.negatives[at * BLOCK..][..BLOCK], &mut self.raised[raised * BLOCK..][..BLOCK]];
            // SAFETY: the slots have 8 words.
            unsafe {
                let mut sum = _mm512_setzero_si512();
                for (offset, &lanes) in lanes.iter().enumerate() {
                    let digit = _mm512_set1_epi64(vector.padded(first + offset)[PADDING + at] as i64);
                    sum = _mm512_mask_add_epi64(sum, lanes, sum, digit);
                }
                for slot in slots {
                    let before = _mm512_loadu_si512(slot.as_ptr().cast());
                    _mm512_storeu_si512(slot.as_mut_ptr().cast(), _mm512_add_epi64(before, sum));
                }
            }
        }
    }

    /// The columns `group .. group + GROUP` of the products of some rows.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn add_group(&mut self, cut: &[u64], step: usize, group: &ProductGroup, vector: &FixedVector) {
        let (&ProductGroup { first, rows, column: group }, digits) = (group, self.digits);
        let zero = _mm512_setzero_si512();
        let (mut lo, mut hi) = ([zero; GROUP], [zero; GROUP]);
        let range = (group + 1).saturating_sub(digits)..(group + GROUP).min(digits);
        for offset in 0..rows {
            let entry = vector.padded(first + offset);
            let own = &cut[offset / ROWS * step + offset % ROWS * BLOCK..];
            assert!(own.len() > digits * ROWS * BLOCK && entry.len() == digits + 2 * PADDING);
            for at in range.clone() {
                // SAFETY: `at < digits`, asserted to lie in `own`; `group + column - at` lies between `1 - GROUP` and
                // `digits + GROUP - 2`, inside the padded entry.
                unsafe {
                    let value = _mm512_loadu_si512(own.as_ptr().add((at + 1) * ROWS * BLOCK).cast());
                    let factors = entry.as_ptr().add(PADDING + group - at);
                    for column in 0..GROUP {
                        let factor = _mm512_set1_epi64(*factors.add(column) as i64);
                        lo[column] = _mm512_madd52lo_epu64(lo[column], value, factor);
                        hi[column] = _mm512_madd52hi_epu64(hi[column], value, factor);
                    }
                }
            }
        }
        let slots = &mut self.products[(group - first_column(digits)) * BLOCK..][..(GROUP + 1) * BLOCK];
        for column in 0..=GROUP {
            let mut sum = if column < GROUP { lo[column] } else { zero };
            if column > 0 {
                sum = _mm512_add_epi64(sum, hi[column - 1]);
            }
            let slot = slots[column * BLOCK..][..BLOCK].as_mut_ptr();
            // SAFETY: the slot has 8 words.
            unsafe { _mm512_storeu_si512(slot.cast(), _mm512_add_epi64(_mm512_loadu_si512(slot.cast()), sum)) };
        }
    }

    /// Makes all columns digits again; the last one takes the remainder.
    fn carry(&mut self) {
        for columns in [&mut self.products, &mut self.negatives, &mut self.raised] {
            let last = columns.len() / BLOCK - 1;
            for at in 0..last {
                for lane in 0..BLOCK {
                    let word = columns[at * BLOCK + lane];
                    columns[at * BLOCK + lane] = word & MASK;
                    columns[(at + 1) * BLOCK + lane] += word >> DIGIT_BITS;
                }
            }
        }
        self.rows = 0;
    }

    /// The sum of one lane, after a carry.
    fn value(&self, lane: usize) -> Integer {
        let from_first = join(&self.products, lane) + join(&self.raised, lane);
        let negatives = join(&self.negatives, lane) << (DIGIT_BITS * self.digits as u32);
        (from_first << (DIGIT_BITS * first_column(self.digits) as u32)) - negatives
    }
}

/// The integer of one lane of columns that are digits; the last may have more bits.
fn join(columns: &[u64], lane: usize) -> Integer {
    let count = columns.len() / BLOCK;
    let mut limbs = vec![0u64; (count * DIGIT_BITS as usize).div_ceil(64) + 2];
    for at in 0..count {
        let (limb, shift) = (at * DIGIT_BITS as usize / 64, at * DIGIT_BITS as usize % 64);
        let wide = u128::from(columns[at * BLOCK + lane]) << shift;
        limbs[limb] |= wide as u64;
        limbs[limb + 1] |= (wide >> 64) as u64;
    }
    Integer::from_digits(&limbs, Order::Lsf)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::x86_64::ifma52::probe;
    use crate::kernels::{PanelSource, dots::by_limbs};
    use crate::matrix::Matrix;
    use rug::{Float, rand::RandState};

    #[test]
    fn the_sums_are_those_of_limbs() {
        if probe().is_err() {
            return println!("skipped: no IFMA");
        }
        let mut rng = RandState::new();
        rng.seed(&Integer::from(3));
        for bits in [20u32, 52, 53, 104, 300, 1042, 4100] {
            for (rows, cols) in [(0usize, 3usize), (1, 8), (5, 1), (17, 8), (130, 8)] {
                let mut random = || {
                    let value = Float::with_val(bits, Float::random_bits(&mut rng)) - 0.5f64;
                    value >> rng.below(80)
                };
                let values = (0..rows * cols).map(|_| random()).collect::<Vec<_>>();
                let matrix = Matrix::from_floats(rows, cols, bits, &values).unwrap();
                let shifts = (0..cols).map(|_| i64::from(bits) - 3).collect::<Vec<_>>();
                let row_shifts = (0..rows).map(|row| row as i64 % 4).collect::<Vec<_>>();
                let first_entry = cols % 3 * 11;
                let mut vector = FixedVector::new(first_entry + rows + 1, bits + 1);
                for row in 0..vector.len() {
                    let size = Integer::from(Integer::random_bits(bits, &mut rng));
                    vector.set(row, row % 3 == 0, size.as_limbs());
                }
                let source = |rows| {
                    let panel = PanelSource { view: matrix.view(), columns: 0..cols, rows, shifts: &shifts };
                    DotSource { panel, row_shifts: &row_shifts, first_entry }
                };
                let mut want = [Integer::ZERO; BLOCK];
                by_limbs(&[source(0..rows)], &vector, &mut want);
                for cut in [0, rows / 3, rows] {
                    let sources = [source(0..cut), source(cut..rows)];
                    let mut got = [1, 2].map(|_| [1; BLOCK].map(|_| Integer::from(7)));
                    by_limbs(&sources, &vector, &mut got[0]);
                    // SAFETY: `probe` found the instructions.
                    unsafe { dots(&sources, &vector, &mut got[1]) };
                    assert_eq!(got, [want.clone(), want.clone()], "{bits} bits, {rows} x {cols}, cut at {cut}");
                }
            }
        }
    }
}
