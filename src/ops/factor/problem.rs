//! What is to be factored: the triangle that is read, its scaling, and how far it can go.

use crate::error::{Error, Result};
use crate::math::bound::{cholesky_modulus_bits, cholesky_working_bits};
use crate::math::pivot::RowWeight;
use crate::matrix::MatrixView;
use crate::ops::factor::scaling::{is_beyond_one, row_exponent, scaled_entry};
use crate::options::setters;
use rug::Integer;

/// Choices of a factorisation beyond the matrix and the precision.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CholeskyOptions {
    /// Rows of a tile; `None` chooses by size and precision. It never shows in the result.
    pub tile_rows: Option<usize>,
}

setters! { new CholeskyOptions { tile_rows: impl Into<Option<usize>> } }

/// A symmetric matrix to factor at one precision.
pub(crate) struct Problem<'a> {
    /// Entry `(i, j)`, `j <= i`, is read; what lies above the diagonal is not.
    pub lower: MatrixView<'a>,
    /// Rows of the whole matrix.
    pub rows: usize,
    /// Rows to factor: all, or those before the first that already shows the matrix to be indefinite.
    pub order: usize,
    /// Precision of the factor.
    pub precision_bits: u32,
    /// Fixed-point bits of the scaled factor.
    pub working_bits: u32,
    /// `s_i`: the scaled matrix is `a_ij 2^(-s_i - s_j)`; one for each row of `order`.
    pub exponents: Vec<i64>,
}

impl<'a> Problem<'a> {
    /// Checks shape and precision and scales the diagonal of the matrix whose lower triangle is that of `lower`.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] where it is not square, [`Error::Precision`].
    pub fn new(lower: MatrixView<'a>, precision_bits: u32, maximum_modulus_bits: u32) -> Result<Problem<'a>> {
        let (rows, cols) = (lower.rows(), lower.cols());
        check_square(rows, cols)?;
        let working_bits = working_bits(precision_bits, maximum_modulus_bits)?;
        let mut problem = Problem { lower, rows, order: rows, precision_bits, working_bits, exponents: Vec::new() };
        problem.scale();
        Ok(problem)
    }

    /// Finds the exponents of all rows before the first with a diagonal entry of at most 0, or with an entry whose
    /// square is beyond its two diagonal entries.
    fn scale(&mut self) {
        for i in 0..self.rows {
            let exponent = row_exponent(self.lower.get(i, i).head);
            self.exponents.extend(exponent);
            if exponent.is_none() || (0..i).any(|j| self.is_beyond_one(i, j)) {
                self.exponents.truncate(i);
                self.order = i;
                return;
            }
        }
    }

    fn is_beyond_one(&self, i: usize, j: usize) -> bool {
        is_beyond_one(self.lower.get(i, j), self.exponents[i] + self.exponents[j], self.working_bits)
    }

    /// `round(a_ij 2^(2 working_bits - s_i - s_j))`, ties to even; `i`, `j` below `order`.
    pub fn scaled_entry(&self, i: usize, j: usize) -> Integer {
        scaled_entry(self.lower.get(i, j), self.exponents[i] + self.exponents[j], self.working_bits)
    }

    /// Empty running sums of all rows of `order`.
    pub fn weights(&self) -> Vec<RowWeight> {
        (0..self.order).map(|i| RowWeight::new(&self.scaled_entry(i, i), self.working_bits)).collect()
    }

    /// Whether all rows can be tried.
    pub fn is_whole(&self) -> bool {
        self.order == self.rows
    }
}

/// The operation that a matrix which is not square is refused for.
pub(crate) const SQUARE: &str = "cholesky of a square matrix";

/// Refuses a matrix that is not square.
///
/// # Errors
/// [`Error::ShapeMismatch`].
pub(crate) fn check_square(rows: usize, cols: usize) -> Result<()> {
    if rows == cols {
        return Ok(());
    }
    let operation = SQUARE;
    Err(Error::ShapeMismatch { operation, left_rows: rows, left_cols: cols, right_rows: cols, right_cols: rows })
}

/// Fixed-point bits of a factor of `precision_bits`.
///
/// # Errors
/// [`Error::Precision`] where the kernel has not enough primes.
pub(crate) fn working_bits(precision_bits: u32, maximum_modulus_bits: u32) -> Result<u32> {
    let fits = |bits: u32| cholesky_modulus_bits(cholesky_working_bits(bits)) <= maximum_modulus_bits;
    if precision_bits < 2 || precision_bits > maximum_modulus_bits / 2 || !fits(precision_bits) {
        let maximum_bits = (2..=maximum_modulus_bits / 2).rev().find(|&bits| fits(bits)).unwrap_or(0);
        return Err(Error::Precision { precision_bits: precision_bits.into(), maximum_bits: maximum_bits.into() });
    }
    Ok(cholesky_working_bits(precision_bits))
}
