//! What `sunzi simulate` is to simulate.

use super::{Command, optional, size};
use crate::args::{RawSimulate, RawSimulateCholesky, RawSimulation, RawSoak};
use sunzi::error::{Error, Result};
use sunzi::runtime::protocol::{DeliveryKind, Termination};
use sunzi::runtime::{Eviction, Policy};
use sunzi::tile::RankGrid;
use sunzi_lab::simulate::{MatrixSize, SimulateCholesky, Soak};
use sunzi_lab::units::{parse_count, parse_size};

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
            (None, Some(count)) => Ok(RankGrid::for_ranks(count)),
            (None, None) => refused("no processes: give --processes or --grid".into()),
        }
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
