//! How a program ends where the system refuses memory that was not requested through [`super::room`].
//!
//! Rust's allocation, GMP's and the C library's own end the process by SIGABRT then. After [`end_where_refused`] the
//! process ends with one line on standard error and the exit code of [`Error::OutOfMemory`]: from the allocator, before
//! the caller sees the refusal. Only for programs: a library leaves such things to its host. Independent of: what the
//! memory was for.

use super::counters::{grown, shrunk};
use super::room::is_asking;
use crate::error::Error;
use gmp_mpfr_sys::gmp;
use libc::{c_int, c_void};
use std::io::Write;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// Bytes set aside for the work after a refusal: reporting it, and closing files.
const RESERVE_BYTES: usize = 1 << 20;

/// Whether a refusal ends the process.
static ENDS: AtomicBool = AtomicBool::new(false);

/// Whether numbers of GMP are counted.
static COUNTS: AtomicBool = AtomicBool::new(false);

/// Memory that is given back at the first refusal.
static RESERVE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// From now on a refused allocation ends the process with an error message, unless it was requested as by
/// [`super::reserve`].
pub fn end_where_refused() {
    if ENDS.swap(true, Ordering::Relaxed) {
        return;
    }
    // SAFETY: the block is nobody else's, is never touched, and is given back once, by the code that takes it out of
    // `RESERVE`.
    RESERVE.store(unsafe { libc::malloc(RESERVE_BYTES) }, Ordering::Relaxed);
    // SAFETY: the three functions take blocks from `malloc` and give them back to it, as GMP's own do, so blocks that
    // GMP has already are no exception; they never return null, which GMP forbids.
    unsafe { gmp::set_memory_functions(Some(allocate), Some(reallocate), Some(release)) };
    let answer: extern "C" fn(c_int) = aborted;
    // SAFETY: the handler calls only what is allowed inside one: `mmap`, `munmap`, `write`, `_exit`.
    unsafe { libc::signal(libc::SIGABRT, answer as *const () as libc::sighandler_t) };
}

/// Called by the allocator: the system refused `bytes`. Returns where the caller will get a null pointer.
#[cold]
pub(super) fn refused(bytes: usize) {
    give_reserve_back();
    if ENDS.load(Ordering::Relaxed) && !is_asking() {
        end(bytes);
    }
}

fn give_reserve_back() {
    // SAFETY: only one thread gets the pointer, and null is allowed.
    unsafe { libc::free(RESERVE.swap(null_mut(), Ordering::Relaxed)) };
}

/// Reports that the system refused `bytes`, and ends the process. Allocates nothing.
fn end(bytes: usize) -> ! {
    static ENDING: AtomicBool = AtomicBool::new(false);
    let error = Error::OutOfMemory { bytes: bytes as u64 };
    if !ENDING.swap(true, Ordering::Relaxed) {
        let mut line = [0; 128];
        let mut rest = &mut line[..];
        let _ = writeln!(rest, "sunzi: error: {error}");
        let unused = rest.len();
        // SAFETY: the bytes are those of the line; a failure of the call cannot be reported and is ignored.
        unsafe { libc::write(2, line.as_ptr().cast(), line.len() - unused) };
        // SAFETY: ends the process without running anything of it.
        unsafe { libc::_exit(error.exit_code().into()) };
    }
    loop {
        // Another thread is at it.
        std::thread::park();
    }
}

/// From now on [`super::allocated_bytes`] includes numbers of GMP and MPFR: for programs with
/// [`super::CountingAllocator`] that have no such numbers yet.
pub fn count_numbers() {
    COUNTS.store(true, Ordering::Relaxed);
    // SAFETY: as in `end_where_refused`.
    unsafe { gmp::set_memory_functions(Some(allocate), Some(reallocate), Some(release)) };
}

fn count(old_bytes: usize, bytes: usize) {
    if COUNTS.load(Ordering::Relaxed) {
        shrunk(old_bytes);
        grown(bytes);
    }
}

extern "C" fn allocate(bytes: usize) -> *mut c_void {
    count(0, bytes);
    // SAFETY: any size may be requested.
    or_end(bytes, || unsafe { libc::malloc(bytes) })
}

/// As GMP's own function.
///
/// # Safety
/// `block` came from [`allocate`] or this function.
unsafe extern "C" fn reallocate(block: *mut c_void, old_bytes: usize, bytes: usize) -> *mut c_void {
    count(old_bytes, bytes);
    // SAFETY: by contract; a refusal leaves the block as it was.
    or_end(bytes, || unsafe { libc::realloc(block, bytes) })
}

/// As GMP's own function.
///
/// # Safety
/// `block` came from [`allocate`] or [`reallocate`], and is not used any more.
unsafe extern "C" fn release(block: *mut c_void, bytes: usize) {
    count(bytes, 0);
    // SAFETY: by contract.
    unsafe { libc::free(block) }
}

fn or_end(bytes: usize, get: impl Fn() -> *mut c_void) -> *mut c_void {
    let block = get();
    if !block.is_null() {
        return block;
    }
    give_reserve_back();
    end(bytes)
}

/// Where the C library aborts because it gets no memory for itself, the end is the same; else it aborts.
extern "C" fn aborted(_signal: c_int) {
    if super::address_space(RESERVE_BYTES).is_err() {
        end(RESERVE_BYTES);
    }
}
