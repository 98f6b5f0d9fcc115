//! The devices of a context, and the engines and rates kept for them.

use crate::device::Device;
use crate::error::Result;
use crate::kernels::EngineSpec;
use crate::kernels::device::{DeviceEngine, DeviceFamily, DeviceTiles, TileDevice};
use crate::kernels::tiles::TileEngine;
use crate::runtime::Eviction;
use std::sync::{Arc, Mutex, PoisonError};

/// Engines kept at the same time; the one used longest ago goes first.
const KEPT_ENGINES: usize = 8;

/// The devices that products run on, and what is kept for them.
#[derive(Default)]
pub struct DeviceSet {
    /// In the caller's order; empty where products run on the CPU.
    pub devices: Vec<Arc<dyn Device>>,
    /// The family that was forced; else the faster one is measured.
    pub family: Option<DeviceFamily>,
    /// Bytes that may be used of each; `None` for all it has.
    pub memory_bytes: Option<u64>,
    engines: Mutex<Vec<KeptDeviceEngine>>,
    rates: Mutex<Vec<(usize, DeviceFamily, f64)>>,
}

struct KeptDeviceEngine {
    family: DeviceFamily,
    spec: EngineSpec,
    engine: Arc<DeviceEngine>,
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
        let mut engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = engines.iter().position(|kept| kept.family == family && kept.spec == spec) {
            let kept = engines.remove(at);
            engines.push(kept); // the last place is the most recent use
            return Ok(engines[engines.len() - 1].engine.clone());
        }
        let engine = Arc::new(DeviceEngine::new(family, &spec)?);
        if engines.len() == KEPT_ENGINES {
            engines.remove(0);
        }
        engines.push(KeptDeviceEngine { family, spec, engine: engine.clone() });
        Ok(engine)
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
                "cuda" => DeviceFamily::I8,
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
        let rates = || self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((.., rate)) = rates().iter().find(|known| (known.0, known.1) == (index, family)) {
            return Ok(*rate);
        }
        // Unlocked meanwhile: measuring may wait for threads that ask for a rate themselves.
        let rate = measure()?;
        rates().push((index, family, rate));
        Ok(rate)
    }
}
