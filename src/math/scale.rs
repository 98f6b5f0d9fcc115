//! Power-of-two scaling of one column: norm to exponent, and one entry to its scaled integer.
//!
//! Promise: the exponent does not depend on the order of the rows, nor on how they are cut into chunks or ranks.
//! Source: docs/ALGORITHM.md, "Scaling".

use crate::math::float::{FloatRef, Head};
use rug::Integer;

/// Bits kept of each entry when its square is added: the unit is `2^(largest - UNIT_BITS)`.
const UNIT_BITS: i64 = 32;

/// Largest exponent among numbers, `None` when all are 0: the first pass of the norm.
pub fn largest_exponent(heads: impl Iterator<Item = Head>) -> Option<i64> {
    heads.filter(|head| !head.is_zero()).map(Head::exponent).max()
}

/// The square of one entry, rounded up to an integer in units of `2^(2 (largest - 32))`: the second pass.
///
/// `largest` is at least the entry's exponent. The result is at most `2^64`.
#[inline]
pub fn square_rounded_up(value: FloatRef<'_>, largest: i64) -> u128 {
    if value.head.is_zero() {
        return 0;
    }
    let drop = largest - value.head.exponent();
    let top = value.limbs[value.limbs.len() - 1];
    let root = if drop >= UNIT_BITS {
        1
    } else {
        let shift = (64 - UNIT_BITS + drop) as u32; // 32..=63
        let below = top & ((1u64 << shift) - 1);
        let inexact = below != 0 || value.limbs[..value.limbs.len() - 1].iter().any(|&limb| limb != 0);
        (top >> shift) + u64::from(inexact)
    };
    u128::from(root) * u128::from(root)
}

/// What [`square_rounded_up`] of an entry can be, from its head alone: a range for the sum of a column's squares,
/// narrowed by each entry that is read.
///
/// An entry with exponent `largest - drop` has a square in `[4^(31 - drop), 4^(32 - drop)]` for `drop < 32`, else 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct SquareRange {
    /// Sum of the lower ends of entries with `drop < 32`; their upper ends are four times as large.
    wide: u128,
    /// Sum of what is known exactly.
    exact: u128,
}

impl SquareRange {
    /// Adds an entry of which only the head is known.
    #[inline]
    pub fn add_head(&mut self, head: Head, largest: i64) {
        let (wide, exact) = Self::ends(head, largest);
        self.wide += u128::from(wide);
        self.exact += u128::from(exact);
    }

    /// Replaces an entry added by its head with its square.
    #[inline]
    pub fn read(&mut self, value: FloatRef<'_>, largest: i64) {
        let (wide, exact) = Self::ends(value.head, largest);
        self.wide -= u128::from(wide);
        self.exact -= u128::from(exact);
        self.exact += square_rounded_up(value, largest);
    }

    /// The norm exponent, once it does not depend on the entries not yet read.
    pub fn exponent(&self, largest: i64) -> Option<i64> {
        let low = norm_exponent(self.exact + self.wide, largest);
        (low == norm_exponent(self.exact + 4 * self.wide, largest)).then_some(low)
    }

    #[inline]
    fn ends(head: Head, largest: i64) -> (u64, u64) {
        if head.is_zero() {
            return (0, 0);
        }
        match largest - head.exponent() {
            drop @ 0..UNIT_BITS => (1 << (62 - 2 * drop), 0),
            _ => (0, 1),
        }
    }
}

/// The scale exponent `e` with `norm <= 2^e`, at most one above the least, from the sum of the rounded squares.
///
/// `sum` is the sum of [`square_rounded_up`] over the column, `largest` its largest exponent. A zero column has 0.
pub fn norm_exponent(sum: u128, largest: i64) -> i64 {
    if sum == 0 {
        return 0;
    }
    let ceil_log2 = i64::from(128 - (sum - 1).leading_zeros());
    largest - UNIT_BITS + (ceil_log2 + 1).div_euclid(2)
}

/// `round(value * 2^shift)`, to nearest, ties to even: the reference every fast conversion is tested against.
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
    fn the_exponent_bounds_the_norm_and_is_within_one_of_the_least() {
        let columns: &[&[f64]] = &[&[1.0], &[3.0, 4.0], &[1e-300, 1e300], &[0.0, 0.5, 0.25], &[1.0; 1000], &[0.75; 77]];
        for column in columns {
            let matrix = Matrix::from_f64s(column.len(), 1, 53, column).unwrap();
            let values = || (0..column.len()).map(|row| matrix.get(row, 0));
            let largest = largest_exponent(values().map(|value| value.head)).unwrap();
            let exponent = norm_exponent(values().map(|value| square_rounded_up(value, largest)).sum(), largest);
            let norm =
                column.iter().map(|&x| Float::with_val(200, x).square()).fold(Float::new(200), |a, b| a + b).sqrt();
            let bound = Float::with_val(200, 1) << exponent as i32;
            assert!(norm <= bound && norm > Float::with_val(200, &bound >> 2), "{column:?}: {norm} against {bound}");
        }
    }

    #[test]
    fn a_range_from_heads_holds_the_sum_and_ends_in_it() {
        for spread in [0u32, 1, 31, 32, 33, 60] {
            for ones in [false, true] {
                let values = (0..40u32).map(|k| {
                    let size = if ones { 1.0 } else { 1.0 + f64::from(k * 37 % 41) / 41.0 };
                    (size / 2f64.powi((k * 13 % (spread + 1)) as i32)) * f64::from(k % 5)
                });
                let values = values.collect::<Vec<_>>();
                let matrix = Matrix::from_f64s(values.len(), 1, 53, &values).unwrap();
                let entries = || (0..values.len()).map(|row| matrix.get(row, 0));
                let largest = largest_exponent(entries().map(|value| value.head)).unwrap();
                let sum = entries().map(|value| square_rounded_up(value, largest)).sum::<u128>();
                let mut range = SquareRange::default();
                entries().for_each(|value| range.add_head(value.head, largest));
                for value in entries() {
                    assert!(range.exact + range.wide <= sum && sum <= range.exact + 4 * range.wide);
                    if let Some(exponent) = range.exponent(largest) {
                        assert_eq!(exponent, norm_exponent(sum, largest));
                    }
                    range.read(value, largest);
                }
                assert_eq!((range.exact, range.wide), (sum, 0));
                assert_eq!(range.exponent(largest), Some(norm_exponent(sum, largest)));
            }
        }
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
