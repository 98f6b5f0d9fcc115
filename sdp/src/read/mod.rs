//! Programs in files: SDPA's sparse format, SDPB's blocks in a directory or an archive, and polynomial programs.
//!
//! Numbers are read in the library's one syntax. Does not know: iterations.

mod archive;
mod binary;
mod polynomial;
mod sdpa;
mod sdpb;
mod store;

pub(crate) use sdpa::grouped;

use crate::problem::Problem;
use std::path::Path;
use store::Store;
use sunzi::io::{FileFormat, Location};
use sunzi::{Error, Result};

/// Reads the program at `path`. Decimals are rounded to `precision_bits`.
///
/// - A directory, or a zip archive of one, with `control.json`: SDPB's blocks, each in JSON or in SDPB's binary form,
///   whose precision must be that of `precision_bits` in whole limbs.
/// - `.json`, `.m`, or `.nsv` with a list of these: a polynomial program as SDPB's pmp2sdp takes it, see
///   [`PolynomialProgram`](crate::PolynomialProgram).
/// - `.dat-s`, compressed or not: a file in SDPA's sparse format.
///
/// Numbers in JSON blocks may stand without quotation marks and keep their digits; in polynomial programs fractions may
/// not. Cost: a pass over the files, and of polynomial programs what [`PolynomialProgram::problem`] takes; memory: the
/// numbers of the program, and the text of one file of a polynomial program. Source: docs/FORMATS.md and SDPB's manual.
///
/// [`PolynomialProgram::problem`]: crate::PolynomialProgram::problem
///
/// # Errors
/// [`Error::Io`], [`Error::Format`] with file, line and numbers; [`Error::InvalidArgument`] where the name is of
/// no kind or shapes do not fit; [`Error::Precision`], [`Error::OutOfMemory`].
pub fn read_problem(path: &Path, precision_bits: u32) -> Result<Problem> {
    let data = std::fs::metadata(path);
    let data = data.map_err(|source| Error::Io { path: path.to_path_buf(), action: "open", source })?;
    let named = |error| match error {
        Error::InvalidArgument(text) => Error::Format { path: path.to_path_buf(), message: text },
        other => other,
    };
    let problem = match Location::parse(path).format {
        _ if data.is_dir() => sdpb::read(&Store::open(path)?, precision_bits)?,
        Some(FileFormat::Sdpa) => sdpa::read(path, precision_bits)?,
        _ if polynomial::is_named(path) => polynomial::read(path, precision_bits).map_err(named)?,
        _ if archive::is_archive(path) => sdpb::read(&Store::open(path)?, precision_bits)?,
        _ => {
            return Err(Error::InvalidArgument(format!(
                "{}: neither SDPB's blocks in a directory or a zip archive, nor a polynomial program (.json, .m, \
                 .nsv), nor a file of SDPA's sparse format (.dat-s)",
                path.display()
            )));
        }
    };
    problem.check().map_err(named)?;
    Ok(problem)
}
