//! Entry by entry: signs, quotients, comparison with numbers.

use crate::input::look_for_signals;
use crate::view::View;
use pyo3::prelude::*;
use rug::{Float, Integer};
use sunzi::{FloatRef, Head};

/// A number in the one form that all precisions share.
fn odd(value: FloatRef<'_>) -> (Integer, i64) {
    let (integer, exponent) = value.to_integer_exponent();
    match integer.find_one(0) {
        Some(zeros) => (integer >> zeros, exponent + i64::from(zeros)),
        None => (integer, 0),
    }
}

/// Whether shapes and all numbers are equal, whatever their precision.
///
/// # Errors
/// What the handler of a signal raises.
pub fn equal(py: Python<'_>, left: &View, right: &View) -> PyResult<bool> {
    let (a, b) = (left.entries(), right.entries());
    if (a.rows(), a.cols()) != (b.rows(), b.cols()) {
        return Ok(false);
    }
    for row in 0..a.rows() {
        for col in 0..a.cols() {
            look_for_signals(py, row * a.cols() + col)?;
            if odd(a.get(row, col)) != odd(b.get(row, col)) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Whether some entry is this number.
///
/// # Errors
/// What the handler of a signal raises.
pub fn holds(py: Python<'_>, view: &View, number: FloatRef<'_>) -> PyResult<bool> {
    let (entries, number) = (view.entries(), odd(number));
    for row in 0..entries.rows() {
        for col in 0..entries.cols() {
            look_for_signals(py, row * entries.cols() + col)?;
            if odd(entries.get(row, col)) == number {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The numbers with other signs.
///
/// # Errors
/// [`sunzi::Error::OutOfMemory`].
pub fn with_signs(view: &View, sign: impl Fn(Head) -> Head) -> sunzi::Result<View> {
    let mut copy = view.entries().to_matrix()?;
    for head in copy.parts_mut().0 {
        *head = sign(Head(*head)).0;
    }
    Ok(copy.into())
}

/// Every entry over a number, rounded once to the precision of the matrix.
///
/// # Errors
/// [`sunzi::Error::ExponentRange`], [`sunzi::Error::OutOfMemory`].
pub fn over(part: &View, number: &Float) -> sunzi::Result<sunzi::Matrix> {
    let mut quotients = part.entries().to_matrix()?;
    let bits = quotients.precision_bits();
    for col in 0..quotients.cols() {
        for row in 0..quotients.rows() {
            let quotient = Float::with_val(bits, &quotients.float(row, col) / number);
            quotients.set_float(row, col, &quotient)?;
        }
    }
    Ok(quotients)
}

/// The sum of the diagonal, rounded once to `bits` bits.
pub fn trace(view: &View, bits: u32) -> Float {
    let entries = view.entries();
    let diagonal =
        (0..entries.rows().min(entries.cols())).map(|i| entries.get(i, i).to_float(entries.precision_bits()));
    let diagonal = diagonal.collect::<Vec<_>>();
    Float::with_val(bits, Float::sum(diagonal.iter()))
}
