//! Reports as JSON: one object in one file, which is either complete or absent.
//!
//! A folder that cannot be written is an error before any work; nothing lies on the disk until the report is complete.
//! A name that exists and is not a regular file (`/dev/stdout`) is written to directly.

use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use sunzi::io::{is_device, write_atomically};
use sunzi::{Error, Result};

/// A report that can be written when the work is done.
pub struct ReportFile {
    path: PathBuf,
}

impl ReportFile {
    /// Prepares the report that will be written to `path`.
    ///
    /// # Errors
    /// [`Error::Io`] where the folder cannot be written.
    pub fn new(path: &Path) -> Result<ReportFile> {
        check_writable(path)?;
        Ok(ReportFile { path: path.to_path_buf() })
    }

    /// Writes `report` to its file.
    ///
    /// # Errors
    /// [`Error::Io`] where the system refuses, such as on a full disk; the file is absent then, or the older one.
    pub fn finish(&self, report: &impl Serialize) -> Result<()> {
        let fail = |source| Error::Io { path: self.path.clone(), action: "write", source };
        let text = serde_json::to_string_pretty(report).map_err(|error| fail(error.into()))?;
        write_atomically(&self.path, |mut file| writeln!(file, "{text}").map_err(fail))
    }
}

/// Refuses an output path before any work is done for it: the folder must exist and take new files, the path must not
/// be a folder. The check leaves no file behind.
///
/// # Errors
/// [`Error::Io`].
pub fn check_writable(path: &Path) -> Result<()> {
    if is_device(path) {
        return Ok(()); // opening a pipe to look would wait for its reader
    }
    // All that precedes the first byte is tried; then the attempt is given up, which removes its temporary file.
    match write_atomically(path, |_| Err(Error::Cancelled)) {
        Err(Error::Cancelled) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_whole_or_absent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.json");
        let report = ReportFile::new(&path).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        report.finish(&[1, 2]).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[\n  1,\n  2\n]\n");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_folder_is_refused_by_the_name_asked_for() {
        for refused in [ReportFile::new(Path::new("/no/such/r.json")).map(drop), check_writable(Path::new("/"))] {
            let error = refused.unwrap_err();
            assert_eq!(error.exit_code(), 3);
            assert!(!error.to_string().contains(".tmp"), "{error}");
        }
    }
}
