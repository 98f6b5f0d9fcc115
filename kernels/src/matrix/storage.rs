//! `Matrix`: big floats of one precision in a single allocation.
//!
//! Layout: column-major; first one head word per element, then `limbs_per_element` limbs per element. Element
//! `(i, j)` has index `i + j * rows`. Zeroed memory is the zero matrix.

use crate::error::{Error, Result};
use crate::math::float::{FloatRef, Head, limbs_for};
use crate::store::{advise_huge_pages, zeroed};
use rug::Float;

/// Largest magnitude of an exponent that conversions accept (MPFR's default range).
pub const MAXIMUM_EXPONENT: i64 = (1 << 30) - 1;

/// Returns an error for an exponent that a matrix cannot store.
///
/// # Errors
/// [`Error::ExponentRange`] with the place of the entry.
#[inline]
pub fn check_exponent(exponent: i64, row: usize, column: usize) -> Result<()> {
    if exponent.unsigned_abs() > MAXIMUM_EXPONENT as u64 {
        return Err(Error::ExponentRange { row, column, exponent, limit: MAXIMUM_EXPONENT });
    }
    Ok(())
}

/// Largest number of bits that a significand can have.
pub const MAXIMUM_PRECISION_BITS: u32 = 1 << 24;

/// A dense `rows x cols` matrix of big floats with `precision_bits` bits each.
///
/// Memory: `rows * cols * 8 * (1 + ceil(precision_bits / 64))` bytes in one block; no heap object per number.
#[derive(Clone, PartialEq, Eq)]
pub struct Matrix {
    rows: usize,
    cols: usize,
    precision_bits: u32,
    words: Vec<u64>,
}

impl Default for Matrix {
    /// [`Matrix::empty`].
    fn default() -> Matrix {
        Matrix::empty()
    }
}

impl Matrix {
    /// The 0 x 0 matrix, which needs no memory: a place for a result that replaces it.
    pub const fn empty() -> Matrix {
        Matrix { rows: 0, cols: 0, precision_bits: 2, words: Vec::new() }
    }

    /// The zero matrix. Pages of its memory are touched only when entries are written.
    ///
    /// # Errors
    /// [`Error::Precision`] for fewer than 2 bits; [`Error::DimensionOverflow`] if the size does not fit a `usize`;
    /// [`Error::OutOfMemory`] if the system refuses the memory.
    pub fn zeros(rows: usize, cols: usize, precision_bits: u32) -> Result<Matrix> {
        if !(2..=MAXIMUM_PRECISION_BITS).contains(&precision_bits) {
            let maximum_bits = MAXIMUM_PRECISION_BITS.into();
            return Err(Error::Precision { precision_bits: precision_bits.into(), maximum_bits });
        }
        let bytes = Matrix::check_size(rows, cols, precision_bits)?;
        let mut words = zeroed(bytes / 8)?;
        advise_huge_pages(&mut words);
        Ok(Matrix { rows, cols, precision_bits, words })
    }

    /// Bytes of a matrix that can be addressed.
    ///
    /// # Errors
    /// [`Error::DimensionOverflow`].
    #[doc(hidden)]
    pub fn check_size(rows: usize, cols: usize, precision_bits: u32) -> Result<usize> {
        let words = rows.checked_mul(cols).and_then(|count| count.checked_mul(1 + limbs_for(precision_bits)));
        let bytes = words.and_then(|words| words.checked_mul(8)).filter(|&bytes| bytes <= isize::MAX as usize);
        bytes.ok_or(Error::DimensionOverflow { rows, cols, precision_bits })
    }

    /// The matrix with the entries `entry(row, column)`, each rounded to nearest even at `precision_bits`; the function
    /// is called column by column.
    ///
    /// # Errors
    /// [`Error::NotFinite`] for the first NaN or infinity, and the errors of [`Matrix::zeros`].
    pub fn from_fn(
        rows: usize,
        cols: usize,
        precision_bits: u32,
        mut entry: impl FnMut(usize, usize) -> Float,
    ) -> Result<Matrix> {
        let mut matrix = Matrix::zeros(rows, cols, precision_bits)?;
        // However many columns there are, those of no rows have no entries.
        let cols = if rows == 0 { 0 } else { cols };
        for (col, row) in (0..cols).flat_map(|col| (0..rows).map(move |row| (col, row))) {
            matrix.set_float(row, col, &entry(row, col))?;
        }
        Ok(matrix)
    }

    /// The identity of `order` rows and columns.
    ///
    /// # Errors
    /// The errors of [`Matrix::zeros`].
    pub fn identity(order: usize, precision_bits: u32) -> Result<Matrix> {
        let mut matrix = Matrix::zeros(order, order, precision_bits)?;
        (0..order).try_for_each(|at| matrix.set_f64(at, at, 1.0))?;
        Ok(matrix)
    }

    /// Whether its shape and precision are those of a result, so that its memory can be used.
    #[doc(hidden)]
    pub fn fits(&self, rows: usize, cols: usize, precision_bits: u32) -> bool {
        (self.rows, self.cols) == (rows, cols) && self.precision_bits == precision_bits
    }

    /// Changes the shape and precision within the memory of the matrix, or allocates new memory if that is too small.
    ///
    /// Its elements are then arbitrary words, not numbers, until each has been written: for scratch matrices that
    /// products fill.
    ///
    /// # Errors
    /// As [`Matrix::zeros`].
    #[doc(hidden)]
    pub fn reshape(&mut self, rows: usize, cols: usize, precision_bits: u32) -> Result<()> {
        let mut words = std::mem::take(&mut self.words);
        let count = Matrix::bytes_for(rows, cols, precision_bits) / 8;
        if count > words.capacity() as u64 {
            (self.rows, self.cols) = (0, 0);
            drop(words); // give the old memory back before asking for the new
            *self = Matrix::zeros(rows, cols, precision_bits)?;
            return Ok(());
        }
        words.resize(count as usize, 0);
        *self = Matrix { rows, cols, precision_bits, words };
        Ok(())
    }

    /// The same entries, column by column, as a matrix of `rows x cols`: entry `i + j rows` remains entry number `i + j
    /// rows`. Cost: nothing is copied; after an error the matrix is lost.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if the numbers of entries differ.
    pub fn into_shape(self, rows: usize, cols: usize) -> Result<Matrix> {
        if rows.checked_mul(cols) != Some(self.rows * self.cols) {
            return Err(Error::shape_mismatch("into_shape", (self.rows, self.cols), (rows, cols)));
        }
        Ok(Matrix { rows, cols, ..self })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Bits of every significand.
    pub fn precision_bits(&self) -> u32 {
        self.precision_bits
    }

    /// Limbs of every significand.
    pub fn limbs_per_element(&self) -> usize {
        limbs_for(self.precision_bits)
    }

    /// Bytes of heads and limbs.
    pub fn bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    /// Bytes of a matrix of this shape; saturates if it could not be addressed.
    pub fn bytes_for(rows: usize, cols: usize, precision_bits: u32) -> u64 {
        let each = 8 * (1 + limbs_for(precision_bits) as u128);
        u64::try_from((rows as u128 * cols as u128).saturating_mul(each)).unwrap_or(u64::MAX)
    }

    fn index(&self, row: usize, col: usize) -> usize {
        assert!(row < self.rows && col < self.cols, "({row}, {col}) outside {} x {}", self.rows, self.cols);
        row + col * self.rows
    }

    /// The element at `(row, col)`, borrowed; [`Matrix::float`] returns it as an MPFR number. Panics if the place is
    /// outside the matrix.
    ///
    /// There is no `matrix[(row, col)]`: indexing would have to return a reference to a number, but head and limbs are
    /// stored separately.
    pub fn get(&self, row: usize, col: usize) -> FloatRef<'_> {
        let index = self.index(row, col);
        let limbs = self.limbs_per_element();
        let (heads, all_limbs) = self.parts();
        FloatRef { head: Head(heads[index]), limbs: &all_limbs[index * limbs..][..limbs] }
    }

    /// Writes an element: its head, and its limbs in the form described in `math::float`. Panics if the place is
    /// outside the matrix.
    pub fn set(&mut self, row: usize, col: usize, value: FloatRef<'_>) {
        let index = self.index(row, col);
        let limbs = self.limbs_per_element();
        let (heads, all_limbs) = self.parts_mut();
        heads[index] = value.head.0;
        all_limbs[index * limbs..][..limbs].copy_from_slice(value.limbs);
    }

    /// All heads and all limbs, column-major.
    pub fn parts(&self) -> (&[u64], &[u64]) {
        self.words.split_at(self.rows * self.cols)
    }

    /// All heads and all limbs for writing; the caller must keep the form described in `math::float`.
    pub fn parts_mut(&mut self) -> (&mut [u64], &mut [u64]) {
        let count = self.rows * self.cols;
        self.words.split_at_mut(count)
    }

    /// All words: heads, then limbs.
    #[doc(hidden)]
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// Sets every element to 0 and keeps the memory.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Sets every element above the diagonal to 0. Columns without nonzero elements there are not written.
    pub fn clear_above_diagonal(&mut self) {
        let (rows, limbs) = (self.rows, self.limbs_per_element());
        for col in 1..self.cols {
            let (start, end) = (col * rows, col * rows + col.min(rows));
            let (heads, all_limbs) = self.parts_mut();
            if heads[start..end].iter().any(|&head| head != 0) {
                heads[start..end].fill(0);
                all_limbs[start * limbs..end * limbs].fill(0);
            }
        }
    }
}
