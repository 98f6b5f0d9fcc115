//! Reads tables of numbers: rows as lines, with commas, semicolons, tabs or blanks between the entries.
//!
//! The first line with numbers decides which of them, for the whole file. Lines that begin with `#` or `%` are
//! comments, blank lines are skipped, and so is a first line without any number: headings, which a remark repeats. A
//! first line that counts the columns is refused where it may be headings, unless the caller specifies its kind.
//! Memory stays near the longest entry. Independent of: how a number is read, how files are opened.

use crate::error::{Error, Result};
use crate::io::matrix_market_header::precision_comment;
use crate::io::number::not_finite;
use crate::io::outline::{Outline, Receiver};
use crate::io::progress::Reporter;
use crate::io::scan::{BufferSpan, Scanner, shown};
use crate::io::{FileFormat, FileInfo, Headings, Loaded, ReadOptions, Source};
use std::io::Read;

/// Reads the whole table; see [`super::read`].
pub(super) fn read(reader: impl Read, source: &Source<'_>, options: &ReadOptions) -> Result<Loaded> {
    let reporter = Reporter::new(options.progress.clone(), "read", source.bytes.unwrap_or(0));
    let mut table = Table::new(reader, &source.header(options.header), reporter, Receiver::numbers(options));
    table.options = Some(options);
    table.read_rows()?;
    table.scanner.finish()?;
    let Table { stated, remarks, outline, .. } = table;
    let loaded = outline.finish()?;
    Ok(Loaded { precision_bits_comment: stated.or(loaded.precision_bits_comment), remarks, ..loaded })
}

/// Reads the whole table without its numbers.
pub(super) fn read_info(reader: impl Read, source: &Source<'_>, format: FileFormat) -> Result<FileInfo> {
    let mut table = Table::new(reader, source, Reporter::new(None, "read", 0), Receiver::looking());
    table.read_rows()?;
    Ok(table.outline.info(format, table.stated))
}

/// The separator between the entries of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Separator {
    /// This byte, and any blanks.
    Byte(u8),
    /// Blanks and tabs.
    Blanks,
}

struct Table<'a, R> {
    scanner: Scanner<'a, R>,
    outline: Outline,
    options: Option<&'a ReadOptions>,
    separator: Option<Separator>,
    stated: Option<u32>,
    remarks: Vec<String>,
    header: Headings,
    counting: Option<Counting>,
}

/// A first line that counts the columns: it may be one of headings.
struct Counting {
    /// Its number.
    line: u64,
    /// The first count, 0 or 1.
    start: u8,
    /// Whether all numbers of the table so far are integers without a point or an exponent.
    integers: bool,
}

impl<'a, R: Read> Table<'a, R> {
    fn new(reader: R, source: &Source<'a>, reporter: Reporter, receiver: Receiver) -> Table<'a, R> {
        let scanner = Scanner::new(reader, source.path, reporter);
        let outline = Outline::new(receiver);
        let (remarks, header) = (Vec::new(), source.header);
        Table { scanner, outline, options: None, separator: None, stated: None, remarks, header, counting: None }
    }

    fn read_rows(&mut self) -> Result<()> {
        // White space in front of a line is never a part of an entry, but for tabs between empty ones.
        while let Some(first) = self.scanner.skip(|byte| matches!(byte, b' ' | b'\r'))? {
            match first {
                b'\n' => self.scanner.end_line(),
                b'#' | b'%' => self.comment()?,
                _ => match self.separator {
                    Some(separator) => self.row(separator)?,
                    None => self.first_line()?,
                },
            }
        }
        if self.outline.rows == 0 {
            let seen = self.remarks.first().map_or("the file is empty", |_| "no line of numbers follows the headings");
            return Err(self.scanner.error(format_args!("{seen}; a table has a line of numbers for each row")));
        }
        self.check_counting()
    }

    /// Refuses a table whose first line may be headings, such as pandas writes for columns without names, or a row.
    ///
    /// A table of one line passes, and so does a square one; if its first line counts from 0 all its numbers must be
    /// integers, as the first line would otherwise be the only one of its kind.
    fn check_counting(&self) -> Result<()> {
        let Some(Counting { line, start, integers }) = self.counting else { return Ok(()) };
        let (rows, cols) = (self.outline.rows, self.outline.cols.unwrap_or(0));
        let is_matrix = rows == cols && (integers || start == 1);
        if rows == 1 || is_matrix {
            return Ok(());
        }
        let message = format!(
            "line {line} holds the numbers {start}, {}, ..., which may be headings or a row of the matrix: choose \
             --header or --no-header in the program, header=True or header=False in Python",
            start + 1
        );
        Err(Error::Format { path: self.scanner.path().to_path_buf(), message })
    }

    fn comment(&mut self) -> Result<()> {
        if let Some(line) = self.scanner.next_line()? {
            let text = self.scanner.bytes(line)[1..].trim_ascii();
            if let Some(bits) = precision_comment(text).map_err(|message| self.scanner.error(message))? {
                if self.outline.rows > 0 {
                    return Err(self.scanner.error("the precision must be stated above the numbers"));
                }
                self.stated = Some(bits);
                if let Some(options) = self.options {
                    self.outline.receiver.state_precision(options, bits);
                }
            }
        }
        self.scanner.end_line();
        Ok(())
    }

    /// The first line that is no comment: headings, or the numbers that show the separator.
    fn first_line(&mut self) -> Result<()> {
        let Some(span) = self.scanner.next_line()? else { return Ok(()) };
        let line = self.scanner.bytes(span);
        let separator = separator_of(line);
        let may_be_heading = self.remarks.is_empty() && self.header != Headings::Absent;
        let is_named = self.header == Headings::Present;
        let is_heading = may_be_heading && (is_named || !entries(line, separator).any(looks_like_a_number));
        let start = if is_heading || !may_be_heading { None } else { counts_from(line, separator) };
        self.counting = start.map(|start| Counting { line: self.scanner.line(), start, integers: true });
        if is_heading && !line.trim_ascii().is_empty() {
            let number = self.scanner.line();
            self.remarks.push(format!("line {number} was read as headings and skipped: {}", shown(line.trim_ascii())));
        }
        if is_heading {
            self.scanner.end_line();
            return Ok(());
        }
        self.separator = Some(separator);
        self.scanner.take_back(span);
        self.row(separator)
    }

    /// One line of numbers.
    fn row(&mut self, separator: Separator) -> Result<()> {
        match separator {
            Separator::Blanks => {
                while self
                    .scanner
                    .skip(|byte| byte != b'\n' && byte.is_ascii_whitespace())?
                    .is_some_and(|byte| byte != b'\n')
                {
                    let word = self.scanner.take_until(|byte| byte.is_ascii_whitespace())?;
                    let word = self.unquoted(word);
                    self.entry(word)?;
                }
            }
            Separator::Byte(separator) => self.separated(separator)?,
        }
        self.outline.end_row(&self.scanner)?;
        self.scanner.end_line();
        Ok(())
    }

    #[inline]
    fn entry(&mut self, word: BufferSpan) -> Result<()> {
        if let Some(counting) = &mut self.counting
            && counting.integers
        {
            let digits = self.scanner.bytes(word);
            let digits = digits.strip_prefix(b"-").unwrap_or(digits);
            counting.integers = digits.iter().all(u8::is_ascii_digit);
        }
        self.outline.entry(&self.scanner, word)
    }

    /// The entries of a line with a separator, up to its end.
    fn separated(&mut self, separator: u8) -> Result<()> {
        loop {
            let field = self.scanner.take_until(|byte| byte == separator || byte == b'\n')?;
            let entry = self.unquoted(field);
            let is_last = self.scanner.skip(|_| false)?.is_none_or(|byte| byte == b'\n');
            if !self.scanner.bytes(entry).is_empty() {
                self.entry(entry)?;
            } else if !(is_last && self.outline.col > 0) {
                // A separator may end a line; elsewhere an entry is missing.
                let (row, col) = (self.outline.rows + 1, self.outline.col + 1);
                return Err(self.scanner.error(format_args!(
                    "entry at row {row}, column {col} (counted from 1) is missing: there is nothing between two \
                     separators"
                )));
            }
            if is_last {
                return Ok(());
            }
            self.scanner.step();
        }
    }

    /// The span without white space around it, and without quotation marks.
    fn unquoted(&self, span: BufferSpan) -> BufferSpan {
        let bytes = self.scanner.bytes(span);
        let kept = unquoted(bytes);
        let start = kept.as_ptr() as usize - bytes.as_ptr() as usize;
        span.part(start..start + kept.len())
    }
}

fn unquoted(field: &[u8]) -> &[u8] {
    match field.trim_ascii() {
        [b'"', inner @ .., b'"'] | [b'\'', inner @ .., b'\''] => inner.trim_ascii(),
        plain => plain,
    }
}

/// A semicolon, a tab or a comma where one is there, in this order; else blanks.
fn separator_of(line: &[u8]) -> Separator {
    let line = line.trim_ascii();
    [b';', b'\t', b','].into_iter().find(|byte| line.contains(byte)).map_or(Separator::Blanks, Separator::Byte)
}

fn entries(line: &[u8], separator: Separator) -> impl Iterator<Item = &[u8]> {
    line.split(move |&byte| match separator {
        Separator::Byte(separator) => byte == separator,
        Separator::Blanks => byte.is_ascii_whitespace(),
    })
    .map(unquoted)
    .filter(|entry| !entry.is_empty())
}

/// The first of at least two entries that count one by one, from 0 or from 1.
fn counts_from(line: &[u8], separator: Separator) -> Option<u8> {
    let mut found = entries(line, separator);
    let start = match found.next()? {
        b"0" => 0,
        b"1" => 1,
        _ => return None,
    };
    let mut count = 1;
    for entry in found {
        if entry != (usize::from(start) + count).to_string().as_bytes() {
            return None;
        }
        count += 1;
    }
    (count > 1).then_some(start)
}

/// Whether a first line with this entry is no line of headings.
fn looks_like_a_number(entry: &[u8]) -> bool {
    let size = entry.strip_prefix(b"-").or_else(|| entry.strip_prefix(b"+")).unwrap_or(entry);
    matches!(size, [b'0'..=b'9', ..] | [b'.', b'0'..=b'9', ..]) || not_finite(size).is_some()
}
