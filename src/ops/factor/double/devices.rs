//! The devices of one rank with all of its tiles: their room, their moves, and the tasks that run on them.
//!
//! Each device owns some tiles of the rank, and its memory is a cache of its tasks' operands. Updates and TRSM run on
//! the device that owns the tile, POTRF on the host. The host copy of a tile is contiguous, column-major, in
//! page-locked memory of its device, so that copies to and from that device need no other buffer. Another device copies
//! it through a staging buffer of its own.

use super::cpu::factor;
use super::matrix::DoubleMatrix;
use super::{DeviceShare, DoubleOptions};
use crate::context::Context;
use crate::device::{Allowance, Device, Element, Event, Gemm, GemmOperand, Pinned, Region, Stream, Traffic, Trsm};
use crate::drive::{self, HostCopy, SharedStreams, TileStreams, slot_bytes};
use crate::error::Result;
use crate::kernels::f64::tile::{BadPivot, TileKernels};
use crate::ops::factor::unpoisoned;
use crate::runtime::protocol::TileRun;
use crate::runtime::{Baseline, CholeskyGraph, Owner, Task, TaskMoves, baseline_traffic, least_room_tiles};
use crate::tile::{RankGrid, TileId, TileMap};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// The devices of one rank with all of its tiles.
pub(super) struct DeviceTiles {
    /// The tiles on the host.
    pub host: HostCopies,
    rank: usize,
    streams: Vec<SharedStreams>,
    before: Vec<Traffic>,
}

/// Work on a device that may be unfinished.
#[derive(Default)]
pub(super) struct UnderWay {
    /// The largest number of runs that may be submitted and unfinished.
    pub most: usize,
    ends: VecDeque<Event>,
}

impl DeviceTiles {
    /// Memory on the first devices of `ctx`, which own the rank's tiles as `grid`, and the tiles of `a` on the host;
    /// `staged` of the devices copy tiles whose host copy is not their own memory.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLimit`] with the smallest number of bytes that suffices; [`crate::Error::OutOfMemory`];
    /// [`crate::Error::DeviceLost`].
    pub fn open(
        ctx: &Context,
        a: &DoubleMatrix,
        grid: RankGrid,
        staged: usize,
        options: &DoubleOptions,
    ) -> Result<DeviceTiles> {
        let devices = &ctx.devices().devices[..grid.size()];
        let (tiling, rank) = (*a.map(), a.rank());
        let before = devices.iter().map(|device| device.traffic()).collect();
        let (ranks, graph) = (tiling.grid, CholeskyGraph::of(&tiling));
        let shared = |(number, device): (usize, &Arc<dyn Device>)| {
            let streams = streams_of(device, &tiling, &ctx.devices().allowance(number), options.streams)?;
            let owner = Owner { grid: ranks.refined(grid), number: ranks.refined_number(grid, rank, number) };
            let size = move |tile| tile_bytes(&tiling, tile) as u64;
            let moves = TaskMoves::new(graph, owner, streams.room_tiles(), options.eviction, size);
            Ok(SharedStreams::new(streams, graph, moves))
        };
        let all = devices.iter().enumerate().map(shared).collect::<Result<_>>()?;
        let owner = |tile| grid.owner(ranks.within(tile));
        let host = HostCopies::new(tiling, devices, tiling.tiles_of(rank), owner, staged)?;
        let (mut tiles, mut workers) = (a.tiles(), vec![(); ctx.threads()]);
        let load = |(): &mut (), (tile, entries): (TileId, &[f64])| {
            host.own(tile).lock()?.copy_from_slice(bytemuck::cast_slice(entries));
            Ok(())
        };
        ctx.install(|| drive::parallel_for(&mut workers, |()| tiles.next(), load))?;
        Ok(DeviceTiles { host, rank, streams: all, before })
    }

    /// Tiles that there is room for on the device with the fewest.
    pub fn room_tiles(&self) -> usize {
        self.streams.iter().map(SharedStreams::room_tiles).min().unwrap_or(0)
    }

    /// Whether a tile is on a device, or about to arrive.
    pub fn holds(&self, device: usize, tile: TileId) -> bool {
        self.streams[device].holds(tile)
    }

    /// Submits updates, and TRSM with them, then waits until the number of runs under way is allowed. `host_copy` finds
    /// host memory of the device for a tile.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLost`], and those of `host_copy`.
    pub fn run(
        &self,
        device: usize,
        run: &TileRun,
        under_way: &mut UnderWay,
        host_copy: impl Fn(TileId) -> Result<HostCopy>,
    ) -> Result<()> {
        let (streams, tiling) = (&self.streams[device], &self.host.tiling);
        let mut guard = streams.submission();
        for task in run.tasks(CholeskyGraph::of(tiling)) {
            let end =
                guard.run(task, &host_copy, |device, stream, regions| submit(tiling, device, stream, task, regions))?;
            under_way.last(end);
        }
        drop(guard);
        under_way.throttle(streams.device())
    }

    /// POTRF of a tile on the diagonal on the host, on as many threads of the context as there are `kernels`.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLost`]; `failure` of the first pivot that is not positive.
    pub fn factor(
        &self,
        ctx: &Context,
        kernels: &mut [TileKernels],
        tile: TileId,
        failure: impl FnOnce(BadPivot) -> crate::error::Error,
    ) -> Result<()> {
        let (rows, _) = self.host.tiling.shape(tile);
        let mut host_copy = self.host.own(tile).lock()?;
        let entries = bytemuck::cast_slice_mut::<u8, f64>(&mut host_copy);
        ctx.install(|| factor(entries, rows, kernels)).map_err(failure)
    }

    /// The work of the devices; waits until all is done.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLost`].
    pub fn shares(&self) -> Result<Vec<DeviceShare>> {
        let seconds = self.streams.iter().map(SharedStreams::finish).collect::<Result<Vec<_>>>()?;
        let share = |((index, streams), (before, device_seconds)): ((usize, &SharedStreams), (&Traffic, f64))| {
            let (cache, tasks) = streams.counters();
            let (room_tiles, staged_bytes) = (streams.room_tiles(), self.host.staged_bytes(index));
            let device = streams.device();
            let (traffic, peak_bytes) = (device.traffic().since(before), device.peak_bytes());
            let device = device.description();
            DeviceShare { device, room_tiles, tasks, traffic, cache, staged_bytes, device_seconds, peak_bytes }
        };
        Ok(self.streams.iter().enumerate().zip(self.before.iter().zip(seconds)).map(share).collect())
    }

    /// The bytes that would move if each task of these devices uploaded its operands and downloaded its result.
    pub fn baseline(&self) -> Baseline {
        let tiling = &self.host.tiling;
        let owns = |tile| tiling.owner(tile) == self.rank;
        baseline_traffic(CholeskyGraph::of(tiling), owns, |tile| tile_bytes(tiling, tile) as u64)
    }
}

impl UnderWay {
    /// No runs yet; at most `most` may be under way.
    pub fn new(most: usize) -> UnderWay {
        UnderWay { most, ends: VecDeque::new() }
    }

    fn last(&mut self, end: Event) {
        self.ends.push_back(end);
    }

    fn throttle(&mut self, device: &dyn Device) -> Result<()> {
        while self.ends.len() > self.most {
            let oldest = self.ends.pop_front().expect("there is one");
            device.synchronize(&oldest)?;
        }
        Ok(())
    }
}

/// Staging buffers of a device that reads tiles of another memory: one is filled while another is copied from.
const STAGING_BUFFERS: usize = 3;

/// Bytes of a tile.
fn tile_bytes(tiling: &TileMap, tile: TileId) -> usize {
    tiling.entries(tile) * size_of::<f64>()
}

/// Bytes of the largest tile.
fn most_tile_bytes(tiling: &TileMap) -> usize {
    tiling.most_entries() * size_of::<f64>()
}

/// Buffers that are used in turn.
struct Staging {
    buffers: Vec<Pinned>,
    next: usize,
    bytes: u64,
}

/// The host copy of a tile, and the device that owns it.
struct OwnCopy {
    pinned: Pinned,
    owner: usize,
}

/// The host copies of some tiles: all tiles of a matrix, or the tiles of one rank.
pub(super) struct HostCopies {
    pub tiling: TileMap,
    copies: FxHashMap<TileId, OwnCopy>,
    staging: Vec<Mutex<Staging>>,
}

impl HostCopies {
    /// Memory for tiles, each from the device with the number `owner(tile)`; staging buffers for `staged` of the
    /// devices.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::DeviceLost`].
    pub fn new(
        tiling: TileMap,
        devices: &[Arc<dyn Device>],
        tiles: impl Iterator<Item = TileId>,
        owner: impl Fn(TileId) -> usize,
        staged: usize,
    ) -> Result<HostCopies> {
        let host_copy = |tile: TileId| {
            let owner = owner(tile);
            let pinned = devices[owner].allocate_pinned(tile_bytes(&tiling, tile))?;
            Ok((tile, OwnCopy { pinned, owner }))
        };
        let copies = tiles.map(host_copy).collect::<Result<_>>()?;
        let staging = |device: &Arc<dyn Device>| {
            let buffers = (0..STAGING_BUFFERS).map(|_| device.allocate_pinned(most_tile_bytes(&tiling)));
            Ok(Mutex::new(Staging { buffers: buffers.collect::<Result<_>>()?, next: 0, bytes: 0 }))
        };
        let staging = devices[..staged].iter().map(staging).collect::<Result<_>>()?;
        Ok(HostCopies { tiling, copies, staging })
    }

    /// Bytes of host memory for these tiles, and for staging buffers of `staged` devices.
    pub fn planned_bytes(tiling: &TileMap, tiles: impl Iterator<Item = TileId>, staged: usize) -> u64 {
        let copies = tiles.map(|tile| tile_bytes(tiling, tile) as u64).sum::<u64>();
        copies + (staged * STAGING_BUFFERS * most_tile_bytes(tiling)) as u64
    }

    /// The host copy of a tile at its owner.
    pub fn own(&self, tile: TileId) -> &Pinned {
        &self.copies.get(&tile).expect("the tile has its host copy here").pinned
    }

    /// The device that owns a tile, if the tile's host copy is on this rank.
    pub fn owner(&self, tile: TileId) -> Option<usize> {
        self.copies.get(&tile).map(|host_copy| host_copy.owner)
    }

    /// Bytes that a device copied from the host copies of others.
    pub fn staged_bytes(&self, device: usize) -> u64 {
        self.staging.get(device).map_or(0, |staging| unpoisoned(staging.lock()).bytes)
    }

    /// Memory of `device` that holds a tile: its host copy, or another where another device owns it.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn host_copy(&self, device: usize, tile: TileId) -> Result<HostCopy> {
        let host_copy = self.copies.get(&tile).expect("the tile has its host copy here");
        if host_copy.owner == device {
            return Ok(HostCopy { pinned: host_copy.pinned.clone(), bytes: tile_bytes(&self.tiling, tile) });
        }
        self.stage(device, &host_copy.pinned.lock()?)
    }

    /// Memory of `device` with a copy of a tile that lies elsewhere.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn stage(&self, device: usize, tile: &[u8]) -> Result<HostCopy> {
        let mut staging = unpoisoned(self.staging[device].lock());
        staging.next = (staging.next + 1) % STAGING_BUFFERS;
        staging.bytes += tile.len() as u64;
        let pinned = staging.buffers[staging.next].clone();
        pinned.lock()?[..tile.len()].copy_from_slice(tile);
        Ok(HostCopy { pinned, bytes: tile.len() })
    }

    /// Waits until all tiles are on the host.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn settle(&self) -> Result<()> {
        self.copies.values().try_for_each(|host_copy| host_copy.pinned.lock().map(drop))
    }
}

/// Strips of a tile on the diagonal that are updated each from its own diagonal on: only the fraction `(1 + 1 / strips)
/// / 2` of the product is computed.
const SYRK_STRIPS: usize = 4;

/// Narrower strips are not worth a product of their own.
const LEAST_STRIP_COLUMNS: usize = 32;

/// Streams with as much room as the limit and the device's memory allow, and at most for all tiles.
///
/// # Errors
/// [`Error::DeviceLimit`] with the least bytes that would do; [`Error::DeviceLost`].
fn streams_of(
    device: &Arc<dyn Device>,
    tiling: &TileMap,
    allowance: &Allowance,
    streams: usize,
) -> Result<TileStreams<TileId>> {
    let slot = slot_bytes(most_tile_bytes(tiling)).max(1) as u64;
    let least = least_room_tiles(CholeskyGraph::of(tiling));
    let free_bytes = allowance.free_bytes(&**device);
    // A library that the device's driver loads takes some memory of its own.
    let limit_bytes = allowance.limit_bytes.map_or(free_bytes - free_bytes / 16, |bytes| bytes.min(free_bytes));
    let most = (limit_bytes / slot).min(CholeskyGraph::of(tiling).tile_count() as u64) as usize;
    if most < least {
        return Err(allowance.refusal(limit_bytes, least as u64 * slot));
    }
    TileStreams::new(device.clone(), most_tile_bytes(tiling), least..=most, streams)
}

/// Submits TRSM, SYRK or GEMM; the regions hold the inputs of the task in the graph's order, then its output.
///
/// # Errors
/// [`Error::DeviceLost`].
fn submit(tiling: &TileMap, device: &dyn Device, stream: Stream, task: Task, regions: &[Region]) -> Result<()> {
    let (m, n) = tiling.shape(CholeskyGraph::of(tiling).output(task));
    let operand = |region: &Region, ld: usize| GemmOperand { region: region.clone(), ld, stride: 0 };
    match (task, regions) {
        (Task::Trsm { .. }, [l, b]) => device.solve(stream, &Trsm { m, n, l: operand(l, n), b: operand(b, m) }),
        (Task::Gemm { k, .. }, [x, y, c]) => {
            let depth = tiling.row_range(k).len();
            device.multiply(stream, &take_off([m, n, depth], operand(x, m), operand(y, n), operand(c, m)))
        }
        (Task::Syrk { k, .. }, [x, c]) => {
            let depth = tiling.row_range(k).len();
            let width = n.div_ceil(SYRK_STRIPS).max(LEAST_STRIP_COLUMNS);
            for first in (0..n).step_by(width) {
                let x = operand(&x.from(first * size_of::<f64>()), m);
                let c = operand(&c.from((first * m + first) * size_of::<f64>()), m);
                let shape = [m - first, width.min(n - first), depth];
                device.multiply(stream, &take_off(shape, x.clone(), x, c))?;
            }
            Ok(())
        }
        _ => unreachable!("{task:?} with {} tiles is not for a device", regions.len()),
    }
}

/// `C := C - X Y^T` for `C` of `m x n` and the depth `k`.
fn take_off([m, n, k]: [usize; 3], a: GemmOperand, b: GemmOperand, c: GemmOperand) -> Gemm {
    let (batch, element) = (1, Element::F64);
    Gemm { element, m, n, k, a, b, c, batch, negate: true, accumulate: true, by_rows: true }
}
