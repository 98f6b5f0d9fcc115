//! Sums of magnitudes rounded upward.

use super::ESTIMATE_BITS;
use crate::math::float::FloatRef;
use rug::Float;
use rug::float::Round;
use rug::ops::{AddAssignRound, DivAssignRound, MulAssignRound};

/// The magnitude of a number, rounded up to 64 bits.
pub(super) fn magnitude(value: FloatRef<'_>) -> Float {
    let Some(&top) = value.limbs.last().filter(|_| !value.head.is_zero()) else { return Float::new(ESTIMATE_BITS) };
    let exact = value.limbs[..value.limbs.len() - 1].iter().all(|&limb| limb == 0);
    let top = u128::from(top) + u128::from(!exact);
    let shift = (value.head.exponent() - 64).clamp(i32::MIN.into(), i32::MAX.into());
    Float::with_val_round(ESTIMATE_BITS, top, Round::Up).0 << shift as i32
}

/// An upper bound of a number that is not negative.
#[derive(Clone)]
pub(super) struct Upper(pub Float);

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
