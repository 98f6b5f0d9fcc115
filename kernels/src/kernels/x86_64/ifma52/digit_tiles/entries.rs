//! Finished cells as magnitudes and signs.

use super::super::reconstruct::pack_group;
use super::EntryDigits;
use crate::plan::BLOCK;
use std::arch::x86_64::*;

/// The digits of the magnitudes of a finished cell, and its signs.
#[target_feature(enable = "avx512f")]
pub fn digits(digits: EntryDigits, cell: &[u64], magnitudes: &mut [u64]) -> u8 {
    let mask = _mm512_set1_epi64((1 << 52) - 1);
    let (cells, out) = (cell.chunks_exact(BLOCK), magnitudes.chunks_exact_mut(BLOCK));
    // SAFETY: the cell has more vectors than digits, here and below; chunks have 8 words.
    let signs = unsafe { _mm512_loadu_si512(cell[digits.count * BLOCK..][..BLOCK].as_ptr().cast()) };
    let signs = _mm512_test_epi64_mask(signs, signs);
    let mut carry = _mm512_maskz_set1_epi64(signs, 1);
    for (from, to) in cells.zip(out).take(digits.count) {
        // SAFETY: as above.
        unsafe {
            let digit = _mm512_loadu_si512(from.as_ptr().cast());
            let sum = _mm512_add_epi64(_mm512_mask_andnot_epi64(digit, signs, digit, mask), carry);
            carry = _mm512_srli_epi64::<52>(sum);
            _mm512_storeu_si512(to.as_mut_ptr().cast(), _mm512_and_si512(sum, mask));
        }
    }
    signs
}

/// The 8 entries of a finished cell.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub fn limbs(digits: EntryDigits, cell: &[u64], magnitudes: &mut [u64]) -> u8 {
    assert!(cell.len() >= digits.cell_words());
    let limbs = magnitudes.len() / BLOCK;
    let mask = _mm512_set1_epi64((1 << 52) - 1);
    // SAFETY: the cell has more vectors than digits (asserted), here and below.
    let signs = unsafe { _mm512_loadu_si512(cell.as_ptr().add(digits.count * BLOCK).cast()) };
    let signs = _mm512_test_epi64_mask(signs, signs);
    let mut carry = _mm512_maskz_set1_epi64(signs, 1);
    for group in (0..digits.count).step_by(8) {
        let rows = std::array::from_fn(|at| match group + at < digits.count {
            true => {
                // SAFETY: as above.
                let digit = unsafe { _mm512_loadu_si512(cell.as_ptr().add((group + at) * BLOCK).cast()) };
                let sum = _mm512_add_epi64(_mm512_mask_andnot_epi64(digit, signs, digit, mask), carry);
                carry = _mm512_srli_epi64::<52>(sum);
                _mm512_and_si512(sum, mask)
            }
            false => _mm512_setzero_si512(),
        });
        pack_group(rows, group / 8, limbs, magnitudes);
    }
    signs
}
