//! Between exact numbers and matrices of the library: shifts, factors, roundings. What is found here is a guess, which
//! the check has to confirm.

use crate::proof::{Fixed, Scaled, Witness, packed, triangle};
use rug::{Float, Integer, Rational};
use sunzi::{Accuracy, CholeskyOptions, Context, Error, Matrix, Result, Symmetric, cholesky_with, extreme_eigenvalue};

/// Bits of the search for the least eigenvalue, one after the other until it is positive.
const EIGENVALUE_BITS: [u32; 4] = [16, 80, 240, 600];

/// Most bits of a factorisation.
const MAXIMUM_BITS: u32 = 4800;

/// Exponent of a number that is 0.
const ZERO_EXPONENT: i64 = -(1 << 30);

/// The number nearest to `value 2^bits`.
pub fn to_integer(value: &Float, bits: u32) -> Integer {
    Float::with_val(value.prec(), value << bits).to_integer().unwrap_or_default()
}

/// The number nearest to `value`.
pub fn nearest(value: &Rational, bits: u32) -> Integer {
    Rational::from(value << bits).round().into_numer_denom().0
}

/// The least `e` with `|value| < 2^e`.
pub fn exponent(value: &Float) -> i64 {
    value.get_exp().map_or(ZERO_EXPONENT, i64::from)
}

/// As [`exponent`], or one more.
pub fn rational_exponent(value: &Rational) -> i64 {
    exponent(&Float::with_val(64, value))
}

/// The symmetric matrix `D S D` with the powers of two of `scales`.
///
/// # Errors
/// Those of [`Matrix::from_fn`].
pub fn scaled_matrix(matrix: &Scaled, scales: &[i64], bits: u32) -> Result<Matrix> {
    let order = scales.len();
    Matrix::from_fn(order, order, bits, |row, col| {
        let entry = Float::with_val(bits, matrix.get(packed(row, col)));
        entry << (scales[row] + scales[col]) as i32
    })
}

/// The symmetric matrix of a lower triangle.
///
/// # Errors
/// Those of [`Matrix::from_fn`].
pub fn fixed_matrix(matrix: &Fixed, order: usize, bits: u32) -> Result<Matrix> {
    Matrix::from_fn(order, order, bits, |row, col| {
        Float::with_val(bits, &matrix.values[packed(row, col)]) >> matrix.bits
    })
}

/// The power of two in the lower half of what the least eigenvalue is known to exceed, as an exponent; `None` where it
/// is not known to be positive.
///
/// # Errors
/// [`Error::MemoryLimit`], [`Error::OutOfMemory`], [`Error::Cancelled`].
pub fn half_of_least_eigenvalue(ctx: &Context, matrix: &Matrix) -> Result<Option<i64>> {
    for bits in EIGENVALUE_BITS {
        match extreme_eigenvalue(ctx, Symmetric::lower(matrix), bits) {
            Ok(interval) if interval.lower > 0 => return Ok(Some(exponent(&interval.lower) - 2)),
            Ok(interval) if interval.upper <= 0 => return Ok(None),
            Ok(_) => {}
            Err(Error::Verification(_) | Error::Precision { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// A factor of `matrix - 2^exponent I`, rounded to `fraction_bits` bits behind the point; `None` where there is none.
///
/// # Errors
/// Those of [`cholesky_with`] but for what is not positive definite.
pub fn witness(ctx: &Context, matrix: &Matrix, exponent: i64, fraction_bits: u32) -> Result<Option<Witness>> {
    let order = matrix.rows();
    let mut shifted = matrix.clone();
    let tau = Float::with_val(2, 1) << exponent as i32;
    for at in 0..order {
        let entry = Float::with_val(matrix.precision_bits(), shifted.float(at, at) - &tau);
        shifted.set_float(at, at, &entry)?;
    }
    let options = CholeskyOptions::new().accuracy(Accuracy::Entrywise);
    let bits = matrix.precision_bits().min(MAXIMUM_BITS);
    let factor = match cholesky_with(ctx, Symmetric::lower(&shifted), bits, &options) {
        Ok(outcome) => outcome.result.into_factor(),
        Err(Error::NotPositiveDefinite { .. } | Error::Precision { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut values = Vec::with_capacity(triangle(order));
    for row in 0..order {
        values.extend((0..=row).map(|col| to_integer(&factor.float(row, col), fraction_bits)));
    }
    Ok(Some(Witness { exponent, factor: Fixed { bits: fraction_bits, values } }))
}

/// A number of bits between sensible limits.
pub fn bits_within(bits: i64) -> u32 {
    bits.clamp(16, i64::from(MAXIMUM_BITS)) as u32
}

/// An upper bound of the square root.
pub fn root_above(square: &Rational) -> Rational {
    use rug::float::Round;
    let (mut above, _) = Float::with_val_round(128, square, Round::Up);
    above.sqrt_round(Round::Up);
    above.to_rational().unwrap_or_default()
}
