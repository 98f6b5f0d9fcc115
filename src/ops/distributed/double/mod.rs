//! Cholesky factorisation of a matrix of doubles in tiles over ranks, driven by data.
//!
//! Every rank computes the tiles that it owns; finished tiles travel to the ranks that read them, as they are. Joins
//! the protocol (`runtime::protocol`), its driver (`drive::run_ranks`) and the tile kernels of doubles.
//! Promise: a small residual. On one kind of CPU the bits depend on the size of tiles alone: not on the grid, threads,
//! delivery or policy, since the updates of a tile are applied in the order of their columns.

mod devices;
mod matrix;
#[cfg(test)]
mod tests;
mod work;

pub use devices::RankDevices;
pub use matrix::DoubleMatrix;

use crate::comm::{Reduction, Transport, agreed};
use crate::context::Context;
use crate::drive::{Meter, RankPlan, RankReport, run_ranks};
use crate::error::{Error, Result};
use crate::kernels::f64::tile::TileKernels;
use crate::runtime::protocol::{DeliveryKind, ProtocolOptions, Termination};
use crate::runtime::{CholeskyGraph, Eviction, Policy};
use devices::{DeviceWork, RankWorkers};
use serde::Serialize;
use work::Work;

/// Choices of a factorisation of doubles on ranks; the same on all of them.
#[derive(Clone, Copy, Debug)]
pub struct DoubleRankOptions {
    /// Who sends a tile to whom.
    pub delivery: DeliveryKind,
    /// When a rank may end.
    pub termination: Termination,
    /// Which ready tile is worked on next; `None` for the critical path on CPUs, and for what moves few bytes on
    /// devices.
    pub policy: Option<Policy>,
    /// Which tile leaves a device's memory.
    pub eviction: Eviction,
    /// Workers of each device: several overlap copies of one run with the work of another.
    pub device_workers: usize,
    /// Tiles of other ranks that a rank has room for at a time; `None` for some columns of them.
    pub slots: Option<usize>,
    /// Most updates that a worker applies to a tile in a row.
    pub most_updates: usize,
    /// Whether the report has the spans of all tasks and transfers.
    pub spans: bool,
}

impl Default for DoubleRankOptions {
    fn default() -> DoubleRankOptions {
        DoubleRankOptions {
            delivery: DeliveryKind::default(),
            termination: Termination::default(),
            policy: None,
            eviction: Eviction::default(),
            device_workers: 3,
            slots: None,
            most_updates: 4,
            spans: false,
        }
    }
}

/// Columns of tiles of other ranks that have room by default: so far may one rank be ahead of another.
const DEFAULT_COLUMNS: usize = 4;

/// What moves the fewest bytes on devices.
const DEVICE_POLICY: Policy = Policy::Greedy;

/// What one factorisation tells about itself.
#[derive(Clone, Debug, Serialize)]
pub struct DoubleRankReport {
    /// Rows of the matrix.
    pub order: usize,
    /// Rows of a tile.
    pub tile_rows: usize,
    /// Rows of ranks.
    pub grid_rows: usize,
    /// Columns of ranks.
    pub grid_cols: usize,
    /// Tiles of other ranks that each rank has room for.
    pub slots: usize,
    /// Wall-clock seconds, on the slowest rank.
    pub seconds: f64,
    /// `order^3 / 3` operations over `seconds`, in units of 1e9.
    pub gflops: f64,
    /// Which ready tile was worked on next.
    pub policy: Policy,
    /// Which tile left a device's memory.
    pub eviction: Eviction,
    /// What this rank did.
    pub rank: RankReport,
    /// What its devices did, where it has any.
    pub devices: Option<RankDevices>,
}

/// `A = L L^T` in place of the lower triangle of a symmetric positive definite matrix in tiles over the ranks of
/// `world`. Collective.
///
/// The calling thread moves messages, so it must be one that may call MPI; as many workers as the context has threads
/// compute. What lies above the diagonal is neither read nor written.
/// Accuracy: `|A - L L^T| <= c order eps |A|` with a small constant c.
/// Cost: `order^3 / 6` multiply-adds over all workers; memory for the slots beside the tiles.
///
/// # Errors
/// On every rank alike, and the matrix is then of no use: [`Error::NotPositiveDefinite`] with the first leading minor
/// that is not positive; [`Error::NotFinite`] for an entry of the first rank that has one, as [`Error::Rank`] beside
/// other ranks; [`Error::InvalidArgument`] for too few slots, 0 updates or 0 workers of a device;
/// [`Error::MemoryLimit`]; [`Error::DeviceLimit`] with the least memory of a device; [`Error::DeviceLost`];
/// [`Error::Transport`]; [`Error::Cancelled`].
pub fn double_cholesky_ranks(
    ctx: &Context,
    world: &dyn Transport,
    a: &mut DoubleMatrix,
    options: &DoubleRankOptions,
) -> Result<DoubleRankReport> {
    let map = *a.map();
    let grid = map.grid;
    let graph = CholeskyGraph { tiles: map.tile_rows() };
    let wanted = options.slots.unwrap_or(DEFAULT_COLUMNS * grid.least_slots(graph.tiles));
    let slots = grid.useful_slots(graph.tiles, wanted);
    let kernel_bytes = ctx.threads() as u64 * TileKernels::BYTES;
    let prepared = check(options)
        .and_then(|()| a.check_finite())
        .and_then(|()| ctx.admit(slots as u64 * a.most_bytes() + kernel_bytes + devices::planned_bytes(ctx, a)))
        .and_then(|()| Ok((RankWorkers::open(ctx, a, options)?, a.rooms(slots)?)));
    let (fleet, rooms) = agreed(world, prepared)?;
    let mut post = world.open_post()?;
    let policy = options.policy.unwrap_or(if fleet.is_some() { DEVICE_POLICY } else { Policy::CriticalPath });
    let protocol = ProtocolOptions {
        delivery: options.delivery,
        termination: options.termination,
        policy,
        slots,
        workers: ctx.threads(),
        devices: fleet.as_ref().map(RankWorkers::sites),
        most_updates: options.most_updates,
        strip_tiles: 1,
        updates_at_once: false,
        imports: false,
        room_tiles: fleet.as_ref().map_or(graph.tile_count(), RankWorkers::room_tiles),
    };
    let plan = RankPlan { grid, graph, protocol, spans: options.spans };
    let tasks = a.tiles().map(|(tile, _)| tile.col as u64 + 1).sum();
    let work = Work::new(a, rooms, Meter::new(ctx, tasks));
    let report = match &fleet {
        None => {
            let mut kernels = (0..ctx.threads()).map(|_| TileKernels::new()).collect::<Vec<_>>();
            run_ranks(world, &mut *post, &plan, &work, &mut kernels)
        }
        Some(fleet) => {
            let mut locals = fleet.locals(ctx);
            run_ranks(world, &mut *post, &plan, &DeviceWork { ctx, work, fleet }, &mut locals)
        }
    }?;
    let devices = agreed(world, fleet.as_ref().map(|fleet| fleet.report()).transpose())?;
    let mut nanoseconds = [(report.seconds * 1e9) as u64];
    world.all_reduce(Reduction::Max, &mut nanoseconds)?;
    let seconds = nanoseconds[0] as f64 * 1e-9;
    Ok(DoubleRankReport {
        order: map.rows,
        tile_rows: map.tile_size,
        grid_rows: grid.rows,
        grid_cols: grid.cols,
        slots,
        seconds,
        gflops: (map.rows as f64).powi(3) / 3.0 / seconds.max(1e-9) * 1e-9,
        policy,
        eviction: options.eviction,
        rank: report,
        devices,
    })
}

fn check(options: &DoubleRankOptions) -> Result<()> {
    match options.most_updates {
        0 => Err(Error::InvalidArgument("0 updates in a row: choose 1 or more".into())),
        _ => Ok(()),
    }
}
