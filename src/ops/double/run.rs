//! Carries a factorisation of doubles out: tiles to their homes, tasks as the conductors say, the factor at the end.

use super::factor::factor;
use super::on_device::{lane, submit};
use super::report::{DeviceShare, DoubleReport};
use super::tiles::{HostTiles, tile_bytes};
use super::{DeviceLayout, DoubleOptions};
use crate::context::Context;
use crate::device::{Device, Region, Stream, Traffic};
use crate::drive::{Home, Meter, Player, TileTasks, conduct};
use crate::error::{Error, Result};
use crate::kernels::f64::tile::TileKernels;
use crate::runtime::CholeskyGraph;
use crate::runtime::{Conductor, ConductorOptions, Task, TaskQueue, baseline_bytes};
use crate::tile::TileMap;
use crate::tile::{RankGrid, TileId};
use rug::Float;
use rug::float::Special;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// One factorisation under way.
struct Run<'a> {
    ctx: &'a Context,
    host: HostTiles,
    /// The diagonal of the matrix, for what an error says.
    diagonal: Vec<f64>,
    meter: Meter<'a>,
    potrf_nanoseconds: AtomicU64,
    /// Of each thread, for tiles on the diagonal.
    kernels: Mutex<Vec<TileKernels>>,
}

pub(super) fn run(
    ctx: &Context,
    devices: &[Arc<dyn Device>],
    a: &mut [f64],
    tiling: TileMap,
    options: &DoubleOptions,
) -> Result<DoubleReport> {
    let start = Instant::now();
    let seconds = |since: Instant| since.elapsed().as_secs_f64();
    // One device alone reads nothing of others.
    let staged = if devices.len() > 1 { devices.len() } else { 0 };
    let kernel_bytes = ctx.threads() as u64 * TileKernels::BYTES;
    let host_bytes = HostTiles::planned_bytes(&tiling, tiling.tiles(), staged) + kernel_bytes;
    ctx.admit(host_bytes)?;
    let owner = owner(devices.len(), options.layout);
    let queue = TaskQueue::new(CholeskyGraph::of(&tiling), devices.len(), &owner);
    let before = devices.iter().map(|device| device.traffic()).collect::<Vec<_>>();
    let mut players = Vec::with_capacity(devices.len());
    for (index, device) in devices.iter().enumerate() {
        players.push(player(device, index, &tiling, options, &queue)?);
    }
    let owners = tiling.tiles().map(|tile| (tile, owner(tile)));
    let host = HostTiles::new(tiling, devices, owners, staged)?;
    host.load(ctx, a)?;
    let load_seconds = seconds(start);
    let tasks = CholeskyGraph::of(&tiling).tasks().count() as u64;
    let diagonal = (0..tiling.rows).map(|index| a[index * tiling.rows + index]).collect();
    let (meter, potrf_nanoseconds) = (Meter::new(ctx, tasks), AtomicU64::new(0));
    let kernels = Mutex::new((0..ctx.threads()).map(|_| TileKernels::new()).collect());
    let run = Run { ctx, host, diagonal, meter, potrf_nanoseconds, kernels };
    let factoring = Instant::now();
    ctx.install(|| conduct(&mut players, queue, &run))?;
    run.host.settle()?;
    let factor_seconds = seconds(factoring);
    let storing = Instant::now();
    run.host.store(ctx, a)?;
    let shares = players.iter().zip(&before).enumerate();
    let shares = shares.map(|(index, (player, before))| share(player, before, run.host.staged_bytes(index)));
    let shares = shares.collect::<Vec<_>>();
    let baseline_bytes = baseline_bytes(CholeskyGraph::of(&tiling), |tile| tile_bytes(&tiling, tile) as u64);
    let moved_bytes = shares.iter().map(|share| share.traffic.h2d_bytes + share.traffic.d2h_bytes).sum::<u64>();
    Ok(DoubleReport {
        operation: "cholesky",
        element: "double",
        order: tiling.rows,
        tile_rows: tiling.tile_size,
        tiles: tiling.tile_rows(),
        policy: options.policy,
        victim: options.victim,
        streams: options.streams,
        threads: ctx.threads(),
        seconds: seconds(start),
        load_seconds,
        factor_seconds,
        store_seconds: seconds(storing),
        potrf_seconds: run.potrf_nanoseconds.into_inner() as f64 * 1e-9,
        gflops: (tiling.rows as f64).powi(3) / 3.0 / factor_seconds.max(1e-9) * 1e-9,
        tasks,
        baseline_bytes,
        moved_bytes,
        saved: if baseline_bytes == 0 { 0.0 } else { 1.0 - moved_bytes as f64 / baseline_bytes as f64 },
        host_bytes,
        devices: shares,
    })
}

/// The owner of each tile.
fn owner(devices: usize, layout: DeviceLayout) -> impl Fn(TileId) -> usize {
    let grid = match layout {
        DeviceLayout::Grid => RankGrid::for_ranks(devices),
        DeviceLayout::Columns => RankGrid { rows: 1, cols: devices },
    };
    move |tile| grid.owner(tile)
}

/// A device with its decisions.
fn player(
    device: &Arc<dyn Device>,
    index: usize,
    tiling: &TileMap,
    options: &DoubleOptions,
    queue: &TaskQueue,
) -> Result<Player<impl Fn(TileId) -> u64 + Send + use<>>> {
    let lane = lane(device, tiling, options.device_bytes, options.streams)?;
    let choices = ConductorOptions {
        device: index,
        policy: options.policy,
        victim: options.victim,
        room_tiles: lane.room_tiles(),
        lookahead: options.lookahead,
    };
    let own = *tiling;
    let conductor = Conductor::new(choices, queue, move |tile| tile_bytes(&own, tile) as u64);
    Ok(Player::new(lane, conductor, 2 * options.lookahead + 2))
}

fn share<B: Fn(TileId) -> u64>(player: &Player<B>, before: &Traffic, staged_bytes: u64) -> DeviceShare {
    let device = player.lane.device();
    DeviceShare {
        room_tiles: player.lane.room_tiles(),
        tasks: player.task_count,
        cache: player.conductor.counters(),
        staged_bytes,
        device_seconds: player.seconds,
        ..DeviceShare::of(&**device, before)
    }
}

impl TileTasks for Run<'_> {
    fn home(&self, device: usize, tile: TileId) -> Result<Home> {
        self.host.home(device, tile)
    }

    fn submit(&self, device: &dyn Device, stream: Stream, task: Task, regions: &[Region]) -> Result<()> {
        submit(&self.host.tiling, device, stream, task, regions)
    }

    fn factor(&self, k: usize) -> Result<()> {
        let start = Instant::now();
        let tiling = &self.host.tiling;
        let (rows, tile) = (tiling.row_range(k), TileId { row: k, col: k });
        let mut home = self.host.own(tile).lock()?;
        let words = bytemuck::cast_slice_mut::<u8, f64>(&mut home);
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        let kernels = &mut kernels[..];
        let done = self.ctx.install(|| factor(words, rows.len(), kernels));
        self.potrf_nanoseconds.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        done.map_err(|bad| {
            let index = rows.start + bad.index;
            failure(index, bad.pivot, self.diagonal[index])
        })
    }

    fn advanced(&self, _task: Task) -> Result<()> {
        self.meter.add("factor", 1)
    }
}

/// The error for a pivot that is not positive: rounding moves it by about `index eps` of the diagonal entry.
pub(in crate::ops) fn failure(index: usize, pivot: f64, diagonal: f64) -> Error {
    let shown = |value: f64| Float::with_val(f64::MANTISSA_DIGITS, value);
    let noise = 4.0 * (index + 1) as f64 * f64::EPSILON * diagonal.abs();
    let hidden = (noise / pivot.abs().max(f64::MIN_POSITIVE)).log2().ceil();
    let more_bits = (pivot.abs() <= noise && diagonal > 0.0).then(|| hidden.clamp(0.0, 2000.0) as u32 + 8);
    let pivot = if pivot.is_nan() { Float::with_val(53, Special::NegInfinity) } else { shown(pivot) };
    Error::NotPositiveDefinite { index, pivot, diagonal: shown(diagonal), more_bits }
}
