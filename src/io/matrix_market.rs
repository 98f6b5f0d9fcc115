//! Reads Matrix Market text.
//!
//! Format: R. Boisvert, R. Pozo, K. Remington, "The Matrix Market exchange formats: initial design", NISTIR 5935,
//! 1996; here with numbers of any length. Array files may have any number of entries on a line, coordinate files
//! have one. Promise: see [`super::read`]. Rows and columns in messages count from 1, as in the files.
//! Independent of: how a number is read, how files are opened.

use crate::error::{Error, Result};
use crate::io::elements::{Elements, MatrixLayout, Order};
use crate::io::intake::{Intake, Places, ReadPosition};
use crate::io::matrix_market_header::{Arrangement, MatrixMarketHeader, parse_count};
use crate::io::progress::Reporter;
use crate::io::scan::{BufferSpan, Scanner, shown};
use crate::io::{FileInfo, Loaded, ReadOptions, Source, Symmetry};
use crate::matrix::{EntryIndex, Matrix};
use std::io::Read;

/// Reads only the header.
pub(super) fn read_info(reader: impl Read, source: &Source<'_>) -> Result<FileInfo> {
    let mut scanner = Scanner::new(reader, source.path, Reporter::new(None, "read", 0));
    Ok(MatrixMarketHeader::read(&mut scanner, 2)?.info())
}

/// Reads the whole file; see [`super::read`].
pub(super) fn read(reader: impl Read, source: &Source<'_>, options: &ReadOptions) -> Result<Loaded> {
    let reporter = Reporter::new(options.progress.clone(), "read", source.bytes.unwrap_or(0));
    let mut scanner = Scanner::new(reader, source.path, reporter);
    let header = MatrixMarketHeader::read(&mut scanner, options.precision_bits.unwrap_or(2))?;
    let bits = options.resolve(header.precision_bits_comment, source)?;
    options.admit(header.rows, header.cols, bits.least)?;
    let order = match (header.arrangement, header.symmetry) {
        (Arrangement::Coordinate, _) => Order::Placed,
        (Arrangement::Array, Symmetry::General) => Order::Columns,
        (Arrangement::Array, Symmetry::SymmetricLower) => Order::LowerColumns,
    };
    let intake = Intake::new(bits.decimal, Elements::new(order, bits.least, header.entries)).keeping(options);
    let mut body = Body { scanner, header, intake };
    match header.arrangement {
        Arrangement::Array => body.read_array()?,
        Arrangement::Coordinate => body.read_coordinates(bits.least)?,
    }
    body.scanner.finish()?;
    let symmetric = header.symmetry == Symmetry::SymmetricLower;
    let loaded =
        body.intake.elements.loaded(MatrixLayout { rows: header.rows, cols: header.cols, mirrored: symmetric })?;
    Ok(Loaded { precision_bits_comment: header.precision_bits_comment, ..loaded })
}

/// The entries of one file on their way into memory.
struct Body<'a, R> {
    scanner: Scanner<'a, R>,
    header: MatrixMarketHeader,
    intake: Intake,
}

impl<R: Read> Body<'_, R> {
    /// Words, column by column.
    fn read_array(&mut self) -> Result<()> {
        let MatrixMarketHeader { rows, symmetry, entries, .. } = self.header;
        let (mut row, mut col) = (0, 0);
        while self.intake.elements.count() < entries {
            let Some(word) = self.scanner.next_word()? else { return Err(self.truncated()) };
            self.push(word, EntryIndex { row, col })?;
            row += 1;
            if row == rows {
                col += 1;
                row = if symmetry == Symmetry::SymmetricLower { col } else { 0 };
            }
        }
        match self.scanner.next_word()? {
            None => Ok(()),
            Some(word) => Err(self.extra(word)),
        }
    }

    /// Lines `row column value`.
    fn read_coordinates(&mut self, least_bits: u32) -> Result<()> {
        let MatrixMarketHeader { rows, cols, entries, .. } = self.header;
        // The matrix itself has to fit; its pages are not touched here.
        drop(Matrix::zeros(rows, cols, least_bits)?);
        let mut seen = Places::new(rows * cols)?;
        while self.intake.elements.count() < entries {
            let Some(line) = self.next_entry_line()? else { return Err(self.truncated()) };
            let [row, col, value] = self.split_entry(line)?;
            let place = self.place(row, col)?;
            if !seen.insert(place.row + place.col * rows) {
                let (row, col) = (place.row + 1, place.col + 1);
                return Err(self.scanner.error(format_args!("a second entry for row {row}, column {col}")));
            }
            self.push(value, place)?;
            self.scanner.end_line();
        }
        match self.next_entry_line()? {
            None => Ok(()),
            Some(line) => Err(self.extra(line)),
        }
    }

    /// The next line that is not blank.
    fn next_entry_line(&mut self) -> Result<Option<BufferSpan>> {
        while let Some(line) = self.scanner.next_line()? {
            if !self.scanner.bytes(line).trim_ascii().is_empty() {
                return Ok(Some(line));
            }
            self.scanner.end_line();
        }
        Ok(None)
    }

    /// The three words of a line.
    fn split_entry(&self, line: BufferSpan) -> Result<[BufferSpan; 3]> {
        let bytes = self.scanner.bytes(line);
        let mut parts = [line.part(0..0); 3];
        let (mut count, mut at) = (0, 0);
        for word in bytes.split(u8::is_ascii_whitespace) {
            if !word.is_empty() {
                if let Some(part) = parts.get_mut(count) {
                    *part = line.part(at..at + word.len());
                }
                count += 1;
            }
            at += word.len() + 1;
        }
        if count == 3 {
            return Ok(parts);
        }
        let found = shown(bytes.trim_ascii());
        Err(self.scanner.error(format_args!("an entry must read 'row column value', found {found}")))
    }

    /// The place that the words of a line name.
    fn place(&self, row: BufferSpan, col: BufferSpan) -> Result<EntryIndex> {
        let MatrixMarketHeader { rows, cols, symmetry, .. } = self.header;
        let index = |word, name, size| {
            let index = parse_count(self.scanner.bytes(word), name).map_err(|message| self.scanner.error(message))?;
            if (1..=size).contains(&index) {
                return Ok(index - 1);
            }
            Err(self.scanner.error(format_args!("{name} {index} is outside 1 to {size}")))
        };
        let (row, col) = (index(row, "row index", rows)?, index(col, "column index", cols)?);
        if symmetry == Symmetry::SymmetricLower && row < col {
            let (row, col) = (row + 1, col + 1);
            let message =
                format!("row {row}, column {col} is above the diagonal: symmetric files hold the lower triangle");
            return Err(self.scanner.error(message));
        }
        Ok(EntryIndex { row, col })
    }

    /// Takes in one number.
    fn push(&mut self, word: BufferSpan, place: EntryIndex) -> Result<()> {
        self.intake.push_at(
            &self.scanner,
            word,
            ReadPosition { place, rows: self.header.rows, field: self.header.field },
        )
    }

    fn truncated(&self) -> Error {
        let (count, entries) = (self.intake.elements.count(), self.header.entries);
        self.scanner.error(format_args!("the file ends after {count} of {entries} entries"))
    }

    fn extra(&self, span: BufferSpan) -> Error {
        let found = shown(self.scanner.bytes(span).trim_ascii());
        self.scanner.error(format_args!("{found} follows after all {} entries", self.header.entries))
    }
}
