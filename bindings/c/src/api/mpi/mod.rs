//! Calls that all ranks of a communicator make together, on matrices as the ranks have them.
//!
//! Each takes its operands into the library's tiles, calls the verb over ranks, and stores this rank's part of the
//! result; no rank has a whole matrix. An error of one rank is one of all.

mod factors;
mod kept;
mod matrix;
mod products;
mod twins;

pub use factors::*;
pub use kept::*;
pub use matrix::{sunzi_dist_elemental, sunzi_dist_rows, sunzi_dist_scalapack};
pub use products::*;
pub use twins::*;

use crate::array::invalid;
use crate::call::{Call, enter};
use crate::context::sunzi_context;
use crate::failure::{Failure, Outcome};
use crate::types::sunzi_status;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use sunzi::comm::{Reduction, Transport};
use sunzi::distributed::Team;

/// The ranks of a context's communicator and this one's number, from 0. `SUNZI_UNAVAILABLE` for a context without one.
/// Null pointers are passed over.
///
/// # Safety
/// The header's rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sunzi_mpi_size(ctx: *const sunzi_context, rank: *mut i64, size: *mut i64) -> sunzi_status {
    // SAFETY: by contract, for all below.
    unsafe {
        collective(ctx, |_, team| {
            for (target, number) in [(rank, team.rank()), (size, team.size())] {
                if !target.is_null() {
                    target.write(number as i64);
                }
            }
            Ok(())
        })
    }
}

/// One call of all ranks.
///
/// # Safety
/// As [`enter`].
unsafe fn collective(
    ctx: *const sunzi_context,
    work: impl FnOnce(&Call<'_>, &mut Team) -> Outcome<()>,
) -> sunzi_status {
    // SAFETY: by contract.
    unsafe { enter(ctx, |call| with_team(call, |team| work(call, team))) }
}

/// What `work` gives with the ranks of a call's context.
fn with_team<T>(call: &Call<'_>, work: impl FnOnce(&mut Team) -> Outcome<T>) -> Outcome<T> {
    let mut held = call.owner().team();
    let message = "the context has no communicator: make it with sunzi_context_from_mpi";
    work(held.as_mut().ok_or_else(|| Failure::new(sunzi_status::SUNZI_UNAVAILABLE, message))?)
}

/// A call with the ranks that make it.
#[derive(Clone, Copy)]
struct Ranks<'a> {
    call: &'a Call<'a>,
    world: &'a dyn Transport,
}

impl<'a> Ranks<'a> {
    fn new(call: &'a Call<'a>, team: &'a Team) -> Ranks<'a> {
        Ranks { call, world: team.world() }
    }
}

/// What a step gave on this rank, where it went well on all. Collective: a rank that fails alone must not leave the
/// others in the call; its own failure is its own answer.
pub(crate) fn together<T>(world: &dyn Transport, own: Outcome<T>) -> Outcome<T> {
    let told = own.as_ref().map(|_| ()).map_err(|failure| sunzi::Error::InvalidArgument(failure.message.clone()));
    let agreed = sunzi::comm::agree(world, told);
    let own = own?;
    agreed?;
    Ok(own)
}

/// Refuses an argument that ranks do not agree on: later checks are made by each rank alone. Collective.
fn check_same(world: &dyn Transport, name: &'static str, said: &impl Debug) -> Outcome<()> {
    let mut hasher = DefaultHasher::new();
    format!("{said:?}").hash(&mut hasher);
    let mut words = [hasher.finish(), !hasher.finish()];
    world.all_reduce(Reduction::Max, &mut words)?;
    if words[0] == !words[1] { Ok(()) } else { Err(invalid(name, "it differs from rank to rank")) }
}
