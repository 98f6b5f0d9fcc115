//! Solves with a triangular factor in tiles over many ranks, which stays where it is.

mod blocks;
mod columns;
mod factor;
mod inverse;
mod plan;
mod right;
mod source;
mod stream;
mod strip;
mod sums;
mod trsm;
mod vector;

pub use inverse::{inverse, inverse_local};
pub use plan::{TrsmBits, plan_solve, plan_solve_local, plan_trsm, plan_trsm_local};
pub use right::LocalSolution;
pub use trsm::{trsm, trsm_into, trsm_local, trsm_with};

use crate::comm::{Reduction, Said, agreed, alike};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound::cholesky_solve_guard_bits;
use crate::math::processor;
use crate::matrix::{Matrix, Uplo};
use crate::ops::cholesky::log_det_of;
use crate::ops::distributed::{DistMatrix, Team};
use crate::ops::distribution::redistribute::LocalPart;
use crate::ops::distribution::shared_devices::with_shared_devices;
use crate::ops::fixed_sum::OwnFloat;
use crate::ops::product::problem::Accuracy;
use crate::ops::product::report::Outcome;
use crate::ops::solve::band::with_column;
use crate::ops::solve::dots::unknowns::{Scaling, Sweep};
use crate::ops::solve::dots::{bytes, store_columns};
use crate::ops::solve::factored::Factored;
use crate::ops::solve::memory::{FirstTryKernel, SolveMemory};
use crate::ops::solve::path::{Method, Path, SCALAR_ROWS};
use crate::ops::solve::problem::{CHOLESKY, Substitution, SystemShape, working_bits};
use crate::ops::solve::report::SolveReport;
use crate::ops::solve::run::{Right, make_room};
use crate::ops::solve::tiles::NodeShared;
use crate::site::Site;
use columns::{Substitutions, panel_columns, panel_share};
use factor::FactorTiles;
use right::RightSides;
use rug::Float;
use source::StreamSource;
use std::ops::Range;
use std::sync::OnceLock;
use vector::SubstitutionPass;

/// Rows from which on the ranks of a node make the residues of a triangle together: below there are few tiles, and a
/// window costs more.
const TOGETHER_ROWS: usize = 256;

/// A solution in tiles over the ranks.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DistSolution {
    /// This rank's tiles of `X`, distributed like the right-hand sides, both triangles included.
    pub solution: DistMatrix,
}

/// [`solve_with`] with entrywise accuracy. Collective.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, DistMatrix, Team, TeamOptions, TileMap, even_rows};
/// use sunzi::{Context, Matrix};
/// let ranks = local::run(2, |rank| -> sunzi::Result<Option<Matrix>> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     // In tiles over the ranks: `l`, the factor of [4 2; 2 5].
/// #   let row = Matrix::from_f64s(1, 2, 128, &[[2.0, 0.0], [1.0, 2.0]][rank.rank()])?;
/// #   let l = DistMatrix::from_local(team.world(), &even_rows(2, 2, 2), &row, TileMap::symmetric(2, 8))?;
///     // Likewise `b`, the right side (8, 12).
/// #   let map = TileMap { cols: 1, triangle: None, ..TileMap::symmetric(2, 8) };
/// #   let own = Matrix::from_f64s(1, 1, 128, &[[8.0, 12.0][rank.rank()]])?;
/// #   let b = DistMatrix::from_local(team.world(), &even_rows(2, 1, 2), &own, map)?;
///     let x = distributed::solve(&ctx, &team, &l, &b, 128)?;
///     x.solution.gather(team.world(), 0)
/// });
/// let whole = ranks.into_iter().next().unwrap()?; // that of rank 0
/// assert_eq!(whole.unwrap().view().to_f64s(), [1.0, 2.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`solve_with`].
pub fn solve(
    ctx: &Context,
    team: &Team,
    factor: &DistMatrix,
    b: &DistMatrix,
    precision_bits: u32,
) -> Result<DistSolution> {
    solve_with(ctx, team, factor, b, precision_bits, Accuracy::default())
}

/// The solution `X` of `L L^T X = B`, rounded to `precision_bits` bits, for a factor `L` in tiles over the ranks of
/// `team`. Collective.
///
/// Shapes: `factor` is `n x n`, of which the lower triangle is read, such as the result of
/// [`crate::distributed::cholesky`]; `b` and the result are `n x m`, each with its own tiles and grid. Accuracy and
/// bits: as [`crate::Cholesky::solve`] of a factor with that accuracy in one process, for any grid, tile size and
/// number of threads.
///
/// One to three right-hand sides: each rank multiplies its own tiles with the unknowns, which all ranks have. For each
/// row of tiles, in both substitutions, the ranks that own it send their sums to the owner of the diagonal tile, which
/// sends the unknowns to all ranks; both substitutions are repeated if the common exponent of the unknowns grows.
/// Memory: the unknowns on each rank, as numbers and as digits. Eight or more right-hand sides: each rank solves for
/// whole columns of `B`, and the factor is sent to all ranks by rows of tiles, twice for every 512 right-hand sides of
/// a rank, and again for columns that are solved with more bits. From 256 rows on and with accuracy by norms, the ranks
/// of a node share the residues of a row of tiles: in the first pass each entry is sent once to each node. Memory: a
/// row of tiles, or a rank's part of the node's shared tiles, in addition to the memory of one process for these
/// columns. Four to seven right-hand sides, and columns that exceed the range of fixed point: each rank has all of
/// these right-hand sides, a group at a time, and computes its share of the rows of every product; the ranks that own
/// these rows of the factor send them to it. Each substitution sends the factor once in total, and the unknowns of a
/// step to every rank. Memory: some rows of the factor. One to three right-hand sides with entrywise accuracy: each
/// rank has the unknowns of some of the right-hand sides, and the factor is sent to all ranks by its rows, twice.
/// Orders up to 16: every rank has the factor, and solves for whole columns of `B`. Source: docs/ALGORITHM.md, "Many
/// ranks".
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, DistMatrix, Team, TeamOptions, TileMap, even_rows};
/// use sunzi::{Accuracy, Context, Matrix};
/// let ranks = local::run(2, |rank| -> sunzi::Result<Option<Matrix>> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     // In tiles over the ranks: `l`, the factor of [4 2; 2 5].
/// #   let row = Matrix::from_f64s(1, 2, 128, &[[2.0, 0.0], [1.0, 2.0]][rank.rank()])?;
/// #   let l = DistMatrix::from_local(team.world(), &even_rows(2, 2, 2), &row, TileMap::symmetric(2, 8))?;
///     // Likewise `b`, the right side (8, 12).
/// #   let map = TileMap { cols: 1, triangle: None, ..TileMap::symmetric(2, 8) };
/// #   let own = Matrix::from_f64s(1, 1, 128, &[[8.0, 12.0][rank.rank()]])?;
/// #   let b = DistMatrix::from_local(team.world(), &even_rows(2, 1, 2), &own, map)?;
///     let x = distributed::solve_with(&ctx, &team, &l, &b, 128, Accuracy::Norm)?;
///     x.solution.gather(team.world(), 0)
/// });
/// let whole = ranks.into_iter().next().unwrap()?; // that of rank 0
/// assert_eq!(whole.unwrap().view().to_f64s(), [1.0, 2.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`crate::Cholesky::solve`], on every rank, as [`Error::Rank`] if it occurred on one rank; a memory limit is that
/// of a node; rows and columns in errors are those of `B`. [`Error::Singular`] for a zero on the diagonal;
/// [`Error::InvalidArgument`] for an upper triangle and if ranks differ in shapes, tiles or precision;
/// [`Error::Transport`].
pub fn solve_with(
    ctx: &Context,
    team: &Team,
    factor: &DistMatrix,
    b: &DistMatrix,
    precision_bits: u32,
    accuracy: Accuracy,
) -> Result<DistSolution> {
    let mut solution = DistMatrix::empty();
    solve_into(ctx, team, factor, b, precision_bits, accuracy, &mut solution)?;
    Ok(DistSolution { solution })
}

/// [`solve_with`] into `result`; its memory is reused if it is a whole matrix distributed like `b` with
/// `precision_bits` bits, and otherwise it is allocated anew. Its entries are arbitrary after an error. Collective.
///
/// Without a memory limit a context also keeps a rank's columns of the right-hand sides and of the solution, so that
/// repeated calls allocate no fresh memory.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, DistMatrix, Team, TeamOptions, TileMap, even_rows};
/// use sunzi::{Accuracy, Context, Matrix};
/// let ranks = local::run(2, |rank| -> sunzi::Result<Option<Matrix>> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     // In tiles over the ranks: `l`, the factor of [4 2; 2 5].
/// #   let row = Matrix::from_f64s(1, 2, 128, &[[2.0, 0.0], [1.0, 2.0]][rank.rank()])?;
/// #   let l = DistMatrix::from_local(team.world(), &even_rows(2, 2, 2), &row, TileMap::symmetric(2, 8))?;
///     // Likewise `b`, the right side (8, 12).
/// #   let map = TileMap { cols: 1, triangle: None, ..TileMap::symmetric(2, 8) };
/// #   let own = Matrix::from_f64s(1, 1, 128, &[[8.0, 12.0][rank.rank()]])?;
/// #   let b = DistMatrix::from_local(team.world(), &even_rows(2, 1, 2), &own, map)?;
///     let mut x = distributed::solve(&ctx, &team, &l, &b, 128)?.solution;
///     distributed::solve_into(&ctx, &team, &l, &b, 128, Accuracy::Norm, &mut x)?; // in the same memory
///     x.gather(team.world(), 0)
/// });
/// let whole = ranks.into_iter().next().unwrap()?; // that of rank 0
/// assert_eq!(whole.unwrap().view().to_f64s(), [1.0, 2.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`solve_with`].
pub fn solve_into(
    ctx: &Context,
    team: &Team,
    factor: &DistMatrix,
    b: &DistMatrix,
    precision_bits: u32,
    accuracy: Accuracy,
    result: &mut DistMatrix,
) -> Result<()> {
    let ctx = &with_shared_devices(ctx, team.world())?;
    let solved = solve_right(ctx, team, factor, RightSides::Tiles(b), precision_bits, accuracy)?;
    solved.into_tiles(ctx, team.world(), b.map(), result)
}

/// [`solve_with`] for right-hand sides in the caller's own distribution, which are not converted to tiles. The solution
/// stays in the distribution in which it was computed until [`LocalSolution::fill_local`]. Collective.
///
/// Memory: as [`solve_with`], without the tiles of right-hand sides and solutions.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, DistMatrix, LocalPart, Team, TeamOptions, TileMap, even_rows};
/// use sunzi::{Accuracy, Context, Matrix};
/// let ranks = local::run(2, |rank| -> sunzi::Result<Vec<f64>> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     // In tiles over the ranks: `l`, the factor of [4 2; 2 5].
/// #   let row = Matrix::from_f64s(1, 2, 128, &[[2.0, 0.0], [1.0, 2.0]][rank.rank()])?;
/// #   let l = DistMatrix::from_local(team.world(), &even_rows(2, 2, 2), &row, TileMap::symmetric(2, 8))?;
///     let own = Matrix::from_f64s(1, 1, 128, &[[8.0, 12.0][rank.rank()]])?; // a row on each rank
///     let (rows, mut x) = (even_rows(2, 1, 2), Matrix::zeros(1, 1, 128)?);
///     let b = LocalPart { distribution: &rows, local: own.view() };
///     let found = distributed::solve_local(&ctx, &team, &l, b, 128, Accuracy::Norm)?;
///     found.fill_local(team.world(), &rows, x.view_mut())?; // this rank's row of the solution
///     Ok(x.view().to_f64s())
/// });
/// assert_eq!(ranks.into_iter().collect::<sunzi::Result<Vec<_>>>()?, [[1.0], [2.0]]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`solve_with`] and [`DistMatrix::from_local`].
pub fn solve_local(
    ctx: &Context,
    team: &Team,
    factor: &DistMatrix,
    b: LocalPart<'_>,
    precision_bits: u32,
    accuracy: Accuracy,
) -> Result<LocalSolution> {
    let ctx = &with_shared_devices(ctx, team.world())?;
    let b = RightSides::of_local(team.world(), b)?;
    solve_right(ctx, team, factor, b, precision_bits, accuracy)
}

fn solve_right(
    ctx: &Context,
    team: &Team,
    factor: &DistMatrix,
    b: RightSides<'_>,
    precision_bits: u32,
    accuracy: Accuracy,
) -> Result<LocalSolution> {
    let site = Site { ctx, team };
    let call = SolveCall { site, factor, b, precision_bits, accuracy, alpha: None };
    let order = call.check("solve with a factor")?;
    let guard_bits = cholesky_solve_guard_bits(order);
    let working_bits = site.agreed(working_bits(ctx, precision_bits, guard_bits, order))?;
    let tiles = FactorTiles::new(factor);
    tiles.check_diagonal(site.world())?;
    let total_columns = b.shape().1;
    call.solve(&tiles, CHOLESKY, working_bits, |ctx, lower, right| {
        let factored = Factored {
            accuracy,
            lower,
            pivots: None,
            precision_bits,
            guard_bits,
            total_columns,
            row_norms: &OnceLock::new(),
        };
        let mut result = Matrix::empty();
        let report = factored.solve(ctx, right.view(), (&mut result).into())?;
        Ok(Outcome { result, report })
    })
}

/// The diagonal of a factor in tiles over the ranks, as a column on every rank. Collective.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, DistMatrix, Team, TeamOptions, TileMap, even_rows};
/// use sunzi::{Matrix};
/// let ranks = local::run(2, |rank| -> sunzi::Result<Matrix> {
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     // In tiles over the ranks: `l`, the factor of [4 2; 2 5].
/// #   let row = Matrix::from_f64s(1, 2, 128, &[[2.0, 0.0], [1.0, 2.0]][rank.rank()])?;
/// #   let l = DistMatrix::from_local(team.world(), &even_rows(2, 2, 2), &row, TileMap::symmetric(2, 8))?;
///     distributed::pivots(&team, &l) // on every rank
/// });
/// for pivots in ranks {
///     assert_eq!(pivots?.view().to_f64s(), [2.0, 2.0]);
/// }
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`Error::ShapeMismatch`] for a factor that is not square; [`Error::InvalidArgument`] for an upper triangle;
/// [`Error::Transport`], [`Error::OutOfMemory`].
pub fn pivots(team: &Team, factor: &DistMatrix) -> Result<Matrix> {
    let world = team.world();
    factor.check_group(world)?;
    let map = factor.map();
    if map.rows != map.cols {
        return Err(Error::shape_mismatch("diagonal", (map.rows, map.cols), (map.cols, map.rows)));
    }
    if map.triangle == Some(Uplo::Upper) {
        return Err(Error::InvalidArgument("diagonal: a factor in tiles is lower triangular".to_string()));
    }
    FactorTiles::new(factor).pivots(world)
}

/// `log det A = 2 sum log |l_ii|` for a factor `L` of `A = L L^T` in tiles over the ranks, at `precision_bits` bits, on
/// every rank. Collective.
///
/// Accuracy and bits: as [`crate::estimate::log_det_of`]. Cost: the diagonal is sent to all ranks.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, DistMatrix, Team, TeamOptions, TileMap, even_rows};
/// use sunzi::{Matrix, rug::Float};
/// let ranks = local::run(2, |rank| -> sunzi::Result<Float> {
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     // In tiles over the ranks: `l`, the factor of [4 2; 2 5].
/// #   let row = Matrix::from_f64s(1, 2, 128, &[[2.0, 0.0], [1.0, 2.0]][rank.rank()])?;
/// #   let l = DistMatrix::from_local(team.world(), &even_rows(2, 2, 2), &row, TileMap::symmetric(2, 8))?;
///     distributed::log_det(&team, &l, 128) // on every rank
/// });
/// for log_det in ranks {
///     assert!((log_det? - Float::with_val(128, 16).ln()).abs() < 1e-37);
/// }
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`pivots`].
pub fn log_det(team: &Team, factor: &DistMatrix, precision_bits: u32) -> Result<Float> {
    Ok(log_det_of(&pivots(team, factor)?, precision_bits))
}

/// The problem of a call.
struct SolveCall<'a> {
    site: Site<'a>,
    factor: &'a DistMatrix,
    b: RightSides<'a>,
    precision_bits: u32,
    accuracy: Accuracy,
    /// Scalar of the right-hand sides; `None` is 1.
    alpha: Option<OwnFloat>,
}

impl SolveCall<'_> {
    /// Checks the arguments, and that they are equal on all ranks; returns the order of the factor. Collective.
    fn check(&self, operation: &'static str) -> Result<usize> {
        let SolveCall { site, factor, b, precision_bits, accuracy, .. } = *self;
        let world = site.world();
        factor.check_group(world)?;
        b.check_group(world)?;
        let bits = [factor.precision_bits(), b.precision_bits(), precision_bits];
        let said = Said::hash(&(operation, factor.map(), b, bits, accuracy, &self.alpha));
        let mut words = [said, !said, u64::from(site.ctx.memory_bytes().is_some())];
        world.all_reduce(Reduction::Max, &mut words)?;
        if words[0] != !words[1] {
            return Err(Error::InvalidArgument(format!(
                "{operation}: ranks differ in shapes, tiles, precision, accuracy or scalar"
            )));
        }
        if words[2] > 0 {
            site.team.release()?; // no limit counts on what earlier calls have kept
        }
        let (map, right) = (factor.map(), b.shape());
        if map.rows != map.cols || map.rows != right.0 {
            return Err(Error::shape_mismatch(operation, (map.rows, map.cols), right));
        }
        if factor.is_symmetric() {
            return Err(Error::InvalidArgument(format!("{operation}: a symmetric matrix is not a triangular factor")));
        }
        if map.triangle == Some(Uplo::Upper) {
            return Err(Error::InvalidArgument(format!("{operation}: a factor in tiles is lower triangular")));
        }
        Ok(map.rows)
    }

    /// The shape of the system, once the arguments are checked.
    fn shape(&self, tiles: &FactorTiles<'_>) -> SystemShape {
        SystemShape { order: tiles.order(), columns: self.b.shape().1 }
    }

    /// All right-hand sides by substitution. Collective.
    fn solve_vectors(&self, tiles: &FactorTiles<'_>) -> Result<LocalSolution> {
        let SystemShape { order, columns } = self.shape(tiles);
        let site = self.site;
        let needed = vectors_bytes(site.ctx, self.shape(tiles), self.b.precision_bits(), self.precision_bits);
        site.admit(needed)?;
        make_room(site.ctx, site.on_node(needed));
        let scaling = Scaling::new(self.precision_bits, &tiles.row_exponents(site)?);
        let right = self.b.everywhere(site.world())?;
        let pass = |sweep| SubstitutionPass::new(site, tiles, &scaling, sweep, columns);
        let middle = pass(Sweep::Forward).run(&|column, row| right.float(row, column))?;
        let solution = pass(Sweep::Backward).run(&|column, row| middle[column][row].clone())?;
        let whole = Matrix::zeros(order, solution.len(), self.precision_bits)
            .and_then(|mut whole| store_columns(&solution, whole.view_mut()).map(|()| whole));
        let planned_bytes = site.share().memory().total(needed);
        Ok(LocalSolution::on_every_rank(site.world(), site.agreed(whole)?).planned(planned_bytes))
    }

    /// All right-hand sides by the path that one process takes; `alone` solves a small system for some columns on one
    /// rank, with the whole factor. Collective.
    fn solve(
        &self,
        tiles: &FactorTiles<'_>,
        substitutions: &[Substitution],
        working_bits: u32,
        alone: impl FnOnce(&Context, &Matrix, &Matrix) -> Result<Outcome<Matrix, SolveReport>>,
    ) -> Result<LocalSolution> {
        let (world, shape) = (self.site.world(), self.shape(tiles));
        let SystemShape { order, columns: total } = shape;
        if shape.is_empty() {
            let nothing = agreed(world, Matrix::zeros(order, total, self.precision_bits))?;
            return Ok(LocalSolution::on_every_rank(world, nothing));
        }
        let method = Method::choose(substitutions, order, total, self.accuracy);
        match method.path {
            Path::Dots => return self.solve_vectors(tiles),
            Path::Sums => return self.solve_sums(tiles, working_bits),
            Path::Parts | Path::Tiles => {}
        }
        let columns = panel_columns(shape, world.size());
        let own = panel_share(total, world.size(), world.rank());
        let [mut b, mut x] = take_columns(self.site.ctx);
        self.b.bring(world, &columns, &mut b)?;
        let planned_bytes = match is_small(order, method) {
            true => {
                let Outcome { result, report } = self.solve_small(&b, own, alone)?;
                x = result;
                report.planned_bytes
            }
            false => {
                let how = Substitutions { list: substitutions, working_bits, method, total, target: self.b.target() };
                self.solve_columns(tiles, &how, &b, own, &mut x)?
            }
        };
        Ok(LocalSolution::of_columns(columns, world.rank(), x, b).planned(planned_bytes))
    }

    /// This rank's columns of the right-hand sides by themselves, with a factor so small that every rank has it.
    /// Collective.
    fn solve_small(
        &self,
        b: &Matrix,
        own: Range<usize>,
        alone: impl FnOnce(&Context, &Matrix, &Matrix) -> Result<Outcome<Matrix, SolveReport>>,
    ) -> Result<Outcome<Matrix, SolveReport>> {
        let site = self.site;
        let factor = self.factor.everywhere(site.world())?;
        let ctx = site.share().holding(factor.bytes() + b.bytes());
        let numbers = own.collect::<Vec<_>>();
        let solved = alone(&ctx, &factor, b).map_err(|error| with_column(error, &numbers));
        site.agreed(site.of_node(solved))
    }

    /// This rank's columns of the right-hand sides into `x`, with the factor that stays where it is; the bytes of its
    /// plan. Collective.
    fn solve_columns(
        &self,
        tiles: &FactorTiles<'_>,
        how: &Substitutions<'_>,
        b: &Matrix,
        own: Range<usize>,
        x: &mut Matrix,
    ) -> Result<u64> {
        let site = self.site;
        site.agree(x.reshape(tiles.order(), own.len(), self.precision_bits))?;
        let scale = (how.list == CHOLESKY).then(|| tiles.row_exponents(site)).transpose()?;
        let pivots = tiles.pivots(site.world())?;
        let limited = site.ctx.memory_bytes().is_some();
        let source =
            StreamSource { team: site.team, factor: self.factor, pivots: &pivots, scale: scale.as_deref(), limited };
        let right = Right { b: b.view(), alpha: self.alpha.clone(), first_column: own.start, transposed: false };
        let solved = columns::solve_columns(&site.share(), source, tiles, how, right, x);
        site.agreed(site.of_node(solved))
    }
}

/// Memory for a rank's columns of the right-hand sides and of the solution: that of an earlier call, without a limit.
fn take_columns(ctx: &Context) -> [Matrix; 2] {
    let kept = std::mem::take(&mut ctx.workspace().columns);
    match ctx.memory_bytes() {
        None => kept.try_into().unwrap_or_default(),
        Some(_) => Default::default(),
    }
}

/// The ranks of this node, where the ranks of a node make the tiles of a triangle together from a factor in tiles of
/// `factor_tile` rows: where all of them use the same kernel and no devices. Only by norms, since for entrywise
/// accuracy every rank reads all entries. Collective.
///
/// # Errors
/// [`Error::Transport`].
fn ranks_together(
    Site { ctx, team }: Site<'_>,
    order: usize,
    factor_tile: usize,
    accuracy: Accuracy,
) -> Result<Option<NodeShared>> {
    let most = team.layout().nodes.iter().map(Vec::len).max().unwrap_or(1);
    if most == 1 || accuracy != Accuracy::Norm || order < TOGETHER_ROWS {
        return Ok(None);
    }
    // A kernel may lay out tiles in another way where some instructions are hidden.
    let (kernel, on_cpu, level) = (ctx.kernel().name(), ctx.devices().is_empty(), processor::level().name());
    let alike = alike(team.world(), &(kernel, on_cpu, level))?;
    Ok((alike && on_cpu).then_some(NodeShared {
        ranks: team.ranks_here() as usize,
        factor_tile,
        one_node: team.layout().nodes.len() == 1,
    }))
}

/// The kernel of first tries of this rank in bands of at most `columns` columns. Tiles of a triangle that the ranks of
/// a node make together lie in one window, in the form of one kernel: the one that suits all of these ranks, or the
/// context's where they differ. Collective.
///
/// # Errors
/// [`Error::Transport`].
fn first_kernel(team: &Team, memory: &SolveMemory, columns: usize) -> Result<FirstTryKernel> {
    let Some(NodeShared { ranks, .. }) = memory.together else { return Ok(FirstTryKernel::Suited) };
    let suited = memory.suited_kernel(columns, ranks);
    let alike = alike(team.node(), suited.map_or("", |kernel| kernel.name()))?;
    Ok(suited.filter(|_| alike).map_or(FirstTryKernel::Own, FirstTryKernel::Agreed))
}

/// Whether every rank takes the whole factor: it is one block that is solved scalar by scalar.
fn is_small(order: usize, method: Method) -> bool {
    method.path == Path::Parts && order <= SCALAR_ROWS
}

/// Bytes of a rank that has all right-hand sides, of `right_bits` bits, and their unknowns.
fn vectors_bytes(ctx: &Context, shape: SystemShape, right_bits: u32, precision_bits: u32) -> u64 {
    // Each right side has its unknowns at the same time, and sums that are twice as long.
    3 * bytes(ctx, shape, precision_bits) + shape.right_bytes(right_bits)
}
