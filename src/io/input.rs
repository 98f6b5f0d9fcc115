//! The layer between a file and the reader of its format: compression, a byte order mark, the format where no name
//! determines it.
//!
//! Independent of: how any format is read.

use crate::error::{Error, Result};
use crate::io::Source;
use crate::io::compress::{by_content, unpack};
use crate::io::format::{Compression, FileFormat};
use std::io::{ErrorKind, Read};
use std::path::Path;

/// First bytes that are looked at.
const PEEKED_BYTES: usize = 64;

/// A stream of the plain bytes of a format.
pub(super) struct Plain<'r> {
    pub reader: Box<dyn Read + 'r>,
    pub format: FileFormat,
    /// Length of what `reader` gives, where it is known.
    pub bytes: Option<u64>,
}

impl<'r> Plain<'r> {
    /// Unpacks `reader`, skips a UTF-8 byte order mark, and detects the format if `source` does not state it.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Format`] for text in UTF-16.
    pub fn open(mut reader: impl Read + 'r, source: &Source<'_>) -> Result<Plain<'r>> {
        let (peeked, count) = peek(&mut reader, source.path)?;
        let compression = by_content(&peeked[..count]);
        let whole = std::io::Cursor::new(peeked).take(count as u64).chain(reader);
        if compression == Compression::None {
            return Plain::of_text(Box::new(whole), source.bytes, source, &peeked[..count]);
        }
        let mut reader = unpack(whole, compression);
        let (peeked, count) = peek(&mut reader, source.path)?;
        let whole = std::io::Cursor::new(peeked).take(count as u64).chain(reader);
        Plain::of_text(Box::new(whole), None, source, &peeked[..count])
    }

    fn of_text(
        mut reader: Box<dyn Read + 'r>,
        mut bytes: Option<u64>,
        source: &Source<'_>,
        first: &[u8],
    ) -> Result<Plain<'r>> {
        let mut shown = first;
        match first {
            [0xef, 0xbb, 0xbf, rest @ ..] => {
                shown = rest;
                bytes = bytes.map(|bytes| bytes.saturating_sub(3));
                reader.read_exact(&mut [0; 3]).map_err(|error| failed(source.path, error))?;
            }
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
                let message = "the file is text in UTF-16, as its byte order mark shows: save it as UTF-8".into();
                return Err(Error::Format { path: source.path.to_path_buf(), message });
            }
            _ => {}
        }
        let format = source.format.unwrap_or_else(|| FileFormat::by_content(shown));
        Ok(Plain { reader, format, bytes })
    }
}

fn failed(path: &Path, source: std::io::Error) -> Error {
    Error::Io { path: path.to_path_buf(), action: "read", source }
}

/// The first bytes of a stream, and how many there are.
fn peek(reader: &mut impl Read, path: &Path) -> Result<([u8; PEEKED_BYTES], usize)> {
    let (mut bytes, mut count) = ([0; PEEKED_BYTES], 0);
    while count < PEEKED_BYTES {
        match reader.read(&mut bytes[count..]) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(path, error)),
        }
    }
    Ok((bytes, count))
}
