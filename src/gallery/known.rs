//! Matrices whose entries are simple fractions or integers: each exact, or rounded once.

use super::{Kind, Size};
use crate::error::Result;
use crate::matrix::Matrix;
use rug::{Assign, Float, Integer};

/// The matrix of a kind with a formula per entry.
pub fn known(kind: Kind, size: Size) -> Result<Matrix> {
    match kind {
        Kind::Pascal => pascal(size),
        Kind::Hilbert | Kind::Cauchy | Kind::Lehmer => fractions(kind, size),
        _ => dyadic(kind, size),
    }
}

/// Entries that are a quotient of two small integers, rounded by one division.
fn fractions(kind: Kind, size: Size) -> Result<Matrix> {
    Matrix::from_fn(size.rows, size.cols, size.precision_bits, |row, col| {
        let (i, j) = (row as u128 + 1, col as u128 + 1);
        let (numerator, denominator) = match kind {
            Kind::Hilbert => (1, i + j - 1),
            Kind::Cauchy => (1, i + j),
            _ => (i.min(j), i.max(j)),
        };
        // Both are exact at 128 bits, so the division rounds once.
        let (numerator, denominator) = (Float::with_val(128, numerator), Float::with_val(128, denominator));
        Float::with_val(size.precision_bits, &numerator / &denominator)
    })
}

/// Entries that are an integer times a power of two.
fn dyadic(kind: Kind, size: Size) -> Result<Matrix> {
    let mut matrix = Matrix::zeros(size.rows, size.cols, size.precision_bits)?;
    let mu_exponent = -i64::from(size.precision_bits.div_ceil(2));
    let mut integer = Integer::new();
    for col in 0..size.cols {
        for row in 0..size.rows {
            let least = row.min(col) as i64 + 1;
            let (value, exponent) = match kind {
                Kind::Minij => (least, 0),
                Kind::Moler if row == col => (least, 0),
                Kind::Moler => (least - 2, 0),
                Kind::Kms => (1, -(row.abs_diff(col) as i64)),
                Kind::Lauchli if row == 0 => (1, 0),
                Kind::Lauchli => (i64::from(row == col + 1), mu_exponent),
                _ => unreachable!("{kind:?} has a function of its own"),
            };
            integer.assign(value);
            matrix.set_integer_exponent(row, col, &integer, exponent)?;
        }
    }
    Ok(matrix)
}

/// Binomials, down each column by `b(i, j) = b(i - 1, j) (i + j) / i`, which is exact at every step.
fn pascal(size: Size) -> Result<Matrix> {
    let mut matrix = Matrix::zeros(size.rows, size.cols, size.precision_bits)?;
    for col in 0..size.cols {
        let mut binomial = Integer::from(1);
        for row in 0..size.rows {
            if row > 0 {
                binomial *= (row + col) as u64;
                binomial.div_exact_mut(&Integer::from(row));
            }
            matrix.set_integer_exponent(row, col, &binomial, 0)?;
        }
    }
    Ok(matrix)
}
