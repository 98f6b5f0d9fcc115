//! `sunzi cholesky` and `sunzi solve` on several ranks: the root reads and shares out, all factor, the root writes.

use super::observe;
use crate::args::{Factor, RankChoices};
use crate::commands::factor::{Factoring, Inputs, Task, read_inputs};
use crate::session::{Session, check_output};
use crate::signals::while_computing;
use rug::Float;
use serde::Serialize;
use std::time::Instant;
use sunzi::advanced::plan::default_tile_size;
use sunzi::advanced::runtime::Policy;
use sunzi::advanced::tile::TileMap;
use sunzi::comm::{Transport, agree, agreed};
use sunzi::distributed::{
    self, DistCholesky, DistCholeskyOptions, DistCholeskyReport, DistMatrix, RankGrid, Team, TeamOptions, cholesky_with,
};
use sunzi::io::Symmetry;
use sunzi::{Cholesky, Context, Error, Matrix, Result, Uplo};
use sunzi_lab::engine::limited;
use sunzi_lab::report::check_writable;
use sunzi_lab::session::ROOT;
use sunzi_lab::session::Session as _;
use sunzi_lab::trace::Trace;
use sunzi_lab::units::describe;
use sunzi_lab::units::{format_bytes, format_seconds};

/// Digits of the logarithm that are printed; the report has all.
const SHOWN_DIGITS: usize = 30;

/// Columns of right-hand sides in a tile.
const RIGHT_TILE: usize = 64;

/// The report.
#[derive(Serialize)]
struct Report<'a> {
    operation: &'static str,
    rows: usize,
    cols: usize,
    precision_bits: u32,
    /// How the factor was made: tiles, memory, messages of every rank.
    factorisation: &'a DistCholeskyReport,
    /// Seconds of the solve, where there is one.
    solve_seconds: Option<f64>,
    /// Right-hand sides that one rank solved alone.
    gathered_columns: Option<usize>,
    /// `log det A` in decimals, where it was asked for.
    log_det: Option<String>,
    input_seconds: f64,
    output_seconds: f64,
}

/// Whether ranks share the work on such a factor; else the root does it alone.
pub fn is_shared(factor: &Factor) -> bool {
    !factor.condition
}

/// The operands in tiles over the ranks.
struct Operands {
    a: DistMatrix,
    b: Option<DistMatrix>,
    precision_bits: u32,
}

/// What was computed.
struct Computed {
    made: DistCholesky,
    solution: Option<(DistMatrix, usize, f64)>,
}

/// Runs on all ranks of `world`.
pub fn run(session: &mut Session, config: &Factoring, world: &dyn Transport) -> Result<()> {
    let (root, choices) = (world.rank() == ROOT, &config.factor.ranks);
    agree(world, if root { check_output(&config.output) } else { Ok(()) })?;
    let plot = choices.plot.as_deref().filter(|_| root);
    agree(world, plot.map_or(Ok(()), check_writable))?;
    let options = agreed(world, TeamOptions::from_environment())?;
    let team = Team::new(world.split(0)?, options)?;
    let mut trace = agreed(world, Trace::begin(config.factor.trace.as_deref().filter(|_| root)))?;
    let (operands, input_seconds) = trace.span("read", || read(session, config, world))?;
    let (computed, _) = trace.span("compute", || while_computing(|| compute(session, config, &operands, &team)))?;
    drop(operands);
    let Computed { made: DistCholesky { factor, report, own }, solution } = computed;
    if config.factor.trace.is_some() {
        observe::add_tasks(&mut trace, world, &own)?;
    }
    if choices.plot.is_some() {
        let drawn = observe::draw(world, &own, plot)?;
        agree(world, drawn)?;
    }
    let written = Instant::now();
    let result = solution.as_ref().map_or(&factor, |(solution, ..)| solution);
    let (whole, _) = trace.span("gather", || result.gather(world, ROOT))?;
    let shape = whole.as_ref().map(describe);
    let (outcome, _) = trace.span("write", || Ok(finish(session, config, whole)))?;
    let log_det = agreed(world, outcome)?;
    let all = Report {
        operation: if solution.is_some() { "solve" } else { "cholesky" },
        rows: result.map().rows,
        cols: result.map().cols,
        precision_bits: result.precision_bits(),
        factorisation: &report,
        solve_seconds: solution.as_ref().map(|(.., seconds)| *seconds),
        gathered_columns: solution.as_ref().map(|(_, gathered, _)| *gathered),
        log_det: log_det.as_ref().map(|value| format!("{value:e}")),
        input_seconds,
        output_seconds: written.elapsed().as_secs_f64(),
    };
    team.close()?;
    let outcome = trace.finish(session).and_then(|()| session.finish_report(&all));
    agree(world, outcome)?;
    match shape {
        Some(shape) => session.say(&lines(config, &shape, &all, log_det.as_ref())),
        None => Ok(()),
    }
}

/// Reads on the root and shares out. Collective.
fn read(session: &Session, config: &Factoring, world: &dyn Transport) -> Result<Operands> {
    let read = (world.rank() == ROOT).then(|| read_inputs(session, config)).transpose();
    let inputs = agreed(world, read)?;
    let of_b = |inputs: &Inputs| inputs.b.as_ref().map_or([0; 2], |b| [b.cols() as u64, b.precision_bits().into()]);
    let mut facts = inputs.as_ref().map_or([0; 5], |inputs| {
        let [cols, bits] = of_b(inputs);
        [inputs.a.rows() as u64, inputs.a.precision_bits().into(), inputs.precision_bits.into(), cols, bits]
    });
    world.broadcast(ROOT, &mut facts)?;
    let [rows, a_bits, bits, cols, b_bits] = facts;
    let (rows, cols) = (rows as usize, cols as usize);
    let choices = &config.factor.ranks;
    let grid = choices.grid.unwrap_or_else(|| RankGrid::for_ranks(world.size()));
    let fits = grid.size() <= world.size();
    let refusal = || {
        let (count, ranks) = (grid.size(), world.size());
        Error::InvalidArgument(format!("--grid {}x{} has {count} ranks: there are {ranks}", grid.rows, grid.cols))
    };
    agree(world, if fits { Ok(()) } else { Err(refusal()) })?;
    let triangle = Some(config.factor.triangle.uplo().unwrap_or(Uplo::Lower));
    let tile_size = default_tile_size(rows, grid);
    let map = TileMap { rows, cols: rows, tile_size, grid, triangle };
    let whole = inputs.as_ref().map(|inputs| inputs.a.as_matrix());
    let a = DistMatrix::scatter(world, ROOT, whole, map, a_bits as u32)?;
    let b = match &config.task {
        Task::Solve { .. } => {
            let map = TileMap { rows, cols, tile_size: RIGHT_TILE, grid, triangle: None };
            let whole = inputs.as_ref().and_then(|inputs| inputs.b.as_ref());
            Some(DistMatrix::scatter(world, ROOT, whole, map, b_bits as u32)?)
        }
        _ => None,
    };
    Ok(Operands { a, b, precision_bits: bits as u32 })
}

fn compute(session: &Session, config: &Factoring, operands: &Operands, team: &Team) -> Result<Computed> {
    let engine = &config.factor.engine;
    let (builder, restate) = limited(session.context(engine)?, engine.budget());
    let ctx = agreed(team.world(), builder.build())?;
    factor_and_solve(&ctx, config, operands, team).map_err(restate)
}

fn factor_and_solve(ctx: &Context, config: &Factoring, operands: &Operands, team: &Team) -> Result<Computed> {
    let RankChoices { grid, broadcast, policy, termination, remote_tiles, plot } = &config.factor.ranks;
    let options = DistCholeskyOptions {
        tile_rows: config.factor.tile_rows,
        grid: *grid,
        delivery: broadcast.unwrap_or_default(),
        termination: termination.unwrap_or_default(),
        policy: policy.unwrap_or(Policy::CriticalPath),
        slots: *remote_tiles,
        spans: config.factor.trace.is_some() || plot.is_some(),
    };
    let bits = operands.precision_bits;
    let made = cholesky_with(ctx, team, &operands.a, bits, &options)?;
    let start = Instant::now();
    let solved = operands.b.as_ref().map(|b| distributed::solve(ctx, team, &made.factor, b, bits)).transpose()?;
    let solution = solved.map(|found| (found.solution, found.gathered_columns, start.elapsed().as_secs_f64()));
    Ok(Computed { made, solution })
}

/// Writes the whole result, which the root has; gives the logarithm of the determinant where it was asked for.
fn finish(session: &Session, config: &Factoring, whole: Option<Matrix>) -> Result<Option<Float>> {
    let Some(whole) = whole else { return Ok(None) };
    match (&config.task, config.factor.triangle.uplo()) {
        (Task::Cholesky, Some(Uplo::Upper)) => session.write(&config.output, whole.transposed(), Symmetry::General)?,
        _ => session.write(&config.output, &whole, Symmetry::General)?,
    }
    if !config.factor.log_det {
        return Ok(None);
    }
    Cholesky::from_factor(whole).map(|factor| Some(factor.log_det()))
}

fn lines(config: &Factoring, shape: &str, all: &Report<'_>, log_det: Option<&Float>) -> String {
    let report = all.factorisation;
    let sent = report.per_rank.iter().map(|rank| rank.sent_bytes).sum::<u64>();
    let mut lines = vec![format!(
        "{}: {shape} ({}, {} ranks as {} x {}, {} threads, {} primes, tiles of {} rows, {} planned a rank) in {} \
         (files {})",
        config.output.path.display(),
        report.kernel,
        report.ranks,
        report.grid.rows,
        report.grid.cols,
        report.threads,
        report.primes,
        report.tile_rows,
        format_bytes(report.planned_bytes),
        format_seconds(report.seconds + all.solve_seconds.unwrap_or(0.0)),
        format_seconds(all.input_seconds + all.output_seconds),
    )];
    let messages = report.per_rank.iter().map(|rank| rank.messages).sum::<u64>();
    let wait = report.per_rank.iter().map(|rank| rank.wait_seconds).sum::<f64>();
    lines.push(format!(
        "{messages} messages, {} sent, workers waited for {} of {}",
        format_bytes(sent),
        format_seconds(wait),
        format_seconds(report.seconds * report.threads as f64),
    ));
    lines.extend(log_det.map(|value| format!("log det A = {value:.SHOWN_DIGITS$e}")));
    lines.join("\n")
}
