//! Cholesky factors, triangular solves and solves over ranks.

use super::collective;
use crate::api::cholesky::log_det_number;
use crate::api::{diag_of, op_of, side_of, uplo_of};
use crate::array::{Operand, Part};
use crate::call::Call;
use crate::context::sunzi_context;
use crate::failure::Outcome;
use crate::types::{sunzi_dist_matrix, sunzi_matrix, sunzi_status};
use sunzi::MatrixView;
use sunzi::advanced::calls::{
    Routine, TriangularKind, cholesky_over, cholesky_solve_over, inverse_over, log_det_over, solve_over, trsm_over,
};

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
            |call, team, (uplo, a), shapes| cholesky_over(call, team, uplo, a.place(shapes)?),
        )
    }
}

/// Solves a triangular system in place as `sunzi_trsm` does, on matrices that are distributed over the ranks.
/// Collective. T and B each have their own distribution.
///
/// Memory on each rank, in addition to the arrays: copies of its parts of T and B, unless they are in limbs; its tiles
/// of T; two copies of its share of the right-hand sides; and the rows of T that are in transit.
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
                let kind = TriangularKind { side, uplo, op, diag };
                Ok((kind, alpha, open.matrix("t", t)?, open.matrix("b", b)?))
            },
            |call, team, (kind, alpha, t, b), shapes| {
                trsm_over(call, team, kind, alpha.as_ref(), t.place(shapes)?, b.place(shapes)?)
            },
        )
    }
}

/// Computes `B := A^-1 B` for a symmetric positive definite A as `sunzi_solve` does, on matrices that are distributed
/// over the ranks. Collective. A and B each have their own distribution. Memory as `sunzi_mpi_cholesky` and
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
            |call, team, (uplo, a, b), shapes| solve_over(call, team, uplo, a.place(shapes)?, b.place(shapes)?),
        )
    }
}

/// Computes `X := A^-1`, the whole matrix, for a symmetric positive definite A that is distributed over the ranks.
/// Collective. X has its own distribution and may be A itself.
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
            |call, team, (uplo, a, x), shapes| inverse_over(call, team, uplo, a.place(shapes)?, x.place(shapes)?),
        )
    }
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
            |call, team, (uplo, l, b), shapes| {
                cholesky_solve_over(call, team, uplo, l.place(shapes)?, b.place(shapes)?)
            },
        )
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
            |call, team, (uplo, l, target), shapes| {
                log_det_over(call, team, uplo, l.place(shapes)?, |pivots| target.store(call, pivots))
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
    /// Stores the logarithm of the determinant of `L L^T` from the pivots of L.
    ///
    /// # Safety
    /// The header's rules.
    pub unsafe fn store(self, call: &Call<'_>, pivots: MatrixView<'_>) -> Outcome<()> {
        let Some((operand, bits)) = self.0 else { return Ok(()) };
        // SAFETY: by contract.
        unsafe { log_det_number(call, &operand, pivots, bits) }
    }
}
