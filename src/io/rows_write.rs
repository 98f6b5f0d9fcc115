//! Writes matrices row by row as text: tables of numbers, and nested lists of JSON and Mathematica.
//!
//! Promise: the bytes depend only on shape, precision, numbers and options. Independent of: how files are opened.

use crate::error::{Error, Result};
use crate::io::atomic::FileSink;
use crate::io::text::{DecimalWriter, write_hexadecimal};
use crate::io::{FileFormat, NumberForm};
use crate::matrix::{MAXIMUM_EXPONENT, MatrixView};
use std::io::Write;

/// The syntax of rows and numbers in a format.
#[derive(Clone, Copy)]
pub(super) struct Style {
    format: FileFormat,
    /// Around all rows.
    outer: [&'static str; 2],
    /// Around each row.
    inner: [&'static str; 2],
    between_rows: &'static str,
    between_entries: &'static str,
    /// Around each number.
    quote: &'static str,
}

const TABLE: Style = Style {
    format: FileFormat::Csv,
    outer: [""; 2],
    inner: ["", "\n"],
    between_rows: "",
    between_entries: ",",
    quote: "",
};

impl Style {
    /// The style of a format whose files have rows; others are written as tables.
    pub fn of(format: FileFormat) -> Style {
        let rows = Style { format, between_rows: ",\n", ..TABLE };
        match format {
            FileFormat::Json => {
                Style { outer: ["[", "]\n"], inner: ["[", "]"], between_entries: ", ", quote: "\"", ..rows }
            }
            FileFormat::Mathematica => Style { outer: ["{", "}\n"], inner: ["{", "}"], between_entries: ", ", ..rows },
            FileFormat::Tsv => Style { format, between_entries: "\t", ..TABLE },
            FileFormat::Text => Style { format, between_entries: " ", ..TABLE },
            _ => TABLE,
        }
    }
}

/// Writes all rows; see [`super::write`].
pub(super) fn write<W: Write>(
    mut sink: FileSink<'_, W>,
    matrix: MatrixView<'_>,
    style: Style,
    number_form: NumberForm,
) -> Result<()> {
    let (rows, cols) = (matrix.rows(), matrix.cols());
    let is_table = style.outer[0].is_empty();
    if rows == 0 && cols > 0 || is_table && cols == 0 {
        let name = style.format.name();
        return Err(Error::InvalidArgument(format!("the format {name} cannot represent a {rows} x {cols} matrix")));
    }
    let mut numbers = NumberWriter::new(matrix.precision_bits(), style, number_form)?;
    sink.buffer().extend_from_slice(style.outer[0].as_bytes());
    for row in 0..rows {
        let before = if row > 0 { style.between_rows } else { "" };
        sink.buffer().extend_from_slice(before.as_bytes());
        sink.buffer().extend_from_slice(style.inner[0].as_bytes());
        for column in 0..cols {
            if column > 0 {
                sink.buffer().extend_from_slice(style.between_entries.as_bytes());
            }
            numbers.write(matrix, row, column, sink.buffer())?;
            sink.advance(1)?;
        }
        sink.buffer().extend_from_slice(style.inner[1].as_bytes());
        // Rows without entries fill the buffer too, and are counted where there is nothing else.
        sink.advance(u64::from(cols == 0))?;
    }
    sink.buffer().extend_from_slice(style.outer[1].as_bytes());
    sink.finish()
}

/// Whether the first row counts 0, 1, 2 or 1, 2, 3 as headings do, in tables for which readers must be told which it
/// is.
fn may_be_headings(matrix: MatrixView<'_>) -> bool {
    let (rows, cols) = (matrix.rows(), matrix.cols());
    // From 10 on, numbers are written with an exponent.
    if rows < 2 || !(2..=10).contains(&cols) {
        return false;
    }
    let start = matrix.get(0, 0).to_f64();
    let counts = (0..cols).all(|col| matrix.get(0, col).to_float(matrix.precision_bits()) == start + col as f64);
    counts && (start == 0.0 || start == 1.0 && rows != cols)
}

/// Numbers in the form of a format.
struct NumberWriter {
    style: Style,
    number_form: NumberForm,
    decimals: DecimalWriter,
    /// The precision in Mathematica's sense, in digits.
    mark: String,
}

impl NumberWriter {
    fn new(precision_bits: u32, style: Style, number_form: NumberForm) -> Result<NumberWriter> {
        let is_mathematica = style.format == FileFormat::Mathematica;
        if is_mathematica && number_form == NumberForm::Hex {
            return Err(Error::InvalidArgument("Mathematica has no hexadecimal floats: write decimals".into()));
        }
        let mark = match is_mathematica {
            true => format!("`{}", f64::from(precision_bits) * std::f64::consts::LOG10_2),
            false => String::new(),
        };
        Ok(NumberWriter { style, number_form, decimals: DecimalWriter::new(precision_bits), mark })
    }

    fn write(&mut self, matrix: MatrixView<'_>, row: usize, column: usize, out: &mut Vec<u8>) -> Result<()> {
        let value = matrix.get(row, column);
        let exponent = value.head.exponent();
        if exponent.abs() > MAXIMUM_EXPONENT {
            return Err(Error::ExponentRange { row, column, exponent, limit: MAXIMUM_EXPONENT });
        }
        out.extend_from_slice(self.style.quote.as_bytes());
        let start = out.len();
        match self.number_form {
            NumberForm::Decimal => self.decimals.write(value, out),
            NumberForm::Hex => write_hexadecimal(value, out),
        }
        if (row, column) == (0, 0) && self.style.outer[0].is_empty() && may_be_headings(matrix) {
            // A first row that counts its columns could be mistaken for headings when the table is read.
            out.extend_from_slice(if self.number_form == NumberForm::Decimal { b"e0" } else { b"" });
        }
        // A zero has no precision there, and without a mark it is exact.
        if !self.mark.is_empty() && !value.head.is_zero() {
            let number = String::from_utf8_lossy(&out[start..]).into_owned();
            let (digits, power) = number.split_once('e').unwrap_or((&number, ""));
            let point = if digits.contains('.') { "" } else { "." };
            let power = if power.is_empty() { String::new() } else { format!("*^{power}") };
            let marked = format!("{digits}{point}{}{power}", self.mark);
            out.truncate(start);
            out.extend_from_slice(marked.as_bytes());
        }
        out.extend_from_slice(self.style.quote.as_bytes());
        Ok(())
    }
}
