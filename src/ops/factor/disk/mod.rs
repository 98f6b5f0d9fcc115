//! Cholesky factorisation of a matrix larger than memory: from a file to a file, tiles on a disk in between.
//!
//! The tiles and tasks are those of a factorisation in memory, under the order of blocks (`runtime::tile_level`): a
//! block of tiles stays in memory while the finished columns before it pass by. Finished tiles are published in a
//! storage directory as exact integers, so a run that was ended goes on from them. Source: docs/OUT_OF_CORE.md.

mod plan;
mod problem;
mod store;

pub use plan::OutOfCorePlan;

use crate::comm::{Reduction, Transport, agree, agreed};
use crate::context::Context;
use crate::drive::{self, RankPlan, RankReport};
use crate::error::{Error, Result};
use crate::io::MatrixFile;
use crate::kernels::tiles::TileEngine;
use crate::ops::disk::{DiskUse, progress_of, telling_of_disk, until_whole};
use crate::ops::distribution::team::Team;
use crate::ops::factor::home::Home;
use crate::ops::factor::problem::{Problem, SQUARE, working_bits};
use crate::ops::factor::rank_report::{RankSummary, RanksReport};
use crate::ops::factor::spans::{Clock, Span, TaskLog, TaskTimes};
use crate::ops::factor::tile_store::{Local, TileStore};
use crate::ops::factor::tile_work::{FailedRow, TileWork};
use crate::options::setters;
use crate::runtime::protocol::ProtocolOptions;
use crate::runtime::{CholeskyGraph, level_options};
use crate::storage::{AnsweredStorage, Caching, Identity};
use crate::tile::{RankGrid, TileMap};
pub(crate) use plan::RankPlace;
use plan::{DiskNeeds, tiling};
use rug::Float;
use rug::float::Special;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;

/// Choices of a factorisation above a disk.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct OutOfCoreOptions {
    /// Rows of a tile; by default what the order asks for. A directory belongs to tiles of one size.
    pub tile_rows: Option<usize>,
    /// Whether the lower triangle alone counts of a file that stores all entries; by default both, which must agree.
    pub lower: bool,
    /// Whether the system's cache is used.
    pub caching: Caching,
    /// Whether the report has the spans of all tasks.
    pub spans: bool,
    /// Rows and columns of the ranks that own tiles, where there are several; by default nearly square.
    pub grid: Option<RankGrid>,
}

setters! { new OutOfCoreOptions {
    tile_rows: impl Into<Option<usize>>,
    lower: bool,
    caching: Caching,
    spans: bool,
    grid: impl Into<Option<RankGrid>>,
} }

/// How a factorisation above a disk went.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct OutOfCoreReport {
    /// `cholesky`.
    pub operation: &'static str,
    /// Rows of the matrix.
    pub order: usize,
    /// Precision of the factor.
    pub precision_bits: u32,
    /// Fixed-point bits inside.
    pub working_bits: u32,
    /// Name of the kernel.
    pub kernel: &'static str,
    /// Planes.
    pub primes: usize,
    /// Worker threads, those of all ranks.
    pub threads: usize,
    /// Tiles, memory and bytes as planned; of one rank.
    pub plan: OutOfCorePlan,
    /// What was found there, read and written.
    #[serde(flatten)]
    pub disk: DiskUse,
    /// Wall-clock seconds of the call.
    pub seconds: f64,
    /// Seconds of the pass over the matrix.
    pub scan_seconds: f64,
    /// Seconds of the factorisation.
    pub factor_seconds: f64,
    /// Seconds of rounding and writing the factor.
    pub store_seconds: f64,
    /// Seconds of the tasks, summed over all workers.
    pub tasks: TaskTimes,
    /// How ranks shared the work, where there are several. Tiles and bytes above are those of all ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<RanksReport>,
    /// Every task with its time; for a trace.
    #[serde(skip)]
    pub spans: Vec<Span>,
    /// What the driver counted.
    #[serde(skip)]
    pub rank: RankReport,
}

/// The lower triangular `L` with `A = L L^T`, from the binary file `matrix` to the binary file `factor`, with the tiles
/// that find no room in memory in the directory `storage`.
///
/// Shapes: `matrix` is `n x n`: the lower triangle of a symmetric matrix, or all entries, which are checked or of which
/// the lower triangle counts, see [`OutOfCoreOptions::lower`] and docs/FORMATS.md.
/// Accuracy and bits: those of [`crate::cholesky_with`] by norms: the file is the same, byte for byte, whatever the
/// limit, the threads, and however often the run was ended and begun again.
/// Memory: as planned, at most the context's limit; without one as much as all tiles take. A directory belongs to one
/// matrix, precision and size of tiles; it holds the finished tiles, about the bytes of the factor, and stays there.
/// Cost: that of [`crate::cholesky_with`], the conversion of each finished tile once for each block that reads it, and
/// the bytes that the plan counts. Source: docs/OUT_OF_CORE.md.
///
/// # Errors
/// Those of [`crate::cholesky_with`]; [`Error::MemoryLimit`] where not even three tiles have room;
/// [`Error::StorageMismatch`] for a directory of another factorisation, [`Error::StorageInUse`] where another run works
/// there; [`Error::DiskFull`], [`Error::Io`]: what was finished stays, and the next call goes on from there.
pub fn cholesky(
    ctx: &Context,
    (matrix, factor): (&Path, &Path),
    storage: &Path,
    precision_bits: u32,
    options: &OutOfCoreOptions,
) -> Result<OutOfCoreReport> {
    factor_file((ctx, RankPlace::alone()), (matrix, factor), storage, precision_bits, options)
}

/// [`cholesky`] over the ranks of `team`: each has tiles of its own, a directory of its own below `storage`, and an
/// equal share of its node's limit. Collective.
///
/// All ranks read the file `matrix`, each its own tiles, and rank 0 all of it once; rank 0 writes the file `factor`.
/// Finished tiles go to the ranks that read them, which keep them in their directories. A run that is begun again may
/// have another number of ranks: what a rank finds in its directory it does not compute again.
/// The bytes of the file are those of one process.
///
/// # Errors
/// As [`cholesky`], the same on every rank; [`Error::InvalidArgument`] for a grid of more ranks than there are;
/// [`Error::Transport`].
pub fn cholesky_over_ranks(
    ctx: &Context,
    team: &Team,
    (matrix, factor): (&Path, &Path),
    storage: &Path,
    precision_bits: u32,
    options: &OutOfCoreOptions,
) -> Result<OutOfCoreReport> {
    let place = agreed(team.world(), RankPlace::of(team, options.grid))?;
    factor_file((ctx, place), (matrix, factor), storage, precision_bits, options)
}

pub(crate) fn factor_file(
    (ctx, place): (&Context, RankPlace<'_>),
    (matrix, factor): (&Path, &Path),
    storage: &Path,
    precision_bits: u32,
    options: &OutOfCoreOptions,
) -> Result<OutOfCoreReport> {
    let (mut clock, world) = (Clock::new(), place.here.world);
    let file = Arc::new(agreed(world, MatrixFile::open(matrix))?);
    let kernel = ctx.kernel();
    let working_bits = agreed(world, working_bits(precision_bits, kernel.maximum_modulus_bits()))?;
    let engine = agreed(world, ctx.tile_engine(kernel, working_bits))?;
    let refusal = Error::NotSquare { operation: SQUARE, rows: file.rows(), cols: file.cols() };
    agree(world, if file.rows() == file.cols() { Ok(()) } else { Err(refusal) })?;
    // Refused before the file is read.
    let mut tiling = tiling(file.rows(), options.tile_rows, place.grid);
    let mut plan = planned((ctx, place), &*engine, (&file, &tiling), (precision_bits, working_bits))?;
    let read = || {
        let read = Problem::of_file(&file, (precision_bits, working_bits), progress_of(ctx))?;
        if options.lower { Ok(()) } else { file.check_symmetric(tiling.tile_size) }.map(|()| read)
    };
    let (problem, checksum) = Problem::shared(place.here, file.rows(), (precision_bits, working_bits), read)?;
    let scan_seconds = clock.now();
    if !problem.is_whole() {
        tiling = TileMap { rows: problem.order, cols: problem.order, ..tiling };
        plan = planned((ctx, place), &*engine, (&file, &tiling), (precision_bits, working_bits))?;
    }
    let identity = Identity::new("cholesky")
        .with("order", problem.order)
        .with("precision_bits", precision_bits)
        .with("matrix_precision_bits", file.precision_bits())
        .with("matrix_checksum", format!("{checksum:016x}"))
        .with("tile_rows", tiling.tile_size);
    let engine_here = engine.clone();
    let call =
        DiskFactoring { ctx, place, file, problem, engine: engine_here, tiling, plan, identity, options, storage };
    let made = call.factor(factor, &mut clock)?;
    let (made, ranks) = made.over_ranks(&call)?;
    Ok(OutOfCoreReport {
        operation: "cholesky",
        order: call.problem.order,
        precision_bits,
        working_bits,
        kernel: kernel.name(),
        primes: engine.primes(),
        threads: made.threads,
        ranks,
        plan: call.plan,
        disk: made.disk,
        seconds: clock.now(),
        scan_seconds,
        factor_seconds: made.factor_seconds,
        store_seconds: made.store_seconds,
        tasks: clock.times,
        spans: std::mem::take(&mut clock.spans),
        rank: made.rank,
    })
}

/// The plan of [`cholesky`] for a file: blocks, bytes of memory, bytes that the disk moves.
///
/// # Errors
/// As [`cholesky`], as far as the header of the file and the limit go.
pub fn plan_cholesky(
    ctx: &Context,
    matrix: &Path,
    precision_bits: u32,
    options: &OutOfCoreOptions,
) -> Result<OutOfCorePlan> {
    plan_file((ctx, RankPlace::alone()), matrix, precision_bits, options)
}

/// The plan of a factorisation by ranks. Collective.
pub(crate) fn plan_file(
    (ctx, place): (&Context, RankPlace<'_>),
    matrix: &Path,
    precision_bits: u32,
    options: &OutOfCoreOptions,
) -> Result<OutOfCorePlan> {
    let file = MatrixFile::open(matrix)?;
    let kernel = ctx.kernel();
    let working_bits = working_bits(precision_bits, kernel.maximum_modulus_bits())?;
    let engine = ctx.tile_engine(kernel, working_bits)?;
    let tiling = tiling(file.rows(), options.tile_rows, place.grid);
    planned((ctx, place), &*engine, (&file, &tiling), (precision_bits, working_bits))
}

fn planned(
    (ctx, place): (&Context, RankPlace<'_>),
    engine: &dyn TileEngine,
    (file, tiling): (&MatrixFile, &TileMap),
    (precision_bits, working_bits): (u32, u32),
) -> Result<OutOfCorePlan> {
    let work = TileWork::new(engine, tiling, working_bits, &[]);
    DiskNeeds { engine, work: &work, file, precision_bits, threads: ctx.threads(), place }.plan(ctx)
}

/// A factorisation under way.
struct DiskFactoring<'a> {
    ctx: &'a Context,
    place: RankPlace<'a>,
    file: Arc<MatrixFile>,
    problem: Problem,
    engine: Arc<dyn TileEngine>,
    tiling: TileMap,
    plan: OutOfCorePlan,
    identity: Identity,
    options: &'a OutOfCoreOptions,
    storage: &'a Path,
}

/// What became of it.
#[derive(Default)]
struct Made {
    rank: RankReport,
    threads: usize,
    disk: DiskUse,
    factor_seconds: f64,
    store_seconds: f64,
}

impl Made {
    /// What all ranks did together, and each of them. Collective.
    fn over_ranks(mut self, call: &DiskFactoring<'_>) -> Result<(Made, Option<RanksReport>)> {
        let world = call.place.here.world;
        let mut threads = [call.threads() as u64];
        world.all_reduce(Reduction::Sum, &mut threads)?;
        self.threads = threads[0] as usize;
        self.disk.sum(world)?;
        let protocol = call.protocol();
        let ranks = RanksReport {
            grid: call.place.grid,
            ranks: world.size(),
            delivery: protocol.delivery,
            termination: protocol.termination,
            policy: protocol.policy,
            slots: protocol.slots,
            per_rank: RankSummary::gather(world, &self.rank)?,
        };
        Ok((self, (world.size() > 1).then_some(ranks)))
    }
}

impl DiskFactoring<'_> {
    fn threads(&self) -> usize {
        self.ctx.threads()
    }

    /// The tiles' home, without groups that are damaged; and how many these were.
    fn open(&self) -> Result<(Home, usize)> {
        let directory = self.place.here.directory(self.storage)?;
        let (objects, damaged) = AnsweredStorage::open(&directory, &self.identity, self.options.caching)?;
        let engine = self.engine.clone();
        let (tiling, bits) = (self.tiling, self.problem.working_bits);
        let payload_words = move |tile| TileWork::new(&*engine, &tiling, bits, &[]).payload_words(tile);
        let home = Home::new(objects, self.file.clone(), &self.plan.home, payload_words)?;
        Ok((home, damaged))
    }

    /// Factors all tiles that are not finished, and writes the factor. A damaged tile is made again.
    fn factor(&self, path: &Path, clock: &mut Clock) -> Result<Made> {
        let (mut made, world) = (Made::default(), self.place.here.world);
        let mut disk = DiskUse::default();
        until_whole(world, &mut disk, |disk| {
            let (home, damaged) = agreed(world, self.open())?;
            disk.groups_repaired += damaged;
            disk.tiles_found = disk.tiles_found.max(home.found());
            let start = clock.now();
            let (home, outcome) = self.run(home, clock)?;
            let factored = clock.now();
            made.factor_seconds += factored - start;
            let outcome = outcome.and_then(|rank| {
                made.rank = rank;
                match self.problem.is_whole() {
                    true => store::write_factor(self.ctx, path, self, &home),
                    false => Err(self.not_positive(self.problem.order, None)),
                }
            });
            made.store_seconds += clock.now() - factored;
            disk.reused_bytes += home.reused_bytes();
            Ok(home.attempt(outcome))
        })?;
        made.disk = disk;
        Ok(made)
    }

    /// The choices of the protocol. There is a slot for each tile of other ranks, as these lie on the disk.
    fn protocol(&self) -> ProtocolOptions {
        let slots = self.place.grid.useful_slots(self.tiling.tile_rows(), usize::MAX);
        ProtocolOptions { slots, ..level_options(&self.plan.home.shape, self.threads()) }
    }

    /// Runs until all tiles are finished or something fails; the inner error is one of the run.
    fn run(&self, home: Home, clock: &mut Clock) -> Result<(Home, Result<RankReport>)> {
        let DiskFactoring { ctx, ref problem, ref tiling, .. } = *self;
        let (engine, ctx) = (&*self.engine, &telling_of_disk(ctx, home.progress()));
        let work = TileWork::new(engine, tiling, problem.working_bits, &problem.exponents);
        let shape = home.shape;
        let needs = DiskNeeds {
            engine,
            work: &work,
            file: &self.file,
            precision_bits: problem.precision_bits,
            threads: self.threads(),
            place: self.place,
        };
        let (slot_words, whole_words) = (needs.slot_words(), needs.whole_words());
        let scratch_words = engine.scratch_words(tiling.tile_size);
        let mut workspace = ctx.workspace();
        let workspace = &mut *workspace;
        workspace.reserve_workers(self.threads());
        let scratch = workspace.workers[..self.threads()].iter_mut().enumerate();
        let words = scratch.map(|(worker, space)| Ok((worker, space.scratch.words(scratch_words + whole_words)?)));
        let world = self.place.here.world;
        let locals = agreed(world, words.collect::<Result<Vec<_>>>())?.into_iter().map(|(worker, words)| {
            let (scratch, whole_tile) = words.split_at_mut(scratch_words);
            let log = TaskLog::new(clock.start, worker, self.options.spans);
            Local { scratch, whole_tile, encoded: None, log }
        });
        let mut locals = locals.collect::<Vec<_>>();
        let words = agreed(world, workspace.operands.words(shape.room_tiles * slot_words))?;
        let graph = CholeskyGraph::of(tiling);
        let plan = RankPlan { grid: tiling.grid, graph, protocol: self.protocol(), spans: self.options.spans };
        let tiles = TileStore::above_disk(ctx, work, words, (world.rank(), home), &problem.weights);
        let outcome = drive::run_tiles(ctx, world, &plan, &tiles, &mut locals);
        clock.add(locals.into_iter().map(|local| local.log));
        let failed = tiles.failed().map(|FailedRow { index, pivot }| self.not_positive(*index, pivot.clone()));
        let outcome = agree_on_failure(world, failed, outcome);
        let home = tiles.into_home().expect("the tiles are above a disk");
        engine.end_operation();
        Ok((home, outcome))
    }

    /// The error for a row whose pivot is not positive.
    fn not_positive(&self, index: usize, pivot: Option<rug::Integer>) -> Error {
        let Problem { exponents, working_bits, order, .. } = &self.problem;
        let pivot = match pivot {
            Some(scaled) => {
                let exponent = 2 * (exponents[index] - i64::from(*working_bits));
                Float::with_val(53, scaled) << exponent.clamp(i32::MIN.into(), i32::MAX.into()) as i32
            }
            None => Float::with_val(53, Special::NegZero),
        };
        let diagonal =
            self.file.diagonal_entry(index).map_or_else(|_| Float::new(53), |entry| Float::with_val(53, entry));
        // A row left out from the start has a minor that is not positive, at any precision.
        let more_bits = (index < *order).then_some(1);
        Error::NotPositiveDefinite { index, pivot, diagonal, more_bits, enough_bits: None }
    }
}

/// The error of the rank that met a row which is not positive, where one did, or `outcome`. Collective.
fn agree_on_failure(world: &dyn Transport, own: Option<Error>, outcome: Result<RankReport>) -> Result<RankReport> {
    let mut any = [u64::from(own.is_some())];
    world.all_reduce(Reduction::Max, &mut any)?;
    if any[0] == 1 {
        agree(world, own.map_or(Ok(()), Err))?;
    }
    outcome
}
