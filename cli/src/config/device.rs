//! What `sunzi gpu-check` is to check, and which commands have nothing for devices to do.

use super::{optional, precision, size, threads};
use crate::args::RawGpuCheck;
use sunzi::error::{Error, Result};
use sunzi::kernels::device::DeviceFamily;
use sunzi_lab::devices::DeviceChoice;
use sunzi_lab::gpu_check::GpuCheck;

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
