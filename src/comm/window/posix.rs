//! A window in POSIX shared memory, for sites that limit or slow MPI's windows.
//!
//! The first rank creates the object under a name of its own, reserves its pages (so that a lack of memory is an error
//! now, not a signal later), and unlinks it as soon as all ranks have mapped it: whatever happens to a rank after
//! that, nothing is left behind. Objects of processes that died between the two steps are removed by whoever opens a
//! window next.

use crate::comm::window::Backing;
use crate::comm::{Transport, agree, barrier, broadcast_bytes};
use crate::error::{Error, Result};
use rustix::fs::{FallocateFlags, Mode, fallocate, ftruncate};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use rustix::shm;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names begin with this, then the process that made the object, then a number.
const PREFIX: &str = "sunzi-";

/// Memory mapped from a shared object that has no name any more.
pub struct Posix {
    start: *mut u64,
    len: usize,
}

// SAFETY: plain memory behind a pointer; who may use which part of it when is the affair of `SharedWindow`.
unsafe impl Send for Posix {}
// SAFETY: as above; no method touches the memory.
unsafe impl Sync for Posix {}

impl Posix {
    /// `words` zero words that all ranks of `node` share. Collective.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] on every rank where the pages cannot be reserved; [`Error::Transport`].
    pub fn open(node: &dyn Transport, words: usize) -> Result<Posix> {
        let created = if node.rank() == 0 { create(words).map(Some) } else { Ok(None) };
        let name =
            created.as_ref().map_or(String::new(), |made| made.as_ref().map_or(String::new(), |made| made.0.clone()));
        agree(node, created.as_ref().map(drop).map_err(copy))?;
        let name = String::from_utf8_lossy(&broadcast_bytes(node, 0, name.as_bytes())?).into_owned();
        let mapped = match &created {
            Ok(Some((_, object))) => map(object, words),
            _ => shm::open(&name, shm::OFlags::RDWR, Mode::empty())
                .map_err(|error| refused(&name, error))
                .and_then(|object| map(&object, words)),
        };
        let waited = barrier(node);
        if node.rank() == 0 {
            let _ = shm::unlink(&name);
        }
        waited?;
        agree(node, mapped.as_ref().map(drop).map_err(copy))?;
        mapped
    }
}

impl Drop for Posix {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this length, and nobody can use it any more.
        let _ = unsafe { munmap(self.start.cast(), self.len * 8) };
    }
}

/// A new object of `words` words with its pages reserved.
fn create(words: usize) -> Result<(String, OwnedFd)> {
    remove_orphans();
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = format!("/{PREFIX}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let flags = shm::OFlags::CREATE | shm::OFlags::EXCL | shm::OFlags::RDWR;
    let object = shm::open(&name, flags, Mode::RUSR | Mode::WUSR).map_err(|error| refused(&name, error))?;
    let bytes = words as u64 * 8;
    let sized = ftruncate(&object, bytes).and_then(|()| fallocate(&object, FallocateFlags::empty(), 0, bytes));
    if let Err(error) = sized {
        let _ = shm::unlink(&name);
        let full = [rustix::io::Errno::NOSPC, rustix::io::Errno::NOMEM, rustix::io::Errno::FBIG].contains(&error);
        return Err(if full { Error::OutOfMemory { bytes } } else { refused(&name, error) });
    }
    Ok((name, object))
}

fn map(object: &OwnedFd, words: usize) -> Result<Posix> {
    let bytes = words * 8;
    // SAFETY: a new mapping at an address of the system's choice; the object is at least this long.
    let start =
        unsafe { mmap(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, object, 0) }
            .map_err(|_| Error::OutOfMemory { bytes: bytes as u64 })?;
    // SAFETY: advice on huge pages for the mapping just made changes no contents; a refusal does not matter.
    let _ = unsafe { madvise(start, bytes, Advice::LinuxHugepage) };
    Ok(Posix { start: start.cast(), len: words })
}

/// Removes objects whose processes are gone.
fn remove_orphans() {
    let Ok(entries) = std::fs::read_dir("/dev/shm") else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<i32>().ok());
        let Some(owner) = owner.and_then(rustix::process::Pid::from_raw) else { continue };
        if rustix::process::test_kill_process(owner) == Err(rustix::io::Errno::SRCH) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn refused(name: &str, error: rustix::io::Errno) -> Error {
    Error::Transport(format!("shared memory {name}: {error}"))
}

/// The same error for the agreement, which consumes one.
fn copy(error: &Error) -> Error {
    match error {
        Error::OutOfMemory { bytes } => Error::OutOfMemory { bytes: *bytes },
        other => Error::Transport(other.to_string()),
    }
}

// SAFETY: `map` made the mapping with this length on a page boundary; it is the same object on all ranks of the group
// that opened it, and it is unmapped by `drop` alone.
unsafe impl Backing for Posix {
    fn start(&self) -> *mut u64 {
        self.start
    }

    fn len(&self) -> usize {
        self.len
    }

    fn name(&self) -> &'static str {
        "posix"
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
