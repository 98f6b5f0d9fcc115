//! The devices of one rank with all of its tiles: their room, their moves, and the tasks that run on them.
//!
//! Each device owns some tiles of the rank, and its memory is a cache of its tasks' operands. Updates and TRSM run on
//! the device that owns the tile, POTRF on the host. The host copy of a tile is page-locked memory of its device.

use super::host::{HostCopies, tile_bytes};
use super::matrix::DoubleMatrix;
use super::on_device::{streams_of, submit};
use super::potrf::factor;
use super::report::DeviceShare;
use crate::context::Context;
use crate::device::{Device, Event, Traffic};
use crate::drive::{self, HostCopy, SharedStreams};
use crate::error::Result;
use crate::kernels::f64::tile::{BadPivot, TileKernels};
use crate::runtime::protocol::TileRun;
use crate::runtime::{Baseline, CholeskyGraph, Eviction, Owner, TaskMoves, baseline_traffic};
use crate::tile::{RankGrid, TileId};
use std::collections::VecDeque;
use std::sync::Arc;

/// Choices for the devices of a rank.
pub(super) struct DeviceChoices {
    /// Their grid over the tiles of the rank.
    pub grid: RankGrid,
    /// The choice of the tile that leaves a full memory.
    pub eviction: Eviction,
    /// Streams of each device.
    pub stream_count: usize,
    /// How many of them copy tiles whose host copy is not their own memory.
    pub staged: usize,
}

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
    /// Most runs that may be submitted and unfinished.
    pub most: usize,
    ends: VecDeque<Event>,
}

impl DeviceTiles {
    /// Memory on the first devices of `ctx`, and the tiles of `a` on the host.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLimit`] with the smallest number of bytes that suffices; [`crate::Error::OutOfMemory`];
    /// [`crate::Error::DeviceLost`].
    pub fn open(ctx: &Context, a: &DoubleMatrix, choices: &DeviceChoices) -> Result<DeviceTiles> {
        let &DeviceChoices { grid, eviction, stream_count, staged } = choices;
        let devices = &ctx.devices().devices[..grid.size()];
        let (tiling, rank) = (*a.map(), a.rank());
        let before = devices.iter().map(|device| device.traffic()).collect();
        let (ranks, graph) = (tiling.grid, CholeskyGraph::of(&tiling));
        let shared = |(number, device): (usize, &Arc<dyn Device>)| {
            let streams = streams_of(device, &tiling, &ctx.devices().allowance(number), stream_count)?;
            let owner = Owner { grid: ranks.refined(grid), number: ranks.refined_number(grid, rank, number) };
            let size = move |tile| tile_bytes(&tiling, tile) as u64;
            let moves = TaskMoves::new(graph, owner, streams.room_tiles(), eviction, size);
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
            let own = DeviceShare::of(streams.device(), before);
            DeviceShare { room_tiles, tasks, cache, staged_bytes, device_seconds, ..own }
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
