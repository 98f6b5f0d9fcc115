//! The scaling of a factorisation: the exponent of a row, and an entry as an integer below it.
//!
//! All ranks follow these rules for their parts of the matrix, so that all fail at the same row. Independent of:
//! matrices.

use crate::math::float::{FloatRef, Head, round_shifted};
use crate::math::pivot::{diagonal_exponent, round_shift};
use rug::Integer;

/// `s_i` of a row by its diagonal entry; `None` where that is not positive.
pub(crate) fn row_exponent(diagonal: Head) -> Option<i64> {
    let is_positive = !diagonal.is_zero() && !diagonal.is_negative();
    is_positive.then(|| diagonal_exponent(diagonal.exponent()))
}

/// `round(a_ij 2^(2 working_bits - exponents))`, ties to even; `exponents` is `s_i + s_j`.
pub(crate) fn scaled_entry(entry: FloatRef<'_>, exponents: i64, working_bits: u32) -> Integer {
    if entry.head.is_zero() {
        return Integer::new();
    }
    let (integer, exponent) = entry.to_integer_exponent();
    round_shift(&integer, exponent + 2 * i64::from(working_bits) - exponents)
}

/// The magnitude of [`scaled_entry`] into all of `out`, which has room for it.
pub(crate) fn scaled_limbs(entry: FloatRef<'_>, exponents: i64, working_bits: u32, out: &mut [u64]) {
    if entry.head.is_zero() {
        return out.fill(0);
    }
    let exponent = entry.head.exponent() - 64 * entry.limbs.len() as i64;
    round_shifted(entry.limbs, exponents - exponent - 2 * i64::from(working_bits), out);
}

/// Whether the scaled integer of an entry exceeds `2^(2 working_bits)`: its square is then beyond its two diagonal
/// entries. The head nearly always decides; `entry` is called where it does not.
#[inline]
pub(crate) fn is_beyond_one<'a>(
    head: Head,
    exponents: i64,
    working_bits: u32,
    entry: impl FnOnce() -> FloatRef<'a>,
) -> bool {
    let exponent = head.exponent() - exponents;
    if head.is_zero() || exponent < 1 {
        return false; // below 1, and rounding is monotone
    }
    exponent > 1 || {
        let scaled = scaled_entry(entry(), exponents, working_bits);
        scaled.significant_bits() > 2 * working_bits + 1 || scaled.abs() > Integer::from(1) << (2 * working_bits)
    }
}
