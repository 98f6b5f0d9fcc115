//! Sums of magnitudes rounded upward.

use super::ESTIMATE_BITS;
use crate::math::float::FloatRef;
use crate::matrix::MatrixView;
use rug::Float;
use rug::float::Round;
use rug::ops::{AddAssignRound, DivAssignRound, MulAssignRound};

/// The magnitude of a number, rounded up to 64 bits.
pub(crate) fn magnitude(value: FloatRef<'_>) -> Float {
    let Some(&top) = value.limbs.last().filter(|_| !value.head.is_zero()) else { return Float::new(ESTIMATE_BITS) };
    let exact = value.limbs[..value.limbs.len() - 1].iter().all(|&limb| limb == 0);
    let top = u128::from(top) + u128::from(!exact);
    let shift = (value.head.exponent() - 64).clamp(i32::MIN.into(), i32::MAX.into());
    Float::with_val_round(ESTIMATE_BITS, top, Round::Up).0 << shift as i32
}

/// Bits by which the scaling of the rows, row `i` by `2^-exponents[i]`, may hide the largest entry of a column behind a
/// bound of the whole column.
pub(crate) fn spread_bits(exponents: &[i64], x: MatrixView<'_>) -> u32 {
    let least = exponents.iter().copied().min().unwrap_or(0);
    let spread = |col: usize| {
        let heads = (0..x.rows()).map(|row| (row, x.head(row, col))).filter(|(_, head)| !head.is_zero());
        let whole = heads.clone().map(|(row, head)| head.exponent() + exponents[row]).max();
        let largest = heads.map(|(_, head)| head.exponent()).max();
        whole.zip(largest).map_or(0, |(whole, largest)| whole - least - largest)
    };
    (0..x.cols()).map(spread).max().unwrap_or(0).clamp(0, u32::MAX.into()) as u32
}

/// An upper bound of a number that is not negative.
#[derive(Clone)]
pub(crate) struct Upper(pub Float);

impl Upper {
    pub fn zero() -> Upper {
        Upper(Float::new(ESTIMATE_BITS))
    }

    pub fn add(mut self, other: &Float) -> Upper {
        self.0.add_assign_round(other, Round::Up);
        self
    }

    pub fn times(mut self, other: &Float) -> Upper {
        self.0.mul_assign_round(other, Round::Up);
        self
    }

    /// Divided by a lower bound of a positive number.
    pub fn over(mut self, other: &Float) -> Upper {
        self.0.div_assign_round(other, Round::Up);
        self
    }

    pub fn root(mut self) -> Upper {
        self.0.sqrt_round(Round::Up);
        self
    }
}
