//! Takes the entries of a tile in, from a matrix or from integers: fixed-point digits straight from the limbs, then
//! their residues.

use super::super::digits::{Cutter, GROUP_DIGITS, ROWS, cut_integers, padded};
use super::super::micro::Fold;
use super::{FactorTables, FactorTileLayout};
use crate::kernels::PanelSource;
use crate::kernels::tiles::{FinishedEntries, TileShape, TileSource};
use crate::math::float::limbs_for;
use crate::plan::BLOCK;
use std::arch::x86_64::*;
use std::ops::Range;

/// Words of scratch.
pub fn scratch_words(factor: &FactorTables) -> usize {
    let integers = BLOCK * limbs_for(factor.working_bits + 2) + integer_digit_words(factor);
    matrix_digit_words(factor).max(integers)
}

/// Words of digits of entries of a matrix.
fn matrix_digit_words(factor: &FactorTables) -> usize {
    padded(factor.tables.operand_digits) * ROWS * BLOCK
}

/// Words of digits of integers of the factor.
fn integer_digit_words(factor: &FactorTables) -> usize {
    factor.digits.next_multiple_of(GROUP_DIGITS) * ROWS * BLOCK
}

/// See `TileEngine::load`.
#[target_feature(enable = "avx512f,avx512ifma,avx512bw,avx512dq,avx512vbmi")]
pub fn load(factor: &FactorTables, source: &TileSource<'_>, words: &mut [u64], scratch: &mut [u64]) {
    let TileSource { matrix, rows, cols, row_shifts, col_shifts, .. } = source.clone();
    let layout = factor.layout(source.shape());
    assert!(words.len() >= layout.residue_words() && rows.end <= matrix.rows() && cols.end <= col_shifts.len());
    let digits = &mut scratch[..matrix_digit_words(factor)];
    for panel in 0..layout.panels {
        let first = rows.start + panel * BLOCK;
        let columns = first..(first + BLOCK).min(rows.end);
        // First column that the last row of the panel does not have.
        let end = match source.offset() {
            Some(offset) => cols.end.min((columns.end - offset).max(cols.start)),
            None => cols.end,
        };
        clear_from(&layout, panel, end - cols.start, words);
        // Nothing right of the panel's last row is looked at: the view's rows are the columns of the matrix.
        let entries = PanelSource { view: matrix.transposed(), columns, rows: cols.start..end, shifts: row_shifts };
        let mut cutter = Cutter::new(&entries);
        for start in (cols.start..end).step_by(ROWS) {
            let count = ROWS.min(end - start);
            let (mut signs, mut carries) = ([0; ROWS], [0; ROWS]);
            for offset in 0..count {
                let col = start + offset;
                let above = source.offset().map_or(0, |offset| (col + offset).saturating_sub(first));
                let lanes = u8::MAX.checked_shl(above as u32).unwrap_or(0); // rows of the part
                let cut = cutter.next_row_of(lanes, col_shifts[col], &mut digits[offset * BLOCK..]);
                (signs[offset], carries[offset]) = (cut.signs, cut.carries);
            }
            let values = &digits[ROWS * BLOCK..]; // after the digit for rounding
            let group = ColumnGroup { values, digits: factor.tables.operand_digits, signs, carries, count };
            // SAFETY: the columns lie in the tile.
            unsafe {
                let at = words.as_mut_ptr().add(layout.residue(0, panel, start - cols.start));
                residues(factor, &group, at, layout.plane_words());
            }
        }
    }
}

/// See `TileEngine::load_integers`.
#[target_feature(enable = "avx512f,avx512ifma,avx512bw,avx512dq,avx512vbmi")]
pub fn load_integers(
    factor: &FactorTables,
    shape: TileShape,
    mut integers: FinishedEntries<'_>,
    words: &mut [u64],
    scratch: &mut [u64],
) {
    let layout = factor.layout(shape);
    assert!(words.len() >= layout.residue_words());
    let (magnitudes, scratch) = scratch.split_at_mut(BLOCK * integers.limbs);
    let digits = &mut scratch[..integer_digit_words(factor)];
    for panel in 0..layout.panels {
        let end = shape.cols_of(panel);
        clear_from(&layout, panel, end, words);
        for start in (0..end).step_by(ROWS) {
            let count = ROWS.min(end - start);
            let mut signs = [0; ROWS];
            for (offset, signs) in signs.iter_mut().enumerate().take(count) {
                *signs = integers.read(panel, start + offset, magnitudes);
                cut_integers::<{ ROWS * BLOCK }>(magnitudes, &mut digits[offset * BLOCK..]);
            }
            let group = ColumnGroup { values: digits, digits: factor.digits, signs, carries: [0; ROWS], count };
            // SAFETY: the columns lie in the tile.
            unsafe {
                let at = words.as_mut_ptr().add(layout.residue(0, panel, start));
                residues(factor, &group, at, layout.plane_words());
            }
        }
    }
}

/// Zero residues in a panel from column `col` on: above the diagonal, or padding.
fn clear_from(layout: &FactorTileLayout, panel: usize, col: usize, words: &mut [u64]) {
    for prime in 0..layout.primes {
        let (start, end) = (layout.residue(prime, panel, col), layout.residue(prime, panel + 1, 0));
        words[start..end].fill(0);
    }
}

/// Up to `ROWS` columns of digits with their signs and rounding bits.
struct ColumnGroup<'a> {
    /// Digit after digit, the lowest first.
    values: &'a [u64],
    /// Digits of an entry.
    digits: usize,
    signs: [u8; ROWS],
    carries: [u8; ROWS],
    count: usize,
}

/// Residues of a group, `plane_words` from prime to prime.
///
/// # Safety
/// `out` leads to `count` vectors in each plane.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn residues(factor: &FactorTables, group: &ColumnGroup<'_>, out: *mut u64, plane_words: usize) {
    let (count, values) = (group.digits, group.values);
    assert!(values.len() >= count * ROWS * BLOCK);
    // A significand fills about half of the digits, the upper ones where the entry is not small.
    let mask = (1u64 << 52) - 1;
    let is_empty = |digit: &[u64]| digit[..group.count * BLOCK].iter().fold(0, |all, word| all | word) & mask == 0;
    let empty = values.chunks_exact(ROWS * BLOCK).take(count).take_while(|digit| is_empty(digit)).count();
    let digits = empty..count;
    let mut prime = 0;
    while prime < factor.tables.count() {
        // SAFETY: asserted above, and promised by the caller.
        unsafe {
            let at = out.add(prime * plane_words);
            prime += match factor.tables.count() - prime {
                1 => several::<1>(factor, prime, group, digits.clone(), at, plane_words),
                _ => several::<2>(factor, prime, group, digits.clone(), at, plane_words),
            };
        }
    }
}

/// Residues modulo `P` neighbouring primes; returns their number.
///
/// # Safety
/// As [`residues`].
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn several<const P: usize>(
    factor: &FactorTables,
    prime: usize,
    group: &ColumnGroup<'_>,
    digits: Range<usize>,
    out: *mut u64,
    plane_words: usize,
) -> usize {
    // SAFETY: the caller's promise.
    unsafe {
        let sums: [_; P] = factor.radix_sums::<ROWS, P>(prime, group.values.as_ptr(), digits);
        for (which, sums) in sums.into_iter().enumerate() {
            let fold = Fold::new(factor.tables.primes[prime + which]);
            for (offset, (lo, hi)) in sums.into_iter().enumerate().take(group.count) {
                let lo = _mm512_add_epi64(lo, _mm512_maskz_set1_epi64(group.carries[offset], 1));
                let residue = fold.negate(group.signs[offset], fold.fold(lo, hi));
                _mm512_storeu_si512(out.add(which * plane_words + offset * BLOCK).cast(), residue);
            }
        }
    }
    P
}
