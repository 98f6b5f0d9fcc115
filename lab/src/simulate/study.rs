//! The studies of `sunzi simulate`: one factorisation in virtual time, a table of several, or many small ones drawn
//! from seeds.

use super::{
    Cluster, FigureSummary, Recorder, Sample, Simulation, SimulationOptions, TraceSpan, Track, simulate, soak_case,
    table,
};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;
use sunzi::advanced::runtime::protocol::{DeliveryKind, Termination};
use sunzi::advanced::runtime::{Eviction, Policy};
use sunzi::distributed::RankGrid;
use sunzi::{Error, Result};
use sunzi_session::plot::{self, Figure, Point};
use sunzi_session::report::check_writable;
use sunzi_session::session::Session;
use sunzi_session::trace::{Names, Timed, Trace};

/// The largest number of spans of a trace: viewers read no more.
const TRACE_SPANS: usize = 1_000_000;

const GIBIBYTE: f64 = (1u64 << 30) as f64;

/// The size of the matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MatrixSize {
    /// Rows.
    Order(u64),
    /// Tile rows.
    Tiles(u64),
}

/// Factorisations to simulate: one for each choice of delivery, termination, policy and eviction.
#[derive(Clone, PartialEq, Debug)]
pub struct SimulateCholesky {
    /// Name or file of the machine.
    pub machine: String,
    /// Rows of a tile, where they are not the machine's.
    pub tile_rows: Option<usize>,
    /// The matrix.
    pub size: MatrixSize,
    /// Processes.
    pub grid: RankGrid,
    /// The algorithm that sends tiles to processes.
    pub deliveries: Vec<DeliveryKind>,
    /// When a process may end.
    pub terminations: Vec<Termination>,
    /// The order of tasks; by default random, and out of core the policy of blocks that reads the fewest bytes.
    pub policies: Vec<Policy>,
    /// The rule of eviction.
    pub evictions: Vec<Eviction>,
    /// Tiles of other processes that a process can hold.
    pub slots: Option<usize>,
    /// Host memory of a process, where it is not the machine's.
    pub host_memory_bytes: Option<u64>,
    /// Workers of a process, where they are not the machine's.
    pub workers: Option<usize>,
    /// Seed of all times.
    pub seed: u64,
    /// Every time is multiplied by 1 to `1 + jitter`.
    pub jitter: f64,
    /// Slow processes.
    pub slow: Vec<(usize, f64)>,
    /// Where the trace goes.
    pub trace: Option<PathBuf>,
    /// Processes in the trace.
    pub trace_processes: usize,
    /// Where the picture goes.
    pub plot: Option<PathBuf>,
}

/// Seeds to try.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Soak {
    /// The first.
    pub first: u64,
    /// How many.
    pub seeds: u64,
}

impl SimulateCholesky {
    /// How many simulations there are.
    pub fn runs(&self) -> usize {
        self.deliveries.len() * self.terminations.len() * self.policies.len().max(1) * self.evictions.len()
    }
}

#[derive(Serialize)]
struct Report<'a> {
    machine: &'a Cluster,
    simulations: &'a [Simulation],
}

/// Simulates factorisations, and compares them where there are several.
pub fn cholesky(session: &mut dyn Session, config: &SimulateCholesky) -> Result<()> {
    let machine = machine(config)?;
    let all = choices(config, &machine)?;
    all.iter().try_for_each(|options| options.check(&machine))?;
    config.plot.as_deref().map(check_writable).transpose()?;
    let mut trace = Trace::begin(config.trace.as_deref())?;
    let mut recorder = Recorder::none();
    if config.trace.is_some() {
        recorder = recorder.with_trace(config.trace_processes, TRACE_SPANS);
    }
    if config.plot.is_some() {
        recorder = recorder.with_samples();
    }
    let mut simulations = Vec::new();
    for options in &all {
        let simulation = simulate(&machine, options, &mut recorder, &|| !session.stop_requested())?;
        if all.len() > 1 {
            let heading = simulations.is_empty().then(|| table::heading(&simulation) + "\n");
            session.say(&format!("{}{}", heading.unwrap_or_default(), table::row(&simulation)))?;
        }
        simulations.push(simulation);
    }
    session.finish_report(&Report { machine: &machine, simulations: &simulations })?;
    let (process, thread) =
        (|process: usize| format!("process {process}"), |track: usize| Track::ALL[track].name().to_string());
    trace.add_timed(recorder.spans.iter().map(timed), &Names { process: &process, thread: &thread });
    trace.finish(session)?;
    if let Some(path) = &config.plot {
        plot::draw(&figures(&recorder.samples, machine.disk.is_some()), path)?;
    }
    match simulations.as_slice() {
        [simulation] => session.say(&table::describe(simulation)),
        _ => Ok(()),
    }
}

/// A process as the process, each of its engines as a thread.
fn timed(span: &TraceSpan) -> Timed {
    let name = format!("{} ({}, {})", span.track.name(), span.tile.row, span.tile.col);
    let TraceSpan { process, track, start, end, .. } = *span;
    Timed { name, process, thread: track as usize, start, end }
}

/// The machine, with the changes of the command line.
fn machine(config: &SimulateCholesky) -> Result<Cluster> {
    let named = Cluster::built_in(&config.machine);
    let mut machine = match named {
        Some(machine) => machine,
        None => read(&config.machine)?,
    };
    machine.layout.workers = config.workers.unwrap_or(machine.layout.workers);
    machine.layout.host_memory_bytes = config.host_memory_bytes.unwrap_or(machine.layout.host_memory_bytes);
    machine.tiles.rows = config.tile_rows.unwrap_or(machine.tiles.rows);
    machine.checked()
}

fn read(path: &str) -> Result<Cluster> {
    let text = std::fs::read_to_string(path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound if !path.contains(['/', '.']) => {
            let names = Cluster::BUILT_IN.join(", ");
            Error::InvalidArgument(format!("unknown machine '{path}': choose {names}, or name a file"))
        }
        _ => Error::Io { path: Path::new(path).to_path_buf(), action: "read", source },
    })?;
    Cluster::from_toml(&text, path)
}

/// All combinations of the choices.
fn choices(config: &SimulateCholesky, machine: &Cluster) -> Result<Vec<SimulationOptions>> {
    let rows = machine.tiles.rows as u64;
    let order = match config.size {
        MatrixSize::Order(order) => order,
        MatrixSize::Tiles(tiles) => tiles
            .checked_mul(rows)
            .ok_or_else(|| Error::InvalidArgument(format!("--tiles: {tiles} tile rows of {rows} rows are too many")))?,
    };
    let base = SimulationOptions {
        slots: config.slots,
        seed: config.seed,
        jitter: config.jitter,
        slow: config.slow.clone(),
        ..SimulationOptions::new(config.grid, order)
    };
    let usual = || match machine.disk {
        Some(_) => base.clone().above_disk(machine).policy,
        None => Policy::Random(1),
    };
    let policies = if config.policies.is_empty() { vec![usual()] } else { config.policies.clone() };
    let mut all = Vec::new();
    for &delivery in &config.deliveries {
        for &termination in &config.terminations {
            for &policy in &policies {
                all.extend(config.evictions.iter().map(|&eviction| SimulationOptions {
                    delivery,
                    termination,
                    policy,
                    eviction,
                    ..base.clone()
                }));
            }
        }
    }
    Ok(all)
}

/// The results of a soak.
#[derive(Serialize)]
struct SoakReport {
    first_seed: u64,
    seeds: u64,
    tasks: u64,
    events: u64,
    wall_seconds: f64,
}

/// Runs the simulations of many seeds; the first that goes wrong ends them.
pub fn soak(session: &mut dyn Session, config: &Soak) -> Result<()> {
    let begin = Instant::now();
    let mut report =
        SoakReport { first_seed: config.first, seeds: config.seeds, tasks: 0, events: 0, wall_seconds: 0.0 };
    for seed in config.first..config.first + config.seeds {
        if session.stop_requested() {
            return Err(Error::Cancelled);
        }
        let simulation = soak_case(seed).run().map_err(|error| match error {
            Error::Verification(message) => {
                Error::verification(format!("{message}; to reproduce: sunzi simulate soak --first {seed} --seeds 1"))
            }
            other => other,
        })?;
        report.tasks += simulation.tasks;
        report.events += simulation.events;
    }
    report.wall_seconds = begin.elapsed().as_secs_f64();
    session.finish_report(&report)?;
    let SoakReport { seeds, tasks, events, wall_seconds, .. } = report;
    session.say(&format!("{seeds} seeds: {tasks} tasks and {events} events in {wall_seconds:.1} s, all checks passed"))
}

/// Ready tasks, slots and device memory of the processes over virtual time, or above disks the tiles in memory.
fn figures(samples: &[Sample], above_disk: bool) -> Vec<Figure> {
    let figure = |caption: &'static str, unit: f64, level: fn(&Sample) -> FigureSummary| {
        let point = |sample: &Sample| {
            let FigureSummary { mean, most } = level(sample);
            Point { seconds: sample.time, mean: mean / unit, most: most / unit }
        };
        Figure { caption, points: samples.iter().map(point).collect() }
    };
    vec![
        figure("ready tasks of a process", 1.0, |sample| sample.ready),
        figure("slots in use of a process", 1.0, |sample| sample.slots),
        match above_disk {
            true => figure("tiles in the memory of a process", 1.0, |sample| sample.held_tiles),
            false => figure("GiB on the devices of a process", GIBIBYTE, |sample| sample.device_bytes),
        },
    ]
}
