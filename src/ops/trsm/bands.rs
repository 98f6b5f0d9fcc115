//! Bands of right sides: how many columns are solved at a time under the memory limit.
//!
//! Columns do not know of each other, so bands never show in the result.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::ops::product::block::largest_need;
use crate::ops::trsm::layout::Layout;
use std::ops::Range;

/// Most right sides in a band: the conversions of the triangle then cost some hundredths of the products, and more
/// right sides would only take memory, which is slow to get.
const BAND_COLUMNS: usize = 512;

/// Fewest right sides worth a band: products pad to as many.
const LEAST_COLUMNS: usize = 8;

/// The bands of a solve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bands {
    /// Right sides in all.
    pub total: usize,
    /// Right sides of a band; the last may have fewer.
    pub columns: usize,
    /// Bytes that the solve holds at its widest, all it prepares included, beside its products.
    pub held_bytes: u64,
}

impl Bands {
    /// The widest bands that fit the limit, for a solve with each of `layouts` in turn on the same right sides.
    ///
    /// `base_bytes` are held beside what the layouts tell.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`] with the least limit that would do.
    pub fn plan(ctx: &Context, total: usize, layouts: &[Layout], base_bytes: u64) -> Result<Bands> {
        let even = total.div_ceil(total.div_ceil(BAND_COLUMNS).max(1));
        let mut columns = even.next_multiple_of(LEAST_COLUMNS).min(total);
        loop {
            let bands = Bands { total, columns, held_bytes: held_bytes(layouts, columns, base_bytes) };
            if ctx.memory_bytes().is_none() {
                return Ok(bands);
            }
            match bands.check(ctx, layouts) {
                Err(Error::MemoryLimit { .. }) if columns > LEAST_COLUMNS => {
                    columns = (columns / 2).next_multiple_of(LEAST_COLUMNS).min(columns - 1);
                }
                other => return other.map(|()| bands),
            }
        }
    }

    fn check(&self, ctx: &Context, layouts: &[Layout]) -> Result<()> {
        let products = layouts.iter().map(|layout| layout.plan(ctx, self.columns, self.held_bytes));
        products.fold(ctx.admit(self.held_bytes), largest_need)
    }

    /// The columns of each band.
    pub fn iter(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let Bands { total, columns, .. } = *self;
        (0..total).step_by(columns.max(1)).map(move |start| start..(start + columns).min(total))
    }
}

fn held_bytes(layouts: &[Layout], columns: usize, base_bytes: u64) -> u64 {
    let prepared = layouts.iter().fold(base_bytes, |sum, layout| sum.saturating_add(layout.prepared_bytes()));
    prepared.saturating_add(layouts.iter().map(|layout| layout.band_bytes(columns)).max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_cover_all_columns_and_narrow_until_they_fit() {
        let layout = |columns| Layout { order: 300, working_bits: 200, columns };
        for total in [0usize, 1, 7, 100, 513, 3000] {
            let free = Context::builder().threads(1).build().unwrap();
            let bands = Bands::plan(&free, total, &[layout(total)], 1000).unwrap();
            assert!(bands.columns <= BAND_COLUMNS);
            let mut next = 0;
            for band in bands.iter() {
                assert_eq!(band.start, next);
                next = band.end;
            }
            assert_eq!(next, total);
            let tiny = Context::builder().threads(1).memory_bytes(1).build().unwrap();
            let least = match Bands::plan(&tiny, total, &[layout(total)], 1000) {
                Err(Error::MemoryLimit { minimum_bytes, limit_bytes: 1 }) => minimum_bytes,
                other => panic!("{other:?}"),
            };
            let enough = Context::builder().threads(1).memory_bytes(least).build().unwrap();
            let narrow = Bands::plan(&enough, total, &[layout(total)], 1000).unwrap();
            assert!(narrow.columns <= bands.columns && narrow.held_bytes <= least, "{total} columns");
            let short = Context::builder().threads(1).memory_bytes(least - 1).build().unwrap();
            assert!(Bands::plan(&short, total, &[layout(total)], 1000).is_err(), "{total} columns");
        }
    }
}
