//! Entry by entry: sums, multiples, quotients, signs, functions, comparison with numbers.

use crate::errors::OrRaise;
use crate::signals::look_for_signals;
use crate::view::View;
use pyo3::prelude::*;
use rug::{Float, Integer};
use std::ops::Range;
use sunzi::{Error, FloatRef, Head, MAXIMUM_EXPONENT};

/// Entries between two looks for signals, where the interpreter's lock is free in between.
const ENTRIES_AT_A_TIME: usize = 1 << 14;

/// A matrix of the shape of `view` and of `bits` bits, made from some columns at a time, or of one long column some
/// rows; the interpreter's lock is free meanwhile, and signals are looked for in between.
fn by_parts(
    py: Python<'_>,
    view: &View,
    bits: u32,
    make: impl Fn(&View, Range<usize>, Range<usize>) -> sunzi::Result<sunzi::Matrix> + Sync,
) -> PyResult<View> {
    by_parts_of(py, ENTRIES_AT_A_TIME, view, bits, make)
}

/// The same with parts of at most this number of entries.
fn by_parts_of(
    py: Python<'_>,
    entries_at_a_time: usize,
    view: &View,
    bits: u32,
    make: impl Fn(&View, Range<usize>, Range<usize>) -> sunzi::Result<sunzi::Matrix> + Sync,
) -> PyResult<View> {
    let (rows, cols) = (view.rows(), view.cols());
    let row_step = rows.clamp(1, entries_at_a_time);
    let col_step = (entries_at_a_time / row_step).max(1);
    let mut whole = py.detach(|| sunzi::Matrix::zeros(rows, cols, bits)).or_raise(py)?;
    let limbs = whole.limbs_per_element();
    for col in (0..cols).step_by(col_step) {
        for row in (0..rows).step_by(row_step) {
            let (height, width) = (row_step.min(rows - row), col_step.min(cols - col));
            let part = py.detach(|| make(view, row..row + height, col..col + width));
            let part = part.map_err(|error| moved(error, row, col)).or_raise(py)?;
            let (heads, all_limbs) = whole.parts_mut();
            for at in 0..width {
                let (from, to) = (at * height, (col + at) * rows + row);
                heads[to..to + height].copy_from_slice(&part.parts().0[from..from + height]);
                all_limbs[to * limbs..(to + height) * limbs]
                    .copy_from_slice(&part.parts().1[from * limbs..(from + height) * limbs]);
            }
            py.check_signals()?;
        }
    }
    Ok(whole.into())
}

/// The error with the place in the whole where that in a part, whose first entry is at `row` and `col`, is named.
fn moved(error: Error, row: usize, col: usize) -> Error {
    match error {
        Error::ExponentRange { row: inner, column, exponent, limit } => {
            Error::ExponentRange { row: row + inner, column: col + column, exponent, limit }
        }
        other => other,
    }
}

/// The sum of two matrices of one shape, each entry rounded once to `bits` bits.
///
/// # Errors
/// `ValueError` for other shapes and exponents out of range; `MemoryError`.
pub fn sum(py: Python<'_>, left: &View, right: &View, bits: u32) -> PyResult<View> {
    let (shape, addends) = ((left.rows(), left.cols()), (right.rows(), right.cols()));
    if shape != addends {
        let (left_rows, left_cols, right_rows, right_cols) = (shape.0, shape.1, addends.0, addends.1);
        return Err(Error::ShapeMismatch { operation: "add", left_rows, left_cols, right_rows, right_cols })
            .or_raise(py);
    }
    by_parts(py, left, bits, |left, rows, cols| {
        left.block(rows.clone(), cols.clone()).to_whole()?.add(right.block(rows, cols).entries(), bits)
    })
}

/// Every entry plus a number, rounded once to the precision of the matrix.
///
/// # Errors
/// As [`sum`].
pub fn plus_number(py: Python<'_>, view: &View, number: &Float) -> PyResult<View> {
    let bits = view.precision_bits();
    mapped(py, ENTRIES_AT_A_TIME, view, bits, |entry| in_range(Float::with_val(bits, entry + number)))
}

/// Every entry times a number, rounded once to the precision of the matrix.
///
/// # Errors
/// As [`sum`].
pub fn multiple(py: Python<'_>, view: &View, number: &Float) -> PyResult<View> {
    let bits = view.precision_bits();
    let scaled = by_parts(py, view, bits, |view, rows, cols| view.block(rows, cols).to_whole()?.scale(number))?;
    Ok(scaled.after_rounding(rounded_again(view, bits)))
}

/// Every entry over a number, rounded once to the precision of the matrix.
///
/// # Errors
/// As [`sum`].
pub fn quotient(py: Python<'_>, view: &View, number: &Float) -> PyResult<View> {
    let bits = view.precision_bits();
    let divided = mapped(py, ENTRIES_AT_A_TIME, view, bits, |entry| in_range(Float::with_val(bits, entry / number)))?;
    Ok(divided.after_rounding(rounded_again(view, bits)))
}

/// The same numbers rounded to `bits` bits, to nearest, ties to even; the same memory where they have as many.
///
/// # Errors
/// As [`sum`].
pub fn rounded(py: Python<'_>, view: &View, bits: u32) -> PyResult<View> {
    if bits == view.precision_bits() {
        return Ok(view.clone());
    }
    let copy = by_parts(py, view, bits, |view, rows, cols| {
        let part = view.block(rows, cols).rounded(bits)?;
        part.entries().to_matrix()
    })?;
    Ok(copy.after_rounding(view.rounded_bits_at(bits)))
}

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
/// The exception of a signal handler.
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
/// The exception of a signal handler.
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
/// `MemoryError`.
pub fn with_signs(py: Python<'_>, view: &View, sign: impl Fn(Head) -> Head + Sync) -> PyResult<View> {
    let changed = by_parts(py, view, view.precision_bits(), |view, rows, cols| {
        let mut copy = view.block(rows, cols).entries().to_matrix()?;
        for head in copy.parts_mut().0 {
            *head = sign(Head(*head)).0;
        }
        Ok(copy)
    })?;
    Ok(changed.after_rounding(view.rounded_bits()))
}

/// The record of roundings of a multiple or a quotient: the relative error of the entry, of the number, and of the
/// result, each at most 2 to the power of minus the bits, are together below 4 times the largest of them.
fn rounded_again(view: &View, bits: u32) -> Option<u32> {
    view.rounded_bits().map(|own| own.min(bits).saturating_sub(2).max(1))
}

/// The numbers with the opposite signs.
///
/// # Errors
/// As [`with_signs`].
pub fn negated(py: Python<'_>, view: &View) -> PyResult<View> {
    with_signs(py, view, Head::negated)
}

/// The reason for which a function has no value at an entry.
pub enum NoValue {
    /// Its exponent is above all that there are.
    TooLarge,
    /// Its exponent is below all that there are.
    TooSmall,
    /// The text ends with the place of the entry.
    Undefined(String),
}

/// The value of `function` for every entry, at `bits` bits.
///
/// # Errors
/// `ValueError` with the place where there is no value; `MemoryError`; the exception of a signal handler.
pub fn mapped(
    py: Python<'_>,
    entries_at_a_time: usize,
    view: &View,
    bits: u32,
    function: impl Fn(&Float) -> Result<Float, NoValue> + Sync,
) -> PyResult<View> {
    by_parts_of(py, entries_at_a_time, view, bits, |view, rows, cols| {
        let entries = view.entries();
        let mut values = sunzi::Matrix::zeros(rows.len(), cols.len(), bits)?;
        for (to_col, col) in cols.enumerate() {
            for (to_row, row) in rows.clone().enumerate() {
                let value = function(&entries.get(row, col).to_float(entries.precision_bits()));
                let beyond = |exponent: i64| Error::ExponentRange {
                    row: to_row,
                    column: to_col,
                    exponent,
                    limit: MAXIMUM_EXPONENT,
                };
                let value = value.map_err(|refusal| match refusal {
                    NoValue::TooLarge => beyond(MAXIMUM_EXPONENT + 1),
                    NoValue::TooSmall => beyond(-MAXIMUM_EXPONENT - 1),
                    NoValue::Undefined(text) => Error::InvalidArgument(format!("{text} at row {row}, column {col}")),
                })?;
                values.set_float(to_row, to_col, &value)?;
            }
        }
        Ok(values)
    })
}

/// The value of arithmetic on finite numbers, where it is finite.
fn in_range(value: Float) -> Result<Float, NoValue> {
    if value.is_infinite() { Err(NoValue::TooLarge) } else { Ok(value) }
}

/// The sum of the diagonal, rounded once to `bits` bits.
pub fn trace(view: &View, bits: u32) -> Float {
    let entries = view.entries();
    let diagonal =
        (0..entries.rows().min(entries.cols())).map(|i| entries.get(i, i).to_float(entries.precision_bits()));
    let diagonal = diagonal.collect::<Vec<_>>();
    Float::with_val(bits, Float::sum(diagonal.iter()))
}
