//! Devices with their own memory: buffers, streams, events, copies in both directions, products and compiled kernels.
//!
//! [`Device`] and the traits that it names have two implementations: [`soft`], plain memory with a capacity and counted
//! transfers, and `cuda` (feature `cuda`), loaded at run time. All code above the traits runs on both. Depends on:
//! bytes, addresses, streams. Independent of: matrices, residues, operations.
//!
//! Work is *submitted* to a stream and done later; work of one stream is done in order, work of different streams in
//! any order unless an [`Event`] orders it. Memory lives until the work submitted on it is done.
//!
//! Safety: [`Device::launch`] is the only unsafe call. Copies and products check their own bounds, and host memory that
//! is being copied is accessed only after the copies ([`Pinned::lock`]).

mod allowance;
pub(crate) mod dgemm;
mod gemm;
mod memory;
mod names;
pub mod soft;
mod users;

#[cfg(feature = "cuda")]
pub mod cuda;

pub use allowance::{Allowance, MemoryShare};
pub use gemm::{Element, Gemm, GemmOperand, Trsm};
pub use memory::{Memory, Pinned, PinnedGuard, RawMemory, RawPinned, Region};
pub use names::DeviceName;

use crate::error::{Error, Result};
use serde::Serialize;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// CUDA device number `index`.
///
/// # Errors
/// [`Error::NoDevice`] if there is no such device, driver or library, or if the build has no feature `cuda`.
pub fn open_cuda(index: usize) -> Result<Arc<dyn Device>> {
    #[cfg(feature = "cuda")]
    return match cuda::CudaDevice::open(index, None) {
        Ok(device) => Ok(Arc::new(device)),
        Err(Error::NoDevice(reason)) => Err(Error::NoDevice(format!("CUDA device {index}: {reason}"))),
        Err(error) => Err(error),
    };
    #[cfg(not(feature = "cuda"))]
    Err(Error::NoDevice(format!("CUDA device {index}: this build has no CUDA (feature cuda)")))
}

/// All CUDA devices.
///
/// # Errors
/// [`Error::NoDevice`] if there is no device, driver or library, or if the build has no feature `cuda`.
pub fn cuda_devices() -> Result<Vec<Description>> {
    #[cfg(feature = "cuda")]
    return cuda::probe();
    #[cfg(not(feature = "cuda"))]
    Err(Error::NoDevice("this build has no CUDA (feature cuda)".into()))
}

/// Bytes copied between host and device, and the number of copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Traffic {
    /// Bytes from the host to the device.
    pub h2d_bytes: u64,
    /// Bytes from the device to the host.
    pub d2h_bytes: u64,
    /// Copies to the device.
    pub h2d_copies: u64,
    /// Copies from the device.
    pub d2h_copies: u64,
}

impl Traffic {
    /// The traffic since `earlier`.
    pub fn since(&self, earlier: &Traffic) -> Traffic {
        Traffic {
            h2d_bytes: self.h2d_bytes - earlier.h2d_bytes,
            d2h_bytes: self.d2h_bytes - earlier.d2h_bytes,
            h2d_copies: self.h2d_copies - earlier.h2d_copies,
            d2h_copies: self.d2h_copies - earlier.d2h_copies,
        }
    }

    /// The sum of both directions.
    pub fn plus(&self, other: &Traffic) -> Traffic {
        Traffic {
            h2d_bytes: self.h2d_bytes + other.h2d_bytes,
            d2h_bytes: self.d2h_bytes + other.d2h_bytes,
            h2d_copies: self.h2d_copies + other.h2d_copies,
            d2h_copies: self.d2h_copies + other.d2h_copies,
        }
    }
}

/// The kinds of devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// A GPU through CUDA.
    Cuda,
    /// Plain memory with a virtual clock.
    #[default]
    Soft,
    /// The CPU as one more device: plain memory with the host's clock.
    Host,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            DeviceKind::Cuda => "cuda",
            DeviceKind::Soft => "soft",
            DeviceKind::Host => "host",
        })
    }
}

/// A description of a device.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Description {
    /// Name of the device, as given by its maker.
    pub name: String,
    /// Its kind: what runs its work.
    pub kind: DeviceKind,
    /// Number of the device among the devices of its kind.
    pub index: usize,
    /// Version of the driver, and of the libraries; empty for a software device.
    pub driver: String,
    /// Bytes of its memory, of which only a part may be usable.
    pub memory_bytes: u64,
}

impl Description {
    /// Kind and number, such as `cuda 0`.
    pub fn label(&self) -> String {
        format!("{} {}", self.kind, self.index)
    }
}

/// A sequence of work; made by [`Device::stream`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stream(pub usize);

/// Streams that go back to their device when they are dropped: each holds memory of the vendor's libraries.
pub struct Streams {
    device: Arc<dyn Device>,
    streams: Vec<Stream>,
}

impl Streams {
    /// No streams yet.
    pub fn of(device: &Arc<dyn Device>) -> Streams {
        Streams { device: device.clone(), streams: Vec::new() }
    }

    /// One more stream.
    ///
    /// # Errors
    /// The errors of [`Device::stream`].
    pub fn take(&mut self) -> Result<Stream> {
        let stream = self.device.stream()?;
        self.streams.push(stream);
        Ok(stream)
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        for &stream in &self.streams {
            // Work that nobody waited for, after an error, ends before its memory is needed for something else.
            let _ = self.device.record(stream).and_then(|event| self.device.synchronize(&event));
            self.device.retire(stream);
        }
    }
}

/// A point in a stream's work; made by [`DeviceEvents::record`].
#[derive(Clone)]
pub struct Event(pub Arc<dyn Any + Send + Sync>);

/// One argument of a kernel: eight bytes, as in the kernel's argument structure.
#[derive(Clone)]
pub enum Argument {
    /// The address of device memory, which is kept until the kernel has run.
    Address(Region),
    /// A number.
    Number(u64),
}

/// A kernel in the forms that devices can run: its CUDA source, and the same source compiled for the host.
#[derive(Clone, Copy)]
pub struct Kernel {
    /// Name of the function.
    pub name: &'static str,
    /// Source text, includes resolved.
    pub source: &'static str,
    /// The function `name` compiled for the host.
    pub host: HostKernel,
}

/// A kernel compiled for the host: runs the threads `first..end` one after another; `arguments` are its eight-byte
/// arguments.
///
/// The call has the same safety conditions as [`Device::launch`].
pub type HostKernel = unsafe extern "C" fn(first: u64, end: u64, arguments: *const u64);

/// Constants that a kernel is compiled for: the preprocessor's names and values. The host's version reads them as
/// arguments instead, so the source must support both forms.
pub type Defines<'a> = &'a [(&'static str, u64)];

/// The description of a device, and the statistics of its users, memory and transfers.
pub trait DeviceStatus: Send + Sync {
    /// The description of the device.
    fn description(&self) -> Description;
    /// A number that identifies the device: the same for every opening of it in any process of the machine, and
    /// different for every other device.
    fn identity(&self) -> u64;
    /// Records that a context uses this opening: until it is dropped, [`DeviceStatus::users`] counts it.
    fn announce(&self);
    /// Number of openings of this device that contexts use, in all processes of the machine that can be detected.
    fn users(&self) -> usize;
    /// Bytes that may be allocated at the same time.
    fn capacity_bytes(&self) -> u64;
    /// Bytes allocated now by this opening of the device.
    fn used_bytes(&self) -> u64;
    /// Largest number of bytes allocated at any time by this opening.
    fn peak_bytes(&self) -> u64;
    /// All transfers of this opening so far.
    fn traffic(&self) -> Traffic;
}

/// The memory of a device, and host memory for copies.
pub trait DeviceAllocator: Send + Sync {
    /// Allocates memory on the device, with arbitrary contents, aligned to 256 bytes.
    ///
    /// # Errors
    /// [`crate::Error::DeviceMemory`] beyond the capacity.
    fn allocate(&self, bytes: usize) -> Result<Memory>;
    /// Allocates host memory for copies to and from the device, filled with zeros.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    fn allocate_pinned(&self, bytes: usize) -> Result<Pinned>;
}

/// Events: markers in the work of streams, which order it and can be waited for.
pub trait DeviceEvents: Send + Sync {
    /// Marks the end of the work that was submitted to `stream` so far.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLost`].
    fn record(&self, stream: Stream) -> Result<Event>;
    /// Makes all work that is submitted to `stream` from now on wait for `event`.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLost`].
    fn wait(&self, stream: Stream, event: &Event) -> Result<()>;
    /// Blocks the calling thread until `event` has passed.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLost`], also if the work before the event failed.
    fn synchronize(&self, event: &Event) -> Result<()>;
    /// Seconds of the device's clock between two events that have passed.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLost`].
    fn seconds_between(&self, from: &Event, to: &Event) -> Result<f64>;
}

/// A processor with its own memory: streams, and the copies, products and kernels that are submitted to them.
pub trait Device: DeviceStatus + DeviceAllocator + DeviceEvents {
    /// A new stream.
    ///
    /// # Errors
    /// [`crate::Error::Device`].
    fn stream(&self) -> Result<Stream>;
    /// Takes back a stream to which no more work will be submitted; work already submitted continues, and
    /// [`Device::stream`] may return the stream again.
    fn retire(&self, stream: Stream);
    /// Submits a copy of `to.bytes()` bytes, from byte `at` of `from` on.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLost`], as for all submitted work.
    fn upload(&self, stream: Stream, from: &Pinned, at: usize, to: &Region) -> Result<()>;
    /// Submits a copy of `from.bytes()` bytes, to byte `at` of `to` on.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLost`].
    fn download(&self, stream: Stream, from: &Region, to: &Pinned, at: usize) -> Result<()>;
    /// Submits a copy on the device; the regions are equally long.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLost`].
    fn copy(&self, stream: Stream, from: &Region, to: &Region) -> Result<()>;
    /// Submits an operation that fills the region with zeros.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLost`].
    fn clear(&self, stream: Stream, region: &Region) -> Result<()>;
    /// Submits a batch of products.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLost`].
    fn multiply(&self, stream: Stream, gemm: &Gemm) -> Result<()>;
    /// Submits a triangular solve in doubles.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLost`].
    fn solve(&self, stream: Stream, trsm: &Trsm) -> Result<()>;
    /// Submits `threads` threads of a kernel.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLost`]; [`crate::Error::Device`] where the kernel does not compile.
    ///
    /// # Safety
    /// The arguments are those that the kernel declares, in the same order. With them every thread accesses only the
    /// given regions, no two threads write the same location, and no thread reads a location that another one writes.
    unsafe fn launch(
        &self,
        stream: Stream,
        kernel: &Kernel,
        defines: Defines<'_>,
        threads: u64,
        arguments: &[Argument],
    ) -> Result<()>;
}
