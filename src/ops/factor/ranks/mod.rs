//! Cholesky factorisation of a matrix in tiles over many ranks, driven by data, without gathering the matrix.
//!
//! Each rank runs the tasks of its own tiles as operands come (`runtime::protocol`, `drive::run_tiles`). Finished tiles
//! lie in a window of the node, where its ranks read them (`node_tiles`); to all others they travel as exact integers.
//! Updates are exact and every entry is rounded once, so neither the order of tasks nor the threads that run them can
//! change a bit. Source: docs/ALGORITHM.md, "Cholesky over many ranks".

mod plan;

use crate::comm::{Reduction, Transport, agree, agreed, alike, check_alike};
use crate::context::Context;
use crate::drive;
use crate::error::{Error, Result};
use crate::matrix::{Matrix, Uplo};
use crate::ops::distribution::matrix::{DistMatrix, check_tile_size};
use crate::ops::distribution::shared_devices::with_shared_devices;
use crate::ops::distribution::travel::redistribution_bytes;
use crate::ops::factor::diagnose::FactorFailure;
use crate::ops::factor::entrywise::{self, RangeBits};
use crate::ops::factor::kernel::{KernelOfTiles, check_tile_rows, engine_on_rank, with_traffic};
use crate::ops::factor::node_tiles::{self, TileWindow};
use crate::ops::factor::options::DistCholeskyOptions;
use crate::ops::factor::plan::{FactorPlan, MAXIMUM_BYTES};
use crate::ops::factor::problem::{FactorProblem, working_bits};
use crate::ops::factor::report::{CholeskyReport, RankSummary, RanksReport};
use crate::ops::factor::run::{FactoredTiles, Factorisation};
use crate::ops::factor::spans::{Clock, TaskTimes};
use crate::ops::factor::tile_work::TileWork;
use crate::ops::product::plan::larger_refusal;
use crate::ops::product::problem::Accuracy;
use crate::site::{Site, Team};
use crate::tile::{RankGrid, TileId, TileMap};
use plan::{PlanInput, tiling};

/// The factor of a distributed matrix.
#[derive(Debug)]
pub struct DistCholesky {
    /// This rank's tiles of `L`: the lower triangle, in the tiles of the factorisation.
    pub factor: DistMatrix,
    /// The report of the factorisation; the same on all ranks.
    pub report: CholeskyReport,
    /// The work of this rank, with its time spans and samples.
    pub own: drive::RankReport,
}

/// The report of a factorisation whose factor is in the caller's matrix.
#[derive(Debug)]
pub struct DistCholeskyReport {
    /// The report of the factorisation; the same on all ranks.
    pub report: CholeskyReport,
    /// The work of this rank, with its time spans and samples.
    pub own: drive::RankReport,
    /// Bytes that the plan allows for this rank, including its tiles of the factor; the report has the largest number
    /// over the ranks.
    pub planned_bytes: u64,
}

/// A factor, and how it was computed.
type MadeFactor = (DistMatrix, DistCholeskyReport);

/// [`cholesky_with`] with default options. Collective.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, DistMatrix, Team, TeamOptions, TileMap, even_rows};
/// use sunzi::{Context, Matrix};
/// let ranks = local::run(2, |rank| -> sunzi::Result<Option<Matrix>> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     let row = Matrix::from_f64s(1, 2, 128, &[[4.0, 2.0], [2.0, 5.0]][rank.rank()])?; // of this rank
///     let a = DistMatrix::from_local(team.world(), &even_rows(2, 2, 2), &row, TileMap::symmetric(2, 8))?;
///     let made = distributed::cholesky(&ctx, &team, &a, 128)?;
///     made.factor.gather(team.world(), 0) // the whole factor on rank 0
/// });
/// let whole = ranks.into_iter().next().unwrap()?; // that of rank 0
/// assert_eq!(whole.unwrap().view().to_f64s(), [2.0, 1.0, 0.0, 2.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`cholesky_with`].
pub fn cholesky(ctx: &Context, team: &Team, a: &DistMatrix, precision_bits: u32) -> Result<DistCholesky> {
    cholesky_with(ctx, team, a, precision_bits, &DistCholeskyOptions::default())
}

/// `A = L L^T` for a symmetric positive definite matrix in tiles over the ranks of `team`. Collective.
///
/// Shapes: `a` is `n x n`: a triangle, which represents a symmetric matrix, or a whole matrix, whose symmetry is
/// checked. The factor has the tiles that the factorisation chose, see `factor.map()`. Accuracy and bits: those of
/// [`crate::cholesky_with`] in one process, for any number of ranks and threads, grid, tiles, delivery, order of tasks
/// and kernel. Memory of a rank: a copy of its part of the matrix if the tiles or the grid change, its tiles as
/// residues, its tiles of the factor. If tiles are sent: also the integers of finished tiles until all ranks have
/// received them, and slots for tiles of other ranks, at least for one tile column
/// ([`crate::tile::RankGrid::least_slots`]). A memory limit holds for each node; its ranks have equal shares. Cost:
/// `n^3 / 6` word products for each prime, over all workers. Ranks of a node read each other's finished tiles in place,
/// in a window that the team keeps, unless a rank has a memory limit or devices; otherwise every finished tile is sent
/// once to each rank that reads it, at most the ranks in its row and in its column of the grid. The calling thread
/// sends and receives the messages. Devices of the context run the updates. If several ranks of a machine have opened a
/// device, each rank uses an equal share of its memory.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, DistCholeskyOptions, DistMatrix, Team, TeamOptions, TileMap, even_rows};
/// use sunzi::{Context, Matrix};
/// let ranks = local::run(2, |rank| -> sunzi::Result<usize> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     let row = Matrix::from_f64s(1, 2, 128, &[[4.0, 2.0], [2.0, 5.0]][rank.rank()])?; // of this rank
///     let a = DistMatrix::from_local(team.world(), &even_rows(2, 2, 2), &row, TileMap::symmetric(2, 8))?;
///     let options = DistCholeskyOptions::new().tile_rows(8);
///     let made = distributed::cholesky_with(&ctx, &team, &a, 128, &options)?;
///     Ok(made.report.tile_rows) // the same on all ranks
/// });
/// assert!(ranks.into_iter().all(|tile_rows| tile_rows.is_ok_and(|rows| rows == 8)));
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// The same error on every rank. [`crate::Error::NotPositiveDefinite`] with the index of the first computed pivot that
/// is not positive, as in one process; [`crate::Error::NotSymmetric`]; [`crate::Error::ShapeMismatch`] for a matrix
/// that is not square; [`crate::Error::Precision`]; [`crate::Error::MemoryLimit`] with the smallest limit that
/// suffices; [`crate::Error::InvalidArgument`] for too few slots, a grid without ranks or with more than there are,
/// tiles whose height is not a multiple of 8 of at most 4088, and for tiles, a precision or options that differ between
/// ranks; [`crate::Error::DimensionOverflow`]; [`crate::Error::Cancelled`]; [`crate::Error::OutOfMemory`];
/// [`crate::Error::Transport`].
pub fn cholesky_with(
    ctx: &Context,
    team: &Team,
    a: &DistMatrix,
    precision_bits: u32,
    options: &DistCholeskyOptions,
) -> Result<DistCholesky> {
    let mut factor = DistMatrix::empty();
    let DistCholeskyReport { report, own, .. } = cholesky_into(ctx, team, a, precision_bits, options, &mut factor)?;
    Ok(DistCholesky { factor, report, own })
}

/// [`cholesky_with`] into `result`; its memory is reused if it is such a factor, for example from an earlier call.
/// Collective.
///
/// Allocating fresh memory is slow, so repeated factorisations of one size are faster this way. If the tiles or the
/// precision of `result` do not fit, or if the context has a memory limit, the memory of `result` is released before
/// the matrix is read. After an error `result` has no entries.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, DistCholeskyOptions, DistMatrix, Team, TeamOptions, TileMap, even_rows};
/// use sunzi::{Context, Matrix};
/// let ranks = local::run(2, |rank| -> sunzi::Result<Option<Matrix>> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     let row = Matrix::from_f64s(1, 2, 128, &[[4.0, 2.0], [2.0, 5.0]][rank.rank()])?; // of this rank
///     let a = DistMatrix::from_local(team.world(), &even_rows(2, 2, 2), &row, TileMap::symmetric(2, 8))?;
///     let mut l = distributed::cholesky(&ctx, &team, &a, 128)?.factor;
///     distributed::cholesky_into(&ctx, &team, &a, 128, &DistCholeskyOptions::new(), &mut l)?; // in the same memory
///     l.gather(team.world(), 0)
/// });
/// let whole = ranks.into_iter().next().unwrap()?; // that of rank 0
/// assert_eq!(whole.unwrap().view().to_f64s(), [2.0, 1.0, 0.0, 2.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`cholesky_with`].
pub fn cholesky_into(
    ctx: &Context,
    team: &Team,
    a: &DistMatrix,
    precision_bits: u32,
    options: &DistCholeskyOptions,
    result: &mut DistMatrix,
) -> Result<DistCholeskyReport> {
    let mut memory = std::mem::replace(result, DistMatrix::empty());
    let (clock, world): (_, &dyn Transport) = (Clock::new(), team.world());
    check_options(world, a.map(), precision_bits, options)?;
    let ctx = &with_shared_devices(ctx, world)?;
    let norm_bits = agreed(world, working_bits(precision_bits, ctx.maximum_modulus_bits()))?;
    team.drop_windows_if_limited(ctx.memory_bytes())?;
    let map = tiles_for(Site { ctx, team }, a.map(), norm_bits, options)?;
    if ctx.memory_bytes().is_some() || !memory.fits(&map, team.rank(), precision_bits) {
        memory = DistMatrix::empty();
    }
    if let Some(bytes) = compared_bytes(a.map(), &map, team.rank(), a.precision_bits()) {
        Site { ctx, team }.admit(bytes)?;
        a.check_symmetric(world)?;
    }
    let moved_bytes = moved_bytes(a.map(), &map, team.rank(), a.precision_bits());
    Site { ctx, team }.admit(moved_bytes)?;
    let moved = if map == *a.map() { None } else { Some(a.redistribute(world, map)?) };
    let a = moved.as_ref().unwrap_or(a);
    let call = RankFactoring { site: Site { ctx, team }, a, moved_bytes, precision_bits, norm_bits, options, clock };
    let made = match options.accuracy {
        Accuracy::Norm => call.by_norms(memory),
        Accuracy::Entrywise => call.entrywise(memory),
    };
    // The steps that follow assume all the memory that the limit leaves.
    if ctx.memory_bytes().is_some() {
        ctx.workspace().give_back();
    }
    let (factor, report) = made?;
    *result = factor;
    Ok(report)
}

/// A factorisation over ranks, and its time so far.
struct RankFactoring<'a> {
    site: Site<'a>,
    /// In the tiles of the factorisation.
    a: &'a DistMatrix,
    /// Bytes of these tiles where they are a copy.
    moved_bytes: u64,
    precision_bits: u32,
    /// Working bits of accuracy by norms.
    norm_bits: u32,
    options: &'a DistCholeskyOptions,
    clock: Clock,
}

impl RankFactoring<'_> {
    fn by_norms(mut self, memory: DistMatrix) -> Result<MadeFactor> {
        let problem = self.problem(0)?;
        self.run(self.site.ctx, &problem, memory)
    }

    /// As in one process, see `ops::cholesky`. Collective.
    fn entrywise(mut self, mut memory: DistMatrix) -> Result<MadeFactor> {
        let (world, a, order): (&dyn Transport, _, _) = (self.site.world(), self.a, self.a.map().rows);
        let mut range = RangeBits::first(order, self.precision_bits, self.options.range_bits);
        let mut problem = self.problem(range.bits)?;
        range = range.for_depth(entrywise::deepest_entry_over_ranks(world, &problem, a)?);
        let check_bytes = entrywise::check_bytes_on_rank(order, world.size());
        let beside = self.site.ctx.holding(self.site.on_node(check_bytes));
        loop {
            if problem.working_bits != self.norm_bits + range.bits {
                problem = self.problem(range.bits)?;
            }
            let (factor, made) = self.run(&beside, &problem, memory)?;
            let needed = entrywise::needed_bits_over_ranks(self.site.with(&beside), &problem, a, &factor)?;
            if let Some(next) = range.next(needed) {
                // Kept while tiles travel, unlike in the first try: no plan under a limit has room for that.
                let is_free = self.site.ctx.memory_bytes().is_none();
                (range, memory) = (next, if is_free { factor } else { DistMatrix::empty() });
                continue;
            }
            let report = made.report.entrywise(range, needed, check_bytes);
            let planned_bytes = made.planned_bytes + check_bytes;
            return Ok((factor, DistCholeskyReport { report, planned_bytes, ..made }));
        }
    }

    fn problem(&self, range_bits: u32) -> Result<FactorProblem> {
        FactorProblem::over_ranks(self.site.world(), self.a, self.precision_bits, self.norm_bits + range_bits)
    }

    /// One factorisation, into `memory` where it fits. Collective.
    fn run(&mut self, ctx: &Context, problem: &FactorProblem, memory: DistMatrix) -> Result<MadeFactor> {
        let RankFactoring { site, a, moved_bytes, options, ref mut clock, .. } = *self;
        let (site, team) = (site.with(ctx), site.team);
        let world: &dyn Transport = team.world();
        let (engine, kernel) = engine_in_tiles(site, a.map(), problem.working_bits)?;
        let tiling = tiling(problem, *a.map());
        let work = TileWork::new(&*engine, &tiling, problem.working_bits, &problem.exponents);
        let memories = node_tiles::memories(site, &work, kernel.name())?;
        let (memories, mut windows) = node_tiles::open(team, &work, memories)?;
        let (map, precision_bits) = (*a.map(), problem.precision_bits);
        let holds_factor = memory.fits(&map, team.rank(), precision_bits);
        let input = PlanInput { work: &work, precision_bits, map, memories: &memories, moved_bytes, holds_factor };
        let plan = match FactorPlan::over_ranks(ctx, team, &input, options) {
            Ok(plan) => plan,
            Err(error) => {
                windows.into_iter().for_each(|windows| team.keep_tile_windows(windows));
                return Err(error);
            }
        };
        let entries = |tile: TileId| Ok(a.tile(tile).expect("a rank works on its own tiles").view());
        let factorisation =
            Factorisation { ctx, world, problem, plan: &plan, engine: &*engine, options, entries: &entries };
        let window = windows.as_mut().zip(plan.node.as_ref());
        let window = window.map(|([_, window], plan)| TileWindow { node: team.node(), window, plan });
        let (done, devices) = with_traffic(&*engine, || factor(&factorisation, window, a, memory, clock));
        if let Some(windows) = windows {
            team.keep_tile_windows(windows);
        }
        let (factor, own) = done?;
        let report =
            CholeskyReport { kernel: kernel.name(), devices, ..CholeskyReport::new(problem, &plan, &*engine, clock) };
        let planned_bytes = report.planned_bytes;
        let report = over_ranks(&factorisation, report, &own)?;
        Ok((factor, DistCholeskyReport { report, own, planned_bytes }))
    }
}

/// The tiles that [`cholesky_with`] uses for a matrix of `order` rows: a matrix given in these tiles is not copied.
/// Collective.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, DistCholeskyOptions, Team, TeamOptions};
/// use sunzi::{Context};
/// let ranks = local::run(2, |rank| -> sunzi::Result<(usize, usize)> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     let map = distributed::cholesky_tiles(&ctx, &team, 1000, 128, &DistCholeskyOptions::new().tile_rows(64))?;
///     Ok((map.rows, map.tile_size))
/// });
/// assert!(ranks.into_iter().all(|map| map.is_ok_and(|map| map == (1000, 64))));
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Precision`], [`crate::Error::InvalidArgument`] as [`cholesky_with`]; [`crate::Error::Transport`].
pub fn cholesky_tiles(
    ctx: &Context,
    team: &Team,
    order: usize,
    precision_bits: u32,
    options: &DistCholeskyOptions,
) -> Result<TileMap> {
    let world: &dyn Transport = team.world();
    let grid = RankGrid::for_ranks(team.size());
    let map = TileMap { rows: order, cols: order, tile_size: 8, grid, triangle: Some(Uplo::Lower) };
    check_options(world, &map, precision_bits, options)?;
    let norm_bits = agreed(world, working_bits(precision_bits, ctx.maximum_modulus_bits()))?;
    tiles_for(Site { ctx, team }, &map, norm_bits, options)
}

/// The plan of [`cholesky_with`] for a matrix in the tiles `map`, whose entries have `input_bits`: the bytes that this
/// rank needs, including the factor and, for a whole matrix, the check of its symmetry. Collective.
///
/// Nothing is computed; the kernel's tables are made and kept in the context. The memory limit of the context applies
/// to the whole node, as for the factorisation. With entrywise accuracy a matrix needs more bits the wider the range of
/// the exponents of its entries is; if the number of these bits is known, pass it as
/// [`DistCholeskyOptions::range_bits`]. [`cholesky_into`] holds the old factor from the start; it may exceed the plan
/// by the bytes of the tiles in transit.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, DistCholeskyOptions, RankGrid, Team, TeamOptions, TileMap};
/// use sunzi::{Context};
/// let ranks = local::run(2, |rank| -> sunzi::Result<u64> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     let map = TileMap { grid: RankGrid::for_ranks(2), ..TileMap::symmetric(100, 64) };
///     distributed::plan_cholesky(&ctx, &team, (&map, 128), 128, &DistCholeskyOptions::new())
/// });
/// for bytes in ranks {
///     assert!(bytes? > 0); // of each rank
/// }
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::MemoryLimit`] with the smallest limit that suffices; the errors of [`cholesky_with`] about sizes and
/// grids; on every rank.
pub fn plan_cholesky(
    ctx: &Context,
    team: &Team,
    (map, input_bits): (&TileMap, u32),
    precision_bits: u32,
    options: &DistCholeskyOptions,
) -> Result<u64> {
    let (site, order) = (Site { ctx, team }, map.rows);
    let world = site.world();
    check_options(world, map, precision_bits, options)?;
    let norm_bits = agreed(world, working_bits(precision_bits, ctx.maximum_modulus_bits()))?;
    let range = RangeBits::for_accuracy(options.accuracy, order, precision_bits, options.range_bits);
    let check_bytes = |range: RangeBits| (range.bits, entrywise::check_bytes_on_rank(order, world.size()));
    let (range_bits, check_bytes) = range.map_or((0, 0), check_bytes);
    let tiles = tiles_for(site, map, norm_bits, options)?;
    let (engine, kernel) = engine_in_tiles(site, &tiles, norm_bits + range_bits)?;
    let problem = agreed(world, FactorProblem::unscaled(map.rows, map.cols, precision_bits, norm_bits + range_bits))?;
    let moved_bytes = moved_bytes(map, &tiles, team.rank(), input_bits);
    let beside = ctx.holding(site.on_node(check_bytes));
    let tiling = tiling(&problem, tiles);
    let work = TileWork::new(&*engine, &tiling, problem.working_bits, &problem.exponents);
    let memories = &node_tiles::memories(site.with(&beside), &work, kernel.name())?;
    let input = PlanInput { work: &work, precision_bits, map: tiles, memories, moved_bytes, holds_factor: false };
    // A whole matrix is compared with its mirror image first.
    let compared_bytes = compared_bytes(map, &tiles, team.rank(), input_bits).unwrap_or(0);
    let compared = site.admit(compared_bytes);
    // No limit counts the messages of this comparison.
    let messages = match (ctx.memory_bytes(), compared_bytes) {
        (None, 1..) => redistribution_bytes(team.size(), (order, input_bits), (compared_bytes, compared_bytes)),
        _ => 0,
    };
    let planned = larger_refusal(compared, FactorPlan::over_ranks(&beside, team, &input, options))?;
    Ok((planned.bytes + check_bytes).max(compared_bytes + messages))
}

/// Bytes of this rank's copy of a matrix in `tiles` that is given in the tiles `map`; 0 where these are the same.
fn moved_bytes(map: &TileMap, tiles: &TileMap, rank: usize, input_bits: u32) -> u64 {
    if tiles == map { 0 } else { DistMatrix::bytes_for(tiles, rank, input_bits) }
}

/// Bytes of the comparison of a whole matrix in the tiles `map` with its mirror image; `None` where there is none.
fn compared_bytes(map: &TileMap, tiles: &TileMap, rank: usize, input_bits: u32) -> Option<u64> {
    let is_compared = map.triangle.is_none() && map.rows == map.cols;
    is_compared.then(|| 3 * DistMatrix::bytes_for(tiles, rank, input_bits))
}

/// Refuses tiles that no factor has, sizes beyond any memory, and options that differ between ranks, which would then
/// take different paths. Collective.
fn check_options(
    world: &dyn Transport,
    map: &TileMap,
    precision_bits: u32,
    options: &DistCholeskyOptions,
) -> Result<()> {
    let (rows, cols) = (map.rows, map.cols);
    let fits = match Matrix::bytes_for(rows, cols, precision_bits) > MAXIMUM_BYTES {
        true => Err(Error::DimensionOverflow { rows, cols, precision_bits }),
        false => check_tile_size(map.tile_size).and_then(|()| options.tile_rows.map_or(Ok(()), check_tile_rows)),
    };
    agree(world, fits)?;
    let said = (map, precision_bits, options);
    check_alike(world, &said, "cholesky: the ranks pass different tilings, precisions or options")
}

/// The tiles to work in for a matrix in the tiles `map`, with `working_bits` bits. Collective.
fn tiles_for(site: Site<'_>, map: &TileMap, working_bits: u32, options: &DistCholeskyOptions) -> Result<TileMap> {
    let (grid, team) = (options.grid.unwrap_or(map.grid), site.team);
    site.agree(grid.check_ranks(team.size()))?;
    let may_share = node_tiles::may_share(site, grid);
    let rows =
        |preferred, shared| options.tile_rows.unwrap_or_else(|| plan::tile_rows(map.rows, grid, preferred, shared));
    let (engine, _) = engine_of_node(site, map.rows, working_bits, |preferred| rows(preferred, may_share))?;
    let preferred = engine.preferred_rows();
    let is_shared = may_share && node_tiles::has_room(team, &*engine, map.rows, rows(preferred, true));
    // Nodes may have different kernels, which prefer different tiles: the smallest is right for all.
    let mut wanted = [rows(preferred, is_shared) as u64];
    team.world().all_reduce(Reduction::Min, &mut wanted)?;
    let tile_size = wanted[0] as usize;
    Ok(TileMap { tile_size, grid, triangle: Some(Uplo::Lower), ..*map })
}

/// The tile kernels of this rank for a factorisation in the tiles `map`, and the kernel that they are of. Collective.
fn engine_in_tiles(site: Site<'_>, map: &TileMap, working_bits: u32) -> Result<KernelOfTiles> {
    engine_of_node(site, map.rows, working_bits, |_| map.tile_size)
}

/// The tile kernels that suit this rank where they suit all ranks of its node, which can read each other's tiles then,
/// else those of the context. Each rank chooses separately, partly by a time that it has measured. Collective.
fn engine_of_node(
    Site { ctx, team }: Site<'_>,
    order: usize,
    working_bits: u32,
    tile_rows: impl Fn(usize) -> usize,
) -> Result<KernelOfTiles> {
    let suited = agreed(team.world(), engine_on_rank(ctx, order, working_bits, tile_rows))?;
    let chosen = match alike(team.node(), suited.1.name())? {
        true => Ok(suited),
        false => ctx.tile_engine(ctx.kernel(), working_bits).map(|engine| (engine, ctx.kernel())),
    };
    agreed(team.world(), chosen)
}

/// The factor in the tiles of `a`, in `memory` where it fits, and the report of this rank. Collective.
fn factor(
    factorisation: &Factorisation<'_>,
    window: Option<TileWindow<'_>>,
    a: &DistMatrix,
    mut memory: DistMatrix,
    clock: &mut Clock,
) -> Result<(DistMatrix, drive::RankReport)> {
    let Factorisation { ctx, world, problem, .. } = *factorisation;
    factorisation.run(window, clock, |FactoredTiles { tiles, locals, outcome }| {
        // Rounds the finished own tiles into those of a matrix.
        let mut store = |matrix: &mut DistMatrix| tiles.store_tiles(ctx, matrix, locals);
        let (failed, failure) = (tiles.failed().cloned(), FactorFailure { ctx, group: world, a, problem });
        // The rank that met the pivot has it; the others were stopped.
        if let Some(index) = failure.first(failed.as_ref(), outcome.is_ok())? {
            return Err(failure.explain(index, failed, store));
        }
        let own = outcome?;
        agree(world, memory.prepare(*a.map(), world.rank(), problem.precision_bits))?;
        // Only the triangle is stored.
        let on_diagonal = memory.tiles_mut().iter_mut().filter(|(tile, _)| tile.row == tile.col);
        on_diagonal.for_each(|(_, tile)| tile.clear_above_diagonal());
        agree(world, store(&mut memory))?;
        Ok((memory, own))
    })
}

/// The report of one rank, completed with the numbers that need all ranks. Collective.
fn over_ranks(
    factorisation: &Factorisation<'_>,
    report: CholeskyReport,
    own: &drive::RankReport,
) -> Result<CholeskyReport> {
    let Factorisation { world, plan, options, .. } = *factorisation;
    let mut most = [report.seconds.to_bits(), report.planned_bytes];
    world.all_reduce(Reduction::Max, &mut most)?; // positive doubles are ordered like their bits
    let [load, update, potrf, trsm, store] = report.tasks.to_array().map(|seconds| (seconds * 1e9) as u64);
    let mut sums = [report.threads as u64, load, update, potrf, trsm, store];
    world.all_reduce(Reduction::Sum, &mut sums)?;
    let [threads, tasks @ ..] = sums;
    let mut share = [u64::from(plan.node.is_some())];
    world.all_reduce(Reduction::Max, &mut share)?;
    let ranks = RanksReport {
        grid: plan.tiling.grid,
        ranks: world.size(),
        delivery: options.delivery,
        termination: options.termination,
        policy: plan.policy(options),
        slots: plan.slots,
        shared_tiles: share[0] > 0,
        per_rank: RankSummary::gather(world, own)?,
    };
    Ok(CholeskyReport {
        threads: threads as usize,
        seconds: f64::from_bits(most[0]),
        planned_bytes: most[1],
        tasks: TaskTimes::from_array(tasks.map(|nanoseconds| nanoseconds as f64 * 1e-9)),
        ranks: Some(ranks),
        ..report
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::local;
    use crate::kernels;
    use crate::site::TeamOptions;

    /// A kernel forced on one rank simulates the choice of a different measured rate.
    #[test]
    fn ranks_of_a_node_take_one_kernel_where_they_would_choose_two() {
        let Some((other, _)) = kernels::preferred_for_large_factors() else { return };
        let own = kernels::preferred().name();
        for (ranks_per_node, free) in [(2, own), (1, other.name())] {
            local::run(2, |rank| {
                let options = TeamOptions::new().ranks_per_node(ranks_per_node);
                let team = Team::new(rank.split(0).unwrap(), options).unwrap();
                let builder = Context::builder().threads(1);
                let builder = if rank.rank() == 1 { builder.kernel(own) } else { builder };
                let ctx = builder.build().unwrap();
                let (_, kernel) =
                    engine_of_node(Site { ctx: &ctx, team: &team }, 1 << 20, 770, |preferred| preferred).unwrap();
                let want = if rank.rank() == 1 { own } else { free };
                assert_eq!(kernel.name(), want, "rank {}, {ranks_per_node} a node", rank.rank());
            });
        }
    }
}
