//! Copies of operands and results: those that are kept between calls, and the rows of a product's operand.

use super::caller::LocalInput;
use crate::error::Result;
use crate::matrix::{Matrix, MatrixView};
use std::sync::{Mutex, PoisonError};

/// Copies of operands and results that a caller keeps for calls of the same shape.
#[derive(Default)]
pub struct CopyPool(Mutex<Vec<Matrix>>);

/// The most copies that are kept.
const KEPT_MATRICES: usize = 4;

impl CopyPool {
    /// A matrix of the shape and precision with arbitrary numbers in it: a new one, or a kept one with the same number
    /// of entries.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`], [`crate::Error::Precision`].
    pub fn take(&self, rows: usize, cols: usize, precision_bits: u32) -> Result<Matrix> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A copy of a transpose, along the caller's memory, also has room for a matrix that is copied as it is.
        let fits = |matrix: &Matrix| {
            Some(matrix.rows() * matrix.cols()) == rows.checked_mul(cols) && matrix.precision_bits() == precision_bits
        };
        if let Some(at) = kept.iter().rposition(fits) {
            return kept.remove(at).into_shape(rows, cols);
        }
        drop(kept);
        Matrix::zeros(rows, cols, precision_bits)
    }

    /// Keeps a matrix for the next call.
    pub fn give(&self, matrix: Matrix) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT_MATRICES {
            kept.remove(0);
        }
        kept.push(matrix);
    }

    /// Frees what is kept.
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// This rank's rows of an operand.
pub(super) enum PlacedRows<'a> {
    /// Where the caller has them, or a copy in the same order.
    Placed(LocalInput<'a>),
    /// Moved here.
    Moved(Matrix),
}

impl PlacedRows<'_> {
    /// The rows.
    pub(super) fn view(&self) -> MatrixView<'_> {
        match self {
            PlacedRows::Placed(input) => input.view(),
            PlacedRows::Moved(share) => share.view(),
        }
    }
}
