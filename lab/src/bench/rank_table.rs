//! The common parts of the tables of both benchmarks over ranks.

use super::spread::Spread;
use sunzi::Context;
use sunzi::Result;
use sunzi::comm::{Reduction, Transport};
use sunzi_session::units::format_seconds;

/// The threads of all ranks. Collective.
pub(super) fn total_threads(ctx: &Context, world: &dyn Transport) -> Result<usize> {
    let mut threads = [ctx.threads() as u64];
    world.all_reduce(Reduction::Sum, &mut threads)?;
    Ok(threads[0] as usize)
}

/// The header above the figures of [`row`].
pub(super) fn header() -> String {
    format!("{:<24} {:>10} {:>10} {:>10}", "", "least", "median", "most")
}

/// The figures of one way of running, and a remark on it.
pub(super) fn row(name: &str, seconds: &Spread, last: &str) -> String {
    let [min, median, max] = [seconds.min, seconds.median, seconds.max].map(format_seconds);
    format!("{name:<24} {min:>10} {median:>10} {max:>10}  {last}").trim_end().to_string()
}
