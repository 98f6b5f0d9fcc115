//! A scaled factor in doubles, and solves with eight right sides at a time: for conditions that leave doubles some
//! bits.

use crate::math::float::FloatRef;
use crate::ops::cholesky::Cholesky;

/// Right sides that are solved for together.
pub(super) const LANES: usize = 8;

/// One entry of each right side.
pub(super) type Row = [f64; LANES];

/// Entries below `2^LEAST_EXPONENT` count as 0.
const LEAST_EXPONENT: i64 = -1000;

/// `D^-1 L` with rows of norm at most 1, rounded to doubles.
pub(super) struct ScaledDoubles {
    /// Column `j` from its diagonal entry on, one column after the other.
    entries: Vec<f64>,
    order: usize,
}

impl ScaledDoubles {
    /// Bytes for a factor of that order.
    pub fn bytes(order: usize) -> u64 {
        4 * (order as u64).saturating_mul(order as u64 + 1)
    }

    /// Row `i` is scaled by `2^-exponents[i]`.
    pub fn new(factor: &Cholesky, exponents: &[i64]) -> ScaledDoubles {
        let (lower, order) = (factor.factor(), exponents.len());
        let mut entries = Vec::with_capacity(order * (order + 1) / 2);
        for col in 0..order {
            entries.extend((col..order).map(|row| double(lower.get(row, col), exponents[row])));
        }
        ScaledDoubles { entries, order }
    }

    /// Replaces right sides, row by row, by the solutions of `L L^T X = B` for the scaled factor.
    pub fn solve(&self, rows: &mut [Row]) {
        let mut rest = &self.entries[..];
        for col in 0..self.order {
            let (column, later) = rest.split_at(self.order - col);
            rest = later;
            let (first, others) = rows[col..].split_at_mut(1);
            first[0] = first[0].map(|value| value / column[0]);
            for (row, entry) in others.iter_mut().zip(&column[1..]) {
                row.iter_mut().zip(&first[0]).for_each(|(value, known)| *value -= entry * known);
            }
        }
        let mut rest = &self.entries[..];
        for col in (0..self.order).rev() {
            let (earlier, column) = rest.split_at(rest.len() - (self.order - col));
            rest = earlier;
            let (first, others) = rows[col..].split_at_mut(1);
            for (row, entry) in others.iter().zip(&column[1..]) {
                first[0].iter_mut().zip(row).for_each(|(value, known)| *value -= entry * known);
            }
            first[0] = first[0].map(|value| value / column[0]);
        }
    }
}

/// A number times `2^-exponent`.
fn double(value: FloatRef<'_>, exponent: i64) -> f64 {
    let scaled = value.head.exponent() - exponent;
    let Some(&top) = value.limbs.last().filter(|_| !value.head.is_zero() && scaled > LEAST_EXPONENT) else {
        return 0.0;
    };
    let size = top as f64 * f64::powi(2.0, (scaled - 64) as i32);
    if value.head.is_negative() { -size } else { size }
}
