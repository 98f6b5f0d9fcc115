//! The options of a read, and its result.
//!
//! Independent of: how any format is read.

use crate::context::ProgressCallback;
use crate::error::{Error, Result};
use crate::io::atomic::is_device;
use crate::io::format::{FileFormat, Location};
use crate::matrix::{MAXIMUM_PRECISION_BITS, Matrix, SymmetricMatrix, Uplo};
use crate::options::setters;
use crate::store::available_bytes;
use rug::Rational;
use std::path::Path;
use std::sync::Arc;

/// The meaning of a table's first line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Headings {
    /// Headings if it contains no number, else a row. A line that only counts the columns is ambiguous and refused.
    #[default]
    Detect,
    /// Headings, whatever the line contains.
    Present,
    /// A row of numbers.
    Absent,
}

/// Options for reading a file.
#[derive(Clone)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Bits to which decimals are rounded, and the least precision of the matrix; `None` for the precision that the
    /// file states.
    pub precision_bits: Option<u32>,
    /// Bits to which decimals are rounded, if they differ from the precision.
    pub input_precision_bits: Option<u32>,
    /// The format of a file whose name determines none; with `None` the first bytes of a device or pipe determine it.
    pub format: Option<FileFormat>,
    /// The meaning of a table's first line; other formats have no headings.
    pub header: Headings,
    /// Bytes that the matrix may use, including, for formats without a header, the buffers of its numbers; `None` for
    /// the memory of the machine.
    pub memory_bytes: Option<u64>,
    /// Whether the text of numbers that are rounded is kept as well: see [`Loaded::written`].
    pub keep_written: bool,
    /// Called with the bytes read (phase `read`; the total is 0 for a stream and a compressed file); it may cancel.
    pub progress: Option<Arc<ProgressCallback>>,
}

setters! { ReadOptions {
    input_precision_bits: impl Into<Option<u32>>,
    format: impl Into<Option<FileFormat>>,
    header: Headings,
    memory_bytes: impl Into<Option<u64>>,
    keep_written: bool,
    progress: impl Into<Option<Arc<ProgressCallback>>>,
} }

/// The precisions of a file being read.
#[derive(Clone, Copy)]
pub(super) struct FilePrecisions {
    /// The precision to which decimals are rounded.
    pub decimal: u32,
    /// The least precision of the matrix.
    pub least: u32,
}

impl ReadOptions {
    /// Options for reading at `precision_bits` bits, or with `None` at the precision that the file states; all other
    /// options have their defaults.
    pub fn new(precision_bits: impl Into<Option<u32>>) -> ReadOptions {
        let precision_bits = precision_bits.into();
        ReadOptions {
            precision_bits,
            input_precision_bits: None,
            format: None,
            header: Headings::Detect,
            memory_bytes: None,
            keep_written: false,
            progress: None,
        }
    }

    /// Bits to which decimals are rounded, where they are given.
    pub(super) fn decimal_bits(&self, stated: Option<u32>) -> Option<u32> {
        self.input_precision_bits.or(self.precision_bits).or(stated)
    }

    /// The least precision of the matrix, as far as options and header say.
    pub(super) fn least_bits(&self, stated: Option<u32>) -> u32 {
        self.precision_bits.or(stated).unwrap_or(2).max(self.decimal_bits(stated).unwrap_or(2))
    }

    /// Both, for a file whose header may state its precision.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where no precision is given.
    pub(super) fn resolve(&self, stated: Option<u32>, source: &Source<'_>) -> Result<FilePrecisions> {
        let decimal = self.decimal_bits(stated).ok_or_else(|| {
            let path = source.path.display();
            Error::InvalidArgument(format!("{path}: the file does not state its precision: give the precision in bits"))
        })?;
        Ok(FilePrecisions { decimal, least: self.least_bits(stated) })
    }

    /// Refuses a matrix above the limit.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`].
    pub(super) fn admit(&self, rows: usize, cols: usize, precision_bits: u32) -> Result<()> {
        let minimum_bytes = Matrix::bytes_for(rows, cols, precision_bits);
        match self.memory_bytes {
            Some(limit_bytes) if minimum_bytes > limit_bytes => Err(Error::MemoryLimit { limit_bytes, minimum_bytes }),
            _ => Ok(()),
        }
    }

    /// Bytes that a matrix of unknown size may take.
    pub(super) fn limit_bytes(&self) -> u64 {
        self.memory_bytes.or_else(available_bytes).unwrap_or(u64::MAX)
    }

    pub(super) fn check(&self) -> Result<()> {
        for bits in [self.precision_bits, self.input_precision_bits].into_iter().flatten() {
            if !(2..=MAXIMUM_PRECISION_BITS).contains(&bits) {
                return Err(Error::precision(bits, MAXIMUM_PRECISION_BITS));
            }
        }
        Ok(())
    }
}

/// The properties of a stream before it is read.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Source<'a> {
    /// Name of the stream in messages.
    pub path: &'a Path,
    /// Format of the stream; with `None` its first bytes determine the format, a table of numbers if they show no other
    /// one.
    pub format: Option<FileFormat>,
    /// The selected matrix, for formats that may contain several.
    pub member: Option<&'a str>,
    /// Length in bytes, if it is known.
    pub bytes: Option<u64>,
    /// The meaning of a table's first line, for [`crate::io::read_stream_info`], which reads no numbers.
    pub header: Headings,
}

impl<'a> Source<'a> {
    /// A stream called `path` in messages.
    pub fn new(path: &'a Path, format: impl Into<Option<FileFormat>>) -> Source<'a> {
        Source { path, format: format.into(), member: None, bytes: None, header: Headings::Detect }
    }

    /// The stream of a named file, whose format follows from its ending, or else is `format`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a file other than a device or pipe, if neither its name nor `format` determines
    /// the format.
    pub fn at(location: &'a Location, format: Option<FileFormat>) -> Result<Source<'a>> {
        let format = match location.format.or(format) {
            None if !is_device(&location.file) => return Err(FileFormat::unknown(&location.file)),
            format => format,
        };
        Ok(Source::new(&location.file, format).member(location.member.as_deref()))
    }

    /// The same stream with a selected matrix.
    #[must_use]
    pub fn member(self, member: impl Into<Option<&'a str>>) -> Source<'a> {
        Source { member: member.into(), ..self }
    }

    /// The same stream with the meaning of the first line.
    #[must_use]
    pub fn header(self, header: Headings) -> Source<'a> {
        Source { header, ..self }
    }

    /// The same stream with its length.
    #[must_use]
    pub fn bytes(self, bytes: impl Into<Option<u64>>) -> Source<'a> {
        Source { bytes: bytes.into(), ..self }
    }
}

/// An entry as it was written: a decimal or a fraction, without rounding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrittenEntry {
    /// Row of the entry, from 0.
    pub row: usize,
    /// Column of the entry, from 0.
    pub col: usize,
    /// The number.
    pub value: Rational,
}

/// A matrix read from a file, with the file's information about it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Loaded {
    /// The whole matrix: if the file stores one triangle, both triangles are filled.
    pub matrix: Matrix,
    /// Whether the file stores the matrix as symmetric.
    pub symmetric: bool,
    /// Precision that the file states: in the comment `%sunzi precision_bits=N`, in the header of a binary file, by the
    /// type of NumPy's numbers, or by the first accuracy mark of Mathematica.
    pub precision_bits_comment: Option<u32>,
    /// The smallest number of bits to which an entry was rounded when it was read, if any entry differs from the number
    /// in the file: the error of each entry is at most `2^-bits` of its magnitude. See
    /// [`crate::estimate::InputRounding`]. `None` if decimals were read to the precision that the file states: such
    /// decimals represent numbers of that precision.
    pub rounded_bits: Option<u32>,
    /// The text of the entries that were rounded when they were read, each with its place in the matrix; if the file
    /// stores one triangle, only entries of that triangle. `None` if [`ReadOptions::keep_written`] is off, if more than
    /// 100,000 entries were rounded, or if one has a decimal exponent beyond 20,000. Empty if [`Loaded::rounded_bits`]
    /// is `None`.
    pub written: Option<Vec<WrittenEntry>>,
    /// The skipped parts of the file, one remark for each, such as a line of headings.
    pub remarks: Vec<String>,
}

impl Loaded {
    /// A matrix about which the file has no other information.
    pub(super) fn new(matrix: Matrix) -> Loaded {
        Loaded {
            matrix,
            symmetric: false,
            precision_bits_comment: None,
            rounded_bits: None,
            written: None,
            remarks: Vec::new(),
        }
    }

    /// The matrix as a symmetric matrix: either the file states that it is symmetric, or every entry is compared with
    /// its mirror image and must be equal to it.
    ///
    /// # Errors
    /// The errors of [`SymmetricMatrix::new`].
    pub fn into_symmetric(self) -> Result<SymmetricMatrix> {
        match self.symmetric {
            true => SymmetricMatrix::from_triangle(self.matrix, Uplo::Lower),
            false => SymmetricMatrix::new(self.matrix),
        }
    }
}

/// The information about a file without its numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FileInfo {
    /// The format.
    pub format: FileFormat,
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// Whether it is stored as symmetric.
    pub symmetric: bool,
    /// Number of entries in the file.
    pub stored_entries: u64,
    /// As [`Loaded::precision_bits_comment`].
    pub precision_bits_comment: Option<u32>,
    /// Decimal digits of the longest number, if the file had to be read to its end.
    pub longest_digits: Option<u32>,
}
