//! Cholesky factorisation of a matrix in tiles over many ranks, driven by data: nothing is gathered.
//!
//! Each rank runs the tasks of its own tiles as operands come (`runtime::protocol`, `drive::run_ranks`); finished tiles
//! travel as exact integers. Updates are exact and every entry is rounded once, so neither the order of tasks nor who
//! runs them can show in a bit. Source: docs/ALGORITHM.md, "Cholesky over many ranks".

mod failure;
mod plan;
pub(crate) mod problem;
mod report;

use crate::comm::{Reduction, Transport, agree, agreed};
use crate::context::Context;
use crate::drive::{self, Meter, RankPlan, run_tiles};
use crate::error::Result;
use crate::kernels::tiles::TileEngine;
use crate::matrix::Uplo;
use crate::ops::distribution::matrix::{DistMatrix, check_tile_size};
use crate::ops::distribution::team::Team;
use crate::ops::factor::problem::working_bits;
use crate::ops::factor::ranks::problem::DistProblem;
use crate::ops::factor::report::TaskLog;
use crate::ops::factor::tile_store::{Local, TileMemory, TileStore};
use crate::ops::factor::tile_work::TileWork;
use crate::options::setters;
use crate::runtime::protocol::{DeliveryKind, Termination};
use crate::runtime::{CholeskyGraph, Policy};
use crate::tile::{OwnTiles, RankGrid, TileId, TileMap};
use failure::Failure;
use plan::{Plan, PlanInput};
pub use report::{DistCholeskyReport, RankSummary};
use std::time::Instant;

/// Choices of a distributed factorisation; the same on all ranks, but for `policy`. None of them shows in a bit.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DistCholeskyOptions {
    /// Rows of a tile, a multiple of 8; `None` chooses by order, grid and kernel.
    pub tile_rows: Option<usize>,
    /// The grid of ranks; `None` keeps that of the matrix.
    pub grid: Option<RankGrid>,
    /// Who sends a finished tile to whom.
    pub delivery: DeliveryKind,
    /// How a rank finds out that it will not be asked any more.
    pub termination: Termination,
    /// Which ready tile is worked on next.
    pub policy: Policy,
    /// Tiles of other ranks that a rank has room for; `None` chooses within the memory limit.
    pub slots: Option<usize>,
    /// Whether to note what each rank did when.
    pub spans: bool,
}

impl Default for DistCholeskyOptions {
    fn default() -> DistCholeskyOptions {
        DistCholeskyOptions {
            tile_rows: None,
            grid: None,
            delivery: DeliveryKind::default(),
            termination: Termination::default(),
            policy: Policy::CriticalPath,
            slots: None,
            spans: false,
        }
    }
}

setters! { new DistCholeskyOptions {
    tile_rows: impl Into<Option<usize>>,
    grid: impl Into<Option<RankGrid>>,
    delivery: DeliveryKind,
    termination: Termination,
    policy: Policy,
    slots: impl Into<Option<usize>>,
    spans: bool,
} }

/// The factor of a distributed matrix.
#[derive(Debug)]
pub struct DistCholesky {
    /// This rank's tiles of `L`: the lower triangle, in the tiles of the factorisation.
    pub factor: DistMatrix,
    /// How it was computed; the same on all ranks.
    pub report: DistCholeskyReport,
    /// What this rank did, with its spans and samples.
    pub own: drive::RankReport,
}

/// [`cholesky_with`] with the default choices. Collective.
///
/// # Errors
/// As [`cholesky_with`].
pub fn cholesky(ctx: &Context, team: &Team, a: &DistMatrix, precision_bits: u32) -> Result<DistCholesky> {
    cholesky_with(ctx, team, a, precision_bits, &DistCholeskyOptions::default())
}

/// `A = L L^T` for a symmetric positive definite matrix in tiles over the ranks of `team`. Collective.
///
/// Shapes: `a` is `n x n`: a triangle, which is that of a symmetric matrix, or a whole matrix, which is checked. The
/// factor has the tiles that the factorisation chose, which `factor.map()` tells.
/// Accuracy and bits: those of [`crate::cholesky_with`] in one process, for any number of ranks and threads, grid,
/// tiles, delivery, order of tasks and kernel.
/// Memory of a rank: a copy of its part of the matrix where the tiles or the grid change, its tiles as residues, the
/// integers of finished ones until their readers have them, its tiles of the factor, and slots for tiles of other
/// ranks, of which it needs at least those of one tile column
/// ([`crate::tile::RankGrid::least_slots`]). A limit is that of each node, its ranks in equal shares.
/// Cost: `n^3 / 6` word products for each prime, over all workers; every finished tile goes once to each rank that
/// reads it, at most one in its row and one in its column of ranks. The calling thread moves the messages.
/// Devices of the context run the updates.
///
/// # Errors
/// On every rank the same. [`crate::Error::NotPositiveDefinite`] with the first leading minor that is not positive, as
/// in one process; [`crate::Error::NotSymmetric`]; [`crate::Error::ShapeMismatch`] for a matrix that is not square;
/// [`crate::Error::Precision`];
/// [`crate::Error::MemoryLimit`] with the least limit that would do; [`crate::Error::InvalidArgument`] for too few
/// slots, a grid of more ranks than there are, and tiles that are not a multiple of 8 high;
/// [`crate::Error::Cancelled`]; [`crate::Error::OutOfMemory`]; [`crate::Error::Transport`].
pub fn cholesky_with(
    ctx: &Context,
    team: &Team,
    a: &DistMatrix,
    precision_bits: u32,
    options: &DistCholeskyOptions,
) -> Result<DistCholesky> {
    let (start, world) = (Instant::now(), team.world());
    agree(world, options.tile_rows.map_or(Ok(()), check_tile_size))?;
    let kernel = ctx.kernel();
    let working_bits = agreed(world, working_bits(precision_bits, kernel.maximum_modulus_bits()))?;
    let engine = agreed(world, ctx.tile_engine(kernel, working_bits))?;
    let map = tiles_for(world, a, &*engine, options)?;
    if a.map().triangle.is_none() && a.map().rows == a.map().cols {
        let bytes = 3 * DistMatrix::bytes_for(&map, team.rank(), a.precision_bits());
        agree(world, ctx.admit(bytes * plan::ranks_here(team)))?;
        a.check_symmetric(world)?;
    }
    let held_bytes = if map == *a.map() { 0 } else { DistMatrix::bytes_for(&map, team.rank(), a.precision_bits()) };
    agree(world, ctx.admit(held_bytes * plan::ranks_here(team)))?;
    let moved = if map == *a.map() { None } else { Some(a.redistribute(world, map)?) };
    let a = moved.as_ref().unwrap_or(a);
    let problem = DistProblem::new(world, a, precision_bits, working_bits)?;
    let plan = Plan::new(ctx, team, &PlanInput { problem: &problem, map, held_bytes }, options, &*engine)?;
    let run = Run { ctx, team, a, problem: &problem, plan: &plan, engine: &*engine, options, start };
    let done = run.factor();
    engine.end_operation();
    done
}

/// The tiles to work in. Collective.
fn tiles_for(
    world: &dyn Transport,
    a: &DistMatrix,
    engine: &dyn TileEngine,
    options: &DistCholeskyOptions,
) -> Result<TileMap> {
    let grid = options.grid.unwrap_or(a.map().grid);
    // Ranks may have different kernels, which prefer different tiles: the smallest is right for all.
    let mut wanted = [plan::tile_rows(a.map().rows, grid, engine) as u64];
    world.all_reduce(Reduction::Min, &mut wanted)?;
    let tile_size = options.tile_rows.unwrap_or(wanted[0] as usize);
    Ok(TileMap { tile_size, grid, triangle: Some(Uplo::Lower), ..*a.map() })
}

/// One factorisation, as one rank sees it.
struct Run<'a> {
    ctx: &'a Context,
    team: &'a Team,
    a: &'a DistMatrix,
    problem: &'a DistProblem,
    plan: &'a Plan,
    engine: &'a dyn TileEngine,
    options: &'a DistCholeskyOptions,
    start: Instant,
}

impl Run<'_> {
    fn factor(&self) -> Result<DistCholesky> {
        let Run { ctx, problem, plan, engine, .. } = *self;
        let world = self.team.world();
        let mut workspace = ctx.workspace();
        let workspace = &mut *workspace;
        workspace.trim(ctx, &plan.needs());
        workspace.reserve_workers(plan.threads);
        let scratch = workspace.workers[..plan.threads].iter_mut().map(|space| space.scratch.words(plan.scratch_words));
        let log = |worker| TaskLog::new(self.start, worker);
        let locals =
            scratch.enumerate().map(|(worker, words)| words.map(|scratch| Local { scratch, log: log(worker) }));
        let locals = locals.collect::<Result<Vec<_>>>();
        let words = workspace.operands.words(plan.tile_words + plan.slot_words());
        let both = locals.and_then(|locals| words.map(|words| (locals, words)));
        let (mut locals, words) = agreed(world, both)?;
        let work = TileWork::new(engine, &plan.tiling, problem.working_bits, &problem.exponents);
        let meter = Meter::new(ctx, plan.units);
        let own = OwnTiles::new(plan.grid, plan.tiling.tile_rows(), plan.rank);
        let (own_words, remote) = words.split_at_mut(plan.tile_words);
        let memory = TileMemory { own: own_words, remote, remote_words: plan.operand_words };
        let a = self.a;
        let entries = |tile: TileId| Ok(a.tile(tile).expect("a rank works on its own tiles").view());
        let tiles = TileStore::new(work, (own, memory), &entries, &problem.weights, meter);
        let rank_plan = RankPlan {
            grid: plan.grid,
            graph: CholeskyGraph::of(&plan.tiling),
            protocol: plan.protocol(self.options),
            spans: self.options.spans,
        };
        let outcome = run_tiles(ctx, world, &rank_plan, &tiles, &mut locals);
        let failed = tiles.failed().cloned();
        let failure = Failure { ctx, group: world, a: self.a, problem };
        // Whoever met the pivot knows it; the others were told to stop.
        if let Some(index) = failure.first(failed.as_ref(), outcome.is_ok())? {
            return Err(failure.explain(index, failed, |matrix| self.store(&tiles, matrix, &mut locals)));
        }
        let own = outcome?;
        let factor = DistMatrix::zeros(*self.a.map(), world.rank(), problem.precision_bits);
        let mut factor = agreed(world, factor)?;
        agree(world, self.store(&tiles, &mut factor, &mut locals))?;
        let report = self.report(&own)?;
        Ok(DistCholesky { factor, report, own })
    }

    /// Rounds the finished own tiles into those of `factor`.
    fn store(&self, tiles: &TileStore<'_, '_>, factor: &mut DistMatrix, locals: &mut [Local<'_>]) -> Result<()> {
        let known = self.plan.tiling.tile_rows();
        let targets = factor.tiles_mut().iter_mut().filter(|(tile, _)| tile.row < known);
        let targets = targets.map(|(tile, matrix)| (*tile, matrix));
        tiles.store_tiles(self.ctx, targets, locals)
    }

    /// The report, the same on all ranks. Collective.
    fn report(&self, own: &drive::RankReport) -> Result<DistCholeskyReport> {
        let Run { problem, plan, engine, options, .. } = *self;
        let mut most = [self.start.elapsed().as_secs_f64().to_bits(), plan.bytes, plan.threads as u64];
        let world: &dyn Transport = self.team.world();
        let mut threads = [plan.threads as u64];
        world.all_reduce(Reduction::Sum, &mut threads)?;
        world.all_reduce(Reduction::Max, &mut most)?; // positive doubles are ordered like their bits
        Ok(DistCholeskyReport {
            operation: "cholesky",
            order: problem.rows,
            precision_bits: problem.precision_bits,
            working_bits: problem.working_bits,
            kernel: self.ctx.kernel().name(),
            primes: engine.primes(),
            tile_rows: plan.tiling.tile_size,
            tiles: plan.tiling.tile_rows(),
            grid: plan.grid,
            ranks: self.team.size(),
            threads: threads[0] as usize,
            delivery: options.delivery,
            termination: options.termination,
            policy: options.policy,
            slots: plan.slots,
            planned_bytes: most[1],
            seconds: f64::from_bits(most[0]),
            per_rank: RankSummary::gather(world, own)?,
        })
    }
}
