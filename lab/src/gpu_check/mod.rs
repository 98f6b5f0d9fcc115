//! `sunzi gpu-check`: are the devices of this machine right, and how fast are they? Needs only the program, a driver
//! and the CUDA libraries.
//!
//! Checks first, each a line; then rates, all of them measured in this run. With `--device soft` the same code runs on
//! the software device on tiny sizes, where times mean nothing, as the table notes.

mod checks;
mod factor_rates;
mod product_rates;
mod rates;
mod table;

use crate::conformance::Setup;
use crate::machine::Machine;
use checks::CheckReport;
use rates::RatesReport;
use serde::Serialize;
use std::time::Instant;
use sunzi::Result;
use sunzi::advanced::device::{Description, DeviceName};
use sunzi_session::session::Session;
use sunzi_session::units::{format_bytes, format_seconds};

/// Devices to check and to measure.
#[derive(Clone, Debug)]
pub struct GpuCheck {
    /// The devices, in order.
    pub devices: Vec<DeviceName>,
    /// Worker threads; `None` for all processors.
    pub threads: Option<usize>,
    /// Small checks, no rates.
    pub quick: bool,
    /// Rows of the product that is timed.
    pub rows: Option<usize>,
    /// Its columns.
    pub cols: Option<usize>,
    /// Its precision.
    pub precision_bits: Option<u32>,
}

/// The report.
#[derive(Serialize)]
struct GpuCheckReport {
    operation: &'static str,
    version: &'static str,
    machine: Machine,
    devices: Vec<Description>,
    checks: Vec<CheckReport>,
    /// Whether every check passed.
    passed: bool,
    /// Without `--quick`.
    rates: Option<RatesReport>,
    /// The reason why there are no rates.
    rates_failure: Option<String>,
    seconds: f64,
}

/// Checks devices, measures them, and reports the results.
///
/// # Errors
/// [`sunzi::Error::Verification`] where a check fails, [`sunzi::Error::NoDevice`], [`sunzi::Error::Cancelled`].
pub fn run(session: &mut dyn Session, config: &GpuCheck) -> Result<()> {
    session.hide_progress();
    let start = Instant::now();
    let devices = DeviceName::open(&config.devices, config.threads)?;
    let setup = Setup { devices, threads: config.threads, quick: config.quick, progress: session.progress() };
    let machine = Machine::look();
    let descriptions = setup.devices.iter().map(|device| device.description()).collect::<Vec<_>>();
    session.say(&header(&machine, &setup))?;
    let checks = checks::run_all(session, &setup)?;
    let rates = match config.quick {
        true => Ok(None),
        false => rates::measure(session, &setup, config).map(Some),
    };
    let verdict = checks::verdict(&checks);
    let failure = rates.as_ref().err().map(ToString::to_string);
    let (rates, failed) = match rates {
        Ok(rates) => (rates, Ok(())),
        Err(error) => (None, Err(error)),
    };
    let report = GpuCheckReport {
        operation: "gpu-check",
        version: env!("CARGO_PKG_VERSION"),
        machine,
        devices: descriptions,
        passed: verdict.is_ok(),
        checks,
        rates,
        rates_failure: failure,
        seconds: start.elapsed().as_secs_f64(),
    };
    session.finish_report(&report)?;
    verdict?;
    failed?;
    session.say(&format!("all {} checks ok in {}", report.checks.len(), format_seconds(report.seconds)))
}

/// The program and the machine that it runs on.
fn header(machine: &Machine, setup: &Setup) -> String {
    let mut lines = vec![
        format!("sunzi {} gpu-check", env!("CARGO_PKG_VERSION")),
        format!(
            "cpu        {} ({} processors for this process, {} available)",
            machine.cpu,
            machine.processors,
            machine.available_bytes.map_or("unknown memory".into(), format_bytes)
        ),
    ];
    lines.extend(setup.devices.iter().map(|device| {
        let Description { name, driver, memory_bytes, .. } = device.description();
        let usable = format_bytes(device.capacity_bytes());
        let driver = if driver.is_empty() { String::new() } else { format!(", {driver}") };
        format!(
            "{:<10} {name}, {}, of which {usable} may be used{driver}",
            device.description().label(),
            format_bytes(memory_bytes)
        )
    }));
    lines.join("\n")
}
