//! The report of a factorisation of doubles: times, bytes moved, memory.

use crate::device::{Description, Device, Traffic};
use crate::drive::RankReport;
use crate::runtime::{CacheCounters, Eviction, Policy};
use crate::tile::RankGrid;
use serde::Serialize;

/// The work of one device.
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
    /// The counters of a device itself, less those of `before`.
    pub(super) fn of(device: &dyn Device, before: &Traffic) -> DeviceShare {
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

/// The plan, the times and the traffic of one factorisation; the traffic is that of this rank.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
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
    /// Rows and columns of ranks that own tiles.
    pub grid: RankGrid,
    /// Tiles of other ranks that each rank has room for.
    pub slots: usize,
    /// Which task ran next.
    pub policy: Policy,
    /// The choice of the tile that left a device's memory.
    pub eviction: Eviction,
    /// Streams of each device.
    pub streams: usize,
    /// Threads of this rank's host.
    pub threads: usize,
    /// Wall-clock seconds of the call.
    pub seconds: f64,
    /// Of these: allocation, and copies of tiles to memory that devices reach.
    pub load_seconds: f64,
    /// Of these, on the slowest rank: from the first task to the last message, and until the devices are done.
    pub factor_seconds: f64,
    /// Of these: tiles copied back where that was left for the end.
    pub store_seconds: f64,
    /// Seconds in which the host factored diagonal tiles for its devices, including its waits for them.
    pub potrf_seconds: f64,
    /// `order^3 / 3` operations over `factor_seconds`, in units of 1e9.
    pub gflops: f64,
    /// Tasks of this rank, its host's included.
    pub tasks: u64,
    /// Bytes that would go to the devices if each of their tasks uploaded its operands.
    pub baseline_h2d_bytes: u64,
    /// Bytes that would come back if each of their tasks downloaded its result.
    pub baseline_d2h_bytes: u64,
    /// Bytes to all devices.
    pub h2d_bytes: u64,
    /// Bytes back.
    pub d2h_bytes: u64,
    /// `1 - moved / baseline`, both ways together; 0 where no device works.
    pub saved: f64,
    /// Bytes of host memory in addition to the matrix.
    pub host_bytes: u64,
    /// The work of each device; the traffic counted by a device is that of all ranks that share it.
    pub devices: Vec<DeviceShare>,
    /// The work of this rank.
    pub rank: RankReport,
}
