//! Cholesky factorisation of a matrix of doubles in tiles: on CPUs, or on devices whose memory is smaller than the
//! matrix; in one process, or over ranks that send each other finished tiles.
//!
//! The tile algorithm of SDPARA on the task graph that big floats use. Joins the protocol (`runtime::protocol`), its
//! driver (`drive`), the memory of the devices (`runtime::residency`) and the tile kernels of doubles: one process is a
//! grid of one rank.
//! Promise: a small residual. On CPUs of one kind the bits depend only on the size of tiles, not on the grid, threads,
//! delivery or policy, since the updates of a tile are applied in the order of their columns. Devices sum in orders of
//! their own.

mod cpu;
mod devices;
mod matrix;
#[cfg(test)]
mod tests;
mod tiles;

pub(super) use cpu::CpuTasks;
pub use matrix::DoubleMatrix;

use crate::comm::{Reduction, Transport, agreed};
use crate::context::Context;
use crate::device::{Description, Traffic};
use crate::drive::{RankPlan, RankReport, TransferRoom, run_tiles};
use crate::error::{Error, Result};
use crate::kernels::f64::tile::TileKernels;
use crate::ops::distribution::shared_devices::with_shared_devices;
use crate::options::setters;
use crate::runtime::protocol::{DeliveryKind, DeviceSites, Memories, ProtocolOptions, Termination};
use crate::runtime::{CacheCounters, CholeskyGraph, Eviction, Policy};
#[doc(inline)]
pub use crate::tile::RankGrid;
use devices::{DeviceTiles, HostCopies, UnderWay};
use serde::Serialize;
use std::time::Instant;
use tiles::{DoubleTiles, DoubleWorker};

/// Options of a factorisation of doubles; all ranks must have the same `delivery` and `termination`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DoubleOptions {
    /// The order of ready tasks; `None` for the critical path on CPUs, and for a policy that moves few bytes on
    /// devices.
    pub policy: Option<Policy>,
    /// The rule that selects the tile to be evicted from a device's memory.
    pub eviction: Eviction,
    /// Streams of each device: 3 overlap uploads, computation and downloads; 2 overlap copies and computation; 1
    /// overlaps nothing.
    pub streams: usize,
    /// The owners of tiles if a rank has several devices.
    pub layout: DeviceLayout,
    /// In one process: the number of tasks that must be ready for a device while the host factors a diagonal tile.
    pub lookahead: usize,
    /// Over ranks: the number of workers of each device; several workers overlap the copies of one run with the
    /// computation of another.
    pub device_workers: usize,
    /// The largest number of updates that a worker applies to one tile before it takes another one, if the worker waits
    /// for the work that it submits to a device.
    pub most_updates: usize,
    /// The algorithm that sends tiles to ranks.
    pub delivery: DeliveryKind,
    /// The rule by which a rank detects that it may end.
    pub termination: Termination,
    /// Tiles of other ranks that a rank can hold at a time; `None` for the tiles of some columns.
    pub slots: Option<usize>,
    /// Whether the report includes the time spans of all tasks and transfers.
    pub spans: bool,
}

impl Default for DoubleOptions {
    fn default() -> DoubleOptions {
        DoubleOptions {
            policy: None,
            eviction: Eviction::default(),
            streams: 3,
            layout: DeviceLayout::default(),
            lookahead: 16,
            device_workers: 3,
            most_updates: 4,
            delivery: DeliveryKind::default(),
            termination: Termination::default(),
            slots: None,
            spans: false,
        }
    }
}

setters! { new DoubleOptions {
    policy: impl Into<Option<Policy>>,
    eviction: Eviction,
    streams: usize,
    layout: DeviceLayout,
    lookahead: usize,
    device_workers: usize,
    most_updates: usize,
    delivery: DeliveryKind,
    termination: Termination,
    slots: impl Into<Option<usize>>,
    spans: bool,
} }

/// The owner of each tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DeviceLayout {
    /// 2D block-cyclic on a grid of devices.
    #[default]
    Grid,
    /// Tile column `j` belongs to device `j` modulo the number of devices.
    Columns,
}

/// The work of one device.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceShare {
    /// The device.
    pub device: Description,
    /// Tiles that fit in its memory.
    pub room_tiles: usize,
    /// Number of tasks that it ran.
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
    /// Number of tile rows.
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
    /// Seconds in which the host factored diagonal tiles for its devices, including the time it waited for these tiles.
    pub potrf_seconds: f64,
    /// Rate in units of 10^9 operations per second: `order^3 / 3` operations divided by `factor_seconds`.
    pub gflops: f64,
    /// Tasks of this rank, including tasks on its host.
    pub tasks: u64,
    /// Bytes that would be copied to the devices if each of their tasks uploaded its operands.
    pub baseline_h2d_bytes: u64,
    /// Bytes that would be copied from the devices if each of their tasks downloaded its result.
    pub baseline_d2h_bytes: u64,
    /// Bytes copied to all devices.
    pub h2d_bytes: u64,
    /// Bytes copied from all devices.
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

/// Columns of tiles of other ranks that have room by default: one rank may be ahead of another by this number.
const DEFAULT_COLUMNS: usize = 4;

/// Factors `A = L L^T` in place of the lower triangle of a symmetric positive definite matrix in tiles over the ranks
/// of `world`, which may be a single rank ([`crate::comm::local::alone`]). Collective.
///
/// The devices of the context do all tasks but POTRF; without devices the CPUs do all tasks. Over several ranks the
/// calling thread sends and receives the messages, so it must be a thread that may call MPI; as many workers as the
/// context has threads compute. Entries above the diagonal are neither read nor written. Accuracy:
/// `|A - L L^T| <= c order eps |A|` with a small constant c, as any Cholesky factorisation in doubles. Cost:
/// `order^3 / 6` multiply-adds over all ranks; memory for the slots in addition to the tiles, and with devices a second
/// copy of the tiles; device memory for at least 3 tiles. Source: docs/decisions/014-tiles-on-devices.md.
///
/// ```
/// use sunzi::Context;
/// use sunzi::comm::local::alone;
/// use sunzi::double::{DoubleMatrix, DoubleOptions, RankGrid, double_cholesky};
/// let ctx = Context::new()?;
/// let entry = |row: usize, col: usize| if row == col { 4.0 + row as f64 } else { 2.0 }; // [4 2; 2 5]
/// let mut a = DoubleMatrix::from_fn(0, 2, 8, RankGrid::for_ranks(1), entry)?;
/// let report = double_cholesky(&ctx, alone(), &mut a, &DoubleOptions::new())?;
/// assert_eq!(a.gather(alone(), 0)?.unwrap(), [2.0, 1.0, 0.0, 2.0]);
/// assert_eq!((report.order, report.tiles), (2, 1));
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// The same error on every rank. The matrix is destroyed after an error, except with devices in one process, where it
/// is unchanged. [`Error::NotPositiveDefinite`] with the index of the first computed pivot that is not positive;
/// [`Error::NotFinite`] for an entry of the first rank that has one, as [`Error::Rank`] if there are other ranks;
/// [`Error::InvalidArgument`] for too few slots, 0 updates, 0 workers of a device, 0 or more than 3 streams, a group to
/// which the tiles do not belong, and ranks that differ in the tiling of the matrix, in `delivery` or in `termination`;
/// [`Error::MemoryLimit`]; [`Error::OutOfMemory`]; [`Error::DeviceLimit`] with the smallest device memory that
/// suffices; [`Error::DeviceLost`]; [`Error::Device`]; [`Error::Transport`]; [`Error::Cancelled`].
pub fn double_cholesky(
    ctx: &Context,
    world: &dyn Transport,
    a: &mut DoubleMatrix,
    options: &DoubleOptions,
) -> Result<DoubleReport> {
    let start = Instant::now();
    a.check_group(world, Ok(()), &(options.delivery, options.termination))?;
    let ctx = &with_shared_devices(ctx, world)?;
    let plan = DoublePlan::new(ctx, world, a, options);
    let prepared = options
        .check(plan.devices)
        .and_then(|()| a.check_finite(ctx))
        .and_then(|()| ctx.admit(plan.host_bytes))
        .and_then(|()| Ok((plan.open(ctx, a, options)?, a.buffers(plan.slots)?)));
    let (devices, buffers) = agreed(world, prepared)?;
    let (map, load_seconds) = (*a.map(), start.elapsed().as_secs_f64());
    let room_tiles = devices.as_ref().map(DeviceTiles::room_tiles);
    let tiles = DoubleTiles::new(ctx, a, devices, plan.shared, buffers);
    let rank_plan = plan.rank_plan(room_tiles, map.grid, options);
    let rank = run_tiles(ctx, world, &rank_plan, &tiles, &mut plan.workers(ctx, options))?;
    let done = Instant::now();
    let shares = agreed(world, tiles.devices().map_or(Ok(Vec::new()), DeviceTiles::shares))?;
    let mut nanoseconds = [((rank.seconds + done.elapsed().as_secs_f64()) * 1e9) as u64];
    world.all_reduce(Reduction::Max, &mut nanoseconds)?;
    let storing = Instant::now();
    agreed(world, tiles.copy_all_back())?;
    let store_seconds = storing.elapsed().as_secs_f64();
    let baseline = tiles.devices().map(DeviceTiles::baseline).unwrap_or_default();
    let sum = |of: fn(&DeviceShare) -> u64| shares.iter().map(of).sum::<u64>();
    let (h2d_bytes, d2h_bytes) = (sum(|share| share.cache.up_bytes), sum(|share| share.cache.down_bytes));
    let baseline_bytes = baseline.up_bytes + baseline.down_bytes;
    let factor_seconds = nanoseconds[0] as f64 * 1e-9;
    Ok(DoubleReport {
        operation: "cholesky",
        element: "double",
        order: map.rows,
        tile_rows: map.tile_size,
        tiles: map.tile_rows(),
        grid: map.grid,
        slots: plan.slots,
        policy: rank_plan.protocol.policy,
        eviction: options.eviction,
        streams: options.streams,
        threads: ctx.threads(),
        seconds: start.elapsed().as_secs_f64(),
        load_seconds,
        factor_seconds,
        store_seconds,
        potrf_seconds: tiles.potrf_seconds(),
        gflops: (map.rows as f64).powi(3) / 3.0 / factor_seconds.max(1e-9) * 1e-9,
        tasks: rank.counters.tasks,
        baseline_h2d_bytes: baseline.up_bytes,
        baseline_d2h_bytes: baseline.down_bytes,
        h2d_bytes,
        d2h_bytes,
        saved: if baseline_bytes == 0 { 0.0 } else { 1.0 - (h2d_bytes + d2h_bytes) as f64 / baseline_bytes as f64 },
        host_bytes: plan.host_bytes,
        devices: shares,
        rank,
    })
}

impl DoubleOptions {
    fn check(&self, devices: Option<RankGrid>) -> Result<()> {
        let refused = |message: String| Err(Error::InvalidArgument(message));
        match self {
            DoubleOptions { most_updates: 0, .. } => refused("most_updates = 0 is not valid; choose 1 or more".into()),
            DoubleOptions { device_workers: 0, .. } if devices.is_some() => {
                refused("device_workers = 0 is not valid; choose 1 or more".into())
            }
            DoubleOptions { streams: 1..=3, .. } => Ok(()),
            DoubleOptions { streams, .. } => refused(format!("streams = {streams} is not valid; choose 1 to 3")),
        }
    }
}

/// The plan of one rank's part.
struct DoublePlan {
    graph: CholeskyGraph,
    /// Tiles of other ranks that this rank can hold.
    slots: usize,
    /// The devices, as a grid over the tiles of the rank; `None` where there are none, or no tiles for them. As ranks
    /// beyond their grid, devices beyond theirs have nothing to do.
    devices: Option<RankGrid>,
    /// Whether other ranks read finished tiles, so that each must be in host memory when its run ends.
    shared: bool,
    /// Bytes of host memory in addition to the matrix.
    host_bytes: u64,
}

impl DoublePlan {
    fn new(ctx: &Context, world: &dyn Transport, a: &DoubleMatrix, options: &DoubleOptions) -> DoublePlan {
        let (map, count) = (*a.map(), ctx.devices().devices.len());
        let graph = CholeskyGraph::of(&map);
        let wanted = options.slots.unwrap_or(DEFAULT_COLUMNS * map.grid.least_slots(graph.tiles));
        let slots = map.grid.useful_slots(graph.tiles, wanted);
        let devices = (count > 0 && a.tiles().next().is_some()).then(|| match options.layout {
            DeviceLayout::Grid => RankGrid::for_ranks(count),
            DeviceLayout::Columns => RankGrid { rows: 1, cols: count },
        });
        let shared = world.size() > 1;
        let own = a.tiles().map(|(tile, _)| tile);
        let copies = devices.map_or(0, |grid| HostCopies::planned_bytes(&map, own, DoublePlan::staged(grid, shared)));
        let host_bytes = slots as u64 * a.most_bytes() + ctx.threads() as u64 * TileKernels::BYTES + copies;
        DoublePlan { graph, slots, devices, shared, host_bytes }
    }

    /// Devices of a grid that copy tiles from the host memory of another device: a single device never does.
    fn staged(grid: RankGrid, shared: bool) -> usize {
        if shared || grid.size() > 1 { grid.size() } else { 0 }
    }

    /// The devices with the tiles on the host, where there are any.
    fn open(&self, ctx: &Context, a: &DoubleMatrix, options: &DoubleOptions) -> Result<Option<DeviceTiles>> {
        let open = |grid| DeviceTiles::open(ctx, a, grid, DoublePlan::staged(grid, self.shared), options);
        self.devices.map(open).transpose()
    }

    /// The plan for the driver. In one process decisions run ahead of the devices, so that one worker for each is
    /// enough and each update is a decision of its own.
    fn rank_plan(&self, room_tiles: Option<usize>, grid: RankGrid, options: &DoubleOptions) -> RankPlan {
        let ahead = self.devices.is_some() && !self.shared;
        let policy = match (self.devices, self.shared) {
            (None, _) => Policy::CriticalPath,
            (Some(_), false) => Policy::Panels,
            (Some(_), true) => Policy::Greedy,
        };
        let lookahead = ahead.then_some(options.lookahead);
        let protocol = ProtocolOptions {
            delivery: options.delivery,
            termination: options.termination,
            policy: options.policy.unwrap_or(policy),
            slots: self.slots,
            workers: 0,
            devices: self.devices.map(|grid| DeviceSites { grid, workers: 0, lookahead }),
            most_updates: if ahead { 1 } else { options.most_updates },
            strip_tiles: 1,
            updates_at_once: false,
            loads_ahead: false,
            imports: false,
            room_tiles: room_tiles.unwrap_or(self.graph.tile_count()),
        };
        let (memories, room) = (Memories::apart(), TransferRoom::ANY);
        RankPlan { grid, memories, graph: self.graph, protocol, spans: options.spans, room }
    }

    /// The workers: one for each thread; or for each device, and one for the host where they wait for their devices.
    fn workers(&self, ctx: &Context, options: &DoubleOptions) -> Vec<DoubleWorker> {
        let Some(grid) = self.devices else {
            return (0..ctx.threads()).map(|_| DoubleWorker::Cpu(TileKernels::new())).collect();
        };
        let (host, each, most) = match self.shared {
            true => (Some(DoubleWorker::Factor), options.device_workers, 0),
            false => (None, 1, 2 * options.lookahead + 2),
        };
        let worker = |device| DoubleWorker::Device { device, under_way: UnderWay::new(most) };
        let of_devices = (0..grid.size()).flat_map(|device| (0..each).map(move |_| worker(device)));
        host.into_iter().chain(of_devices).collect()
    }
}
