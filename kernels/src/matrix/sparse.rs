//! `SparseMatrix`: the entries of a matrix that are not 0, row by row, each with as many limbs as it has bits for.

use crate::error::{Error, Result};
use crate::math::float::{FloatRef, Head, limbs_for, round_integer};
use crate::matrix::check_exponent;
use rug::Float;
use std::ops::Range;

/// A sparse matrix in compressed rows, for use as a factor in many products.
///
/// Entries are stored exactly, at any precision: a small integer needs one limb, and products with it take less time.
/// Memory: 32 bytes for each entry, 8 bytes for each of its limbs, and 8 bytes for each row.
///
/// ```
/// # mod sunzi { pub use {rug, sunzi_kernels::{Error, matrix::*}}; }
/// use sunzi::{SparseMatrix, rug::Float};
/// let (one, half) = (Float::with_val(53, 1), Float::with_val(53, 0.5));
/// let a = SparseMatrix::from_entries(2, 1000, [((1, 999), &half), ((0, 3), &one), ((1, 0), &one)])?;
/// assert_eq!((a.rows(), a.cols(), a.entries()), (2, 1000, 3));
/// # Ok::<(), sunzi::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparseMatrix {
    cols: usize,
    /// Index of the first entry of each row, and the number of all entries.
    row_starts: Vec<usize>,
    entries: Vec<SparseEntry>,
    limbs: Vec<u64>,
}

/// An entry: its column, its head, and which limbs are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SparseEntry {
    col: usize,
    head: Head,
    first_limb: usize,
    limb_count: usize,
}

/// A range of rows of a [`SparseMatrix`].
#[derive(Clone, Copy, Debug)]
pub struct SparseView<'a> {
    cols: usize,
    /// The index of the first entry of each row, and the index after the last entry.
    row_starts: &'a [usize],
    entries: &'a [SparseEntry],
    limbs: &'a [u64],
}

impl SparseMatrix {
    /// The matrix with these entries, each with its place `(row, column)`, in any order; all other entries are 0.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a place outside the matrix and for a place that occurs twice;
    /// [`Error::NotFinite`]; [`Error::ExponentRange`]; [`Error::OutOfMemory`] if the system refuses the memory.
    pub fn from_entries<'f>(
        rows: usize,
        cols: usize,
        entries: impl IntoIterator<Item = ((usize, usize), &'f Float)>,
    ) -> Result<SparseMatrix> {
        let mut list = entries.into_iter().collect::<Vec<_>>();
        list.sort_by_key(|&(place, _)| place);
        let mut matrix = SparseMatrix { cols, row_starts: vec![0], entries: Vec::new(), limbs: Vec::new() };
        let bytes = (size_of::<usize>() as u64).saturating_mul(rows as u64);
        let refused = |_| Error::OutOfMemory { bytes };
        matrix.row_starts.try_reserve_exact(rows).map_err(refused)?;
        let mut before = None;
        for ((row, col), value) in list {
            if row >= rows || col >= cols {
                let message = format!("an entry at row {row}, column {col} lies outside the {rows} x {cols} matrix");
                return Err(Error::InvalidArgument(message));
            }
            if before.replace((row, col)) == Some((row, col)) {
                let message = format!("the sparse matrix has two entries at row {row}, column {col}");
                return Err(Error::InvalidArgument(message));
            }
            matrix.row_starts.resize(row + 1, matrix.entries.len());
            matrix.push(row, col, value)?;
        }
        matrix.row_starts.resize(rows + 1, matrix.entries.len());
        Ok(matrix)
    }

    /// Adds an entry to the last row, unless it is 0.
    fn push(&mut self, row: usize, col: usize, value: &Float) -> Result<()> {
        let Some((integer, exponent)) = value.to_integer_exp() else {
            let kind = if value.is_nan() { "NaN" } else { "infinite" };
            return Err(Error::NotFinite { row, column: col, kind });
        };
        if integer == 0 {
            return Ok(());
        }
        let (first_limb, low) = (self.limbs.len(), integer.find_one(0).unwrap_or(0));
        let limb_count = limbs_for(integer.significant_bits() - low);
        self.limbs.resize(first_limb + limb_count, 0);
        let own = &mut self.limbs[first_limb..];
        let head = round_integer(integer < 0, integer.as_limbs(), exponent.into(), 64 * limb_count as u32, own);
        check_exponent(head.exponent(), row, col)?;
        self.entries.push(SparseEntry { col, head, first_limb, limb_count });
        Ok(())
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.row_starts.len() - 1
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of entries that are not 0.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of the matrix.
    pub fn bytes(&self) -> u64 {
        let entries = self.entries.len() * size_of::<SparseEntry>();
        (entries + 8 * (self.row_starts.len() + self.limbs.len())) as u64
    }

    /// All rows.
    pub fn view(&self) -> SparseView<'_> {
        let SparseMatrix { cols, row_starts, entries, limbs } = self;
        SparseView { cols: *cols, row_starts, entries, limbs }
    }
}

impl<'a> From<&'a SparseMatrix> for SparseView<'a> {
    fn from(matrix: &'a SparseMatrix) -> SparseView<'a> {
        matrix.view()
    }
}

impl<'a> SparseView<'a> {
    /// Rows.
    pub fn rows(&self) -> usize {
        self.row_starts.len() - 1
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of entries that are not 0.
    pub fn entries(&self) -> usize {
        self.row_starts[self.rows()] - self.row_starts[0]
    }

    /// A range of its rows.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the matrix does not have these rows.
    pub fn row_range(self, rows: Range<usize>) -> Result<SparseView<'a>> {
        if rows.start > rows.end || rows.end > self.rows() {
            let message = format!("rows {rows:?} are outside a sparse matrix of {} rows", self.rows());
            return Err(Error::InvalidArgument(message));
        }
        Ok(SparseView { row_starts: &self.row_starts[rows.start..=rows.end], ..self })
    }

    /// The entries of a row with their columns, in ascending order.
    #[inline]
    pub fn row(&self, row: usize) -> impl Iterator<Item = (usize, FloatRef<'a>)> + Clone + use<'a> {
        let limbs = self.limbs;
        self.entries[self.row_starts[row]..self.row_starts[row + 1]].iter().map(move |entry| {
            let limbs = &limbs[entry.first_limb..][..entry.limb_count];
            (entry.col, FloatRef { head: entry.head, limbs })
        })
    }

    /// Number of entries in the fullest row.
    #[doc(hidden)]
    pub fn longest_row(&self) -> usize {
        self.row_starts.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_kept_exactly_in_the_order_of_rows() -> Result<()> {
        let values = [1.0, -0.75, 0.0, 3.0].map(|value| Float::with_val(300, value));
        let third = Float::with_val(200, 1) / 3u32;
        let list = [((4, 1), &third), ((0, 2), &values[0]), ((4, 0), &values[1]), ((2, 0), &values[2])];
        let list = list.into_iter().chain([((1, 1), &values[3])]);
        let a = SparseMatrix::from_entries(6, 3, list)?;
        assert_eq!((a.rows(), a.cols(), a.entries(), a.view().longest_row()), (6, 3, 4, 2));
        let row = |row: usize| {
            a.view().row(row).map(|(col, value)| (col, value.limbs.len(), value.to_float(300))).collect::<Vec<_>>()
        };
        assert_eq!(row(0), [(2, 1, values[0].clone())]);
        assert_eq!(row(4), [(0, 1, values[1].clone()), (1, 4, Float::with_val(300, &third))]);
        assert!(row(2).is_empty() && row(3).is_empty() && row(5).is_empty());
        let some = a.view().row_range(1..5)?;
        assert_eq!((some.rows(), some.entries()), (4, 3));
        assert_eq!(some.row(3).map(|(col, _)| col).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(a.view().row_range(2..2)?.entries(), 0);
        for rows in [5..7, Range { start: 3, end: 2 }] {
            assert!(matches!(a.view().row_range(rows), Err(Error::InvalidArgument(_))));
        }
        assert_eq!(SparseMatrix::from_entries(0, 0, [])?.view().longest_row(), 0);
        Ok(())
    }

    #[test]
    fn bad_entries_are_named() {
        let (one, nan) = (Float::with_val(53, 1), Float::with_val(53, f64::NAN));
        let text = |entries: &[((usize, usize), &Float)]| {
            SparseMatrix::from_entries(2, 3, entries.iter().copied()).unwrap_err().to_string()
        };
        assert!(text(&[((2, 0), &one)]).contains("row 2, column 0 lies outside the 2 x 3 matrix"));
        assert!(text(&[((0, 3), &one)]).contains("column 3"));
        assert!(text(&[((1, 1), &one), ((0, 0), &one), ((1, 1), &one)]).contains("two entries at row 1, column 1"));
        let error = SparseMatrix::from_entries(2, 3, [((1, 2), &nan)]).unwrap_err();
        assert!(matches!(error, Error::NotFinite { row: 1, column: 2, .. }), "{error}");
    }
}
