//! Compares two matrices entry by entry: are they equal, and if not, where and by how much they differ.
//!
//! Equality is of values: the same numbers at different precisions are equal. Indices count from 0, those printed
//! from 1, as in Matrix Market files. Does not know: files.

use crate::error::{Error, Result};
use crate::math::float::FloatRef;
use crate::matrix::MatrixView;
use rug::Float;
use rug::ops::CompleteRound;
use std::fmt;

/// Bits of the absolute and relative differences.
const DIFFERENCE_BITS: u32 = 64;

/// One entry in which two matrices differ.
#[derive(Clone, PartialEq, Debug)]
pub struct Difference {
    /// Row, from 0.
    pub row: usize,
    /// Column, from 0.
    pub column: usize,
    /// The entry of the first matrix, exactly.
    pub left: Float,
    /// The entry of the second matrix, exactly.
    pub right: Float,
    /// `|left - right|`, rounded to 64 bits; infinite where it leaves MPFR's range.
    pub absolute: Float,
    /// `|left - right| / max(|left|, |right|)`, to 63 bits; at most 2.
    pub relative: Float,
}

/// What a comparison found. The three differences are there exactly where `differing_entries` is not 0.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Comparison {
    /// Rows of both matrices.
    pub rows: usize,
    /// Columns of both matrices.
    pub cols: usize,
    /// Number of entries in which they differ.
    pub differing_entries: u64,
    /// The first difference, column by column.
    pub first: Option<Difference>,
    /// The (first) largest absolute difference.
    pub largest_absolute: Option<Difference>,
    /// The (first) largest relative difference.
    pub largest_relative: Option<Difference>,
}

impl Comparison {
    /// Whether all entries are equal.
    pub fn is_equal(&self) -> bool {
        self.differing_entries == 0
    }

    fn add(&mut self, difference: Difference) {
        self.differing_entries += 1;
        if self.largest_absolute.as_ref().is_none_or(|largest| difference.absolute > largest.absolute) {
            self.largest_absolute = Some(difference.clone());
        }
        if self.largest_relative.as_ref().is_none_or(|largest| difference.relative > largest.relative) {
            self.largest_relative = Some(difference.clone());
        }
        self.first.get_or_insert(difference);
    }
}

/// Compares `left` with `right`, which may have different precisions.
///
/// Cost: equal entries are compared limb by limb, different ones through MPFR.
///
/// # Errors
/// [`Error::ShapeMismatch`].
pub fn compare<'a, 'b>(left: impl Into<MatrixView<'a>>, right: impl Into<MatrixView<'b>>) -> Result<Comparison> {
    let (left, right) = (left.into(), right.into());
    if (left.rows(), left.cols()) != (right.rows(), right.cols()) {
        return Err(Error::shape_mismatch("compare", (left.rows(), left.cols()), (right.rows(), right.cols())));
    }
    let mut comparison = Comparison { rows: left.rows(), cols: left.cols(), ..Comparison::default() };
    // Without rows there is nothing to visit, however many columns are claimed.
    for column in 0..if left.rows() == 0 { 0 } else { left.cols() } {
        for row in 0..left.rows() {
            let (a, b) = (left.get(row, column), right.get(row, column));
            if !same_value(a, b) {
                let (a, b) = (a.to_float(left.precision_bits()), b.to_float(right.precision_bits()));
                comparison.add(difference((row, column), a, b));
            }
        }
    }
    Ok(comparison)
}

/// Whether two numbers of any precisions are the same.
fn same_value(a: FloatRef<'_>, b: FloatRef<'_>) -> bool {
    let (long, short) = if a.limbs.len() >= b.limbs.len() { (a, b) } else { (b, a) };
    let (low, high) = long.limbs.split_at(long.limbs.len() - short.limbs.len());
    a.head == b.head && high == short.limbs && low.iter().all(|&limb| limb == 0)
}

fn difference((row, column): (usize, usize), left: Float, right: Float) -> Difference {
    let absolute: Float = (&left - &right).complete(DIFFERENCE_BITS);
    let absolute = absolute.abs();
    // The larger one is made near 1 first, so that the quotient stays in range even where the difference does not.
    let larger = left.get_exp().max(right.get_exp()).unwrap_or(0);
    let size = |value: &Float| (value.clone() >> larger).abs();
    let scaled: Float = (&(left.clone() >> larger) - &(right.clone() >> larger)).complete(DIFFERENCE_BITS);
    let largest = size(&left).max(&size(&right));
    let relative = Float::with_val(DIFFERENCE_BITS, scaled.abs() / largest);
    Difference { row, column, left, right, absolute, relative }
}

/// One line where the matrices are equal, else four.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, cols, count) = (self.rows, self.cols, self.differing_entries);
        let (Some(first), Some(absolute), Some(relative)) =
            (&self.first, &self.largest_absolute, &self.largest_relative)
        else {
            return write!(f, "equal: all {} entries of the {rows} x {cols} matrices", rows as u128 * cols as u128);
        };
        writeln!(f, "different: {count} of {} entries of the {rows} x {cols} matrices", rows as u128 * cols as u128)?;
        writeln!(f, "first:            {first}")?;
        writeln!(f, "largest absolute: {absolute}")?;
        write!(f, "largest relative: {relative}")
    }
}

/// Row and column from 1, both values to 20 digits (more where they agree so far), both differences.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (row, column) = (self.row + 1, self.column + 1);
        // Digits in which the two agree, as the relative difference tells; then a few more.
        let agreeing = -self.relative.get_exp().map_or(0.0, f64::from) * std::f64::consts::LOG10_2;
        let digits = (agreeing.max(0.0) as usize).saturating_add(5).clamp(20, 2000);
        let (left, right) = (&self.left, &self.right);
        write!(f, "row {row}, column {column} (from 1): {left:.digits$e} against {right:.digits$e}, ")?;
        write!(f, "absolute {:.3e}, relative {:.3e}", self.absolute, self.relative)
    }
}
