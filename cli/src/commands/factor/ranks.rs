//! A factorisation and a solve on several ranks: the root reads and shares out, all factor, the root gathers.

use super::{ComputedFactor, FactorInputs, Factoring, Figures, ReadAt, Task, needs, read, reader};
use crate::args::RankChoices;
use crate::commands::observe;
use crate::input::Announced;
use crate::rank_memory::{self, Held, announced};
use crate::session::Session;
use crate::signals::while_computing;
use crate::triangles::FACTORED;
use std::time::Instant;
use sunzi::advanced::plan::default_tile_size;
use sunzi::advanced::tile::{RankGrid, TileMap};
use sunzi::comm::{Transport, agree, agreed};
use sunzi::distributed::{self, DistCholesky, DistCholeskyOptions, DistMatrix, Team, TeamOptions, cholesky_with};
use sunzi::estimate::log_det_of;
use sunzi::{Context, Error, Matrix, Result, Uplo};
use sunzi_session::engine::{Engine, limited};
use sunzi_session::memory::Budget;
use sunzi_session::report::check_writable;
use sunzi_session::session::ROOT;
use sunzi_session::trace::Trace;

/// Columns of right-hand sides in a tile.
const RIGHT_TILE: usize = 64;

/// The operands in tiles over the ranks.
struct TiledOperands {
    a: DistMatrix,
    b: Option<DistMatrix>,
    precision_bits: u32,
}

/// The factor, and a solution with its seconds.
struct Made {
    factor: DistCholesky,
    solution: Option<(DistMatrix, f64)>,
}

/// Reads, factors, solves and gathers. Collective.
///
/// # Errors
/// The errors of reading, and of the operations; the same on all ranks.
pub fn compute(
    session: &Session,
    config: &Factoring,
    world: &dyn Transport,
    trace: &mut Trace,
) -> Result<ComputedFactor> {
    let plot = config.factor.plot.as_deref().filter(|_| world.rank() == ROOT);
    agree(world, plot.map_or(Ok(()), check_writable))?;
    let options = agreed(world, TeamOptions::from_environment())?;
    let team = Team::new(world.split(0)?, options)?;
    admit(session, config, &team)?;
    let (operands, input_seconds) = trace.span("read", || share_out(session, config, world))?;
    let (made, _) = trace.span("compute", || while_computing(|| factor(session, config, &operands, &team)))?;
    drop(operands);
    let Made { factor: DistCholesky { factor, report, own }, solution } = made;
    if config.factor.trace.is_some() {
        observe::add_tasks(trace, world, &own)?;
    }
    if config.factor.plot.is_some() {
        let drawn = observe::draw(world, &own, plot)?;
        agree(world, drawn)?;
    }
    let gathered = solution.as_ref().map_or(&factor, |(solution, _)| solution);
    let (result, gather_seconds) = trace.span("gather", || gathered.gather(world, ROOT))?;
    team.close()?;
    let wanted = result.as_ref().filter(|_| config.factor.log_det);
    let log_det = wanted.map(|factor| log_det_of(factor, factor.precision_bits()));
    let solve_seconds = solution.as_ref().map(|(_, seconds)| *seconds);
    let figures = Figures {
        kernel: report.kernel,
        threads: report.threads,
        seconds: report.seconds + solve_seconds.unwrap_or(0.0),
        planned_bytes: solution.is_none().then_some(report.planned_bytes),
        factorisation: Some(report),
        solve_seconds,
        input_seconds,
        ..Figures::default()
    };
    Ok(ComputedFactor { result, log_det, gather_seconds, figures, ..ComputedFactor::default() })
}

/// Refuses a memory limit of a node that the command cannot end in, before anything is read. Collective.
fn admit(session: &Session, config: &Factoring, team: &Team) -> Result<()> {
    let (world, engine): (&dyn Transport, _) = (team.world(), &config.factor.engine);
    if engine.memory_bytes.is_none() {
        return Ok(());
    }
    let Some((bits, found)) = announced(world, &config.files(), || reader(session, config, ReadAt::default()))? else {
        return Ok(());
    };
    let (a, b) = (found[0], found.get(1));
    let mut tiles = vec![matrix_tiles(config, world, a.rows)?];
    if let Some(b) = b {
        tiles.push(right_tiles(tiles[0].grid, a.rows, b.cols));
    }
    let share = |(map, matrix): (&TileMap, &Announced)| DistMatrix::bytes_for(map, world.rank(), matrix.bits);
    let held = Held {
        own_bytes: tiles.iter().zip(&found).map(share).sum(),
        whole_bytes: found.iter().map(Announced::bytes).sum(),
        gathered_bytes: Matrix::bytes_for(a.rows, b.map_or(a.rows, |b| b.cols), bits),
    };
    let accuracy = config.factor.accuracy;
    let options = options(config).range_bits(needs::usual_range_bits(a.rows));
    rank_memory::admit(team, engine, session.context(engine)?, &held, |ctx| {
        let factored = distributed::plan_cholesky(ctx, team, (&tiles[0], a.bits), bits, &options).map(drop);
        let solved =
            b.map(|b| distributed::plan_solve(ctx, team, (a.rows, b.cols), (b.bits, bits), accuracy).map(drop));
        [factored].into_iter().chain(solved).collect()
    })
}

/// The grid of ranks. Collective.
fn grid(config: &Factoring, world: &dyn Transport) -> Result<RankGrid> {
    let grid = config.ranks.grid.unwrap_or_else(|| RankGrid::for_ranks(world.size()));
    let (count, ranks) = (grid.size(), world.size());
    let refusal = || {
        Error::InvalidArgument(format!("--grid {}x{} needs {count} ranks, but there are {ranks}", grid.rows, grid.cols))
    };
    agree(world, if count <= ranks { Ok(()) } else { Err(refusal()) })?;
    Ok(grid)
}

/// The tiles of the matrix. Collective.
fn matrix_tiles(config: &Factoring, world: &dyn Transport, rows: usize) -> Result<TileMap> {
    let grid = grid(config, world)?;
    let triangle = Some(config.factor.triangle.uplo().unwrap_or(Uplo::Lower));
    Ok(TileMap { rows, cols: rows, tile_size: default_tile_size(rows, grid), grid, triangle })
}

/// The tiles of right-hand sides.
fn right_tiles(grid: RankGrid, rows: usize, cols: usize) -> TileMap {
    TileMap { rows, cols, tile_size: RIGHT_TILE, grid, triangle: None }
}

/// Reads on the root and shares out. Collective.
fn share_out(session: &Session, config: &Factoring, world: &dyn Transport) -> Result<TiledOperands> {
    let read = (world.rank() == ROOT).then(|| read(session, config, ReadAt::default(), &FACTORED)).transpose();
    let inputs = agreed(world, read)?;
    let of_b =
        |inputs: &FactorInputs| inputs.b.as_ref().map_or([0; 2], |b| [b.cols() as u64, b.precision_bits().into()]);
    let mut facts = inputs.as_ref().map_or([0; 5], |inputs| {
        let [cols, bits] = of_b(inputs);
        [inputs.a.rows() as u64, inputs.a.precision_bits().into(), inputs.precision_bits.into(), cols, bits]
    });
    world.broadcast(ROOT, &mut facts)?;
    let [rows, a_bits, bits, cols, b_bits] = facts;
    let (rows, cols) = (rows as usize, cols as usize);
    let map = matrix_tiles(config, world, rows)?;
    let whole = inputs.as_ref().map(|inputs| inputs.a.as_matrix());
    let a = DistMatrix::scatter(world, ROOT, whole, map, a_bits as u32)?;
    let b = match &config.task {
        Task::Solve { .. } => {
            let map = right_tiles(map.grid, rows, cols);
            let whole = inputs.as_ref().and_then(|inputs| inputs.b.as_ref());
            Some(DistMatrix::scatter(world, ROOT, whole, map, b_bits as u32)?)
        }
        _ => None,
    };
    Ok(TiledOperands { a, b, precision_bits: bits as u32 })
}

fn factor(session: &Session, config: &Factoring, operands: &TiledOperands, team: &Team) -> Result<Made> {
    let engine = &config.factor.engine;
    let (builder, restate) = limited(session.context(engine)?, node_budget(engine, operands, team)?);
    let ctx = agreed(team.world(), builder.build())?;
    factor_and_solve(&ctx, config, operands, team).map_err(restate)
}

/// The part of a node's limit that its ranks' operands leave, and on the root's node also the whole result, which is
/// gathered while the tiles still exist.
fn node_budget(engine: &Engine, operands: &TiledOperands, team: &Team) -> Result<Option<Budget>> {
    let own_bytes = operands.a.bytes() + operands.b.as_ref().map_or(0, DistMatrix::bytes);
    let Some(budget) = engine.budget(own_bytes) else { return Ok(None) };
    let budget = budget.of_node(team.node())?;
    let map = operands.b.as_ref().unwrap_or(&operands.a).map();
    let gathered_bytes = Matrix::bytes_for(map.rows, map.cols, operands.precision_bits);
    let is_roots = team.layout().node_of[team.rank()] == 0;
    Ok(Some(if is_roots { budget.with_held(gathered_bytes) } else { budget }))
}

/// The choices of the factorisation.
fn options(config: &Factoring) -> DistCholeskyOptions {
    let RankChoices { grid, broadcast, policy, termination, remote_tiles } = &config.ranks;
    DistCholeskyOptions::new()
        .tile_rows(config.factor.tile_rows)
        .grid(*grid)
        .delivery(broadcast.unwrap_or_default())
        .termination(termination.unwrap_or_default())
        .policy(*policy)
        .slots(*remote_tiles)
        .spans(config.factor.trace.is_some() || config.factor.plot.is_some())
        .accuracy(config.factor.accuracy)
}

fn factor_and_solve(ctx: &Context, config: &Factoring, operands: &TiledOperands, team: &Team) -> Result<Made> {
    let (bits, accuracy) = (operands.precision_bits, config.factor.accuracy);
    let factor = cholesky_with(ctx, team, &operands.a, bits, &options(config))?;
    let start = Instant::now();
    let solved = operands.b.as_ref().map(|b| distributed::solve_with(ctx, team, &factor.factor, b, bits, accuracy));
    let solved = solved.transpose()?;
    let solution = solved.map(|found| (found.solution, start.elapsed().as_secs_f64()));
    Ok(Made { factor, solution })
}
