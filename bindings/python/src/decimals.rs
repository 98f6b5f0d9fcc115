//! Rounding to decimal places, in exact arithmetic.

use crate::errors::OrRaise;
use crate::signals::look_for_signals;
use crate::view::View;
use pyo3::prelude::*;
use rug::ops::Pow;
use rug::{Float, Integer, Rational};
use std::cmp::Ordering;
use sunzi::FloatRef;

/// Every entry as the nearest multiple of `10^-digits`, ties to the even multiple, rounded once to the precision of the
/// matrix.
///
/// # Errors
/// `MemoryError`; the exception of a signal handler.
pub fn to_decimals(py: Python<'_>, view: &View, digits: i64) -> PyResult<View> {
    let (rows, cols, bits) = (view.rows(), view.cols(), view.precision_bits());
    let mut whole = py.detach(|| view.entries().to_matrix()).or_raise(py)?;
    let mut unit = None;
    for (index, (row, col)) in (0..cols).flat_map(|col| (0..rows).map(move |row| (row, col))).enumerate() {
        let entries = view.entries();
        match place_of(entries.get(row, col), digits) {
            Place::Kept => {}
            Place::Zero => whole.set_float(row, col, &Float::new(bits)).or_raise(py)?,
            Place::Between => {
                let unit = unit.get_or_insert_with(|| Integer::from(10).pow(digits.unsigned_abs() as u32));
                let value = Float::with_val(bits, rounded(entries.get(row, col), digits, unit));
                whole.set_float(row, col, &value).or_raise(py)?;
            }
        }
        look_for_signals(py, index)?;
    }
    Ok(whole.into())
}

/// The position of a number relative to the multiples of `10^-digits`.
enum Place {
    /// It is such a multiple.
    Kept,
    /// The nearest is 0.
    Zero,
    /// Anywhere else.
    Between,
}

/// The position as far as the exponents decide it, so that no number of far more digits than either is made.
fn place_of(entry: FloatRef<'_>, digits: i64) -> Place {
    if entry.head.is_zero() {
        return Place::Kept;
    }
    let top = entry.head.exponent();
    let zeros = entry.limbs.iter().position(|&limb| limb != 0).unwrap_or(0);
    let low_zeros = 64 * zeros as i64 + i64::from(entry.limbs[zeros].trailing_zeros());
    let lowest = top - 64 * entry.limbs.len() as i64 + low_zeros;
    // An integer times 2^lowest: times 10^digits that is an integer.
    if digits >= 0 && lowest.saturating_add(digits) >= 0 {
        return Place::Kept;
    }
    // The size is below 2^top; 10^-digits is above 2^(-3.4 digits), and 10^|digits| above 2^(3.3 |digits|).
    let unit_exponent = if digits >= 0 { -digits.saturating_mul(34) / 10 - 1 } else { digits.saturating_mul(-33) / 10 };
    if top < unit_exponent { Place::Zero } else { Place::Between }
}

/// The nearest multiple of `10^-digits`, where `unit` is `10^|digits|`.
fn rounded(entry: FloatRef<'_>, digits: i64, unit: &Integer) -> Rational {
    let (integer, exponent) = entry.to_integer_exponent();
    let power = Integer::from(1) << exponent.unsigned_abs() as u32;
    let (numerator, denominator) = if exponent >= 0 { (integer * power, Integer::from(1)) } else { (integer, power) };
    match digits >= 0 {
        true => Rational::from((nearest(numerator * unit, denominator), unit.clone())),
        false => Rational::from(nearest(numerator, denominator * unit) * unit),
    }
}

/// The quotient by a positive number as the nearest integer, ties to even.
fn nearest(numerator: Integer, denominator: Integer) -> Integer {
    let (floor, rest) = numerator.div_rem_floor(denominator.clone());
    let up = match (Integer::from(&rest * 2)).cmp(&denominator) {
        Ordering::Less => false,
        Ordering::Equal => floor.is_odd(),
        Ordering::Greater => true,
    };
    if up { floor + 1 } else { floor }
}
