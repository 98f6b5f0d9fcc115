//! What `sunzi simulate` is to simulate.

use super::{Command, optional, size};
use crate::error::{Error, Result};
use crate::front::cli::args::{RawSimulate, RawSimulateCholesky, RawSimulation, RawSoak};
use crate::front::cli::units::{parse_count, parse_size};
use crate::runtime::protocol::{DeliveryKind, Termination};
use crate::runtime::{Eviction, Policy};
use crate::tile::RankGrid;
use std::path::PathBuf;

/// Schur complement matrices of quadratic assignment problems, as in the papers that docs/SIMULATION.md names.
const PROBLEMS: [(&str, u64); 6] = [
    ("QAP5", 379_350),
    ("QAP6", 709_275),
    ("QAP7", 1_218_400),
    ("QAP8", 1_484_406),
    ("QAP9", 1_962_225),
    ("QAP10", 2_339_331),
];

/// Most processes that make sense to type.
const MOST_PROCESSES: usize = 1 << 20;

/// How large the matrix is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MatrixSize {
    /// Rows.
    Order(u64),
    /// Tile rows.
    Tiles(u64),
}

/// Factorisations to simulate: one for each choice of delivery, termination, policy and victim.
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
    /// Who sends a tile to whom.
    pub deliveries: Vec<DeliveryKind>,
    /// When a process may end.
    pub terminations: Vec<Termination>,
    /// Which task runs next.
    pub policies: Vec<Policy>,
    /// Which tile leaves.
    pub victims: Vec<Eviction>,
    /// Tiles of others that a process has room for.
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

impl RawSimulate {
    pub(super) fn resolve(self) -> Result<Command> {
        match self.what {
            RawSimulation::Cholesky(raw) => Ok(Command::SimulateCholesky(Box::new(raw.resolve()?))),
            RawSimulation::Soak(RawSoak { seeds, first }) => {
                let (first, seeds) = (parse_count("--first", &first)?, parse_count("--seeds", &seeds)?);
                match first.checked_add(seeds) {
                    Some(_) if seeds > 0 => Ok(Command::SimulateSoak(Soak { first, seeds })),
                    _ => refused(format!("--seeds: {seeds} seeds from {first} on")),
                }
            }
        }
    }
}

fn refused<T>(message: String) -> Result<T> {
    Err(Error::InvalidArgument(message))
}

impl RawSimulateCholesky {
    fn resolve(self) -> Result<SimulateCholesky> {
        let positive = |what: &'static str| {
            move |text: &str| match size(what, text)? {
                0 => refused(format!("{what}: 0: choose 1 or more")),
                count => Ok(count),
            }
        };
        let (size_of_matrix, grid) = (self.matrix_size()?, self.process_grid()?);
        let config = SimulateCholesky {
            machine: self.machine,
            tile_rows: optional(self.tile_rows, positive("--tile-rows"))?,
            size: size_of_matrix,
            grid,
            deliveries: all(&self.delivery, DeliveryKind::by_name)?,
            terminations: all(&self.termination, termination)?,
            policies: all(&self.policy, Policy::by_name)?,
            victims: all(&self.victim, Eviction::by_name)?,
            slots: optional(self.slots, |text| size("--slots", text))?,
            host_memory_bytes: optional(self.host_memory, |text| parse_size("--host-memory", text))?,
            workers: optional(self.workers, positive("--workers"))?,
            seed: parse_count("--seed", &self.seed)?,
            jitter: jitter(&self.jitter)?,
            slow: all(&self.slow, |text| slow(text, grid.size()))?,
            trace: self.trace,
            trace_processes: positive("--trace-processes")(&self.trace_processes)?,
            plot: self.plot,
        };
        if config.runs() > 1 && (config.trace.is_some() || config.plot.is_some()) {
            return refused(format!("--trace and --plot show one simulation, and here are {}", config.runs()));
        }
        Ok(config)
    }

    fn matrix_size(&self) -> Result<MatrixSize> {
        let problem = |name: &str| {
            let names = || PROBLEMS.map(|(name, _)| name).join(", ");
            let known = PROBLEMS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            known
                .map(|&(_, order)| MatrixSize::Order(order))
                .ok_or_else(|| Error::InvalidArgument(format!("unknown problem '{name}': choose one of {}", names())))
        };
        match (&self.order, &self.tiles, &self.problem) {
            (Some(text), _, _) => Ok(MatrixSize::Order(parse_count("--order", text)?)),
            (_, Some(text), _) => Ok(MatrixSize::Tiles(parse_count("--tiles", text)?)),
            (_, _, Some(name)) => problem(name),
            _ => refused("no matrix: give --order, --tiles or --problem".into()),
        }
    }

    fn process_grid(&self) -> Result<RankGrid> {
        let processes = optional(self.processes.clone(), |text| size("--processes", text))?;
        let in_range = |count: usize| (1..=MOST_PROCESSES).contains(&count);
        match (&self.grid, processes) {
            (_, Some(count)) if !in_range(count) => {
                refused(format!("--processes: {count}: choose 1 to {MOST_PROCESSES}"))
            }
            (Some(text), processes) => {
                let sides = text.split_once(['x', 'X']).unwrap_or((text, ""));
                let grid = RankGrid { rows: size("--grid", sides.0)?, cols: size("--grid", sides.1)? };
                match grid.rows.checked_mul(grid.cols) {
                    Some(count) if in_range(count) && processes.is_none_or(|processes| processes == count) => Ok(grid),
                    Some(count) if in_range(count) => {
                        refused(format!("--grid {text} has {count} processes, not {}", processes.unwrap_or(0)))
                    }
                    _ => refused(format!("--grid {text}: choose 1 to {MOST_PROCESSES} processes")),
                }
            }
            (None, Some(count)) => {
                let RankGrid { rows, cols } = RankGrid::for_ranks(count);
                Ok(RankGrid { rows, cols })
            }
            (None, None) => refused("no processes: give --processes or --grid".into()),
        }
    }
}

impl SimulateCholesky {
    /// How many simulations there are.
    pub fn runs(&self) -> usize {
        self.deliveries.len() * self.terminations.len() * self.policies.len() * self.victims.len()
    }
}

fn all<T>(texts: &[String], parse: impl Fn(&str) -> Result<T>) -> Result<Vec<T>> {
    texts.iter().map(|text| parse(text)).collect()
}

fn termination(name: &str) -> Result<Termination> {
    match name {
        "lists" => Ok(Termination::Lists),
        "all_to_all" => Ok(Termination::AllToAll),
        _ => refused(format!("unknown termination '{name}': choose one of lists, all_to_all")),
    }
}

fn jitter(text: &str) -> Result<f64> {
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
    value.map_or_else(|| refused(format!("--jitter: '{text}' is not a number of 0 or more")), Ok)
}

fn slow(text: &str, processes: usize) -> Result<(usize, f64)> {
    let pair = text.split_once(':').and_then(|(process, factor)| Some((process.parse().ok()?, factor.parse().ok()?)));
    let fits = |&(process, factor): &(usize, f64)| process < processes && factor.is_finite() && factor > 0.0;
    pair.filter(fits).map_or_else(
        || refused(format!("--slow: '{text}' is not PROCESS:FACTOR with a process below {processes}, such as 0:10")),
        Ok,
    )
}
