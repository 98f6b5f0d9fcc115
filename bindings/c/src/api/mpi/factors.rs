//! Cholesky factors, triangular solves and solves over ranks.

use super::matrix::{DistOperand, triangle};
use super::opening::Routine;
use super::{Ranks, collective, together};
use crate::api::cholesky::{check_pivots, log_det_number};
use crate::api::triangular::TriangleUse;
use crate::api::{diag_of, op_of, side_of, uplo_of};
use crate::array::{Operand, Part, Triangle};
use crate::call::Call;
use crate::context::sunzi_context;
use crate::failure::{Failure, Outcome};
use crate::types::{sunzi_dist_matrix, sunzi_matrix, sunzi_status};
use rug::Float;
use sunzi::distributed::{
    DistCholeskyOptions, DistMatrix, Distribution, RankGrid, Team, TileMap, cholesky_into, cholesky_tiles,
    inverse_local, solve_local, travel_bytes, trsm_local,
};
use sunzi::{Diag, Matrix, Op, Side, TrsmOptions, Uplo};

/// Replaces a symmetric positive definite A, distributed over the ranks, by its Cholesky factor as `sunzi_cholesky`
/// does. Collective.
///
/// Memory on each rank, in addition to the array: a copy of its part of A, its tiles of A and of the factor, messages
/// of about 8 MiB, and the bytes in the plan of the factorisation.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_cholesky(
    ctx: *const sunzi_context,
    uplo: i32,
    a: *const sunzi_dist_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        collective(
            ctx,
            Routine { name: "sunzi_mpi_cholesky", arguments: &["uplo", "a"] },
            |open| Ok((open.symmetric(uplo)?, open.matrix("a", a)?)),
            |call, team, (uplo, a), parts| cholesky_over(call, team, uplo, a.place(parts)?),
        )
    }
}

/// The factor of `a` in its place: in one triangle, or as a whole matrix. Collective.
///
/// # Safety
/// The header's rules.
pub(super) unsafe fn cholesky_over(
    call: &Call<'_>,
    team: &mut Team,
    uplo: Option<Uplo>,
    a: DistOperand,
) -> Outcome<()> {
    let ranks = Ranks::new(call, team);
    // SAFETY: by contract, for all below.
    unsafe {
        // As it is stored, so that room is left for a copy wherever it is stored through one.
        let (a, uplo) = as_lower(a, uplo);
        let bits = a.result_place(&ranks, uplo.map(triangle))?;
        let factor = new_factor(call, team, uplo, &a, bits)?;
        let from = Distribution::of_tiles(factor.map());
        let messages = travel_bytes(ranks.world, &from, &a.distribution, Some(Uplo::Lower), bits);
        let placed = a.placed_bytes(bits);
        call.count(|tally| match a.is_in_place() {
            true => tally.travel(messages, placed),
            false => tally.store_again(messages, placed),
        });
        a.give(&ranks, uplo.map(triangle), &factor)
    }
}

/// A symmetric matrix with its upper triangle as the transpose with the lower one.
pub(super) fn as_lower(a: DistOperand, uplo: Option<Uplo>) -> (DistOperand, Option<Uplo>) {
    if uplo == Some(Uplo::Upper) { (a.transposed(), Some(Uplo::Lower)) } else { (a, uplo) }
}

/// Solves a triangular system in place as `sunzi_trsm` does, on matrices that are distributed over the ranks.
/// Collective. T and B have distributions of their own.
///
/// Memory on each rank, in addition to the arrays: copies of its parts of T and B, unless they are in limbs; its tiles
/// of T; its share of the right-hand sides, twice; and the rows of T that are in transit.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_trsm(
    ctx: *const sunzi_context,
    side: i32,
    uplo: i32,
    trans: i32,
    diag: i32,
    alpha: *const sunzi_matrix,
    t: *const sunzi_dist_matrix,
    b: *const sunzi_dist_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        let arguments = &["side", "uplo", "trans", "diag", "alpha", "t", "b"];
        collective(
            ctx,
            Routine { name: "sunzi_mpi_trsm", arguments },
            |open| {
                let (side, uplo) = (open.choice("side", side_of(side))?, open.choice("uplo", uplo_of(uplo))?);
                let (op, diag) = (open.choice("trans", op_of("trans", trans))?, open.choice("diag", diag_of(diag))?);
                let alpha = open.scalar("alpha", alpha)?;
                Ok((TriangleUse { side, uplo, op, diag }, alpha, open.matrix("t", t)?, open.matrix("b", b)?))
            },
            |call, team, (sides, alpha, t, b), parts| {
                trsm_over(call, team, sides, alpha.as_ref(), t.place(parts)?, b.place(parts)?)
            },
        )
    }
}

/// `b := alpha op(t)^-1 b`, or from the right. Collective.
///
/// # Safety
/// The header's rules.
pub(super) unsafe fn trsm_over(
    call: &Call<'_>,
    team: &mut Team,
    kind: TriangleUse,
    alpha: Option<&Float>,
    t: DistOperand,
    b: DistOperand,
) -> Outcome<()> {
    let TriangleUse { side, uplo, op, diag } = kind;
    let ranks = Ranks::new(call, team);
    // X op(T) = B is op(T)^T X^T = B^T, and an upper triangle the transpose of a lower one.
    let (b, mut transposed) = if side == Side::Right { (b.transposed(), true) } else { (b, false) };
    let t = if uplo == Uplo::Upper { t.transposed() } else { t };
    transposed ^= (op == Op::Transpose) ^ (uplo == Uplo::Upper);
    let order = t.order()?;
    b.check_shape(order, b.shape().1)?;
    // SAFETY: by contract, for all below.
    unsafe {
        let bits = b.result_place(&ranks, None)?;
        if alpha.is_some_and(Float::is_zero) {
            // As in the BLAS, neither the triangle nor the right sides are looked at.
            let (rows, cols) = (b.local.rows(), b.local.cols());
            ranks.hold(Matrix::bytes_for(rows, cols, bits))?;
            let zeros = Matrix::zeros(rows, cols, bits).map_err(Failure::from);
            return together(ranks.world, zeros.and_then(|zeros| call.write(&b.local, Part::All, zeros)));
        }
        let part = if diag == Diag::Unit { Triangle::StrictLower } else { Triangle::Lower };
        let factor = t.take(&ranks, Some(part), tiles(&ranks, order))?;
        let op = if transposed { Op::Transpose } else { Op::NoTranspose };
        let options = TrsmOptions::new().op(op).diag(diag).accuracy(call.accuracy()).alpha(alpha);
        b.solve(&ranks, |ctx, right| trsm_local(ctx, team, &factor, right, bits, &options))
    }
}

/// Computes `B := A^-1 B` for a symmetric positive definite A as `sunzi_solve` does, on matrices that are distributed
/// over the ranks. Collective. A and B have distributions of their own. Memory as `sunzi_mpi_cholesky` and
/// `sunzi_mpi_trsm`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_solve(
    ctx: *const sunzi_context,
    uplo: i32,
    a: *const sunzi_dist_matrix,
    b: *const sunzi_dist_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        collective(
            ctx,
            Routine { name: "sunzi_mpi_solve", arguments: &["uplo", "a", "b"] },
            |open| Ok((open.symmetric(uplo)?, open.matrix("a", a)?, open.matrix("b", b)?)),
            |call, team, (uplo, a, b), parts| {
                let (a, b) = (a.place(parts)?, b.place(parts)?);
                b.check_shape(a.order()?, b.shape().1)?;
                let bits = b.result_place(&Ranks::new(call, team), None)?;
                let factor = new_factor(call, team, uplo, &a, bits)?;
                solve_factored(call, team, &factor, &b, bits)
            },
        )
    }
}

/// Computes `X := A^-1`, the whole matrix, for a symmetric positive definite A that is distributed over the ranks.
/// Collective. X has a distribution of its own and may be A itself.
///
/// The call is `sunzi_mpi_solve` with the identity as right-hand side, with its accuracy, bits, memory and errors: each
/// column is a solution, and X is symmetric only up to this accuracy. `sunzi_factor_inverse` computes the inverse as a
/// product and returns other bits.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_inverse(
    ctx: *const sunzi_context,
    uplo: i32,
    a: *const sunzi_dist_matrix,
    x: *const sunzi_dist_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        collective(
            ctx,
            Routine { name: "sunzi_mpi_inverse", arguments: &["uplo", "a", "x"] },
            |open| Ok((open.symmetric(uplo)?, open.matrix("a", a)?, open.matrix("x", x)?)),
            |call, team, (uplo, a, x), parts| {
                let (a, x) = (a.place(parts)?, x.place(parts)?);
                x.check_shape(a.order()?, a.order()?)?;
                let bits = x.result_place(&Ranks::new(call, team), None)?;
                let factor = new_factor(call, team, uplo, &a, bits)?;
                inverse_of(call, team, &factor, &x, bits)
            },
        )
    }
}

/// `x := (L L^T)^-1`. Collective.
///
/// # Safety
/// The header's rules.
pub(super) unsafe fn inverse_of(
    call: &Call<'_>,
    team: &Team,
    factor: &DistMatrix,
    x: &DistOperand,
    bits: u32,
) -> Outcome<()> {
    let ranks = Ranks::new(call, team);
    let found = call.done(inverse_local(&*ranks.context()?, team, factor, bits, call.accuracy()))?;
    // SAFETY: by contract.
    unsafe { x.give_solution(&ranks, found, 0) }
}

/// Computes `B := A^-1 B` as `sunzi_cholesky_solve` does, from a factor that `sunzi_mpi_cholesky` has left in one
/// triangle. Collective. Memory as `sunzi_mpi_trsm`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_cholesky_solve(
    ctx: *const sunzi_context,
    uplo: i32,
    factor: *const sunzi_dist_matrix,
    b: *const sunzi_dist_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        collective(
            ctx,
            Routine { name: "sunzi_mpi_cholesky_solve", arguments: &["uplo", "factor", "b"] },
            |open| {
                let uplo = open.choice("uplo", uplo_of(uplo))?;
                Ok((uplo, open.matrix("factor", factor)?, open.matrix("b", b)?))
            },
            |call, team, (uplo, l, b), parts| cholesky_solve_over(call, team, uplo, &l.place(parts)?, &b.place(parts)?),
        )
    }
}

/// `b := (L L^T)^-1 b` with the factor in a triangle. Collective.
///
/// # Safety
/// The header's rules.
pub(super) unsafe fn cholesky_solve_over(
    call: &Call<'_>,
    team: &mut Team,
    uplo: Uplo,
    l: &DistOperand,
    b: &DistOperand,
) -> Outcome<()> {
    let ranks = Ranks::new(call, team);
    b.check_shape(l.order()?, b.shape().1)?;
    // SAFETY: by contract, for all below.
    unsafe {
        let bits = b.result_place(&ranks, None)?;
        let factor = take_factor(&ranks, uplo, Triangle::Lower, l)?;
        solve_factored(call, team, &factor, b, bits)
    }
}

/// Computes `result := log det A` as `sunzi_log_det` does, from a factor that is distributed over the ranks.
/// Collective. Only the diagonal of the triangle `uplo` of `factor` is read. `result` is 1 x 1 on each rank, or null on
/// a rank that does not need the number.
///
/// Errors: `SUNZI_SINGULAR` on all ranks if the diagonal has a zero.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_log_det(
    ctx: *const sunzi_context,
    uplo: i32,
    factor: *const sunzi_dist_matrix,
    result: *const sunzi_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        collective(
            ctx,
            Routine { name: "sunzi_mpi_log_det", arguments: &["uplo", "factor", "result"] },
            |open| {
                let uplo = open.choice("uplo", uplo_of(uplo))?;
                Ok((uplo, open.matrix("factor", factor)?, NumberTarget::new(open.call, result)?))
            },
            |call, team, (uplo, l, target), parts| {
                let l = l.place(parts)?;
                l.order()?;
                let factor = take_factor(&Ranks::new(call, team), uplo, Triangle::Diagonal, &l)?;
                log_det_over(call, team, &factor, target)
            },
        )
    }
}

/// The place for a number on a rank, if it requests it.
pub(super) struct NumberTarget(Option<(Operand, u32)>);

impl NumberTarget {
    /// Checks it on this rank.
    ///
    /// # Safety
    /// The header's rules.
    pub unsafe fn new(call: &Call<'_>, result: *const sunzi_matrix) -> Outcome<NumberTarget> {
        if result.is_null() {
            return Ok(NumberTarget(None));
        }
        // SAFETY: by contract, for all below.
        unsafe {
            let operand = Operand::new("result", result)?;
            operand.check_shape(1, 1)?;
            let bits = call.result_bits(&operand, Part::All)?;
            Ok(NumberTarget(Some((operand, bits))))
        }
    }
}

/// Stores the logarithm of the determinant of `L L^T`. Collective.
///
/// # Safety
/// The header's rules.
pub(super) unsafe fn log_det_over(
    call: &Call<'_>,
    team: &Team,
    factor: &DistMatrix,
    target: NumberTarget,
) -> Outcome<()> {
    let pivots = sunzi::distributed::pivots(team, factor)?;
    check_pivots((&pivots).into())?; // the same ones on all ranks, whether they ask or not
    let stored = target.0.map_or(Ok(()), |(operand, bits)| {
        // SAFETY: by contract.
        unsafe { log_det_number(call, &operand, (&pivots).into(), bits) }
    });
    together(team.world(), stored)
}

/// Tiles for a triangle that is taken in.
pub(super) fn tiles(ranks: &Ranks<'_>, order: usize) -> TileMap {
    let (grid, triangle) = (RankGrid::for_ranks(ranks.world.size()), Some(Uplo::Lower));
    TileMap { rows: order, cols: order, tile_size: TILE, grid, triangle }
}

/// Rows of the tiles of triangles.
const TILE: usize = 64;

/// The factor, at a precision, of the matrix in one triangle or in both. Collective.
///
/// # Safety
/// The header's rules.
pub(super) unsafe fn new_factor(
    call: &Call<'_>,
    team: &Team,
    uplo: Option<Uplo>,
    a: &DistOperand,
    bits: u32,
) -> Outcome<DistMatrix> {
    let mut made = no_factor()?;
    // SAFETY: by contract.
    unsafe { factor(call, team, uplo, a, bits, &mut made)? };
    Ok(made)
}

/// The factor of a matrix without rows.
pub(super) fn no_factor() -> Outcome<DistMatrix> {
    let map = TileMap { rows: 0, cols: 0, tile_size: TILE, grid: RankGrid::for_ranks(1), triangle: Some(Uplo::Lower) };
    Ok(DistMatrix::zeros(map, 0, 2)?)
}

/// [`new_factor`] into `made`, in the memory that it has where it is such a factor; without entries where that fails.
/// Collective.
///
/// # Safety
/// The header's rules.
pub(super) unsafe fn factor(
    call: &Call<'_>,
    team: &Team,
    uplo: Option<Uplo>,
    a: &DistOperand,
    bits: u32,
    made: &mut DistMatrix,
) -> Outcome<()> {
    let (order, ranks) = (a.order()?, Ranks::new(call, team));
    let options = DistCholeskyOptions::new().accuracy(call.accuracy());
    let map = call.done(cholesky_tiles(&*ranks.context()?, team, order, bits, &options))?;
    let options = options.tile_rows(map.tile_size).grid(map.grid);
    // SAFETY: by contract, for all below.
    let taken = unsafe {
        match uplo {
            Some(Uplo::Lower) => a.take(&ranks, Some(Triangle::Lower), map)?,
            Some(Uplo::Upper) => a.transposed().take(&ranks, Some(Triangle::Lower), map)?,
            None => a.take(&ranks, None, TileMap { triangle: None, ..map })?,
        }
    };
    let done = call.done(cholesky_into(&*ranks.context()?, team, &taken, bits, &options, made))?;
    call.release_bytes(taken.bytes());
    ranks.hold(made.bytes())?;
    let (planned, made_bytes) = (done.planned_bytes, made.bytes());
    call.count(|tally| {
        tally.at_most(planned);
        tally.release(taken.bytes());
        tally.hold(made_bytes);
        tally.keep(planned.saturating_sub(made_bytes));
    });
    call.note_accuracy(done.report.accuracy, done.report.range_bits);
    call.note(|report| report.precision_bits = bits.into());
    Ok(())
}

/// The factor in a triangle, in tiles, or only its diagonal. Collective.
///
/// # Safety
/// The header's rules.
unsafe fn take_factor(ranks: &Ranks<'_>, uplo: Uplo, part: Triangle, l: &DistOperand) -> Outcome<DistMatrix> {
    let map = tiles(ranks, l.order()?);
    let l = if uplo == Uplo::Upper { &l.transposed() } else { l };
    // SAFETY: by contract.
    unsafe { l.take(ranks, Some(part), map) }
}

/// `b := (L L^T)^-1 b`. Collective.
///
/// # Safety
/// The header's rules.
pub(super) unsafe fn solve_factored(
    call: &Call<'_>,
    team: &Team,
    factor: &DistMatrix,
    b: &DistOperand,
    bits: u32,
) -> Outcome<()> {
    let ranks = Ranks::new(call, team);
    // SAFETY: by contract, for all below.
    unsafe { b.solve(&ranks, |ctx, right| solve_local(ctx, team, factor, right, bits, call.accuracy())) }
}
