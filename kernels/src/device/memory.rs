//! Memory of a device and host memory for copies, shared by count and freed when no work needs it any more.

use crate::device::Event;
use crate::error::Result;
use std::ops::{Deref, DerefMut, Range};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Memory of a device, in the form of its implementation; it is freed when dropped, after all work submitted on it.
///
/// # Safety
/// `address` never changes, and is the address of `bytes` bytes that only work submitted to the device accesses while
/// the value lives.
pub unsafe trait RawMemory: Send + Sync {
    /// Its address on the device.
    fn address(&self) -> u64;
    /// Its length.
    fn bytes(&self) -> usize;
}

/// Memory of a device.
#[derive(Clone)]
pub struct Memory(pub Arc<dyn RawMemory>);

impl Memory {
    /// Its length.
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// All of it.
    pub fn whole(&self) -> Region {
        self.region(0..self.bytes())
    }

    /// A part of the memory. If the part exceeds the memory.
    pub fn region(&self, bytes: Range<usize>) -> Region {
        assert!(bytes.start <= bytes.end && bytes.end <= self.bytes(), "{bytes:?} of {} bytes", self.bytes());
        Region { memory: self.clone(), start: bytes.start, bytes: bytes.len() }
    }
}

/// A part of a device's memory.
#[derive(Clone)]
pub struct Region {
    memory: Memory,
    start: usize,
    bytes: usize,
}

impl Region {
    /// Its address on the device.
    pub fn address(&self) -> u64 {
        self.memory.0.address() + self.start as u64
    }

    /// Its length.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// A part of it. Panics beyond the end.
    pub fn region(&self, bytes: Range<usize>) -> Region {
        assert!(bytes.start <= bytes.end && bytes.end <= self.bytes, "{bytes:?} of {} bytes", self.bytes);
        Region { memory: self.memory.clone(), start: self.start + bytes.start, bytes: bytes.len() }
    }

    /// The part from byte `start` on.
    pub fn from(&self, start: usize) -> Region {
        self.region(start..self.bytes)
    }
}

/// Host memory, in the form of a device's implementation.
///
/// # Safety
/// `pointer` addresses `bytes` initialised bytes, aligned to 64 bytes, that nothing else accesses while the value
/// lives, except for the copies submitted on it; `settle` returns when these are done.
pub unsafe trait RawPinned: Send + Sync {
    /// Its first byte.
    fn pointer(&self) -> *mut u8;
    /// Its length.
    fn bytes(&self) -> usize;
    /// Waits for all copies submitted to it or from it.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLost`].
    fn settle(&self) -> Result<()>;
    /// Records a submitted copy, which is done at `event`.
    fn submitted(&self, event: Event);
}

/// Page-locked host memory.
#[derive(Clone)]
pub struct Pinned(Arc<PinnedCell>);

struct PinnedCell {
    raw: Box<dyn RawPinned>,
    touch: Mutex<()>,
}

impl Pinned {
    /// Wraps the memory that an implementation allocated.
    pub fn new(raw: Box<dyn RawPinned>) -> Pinned {
        Pinned(Arc::new(PinnedCell { raw, touch: Mutex::new(()) }))
    }

    /// Its length.
    pub fn bytes(&self) -> usize {
        self.0.raw.bytes()
    }

    /// The value of the implementation.
    pub fn raw(&self) -> &dyn RawPinned {
        &*self.0.raw
    }

    /// Waits for the copies under way, then gives access to the bytes; no copy can be submitted until the guard is
    /// dropped.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLost`].
    pub fn lock(&self) -> Result<PinnedGuard<'_>> {
        let touch = self.0.touch.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.raw.settle()?;
        Ok(PinnedGuard { raw: &*self.0.raw, _touch: touch })
    }

    /// Submits a copy of `bytes` bytes from byte `at` on; the host cannot access the memory meanwhile. Panics beyond
    /// the end.
    ///
    /// # Errors
    /// The errors of `enqueue`, which returns the event at which the copy is done.
    pub fn submit(&self, at: usize, bytes: usize, enqueue: impl FnOnce() -> Result<Event>) -> Result<()> {
        assert!(at.checked_add(bytes).is_some_and(|end| end <= self.bytes()), "{bytes} bytes from byte {at} on");
        let _touch = self.0.touch.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.raw.submitted(enqueue()?);
        Ok(())
    }
}

/// The bytes of [`Pinned`] memory, for the host only.
pub struct PinnedGuard<'a> {
    raw: &'a dyn RawPinned,
    _touch: MutexGuard<'a, ()>,
}

impl Deref for PinnedGuard<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the memory is initialised and outlives the borrow; the guard's lock keeps other guards and new
        // copies away, and the copies submitted before it are done.
        unsafe { std::slice::from_raw_parts(self.raw.pointer(), self.raw.bytes()) }
    }
}

impl DerefMut for PinnedGuard<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the guard is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.raw.pointer(), self.raw.bytes()) }
    }
}
