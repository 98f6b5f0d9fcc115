//! SYRK and GEMM over ranks.

use super::collective;
use crate::api::op_of;
use crate::context::sunzi_context;
use crate::types::{sunzi_dist_matrix, sunzi_matrix, sunzi_status};
use sunzi::advanced::calls::{Routine, gemm_over, syrk_over};

/// Computes `C := alpha A A^T + beta C` or `C := alpha A^T A + beta C` as `sunzi_syrk` does, on matrices that are
/// distributed over the ranks. Collective.
///
/// Arguments: as in `sunzi_syrk`; A and C each have their own distribution.
///
/// Memory on each rank, in addition to the arrays: a copy of its part of A, unless A is in limbs; an even share of the
/// rows of A^T (of A with `SUNZI_TRANS`), unless the ranks hold whole rows of it in about equal numbers; its tiles of
/// C; a copy of its part of C, unless C is in limbs; messages of about 8 MiB; and the bytes in the plan of the product.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_syrk(
    ctx: *const sunzi_context,
    uplo: i32,
    trans: i32,
    alpha: *const sunzi_matrix,
    a: *const sunzi_dist_matrix,
    beta: *const sunzi_matrix,
    c: *const sunzi_dist_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        let arguments = &["uplo", "trans", "alpha", "a", "beta", "c"];
        collective(
            ctx,
            Routine { name: "sunzi_mpi_syrk", arguments },
            |open| {
                let (uplo, op) = (open.symmetric(uplo)?, open.choice("trans", op_of("trans", trans))?);
                Ok((uplo, op, open.terms(alpha, beta)?, open.matrix("a", a)?, open.matrix("c", c)?))
            },
            |call, team, (uplo, op, terms, a, c), shapes| {
                let (a, mut c) = (a.place(shapes)?, c.place(shapes)?);
                syrk_over(call, team, uplo, op, terms.over_ranks(), a, &mut c)
            },
        )
    }
}

/// Computes `C := alpha op(A) op(B) + beta C` as `sunzi_gemm` does, on matrices that are distributed over the ranks.
/// Collective. Each matrix has its own distribution. Memory as `sunzi_mpi_syrk`.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_gemm(
    ctx: *const sunzi_context,
    trans_a: i32,
    trans_b: i32,
    alpha: *const sunzi_matrix,
    a: *const sunzi_dist_matrix,
    b: *const sunzi_dist_matrix,
    beta: *const sunzi_matrix,
    c: *const sunzi_dist_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        let arguments = &["trans_a", "trans_b", "alpha", "a", "b", "beta", "c"];
        collective(
            ctx,
            Routine { name: "sunzi_mpi_gemm", arguments },
            |open| {
                let of_a = open.choice("trans_a", op_of("trans_a", trans_a))?;
                let ops = [of_a, open.choice("trans_b", op_of("trans_b", trans_b))?];
                let terms = open.terms(alpha, beta)?;
                Ok((ops, terms, open.matrix("a", a)?, open.matrix("b", b)?, open.matrix("c", c)?))
            },
            |call, team, (ops, terms, a, b, c), shapes| {
                let (a, b, mut c) = (a.place(shapes)?, b.place(shapes)?, c.place(shapes)?);
                gemm_over(call, team, ops, terms.over_ranks(), a, b, &mut c)
            },
        )
    }
}
