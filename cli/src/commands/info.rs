//! `sunzi info`: the abilities of this CPU and this build.

use crate::session::Session;
use serde::Serialize;
use sunzi::Result;
use sunzi::advanced::device::Description;
use sunzi::advanced::kernels::device::DeviceFamily;
use sunzi::advanced::kernels::{self, PlaneKernel};
use sunzi::advanced::math::bound::cholesky_working_bits;
use sunzi::advanced::math::processor::{Level, VARIABLE, check as check_processor, level};
use sunzi::devices::cuda_devices;
use sunzi_lab::baselines::openblas;
use sunzi_lab::machine::Machine;
use sunzi_session::engine::largest_precision_bits;
use sunzi_session::session::Session as _;
use sunzi_session::units::{folded, format_bytes, format_seconds};

/// Trials of some milliseconds of which the best is a kernel's rate.
const RATE_TRIALS: usize = 2;

/// Bits of the sizes that are named.
const TOLD_BITS: u32 = 1024;

/// From how many rows of square matrices on a kernel gains over the preferred one, at 1024 bits: `--kernel auto` takes
/// the one that gains most where there is neither a limit nor a device.
#[derive(Serialize)]
struct LeastRows {
    products: Option<usize>,
    factors: Option<usize>,
    solves: Option<usize>,
}

impl LeastRows {
    fn of(kernel: &dyn PlaneKernel) -> LeastRows {
        let working_bits = cholesky_working_bits(TOLD_BITS);
        LeastRows {
            products: kernel.large_products().map(|costs| costs.least_rows(TOLD_BITS)),
            factors: kernel.large_factors().map(|costs| costs.least_rows(working_bits)),
            solves: kernel.large_solves().map(|costs| costs.least_rows(working_bits)),
        }
    }

    fn words(&self) -> String {
        let named = [("products", self.products), ("factors", self.factors), ("solves", self.solves)];
        let told = named.into_iter().filter_map(|(name, rows)| Some(format!("{name} of at least {} rows", rows?)));
        let told = told.collect::<Vec<_>>().join(", ");
        if told.is_empty() {
            told
        } else {
            format!(", faster than the preferred kernel for {told} (at {TOLD_BITS} bits)")
        }
    }
}

/// One kernel of the table.
#[derive(Serialize)]
struct KernelInfo {
    name: &'static str,
    available: bool,
    /// The reason why it is not available.
    reason: Option<&'static str>,
    family: Option<&'static str>,
    /// The instructions that it has chosen on this CPU, where it has a choice.
    instructions: Option<&'static str>,
    /// Seconds of a small product with its conversions on each set of instructions, where that decides between them.
    instruction_seconds: Vec<(&'static str, f64)>,
    /// Whether `--kernel auto` takes it.
    preferred: bool,
    /// The sizes from which it is faster, where it is not the preferred one.
    gains_from_rows: Option<LeastRows>,
    /// Multiply-adds in one plane that a thread's instructions could do in a second, where that is measured.
    multiply_adds_per_second: Option<f64>,
    largest_precision_bits: Option<u32>,
}

#[derive(Serialize)]
struct Info {
    version: &'static str,
    machine: Machine,
    kernels: Vec<KernelInfo>,
    devices: Vec<Description>,
    /// The reason why there are none.
    no_devices: Option<String>,
}

pub fn run(session: &mut Session) -> Result<()> {
    check_processor()?;
    let (devices, no_devices) = match cuda_devices() {
        Ok(devices) => (devices, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let (version, machine) = (env!("CARGO_PKG_VERSION"), Machine::look());
    let info = Info { version, machine, kernels: kernel_infos(), devices, no_devices };
    session.finish_report(&info)?;
    session.say(&folded(&describe(&info)))
}

fn features(machine: &Machine) -> String {
    let found = if machine.features.is_empty() { "not determined".into() } else { machine.features.join(" ") };
    match level() {
        Level::Native => found,
        hidden => format!("{found} ({VARIABLE}={} hides the others)", hidden.name()),
    }
}

fn kernel_infos() -> Vec<KernelInfo> {
    let look = |&(name, probe): &(&'static str, kernels::Probe)| match probe() {
        Ok(kernel) => KernelInfo {
            name,
            available: true,
            reason: None,
            family: Some(kernel.family()),
            // Measured first: the choice follows from it.
            instruction_seconds: kernel.instruction_seconds(),
            instructions: kernel.instructions(),
            preferred: name == kernels::preferred().name(),
            gains_from_rows: Some(LeastRows::of(kernel)),
            multiply_adds_per_second: kernel.issue_rate(RATE_TRIALS),
            largest_precision_bits: Some(largest_precision_bits(kernel.maximum_modulus_bits())),
        },
        Err(reason) => KernelInfo {
            name,
            available: false,
            reason: Some(reason),
            family: None,
            instructions: None,
            instruction_seconds: Vec::new(),
            preferred: false,
            gains_from_rows: None,
            multiply_adds_per_second: None,
            largest_precision_bits: None,
        },
    };
    let mut infos: Vec<KernelInfo> = kernels::TABLE.iter().map(look).collect();
    infos.sort_by_key(|info| !info.preferred);
    infos
}

/// The choice of a kernel, and its measurements for that.
fn instructions(kernel: &KernelInfo) -> String {
    let Some(name) = kernel.instructions else { return String::new() };
    let times = kernel.instruction_seconds.iter().map(|(name, seconds)| format!("{name} {}", format_seconds(*seconds)));
    let times = times.collect::<Vec<_>>().join(", ");
    if times.is_empty() { format!(", {name}") } else { format!(", {name} (small product: {times})") }
}

fn describe(info: &Info) -> String {
    let machine = &info.machine;
    let mut lines = vec![
        format!("sunzi {}", info.version),
        format!(
            "cpu        {} ({}, {} processors for this process)",
            machine.cpu, machine.architecture, machine.processors
        ),
        format!("features   {}", features(machine)),
        format!("memory     {} available", machine.available_bytes.map_or("unknown".into(), format_bytes)),
        format!("gmp, mpfr  {}, {}", machine.gmp, machine.mpfr),
        format!("openblas   {}", machine.openblas_core.as_deref().unwrap_or("not linked")),
    ];
    if let Some(misfit) = openblas::misfit() {
        lines.push(format!("           {}; set {}={}", misfit.what, openblas::CORE_VARIABLE, misfit.core));
    }
    lines.push("kernels, in order of preference:".into());
    for kernel in &info.kernels {
        let text = match (kernel.family, kernel.largest_precision_bits, kernel.reason) {
            (Some(family), Some(bits), _) => {
                let instructions = instructions(kernel);
                let rate = kernel
                    .multiply_adds_per_second
                    .map(|rate| format!(", {:.1} G multiply-adds per second modulo one prime", rate / 1e9));
                let purpose = kernel.gains_from_rows.as_ref().map(LeastRows::words).unwrap_or_default();
                format!("family {family}{instructions}, up to {bits} bits{}{purpose}", rate.unwrap_or_default())
            }
            (_, _, reason) => format!("not available: {}", reason.unwrap_or("unknown")),
        };
        lines.push(format!("  {:<10} {text}", kernel.name));
    }
    lines.push("kernels on devices (--device, --kernel):".into());
    for family in DeviceFamily::ALL {
        let bits = largest_precision_bits(family.maximum_modulus_bits());
        lines.push(format!("  {:<10} up to {bits} bits", family.name()));
    }
    lines.push("CUDA devices:".into());
    lines.extend(info.devices.iter().map(|device| {
        let Description { index, name, driver, memory_bytes, .. } = device;
        format!("  {index:<10} {name}, {}, {driver}", format_bytes(*memory_bytes))
    }));
    lines.extend(info.no_devices.iter().map(|reason| format!("  none: {reason}")));
    lines.join("\n")
}
