//! Matrices in files and bytes: the formats of the command line, with progress and Ctrl-C.

use crate::errors::{OrRaise, exception, with_remark};
use crate::runner::Runner;
use crate::view::View;
use pyo3::exceptions::{PyUserWarning, PyValueError};
use pyo3::prelude::*;
use std::ffi::CString;
use std::fs::File;
use std::path::Path;
use sunzi::Error;
use sunzi::io::{self, FileFormat, Headings, Loaded, Location, ReadOptions, Source, WriteOptions};

/// The format of this name.
fn format_of(name: Option<&str>) -> PyResult<Option<FileFormat>> {
    let Some(name) = name else { return Ok(None) };
    FileFormat::by_name(name).map(Some).ok_or_else(|| {
        let known = FileFormat::ALL.map(FileFormat::name).join(", ");
        PyValueError::new_err(format!("format='{name}' is not valid; use one of {known}"))
    })
}

/// Writes the file, complete or not at all.
///
/// # Errors
/// `OSError`, `ValueError`; the exception of a signal handler or of the progress callback.
pub fn save(runner: &Runner<'_>, view: &View, path: &Path, format: Option<&str>) -> PyResult<()> {
    let format = match format_of(format)? {
        Some(format) => format,
        None => FileFormat::of(path).or_raise(runner.context.py())?,
    };
    runner.run_watched(|_, progress| {
        io::write_as(path, format, view.entries(), &WriteOptions::default().progress(progress))
    })
}

/// The caller's description of a file.
pub struct FileForm<'a> {
    /// The name of its format, if the name of the file does not determine it.
    pub format: Option<&'a str>,
    /// Whether the first line of a table holds headings.
    pub header: Option<bool>,
}

/// Reads a matrix: at `bits` bits, or at those that the file states.
///
/// # Errors
/// As [`save`]; `MemoryLimitError` for a matrix beyond the limit of the context.
pub fn load(runner: &Runner<'_>, path: &Path, form: FileForm<'_>, bits: Option<u32>) -> PyResult<View> {
    let py = runner.context.py();
    let format = format_of(form.format)?;
    let header = match form.header {
        None => Headings::Detect,
        Some(true) => Headings::Present,
        Some(false) => Headings::Absent,
    };
    let loaded = runner.run_watched(|ctx, progress| {
        let options = ReadOptions::new(bits).header(header).progress(progress).memory_bytes(ctx.memory_bytes());
        read(path, format, &options)
    });
    // The library's text names no keyword.
    let loaded = loaded.map_err(|error| match error.value(py).to_string().contains("give the precision in bits") {
        true => with_remark(py, error, "pass precision="),
        false => error,
    })?;
    for remark in &loaded.remarks {
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(remark.as_str())?, 2)?;
    }
    Ok(View::from(loaded.matrix).after_rounding(loaded.rounded_bits))
}

/// Reads a file, in this format, whatever its name is.
fn read(path: &Path, format: Option<FileFormat>, options: &ReadOptions) -> sunzi::Result<Loaded> {
    let Some(format) = format else { return io::read(path, options) };
    let location = Location::parse(path);
    let fail = |source| Error::Io { path: location.file.clone(), action: "open", source };
    let file = File::open(&location.file).map_err(fail)?;
    let bytes = file.metadata().ok().filter(|data| data.is_file()).map(|data| data.len());
    let source = Source::new(&location.file, format).member(location.member.as_deref()).bytes(bytes);
    io::read_stream(file, &source, options)
}

/// The matrix in the binary format, with a checksum.
///
/// # Errors
/// `MemoryError`.
pub fn to_bytes(py: Python<'_>, view: &View) -> PyResult<Vec<u8>> {
    let write = || {
        let mut bytes = Vec::new();
        let (path, options) = (Path::new("bytes"), WriteOptions::default());
        io::write_stream(&mut bytes, path, FileFormat::Binary, view.entries(), &options)?;
        Ok(bytes)
    };
    py.detach(write).map_err(|error| exception(py, error))
}

/// The matrix of [`to_bytes`].
///
/// # Errors
/// `ValueError` for other bytes.
pub fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<View> {
    let source = Source::new(Path::new("bytes"), FileFormat::Binary).bytes(data.len() as u64);
    let read = || io::read_stream(data, &source, &ReadOptions::new(2));
    Ok(py.detach(read).or_raise(py)?.matrix.into())
}
