//! Bytes that a program has allocated, as far as its allocator tells, and the most of them.
//!
//! Does not know: who allocates.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes allocated now, through the counting allocator.
static CURRENT: AtomicUsize = AtomicUsize::new(0);
/// Largest value of `CURRENT` since the last reset.
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Blocks that were asked for, or asked to grow, since the program began.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Bytes allocated now; 0 where the program did not install [`CountingAllocator`](crate::store::CountingAllocator).
pub fn allocated_bytes() -> u64 {
    CURRENT.load(Ordering::Relaxed) as u64
}

/// Most bytes allocated at any time since [`reset_peak_bytes`].
pub fn peak_bytes() -> u64 {
    PEAK.load(Ordering::Relaxed) as u64
}

/// Starts a new peak at the bytes allocated now.
pub fn reset_peak_bytes() {
    PEAK.store(CURRENT.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// How often a block was asked for, or asked to grow, since the program began.
pub fn allocation_count() -> u64 {
    COUNT.load(Ordering::Relaxed) as u64
}

pub(super) fn grown(bytes: usize) {
    COUNT.fetch_add(1, Ordering::Relaxed);
    let before = CURRENT.fetch_add(bytes, Ordering::Relaxed);
    PEAK.fetch_max(before + bytes, Ordering::Relaxed);
}

pub(super) fn shrunk(bytes: usize) {
    CURRENT.fetch_sub(bytes, Ordering::Relaxed);
}
