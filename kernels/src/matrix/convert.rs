//! Exchange with `rug::Float`, `rug::Integer` and `f64`, element-wise and in bulk.

use crate::error::{Error, Result};
use crate::math::float::{FloatRef, Head, round_integer};
use crate::matrix::{Matrix, MatrixView, MatrixViewMut, check_exponent};
use rug::integer::Order;
use rug::{Float, Integer};

impl FloatRef<'_> {
    /// The number as an MPFR float of `precision_bits` bits, rounded to nearest.
    ///
    /// Exact if `precision_bits` is at least the precision of the number. Exponents outside MPFR's range give infinity
    /// or 0, as in MPFR.
    pub fn to_float(self, precision_bits: u32) -> Float {
        if self.head.is_zero() {
            return Float::new(precision_bits);
        }
        // Scalars are powers of two as a rule, above all 1.
        if let Some((&top, lower)) = self.limbs.split_last()
            && top == 1 << 63
            && lower.iter().all(|&limb| limb == 0)
        {
            let exponent = (self.head.exponent() - 1).clamp(i32::MIN.into(), i32::MAX.into()) as i32;
            return Float::with_val(precision_bits, if self.head.is_negative() { -1 } else { 1 }) << exponent;
        }
        let (integer, exponent) = self.to_integer_exponent();
        let clamped = exponent.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        Float::with_val(precision_bits, &integer) << clamped
    }

    /// The number as `integer * 2^exponent`, exactly.
    pub fn to_integer_exponent(self) -> (Integer, i64) {
        let magnitude = Integer::from_digits(self.limbs, Order::Lsf);
        let exponent = self.head.exponent() - self.limbs.len() as i64 * 64;
        (if self.head.is_negative() { -magnitude } else { magnitude }, exponent)
    }

    /// The number as an integer, or `None` if it has a fractional part.
    pub fn to_integer(self) -> Option<Integer> {
        if self.head.is_zero() {
            return Some(Integer::new());
        }
        let (integer, exponent) = self.to_integer_exponent();
        if exponent >= 0 {
            return u32::try_from(exponent).ok().map(|shift| integer << shift);
        }
        let shift = u32::try_from(-exponent).ok()?;
        integer.is_divisible_2pow(shift).then(|| integer >> shift)
    }
}

impl MatrixView<'_> {
    /// All entries rounded to `precision_bits` bits, to nearest, ties to even.
    ///
    /// # Errors
    /// [`Error::ExponentRange`] if rounding leads outside the exponent range; the errors of [`Matrix::zeros`].
    pub fn rounded(&self, precision_bits: u32) -> Result<Matrix> {
        let mut rounded = Matrix::zeros(self.rows(), self.cols(), precision_bits)?;
        let (width, own) = (rounded.limbs_per_element(), self.limbs_per_element() as i64);
        let (heads, limbs) = rounded.parts_mut();
        // However many columns there are, those of no rows have no entries.
        let cols = if self.rows() == 0 { 0 } else { self.cols() };
        let places = (0..cols).flat_map(|col| (0..self.rows()).map(move |row| (row, col)));
        for ((row, col), (head, out)) in places.zip(heads.iter_mut().zip(limbs.chunks_exact_mut(width))) {
            let FloatRef { head: from, limbs } = self.get(row, col);
            if !from.is_zero() {
                let low = from.exponent() - 64 * own;
                let found = round_integer(from.is_negative(), limbs, low, precision_bits, out);
                check_exponent(found.exponent(), row, col)?;
                *head = found.0;
            }
        }
        Ok(rounded)
    }
}

impl MatrixViewMut<'_> {
    /// Writes `value`, rounded to nearest even at the view's precision.
    ///
    /// # Errors
    /// [`Error::NotFinite`] for NaN and infinities.
    pub fn set_float(&mut self, row: usize, col: usize, value: &Float) -> Result<()> {
        if !value.is_finite() {
            let kind = if value.is_nan() { "NaN" } else { "infinite" };
            return Err(Error::NotFinite { row, column: col, kind });
        }
        match value.to_integer_exp() {
            Some((integer, exponent)) => self.set_integer_exponent(row, col, &integer, exponent.into()),
            None => Ok(()),
        }
    }

    /// Writes `integer * 2^exponent`, rounded to nearest even at the view's precision.
    ///
    /// # Errors
    /// [`Error::ExponentRange`] if the exponent of the result is outside +-[`crate::matrix::MAXIMUM_EXPONENT`].
    pub fn set_integer_exponent(&mut self, row: usize, col: usize, integer: &Integer, exponent: i64) -> Result<()> {
        let mut limbs = vec![0; self.limbs_per_element()];
        let negative = *integer < 0;
        let head = round_integer(negative, integer.as_limbs(), exponent, self.precision_bits(), &mut limbs);
        check_exponent(head.exponent(), row, col)?;
        self.set(row, col, FloatRef { head, limbs: &limbs });
        Ok(())
    }
}

impl Matrix {
    /// Writes `value`, rounded to nearest even at the matrix's precision.
    ///
    /// # Errors
    /// [`Error::NotFinite`] for NaN and infinities.
    pub fn set_float(&mut self, row: usize, col: usize, value: &Float) -> Result<()> {
        self.view_mut().set_float(row, col, value)
    }

    /// Writes `integer * 2^exponent`, rounded to nearest even at the matrix's precision.
    ///
    /// # Errors
    /// [`Error::ExponentRange`] if the exponent of the result is outside +-[`crate::matrix::MAXIMUM_EXPONENT`].
    pub fn set_integer_exponent(&mut self, row: usize, col: usize, integer: &Integer, exponent: i64) -> Result<()> {
        self.view_mut().set_integer_exponent(row, col, integer, exponent)
    }

    /// Writes an `f64`, rounded to nearest even at the matrix's precision.
    ///
    /// # Errors
    /// [`Error::NotFinite`] for NaN and infinities.
    pub fn set_f64(&mut self, row: usize, col: usize, value: f64) -> Result<()> {
        self.set_float(row, col, &Float::with_val(53, value))
    }

    /// The element at `(row, col)` as an MPFR float of the matrix's precision: exact.
    pub fn float(&self, row: usize, col: usize) -> Float {
        self.get(row, col).to_float(self.precision_bits())
    }

    /// A matrix from column-major floats, each rounded to nearest even at `precision_bits`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the slice does not have `rows * cols` entries, [`Error::NotFinite`] for the first
    /// NaN or infinity, and the errors of [`Matrix::zeros`].
    pub fn from_floats(rows: usize, cols: usize, precision_bits: u32, values: &[Float]) -> Result<Matrix> {
        Self::from_slice(rows, cols, precision_bits, values, |matrix, row, col, value| {
            matrix.set_float(row, col, value)
        })
    }

    /// A matrix from column-major integers, each rounded to nearest even at `precision_bits`.
    ///
    /// # Errors
    /// As [`Matrix::from_floats`].
    pub fn from_integers(rows: usize, cols: usize, precision_bits: u32, values: &[Integer]) -> Result<Matrix> {
        Self::from_slice(rows, cols, precision_bits, values, |matrix, row, col, value| {
            matrix.set_integer_exponent(row, col, value, 0)
        })
    }

    /// A matrix from column-major doubles, each rounded to nearest even at `precision_bits`.
    ///
    /// # Errors
    /// As [`Matrix::from_floats`].
    pub fn from_f64s(rows: usize, cols: usize, precision_bits: u32, values: &[f64]) -> Result<Matrix> {
        Self::from_slice(rows, cols, precision_bits, values, |matrix, row, col, &value| matrix.set_f64(row, col, value))
    }

    fn from_slice<T>(
        rows: usize,
        cols: usize,
        precision_bits: u32,
        values: &[T],
        set: impl Fn(&mut Matrix, usize, usize, &T) -> Result<()>,
    ) -> Result<Matrix> {
        let mut matrix = Matrix::zeros(rows, cols, precision_bits)?;
        if values.len() != rows * cols {
            let message = format!("{} values are given for a {rows} x {cols} matrix", values.len());
            return Err(Error::InvalidArgument(message));
        }
        for (index, value) in values.iter().enumerate() {
            set(&mut matrix, index % rows, index / rows, value)?;
        }
        Ok(matrix)
    }
}

impl MatrixView<'_> {
    /// All elements, column-major, as MPFR floats of the matrix's precision: exact.
    pub fn to_floats(&self) -> Vec<Float> {
        self.map(|value| value.to_float(self.precision_bits()))
    }

    /// All elements, column-major, as doubles (nearest up to one unit in the last place).
    pub fn to_f64s(&self) -> Vec<f64> {
        self.map(|value| value.to_f64())
    }

    /// All elements, column-major, as integers.
    ///
    /// # Errors
    /// [`Error::NotInteger`] names the first element with a fractional part.
    pub fn to_integers(&self) -> Result<Vec<Integer>> {
        self.map(|value| value.to_integer())
            .into_iter()
            .enumerate()
            .map(|(at, value)| value.ok_or(Error::NotInteger { row: at % self.rows(), column: at / self.rows() }))
            .collect()
    }

    fn map<'a, T>(&'a self, read: impl Fn(FloatRef<'a>) -> T) -> Vec<T> {
        let mut values = Vec::with_capacity(self.rows() * self.cols());
        for col in 0..self.cols() {
            values.extend((0..self.rows()).map(|row| read(self.get(row, col))));
        }
        values
    }
}

/// Head of a number, from a rug float that is finite.
impl From<&Float> for Head {
    fn from(value: &Float) -> Head {
        value.get_exp().map_or(Head::ZERO, |exponent| Head::new(value.is_sign_negative(), exponent.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_shape_keeps_the_entries_column_by_column() {
        let matrix = Matrix::from_f64s(2, 3, 64, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let entries = matrix.parts().0.as_ptr();
        let turned = matrix.clone().into_shape(3, 2).unwrap();
        assert_eq!((turned.rows(), turned.cols(), turned.parts()), (3, 2, matrix.parts()));
        let refused = matrix.clone().into_shape(4, 2);
        assert!(matches!(refused, Err(Error::ShapeMismatch { .. })), "4 x 2 of six entries");
        assert!(matrix.clone().into_shape(usize::MAX, 2).is_err());
        assert_eq!(matrix.into_shape(6, 1).unwrap().parts().0.as_ptr(), entries);
    }

    #[test]
    fn matrices_are_rounded_as_their_numbers_are() -> Result<()> {
        let entry = |row: usize, col: usize| {
            let third = Float::with_val(200, row as f64 - 1.0) / (col as u32 + 3);
            third << (90 * col as u32)
        };
        let matrix = Matrix::from_fn(4, 3, 200, entry)?;
        for bits in [2, 53, 64, 65, 128, 199, 200, 300] {
            let rounded = matrix.transposed().rounded(bits)?;
            let want = Matrix::from_fn(3, 4, bits, |row, col| matrix.float(col, row))?;
            assert!(rounded == want, "{bits} bits");
        }
        assert_eq!(matrix.view().block(1..1, 0..3)?.rounded(64)?.cols(), 3);
        let mut large = Matrix::zeros(1, 1, 64)?;
        large.set_integer_exponent(0, 0, &7.into(), i64::from(1u32 << 30) - 4)?;
        assert!(matches!(large.view().rounded(2), Err(Error::ExponentRange { row: 0, column: 0, .. })));
        Ok(())
    }
}
