//! The devices that a command line names.

use crate::units::parse_size;
use std::sync::Arc;
use sunzi::advanced::device::soft::{Clock, SoftDevice, SoftOptions};
use sunzi::advanced::store::available_bytes;
use sunzi::{Device, Error, Result, cuda_devices, open_cuda};

/// Memory of a software device where nothing else is said.
const SOFT_BYTES: u64 = 1 << 30;

/// One item of `--device`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceChoice {
    /// The CUDA device of this number.
    Cuda(usize),
    /// All CUDA devices.
    AllCuda,
    /// A software device with so many bytes.
    Soft(u64),
    /// The processors of this machine.
    Host,
}

impl DeviceChoice {
    /// Reads an item of the list.
    ///
    /// # Errors
    /// What it should have been.
    pub fn parse(item: &str) -> std::result::Result<DeviceChoice, String> {
        match item.split_once(':').unwrap_or((item, "")) {
            ("all", "") => Ok(DeviceChoice::AllCuda),
            ("host", "") => Ok(DeviceChoice::Host),
            ("soft", "") => Ok(DeviceChoice::SOFT),
            ("soft", size) => Ok(DeviceChoice::Soft(parse_size(size)?)),
            (number, "") if number.bytes().all(|byte| byte.is_ascii_digit()) && !number.is_empty() => {
                number.parse().map(DeviceChoice::Cuda).map_err(|_| "no machine has so many devices".into())
            }
            _ => Err("none of: a number of a CUDA device, all, soft, soft:SIZE, host".into()),
        }
    }

    /// A software device with the memory that it has where nothing else is said.
    pub const SOFT: DeviceChoice = DeviceChoice::Soft(SOFT_BYTES);
}

/// Opens the devices; software devices are numbered in order, and the host's own takes so many threads.
///
/// # Errors
/// [`Error::NoDevice`], [`Error::InvalidArgument`] for a device named twice.
pub fn open(choices: &[DeviceChoice], threads: Option<usize>) -> Result<Vec<Arc<dyn Device>>> {
    let mut devices: Vec<Arc<dyn Device>> = Vec::new();
    let mut soft = 0;
    for (at, choice) in choices.iter().enumerate() {
        if !matches!(choice, DeviceChoice::Soft(_)) && choices[..at].contains(choice) {
            return Err(Error::InvalidArgument(format!("--device: {choice:?} is named twice")));
        }
        match *choice {
            DeviceChoice::Cuda(index) => devices.push(open_cuda(index)?),
            DeviceChoice::AllCuda => {
                for description in cuda_devices()? {
                    devices.push(open_cuda(description.index)?);
                }
            }
            DeviceChoice::Soft(capacity_bytes) => {
                let options = SoftOptions { capacity_bytes, index: soft, ..SoftOptions::default() };
                devices.push(Arc::new(SoftDevice::new(options)));
                soft += 1;
            }
            DeviceChoice::Host => {
                let capacity_bytes = available_bytes().unwrap_or(u64::MAX) / 2;
                let options = SoftOptions {
                    capacity_bytes,
                    clock: Clock::Wall,
                    threads: threads.unwrap_or(0),
                    ..SoftOptions::default()
                };
                devices.push(Arc::new(SoftDevice::new(options)));
            }
        }
    }
    Ok(devices)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_nonsense_is_refused() {
        let list = "0,soft,soft:64K,host,all,12".split(',').map(|item| DeviceChoice::parse(item).unwrap());
        let list = list.collect::<Vec<_>>();
        let soft = [DeviceChoice::Soft(SOFT_BYTES), DeviceChoice::Soft(65536)];
        let want = [DeviceChoice::Cuda(0), soft[0], soft[1], DeviceChoice::Host, DeviceChoice::AllCuda];
        assert_eq!((&list[..5], list[5]), (&want[..], DeviceChoice::Cuda(12)));
        for bad in ["", "gpu", "-1", "soft:x", "1:2", "0x1", "99999999999999999999999"] {
            assert!(DeviceChoice::parse(bad).is_err(), "{bad}");
        }
        assert!(open(&[DeviceChoice::Host, DeviceChoice::Host], None).is_err());
        assert_eq!(open(&[DeviceChoice::Soft(1), DeviceChoice::Soft(2)], None).unwrap()[1].description().index, 1);
    }
}
