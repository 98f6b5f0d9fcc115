//! Finished cells as magnitudes and signs.

use super::super::reconstruct::pack_group;
use super::EntryDigits;
use super::column::Raise;
use crate::plan::BLOCK;
use std::arch::x86_64::*;

/// The magnitudes of a finished cell, digit by digit, without the zeros below them.
pub struct CellMagnitudes<'a> {
    digits: EntryDigits,
    cell: &'a [u64],
    /// The lanes of negative entries.
    pub signs: u8,
    raise: Raise,
    carry: __m512i,
    /// The next digit that is read.
    next: usize,
    /// The digit read last.
    digit: __m512i,
}

impl<'a> CellMagnitudes<'a> {
    /// Before the first digit.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn new(digits: EntryDigits, cell: &'a [u64]) -> CellMagnitudes<'a> {
        assert!(cell.len() >= digits.cell_words());
        // SAFETY: the vector of signs follows the digits of the cell (asserted).
        let signs = unsafe { _mm512_loadu_si512(cell.as_ptr().add(digits.count * BLOCK).cast()) };
        let signs = _mm512_test_epi64_mask(signs, signs);
        let (carry, digit) = (_mm512_maskz_set1_epi64(signs, 1), _mm512_setzero_si512());
        let mut all = CellMagnitudes { digits, cell, signs, raise: Raise::new(digits.below), carry, next: 0, digit };
        all.read();
        all
    }

    /// Reads a digit; 0 behind the last.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn read(&mut self) {
        self.digit = _mm512_setzero_si512();
        if self.next < self.digits.count {
            let mask = _mm512_set1_epi64((1 << 52) - 1);
            // SAFETY: one of the digits of the cell.
            let digit = unsafe { _mm512_loadu_si512(self.cell.as_ptr().add(self.next * BLOCK).cast()) };
            let sum = _mm512_add_epi64(_mm512_mask_andnot_epi64(digit, self.signs, digit, mask), self.carry);
            self.carry = _mm512_srli_epi64::<52>(sum);
            self.digit = _mm512_and_si512(sum, mask);
        }
        self.next += 1;
    }

    /// The next digit of the magnitudes.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn take(&mut self) -> __m512i {
        let digit = self.digit;
        self.read();
        self.raise.undone(digit, self.digit)
    }
}

/// The digits of the magnitudes of a finished cell, and its signs.
#[target_feature(enable = "avx512f")]
pub fn digits(digits: EntryDigits, cell: &[u64], magnitudes: &mut [u64]) -> u8 {
    let mut all = CellMagnitudes::new(digits, cell);
    for to in magnitudes.chunks_exact_mut(BLOCK).take(digits.count) {
        let digit = all.take();
        // SAFETY: the chunk has 8 words.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), digit) };
    }
    all.signs
}

/// The 8 entries of a finished cell.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub fn limbs(digits: EntryDigits, cell: &[u64], magnitudes: &mut [u64]) -> u8 {
    let (limbs, mut all) = (magnitudes.len() / BLOCK, CellMagnitudes::new(digits, cell));
    for group in (0..digits.count).step_by(8) {
        let mut rows = [_mm512_setzero_si512(); 8];
        rows.iter_mut().take(digits.count - group).for_each(|row| *row = all.take());
        pack_group(rows, group / 8, limbs, magnitudes);
    }
    all.signs
}
