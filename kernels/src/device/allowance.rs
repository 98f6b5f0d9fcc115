//! How much of a device's memory a caller may take, where others may have opened the same device.

use crate::device::Device;
use crate::error::Error;
use serde::Serialize;

/// The memory that a rank may take of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct MemoryShare {
    /// Ranks of the machine that have opened the device, this one included.
    pub ranks: usize,
    /// Bytes that each of them may hold at the same time.
    pub bytes: u64,
}

impl MemoryShare {
    /// The whole memory of a device.
    pub const WHOLE: MemoryShare = MemoryShare { ranks: 1, bytes: u64::MAX };

    /// The share of each of `ranks` ranks. Each rank may use `capacity_bytes` of the device: the smallest number over
    /// the ranks.
    pub fn of(ranks: usize, capacity_bytes: u64) -> MemoryShare {
        match ranks {
            0 | 1 => MemoryShare::WHOLE,
            // Memory is handed out in pieces of 256 bytes.
            _ => MemoryShare { ranks, bytes: capacity_bytes / ranks as u64 / 256 * 256 },
        }
    }
}

/// The memory that a caller may use on a device: its share, within the given limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowance {
    /// The share of this rank.
    pub share: MemoryShare,
    /// The given limit for each call; `None` for the whole share.
    pub limit_bytes: Option<u64>,
}

impl Allowance {
    /// All of a device.
    pub const WHOLE: Allowance = Allowance { share: MemoryShare::WHOLE, limit_bytes: None };

    /// Bytes of the share that this opening of the device has not allocated.
    pub fn free_bytes(&self, device: &dyn Device) -> u64 {
        device.capacity_bytes().min(self.share.bytes).saturating_sub(device.used_bytes())
    }

    /// Bytes that may be taken now.
    pub fn bytes(&self, device: &dyn Device) -> u64 {
        self.free_bytes(device).min(self.limit_bytes.unwrap_or(u64::MAX))
    }

    /// The error if `bytes` are fewer than the `least` that would suffice.
    pub fn refusal(&self, bytes: u64, least: u64) -> Error {
        Error::DeviceLimit { limit_bytes: bytes, minimum_bytes: least, ranks: self.share.ranks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::soft::{SoftDevice, SoftOptions};
    use crate::device::{DeviceAllocator, DeviceStatus};

    #[test]
    fn shares_are_equal_and_within_the_device() {
        let device = SoftDevice::new(SoftOptions { capacity_bytes: 10_000, ..SoftOptions::default() });
        let allowance = |ranks: usize, limit_bytes: Option<u64>| {
            let share = MemoryShare::of(ranks, device.capacity_bytes());
            Allowance { share, limit_bytes }.bytes(&device)
        };
        assert_eq!((allowance(1, None), allowance(1, Some(300)), allowance(0, None)), (10_000, 300, 10_000));
        assert_eq!((allowance(3, None), allowance(3, Some(300))), (3328, 300));
        let held = device.allocate(3000).unwrap();
        assert_eq!((allowance(1, None), allowance(3, None), allowance(4, None)), (7000, 328, 0));
        drop(held);
        let refusal = Allowance { share: MemoryShare::of(3, 10_000), limit_bytes: None }.refusal(3328, 4000);
        assert!(refusal.to_string().contains("3 ranks"), "{refusal}");
        assert!(!Allowance::WHOLE.refusal(1, 2).to_string().contains("ranks"));
    }
}
