//! Between exact numbers and matrices of the library: shifts, factors, roundings. All results are guesses, which the
//! check has to confirm.

use crate::numbers::Arithmetic;
use crate::proof::{Fixed, Scaled, Witness, packed, triangle};
use rug::{Float, Integer, Rational};
use sunzi::{Accuracy, Cholesky, CholeskyOptions, Error, Matrix, Result, Symmetric, SyrkOptions, TrsmOptions};
use sunzi::{cholesky_with, syrk_with, trsm_with};

/// The largest number of bits of a factor behind the point.
const MAXIMUM_BITS: u32 = 1 << 14;

/// Attempts at the bits of a factor, and bits more for each.
const ATTEMPTS: i64 = 4;
const MORE_BITS: i64 = 64;

/// Exponent of a number that is 0.
const ZERO_EXPONENT: i64 = -(1 << 30);

/// The number nearest to `value 2^bits`.
pub fn to_integer(value: &Float, bits: u32) -> Integer {
    Float::with_val(value.prec(), value << bits).to_integer().unwrap_or_default()
}

/// The least `e` with `|value| < 2^e`.
pub fn exponent(value: &Float) -> i64 {
    value.get_exp().map_or(ZERO_EXPONENT, i64::from)
}

/// As [`exponent`], or one more.
pub fn rational_exponent(value: &Rational) -> i64 {
    exponent(&Float::with_val(64, value))
}

/// The least `e` with `n <= 2^e`, for the orders of sums.
pub fn log2_above(count: usize) -> i64 {
    i64::from(usize::BITS - count.leading_zeros())
}

/// `2^exponent`.
pub fn power(exponent: i64) -> Float {
    Float::with_val(2, 1) << exponent.clamp(-(1 << 30), 1 << 30) as i32
}

/// The numbers in units of `2^-bits`, rounded.
pub fn fixed_column(column: &Matrix, bits: u32) -> Fixed {
    Fixed { bits, values: (0..column.rows()).map(|row| to_integer(&column.float(row, 0), bits)).collect() }
}

/// The column of numbers in units of a power of two.
///
/// # Errors
/// The errors of [`Matrix::from_fn`].
pub fn rounded_column(column: &Fixed, bits: u32) -> Result<Matrix> {
    Matrix::from_fn(column.values.len(), 1, bits, |row, _| Float::with_val(bits, &column.values[row]) >> column.bits)
}

/// The matrix of exact numbers, row by row.
///
/// # Errors
/// The errors of [`Matrix::from_fn`].
pub fn rounded_exact(matrix: &Scaled, rows: usize, cols: usize, bits: u32) -> Result<Matrix> {
    let denominator = Float::with_val(bits + 32, &matrix.denominator);
    Matrix::from_fn(rows, cols, bits, |row, col| {
        Float::with_val(bits + 32, &matrix.numerators[row * cols + col]) / &denominator
    })
}

/// The symmetric matrix of exact numbers.
///
/// # Errors
/// The errors of [`Matrix::from_fn`].
pub fn rounded_symmetric(matrix: &Scaled, order: usize, bits: u32) -> Result<Matrix> {
    Matrix::from_fn(order, order, bits, |row, col| Float::with_val(bits, matrix.get(packed(row, col))))
}

/// The Cholesky factor, each entry accurate relative to its own terms, or nothing where the matrix is not positive
/// definite at this precision.
///
/// # Errors
/// The errors of [`cholesky_with`] other than that.
pub fn factored(k: Arithmetic<'_>, matrix: &Matrix) -> Result<Option<Cholesky>> {
    let options = CholeskyOptions::new().accuracy(Accuracy::Entrywise);
    match cholesky_with(k.ctx, Symmetric::lower(matrix), k.bits, &options) {
        Ok(outcome) => Ok(Some(outcome.result)),
        Err(Error::NotPositiveDefinite { .. } | Error::Precision { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A power of two below the least eigenvalue, as an exponent: within `4 n` of it for n rows. `None` where the matrix is
/// not positive definite.
///
/// `||L^-1||_F^2` is the sum of the inverses of all eigenvalues. It is accurate however far these lie apart, unlike an
/// eigenvalue that is computed to an error relative to the norm of the matrix.
///
/// # Errors
/// The errors of the library's factorisations and solves.
pub fn least_eigenvalue(k: Arithmetic<'_>, matrix: &Matrix) -> Result<Option<i64>> {
    let Some(factor) = factored(k, matrix)? else { return Ok(None) };
    let options = TrsmOptions::new().accuracy(Accuracy::Entrywise);
    let identity = Matrix::identity(matrix.rows(), 2)?;
    let inverse = trsm_with(k.ctx, factor.factor(), &identity, k.bits, &options)?.result;
    Ok(Some(-exponent(&k.inner(&inverse, &inverse)?) - 1))
}

/// A factor of `matrix - 2^exponent I`, rounded to `fraction_bits` bits behind the point; `None` where there is none.
///
/// # Errors
/// The errors of [`cholesky_with`] except where the matrix is not positive definite.
pub fn witness(k: Arithmetic<'_>, matrix: &Matrix, exponent: i64, fraction_bits: u32) -> Result<Option<Witness>> {
    let Some(factor) = factored(k, &shifted(k, matrix, exponent)?)? else { return Ok(None) };
    let (factor, order) = (factor.factor(), matrix.rows());
    let mut values = Vec::with_capacity(triangle(order));
    for row in 0..order {
        values.extend((0..=row).map(|col| to_integer(&factor.float(row, col), fraction_bits)));
    }
    Ok(Some(Witness { exponent, factor: Fixed { bits: fraction_bits, values } }))
}

/// `matrix - 2^exponent I`.
fn shifted(k: Arithmetic<'_>, matrix: &Matrix, exponent: i64) -> Result<Matrix> {
    let (mut shifted, tau) = (matrix.clone(), power(exponent));
    for at in 0..matrix.rows() {
        let entry = Float::with_val(k.bits, shifted.float(at, at) - &tau);
        shifted.set_float(at, at, &entry)?;
    }
    Ok(shifted)
}

/// `L L^T` for the factor of a witness, rounded.
///
/// # Errors
/// The errors of [`syrk_with`].
pub fn product(k: Arithmetic<'_>, factor: &Fixed, order: usize) -> Result<Matrix> {
    let transposed = Matrix::from_fn(order, order, k.bits, |col, row| match col <= row {
        true => Float::with_val(k.bits, &factor.values[packed(row, col)]) >> factor.bits,
        false => Float::new(2),
    })?;
    let options = SyrkOptions::new().accuracy(Accuracy::Entrywise);
    Ok(syrk_with(k.ctx, &transposed, k.bits, &options)?.result.into_matrix())
}

/// A proof that a matrix is positive definite, likely to pass the check, which allows twice the residual; nothing where
/// it is not, or not at this precision.
///
/// # Errors
/// The errors of the library.
pub fn shown(k: Arithmetic<'_>, matrix: &Matrix) -> Result<Option<Witness>> {
    let Some(least) = least_eigenvalue(k, matrix)? else { return Ok(None) };
    let order = matrix.rows();
    let exponent = least - 1;
    let largest = (0..order).map(|at| self::exponent(&matrix.float(at, at))).max().unwrap_or(0);
    let size = largest.max(0).div_euclid(2) + 1 + 2 * log2_above(order);
    let limit = power(2 * exponent - 4);
    for attempt in 0..ATTEMPTS {
        let fraction_bits = bits_within(size - exponent + 8 + MORE_BITS * attempt);
        let Some(witness) = witness(k, matrix, exponent, fraction_bits)? else { return Ok(None) };
        let rest = k.difference(&shifted(k, matrix, exponent)?, &product(k, &witness.factor, order)?)?;
        if k.inner(&rest, &rest)? <= limit {
            return Ok(Some(witness));
        }
    }
    Ok(None)
}

/// The number, exactly; 0 if the double is not a number.
pub fn to_rational(value: &Float) -> Rational {
    value.to_rational().unwrap_or_default()
}

/// `bits`, but at least 16 and at most [`MAXIMUM_BITS`].
pub fn bits_within(bits: i64) -> u32 {
    bits.clamp(16, i64::from(MAXIMUM_BITS)) as u32
}
