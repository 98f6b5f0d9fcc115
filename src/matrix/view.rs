//! Strided read-only views: rows, columns, blocks and transposes without copying.

use crate::error::{Error, Result};
use crate::math::float::{FloatRef, Head};
use crate::matrix::Matrix;
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

impl<'a> From<&'a Matrix> for MatrixView<'a> {
    fn from(matrix: &'a Matrix) -> Self {
        MatrixView::new(matrix)
    }
}

impl<'a> MatrixView<'a> {
    /// The whole of `matrix`.
    pub fn new(matrix: &'a Matrix) -> Self {
        let (heads, limbs) = matrix.parts();
        MatrixView {
            heads,
            limbs,
            precision_bits: matrix.precision_bits(),
            limbs_per_element: matrix.limbs_per_element(),
            rows: matrix.rows(),
            cols: matrix.cols(),
            offset: 0,
            row_stride: 1,
            col_stride: matrix.rows(),
        }
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

    /// The same view with other heads in place of [`MatrixView::all_heads`], as many of them (asserted).
    ///
    /// Scaling by powers of two, and absolute values, take a copy of the heads alone.
    pub(crate) fn with_heads(self, heads: &'a [u64]) -> Self {
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

    /// The rows from the last to the first. Strides are then negative, modulo the word size.
    pub(crate) fn reversed_rows(self) -> Self {
        let last = self.rows.saturating_sub(1).wrapping_mul(self.row_stride);
        MatrixView { offset: self.offset.wrapping_add(last), row_stride: self.row_stride.wrapping_neg(), ..self }
    }

    /// The rectangle of the given rows and columns.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where a range is reversed or leaves the view.
    pub fn block(self, rows: Range<usize>, cols: Range<usize>) -> Result<Self> {
        let fits = |range: &Range<usize>, size: usize| range.start <= range.end && range.end <= size;
        if !fits(&rows, self.rows) || !fits(&cols, self.cols) {
            return Err(Error::InvalidArgument(format!(
                "block of rows {rows:?}, columns {cols:?} leaves the {} x {} matrix",
                self.rows, self.cols
            )));
        }
        Ok(MatrixView { offset: self.place(rows.start, cols.start), rows: rows.len(), cols: cols.len(), ..self })
    }

    /// The element at `(row, col)`. Panics outside the view.
    #[inline]
    pub fn get(&self, row: usize, col: usize) -> FloatRef<'a> {
        let index = self.element_index(row, col);
        let limbs = self.limbs_per_element;
        FloatRef { head: Head(self.heads[index]), limbs: &self.limbs[index * limbs..][..limbs] }
    }

    /// Index of element `(row, col)` in [`MatrixView::all_heads`]. Panics outside the view.
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
    /// [`Error::OutOfMemory`] where the system refuses the memory.
    pub fn to_matrix(&self) -> Result<Matrix> {
        let mut copy = Matrix::zeros(self.rows, self.cols, self.precision_bits)?;
        for col in 0..self.cols {
            for row in 0..self.rows {
                copy.set(row, col, self.get(row, col));
            }
        }
        Ok(copy)
    }
}
