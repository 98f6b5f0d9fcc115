//! Lines of a Matrix Market coordinate file, and the header above its entries.

use std::fmt::Arguments;
use std::io::{BufRead, Read};
use std::path::Path;
use sunzi::{Error, Result};

/// The longest line that is read.
const LINE_BYTES: u64 = 1 << 20;

/// Characters of a line that a message shows.
const SHOWN: usize = 40;

/// The type of the numbers in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    /// Any real ones.
    Real,
    /// Integers.
    Integer,
    /// No numbers: every entry is 1.
    Pattern,
}

/// The entries that a file contains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileSymmetry {
    /// All of them.
    General,
    /// The lower triangle of a symmetric matrix.
    Lower,
}

/// The header before the entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Kind of numbers.
    pub field: Field,
    /// The kind of the entries.
    pub symmetry: FileSymmetry,
    /// Rows of the matrix.
    pub rows: u64,
    /// Columns of the matrix.
    pub cols: u64,
    /// Entries that follow.
    pub entries: u64,
}

impl Header {
    pub(super) fn read<R: BufRead>(lines: &mut Lines<'_, R>) -> Result<Header> {
        if !lines.next_line()? {
            return Err(lines.error(format_args!("the file is empty")));
        }
        let (field, symmetry) = banner(lines.text()?).map_err(|message| lines.error(format_args!("{message}")))?;
        loop {
            if !lines.next_filled()? {
                return Err(lines.error(format_args!("the file ends before the line with the matrix size")));
            }
            if !lines.bytes().starts_with(b"%") {
                break;
            }
        }
        let sizes = lines.text()?.split_ascii_whitespace().map(str::parse::<u64>).collect::<Vec<_>>();
        let [Ok(rows), Ok(cols), Ok(entries)] = sizes[..] else {
            return Err(
                lines.error(format_args!("the size line must read 'rows columns entries', found '{}'", lines.shown()))
            );
        };
        if symmetry == FileSymmetry::Lower && rows != cols {
            return Err(
                lines.error(format_args!("the matrix is {rows} x {cols}, but a symmetric matrix must be square"))
            );
        }
        let (rows_wide, cols_wide) = (u128::from(rows), u128::from(cols));
        let places =
            if symmetry == FileSymmetry::Lower { rows_wide * (rows_wide + 1) / 2 } else { rows_wide * cols_wide };
        if u128::from(entries) > places {
            let message =
                format!("the size line states {entries} entries, but a {rows} x {cols} matrix has only {places}");
            return Err(lines.error(format_args!("{message}")));
        }
        Ok(Header { field, symmetry, rows, cols, entries })
    }
}

fn banner(text: &str) -> std::result::Result<(Field, FileSymmetry), String> {
    const WANTED: &str = "%%MatrixMarket matrix coordinate real|integer|pattern general|symmetric";
    let lower = text.to_ascii_lowercase();
    let words = lower.split_ascii_whitespace().collect::<Vec<_>>();
    let ["%%matrixmarket", "matrix", "coordinate", field, symmetry] = words[..] else {
        let shown = text.chars().take(2 * SHOWN).collect::<String>();
        return Err(format!("the first line must be '{WANTED}', found '{shown}'"));
    };
    let field = match field {
        "real" | "double" => Field::Real,
        "integer" => Field::Integer,
        "pattern" => Field::Pattern,
        other => {
            return Err(format!(
                "entries of kind '{other}' are not supported: only real, integer and pattern entries are"
            ));
        }
    };
    let symmetry = match symmetry {
        "general" => FileSymmetry::General,
        "symmetric" => FileSymmetry::Lower,
        other => {
            return Err(format!(
                "matrices of kind '{other}' are not supported: only general and symmetric matrices are"
            ));
        }
    };
    Ok((field, symmetry))
}

/// A file, line by line.
pub(super) struct Lines<'a, R> {
    reader: R,
    path: &'a Path,
    line: u64,
    bytes: Vec<u8>,
}

impl<'a, R: BufRead> Lines<'a, R> {
    pub fn new(reader: R, path: &'a Path) -> Lines<'a, R> {
        Lines { reader, path, line: 0, bytes: Vec::new() }
    }

    /// Moves to the next line; returns `false` at the end of the file.
    pub fn next_line(&mut self) -> Result<bool> {
        self.bytes.clear();
        let read = self.reader.by_ref().take(LINE_BYTES).read_until(b'\n', &mut self.bytes);
        let count = read.map_err(|source| Error::Io { path: self.path.into(), action: "read", source })?;
        self.line += u64::from(count > 0);
        if count as u64 == LINE_BYTES && !self.bytes.ends_with(b"\n") {
            return Err(self.error(format_args!("the line is longer than {LINE_BYTES} bytes")));
        }
        Ok(count > 0)
    }

    /// Moves to the next line that is not blank.
    pub fn next_filled(&mut self) -> Result<bool> {
        while self.next_line()? {
            if !self.bytes.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The line.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The line as text.
    pub fn text(&self) -> Result<&str> {
        str::from_utf8(&self.bytes).map_err(|_| self.error(format_args!("the line is not text")))
    }

    /// The beginning of the line, for messages.
    pub fn shown(&self) -> String {
        let text = String::from_utf8_lossy(self.bytes.trim_ascii());
        let short = text.chars().take(SHOWN).collect::<String>();
        if short.len() < text.len() { short + ".." } else { short }
    }

    /// Number of the line, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// An error that names the line.
    pub fn error(&self, message: Arguments<'_>) -> Error {
        Error::Format { path: self.path.into(), message: format!("line {}: {message}", self.line.max(1)) }
    }
}
