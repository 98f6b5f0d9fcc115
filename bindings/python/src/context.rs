//! `Context`: threads, memory limit, kernel, devices and checks, kept between calls and made anew after a fork.

use crate::argument::{argument, byte_count};
use crate::errors::OrRaise;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use std::sync::{Arc, Mutex, PoisonError};
use sunzi::ContextBuilder;
use sunzi::advanced::device::DeviceName;

/// Options of calls, and the threads, tables and memory that calls share.
///
/// `Context(threads=None, memory=None, kernel="auto", device=None, self_check=False, freivalds=False)`
///
/// Parameters ---------- threads : int, optional Number of worker threads; the default is the number of processors that
/// the process may use. memory : int or str, optional Memory limit of a call in bytes, or as text (`"2G"`, `"500M"`:
/// powers of 1024). It covers the result and the work memory, but not the operands. kernel : str A name of
/// `sunzi.kernels()`, or `auto`. device : str or list of str, optional Names of devices: `cuda` (all GPUs), `cuda:0`,
/// `soft`, `soft:BYTES`, `host`. self_check : bool Check each product with a redundant prime. freivalds : bool Check
/// each product with a random vector.
///
/// The options do not change the bits of a result. Calls from several Python threads may share a context. A process
/// made by `os.fork` starts its own threads at its first call.
///
/// >>> import sunzi
/// >>> context = sunzi.Context(threads=2, memory=100_000_000)
/// >>> context
/// Context(threads=2, memory=100000000)
/// >>> sunzi.cholesky([[4, 2], [2, 10]], precision=100, context=context)
/// [[Fraction(2, 1), Fraction(0, 1)], [Fraction(1, 1), Fraction(3, 1)]]
#[pyclass(frozen, module = "sunzi")]
pub struct Context {
    builder: ContextBuilder,
    choices: ContextChoices,
    device_names: Vec<String>,
    devices: Vec<DeviceName>,
    /// With the process that made it: threads do not survive a fork.
    open: Mutex<Option<(u32, Arc<sunzi::Context>)>>,
}

/// The arguments of `Context`, for pickles: a choice that was left open is open where the pickle is read.
#[derive(Clone, Default)]
struct ContextChoices {
    threads: Option<usize>,
    memory_bytes: Option<u64>,
    kernel: String,
    self_check: bool,
    freivalds: bool,
}

#[pymethods]
impl Context {
    #[new]
    #[pyo3(signature = (threads=None, memory=None, kernel="auto", device=None, self_check=false, freivalds=false))]
    fn new(
        py: Python<'_>,
        threads: Option<&Bound<'_, PyAny>>,
        memory: Option<&Bound<'_, PyAny>>,
        kernel: &str,
        device: Option<&Bound<'_, PyAny>>,
        self_check: bool,
        freivalds: bool,
    ) -> PyResult<Context> {
        let mut builder = sunzi::Context::builder().kernel(kernel).self_check(self_check).freivalds(freivalds);
        let choices = ContextChoices {
            threads: threads.map(|threads| argument("threads", threads)).transpose()?,
            memory_bytes: memory.map(|bytes| byte_count("memory", bytes)).transpose()?,
            kernel: kernel.to_string(),
            self_check,
            freivalds,
        };
        if let Some(threads) = choices.threads {
            builder = builder.threads(threads);
        }
        if let Some(bytes) = choices.memory_bytes {
            builder = builder.memory_bytes(bytes);
        }
        let device_names = match device {
            None => Vec::new(),
            Some(device) => device.extract::<String>().map(|name| vec![name]).or_else(|_| device.extract())?,
        };
        let bytes = |text: &str| {
            text.parse::<u64>().map_err(|_| format!("a software device, but '{text}' is not a number of bytes"))
        };
        let read = |name: &String| {
            let refused = |why| PyValueError::new_err(format!("device '{name}' is {why}"));
            DeviceName::parse(name, bytes).map_err(refused)
        };
        let devices = device_names.iter().map(read).collect::<PyResult<_>>()?;
        let context = Context { builder, choices, device_names, devices, open: Mutex::new(None) };
        context.get(py)?;
        Ok(context)
    }

    /// Number of worker threads.
    #[getter]
    fn threads(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.get(py)?.threads())
    }

    /// The memory limit in bytes, or None.
    #[getter]
    fn memory(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        Ok(self.get(py)?.memory_bytes())
    }

    /// Name of the kernel for products.
    #[getter]
    fn kernel(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.get(py)?.kernel().name())
    }

    /// Names of the devices.
    #[getter]
    fn devices(&self) -> Vec<String> {
        self.device_names.clone()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, context) = (slf.py(), slf.get());
        let ContextChoices { threads, memory_bytes, kernel, self_check, freivalds } = context.choices.clone();
        let devices = (!context.device_names.is_empty()).then(|| context.device_names.clone());
        let arguments = (threads, memory_bytes, kernel, devices, self_check, freivalds).into_pyobject(py)?;
        (slf.get_type(), arguments).into_pyobject(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let context = self.get(py)?;
        let mut text = format!("Context(threads={}", context.threads());
        if let Some(bytes) = context.memory_bytes() {
            text += &format!(", memory={bytes}");
        }
        if let Some(kernel) = context.forced_kernel() {
            text += &format!(", kernel='{}'", kernel.name());
        }
        if !self.device_names.is_empty() {
            text += &format!(", device={:?}", self.device_names);
        }
        Ok(text + ")")
    }
}

impl Context {
    /// The library's context, of this process.
    ///
    /// The thread that holds the interpreter also holds the lock, and a fork is made by such a thread, so a fork never
    /// finds the lock held by another.
    pub fn get(&self, py: Python<'_>) -> PyResult<Arc<sunzi::Context>> {
        let process = std::process::id();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((owner, context)) = &*open
            && *owner == process
        {
            return Ok(context.clone());
        }
        let devices = DeviceName::open(&self.devices, None).or_raise(py)?;
        let context = Arc::new(self.builder.clone().devices(devices).build().or_raise(py)?);
        // The threads of the parent's context are not in this process: to end them would wait for them.
        std::mem::forget(open.replace((process, context.clone())));
        Ok(context)
    }

    /// The context of calls that name none: all defaults.
    pub fn shared(py: Python<'_>) -> PyResult<Bound<'_, Context>> {
        static SHARED: PyOnceLock<Py<Context>> = PyOnceLock::new();
        let make = || -> PyResult<Py<Context>> {
            let builder = sunzi::Context::builder();
            let choices = ContextChoices { kernel: "auto".into(), ..ContextChoices::default() };
            let (device_names, devices) = (Vec::new(), Vec::new());
            Py::new(py, Context { builder, choices, device_names, devices, open: Mutex::new(None) })
        };
        Ok(SHARED.get_or_try_init(py, make)?.bind(py).clone())
    }
}
