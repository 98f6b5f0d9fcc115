//! The verbs over ranks: solves with a factor in tiles, with a triangle in tiles from either side, and the inverse;
//! the diagonal and the determinant of a factor.

use crate::comm::{Transport, agree, agreed, check_alike};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::{Diag, Matrix, Op, Side, Uplo};
use crate::ops::cholesky::log_det_of;
use crate::ops::distributed::{DistMatrix, Team};
use crate::ops::distribution::redistribute::LocalPart;
use crate::ops::distribution::shared_devices::with_shared_devices;
use crate::ops::product::problem::Accuracy;
use crate::ops::solve::problem::{CHOLESKY, LOWER, UPPER, solve_bits};
use crate::ops::solve::ranks::operands::{FactorTiles, RightSides};
use crate::ops::solve::ranks::{LocalSolution, SolveCall, upper_refused};
use crate::ops::solve::system::{Factored, TriangularSystem, TrsmOptions, check_scalar};
use crate::site::Site;
use crate::tile::TileMap;
use rug::Float;
use std::borrow::Cow;
use std::sync::OnceLock;

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
/// As [`crate::Cholesky::solve`], on every rank, as [`Error::Rank`] if it occurred on one rank; a memory limit applies
/// to a whole node; rows and columns in errors refer to `B`. [`Error::Singular`] for a zero on the diagonal;
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
/// `precision_bits` bits, and otherwise it is allocated anew. The entries of `result` are arbitrary after an error.
/// Collective.
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
    let working_bits = site.agreed(solve_bits(ctx, CHOLESKY, precision_bits, order))?.working;
    let tiles = FactorTiles::new(factor);
    tiles.check_diagonal(site.world())?;
    let total_columns = b.shape().1;
    call.solve(&tiles, CHOLESKY, working_bits, |ctx, lower, right, result| {
        let row_norms = &OnceLock::new();
        let factored = Factored { accuracy, lower, pivots: None, precision_bits, total_columns, row_norms };
        factored.solve(ctx, right.view(), result)
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
        return Err(upper_refused("diagonal"));
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

/// The solution `X` of `L X = B` for a lower triangular `L` in tiles over the ranks of `team`; see [`trsm_with`].
/// Collective.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, DistMatrix, Team, TeamOptions, TileMap, even_rows};
/// use sunzi::{Context, Matrix};
/// let ranks = local::run(2, |rank| -> sunzi::Result<Option<Matrix>> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     // In tiles over the ranks: `l`, the triangle [1 0; 2 3].
/// #   let row = Matrix::from_f64s(1, 2, 128, &[[1.0, 0.0], [2.0, 3.0]][rank.rank()])?;
/// #   let l = DistMatrix::from_local(team.world(), &even_rows(2, 2, 2), &row, TileMap::symmetric(2, 8))?;
///     // Likewise `b`, the right side (10, 23).
/// #   let map = TileMap { cols: 1, triangle: None, ..TileMap::symmetric(2, 8) };
/// #   let own = Matrix::from_f64s(1, 1, 128, &[[10.0, 23.0][rank.rank()]])?;
/// #   let b = DistMatrix::from_local(team.world(), &even_rows(2, 1, 2), &own, map)?;
///     let x = distributed::trsm(&ctx, &team, &l, &b, 128)?;
///     x.solution.gather(team.world(), 0)
/// });
/// let whole = ranks.into_iter().next().unwrap()?; // that of rank 0
/// assert_eq!(whole.unwrap().view().to_f64s(), [10.0, 1.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`trsm_with`].
pub fn trsm(ctx: &Context, team: &Team, t: &DistMatrix, b: &DistMatrix, precision_bits: u32) -> Result<DistSolution> {
    trsm_with(ctx, team, t, b, precision_bits, &TrsmOptions::default())
}

/// The solution `X` of `op(T) X = alpha B` or `X op(T) = alpha B`, rounded to `precision_bits` bits, for a triangular
/// `T` in tiles over the ranks of `team`. Collective.
///
/// Shapes: as [`crate::trsm_with`]; `t` is the triangle that the options name, or a whole matrix; the result is a whole
/// matrix distributed like `b`. Accuracy and bits: as [`crate::trsm_with`] in one process, for any grid, tile size and
/// number of threads. Cost and memory: as [`crate::distributed::solve_with`], except that the factor is sent once
/// instead of twice; one to three right-hand sides are solved as four to seven are. An upper triangle, and a unit
/// diagonal, need a copy of `T`; side right needs a copy of `B` and of the result. A memory limit includes these
/// copies.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, DistMatrix, Team, TeamOptions, TileMap, even_rows};
/// use sunzi::{Context, Matrix, Op, TrsmOptions};
/// let ranks = local::run(2, |rank| -> sunzi::Result<Option<Matrix>> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     // In tiles over the ranks: `l`, the triangle [1 0; 2 3].
/// #   let row = Matrix::from_f64s(1, 2, 128, &[[1.0, 0.0], [2.0, 3.0]][rank.rank()])?;
/// #   let l = DistMatrix::from_local(team.world(), &even_rows(2, 2, 2), &row, TileMap::symmetric(2, 8))?;
///     // Likewise `b`, the right side (5, 6).
/// #   let map = TileMap { cols: 1, triangle: None, ..TileMap::symmetric(2, 8) };
/// #   let own = Matrix::from_f64s(1, 1, 128, &[[5.0, 6.0][rank.rank()]])?;
/// #   let b = DistMatrix::from_local(team.world(), &even_rows(2, 1, 2), &own, map)?;
///     let options = TrsmOptions::new().op(Op::Transpose);
///     let x = distributed::trsm_with(&ctx, &team, &l, &b, 128, &options)?; // L^T X = B
///     x.solution.gather(team.world(), 0)
/// });
/// let whole = ranks.into_iter().next().unwrap()?; // that of rank 0
/// assert_eq!(whole.unwrap().view().to_f64s(), [1.0, 2.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`crate::trsm_with`] and [`crate::distributed::solve_with`]; [`Error::InvalidArgument`] if `t` has only the other
/// triangle.
pub fn trsm_with(
    ctx: &Context,
    team: &Team,
    t: &DistMatrix,
    b: &DistMatrix,
    precision_bits: u32,
    options: &TrsmOptions<'_>,
) -> Result<DistSolution> {
    let mut solution = DistMatrix::empty();
    trsm_into(ctx, team, t, b, precision_bits, options, &mut solution)?;
    Ok(DistSolution { solution })
}

/// [`trsm_with`] into `result`; for side left its memory is reused, as in [`crate::distributed::solve_into`].
/// Collective.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, DistMatrix, Team, TeamOptions, TileMap, even_rows};
/// use sunzi::{Context, Matrix, TrsmOptions};
/// let ranks = local::run(2, |rank| -> sunzi::Result<Option<Matrix>> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     // In tiles over the ranks: `l`, the triangle [1 0; 2 3].
/// #   let row = Matrix::from_f64s(1, 2, 128, &[[1.0, 0.0], [2.0, 3.0]][rank.rank()])?;
/// #   let l = DistMatrix::from_local(team.world(), &even_rows(2, 2, 2), &row, TileMap::symmetric(2, 8))?;
///     // Likewise `b`, the right side (10, 23).
/// #   let map = TileMap { cols: 1, triangle: None, ..TileMap::symmetric(2, 8) };
/// #   let own = Matrix::from_f64s(1, 1, 128, &[[10.0, 23.0][rank.rank()]])?;
/// #   let b = DistMatrix::from_local(team.world(), &even_rows(2, 1, 2), &own, map)?;
///     let mut x = distributed::trsm(&ctx, &team, &l, &b, 128)?.solution;
///     distributed::trsm_into(&ctx, &team, &l, &b, 128, &TrsmOptions::new(), &mut x)?; // in the same memory
///     x.gather(team.world(), 0)
/// });
/// let whole = ranks.into_iter().next().unwrap()?; // that of rank 0
/// assert_eq!(whole.unwrap().view().to_f64s(), [10.0, 1.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`trsm_with`].
pub fn trsm_into(
    ctx: &Context,
    team: &Team,
    t: &DistMatrix,
    b: &DistMatrix,
    precision_bits: u32,
    options: &TrsmOptions<'_>,
    result: &mut DistMatrix,
) -> Result<()> {
    let world = team.world();
    check_options(world, options)?;
    check_triangle(world, t, options.uplo)?;
    let transposed = options.side == Side::Right;
    if transposed && t.map().rows == t.map().cols && b.map().cols != t.map().rows {
        let (t, b) = (t.map(), b.map());
        return agreed(world, Err(Error::shape_mismatch("trsm", (b.rows, b.cols), (t.rows, t.cols))));
    }
    // X op(T) = B is op(T)^T X^T = B^T.
    let turned_map = |matrix: &DistMatrix| TileMap {
        rows: matrix.map().cols,
        cols: matrix.map().rows,
        triangle: None,
        ..*matrix.map()
    };
    let ctx = &with_shared_devices(ctx, world)?;
    if !transposed {
        let solved = trsm_right(ctx, team, t, RightSides::Tiles(b), precision_bits, options)?;
        return solved.into_tiles(ctx, world, b.map(), result);
    }
    let map = turned_map(b);
    let bytes = |bits: u32| DistMatrix::bytes_for(&map, team.rank(), bits);
    // A limit must have room for the transposed right sides before they are made, and, when all else is released, for
    // the solution both in its own tiles and in the caller's.
    let site = Site { ctx, team };
    let found = site.holding(2 * bytes(precision_bits))?;
    let copied = site.holding(bytes(b.precision_bits()))?;
    agree(world, found.admit(0).and(copied.admit(0)))?;
    let right = b.transposed(world, map)?;
    let solved = trsm_right(&copied, team, t, RightSides::Tiles(&right), precision_bits, options)?;
    solved.into_tiles(ctx, world, right.map(), result)?;
    drop(right);
    *result = result.transposed(world, turned_map(result))?;
    Ok(())
}

/// [`trsm_with`] for right-hand sides in the caller's own distribution, for side left; for `X op(T) = B` pass the
/// transposes of `B` and of its distribution, and the other `op`. As [`crate::distributed::solve_local`]. Collective.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, DistMatrix, LocalPart, Team, TeamOptions, TileMap, even_rows};
/// use sunzi::{Context, Matrix, TrsmOptions};
/// let ranks = local::run(2, |rank| -> sunzi::Result<Vec<f64>> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     // In tiles over the ranks: `l`, the triangle [1 0; 2 3].
/// #   let row = Matrix::from_f64s(1, 2, 128, &[[1.0, 0.0], [2.0, 3.0]][rank.rank()])?;
/// #   let l = DistMatrix::from_local(team.world(), &even_rows(2, 2, 2), &row, TileMap::symmetric(2, 8))?;
///     let own = Matrix::from_f64s(1, 1, 128, &[[10.0, 23.0][rank.rank()]])?; // a row on each rank
///     let (rows, mut x) = (even_rows(2, 1, 2), Matrix::zeros(1, 1, 128)?);
///     let b = LocalPart { distribution: &rows, local: own.view() };
///     let found = distributed::trsm_local(&ctx, &team, &l, b, 128, &TrsmOptions::new())?;
///     found.fill_local(team.world(), &rows, x.view_mut())?; // this rank's row of the solution
///     Ok(x.view().to_f64s())
/// });
/// assert_eq!(ranks.into_iter().collect::<sunzi::Result<Vec<_>>>()?, [[10.0], [1.0]]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`trsm_with`] and [`DistMatrix::from_local`]; [`Error::InvalidArgument`] for side right.
pub fn trsm_local(
    ctx: &Context,
    team: &Team,
    t: &DistMatrix,
    b: LocalPart<'_>,
    precision_bits: u32,
    options: &TrsmOptions<'_>,
) -> Result<LocalSolution> {
    let world = team.world();
    check_options(world, options)?;
    if options.side == Side::Right {
        let message = "trsm: right-hand sides in the caller's own distribution require the left side".to_string();
        return Err(Error::InvalidArgument(message));
    }
    check_triangle(world, t, options.uplo)?;
    let ctx = &with_shared_devices(ctx, world)?;
    let b = RightSides::of_local(world, b)?;
    trsm_right(ctx, team, t, b, precision_bits, options)
}

/// Refuses options that differ between ranks, which would then take different paths. Collective.
fn check_options(world: &dyn Transport, options: &TrsmOptions<'_>) -> Result<()> {
    let refusal = "trsm: the ranks pass different sides, triangles, diagonals, transposes, accuracies or scalars";
    check_alike(world, options, refusal)
}

/// Refuses a matrix that does not hold the triangle `uplo`. Collective.
fn check_triangle(world: &dyn Transport, t: &DistMatrix, uplo: Uplo) -> Result<()> {
    let held = t.map().triangle;
    let wrong = held.is_some_and(|held| held != uplo) || (t.is_symmetric() && t.map().rows == t.map().cols);
    let name = |uplo: Uplo| if uplo == Uplo::Lower { "lower" } else { "upper" };
    let stored = match held {
        Some(held) if held != uplo => format!("the tiles of the matrix hold its {} triangle", name(held)),
        _ => "the matrix is stored as symmetric".to_string(),
    };
    let wanted = name(uplo);
    let message = || format!("trsm: the {wanted} triangle is to be used, but {stored}: pass a triangular matrix");
    agree(world, if wrong { Err(Error::InvalidArgument(message())) } else { Ok(()) })
}

fn trsm_right(
    ctx: &Context,
    team: &Team,
    t: &DistMatrix,
    b: RightSides<'_>,
    precision_bits: u32,
    options: &TrsmOptions<'_>,
) -> Result<LocalSolution> {
    let world = team.world();
    let TrsmOptions { side, uplo, op, diag, accuracy, alpha } = *options;
    let alpha = agreed(world, alpha.map(check_scalar).transpose())?;
    let bytes = |map| DistMatrix::bytes_for(&map, team.rank(), t.precision_bits());
    let copied = copied_triangle(t, uplo, diag).map_or(0, bytes);
    let ctx = &Site { ctx, team }.holding(copied)?;
    agree(world, ctx.admit(0))?;
    let factor = lower_triangle(world, t, uplo, diag)?;
    let call = SolveCall { site: Site { ctx, team }, factor: &factor, b, precision_bits, accuracy, alpha };
    let order = call.check("trsm")?;
    let working_bits = agreed(world, solve_bits(ctx, LOWER, precision_bits, order))?.working;
    let tiles = FactorTiles::new(&factor);
    tiles.check_diagonal(world)?;
    // The system is that of the lower triangle, or of its transpose.
    let is_lower = (uplo == Uplo::Lower) != ((op == Op::Transpose) != (side == Side::Right));
    let (substitutions, total_columns) = (if is_lower { LOWER } else { UPPER }, b.shape().1);
    call.solve(&tiles, substitutions, working_bits, |ctx, lower, right, result| {
        let (t, uplo) = if is_lower { (lower.view(), Uplo::Lower) } else { (lower.transposed(), Uplo::Upper) };
        let (diag, b, alpha) = (Diag::NonUnit, right.view(), call.alpha.clone());
        let transposed = false;
        let system = TriangularSystem { t, uplo, diag, b, alpha, transposed, precision_bits, accuracy, total_columns };
        system.solve(ctx, result)
    })
}

/// The tiles of the copy that [`lower_triangle`] makes, where it makes one.
fn copied_triangle(t: &DistMatrix, uplo: Uplo, diag: Diag) -> Option<TileMap> {
    let map = *t.map();
    match (uplo, diag) {
        (Uplo::Upper, _) if map.rows == map.cols => Some(TileMap { triangle: Some(Uplo::Lower), ..map }),
        (_, Diag::Unit) => Some(map),
        _ => None,
    }
}

/// The triangle `uplo` of a matrix, or its transpose, as a lower one. Collective.
fn lower_triangle<'t>(world: &dyn Transport, t: &'t DistMatrix, uplo: Uplo, diag: Diag) -> Result<Cow<'t, DistMatrix>> {
    let map = TileMap { triangle: Some(Uplo::Lower), ..*t.map() };
    let is_square = map.rows == map.cols; // what is not is refused later
    let mut lower = match uplo {
        Uplo::Upper if is_square => Cow::Owned(t.transposed(world, map)?),
        _ => Cow::Borrowed(t),
    };
    if diag == Diag::Unit {
        agreed(world, set_ones(lower.to_mut()))?;
    }
    Ok(lower)
}

/// The solution `X` of `L L^T X = I`, rounded to `precision_bits` bits, for a factor `L` in tiles over the ranks of
/// `team`: the whole matrix, in tiles like those of the factor. Collective.
///
/// Accuracy and bits: those of [`solve_with`] with the identity as right-hand side, on any number of ranks and in one
/// process, so each column is as accurate as a solution. The result is symmetric only up to that accuracy, and differs
/// from [`crate::Cholesky::inverse`], which is a product and needs more bits: docs/decisions/108-two-inverses.md. Cost
/// and memory: as [`solve_with`] with `n` right-hand sides.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, DistMatrix, Team, TeamOptions, TileMap, even_rows};
/// use sunzi::{Accuracy, Context, Matrix};
/// let ranks = local::run(2, |rank| -> sunzi::Result<Option<Matrix>> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     // In tiles over the ranks: `l`, the factor of [1 1; 1 2].
/// #   let row = Matrix::from_f64s(1, 2, 128, &[[1.0, 0.0], [1.0, 1.0]][rank.rank()])?;
/// #   let l = DistMatrix::from_local(team.world(), &even_rows(2, 2, 2), &row, TileMap::symmetric(2, 8))?;
///     let inverse = distributed::inverse(&ctx, &team, &l, 128, Accuracy::Norm)?;
///     inverse.solution.gather(team.world(), 0)
/// });
/// let whole = ranks.into_iter().next().unwrap()?; // that of rank 0
/// assert_eq!(whole.unwrap().view().to_f64s(), [2.0, -1.0, -1.0, 1.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`solve_with`].
pub fn inverse(
    ctx: &Context,
    team: &Team,
    factor: &DistMatrix,
    precision_bits: u32,
    accuracy: Accuracy,
) -> Result<DistSolution> {
    solve_with(ctx, team, factor, &identity(team, factor)?, precision_bits, accuracy)
}

/// [`inverse`] whose result stays in the distribution in which it was computed: see
/// [`crate::distributed::solve_local`]. Collective.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, DistMatrix, Team, TeamOptions, TileMap, even_rows};
/// use sunzi::{Accuracy, Context, Matrix};
/// let ranks = local::run(2, |rank| -> sunzi::Result<Vec<f64>> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     // In tiles over the ranks: `l`, the factor of [1 1; 1 2].
/// #   let row = Matrix::from_f64s(1, 2, 128, &[[1.0, 0.0], [1.0, 1.0]][rank.rank()])?;
/// #   let l = DistMatrix::from_local(team.world(), &even_rows(2, 2, 2), &row, TileMap::symmetric(2, 8))?;
///     let found = distributed::inverse_local(&ctx, &team, &l, 128, Accuracy::Norm)?;
///     let mut row = Matrix::zeros(1, 2, 128)?;
///     found.fill_local(team.world(), &even_rows(2, 2, 2), row.view_mut())?; // a row on each rank
///     Ok(row.view().to_f64s())
/// });
/// assert_eq!(ranks.into_iter().collect::<sunzi::Result<Vec<_>>>()?, [[2.0, -1.0], [-1.0, 1.0]]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`solve_with`].
pub fn inverse_local(
    ctx: &Context,
    team: &Team,
    factor: &DistMatrix,
    precision_bits: u32,
    accuracy: Accuracy,
) -> Result<LocalSolution> {
    let ctx = &with_shared_devices(ctx, team.world())?;
    let identity = identity(team, factor)?;
    solve_right(ctx, team, factor, RightSides::Tiles(&identity), precision_bits, accuracy)
}

/// The identity in tiles like those of a factor. Collective.
fn identity(team: &Team, factor: &DistMatrix) -> Result<DistMatrix> {
    let map = TileMap { triangle: None, ..*factor.map() };
    let made = DistMatrix::zeros(map, team.rank(), 2).and_then(|mut identity| {
        set_ones(&mut identity)?;
        Ok(identity)
    });
    agreed(team.world(), made)
}

/// Sets this rank's entries on the diagonal to 1.
///
/// # Errors
/// None for a precision that holds 1.
fn set_ones(matrix: &mut DistMatrix) -> Result<()> {
    let mut on_diagonal = matrix.tiles_mut().iter_mut().filter(|(id, _)| id.row == id.col);
    on_diagonal.try_for_each(|(_, tile)| (0..tile.rows().min(tile.cols())).try_for_each(|at| tile.set_f64(at, at, 1.0)))
}
