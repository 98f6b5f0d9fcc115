//! The bytes of a binary file, read one after the other; every error has the file's name and the position.
//!
//! Independent of: what the bytes mean.

use crate::error::{Error, Result};
use crate::io::progress::Reporter;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

/// Bytes read from the system at a time.
const BUFFER_BYTES: usize = 256 << 10;

/// A stream of the bytes of a file.
pub(super) struct ByteStream<'a, R> {
    reader: BufReader<R>,
    path: &'a Path,
    reporter: Reporter,
    offset: u64,
}

impl<'a, R: Read> ByteStream<'a, R> {
    /// The bytes of `reader`, called `path` in messages.
    pub fn new(reader: R, path: &'a Path, reporter: Reporter) -> ByteStream<'a, R> {
        let reader = BufReader::with_capacity(BUFFER_BYTES, reader);
        ByteStream { reader, path, reporter, offset: 0 }
    }

    /// Bytes taken so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// An error of the format.
    pub fn error(&self, message: impl std::fmt::Display) -> Error {
        Error::Format { path: self.path.to_path_buf(), message: message.to_string() }
    }

    /// Bytes read at once; fewer at the end of the file.
    fn take(&mut self, out: &mut [u8]) -> Result<usize> {
        let mut count = 0;
        while count < out.len() {
            match self.reader.read(&mut out[count..]) {
                Ok(0) => break,
                Ok(more) => count += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::Io { path: self.path.to_path_buf(), action: "read", source }),
            }
        }
        self.offset += count as u64;
        self.reporter.advance(count as u64)?;
        Ok(count)
    }

    /// Fills `out`.
    ///
    /// # Errors
    /// [`Error::Format`] where the file ends before.
    pub fn fill(&mut self, out: &mut [u8], what: &str) -> Result<()> {
        match self.take(out)? {
            count if count == out.len() => Ok(()),
            _ => Err(self.error(format_args!("the file ends after {} bytes, within {what}", self.offset))),
        }
    }

    /// A list of `count` bytes, whose memory grows as they arrive.
    ///
    /// # Errors
    /// As [`ByteStream::fill`].
    pub fn list(&mut self, count: usize, what: &str) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        while out.len() < count {
            let start = out.len();
            out.resize(count.min(start + BUFFER_BYTES), 0);
            self.fill(&mut out[start..], what)?;
        }
        Ok(out)
    }

    /// `COUNT` bytes.
    ///
    /// # Errors
    /// As [`ByteStream::fill`].
    pub fn array<const COUNT: usize>(&mut self, what: &str) -> Result<[u8; COUNT]> {
        let mut out = [0; COUNT];
        self.fill(&mut out, what)?;
        Ok(out)
    }

    /// Nothing may follow behind `what`.
    ///
    /// # Errors
    /// [`Error::Format`] where something does, [`Error::Cancelled`].
    pub fn finish(&mut self, what: &str) -> Result<()> {
        if self.take(&mut [0])? > 0 {
            return Err(self.error(format_args!("the file continues after the {} bytes of {what}", self.offset - 1)));
        }
        self.reporter.finish()
    }
}
