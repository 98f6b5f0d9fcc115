//! Assignment to entries, rows, columns and blocks.

use crate::arithmetic::rounded;
use crate::index::Chosen;
use crate::input::{Bits, Operand, ReadPart, scalar};
use crate::view::View;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rug::Float;

/// The value to assign: one number to all places, or a matrix of their shape.
pub enum Value {
    /// The number, and the bits to which it was rounded where it has more.
    Number(Box<Float>, Option<u32>),
    Block(View),
}

/// Reads `value`, rounded to `bits` bits, for the places `chosen`; a flat list is a row where one row is chosen.
///
/// # Errors
/// As [`Operand::of`]; `ValueError` for another shape.
pub fn value_for(value: &Bound<'_, PyAny>, chosen: &Chosen, bits: u32) -> PyResult<Value> {
    let py = value.py();
    if Operand::is_number(value)? {
        let number = scalar(Some(value), "the value", Bits::Round(bits))?.expect("a value was given");
        let rounded_bits = Operand::number(value)?.view(py, Bits::Round(bits))?.rounded_bits();
        return Ok(Value::Number(Box::new(Float::with_val(bits, number)), rounded_bits));
    }
    let operand = Operand::of(value, "the value", ReadPart::Whole)?;
    let (rows, cols) = (chosen.rows(), chosen.cols());
    let flat = operand.container.is_flat();
    let view = operand.view(py, Bits::Round(bits))?;
    let view = if flat && rows == 1 { view.transpose() } else { view };
    if (view.rows(), view.cols()) != (rows, cols) {
        let message = format!("a {} x {} matrix is assigned to {rows} x {cols} entries", view.rows(), view.cols());
        return Err(PyValueError::new_err(message));
    }
    Ok(Value::Block(rounded(py, &view, bits)?))
}

/// Writes `value` to the places `chosen` of `target`; views taken of it keep their old numbers. Runs no Python code, so
/// that it may run under a lock.
///
/// # Errors
/// [`sunzi::Error::OutOfMemory`]; [`sunzi::Error::NotFinite`] for a number that overflows when it is rounded.
pub fn assign(target: &mut View, chosen: &Chosen, value: &Value) -> sunzi::Result<()> {
    let matrix = target.to_mut()?;
    let mut put = |row: usize, col: usize, from_row: usize, from_col: usize| match value {
        Value::Number(number, _) => matrix.set_float(row, col, number),
        Value::Block(block) => {
            matrix.set(row, col, block.entries().get(from_row, from_col));
            Ok(())
        }
    };
    match chosen {
        Chosen::Block { rows, cols } => {
            let rows = rows.list();
            for (from_col, &col) in cols.list().iter().enumerate() {
                for (from_row, &row) in rows.iter().enumerate() {
                    put(row, col, from_row, from_col)?;
                }
            }
        }
        Chosen::Entries { rows, cols } => {
            for (from_row, (&row, &col)) in rows.iter().zip(cols).enumerate() {
                put(row, col, from_row, 0)?;
            }
        }
    }
    let rounded_bits = match value {
        Value::Number(_, bits) => *bits,
        Value::Block(block) => block.rounded_bits(),
    };
    *target = target.clone().after_rounding(rounded_bits);
    Ok(())
}
