//! `ContextBuilder`: the choices of a caller, one setter for each, and their checks.

use super::pool::WorkerPool;
use super::{Context, DeviceSet, MemoryBudget, Progress, ProgressCallback};
use crate::device::{Device, open_cuda};
use crate::error::{Error, Result};
use crate::kernels::device::DeviceFamily;
use crate::kernels::{self, PlaneKernel};
use crate::math::processor;
use std::sync::Arc;

/// Builder of a [`Context`]; every choice has a default.
#[derive(Clone, Default)]
pub struct ContextBuilder {
    threads: Option<usize>,
    memory_bytes: Option<u64>,
    kernel: Option<String>,
    devices: Vec<Arc<dyn Device>>,
    device_memory_bytes: Option<u64>,
    self_check: bool,
    freivalds: bool,
    progress: Option<Arc<ProgressCallback>>,
}

impl ContextBuilder {
    /// Number of worker threads; default: all processors the process may use.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Limit on all memory that a call uses, including the result and excluding the operands; default: none.
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = Some(bytes);
        self
    }

    /// Devices that products and factorisations run on, several at the same time; none by default.
    ///
    /// Operations that a device does not support run on the CPU, with the same bits.
    pub fn devices(mut self, devices: Vec<Arc<dyn Device>>) -> Self {
        self.devices = devices;
        self
    }

    /// Limit on the memory used on each device; default: all its memory.
    pub fn device_memory_bytes(mut self, bytes: u64) -> Self {
        self.device_memory_bytes = Some(bytes);
        self
    }

    /// Kernel by name, or `auto` (the default: the fastest kernel for this CPU and build, or for the device).
    ///
    /// `cuda-f64` and `cuda-i8` run on the devices of [`ContextBuilder::devices`]; if there are none, they run on the
    /// first CUDA device.
    pub fn kernel(mut self, name: &str) -> Self {
        self.kernel = Some(name.to_string());
        self
    }

    /// Whether each product is checked by a redundant prime, which adds one prime to the work; off by default.
    ///
    /// Factorisations and triangular solves are not checked, except for the products of a solve by recursive splitting:
    /// [`crate::verify::verify_cholesky`] checks a whole factor.
    pub fn self_check(mut self, on: bool) -> Self {
        self.self_check = on;
        self
    }

    /// Whether each product is tested with a random vector before it is rounded (Freivalds); off by default.
    ///
    /// The test applies to the same operations as the self-check and, unlike it, also covers conversions. It reads
    /// every entry of the operands two more times.
    pub fn freivalds(mut self, on: bool) -> Self {
        self.freivalds = on;
        self
    }

    /// A callback for progress and cancelling.
    pub fn progress(mut self, callback: impl Fn(Progress) -> bool + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(callback));
        self
    }

    /// Makes the context and its threads.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for 0 threads or an unknown `SUNZI_CPU`, [`Error::UnknownKernel`],
    /// [`Error::KernelUnavailable`], [`Error::Threads`].
    pub fn build(self) -> Result<Context> {
        let threads = self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
        if !(1..=4096).contains(&threads) {
            return Err(Error::InvalidArgument(format!("threads = {threads} is not valid; choose 1 to 4096")));
        }
        let (kernel, devices) = processor::check().and_then(|()| self.choose_kernel())?;
        let pool = (threads > 1).then(|| WorkerPool::new(threads)).transpose()?;
        Ok(Context {
            threads,
            memory: MemoryBudget::new(self.memory_bytes),
            under_limit: self.memory_bytes.is_some(),
            kernel,
            devices: Arc::new(devices),
            self_check: self.self_check,
            freivalds: self.freivalds,
            progress: self.progress,
            pool: pool.map(Arc::new),
            multipliers: None,
            kept: Arc::default(),
        })
    }
}

impl ContextBuilder {
    /// The kernel that was forced, of the CPU or of devices.
    fn choose_kernel(&self) -> Result<(Option<&'static dyn PlaneKernel>, DeviceSet)> {
        let name = self.kernel.as_deref().filter(|&name| name != "auto");
        let mut set = DeviceSet::new(self.devices.clone(), self.device_memory_bytes);
        let Some(name) = name else { return Ok((None, set)) };
        let Some(family) = DeviceFamily::by_name(name) else {
            let kernel = kernels::by_name(name)?;
            if !set.devices.is_empty() {
                let reason = "it runs on the CPU only, but devices were requested";
                return Err(Error::KernelUnavailable { name: kernel.name(), reason });
            }
            return Ok((Some(kernel), set));
        };
        set.family = Some(family);
        if set.devices.is_empty() {
            set.devices.push(open_cuda(0)?);
        }
        Ok((None, set))
    }
}
