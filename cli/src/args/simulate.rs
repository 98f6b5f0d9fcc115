//! Options of `simulate`.

use super::values::{
    broadcast, eviction, grid, jitter, positive, positive_count, problem, processes, size, slow, termination,
};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use sunzi::advanced::runtime::protocol::{DeliveryKind, Termination};
use sunzi::advanced::runtime::{Eviction, Policy};
use sunzi::distributed::RankGrid;
use sunzi::{Error, Result};
use sunzi_lab::simulate::MatrixSize;
use sunzi_session::units::{parse_count, parse_size};

/// `sunzi simulate`.
#[derive(Args, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  sunzi simulate cholesky --problem QAP5 --processes 1200 \\\n      \
                        --broadcast cs_list,binomial\n  \
                        sunzi simulate soak --seeds 100"
)]
pub struct Simulate {
    /// The simulation to run.
    #[command(subcommand)]
    pub what: Simulation,
}

/// The simulation to run.
#[derive(Subcommand, Debug)]
pub enum Simulation {
    /// Simulate a tiled factorisation A = L L^T on a cluster; lists for --broadcast, --policy, --eviction or
    /// --termination give a table of all combinations.
    #[command(after_help = "Example:\n  sunzi simulate cholesky --problem QAP5 --processes 1200 \\\n      \
                        --broadcast cs_list,binomial")]
    Cholesky(Box<SimulateCholesky>),
    /// Simulate many small factorisations under adverse conditions, drawn from random seeds; the exit code is 5 if one
    /// of them fails.
    #[command(after_help = "Example:\n  sunzi simulate soak --first 7 --seeds 100")]
    Soak(Soak),
}

/// The number of processes and their grid.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = true)]
pub struct Processes {
    /// Number of processes [default: that of --grid].
    #[arg(long, value_name = "P", value_parser = processes)]
    processes: Option<usize>,
    /// Rows and columns of the grid of processes, such as 60x68 [default: nearly square].
    #[arg(long, value_name = "PxQ", value_parser = grid)]
    grid: Option<RankGrid>,
}

/// The size of the matrix.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = false)]
pub struct Size {
    /// Number of rows of the matrix.
    #[arg(long, value_name = "N", value_parser = parse_count)]
    order: Option<u64>,
    /// Number of tile rows of the matrix.
    #[arg(long, value_name = "T", value_parser = parse_count)]
    tiles: Option<u64>,
    /// Matrix from the literature.
    #[arg(long, value_name = "NAME", ignore_case = true, value_parser = problem())]
    problem: Option<u64>,
}

/// `sunzi simulate cholesky`.
#[derive(Args, Clone, Debug)]
pub struct SimulateCholesky {
    #[command(flatten)]
    processes: Processes,
    #[command(flatten)]
    size: Size,
    /// Rows of a tile [default: the machine's].
    #[arg(long, value_name = "NB", value_parser = positive)]
    tile_rows: Option<usize>,
    /// Machine to simulate: tsubame2.5, or a TOML file such as lab/machines/tsubame2.5.toml.
    #[arg(long, value_name = "NAME|FILE", default_value = "tsubame2.5")]
    machine: String,
    /// Algorithm that sends a finished tile to the processes that need it.
    #[arg(long, value_name = "LIST", default_value = "cs_list", value_delimiter = ',', value_parser = broadcast())]
    broadcast: Vec<DeliveryKind>,
    /// Scheduling policy, which orders the ready tasks: fifo, lifo, random (or random:SEED), by_ij, greedy,
    /// critical_path, panels, leftmost, blocks:RxC [default: random:1; out of core the blocks:RxC that reads the fewest
    /// bytes].
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = Policy::by_name)]
    policy: Vec<Policy>,
    /// Rule that chooses the tile to evict from a full device.
    #[arg(long, value_name = "LIST", default_value = "fifo", value_delimiter = ',', value_parser = eviction())]
    eviction: Vec<Eviction>,
    /// The method by which a process detects that no other process needs a tile from it any more.
    #[arg(long, value_name = "LIST", default_value = "lists", value_delimiter = ',', value_parser = termination())]
    termination: Vec<Termination>,
    /// Largest number of tiles of other processes that a process holds at a time [default: from the host memory].
    #[arg(long, value_name = "N", value_parser = size)]
    remote_tiles: Option<usize>,
    /// Host memory of a process for its own and remote tiles or, out of core, for the tiles in memory [default: the
    /// machine's].
    #[arg(long, value_name = "SIZE", conflicts_with = "remote_tiles", value_parser = parse_size)]
    host_memory: Option<u64>,
    /// Number of workers of a process [default: the machine's].
    #[arg(long, value_name = "W", value_parser = positive)]
    workers: Option<usize>,
    /// Seed of the random times.
    #[arg(long, value_name = "S", default_value = "0", value_parser = parse_count)]
    seed: u64,
    /// Multiply every time by a random factor from 1 to 1 + J.
    #[arg(long, value_name = "J", default_value = "0", value_parser = jitter)]
    jitter: f64,
    /// Slow processes, each with a factor for its times: with 3:10,7:2 process 3 takes 10 times as long, process 7
    /// twice as long.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = slow)]
    slow: Vec<(usize, f64)>,
    /// Also write a timeline of the first processes, as JSON for ui.perfetto.dev or chrome://tracing.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Number of processes in the trace.
    #[arg(long, value_name = "N", default_value = "16", value_parser = positive)]
    trace_processes: usize,
    /// Also plot ready tasks, remote tiles and device memory over time, as SVG; out of core, tiles in memory take the
    /// place of device memory.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// `sunzi simulate soak`.
#[derive(Args, Clone, Copy, Debug)]
pub struct Soak {
    /// Number of seeds.
    #[arg(long, value_name = "N", default_value = "1000", value_parser = positive_count)]
    pub seeds: u64,
    /// The first seed.
    #[arg(long, value_name = "S", default_value = "0", value_parser = parse_count)]
    pub first: u64,
}

impl Simulate {
    /// Checks counts that must agree.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`].
    pub fn check(&self) -> Result<()> {
        match &self.what {
            Simulation::Cholesky(args) => args.options().map(drop),
            Simulation::Soak(Soak { seeds, first }) => match first.checked_add(*seeds) {
                Some(_) => Ok(()),
                None => Err(Error::InvalidArgument(format!(
                    "--seeds {seeds} with --first {first} reaches seeds of 2^64 and more; all seeds must be below 2^64"
                ))),
            },
        }
    }
}

impl Processes {
    fn grid(&self) -> Result<RankGrid> {
        let count = self.processes.unwrap_or_else(|| self.grid.map_or(1, |grid| grid.rows * grid.cols));
        let RankGrid { rows, cols } = self.grid.unwrap_or_else(|| RankGrid::for_ranks(count));
        if rows * cols != count {
            let message = format!("--grid {rows}x{cols} has {} processes, not {count}", rows * cols);
            return Err(Error::InvalidArgument(message));
        }
        processes(&count.to_string()).map_err(|why| Error::InvalidArgument(format!("--grid {rows}x{cols}: {why}")))?;
        Ok(RankGrid { rows, cols })
    }
}

impl SimulateCholesky {
    /// The simulations, one for each combination of choices.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if options contradict each other.
    pub fn options(&self) -> Result<sunzi_lab::simulate::SimulateCholesky> {
        let refused = |message: String| Err(Error::InvalidArgument(message));
        let (grid, args) = (self.processes.grid()?, self.clone());
        if let Some((process, _)) = args.slow.iter().find(|(process, _)| *process >= grid.size()) {
            return refused(format!(
                "--slow: process {process} does not exist: there are {} processes, counted from 0",
                grid.size()
            ));
        }
        let options = sunzi_lab::simulate::SimulateCholesky {
            machine: args.machine,
            tile_rows: args.tile_rows,
            size: match (args.size.order.or(args.size.problem), args.size.tiles) {
                (Some(order), _) => MatrixSize::Order(order),
                (None, tiles) => MatrixSize::Tiles(tiles.unwrap_or_default()),
            },
            grid,
            deliveries: args.broadcast,
            terminations: args.termination,
            policies: args.policy,
            evictions: args.eviction,
            slots: args.remote_tiles,
            host_memory_bytes: args.host_memory,
            workers: args.workers,
            seed: args.seed,
            jitter: args.jitter,
            slow: args.slow,
            trace: args.trace,
            trace_processes: args.trace_processes,
            plot: args.plot,
        };
        if options.runs() > 1 && (options.trace.is_some() || options.plot.is_some()) {
            return refused(format!(
                "--trace and --plot require a single simulation, but the options give {}",
                options.runs()
            ));
        }
        Ok(options)
    }
}
