//! `sunzi bench cholesky --element-type double`: a tiled factorisation of doubles, in one process or over ranks,
//! compared with the rate of plain products on its devices, and with ScaLAPACK.

mod baseline;
mod rate;
mod report;
mod system;

use super::spread::Spread;
use crate::machine::Machine;
use baseline::{BaselineTimes, in_turns};
use report::{Counted, DoubleBenchReport, Moved, describe};
use sunzi::advanced::device::{DeviceKind, DeviceName};
use sunzi::advanced::runtime::{CholeskyGraph, CountOptions, Eviction, Policy, baseline_bytes, count_moves};
use sunzi::comm::{Reduction, Transport, agree, agreed};
use sunzi::devices::cuda_devices;
use sunzi::double::{DoubleMatrix, DoubleOptions, DoubleReport, double_cholesky};
use sunzi::{Context, ContextBuilder, Error, Result};
use sunzi_session::engine::{Engine, limited};
use sunzi_session::session::Session;
pub use system::{largest_residual, matrix};

/// A larger residual means a wrong factor: the residual of a correct one is far below 1.
pub const RESIDUAL_BOUND: f64 = 1.0;

/// Tile rows up to which every choice is counted without running it.
const COUNTED_TILES: usize = 64;

/// A factorisation of doubles.
#[derive(Clone, Debug)]
pub struct BenchDouble {
    /// Rows of the matrix.
    pub rows: usize,
    /// Rows of a tile; `None` for the library's choice.
    pub tile_rows: Option<usize>,
    /// The order of ready tasks; `None` for the library's choice.
    pub policy: Option<Policy>,
    /// The rule of eviction of a full device; `None` for the library's choice.
    pub eviction: Option<Eviction>,
    /// Timed runs.
    pub runs: usize,
    /// Whether devices were requested.
    pub devices_given: bool,
    /// Threads and memory of the host, and the devices: at least one.
    pub engine: Engine,
}

/// The ranks of a benchmark.
pub struct BenchRanks<'a> {
    /// All ranks that take part.
    pub ranks: &'a dyn Transport,
    /// The same ranks as MPI numbers them, for a baseline that calls MPI itself; `None` on ranks that are threads.
    #[cfg(feature = "scalapack")]
    pub mpi: Option<sunzi::comm::mpi::MpiRank>,
}

impl BenchRanks<'_> {
    /// One process by itself.
    pub fn alone() -> BenchRanks<'static> {
        BenchRanks {
            ranks: sunzi::comm::local::alone(),
            #[cfg(feature = "scalapack")]
            mpi: None,
        }
    }
}

/// Our side: the seconds of each run, and the fastest.
struct DoubleSide<'a> {
    ctx: &'a Context,
    world: &'a dyn Transport,
    matrix: DoubleMatrix,
    seconds: Vec<f64>,
    residual: f64,
    best: Option<DoubleReport>,
}

impl DoubleSide<'_> {
    /// One factorisation of a fresh copy.
    fn once(&mut self, options: &DoubleOptions) -> Result<DoubleReport> {
        let mut work = self.matrix.clone();
        let report = double_cholesky(self.ctx, self.world, &mut work, options)?;
        self.residual = self.residual.max(largest_residual(self.world, &work)?);
        Ok(report)
    }

    /// One that is timed.
    fn timed(&mut self, options: &DoubleOptions) -> Result<()> {
        let report = self.once(options)?;
        self.seconds.push(report.factor_seconds);
        if self.best.as_ref().is_none_or(|best| report.factor_seconds < best.factor_seconds) {
            self.best = Some(report);
        }
        Ok(())
    }
}

/// Times a factorisation of doubles on all ranks and reports the results. Collective.
///
/// # Errors
/// [`Error::Verification`] for a wrong factor, [`Error::InvalidArgument`], and the errors of the factorisation.
pub fn run(session: &mut dyn Session, config: &BenchDouble, all: &BenchRanks<'_>) -> Result<()> {
    let world = all.ranks;
    let is_alone = world.size() == 1;
    refuse_device_options(config, is_alone)?;
    session.hide_progress();
    let tile_rows = config.tile_rows.unwrap_or_else(|| default_tile_rows(config.rows, is_alone));
    let matrix = agreed(world, matrix(world, config.rows, tile_rows))?;
    // Each run works on a copy.
    let copy_bytes = matrix.tiles().map(|(_, entries)| size_of_val(entries) as u64).sum();
    let budget = config.engine.budget(copy_bytes).map(|budget| budget.with_held(copy_bytes));
    let builder = if is_alone { session.context(&config.engine) } else { context(config) };
    let (builder, restate) = limited(agreed(world, builder)?, budget);
    let ctx = agreed(world, builder.build())?;
    let devices = &ctx.devices().devices[..];
    let chosen = config.eviction.unwrap_or_default();
    let options = DoubleOptions::new().policy(config.policy).eviction(chosen);
    let mut ours = DoubleSide { ctx: &ctx, world, matrix, seconds: Vec::new(), residual: 0.0, best: None };
    // The first run warms everything up.
    let mut moved = Vec::new();
    for eviction in Eviction::ALL.into_iter().filter(|&eviction| eviction != chosen) {
        let report = ours.once(&options.eviction(eviction)).map_err(&restate)?;
        moved.extend(Moved::of(world, &report)?);
    }
    let mut products = Vec::new();
    let baseline = in_turns(all, config, &mut || {
        let rates = devices.iter().filter(|_| is_alone).map(rate::products).collect::<Result<Vec<_>>>()?;
        let rates = rates.into_iter().collect::<Option<Vec<_>>>().filter(|rates| !rates.is_empty());
        products.extend(rates.map(|rates| rates.iter().sum::<f64>()));
        ours.timed(&options)
    })?;
    let best = ours.best.as_ref().expect("there is a run");
    if let Some(timed) = Moved::of(world, best)? {
        moved.insert(0, timed);
    }
    let report = summarise(config, ours, DoubleMeasured { baseline, products, moved })?;
    let said = session.finish_report(&report).and_then(|()| session.say(&describe(&report)));
    agree(world, said)?;
    match report.checked {
        true => Ok(()),
        false => Err(Error::verification(format!("the residual is {:.3} times rows eps |A|", report.residual))),
    }
}

/// Rows of a tile. Over ranks, on fewer, messages and packing cost more than they hide; on more, ranks wait at the end.
fn default_tile_rows(rows: usize, is_alone: bool) -> usize {
    match is_alone {
        true => DoubleMatrix::tile_rows_for(rows),
        false => (rows / 20).next_multiple_of(64).clamp(192, 448),
    }
}

/// Refuses options that mean nothing where no device is requested.
fn refuse_device_options(config: &BenchDouble, is_alone: bool) -> Result<()> {
    if config.eviction.is_some() && !config.devices_given && !is_alone {
        let message = "--eviction on several ranks requires --device: without it the CPUs factor doubles";
        return Err(Error::InvalidArgument(message.into()));
    }
    Ok(())
}

/// On several ranks: one thread by default, and the requested devices. Every rank opens all of them.
fn context(config: &BenchDouble) -> Result<ContextBuilder> {
    let engine = &config.engine;
    let builder = Context::builder().threads(engine.threads.unwrap_or(1));
    let builder = match engine.device_memory_bytes {
        Some(bytes) => builder.device_memory_bytes(bytes),
        None => builder,
    };
    let wanted = if config.devices_given { &engine.devices[..] } else { &[] };
    Ok(builder.devices(DeviceName::open(wanted, engine.threads)?))
}

fn gflops(rows: usize, seconds: f64) -> f64 {
    (rows as f64).powi(3) / 3.0 / seconds.max(1e-9) * 1e-9
}

/// The measurements besides our own runs.
struct DoubleMeasured {
    baseline: Option<BaselineTimes>,
    products: Vec<f64>,
    moved: Vec<Moved>,
}

/// Collective.
fn summarise(config: &BenchDouble, ours: DoubleSide<'_>, measured: DoubleMeasured) -> Result<DoubleBenchReport> {
    let DoubleMeasured { baseline, products, moved } = measured;
    let factor = ours.best.expect("there is a run");
    let nanoseconds = |seconds: f64| (seconds * 1e9) as u64;
    let mut sums =
        [nanoseconds(factor.rank.busy_seconds()), nanoseconds(factor.rank.wait_seconds()), factor.rank.sent_bytes];
    ours.world.all_reduce(Reduction::Sum, &mut sums)?;
    let seconds = Spread::of(&ours.seconds);
    let gflops = gflops(config.rows, seconds.median);
    let products = (!products.is_empty()).then(|| Spread::of(&products));
    let kinds = factor.devices.iter().map(|share| share.device.kind).collect::<Vec<_>>();
    let reason = match cuda_devices() {
        _ if kinds.is_empty() || kinds.contains(&DeviceKind::Cuda) => None,
        Ok(_) => Some("GPUs: present, but none was chosen".to_string()),
        Err(error) => Some(format!("GPUs: {error}")),
    };
    Ok(DoubleBenchReport {
        operation: "cholesky",
        element: "double",
        rows: config.rows,
        ranks: ours.world.size(),
        threads: ours.ctx.threads(),
        runs: config.runs,
        ratio: baseline.as_ref().map(|baseline| baseline.seconds.median / seconds.median),
        seconds,
        gflops,
        baseline,
        product_gflops: products,
        product_ratio: products.map(|rate| gflops / rate.median),
        product_clock: if kinds.contains(&DeviceKind::Soft) { "host" } else { "device" },
        moved,
        counted: if ours.world.size() == 1 { counted(&factor) } else { Vec::new() },
        checked: ours.residual <= RESIDUAL_BOUND,
        residual: ours.residual,
        busy_seconds: sums[0] as f64 * 1e-9,
        wait_seconds: sums[1] as f64 * 1e-9,
        sent_bytes: sums[2],
        not_measured: reason.into_iter().collect(),
        factor,
        machine: Machine::look(),
    })
}

/// The bytes of all choices on one device with the room of this one, counted without running them.
fn counted(factor: &DoubleReport) -> Vec<Counted> {
    let (graph, rows) = (CholeskyGraph { tiles: factor.tiles }, factor.tile_rows);
    let [only] = &factor.devices[..] else { return Vec::new() };
    if factor.tiles > COUNTED_TILES {
        return Vec::new();
    }
    let order = factor.order;
    let side = move |index: usize| rows.min(order - index * rows) as u64;
    let bytes = move |tile: sunzi::advanced::tile::TileId| 8 * side(tile.row) * side(tile.col);
    let baseline = baseline_bytes(graph, bytes);
    let choices = Policy::ALL.into_iter().flat_map(|policy| Eviction::ALL.map(|eviction| (policy, eviction)));
    let count = |(policy, eviction): (Policy, Eviction)| {
        let (room_tiles, lookahead) = (only.room_tiles, DoubleOptions::default().lookahead);
        let options = CountOptions { policy, eviction, room_tiles, lookahead };
        let counters = count_moves(graph, options, bytes);
        let (h2d_bytes, d2h_bytes) = (counters.up_bytes, counters.down_bytes);
        let saved = if baseline == 0 { 0.0 } else { 1.0 - (h2d_bytes + d2h_bytes) as f64 / baseline as f64 };
        Counted { policy: policy.name(), eviction: eviction.name(), h2d_bytes, d2h_bytes, saved }
    };
    choices.map(count).collect()
}
