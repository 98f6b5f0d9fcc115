//! Power-of-two scaling of one column: norm to exponent, and one entry to its scaled integer.
//!
//! Promise: the exponent does not depend on the order of the rows, nor on their division into chunks or ranks. Source:
//! docs/ALGORITHM.md, "Scaling".

use crate::math::float::{FloatRef, Head};
use rug::Integer;

/// The unit of a column's sum of squares is `2^(2 (largest - UNIT_BITS))`.
const UNIT_BITS: i64 = 31;

/// A bound on the square of one entry, computed from its head without the limbs, in units of `2^(2 (largest - 31))`.
///
/// An entry of exponent `largest - d` lies below `2^(31 - d)` units; one with `d > 31` counts as a whole unit. At most
/// `2^62`; 0 for the number 0. `largest` is at least the entry's exponent.
#[inline]
pub fn square_bound(head: Head, largest: i64) -> u64 {
    if head.is_zero() { 0 } else { 1 << (2 * (UNIT_BITS - (largest - head.exponent()).min(UNIT_BITS))) }
}

/// The scale exponent `e` with `norm <= 2^e`, at most two above the smallest one, from the sum of the bounds of
/// squares.
///
/// `sum` is the sum of [`square_bound`] over the column, `largest` its largest exponent. A zero column has 0.
pub fn norm_exponent(sum: u128, largest: i64) -> i64 {
    if sum == 0 {
        return 0;
    }
    let ceil_log2 = i64::from(128 - (sum - 1).leading_zeros());
    largest - UNIT_BITS + (ceil_log2 + 1).div_euclid(2)
}

/// The scale exponent of a column with these heads: its definition. The heads are read twice.
pub fn column_exponent(heads: impl Iterator<Item = Head> + Clone) -> i64 {
    let nonzero = heads.filter(|head| !head.is_zero());
    let Some(largest) = nonzero.clone().map(Head::exponent).max() else { return 0 };
    norm_exponent(nonzero.map(|head| u128::from(square_bound(head, largest))).sum(), largest)
}

/// `round(value * 2^shift)`, to nearest, ties to even: the reference for tests of every fast conversion.
pub fn scaled_integer(value: FloatRef<'_>, shift: i64) -> Integer {
    if value.head.is_zero() {
        return Integer::new();
    }
    let (integer, exponent) = value.to_integer_exponent();
    let exponent = exponent + shift;
    if exponent >= 0 {
        return integer << u32::try_from(exponent).expect("the scaled integer fits in memory");
    }
    let drop = -exponent;
    if drop > i64::from(integer.significant_bits()) + 1 {
        return Integer::new();
    }
    let drop = drop as u32;
    let negative = integer < 0;
    let magnitude = integer.abs();
    let mut quotient = Integer::from(&magnitude >> drop);
    let half = magnitude.get_bit(drop - 1);
    let sticky = magnitude.find_one(0).is_some_and(|lowest| lowest < drop - 1);
    if half && (sticky || quotient.is_odd()) {
        quotient += 1u32;
    }
    if negative { -quotient } else { quotient }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;
    use rug::Float;

    #[test]
    fn the_exponent_bounds_the_norm_and_is_within_two_of_the_least() {
        let columns: &[&[f64]] = &[&[1.0], &[3.0, 4.0], &[1e-300, 1e300], &[0.0, 0.5, 0.25], &[1.0; 1000], &[0.99; 77]];
        for column in columns {
            let matrix = Matrix::from_f64s(column.len(), 1, 53, column).unwrap();
            let exponent = column_exponent((0..column.len()).map(|row| matrix.get(row, 0).head));
            let norm =
                column.iter().map(|&x| Float::with_val(200, x).square()).fold(Float::new(200), |a, b| a + b).sqrt();
            let bound = Float::with_val(200, 1) << exponent as i32;
            assert!(norm <= bound && norm > Float::with_val(200, &bound >> 3), "{column:?}: {norm} against {bound}");
        }
        assert_eq!(column_exponent([Head::ZERO; 3].into_iter()), 0);
    }

    #[test]
    fn scaled_integers_round_to_nearest_even() {
        let values = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.75, 1e-9, 0.0, 3.0];
        let matrix = Matrix::from_f64s(values.len(), 1, 53, &values).unwrap();
        for (row, value) in values.iter().enumerate() {
            assert_eq!(scaled_integer(matrix.get(row, 0), 0), value.round_ties_even() as i64);
            assert_eq!(scaled_integer(matrix.get(row, 0), 3), (value * 8.0).round_ties_even() as i64);
        }
    }
}
