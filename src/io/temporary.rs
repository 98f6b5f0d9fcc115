//! Files that have no name in their folder, or a temporary one, until they are complete.
//!
//! Promise: where the file system has unnamed files, no file is left of an output that was not completed, however the
//! process ended. Elsewhere, and everywhere in the moment in which a complete file takes the place of an older one, it
//! has a name of the form `.sunzi-HOST-RANDOM.tmp` and its writer holds a lock on it; a file that a killed process left
//! is recognised by its missing lock and removed by the next output in that folder. Independent of: what is written.

use rustix::fs::FlockOperation;
use std::fs::{self, DirEntry, File, OpenOptions};
use std::io::{self, Seek};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;
use tempfile::{Builder, NamedTempFile};

const PREFIX: &str = ".sunzi-";
const SUFFIX: &str = ".tmp";

/// Age from which a file without a lock is stale even where another machine wrote it: a lock need not reach from one
/// machine to another.
const FOREIGN_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// An output that is being written.
#[derive(Debug)]
pub(super) enum Temporary {
    /// In no folder: the system drops it with its last descriptor.
    Unnamed(File),
    /// In its folder, under a temporary name.
    Named(NamedTempFile),
}

impl Temporary {
    /// An empty file in `folder` with the permissions `mode`, less those that the process's mask removes.
    ///
    /// # Errors
    /// The system's refusal.
    pub fn create(folder: &Path, mode: u32) -> io::Result<Temporary> {
        match unnamed(folder, mode) {
            Some(file) => Ok(Temporary::Unnamed(file)),
            None => named(folder, mode).map(Temporary::Named),
        }
    }

    /// The file, to write to.
    pub fn file(&self) -> &File {
        match self {
            Temporary::Unnamed(file) => file,
            Temporary::Named(named) => named.as_file(),
        }
    }

    /// Gives the complete file its final name, in one step.
    ///
    /// # Errors
    /// The system's refusal; no file is left then.
    pub fn persist(self, folder: &Path, target: &Path) -> io::Result<()> {
        let named = match self {
            Temporary::Unnamed(file) => link(&file, folder)?,
            Temporary::Named(named) => named,
        };
        named.persist(target).map(drop).map_err(|refused| refused.error)
    }
}

/// A file without a name, where the system and the file system have them and `/proc` can give it one later.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path, mode: u32) -> Option<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(folder, flags, Mode::from_raw_mode(mode)).ok()?);
    let (own, seen) = (file.metadata().ok()?, fs::metadata(descriptor(&file)).ok()?);
    ((own.dev(), own.ino()) == (seen.dev(), seen.ino())).then_some(file)
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_folder: &Path, _mode: u32) -> Option<File> {
    None
}

/// The path by which the system finds an open file.
#[cfg(target_os = "linux")]
fn descriptor(file: &File) -> String {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Puts an unnamed file into `folder` under a temporary name, or a copy of it where the file system refuses that.
fn link(file: &File, folder: &Path) -> io::Result<NamedTempFile> {
    // The lock comes before the name, or another writer could take the file for a stale one.
    lock_is_taken(file);
    let linked = Builder::new().prefix(&prefix()).suffix(SUFFIX).make_in(folder, |name| {
        let other = file.try_clone()?;
        enter(file, name).map(|()| other)
    });
    if let Ok(named) = linked {
        return Ok(named);
    }
    let permissions = file.metadata()?.permissions();
    let (mut from, named) = (file, named(folder, 0o600)?);
    from.rewind()?;
    io::copy(&mut from, &mut named.as_file())?;
    named.as_file().set_permissions(permissions)?;
    named.as_file().sync_all()?;
    Ok(named)
}

#[cfg(target_os = "linux")]
fn enter(file: &File, name: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    Ok(linkat(CWD, descriptor(file), CWD, name, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(target_os = "linux"))]
fn enter(_file: &File, _name: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A file under a temporary name, with a lock where the file system has locks.
fn named(folder: &Path, mode: u32) -> io::Result<NamedTempFile> {
    let prefix = prefix();
    loop {
        let mut refusal = None;
        let made = Builder::new().prefix(&prefix).suffix(SUFFIX).make_in(folder, |name| {
            let opened = OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(name);
            refusal = opened.as_ref().err().and_then(io::Error::raw_os_error);
            opened
        });
        // The system's own error does not show the temporary name.
        let made = made.map_err(|error| refusal.map_or(error, io::Error::from_raw_os_error))?;
        // Before it was locked, another writer may have taken it for a stale one.
        if !lock_is_taken(made.as_file()) && made.as_file().metadata()?.nlink() > 0 {
            return Ok(made);
        }
    }
}

/// The beginning of temporary names: the host, so that each machine judges its own files.
fn prefix() -> String {
    format!("{PREFIX}{}-", host())
}

/// The machine's name, as far as it can be part of a file's.
fn host() -> String {
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy().into_owned();
    name.chars().filter(|letter| letter.is_ascii_alphanumeric() || ".-_".contains(*letter)).take(64).collect()
}

/// Takes the lock of a file, where there are locks at all; returns whether someone else holds it.
fn lock_is_taken(file: &File) -> bool {
    rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) == Err(rustix::io::Errno::WOULDBLOCK)
}

/// Removes the files that killed processes left in `folder`. A failure is no error: the files do no harm.
pub(super) fn remove_stale(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let host = host();
    for entry in entries.flatten() {
        if is_stale(&entry, &host).unwrap_or(false) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether an entry is a temporary file that no process writes.
fn is_stale(entry: &DirEntry, host: &str) -> io::Result<bool> {
    use rustix::fs::OFlags;
    let name = entry.file_name();
    let middle = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX));
    let Some(middle) = middle else { return Ok(false) };
    // Neither a link nor a pipe is followed or waited for.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let open = |write| OpenOptions::new().read(true).write(write).custom_flags(flags).open(entry.path());
    // Network file systems require write access for an exclusive lock.
    let file = open(true).or_else(|_| open(false))?;
    let data = file.metadata()?;
    let is_foreign = middle.rsplit_once('-').is_some_and(|(writer, _)| writer != host);
    if !data.is_file() || (is_foreign && data.modified()?.elapsed().is_ok_and(|age| age < FOREIGN_AGE)) {
        return Ok(false);
    }
    Ok(rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::fs::{FileTimes, Permissions};
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    use std::time::SystemTime;

    /// Names in a folder, sorted.
    pub fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A file in `folder`; `None` for one without a name where the file system has none.
    fn begin(folder: &Path, is_named: bool, mode: u32) -> Option<Temporary> {
        match is_named {
            true => Some(Temporary::Named(named(folder, mode).unwrap())),
            false => unnamed(folder, mode).map(Temporary::Unnamed),
        }
    }

    #[test]
    fn both_ways_are_private_while_written_and_complete_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        for is_named in [false, true] {
            let Some(temporary) = begin(folder.path(), is_named, 0o600) else { continue };
            temporary.file().write_all(b"all of it").unwrap();
            assert_eq!(temporary.file().metadata().unwrap().mode() & 0o777, 0o600);
            temporary.file().set_permissions(Permissions::from_mode(0o640)).unwrap();
            assert_eq!(names(folder.path()).len(), usize::from(is_named));
            let target = folder.path().join("a.mtx");
            temporary.persist(folder.path(), &target).unwrap();
            assert_eq!(fs::read(&target).unwrap(), b"all of it");
            assert_eq!(fs::metadata(&target).unwrap().mode() & 0o777, 0o640);
            fs::remove_file(target).unwrap();
        }
        assert_eq!(names(folder.path()), Vec::<String>::new());
    }

    #[test]
    fn dropping_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        drop([false, true].map(|is_named| begin(folder.path(), is_named, 0o666)));
        assert_eq!(names(folder.path()), Vec::<String>::new());
    }

    #[test]
    fn stale_files_are_removed_and_those_in_use_stay() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| fs::write(folder.path().join(name), "half").unwrap();
        let live = named(folder.path(), 0o666).unwrap();
        let own = format!("{PREFIX}{}-aaaaaa{SUFFIX}", host());
        let (young, old) = (".sunzi-elsewhere-bbbbbb.tmp", ".sunzi-elsewhere-cccccc.tmp");
        for name in [&own, ".sunzi-dddddd.tmp", young, old, "sunzi.tmp", ".sunzi-notes"] {
            write(name);
        }
        let past = FileTimes::new().set_modified(SystemTime::now() - 2 * FOREIGN_AGE);
        OpenOptions::new().write(true).open(folder.path().join(old)).unwrap().set_times(past).unwrap();
        std::os::unix::fs::symlink("sunzi.tmp", folder.path().join(".sunzi-link.tmp")).unwrap();
        remove_stale(folder.path());
        let in_use = live.path().file_name().unwrap().to_str().unwrap().to_string();
        let mut kept = [in_use.as_str(), young, "sunzi.tmp", ".sunzi-notes", ".sunzi-link.tmp"];
        kept.sort_unstable();
        assert_eq!(names(folder.path()), kept);
    }

    #[test]
    fn a_file_that_cannot_be_linked_is_copied() {
        let folder = tempfile::tempdir().unwrap();
        let mut plain = tempfile::tempfile().unwrap(); // may lie on another file system, or anywhere without a link
        plain.write_all(b"numbers").unwrap();
        plain.set_permissions(Permissions::from_mode(0o604)).unwrap();
        let copied = link(&plain, folder.path()).unwrap();
        assert_eq!(fs::read(copied.path()).unwrap(), b"numbers");
        assert_eq!(fs::metadata(copied.path()).unwrap().mode() & 0o777, 0o604);
    }
}
