//! Cholesky factors, triangular solves and solves over ranks, on matrices where the caller has them; and a factor that
//! is kept: factored once, solved with many times, without its numbers being read again.

use super::CallOutcome;
use super::caller::{ArgumentFault, CallFailure, CallNote, CallRanks, Caller, LocalArray, TrianglePart, together};
use super::matrix::PlacedMatrix;
use super::opening::Opening;
use crate::comm::Reduction;
use crate::error::Error;
use crate::matrix::{Diag, MAXIMUM_PRECISION_BITS, Matrix, MatrixView, Op, Side, Uplo};
use crate::ops::TrsmOptions;
use crate::ops::cholesky::log_det_of;
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::distribution::redistribute::LocalPart;
use crate::ops::distribution::travel::travel_bytes;
use crate::ops::factor::options::DistCholeskyOptions;
use crate::ops::factor::ranks::{cholesky_into, cholesky_tiles};
use crate::ops::solve::ranks::{inverse_local, pivots, solve_local, trsm_local};
use crate::site::Team;
use crate::tile::{Distribution, RankGrid, TileMap};
use rug::Float;
use rug::float::{FreeCache, free_cache};
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows of the tiles of triangles.
const TILE: usize = 64;

/// The role of a triangular matrix in a call.
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
/// Cost: that of [`crate::distributed::cholesky_with`]; each entry travels once into tiles, and the factor's once back.
/// Source: docs/decisions/117-calls-over-ranks-are-the-librarys.md.
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
    let was_copied = !a.local.is_in_place();
    ranks.account().count(|tally| tally.store_again(messages, placed, was_copied));
    a.give(&ranks, part, &factor)
}

/// Computes `b := alpha op(t)^-1 b`, or the solution for side right. Collective.
///
/// Cost: that of [`crate::distributed::trsm_with`]; each entry of `t` travels once into tiles.
/// Source: docs/decisions/117-calls-over-ranks-are-the-librarys.md.
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
/// Cost: that of [`crate::distributed::solve_with`], factorisation included; each entry of `a` travels once into tiles.
/// Source: docs/decisions/117-calls-over-ranks-are-the-librarys.md.
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
/// Cost: that of [`crate::distributed::inverse`], factorisation included; each entry of `a` travels once into tiles.
/// Source: docs/decisions/117-calls-over-ranks-are-the-librarys.md.
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
/// Cost: two triangular solves; each entry of the triangle travels once into tiles.
/// Source: docs/decisions/117-calls-over-ranks-are-the-librarys.md.
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
/// Cost: the diagonal travels to all ranks, and a logarithm for each pivot.
/// Source: docs/decisions/117-calls-over-ranks-are-the-librarys.md.
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
fn log_det_factored<C: Caller>(
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
/// Cost: a logarithm for each pivot.
/// Source: docs/decisions/117-calls-over-ranks-are-the-librarys.md.
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
fn new_factor<C: Caller>(
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
fn no_factor() -> crate::Result<DistMatrix> {
    let map = TileMap { rows: 0, cols: 0, tile_size: TILE, grid: RankGrid::for_ranks(1), triangle: Some(Uplo::Lower) };
    DistMatrix::zeros(map, 0, 2)
}

/// [`new_factor`] into `made`, in the memory that it has where it is such a factor; without entries where that fails.
/// Collective.
fn factor_into<C: Caller>(
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
    account.count(|tally| tally.factor(planned, taken.bytes(), made_bytes));
    caller.note(CallNote::Reached(done.report.accuracy, done.report.range_bits));
    caller.note(CallNote::Precision(bits));
    Ok(())
}

/// `b := (l l^T)^-1 b` with a factor in tiles. Collective.
fn solve_factored<C: Caller>(
    caller: &C,
    team: &Team,
    factor: &DistMatrix,
    mut b: PlacedMatrix<C::Array>,
    bits: u32,
) -> CallOutcome<(), C> {
    let accuracy = caller.account().accuracy();
    let solve = |ctx: &crate::Context, right: LocalPart<'_>| solve_local(ctx, team, factor, right, bits, accuracy);
    b.solve(&CallRanks::new(caller, team), solve)
}

/// `x := (l l^T)^-1` with a factor in tiles. Collective.
fn inverse_factored<C: Caller>(
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

/// A Cholesky factor in tiles over the ranks: the tiles of this rank.
#[derive(Debug)]
pub struct KeptFactor {
    tiles: DistMatrix,
    /// Whether the last renewal failed.
    is_lost: bool,
    /// A number that no other factor of these ranks has.
    number: u64,
}

/// A number for a factor, the same on all ranks and larger than any that one of them has given before. Collective.
fn next_number(team: &Team) -> crate::Result<u64> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut number = [NEXT.load(Ordering::Relaxed)];
    team.world().all_reduce(Reduction::Max, &mut number)?;
    NEXT.fetch_max(number[0] + 1, Ordering::Relaxed);
    Ok(number[0])
}

/// The bits of a factor of `a` in its lower triangle, or in both, where `asked_bits` are requested: with 0 the most
/// that its entries have, over all ranks. Collective.
fn bits_of<C: Caller>(
    ranks: &CallRanks<'_, C>,
    a: &PlacedMatrix<C::Array>,
    uplo: Option<Uplo>,
    asked_bits: u32,
) -> CallOutcome<u32, C> {
    if asked_bits == 0 { a.result_bits(ranks, uplo.map(TrianglePart::from)) } else { Ok(asked_bits) }
}

impl KeptFactor {
    /// The factor of `a`, with `asked_bits` bits, or with 0 at the largest precision of its entries. Collective.
    ///
    /// Cost: that of [`crate::distributed::cholesky_with`]; each entry travels once into the tiles.
    /// Source: docs/decisions/117-calls-over-ranks-are-the-librarys.md.
    ///
    /// # Errors
    /// Shapes; the errors of the caller and of [`crate::distributed::cholesky_with`]; on all ranks.
    pub fn new<C: Caller>(
        caller: &C,
        team: &Team,
        uplo: Option<Uplo>,
        asked_bits: u32,
        a: PlacedMatrix<C::Array>,
    ) -> CallOutcome<KeptFactor, C> {
        let order = a.order::<C::Failure>();
        let a = a.into_lower(uplo);
        let uplo = uplo.map(|_| Uplo::Lower);
        let bits = bits_of(&CallRanks::new(caller, team), &a, uplo, asked_bits)?;
        order?;
        let tiles = new_factor(caller, team, uplo, &a, bits)?;
        Ok(KeptFactor { tiles, is_lost: false, number: next_number(team)? })
    }

    /// Replaces it by [`KeptFactor::new`], in its own memory if order and precision are unchanged and there is no
    /// memory limit. Collective.
    ///
    /// Cost: as [`KeptFactor::new`].
    /// Source: docs/decisions/117-calls-over-ranks-are-the-librarys.md.
    ///
    /// # Errors
    /// As [`KeptFactor::new`]; after an error of the factorisation the factor has no rows, and is refused until it is
    /// renewed.
    pub fn renew<C: Caller>(
        &mut self,
        caller: &C,
        team: &Team,
        uplo: Option<Uplo>,
        asked_bits: u32,
        a: PlacedMatrix<C::Array>,
    ) -> CallOutcome<(), C> {
        let order = a.order::<C::Failure>();
        let a = a.into_lower(uplo);
        let uplo = uplo.map(|_| Uplo::Lower);
        let bits = bits_of(&CallRanks::new(caller, team), &a, uplo, asked_bits)?;
        let number = next_number(team)?;
        order?;
        if !(2..=MAXIMUM_PRECISION_BITS).contains(&bits) {
            let maximum_bits = MAXIMUM_PRECISION_BITS.into();
            return Err(Error::Precision { precision_bits: bits.into(), maximum_bits }.into());
        }
        self.is_lost = true;
        if let Err(failure) = factor_into(caller, team, uplo, &a, bits, &mut self.tiles) {
            // The old one is still there where A could not be taken in.
            self.tiles = no_factor()?;
            return Err(failure);
        }
        (self.is_lost, self.number) = (false, number);
        Ok(())
    }

    /// Rows of the factored matrix.
    pub fn order(&self) -> usize {
        self.tiles.map().rows
    }

    /// Bits of the entries of the factor.
    pub fn precision_bits(&self) -> u32 {
        self.tiles.precision_bits()
    }

    /// Records it as the argument `factor` of a call, which must be the same factor on all ranks.
    pub fn describe(&self, open: &mut Opening<'_>) {
        let (map, bits) = (self.tiles.map(), self.precision_bits());
        let (rows, grid) = (map.rows, map.grid);
        open.say("factor", "its matrix has", format!("{rows} rows"));
        open.say("factor", "it has", format!("{bits} bits"));
        open.say("factor", "it lies in", format!("tiles of {} on {} x {} ranks", map.tile_size, grid.rows, grid.cols));
        open.say("factor", "it is the factor number", self.number);
    }

    /// Records it as [`KeptFactor::describe`], and returns an error if it is lost.
    ///
    /// # Errors
    /// The last renewal failed.
    pub fn usable<F: CallFailure>(&self, open: &mut Opening<'_>) -> Result<&KeptFactor, F> {
        self.describe(open);
        let message = "the factor cannot be used, since its last renewal failed; renew it again";
        if self.is_lost { Err(F::refused("factor", ArgumentFault::Value, message.into())) } else { Ok(self) }
    }

    /// Computes `b := a^-1 b` for the factored `a`. Collective.
    ///
    /// Cost: two triangular solves; the factor does not travel.
    /// Source: docs/decisions/117-calls-over-ranks-are-the-librarys.md.
    ///
    /// # Errors
    /// Shapes; the errors of the caller and of [`crate::distributed::solve_with`]; on all ranks.
    pub fn solve<C: Caller>(&self, caller: &C, team: &Team, b: PlacedMatrix<C::Array>) -> CallOutcome<(), C> {
        b.check_shape::<C::Failure>(self.order(), b.cols())?;
        let bits = b.result_place(&CallRanks::new(caller, team), None)?;
        solve_factored(caller, team, &self.tiles, b, bits)
    }

    /// Computes `x := a^-1` for the factored `a`. Collective.
    ///
    /// Cost: a solve for the identity; the factor does not travel.
    /// Source: docs/decisions/117-calls-over-ranks-are-the-librarys.md.
    ///
    /// # Errors
    /// Shapes; the errors of the caller and of [`crate::distributed::inverse`]; on all ranks.
    pub fn inverse<C: Caller>(&self, caller: &C, team: &Team, x: PlacedMatrix<C::Array>) -> CallOutcome<(), C> {
        x.check_shape::<C::Failure>(self.order(), self.order())?;
        let bits = x.result_place(&CallRanks::new(caller, team), None)?;
        inverse_factored(caller, team, &self.tiles, x, bits)
    }

    /// The logarithm of the determinant of the factored matrix: `store` takes the pivots to
    /// [`stored_log_det`] on a rank that needs the number. Collective.
    ///
    /// Cost: as [`log_det_over`].
    /// Source: docs/decisions/117-calls-over-ranks-are-the-librarys.md.
    ///
    /// # Errors
    /// [`Error::Singular`], and the errors of `store`; on all ranks.
    pub fn log_det<C: Caller>(
        &self,
        team: &Team,
        store: impl FnOnce(MatrixView<'_>) -> CallOutcome<(), C>,
    ) -> CallOutcome<(), C> {
        log_det_factored::<C>(team, &self.tiles, store)
    }

    /// Stores the factor in a triangle of `a`, transposed in the upper one. Collective.
    ///
    /// Cost: each entry of the factor travels once to each rank that gets it.
    /// Source: docs/decisions/117-calls-over-ranks-are-the-librarys.md.
    ///
    /// # Errors
    /// Errors of shapes; the errors of the caller; on all ranks.
    pub fn store<C: Caller>(
        &self,
        caller: &C,
        team: &Team,
        uplo: Uplo,
        a: PlacedMatrix<C::Array>,
    ) -> CallOutcome<(), C> {
        let ranks = CallRanks::new(caller, team);
        a.check_shape::<C::Failure>(self.order(), self.order())?;
        let mut a = a.into_lower(Some(uplo));
        let part = Some(TrianglePart::Lower);
        a.result_place(&ranks, part)?; // all of them are initialised
        a.give(&ranks, part, &self.tiles)
    }
}
