//! How the check of a factor is cut: tiles of its product, and pieces of the contracted rows, within a memory limit.
//!
//! The widest tiles that fit are taken: a factor in a file is read about `2 n / (3 T)` times by tiles of `T` rows.

use super::FactorCheck;
use super::rows::Row;
use super::single::Single;
use super::source::LowerTriangle;
use super::sums::IntegerSums;
use crate::context::Context;
use crate::error::Result;
use crate::math::bound::ceil_log2;
use crate::matrix::Matrix;
use crate::ops::product::block::working_bits_below;
use crate::ops::product::path::shorter_ends;
use crate::ops::product::plan::{larger_refusal, plan_integers};
use crate::ops::product::problem::ProductSize;

/// Entries that are summed one by one at a time.
pub(super) const SINGLES_AT_ONCE: usize = 4096;

/// Rows and columns of tiles, in memory and out of core, the widest first.
const TILES_IN_MEMORY: [usize; 3] = [256, 128, 64];
const TILES: [usize; 11] = [2048, 1448, 1024, 768, 512, 384, 256, 192, 128, 96, 64];

/// The widest tiles, and the longest pieces, where no limit requires less: more would hardly be faster.
const TILE_WITHOUT_LIMIT: usize = 512;
const DEPTH_WITHOUT_LIMIT: usize = 2048;

/// Columns of pieces of the contracted rows, besides all.
const DEPTHS: [usize; 8] = [8192, 4096, 2048, 1024, 512, 256, 128, 64];

/// In pieces of fewer columns the reconstruction of each product is no small part of the work.
const DEEP: usize = 512;

/// How the check is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cut {
    /// Rows and columns of a tile.
    pub tile_rows: usize,
    /// Columns of the factor that are multiplied at a time.
    pub depth: usize,
}

/// Bits of products that are planned for.
struct Width {
    /// The check's, or one of the same limit with tables of its own.
    ctx: Context,
    /// Norms of the rows of a tile are below 2 to this power.
    norm_bits: i64,
}

impl Width {
    /// The longest products of a check of `order` rows, and the shorter ones that other kernels may take: in some tiles
    /// all rows are shorter.
    fn of_products(ctx: &Context, order: usize, integer_bits: i64) -> Vec<Width> {
        // Norms of whole rows, whatever the depth: one set of primes is planned for.
        let longest = integer_bits + i64::from(ceil_log2(order).div_ceil(2)) + 1;
        let modulus_bits = u32::try_from(2 * longest + 2).unwrap_or(u32::MAX);
        let ends = shorter_ends(ctx, modulus_bits).into_iter().map(|end| i64::from(working_bits_below(end)));
        let shorter = ends.map(|norm_bits| Width { ctx: ctx.without_cache(), norm_bits });
        std::iter::once(Width { ctx: ctx.clone(), norm_bits: longest }).chain(shorter).collect()
    }
}

impl Cut {
    /// The cut of a check whose rows are integers below 2 to `integer_bits`.
    ///
    /// # Errors
    /// [`crate::Error::MemoryLimit`] with the smallest limit that suffices.
    pub fn plan(ctx: &Context, check: &FactorCheck<'_>, integer_bits: i64) -> Result<Cut> {
        let n = check.order().max(1);
        let is_file = matches!((check.a, check.l), (LowerTriangle::File { .. }, _) | (_, LowerTriangle::File { .. }));
        let is_free = ctx.memory_bytes().is_none();
        let tiles: &[usize] = if is_file { &TILES } else { &TILES_IN_MEMORY };
        let tiles = tiles.iter().map(|&rows| rows.min(n)).filter(|&rows| !is_free || rows <= TILE_WITHOUT_LIMIT);
        let whole = if is_file && is_free { n.min(DEPTH_WITHOUT_LIMIT) } else { n };
        let depths = || std::iter::once(whole).chain(DEPTHS.into_iter().filter(move |&depth| depth < whole));
        let cuts = || tiles.clone().flat_map(|tile_rows| depths().map(move |depth| Cut { tile_rows, depth }));
        let widths = Width::of_products(ctx, n, integer_bits);
        let is_swift = |cut: &Cut| {
            cut.depth >= DEEP.min(n) && cut.plan_products(&widths, check, integer_bits).is_ok_and(|is_whole| is_whole)
        };
        let fits = |cut: &Cut| cut.plan_products(&widths, check, integer_bits).is_ok();
        if let Some(cut) = cuts().find(is_swift).or_else(|| cuts().find(fits)) {
            return Ok(cut);
        }
        let least = Cut { tile_rows: TILES[TILES.len() - 1].min(n), depth: DEPTHS[DEPTHS.len() - 1].min(n) };
        least.plan_products(&widths, check, integer_bits).map(|_| least)
    }

    /// The context for products, reduced by all that the check holds.
    pub fn inner(&self, ctx: &Context, check: &FactorCheck<'_>, integer_bits: i64) -> Context {
        ctx.holding(self.held_bytes(check, integer_bits))
    }

    /// Whether the products run in one piece, each with its width in `widths`.
    fn plan_products(&self, widths: &[Width], check: &FactorCheck<'_>, integer_bits: i64) -> Result<bool> {
        let Cut { tile_rows, depth } = *self;
        let size =
            ProductSize { contracted: depth, rows: tile_rows, cols: tile_rows, triangle: tile_rows == check.order() };
        let (mut admitted, mut is_whole) = (Ok(()), true);
        for Width { ctx, norm_bits } in widths {
            let plan = plan_integers(&self.inner(ctx, check, integer_bits), size, *norm_bits);
            is_whole &= plan.as_ref().is_ok_and(|plan| plan.batches <= 1 && plan.bands <= 1);
            admitted = larger_refusal(admitted, plan.map(|_| ()));
        }
        admitted.map(|()| is_whole)
    }

    /// Bytes of rows, sums, blocks of both matrices and entries that are summed one by one.
    fn held_bytes(&self, check: &FactorCheck<'_>, integer_bits: i64) -> u64 {
        let Cut { tile_rows, depth } = *self;
        let n = check.order();
        let width = IntegerSums::width(2 * integer_bits + i64::from(ceil_log2(n)) + 1);
        let sums = 8 * (tile_rows * tile_rows * width) as u64;
        let own = check.a.block_bytes(tile_rows, tile_rows);
        let bands =
            check.l.block_bytes(tile_rows, depth) + Matrix::bytes_for(tile_rows, depth, check.l.precision_bits());
        let singles = SINGLES_AT_ONCE.min(tile_rows * tile_rows) as u64;
        let singles = singles * Single::bytes(check.precision_bits, check.l.precision_bits());
        Row::bytes(n, check.a.precision_bits()) + sums + own + bands + singles
    }
}
