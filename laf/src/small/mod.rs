//! Matrices of a few dozen rows, such as inner products of blocks of vectors: the eigenproblem of a symmetric matrix,
//! and the Rayleigh-Ritz procedure on a basis that may be dependent.
//!
//! Accuracy has priority over speed here, since the cost is only that of a few thousand rows of a tall matrix.

mod eigen;
mod ritz;

pub use eigen::{Eigen, symmetric_eigen};
pub use ritz::{Ritz, RitzOptions, orthonormal_complement, rayleigh_ritz};

use sunzi::{Error, Result};

/// A small dense matrix, row by row.
#[derive(Clone, PartialEq, Debug)]
pub struct SmallMatrix {
    rows: usize,
    cols: usize,
    numbers: Vec<f64>,
}

impl SmallMatrix {
    /// All zeros.
    pub fn zeros(rows: usize, cols: usize) -> SmallMatrix {
        SmallMatrix { rows, cols, numbers: vec![0.0; rows * cols] }
    }

    /// `f(row, col)` everywhere.
    pub fn from_fn(rows: usize, cols: usize, mut f: impl FnMut(usize, usize) -> f64) -> SmallMatrix {
        let numbers = (0..rows * cols).map(|place| f(place / cols, place % cols)).collect();
        SmallMatrix { rows, cols, numbers }
    }

    /// The matrix with these numbers, row by row.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if the number of entries does not match the shape.
    pub fn from_numbers(rows: usize, cols: usize, numbers: Vec<f64>) -> Result<SmallMatrix> {
        if rows.checked_mul(cols) != Some(numbers.len()) {
            let (left_rows, left_cols, right_rows, right_cols) = (rows, cols, numbers.len(), 1);
            let operation = "numbers of a small matrix";
            return Err(Error::ShapeMismatch { operation, left_rows, left_cols, right_rows, right_cols });
        }
        Ok(SmallMatrix { rows, cols, numbers })
    }

    /// The unit matrix.
    pub fn identity(size: usize) -> SmallMatrix {
        SmallMatrix::from_fn(size, size, |row, col| if row == col { 1.0 } else { 0.0 })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// All entries, row by row.
    pub fn numbers(&self) -> &[f64] {
        &self.numbers
    }

    /// All entries, row by row.
    pub fn numbers_mut(&mut self) -> &mut [f64] {
        &mut self.numbers
    }

    /// One entry.
    pub fn at(&self, row: usize, col: usize) -> f64 {
        self.numbers[row * self.cols + col]
    }

    /// One entry.
    pub fn at_mut(&mut self, row: usize, col: usize) -> &mut f64 {
        &mut self.numbers[row * self.cols + col]
    }

    /// `op(A) B`, where `op` is the transpose if `transposed`. The shapes must fit (asserted).
    pub(crate) fn times(&self, transposed: bool, other: &SmallMatrix) -> SmallMatrix {
        let (rows, inner) = if transposed { (self.cols, self.rows) } else { (self.rows, self.cols) };
        assert_eq!(inner, other.rows, "shapes of a product of small matrices");
        SmallMatrix::from_fn(rows, other.cols, |row, col| {
            let left = |k| if transposed { self.at(k, row) } else { self.at(row, k) };
            (0..inner).map(|k| left(k) * other.at(k, col)).sum()
        })
    }

    /// The columns in a range.
    pub(crate) fn columns(&self, range: std::ops::Range<usize>) -> SmallMatrix {
        SmallMatrix::from_fn(self.rows, range.len(), |row, col| self.at(row, range.start + col))
    }

    /// The largest magnitude; 0 for an empty matrix, NaN where there is one.
    #[cfg(test)]
    pub(crate) fn largest(&self) -> f64 {
        self.numbers.iter().fold(0.0, |most, x| if x.abs() > most || x.is_nan() { x.abs() } else { most })
    }
}
