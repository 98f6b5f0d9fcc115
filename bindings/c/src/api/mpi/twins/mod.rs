//! Twins of ScaLAPACK: its arguments behind a context, with descriptors of nine integers and parts of matrices.
//!
//! Each routine has two entry points, `psunzi_rsyrk` on `mpfr_t` and `psunzi_rsyrk_mpf` on `mpf_t`, which fill one
//! struct of arguments. A wrong argument on one rank gives the same info on all.

// Those with functions of the header, in its order.
mod grid;
mod level3;

mod factors;

mod checks;

pub use factors::*;
pub use grid::sunzi_mpi_grid;
pub use level3::*;

use super::opening::Opening;
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

/// The arguments of one routine.
trait Arguments {
    /// Their names in the header, in their order.
    const NAMES: &'static [&'static str];

    /// The arguments, once they have been checked.
    type Checked;

    /// Checks what this rank can check by itself.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn check(&self, checks: &mut Checks<'_, '_>) -> Outcome<Self::Checked>;

    /// Carries out the routine. Collective.
    ///
    /// # Safety
    /// The header's rules.
    unsafe fn run(call: &Call<'_>, team: &mut Team, checked: Self::Checked) -> Outcome<()>;
}

/// Calls a routine on entries of `format`, accurate entry by entry where the context does not choose; returns
/// ScaLAPACK's info. Collective.
///
/// # Safety
/// The header's rules.
unsafe fn info<A: Arguments>(ctx: *const sunzi_context, format: i32, arguments: &A) -> i64 {
    let work = |call: &Call<'_>| {
        with_team(call, |team| {
            let entries = Entries { format };
            let name = if format == SUNZI_MPF { "psunzi, mpf_t" } else { "psunzi, mpfr_t" };
            let routine = Routine { name, arguments: A::NAMES };
            // SAFETY: by contract.
            let check = |open: &mut Opening<'_>| unsafe { arguments.check(&mut Checks { open, entries }) };
            let (checked, _) = opened(call, team, routine, check)?;
            // SAFETY: by contract.
            unsafe { A::run(call, team, checked) }
        })
    };
    // SAFETY: by contract.
    match unsafe { run(ctx, work) } {
        Ok(()) => 0,
        Err(failure) => info_of(A::NAMES, &failure, OTHERS),
    }
}
