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
    /// Tiles that fit in its memory.
    pub room_tiles: usize,
    /// Tasks it ran.
    pub tasks: u64,
    /// Bytes transferred, as counted by the device.
    pub traffic: Traffic,
    /// Bytes transferred, as counted by the device's tile cache.
    pub cache: CacheCounters,
    /// Bytes copied on the host from tiles of other devices.
    pub staged_bytes: u64,
    /// Seconds measured by the device's clock.
    pub device_seconds: f64,
    /// The largest number of bytes that were allocated on it at any time.
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

/// The plan, the times and the transfers of one factorisation; transfers are those of this rank.
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
    /// Rows and columns of the grid of ranks that own tiles.
    pub grid: RankGrid,
    /// Tiles of other ranks that each rank could hold.
    pub slots: usize,
    /// The order of ready tasks.
    pub policy: Policy,
    /// The rule that selected the tile to be evicted from a device's memory.
    pub eviction: Eviction,
    /// Streams of each device.
    pub streams: usize,
    /// Threads of this rank's host.
    pub threads: usize,
    /// Wall-clock seconds of the call.
    pub seconds: f64,
    /// Part of the call's seconds: allocation, and copies of tiles to memory that devices can access.
    pub load_seconds: f64,
    /// Part of the call's seconds, on the slowest rank: from the first task to the last message, and until the devices
    /// are finished.
    pub factor_seconds: f64,
    /// Part of the call's seconds: copies of tiles back to the host, if they were deferred to the end.
    pub store_seconds: f64,
    /// Seconds in which the host factored diagonal tiles for its devices, including the time it waited for them.
    pub potrf_seconds: f64,
    /// `order^3 / 3` operations over `factor_seconds`, in units of 1e9.
    pub gflops: f64,
    /// Tasks of this rank, including tasks on its host.
    pub tasks: u64,
    /// Bytes that would go to the devices if each of their tasks uploaded its operands.
    pub baseline_h2d_bytes: u64,
    /// Bytes that would come back if each of their tasks downloaded its result.
    pub baseline_d2h_bytes: u64,
    /// Bytes copied to all devices.
    pub h2d_bytes: u64,
    /// Bytes back.
    pub d2h_bytes: u64,
    /// `1 - moved / baseline`, both directions together; 0 if no device was used.
    pub saved: f64,
    /// Bytes of host memory in addition to the matrix.
    pub host_bytes: u64,
    /// The work of each device; transfers counted by a device include all ranks that share it.
    pub devices: Vec<DeviceShare>,
    /// The work of this rank.
    pub rank: RankReport,
}
