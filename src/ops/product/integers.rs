//! Selects the entries of a matrix that are integers.

use crate::error::{Error, Result};
use crate::math::float::FloatRef;
use crate::matrix::MatrixView;

/// Refuses a matrix with an entry that is not an integer.
///
/// # Errors
/// [`Error::NotInteger`] names the first such entry, column by column.
pub(crate) fn check_integers(view: MatrixView<'_>) -> Result<()> {
    for column in 0..view.cols() {
        if let Some(row) = (0..view.rows()).find(|&row| !is_integer(view.get(row, column))) {
            return Err(Error::NotInteger { row, column });
        }
    }
    Ok(())
}

/// Whether the number has no fractional part.
fn is_integer(value: FloatRef<'_>) -> bool {
    if value.head.is_zero() {
        return true;
    }
    let fraction_bits = value.limbs.len() as i64 * 64 - value.head.exponent();
    let zeros = value
        .limbs
        .iter()
        .position(|&limb| limb != 0)
        .map_or(0, |first| first as i64 * 64 + i64::from(value.limbs[first].trailing_zeros()));
    zeros >= fraction_bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;

    #[test]
    fn integers_are_told_from_fractions() {
        let values = [0.0, 1.0, -3.0, 0.5, 1e300, 2.25, 4_503_599_627_370_496.5, 1e-300];
        let matrix = Matrix::from_f64s(values.len(), 1, 200, &values).unwrap();
        for (row, value) in values.iter().enumerate() {
            assert_eq!(is_integer(matrix.get(row, 0)), value.fract() == 0.0, "{value}");
        }
    }
}
