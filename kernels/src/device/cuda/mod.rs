//! CUDA devices, whose libraries are loaded at run time: a missing library gives an error, never a panic.
//!
//! One build supports CUDA 12 and CUDA 13; the first version on the search path is used. All calls may come from any
//! thread; each makes the GPU's context current on it. After a failure that makes the device unusable (an illegal
//! address, a memory error, a GPU that is no longer on the bus) every later call returns [`Error::DeviceLost`].

mod blas;
mod compile;
mod core;
mod memory;
mod probe;
mod queue;
mod sys;
#[cfg(test)]
mod tests;

pub use self::compile::{compile, compiler_version};
pub use self::probe::probe;

use self::core::{Core, CudaAccount, locked};
use self::memory::{CudaEvent, CudaMemory, CudaPinned};
use self::probe::Installation;
use self::queue::Queue;
use self::sys::{CUfunction, CUmodule};
use crate::device::users::{self, User};
use crate::device::{
    Argument, Defines, Description, Device, DeviceAllocator, DeviceEvents, DeviceStatus, Event, Gemm, GemmOperand,
    Kernel, Memory, Pinned, Region, Stream, Traffic, Trsm,
};
use crate::error::{Error, Result};
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

/// Threads of a block of every kernel.
const BLOCK_THREADS: u64 = 256;

/// The largest number of blocks of a launch.
const GRID_BLOCKS: u64 = i32::MAX as u64;

/// Memory left to the libraries' scratch blocks, compiled kernels and other processes where no limit is given, and the
/// share of a small GPU that is left at most.
const RESERVE_BYTES: u64 = 1 << 30;
const RESERVE_SHARE: u64 = 8;

/// The product in bytes for shapes that cuBLAS refuses.
const FALLBACK: (&str, &str) = ("product_i8", include_str!("fallback.cu"));

/// The key of compiled kernels: where the source lies and its length, the name, the constants.
type Key = (usize, usize, &'static str, Vec<(&'static str, u64)>);

/// A compiled kernel on the GPU.
struct Module {
    core: Arc<Core>,
    raw: CUmodule,
    function: CUfunction,
}

// SAFETY: both are opaque handles that the driver lets any thread use.
unsafe impl Send for Module {}

impl Drop for Module {
    fn drop(&mut self) {
        if self.core.enter().is_ok() {
            // SAFETY: loaded once, unloaded once; the streams that ran it were waited for before.
            let _ = self.core.check(unsafe { (self.core.driver.module_unload)(self.raw) }, "unload a kernel");
        }
    }
}

/// A CUDA GPU.
pub struct CudaDevice {
    // Dropped in this order: a stream waits for its work, which modules must outlive.
    queues: RwLock<Vec<Arc<Queue>>>,
    /// Streams that were returned for reuse.
    idle: Mutex<Vec<Stream>>,
    modules: Mutex<HashMap<Key, Module>>,
    core: Arc<Core>,
    description: Description,
    capability: (u32, u32),
    identity: u64,
    /// Set once a context uses the device; all processes of the machine see it.
    user: OnceLock<Option<User>>,
}

impl CudaDevice {
    /// Opens a GPU, counted from 0. At most `capacity_limit` bytes of its memory are used, and never more than is free
    /// at this time minus a reserve for the libraries.
    ///
    /// # Errors
    /// [`Error::NoDevice`] as for [`probe`], and if the GPU does not exist or cannot be opened.
    pub fn open(index: usize, capacity_limit: Option<u64>) -> Result<CudaDevice> {
        let installation = Installation::find()?;
        let device = installation.device(index)?;
        let (description, capability) = (installation.describe(index)?, installation.capability(device)?);
        let identity = installation.identity(device)?;
        let core = Core::new(installation.driver, device)?;
        *locked(&core.account) = CudaAccount::new(capacity(core.free_bytes()?, capacity_limit));
        let core = Arc::new(core);
        Ok(CudaDevice {
            queues: RwLock::default(),
            idle: Mutex::default(),
            modules: Mutex::default(),
            core,
            description,
            capability,
            identity,
            user: OnceLock::new(),
        })
    }

    /// Compute capability, `(9, 0)` for 9.0.
    pub fn compute_capability(&self) -> (u32, u32) {
        self.capability
    }

    /// The stream, with the GPU's context current. Panics on a stream of another device.
    fn queue(&self, stream: Stream) -> Result<Arc<Queue>> {
        self.core.enter()?;
        Ok(self.queues.read().unwrap_or_else(PoisonError::into_inner)[stream.0].clone())
    }

    /// A kernel on the GPU, compiled by the first call for it. Kernels stay for the device's life.
    fn function(&self, source: &'static str, name: &'static str, defines: Defines<'_>) -> Result<CUfunction> {
        let mut modules = locked(&self.modules);
        let key = (source.as_ptr() as usize, source.len(), name, defines.to_vec());
        if let Some(module) = modules.get(&key) {
            return Ok(module.function);
        }
        let (major, minor) = self.capability;
        let module = self.load(&compile(source, name, defines, major * 10 + minor)?, name)?;
        Ok(modules.entry(key).or_insert(module).function)
    }

    fn load(&self, code: &[u8], name: &str) -> Result<Module> {
        let (core, driver) = (self.core.clone(), self.core.driver);
        let name = CString::new(name).map_err(|_| Error::Device("a kernel's name holds a zero byte".into()))?;
        let (mut raw, mut function) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the code is machine code, which states its length, or PTX, which the compiler ends with a zero; it is
        // copied.
        self.core.check(unsafe { (driver.module_load)(&mut raw, code.as_ptr().cast()) }, "load a kernel")?;
        let mut module = Module { core, raw, function };
        // SAFETY: the module lives, and the name ends with a zero.
        let status = unsafe { (driver.module_get_function)(&mut function, raw, name.as_ptr()) };
        self.core.check(status, "find a kernel by its name")?;
        module.function = function;
        Ok(module)
    }

    /// Submits threads of a function with eight-byte arguments.
    ///
    /// # Safety
    /// As [`Device::launch`].
    unsafe fn submit(&self, queue: &Queue, function: CUfunction, threads: u64, words: &[u64]) -> Result<()> {
        let blocks = threads.div_ceil(BLOCK_THREADS);
        if blocks > GRID_BLOCKS {
            return Err(Error::Device(format!("{threads} threads exceed the size of one launch")));
        }
        let (mut threads, mut words) = (threads, words.to_vec());
        // A structure without fields still has a byte.
        words.push(0);
        let mut parameters: [*mut c_void; 2] = [(&raw mut threads).cast(), words.as_mut_ptr().cast()];
        let null = std::ptr::null_mut();
        // SAFETY: the function takes a number and a structure of these words, which are copied before the call returns;
        // the caller is responsible for what the threads do with them.
        let status = unsafe {
            let launch = self.core.driver.launch_kernel;
            let (grid, block) = (blocks as u32, BLOCK_THREADS as u32);
            launch(function, grid, 1, 1, block, 1, 1, 0, queue.raw(), parameters.as_mut_ptr(), null)
        };
        self.core.check(status, "launch a kernel")
    }

    /// A product in bytes by a kernel that takes every shape.
    fn multiply_slowly(&self, queue: &Queue, gemm: &Gemm) -> Result<()> {
        let function = self.function(FALLBACK.1, FALLBACK.0, &[])?;
        let threads = gemm.m as u64 * gemm.n as u64 * gemm.batch as u64;
        // SAFETY: these are the fields of the kernel's arguments, in their order; `Gemm::check` found that all matrices
        // lie in their regions, and no two threads write the same entry.
        unsafe { self.submit(queue, function, threads, &fallback_words(gemm)) }
    }
}

/// The arguments of the slow product.
fn fallback_words(gemm: &Gemm) -> [u64; 13] {
    let Gemm { a, b, c, m, n, k, .. } = gemm;
    let address = |operand: &GemmOperand| operand.region.address();
    let sizes = [*m, *n, *k, a.ld, b.ld, c.ld, a.stride, b.stride, c.stride, usize::from(gemm.accumulate)];
    let mut words = [0; 13];
    words[..3].copy_from_slice(&[address(a), address(b), address(c)]);
    words[3..].copy_from_slice(&sizes.map(|number| number as u64));
    words
}

/// Bytes that may be used, of those that are free.
fn capacity(free_bytes: u64, limit_bytes: Option<u64>) -> u64 {
    let usable = free_bytes - RESERVE_BYTES.min(free_bytes / RESERVE_SHARE);
    limit_bytes.map_or(usable, |limit| limit.min(usable))
}

impl DeviceStatus for CudaDevice {
    fn description(&self) -> Description {
        self.description.clone()
    }

    fn identity(&self) -> u64 {
        self.identity
    }

    fn announce(&self) {
        self.user.get_or_init(|| User::new(self.identity));
    }

    fn users(&self) -> usize {
        users::count(self.identity)
    }

    fn capacity_bytes(&self) -> u64 {
        locked(&self.core.account).capacity_bytes
    }

    fn used_bytes(&self) -> u64 {
        locked(&self.core.account).used_bytes
    }

    fn peak_bytes(&self) -> u64 {
        locked(&self.core.account).peak_bytes
    }

    fn traffic(&self) -> Traffic {
        *locked(&self.core.traffic)
    }
}

impl DeviceAllocator for CudaDevice {
    fn allocate(&self, bytes: usize) -> Result<Memory> {
        Ok(Memory(Arc::new(CudaMemory::new(self.core.clone(), bytes)?)))
    }

    fn allocate_pinned(&self, bytes: usize) -> Result<Pinned> {
        Ok(Pinned::new(Box::new(CudaPinned::new(self.core.clone(), bytes)?)))
    }
}

impl DeviceEvents for CudaDevice {
    fn record(&self, stream: Stream) -> Result<Event> {
        Ok(Event(Arc::new(self.queue(stream)?.record()?)))
    }

    fn wait(&self, stream: Stream, event: &Event) -> Result<()> {
        let queue = self.queue(stream)?;
        CudaEvent::of(event)?.hold(&self.core, queue.raw())
    }

    fn synchronize(&self, event: &Event) -> Result<()> {
        CudaEvent::of(event)?.wait()
    }

    fn seconds_between(&self, from: &Event, to: &Event) -> Result<f64> {
        CudaEvent::of(from)?.seconds_to(CudaEvent::of(to)?)
    }
}

impl Device for CudaDevice {
    fn stream(&self) -> Result<Stream> {
        self.core.enter()?;
        if let Some(stream) = locked(&self.idle).pop() {
            return Ok(stream);
        }
        let queue = Arc::new(Queue::new(&self.core)?);
        let mut queues = self.queues.write().unwrap_or_else(PoisonError::into_inner);
        queues.push(queue);
        Ok(Stream(queues.len() - 1))
    }

    fn retire(&self, stream: Stream) {
        locked(&self.idle).push(stream);
    }

    fn upload(&self, stream: Stream, from: &Pinned, at: usize, to: &Region) -> Result<()> {
        self.core.check_owner(to);
        let queue = self.queue(stream)?;
        from.submit(at, to.bytes(), || {
            let event = queue.with_event(|raw| {
                if to.bytes() == 0 {
                    return Ok(());
                }
                // SAFETY: `Pinned::submit` checked the range; the host stays away until the event has passed, and the
                // region is memory of this GPU that is freed after the work submitted.
                let status = unsafe {
                    let start = from.raw().pointer().add(at).cast();
                    (self.core.driver.copy_to_device)(to.address(), start, to.bytes(), raw)
                };
                self.core.check(status, "copy to the device")
            })?;
            let mut traffic = locked(&self.core.traffic);
            traffic.h2d_bytes += to.bytes() as u64;
            traffic.h2d_copies += 1;
            Ok(Event(Arc::new(event)))
        })
    }

    fn download(&self, stream: Stream, from: &Region, to: &Pinned, at: usize) -> Result<()> {
        self.core.check_owner(from);
        let queue = self.queue(stream)?;
        to.submit(at, from.bytes(), || {
            let event = queue.with_event(|raw| {
                if from.bytes() == 0 {
                    return Ok(());
                }
                // SAFETY: as for uploads.
                let status = unsafe {
                    let start = to.raw().pointer().add(at).cast();
                    (self.core.driver.copy_to_host)(start, from.address(), from.bytes(), raw)
                };
                self.core.check(status, "copy from the device")
            })?;
            let mut traffic = locked(&self.core.traffic);
            traffic.d2h_bytes += from.bytes() as u64;
            traffic.d2h_copies += 1;
            Ok(Event(Arc::new(event)))
        })
    }

    fn copy(&self, stream: Stream, from: &Region, to: &Region) -> Result<()> {
        assert_eq!(from.bytes(), to.bytes(), "regions of equal length");
        self.core.check_owner(from);
        self.core.check_owner(to);
        let queue = self.queue(stream)?;
        if to.bytes() == 0 {
            return Ok(());
        }
        // SAFETY: both regions are memory of this GPU that is freed after the work submitted.
        let status =
            unsafe { (self.core.driver.copy_on_device)(to.address(), from.address(), to.bytes(), queue.raw()) };
        self.core.check(status, "copy on the device")
    }

    fn clear(&self, stream: Stream, region: &Region) -> Result<()> {
        self.core.check_owner(region);
        self.queue(stream)?.clear(region.address(), 0, region.bytes(), 1)
    }

    fn multiply(&self, stream: Stream, gemm: &Gemm) -> Result<()> {
        gemm.check();
        [&gemm.a, &gemm.b, &gemm.c].iter().for_each(|operand| self.core.check_owner(&operand.region));
        let queue = self.queue(stream)?;
        match queue.multiply(gemm)? {
            true => Ok(()),
            false => self.multiply_slowly(&queue, gemm),
        }
    }

    fn solve(&self, stream: Stream, trsm: &Trsm) -> Result<()> {
        trsm.check();
        [&trsm.l, &trsm.b].iter().for_each(|operand| self.core.check_owner(&operand.region));
        self.queue(stream)?.solve(trsm)
    }

    unsafe fn launch(
        &self,
        stream: Stream,
        kernel: &Kernel,
        defines: Defines<'_>,
        threads: u64,
        arguments: &[Argument],
    ) -> Result<()> {
        let queue = self.queue(stream)?;
        let words = arguments.iter().map(|argument| match argument {
            Argument::Address(region) => {
                self.core.check_owner(region);
                region.address()
            }
            Argument::Number(number) => *number,
        });
        let words = words.collect::<Vec<_>>();
        if threads == 0 {
            return Ok(());
        }
        let function = self.function(kernel.source, kernel.name, defines)?;
        // SAFETY: the caller is responsible for arguments and threads; regions are freed after the work submitted.
        unsafe { self.submit(&queue, function, threads, &words) }
    }
}
