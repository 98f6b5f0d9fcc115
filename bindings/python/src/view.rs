//! A rectangle of a shared matrix, possibly transposed: the form of slices and transposes.

use std::ops::Range;
use std::sync::Arc;
use sunzi::advanced::math::float::round_integer;
use sunzi::{FloatRef, MatrixView, Result};

/// A rectangle of a matrix that never changes.
#[derive(Clone)]
pub struct View {
    matrix: Arc<sunzi::Matrix>,
    rows: Range<usize>,
    cols: Range<usize>,
    transposed: bool,
    rounded_bits: Option<u32>,
}

impl From<sunzi::Matrix> for View {
    fn from(matrix: sunzi::Matrix) -> View {
        let (rows, cols) = (0..matrix.rows(), 0..matrix.cols());
        View { matrix: Arc::new(matrix), rows, cols, transposed: false, rounded_bits: None }
    }
}

impl View {
    /// Rows, as seen.
    pub fn rows(&self) -> usize {
        if self.transposed { self.cols.len() } else { self.rows.len() }
    }

    /// Columns, as seen.
    pub fn cols(&self) -> usize {
        if self.transposed { self.rows.len() } else { self.cols.len() }
    }

    /// Bits of the most precise of some views.
    pub fn largest_precision(views: &[View]) -> u32 {
        views.iter().map(View::precision_bits).max().unwrap_or(2)
    }

    /// Bits of every entry.
    pub fn precision_bits(&self) -> u32 {
        self.matrix.precision_bits()
    }

    /// The fewest bits to which an entry was rounded that has more; `None` where all are the numbers that were given.
    pub fn rounded_bits(&self) -> Option<u32> {
        self.rounded_bits
    }

    /// The value of `rounded_bits` after a rounding to another precision. Fewer bits are a choice of the caller: from
    /// then on the entries count as exact.
    pub fn rounded_bits_at(&self, precision_bits: u32) -> Option<u32> {
        self.rounded_bits.filter(|&bits| bits < precision_bits)
    }

    /// The same entries, marked as rounded to `bits` bits before.
    pub fn after_rounding(self, bits: Option<u32>) -> View {
        let fewest = self.rounded_bits.into_iter().chain(bits).min();
        View { rounded_bits: fewest, ..self }
    }

    /// Bytes of the matrix behind it.
    pub fn bytes(&self) -> u64 {
        self.matrix.bytes()
    }

    /// The entries.
    pub fn entries(&self) -> MatrixView<'_> {
        let block = self.matrix.view().block(self.rows.clone(), self.cols.clone());
        let block = block.expect("a view lies inside its matrix");
        if self.transposed { block.transposed() } else { block }
    }

    /// The entries as a matrix of their own; nothing is copied where the view is all of one.
    ///
    /// # Errors
    /// [`sunzi::Error::OutOfMemory`].
    pub fn to_whole(&self) -> Result<Arc<sunzi::Matrix>> {
        if self.is_whole() { Ok(self.matrix.clone()) } else { self.entries().to_matrix().map(Arc::new) }
    }

    /// The entries as a matrix of their own; nothing is copied where they are not shared.
    ///
    /// # Errors
    /// [`sunzi::Error::OutOfMemory`].
    pub fn into_whole(self) -> Result<sunzi::Matrix> {
        if !self.is_whole() {
            return self.entries().to_matrix();
        }
        Arc::try_unwrap(self.matrix).or_else(|shared| {
            let mut copy = sunzi::Matrix::zeros(shared.rows(), shared.cols(), shared.precision_bits())?;
            let ((heads, limbs), (from_heads, from_limbs)) = (copy.parts_mut(), shared.parts());
            heads.copy_from_slice(from_heads);
            limbs.copy_from_slice(from_limbs);
            Ok(copy)
        })
    }

    /// The transpose.
    pub fn transpose(&self) -> View {
        View { transposed: !self.transposed, ..self.clone() }
    }

    /// Rows and columns of this view, which lie inside it (asserted).
    pub fn block(&self, rows: Range<usize>, cols: Range<usize>) -> View {
        assert!(rows.end <= self.rows() && cols.end <= self.cols(), "a block lies inside its view");
        let (rows, cols) = if self.transposed { (cols, rows) } else { (rows, cols) };
        let within = |whole: &Range<usize>, part: Range<usize>| whole.start + part.start..whole.start + part.end;
        View { rows: within(&self.rows, rows), cols: within(&self.cols, cols), ..self.clone() }
    }

    /// The entries on the diagonal as a column of their own.
    ///
    /// # Errors
    /// [`sunzi::Error::OutOfMemory`].
    pub fn diagonal(&self) -> Result<View> {
        let view = self.entries();
        let mut column = sunzi::Matrix::zeros(view.rows().min(view.cols()), 1, self.precision_bits())?;
        for at in 0..column.rows() {
            column.set(at, 0, view.get(at, at));
        }
        Ok(View::from(column).after_rounding(self.rounded_bits))
    }

    /// Whether `self` is the transpose of `other`, entry for entry in the same memory.
    pub fn is_transpose_of(&self, other: &View) -> bool {
        let same_place = self.rows == other.rows && self.cols == other.cols;
        Arc::ptr_eq(&self.matrix, &other.matrix) && same_place && self.transposed != other.transposed
    }

    /// The matrix behind it, to write to: a copy of the entries where others share them, or they are a part of more.
    ///
    /// # Errors
    /// [`sunzi::Error::OutOfMemory`].
    pub fn to_mut(&mut self) -> Result<&mut sunzi::Matrix> {
        if !self.is_whole() || Arc::get_mut(&mut self.matrix).is_none() {
            *self = View::from(self.entries().to_matrix()?).after_rounding(self.rounded_bits);
        }
        Ok(Arc::get_mut(&mut self.matrix).expect("nobody shares it"))
    }

    fn is_whole(&self) -> bool {
        !self.transposed && self.rows == (0..self.matrix.rows()) && self.cols == (0..self.matrix.cols())
    }

    /// The entries at these rows and columns, copied.
    ///
    /// # Errors
    /// [`sunzi::Error::OutOfMemory`].
    pub fn gather(&self, rows: &[usize], cols: &[usize]) -> Result<View> {
        let view = self.entries();
        let mut copy = sunzi::Matrix::zeros(rows.len(), cols.len(), self.precision_bits())?;
        for (to_col, &col) in cols.iter().enumerate() {
            for (to_row, &row) in rows.iter().enumerate() {
                copy.set(to_row, to_col, view.get(row, col));
            }
        }
        Ok(View::from(copy).after_rounding(self.rounded_bits))
    }

    /// The entries at these rows, each in the column at the same place of the other list, copied as one column.
    ///
    /// # Errors
    /// [`sunzi::Error::OutOfMemory`].
    pub fn gather_column(&self, rows: &[usize], cols: &[usize]) -> Result<View> {
        let view = self.entries();
        let mut copy = sunzi::Matrix::zeros(rows.len(), 1, self.precision_bits())?;
        for (to, (&row, &col)) in rows.iter().zip(cols).enumerate() {
            copy.set(to, 0, view.get(row, col));
        }
        Ok(View::from(copy).after_rounding(self.rounded_bits))
    }

    /// The same entries rounded to `precision_bits` bits, to nearest, ties to even; the same memory where they have
    /// as many.
    ///
    /// # Errors
    /// [`sunzi::Error::Precision`], [`sunzi::Error::OutOfMemory`].
    pub fn rounded(&self, precision_bits: u32) -> Result<View> {
        if precision_bits == self.precision_bits() {
            return Ok(self.clone());
        }
        let view = self.entries();
        let mut copy = sunzi::Matrix::zeros(view.rows(), view.cols(), precision_bits)?;
        let mut limbs = vec![0; copy.limbs_per_element()];
        for col in 0..view.cols() {
            for row in 0..view.rows() {
                let value = view.get(row, col);
                let low = value.head.exponent() - value.limbs.len() as i64 * 64;
                let head = round_integer(value.head.is_negative(), value.limbs, low, precision_bits, &mut limbs);
                copy.set(row, col, FloatRef { head, limbs: &limbs });
            }
        }
        Ok(View::from(copy).after_rounding(self.rounded_bits_at(precision_bits)))
    }
}
