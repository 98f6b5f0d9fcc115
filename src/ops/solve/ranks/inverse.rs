//! The inverse of the matrix behind a factor over ranks: the solution for the identity.

use super::right::RightSides;
use super::{DistSolution, LocalSolution, solve_right, solve_with};
use crate::comm::agreed;
use crate::context::Context;
use crate::error::Result;
use crate::ops::distributed::{DistMatrix, Team};
use crate::ops::distribution::shared_devices::with_shared_devices;
use crate::ops::product::problem::Accuracy;
use crate::tile::TileMap;

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
pub(super) fn set_ones(matrix: &mut DistMatrix) -> Result<()> {
    let mut on_diagonal = matrix.tiles_mut().iter_mut().filter(|(id, _)| id.row == id.col);
    on_diagonal.try_for_each(|(_, tile)| (0..tile.rows().min(tile.cols())).try_for_each(|at| tile.set_f64(at, at, 1.0)))
}
