//! A window in memory that MPI shares between processes (`MPI_Win_allocate_shared`).
//!
//! All of it is allocated as rank 0's part, so that it is in one piece; its pages lie where they are first touched, and
//! each rank touches an equal range of them when the window is opened.
//! MPI may return pages that are not backed by memory when they are touched: Open MPI 4 only compares sizes, and where
//! the comparison fails its rank 0 returns while the other ranks wait for ever. So the space is checked before MPI is
//! called, and each rank has the system provide its pages before it touches them; meanwhile no other group of this
//! library on the machine, even of another job, opens a window. The remaining risk is a foreign program that takes the
//! space between the check and the call; then rank 0 ends the job rather than let the others wait.

use crate::comm::mpi::gate::Gate;
use crate::comm::mpi::{result, sys};
use crate::comm::window::{Backing, PAGE_BYTES, WindowKind, again, huge, page_share, room};
use crate::comm::{Reduction, Transport, agree, agreed};
use crate::error::{Error, Result};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use rustix::mm::{Advice, madvise};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::time::{Duration, Instant};

/// Memory of an MPI window.
///
/// Freeing it takes all ranks ([`Backing::close`]); where it is dropped instead, the memory stays until the process
/// ends.
pub struct MpiWindow {
    window: sys::MPI_Win,
    start: *mut u64,
    len: usize,
    /// Whether `start` is where we have mapped MPI's memory once more.
    mapped_again: bool,
}

// SAFETY: plain memory behind a pointer, whose users `SharedWindow` keeps apart, and a handle of MPI, which any thread
// may use that MPI allows to call, as `Gate` checks.
unsafe impl Send for MpiWindow {}
// SAFETY: as above; no method touches the memory, and `sync` may run on several threads.
unsafe impl Sync for MpiWindow {}

impl MpiWindow {
    /// `words` zero words that all ranks of `group` share; `allocate` makes the window, given a number of bytes.
    /// Collective.
    ///
    /// # Errors
    /// Exit code 4 on every rank where the memory is not there; [`Error::Transport`].
    pub fn open(
        group: &dyn Transport,
        words: usize,
        allocate: impl FnOnce(usize) -> Result<sys::MPI_Win>,
    ) -> Result<MpiWindow> {
        let bytes = words.checked_mul(8).filter(|&bytes| bytes <= isize::MAX as usize - 2 * PAGE_BYTES);
        let bytes = bytes.ok_or(Error::OutOfMemory { bytes: u64::MAX })?;
        let _claim = (group.rank() == 0).then(|| claim(&room::folder(WindowKind::Mpi)));
        agree(group, if group.rank() == 0 { room::check(WindowKind::Mpi, bytes as u64) } else { Ok(()) })?;
        let made = allocate(bytes + PAGE_BYTES);
        if made.is_err() && group.size() > 1 && result::library().contains("Open MPI") {
            group.abort(Error::OutOfMemory { bytes: bytes as u64 }.exit_code());
        }
        let window = agreed(group, made)?;
        // SAFETY: the window has just been made, and nobody has used it.
        let (start, offset) = agreed(group, unsafe { begin(window) })?;
        LIVE.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the words are mapped until the window is freed, after which nobody uses them.
        let again = unsafe { again::map_again(start.cast(), bytes) };
        let start = again.map_or(start, |again| again.cast());
        let window = MpiWindow { window, start, len: words, mapped_again: again.is_some() };
        let share = page_share(group.rank(), group.size(), bytes);
        if window.mapped_again {
            // SAFETY: mapped by the rule that huge pages take.
            unsafe { huge::join(start.cast(), bytes, share.clone()) };
        }
        // A page of this rank may overlap the next rank's part, which must not be filled meanwhile.
        agree(group, Ok(()))?;
        // SAFETY: the share lies inside the window, and no other rank uses it before all have agreed below.
        let provided = unsafe { provide(start.cast::<u8>(), bytes, share) };
        window.sync();
        let outcome = agree(group, provided).and_then(|()| same_on_all(group, offset));
        window.sync();
        match outcome {
            Ok(()) => Ok(window),
            Err(error) => Box::new(window).close().and(Err(error)),
        }
    }
}

impl MpiWindow {
    /// Removes this rank's own mapping of the memory, if there is one: the words are not used any more.
    fn forget(&mut self) {
        if std::mem::take(&mut self.mapped_again) {
            // SAFETY: mapped when the window was opened, with this length, and used only through this value, which is
            // about to be dropped.
            unsafe { again::forget(self.start.cast(), self.len * 8) };
        }
    }
}

/// The longest wait of a group for another that opens a window; a longer time indicates a fault of the other group.
const CLAIM_LIMIT: Duration = Duration::from_secs(60);

/// Keeps other groups on this machine from opening windows while the file is open, which ends with the process at the
/// latest; `None` where the folder cannot be locked.
fn claim(folder: &Path) -> Option<OwnedFd> {
    let file = open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let start = Instant::now();
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Some(file),
            Err(Errno::WOULDBLOCK | Errno::INTR) if start.elapsed() < CLAIM_LIMIT => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(_) => return None,
        }
    }
}

/// Opens the window for loads and stores; returns its first word on a page boundary, and how far that is from the
/// start of MPI's memory.
///
/// # Safety
/// `window` is live, all of it is rank 0's part, and it has a page more than is needed.
unsafe fn begin(window: sys::MPI_Win) -> Result<(*mut u64, usize)> {
    let gate = Gate::enter()?;
    // SAFETY: a live window without an open epoch, by contract.
    let (start, _) = gate.call(|| unsafe {
        result::window::return_errors(window)?;
        result::window::lock_all(window)?;
        result::window::first_part(window)
    })?;
    let offset = start.align_offset(PAGE_BYTES);
    // SAFETY: less than a page, inside the memory by contract.
    Ok((unsafe { start.add(offset) }.cast(), offset))
}

/// Makes sure that all ranks skip as many bytes to the page boundary: else their words would not be the same.
fn same_on_all(group: &dyn Transport, offset: usize) -> Result<()> {
    let mut extremes = [offset as u64, !(offset as u64)];
    group.all_reduce(Reduction::Max, &mut extremes)?;
    let same = extremes[0] == !extremes[1];
    let refusal = || Error::Transport("the ranks map an MPI window at different offsets within a page".into());
    if same { Ok(()) } else { Err(refusal()) }
}

/// Has the system provide the pages of `share`, as an error now rather than a signal later, and writes zeros there: a
/// file that is new holds zeros, but MPI does not promise one.
///
/// # Safety
/// `bytes` bytes at `start`, which lies on a page boundary, are mapped; nobody else uses those of `share`.
unsafe fn provide(start: *mut u8, bytes: usize, share: Range<usize>) -> Result<()> {
    // SAFETY: mapped by contract; advice on huge pages changes no contents, and a refusal does not matter.
    let _ = unsafe { madvise(start.cast(), bytes, Advice::LinuxHugepage) };
    if share.is_empty() {
        return Ok(());
    }
    // SAFETY: inside the mapping by contract.
    let first = unsafe { start.add(share.start) };
    loop {
        // SAFETY: as above; pages are provided, contents stay.
        match unsafe { madvise(first.cast(), share.len(), Advice::LinuxPopulateWrite) } {
            // Systems before Linux 5.14 do not support the advice; then the check of the free space must be enough.
            Ok(()) | Err(Errno::INVAL) => break,
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return Err(Error::OutOfMemory { bytes: bytes as u64 }),
        }
    }
    // SAFETY: inside the mapping, and nobody else uses it, by contract.
    unsafe { first.write_bytes(0, share.len()) };
    Ok(())
}

/// Windows whose memory may be in use.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// Number of windows that are neither closed nor dropped.
pub fn live() -> usize {
    LIVE.load(Ordering::SeqCst)
}

impl Drop for MpiWindow {
    /// The memory is not used any more; MPI keeps it until it ends, unless `close` has freed it.
    fn drop(&mut self) {
        self.forget();
        LIVE.fetch_sub(1, Ordering::SeqCst);
    }
}

// SAFETY: `begin` found the memory of all ranks at a page boundary, at the same place of it (`same_on_all`); it stays
// until `close`, and where the value is dropped until the process ends.
unsafe impl Backing for MpiWindow {
    fn start(&self) -> *mut u64 {
        self.start
    }

    fn len(&self) -> usize {
        self.len
    }

    fn name(&self) -> &'static str {
        "mpi"
    }

    fn sync(&self) {
        fence(Ordering::SeqCst);
        if let Ok(gate) = Gate::enter() {
            // SAFETY: the window lives until `close`, and its epoch is open.
            let _ = gate.call(|| unsafe { result::window::sync(self.window) });
        }
        fence(Ordering::SeqCst);
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        // Before all ranks meet in the call that frees: else one may find the memory still held by another.
        self.forget();
        let gate = Gate::enter()?;
        // SAFETY: the window is live and its epoch open; `self` is consumed, so nothing of it is used again.
        gate.call(|| unsafe {
            result::window::unlock_all(self.window)?;
            result::window::free(self.window)
        })
    }
}
