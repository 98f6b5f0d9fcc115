//! The devices of a context, and the engines and rates kept for them.

use crate::context::cache::KeyedCache;
use crate::device::{Allowance, Device, DeviceKind, MemoryShare};
use crate::error::Result;
use crate::kernels::EngineSpec;
use crate::kernels::device::{DeviceEngine, DeviceFamily, DeviceTiles, TileDevice};
use crate::kernels::tiles::TileEngine;
use crate::runtime::Eviction;
use std::sync::Arc;

/// The devices that products run on, and the data kept for them.
#[derive(Default)]
pub struct DeviceSet {
    /// In the caller's order; empty if products run on the CPU.
    pub devices: Vec<Arc<dyn Device>>,
    /// The family that was forced; otherwise the faster one is measured.
    pub family: Option<DeviceFamily>,
    /// Bytes that may be used on each device; `None` for all its memory.
    pub memory_bytes: Option<u64>,
    /// This rank's share of each device; empty if only this process uses them.
    shares: Arc<[MemoryShare]>,
    kept: Arc<DeviceCache>,
}

/// The data kept for the devices between calls.
#[derive(Default)]
struct DeviceCache {
    engines: KeyedCache<(DeviceFamily, EngineSpec), Arc<DeviceEngine>>,
    /// With room for every possible device.
    rates: KeyedCache<(usize, DeviceFamily), f64, 1024>,
}

impl DeviceSet {
    /// These devices, and the memory that may be used on each; announces the use to other processes.
    pub fn new(devices: Vec<Arc<dyn Device>>, memory_bytes: Option<u64>) -> DeviceSet {
        devices.iter().for_each(|device| device.announce());
        DeviceSet { devices, memory_bytes, ..DeviceSet::default() }
    }

    /// The same devices with these shares of this rank, and the same kept data.
    pub(super) fn shared(&self, shares: Arc<[MemoryShare]>) -> DeviceSet {
        let (devices, kept) = (self.devices.clone(), self.kept.clone());
        DeviceSet { devices, family: self.family, memory_bytes: self.memory_bytes, shares, kept }
    }

    /// The share of each device that is this rank's.
    pub(super) fn shares(&self) -> Arc<[MemoryShare]> {
        self.shares.clone()
    }

    /// The memory that may be used of device number `index`.
    pub fn allowance(&self, index: usize) -> Allowance {
        let share = self.shares.get(index).copied().unwrap_or(MemoryShare::WHOLE);
        Allowance { share, limit_bytes: self.memory_bytes }
    }

    /// The engine of `family` for `spec`; it is made by the first call and kept.
    ///
    /// # Errors
    /// [`crate::Error::Precision`].
    pub fn engine(&self, family: DeviceFamily, spec: EngineSpec) -> Result<Arc<DeviceEngine>> {
        self.kept.engines.get_or_make((family, spec), || DeviceEngine::new(family, &spec).map(Arc::new))
    }

    /// Whether there is no device.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty()
    }

    /// Tile kernels over the devices, or on the CPU if there are no devices.
    ///
    /// # Errors
    /// [`crate::Error::Precision`].
    pub fn tile_engine(
        &self,
        working_bits: u32,
        self_check: bool,
        on_cpu: Arc<dyn TileEngine>,
    ) -> Result<Arc<dyn TileEngine>> {
        if self.devices.is_empty() {
            return Ok(on_cpu);
        }
        let of = |(index, device): (usize, &Arc<dyn Device>)| {
            // The CPU multiplies doubles as fast as bytes, or faster.
            let family = self.family.unwrap_or(match device.description().kind {
                DeviceKind::Cuda => DeviceFamily::I8,
                _ => DeviceFamily::F64,
            });
            TileDevice { device: device.clone(), family, allowance: self.allowance(index) }
        };
        let devices = self.devices.iter().enumerate().map(of).collect();
        Ok(Arc::new(DeviceTiles::new(devices, working_bits, self_check, Eviction::Lru, on_cpu)?))
    }

    /// The result of `measure` for device number `index` and `family`, kept after the first call.
    ///
    /// # Errors
    /// The errors of `measure`.
    pub fn rate(&self, index: usize, family: DeviceFamily, measure: impl FnOnce() -> Result<f64>) -> Result<f64> {
        // Unlocked meanwhile: measuring may wait for threads that need a rate themselves.
        self.kept.rates.get_or_make_unlocked((index, family), measure)
    }
}
