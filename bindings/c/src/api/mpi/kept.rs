//! A factor over ranks that is kept: factored once, solved with many times, without its numbers being taken in again.

use super::factors::{NumberTarget, as_lower, factor, inverse_of, log_det_over, new_factor, no_factor, solve_factored};
use super::matrix::{DistOperand, triangle};
use super::opening::{Opening, Routine};
use super::{Ranks, collective};
use crate::api::factor::asked_bits;
use crate::api::uplo_of;
use crate::context::sunzi_context;
use crate::failure::{Failure, Outcome};
use crate::types::{sunzi_dist_matrix, sunzi_matrix, sunzi_status};
use std::sync::atomic::{AtomicU64, Ordering};
use sunzi::Uplo;
use sunzi::comm::Reduction;
use sunzi::distributed::{DistMatrix, Team};

/// A Cholesky factor that is distributed over the ranks of a communicator: the tiles of this rank.
/// `sunzi_mpi_factor_new` makes it, `sunzi_mpi_factor_renew` replaces it by the factor of another matrix,
/// `sunzi_mpi_factor_free` frees it. It may be used with any context that has the same ranks in the same order.
pub struct sunzi_mpi_factor {
    tiles: DistMatrix,
    /// Whether a renewal failed, and none since has not.
    is_lost: bool,
    /// A number that no other factor of these ranks has.
    number: u64,
}

/// A number for a factor, the same on all ranks and larger than any that one of them has given before. Collective.
fn next_number(team: &Team) -> Outcome<u64> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut number = [NEXT.load(Ordering::Relaxed)];
    team.world().all_reduce(Reduction::Max, &mut number)?;
    NEXT.fetch_max(number[0] + 1, Ordering::Relaxed);
    Ok(number[0])
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
            |call, team, (uplo, asked, a), parts| {
                let a = a.place(parts)?;
                let bits = bits_of(&Ranks::new(call, team), &a, uplo, asked)?;
                let tiles = new_factor(call, team, uplo, &a, bits)?;
                let number = next_number(team)?;
                factor.write(Box::into_raw(Box::new(sunzi_mpi_factor { tiles, is_lost: false, number })));
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
                described(open, factor)?;
                Ok((uplo, asked, a, factor))
            },
            |call, team, (uplo, asked, a, factor), parts| {
                let a = a.place(parts)?;
                let bits = bits_of(&Ranks::new(call, team), &a, uplo, asked)?;
                let number = next_number(team)?;
                a.order()?;
                let widest = u64::from(sunzi::MAXIMUM_PRECISION_BITS);
                call.done(match bits {
                    2..=sunzi::MAXIMUM_PRECISION_BITS => Ok(()),
                    _ => Err(sunzi::Error::Precision { precision_bits: bits.into(), maximum_bits: widest }),
                })?;
                let kept = &mut *factor;
                kept.is_lost = true;
                if let Err(failure) = self::factor(call, team, uplo, &a, bits, &mut kept.tiles) {
                    // The old one is still there where A could not be taken in.
                    kept.tiles = no_factor()?;
                    return Err(failure);
                }
                (kept.is_lost, kept.number) = (false, number);
                Ok(())
            },
        )
    }
}

/// The bits of a factor of `a` where `asked` are requested: with 0 the most that its entries have, over all ranks.
/// Collective.
///
/// # Safety
/// The header's rules.
unsafe fn bits_of(ranks: &Ranks<'_>, a: &DistOperand, uplo: Option<Uplo>, asked: u32) -> Outcome<u32> {
    match asked {
        // SAFETY: by contract.
        0 => unsafe { a.result_bits(ranks, uplo.map(triangle)) },
        asked => Ok(asked),
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
    unsafe { factor.as_ref() }.map_or(-1, |factor| factor.tiles.map().rows as i64)
}

/// Returns the precision of the factor in bits; -1 for a null pointer. Not collective.
///
/// # Safety
/// `factor` must be null or a live factor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_factor_precision_bits(factor: *const sunzi_mpi_factor) -> i64 {
    // SAFETY: null or live by contract.
    unsafe { factor.as_ref() }.map_or(-1, |factor| factor.tiles.precision_bits().into())
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
            |call, team, (tiles, b), parts| {
                let b = b.place(parts)?;
                b.check_shape(tiles.map().rows, b.shape().1)?;
                let bits = b.result_place(&Ranks::new(call, team), None)?;
                solve_factored(call, team, tiles, &b, bits)
            },
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
            |call, team, (tiles, x), parts| {
                let x = x.place(parts)?;
                x.check_shape(tiles.map().rows, tiles.map().rows)?;
                let bits = x.result_place(&Ranks::new(call, team), None)?;
                inverse_of(call, team, tiles, &x, bits)
            },
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
            |call, team, (tiles, target), _| log_det_over(call, team, tiles, target),
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
                let tiles = kept(open, factor)?;
                Ok((tiles, open.choice("uplo", uplo_of(uplo))?, open.matrix("a", a)?))
            },
            |call, team, (tiles, uplo, a), parts| {
                let (ranks, a) = (Ranks::new(call, team), a.place(parts)?);
                a.check_shape(tiles.map().rows, tiles.map().rows)?;
                let (a, uplo) = as_lower(a, Some(uplo));
                a.result_place(&ranks, uplo.map(triangle))?; // all of them are initialised
                a.give(&ranks, uplo.map(triangle), tiles)
            },
        )
    }
}

/// The tiles of the factor, which must be the same one on all ranks, and one that exists.
///
/// # Safety
/// `factor` is null or live, for as long as the answer is used.
unsafe fn kept<'f>(open: &mut Opening<'_>, factor: *const sunzi_mpi_factor) -> Outcome<&'f DistMatrix> {
    // SAFETY: the caller's promise.
    let factor = unsafe { described(open, factor) }?;
    let message = "the last renewal of the factor failed; renew it again";
    let lost = || Failure::of(sunzi_status::SUNZI_INVALID_ARGUMENT, "factor", message);
    if factor.is_lost { Err(lost()) } else { Ok(&factor.tiles) }
}

/// The factor, which must be the same one on all ranks.
///
/// # Safety
/// `factor` is null or live, for as long as the answer is used.
unsafe fn described<'f>(open: &mut Opening<'_>, factor: *const sunzi_mpi_factor) -> Outcome<&'f sunzi_mpi_factor> {
    // SAFETY: null or live by contract.
    let factor = unsafe { factor.as_ref() }.ok_or_else(|| Failure::null("factor"))?;
    let (map, bits) = (factor.tiles.map(), factor.tiles.precision_bits());
    let (rows, grid) = (map.rows, map.grid);
    open.say("factor", "its matrix has", format!("{rows} rows"));
    open.say("factor", "it has", format!("{bits} bits"));
    let tiles = format!("tiles of {} on {} x {} ranks", map.tile_size, grid.rows, grid.cols);
    open.say("factor", "it lies in", tiles);
    open.say("factor", "it is the factor number", factor.number);
    Ok(factor)
}
