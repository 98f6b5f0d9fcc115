//! The choices of threads, memory, kernel and devices that every command of the program offers.

use crate::memory::Budget;
use sunzi::advanced::device::DeviceName;
use sunzi::advanced::kernels;
use sunzi::advanced::kernels::device::DeviceFamily;
use sunzi::advanced::math::bound::{guard_bits, working_bits};
use sunzi::{Context, ContextBuilder, Error, MAXIMUM_PRECISION_BITS, Result};

/// Choices of the engine.
#[derive(Clone, Debug, Default)]
pub struct Engine {
    /// Worker threads, 1 to 4096; `None` for all processors.
    pub threads: Option<usize>,
    /// The memory limit of the whole process.
    pub memory_bytes: Option<u64>,
    /// A kernel that is known and available; `None` for the fastest.
    pub kernel: Option<&'static str>,
    /// The devices, in order; empty for the CPU only.
    pub devices: Vec<DeviceName>,
    /// The memory limit of each device.
    pub device_memory_bytes: Option<u64>,
}

impl Engine {
    /// Returns `builder` with these choices except the memory limit; opens the devices.
    ///
    /// # Errors
    /// [`Error::NoDevice`].
    pub fn apply(&self, builder: ContextBuilder) -> Result<ContextBuilder> {
        let builder = match self.threads {
            Some(threads) => builder.threads(threads),
            None => builder,
        };
        let builder = match self.device_memory_bytes {
            Some(bytes) => builder.device_memory_bytes(bytes),
            None => builder,
        };
        Ok(builder.devices(DeviceName::open(&self.devices, self.threads)?).kernel(self.kernel.unwrap_or("auto")))
    }

    /// Threads that will be used.
    pub fn thread_count(&self) -> usize {
        self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |count| count.get()))
    }

    /// The budget of the process while it holds matrices of `matrix_bytes` bytes, where a limit was given.
    pub fn budget(&self, matrix_bytes: u64) -> Option<Budget> {
        self.memory_bytes.map(|limit| Budget::now(limit, self.thread_count(), matrix_bytes))
    }

    /// Whether devices are requested, by name or by a kernel that runs on nothing else.
    pub fn wants_devices(&self) -> bool {
        !self.devices.is_empty() || self.kernel.is_some_and(|name| DeviceFamily::by_name(name).is_some())
    }

    /// Refuses devices where `what` runs only on the CPU.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] with the option that requests them.
    pub fn refuse_devices(&self, what: &str) -> Result<()> {
        if !self.wants_devices() {
            return Ok(());
        }
        let option = match self.kernel {
            Some(name) if self.devices.is_empty() => format!("--kernel {name}"),
            _ => "--device".into(),
        };
        Err(Error::InvalidArgument(format!("{option}: {what} runs on the CPU only")))
    }
}

/// The least bytes that a plan needs, made with the threads of `builder`, regardless of any limit.
///
/// # Errors
/// The errors of planning, except [`Error::MemoryLimit`].
pub fn least_bytes<T>(builder: ContextBuilder, plan: impl FnOnce(&Context) -> Result<T>) -> Result<u64> {
    match plan(&builder.memory_bytes(0).build()?) {
        Err(Error::MemoryLimit { minimum_bytes, .. }) => Ok(minimum_bytes),
        other => other.map(|_| 0),
    }
}

/// The first error that no memory limit can remove; otherwise the refusal that names the larger memory limit.
///
/// # Errors
/// That error.
pub fn larger_refusal(first: Result<()>, second: Result<()>) -> Result<()> {
    match (&first, &second) {
        (Err(Error::MemoryLimit { minimum_bytes: one, .. }), Err(Error::MemoryLimit { minimum_bytes: other, .. })) => {
            if one >= other {
                first
            } else {
                second
            }
        }
        (Err(Error::MemoryLimit { .. }), Err(_)) | (Ok(()), _) => second,
        (Err(_), _) => first,
    }
}

/// A builder with the memory limit that the budget leaves, and the function that restates a refusal for the whole
/// process.
pub fn limited(builder: ContextBuilder, budget: Option<Budget>) -> (ContextBuilder, impl Fn(Error) -> Error) {
    let builder = match &budget {
        Some(budget) => builder.memory_bytes(budget.left()),
        None => builder,
    };
    (builder, move |error| match &budget {
        Some(budget) => budget.restate(error),
        None => error,
    })
}

/// Refuses a precision that the kernel (any one that may be chosen where none is named) could not serve even for a
/// single row, before any file is read at that precision.
///
/// # Errors
/// [`Error::Precision`] with the largest precision that is possible.
pub fn check_reach(precision_bits: u32, kernel: Option<&'static str>) -> Result<()> {
    let reach = |kernel: &dyn kernels::PlaneKernel| largest_precision_bits(kernel.maximum_modulus_bits());
    let maximum_bits = match kernel {
        Some(name) => match DeviceFamily::by_name(name) {
            Some(family) => largest_precision_bits(family.maximum_modulus_bits()),
            None => reach(kernels::by_name(name)?),
        },
        None => largest_precision_bits(kernels::largest_modulus_bits()),
    };
    let precision_bits = u64::from(precision_bits);
    let maximum_bits = u64::from(maximum_bits);
    if precision_bits <= maximum_bits { Ok(()) } else { Err(Error::Precision { precision_bits, maximum_bits }) }
}

/// Largest precision of a product of few rows under a bound on the modulus bits: `2 (b + guard) + 2` must fit.
pub fn largest_precision_bits(maximum_modulus_bits: u32) -> u32 {
    let bits = (maximum_modulus_bits.saturating_sub(2) / 2).saturating_sub(guard_bits(1));
    debug_assert!(bits == 0 || 2 * working_bits(bits, 1) + 2 <= maximum_modulus_bits);
    bits.min(MAXIMUM_PRECISION_BITS)
}
