//! Bytes that a program has allocated, as far as its allocator counts, and their peak.
//!
//! Independent of: who allocates.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes allocated now, through the counting allocator.
static CURRENT: AtomicUsize = AtomicUsize::new(0);
/// Largest value of `CURRENT` since the last reset.
static PEAK: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Blocks that this thread requested or enlarged, and the bytes that it got. One number for all threads would cost
    /// each block as much as the rest of its counting.
    static REQUESTS: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Bytes allocated now; 0 if the program did not install [`CountingAllocator`](crate::store::CountingAllocator).
pub fn allocated_bytes() -> u64 {
    CURRENT.load(Ordering::Relaxed) as u64
}

/// Largest number of bytes allocated at any time since [`reset_peak_bytes`].
pub fn peak_bytes() -> u64 {
    PEAK.load(Ordering::Relaxed) as u64
}

/// Starts a new peak at the bytes allocated now.
pub fn reset_peak_bytes() {
    PEAK.store(CURRENT.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// The number of blocks that the calling thread requested or enlarged.
pub fn allocation_count() -> u64 {
    REQUESTS.try_with(Cell::get).map_or(0, |(count, _)| count)
}

/// Total bytes that the calling thread allocated, regardless of the bytes that it freed: memory that is freed and
/// allocated again counts here, but not in the peak.
pub fn requested_bytes() -> u64 {
    REQUESTS.try_with(Cell::get).map_or(0, |(_, bytes)| bytes)
}

pub(super) fn grown(bytes: usize) {
    let _ = REQUESTS.try_with(|requests| {
        let (count, all) = requests.get();
        requests.set((count + 1, all + bytes as u64));
    });
    let now = CURRENT.fetch_add(bytes, Ordering::Relaxed) + bytes;
    // Mostly there is nothing to write, and reading is cheaper.
    if now > PEAK.load(Ordering::Relaxed) {
        PEAK.fetch_max(now, Ordering::Relaxed);
    }
}

pub(super) fn shrunk(bytes: usize) {
    CURRENT.fetch_sub(bytes, Ordering::Relaxed);
}
