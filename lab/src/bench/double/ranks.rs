//! `sunzi bench cholesky --element-type double` on several ranks: the factorisation driven by data, beside
//! ScaLAPACK where it is built in, in turns in the same run.

use crate::bench::double::BenchDouble;
use crate::bench::double::RESIDUAL_BOUND;
use crate::bench::spread::Spread;
use crate::engine::limited;
use crate::machine::Machine;
use crate::session::Session;
use crate::units::{format_bytes, format_seconds};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use sunzi::advanced::device::DeviceName;
use sunzi::comm::{Reduction, Transport, agree, agreed};
use sunzi::distributed::{
    DoubleMatrix, DoubleRankOptions, DoubleRankReport, RankDevices, RankGrid, double_cholesky_ranks,
};
use sunzi::{Context, ContextBuilder, Error, Result};

/// Rows of a tile by default: on fewer, messages and packing cost more than they hide; on more, ranks wait at the end.
fn default_tile_rows(rows: usize) -> usize {
    (rows / 20).next_multiple_of(64).clamp(192, 448)
}

/// Random vectors of the check.
const VECTORS: u64 = 2;

/// Another implementation, beside ours.
#[derive(Serialize)]
pub struct BaselineTimes {
    /// Its name and its choices.
    pub name: String,
    /// Of the slowest rank.
    pub seconds: Spread,
    pub gflops: f64,
}

/// What the devices of all ranks moved.
#[derive(Serialize)]
struct Moved {
    devices: u64,
    h2d_bytes: u64,
    d2h_bytes: u64,
    /// Bytes that would move if each task moved all of its tiles.
    baseline_h2d_bytes: u64,
    baseline_d2h_bytes: u64,
    /// Tiles found where they were needed.
    hits: u64,
}

impl Moved {
    /// The sums over all ranks; `None` where none has a device. Collective.
    fn of(world: &dyn Transport, own: Option<&RankDevices>) -> Result<Option<Moved>> {
        let words = |own: &RankDevices| {
            let hits = own.devices.iter().map(|share| share.cache.hits).sum();
            let baseline = [own.baseline_h2d_bytes, own.baseline_d2h_bytes];
            [own.devices.len() as u64, own.h2d_bytes, own.d2h_bytes, baseline[0], baseline[1], hits]
        };
        let mut sums = own.map_or([0; 6], words);
        world.all_reduce(Reduction::Sum, &mut sums)?;
        let [devices, h2d_bytes, d2h_bytes, baseline_h2d_bytes, baseline_d2h_bytes, hits] = sums;
        let moved = Moved { devices, h2d_bytes, d2h_bytes, baseline_h2d_bytes, baseline_d2h_bytes, hits };
        Ok((devices > 0).then_some(moved))
    }

    fn describe(&self) -> String {
        let less = |bytes: u64, baseline: u64| 100.0 * (1.0 - bytes as f64 / baseline.max(1) as f64);
        format!(
            "{} device(s): h2d {}, {:.1} % less than every task for itself; d2h {}, {:.1} % less; {} hits",
            self.devices,
            format_bytes(self.h2d_bytes),
            less(self.h2d_bytes, self.baseline_h2d_bytes),
            format_bytes(self.d2h_bytes),
            less(self.d2h_bytes, self.baseline_d2h_bytes),
            self.hits
        )
    }
}

/// What is written by `--report`.
#[derive(Serialize)]
struct RanksReport {
    operation: &'static str,
    element: &'static str,
    rows: usize,
    ranks: usize,
    threads: usize,
    runs: usize,
    seconds: Spread,
    gflops: f64,
    /// Over the baseline, of the medians: above 1 ours is faster.
    ratio: Option<f64>,
    baseline: Option<BaselineTimes>,
    residual: f64,
    checked: bool,
    /// Seconds of all workers of all ranks.
    busy_seconds: f64,
    wait_seconds: f64,
    /// Bytes of tiles sent by all ranks.
    sent_bytes: u64,
    /// Of the fastest run, where there are devices.
    moved: Option<Moved>,
    /// The fastest run, as the root saw it.
    factor: DoubleRankReport,
    machine: Machine,
}

/// Entry `(i, j)` of the matrix: a number in (-1/2, 1/2) that looks random, and a dominant diagonal.
fn entry(rows: usize) -> impl Fn(usize, usize) -> f64 + Copy {
    move |i, j| {
        let (row, col) = (i.max(j) as u64, i.min(j) as u64);
        let mixed = (row << 32 | col).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 31).wrapping_mul(0x94d0_49bb_1331_11eb);
        let noise = (mixed >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
        if i == j { rows as f64 + noise } else { noise }
    }
}

/// Our side: the seconds of each run, and what the last one left.
struct Ours<'a> {
    ctx: &'a Context,
    world: &'a dyn Transport,
    matrix: DoubleMatrix,
    last: Option<DoubleMatrix>,
    options: DoubleRankOptions,
    seconds: Vec<f64>,
    best: Option<DoubleRankReport>,
}

impl Ours<'_> {
    fn once(&mut self) -> Result<()> {
        // The copy of the run before goes first.
        self.last = None;
        let mut work = self.matrix.clone();
        let report = double_cholesky_ranks(self.ctx, self.world, &mut work, &self.options)?;
        self.last = Some(work);
        self.seconds.push(report.seconds);
        if self.best.as_ref().is_none_or(|best| report.seconds < best.seconds) {
            self.best = Some(report);
        }
        Ok(())
    }
}

/// Refuses options that mean nothing where no device is asked for.
fn refuse_device_options(config: &BenchDouble) -> Result<()> {
    if config.victim.is_some() && !config.devices_given {
        let message = "--eviction: doubles on several ranks are factored by the CPUs where no device is named";
        return Err(Error::InvalidArgument(message.into()));
    }
    Ok(())
}

/// The ranks of a benchmark.
pub struct World<'a> {
    /// All that take part.
    pub ranks: &'a dyn Transport,
    /// The same as MPI sees them, for a baseline that speaks MPI itself; `None` on ranks that are threads.
    #[cfg(feature = "scalapack")]
    pub mpi: Option<sunzi::comm::mpi::MpiRank>,
}

/// Times a factorisation of doubles on all ranks and says what was found. Collective.
///
/// # Errors
/// [`Error::Verification`] for a wrong factor, [`Error::InvalidArgument`], and those of the factorisation.
pub fn run(session: &mut dyn Session, config: &BenchDouble, all: &World<'_>) -> Result<()> {
    let world = all.ranks;
    refuse_device_options(config)?;
    session.hide_progress();
    let (rows, grid) = (config.rows, RankGrid::for_ranks(world.size()));
    let tile_rows = config.tile_rows.unwrap_or_else(|| default_tile_rows(rows));
    let matrix = agreed(world, DoubleMatrix::from_fn(world.rank(), rows, tile_rows, grid, entry(rows)))?;
    // Each run works on a copy.
    let copy_bytes = matrix.tiles().map(|(_, entries)| size_of_val(entries) as u64).sum();
    let budget = config.engine.budget().map(|budget| budget.with_held(copy_bytes));
    let (builder, restate) = limited(agreed(world, context(config))?, budget);
    let ctx = agreed(world, builder.build())?;
    let options = DoubleRankOptions::default();
    let options = DoubleRankOptions { policy: config.policy, eviction: config.victim.unwrap_or_default(), ..options };
    let mut ours = Ours { ctx: &ctx, world, matrix, last: None, options, seconds: Vec::new(), best: None };
    ours.once().map_err(restate)?; // warm
    (ours.seconds, ours.best) = (Vec::new(), None);
    let baseline = in_turns(all, config, &mut || ours.once())?;
    let random = |seed| {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        (0..rows).map(|_| if random.random::<bool>() { 1.0 } else { -1.0 }).collect::<Vec<f64>>()
    };
    let vectors = (0..VECTORS).map(random).collect::<Vec<_>>();
    let factor = ours.last.take().expect("there is a run");
    let residual = factor.residual(world, entry(rows), &vectors)?;
    let report = summarise(config, &ctx, world, ours, (baseline, residual))?;
    let checked = report.checked;
    let said = session.finish_report(&report).and_then(|()| session.say(&describe(&report)));
    agree(world, said)?;
    match checked {
        true => Ok(()),
        false => Err(Error::Verification(format!("the residual is {residual:.3} times rows eps |A|"))),
    }
}

/// One thread where nothing else is said, and the devices that were asked for: every rank opens them all.
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

/// Runs both sides in turns.
#[cfg(not(feature = "scalapack"))]
fn in_turns(
    _all: &World<'_>,
    config: &BenchDouble,
    ours: &mut dyn FnMut() -> Result<()>,
) -> Result<Option<BaselineTimes>> {
    (0..config.runs).try_for_each(|_| ours())?;
    Ok(None)
}

/// Runs both sides in turns, ScaLAPACK with the grid and the blocks that are best for it.
#[cfg(feature = "scalapack")]
fn in_turns(
    all: &World<'_>,
    config: &BenchDouble,
    ours: &mut dyn FnMut() -> Result<()>,
) -> Result<Option<BaselineTimes>> {
    use crate::baselines::scalapack::{Layout, Pdpotrf};
    let Some(rank) = &all.mpi else {
        (0..config.runs).try_for_each(|_| ours())?;
        return Ok(None);
    };
    let entry = entry(config.rows);
    let grids = (1..=rank.size()).filter(|rows| rank.size().is_multiple_of(*rows));
    let layout = |grid_rows: usize, block_rows: usize| Layout {
        order: config.rows,
        block_rows,
        grid_rows,
        grid_cols: rank.size() / grid_rows,
    };
    let mut best: Option<(f64, Layout)> = None;
    for layout in grids.flat_map(|rows| [64, 128].map(|block| layout(rows, block))) {
        let seconds = Pdpotrf::new(rank, layout)?.measure(1, entry)?.min;
        best = best.filter(|(least, _)| *least <= seconds).or(Some((seconds, layout)));
    }
    let (_, layout) = best.expect("there is a grid");
    let mut baseline = Pdpotrf::new(rank, layout)?;
    let mut seconds = Vec::new();
    for _ in 0..config.runs {
        ours()?;
        seconds.push(baseline.measure(1, entry)?.min);
    }
    let seconds = Spread::of(&seconds);
    let name = format!("pdpotrf {} x {} blocks of {}", layout.grid_rows, layout.grid_cols, layout.block_rows);
    Ok(Some(BaselineTimes { name, gflops: gflops(config.rows, seconds.median), seconds }))
}

fn gflops(rows: usize, seconds: f64) -> f64 {
    (rows as f64).powi(3) / 3.0 / seconds.max(1e-9) * 1e-9
}

fn summarise(
    config: &BenchDouble,
    ctx: &Context,
    world: &dyn Transport,
    ours: Ours<'_>,
    (baseline, residual): (Option<BaselineTimes>, f64),
) -> Result<RanksReport> {
    let factor = ours.best.expect("there is a run");
    let nanoseconds = |seconds: f64| (seconds * 1e9) as u64;
    let rank = &factor.rank;
    let mut sums = [nanoseconds(rank.busy_seconds()), nanoseconds(rank.wait_seconds()), rank.sent_bytes];
    world.all_reduce(Reduction::Sum, &mut sums)?;
    let moved = Moved::of(world, factor.devices.as_ref())?;
    let seconds = Spread::of(&ours.seconds);
    Ok(RanksReport {
        operation: "cholesky",
        element: "double",
        rows: config.rows,
        ranks: world.size(),
        threads: ctx.threads(),
        runs: config.runs,
        gflops: gflops(config.rows, seconds.median),
        ratio: baseline.as_ref().map(|baseline| baseline.seconds.median / seconds.median),
        seconds,
        baseline,
        residual,
        checked: residual <= RESIDUAL_BOUND,
        busy_seconds: sums[0] as f64 * 1e-9,
        wait_seconds: sums[1] as f64 * 1e-9,
        sent_bytes: sums[2],
        moved,
        factor,
        machine: Machine::look(),
    })
}

/// The report for people.
fn describe(report: &RanksReport) -> String {
    let factor = &report.factor;
    let row = |name: &str, seconds: &Spread, gflops: f64| {
        let [min, median, max] = [seconds.min, seconds.median, seconds.max].map(format_seconds);
        format!("{name:<32} {median} ({min} to {max}): {gflops:.2} GFLOP/s")
    };
    let mut lines = vec![
        format!(
            "cholesky of doubles {0} x {0} on {1} x {2} ranks of {3} worker(s), tiles of {4} rows, {5} slots",
            report.rows, factor.grid_rows, factor.grid_cols, report.threads, factor.tile_rows, factor.slots
        ),
        row("factor", &report.seconds, report.gflops),
    ];
    lines.extend(report.baseline.iter().map(|baseline| row(&baseline.name, &baseline.seconds, baseline.gflops)));
    lines.extend(report.ratio.map(|ratio| format!("ours is {ratio:.3} times as fast")));
    lines.push(format!(
        "workers of all ranks busy for {}, waiting for {}; {} sent",
        format_seconds(report.busy_seconds),
        format_seconds(report.wait_seconds),
        format_bytes(report.sent_bytes)
    ));
    lines.extend(report.moved.iter().map(Moved::describe));
    let verdict = if report.checked { "right" } else { "WRONG" };
    lines.push(format!("answer {verdict}: residual {:.3e} of rows eps |A|", report.residual));
    lines.join("\n")
}
