//! Addition, scaling, norms and display of whole matrices: quadratic work, done entry by entry through MPFR.

use crate::error::{Error, Result};
use crate::math::float::Head;
use crate::matrix::{MAXIMUM_EXPONENT, Matrix, MatrixView, Symmetric, check_exponent};
use rug::Float;
use rug::ops::CompleteRound;
use std::fmt;

/// The error for an entry that was finite in its terms and overflowed.
fn overflowed(error: Error) -> Error {
    match error {
        Error::NotFinite { row, column, .. } => {
            Error::ExponentRange { row, column, exponent: MAXIMUM_EXPONENT + 1, limit: MAXIMUM_EXPONENT }
        }
        other => other,
    }
}

impl Symmetric<'_> {
    /// Largest column sum of `|a_ij|` (the 1-norm), to about `precision_bits - log2(rows)` bits.
    ///
    /// # Errors
    /// The errors of [`Symmetric::triangle_view`].
    pub fn one_norm(&self) -> Result<Float> {
        let lower = self.lower_view("the norm of a symmetric matrix")?;
        let bits = lower.precision_bits();
        let mut sums = vec![Float::new(bits); lower.rows()];
        for col in 0..lower.cols() {
            for row in col..lower.rows() {
                let size = lower.get(row, col).to_float(bits).abs();
                sums[col] += &size;
                if row != col {
                    sums[row] += size;
                }
            }
        }
        Ok(sums.into_iter().fold(Float::new(bits), |largest, sum| largest.max(&sum)))
    }
}

impl Matrix {
    /// `self + other`, each entry rounded once to `precision_bits`.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::ExponentRange`] if a sum is outside the exponent range.
    pub fn add<'a>(&self, other: impl Into<MatrixView<'a>>, precision_bits: u32) -> Result<Matrix> {
        let other = other.into();
        if (self.rows(), self.cols()) != (other.rows(), other.cols()) {
            return Err(Error::shape_mismatch("add", (self.rows(), self.cols()), (other.rows(), other.cols())));
        }
        Matrix::from_fn(self.rows(), self.cols(), precision_bits, |row, col| {
            let right = other.get(row, col).to_float(other.precision_bits());
            (&self.float(row, col) + &right).complete(precision_bits)
        })
        .map_err(overflowed)
    }

    /// `factor * self`, each entry rounded once to the matrix's own precision.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the factor is not finite; [`Error::ExponentRange`] if a product overflows.
    pub fn scale(&self, factor: &Float) -> Result<Matrix> {
        if !factor.is_finite() {
            return Err(Error::InvalidArgument(format!("the factor of a matrix is {factor}")));
        }
        let bits = self.precision_bits();
        Matrix::from_fn(self.rows(), self.cols(), bits, |row, col| (&self.float(row, col) * factor).complete(bits))
            .map_err(overflowed)
    }

    /// Multiplies every entry by `2^shift`, exactly and in place.
    ///
    /// # Errors
    /// [`Error::ExponentRange`] names the first entry whose exponent would be outside the range; the matrix is then
    /// unchanged.
    pub fn shift_exponents(&mut self, shift: i64) -> Result<()> {
        let rows = self.rows();
        for (index, &word) in self.parts().0.iter().enumerate() {
            if word != 0 {
                check_exponent(Head(word).exponent().saturating_add(shift), index % rows, index / rows)?;
            }
        }
        for word in self.parts_mut().0.iter_mut().filter(|word| **word != 0) {
            let head = Head(*word);
            *word = Head::new(head.is_negative(), head.exponent() + shift).0;
        }
        Ok(())
    }

    /// Largest `|a_ij|`, exactly; 0 for an empty matrix.
    pub fn max_norm(&self) -> Float {
        let mut largest = Float::new(self.precision_bits());
        for col in 0..self.cols() {
            for row in 0..self.rows() {
                let size = self.float(row, col).abs();
                if size > largest {
                    largest = size;
                }
            }
        }
        largest
    }

    /// Frobenius norm, to about `precision_bits - log2(rows * cols)` bits.
    pub fn frobenius_norm(&self) -> Float {
        let mut sum = Float::new(self.precision_bits());
        for col in 0..self.cols() {
            for row in 0..self.rows() {
                let value = self.float(row, col);
                sum += &value * &value;
            }
        }
        sum.sqrt()
    }

    /// Largest column sum of `|a_ij|` (the 1-norm), to about `precision_bits - log2(rows)` bits.
    pub fn one_norm(&self) -> Float {
        let mut largest = Float::new(self.precision_bits());
        for col in 0..self.cols() {
            let mut sum = Float::new(self.precision_bits());
            for row in 0..self.rows() {
                sum += self.float(row, col).abs();
            }
            if sum > largest {
                largest = sum;
            }
        }
        largest
    }
}

/// At most eight rows and columns, six digits each; for people, not for exchange.
impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} x {} matrix of {}-bit floats", self.rows(), self.cols(), self.precision_bits())?;
        let (rows, cols) = (self.rows().min(8), self.cols().min(8));
        for row in 0..rows {
            for col in 0..cols {
                write!(f, " {:>13}", format!("{:.5e}", self.float(row, col)))?;
            }
            writeln!(f, "{}", if cols < self.cols() { " ..." } else { "" })?;
        }
        if rows < self.rows() {
            writeln!(f, " ...")?;
        }
        Ok(())
    }
}

/// Shape and precision only: a matrix can be huge.
impl fmt::Debug for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Matrix({} x {}, {} bits)", self.rows(), self.cols(), self.precision_bits())
    }
}
