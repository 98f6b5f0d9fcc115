//! Words with pages before and behind them that end the process where they are touched: for tests of code that reads
//! and writes through pointers.

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::ops::{Deref, DerefMut};
use std::ptr::null_mut;

/// Bytes of the longest pages that systems have.
const PAGE: usize = 1 << 16;

/// Words whose last one is the last of its page.
pub struct Fenced {
    start: *mut u8,
    bytes: usize,
    first: *mut u64,
    count: usize,
}

impl Fenced {
    /// Copies `words`.
    pub fn new(words: &[u64]) -> Fenced {
        let size = size_of_val(words);
        let inner = size.next_multiple_of(PAGE);
        let bytes = inner + 2 * PAGE;
        // SAFETY: new pages at an address of the system's choice; those protected are the last and the first of them.
        let start: *mut u8 = unsafe {
            let both = ProtFlags::READ | ProtFlags::WRITE;
            let start = mmap_anonymous(null_mut(), bytes, both, MapFlags::PRIVATE).expect("some pages").cast::<u8>();
            for fence in [start, start.add(PAGE + inner)] {
                mprotect(fence.cast(), PAGE, MprotectFlags::empty()).expect("pages of our own");
            }
            start
        };
        let first = start.wrapping_add(PAGE + inner - size).cast();
        let mut fenced = Fenced { start, bytes, first, count: words.len() };
        fenced.copy_from_slice(words);
        fenced
    }
}

impl Deref for Fenced {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        // SAFETY: these words lie in pages of our own, and begin at 0.
        unsafe { std::slice::from_raw_parts(self.first, self.count) }
    }
}

impl DerefMut for Fenced {
    fn deref_mut(&mut self) -> &mut [u64] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.first, self.count) }
    }
}

impl Drop for Fenced {
    fn drop(&mut self) {
        // SAFETY: these pages are our own, and nothing else has their address.
        unsafe { munmap(self.start.cast(), self.bytes).expect("pages of our own") };
    }
}
