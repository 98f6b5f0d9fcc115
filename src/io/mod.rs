//! Matrices in files: Matrix Market text (`.mtx`) and a binary format (`.bin`).
//!
//! Both are read and written as streams; [`write()`] makes a file appear complete or not at all. Which format is
//! meant, the file name says; a device or pipe without either ending takes Matrix Market.
//! Knows: matrices, files. Does not know: residues, operations, the command line.
//!
//! ```
//! use sunzi::{Matrix, io::{self, NumberForm, ReadOptions, WriteOptions}};
//! let folder = tempfile::tempdir().unwrap();
//! let path = folder.path().join("a.mtx");
//! let matrix = Matrix::from_f64s(2, 1, 256, &[0.5, -3.0])?;
//! io::write(&path, &matrix, &WriteOptions::new().number_form(NumberForm::Hex))?;
//! assert!(io::read(&path, &ReadOptions::new(256))?.matrix == matrix);
//! # Ok::<(), sunzi::Error>(())
//! ```
#![forbid(unsafe_code)]

mod atomic;
mod binary;
mod binary_header;
mod compare;
mod digits;
mod elements;
mod matrix_market;
mod matrix_market_header;
mod matrix_market_write;
mod number;
mod powers;
mod progress;
mod scan;
mod temporary;
mod text;

use crate::context::ProgressCallback;
use crate::error::{Error, Result};
use crate::matrix::{MAXIMUM_PRECISION_BITS, Matrix, MatrixView, Symmetric, SymmetricMatrix, Uplo};
use crate::options::setters;
use atomic::Sink;
pub use atomic::{is_device, write_atomically};
pub use compare::{Comparison, Difference, compare};
use progress::Reporter;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

/// The two formats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileFormat {
    /// Matrix Market text, file name ending in `.mtx`.
    MatrixMarket,
    /// The binary format, file name ending in `.bin`.
    Binary,
}

impl FileFormat {
    /// The format that a file name asks for.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a name that ends in neither `.mtx` nor `.bin` and is no device or pipe.
    pub fn of(path: &Path) -> Result<FileFormat> {
        let extension = path.extension().map(|extension| extension.to_ascii_lowercase());
        match extension.as_ref().and_then(|extension| extension.to_str()) {
            Some("mtx") => Ok(FileFormat::MatrixMarket),
            Some("bin") => Ok(FileFormat::Binary),
            _ if is_device(path) => Ok(FileFormat::MatrixMarket),
            _ => Err(Error::InvalidArgument(format!(
                "{}: the file name must end in .mtx (Matrix Market) or .bin (binary)",
                path.display()
            ))),
        }
    }
}

/// How a file is read.
#[derive(Clone)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Bits to which decimals are rounded, and the least precision of the matrix.
    pub precision_bits: u32,
    /// Bits to which decimals are rounded instead, where given.
    pub input_precision_bits: Option<u32>,
    /// Told the bytes read (phase `read`; the total is 0 for a stream), may cancel.
    pub progress: Option<Arc<ProgressCallback>>,
}

setters! { ReadOptions {
    input_precision_bits: impl Into<Option<u32>>,
    progress: impl Into<Option<Arc<ProgressCallback>>>,
} }

impl ReadOptions {
    /// Reading at `precision_bits` bits, everything else as usual.
    pub fn new(precision_bits: u32) -> ReadOptions {
        ReadOptions { precision_bits, input_precision_bits: None, progress: None }
    }

    /// Bits to which decimals are rounded.
    fn decimal_bits(&self) -> u32 {
        self.input_precision_bits.unwrap_or(self.precision_bits)
    }

    /// The least precision of the matrix.
    fn least_bits(&self) -> u32 {
        self.precision_bits.max(self.decimal_bits())
    }

    fn check(&self) -> Result<()> {
        for bits in [self.precision_bits, self.decimal_bits()] {
            if !(2..=MAXIMUM_PRECISION_BITS).contains(&bits) {
                let maximum_bits = MAXIMUM_PRECISION_BITS.into();
                return Err(Error::Precision { precision_bits: bits.into(), maximum_bits });
            }
        }
        Ok(())
    }
}

/// Which entries of a matrix are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Symmetry {
    /// All of them.
    #[default]
    General,
    /// The lower triangle, which stands for the whole. A matrix that is not symmetric is refused; what one triangle
    /// alone holds is written by way of [`crate::Symmetric::to_symmetric`].
    SymmetricLower,
}

/// How numbers are written in a text file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum NumberForm {
    /// Decimals with enough digits to read back the same bits at the matrix's precision.
    #[default]
    Decimal,
    /// C99 hexadecimal floats, which are exact at any precision.
    Hex,
}

/// How a file is written.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct WriteOptions {
    /// Which entries.
    pub symmetry: Symmetry,
    /// Decimal or hexadecimal; a binary file does not ask.
    pub number_form: NumberForm,
    /// Told the entries written (phase `write`), may cancel.
    pub progress: Option<Arc<ProgressCallback>>,
}

setters! { new WriteOptions {
    symmetry: Symmetry,
    number_form: NumberForm,
    progress: impl Into<Option<Arc<ProgressCallback>>>,
} }

/// A matrix from a file, with what the file says about it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Loaded {
    /// The matrix, all of it: of a file that stores one triangle, both are filled.
    pub matrix: Matrix,
    /// Whether the file stores it as symmetric.
    pub symmetric: bool,
    /// Precision from the comment `%sunzi precision_bits=N`, or from the header of a binary file.
    pub precision_bits_comment: Option<u32>,
}

impl Loaded {
    /// The matrix as one that is known to be symmetric: the file says so, or it is checked.
    ///
    /// # Errors
    /// Those of [`SymmetricMatrix::new`].
    pub fn into_symmetric(self) -> Result<SymmetricMatrix> {
        match self.symmetric {
            true => SymmetricMatrix::from_triangle(self.matrix, Uplo::Lower),
            false => SymmetricMatrix::new(self.matrix),
        }
    }
}

/// What the header of a file says.
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
}

/// Reads the matrix in the file `path`.
///
/// Accuracy: hexadecimal floats, integers and binary files are taken exactly, however long; decimals are rounded
/// once, to nearest, ties to even, at the input precision. The matrix has the least precision that holds all this,
/// and at least `precision_bits`. Memory: pages for the matrix and at most 35 MiB more, but not above twice the
/// matrix; 8 bytes more for each entry of a coordinate file, and twice the matrix where its entries come in no order.
/// Cost: linear in the file.
///
/// # Errors
/// [`Error::Format`] with the line number for whatever the format does not allow, NaN and infinities included;
/// [`Error::Io`], [`Error::InvalidArgument`] for the file name, [`Error::Precision`], [`Error::OutOfMemory`],
/// [`Error::Cancelled`].
pub fn read(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Loaded> {
    let path = path.as_ref();
    let format = FileFormat::of(path)?;
    let (file, bytes) = open(path)?;
    read_stream(file, &Source { path, format, bytes }, options)
}

/// Reads only the header of the file `path`: a few lines.
///
/// # Errors
/// As [`read`], for the header.
pub fn read_info(path: impl AsRef<Path>) -> Result<FileInfo> {
    let path = path.as_ref();
    let format = FileFormat::of(path)?;
    let (file, bytes) = open(path)?;
    read_stream_info(file, &Source { path, format, bytes })
}

/// What is known of a stream before it is read.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its name in messages.
    pub path: &'a Path,
    /// Its format.
    pub format: FileFormat,
    /// Its length, where known.
    pub bytes: Option<u64>,
}

/// As [`read`], from any stream.
///
/// # Errors
/// As [`read`].
pub fn read_stream(reader: impl Read, source: &Source<'_>, options: &ReadOptions) -> Result<Loaded> {
    options.check()?;
    match source.format {
        FileFormat::MatrixMarket => matrix_market::read(reader, source, options),
        FileFormat::Binary => binary::read(reader, source, options),
    }
}

/// As [`read_info`], from any stream.
///
/// # Errors
/// As [`read_info`].
pub fn read_stream_info(reader: impl Read, source: &Source<'_>) -> Result<FileInfo> {
    match source.format {
        FileFormat::MatrixMarket => matrix_market::read_info(reader, source),
        FileFormat::Binary => binary::read_info(reader, source),
    }
}

fn open(path: &Path) -> Result<(File, Option<u64>)> {
    let fail = |action| move |source| Error::Io { path: path.to_path_buf(), action, source };
    let file = File::open(path).map_err(fail("open"))?;
    let data = file.metadata().map_err(fail("read"))?;
    let bytes = data.is_file().then_some(data.len());
    Ok((file, bytes))
}

/// Writes `matrix` to the file `path`, which appears complete or not at all.
///
/// The bytes depend on the matrix and the options alone. Memory: about 1 MiB and what one number takes.
///
/// # Errors
/// [`Error::Io`] with the system's reason (a folder that cannot be written, a full disk);
/// [`Error::InvalidArgument`] for the file name, or a symmetric matrix that is not square;
/// [`Error::NotSymmetric`] for one that is to be written as symmetric and is not; [`Error::ExponentRange`] for an entry
/// that could not be read back; [`Error::Cancelled`].
pub fn write<'a>(path: impl AsRef<Path>, matrix: impl Into<MatrixView<'a>>, options: &WriteOptions) -> Result<()> {
    let (path, matrix) = (path.as_ref(), matrix.into());
    let format = FileFormat::of(path)?;
    write_atomically(path, |file| write_stream(file, path, format, matrix, options))
}

/// As [`write()`], to any stream, called `path` in messages. A failure leaves half of it written.
///
/// # Errors
/// As [`write()`].
pub fn write_stream<'a>(
    writer: impl Write,
    path: &Path,
    format: FileFormat,
    matrix: impl Into<MatrixView<'a>>,
    options: &WriteOptions,
) -> Result<()> {
    let matrix = matrix.into();
    if options.symmetry == Symmetry::SymmetricLower {
        let (rows, cols) = (matrix.rows(), matrix.cols());
        if rows != cols {
            return Err(Error::InvalidArgument(format!("a {rows} x {cols} matrix cannot be written as symmetric")));
        }
        Symmetric::from(matrix).lower_view("a symmetric file")?;
    }
    let entries = stored_entries(matrix.rows(), matrix.cols(), options.symmetry);
    let sink = Sink::new(writer, path, Reporter::new(options.progress.clone(), "write", entries));
    match format {
        FileFormat::MatrixMarket => matrix_market_write::write(sink, matrix, options),
        FileFormat::Binary => binary::write(sink, matrix, options.symmetry),
    }
}

/// Entries in a file for a matrix of this shape.
fn stored_entries(rows: usize, cols: usize, symmetry: Symmetry) -> u64 {
    let (rows, cols) = (rows as u128, cols as u128);
    let count = if symmetry == Symmetry::General { rows * cols } else { rows * (rows + 1) / 2 };
    u64::try_from(count).unwrap_or(u64::MAX)
}
