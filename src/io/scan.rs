//! Words and lines of a text file, read as a stream through one buffer.
//!
//! Promise: memory stays near the longest word or line, which may have [`MAXIMUM_WORD_BYTES`] bytes; every error
//! carries the file's name and a line number. Independent of: matrices, numbers.

use crate::error::{Error, Result};
use crate::io::progress::Reporter;
use crate::store::reserve;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// Longest word or line that is read; far above the largest number that a matrix can hold.
pub(super) const MAXIMUM_WORD_BYTES: usize = 64 << 20;

/// Bytes read from the system at a time.
const BUFFER_BYTES: usize = 256 << 10;

/// A word or a line in the scanner's buffer; valid until the scanner moves on.
#[derive(Clone, Copy)]
pub(super) struct BufferSpan {
    start: usize,
    end: usize,
}

impl BufferSpan {
    /// A part of the span, counted from its start.
    pub fn part(self, range: std::ops::Range<usize>) -> BufferSpan {
        BufferSpan { start: self.start + range.start, end: self.start + range.end }
    }
}

/// Splits a stream into words and lines.
pub(super) struct Scanner<'a, R> {
    reader: R,
    path: &'a Path,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    line: u64,
    at_end: bool,
    reporter: Reporter,
}

impl<'a, R: Read> Scanner<'a, R> {
    /// A scanner of `reader`, called `path` in messages.
    pub fn new(reader: R, path: &'a Path, reporter: Reporter) -> Self {
        let buffer = vec![0; BUFFER_BYTES];
        Scanner { reader, path, buffer, start: 0, end: 0, line: 1, at_end: false, reporter }
    }

    /// The name in messages.
    pub fn path(&self) -> &Path {
        self.path
    }

    /// Number of the line where the last word or line stood, from 1; at the end, of the last line.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// An error of the format at the present line.
    pub fn error(&self, message: impl std::fmt::Display) -> Error {
        Error::Format { path: self.path.to_path_buf(), message: format!("line {}: {message}", self.line) }
    }

    /// The bytes of a span.
    pub fn bytes(&self, span: BufferSpan) -> &[u8] {
        &self.buffer[span.start..span.end]
    }

    /// The next word between white space, over any number of line ends; `None` at the end of the file.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Format`] for an overlong word, [`Error::Cancelled`].
    #[inline]
    pub fn next_word(&mut self) -> Result<Option<BufferSpan>> {
        self.next_word_between(|byte| byte.is_ascii_whitespace())
    }

    /// As [`Scanner::next_word`], between bytes that `separates` accepts.
    ///
    /// # Errors
    /// As [`Scanner::next_word`].
    #[inline]
    pub fn next_word_between(&mut self, separates: impl Fn(u8) -> bool) -> Result<Option<BufferSpan>> {
        if self.skip(&separates)?.is_none() {
            return Ok(None);
        }
        self.take_until(separates).map(Some)
    }

    /// Steps over bytes that `skips` accepts, counts their line ends, and gives the first other one, which stays;
    /// `None` at the end of the file.
    ///
    /// # Errors
    /// As [`Scanner::next_word`].
    #[inline]
    pub fn skip(&mut self, skips: impl Fn(u8) -> bool) -> Result<Option<u8>> {
        loop {
            while self.start < self.end && skips(self.buffer[self.start]) {
                self.line += u64::from(self.buffer[self.start] == b'\n');
                self.start += 1;
            }
            if self.start < self.end {
                return Ok(Some(self.buffer[self.start]));
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// Steps over the byte that [`Scanner::skip`] gave; a line end counts.
    #[inline]
    pub fn step(&mut self) {
        self.line += u64::from(self.buffer[self.start] == b'\n');
        self.start += 1;
    }

    /// The span without white space around it, and without the backslashes at the ends of its lines; counts its lines.
    pub fn join_lines(&mut self, span: BufferSpan) -> BufferSpan {
        let bytes = &mut self.buffer[span.start..span.end];
        self.line += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        let (mut kept, mut at) = (0, 0);
        if !bytes.contains(&b'\\') {
            (kept, at) = (bytes.len(), bytes.len());
        }
        while at < bytes.len() {
            let behind = match &bytes[at..] {
                [b'\\', b'\n', ..] => 2,
                [b'\\', b'\r', b'\n', ..] => 3,
                _ => 0,
            };
            if behind > 0 {
                at += behind;
                at += bytes[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            } else {
                bytes[kept] = bytes[at];
                (kept, at) = (kept + 1, at + 1);
            }
        }
        let whole = &bytes[..kept];
        let front = whole.len() - whole.trim_ascii_start().len();
        let length = whole.trim_ascii().len();
        span.part(front..front + length)
    }

    /// Goes back to the start of the span taken last.
    pub fn take_back(&mut self, span: BufferSpan) {
        self.start = span.start;
    }

    /// The next line without its end; `None` at the end of the file.
    ///
    /// Call [`Scanner::end_line`] before the next call.
    ///
    /// # Errors
    /// As [`Scanner::next_word`].
    pub fn next_line(&mut self) -> Result<Option<BufferSpan>> {
        if self.start == self.end && !self.fill()? {
            return Ok(None);
        }
        self.take_until(|byte| byte == b'\n').map(Some)
    }

    /// Steps over the line end behind the line that [`Scanner::next_line`] gave.
    pub fn end_line(&mut self) {
        if self.start < self.end {
            self.start += 1;
            self.line += 1;
        }
    }

    /// Reports the end of the file to the callback.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn finish(&mut self) -> Result<()> {
        self.reporter.finish()
    }

    /// The bytes from the present place to the first that `ends` accepts; that one stays.
    ///
    /// # Errors
    /// As [`Scanner::next_word`].
    #[inline]
    pub fn take_until(&mut self, ends: impl Fn(u8) -> bool) -> Result<BufferSpan> {
        let mut length = 0;
        loop {
            let rest = &self.buffer[self.start + length..self.end];
            // 16 bytes are tried at a time, without a branch for each.
            let (chunks, _) = rest.as_chunks::<16>();
            let skipped =
                16 * chunks.iter().take_while(|chunk| !chunk.iter().fold(false, |any, &byte| any | ends(byte))).count();
            match rest[skipped..].iter().position(|&byte| ends(byte)) {
                Some(more) => {
                    length += skipped + more;
                    break;
                }
                None => length += rest.len(),
            }
            if !self.fill()? {
                break;
            }
        }
        let span = BufferSpan { start: self.start, end: self.start + length };
        self.start = span.end;
        Ok(span)
    }

    /// Reads more bytes after those not taken yet, which move to the front; `false` at the end of the file.
    fn fill(&mut self) -> Result<bool> {
        if self.at_end {
            return Ok(false);
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            if self.end >= MAXIMUM_WORD_BYTES {
                return Err(self.error(format_args!("a number or name is longer than {MAXIMUM_WORD_BYTES} bytes")));
            }
            let more = self.end;
            reserve(&mut self.buffer, more)?;
            self.buffer.resize(2 * more, 0);
        }
        loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(count) => {
                    self.end += count;
                    self.at_end = count == 0;
                    self.reporter.advance(count as u64)?;
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::Io { path: self.path.to_path_buf(), action: "read", source }),
            }
        }
    }
}

/// A word of the file for a message: printable, at most 40 characters of it.
pub(super) fn shown(word: &[u8]) -> String {
    let shown: String =
        word.iter().take(40).flat_map(|&byte| std::ascii::escape_default(byte)).map(char::from).collect();
    if word.len() > 40 { format!("'{shown}...' ({} characters)", word.len()) } else { format!("'{shown}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time, so that every word crosses a refill.
    struct Trickle<'a>(&'a [u8]);

    impl Read for Trickle<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let count = self.0.len().min(1).min(out.len());
            out[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn words(reader: impl Read) -> Vec<(u64, String)> {
        let mut scanner = Scanner::new(reader, Path::new("x"), Reporter::new(None, "read", 0));
        let mut found = Vec::new();
        while let Some(span) = scanner.next_word().unwrap() {
            found.push((scanner.line(), String::from_utf8(scanner.bytes(span).to_vec()).unwrap()));
        }
        found
    }

    #[test]
    fn words_and_their_lines() {
        let text = b"one two\r\n\n  three\tfour\n\nfive";
        let want = [(1, "one"), (1, "two"), (3, "three"), (3, "four"), (5, "five")];
        for found in [words(&text[..]), words(Trickle(text))] {
            assert!(found.iter().map(|(line, word)| (*line, word.as_str())).eq(want), "{found:?}");
        }
    }

    #[test]
    fn a_word_longer_than_the_buffer_is_whole() {
        let long = vec![b'7'; 3 * BUFFER_BYTES + 5];
        let found = words(&long[..]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].1.as_bytes(), long);
    }

    #[test]
    fn lines_then_words() {
        let mut scanner = Scanner::new(Trickle(b"a b\r\n\nc"), Path::new("x"), Reporter::new(None, "read", 0));
        for want in [&b"a b\r"[..], b"", b"c"] {
            let span = scanner.next_line().unwrap().unwrap();
            assert_eq!(scanner.bytes(span), want);
            scanner.end_line();
        }
        assert!(scanner.next_line().unwrap().is_none());
        assert_eq!(scanner.line(), 3);
    }

    #[test]
    fn shown_words_are_short_and_printable() {
        assert_eq!(shown(b"a\xff"), "'a\\xff'");
        assert_eq!(shown(&[b'1'; 50]), format!("'{}...' (50 characters)", "1".repeat(40)));
    }
}
