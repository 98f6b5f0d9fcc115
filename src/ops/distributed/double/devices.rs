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
use crate::device::{Device, Traffic};
use crate::drive::{Home, RankTiles, SharedLane};
use crate::error::{Error, Result};
use crate::kernels::f64::tile::TileKernels;
use crate::ops::double::{DeviceShare, HostTiles, factor, lane, submit, tile_bytes};
use crate::runtime::CholeskyGraph;
use crate::runtime::protocol::{DeviceSites, Sites, TileRun};
use crate::runtime::{Access, TileUse, baseline_traffic};
use crate::tile::{RankGrid, TileId};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::sync::{Arc, Mutex, PoisonError};

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

/// The devices of one rank with all of its tiles.
pub(super) struct Fleet {
    lanes: Vec<SharedLane>,
    /// By device: tasks that are still to read a finished tile, from the first of them on.
    readers: Vec<Mutex<FxHashMap<TileId, usize>>>,
    before: Vec<Traffic>,
    host: HostTiles,
    grid: RankGrid,
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

impl Fleet {
    /// The devices of the context, with the tiles at home in their memory; `None` where there are no devices, or no
    /// tiles for them.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for 0 workers; [`Error::DeviceLimit`] with the least bytes that would do;
    /// [`Error::OutOfMemory`]; [`Error::DeviceLost`].
    pub fn open(ctx: &Context, a: &DoubleMatrix, options: &DoubleRankOptions) -> Result<Option<Fleet>> {
        let Some(grid) = grid_of(ctx, a) else { return Ok(None) };
        let devices = &ctx.devices().devices[..grid.size()];
        let workers = options.device_workers;
        if workers == 0 {
            return Err(Error::InvalidArgument("a device without workers: choose 1 or more".into()));
        }
        let tiling = *a.map();
        let before = devices.iter().map(|device| device.traffic()).collect();
        let lane = |device: &Arc<dyn Device>| {
            let lane = lane(device, &tiling, ctx.devices().memory_bytes, STREAMS)?;
            Ok(SharedLane::new(lane, CholeskyGraph::of(&tiling), options.victim))
        };
        let lanes = devices.iter().map(lane).collect::<Result<_>>()?;
        let ranks = a.map().grid;
        let owners = a.tiles().map(|(tile, _)| (tile, grid.owner(ranks.within(tile))));
        let host = HostTiles::new(tiling, devices, owners, devices.len())?;
        for (tile, entries) in a.tiles() {
            host.own(tile).lock()?.copy_from_slice(bytemuck::cast_slice(entries));
        }
        let readers = devices.iter().map(|_| Mutex::default()).collect();
        Ok(Some(Fleet { lanes, readers, before, host, grid, workers }))
    }

    /// What the protocol is told of them.
    pub fn sites(&self) -> DeviceSites {
        DeviceSites { grid: self.grid, workers: self.workers }
    }

    /// Tiles that there is room for on the device with the fewest.
    pub fn room_tiles(&self) -> usize {
        self.lanes.iter().map(SharedLane::room_tiles).min().unwrap_or(0)
    }

    /// One worker for the host, with all threads, and those of the devices.
    pub fn locals(&self, ctx: &Context) -> Vec<Local> {
        let host = Local::Host((0..ctx.threads()).map(|_| TileKernels::new()).collect());
        let devices = (0..self.lanes.len()).flat_map(|device| (0..self.workers).map(move |_| Local::Device(device)));
        std::iter::once(host).chain(devices).collect()
    }

    /// Tasks of a device that read a finished tile.
    fn count_readers(&self, device: usize, tile: TileId) -> usize {
        let graph = CholeskyGraph::of(&self.host.tiling);
        let readers = graph.successors(graph.finish(tile)).into_iter().map(|task| graph.output(task));
        readers.filter(|&output| self.host.owner(output) == Some(device)).count()
    }

    /// Takes in that a task of a device has read a finished tile: after the last one its place is wanted for others.
    fn has_read(&self, device: usize, tile: TileId) {
        let mut readers = self.readers[device].lock().unwrap_or_else(PoisonError::into_inner);
        let left = readers.entry(tile).or_insert_with(|| self.count_readers(device, tile));
        *left -= 1;
        if *left == 0 {
            readers.remove(&tile);
            self.lanes[device].forget(tile);
        }
    }

    /// What the devices did, once all is done.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn report(&self, a: &DoubleMatrix) -> Result<RankDevices> {
        let share = |(index, (lane, before)): (usize, (&SharedLane, &Traffic))| {
            let (device_seconds, (cache, tasks)) = (lane.finish()?, lane.counters());
            let (room_tiles, staged_bytes) = (lane.room_tiles(), self.host.staged_bytes(index));
            let own = DeviceShare::of(lane.device(), before);
            Ok(DeviceShare { room_tiles, tasks, cache, staged_bytes, device_seconds, ..own })
        };
        let devices = self.lanes.iter().zip(&self.before).enumerate().map(share).collect::<Result<Vec<_>>>()?;
        let tiling = &self.host.tiling;
        let owns = |tile: TileId| a.own.contains_key(&tile);
        let (up, down) = baseline_traffic(CholeskyGraph::of(tiling), owns, |tile| tile_bytes(tiling, tile) as u64);
        Ok(RankDevices {
            workers: self.workers,
            baseline_h2d_bytes: up,
            baseline_d2h_bytes: down,
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
    /// A worker of the device of that number.
    Device(usize),
}

/// One factorisation under way, on devices.
pub(super) struct DeviceWork<'a> {
    pub ctx: &'a Context,
    pub work: Work<'a>,
    pub fleet: &'a Fleet,
}

impl DeviceWork<'_> {
    /// Host memory of a device that holds a tile.
    fn home(&self, device: usize, tile: TileId) -> Result<Home> {
        let host = &self.fleet.host;
        match host.owner(tile) {
            Some(_) => host.home(device, tile),
            None => host.stage(device, bytemuck::cast_slice(&self.work.operand(tile))),
        }
    }

    /// Updates, and TRSM with them; a tile on the diagonal goes home after its last update.
    fn on_device(&self, device: usize, run: &TileRun) -> Result<()> {
        let Fleet { lanes, host, .. } = self.fleet;
        let (lane, tile, graph) = (&lanes[device], run.tile, CholeskyGraph::of(&host.tiling));
        let home = |tile| self.home(device, tile);
        let one = |tile, access| TileUse { tile, bytes: tile_bytes(&host.tiling, tile) as u64, access };
        let mut turn = lane.turn();
        let mut end = None;
        let updates = run.updates.clone().map(|k| graph.update(tile, k));
        for task in updates.chain(run.finish.then(|| graph.finish(tile))) {
            let reads = graph.inputs(task).into_iter().map(|tile| one(tile, Access::Read));
            let uses = reads.chain([one(tile, Access::Update)]).collect::<Vec<_>>();
            end = Some(
                turn.run(&uses, home, |device, stream, regions| submit(&host.tiling, device, stream, task, regions))?,
            );
            graph.inputs(task).into_iter().for_each(|input| self.fleet.has_read(device, input));
        }
        if run.finish {
            turn.write_back(tile, home)?;
            if self.fleet.count_readers(device, tile) == 0 {
                lane.forget(tile);
            }
        } else if tile.row == tile.col && run.updates.end == tile.col {
            turn.send_home(tile, home)?;
        }
        drop(turn);
        end.map_or(Ok(()), |end| lane.device().synchronize(&end))?;
        if run.finish {
            self.work.put(tile, bytemuck::cast_slice(&host.own(tile).lock()?));
        }
        Ok(())
    }

    /// POTRF, at the tile's home.
    fn on_host(&self, kernels: &mut [TileKernels], tile: TileId) -> Result<()> {
        let (rows, _) = self.fleet.host.tiling.shape(tile);
        let mut home = self.fleet.host.own(tile).lock()?;
        let entries = bytemuck::cast_slice_mut::<u8, f64>(&mut home);
        let done = self.ctx.install(|| factor(entries, rows, kernels));
        done.map_err(|bad| self.work.failure(tile.row, bad))?;
        self.work.put(tile, bytemuck::cast_slice(&home));
        Ok(())
    }
}

impl RankTiles for DeviceWork<'_> {
    type Local = Local;

    const UNPACKS: bool = false;

    fn site(local: &Local) -> usize {
        match local {
            Local::Host(_) => Sites::HOST,
            Local::Device(device) => Sites::FIRST_DEVICE + device,
        }
    }

    fn run(&self, local: &mut Local, run: &TileRun) -> Result<()> {
        match local {
            Local::Host(kernels) => self.on_host(kernels, run.tile),
            Local::Device(device) => self.on_device(*device, run),
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
        site.checked_sub(Sites::FIRST_DEVICE).is_none_or(|device| self.fleet.lanes[device].holds(tile))
    }

    fn advanced(&self, run: &TileRun) -> Result<()> {
        self.work.advanced(run)
    }
}
