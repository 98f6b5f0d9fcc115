//! Devices by name: the names that a user types, and the devices that they mean.

use crate::device::soft::{Clock, SoftDevice, SoftOptions};
use crate::device::{Device, cuda_devices, open_cuda};
use crate::error::{Error, Result};
use crate::store::available_bytes;
use std::sync::Arc;

/// Memory of a software device where no size is given.
const SOFT_BYTES: u64 = 1 << 30;

/// One name in a list of devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceName {
    /// The CUDA device of this number.
    Cuda(usize),
    /// All CUDA devices.
    AllCuda,
    /// A software device with this number of bytes of memory.
    Soft(u64),
    /// The CPU of this machine.
    Host,
}

impl DeviceName {
    /// A software device with the default memory size.
    pub const SOFT: DeviceName = DeviceName::Soft(SOFT_BYTES);

    /// Reads a name: `0` or `cuda:0`, `all` or `cuda`, `soft`, `soft:SIZE`, `host`; `size` reads the bytes of a size.
    ///
    /// # Errors
    /// A text that describes valid names.
    pub fn parse(
        text: &str,
        size: impl Fn(&str) -> std::result::Result<u64, String>,
    ) -> std::result::Result<DeviceName, String> {
        let number = text.strip_prefix("cuda:").unwrap_or(text);
        match (text, text.strip_prefix("soft:")) {
            ("all" | "cuda", _) => Ok(DeviceName::AllCuda),
            ("host", _) => Ok(DeviceName::Host),
            ("soft", _) => Ok(DeviceName::SOFT),
            (_, Some(bytes)) => Ok(DeviceName::Soft(size(bytes)?)),
            _ if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
                number.parse().map(DeviceName::Cuda).map_err(|_| "a number that is too large for a device".into())
            }
            _ => Err("none of: a number of a CUDA device (0 or cuda:0), all (or cuda), soft, soft:SIZE, host".into()),
        }
    }

    /// Opens devices; software devices are numbered in order, and the CPU uses `threads` threads (`None` for all
    /// processors).
    ///
    /// # Errors
    /// [`Error::NoDevice`], [`Error::InvalidArgument`] for a device named twice.
    pub fn open(names: &[DeviceName], threads: Option<usize>) -> Result<Vec<Arc<dyn Device>>> {
        let mut devices: Vec<Arc<dyn Device>> = Vec::new();
        let mut soft = 0;
        for (at, name) in names.iter().enumerate() {
            if !matches!(name, DeviceName::Soft(_)) && names[..at].contains(name) {
                return Err(Error::InvalidArgument(format!("the device {name:?} is named twice")));
            }
            match *name {
                DeviceName::Cuda(index) => devices.push(open_cuda(index)?),
                DeviceName::AllCuda => {
                    for description in cuda_devices()? {
                        devices.push(open_cuda(description.index)?);
                    }
                }
                DeviceName::Soft(capacity_bytes) => {
                    let options = SoftOptions { capacity_bytes, index: soft, ..SoftOptions::default() };
                    devices.push(Arc::new(SoftDevice::new(options)));
                    soft += 1;
                }
                DeviceName::Host => {
                    let capacity_bytes = available_bytes().unwrap_or(u64::MAX) / 2;
                    let (clock, threads) = (Clock::Wall, threads.unwrap_or(0));
                    let options = SoftOptions { capacity_bytes, clock, threads, ..SoftOptions::default() };
                    devices.push(Arc::new(SoftDevice::new(options)));
                }
            }
        }
        Ok(devices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_nonsense_is_refused() {
        let parse = |text: &str| DeviceName::parse(text, |size| size.parse::<u64>().map_err(|error| error.to_string()));
        let names = ["0", "cuda:0", "soft", "soft:65536", "host", "all", "cuda", "12"];
        let names = names.map(|name| parse(name).unwrap());
        let soft = [DeviceName::SOFT, DeviceName::Soft(65536)];
        let want = [DeviceName::Cuda(0), DeviceName::Cuda(0), soft[0], soft[1], DeviceName::Host];
        assert_eq!((&names[..5], names[7]), (&want[..], DeviceName::Cuda(12)));
        assert_eq!(names[5..7], [DeviceName::AllCuda; 2]);
        for bad in ["", "gpu", "-1", "soft:x", "1:2", "0x1", "cuda:", "host:1", "99999999999999999999999"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(DeviceName::open(&[DeviceName::Host, DeviceName::Host], None).is_err());
        let soft = DeviceName::open(&[DeviceName::Soft(1), DeviceName::Soft(2)], None).unwrap();
        assert_eq!(soft[1].description().label(), "soft 1");
    }
}
