//! `trsm` over ranks: solves with a triangle in tiles, from either side.

use super::factor::FactorTiles;
use super::inverse::set_ones;
use super::right::RightSides;
use super::{DistSolution, LocalSolution, SolveCall};
use crate::comm::{Transport, agree, agreed, check_alike};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::{Diag, Matrix, Op, Side, Uplo};
use crate::ops::distributed::{DistMatrix, Team};
use crate::ops::distribution::redistribute::LocalPart;
use crate::ops::distribution::shared_devices::with_shared_devices;
use crate::ops::product::report::Outcome;
use crate::ops::solve::options::{TrsmOptions, check_scalar};
use crate::ops::solve::problem::{LOWER, UPPER, triangle_working_bits};
use crate::ops::solve::triangular::TriangularSystem;
use crate::site::Site;
use crate::tile::TileMap;
use std::borrow::Cow;

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
        let message = "trsm: right-hand sides in the caller's own distribution need side left".to_string();
        return Err(Error::InvalidArgument(message));
    }
    check_triangle(world, t, options.uplo)?;
    let ctx = &with_shared_devices(ctx, world)?;
    let b = RightSides::of_local(world, b)?;
    trsm_right(ctx, team, t, b, precision_bits, options)
}

/// Refuses options that differ between ranks, which would then take different paths. Collective.
fn check_options(world: &dyn Transport, options: &TrsmOptions<'_>) -> Result<()> {
    let refusal = "trsm: ranks differ in the side, the triangle, its diagonal, whether it is transposed, the accuracy \
                   or the scalar";
    check_alike(world, options, refusal)
}

/// Refuses a matrix that does not hold the triangle `uplo`. Collective.
fn check_triangle(world: &dyn Transport, t: &DistMatrix, uplo: Uplo) -> Result<()> {
    let held = t.map().triangle;
    let wrong = held.is_some_and(|held| held != uplo) || (t.is_symmetric() && t.map().rows == t.map().cols);
    let message = || format!("trsm: the {uplo:?} triangle is requested, but the matrix has {held:?}");
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
    let working_bits = agreed(world, triangle_working_bits(ctx, precision_bits, order))?;
    let tiles = FactorTiles::new(&factor);
    tiles.check_diagonal(world)?;
    // The system is that of the lower triangle, or of its transpose.
    let is_lower = (uplo == Uplo::Lower) != ((op == Op::Transpose) != (side == Side::Right));
    let (substitutions, total_columns) = (if is_lower { LOWER } else { UPPER }, b.shape().1);
    call.solve(&tiles, substitutions, working_bits, |ctx, lower, right| {
        let (t, uplo) = if is_lower { (lower.view(), Uplo::Lower) } else { (lower.transposed(), Uplo::Upper) };
        let (diag, b, alpha) = (Diag::NonUnit, right.view(), call.alpha.clone());
        let transposed = false;
        let system = TriangularSystem { t, uplo, diag, b, alpha, transposed, precision_bits, accuracy, total_columns };
        let mut result = Matrix::empty();
        let report = system.solve(ctx, (&mut result).into())?;
        Ok(Outcome { result, report })
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
