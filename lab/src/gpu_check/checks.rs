//! The checks of `sunzi gpu-check`: the lists, and the loop that runs all of them, whatever fails.

use super::products::{self, Subject};
use super::{Setup, factors, is_card, plain};
use crate::session::Session;
use serde::Serialize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use sunzi::advanced::device::{DeviceKind, DeviceName};
use sunzi::advanced::kernels::device::DeviceFamily;
use sunzi::{Context, Device, Error, Result};

/// A check of a device's own operations, on sizes of a card where the flag says so.
type DeviceCheck = (&'static str, fn(&dyn Device, bool) -> Result<()>);

/// A check of an operation on big floats, by one family on one device or several together.
type OperationCheck = (&'static str, fn(&Subject<'_>) -> Result<()>);

/// What is checked of every device.
const DEVICE_CHECKS: &[DeviceCheck] = &[
    ("copies and clears", plain::copies),
    ("products of doubles", plain::products_f64),
    ("products of bytes", plain::products_i8),
    ("triangular solves", plain::solves),
    ("events between streams", plain::events),
    ("too much memory", plain::memory),
];

/// What is checked of every device and family. A check of another operation is one more line here.
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
    ("cholesky, little memory", factors::little_memory),
    ("not positive definite", factors::not_positive_definite),
    ("trsm and solve", factors::solves),
];

/// What is checked of several devices together, for every family.
const TOGETHER_CHECKS: &[OperationCheck] = &[("shares of the moduli", products::shares)];

/// How a check ended.
#[derive(Debug, Serialize)]
pub struct CheckReport {
    /// The device, or the devices.
    pub device: String,
    /// The family, where there is one.
    pub family: Option<&'static str>,
    /// What was checked.
    pub check: &'static str,
    /// Why it failed.
    pub failure: Option<String>,
}

/// Runs all checks, each a line as soon as it ends.
///
/// # Errors
/// [`Error::Cancelled`], [`Error::Io`], and those of a context on the CPU; a check that fails is none.
pub fn run_all(session: &dyn Session, setup: &Setup) -> Result<Vec<CheckReport>> {
    let cpu = setup.builder().build()?;
    let mut run = Run { session, setup, cpu: &cpu, done: Vec::new() };
    for device in &setup.devices {
        for &(check, work) in DEVICE_CHECKS {
            let large = is_card(&**device) && !setup.quick;
            run.check((device.description().label(), None, check), || work(&**device, large))?;
        }
        let large = is_card(&**device) && !setup.quick;
        let work = || factors::doubles(setup, device, large);
        run.check((device.description().label(), None, "cholesky of doubles"), work)?;
        let work = || factors::doubles_over_ranks(setup, device, large);
        run.check((device.description().label(), None, "cholesky of doubles over ranks"), work)?;
        run.operations(&device.description().label(), std::slice::from_ref(device), FAMILY_CHECKS)?;
    }
    if setup.devices.len() > 1 {
        run.operations("all together", &setup.devices, TOGETHER_CHECKS)?;
    }
    for device in setup.devices.iter().filter(|device| device.description().kind != DeviceKind::Host) {
        let mut pair = DeviceName::open(&[DeviceName::Host], setup.threads)?;
        pair.insert(0, device.clone());
        run.operations(&format!("{} and host", device.description().label()), &pair, TOGETHER_CHECKS)?;
    }
    Ok(run.done)
}

struct Run<'a> {
    session: &'a dyn Session,
    setup: &'a Setup,
    cpu: &'a Context,
    done: Vec<CheckReport>,
}

impl Run<'_> {
    fn operations(&mut self, name: &str, devices: &[Arc<dyn Device>], checks: &[OperationCheck]) -> Result<()> {
        for family in DeviceFamily::ALL {
            let (setup, cpu) = (self.setup, self.cpu);
            let large = is_card(&*devices[0]) && !setup.quick;
            let subject = Subject { setup, cpu, devices: devices.to_vec(), family, large };
            for &(check, work) in checks {
                self.check((name.into(), Some(family.name()), check), || work(&subject))?;
            }
        }
        Ok(())
    }

    fn check(
        &mut self,
        (device, family, check): (String, Option<&'static str>, &'static str),
        work: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if self.session.stop_requested() {
            return Err(Error::Cancelled);
        }
        // A panic is a bug, but the checks after it may tell more about it.
        let failure = match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(())) => None,
            Ok(Err(Error::Cancelled)) => return Err(Error::Cancelled),
            Ok(Err(Error::Verification(why))) => Some(why),
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("a bug, named on standard error".into()),
        };
        let name = [device.as_str(), family.unwrap_or(""), check].join(" ").replace("  ", " ");
        let verdict = failure.as_ref().map_or("ok".into(), |why| format!("FAILED: {why}"));
        self.session.say(&format!("{name:<60} {verdict}"))?;
        self.done.push(CheckReport { device, family, check, failure });
        Ok(())
    }
}

/// The error that ends the command where a check failed.
///
/// # Errors
/// [`Error::Verification`] with the number of checks that failed.
pub fn verdict(checks: &[CheckReport]) -> Result<()> {
    match checks.iter().filter(|check| check.failure.is_some()).count() {
        0 => Ok(()),
        failed => Err(Error::Verification(format!("{failed} of {} checks of devices failed", checks.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Silent;
    use sunzi::advanced::device::soft::{Fault, SoftDevice, SoftOptions};

    /// The checks of a faulty device, as named.
    fn failed_with(fault: Fault) -> Vec<&'static str> {
        let device = SoftDevice::new(SoftOptions { fault: Some(fault), ..SoftOptions::default() });
        let setup =
            Setup { devices: vec![Arc::new(device)], threads: Some(1), quick: true, progress: Silent.progress() };
        let checks = run_all(&Silent, &setup).unwrap();
        assert!(verdict(&checks).is_err());
        checks.into_iter().filter(|check| check.failure.is_some()).map(|check| check.check).collect()
    }

    #[test]
    fn faults_are_found_and_the_checks_go_on() {
        assert_eq!(failed_with(Fault::FlipInProduct(0)), ["products of doubles"]);
        let lost = failed_with(Fault::LostAfter(3));
        assert!(lost.contains(&"copies and clears") && lost.contains(&"shares of the moduli"), "{lost:?}");
    }
}
