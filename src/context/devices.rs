//! The devices of a context, and the engines and rates kept for them.

use crate::context::cache::KeyedCache;
use crate::device::{Device, DeviceKind};
use crate::error::Result;
use crate::kernels::EngineSpec;
use crate::kernels::device::{DeviceEngine, DeviceFamily, DeviceTiles, TileDevice};
use crate::kernels::tiles::TileEngine;
use crate::runtime::Eviction;
use std::sync::Arc;

/// The devices that products run on, and what is kept for them.
#[derive(Default)]
pub struct DeviceSet {
    /// In the caller's order; empty where products run on the CPU.
    pub devices: Vec<Arc<dyn Device>>,
    /// The family that was forced; else the faster one is measured.
    pub family: Option<DeviceFamily>,
    /// Bytes that may be used of each; `None` for all it has.
    pub memory_bytes: Option<u64>,
    engines: KeyedCache<(DeviceFamily, EngineSpec), Arc<DeviceEngine>>,
    /// Those of every device there can be.
    rates: KeyedCache<(usize, DeviceFamily), f64, 1024>,
}

impl DeviceSet {
    /// These devices, and how much of each may be used.
    pub fn new(devices: Vec<Arc<dyn Device>>, memory_bytes: Option<u64>) -> DeviceSet {
        DeviceSet { devices, memory_bytes, ..DeviceSet::default() }
    }

    /// The engine of `family` for `spec`, made at the first call and kept.
    ///
    /// # Errors
    /// [`crate::Error::Precision`].
    pub fn engine(&self, family: DeviceFamily, spec: EngineSpec) -> Result<Arc<DeviceEngine>> {
        self.engines.get_or_make((family, spec), || DeviceEngine::new(family, &spec).map(Arc::new))
    }

    /// Whether there is no device.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty()
    }

    /// Tile kernels over the devices, or those of the CPU where there is none.
    ///
    /// # Errors
    /// [`crate::Error::Precision`].
    pub fn tile_engine(
        &self,
        (working_bits, self_check): (u32, bool),
        on_cpu: Arc<dyn TileEngine>,
    ) -> Result<Arc<dyn TileEngine>> {
        if self.devices.is_empty() {
            return Ok(on_cpu);
        }
        let of = |device: &Arc<dyn Device>| {
            // The CPU multiplies doubles as fast as bytes, or faster.
            let family = self.family.unwrap_or(match device.description().kind {
                DeviceKind::Cuda => DeviceFamily::I8,
                _ => DeviceFamily::F64,
            });
            TileDevice { device: device.clone(), family, memory_bytes: self.memory_bytes.unwrap_or(u64::MAX) }
        };
        let devices = self.devices.iter().map(of).collect();
        Ok(Arc::new(DeviceTiles::new(devices, (working_bits, self_check), Eviction::Lru, on_cpu)?))
    }

    /// What `measure` finds for device number `index` and `family`, kept after the first time.
    ///
    /// # Errors
    /// Those of `measure`.
    pub fn rate(&self, index: usize, family: DeviceFamily, measure: impl FnOnce() -> Result<f64>) -> Result<f64> {
        // Unlocked meanwhile: measuring may wait for threads that ask for a rate themselves.
        self.rates.get_or_make_unlocked((index, family), measure)
    }
}
