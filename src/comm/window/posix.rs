//! A window in POSIX shared memory, for sites that limit or slow MPI's windows.
//!
//! The first rank creates the object under a name of its own and unlinks it as soon as all ranks have mapped it:
//! whatever happens to a rank after that, no object is left behind. Objects of processes that died between the two
//! steps are removed by the next rank that opens a window. Each rank reserves an equal range of its pages, so that a
//! lack of memory is an error now, not a signal later, and so that they lie near the rank.

use crate::comm::window::{Backing, WindowKind, huge, page_share, room};
use crate::comm::{Transport, agree, agreed, broadcast_bytes};
use crate::error::{Error, Result};
use rustix::fs::{FallocateFlags, Mode, fallocate, ftruncate};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use rustix::shm;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names begin with this, then the process that made the object, then a number.
const PREFIX: &str = "sunzi-";

/// Memory mapped from a shared object whose name has been removed.
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
    /// [`Error::OutOfMemory`] on every rank if the pages cannot be reserved; [`Error::Transport`].
    pub fn open(node: &dyn Transport, words: usize) -> Result<Posix> {
        let created = agreed(node, if node.rank() == 0 { create(words).map(Some) } else { Ok(None) })?;
        let name = created.as_ref().map_or("", |(name, _)| name);
        let name = String::from_utf8_lossy(&broadcast_bytes(node, 0, name.as_bytes())?).into_owned();
        let object = match created {
            Some((_, object)) => Ok(object),
            None => shm::open(&name, shm::OFlags::RDWR, Mode::empty()).map_err(|error| refused(&name, error)),
        };
        let opened = agreed(node, object);
        if node.rank() == 0 {
            let _ = shm::unlink(&name);
        }
        let object = opened?;
        let share = page_share(node.rank(), node.size(), words * 8);
        let window = agreed(node, map(&object, words))?;
        // SAFETY: the whole object was just mapped by the rule that huge pages take.
        unsafe { huge::join(window.start.cast(), words * 8, share.clone()) };
        // A page of this rank may overlap the next rank's part, which must not be filled meanwhile.
        agree(node, Ok(()))?;
        agreed(node, reserve(&object, share, words * 8, &name).map(|()| window))
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
    room::check(WindowKind::Posix, words as u64 * 8)?;
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = format!("/{PREFIX}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let flags = shm::OFlags::CREATE | shm::OFlags::EXCL | shm::OFlags::RDWR;
    let object = shm::open(&name, flags, Mode::RUSR | Mode::WUSR).map_err(|error| refused(&name, error))?;
    if let Err(error) = ftruncate(&object, words as u64 * 8) {
        let _ = shm::unlink(&name);
        return Err(full_or_refused(&name, error, words as u64 * 8));
    }
    Ok((name, object))
}

/// Reserves the pages of `share`, out of `bytes`.
fn reserve(object: &OwnedFd, share: Range<usize>, bytes: usize, name: &str) -> Result<()> {
    if share.is_empty() {
        return Ok(());
    }
    let reserved = fallocate(object, FallocateFlags::empty(), share.start as u64, share.len() as u64);
    reserved.map_err(|error| full_or_refused(name, error, bytes as u64))
}

fn full_or_refused(name: &str, error: Errno, bytes: u64) -> Error {
    let full = [Errno::NOSPC, Errno::NOMEM, Errno::FBIG].contains(&error);
    if full { Error::OutOfMemory { bytes } } else { refused(name, error) }
}

fn map(object: &OwnedFd, words: usize) -> Result<Posix> {
    let bytes = words * 8;
    let reserved = huge::reserve(bytes, 0);
    let (place, fixed) = reserved.map_or((std::ptr::null_mut(), MapFlags::empty()), |at| (at, MapFlags::FIXED));
    // SAFETY: a new mapping at an address of the system's choice, or in place of addresses that were reserved for it;
    // the object is at least this long.
    let mapped =
        unsafe { mmap(place.cast(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | fixed, object, 0) };
    let start = mapped.map_err(|_| Error::OutOfMemory { bytes: bytes as u64 })?;
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
        if rustix::process::test_kill_process(owner) == Err(Errno::SRCH) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn refused(name: &str, error: Errno) -> Error {
    Error::Transport(format!("shared memory {name}: {error}"))
}

// SAFETY: `map` made the mapping with this length on a page boundary; it is the same object on all ranks of the group
// that opened it, and it is unmapped only by `drop`.
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
