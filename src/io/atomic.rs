//! Files that appear under their final name complete or not at all.
//!
//! Promise: the bytes go to a file without a name in the same folder, or with a temporary one, which is synced and then
//! gets the final name; after a failure no new file has that name. Devices and pipes are written directly. Does not
//! know: what the bytes mean.

use crate::error::{Error, Result};
use crate::io::progress::Reporter;
use crate::io::temporary::{Temporary, remove_stale};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Bytes collected before each call of the system.
const BUFFER_BYTES: usize = 1 << 20;

/// A buffered output that turns a failure into an [`Error`] with the file's name, and reports progress.
pub(super) struct FileSink<'a, W: Write> {
    writer: W,
    buffer: Vec<u8>,
    path: &'a Path,
    reporter: Reporter,
}

impl<'a, W: Write> FileSink<'a, W> {
    /// An output to `writer`, called `path` in messages.
    pub fn new(writer: W, path: &'a Path, reporter: Reporter) -> Self {
        FileSink { writer, buffer: Vec::with_capacity(BUFFER_BYTES + 4096), path, reporter }
    }

    /// The buffer, to append to; [`FileSink::advance`] empties it when it is full.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Reports `units` more units of work, and writes a full buffer.
    ///
    /// # Errors
    /// [`Error::Io`] where writing fails, [`Error::Cancelled`] where the callback requests it.
    pub fn advance(&mut self, units: u64) -> Result<()> {
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        self.reporter.advance(units)
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// As [`FileSink::advance`].
    pub fn finish(mut self) -> Result<()> {
        self.flush()?;
        self.writer.flush().map_err(|source| self.error(source))?;
        self.reporter.finish()
    }

    fn flush(&mut self) -> Result<()> {
        self.writer.write_all(&self.buffer).map_err(|source| self.error(source))?;
        self.buffer.clear();
        Ok(())
    }

    fn error(&self, source: io::Error) -> Error {
        Error::Io { path: self.path.to_path_buf(), action: "write", source }
    }
}

/// Whether `path` names a device or a pipe, which cannot be replaced by renaming.
pub fn is_device(path: &Path) -> bool {
    let is_special = fs::metadata(path).is_ok_and(|data| !data.is_file() && !data.is_dir());
    // A redirected /dev/stdout can be a regular file; it must still be written through its descriptor.
    is_special || ((path.starts_with("/dev") || path.starts_with("/proc")) && path.exists())
}

/// Lets `body` write the file `path`, atomically where `path` is not a device.
///
/// A file of that name is replaced and keeps its permissions; a symbolic link is followed.
///
/// # Errors
/// [`Error::Io`] with the step that failed; the errors of `body`.
pub fn write_atomically(path: &Path, body: impl FnOnce(&File) -> Result<()>) -> Result<()> {
    AtomicFiles::default().write(path, body)
}

/// Files that are written one after the other, each as by [`write_atomically`]; their folders are synced once, by
/// [`AtomicFiles::sync`] or when the value is dropped. Before that, a crash of the machine may restore the previous
/// file of some of the names, in any order, but always a complete file.
#[derive(Debug, Default)]
pub struct AtomicFiles {
    folders: BTreeSet<PathBuf>,
}

impl AtomicFiles {
    /// Writes one of the files by `body`.
    ///
    /// # Errors
    /// As [`write_atomically`].
    pub fn write(&mut self, path: &Path, body: impl FnOnce(&File) -> Result<()>) -> Result<()> {
        write_and_name(path, body, &mut self.folders)
    }

    /// Syncs the folders of all files written since the last call: no crash removes their names any more, and a file
    /// written next, such as a marker, is durable only after them. File systems that do not sync folders guarantee
    /// less.
    ///
    /// # Errors
    /// [`Error::Io`] with the folder; the remaining folders are synced by the next call.
    pub fn sync(&mut self) -> Result<()> {
        while let Some(folder) = self.folders.pop_first() {
            sync_folder(&folder).map_err(|source| Error::Io { path: folder, action: "sync", source })?;
        }
        Ok(())
    }
}

impl Drop for AtomicFiles {
    fn drop(&mut self) {
        // All files have their names, and no later file refers to them. A folder that fails does not stop the others.
        while self.sync().is_err() {}
    }
}

/// Syncs a folder where that can be done: some file systems refuse it, and some folders may be written and not read,
/// which is no failure.
fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| (error.kind(), error)) {
        Err((ErrorKind::InvalidInput | ErrorKind::Unsupported | ErrorKind::PermissionDenied, _)) | Ok(()) => Ok(()),
        Err((_, error)) => Err(error),
    }
}

/// Writes a file and gives it its name, and adds its folder to `folders`, after removing stale files from it.
fn write_and_name(path: &Path, body: impl FnOnce(&File) -> Result<()>, folders: &mut BTreeSet<PathBuf>) -> Result<()> {
    let fail = |action| move |source| Error::Io { path: path.to_path_buf(), action, source };
    if is_device(path) {
        let file = OpenOptions::new().write(true).open(path).map_err(fail("open"))?;
        return body(&file);
    }
    if path.is_dir() {
        return Err(fail("write")(io::Error::from(ErrorKind::IsADirectory)));
    }
    let target = link_target(path);
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let old = fs::metadata(&target).ok().map(|data| data.permissions());
    // A file that replaces a private one is private from its first byte.
    let mode = old.as_ref().map_or(0o666, |permissions| permissions.mode() & 0o777);
    if !folders.contains(folder) {
        remove_stale(folder);
    }
    let temporary = Temporary::create(folder, mode).map_err(fail("create"))?;
    body(temporary.file())?;
    if let Some(old) = old {
        temporary.file().set_permissions(old).map_err(fail("write"))?;
    }
    temporary.file().sync_all().map_err(fail("write"))?;
    temporary.persist(folder, &target).map_err(fail("rename"))?;
    folders.insert(folder.to_path_buf());
    Ok(())
}

/// The end of a chain of symbolic links, whether or not that file exists; `path` itself if it is no link.
fn link_target(path: &Path) -> PathBuf {
    let mut target = path.to_path_buf();
    // The system follows at most 40 links too; a longer chain is a loop, and opening it will say so.
    for _ in 0..40 {
        match fs::read_link(&target) {
            Ok(next) => target = target.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => break,
        }
    }
    target
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::temporary::tests::names;
    use std::fs::Permissions;

    #[test]
    fn a_failed_body_leaves_the_folder_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mtx");
        fs::write(&path, "before").unwrap();
        let result = write_atomically(&path, |mut file| {
            file.write_all(b"half").unwrap();
            Err(Error::Cancelled)
        });
        assert!(matches!(result, Err(Error::Cancelled)));
        assert_eq!(names(folder.path()), ["a.mtx"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
    }

    #[test]
    fn success_replaces_the_file_behind_a_link_and_keeps_its_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.mtx"), folder.path().join("link.mtx"));
        fs::write(&real, "before").unwrap();
        std::os::unix::fs::symlink("real.mtx", &link).unwrap();
        for mode in [0o600, 0o666] {
            fs::set_permissions(&real, Permissions::from_mode(mode)).unwrap();
            write_atomically(&link, |mut file| {
                let now = file.metadata().unwrap().permissions().mode() & 0o777;
                assert_eq!(now & !mode, 0, "{now:o} while a file of mode {mode:o} is replaced");
                file.write_all(b"after").unwrap();
                Ok(())
            })
            .unwrap();
            assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, mode);
        }
        assert_eq!(names(folder.path()), ["link.mtx", "real.mtx"]);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "after");
    }

    #[test]
    fn files_that_are_written_together_have_their_names_before_their_folders_are_synced() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let paths = [folder.path().join("a"), inner.join("b"), folder.path().join("c")];
        let mut files = AtomicFiles::default();
        for (at, path) in paths.iter().enumerate() {
            files.write(path, |mut file| file.write_all(&[at as u8]).map_err(|_| Error::Cancelled)).unwrap();
            assert_eq!(fs::read(path).unwrap(), [at as u8]);
        }
        assert!(files.write(&paths[0], |_| Err(Error::Cancelled)).is_err());
        assert_eq!(files.folders.iter().collect::<Vec<_>>(), [folder.path(), &inner]);
        files.sync().unwrap();
        assert!(files.folders.is_empty());
        assert_eq!(fs::read(&paths[0]).unwrap(), [0]);
        assert_eq!(names(folder.path()), ["a", "c", "inner"]);
    }

    #[test]
    fn a_folder_that_cannot_be_synced_is_named_and_keeps_no_other_back() {
        let folder = tempfile::tempdir().unwrap();
        let inner = ["a", "b"].map(|name| folder.path().join(name));
        let mut files = AtomicFiles::default();
        for inner in &inner {
            fs::create_dir(inner).unwrap();
            files.write(&inner.join("c"), |_| Ok(())).unwrap();
        }
        fs::remove_dir_all(&inner[0]).unwrap();
        let message = files.sync().unwrap_err().to_string();
        assert!(message.starts_with(&format!("{}: cannot sync: ", inner[0].display())), "{message}");
        assert_eq!(files.folders.iter().collect::<Vec<_>>(), [&inner[1]]);
        files.sync().unwrap();
        // A file system that syncs no folders.
        sync_folder(Path::new("/proc")).unwrap();
    }

    #[test]
    fn refusals_name_the_file_and_the_step() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("none").join("a.mtx");
        let message = write_atomically(&missing, |_| Ok(())).unwrap_err().to_string();
        assert_eq!(message, format!("{}: cannot create: No such file or directory (os error 2)", missing.display()));
        let message = write_atomically(folder.path(), |_| Ok(())).unwrap_err().to_string();
        assert!(message.contains("cannot write: is a directory"), "{message}");
    }
}
