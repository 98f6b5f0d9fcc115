//! Programs in files: SDPA's sparse format, and SDPB's directory of blocks.
//!
//! Numbers are read by the library's readers, in its one syntax. Does not know: iterations.

mod sdpa;
mod sdpb;

use crate::problem::Problem;
use std::path::Path;
use sunzi::io::{FileFormat, Location};
use sunzi::{Error, Result};

/// Reads the program at `path`: a directory with `control.json` in SDPB's form, or a file in SDPA's sparse format
/// (`.dat-s`, compressed or not). Decimals are rounded to `precision_bits`.
///
/// # Errors
/// [`Error::Io`], [`Error::Format`] with file, line and numbers; [`Error::InvalidArgument`] where the name is of
/// neither kind or shapes do not fit; [`Error::Precision`], [`Error::OutOfMemory`].
pub fn read_problem(path: &Path, precision_bits: u32) -> Result<Problem> {
    let data = std::fs::metadata(path);
    let data = data.map_err(|source| Error::Io { path: path.to_path_buf(), action: "open", source })?;
    let problem = match (data.is_dir(), Location::parse(path).format) {
        (true, _) => sdpb::read(path, precision_bits)?,
        (false, Some(FileFormat::Sdpa)) => sdpa::read(path, precision_bits)?,
        _ => {
            return Err(Error::InvalidArgument(format!(
                "{}: neither a directory with SDPB's blocks nor a file of SDPA's sparse format (.dat-s)",
                path.display()
            )));
        }
    };
    let named = |error| match error {
        Error::InvalidArgument(text) => Error::Format { path: path.to_path_buf(), message: text },
        other => other,
    };
    problem.check().map_err(named)?;
    Ok(problem)
}
