//! Programs in files: SDPA's sparse format, SDPB's blocks in a directory or an archive, and polynomial programs.
//!
//! Numbers are read in the library's one syntax. Independent of: iterations.

mod archive;
mod binary;
mod polynomial;
mod sdpa;
mod sdpb;
mod store;

pub(crate) use sdpa::{PlacedEntry, grouped};

use crate::forms::{FIRST_BYTES, TextForm};
use crate::problem::Problem;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use store::Store;
use sunzi::io::{FileFormat, Location};
use sunzi::{Error, Result};

/// Reads the program at `path`. Decimals are rounded to `precision_bits`.
///
/// - A directory, or a zip archive of a directory, with `control.json`: SDPB's blocks, each in JSON or in SDPB's binary
///   form, whose precision must be `precision_bits` rounded up to whole limbs.
/// - `.json`, `.m`, or `.nsv` with a list of these: a polynomial program in the form of SDPB's pmp2sdp, see
///   [`PolynomialProgram`](crate::PolynomialProgram).
/// - `.dat-s`, compressed or not: a file in SDPA's sparse format.
///
/// Numbers in JSON blocks may be written without quotation marks and keep their digits; in polynomial programs
/// fractions must have quotation marks. Cost: a pass over the files, and for polynomial programs the cost of
/// [`PolynomialProgram::problem`]; memory: the numbers of the program, and the text of one file of a polynomial
/// program. Source: docs/FORMATS.md and SDPB's manual.
///
/// [`PolynomialProgram::problem`]: crate::PolynomialProgram::problem
///
/// # Errors
/// [`Error::Io`], [`Error::Format`] with file, line and numbers; [`Error::InvalidArgument`] if the name has no known
/// ending or shapes do not fit; [`Error::Precision`], [`Error::OutOfMemory`].
pub fn read_problem(path: &Path, precision_bits: u32) -> Result<Problem> {
    read_problem_as(path, None, precision_bits)
}

/// As [`read_problem`]; if the name of a file does not determine its form, `format` does: SDPA's sparse format, JSON or
/// Mathematica's text. Without a format the first bytes determine it, for example for `a.dat-s.txt`.
///
/// # Errors
/// The errors of [`read_problem`]; [`Error::InvalidArgument`] for another format.
pub fn read_problem_as(path: &Path, format: Option<FileFormat>, precision_bits: u32) -> Result<Problem> {
    let chosen = format.map(TextForm::of).transpose()?;
    let failed = |source| Error::Io { path: path.to_path_buf(), action: "open", source };
    let data = std::fs::metadata(path).map_err(failed)?;
    let problem = match Location::parse(path).format {
        _ if data.is_dir() => sdpb::read(&Store::open(path)?, precision_bits)?,
        Some(FileFormat::Sdpa) => sdpa::read(path, precision_bits)?,
        _ if polynomial::is_named(path) => {
            polynomial::read(path, precision_bits).map_err(|error| named(error, path))?
        }
        _ if archive::is_archive(path) => sdpb::read(&Store::open(path)?, precision_bits)?,
        _ => {
            let file = File::open(path).map_err(failed)?;
            return text(file, path, chosen, precision_bits);
        }
    };
    problem.check().map_err(|error| named(error, path))?;
    Ok(problem)
}

/// As [`read_problem_as`], from a stream called `name` in messages: a program in a single text. Memory: the text in
/// addition to the program.
///
/// # Errors
/// As there.
pub fn read_problem_from(
    reader: impl Read,
    (name, format): (&Path, Option<FileFormat>),
    precision_bits: u32,
) -> Result<Problem> {
    text(reader, name, format.map(TextForm::of).transpose()?, precision_bits)
}

/// A program that is one text, of the form that was chosen, or that its first bytes show.
fn text(mut reader: impl Read, path: &Path, chosen: Option<TextForm>, precision_bits: u32) -> Result<Problem> {
    let unread = |source| Error::Io { path: path.to_path_buf(), action: "read", source };
    let mut first = Vec::new();
    reader.by_ref().take(FIRST_BYTES as u64).read_to_end(&mut first).map_err(unread)?;
    // The numbers of SDPA's dense format, which such files have, stand in the same places.
    let is_dense = path.extension().is_some_and(|ending| ending == "dat");
    let Some(form) = chosen.or_else(|| TextForm::shown(&first).filter(|_| !is_dense)) else {
        return Err(Error::InvalidArgument(format!(
            "{}: neither SDPB's blocks in a directory or a zip archive, nor a polynomial program (.json, .m, .nsv), \
             nor a file of SDPA's sparse format (.dat-s)",
            path.display()
        )));
    };
    let whole = std::io::Cursor::new(first).chain(reader);
    let problem = match form {
        TextForm::Sparse => sdpa::read_stream(whole, path, precision_bits)?,
        form => polynomial::read_stream(whole, path, form, precision_bits).map_err(|error| named(error, path))?,
    };
    problem.check().map_err(|error| named(error, path))?;
    Ok(problem)
}

/// The error in the numbers of a file, with its name.
fn named(error: Error, path: &Path) -> Error {
    match error {
        Error::InvalidArgument(text) => Error::Format { path: path.to_path_buf(), message: text },
        other => other,
    }
}
