//! The number of correct digits of an answer: estimates by a few solves with its factor, and proven bounds.
//!
//! Digits are `-log10` of the relative error: of a solution in the maximum norm of its worst column, of an inverse in
//! the maximum norm, of a logarithm of a determinant as it is. They count the errors of the computation, and those of
//! the operands that [`crate::estimate::InputRounding`] describes; otherwise operands count as exact.
//! Promise: the same on any number of threads. Proofs: docs/CHECKS.md, "Correct digits".

pub(crate) mod bounds;
mod certificate;
pub(crate) mod condition;
mod doubles;
mod log_det;
pub(crate) mod proven;
pub(crate) mod rough;
mod search;
mod solution;

pub use certificate::Certificate;
pub use search::{PrecisionSearch, PrecisionTry};

use crate::error::{Error, Result};
use rug::Float;

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
