//! The checks of `sunzi gpu-check`: all of them run, whatever fails.

use crate::conformance::{self, Check, Setup};
use crate::session::Session;
use serde::Serialize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use sunzi::{Error, Result};

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
    let mut done = Vec::new();
    conformance::each(setup, &mut |check| {
        if session.stop_requested() {
            return Err(Error::Cancelled);
        }
        // A panic is a bug, but the checks after it may tell more about it.
        let failure = match catch_unwind(AssertUnwindSafe(|| check.run())) {
            Ok(Ok(())) => None,
            Ok(Err(Error::Cancelled)) => return Err(Error::Cancelled),
            Ok(Err(Error::Verification(why))) => Some(why.to_string()),
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("a bug, named on standard error".into()),
        };
        let Check { device, family, name, .. } = check;
        let line = [device.as_str(), family.unwrap_or(""), name].join(" ").replace("  ", " ");
        let verdict = failure.as_ref().map_or("ok".into(), |why| format!("FAILED: {why}"));
        session.say(&format!("{line:<60} {verdict}"))?;
        done.push(CheckReport { device, family, check: name, failure });
        Ok(())
    })?;
    Ok(done)
}

/// The error that ends the command where a check failed.
///
/// # Errors
/// [`Error::Verification`] with the number of checks that failed.
pub fn verdict(checks: &[CheckReport]) -> Result<()> {
    match checks.iter().filter(|check| check.failure.is_some()).count() {
        0 => Ok(()),
        failed => Err(Error::verification(format!("{failed} of {} checks of devices failed", checks.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Silent;
    use std::sync::Arc;
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
