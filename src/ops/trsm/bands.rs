//! Bands of right sides: how many columns are solved at a time under the memory limit.
//!
//! Columns do not know of each other, so bands never show in the result.

use crate::context::Context;
use crate::error::{Error, Result};
use std::ops::Range;

/// Most right sides in a band where nothing limits the memory: by then the triangle's conversions cost little.
const BAND_COLUMNS: usize = 4096;

/// Fewest right sides worth a band: products pad to as many.
const LEAST_COLUMNS: usize = 8;

/// What an operation in bands needs to know of itself.
pub(crate) trait Banded {
    /// Bytes that a band of so many columns holds for its whole time, beside the products.
    fn held_bytes(&self, columns: usize) -> u64;

    /// Asks whether the products of a band fit the limit beside `held_bytes`.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`].
    fn plan(&self, ctx: &Context, columns: usize, held_bytes: u64) -> Result<()>;

    /// Works on one band.
    ///
    /// # Errors
    /// Any.
    fn run(&mut self, ctx: &Context, columns: Range<usize>, held_bytes: u64) -> Result<()>;
}

/// Runs `work` on all columns, in the widest bands that fit the limit.
///
/// # Errors
/// [`Error::MemoryLimit`] with the least limit that would do; those of the bands.
pub(crate) fn run(ctx: &Context, total: usize, work: &mut impl Banded) -> Result<()> {
    if total == 0 {
        return Ok(());
    }
    let columns = widest(ctx, total, work)?;
    let held_bytes = work.held_bytes(columns);
    for start in (0..total).step_by(columns) {
        work.run(ctx, start..(start + columns).min(total), held_bytes)?;
    }
    Ok(())
}

fn widest(ctx: &Context, total: usize, work: &impl Banded) -> Result<usize> {
    let mut columns = total.min(BAND_COLUMNS);
    let Some(limit_bytes) = ctx.memory_bytes() else { return Ok(columns) };
    loop {
        let held_bytes = work.held_bytes(columns);
        match work.plan(ctx, columns, held_bytes) {
            Ok(()) if held_bytes <= limit_bytes => return Ok(columns),
            Ok(()) if columns <= LEAST_COLUMNS => {
                return Err(Error::MemoryLimit { limit_bytes, minimum_bytes: held_bytes });
            }
            Err(error @ Error::MemoryLimit { .. }) if columns <= LEAST_COLUMNS => return Err(error),
            Ok(()) | Err(Error::MemoryLimit { .. }) => {
                columns = (columns / 2).next_multiple_of(LEAST_COLUMNS).min(columns - 1).max(LEAST_COLUMNS);
            }
            Err(other) => return Err(other),
        }
    }
}
