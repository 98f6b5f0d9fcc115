//! The checks of `sunzi gpu-check`: all of them run, even where some fail.

use crate::conformance::{self, Check, Setup};
use serde::Serialize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use sunzi::{Error, Result};
use sunzi_session::session::Session;

/// The outcome of a check.
#[derive(Debug, Serialize)]
pub struct CheckReport {
    /// The device, or the devices.
    pub device: String,
    /// The family, where there is one.
    pub family: Option<&'static str>,
    /// The name of the check.
    pub check: &'static str,
    /// The reason of the failure.
    pub failure: Option<String>,
}

/// Runs all checks, each a line as soon as it ends.
///
/// # Errors
/// [`Error::Cancelled`], [`Error::Io`], and the errors of a context on the CPU; a failed check is not an error.
pub fn run_all(session: &dyn Session, setup: &Setup) -> Result<Vec<CheckReport>> {
    let mut done = Vec::new();
    conformance::each(setup, &mut |check| {
        if session.stop_requested() {
            return Err(Error::Cancelled);
        }
        // A panic is a bug, but the checks after it may show more about it.
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
    use std::cell::RefCell;
    use std::sync::Arc;
    use sunzi::ProgressCallback;
    use sunzi::advanced::device::soft::{Fault, SoftDevice, SoftOptions};
    use sunzi::advanced::testing::effort;
    use sunzi_session::report::ReportFile;

    /// A session that prints nothing and never stops.
    struct Silent;

    impl Session for Silent {
        fn say(&self, _text: &str) -> Result<()> {
            Ok(())
        }

        fn progress(&self) -> Arc<ProgressCallback> {
            Arc::new(|_| true)
        }

        fn hide_progress(&mut self) {}

        fn stop_requested(&self) -> bool {
            false
        }

        fn write_file(&self, write: &mut dyn FnMut() -> Result<()>) -> Result<()> {
            write()
        }

        fn take_report(&mut self) -> Option<ReportFile> {
            None
        }
    }

    /// Keeps the printed lines, and requests a stop after `most` lines.
    struct Few {
        most: usize,
        lines: RefCell<Vec<String>>,
    }

    impl Session for Few {
        fn say(&self, text: &str) -> Result<()> {
            self.lines.borrow_mut().push(text.to_string());
            Ok(())
        }

        fn progress(&self) -> Arc<ProgressCallback> {
            Silent.progress()
        }

        fn hide_progress(&mut self) {}

        fn stop_requested(&self) -> bool {
            self.lines.borrow().len() >= self.most
        }

        fn write_file(&self, write: &mut dyn FnMut() -> Result<()>) -> Result<()> {
            write()
        }

        fn take_report(&mut self) -> Option<ReportFile> {
            None
        }
    }

    fn faulty(fault: Fault) -> Setup {
        let device = SoftDevice::new(SoftOptions { fault: Some(fault), ..SoftOptions::default() });
        Setup { devices: vec![Arc::new(device)], threads: Some(1), quick: true, progress: Silent.progress() }
    }

    /// The checks of a faulty device, as named.
    fn failed_with(fault: Fault) -> Vec<&'static str> {
        let checks = run_all(&Silent, &faulty(fault)).unwrap();
        assert!(verdict(&checks).is_err());
        checks.into_iter().filter(|check| check.failure.is_some()).map(|check| check.check).collect()
    }

    #[test]
    fn faults_are_found_and_the_checks_go_on() {
        // The first checks are enough to show that one of them fails and that later ones do not; all take seconds.
        let few = Few { most: if effort() > 1 { usize::MAX } else { 11 }, lines: RefCell::default() };
        let outcome = run_all(&few, &faulty(Fault::FlipInProduct(0)));
        assert!(if effort() > 1 { outcome.is_ok() } else { matches!(outcome, Err(Error::Cancelled)) });
        let lines = few.lines.take();
        let (failed, fine) = lines.iter().partition::<Vec<_>, _>(|line| line.contains("FAILED: "));
        assert!(failed.len() == 1 && failed[0].contains("products of doubles"), "{lines:?}");
        assert!(fine.len() >= 10 && fine.iter().all(|line| line.ends_with(" ok")), "{lines:?}");
        let lost = failed_with(Fault::LostAfter(3));
        assert!(lost.contains(&"copies and clears") && lost.contains(&"shares of the moduli"), "{lost:?}");
    }
}
