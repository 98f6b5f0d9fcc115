//! The devices of one rank: its tiles are theirs, a grid of them, and their memories are caches of what they read.
//!
//! Updates and TRSM run on the device that owns the tile, POTRF on the host. A tile's home is page-locked memory of its
//! device; finished tiles are copied from there into the matrix, which is what travels. Tiles of other ranks are
//! ordinary host memory: a device copies them through staging buffers. Whatever no task of a device will read again
//! leaves its memory first.

use super::work::Work;
use super::{DoubleMatrix, DoubleRankOptions};
use crate::comm::post::Body;
use crate::context::Context;
use crate::drive::{HostCopy, RankTiles};
use crate::error::{Error, Result};
use crate::kernels::f64::tile::TileKernels;
use crate::ops::double::{DeviceChoices, DeviceShare, DeviceTiles, HostTiles, UnderWay};
use crate::runtime::protocol::{DeviceSites, Sites, TileRun};
use crate::tile::{RankGrid, TileId};
use serde::Serialize;

/// Streams of each device: uploads, work and downloads.
const STREAMS: usize = 3;

/// What the devices of one rank did.
#[derive(Clone, Debug, Serialize)]
pub struct RankDevices {
    /// Workers of each device.
    pub workers: usize,
    /// Bytes that would go to the devices if each of their tasks uploaded its operands.
    pub baseline_h2d_bytes: u64,
    /// Bytes that would come back if each of their tasks downloaded its result.
    pub baseline_d2h_bytes: u64,
    /// Bytes to all devices.
    pub h2d_bytes: u64,
    /// Bytes back.
    pub d2h_bytes: u64,
    /// What each device did; the traffic counted by a device is that of all ranks that share it.
    pub devices: Vec<DeviceShare>,
}

/// The devices of one rank, and who works for them.
pub(super) struct RankWorkers {
    devices: DeviceTiles,
    workers: usize,
}

/// The grid of the context's devices over the tiles of a rank; `None` where there are no devices, or no tiles for
/// them. As ranks beyond their grid, devices beyond theirs have nothing to do.
fn grid_of(ctx: &Context, a: &DoubleMatrix) -> Option<RankGrid> {
    let devices = ctx.devices().devices.len();
    (devices > 0 && a.tiles().next().is_some()).then(|| RankGrid::for_ranks(devices))
}

/// Bytes of host memory for the devices, beside the matrix and its slots.
pub(super) fn planned_bytes(ctx: &Context, a: &DoubleMatrix) -> u64 {
    let tiles = a.tiles().map(|(tile, _)| tile);
    grid_of(ctx, a).map_or(0, |grid| HostTiles::planned_bytes(a.map(), tiles, grid.size()))
}

impl RankWorkers {
    /// The devices of the context, with the tiles at home in their memory; `None` where there are no devices, or no
    /// tiles for them.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for 0 workers; [`Error::DeviceLimit`] with the least bytes that would do;
    /// [`Error::OutOfMemory`]; [`Error::DeviceLost`].
    pub fn open(ctx: &Context, a: &DoubleMatrix, options: &DoubleRankOptions) -> Result<Option<RankWorkers>> {
        let Some(grid) = grid_of(ctx, a) else { return Ok(None) };
        let workers = options.device_workers;
        if workers == 0 {
            return Err(Error::InvalidArgument("a device without workers: choose 1 or more".into()));
        }
        let bytes = ctx.devices().memory_bytes;
        let choices = DeviceChoices { grid, eviction: options.eviction, bytes, stream_count: STREAMS, staged: true };
        let devices = DeviceTiles::open(&ctx.devices().devices, *a.map(), a.rank(), &choices)?;
        for (tile, entries) in a.tiles() {
            devices.host.own(tile).lock()?.copy_from_slice(bytemuck::cast_slice(entries));
        }
        Ok(Some(RankWorkers { devices, workers }))
    }

    /// What the protocol is told of them.
    pub fn sites(&self) -> DeviceSites {
        DeviceSites { grid: self.devices.grid, workers: self.workers, lookahead: None }
    }

    /// Tiles that there is room for on the device with the fewest.
    pub fn room_tiles(&self) -> usize {
        self.devices.room_tiles()
    }

    /// One worker for the host, with all threads, and those of the devices, which wait for each of their runs.
    pub fn locals(&self, ctx: &Context) -> Vec<Local> {
        let host = Local::Host((0..ctx.threads()).map(|_| TileKernels::new()).collect());
        let worker = |device| Local::Device { device, under_way: UnderWay::new(0) };
        let devices = (0..self.devices.grid.size()).flat_map(|device| (0..self.workers).map(move |_| worker(device)));
        std::iter::once(host).chain(devices).collect()
    }

    /// What the devices did, once all is done.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn report(&self) -> Result<RankDevices> {
        let (devices, baseline) = (self.devices.shares()?, self.devices.baseline());
        Ok(RankDevices {
            workers: self.workers,
            baseline_h2d_bytes: baseline.up_bytes,
            baseline_d2h_bytes: baseline.down_bytes,
            h2d_bytes: devices.iter().map(|share| share.cache.up_bytes).sum(),
            d2h_bytes: devices.iter().map(|share| share.cache.down_bytes).sum(),
            devices,
        })
    }
}

/// What a worker has for itself.
pub(super) enum Local {
    /// The worker that factors tiles on the diagonal, with kernels for each thread.
    Host(Vec<TileKernels>),
    /// A worker of a device.
    Device {
        /// Its number.
        device: usize,
        /// What it waits for.
        under_way: UnderWay,
    },
}

/// One factorisation under way, on devices.
pub(super) struct DeviceWork<'a> {
    pub ctx: &'a Context,
    pub work: Work<'a>,
    pub fleet: &'a RankWorkers,
}

impl DeviceWork<'_> {
    /// Host memory of a device that holds a tile.
    fn home(&self, device: usize, tile: TileId) -> Result<HostCopy> {
        let host = &self.fleet.devices.host;
        match host.owner(tile) {
            Some(_) => host.home(device, tile),
            None => host.stage(device, bytemuck::cast_slice(&self.work.operand(tile))),
        }
    }

    /// Updates, and TRSM with them.
    fn on_device(&self, device: usize, under_way: &mut UnderWay, run: &TileRun) -> Result<()> {
        let devices = &self.fleet.devices;
        devices.run(device, run, under_way, |tile| self.home(device, tile))?;
        if run.finish {
            self.work.put(run.tile, bytemuck::cast_slice(&devices.host.own(run.tile).lock()?));
        }
        Ok(())
    }

    /// POTRF, at the tile's home.
    fn on_host(&self, kernels: &mut [TileKernels], tile: TileId) -> Result<()> {
        let devices = &self.fleet.devices;
        devices.factor(self.ctx, kernels, tile, |bad| self.work.failure(tile.row, bad))?;
        self.work.put(tile, bytemuck::cast_slice(&devices.host.own(tile).lock()?));
        Ok(())
    }
}

impl RankTiles for DeviceWork<'_> {
    type Local = Local;

    const UNPACKS: bool = false;

    fn site(local: &Local) -> usize {
        match local {
            Local::Host(_) => Sites::HOST,
            Local::Device { device, .. } => Sites::FIRST_DEVICE + device,
        }
    }

    fn run(&self, local: &mut Local, run: &TileRun) -> Result<()> {
        match local {
            Local::Host(kernels) => self.on_host(kernels, run.tile),
            Local::Device { device, under_way } => self.on_device(*device, under_way, run),
        }
    }

    fn pack(&self, _local: &mut Local, tile: TileId) -> Result<Body> {
        Ok(self.work.operand(tile))
    }

    fn payload_words(&self, tile: TileId) -> usize {
        self.work.payload_words(tile)
    }

    fn buffers(&self) -> Vec<Vec<u64>> {
        self.work.buffers()
    }

    fn arrived(&self, tile: TileId, body: &Body) {
        self.work.arrived(tile, body);
    }

    /// No task reads the tile again, so no copy of it is under way, and the devices have forgotten it.
    fn release(&self, tile: TileId) {
        self.work.release(tile);
    }

    fn is_near(&self, site: usize, tile: TileId) -> bool {
        site.checked_sub(Sites::FIRST_DEVICE).is_none_or(|device| self.fleet.devices.holds(device, tile))
    }

    fn advanced(&self, run: &TileRun) -> Result<()> {
        self.work.advanced(run)
    }
}
