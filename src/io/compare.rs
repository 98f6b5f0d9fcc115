//! Compares two matrices entry by entry: are they equal, and if not, where and by how much they differ.
//!
//! Equality is of values: the same numbers at different precisions are equal. Indices count from 0, those printed
//! from 1, as in Matrix Market files. Independent of: files.

use crate::error::{Error, Result};
use crate::math::float::FloatRef;
use crate::matrix::MatrixView;
use crate::options::setters;
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
    /// `|left - right|`, rounded to 64 bits; infinite if it exceeds MPFR's range.
    pub absolute: Float,
    /// `|left - right| / max(|left|, |right|)`, to 63 bits; at most 2.
    pub relative: Float,
}

/// The accepted differences; none by default. An entry is accepted if it meets any of the three bounds.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Tolerance {
    /// `|left - right|` is at most this.
    pub absolute: Option<Float>,
    /// `|left - right| / max(|left|, |right|)` is at most this.
    pub relative: Option<Float>,
    /// `|left - right|` is at most this times the largest entry of both matrices.
    pub of_largest: Option<Float>,
}

setters! { new Tolerance {
    absolute: impl Into<Option<Float>>,
    relative: impl Into<Option<Float>>,
    of_largest: impl Into<Option<Float>>,
} }

impl Tolerance {
    /// `digits` decimal digits in the maximum norm: differences of at most `10^-digits` times the largest entry.
    pub fn digits(digits: u32) -> Tolerance {
        let power = Float::with_val(DIFFERENCE_BITS, Float::u_pow_u(10, digits));
        Tolerance::new().of_largest(power.recip())
    }

    /// Whether all three bounds are 0, so that no difference is accepted.
    pub fn is_none(&self) -> bool {
        *self == Tolerance::default()
    }

    fn admits(&self, difference: &Difference, largest_entry: &Float) -> bool {
        let keeps = |bound: &Option<Float>, found: &Float| bound.as_ref().is_some_and(|bound| found <= bound);
        let of_largest =
            self.of_largest.as_ref().map(|factor| Float::with_val(DIFFERENCE_BITS, factor * largest_entry));
        keeps(&self.absolute, &difference.absolute)
            || keeps(&self.relative, &difference.relative)
            || keeps(&of_largest, &difference.absolute)
    }
}

/// The result of a comparison. The differences are `None` if and only if all entries are equal.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Comparison {
    /// Rows of both matrices.
    pub rows: usize,
    /// Columns of both matrices.
    pub cols: usize,
    /// The accepted differences.
    pub tolerance: Tolerance,
    /// Number of entries in which the matrices differ.
    pub differing_entries: u64,
    /// Number of entries that differ by more than the tolerance.
    pub beyond_entries: u64,
    /// The first difference beyond the tolerance, column by column.
    pub first: Option<Difference>,
    /// The (first) largest absolute difference.
    pub largest_absolute: Option<Difference>,
    /// The (first) largest relative difference.
    pub largest_relative: Option<Difference>,
    /// The largest magnitude of an entry of either matrix, to 64 bits; `None` without entries.
    pub largest_entry: Option<Float>,
}

impl Comparison {
    /// Whether all entries are equal.
    pub fn is_equal(&self) -> bool {
        self.differing_entries == 0
    }

    /// Whether all entries agree within the tolerance.
    pub fn is_within(&self) -> bool {
        self.beyond_entries == 0
    }

    /// Decimal digits in which the matrices agree in the maximum norm: `-log10` of the largest difference relative to
    /// the largest entry, at least 0. Infinite where they are equal.
    pub fn digits(&self) -> f64 {
        match (&self.largest_absolute, &self.largest_entry) {
            (Some(difference), Some(entry)) => {
                agreeing(&Float::with_val(DIFFERENCE_BITS, &difference.absolute / entry))
            }
            _ => f64::INFINITY,
        }
    }

    /// Decimal digits in which the worst entry agrees: `-log10` of the largest relative difference, at least 0.
    /// Infinite where all are equal.
    pub fn entry_digits(&self) -> f64 {
        self.largest_relative.as_ref().map_or(f64::INFINITY, |difference| agreeing(&difference.relative))
    }

    fn add(&mut self, difference: Difference) {
        self.differing_entries += 1;
        if self.largest_absolute.as_ref().is_none_or(|largest| difference.absolute > largest.absolute) {
            self.largest_absolute = Some(difference.clone());
        }
        if self.largest_relative.as_ref().is_none_or(|largest| difference.relative > largest.relative) {
            self.largest_relative = Some(difference.clone());
        }
        let zero = Float::new(DIFFERENCE_BITS);
        if !self.tolerance.admits(&difference, self.largest_entry.as_ref().unwrap_or(&zero)) {
            self.beyond_entries += 1;
            self.first.get_or_insert(difference);
        }
    }
}

/// `-log10` of a ratio, at least 0. Which of two zeros `max` gives depends on the compiler, and so it is not used.
fn agreeing(ratio: &Float) -> f64 {
    let digits = (-Float::with_val(DIFFERENCE_BITS, ratio.log10_ref())).to_f64();
    if digits > 0.0 { digits } else { 0.0 }
}

/// Compares `left` with `right`, which may have different precisions.
///
/// Cost: equal entries are compared limb by limb, different ones through MPFR.
///
/// # Errors
/// [`Error::ShapeMismatch`].
pub fn compare<'a, 'b>(left: impl Into<MatrixView<'a>>, right: impl Into<MatrixView<'b>>) -> Result<Comparison> {
    compare_within(left, right, &Tolerance::default())
}

/// [`compare`] with a tolerance; differences are compared with the bounds after rounding to 64 bits.
///
/// # Errors
/// As [`compare`]; [`Error::InvalidArgument`] for a tolerance that is negative or not a number.
pub fn compare_within<'a, 'b>(
    left: impl Into<MatrixView<'a>>,
    right: impl Into<MatrixView<'b>>,
    tolerance: &Tolerance,
) -> Result<Comparison> {
    let (left, right) = (left.into(), right.into());
    if (left.rows(), left.cols()) != (right.rows(), right.cols()) {
        return Err(Error::shape_mismatch("compare", (left.rows(), left.cols()), (right.rows(), right.cols())));
    }
    let Tolerance { absolute, relative, of_largest } = tolerance;
    let given = [absolute, relative, of_largest];
    if let Some(wrong) = given.into_iter().flatten().find(|bound| bound.is_nan() || bound.is_sign_negative()) {
        return Err(Error::InvalidArgument(format!("the tolerance is {wrong:.3e}, but must be 0 or more")));
    }
    let largest_entry = [left, right].into_iter().filter_map(largest).reduce(|a, b| a.max(&b));
    let mut comparison = Comparison {
        rows: left.rows(),
        cols: left.cols(),
        tolerance: tolerance.clone(),
        largest_entry,
        ..Comparison::default()
    };
    // Without rows there is nothing to visit, however many columns are claimed.
    for column in 0..if left.rows() == 0 { 0 } else { left.cols() } {
        for row in 0..left.rows() {
            let (a, b) = (left.get(row, column), right.get(row, column));
            if !same_value(a, b) {
                let (a, b) = (a.to_float(left.precision_bits()), b.to_float(right.precision_bits()));
                comparison.add(difference(row, column, a, b));
            }
        }
    }
    Ok(comparison)
}

/// The largest magnitude of an entry; `None` without entries.
fn largest(view: MatrixView<'_>) -> Option<Float> {
    let exponent = |value: FloatRef<'_>| if value.head.is_zero() { i64::MIN } else { value.head.exponent() };
    let size = |value: FloatRef<'_>| (exponent(value), value.limbs.last().copied());
    let cols = if view.rows() == 0 { 0 } else { view.cols() };
    let places = (0..cols).flat_map(|col| (0..view.rows()).map(move |row| (row, col)));
    let (row, col) = places.max_by_key(|&(row, col)| size(view.get(row, col)))?;
    Some(Float::with_val(DIFFERENCE_BITS, view.get(row, col).to_float(view.precision_bits())).abs())
}

/// Whether two numbers of any precisions are the same.
fn same_value(a: FloatRef<'_>, b: FloatRef<'_>) -> bool {
    let (long, short) = if a.limbs.len() >= b.limbs.len() { (a, b) } else { (b, a) };
    let (low, high) = long.limbs.split_at(long.limbs.len() - short.limbs.len());
    a.head == b.head && high == short.limbs && low.iter().all(|&limb| limb == 0)
}

fn difference(row: usize, column: usize, left: Float, right: Float) -> Difference {
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

/// One line where the matrices are equal; else what differs, and a summary.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, cols, count) = (self.rows, self.cols, self.differing_entries);
        let all = format!("{} entries of the {rows} x {cols} matrices", rows as u128 * cols as u128);
        let (Some(absolute), Some(relative)) = (&self.largest_absolute, &self.largest_relative) else {
            return write!(f, "equal: all {all}");
        };
        match (self.is_within(), self.tolerance.is_none()) {
            (true, _) => writeln!(f, "equal within the tolerance: all {all}, of which {count} differ")?,
            (false, true) => writeln!(f, "different: {count} of {all}")?,
            (false, false) => {
                writeln!(
                    f,
                    "different: {} of {all} differ by more than the tolerance, {count} differ at all",
                    self.beyond_entries
                )?;
            }
        }
        if let Some(first) = &self.first {
            writeln!(f, "first:            {first}")?;
        }
        writeln!(f, "largest absolute: {absolute}")?;
        writeln!(f, "largest relative: {relative}")?;
        let (digits, entry_digits) = (self.digits(), self.entry_digits());
        write!(f, "digits that agree: {digits:.1} in the maximum norm, {entry_digits:.1} in the worst entry")
    }
}

/// Row and column from 1, both values to 20 digits (more where they agree so far), both differences.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (row, column) = (self.row + 1, self.column + 1);
        // Digits in which the two agree according to the relative difference, and a few more.
        let agreeing = -self.relative.get_exp().map_or(0.0, f64::from) * std::f64::consts::LOG10_2;
        let digits = (agreeing.max(0.0) as usize).saturating_add(5).clamp(20, 2000);
        let (left, right) = (&self.left, &self.right);
        write!(f, "row {row}, column {column} (from 1): {left:.digits$e} against {right:.digits$e}, ")?;
        write!(f, "absolute {:.3e}, relative {:.3e}", self.absolute, self.relative)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;

    fn matrices() -> (Matrix, Matrix) {
        let left = Matrix::from_f64s(2, 2, 60, &[1000.0, 2.0, -1e-3, 0.0]).unwrap();
        // Off by 0.25 of 1000, by 2^-10 of 2, by all of -1e-3.
        let right = Matrix::from_f64s(2, 2, 60, &[1000.25, 2.0 - 2f64.powi(-10), 0.0, 0.0]).unwrap();
        (left, right)
    }

    #[test]
    fn each_tolerance_lets_its_own_differences_pass() {
        let (left, right) = matrices();
        let float = |value: f64| Float::with_val(64, value);
        let beyond = |tolerance: Tolerance| compare_within(&left, &right, &tolerance).unwrap().beyond_entries;
        assert_eq!(compare(&left, &right).unwrap().beyond_entries, 3);
        assert_eq!(beyond(Tolerance::new().absolute(float(0.25))), 0);
        assert_eq!(beyond(Tolerance::new().absolute(float(0.2499))), 1);
        assert_eq!(beyond(Tolerance::new().relative(float(2e-3))), 1);
        assert_eq!(beyond(Tolerance::new().relative(float(1e-3)).absolute(float(1e-3))), 0);
        assert_eq!((beyond(Tolerance::digits(3)), beyond(Tolerance::digits(4))), (0, 1));
        let none = compare_within(&left, &right, &Tolerance::new().relative(float(-1.0)));
        assert!(matches!(none, Err(Error::InvalidArgument(_))));
    }

    #[test]
    fn digits_are_those_of_the_maximum_norm() {
        let (left, right) = matrices();
        let found = compare(&left, &right).unwrap();
        assert!((found.digits() - (1000.25f64 / 0.25).log10()).abs() < 1e-9 && found.entry_digits() == 0.0);
        assert!(found.to_string().ends_with("digits that agree: 3.6 in the maximum norm, 0.0 in the worst entry"));
        let same = compare(&left, &left).unwrap();
        assert!(same.is_equal() && same.digits().is_infinite() && same.entry_digits().is_infinite());
        let wide = Matrix::zeros(0, 1 << 40, 60).unwrap();
        assert!(compare(&wide, &wide).unwrap().is_within());
    }
}
