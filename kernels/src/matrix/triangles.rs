//! Whether the triangle that a caller does not name agrees with the one that is named.
//!
//! A caller who names a triangle of a full matrix may hold a matrix that is not symmetric, and would get a right answer
//! for another matrix. [`triangle_conflict`] finds that: the other triangle has to be empty, or the mirror image up to
//! the rounding of the input. Comparisons are exact. Independent of: files, options, messages.

use crate::math::float::{FloatRef, Head, LIMB_BITS};
use crate::matrix::{EntryIndex, MatrixView, Uplo};
use rug::{Float, float::Round};
use std::cmp::Ordering;

/// Rows and columns of the blocks in which triangles are compared: both stay in the nearest cache.
const BLOCK: usize = 16;

/// Two mirrored entries that show that the triangles of a matrix contradict each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TriangleConflict {
    /// Row, from 0, of the entry in the selected triangle.
    pub row: usize,
    /// Its column.
    pub column: usize,
    /// Whether all entries of the selected triangle outside the diagonal are zero.
    pub named_is_zero: bool,
}

/// Compares mirrored entries in any order, and keeps the first pair that does not fit, column by column.
pub struct TriangleCheck {
    /// Bits to which the input was rounded.
    bits: u32,
    named_is_zero: bool,
    /// Column and row of the first entry of the other triangle that is not 0.
    other: Option<(usize, usize)>,
    /// Column and row of the first pair that differs by more than rounding.
    different: Option<(usize, usize)>,
}

impl TriangleCheck {
    /// A comparison without entries, for a matrix whose entries are known to `bits` bits.
    pub fn new(bits: u32) -> TriangleCheck {
        TriangleCheck { bits, named_is_zero: true, other: None, different: None }
    }

    /// Adds the entry `at` of the selected lower triangle, its mirror image, and the diagonal entries of its row and
    /// column.
    pub fn pair(&mut self, at: EntryIndex, named: FloatRef<'_>, other: FloatRef<'_>, diagonal: [FloatRef<'_>; 2]) {
        let EntryIndex { row, col: column } = at;
        let is_first = |known: Option<(usize, usize)>| known.is_none_or(|known| (column, row) < known);
        self.named_is_zero &= named.head.is_zero();
        if !other.head.is_zero() && is_first(self.other) {
            self.other = Some((column, row));
        }
        if named != other && is_first(self.different) && differ(named, other, diagonal, self.bits) {
            self.different = Some((column, row));
        }
    }

    /// The pair to show, in the lower triangle; `None` if the triangles match: the other one is zero, or all pairs are
    /// equal up to rounding.
    pub fn conflict(self) -> Option<TriangleConflict> {
        let first = self.other?;
        let found = if self.named_is_zero { Some(first) } else { self.different };
        found.map(|(column, row)| TriangleConflict { row, column, named_is_zero: self.named_is_zero })
    }
}

/// Whether the triangle other than `uplo` contradicts the mirror image of `uplo`.
///
/// The triangle other than `uplo` may be entirely zero, as in a file that stores only one triangle. Otherwise the
/// selected triangle must have a nonzero entry outside the diagonal, and `|a_ij - a_ji| <= 2^(2-b) sqrt(|a_ii a_jj|)`
/// must hold for all pairs, where `b` is `bits`, the precision of the input: entries of a symmetric positive definite
/// matrix that were rounded one by one differ by less. The triangle other than `uplo` is read from `other`, of the same
/// shape; both are square.
///
/// Cost: one comparison for each pair of entries.
pub fn triangle_conflict(
    named: MatrixView<'_>,
    other: MatrixView<'_>,
    uplo: Uplo,
    bits: u32,
) -> Option<TriangleConflict> {
    let is_upper = uplo == Uplo::Upper;
    let (named, other) = if is_upper { (named.transposed(), other.transposed()) } else { (named, other) };
    let order = named.rows();
    assert!([named.cols(), other.rows(), other.cols()] == [order; 3], "symmetric matrices are square");
    let mut check = TriangleCheck::new(bits);
    let starts = || (0..order).step_by(BLOCK);
    for (first_col, first_row) in starts().flat_map(|col| (col..order).step_by(BLOCK).map(move |row| (col, row))) {
        for col in first_col..(first_col + BLOCK).min(order) {
            for row in first_row.max(col + 1)..(first_row + BLOCK).min(order) {
                let diagonal = [named.get(row, row), named.get(col, col)];
                check.pair(EntryIndex { row, col }, named.get(row, col), other.get(col, row), diagonal);
            }
        }
    }
    let found = check.conflict()?;
    let (row, column) = if is_upper { (found.column, found.row) } else { (found.row, found.column) };
    Some(TriangleConflict { row, column, ..found })
}

/// Whether `|x - y| > 2^(2-b) sqrt(|d_1 d_2|)`, exactly.
///
/// Squares of the significands are compared; exponents are counted separately, so that none overflows.
fn differ(x: FloatRef<'_>, y: FloatRef<'_>, [d1, d2]: [FloatRef<'_>; 2], bits: u32) -> bool {
    let is_smaller = |left: FloatRef<'_>, right: FloatRef<'_>| {
        left.head.is_zero() || !right.head.is_zero() && left.head.exponent() < right.head.exponent()
    };
    let (large, small) = if is_smaller(x, y) { (y, x) } else { (x, y) };
    if large.head.is_zero() {
        return false;
    }
    let significand_bits = [large, small, d1, d2].iter().map(|entry| entry.limbs.len()).max().unwrap_or(1) as u32;
    let significand_bits = significand_bits * LIMB_BITS;
    // A number that is smaller than the last bit of either square counts only by its sign.
    let reach = 2 * i64::from(significand_bits) + 8;
    let gap = (small.head.exponent() - large.head.exponent()).max(-reach);
    let (large_part, small_part) = (at(large, 0, significand_bits), at(small, gap, significand_bits));
    let difference = exact(3 * significand_bits + 16, &large_part - &small_part);
    if difference.is_zero() {
        return false;
    }
    let square = exact(2 * difference.prec(), &difference * &difference);
    let (one, two) = (at(d1, 0, significand_bits), at(d2, 0, significand_bits));
    let bound = exact(2 * significand_bits, &one * &two).abs();
    if bound.is_zero() {
        return true;
    }
    let exponent = |value: &Float| i64::from(value.get_exp().expect("a number that is not 0"));
    let scale = 4 - 2 * i64::from(bits) + d1.head.exponent() + d2.head.exponent();
    let (of_square, of_bound) = (exponent(&square) + 2 * large.head.exponent(), exponent(&bound) + scale);
    match of_square.cmp(&of_bound) {
        Ordering::Equal => {
            let normal = |value: Float| {
                let shift = value.get_exp().expect("a number that is not 0");
                value >> shift
            };
            normal(square) > normal(bound)
        }
        other => other == Ordering::Greater,
    }
}

/// The number with another exponent.
fn at(entry: FloatRef<'_>, exponent: i64, bits: u32) -> Float {
    let head = if entry.head.is_zero() { Head::ZERO } else { Head::new(entry.head.is_negative(), exponent) };
    FloatRef { head, ..entry }.to_float(bits)
}

/// A sum or product at a precision that holds it (asserted).
fn exact<T>(bits: u32, value: T) -> Float
where
    Float: rug::ops::AssignRound<T, Round = Round, Ordering = Ordering>,
{
    let (value, rounding) = Float::with_val_round(bits, value, Round::Nearest);
    assert!(rounding == Ordering::Equal, "{bits} bits hold the exact value");
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;

    fn conflict(entries: &[f64], uplo: Uplo, bits: u32) -> Option<TriangleConflict> {
        let order = entries.len().isqrt();
        // Written row by row, as one reads it.
        let matrix = Matrix::from_f64s(order, order, 120, entries).unwrap();
        triangle_conflict(matrix.transposed(), matrix.transposed(), uplo, bits)
    }

    fn at_place(row: usize, column: usize, named_is_zero: bool) -> Option<TriangleConflict> {
        Some(TriangleConflict { row, column, named_is_zero })
    }

    #[test]
    fn a_general_matrix_is_found_out_whichever_triangle_is_named() {
        let upper_only = [4.0, 1.0, 0.0, 3.0];
        assert_eq!(conflict(&upper_only, Uplo::Lower, 53), at_place(1, 0, true));
        assert_eq!(conflict(&upper_only, Uplo::Upper, 53), None);
        let full = [4.0, 1.0, 7.0, 2.0, 5.0, 6.0, 7.0, 8.0, 9.0];
        assert_eq!(conflict(&full, Uplo::Lower, 53), at_place(1, 0, false));
        assert_eq!(conflict(&full, Uplo::Upper, 53), at_place(0, 1, false));
        assert_eq!(conflict(&[4.0, 1.0, 1.0, 3.0], Uplo::Lower, 53), None);
        assert_eq!(conflict(&[4.0, 0.0, 0.0, 3.0], Uplo::Lower, 53), None);
        assert_eq!(conflict(&[], Uplo::Lower, 53), None);
        // One difference in any block of a matrix of several.
        for (order, (row, col)) in [(16, (15, 3)), (17, (16, 15)), (40, (35, 20))] {
            let mut entries = vec![0.5; order * order];
            entries[row * order + col] = 0.75;
            assert_eq!(conflict(&entries, Uplo::Lower, 53), at_place(row, col, false), "{order}");
        }
    }

    #[test]
    fn a_zero_triangle_beside_a_tiny_one_is_refused() {
        let tiny = 2f64.powi(-1000);
        assert_eq!(conflict(&[4.0, tiny, 0.0, 3.0], Uplo::Lower, 53), at_place(1, 0, true));
        assert_eq!(conflict(&[4.0, tiny, 0.0, 3.0], Uplo::Upper, 53), None);
    }

    /// The bound is `2^(2-b) sqrt(a_ii a_jj)`, met exactly and exceeded by one unit.
    #[test]
    fn differences_up_to_the_rounding_of_the_input_pass() {
        for (d1, d2, root) in [(4.0, 9.0, 6.0), (-4.0, 9.0, 6.0), (2f64.powi(600), 2f64.powi(-200), 2f64.powi(200))] {
            for bits in [2, 10, 40] {
                let bound = root * 2f64.powi(2 - bits);
                let more = bound * (1.0 + f64::EPSILON);
                // One entry is the difference, as the other is 0 or too small to be added to a double.
                for (sign, other) in [(1.0, 0.0), (-1.0, 0.0), (1.0, 2f64.powi(-900)), (-1.0, 2f64.powi(-900))] {
                    let entries = |size: f64| [d1, other, 1.0, sign * size, d2, 0.0, 1.0, 0.0, 1.0];
                    let passes = conflict(&entries(bound), Uplo::Lower, bits as u32).is_none();
                    assert_eq!(passes, other == 0.0 || sign > 0.0, "{d1} {d2} {bits} {sign} {other}");
                    let found = conflict(&entries(more), Uplo::Upper, bits as u32);
                    assert_eq!(found, at_place(0, 1, false), "{d1} {d2} {bits} {sign} {other}");
                }
            }
        }
    }

    #[test]
    fn exponents_at_the_ends_of_their_range_do_not_overflow() {
        use crate::matrix::MAXIMUM_EXPONENT;
        let far = (MAXIMUM_EXPONENT - 1) as i32;
        let power = |exponent: i32| Float::with_val(64, 1) << exponent;
        let mut matrix = Matrix::identity(2, 64).unwrap();
        matrix.set_float(1, 0, &power(far)).unwrap();
        matrix.set_float(0, 1, &power(-far)).unwrap();
        let find = |matrix: &Matrix| triangle_conflict(matrix.view(), matrix.view(), Uplo::Lower, 64).is_some();
        assert!(find(&matrix));
        for at in 0..2 {
            matrix.set_float(at, at, &power(far)).unwrap();
        }
        assert!(find(&matrix), "2^far is more than 2^(2-64) 2^far");
        matrix.set_float(1, 0, &power(-far + 1)).unwrap();
        assert!(!find(&matrix), "both are far below the diagonal");
    }

    /// Matrices of different precisions hold the same numbers in other limbs.
    #[test]
    fn triangles_of_two_matrices() {
        let named = Matrix::from_f64s(2, 2, 300, &[4.0, 1.5, 0.0, 3.0]).unwrap();
        let other = Matrix::from_f64s(2, 2, 53, &[0.0, 0.0, 1.5, 0.0]).unwrap();
        assert_eq!(triangle_conflict(named.view(), other.view(), Uplo::Lower, 300), None);
    }
}
