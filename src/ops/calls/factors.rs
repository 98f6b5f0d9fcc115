//! Cholesky factors, triangular solves and solves over ranks, on matrices where the caller has them.

use super::CallOutcome;
use super::caller::{CallFailure, CallNote, Caller, LocalArray};
use super::matrix::PlacedMatrix;
use super::ranks::{CallRanks, together};
use super::triangle::TrianglePart;
use crate::error::Error;
use crate::matrix::{Diag, Matrix, MatrixView, Op, Side, Uplo};
use crate::ops::TrsmOptions;
use crate::ops::cholesky::log_det_of;
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::distribution::travel::travel_bytes;
use crate::ops::factor::options::DistCholeskyOptions;
use crate::ops::factor::ranks::{cholesky_into, cholesky_tiles};
use crate::ops::solve::ranks::{inverse_local, pivots, solve_local, trsm_local};
use crate::site::Team;
use crate::tile::{Distribution, RankGrid, TileMap};
use rug::Float;
use rug::float::{FreeCache, free_cache};

/// How a triangular matrix is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TriangularKind {
    /// The side on which the triangular matrix is multiplied.
    pub side: Side,
    /// The selected triangle.
    pub uplo: Uplo,
    /// The matrix or its transpose.
    pub op: Op,
    /// Whether its diagonal is read.
    pub diag: Diag,
}

/// Replaces `a` by its factor: in one triangle, or as a whole matrix. Collective.
///
/// # Errors
/// Errors of shapes; the errors of the caller and of [`crate::distributed::cholesky_with`]; on all ranks.
pub fn cholesky_over<C: Caller>(
    caller: &C,
    team: &Team,
    uplo: Option<Uplo>,
    a: PlacedMatrix<C::Array>,
) -> CallOutcome<(), C> {
    let ranks = CallRanks::new(caller, team);
    // As it is stored, so that room is left for a copy wherever it is stored through one.
    let mut a = a.into_lower(uplo);
    let uplo = uplo.map(|_| Uplo::Lower);
    let part = uplo.map(TrianglePart::from);
    let bits = a.result_place(&ranks, part)?;
    let factor = new_factor(caller, team, uplo, &a, bits)?;
    let from = Distribution::of_tiles(factor.map());
    let messages = travel_bytes(ranks.world, &from, &a.distribution, Some(Uplo::Lower), bits);
    let placed = a.placed_bytes(bits);
    ranks.account().count(|tally| match a.local.is_in_place() {
        true => tally.travel(messages, placed),
        false => tally.store_again(messages, placed),
    });
    a.give(&ranks, part, &factor)
}

/// Computes `b := alpha op(t)^-1 b`, or the solution for side right. Collective.
///
/// # Errors
/// Errors of shapes; the errors of the caller and of [`crate::distributed::trsm_with`]; on all ranks.
pub fn trsm_over<C: Caller>(
    caller: &C,
    team: &Team,
    kind: TriangularKind,
    alpha: Option<&Float>,
    t: PlacedMatrix<C::Array>,
    b: PlacedMatrix<C::Array>,
) -> CallOutcome<(), C> {
    let TriangularKind { side, uplo, op, diag } = kind;
    let ranks = CallRanks::new(caller, team);
    // X op(T) = B is op(T)^T X^T = B^T, and an upper triangle the transpose of a lower one.
    let mut b = if side == Side::Right { b.transposed() } else { b };
    let t = t.into_lower(Some(uplo));
    let transposed = (side == Side::Right) ^ (op == Op::Transpose) ^ (uplo == Uplo::Upper);
    let order = t.order::<C::Failure>()?;
    b.check_shape::<C::Failure>(order, b.cols())?;
    let bits = b.result_place(&ranks, None)?;
    if alpha.is_some_and(Float::is_zero) {
        // As in the BLAS, neither the triangle nor the right sides are looked at.
        let (rows, cols) = (b.local.rows(), b.local.cols());
        ranks.hold(Matrix::bytes_for(rows, cols, bits))?;
        let zeros = Matrix::zeros(rows, cols, bits).map_err(C::Failure::from);
        return together(ranks.world, zeros.and_then(|zeros| caller.write(&mut b.local, None, zeros)));
    }
    let part = if diag == Diag::Unit { TrianglePart::StrictLower } else { TrianglePart::Lower };
    let factor = t.take(&ranks, Some(part), triangle_tiles(team, order))?;
    let op = if transposed { Op::Transpose } else { Op::NoTranspose };
    let options = TrsmOptions::new().op(op).diag(diag).accuracy(caller.account().accuracy()).alpha(alpha);
    b.solve(&ranks, |ctx, right| trsm_local(ctx, team, &factor, right, bits, &options))
}

/// Computes `b := a^-1 b` for a symmetric positive definite `a`. Collective.
///
/// # Errors
/// Errors of shapes; the errors of the caller and of [`crate::distributed::solve_with`]; on all ranks.
pub fn solve_over<C: Caller>(
    caller: &C,
    team: &Team,
    uplo: Option<Uplo>,
    a: PlacedMatrix<C::Array>,
    b: PlacedMatrix<C::Array>,
) -> CallOutcome<(), C> {
    b.check_shape::<C::Failure>(a.order::<C::Failure>()?, b.cols())?;
    let bits = b.result_place(&CallRanks::new(caller, team), None)?;
    let factor = factor_of(caller, team, uplo, a, bits)?;
    solve_factored(caller, team, &factor, b, bits)
}

/// Computes `x := a^-1`, the whole matrix, for a symmetric positive definite `a`. Collective.
///
/// # Errors
/// Errors of shapes; the errors of the caller and of [`crate::distributed::inverse`]; on all ranks.
pub fn inverse_over<C: Caller>(
    caller: &C,
    team: &Team,
    uplo: Option<Uplo>,
    a: PlacedMatrix<C::Array>,
    x: PlacedMatrix<C::Array>,
) -> CallOutcome<(), C> {
    x.check_shape::<C::Failure>(a.order::<C::Failure>()?, a.order::<C::Failure>()?)?;
    let bits = x.result_place(&CallRanks::new(caller, team), None)?;
    let factor = factor_of(caller, team, uplo, a, bits)?;
    inverse_factored(caller, team, &factor, x, bits)
}

/// Computes `b := (l l^T)^-1 b` with the factor in a triangle. Collective.
///
/// # Errors
/// As [`solve_over`].
pub fn cholesky_solve_over<C: Caller>(
    caller: &C,
    team: &Team,
    uplo: Uplo,
    l: PlacedMatrix<C::Array>,
    b: PlacedMatrix<C::Array>,
) -> CallOutcome<(), C> {
    let ranks = CallRanks::new(caller, team);
    let order = l.order::<C::Failure>()?;
    b.check_shape::<C::Failure>(order, b.cols())?;
    let bits = b.result_place(&ranks, None)?;
    let l = l.into_lower(Some(uplo));
    let factor = l.take(&ranks, Some(TrianglePart::Lower), triangle_tiles(team, order))?;
    solve_factored(caller, team, &factor, b, bits)
}

/// The logarithm of the determinant of `l l^T`; only the diagonal of the triangle `uplo` is read. `store` passes the
/// pivots to [`stored_log_det`] on a rank that needs the number. Collective.
///
/// # Errors
/// [`Error::Singular`]; the errors of the caller; on all ranks.
pub fn log_det_over<C: Caller>(
    caller: &C,
    team: &Team,
    uplo: Uplo,
    l: PlacedMatrix<C::Array>,
    store: impl FnOnce(MatrixView<'_>) -> CallOutcome<(), C>,
) -> CallOutcome<(), C> {
    let order = l.order::<C::Failure>()?;
    let l = l.into_lower(Some(uplo));
    let map = triangle_tiles(team, order);
    let factor = l.take(&CallRanks::new(caller, team), Some(TrianglePart::Diagonal), map)?;
    log_det_factored::<C>(team, &factor, store)
}

/// [`log_det_over`] of a factor in tiles. Collective.
pub(super) fn log_det_factored<C: Caller>(
    team: &Team,
    factor: &DistMatrix,
    store: impl FnOnce(MatrixView<'_>) -> CallOutcome<(), C>,
) -> CallOutcome<(), C> {
    let pivots = pivots(team, factor)?;
    // The same ones on all ranks, whether they need the number or not.
    let zero = (0..pivots.rows()).find(|&i| pivots.get(i, 0).head.is_zero());
    if let Some(index) = zero {
        return Err(C::Failure::about("factor", Error::Singular { index }));
    }
    together(team.world(), store(pivots.view()))
}

/// The logarithm of the determinant of `l l^T` from the pivots of `l`, in one entry; no cache remains.
///
/// # Errors
/// Memory.
pub fn stored_log_det(pivots: MatrixView<'_>, precision_bits: u32) -> crate::Result<Matrix> {
    let mut matrix = Matrix::zeros(1, 1, precision_bits)?;
    matrix.set_float(0, 0, &log_det_of(pivots, precision_bits))?;
    free_cache(FreeCache::Local);
    Ok(matrix)
}

/// Tiles for a triangle that is taken in.
pub(super) fn triangle_tiles(team: &Team, order: usize) -> TileMap {
    let grid = RankGrid::for_ranks(team.world().size());
    TileMap { rows: order, cols: order, tile_size: TILE, grid, triangle: Some(Uplo::Lower) }
}

/// Rows of the tiles of triangles.
const TILE: usize = 64;

/// [`new_factor`] of a matrix that is not needed afterwards.
fn factor_of<C: Caller>(
    caller: &C,
    team: &Team,
    uplo: Option<Uplo>,
    a: PlacedMatrix<C::Array>,
    bits: u32,
) -> CallOutcome<DistMatrix, C> {
    new_factor(caller, team, uplo.map(|_| Uplo::Lower), &a.into_lower(uplo), bits)
}

/// The factor, at a precision, of the matrix in its lower triangle or in both. Collective.
pub(super) fn new_factor<C: Caller>(
    caller: &C,
    team: &Team,
    uplo: Option<Uplo>,
    a: &PlacedMatrix<C::Array>,
    bits: u32,
) -> CallOutcome<DistMatrix, C> {
    let mut made = no_factor()?;
    factor_into(caller, team, uplo, a, bits, &mut made)?;
    Ok(made)
}

/// The factor of a matrix without rows.
pub(super) fn no_factor() -> crate::Result<DistMatrix> {
    let map = TileMap { rows: 0, cols: 0, tile_size: TILE, grid: RankGrid::for_ranks(1), triangle: Some(Uplo::Lower) };
    DistMatrix::zeros(map, 0, 2)
}

/// [`new_factor`] into `made`, in the memory that it has where it is such a factor; without entries where that fails.
/// Collective.
pub(super) fn factor_into<C: Caller>(
    caller: &C,
    team: &Team,
    uplo: Option<Uplo>,
    a: &PlacedMatrix<C::Array>,
    bits: u32,
    made: &mut DistMatrix,
) -> CallOutcome<(), C> {
    let (order, ranks) = (a.order::<C::Failure>()?, CallRanks::new(caller, team));
    let account = ranks.account();
    let options = DistCholeskyOptions::new().accuracy(account.accuracy());
    let map = account.done(cholesky_tiles(&*ranks.context()?, team, order, bits, &options))?;
    let options = options.tile_rows(map.tile_size).grid(map.grid);
    // Both triangles are taken in whole, and compared.
    let read = TileMap { triangle: uplo.and(map.triangle), ..map };
    let taken = a.take(&ranks, uplo.map(TrianglePart::from), read)?;
    let done = account.done(cholesky_into(&*ranks.context()?, team, &taken, bits, &options, made))?;
    account.release_bytes(taken.bytes());
    ranks.hold(made.bytes())?;
    let (planned, made_bytes) = (done.planned_bytes, made.bytes());
    account.count(|tally| {
        tally.at_most(planned);
        tally.release(taken.bytes());
        tally.hold(made_bytes);
        tally.keep(planned.saturating_sub(made_bytes));
    });
    caller.note(CallNote::Reached(done.report.accuracy, done.report.range_bits));
    caller.note(CallNote::Precision(bits));
    Ok(())
}

/// `b := (l l^T)^-1 b` with a factor in tiles. Collective.
pub(super) fn solve_factored<C: Caller>(
    caller: &C,
    team: &Team,
    factor: &DistMatrix,
    mut b: PlacedMatrix<C::Array>,
    bits: u32,
) -> CallOutcome<(), C> {
    let accuracy = caller.account().accuracy();
    let solve = |ctx: &crate::Context, right: crate::distributed::LocalPart<'_>| {
        solve_local(ctx, team, factor, right, bits, accuracy)
    };
    b.solve(&CallRanks::new(caller, team), solve)
}

/// `x := (l l^T)^-1` with a factor in tiles. Collective.
pub(super) fn inverse_factored<C: Caller>(
    caller: &C,
    team: &Team,
    factor: &DistMatrix,
    mut x: PlacedMatrix<C::Array>,
    bits: u32,
) -> CallOutcome<(), C> {
    let (ranks, account) = (CallRanks::new(caller, team), caller.account());
    let found = inverse_local(&*ranks.context()?, team, factor, bits, account.accuracy());
    x.give_solution(&ranks, account.done(found)?, 0)
}
