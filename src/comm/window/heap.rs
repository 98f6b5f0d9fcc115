//! A window on the heap, for ranks that are threads of one process, or a node with a single rank.

use crate::comm::window::{Backing, PAGE_BYTES};
use crate::error::Result;
use crate::store::Buffer;
use std::cell::UnsafeCell;
use std::ops::Range;
use std::sync::Arc;

/// Memory on the heap, freed with the last handle.
#[derive(Clone)]
pub struct Heap(Arc<HeapBlock>);

struct HeapBlock {
    start: *mut u64,
    len: usize,
    /// Owns the words; reached only through `start`.
    _buffer: UnsafeCell<Buffer>,
}

// SAFETY: the block is plain memory behind a pointer; who may use which part of it when is the affair of
// `SharedWindow`, which hands out disjoint parts only.
unsafe impl Send for HeapBlock {}
// SAFETY: as above; no method of `HeapBlock` touches the memory.
unsafe impl Sync for HeapBlock {}

impl Heap {
    /// `words` zero words.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub fn new(words: usize) -> Result<Heap> {
        let mut buffer = Buffer::default();
        let start = buffer.words(words)?.as_mut_ptr();
        Ok(Heap(Arc::new(HeapBlock { start, len: words, _buffer: UnsafeCell::new(buffer) })))
    }

    /// Writes a zero to each page of the bytes `share`, so that they lie near this thread where they are new.
    ///
    /// # Safety
    /// Nobody else uses the words of `share`.
    pub(crate) unsafe fn touch(&self, share: Range<usize>) {
        assert!(share.end <= self.0.len * 8);
        for byte in share.step_by(PAGE_BYTES) {
            // SAFETY: inside the block by the assert, and nobody else uses the word by contract.
            unsafe { self.0.start.add(byte / 8).write(0) };
        }
    }
}

// SAFETY: a buffer's words are 64-byte aligned and stay in place while the buffer lives, which the handle sees to; all
// handles were cloned from one.
unsafe impl Backing for Heap {
    fn start(&self) -> *mut u64 {
        self.0.start
    }

    fn len(&self) -> usize {
        self.0.len
    }

    fn name(&self) -> &'static str {
        "heap"
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
