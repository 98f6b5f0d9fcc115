//! The head of a Matrix Market file: banner, comments, size line.
//!
//! Independent of: entries.

use crate::error::Result;
use crate::io::number::Field;
use crate::io::scan::{Scanner, shown};
use crate::io::{FileFormat, FileInfo, Symmetry, stored_entries};
use crate::math::float::limbs_for;
use crate::matrix::MAXIMUM_PRECISION_BITS;
use std::io::Read;

const BANNER: &str = "%%MatrixMarket matrix array|coordinate real|integer general|symmetric";

/// The arrangement of the entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrangement {
    /// All entries, column by column.
    Array,
    /// One line `row column value` for each entry.
    Coordinate,
}

/// The header before the entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MatrixMarketHeader {
    pub arrangement: Arrangement,
    pub field: Field,
    pub symmetry: Symmetry,
    pub rows: usize,
    pub cols: usize,
    /// Entries that follow.
    pub entries: u64,
    pub precision_bits_comment: Option<u32>,
}

impl MatrixMarketHeader {
    /// Reads the lines up to the size line, included.
    ///
    /// # Errors
    /// [`crate::Error::Format`] for a wrong banner, size or comment, and for shapes that could never be stored at
    /// `least_bits` bits; the errors of the scanner.
    pub fn read<R: Read>(scanner: &mut Scanner<'_, R>, least_bits: u32) -> Result<MatrixMarketHeader> {
        let mut header = read_banner(scanner)?;
        loop {
            let Some(span) = scanner.next_line()? else {
                return Err(scanner.error("the file ends before the line with the matrix size"));
            };
            let line = scanner.bytes(span);
            if let Some(comment) = line.strip_prefix(b"%") {
                if let Some(bits) = precision_comment(comment).map_err(|message| scanner.error(message))? {
                    header.precision_bits_comment = Some(bits);
                }
            } else if !line.trim_ascii().is_empty() {
                read_size(&mut header, line).map_err(|message| scanner.error(message))?;
                check_size(&header, least_bits).map_err(|message| scanner.error(message))?;
                scanner.end_line();
                return Ok(header);
            }
            scanner.end_line();
        }
    }

    /// The contents of the header as information about the file.
    pub fn info(&self) -> FileInfo {
        FileInfo {
            format: FileFormat::MatrixMarket,
            rows: self.rows,
            cols: self.cols,
            symmetric: self.symmetry == Symmetry::SymmetricLower,
            stored_entries: self.entries,
            precision_bits_comment: self.precision_bits_comment,
            longest_digits: None,
        }
    }
}

/// Reads the first line.
fn read_banner<R: Read>(scanner: &mut Scanner<'_, R>) -> Result<MatrixMarketHeader> {
    let Some(span) = scanner.next_line()? else {
        return Err(scanner.error(format_args!("the file is empty; the first line must be '{BANNER}'")));
    };
    let header = parse_banner(scanner.bytes(span)).map_err(|message| scanner.error(message))?;
    scanner.end_line();
    Ok(header)
}

fn parse_banner(line: &[u8]) -> std::result::Result<MatrixMarketHeader, String> {
    let words: Vec<Vec<u8>> = words(line).map(|word| word.to_ascii_lowercase()).collect();
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let [b"%%matrixmarket", object, arrangement, field, symmetry] = words.as_slice() else {
        return Err(format!("the first line must be '{BANNER}', found {}", shown(line.trim_ascii())));
    };
    if *object != b"matrix" {
        return Err(format!("the file holds a {}, not a matrix", shown(object)));
    }
    let arrangement = match *arrangement {
        b"array" => Arrangement::Array,
        b"coordinate" => Arrangement::Coordinate,
        other => {
            return Err(format!("the arrangement {} is not supported: only array and coordinate are", shown(other)));
        }
    };
    let field = match *field {
        b"real" | b"double" => Field::Real,
        b"integer" => Field::Integer,
        other => {
            return Err(format!(
                "entries of kind {} are not supported: only real and integer entries are",
                shown(other)
            ));
        }
    };
    let symmetry = match *symmetry {
        b"general" => Symmetry::General,
        b"symmetric" => Symmetry::SymmetricLower,
        other => {
            return Err(format!(
                "matrices of kind {} are not supported: only general and symmetric matrices are",
                shown(other)
            ));
        }
    };
    Ok(MatrixMarketHeader { arrangement, field, symmetry, rows: 0, cols: 0, entries: 0, precision_bits_comment: None })
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// The precision in a comment `%sunzi precision_bits=N`, its first `%` taken off; `None` for other comments.
pub(super) fn precision_comment(comment: &[u8]) -> std::result::Result<Option<u32>, String> {
    let mut words = words(comment);
    if !comment.starts_with(b"sunzi") || words.next() != Some(b"sunzi") {
        return Ok(None);
    }
    let Some(value) = words.find_map(|word| word.strip_prefix(b"precision_bits=")) else { return Ok(None) };
    let bits = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    match bits.filter(|bits| (2..=MAXIMUM_PRECISION_BITS).contains(bits)) {
        Some(bits) => Ok(Some(bits)),
        None => Err(format!("precision_bits must be 2 to {MAXIMUM_PRECISION_BITS}, found {}", shown(value))),
    }
}

/// Fills in the size line.
fn read_size(header: &mut MatrixMarketHeader, line: &[u8]) -> std::result::Result<(), String> {
    let (names, form): (&[&str], &str) = match header.arrangement {
        Arrangement::Array => (&["row count", "column count"], "rows columns"),
        Arrangement::Coordinate => (&["row count", "column count", "entry count"], "rows columns entries"),
    };
    let found: Vec<&[u8]> = words(line).collect();
    if found.len() != names.len() {
        return Err(format!("the size line must read '{form}', found {}", shown(line.trim_ascii())));
    }
    let mut sizes = [0; 3];
    for ((size, word), name) in sizes.iter_mut().zip(&found).zip(names) {
        *size = parse_count(word, name)?;
    }
    (header.rows, header.cols) = (sizes[0], sizes[1]);
    header.entries = match header.arrangement {
        Arrangement::Array => stored_entries(header.rows, header.cols, header.symmetry),
        Arrangement::Coordinate => sizes[2] as u64,
    };
    Ok(())
}

/// A count without sign.
pub(super) fn parse_count(word: &[u8], name: &str) -> std::result::Result<usize, String> {
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(format!("the {name} must be a whole number, found {}", shown(word)));
    }
    if digits.len() < word.len() {
        return Err(format!("the {name} is negative: {}", shown(word)));
    }
    let value = digits.iter().try_fold(0usize, |value, digit| {
        value.checked_mul(10).and_then(|value| value.checked_add(usize::from(digit - b'0')))
    });
    value.ok_or_else(|| format!("the {name} {} is too large", shown(word)))
}

/// Refuses shapes that cannot be symmetric, addressed, or filled without duplicates.
fn check_size(header: &MatrixMarketHeader, least_bits: u32) -> std::result::Result<(), String> {
    let MatrixMarketHeader { rows, cols, entries, .. } = *header;
    if header.symmetry == Symmetry::SymmetricLower && rows != cols {
        return Err(format!("the matrix is {rows} x {cols}, but a symmetric matrix must be square"));
    }
    let words = rows.checked_mul(cols).and_then(|count| count.checked_mul(8 * (1 + limbs_for(least_bits))));
    if words.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
        return Err(format!("a {rows} x {cols} matrix of {least_bits} bits is too large to address"));
    }
    let places = stored_entries(rows, cols, header.symmetry);
    if entries > places {
        return Err(format!("the size line states {entries} entries, but a {rows} x {cols} matrix has only {places}"));
    }
    Ok(())
}
