//! Checks of everything that devices must do, each once: `sunzi gpu-check` runs the checks on the devices of a machine,
//! the tests run them on software devices in many orders of execution, and on a GPU where there is one.
//!
//! A check compares with a loop on the host, with the bits of the CPU, or with a bound, and reports the differences.

mod factors;
mod operations;
mod products;

pub use factors::dominant;
pub use operations::{Fixture, square};
pub use products::Subject;

use std::sync::Arc;
use sunzi::advanced::device::{DeviceKind, DeviceName};
use sunzi::advanced::kernels::device::DeviceFamily;
use sunzi::devices::Device;
use sunzi::{Context, ContextBuilder, Error, ProgressCallback, Result};

/// A check of a device's own operations, on sizes of a GPU where the flag is set.
type DeviceCheck = (&'static str, fn(&dyn Device, bool) -> Result<()>);

/// A check of doubles in tiles on one device, likewise.
type DoublesCheck = (&'static str, fn(&Setup, &Arc<dyn Device>, bool) -> Result<()>);

/// A check of an operation on big floats, by one family on one device or several together.
type OperationCheck = (&'static str, fn(&Subject<'_>) -> Result<()>);

/// The checks of every device.
const DEVICE_CHECKS: &[DeviceCheck] = &[
    ("copies and clears", operations::copies),
    ("products of doubles", operations::products_f64),
    ("products of bytes", operations::products_i8),
    ("triangular solves", operations::solves),
    ("events between streams", operations::events),
    ("too much memory", operations::memory),
];

/// The checks of every device in tiles of doubles.
const DOUBLES_CHECKS: &[DoublesCheck] =
    &[("cholesky of doubles", factors::doubles), ("cholesky of doubles over ranks", factors::doubles_over_ranks)];

/// The checks of every device and family. A check of another operation is one more line here.
const FAMILY_CHECKS: &[OperationCheck] = &[
    ("syrk, shapes", products::syrk_shapes),
    ("gemm, shapes", products::gemm_shapes),
    ("precisions and exponents", products::precisions),
    ("transposes", products::transposes),
    ("exact integers", products::integers),
    ("alpha, beta, accumulation", products::factors),
    ("self-check and Freivalds' test", products::self_checks),
    ("little memory", products::little_memory),
    ("cholesky", factors::cholesky),
    ("cholesky, sums of many tiles", factors::long_sums),
    ("cholesky, little memory", factors::little_memory),
    ("not positive definite", factors::not_positive_definite),
    ("trsm and solve", factors::solves),
    ("products inside solves", factors::products_in_solves),
];

/// The checks of several devices together, for every family.
const TOGETHER_CHECKS: &[OperationCheck] =
    &[("shares of the moduli", products::shares), ("shares of the tiles", factors::shares)];

/// The devices to check.
pub struct Setup {
    /// The devices, in order.
    pub devices: Vec<Arc<dyn Device>>,
    /// Worker threads; `None` for one on each processor.
    pub threads: Option<usize>,
    /// Whether GPUs are checked at small sizes only.
    pub quick: bool,
    /// Whether to continue.
    pub progress: Arc<ProgressCallback>,
}

impl Setup {
    /// A builder with the requested threads; a signal stops the work of its contexts.
    pub fn builder(&self) -> ContextBuilder {
        let callback = self.progress.clone();
        let builder = Context::builder().progress(move |progress| callback(progress));
        match self.threads {
            Some(threads) => builder.threads(threads),
            None => builder,
        }
    }
}

/// A check that is about to run.
pub struct Check<'a> {
    /// The device, or the devices.
    pub device: String,
    /// The family, where there is one.
    pub family: Option<&'static str>,
    /// The name of the check.
    pub name: &'static str,
    work: &'a dyn Fn() -> Result<()>,
}

impl Check<'_> {
    /// Runs it.
    ///
    /// # Errors
    /// [`Error::Verification`] with the difference, and the errors of the operations.
    pub fn run(&self) -> Result<()> {
        (self.work)()
    }
}

/// The function that is called with each check.
pub type Run<'a> = dyn FnMut(Check<'_>) -> Result<()> + 'a;

/// Whether a device is a GPU, so that its times are meaningful.
pub fn is_gpu(device: &dyn Device) -> bool {
    device.description().kind == DeviceKind::Cuda
}

/// Hands all checks to `run`, one after the other: of each device, of all together, of each together with the CPU.
///
/// # Errors
/// The errors of `run`, and of a context on the CPU.
pub fn each(setup: &Setup, run: &mut Run<'_>) -> Result<()> {
    let cpu = setup.builder().build()?;
    for device in &setup.devices {
        let large = is_gpu(&**device) && !setup.quick;
        let mut own = |name, work: &dyn Fn() -> Result<()>| {
            run(Check { device: device.description().label(), family: None, name, work })
        };
        DEVICE_CHECKS.iter().try_for_each(|&(name, work)| own(name, &|| work(&**device, large)))?;
        DOUBLES_CHECKS.iter().try_for_each(|&(name, work)| own(name, &|| work(setup, device, large)))?;
        operations(setup, &cpu, vec![device.clone()], device.description().label(), FAMILY_CHECKS, run)?;
    }
    if setup.devices.len() > 1 {
        operations(setup, &cpu, setup.devices.clone(), "all together".into(), TOGETHER_CHECKS, run)?;
    }
    for device in setup.devices.iter().filter(|device| device.description().kind != DeviceKind::Host) {
        let mut pair = DeviceName::open(&[DeviceName::Host], setup.threads)?;
        pair.insert(0, device.clone());
        let name = format!("{} and host", device.description().label());
        operations(setup, &cpu, pair, name, TOGETHER_CHECKS, run)?;
    }
    Ok(())
}

/// Hands checks of operations on `devices` to `run`, for each family.
fn operations(
    setup: &Setup,
    cpu: &Context,
    devices: Vec<Arc<dyn Device>>,
    device: String,
    checks: &[OperationCheck],
    run: &mut Run<'_>,
) -> Result<()> {
    let large = is_gpu(&*devices[0]) && !setup.quick;
    for family in DeviceFamily::ALL {
        let subject = Subject { setup, cpu, devices: devices.clone(), family, large };
        for &(name, work) in checks {
            let work = || work(&subject);
            run(Check { device: device.clone(), family: Some(family.name()), name, work: &work })?;
        }
    }
    Ok(())
}

/// A check that failed, and why.
fn failed<T>(why: String) -> Result<T> {
    Err(Error::verification(why))
}

/// The least device memory that `within` names where it is given one byte, if one byte less than that is refused too.
fn least_bytes<T>(within: impl Fn(u64) -> Result<T>) -> Result<u64> {
    let least_bytes = match within(1) {
        Err(Error::DeviceLimit { minimum_bytes, .. }) => minimum_bytes,
        Err(other) => return failed(format!("one byte of memory was refused with: {other}")),
        Ok(_) => return failed("one byte of memory was enough".into()),
    };
    match within(least_bytes - 1) {
        Err(_) => Ok(least_bytes),
        Ok(_) => failed(format!("{least_bytes} bytes were stated as the minimum, but one less is enough")),
    }
}
