//! A stream of a GPU, with its handle of cuBLAS.

use super::blas::Handle;
use super::core::{Core, locked};
use super::memory::CudaEvent;
use super::sys::CUstream;
use crate::device::{Gemm, Trsm};
use crate::error::Result;
use std::sync::{Arc, Mutex};

/// No waiting for the context's default stream, which other libraries in the process may use.
const NON_BLOCKING: u32 = 1;

/// A stream.
pub(super) struct Queue {
    core: Arc<Core>,
    raw: CUstream,
    /// Made by the first product, since it takes memory and time.
    handle: Mutex<Option<Handle>>,
}

// SAFETY: a stream is an opaque handle that the driver lets any thread use; the handle of cuBLAS is behind its mutex.
unsafe impl Send for Queue {}
// SAFETY: as above.
unsafe impl Sync for Queue {}

impl Queue {
    /// A new stream; the context is current.
    pub fn new(core: &Arc<Core>) -> Result<Queue> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the context is current, and the place is for one handle.
        core.check(unsafe { (core.driver.stream_create)(&mut raw, NON_BLOCKING) }, "make a stream")?;
        Ok(Queue { core: core.clone(), raw, handle: Mutex::default() })
    }

    pub fn raw(&self) -> CUstream {
        self.raw
    }

    /// An event at the end of what was submitted so far.
    pub fn record(&self) -> Result<CudaEvent> {
        let event = CudaEvent::new(&self.core)?;
        event.record(self.raw)?;
        Ok(event)
    }

    /// Submits what `enqueue` does, followed by an event. The event is made first, and where recording it fails the
    /// work is waited for: no copy is ever under way that nobody can wait for.
    pub fn with_event(&self, enqueue: impl FnOnce(CUstream) -> Result<()>) -> Result<CudaEvent> {
        let event = CudaEvent::new(&self.core)?;
        enqueue(self.raw)?;
        if let Err(error) = event.record(self.raw) {
            // SAFETY: the stream lives.
            unsafe { (self.core.driver.stream_synchronize)(self.raw) };
            return Err(error);
        }
        Ok(event)
    }

    /// Submits zeros to `count` rows of `bytes` bytes each, `pitch` bytes apart.
    pub fn clear(&self, address: u64, pitch: usize, bytes: usize, count: usize) -> Result<()> {
        if bytes == 0 || count == 0 {
            return Ok(());
        }
        // SAFETY: the caller's rows lie in a region of this GPU that is freed after the work submitted.
        let status = unsafe {
            match count {
                1 => (self.core.driver.set_bytes)(address, 0, bytes, self.raw),
                _ => (self.core.driver.set_rows)(address, pitch, 0, bytes, count, self.raw),
            }
        };
        self.core.check(status, "write zeros")
    }

    /// Submits a batch of products; `false` where only the slow kernel can do it.
    pub fn multiply(&self, gemm: &Gemm) -> Result<bool> {
        if gemm.m == 0 || gemm.n == 0 || gemm.batch == 0 {
            return Ok(true);
        }
        if gemm.k == 0 {
            return self.multiply_nothing(gemm).map(|()| true);
        }
        self.with_handle(|handle| handle.multiply(gemm))
    }

    /// A product of no columns: zeros, or C as it is.
    fn multiply_nothing(&self, gemm: &Gemm) -> Result<()> {
        let element = gemm.element.product_bytes();
        let batch = if gemm.accumulate { 0 } else { gemm.batch };
        for index in 0..batch {
            let start = gemm.c.region.address() + (index * gemm.c.stride * element) as u64;
            self.clear(start, gemm.c.ld * element, gemm.m * element, gemm.n)?;
        }
        Ok(())
    }

    /// Submits a triangular solve.
    pub fn solve(&self, trsm: &Trsm) -> Result<()> {
        if trsm.m == 0 || trsm.n == 0 {
            return Ok(());
        }
        self.with_handle(|handle| handle.solve(trsm))
    }

    fn with_handle<T>(&self, call: impl FnOnce(&Handle) -> Result<T>) -> Result<T> {
        let mut handle = locked(&self.handle);
        match &*handle {
            Some(handle) => call(handle),
            None => call(handle.insert(Handle::new(&self.core, self.raw)?)),
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.core.synchronize().is_err() {
            // Nothing of a lost GPU can be freed.
            return;
        }
        locked(&self.handle).take();
        // SAFETY: made in `new`, freed once, and its work is done.
        let _ = self.core.check(unsafe { (self.core.driver.stream_destroy)(self.raw) }, "free a stream");
    }
}
