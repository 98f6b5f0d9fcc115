//! `sunzi bench step`: one step of an interior-point method in the manner of SDPB, on one process or many ranks.
//!
//! Each rank holds some of the blocks: `n x n` triangles `L_j` and `n x N` matrices `B_j`. A step computes `V_j =
//! L_j^-1 B_j`, `Q = sum_j V_j^T V_j` over the ranks, `Q = L L^T`, and two solves with `L L^T` of one right-hand side
//! each, as the predictor and the corrector need them. The sides for comparison, by the names of [`NAMES`]: Q as SDPB
//! computes it with MPFR loops for the rest, and MPFR loops for all stages.
//!
//! The other sides run the stages that split into blocks on the ranks, and the stages that are one problem in one
//! process with as many threads as the ranks have together, while the others wait; so they send nothing, and their
//! operands exist before the clock starts. Each of their stages gets our result of the previous stage as input. Answers
//! of all sides are checked by the verifiers of the operations, and those of the ranks are also compared with one
//! process, bit by bit.

mod others;
mod ours;

use super::check::worst;
use super::operands::Operands;
use super::rank_table::{header, row, total_threads};
use super::spread::Spread;
use super::task::Phases;
use crate::baselines::{self, Operation};
use crate::machine::Machine;
use others::Others;
use ours::{Alone, StepSide};
use serde::Serialize;
use std::ops::Range;
use std::time::Instant;
use sunzi::comm::{Reduction, Transport, agree, agreed, barrier};
use sunzi::distributed::even_share;
use sunzi::gallery::{Kind, Size, generate};
use sunzi::{Error, Matrix, Result};
use sunzi_session::engine::Engine;
use sunzi_session::session::{ROOT, Session};
use sunzi_session::units::format_seconds;

/// The sides that a step can be compared with: the source of Q, together with MPFR loops for the rest.
pub const NAMES: [&str; 2] = ["sdpb", "mpfr"];

/// The stages of a step.
const STAGES: [&str; 4] = ["v", "q", "cholesky", "solves"];

/// Right-hand sides, one after the other.
const SOLVES: usize = 2;

/// A first run of another side that takes longer than this counts.
const LONG_SECONDS: f64 = 20.0;

/// A step to time.
#[derive(Clone, Debug)]
pub struct BenchStep {
    /// Blocks of all ranks.
    pub blocks: usize,
    /// Rows of each block.
    pub order: usize,
    /// Columns of V, rows of Q.
    pub cols: usize,
    /// Precision.
    pub precision_bits: u32,
    /// The other implementations: `sdpb`, `mpfr`.
    pub baselines: Vec<String>,
    /// Timed runs of each side.
    pub runs: usize,
    /// The engine of each rank.
    pub engine: Engine,
}

impl BenchStep {
    /// The blocks of a rank.
    fn own(&self, world: &dyn Transport) -> Range<usize> {
        even_share(self.blocks, world.size(), world.rank())
    }

    /// `L_j` and `B_j`.
    fn block(&self, at: usize) -> Result<Operands> {
        let size = Size { rows: self.order, cols: self.cols, precision_bits: self.precision_bits };
        Operands::seeded(Operation::Trsm, size, 2 * at as u64 + 1)
    }

    /// A right side.
    fn right(&self, at: usize) -> Result<Matrix> {
        let size = Size { rows: self.cols, cols: 1, precision_bits: self.precision_bits };
        generate(Kind::Random, size, 2 * (self.blocks + at) as u64 + 1)
    }
}

/// The report.
#[derive(Serialize)]
struct StepReport {
    operation: &'static str,
    blocks: usize,
    order: usize,
    cols: usize,
    precision_bits: u32,
    runs: usize,
    ranks: usize,
    nodes: usize,
    threads: usize,
    #[serde(flatten)]
    ours: SideReport,
    baselines: Vec<SideReport>,
    same_bits: bool,
    worst_error: f64,
    machine: Machine,
}

/// The figures of a side.
#[derive(Serialize)]
struct SideReport {
    name: &'static str,
    seconds: Spread,
    /// The time of this side divided by ours, of the medians.
    ratio: f64,
    /// Phases of the run nearest to the median.
    phases: Phases,
    checked: bool,
}

/// The seconds of the stages of a run; the same on all ranks.
type StageSeconds = [f64; STAGES.len()];

/// Does some work that all ranks begin together; the seconds until the last has ended. Collective.
fn timed<T>(world: &dyn Transport, work: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    barrier(world)?;
    let start = Instant::now();
    let done = agreed(world, work())?;
    let mut nanoseconds = [start.elapsed().as_nanos() as u64];
    world.all_reduce(Reduction::Max, &mut nanoseconds)?;
    Ok((done, nanoseconds[0] as f64 * 1e-9))
}

/// Times a step on all ranks and reports the results. Collective.
///
/// # Errors
/// [`Error::Verification`] for a wrong answer on any side, or where the bits differ from the result of one process;
/// [`Error::InvalidArgument`], and the errors of the operations.
pub fn run(session: &mut dyn Session, config: &BenchStep, world: &dyn Transport) -> Result<()> {
    config.engine.refuse_devices("a step")?;
    let names = config.baselines.iter().map(|name| admitted(name, config.precision_bits));
    let names = agreed(world, names.collect::<Result<Vec<_>>>())?;
    session.hide_progress();
    let mut ours = StepSide::new(session, config, world)?;
    let threads = total_threads(&ours.ctx, world)?;
    ours.run(false)?;
    let root = world.rank() == ROOT;
    let builder = session.context(&config.engine)?.threads(threads);
    let alone = agreed(world, if root { Alone::new(&builder.build()?, config).map(Some) } else { Ok(None) })?;
    let same_bits = ours.has_bits_of(alone.as_ref())?;
    let others = names.iter().map(|name| Others::new(name, config, world, &ours, alone.as_ref(), threads));
    let mut others = others.collect::<Result<Vec<_>>>()?;
    for round in 0..=config.runs {
        if round > 0 {
            ours.run(true)?;
        }
        others.iter_mut().try_for_each(|side| side.run(round))?;
    }
    let same_bits = same_bits && ours.has_bits_of(alone.as_ref())?;
    let worst_error = alone.as_ref().map_or(0.0, |alone| worst(alone.errors()));
    for side in &mut others {
        side.judge(alone.as_ref())?;
    }
    let report = summarise(config, &ours, &others, same_bits, worst_error, threads);
    ours.team.close()?;
    let said = if root { session.finish_report(&report).and_then(|()| session.say(&table(&report))) } else { Ok(()) };
    agree(world, said)?;
    agree(world, verdict(&report))
}

/// The name of a side, where this build has it.
fn admitted(name: &str, precision_bits: u32) -> Result<&'static str> {
    let known = NAMES.into_iter().find(|known| *known == name);
    let known =
        known.ok_or_else(|| Error::InvalidArgument(format!("--against of a step accepts {}", NAMES.join(", "))))?;
    baselines::check_for_timing(known, Operation::Syrk, precision_bits).map_err(Error::InvalidArgument)?;
    Ok(known)
}

fn side_report(name: &'static str, runs: &[StageSeconds], ours: Option<f64>, checked: bool) -> SideReport {
    let totals = runs.iter().map(|stages| stages.iter().sum()).collect::<Vec<f64>>();
    let seconds = Spread::of(&totals);
    let distance = |at: &usize| (totals[*at] - seconds.median).abs();
    let nearest = (0..runs.len()).min_by(|x, y| distance(x).total_cmp(&distance(y))).expect("a run");
    let phases = Phases(STAGES.into_iter().zip(runs[nearest]).collect());
    SideReport { name, seconds, ratio: seconds.median / ours.unwrap_or(seconds.median), phases, checked }
}

fn summarise(
    config: &BenchStep,
    ours: &StepSide<'_>,
    others: &[Others<'_>],
    same_bits: bool,
    worst_error: f64,
    threads: usize,
) -> StepReport {
    let &BenchStep { blocks, order, cols, precision_bits, runs, .. } = config;
    // A NaN compares false, and so counts as wrong.
    let own = side_report("sunzi", &ours.runs, None, worst_error <= 1.0);
    let median = own.seconds.median;
    let others = others.iter().map(|side| side_report(side.name, &side.runs, Some(median), side.right));
    StepReport {
        operation: "step",
        blocks,
        order,
        cols,
        precision_bits,
        runs,
        ranks: ours.team.size(),
        nodes: ours.team.layout().nodes.len(),
        threads,
        baselines: others.collect(),
        ours: own,
        same_bits,
        worst_error,
        machine: Machine::look(),
    }
}

fn verdict(report: &StepReport) -> Result<()> {
    let wrong = report.baselines.iter().find(|side| !side.checked);
    match wrong {
        _ if !report.same_bits => {
            Err(Error::verification("the result on several ranks differs bitwise from that of one process"))
        }
        _ if !report.ours.checked => {
            Err(Error::verification(format!("an entry has {:.3} times its error bound", report.worst_error)))
        }
        Some(side) => Err(Error::verification(format!("baseline {} gave a wrong result", side.name))),
        None => Ok(()),
    }
}

/// The report for people.
fn table(report: &StepReport) -> String {
    let StepReport { blocks, order, cols, precision_bits, runs, ranks, nodes, threads, ours, .. } = report;
    let mut lines = vec![
        format!(
            "step of {blocks} blocks of {order} rows, {cols} columns, {precision_bits} bits, {ranks} ranks on {nodes} \
             nodes, {threads} threads, {runs} runs"
        ),
        format!("{}  over sunzi", header()),
    ];
    for side in std::iter::once(ours).chain(&report.baselines) {
        let name = match side.name {
            "sdpb" => "Q by sdpb, rest by loops",
            "mpfr" => "MPFR loops",
            own => own,
        };
        let wrong = if side.checked { "" } else { "  WRONG RESULT" };
        lines.push(row(name, &side.seconds, &format!("{:.2}{wrong}", side.ratio)));
        let stages = side.phases.0.iter().map(|(name, seconds)| format!("{name} {}", format_seconds(*seconds)));
        lines.push(format!("    {}", stages.collect::<Vec<_>>().join(", ")));
    }
    let bits = match report.same_bits {
        true => "bitwise equal to the result of one process",
        false => "DIFFERENT BITS from those of one process",
    };
    lines.push(format!("answers    {bits}; largest error {:.3} of the bound in sampled entries", report.worst_error));
    lines.join("\n")
}
