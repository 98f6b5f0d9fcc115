//! Determinants from the diagonals of factors: products in which no intermediate exponent can overflow.

use crate::error::{Error, Result};
use crate::math::bound::ceil_log2;
use crate::matrix::{MAXIMUM_EXPONENT, MatrixView};
use crate::ops::cholesky::Cholesky;
use crate::ops::ldlt::Ldlt;
use rug::Float;
use rug::float::prec_max;

/// Bits of the product beyond those of the result and those that the roundings of its factors take.
const SPARE_BITS: u32 = 16;

impl Cholesky {
    /// `det A = (prod l_ii)^2`, rounded to the factor's precision `p`; 1 for an empty matrix.
    ///
    /// Accuracy: `2^(1 - p)` relative to the determinant of `L L^T`, taking the factor as exact.
    /// [`Cholesky::log_det_digits`] estimates how close this is to `det A`: the absolute error of the logarithm is the
    /// relative error of the determinant. Cost: two products for each row.
    ///
    /// ```
    /// use sunzi::{Context, Matrix};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[4.0, 2.0, 2.0, 5.0])?;
    /// assert_eq!(sunzi::cholesky(&ctx, &a, 128)?.det()?, 16);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ExponentRange`] for a determinant outside the exponent range; its logarithm is [`Cholesky::log_det`].
    pub fn det(&self) -> Result<Float> {
        let factor = self.factor();
        let diagonal = (0..factor.rows()).map(|i| factor.float(i, i));
        product(diagonal.flat_map(|entry| [entry.clone(), entry]), factor.rows(), factor.precision_bits())
    }
}

impl Ldlt {
    /// `det A = prod d_i`, rounded to the precision `p` of the factors; 1 for an empty matrix.
    ///
    /// Accuracy: `2^(1 - p)` relative to the determinant of `L D L^T`, taking the factors as exact. Cost: one product
    /// for each row.
    ///
    /// ```
    /// use sunzi::{Context, Matrix};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 2.0, 2.0, -1.0])?;
    /// assert_eq!(sunzi::ldlt(&ctx, &a, 128)?.det()?, -6);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ExponentRange`] for a determinant outside the exponent range.
    pub fn det(&self) -> Result<Float> {
        let pivots = self.pivots();
        product((0..pivots.rows()).map(|i| pivots.float(i, 0)), pivots.rows(), pivots.precision_bits())
    }
}

/// The product of the pivots of a factorisation, a column, rounded to `precision_bits`; 1 for no pivots, 0 if one of
/// them is 0. It is the determinant, or minus the determinant if the rows were interchanged an odd number of times.
///
/// Accuracy: `2^(1 - precision_bits)` relative to the product. Cost: one product for each row.
///
/// # Errors
/// [`Error::ExponentRange`] for a product outside the exponent range.
pub fn product_of_pivots(pivots: MatrixView<'_>, precision_bits: u32) -> Result<Float> {
    let entries = (0..pivots.rows()).map(|i| pivots.get(i, 0).to_float(pivots.precision_bits()));
    product(entries, pivots.rows(), precision_bits.clamp(2, prec_max() - 64))
}

/// The product of `factors`, of which at most `2 rows` exist.
pub(crate) fn product(factors: impl Iterator<Item = Float>, rows: usize, precision_bits: u32) -> Result<Float> {
    let bits = precision_bits + ceil_log2(2 * rows + 1) + SPARE_BITS;
    // The exponents are summed apart from the product, whose factors lie between 1/2 and 1.
    let (mut product, mut exponent) = (Float::with_val(bits, 1), 0i64);
    let mut scaled = |number: &mut Float| {
        let top = number.get_exp().unwrap_or(0);
        *number >>= top;
        exponent += i64::from(top);
    };
    for mut factor in factors {
        scaled(&mut factor);
        product *= factor;
        scaled(&mut product);
    }
    let mut product = Float::with_val(precision_bits, product);
    scaled(&mut product);
    if exponent.abs() > MAXIMUM_EXPONENT {
        return Err(Error::ExponentRange { row: 0, column: 0, exponent, limit: MAXIMUM_EXPONENT });
    }
    Ok(product << exponent as i32)
}

#[cfg(test)]
mod tests {
    use crate::{Context, Error, Matrix, cholesky, ldlt};
    use rug::Float;

    fn matrix(order: usize, entries: &[f64]) -> Matrix {
        Matrix::from_f64s(order, order, 120, entries).unwrap()
    }

    #[test]
    fn determinants_of_factors() {
        let ctx = Context::builder().threads(1).build().unwrap();
        let definite = matrix(3, &[4.0, 2.0, 0.0, 2.0, 10.0, -3.0, 0.0, -3.0, 5.0]);
        assert_eq!(cholesky(&ctx, &definite, 120).unwrap().det().unwrap(), 144);
        assert_eq!(ldlt(&ctx, &definite, 120).unwrap().det().unwrap(), 144);
        let indefinite = matrix(2, &[1.0, 2.0, 2.0, -3.0]);
        assert_eq!(ldlt(&ctx, &indefinite, 120).unwrap().det().unwrap(), -7);
        assert_eq!(cholesky(&ctx, &Matrix::empty(), 120).unwrap().det().unwrap(), 1);
    }

    #[test]
    fn exponents_may_leave_the_range_on_the_way_alone() {
        let ctx = Context::builder().threads(1).build().unwrap();
        let power = |exponent: i32| Float::with_val(120, 1) << exponent;
        let diagonal = |exponents: [i32; 4]| {
            Matrix::from_fn(4, 4, 120, |row, col| if row == col { power(exponents[row]) } else { Float::new(120) })
        };
        let most = 1 << 29;
        let balanced = diagonal([most, most, -most, 2 - most]).unwrap();
        assert_eq!(cholesky(&ctx, &balanced, 120).unwrap().det().unwrap(), 4);
        assert_eq!(ldlt(&ctx, &balanced, 120).unwrap().det().unwrap(), 4);
        let beyond = cholesky(&ctx, &diagonal([most, most, 0, 0]).unwrap(), 120).unwrap().det().unwrap_err();
        assert!(matches!(beyond, Error::ExponentRange { exponent: 0x4000_0001, .. }), "{beyond}");
    }
}
