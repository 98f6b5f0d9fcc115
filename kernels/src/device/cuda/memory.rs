//! Device memory, page-locked host memory and events of a GPU.

use super::core::{Core, locked};
use super::sys::{CUdeviceptr, CUevent, CUstream};
use crate::device::{Event, RawMemory, RawPinned};
use crate::error::{Error, Result};
use std::ffi::c_void;
use std::sync::{Arc, Mutex};

/// Waiting for such an event gives the processor away instead of spinning: hosts convert numbers meanwhile. The flag
/// that would switch timing off is not set.
const BLOCKING_SYNC: u32 = 1;

/// Page-locked for every context of the process.
const PORTABLE: u32 = 1;

/// Events that a block of host memory keeps before it checks which have passed.
const LOOK_EVERY: usize = 64;

/// A block of the GPU's memory.
pub(super) struct CudaMemory {
    core: Arc<Core>,
    address: CUdeviceptr,
    bytes: usize,
}

impl CudaMemory {
    pub fn new(core: Arc<Core>, bytes: usize) -> Result<CudaMemory> {
        let address = core.allocate(bytes as u64)?;
        Ok(CudaMemory { core, address, bytes })
    }
}

// SAFETY: the driver gave the block with `bytes` bytes, and it is freed by `drop`, after all work of the GPU.
unsafe impl RawMemory for CudaMemory {
    fn address(&self) -> u64 {
        self.address
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for CudaMemory {
    fn drop(&mut self) {
        self.core.free(self.address, self.bytes as u64);
    }
}

/// A point in a stream's work.
pub(super) struct CudaEvent {
    core: Arc<Core>,
    raw: CUevent,
}

// SAFETY: an event is an opaque handle that the driver lets any thread use.
unsafe impl Send for CudaEvent {}
// SAFETY: as above; the driver's calls may come from several threads at once.
unsafe impl Sync for CudaEvent {}

impl CudaEvent {
    /// An event that nothing has recorded yet; the context is current.
    pub fn new(core: &Arc<Core>) -> Result<CudaEvent> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the context is current, and the place is for one handle.
        core.check(unsafe { (core.driver.event_create)(&mut raw, BLOCKING_SYNC) }, "make an event")?;
        Ok(CudaEvent { core: core.clone(), raw })
    }

    /// The event inside; one of another kind of device is an error.
    pub fn of(event: &Event) -> Result<&CudaEvent> {
        event.0.downcast_ref().ok_or_else(|| Error::Device("an event of another kind of device".into()))
    }

    /// Marks the end of the work that `stream` was given so far; the context is current.
    pub fn record(&self, stream: CUstream) -> Result<()> {
        // SAFETY: event and stream live, and are of the same context.
        self.core.check(unsafe { (self.core.driver.event_record)(self.raw, stream) }, "record an event")
    }

    /// Lets `stream` wait; the stream's context is current.
    pub fn hold(&self, core: &Core, stream: CUstream) -> Result<()> {
        // SAFETY: event and stream live; an event that was never recorded counts as passed.
        core.check(unsafe { (core.driver.stream_wait_event)(stream, self.raw, 0) }, "wait for an event")
    }

    /// Whether it has passed, and nothing failed before it.
    pub fn has_passed(&self) -> bool {
        // SAFETY: the event lives.
        self.core.enter().is_ok() && unsafe { (self.core.driver.event_query)(self.raw) } == 0
    }

    /// Waits on the host.
    pub fn wait(&self) -> Result<()> {
        self.core.enter()?;
        // SAFETY: the event lives.
        self.core.check(unsafe { (self.core.driver.event_synchronize)(self.raw) }, "finish the work submitted")
    }

    /// Seconds from this event to a later one; waits for both.
    pub fn seconds_to(&self, later: &CudaEvent) -> Result<f64> {
        self.wait()?;
        later.wait()?;
        let mut milliseconds = 0.0;
        // SAFETY: both events live, were made with timing on and have passed; the place is for one number.
        let status = unsafe { (self.core.driver.event_elapsed_time)(&mut milliseconds, self.raw, later.raw) };
        self.core.check(status, "read the device's clock")?;
        Ok(f64::from(milliseconds) / 1e3)
    }
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        if self.core.enter().is_ok() {
            // SAFETY: made in `new`, freed once; the driver keeps what is still to pass.
            let _ = self.core.check(unsafe { (self.core.driver.event_destroy)(self.raw) }, "free an event");
        }
    }
}

/// Page-locked host memory.
pub(super) struct CudaPinned {
    core: Arc<Core>,
    start: *mut u8,
    bytes: usize,
    under_way: Mutex<Vec<Event>>,
}

// SAFETY: the block is plain memory without owner; the contract of `RawPinned` states who touches it, and when.
unsafe impl Send for CudaPinned {}
// SAFETY: as above.
unsafe impl Sync for CudaPinned {}

impl CudaPinned {
    pub fn new(core: Arc<Core>, bytes: usize) -> Result<CudaPinned> {
        core.enter()?;
        let mut start: *mut c_void = std::ptr::null_mut();
        // SAFETY: the context is current, and the place is for one address. The driver refuses empty blocks.
        let status = unsafe { (core.driver.mem_host_alloc)(&mut start, bytes.max(1), PORTABLE) };
        let refused = || Error::OutOfMemory { bytes: bytes as u64 };
        core.check(status, "allocate page-locked memory").map_err(|error| match error {
            lost @ Error::DeviceLost(_) => lost,
            _ => refused(),
        })?;
        let start = start.cast::<u8>();
        // SAFETY: the block is ours and has `bytes` bytes.
        unsafe { start.write_bytes(0, bytes) };
        Ok(CudaPinned { core, start, bytes, under_way: Mutex::default() })
    }
}

// SAFETY: the block is aligned to a page, was zeroed, and is reached only by copies; `settle` waits for their events.
unsafe impl RawPinned for CudaPinned {
    fn pointer(&self) -> *mut u8 {
        self.start
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn settle(&self) -> Result<()> {
        let mut under_way = locked(&self.under_way);
        // An error leaves the list as it is: memory that was not waited for may still be written.
        for event in under_way.iter() {
            CudaEvent::of(event)?.wait()?;
        }
        under_way.clear();
        Ok(())
    }

    fn submitted(&self, event: Event) {
        let mut under_way = locked(&self.under_way);
        under_way.push(event);
        // Where the query fails, the list only grows, and `settle` reports why.
        if under_way.len().is_multiple_of(LOOK_EVERY) {
            under_way.retain(|event| !CudaEvent::of(event).is_ok_and(CudaEvent::has_passed));
        }
    }
}

impl Drop for CudaPinned {
    fn drop(&mut self) {
        // Where waiting fails the GPU is lost and copies nothing any more.
        let settled = self.settle();
        if settled.is_ok() && self.core.enter().is_ok() {
            // SAFETY: from `new`, given back once, and no copy that could touch it is left.
            let status = unsafe { (self.core.driver.mem_free_host)(self.start.cast()) };
            let _ = self.core.check(status, "free page-locked memory");
        }
    }
}
