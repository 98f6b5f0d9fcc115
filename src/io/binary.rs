//! The binary matrix format: a header, all heads, all significands, a checksum.
//!
//! After the header (`binary_header`) come the stored entries column by column: first a 64-bit head of each, then
//! `ceil(precision_bits / 64)` limbs of each, both as `math::float` states them, little-endian; at the end the
//! XXH3 (64 bits) of heads and limbs. A matrix that is read has passed every rule of `math::float`.
//! Independent of: how files are opened.

use crate::error::{Error, Result};
use crate::io::atomic::FileSink;
use crate::io::binary_header::{BinaryHeader, CHECKSUM_BYTES, HEADER_BYTES};
use crate::io::progress::Reporter;
use crate::io::{FileInfo, Loaded, ReadOptions, Source, Symmetry};
use crate::math::float::{FloatRef, Head};
use crate::matrix::{MAXIMUM_EXPONENT, Matrix, MatrixView};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use xxhash_rust::xxh3::Xxh3;

/// Bytes read from the system at a time; a multiple of 8.
const BUFFER_BYTES: usize = 1 << 20;

/// Writes the whole file; see [`super::write`].
pub(super) fn write<W: Write>(mut sink: FileSink<'_, W>, matrix: MatrixView<'_>, symmetry: Symmetry) -> Result<()> {
    let (rows, cols) = (matrix.rows(), matrix.cols());
    let header = BinaryHeader { rows, cols, precision_bits: matrix.precision_bits(), symmetry };
    sink.buffer().extend_from_slice(&header.to_bytes());
    let mut checksum = Xxh3::new();
    // Heads are a small part of the work; progress counts entries once, with their limbs.
    for (row, column) in places(&header) {
        let head = matrix.get(row, column).head;
        let exponent = head.exponent();
        if exponent.abs() > MAXIMUM_EXPONENT {
            return Err(Error::ExponentRange { row, column, exponent, limit: MAXIMUM_EXPONENT });
        }
        put(&mut sink, &mut checksum, &[head.0]);
        sink.advance(0)?;
    }
    for (row, column) in places(&header) {
        put(&mut sink, &mut checksum, matrix.get(row, column).limbs);
        sink.advance(1)?;
    }
    sink.buffer().extend_from_slice(&checksum.digest().to_le_bytes());
    sink.finish()
}

fn put<W: Write>(sink: &mut FileSink<'_, W>, checksum: &mut Xxh3, words: &[u64]) {
    let start = sink.buffer().len();
    for word in words {
        sink.buffer().extend_from_slice(&word.to_le_bytes());
    }
    checksum.update(&sink.buffer()[start..]);
}

/// Rows and columns of the stored entries, in their order.
fn places(header: &BinaryHeader) -> impl Iterator<Item = (usize, usize)> + use<> {
    let BinaryHeader { rows, cols, symmetry, .. } = *header;
    // Without rows there is nothing to visit, however many columns are claimed.
    let cols = if rows == 0 { 0 } else { cols };
    (0..cols).flat_map(move |col| {
        let first = if symmetry == Symmetry::SymmetricLower { col } else { 0 };
        (first..rows).map(move |row| (row, col))
    })
}

/// Reads only the header.
pub(super) fn read_info(mut reader: impl Read, source: &Source<'_>) -> Result<FileInfo> {
    Ok(read_header(&mut reader, source)?.info())
}

/// Reads the whole file; see [`super::read`].
pub(super) fn read(mut reader: impl Read, source: &Source<'_>, options: &ReadOptions) -> Result<Loaded> {
    let header = read_header(&mut reader, source)?;
    let precision_bits = header.precision_bits.max(options.least_bits(Some(header.precision_bits)));
    options.admit(header.rows, header.cols, precision_bits)?;
    let mut matrix = Matrix::zeros(header.rows, header.cols, precision_bits)?;
    let reporter = Reporter::new(options.progress.clone(), "read", header.file_bytes().unwrap_or(0));
    let mut words =
        WordStream { reader, path: source.path, buffer: Vec::new(), at: 0, checksum: Xxh3::new(), reporter };
    words.reporter.advance(HEADER_BYTES as u64)?;
    let mut left = header.entries();
    for (row, col) in places(&header) {
        let head = words.next(left)?;
        matrix.parts_mut().0[row + col * header.rows] = head;
        left -= 1;
    }
    let symmetric = header.symmetry == Symmetry::SymmetricLower;
    read_limbs(&mut words, &header, &mut matrix, symmetric)?;
    words.finish()?;
    Ok(Loaded { symmetric, precision_bits_comment: Some(header.precision_bits), ..Loaded::new(matrix) })
}

/// Reads the header and holds the length of the file against it.
fn read_header(reader: &mut impl Read, source: &Source<'_>) -> Result<BinaryHeader> {
    let format = |message| Error::Format { path: source.path.to_path_buf(), message };
    let mut bytes = [0; HEADER_BYTES];
    let count = read_full(reader, &mut bytes, source.path)?;
    if count == 0 {
        return Err(format("the file is empty".into()));
    }
    if count < HEADER_BYTES {
        return Err(format(format!("the file ends after {count} of the {HEADER_BYTES} bytes of its header")));
    }
    let header = BinaryHeader::parse(&bytes).map_err(format)?;
    if let (Some(found), Some(expected)) = (source.bytes, header.file_bytes())
        && found != expected
    {
        let word = if found < expected { "truncated" } else { "too long" };
        return Err(format(format!("the file is {word}: it has {found} bytes, but its header requires {expected}")));
    }
    Ok(header)
}

/// Reads all significands, checks them together with their heads, and sets the entries.
fn read_limbs<R: Read>(
    words: &mut WordStream<'_, R>,
    header: &BinaryHeader,
    matrix: &mut Matrix,
    mirrored: bool,
) -> Result<()> {
    let limbs = header.limbs();
    let mut left = header.entries() * limbs as u64;
    let mut wide = vec![0; matrix.limbs_per_element()];
    let low = wide.len() - limbs;
    for (row, col) in places(header) {
        for limb in &mut wide[low..] {
            *limb = words.next(left)?;
            left -= 1;
        }
        let head = Head(matrix.parts().0[row + col * header.rows]);
        if let Err(reason) = check_number(head, &wide[low..], header.precision_bits) {
            let (row, col) = (row + 1, col + 1);
            let message = format!("entry at row {row}, column {col} (counted from 1) is not a valid number: {reason}");
            return Err(Error::Format { path: words.path.to_path_buf(), message });
        }
        let value = FloatRef { head, limbs: &wide };
        matrix.set(row, col, value);
        if mirrored && row != col {
            matrix.set(col, row, value);
        }
    }
    Ok(())
}

/// The rules of `math::float` for one number.
pub(super) fn check_number(head: Head, limbs: &[u64], precision_bits: u32) -> std::result::Result<(), &'static str> {
    if head.is_zero() {
        return if limbs.iter().all(|&limb| limb == 0) {
            Ok(())
        } else {
            Err("it is zero, but its significand is not")
        };
    }
    if Head::new(head.is_negative(), head.exponent().clamp(-MAXIMUM_EXPONENT, MAXIMUM_EXPONENT)) != head {
        return Err("its exponent is out of range, or its head is malformed");
    }
    if limbs[limbs.len() - 1] >> 63 == 0 {
        return Err("the top bit of its significand is 0");
    }
    let spare = limbs.len() as u32 * 64 - precision_bits;
    if limbs[0] & !(u64::MAX << spare) != 0 {
        return Err("it has bits below its precision");
    }
    Ok(())
}

/// A stream of little-endian words, summed up as they come.
struct WordStream<'a, R> {
    reader: R,
    path: &'a Path,
    buffer: Vec<u8>,
    at: usize,
    checksum: Xxh3,
    reporter: Reporter,
}

impl<R: Read> WordStream<'_, R> {
    /// The next word, where `left` words are still to come, this one included.
    #[inline]
    fn next(&mut self, left: u64) -> Result<u64> {
        if self.at == self.buffer.len() {
            self.fill(left)?;
        }
        let mut word = [0; 8];
        word.copy_from_slice(&self.buffer[self.at..self.at + 8]);
        self.at += 8;
        Ok(u64::from_le_bytes(word))
    }

    /// Reads the next words, no more than are `left`.
    fn fill(&mut self, left: u64) -> Result<()> {
        let bytes = usize::try_from(left.saturating_mul(8)).unwrap_or(usize::MAX).min(BUFFER_BYTES);
        self.buffer.resize(bytes, 0);
        self.at = 0;
        if read_full(&mut self.reader, &mut self.buffer, self.path)? < bytes {
            return Err(self.error("the file is truncated: it ends within its entries"));
        }
        self.checksum.update(&self.buffer);
        self.reporter.advance(bytes as u64)
    }

    /// Compares the checksum with that of the file, and the file's end with its header.
    fn finish(mut self) -> Result<()> {
        let mut bytes = [0; CHECKSUM_BYTES];
        if read_full(&mut self.reader, &mut bytes, self.path)? < CHECKSUM_BYTES {
            return Err(self.error("the file is truncated: it ends within its checksum"));
        }
        let (found, computed) = (u64::from_le_bytes(bytes), self.checksum.digest());
        if found != computed {
            let message = format!("the entries are damaged: their checksum is {computed:016x} instead of {found:016x}");
            return Err(self.error(message));
        }
        if read_full(&mut self.reader, &mut bytes[..1], self.path)? != 0 {
            return Err(self.error("the file is too long: more bytes follow its checksum"));
        }
        self.reporter.finish()
    }

    fn error(&self, message: impl Into<String>) -> Error {
        Error::Format { path: self.path.to_path_buf(), message: message.into() }
    }
}

/// Fills `out` as far as the stream goes, and returns the number of bytes.
fn read_full(reader: &mut impl Read, out: &mut [u8], path: &Path) -> Result<usize> {
    let mut count = 0;
    while count < out.len() {
        match reader.read(&mut out[count..]) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(source) => return Err(Error::Io { path: path.to_path_buf(), action: "read", source }),
        }
    }
    Ok(count)
}
