//! Matrices in texts without a header: their shape is found while their rows are read.
//!
//! Promise: all rows have the same number of entries, or the error names the first row that does not. Independent of:
//! formats.

use crate::error::{Error, Result};
use crate::io::elements::{Elements, MatrixLayout, Order};
use crate::io::intake::Intake;
use crate::io::number::{Field, NumberReader};
use crate::io::scan::{BufferSpan, Scanner};
use crate::io::{FileFormat, FileInfo, Loaded, ReadOptions};
use crate::matrix::EntryIndex;
use std::io::Read;

/// The destination of the entries of a text.
pub(super) enum Receiver {
    /// Into memory, as numbers.
    Numbers(Intake),
    /// Nowhere: only their appearance is recorded.
    Looks(Looks),
}

/// The appearance of the numbers of a text.
pub(super) struct Looks {
    /// Digits of the longest number that has to be rounded.
    longest_digits: u32,
    /// Finds the first mark of Mathematica.
    numbers: NumberReader,
}

impl Receiver {
    /// One that keeps numbers, whose precision the options state, or else the first mark of Mathematica.
    pub fn numbers(options: &ReadOptions) -> Receiver {
        let elements = Elements::within(Order::Rows, options.least_bits(None), options.limit_bytes());
        Receiver::Numbers(Intake::new(options.decimal_bits(None), elements).keeping(options))
    }

    /// A receiver that keeps no numbers.
    pub fn looking() -> Receiver {
        Receiver::Looks(Looks { longest_digits: 0, numbers: NumberReader::new(None) })
    }

    /// The precision that the first mark of Mathematica states.
    pub fn marked_bits(&self) -> Option<u32> {
        match self {
            Receiver::Numbers(intake) => intake.numbers.marked_bits(),
            Receiver::Looks(looks) => looks.numbers.marked_bits(),
        }
    }

    /// Takes the precision that a comment of the file states, where the options have none.
    pub fn state_precision(&mut self, options: &ReadOptions, precision_bits: u32) {
        if let Receiver::Numbers(intake) = self {
            let stated = Some(precision_bits);
            intake.elements.raise_precision(options.least_bits(stated));
            intake.numbers = NumberReader::new(options.decimal_bits(stated));
        }
    }

    #[inline]
    fn entry<R: Read>(&mut self, scanner: &Scanner<'_, R>, word: BufferSpan, place: EntryIndex) -> Result<()> {
        match self {
            Receiver::Numbers(intake) => intake.push(scanner, word, place),
            Receiver::Looks(looks) => {
                let word = scanner.bytes(word);
                looks.longest_digits = rounded_digits(word).max(looks.longest_digits);
                if looks.numbers.marked_bits().is_none() && word.contains(&b'`') {
                    // Whether it is a number at all is found out when it is read.
                    let _ = looks.numbers.read(word, Field::Real);
                }
                Ok(())
            }
        }
    }
}

/// Rows as they come.
pub(super) struct Outline {
    pub receiver: Receiver,
    /// Whole rows so far.
    pub rows: usize,
    /// Entries of each, once one is whole.
    pub cols: Option<usize>,
    /// Entries of the current row.
    pub col: usize,
}

impl Outline {
    /// No rows yet.
    pub fn new(receiver: Receiver) -> Outline {
        Outline { receiver, rows: 0, cols: None, col: 0 }
    }

    /// Takes the next entry of the row.
    ///
    /// # Errors
    /// The errors of [`Intake::push`]; [`Error::Format`] for more entries than the rows before have.
    #[inline]
    pub fn entry<R: Read>(&mut self, scanner: &Scanner<'_, R>, word: BufferSpan) -> Result<()> {
        if self.cols == Some(self.col) {
            return Err(self.ragged(scanner, "more"));
        }
        self.receiver.entry(scanner, word, EntryIndex { row: self.rows, col: self.col })?;
        self.col += 1;
        Ok(())
    }

    /// Ends the row.
    ///
    /// # Errors
    /// [`Error::Format`] for fewer entries than the rows before have.
    pub fn end_row<R: Read>(&mut self, scanner: &Scanner<'_, R>) -> Result<()> {
        if self.cols.is_some_and(|cols| self.col < cols) {
            return Err(self.ragged(scanner, &self.col.to_string()));
        }
        self.cols = Some(self.col);
        self.rows += 1;
        self.col = 0;
        Ok(())
    }

    fn ragged<R: Read>(&self, scanner: &Scanner<'_, R>, found: &str) -> Error {
        let (row, cols) = (self.rows + 1, self.cols.unwrap_or(0));
        scanner.error(format_args!("row {row} has {found} entries, the rows above it have {cols}"))
    }

    /// The matrix of all rows.
    ///
    /// # Errors
    /// The errors of the matrix's memory.
    pub fn finish(self) -> Result<Loaded> {
        let (rows, cols) = (self.rows, self.cols.unwrap_or(0));
        let precision_bits_comment = self.receiver.marked_bits();
        let elements = match self.receiver {
            Receiver::Numbers(intake) => intake.elements,
            Receiver::Looks(_) => Elements::new(Order::Rows, 2, 0),
        };
        Ok(Loaded { precision_bits_comment, ..elements.loaded(MatrixLayout { rows, cols, mirrored: false })? })
    }

    /// The counts as information about the file.
    pub fn info(&self, format: FileFormat, precision_bits_comment: Option<u32>) -> FileInfo {
        let (rows, cols) = (self.rows, self.cols.unwrap_or(0));
        let longest_digits = match &self.receiver {
            Receiver::Looks(looks) => Some(looks.longest_digits).filter(|&digits| digits > 0),
            Receiver::Numbers(_) => None,
        };
        let stored_entries = rows as u64 * cols as u64;
        FileInfo { format, rows, cols, symmetric: false, stored_entries, precision_bits_comment, longest_digits }
    }
}

/// Digits of the significand of a decimal; 0 for integers and hexadecimal floats, which are not rounded.
fn rounded_digits(word: &[u8]) -> u32 {
    let end = word.iter().position(|byte| b"eEdD*`".contains(byte)).unwrap_or(word.len());
    let is_exact = end == word.len() && !word.contains(&b'.') || word.contains(&b'x') || word.contains(&b'X');
    let significand = word[..end].iter().filter(|byte| byte.is_ascii_digit());
    if is_exact { 0 } else { significand.skip_while(|&&digit| digit == b'0').count() as u32 }
}
