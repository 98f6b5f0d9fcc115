//! `sunzi info`: what this CPU and this build can do.

use crate::session::Session;
use serde::Serialize;
use sunzi::advanced::device::Description;
use sunzi::advanced::kernels;
use sunzi::advanced::kernels::device::DeviceFamily;
use sunzi::{Result, cuda_devices};
use sunzi_lab::engine::largest_precision_bits;
use sunzi_lab::machine::Machine;
use sunzi_lab::session::Session as _;
use sunzi_lab::units::format_bytes;

/// One kernel of the table.
#[derive(Serialize)]
struct KernelInfo {
    name: &'static str,
    available: bool,
    /// What is missing, where it is not available.
    reason: Option<&'static str>,
    family: Option<&'static str>,
    /// What it has chosen on this CPU, where it has a choice.
    instructions: Option<&'static str>,
    largest_precision_bits: Option<u32>,
}

#[derive(Serialize)]
struct Info {
    version: &'static str,
    machine: Machine,
    kernels: Vec<KernelInfo>,
    devices: Vec<Description>,
    /// Why there are none.
    no_devices: Option<String>,
}

pub fn run(session: &mut Session) -> Result<()> {
    let (devices, no_devices) = match cuda_devices() {
        Ok(devices) => (devices, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let (version, machine) = (env!("CARGO_PKG_VERSION"), Machine::look());
    let info = Info { version, machine, kernels: kernel_infos(), devices, no_devices };
    session.finish_report(&info)?;
    session.say(&describe(&info))
}

fn kernel_infos() -> Vec<KernelInfo> {
    let look = |&(name, probe): &(&'static str, kernels::Probe)| match probe() {
        Ok(kernel) => KernelInfo {
            name,
            available: true,
            reason: None,
            family: Some(kernel.family()),
            instructions: kernel.instructions(),
            largest_precision_bits: Some(largest_precision_bits(kernel.maximum_modulus_bits())),
        },
        Err(reason) => KernelInfo {
            name,
            available: false,
            reason: Some(reason),
            family: None,
            instructions: None,
            largest_precision_bits: None,
        },
    };
    kernels::TABLE.iter().map(look).collect()
}

fn describe(info: &Info) -> String {
    let machine = &info.machine;
    let mut lines = vec![
        format!("sunzi {}", info.version),
        format!(
            "cpu        {} ({}, {} processors for this process)",
            machine.cpu, machine.architecture, machine.processors
        ),
        format!(
            "features   {}",
            if machine.features.is_empty() { "none looked for".into() } else { machine.features.join(" ") }
        ),
        format!("memory     {} available", machine.available_bytes.map_or("unknown".into(), format_bytes)),
        format!("gmp, mpfr  {}, {}", machine.gmp, machine.mpfr),
        format!("openblas   {}", machine.openblas_core.as_deref().unwrap_or("not linked")),
    ];
    if let Some(remark) = machine.openblas_remark() {
        lines.push(format!("           {remark}"));
    }
    lines.push("kernels, the preferred first:".into());
    for kernel in &info.kernels {
        let text = match (kernel.family, kernel.largest_precision_bits, kernel.reason) {
            (Some(family), Some(bits), _) => {
                let instructions = kernel.instructions.map(|name| format!(", {name}")).unwrap_or_default();
                format!("family {family}{instructions}, up to {bits} bits")
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
