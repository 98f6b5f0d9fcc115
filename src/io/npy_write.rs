//! Writes arrays of NumPy: doubles where they hold every entry exactly, else texts of one width with all digits.
//!
//! Promise: the file reads back to the same numbers, by NumPy too, without pickles. Independent of: how files are
//! opened.

use crate::error::{Error, Result};
use crate::io::NumberForm;
use crate::io::atomic::FileSink;
use crate::io::text::{DecimalWriter, decimal_digits, write_hexadecimal};
use crate::matrix::{MAXIMUM_EXPONENT, MatrixView};
use std::io::Write;

/// Bytes before the entries are a multiple of this.
const ALIGNMENT: usize = 64;

/// Writes the whole array, row by row; see [`super::write`].
pub(super) fn write<W: Write>(
    mut sink: FileSink<'_, W>,
    matrix: MatrixView<'_>,
    number_form: NumberForm,
) -> Result<()> {
    let (rows, cols, bits) = (matrix.rows(), matrix.cols(), matrix.precision_bits());
    let largest = largest_exponent(matrix)?;
    let as_doubles = bits <= 53 && number_form == NumberForm::Decimal && largest < 1022;
    let width = match number_form {
        // Sign, point, letter and sign of the exponent, its digits.
        NumberForm::Decimal => decimal_digits(bits) + 4 + (largest as f64 * 0.302).ceil().to_string().len(),
        NumberForm::Hex => 8 + bits.div_ceil(4) as usize + largest.to_string().len(),
    };
    let descr = if as_doubles { "<f8".to_string() } else { format!("<U{width}") };
    sink.buffer().extend_from_slice(&header(&descr, rows, cols));
    let mut decimals = DecimalWriter::new(bits);
    let mut text = Vec::new();
    // Rows without entries, of which there may be very many, take no time.
    for row in 0..if cols == 0 { 0 } else { rows } {
        for column in 0..cols {
            let value = matrix.get(row, column);
            if as_doubles {
                sink.buffer().extend_from_slice(&value.to_float(bits).to_f64().to_le_bytes());
            } else {
                text.clear();
                match number_form {
                    NumberForm::Decimal => decimals.write(value, &mut text),
                    NumberForm::Hex => write_hexadecimal(value, &mut text),
                }
                debug_assert!(text.len() <= width, "{} characters of {width}", text.len());
                text.resize(width, 0);
                sink.buffer().extend(text.iter().flat_map(|&letter| [letter, 0, 0, 0]));
            }
            sink.advance(1)?;
        }
    }
    sink.finish()
}

/// The largest size of a binary exponent.
fn largest_exponent(matrix: MatrixView<'_>) -> Result<i64> {
    let mut largest = 1;
    for column in 0..if matrix.rows() == 0 { 0 } else { matrix.cols() } {
        for row in 0..matrix.rows() {
            let head = matrix.get(row, column).head;
            if head.is_zero() {
                continue;
            }
            let exponent = head.exponent();
            if exponent.abs() > MAXIMUM_EXPONENT {
                return Err(Error::ExponentRange { row, column, exponent, limit: MAXIMUM_EXPONENT });
            }
            largest = largest.max(exponent.abs());
        }
    }
    Ok(largest)
}

/// All bytes before the entries.
fn header(descr: &str, rows: usize, cols: usize) -> Vec<u8> {
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows}, {cols}), }}");
    let length = (10 + text.len() + 1).next_multiple_of(ALIGNMENT) - 10;
    text.extend(std::iter::repeat_n(' ', length - 1 - text.len()));
    text.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend_from_slice(&(length as u16).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes
}
