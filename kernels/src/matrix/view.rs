//! Strided read-only views: rows, columns, blocks and transposes without copying.

use crate::error::{Error, Result};
use crate::math::float::{FloatRef, Head, limbs_for};
use crate::matrix::{MAXIMUM_PRECISION_BITS, Matrix};
use std::ops::Range;

/// A rectangle of a [`Matrix`], possibly transposed.
#[derive(Clone, Copy)]
pub struct MatrixView<'a> {
    heads: &'a [u64],
    limbs: &'a [u64],
    precision_bits: u32,
    limbs_per_element: usize,
    rows: usize,
    cols: usize,
    offset: usize,
    row_stride: usize,
    col_stride: usize,
}

/// Shape and precision only: a matrix can be huge.
impl std::fmt::Debug for MatrixView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MatrixView({} x {}, {} bits)", self.rows, self.cols, self.precision_bits)
    }
}

/// A matrix in memory, column by column.
#[derive(Clone, Copy)]
pub(super) struct ColumnMajor {
    pub rows: usize,
    pub cols: usize,
    /// Distance in elements from one column to the next.
    pub leading_dimension: usize,
    pub precision_bits: u32,
}

impl ColumnMajor {
    /// Heads and limbs from the first element to the last, where there are `heads` and `limbs` of them.
    ///
    /// # Errors
    /// The errors of [`MatrixView::from_parts`].
    pub fn checked_words(&self, heads: usize, limbs: usize) -> Result<(usize, usize)> {
        let ColumnMajor { rows, cols, leading_dimension, precision_bits } = *self;
        if !(2..=MAXIMUM_PRECISION_BITS).contains(&precision_bits) {
            return Err(Error::precision(precision_bits, MAXIMUM_PRECISION_BITS));
        }
        if leading_dimension < rows {
            let message = format!("leading dimension {leading_dimension} is below the {rows} rows of the matrix");
            return Err(Error::InvalidArgument(message));
        }
        let count = match rows.min(cols) {
            0 => Some(0),
            _ => leading_dimension.checked_mul(cols - 1).and_then(|last| last.checked_add(rows)),
        };
        let needed = count.and_then(|count| Some((count, count.checked_mul(limbs_for(precision_bits))?)));
        let (count, words) = needed.ok_or(Error::DimensionOverflow { rows, cols, precision_bits })?;
        if count > heads || words > limbs {
            return Err(Error::InvalidArgument(format!(
                "{heads} heads and {limbs} limbs are too few for a {rows} x {cols} matrix of {precision_bits} bits \
                 with leading dimension {leading_dimension}, which takes {count} and {words}"
            )));
        }
        Ok((count, words))
    }

    /// Index of an element.
    pub fn index(&self, row: usize, col: usize) -> usize {
        assert!(row < self.rows && col < self.cols, "({row}, {col}) outside {} x {}", self.rows, self.cols);
        row + col * self.leading_dimension
    }

    /// The matrix in this memory.
    pub fn view<'a>(&self, heads: &'a [u64], limbs: &'a [u64]) -> MatrixView<'a> {
        MatrixView {
            heads,
            limbs,
            precision_bits: self.precision_bits,
            limbs_per_element: limbs_for(self.precision_bits),
            rows: self.rows,
            cols: self.cols,
            offset: 0,
            row_stride: 1,
            col_stride: self.leading_dimension,
        }
    }
}

/// Refuses a block of rows and columns that leaves a matrix of `height` rows and `width` columns.
///
/// # Errors
/// [`Error::InvalidArgument`].
pub(super) fn check_block(rows: &Range<usize>, cols: &Range<usize>, height: usize, width: usize) -> Result<()> {
    let fits = |range: &Range<usize>, size: usize| range.start <= range.end && range.end <= size;
    if fits(rows, height) && fits(cols, width) {
        return Ok(());
    }
    Err(Error::InvalidArgument(format!(
        "block of rows {rows:?}, columns {cols:?} exceeds the {height} x {width} matrix"
    )))
}

impl Matrix {
    /// The whole matrix as a view.
    pub fn view(&self) -> MatrixView<'_> {
        MatrixView::new(self)
    }

    /// The transpose, as a view: nothing is copied.
    pub fn transposed(&self) -> MatrixView<'_> {
        self.view().transposed()
    }
}

impl<'a> From<&'a Matrix> for MatrixView<'a> {
    fn from(matrix: &'a Matrix) -> Self {
        MatrixView::new(matrix)
    }
}

impl<'a> MatrixView<'a> {
    /// The whole matrix `matrix`.
    pub fn new(matrix: &'a Matrix) -> Self {
        let layout = ColumnMajor {
            rows: matrix.rows(),
            cols: matrix.cols(),
            leading_dimension: matrix.rows(),
            precision_bits: matrix.precision_bits(),
        };
        let (heads, limbs) = matrix.parts();
        layout.view(heads, limbs)
    }

    /// A column-major matrix in the caller's memory: element `(i, j)` has the head `heads[i + j * leading_dimension]`
    /// and, at the same index, `ceil(precision_bits / 64)` of `limbs`.
    ///
    /// Nothing is copied, and the numbers are not checked: each must have the form of [`crate::math::float`]. Gaps
    /// between columns are never read. Both slices may be longer than the matrix.
    ///
    /// # Errors
    /// [`Error::Precision`]; [`Error::InvalidArgument`] if the leading dimension is below `rows` or a slice is too
    /// short; [`Error::DimensionOverflow`].
    pub fn from_parts(
        (heads, limbs): (&'a [u64], &'a [u64]),
        (rows, cols): (usize, usize),
        leading_dimension: usize,
        precision_bits: u32,
    ) -> Result<Self> {
        let layout = ColumnMajor { rows, cols, leading_dimension, precision_bits };
        let (count, words) = layout.checked_words(heads.len(), limbs.len())?;
        Ok(layout.view(&heads[..count], &limbs[..words]))
    }

    /// Rows of the view.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of the view.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Bits of every significand.
    pub fn precision_bits(&self) -> u32 {
        self.precision_bits
    }

    /// Limbs of every significand.
    pub fn limbs_per_element(&self) -> usize {
        self.limbs_per_element
    }

    /// The same view with other heads in place of [`MatrixView::all_heads`], of the same number (asserted).
    ///
    /// Scaling by powers of two, and absolute values, need a copy of only the heads.
    #[doc(hidden)]
    pub fn with_heads(self, heads: &'a [u64]) -> Self {
        assert_eq!(heads.len(), self.heads.len(), "one head for each element");
        MatrixView { heads, ..self }
    }

    /// The transpose of the view.
    pub fn transposed(self) -> Self {
        MatrixView {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }

    /// The rows in reverse order. Strides are then negative, modulo the word size.
    #[doc(hidden)]
    pub fn reversed_rows(self) -> Self {
        let last = self.rows.saturating_sub(1).wrapping_mul(self.row_stride);
        MatrixView { offset: self.offset.wrapping_add(last), row_stride: self.row_stride.wrapping_neg(), ..self }
    }

    /// The rectangle of the given rows and columns.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if a range is reversed or exceeds the view.
    pub fn block(self, rows: Range<usize>, cols: Range<usize>) -> Result<Self> {
        check_block(&rows, &cols, self.rows, self.cols)?;
        Ok(MatrixView { offset: self.place(rows.start, cols.start), rows: rows.len(), cols: cols.len(), ..self })
    }

    /// The element at `(row, col)`. Panics if the place is outside the view.
    #[inline]
    pub fn get(&self, row: usize, col: usize) -> FloatRef<'a> {
        let index = self.element_index(row, col);
        let limbs = self.limbs_per_element;
        FloatRef { head: Head(self.heads[index]), limbs: &self.limbs[index * limbs..][..limbs] }
    }

    /// The head of the element at `(row, col)`. Panics if the place is outside the view.
    #[inline]
    pub fn head(&self, row: usize, col: usize) -> Head {
        Head(self.heads[self.element_index(row, col)])
    }

    /// Index of element `(row, col)` in [`MatrixView::all_heads`]. Panics if the place is outside the view.
    #[inline]
    pub fn element_index(&self, row: usize, col: usize) -> usize {
        assert!(row < self.rows && col < self.cols, "({row}, {col}) outside {} x {}", self.rows, self.cols);
        self.place(row, col)
    }

    #[inline]
    fn place(&self, row: usize, col: usize) -> usize {
        // Strides of reversed views are negative modulo the word size.
        let down = row.wrapping_mul(self.row_stride);
        self.offset.wrapping_add(down).wrapping_add(col.wrapping_mul(self.col_stride))
    }

    /// Distance between the indices of vertically adjacent elements.
    pub fn row_stride(&self) -> usize {
        self.row_stride
    }

    /// Distance between the indices of horizontally adjacent elements.
    pub fn col_stride(&self) -> usize {
        self.col_stride
    }

    /// Heads of the whole matrix behind the view; see [`MatrixView::element_index`].
    pub fn all_heads(&self) -> &'a [u64] {
        self.heads
    }

    /// Limbs of the whole matrix behind the view, `limbs_per_element` for each index.
    pub fn all_limbs(&self) -> &'a [u64] {
        self.limbs
    }

    /// An owned copy of the view.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if the system refuses the memory.
    pub fn to_matrix(&self) -> Result<Matrix> {
        let mut copy = Matrix::zeros(self.rows, self.cols, self.precision_bits)?;
        if self.row_stride == 1 && self.rows > 0 {
            let (heads, limbs) = copy.parts_mut();
            let columns =
                heads.chunks_exact_mut(self.rows).zip(limbs.chunks_exact_mut(self.rows * self.limbs_per_element));
            for (col, (heads, limbs)) in columns.enumerate() {
                let own = self.place(0, col)..self.place(0, col) + self.rows;
                limbs
                    .copy_from_slice(&self.limbs[own.start * self.limbs_per_element..own.end * self.limbs_per_element]);
                heads.copy_from_slice(&self.heads[own]);
            }
            return Ok(copy);
        }
        for col in 0..self.cols {
            for row in 0..self.rows {
                copy.set(row, col, self.get(row, col));
            }
        }
        Ok(copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_caller_are_the_matrix_they_were_taken_from() {
        let whole = Matrix::from_f64s(4, 3, 100, &(0..12).map(f64::from).collect::<Vec<_>>()).unwrap();
        let (heads, limbs) = whole.parts();
        let view = MatrixView::from_parts((heads, limbs), (2, 3), 4, 100).unwrap();
        let block = whole.view().block(0..2, 0..3).unwrap();
        assert!(view.to_matrix().unwrap() == block.to_matrix().unwrap());
        assert_eq!((view.all_heads().len(), view.all_limbs().len()), (10, 20));
        for empty in [(0, 3), (4, 0), (0, 0)] {
            assert_eq!(MatrixView::from_parts((&[], &[]), empty, 4, 100).unwrap().all_heads().len(), 0);
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_refused_with_their_numbers() {
        let words = [0u64; 20];
        let refused = |heads: usize, limbs: usize, shape, ld, bits| {
            let parts = (&words[..heads], &words[..limbs]);
            MatrixView::from_parts(parts, shape, ld, bits).map(|_| ()).unwrap_err().to_string()
        };
        assert!(refused(20, 20, (3, 2), 2, 64).contains("leading dimension 2 is below the 3 rows"));
        assert!(refused(4, 20, (3, 2), 3, 64).contains("4 heads and 20 limbs are too few"));
        assert!(refused(20, 9, (3, 2), 3, 65).contains("takes 6 and 12"));
        assert!(refused(20, 20, (3, 2), 3, 1).contains("precision of 1 bits"));
        assert!(refused(20, 20, (3, usize::MAX), 3, 64).contains("too large"));
    }
}
