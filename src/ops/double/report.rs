//! What a factorisation of doubles on devices tells about itself: times, bytes moved, memory.

use crate::device::{Description, Device, Traffic};
use crate::runtime::{CacheCounters, Eviction, Policy};
use serde::Serialize;

/// What one device did.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceShare {
    /// The device.
    pub device: Description,
    /// Tiles that its memory had room for.
    pub room_tiles: usize,
    /// Tasks it ran.
    pub tasks: u64,
    /// Bytes moved, as the device counted them.
    pub traffic: Traffic,
    /// Bytes moved, as its cache decided them.
    pub cache: CacheCounters,
    /// Bytes copied on the host from tiles of other devices.
    pub staged_bytes: u64,
    /// Seconds of the device's clock.
    pub device_seconds: f64,
    /// Most bytes that were allocated on it at any time.
    pub peak_bytes: u64,
}

impl DeviceShare {
    /// What a device itself tells, since it told `before`.
    pub(in crate::ops) fn of(device: &dyn Device, before: &Traffic) -> DeviceShare {
        DeviceShare {
            device: device.description(),
            room_tiles: 0,
            tasks: 0,
            traffic: device.traffic().since(before),
            cache: CacheCounters::default(),
            staged_bytes: 0,
            device_seconds: 0.0,
            peak_bytes: device.peak_bytes(),
        }
    }
}

/// The plan, the times and the traffic of one factorisation.
#[derive(Clone, Debug, Serialize)]
pub struct DoubleReport {
    /// `cholesky`.
    pub operation: &'static str,
    /// `double`.
    pub element: &'static str,
    /// Rows of the matrix.
    pub order: usize,
    /// Rows of a tile.
    pub tile_rows: usize,
    /// Tile rows.
    pub tiles: usize,
    /// Which task ran next.
    pub policy: Policy,
    /// Which tile left.
    pub eviction: Eviction,
    /// Streams of each device.
    pub streams: usize,
    /// Threads of the host.
    pub threads: usize,
    /// Wall-clock seconds of the call.
    pub seconds: f64,
    /// Of these: memory, and the matrix cut into tiles.
    pub load_seconds: f64,
    /// Of these: from tiles to tiles.
    pub factor_seconds: f64,
    /// Of these: tiles put together.
    pub store_seconds: f64,
    /// Seconds in which the host factored diagonal tiles, its waiting for them included; of all devices together.
    pub potrf_seconds: f64,
    /// `order^3 / 3` operations over `factor_seconds`, in units of 1e9.
    pub gflops: f64,
    /// Tasks, the host's included.
    pub tasks: u64,
    /// Bytes that would move if each task of a device uploaded its operands and downloaded its result.
    pub baseline_bytes: u64,
    /// Bytes moved both ways by all devices.
    pub moved_bytes: u64,
    /// `1 - moved_bytes / baseline_bytes`.
    pub saved: f64,
    /// Bytes of host memory for tiles.
    pub host_bytes: u64,
    /// What each device did.
    pub devices: Vec<DeviceShare>,
}
