//! Matrices whose entries are simple fractions or integers: each exact, or rounded once.

use super::Kind;
use super::columns::MatrixPart;
use crate::error::Result;
use crate::matrix::Matrix;
use rug::{Assign, Float, Integer};

/// The block of a kind with a formula per entry.
pub fn known(kind: Kind, part: &MatrixPart) -> Result<Matrix> {
    part.by_columns(|col, column| match kind {
        Kind::Pascal => pascal(part, col, column),
        Kind::Hilbert | Kind::Cauchy | Kind::Lehmer => fractions(kind, part, col, column),
        _ => dyadic(kind, part, col, column),
    })
}

/// Entries that are a quotient of two small integers, rounded by one division.
fn fractions(kind: Kind, part: &MatrixPart, col: usize, column: &mut Matrix) -> Result<()> {
    for (at, row) in part.rows.clone().enumerate() {
        let (i, j) = (row as u128 + 1, col as u128 + 1);
        let (numerator, denominator) = match kind {
            Kind::Hilbert => (1, i + j - 1),
            Kind::Cauchy => (1, i + j),
            _ => (i.min(j), i.max(j)),
        };
        // Both are exact at 128 bits, so the division rounds once.
        let (numerator, denominator) = (Float::with_val(128, numerator), Float::with_val(128, denominator));
        column.set_float(at, 0, &Float::with_val(part.size.precision_bits, &numerator / &denominator))?;
    }
    Ok(())
}

/// Entries that are an integer times a power of two.
fn dyadic(kind: Kind, part: &MatrixPart, col: usize, column: &mut Matrix) -> Result<()> {
    let mu_exponent = -i64::from(part.size.precision_bits.div_ceil(2));
    let mut integer = Integer::new();
    for (at, row) in part.rows.clone().enumerate() {
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
        column.set_integer_exponent(at, 0, &integer, exponent)?;
    }
    Ok(())
}

/// Binomials, down a column by `b(i, j) = b(i - 1, j) (i + j) / i`, which is exact at every step.
fn pascal(part: &MatrixPart, col: usize, column: &mut Matrix) -> Result<()> {
    let mut binomial = Integer::from(1);
    for row in 0..part.rows.end {
        if row > 0 {
            binomial *= (row + col) as u64;
            binomial.div_exact_mut(&Integer::from(row));
        }
        if let Some(at) = row.checked_sub(part.rows.start) {
            column.set_integer_exponent(at, 0, &binomial, 0)?;
        }
    }
    Ok(())
}
