//! The number of correct digits of an answer: estimates by a few solves with its factor, and proven bounds.
//!
//! Digits are `-log10` of the relative error: of a solution in the maximum norm of its worst column, of an inverse in
//! the maximum norm, of a logarithm of a determinant as it is. They count the errors of the computation, and those of
//! the operands that [`crate::estimate::InputRounding`] describes; otherwise operands count as exact.
//! Promise: the same on any number of threads. Proofs: docs/CHECKS.md, "Correct digits".

pub(crate) mod condition;
pub(crate) mod digits;
pub(crate) mod probe;
pub(crate) mod proven;
pub(crate) mod rough;
mod search;

pub use proven::Certificate;
pub use search::{PrecisionSearch, PrecisionTry};

use crate::error::{Error, Result};
use crate::math::float::FloatRef;
use crate::matrix::MatrixView;
use rug::Float;
use rug::float::Round;
use rug::ops::{AddAssignRound, DivAssignRound, MulAssignRound};

/// Bits of sums, norms and estimates.
pub(crate) const ESTIMATE_BITS: u32 = 64;

/// Digits of `precision_bits` bits: no answer is reported with more.
pub(crate) fn all_digits(precision_bits: u32) -> f64 {
    f64::from(precision_bits) * std::f64::consts::LOG10_2
}

/// The correct digits of an answer of this size at `precision_bits` that is off by `error`; 0 where it has none.
pub(crate) fn correct_digits(error: &Float, value: &Float, precision_bits: u32) -> f64 {
    let most = all_digits(precision_bits);
    if error.is_zero() {
        return most;
    }
    // The error is relative to the true value.
    let true_value = Float::with_val(ESTIMATE_BITS, value - error);
    if !error.is_finite() || true_value <= 0 {
        return 0.0;
    }
    let digits = true_value.log10() - Float::with_val(ESTIMATE_BITS, error.log10_ref());
    digits.to_f64().clamp(0.0, most)
}

/// `None` in place of an estimate that does not fit memory: the answer is valid without it.
///
/// # Errors
/// All except those of memory and of the precision of residuals.
pub fn optional_estimate<T>(estimate: Result<T>) -> Result<Option<T>> {
    match estimate {
        Ok(value) => Ok(Some(value)),
        Err(Error::MemoryLimit { .. } | Error::OutOfMemory { .. } | Error::Precision { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// `2^exponent`, or 0 or infinity far out.
pub(crate) fn power(exponent: i64) -> Float {
    Float::with_val(ESTIMATE_BITS, 1) << exponent.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

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
