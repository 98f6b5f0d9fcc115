//! Views for writing: a matrix, a block of one, or memory of the caller.

use crate::error::Result;
use crate::math::float::{FloatRef, limbs_for};
use crate::matrix::view::{ColumnMajor, check_block};
use crate::matrix::{Matrix, MatrixView};
use std::ops::Range;

/// A rectangle of a [`Matrix`] for writing: operations store their results there.
///
/// The view is column-major and never transposed: the transpose of a product is the product of the transposes in the
/// other order.
///
/// ```
/// # mod sunzi { pub use {rug, sunzi_kernels::{Error, matrix::*}}; }
/// use sunzi::Matrix;
/// let small = Matrix::from_f64s(2, 3, 256, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let mut large = Matrix::zeros(5, 5, 256)?;
/// let mut block = large.view_mut().block(1..3, 2..5)?; // rows 1 and 2 of columns 2, 3 and 4
/// block.copy_from(&small); // as results of `sunzi::gemm_into` and its neighbours are put there
/// assert!(large.float(2, 4) == 6 && large.float(3, 4).is_zero());
/// # Ok::<(), sunzi::Error>(())
/// ```
pub struct MatrixViewMut<'a> {
    heads: &'a mut [u64],
    limbs: &'a mut [u64],
    layout: ColumnMajor,
}

/// Shape and precision only: a matrix can be huge.
impl std::fmt::Debug for MatrixViewMut<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MatrixViewMut({} x {}, {} bits)", self.rows(), self.cols(), self.precision_bits())
    }
}

impl Matrix {
    /// The whole matrix as a view for writing.
    pub fn view_mut(&mut self) -> MatrixViewMut<'_> {
        let (rows, cols, precision_bits) = (self.rows(), self.cols(), self.precision_bits());
        let layout = ColumnMajor { rows, cols, leading_dimension: rows, precision_bits };
        let (heads, limbs) = self.parts_mut();
        MatrixViewMut { heads, limbs, layout }
    }
}

impl<'a> From<&'a mut Matrix> for MatrixViewMut<'a> {
    fn from(matrix: &'a mut Matrix) -> Self {
        matrix.view_mut()
    }
}

impl<'a> MatrixViewMut<'a> {
    /// A matrix in the caller's memory, with the layout of [`MatrixView::from_parts`]. Gaps between columns are never
    /// written.
    ///
    /// # Errors
    /// As [`MatrixView::from_parts`].
    pub fn from_parts(
        (heads, limbs): (&'a mut [u64], &'a mut [u64]),
        (rows, cols): (usize, usize),
        leading_dimension: usize,
        precision_bits: u32,
    ) -> Result<Self> {
        let layout = ColumnMajor { rows, cols, leading_dimension, precision_bits };
        let (count, words) = layout.checked_words(heads.len(), limbs.len())?;
        Ok(MatrixViewMut { heads: &mut heads[..count], limbs: &mut limbs[..words], layout })
    }

    /// Rows of the view.
    pub fn rows(&self) -> usize {
        self.layout.rows
    }

    /// Columns of the view.
    pub fn cols(&self) -> usize {
        self.layout.cols
    }

    /// Bits of every significand.
    pub fn precision_bits(&self) -> u32 {
        self.layout.precision_bits
    }

    /// Limbs of every significand.
    pub fn limbs_per_element(&self) -> usize {
        limbs_for(self.layout.precision_bits)
    }

    /// Distance in elements from one column to the next.
    pub fn leading_dimension(&self) -> usize {
        self.layout.leading_dimension
    }

    /// The same rectangle for reading.
    pub fn view(&self) -> MatrixView<'_> {
        self.layout.view(self.heads, self.limbs)
    }

    /// The same rectangle with a shorter lifetime.
    pub fn reborrow(&mut self) -> MatrixViewMut<'_> {
        MatrixViewMut { heads: self.heads, limbs: self.limbs, layout: self.layout }
    }

    /// The rectangle of the given rows and columns.
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] if a range is reversed or exceeds the view.
    pub fn block(self, rows: Range<usize>, cols: Range<usize>) -> Result<Self> {
        check_block(&rows, &cols, self.rows(), self.cols())?;
        let width = self.limbs_per_element();
        let layout = ColumnMajor { rows: rows.len(), cols: cols.len(), ..self.layout };
        let elements = match rows.is_empty() || cols.is_empty() {
            true => 0..0,
            false => self.layout.index(rows.start, cols.start)..self.layout.index(rows.end - 1, cols.end - 1) + 1,
        };
        let limbs = &mut self.limbs[elements.start * width..elements.end * width];
        Ok(MatrixViewMut { heads: &mut self.heads[elements], limbs, layout })
    }

    /// Writes an element, as [`Matrix::set`]. Panics if the place is outside the view.
    pub fn set(&mut self, row: usize, col: usize, value: FloatRef<'_>) {
        let (index, width) = (self.layout.index(row, col), self.limbs_per_element());
        self.heads[index] = value.head.0;
        self.limbs[index * width..][..width].copy_from_slice(value.limbs);
    }

    /// Copies a matrix of the same shape and precision (asserted).
    pub fn copy_from<'b>(&mut self, source: impl Into<MatrixView<'b>>) {
        let source = source.into();
        assert_eq!((self.rows(), self.cols()), (source.rows(), source.cols()), "a copy keeps the shape");
        assert_eq!(self.precision_bits(), source.precision_bits(), "a copy keeps the precision");
        for (col, row) in (0..source.cols()).flat_map(|col| (0..source.rows()).map(move |row| (col, row))) {
            self.set(row, col, source.get(row, col));
        }
    }

    /// Heads and limbs of each column.
    #[doc(hidden)]
    pub fn into_columns(self) -> impl Iterator<Item = (&'a mut [u64], &'a mut [u64])> + Send {
        let (rows, stride, width) = (self.rows(), self.leading_dimension().max(1), self.limbs_per_element());
        let columns = self.heads.chunks_mut(stride).zip(self.limbs.chunks_mut(stride * width));
        columns.map(move |(heads, limbs)| (&mut heads[..rows], &mut limbs[..rows * width]))
    }

    /// Heads and limbs from the first element to the last; element `(i, j)` has the index `i + j * leading_dimension`.
    #[doc(hidden)]
    pub fn into_parts(self) -> (&'a mut [u64], &'a mut [u64]) {
        (self.heads, self.limbs)
    }
}
