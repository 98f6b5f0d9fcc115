//! Bands of right sides: how many columns are solved at a time under the memory limit.
//!
//! Columns do not know of each other, so bands never show in the result.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::ops::trsm::spaces::Spaces;
use std::ops::Range;

/// Most right sides in a band: the conversions of the triangle then cost some hundredths of the products, and more
/// right sides would only take memory, which is slow to get.
const BAND_COLUMNS: usize = 512;

/// Fewest right sides worth a band: products pad to as many.
const LEAST_COLUMNS: usize = 8;

/// One band.
pub(crate) struct Band<'a> {
    /// Its right sides.
    pub columns: Range<usize>,
    /// What it works in.
    pub spaces: &'a mut Spaces,
    /// Bytes of the memory limit that are taken, the spaces included.
    pub held_bytes: u64,
}

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
    fn run(&mut self, ctx: &Context, band: Band<'_>) -> Result<()>;
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
    let mut spaces = Spaces::take(ctx)?;
    for start in (0..total).step_by(columns) {
        let columns = start..(start + columns).min(total);
        work.run(ctx, Band { columns, spaces: &mut spaces, held_bytes })?;
    }
    spaces.give_back(ctx);
    Ok(())
}

fn widest(ctx: &Context, total: usize, work: &impl Banded) -> Result<usize> {
    let even = total.div_ceil(total.div_ceil(BAND_COLUMNS));
    let mut columns = even.next_multiple_of(LEAST_COLUMNS).min(total);
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
