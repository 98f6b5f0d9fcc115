//! Calls that all ranks of a communicator make together, on matrices as the ranks have them.
//!
//! Each checks its arguments on all ranks and calls the verb of `sunzi::advanced::calls`, which takes its operands into
//! the library's tiles and stores this rank's part of the result; no rank has a whole matrix. An error of one rank is
//! one of all.

// Those with functions of the header, in its order.
mod matrix;
mod products;

mod factors;
mod kept;
mod plans;
mod twins;

mod opening;

pub use factors::*;
pub use kept::*;
pub use matrix::{sunzi_dist_elemental, sunzi_dist_rows, sunzi_dist_scalapack};
pub use plans::*;
pub use products::*;
pub use twins::*;

use crate::array::Operand;
use crate::call::{Call, catch, enter};
use crate::context::sunzi_context;
use crate::failure::{Failure, Outcome};
use crate::types::sunzi_status;
use opening::Opening;
use sunzi::advanced::calls::{Caller, DescribedMatrix, PlacedMatrix, RankShapes, Routine};
use sunzi::distributed::Team;

/// A matrix over ranks in the caller's memory.
pub(crate) type DistOperand = PlacedMatrix<Operand>;

/// A matrix over ranks before the ranks have exchanged the sizes of their parts.
type DistArgument = DescribedMatrix<Operand, Failure>;

/// Stores the number of this rank, counted from 0, and the number of ranks of the context's communicator. Null pointers
/// are ignored. Not collective. Returns `SUNZI_UNAVAILABLE` for a context without a communicator.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_size(ctx: *const sunzi_context, rank: *mut i64, size: *mut i64) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        enter(ctx, |call| {
            with_team(call, |team| {
                for (target, number) in [(rank, team.rank()), (size, team.size())] {
                    if !target.is_null() {
                        target.write(number as i64);
                    }
                }
                Ok(())
            })
        })
    }
}

/// One call of all ranks: `check` looks at the arguments only on this rank, and `work` goes on where they are right and
/// the same on all ranks. Collective.
///
/// # Safety
/// As [`enter`].
unsafe fn collective<T>(
    ctx: *const sunzi_context,
    routine: Routine<'_>,
    check: impl FnOnce(&mut Opening<'_>) -> Outcome<T>,
    work: impl FnOnce(&Call<'_>, &mut Team, T, &RankShapes) -> Outcome<()>,
) -> sunzi_status {
    let whole = |call: &Call<'_>| {
        with_team(call, |team| {
            let (checked, shapes) = opened(call, team, routine, check)?;
            call.account().count_ranks(team.size());
            work(call, team, checked, &shapes)?;
            call.note_steps();
            Ok(())
        })
    };
    // SAFETY: by contract.
    unsafe { enter(ctx, whole) }
}

/// The result of `check`, where the arguments are right and the same on all ranks. Collective.
fn opened<T>(
    call: &Call<'_>,
    team: &Team,
    routine: Routine<'_>,
    check: impl FnOnce(&mut Opening<'_>) -> Outcome<T>,
) -> Outcome<(T, RankShapes)> {
    call.owner().check_process()?;
    let mut opening = Opening::new(call, team.world());
    // A defect that shows on one rank must not leave the others waiting.
    let own = catch(|| check(&mut opening));
    let (found, shapes) = opening.agreed(routine, own)?;
    call.account().note_limited(shapes.limited());
    Ok((found, shapes))
}

/// The result of `work` with the ranks of a call's context.
fn with_team<T>(call: &Call<'_>, work: impl FnOnce(&mut Team) -> Outcome<T>) -> Outcome<T> {
    let mut held = call.owner().team();
    let message = "the context has no communicator; make it with sunzi_context_from_mpi";
    work(held.as_mut().ok_or_else(|| Failure::new(sunzi_status::SUNZI_UNAVAILABLE, message))?)
}
