//! Exact products of a few columns of integers, in digits of 52 bits: eight rows of a column in the lanes of a vector.
//!
//! There are no tables, no primes and no padding except of rows to eight: the products of two columns are summed lane
//! by lane, and the lanes of eight such sums are then added, so that eight entries of the result are in one vector.
//! Carries, signs and rounding are done for all eight together (`sums`, `round`). Layout of a column: `d + 1` vectors
//! with which every sum begins (`offset`), and for each eight rows `d` vectors of digits, of the number plus an offset
//! that makes it positive. Bounds: docs/ALGORITHM.md, "Columns of digits".

pub mod eights;
mod offset;
pub(super) mod round;
mod sums;

use super::digit_tiles::{EntryDigits, magnitudes};
use super::digits::{Cutter, GROUP_DIGITS, ROWS, padded};
use crate::kernels::PanelSource;
use crate::kernels::limbs;
use crate::kernels::x86_64::cpu;
use crate::math::float::limbs_for;
use crate::matrix::{EntryIndex, MatrixView};
use crate::plan::BLOCK;
use round::{Magnitudes, Rounding};
use std::arch::x86_64::*;
use sums::Pair;

/// Entries of the result that are computed together.
pub const ENTRIES: usize = BLOCK;

/// Largest number of digits: longer integers are multiplied faster by others.
const MOST_DIGITS: usize = 48;

const DIGIT_BITS: usize = 52;
const MASK: i64 = (1 << DIGIT_BITS) - 1;

/// The layout of integers of one length in digits. A value exists only if the CPU has the instructions.
#[derive(Clone, Copy)]
pub struct RowLanes {
    digits: EntryDigits,
}

/// Two operands, column after column.
#[derive(Clone, Copy)]
pub struct LaneColumns<'a> {
    /// The operand for the rows of the result.
    pub left: &'a [u64],
    /// The operand for the columns of the result.
    pub right: &'a [u64],
    /// Rows of both.
    pub rows: usize,
}

impl RowLanes {
    /// For integers `|x| <= 2^bits`, and sums of products `|s| <= 2^(2 bits)`; `None` if this processor lacks the
    /// instructions, or if there are too many digits.
    pub fn new(bits: u32) -> Option<RowLanes> {
        cpu::has_ifma52().ok()?;
        let digits = EntryDigits::new(bits);
        (digits.count <= MOST_DIGITS).then_some(RowLanes { digits })
    }

    /// Digits of an integer.
    pub fn digits(&self) -> usize {
        self.digits.count
    }

    /// Words of a column of `rows` rows.
    pub fn column_words(&self, rows: usize) -> usize {
        self.start_words() + rows.div_ceil(BLOCK) * self.eight_words()
    }

    /// Words of scratch for results of `precision_bits` bits.
    pub fn scratch_words(&self, precision_bits: u32) -> usize {
        let rounding = Rounding::new(precision_bits);
        let finish = rounding.scratch_words() + BLOCK * limbs_for(precision_bits);
        (self.sum_words() * BLOCK + finish).max(self.cut_words())
    }

    /// Words of the digits of eight rows of a column.
    fn eight_words(&self) -> usize {
        self.digits.count * BLOCK
    }

    /// Words of the initial value of sums with a column.
    fn start_words(&self) -> usize {
        (self.digits.count + 1) * BLOCK
    }

    /// Words of the sums of a pair of columns.
    fn sum_words(&self) -> usize {
        2 * self.digits.count * BLOCK
    }

    fn cut_words(&self) -> usize {
        padded(self.digits.count).next_multiple_of(GROUP_DIGITS) * ROWS * BLOCK
    }

    /// Writes `round(a_kj * 2^shifts[j])`, to nearest, ties to even, for all columns of a view.
    pub fn cut(&self, view: MatrixView<'_>, shifts: &[i64], out: &mut [u64], scratch: &mut [u64]) {
        assert!(shifts.len() == view.cols() && out.len() >= view.cols() * self.column_words(view.rows()));
        // SAFETY: the CPU has the instructions, as there is a `RowLanes`.
        unsafe { self.cut_columns(view, shifts, out, &mut scratch[..self.cut_words()]) }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi")]
    fn cut_columns(&self, view: MatrixView<'_>, shifts: &[i64], out: &mut [u64], scratch: &mut [u64]) {
        let (rows, words, each) = (view.rows(), self.column_words(view.rows()), self.eight_words());
        out.chunks_exact_mut(words).take(shifts.len()).for_each(|column| column[..self.start_words()].fill(0));
        for first in (0..rows).step_by(BLOCK) {
            let columns = 0..(rows - first).min(BLOCK);
            let live = u8::MAX >> (BLOCK - columns.end);
            let eight = view.block(first..first + columns.end, 0..view.cols()).expect("rows of the view").transposed();
            let mut cutter =
                Cutter::new(&PanelSource { view: eight, columns, rows: 0..view.cols(), shifts: &[0; BLOCK] });
            for (column, &shift) in out.chunks_exact_mut(words).zip(shifts) {
                let cut = cutter.next_row_of(u8::MAX, shift, scratch);
                let (start, eights) = column.split_at_mut(self.start_words());
                let cell = &mut eights[first / BLOCK * each..][..each];
                // As many digits were cut, behind the one for rounding.
                offset::store(&scratch[ROWS * BLOCK..], cut, live, cell, start);
                if (first / BLOCK + 1).is_multiple_of(offset::MOST_EIGHTS) {
                    offset::carry(self.digits.count, start);
                }
            }
        }
        out.chunks_exact_mut(words)
            .take(shifts.len())
            .for_each(|column| offset::finish(self.digits.count, rows, column));
    }

    /// Computes the sums of products of up to eight entries of the result, over at least one row: the magnitudes stay
    /// in `scratch`, one in each lane; returns the negative lanes.
    pub fn multiply(&self, columns: LaneColumns<'_>, entries: &[EntryIndex], scratch: &mut [u64]) -> u8 {
        let (words, each) = (self.column_words(columns.rows), self.sum_words());
        assert!(columns.rows > 0 && entries.len() <= ENTRIES);
        let (digits, sums) = scratch.split_at_mut(each);
        let sums = &mut sums[..each * (ENTRIES - 1)];
        // The first sums are turned into the digits in their place.
        for (at, &EntryIndex { row: left, col: right }) in entries.iter().enumerate() {
            let (x, y) = (&columns.left[left * words..][..words], &columns.right[right * words..][..words]);
            let sums = if at == 0 { &mut digits[..] } else { &mut sums[(at - 1) * each..][..each] };
            // SAFETY: the CPU has the instructions; the columns and the sums have their words.
            unsafe {
                let pair = Pair::new(self.digits.count, x.as_ptr(), y.as_ptr(), columns.rows);
                sums::multiply(self.digits, pair, sums.as_mut_ptr());
            }
        }
        // SAFETY: as above; the sums of all eight follow one another in the scratch, and each vector of the first is
        // read before it is written.
        unsafe {
            let sums = scratch[..each * ENTRIES].as_mut_ptr();
            sums::add_lanes(sums, 2 * self.digits.count, sums);
            magnitudes(self.digits, sums, sums)
        }
    }

    /// Rounds the magnitudes that [`RowLanes::multiply`] has left, times powers of two: the heads, and the significands
    /// of all eight one after the other.
    pub fn round<'s>(
        &self,
        signs: u8,
        exponents: &[i64; ENTRIES],
        precision_bits: u32,
        heads: &mut [u64; ENTRIES],
        scratch: &'s mut [u64],
    ) -> &'s [u64] {
        let rounding = Rounding::new(precision_bits);
        let (digits, rest) = scratch.split_at_mut(self.sum_words());
        let (window, rest) = rest.split_at_mut(rounding.scratch_words());
        let limbs = &mut rest[..ENTRIES * limbs_for(precision_bits)];
        // SAFETY: the CPU has the instructions.
        unsafe { rounding.round(Magnitudes { digits, exponents, signs }, heads, limbs, window) };
        limbs
    }

    /// Limbs of a magnitude.
    pub fn limbs(&self) -> usize {
        (2 * self.digits.count * DIGIT_BITS).div_ceil(64)
    }

    /// The magnitude of one lane, written into the whole of `out`, which has [`RowLanes::limbs`] limbs.
    pub fn magnitude(&self, lane: usize, scratch: &[u64], out: &mut [u64]) {
        limbs::from_lane(&scratch[..self.sum_words()], lane, out);
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load(digits: &[u64], at: usize) -> __m512i {
    let digit = &digits[at * BLOCK..][..BLOCK];
    // SAFETY: the slice has 8 words.
    unsafe { _mm512_loadu_si512(digit.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store(digits: &mut [u64], at: usize, value: __m512i) {
    let digit = &mut digits[at * BLOCK..][..BLOCK];
    // SAFETY: the slice has 8 words.
    unsafe { _mm512_storeu_si512(digit.as_mut_ptr().cast(), value) };
}

#[cfg(test)]
mod tests;
