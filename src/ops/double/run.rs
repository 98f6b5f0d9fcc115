//! Carries out a factorisation of doubles in one process: a grid of one rank, whose devices have all tiles.

use super::devices::{DeviceChoices, DeviceTiles, UnderWay};
use super::report::DoubleReport;
use super::tiles::HostTiles;
use super::{DeviceLayout, DoubleOptions};
use crate::comm::post::Body;
use crate::context::Context;
use crate::device::Device;
use crate::drive::{Meter, RankPlan, RankTiles, run_alone};
use crate::error::{Error, Result};
use crate::kernels::f64::tile::TileKernels;
use crate::runtime::CholeskyGraph;
use crate::runtime::protocol::{DeviceSites, ProtocolOptions, Sites, TileRun};
use crate::tile::{RankGrid, TileId, TileMap};
use rug::Float;
use rug::float::Special;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// One factorisation under way.
struct Run<'a> {
    ctx: &'a Context,
    devices: DeviceTiles,
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
    let grid = match options.layout {
        DeviceLayout::Grid => RankGrid::for_ranks(devices.len()),
        DeviceLayout::Columns => RankGrid { rows: 1, cols: devices.len() },
    };
    // One device alone reads nothing of others.
    let staged = grid.size() > 1;
    let kernel_bytes = ctx.threads() as u64 * TileKernels::BYTES;
    let buffers = if staged { grid.size() } else { 0 };
    let host_bytes = HostTiles::planned_bytes(&tiling, tiling.tiles(), buffers) + kernel_bytes;
    ctx.admit(host_bytes)?;
    let (eviction, bytes, streams) = (options.eviction, options.device_bytes, options.streams);
    let choices = DeviceChoices { grid, eviction, bytes, stream_count: streams, staged };
    let devices = DeviceTiles::open(devices, tiling, 0, &choices)?;
    devices.host.load(ctx, a)?;
    let load_seconds = seconds(start);
    let graph = CholeskyGraph::of(&tiling);
    let tasks = graph.tasks().count() as u64;
    let diagonal = (0..tiling.rows).map(|index| a[index * tiling.rows + index]).collect();
    let (meter, potrf_nanoseconds) = (Meter::new(ctx, tasks), AtomicU64::new(0));
    let kernels = Mutex::new((0..ctx.threads()).map(|_| TileKernels::new()).collect());
    let sites = DeviceSites { grid, workers: 1, lookahead: Some(options.lookahead) };
    let room_tiles = devices.room_tiles();
    let protocol = ProtocolOptions { devices: Some(sites), room_tiles, ..ProtocolOptions::alone(options.policy, 0) };
    let plan = RankPlan { grid: tiling.grid, graph, protocol, spans: false };
    let run = Run { ctx, devices, diagonal, meter, potrf_nanoseconds, kernels };
    let factoring = Instant::now();
    let local = |device| Local { device, under_way: UnderWay::new(2 * options.lookahead + 2) };
    let mut locals = (0..grid.size()).map(local).collect::<Vec<_>>();
    run_alone(&plan, &run, &mut locals)?;
    let shares = run.devices.shares()?;
    run.devices.host.settle()?;
    let factor_seconds = seconds(factoring);
    let storing = Instant::now();
    run.devices.host.store(ctx, a)?;
    let baseline = run.devices.baseline();
    let baseline_bytes = baseline.up_bytes + baseline.down_bytes;
    let moved_bytes = shares.iter().map(|share| share.traffic.h2d_bytes + share.traffic.d2h_bytes).sum::<u64>();
    Ok(DoubleReport {
        operation: "cholesky",
        element: "double",
        order: tiling.rows,
        tile_rows: tiling.tile_size,
        tiles: tiling.tile_rows(),
        policy: options.policy,
        eviction: options.eviction,
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

/// The worker of one device.
struct Local {
    device: usize,
    under_way: UnderWay,
}

impl Run<'_> {
    fn factor(&self, tile: TileId) -> Result<()> {
        let start = Instant::now();
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        let done = self.devices.factor(self.ctx, &mut kernels, tile, |bad| {
            let index = self.devices.host.tiling.row_range(tile.row).start + bad.index;
            failure(index, bad.pivot, self.diagonal[index])
        });
        self.potrf_nanoseconds.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        done
    }
}

impl RankTiles for Run<'_> {
    type Local = Local;

    const UNPACKS: bool = false;

    fn run(&self, local: &mut Local, run: &TileRun) -> Result<()> {
        if run.finish && run.tile.row == run.tile.col {
            return self.factor(run.tile);
        }
        let Local { device, under_way } = local;
        self.devices.run(*device, run, under_way, |tile| self.devices.host.home(*device, tile))
    }

    fn pack(&self, _local: &mut Local, tile: TileId) -> Result<Body> {
        Ok(Arc::new(bytemuck::cast_slice(&self.devices.host.own(tile).lock()?).to_vec()))
    }

    fn payload_words(&self, tile: TileId) -> usize {
        self.devices.host.tiling.entries(tile)
    }

    fn release(&self, _tile: TileId) {}

    fn site(local: &Local) -> usize {
        Sites::FIRST_DEVICE + local.device
    }

    fn is_near(&self, site: usize, tile: TileId) -> bool {
        site.checked_sub(Sites::FIRST_DEVICE).is_none_or(|device| self.devices.holds(device, tile))
    }

    fn advanced(&self, run: &TileRun) -> Result<()> {
        self.meter.add("factor", run.updates.len() as u64 + u64::from(run.finish))
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
