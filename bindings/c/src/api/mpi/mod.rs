//! Calls that all ranks of a communicator make together, on matrices as the ranks have them.
//!
//! Each takes its operands into the library's tiles, calls the verb over ranks, and stores this rank's part of the
//! result; no rank has a whole matrix. An error of one rank is one of all.

// Those with functions of the header, in its order.
mod matrix;
mod products;

mod factors;
mod kept;
mod plans;
mod twins;

mod opening;
mod parts;
mod plan_steps;
mod rows;

pub use factors::*;
pub use kept::*;
pub use matrix::{sunzi_dist_elemental, sunzi_dist_rows, sunzi_dist_scalapack};
pub use plans::*;
pub use products::*;
pub use twins::*;

use crate::call::{Call, Input, catch, enter};
use crate::context::sunzi_context;
use crate::failure::{Failure, Outcome};
use crate::types::sunzi_status;
use opening::{Opening, Routine};
use parts::Parts;
use std::borrow::Cow;
use sunzi::Context;
use sunzi::comm::{Reduction, Transport};
use sunzi::distributed::Team;

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
    work: impl FnOnce(&Call<'_>, &mut Team, T, &Parts) -> Outcome<()>,
) -> sunzi_status {
    let whole = |call: &Call<'_>| {
        with_team(call, |team| {
            let (found, parts) = opened(call, team, routine, check)?;
            call.count_ranks(team.size());
            work(call, team, found, &parts)?;
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
) -> Outcome<(T, Parts)> {
    call.owner().check_process()?;
    let mut opening = Opening::new(call, team.world());
    // A defect that shows on one rank must not leave the others waiting.
    let own = catch(|| check(&mut opening));
    let (found, parts) = opening.agreed(routine, own)?;
    call.note_limited(parts.limited());
    Ok((found, parts))
}

/// The result of `work` with the ranks of a call's context.
fn with_team<T>(call: &Call<'_>, work: impl FnOnce(&mut Team) -> Outcome<T>) -> Outcome<T> {
    let mut held = call.owner().team();
    let message = "the context has no communicator; make it with sunzi_context_from_mpi";
    work(held.as_mut().ok_or_else(|| Failure::new(sunzi_status::SUNZI_UNAVAILABLE, message))?)
}

/// A call with the ranks that make it.
#[derive(Clone, Copy)]
pub(crate) struct Ranks<'a> {
    call: &'a Call<'a>,
    world: &'a dyn Transport,
    node: &'a dyn Transport,
}

impl<'a> Ranks<'a> {
    fn new(call: &'a Call<'a>, team: &'a Team) -> Ranks<'a> {
        Ranks { call, world: team.world(), node: team.node() }
    }

    /// The context, with the part of the memory limit that all ranks of the node do not hold. Collective.
    fn context(&self) -> Outcome<Cow<'a, Context>> {
        self.settle()?;
        Ok(self.call.context())
    }

    /// Counts the bytes that the node's ranks hold, where any rank has a limit. Collective.
    fn settle(&self) -> Outcome<()> {
        if self.call.is_limited() { self.count_node(0) } else { Ok(()) }
    }

    /// Takes `bytes` bytes of the memory limit, on each rank its own; refused on all ranks where a node has fewer.
    /// Collective.
    fn hold(&self, bytes: u64) -> Outcome<()> {
        if !self.call.is_limited() {
            return self.call.hold_bytes(bytes);
        }
        self.count_node(bytes)?;
        let fits = self.call.hold_bytes(bytes);
        // The bytes that the others take now have been counted already.
        together(self.world, fits)
    }

    /// Notes the bytes that the node's other ranks hold, with `bytes` more on each rank. Collective over the node.
    fn count_node(&self, bytes: u64) -> Outcome<()> {
        let own = self.call.held_bytes().saturating_add(bytes);
        let mut sum = [own];
        self.node.all_reduce(Reduction::Sum, &mut sum)?;
        self.call.note_beside(sum[0].saturating_sub(own));
        Ok(())
    }

    /// Gives back the bytes that a copy of an operand has taken.
    fn drop_input(&self, input: Input<'_>) {
        self.call.release_bytes(input.copied_bytes());
        self.call.count(|tally| tally.drop_copy(input.copied_bytes()));
        self.call.keep_input(input);
    }
}

/// The result of a step on this rank, where it succeeded on all. Collective: a rank that fails alone must not leave the
/// others in the call; its own failure is its own answer.
pub(crate) fn together<T>(world: &dyn Transport, own: Outcome<T>) -> Outcome<T> {
    let told = own.as_ref().map(|_| ()).map_err(|failure| sunzi::Error::InvalidArgument(failure.message.clone()));
    let agreed = sunzi::comm::agree(world, told);
    let own = own?;
    agreed?;
    Ok(own)
}
