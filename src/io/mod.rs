//! Matrices in files: Matrix Market text (`.mtx`), a binary format (`.bin`), tables of numbers (`.csv`, `.tsv`,
//! `.txt`), NumPy's arrays (`.npy`), JSON and Mathematica's lists, blocks of SDPA's programs; all of them also
//! compressed (`.gz`, `.zst`). docs/FORMATS.md describes them, and the syntax of numbers.
//!
//! All are read and written as streams; [`write()`] makes a file appear complete or not at all. The file name
//! determines the format; for a device or pipe the first bytes do, and output to a device or pipe is in Matrix Market.
//! Depends on: matrices, files. Independent of: residues, operations, the command line.
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
mod block_stream;
mod blocks;
mod blocks_write;
mod bytes;
mod compare;
mod compress;
mod digits;
mod elements;
mod format;
mod head_visitor;
mod input;
mod intake;
mod json;
mod lists;
mod matrix_market;
mod matrix_market_header;
mod matrix_market_write;
mod npy;
mod npy_header;
mod npy_write;
mod number;
mod outline;
mod pickle;
mod powers;
mod progress;
mod reading;
mod rows_write;
mod scan;
mod sdpa;
mod sdpa_program;
mod table;
mod temporary;
mod text;
mod triangles;

use crate::context::ProgressCallback;
use crate::error::{Error, Result};
use crate::matrix::{MatrixView, Symmetric};
use crate::options::setters;
use atomic::FileSink;
pub use atomic::{AtomicFiles, is_device, write_atomically};
pub use block_stream::{BlockStream, BlockStreamOptions, BlockStreamStatistics, FileBlock, StreamedBlock};
pub use blocks::{Block, MatrixFile};
pub use blocks_write::{MatrixFileShape, MatrixFileWriter, write_blocks};
pub use compare::{Comparison, Difference, Tolerance, compare, compare_within};
use compress::Packer;
pub use format::{Compression, FileFormat, Location};
pub use head_visitor::HeadVisitor;
use input::Plain;
use json::Json;
use lists::Mathematica;
pub use number::{NumberError, NumberParser, ParsedNumber, parse_exact_integer, parse_number};
use progress::Reporter;
pub use reading::{FileInfo, Headings, Loaded, ReadOptions, Source, WrittenEntry};
pub use sdpa_program::{SdpaBlock, SdpaEntry, SdpaProgram, read_sdpa, read_sdpa_stream};

#[doc(inline)]
pub use crate::matrix::{TriangleConflict, triangle_conflict};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

/// Selects the entries of a matrix that are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Symmetry {
    /// All entries.
    #[default]
    General,
    /// The lower triangle, which represents the whole matrix; formats without a symmetric form contain all entries. A
    /// matrix that is not symmetric is refused; a matrix of which only one triangle is stored can be written after
    /// [`crate::Symmetric::to_symmetric`].
    SymmetricLower,
}

/// The notation of numbers in a text file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum NumberForm {
    /// Decimals with enough digits to read back the same bits at the matrix's precision.
    #[default]
    Decimal,
    /// C99 hexadecimal floats, which are exact at any precision.
    Hex,
}

/// Options for writing a file.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct WriteOptions {
    /// The selected entries.
    pub symmetry: Symmetry,
    /// Decimal or hexadecimal; ignored for binary files, and Mathematica has only decimals.
    pub number_form: NumberForm,
    /// Called with the number of entries written (phase `write`), or of rows if they have no entries; it may cancel the
    /// call.
    pub progress: Option<Arc<ProgressCallback>>,
}

setters! { new WriteOptions {
    symmetry: Symmetry,
    number_form: NumberForm,
    progress: impl Into<Option<Arc<ProgressCallback>>>,
} }

/// Reads the matrix in the file `path`; [`Location`] describes how the names of files are read.
///
/// Accuracy: hexadecimal floats, integers and binary numbers are read exactly, however long; all others are rounded
/// once, to nearest, ties to even, at the input precision. The matrix has the smallest precision that represents all
/// these numbers, and at least `precision_bits`. Memory: the matrix and at most 35 MiB more, but not more than twice
/// the matrix; 8 bytes more for each entry of a coordinate file, and twice the matrix if the entries are in no order,
/// or row by row in a text that does not state their number. Cost: linear in the file.
///
/// # Errors
/// [`Error::Format`] with the line number for text that the format does not allow, NaN and infinities included;
/// [`Error::Io`], [`Error::InvalidArgument`] for the file name, or if no precision is given, [`Error::Precision`],
/// [`Error::OutOfMemory`], [`Error::MemoryLimit`], [`Error::Cancelled`].
pub fn read(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Loaded> {
    let location = Location::parse(path.as_ref());
    let source = Source::at(&location, options.format)?;
    let (file, bytes) = open(source.path)?;
    read_stream(file, &source.bytes(bytes), options)
}

/// The information of the file `path` about its matrix, without its numbers: from its header, or from the whole file
/// for a text without a header.
///
/// # Errors
/// As [`read`], for the part that is read.
pub fn read_info(path: impl AsRef<Path>) -> Result<FileInfo> {
    read_info_as(path, None)
}

/// As [`read_info`]; `format` is the format of a file whose name determines none.
///
/// # Errors
/// As [`read_info`].
pub fn read_info_as(path: impl AsRef<Path>, format: impl Into<Option<FileFormat>>) -> Result<FileInfo> {
    read_info_with(path, &ReadOptions::new(None).format(format))
}

/// As [`read_info`], with the format of a file whose name determines none, and the kind of a table's first line, from
/// `options`.
///
/// # Errors
/// As [`read_info`].
pub fn read_info_with(path: impl AsRef<Path>, options: &ReadOptions) -> Result<FileInfo> {
    let location = Location::parse(path.as_ref());
    let source = Source::at(&location, options.format)?.header(options.header);
    let (file, bytes) = open(source.path)?;
    read_stream_info(file, &source.bytes(bytes))
}

/// As [`read`], from any stream, compressed or not.
///
/// # Errors
/// As [`read`].
pub fn read_stream(reader: impl Read, source: &Source<'_>, options: &ReadOptions) -> Result<Loaded> {
    options.check()?;
    let Plain { reader, format, bytes } = Plain::open(reader, source)?;
    let source = &Source { format: Some(format), bytes, ..*source };
    check_member(format, source)?;
    let loaded = match format {
        FileFormat::MatrixMarket => matrix_market::read(reader, source, options),
        FileFormat::Binary => binary::read(reader, source, options),
        FileFormat::Csv | FileFormat::Tsv | FileFormat::Text => table::read(reader, source, options),
        FileFormat::Npy => npy::read(reader, source, options),
        FileFormat::Json => lists::read::<Json>(reader, source, options),
        FileFormat::Mathematica => lists::read::<Mathematica>(reader, source, options),
        FileFormat::Sdpa => sdpa::read(reader, source, options),
    }?;
    // Decimals of a file that states its precision stand for numbers of that precision, which these are.
    let stated = loaded.precision_bits_comment;
    let is_stated = stated.is_some() && options.decimal_bits(stated) == stated;
    let rounded_bits = loaded.rounded_bits.filter(|_| !is_stated);
    let written = match rounded_bits {
        None if options.keep_written => Some(Vec::new()),
        _ => loaded.written,
    };
    Ok(Loaded { rounded_bits, written, ..loaded })
}

/// As [`read_info`], from any stream.
///
/// # Errors
/// As [`read_info`].
pub fn read_stream_info(reader: impl Read, source: &Source<'_>) -> Result<FileInfo> {
    let Plain { reader, format, bytes } = Plain::open(reader, source)?;
    let source = &Source { format: Some(format), bytes, ..*source };
    check_member(format, source)?;
    match format {
        FileFormat::MatrixMarket => matrix_market::read_info(reader, source),
        FileFormat::Binary => binary::read_info(reader, source),
        FileFormat::Csv | FileFormat::Tsv | FileFormat::Text => table::read_info(reader, source, format),
        FileFormat::Npy => npy::read_info(reader, source),
        FileFormat::Json => lists::read_info::<Json>(reader, source),
        FileFormat::Mathematica => lists::read_info::<Mathematica>(reader, source),
        FileFormat::Sdpa => sdpa::read_info(reader, source),
    }
}

/// Refuses the name of a matrix in a file that holds one only.
fn check_member(format: FileFormat, source: &Source<'_>) -> Result<()> {
    match source.member {
        Some(member) if !format.has_members() => Err(Error::InvalidArgument(format!(
            "{}: a file of format {} contains a single matrix, so '{member}' cannot be selected in it",
            source.path.display(),
            format.name()
        ))),
        _ => Ok(()),
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
/// The bytes depend only on the matrix and the options. Memory: about 1 MiB and that of one number.
///
/// # Errors
/// [`Error::Io`] with the system's reason (a folder that cannot be written, a full disk); [`Error::InvalidArgument`]
/// for the file name, or a symmetric matrix that is not square; [`Error::NotSymmetric`] for a matrix that is to be
/// written as symmetric but is not; [`Error::ExponentRange`] for an entry that could not be read back;
/// [`Error::Cancelled`].
pub fn write<'a>(path: impl AsRef<Path>, matrix: impl Into<MatrixView<'a>>, options: &WriteOptions) -> Result<()> {
    let (path, matrix) = (path.as_ref(), matrix.into());
    let format = FileFormat::of(path)?;
    write_as(path, format, matrix, options)
}

/// As [`write()`], in a format of the caller's choice; compressed according to the file's name.
///
/// # Errors
/// As [`write()`].
pub fn write_as<'a>(
    path: impl AsRef<Path>,
    format: FileFormat,
    matrix: impl Into<MatrixView<'a>>,
    options: &WriteOptions,
) -> Result<()> {
    let (path, matrix) = (path.as_ref(), matrix.into());
    write_atomically(path, |file| {
        let mut packer = Packer::new(file, Compression::of(path));
        write_stream(&mut packer, path, format, matrix, options)?;
        packer.finish().map_err(|source| Error::Io { path: path.to_path_buf(), action: "write", source })
    })
}

/// As [`write()`], to any stream, called `path` in messages. After a failure the stream contains a part of the output.
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
    // Lists have a place for each row, also of a matrix without columns.
    let units = match format {
        FileFormat::Json | FileFormat::Mathematica if matrix.cols() == 0 => matrix.rows() as u64,
        _ => stored_entries(matrix.rows(), matrix.cols(), options.symmetry),
    };
    let sink = FileSink::new(writer, path, Reporter::new(options.progress.clone(), "write", units));
    match format {
        FileFormat::MatrixMarket => matrix_market_write::write(sink, matrix, options),
        FileFormat::Binary => binary::write(sink, matrix, options.symmetry),
        FileFormat::Csv | FileFormat::Tsv | FileFormat::Text | FileFormat::Json | FileFormat::Mathematica => {
            rows_write::write(sink, matrix, rows_write::Style::of(format), options.number_form)
        }
        FileFormat::Npy => npy_write::write(sink, matrix, options.number_form),
        FileFormat::Sdpa => {
            Err(Error::InvalidArgument(format!("{}: SDPA's format can be read, but not written", path.display())))
        }
    }
}

/// Entries in a file for a matrix of this shape.
fn stored_entries(rows: usize, cols: usize, symmetry: Symmetry) -> u64 {
    let (rows, cols) = (rows as u128, cols as u128);
    let count = if symmetry == Symmetry::General { rows * cols } else { rows * (rows + 1) / 2 };
    u64::try_from(count).unwrap_or(u64::MAX)
}
