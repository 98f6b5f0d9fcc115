//! Writes Matrix Market text, always as an array of reals.
//!
//! Promise: the bytes depend only on shape, precision, numbers and options. Independent of: how files are opened.

use crate::error::{Error, Result};
use crate::io::atomic::FileSink;
use crate::io::text::{DecimalWriter, write_hexadecimal};
use crate::io::{NumberForm, Symmetry, WriteOptions};
use crate::matrix::{MAXIMUM_EXPONENT, MatrixView};
use std::io::Write;

/// Writes banner, comment, size and entries; see [`super::write`].
pub(super) fn write<W: Write>(mut sink: FileSink<'_, W>, matrix: MatrixView<'_>, options: &WriteOptions) -> Result<()> {
    let (rows, cols, precision_bits) = (matrix.rows(), matrix.cols(), matrix.precision_bits());
    let symmetry = match options.symmetry {
        Symmetry::General => "general",
        Symmetry::SymmetricLower => "symmetric",
    };
    let header =
        format!("%%MatrixMarket matrix array real {symmetry}\n%sunzi precision_bits={precision_bits}\n{rows} {cols}\n");
    sink.buffer().extend_from_slice(header.as_bytes());
    let mut decimals = DecimalWriter::new(precision_bits);
    // Without rows there is nothing to write, however many columns are claimed.
    for column in 0..if rows == 0 { 0 } else { cols } {
        let first_row = if options.symmetry == Symmetry::SymmetricLower { column } else { 0 };
        for row in first_row..rows {
            let value = matrix.get(row, column);
            let exponent = value.head.exponent();
            if exponent.abs() > MAXIMUM_EXPONENT {
                return Err(Error::ExponentRange { row, column, exponent, limit: MAXIMUM_EXPONENT });
            }
            match options.number_form {
                NumberForm::Decimal => decimals.write(value, sink.buffer()),
                NumberForm::Hex => write_hexadecimal(value, sink.buffer()),
            }
            sink.buffer().push(b'\n');
            sink.advance(1)?;
        }
    }
    sink.finish()
}
