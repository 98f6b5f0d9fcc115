//! A global allocator that counts bytes, for a program that needs the peak of one call.
//!
//! Installed by the program (`#[global_allocator]`), never by the library. Zeroed memory and growing are left to the
//! system: zero pages are returned untouched, and a block that grows is not copied if the system can move it. Small
//! blocks are cleared here, as the GNU C library keeps no list of free ones for those that it clears. A refusal is
//! reported to [`super::end_where_refused`]. Does not see what C libraries allocate for themselves (BLAS buffers; GMP's
//! numbers only where [`super::count_numbers`] was called).

use super::counters::{grown, shrunk};
use super::refusal::refused;
use std::alloc::{GlobalAlloc, Layout, System};

/// Bytes up to which a block is cleared here: the GNU C library gives blocks of up to about this size from lists that
/// each thread has for itself, without a lock, but none that it clears; those come from the heap, and, as the lists are
/// full after the first few, go back to it.
const SMALL_BYTES: usize = 1024;

/// The system's allocator with counters; see [`super::allocated_bytes`] and [`super::peak_bytes`].
pub struct CountingAllocator;

// SAFETY: every method hands its arguments to the system's allocator unchanged and returns what that returned, so the
// contract of `GlobalAlloc` holds because it holds there; but `alloc_zeroed` asks for small blocks with `alloc`, which
// has the same contract, and clears all their bytes itself. The counters touch no allocated memory and do not unwind,
// and after a refusal the process ends, or null is returned.
unsafe impl GlobalAlloc for CountingAllocator {
    // SAFETY: as `GlobalAlloc::alloc`; the body hands the demands on.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        let block = unsafe { System.alloc(layout) };
        match block.is_null() {
            true => refused(layout.size()),
            false => grown(layout.size()),
        }
        block
    }

    // SAFETY: as `GlobalAlloc::alloc_zeroed`; the body hands the demands on.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() <= SMALL_BYTES {
            // SAFETY: the contract of `alloc` is the same.
            let block = unsafe { self.alloc(layout) };
            if !block.is_null() {
                // SAFETY: the block has `layout.size()` bytes, and is not shared yet.
                unsafe { block.write_bytes(0, layout.size()) };
            }
            return block;
        }
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        let block = unsafe { System.alloc_zeroed(layout) };
        match block.is_null() {
            true => refused(layout.size()),
            false => grown(layout.size()),
        }
        block
    }

    // SAFETY: as `GlobalAlloc::dealloc`; the body hands the demands on.
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`; `block` came from the system's allocator.
        unsafe { System.dealloc(block, layout) };
        shrunk(layout.size());
    }

    // SAFETY: as `GlobalAlloc::realloc`; the body hands the demands on.
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `realloc`; `block` came from the system's allocator.
        let moved = unsafe { System.realloc(block, layout, new_size) };
        if moved.is_null() {
            refused(new_size);
        } else if new_size >= layout.size() {
            grown(new_size - layout.size());
        } else {
            shrunk(layout.size() - new_size);
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{allocated_bytes, peak_bytes, reset_peak_bytes};

    #[test]
    fn every_way_to_allocate_is_counted() {
        // The test binary does not install the allocator, so only these calls move the counters.
        let start = allocated_bytes();
        reset_peak_bytes();
        let layout = Layout::from_size_align(1000, 8).unwrap();
        let larger = Layout::from_size_align(3000, 8).unwrap();
        // SAFETY: sizes are not 0, and each block is given back with the layout it has.
        unsafe {
            let block = CountingAllocator.alloc(layout);
            let dirty = CountingAllocator.alloc(layout);
            dirty.write_bytes(0xff, 1000);
            CountingAllocator.dealloc(dirty, layout);
            let zeros = CountingAllocator.alloc_zeroed(layout);
            assert!(!block.is_null() && !zeros.is_null());
            assert_eq!(std::slice::from_raw_parts(zeros, 1000).iter().map(|&byte| u64::from(byte)).sum::<u64>(), 0);
            assert_eq!(allocated_bytes() - start, 2000);
            let block = CountingAllocator.realloc(block, layout, 3000);
            assert_eq!((allocated_bytes() - start, peak_bytes() - start), (4000, 4000));
            let zeros = CountingAllocator.realloc(zeros, layout, 500);
            assert_eq!((allocated_bytes() - start, peak_bytes() - start), (3500, 4000));
            CountingAllocator.dealloc(block, larger);
            CountingAllocator.dealloc(zeros, Layout::from_size_align(500, 8).unwrap());
        }
        assert_eq!((allocated_bytes(), peak_bytes()), (start, start + 4000));
        reset_peak_bytes();
        assert_eq!(peak_bytes(), start);
    }
}
