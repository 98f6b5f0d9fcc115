//! A kept factor over ranks: factored once and used for many solves, so that its numbers are not read again.

use super::collective;
use super::factors::NumberTarget;
use super::opening::Opening;
use crate::api::factor::asked_bits;
use crate::api::uplo_of;
use crate::call::Call;
use crate::context::sunzi_context;
use crate::failure::{Failure, Outcome};
use crate::types::{sunzi_dist_matrix, sunzi_matrix, sunzi_status};
use sunzi::advanced::calls::{KeptFactor, Routine};

/// A Cholesky factor that is distributed over the ranks of a communicator: the tiles of this rank.
/// `sunzi_mpi_factor_new` makes it, `sunzi_mpi_factor_renew` replaces it by the factor of another matrix,
/// `sunzi_mpi_factor_free` frees it. It may be used with any context that has the same ranks in the same order.
pub struct sunzi_mpi_factor {
    kept: KeptFactor,
}

/// Factors a symmetric positive definite A that is distributed over the ranks, keeps the factor in the library's
/// memory, in tiles over the ranks, and stores a handle in `*factor` (null after a failure). Collective. A is not
/// changed.
///
/// Arguments: as in `sunzi_factor_new`. `precision_bits` must be the same on all ranks; 0 selects the largest precision
/// of the entries that are read, over all ranks.
///
/// Memory: as `sunzi_mpi_cholesky`. The tiles of this rank stay until the factor is freed; the memory limit does not
/// cover them.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_factor_new(
    ctx: *const sunzi_context,
    uplo: i32,
    precision_bits: i64,
    a: *const sunzi_dist_matrix,
    factor: *mut *mut sunzi_mpi_factor,
) -> sunzi_status {
    if !factor.is_null() {
        // SAFETY: it can be written by contract; it need not be initialised.
        unsafe { factor.write(std::ptr::null_mut()) };
    }
    // SAFETY: by contract, for all below.
    unsafe {
        collective(
            ctx,
            Routine { name: "sunzi_mpi_factor_new", arguments: &["uplo", "precision_bits", "a", "factor"] },
            |open| {
                let uplo = open.symmetric(uplo)?;
                let asked = open.choice("precision_bits", asked_bits(precision_bits))?;
                let a = open.matrix("a", a)?;
                if factor.is_null() { Err(Failure::null("factor")) } else { Ok((uplo, asked, a)) }
            },
            |call, team, (uplo, asked, a), shapes| {
                let kept = KeptFactor::new(call, team, uplo, asked, a.place(shapes)?)?;
                factor.write(Box::into_raw(Box::new(sunzi_mpi_factor { kept })));
                Ok(())
            },
        )
    }
}

/// Replaces a kept factor by the factor of another matrix A. Collective. Arguments, bits and errors as
/// `sunzi_mpi_factor_new`. If order and precision are unchanged and there is no memory limit, the new factor is written
/// in the memory of the old one; repeated factorisations then save the time for fresh memory.
///
/// After a refused argument the factor is unchanged. After a later failure (the matrix is not symmetric or not positive
/// definite, or memory is missing) the factor is lost: it has no rows, and all calls refuse it until it is renewed. No
/// other call may use the factor at the same time.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_factor_renew(
    ctx: *const sunzi_context,
    uplo: i32,
    precision_bits: i64,
    a: *const sunzi_dist_matrix,
    factor: *mut sunzi_mpi_factor,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        collective(
            ctx,
            Routine { name: "sunzi_mpi_factor_renew", arguments: &["uplo", "precision_bits", "a", "factor"] },
            |open| {
                let uplo = open.symmetric(uplo)?;
                let asked = open.choice("precision_bits", asked_bits(precision_bits))?;
                let a = open.matrix("a", a)?;
                live(factor)?.describe(&mut open.shared);
                Ok((uplo, asked, a, factor))
            },
            |call, team, (uplo, asked, a, factor), shapes| {
                let factor = &mut *factor;
                factor.kept.renew(call, team, uplo, asked, a.place(shapes)?)
            },
        )
    }
}

/// Frees this rank's tiles of a factor; a null pointer is ignored. Not collective; allowed after `MPI_Finalize`.
///
/// # Safety
/// `factor` must be null or a result of `sunzi_mpi_factor_new`, and must not be used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_factor_free(factor: *mut sunzi_mpi_factor) {
    if !factor.is_null() {
        // SAFETY: made by `Box::into_raw`, and not freed before, by contract.
        drop(unsafe { Box::from_raw(factor) });
    }
}

/// Returns the number of rows of the factored matrix; -1 for a null pointer. Not collective.
///
/// # Safety
/// `factor` must be null or a live factor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_factor_order(factor: *const sunzi_mpi_factor) -> i64 {
    // SAFETY: null or live by contract.
    unsafe { factor.as_ref() }.map_or(-1, |factor| factor.kept.order() as i64)
}

/// Returns the precision of the factor in bits; -1 for a null pointer. Not collective.
///
/// # Safety
/// `factor` must be null or a live factor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_factor_precision_bits(factor: *const sunzi_mpi_factor) -> i64 {
    // SAFETY: null or live by contract.
    unsafe { factor.as_ref() }.map_or(-1, |factor| factor.kept.precision_bits().into())
}

/// Computes `B := A^-1 B` with a kept factor of A, for B in any distribution. Collective. Accuracy, memory and errors
/// as `sunzi_mpi_cholesky_solve`, without the memory for the factor.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_factor_solve(
    ctx: *const sunzi_context,
    factor: *const sunzi_mpi_factor,
    b: *const sunzi_dist_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        collective(
            ctx,
            Routine { name: "sunzi_mpi_factor_solve", arguments: &["factor", "b"] },
            |open| Ok((kept(open, factor)?, open.matrix("b", b)?)),
            |call, team, (factor, b), shapes| factor.solve(call, team, b.place(shapes)?),
        )
    }
}

/// Computes `X := A^-1` as `sunzi_mpi_inverse` does, from a kept factor of A. Collective.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_factor_inverse(
    ctx: *const sunzi_context,
    factor: *const sunzi_mpi_factor,
    x: *const sunzi_dist_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        collective(
            ctx,
            Routine { name: "sunzi_mpi_factor_inverse", arguments: &["factor", "x"] },
            |open| Ok((kept(open, factor)?, open.matrix("x", x)?)),
            |call, team, (factor, x), shapes| factor.inverse(call, team, x.place(shapes)?),
        )
    }
}

/// Computes `result := log det A` as `sunzi_mpi_log_det` does, from a kept factor of A. Collective. `result` is null on
/// a rank that does not need the number.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_factor_log_det(
    ctx: *const sunzi_context,
    factor: *const sunzi_mpi_factor,
    result: *const sunzi_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        collective(
            ctx,
            Routine { name: "sunzi_mpi_factor_log_det", arguments: &["factor", "result"] },
            |open| Ok((kept(open, factor)?, NumberTarget::new(open.call, result)?)),
            |call, team, (factor, target), _| factor.log_det::<Call<'_>>(team, |pivots| target.store(call, pivots)),
        )
    }
}

/// Stores a kept factor in one triangle of the n x n matrix `a`: L in the lower triangle (`SUNZI_LOWER`) or `L^T` in
/// the upper triangle (`SUNZI_UPPER`). Collective. The other triangle is not written.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_factor_get(
    ctx: *const sunzi_context,
    factor: *const sunzi_mpi_factor,
    uplo: i32,
    a: *const sunzi_dist_matrix,
) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        collective(
            ctx,
            Routine { name: "sunzi_mpi_factor_get", arguments: &["factor", "uplo", "a"] },
            |open| {
                let factor = kept(open, factor)?;
                Ok((factor, open.choice("uplo", uplo_of(uplo))?, open.matrix("a", a)?))
            },
            |call, team, (factor, uplo, a), shapes| factor.store(call, team, uplo, a.place(shapes)?),
        )
    }
}

/// The factor, which must be the same one on all ranks, and one that exists.
///
/// # Safety
/// `factor` is null or live, for as long as the answer is used.
unsafe fn kept<'f>(open: &mut Opening<'_>, factor: *const sunzi_mpi_factor) -> Outcome<&'f KeptFactor> {
    // SAFETY: the caller's promise.
    unsafe { live(factor) }?.usable(&mut open.shared)
}

/// The factor behind a pointer.
///
/// # Safety
/// `factor` is null or live, for as long as the answer is used.
unsafe fn live<'f>(factor: *const sunzi_mpi_factor) -> Outcome<&'f KeptFactor> {
    // SAFETY: null or live by contract.
    let factor = unsafe { factor.as_ref() }.ok_or_else(|| Failure::null("factor"))?;
    Ok(&factor.kept)
}
