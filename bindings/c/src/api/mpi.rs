//! Calls that all ranks of a communicator make together.

use crate::api::{part_of, scalar, symmetric_of};
use crate::array::{Operand, Part};
use crate::call::{Call, enter};
use crate::context::sunzi_context;
use crate::failure::{Failure, Outcome};
use crate::types::{sunzi_matrix, sunzi_status};

/// `C := alpha * A^T A`, one triangle or both, for a matrix A whose rows lie on the ranks of a communicator.
/// Collective: all ranks of the context's communicator call it, with the same `root`, `uplo`, `precision_bits` and
/// `alpha`.
///
/// `rows` are this rank's rows of A, k_i x n; a rank may have none (k_i = 0). C, n x n, is looked at on rank `root`
/// alone and may be null elsewhere. The result has `precision_bits` bits before each entry is rounded to its own
/// precision; its bits are those of `sunzi_syrk` on all the rows, for any distribution. `alpha` is a matrix of one
/// entry; null is 1. What fails on one rank fails on all, as `SUNZI_COMMUNICATION` where the cause is another rank's.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_syrk(
    ctx: *const sunzi_context,
    root: i64,
    uplo: i32,
    precision_bits: i64,
    alpha: *const sunzi_matrix,
    rows: *const sunzi_matrix,
    c: *const sunzi_matrix,
) -> sunzi_status {
    let asked = Asked { root, uplo, precision_bits, alpha, rows, c };
    // SAFETY: by contract.
    unsafe { enter(ctx, |call| mpi_syrk(call, &asked)) }
}

/// The ranks of a context's communicator and this one's number, from 0. `SUNZI_UNAVAILABLE` for a context without one.
/// Null pointers are passed over.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_size(ctx: *const sunzi_context, rank: *mut i64, size: *mut i64) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            let own = mpi_numbers(call)?;
            for (target, number) in [(rank, own.0), (size, own.1)] {
                if !target.is_null() {
                    target.write(number as i64);
                }
            }
            Ok(())
        })
    }
}

/// The arguments of a call.
#[cfg_attr(not(feature = "mpi"), allow(dead_code))]
struct Asked {
    root: i64,
    uplo: i32,
    precision_bits: i64,
    alpha: *const sunzi_matrix,
    rows: *const sunzi_matrix,
    c: *const sunzi_matrix,
}

fn no_team() -> Failure {
    let message = "the context has no communicator: make it with sunzi_context_from_mpi";
    Failure::new(sunzi_status::SUNZI_UNAVAILABLE, message)
}

#[cfg(not(feature = "mpi"))]
fn mpi_numbers(_call: &Call<'_>) -> Outcome<(usize, usize)> {
    Err(no_team())
}

#[cfg(feature = "mpi")]
fn mpi_numbers(call: &Call<'_>) -> Outcome<(usize, usize)> {
    let team = call.owner().team();
    team.as_ref().map(|team| (team.rank(), team.size())).ok_or_else(no_team)
}

/// # Safety
/// The header's rules.
#[cfg(not(feature = "mpi"))]
unsafe fn mpi_syrk(call: &Call<'_>, asked: &Asked) -> Outcome<()> {
    // SAFETY: by contract. Wrong arguments come first, as where there is a communicator.
    unsafe { Ready::new(call, asked, (0, 1)) }?;
    Err(no_team())
}

/// # Safety
/// The header's rules.
#[cfg(feature = "mpi")]
unsafe fn mpi_syrk(call: &Call<'_>, asked: &Asked) -> Outcome<()> {
    use sunzi::distributed::{DistOptions, syrk};
    let mut held = call.owner().team();
    let team = held.as_mut().ok_or_else(no_team)?;
    // SAFETY: by contract.
    let ready = unsafe { Ready::new(call, asked, (team.rank(), team.size())) };
    let Ready { uplo, bits, alpha, rows, result } = together(team.world(), ready)?;
    let options = DistOptions::new().uplo(uplo.unwrap_or_default()).alpha(alpha.as_ref());
    let done = syrk(&call.context(), team, &[rows.view()], bits, &options);
    let outcome = call.done(done)?;
    call.note(|report| report.precision_bits = bits.into());
    let whole = outcome.result.gather(team.world(), asked.root as usize)?;
    call.keep_input(rows);
    let stored = match (whole, result) {
        (Some(matrix), Some(c)) => {
            let fits = c.check_shape(matrix.rows(), matrix.cols());
            // SAFETY: by contract.
            fits.and_then(|()| unsafe { call.write(&c, part_of(uplo), matrix) })
        }
        _ => Ok(()),
    };
    together(team.world(), stored)
}

/// What a step gave on this rank, where it went well on all. Collective: a rank that fails alone must not leave the
/// others in the call; its own failure is its own answer.
#[cfg(feature = "mpi")]
pub(crate) fn together<T>(world: &dyn sunzi::comm::Transport, own: Outcome<T>) -> Outcome<T> {
    let told = own.as_ref().map(|_| ()).map_err(|failure| sunzi::Error::InvalidArgument(failure.message.clone()));
    let agreed = sunzi::comm::agree(world, told);
    let own = own?;
    agreed?;
    Ok(own)
}

/// A call whose arguments make sense.
#[cfg_attr(not(feature = "mpi"), allow(dead_code))]
struct Ready<'a> {
    uplo: Option<sunzi::Uplo>,
    bits: u32,
    alpha: Option<rug::Float>,
    rows: crate::call::Input<'a>,
    /// Where the result goes, on the root.
    result: Option<Operand>,
}

impl Ready<'_> {
    /// # Safety
    /// The header's rules.
    unsafe fn new(call: &Call<'_>, asked: &Asked, (rank, size): (usize, usize)) -> Outcome<Self> {
        let uplo = symmetric_of(asked.uplo)?;
        let root = usize::try_from(asked.root).ok().filter(|&root| root < size);
        let root = root.ok_or_else(|| crate::array::invalid("root", format!("{} of {size} ranks", asked.root)))?;
        let bits = u32::try_from(asked.precision_bits).map_err(|_| {
            Failure::of(sunzi_status::SUNZI_PRECISION, "precision_bits", format!("{} bits", asked.precision_bits))
        })?;
        // SAFETY: by contract, for all below.
        unsafe {
            let own = Operand::new("rows", asked.rows)?;
            let result = if rank == root { Some(Operand::new("c", asked.c)?) } else { None };
            if let Some(c) = &result {
                c.check_shape(own.cols(), own.cols())?;
                call.result_bits(c, part_of(uplo))?; // all of them are initialised
            }
            let alpha = scalar(call, "alpha", asked.alpha)?;
            Ok(Ready { uplo, bits, alpha, rows: call.read(&own, Part::All)?, result })
        }
    }
}
