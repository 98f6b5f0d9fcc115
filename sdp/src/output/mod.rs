//! The output of a run: SDPB's files, SDPA's result file, the table of iterations.
//!
//! Every file appears complete or not at all; the list of iterations is complete after each iteration. This module does
//! not know the computations.

mod aside;
mod iterations;
mod sdpa;
mod sdpb;
mod table;
mod text;

pub use iterations::IterationsFile;
pub use sdpa::{phase, sdpa_result};
pub use sdpb::{WriteSolution, write_solution};
pub use table::{TABLE_HEADER, table_row};
pub use text::decimal;

use std::io::Write;
use std::path::Path;
use sunzi::io::AtomicFiles;
use sunzi::{Error, Result};

/// Writes a text file, which appears complete or not at all.
///
/// # Errors
/// [`Error::Io`].
pub fn write_text(path: &Path, text: &str) -> Result<()> {
    write_text_among(&mut AtomicFiles::default(), path, text)
}

/// Writes a text file together with other files, whose folder is synced once for all.
///
/// # Errors
/// [`Error::Io`].
pub fn write_text_among(files: &mut AtomicFiles, path: &Path, text: &str) -> Result<()> {
    let fail = |source| Error::Io { path: path.to_path_buf(), action: "write", source };
    files.write(path, |mut file| file.write_all(text.as_bytes()).map_err(fail))
}
