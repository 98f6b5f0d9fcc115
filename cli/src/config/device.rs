//! What `sunzi gpu-check` is to check, and which commands have nothing for devices to do.

use super::{Engine, optional, precision, size, threads};
use crate::error::{Error, Result};
use crate::front::cli::args::RawGpuCheck;
use crate::front::cli::devices::DeviceChoice;
use crate::kernels::device::DeviceFamily;

/// Devices to check and to measure.
#[derive(Clone, Debug)]
pub struct GpuCheck {
    /// In order.
    pub devices: Vec<DeviceChoice>,
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

impl RawGpuCheck {
    pub(super) fn resolve(self) -> Result<GpuCheck> {
        let some = |what: &str, text: Option<String>| match optional(text, |text| size(what, text))? {
            Some(0) => Err(Error::InvalidArgument(format!("{what}: a product to time needs at least 1"))),
            count => Ok(count),
        };
        let precision_bits = optional(self.precision, |text| precision("--precision", text))?;
        if let Some(bits) = precision_bits {
            DeviceFamily::ALL.iter().try_for_each(|family| super::check_reach(bits, Some(family.name())))?;
        }
        Ok(GpuCheck {
            devices: DeviceChoice::list(&self.device)?,
            threads: optional(self.threads, threads)?,
            quick: self.quick,
            rows: some("--rows", self.rows)?,
            cols: some("--cols", self.cols)?,
            precision_bits,
        })
    }
}

impl Engine {
    /// Whether devices are asked for, by name or by a kernel that runs on nothing else.
    pub fn wants_devices(&self) -> bool {
        !self.devices.is_empty() || self.kernel.is_some_and(|name| DeviceFamily::by_name(name).is_some())
    }

    /// Refuses devices where `what` runs on the CPU alone.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] with the option that asks for them.
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
