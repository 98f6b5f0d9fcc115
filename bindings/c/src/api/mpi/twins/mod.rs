//! Twins of ScaLAPACK: its arguments behind a context, with descriptors of nine integers and parts of matrices.
//!
//! Each routine has two entry points, `psunzi_rsyrk` on `mpfr_t` and `psunzi_rsyrk_mpf` on `mpf_t`, which `twins!`
//! makes of one list of arguments. A wrong argument on one rank gives the same info on all.

// Those with functions of the header, in its order.
mod grid;
mod level3;

mod factors;

mod checks;

pub use factors::*;
pub use grid::sunzi_mpi_grid;
pub use level3::*;

use super::{opened, with_team};
use crate::api::lapack::{Entries, info_of};
use crate::call::{Call, run};
use crate::context::sunzi_context;
use crate::failure::Outcome;
use crate::types::SUNZI_MPF;
use checks::Checks;
use sunzi::advanced::calls::Routine;
use sunzi::distributed::Team;

/// The offset of negative statuses for failures for which ScaLAPACK has no number: no `100 i + j` comes near it.
const OTHERS: i64 = -10_000;

/// Calls a routine with arguments of these names on entries of `format`, accurate entry by entry where the context does
/// not choose; returns ScaLAPACK's info. Collective.
///
/// # Safety
/// The header's rules.
unsafe fn info(
    ctx: *const sunzi_context,
    format: i32,
    names: &[&str],
    routine: impl FnOnce(&Call<'_>, Entries) -> Outcome<()>,
) -> i64 {
    // SAFETY: by contract.
    let outcome = unsafe { run(ctx, |call| routine(call, Entries { format })) };
    outcome.map_or_else(|failure| info_of(names, &failure, OTHERS), |()| 0)
}

/// Carries out a routine with arguments of these names: `check` looks at them only on this rank, and `work` goes on
/// where they are right and the same on all ranks. Collective.
fn checked<T>(
    call: &Call<'_>,
    entries: Entries,
    names: &[&'static str],
    check: impl FnOnce(&mut Checks<'_, '_>) -> Outcome<T>,
    work: impl FnOnce(&mut Team, T) -> Outcome<()>,
) -> Outcome<()> {
    with_team(call, |team| {
        let name = if entries.format == SUNZI_MPF { "psunzi, mpf_t" } else { "psunzi, mpfr_t" };
        let routine = Routine { name, arguments: names };
        let (found, _) = opened(call, team, routine, |open| check(&mut Checks { open, entries }))?;
        work(team, found)
    })
}
