//! Reads nested lists: a list of rows, each a list of numbers; or one list of numbers, a column.
//!
//! One reader for JSON and Mathematica, which differ in brackets and words ([`Syntax`]). Numbers of any length arrive
//! as text, and memory stays near the longest of them. Independent of: how a number is read.

use crate::error::{Error, Result};
use crate::io::outline::{Outline, Receiver};
use crate::io::progress::Reporter;
use crate::io::scan::{BufferSpan, Scanner, shown};
use crate::io::{FileFormat, FileInfo, Loaded, ReadOptions, Source};
use std::io::Read;

/// The syntax of lists in a language.
pub(super) trait Syntax {
    const FORMAT: FileFormat;
    const OPEN: u8;
    const CLOSE: u8;

    /// Goes to the list that is meant.
    fn enter<R: Read>(scanner: &mut Scanner<'_, R>, source: &Source<'_>) -> Result<()>;

    /// Takes a number, whose first byte comes next.
    fn word<R: Read>(scanner: &mut Scanner<'_, R>) -> Result<BufferSpan>;

    /// Steps over white space and comments; the next byte, or `None` at the end.
    fn skip<R: Read>(scanner: &mut Scanner<'_, R>) -> Result<Option<u8>>;

    /// Reads what may follow the list, to the end of the file.
    fn leave<R: Read>(scanner: &mut Scanner<'_, R>, source: &Source<'_>) -> Result<()>;
}

/// Reads the whole list; see [`super::read`].
pub(super) fn read<S: Syntax>(reader: impl Read, source: &Source<'_>, options: &ReadOptions) -> Result<Loaded> {
    let reporter = Reporter::new(options.progress.clone(), "read", source.bytes.unwrap_or(0));
    let mut scanner = Scanner::new(reader, source.path, reporter);
    let outline = read_rows::<S, _>(&mut scanner, source, Receiver::numbers(options))?;
    scanner.finish()?;
    outline.finish()
}

/// Reads the whole list without its numbers, but for the precision that they state.
pub(super) fn read_info<S: Syntax>(reader: impl Read, source: &Source<'_>) -> Result<FileInfo> {
    let mut scanner = Scanner::new(reader, source.path, Reporter::new(None, "read", 0));
    let outline = read_rows::<S, _>(&mut scanner, source, Receiver::looking())?;
    Ok(outline.info(S::FORMAT, outline.receiver.marked_bits()))
}

fn read_rows<S: Syntax, R: Read>(
    scanner: &mut Scanner<'_, R>,
    source: &Source<'_>,
    receiver: Receiver,
) -> Result<Outline> {
    S::enter(scanner, source)?;
    let mut outline = Outline::new(receiver);
    expect::<S, R>(scanner, S::OPEN, "a list")?;
    let mut is_column = None;
    if next::<S, R>(scanner)? == S::CLOSE {
        scanner.step();
    } else {
        loop {
            let is_row = next::<S, R>(scanner)? == S::OPEN;
            if *is_column.get_or_insert(!is_row) == is_row {
                return Err(scanner.error("a list contains both rows and numbers: it must contain only one of them"));
            }
            match is_row {
                true => read_row::<S, R>(scanner, &mut outline)?,
                false => {
                    let word = S::word(scanner)?;
                    outline.entry(scanner, word)?;
                    outline.end_row(scanner)?;
                }
            }
            if !goes_on::<S, R>(scanner)? {
                break;
            }
        }
    }
    S::leave(scanner, source)?;
    Ok(outline)
}

/// One row in its brackets.
fn read_row<S: Syntax, R: Read>(scanner: &mut Scanner<'_, R>, outline: &mut Outline) -> Result<()> {
    scanner.step();
    if next::<S, R>(scanner)? == S::CLOSE {
        scanner.step();
        return outline.end_row(scanner);
    }
    loop {
        if next::<S, R>(scanner)? == S::OPEN {
            return Err(scanner.error("a row contains a list: a matrix has only two levels of lists"));
        }
        let word = S::word(scanner)?;
        outline.entry(scanner, word)?;
        if !goes_on::<S, R>(scanner)? {
            return outline.end_row(scanner);
        }
    }
}

/// Whether a comma follows, and not the end of the list; steps over either.
pub(super) fn goes_on<S: Syntax, R: Read>(scanner: &mut Scanner<'_, R>) -> Result<bool> {
    let found = next::<S, R>(scanner)?;
    if found != b',' && found != S::CLOSE {
        return Err(unexpected(scanner, found, "a comma or the end of the list"));
    }
    scanner.step();
    Ok(found == b',')
}

/// The next byte that is neither white space nor part of a comment.
///
/// # Errors
/// [`Error::Format`] at the end of the file.
pub(super) fn next<S: Syntax, R: Read>(scanner: &mut Scanner<'_, R>) -> Result<u8> {
    S::skip(scanner)?.ok_or_else(|| scanner.error("the file ends within a list"))
}

/// Steps over this byte.
pub(super) fn expect<S: Syntax, R: Read>(scanner: &mut Scanner<'_, R>, byte: u8, what: &str) -> Result<()> {
    let found = S::skip(scanner)?.ok_or_else(|| scanner.error(format_args!("the file ends before {what}")))?;
    if found != byte {
        return Err(unexpected(scanner, found, what));
    }
    scanner.step();
    Ok(())
}

/// The error for a byte where something else was expected.
pub(super) fn unexpected<R: Read>(scanner: &Scanner<'_, R>, found: u8, wanted: &str) -> Error {
    scanner.error(format_args!("{wanted} is expected, found {}", shown(&[found])))
}

/// Mathematica's lists, as `Put` and `Export` write them: `{{1.5`30., 2}, {3, 4*^-2}}`, perhaps behind `name =`.
pub(super) struct Mathematica;

impl Syntax for Mathematica {
    const FORMAT: FileFormat = FileFormat::Mathematica;
    const OPEN: u8 = b'{';
    const CLOSE: u8 = b'}';

    fn enter<R: Read>(scanner: &mut Scanner<'_, R>, _: &Source<'_>) -> Result<()> {
        if Self::skip(scanner)?.is_some_and(|byte| byte.is_ascii_alphabetic()) {
            let name = scanner.take_until(|byte| matches!(byte, b'=' | b'{' | b'\n'))?;
            if Self::skip(scanner)? != Some(b'=') {
                let found = shown(scanner.bytes(name).trim_ascii());
                return Err(scanner.error(format_args!("a list in braces is expected, found {found}")));
            }
            scanner.step();
        }
        Ok(())
    }

    /// Long numbers go on behind a backslash at the end of a line.
    fn word<R: Read>(scanner: &mut Scanner<'_, R>) -> Result<BufferSpan> {
        let span = scanner.take_until(|byte| matches!(byte, b',' | b'}' | b'{' | b';'))?;
        Ok(scanner.join_lines(span))
    }

    fn skip<R: Read>(scanner: &mut Scanner<'_, R>) -> Result<Option<u8>> {
        loop {
            let found = scanner.skip(|byte| byte.is_ascii_whitespace())?;
            if found != Some(b'(') {
                return Ok(found);
            }
            // A comment; they may stand inside of each other.
            scanner.step();
            if scanner.skip(|_| false)? != Some(b'*') {
                return Err(unexpected(scanner, b'(', "a number or a list"));
            }
            let (mut depth, mut last) = (1, b' ');
            while depth > 0 {
                let Some(byte) = scanner.skip(|_| false)? else {
                    return Err(scanner.error("the file ends within a comment"));
                };
                scanner.step();
                (depth, last) = match (last, byte) {
                    (b'*', b')') => (depth - 1, b' '),
                    (b'(', b'*') => (depth + 1, b' '),
                    _ => (depth, byte),
                };
            }
        }
    }

    fn leave<R: Read>(scanner: &mut Scanner<'_, R>, _: &Source<'_>) -> Result<()> {
        if Self::skip(scanner)? == Some(b';') {
            scanner.step();
        }
        match Self::skip(scanner)? {
            None => Ok(()),
            Some(found) => Err(unexpected(scanner, found, "the end of the file after the list")),
        }
    }
}
