//! Matrices in files, as the program names them: their format, the facts known before they are read, the memory that
//! they take.
//!
//! `-` is standard input or standard output. The ending of a name gives the format; where it gives none,
//! `--input-format` and `--output-format` do, and without them the first bytes of an input.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use sunzi::advanced::store::available_bytes;
use sunzi::io::{
    self, Compression, FileFormat, FileInfo, Headings, Loaded, Location, ReadOptions, Source, WriteOptions, is_device,
    read_info_with, read_stream, write_as, write_stream,
};
use sunzi::{Error, Matrix, MatrixView, Result};

/// The names of the two streams in messages.
pub const INPUT: &str = "standard input";
const OUTPUT: &str = "standard output";

/// The choices for all files of a command: formats of files whose names give none, and the memory limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileChoices {
    /// The format of files that are read.
    pub input: Option<FileFormat>,
    /// The format of files that are written.
    pub output: Option<FileFormat>,
    /// The meaning of the first line of a table.
    pub header: Headings,
    /// Memory limit of the process.
    pub memory_bytes: Option<u64>,
}

static CHOICES: OnceLock<FileChoices> = OnceLock::new();

/// The inputs that can be read only once and have been read, for the precision that they state.
static PEEKED: Mutex<Option<(PathBuf, Loaded)>> = Mutex::new(None);

/// The facts on files without a header, which are read to their end for them.
static KNOWN: Mutex<Option<HashMap<PathBuf, FileInfo>>> = Mutex::new(None);

/// Sets the choices for all files, once.
pub fn choose(choices: FileChoices) {
    let _ = CHOICES.set(choices);
}

fn choices() -> FileChoices {
    CHOICES.get().copied().unwrap_or_default()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The format of inputs whose names do not give it, where one was given.
pub fn input_format() -> Option<FileFormat> {
    choices().input
}

/// Whether `path` is standard input or output.
pub fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The name of an output file in messages.
pub fn shown_output(path: &Path) -> String {
    if is_standard(path) { OUTPUT.into() } else { path.display().to_string() }
}

/// Whether `path` can be read only once.
fn is_stream(path: &Path) -> bool {
    is_standard(path) || is_device(&Location::parse(path).file)
}

/// Whether `path` names a binary file of which blocks can be read and written where they lie.
pub fn has_blocks(path: &Path) -> bool {
    let is_plain = !is_stream(path) && Compression::of(path) == Compression::None;
    is_plain && FileFormat::of(path).is_ok_and(|format| format == FileFormat::Binary)
}

/// The format in which the file `path` is written.
///
/// # Errors
/// [`Error::InvalidArgument`] where nothing gives it, or it is not written.
pub fn output_format(path: &Path) -> Result<FileFormat> {
    let by_name = Location::parse(path).format.is_some();
    match choices().output {
        Some(format) if !by_name => Ok(format),
        _ if is_standard(path) => Ok(FileFormat::MatrixMarket),
        _ => FileFormat::of(path),
    }
}

/// Bytes of the matrix that a header announces.
pub fn bytes(info: &FileInfo, options: &ReadOptions) -> u64 {
    Matrix::bytes_for(info.rows, info.cols, bits(info, options))
}

/// Bits that a matrix is read at.
pub fn bits(info: &FileInfo, options: &ReadOptions) -> u32 {
    let bits = [options.precision_bits, options.input_precision_bits].into_iter().flatten().max();
    bits.or(info.precision_bits_comment).unwrap_or(2)
}

/// The header of a file, with the facts on its matrix; `None` for a pipe or device, which can be read only once.
///
/// # Errors
/// The errors of [`io::read_info`].
pub fn header(path: &Path) -> Result<Option<FileInfo>> {
    if is_stream(path) {
        return Ok(None);
    }
    refuse_folder(path)?;
    if let Some(info) = locked(&KNOWN).as_ref().and_then(|known| known.get(path)) {
        return Ok(Some(*info));
    }
    let info = read_info_with(path, &as_chosen(&ReadOptions::new(None))).map_err(|error| with_kind(error, path))?;
    let has_header =
        matches!(info.format, FileFormat::MatrixMarket | FileFormat::Binary | FileFormat::Npy | FileFormat::Sdpa);
    if !has_header {
        locked(&KNOWN).get_or_insert_default().insert(path.to_path_buf(), info);
    }
    Ok(Some(info))
}

/// Refuses a folder where a file is expected.
fn refuse_folder(path: &Path) -> Result<()> {
    if !Location::parse(path).file.is_dir() {
        return Ok(());
    }
    let message =
        "this is a folder, not a file with a matrix (sunzi sdp reads folders that hold a semidefinite program)";
    Err(Error::Format { path: path.to_path_buf(), message: message.into() })
}

/// Reads the matrix that `path` names.
///
/// # Errors
/// The errors of [`io::read`].
pub fn read(path: &Path, options: &ReadOptions) -> Result<Loaded> {
    if let Some((_, loaded)) = locked(&PEEKED).take_if(|(peeked, _)| peeked == path) {
        return match loaded.matrix.precision_bits() >= options.precision_bits.unwrap_or(2) {
            true => Ok(loaded),
            false => Err(Error::InvalidArgument(format!("{} can be read only once: give --precision", path.display()))),
        };
    }
    let options = &as_chosen(options);
    if is_standard(path) {
        return read_stream(std::io::stdin().lock(), &Source::new(Path::new(INPUT), choices().input), options);
    }
    io::read(path, options).map_err(|error| with_kind(error, path))
}

/// A kind of file, by its first bytes.
struct FileKind {
    bytes: &'static [u8],
    words: &'static str,
    /// The format of its matrix, where it is one that is read.
    format: Option<FileFormat>,
}

const fn kind(bytes: &'static [u8], words: &'static str, format: Option<FileFormat>) -> FileKind {
    FileKind { bytes, words, format }
}

/// Files that may have been named by mistake, or have another ending than their format.
const KINDS: [FileKind; 10] = [
    kind(b"\x89SNZ", "a matrix in the binary format (.bin)", Some(FileFormat::Binary)),
    kind(b"\x93NUMPY", "an array of NumPy (.npy)", Some(FileFormat::Npy)),
    kind(b"%%MatrixMarket", "a Matrix Market file (.mtx)", Some(FileFormat::MatrixMarket)),
    kind(b"\x1f\x8b", "data compressed by gzip (.gz)", None),
    kind(b"\x28\xb5\x2f\xfd", "data compressed by Zstandard (.zst)", None),
    kind(b"PK\x03\x04", "a zip archive", None),
    kind(b"\x89HDF", "an HDF5 file", None),
    kind(b"\x89PNG", "a PNG picture", None),
    kind(b"%PDF", "a PDF document", None),
    kind(b"\x7fELF", "a program", None),
];

/// The refusal of a file that does not follow its format, with the kind that its first bytes show, where that is
/// another one than the name says.
fn with_kind(error: Error, path: &Path) -> Error {
    let Error::Format { path: named, message } = error else { return error };
    if is_stream(path) {
        return Error::Format { path: named, message };
    }
    let location = Location::parse(path);
    let mut first = Vec::new();
    let read = File::open(&location.file).and_then(|file| file.take(16).read_to_end(&mut first));
    let is_compressed = Compression::of(&location.file) != Compression::None;
    let other =
        |kind: &&FileKind| first.starts_with(kind.bytes) && (kind.format.is_none() || kind.format != location.format);
    match KINDS.iter().find(other).filter(|_| read.is_ok() && !is_compressed) {
        Some(kind) => Error::Format { path: named, message: format!("{message}; the file is {}", kind.words) },
        None => Error::Format { path: named, message },
    }
}

/// The options with the choices for all files of the command.
fn as_chosen(options: &ReadOptions) -> ReadOptions {
    options.clone().format(choices().input).header(choices().header)
}

/// Writes a matrix to the place that `path` names.
///
/// # Errors
/// The errors of [`io::write()`].
pub fn write<'a>(path: &Path, matrix: impl Into<MatrixView<'a>>, options: &WriteOptions) -> Result<()> {
    let format = output_format(path)?;
    match is_standard(path) {
        true => write_stream(std::io::stdout().lock(), Path::new(OUTPUT), format, matrix, options),
        false => write_as(path, format, matrix, options),
    }
}

/// Refuses a matrix that the machine's free memory cannot hold, rather than be killed while it is filled.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn admit(bytes: u64) -> Result<()> {
    match available_bytes() {
        // A size beyond all addresses has an error of its own, from the matrix.
        Some(available) if bytes > available && bytes < i64::MAX as u64 => Err(Error::OutOfMemory { bytes }),
        _ => Ok(()),
    }
}

/// The precision given, else the one that the file states, of which no other fact is needed.
///
/// # Errors
/// [`Error::InvalidArgument`] where there is neither; the errors of reading, for a stream, which is read for it.
pub fn stated_precision(given: Option<u32>, path: &Path, info: Option<&FileInfo>) -> Result<u32> {
    stated_precision_or("give --precision", given, path, info)
}

/// [`stated_precision`]; the error where there is none ends with `advice`.
///
/// # Errors
/// As [`stated_precision`].
pub fn stated_precision_or(advice: &str, given: Option<u32>, path: &Path, info: Option<&FileInfo>) -> Result<u32> {
    if let Some(bits) = given.or(info.and_then(|info| info.precision_bits_comment)) {
        return Ok(bits);
    }
    if info.is_none() && is_stream(path) {
        let stated = peek(path)?;
        return stated.ok_or_else(|| not_stated(advice, path, None));
    }
    Err(not_stated(advice, path, info))
}

/// The precision that a stream states, of which the matrix is kept for the next read.
fn peek(path: &Path) -> Result<Option<u32>> {
    let mut peeked = locked(&PEEKED);
    if let Some((_, loaded)) = peeked.as_ref().filter(|(known, _)| known == path) {
        return Ok(loaded.precision_bits_comment);
    }
    drop(peeked.take());
    drop(peeked);
    let loaded = read(path, &ReadOptions::new(None).memory_bytes(choices().memory_bytes))?;
    let stated = loaded.precision_bits_comment;
    *locked(&PEEKED) = Some((path.to_path_buf(), loaded));
    Ok(stated)
}

fn not_stated(advice: &str, path: &Path, info: Option<&FileInfo>) -> Error {
    let path = path.display();
    let digits = info.and_then(|info| info.longest_digits).map_or(String::new(), |digits| {
        let bits = (f64::from(digits) * std::f64::consts::LOG2_10).ceil();
        format!(" (its longest number has {digits} digits, which fit in {bits} bits)")
    });
    Error::InvalidArgument(format!("{path} does not state its precision: {advice}{digits}"))
}

/// Precision to which decimals are read where the result is exact: integers take the bits that they need.
const EXACT_BITS: u32 = 64;

/// The precision given, else the one that the file states; a product of integers needs neither.
///
/// # Errors
/// The errors of [`header`] and [`stated_precision`].
pub fn product_precision(given: Option<u32>, path: &Path, exact_integers: bool) -> Result<u32> {
    if exact_integers && given.is_none() && is_stream(path) {
        return Ok(EXACT_BITS);
    }
    let info = header(path)?;
    let stated = stated_precision(given, path, info.as_ref());
    if exact_integers { Ok(stated.unwrap_or(EXACT_BITS)) } else { stated }
}
