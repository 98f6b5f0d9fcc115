//! The choice of the kernel of a factorisation or a triangular solve in tiles, in one process and over ranks; the tiles
//! that a factorisation in one process is cut into.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::kernels::tiles::{PANEL_ROWS, TileEngine, TileTraffic};
use crate::kernels::{self, FactorCosts, PlaneKernel};
use crate::math::bound::{IFMA52_CHUNK_ROWS, cholesky_modulus_bits};
use crate::ops::distribution::matrix::check_tile_size;
use crate::tile::TileMap;
use std::sync::Arc;

/// No kernel is chosen by its costs for fewer rows.
const LEAST_ROWS: usize = 400;

/// Nor for fewer right-hand sides of a solve, which share the converted triangle.
const LEAST_RIGHT_SIDES: usize = 400;

/// Rows of the smallest tiles that costs were measured with: sums of smaller ones are reduced more often.
pub(super) const LEAST_TILE_ROWS: usize = 96;

/// Smaller tiles are not made to have several in a small matrix: they leave more of its work to whole updates.
const LEAST_SIZED_ROWS: usize = 64;

/// Smaller tiles are not made to keep threads busy.
const LEAST_SHARED_ROWS: usize = 48;

/// The largest number of rows of a tile: sums over this many columns are exact on every kernel.
pub(crate) const MOST_TILE_ROWS: usize = IFMA52_CHUNK_ROWS / PANEL_ROWS * PANEL_ROWS;

/// The kernel of a factor or a solve of `order` rows with `working_bits` bits: the context's, or the `other` one where
/// it is faster for this order.
///
/// A forced kernel stays. The preferred one stays with devices, where it does the work that they leave, and under a
/// memory limit, since its tiles are smaller. Plans and calls both use this function, so that they agree.
pub(crate) fn choose_kernel(
    ctx: &Context,
    other: impl FnOnce() -> Option<(&'static dyn PlaneKernel, FactorCosts)>,
    order: usize,
    working_bits: u32,
) -> &'static dyn PlaneKernel {
    let kernel = ctx.tile_kernel(working_bits);
    // The rate of the core is only looked up where it may matter.
    let is_small = order < LEAST_ROWS;
    if is_small || ctx.forced_kernel().is_some() || !ctx.devices().is_empty() || ctx.under_limit() {
        return kernel;
    }
    let modulus_bits = cholesky_modulus_bits(working_bits);
    other()
        .filter(|(other, costs)| {
            order >= costs.least_rows(working_bits) && modulus_bits <= other.maximum_modulus_bits()
        })
        .map_or(kernel, |(other, _)| other)
}

/// Tile kernels, and the kernel that they are of.
pub(crate) type KernelOfTiles = (Arc<dyn TileEngine>, &'static dyn PlaneKernel);

/// The tile kernels of a factor of `order` rows in one process. Where the caller or many threads require smaller tiles,
/// they are those of the context's kernel.
///
/// # Errors
/// The errors of [`Context::tile_engine`].
pub(crate) fn engine_for(
    ctx: &Context,
    order: usize,
    tile_rows: Option<usize>,
    working_bits: u32,
) -> Result<KernelOfTiles> {
    let rows = |preferred_rows| tiles_for(order, tile_rows, preferred_rows, ctx.threads()).tile_size;
    let (engine, kernel) = choose_engine(ctx, order, working_bits, rows, |_| ctx.tile_engine_for(working_bits, order))?;
    ctx.settle(kernel, cholesky_modulus_bits(working_bits), (order as f64).powi(3) / 6.0);
    Ok((engine, kernel))
}

/// The engine for this rank's tiles of a factor over ranks; `tile_rows(preferred)` is their height for a kernel that
/// prefers `preferred` rows. Ranks may have different kernels; their tiles are then sent as integers.
///
/// # Errors
/// The errors of [`Context::tile_engine`].
pub(crate) fn engine_on_rank(
    ctx: &Context,
    order: usize,
    working_bits: u32,
    tile_rows: impl Fn(usize) -> usize,
) -> Result<KernelOfTiles> {
    choose_engine(ctx, order, working_bits, tile_rows, |kernel| ctx.tile_engine(kernel, working_bits))
}

/// The tile kernels of another kernel where it is faster, in tiles as high as it takes, else those that `own` makes for
/// the context's kernel.
fn choose_engine(
    ctx: &Context,
    order: usize,
    working_bits: u32,
    tile_rows: impl Fn(usize) -> usize,
    own: impl FnOnce(&'static dyn PlaneKernel) -> Result<Arc<dyn TileEngine>>,
) -> Result<KernelOfTiles> {
    let own_kernel = ctx.tile_kernel(working_bits);
    let kernel = choose_kernel(ctx, kernels::preferred_for_large_factors, order, working_bits);
    // Unneeded tables are not made, since they would stay.
    if kernel.name() != own_kernel.name() && tile_rows(usize::MAX) >= LEAST_TILE_ROWS {
        let engine = ctx.tile_engine(kernel, working_bits)?;
        if tile_rows(engine.preferred_rows()) >= LEAST_TILE_ROWS {
            return Ok((engine, kernel));
        }
    }
    Ok((own(own_kernel)?, own_kernel))
}

/// Runs an operation on these tile kernels; returns its result, and the traffic of each device that ran updates of it.
pub(crate) fn with_traffic<R>(engine: &dyn TileEngine, operation: impl FnOnce() -> R) -> (R, Vec<TileTraffic>) {
    let before = engine.traffic();
    let done = operation();
    let traffic = engine.traffic().into_iter().zip(&before).map(|(after, before)| after.since(before)).collect();
    engine.end_operation();
    (done, traffic)
}

/// The kernel of a solve with a given triangle of `order` rows and `working_bits` bits after the point, where it is not
/// the context's: `columns` right-hand sides share the converted triangle, and a worker has `each` of them. Under a
/// limit there is no such choice; the caller must check that, since the context may not show the limit.
pub(crate) fn solve_kernel(
    ctx: &Context,
    order: usize,
    columns: usize,
    each: usize,
    working_bits: u32,
) -> Option<&'static dyn PlaneKernel> {
    if columns < LEAST_RIGHT_SIDES || each < LEAST_TILE_ROWS {
        return None;
    }
    let kernel = choose_kernel(ctx, kernels::preferred_for_large_solves, order, working_bits);
    (kernel.name() != ctx.tile_kernel(working_bits).name()).then_some(kernel)
}

/// Refuses tiles that no factor is cut into.
pub(crate) fn check_tile_rows(tile_rows: usize) -> Result<()> {
    check_tile_size(tile_rows)?;
    if tile_rows > MOST_TILE_ROWS {
        let message =
            format!("tiles of {tile_rows} rows are too large; a factor has tiles of at most {MOST_TILE_ROWS} rows");
        return Err(Error::InvalidArgument(message));
    }
    Ok(())
}

/// The tiles of a factorisation of `order` rows: `tile_rows` rows each, rounded up to whole panels; `None` takes the
/// `preferred_rows` of the kernel, or fewer where that would leave threads without work.
pub(crate) fn tiles_for(order: usize, tile_rows: Option<usize>, preferred_rows: usize, threads: usize) -> TileMap {
    let by_threads = if threads > 1 { (order / (4 * threads)).max(LEAST_SHARED_ROWS) } else { order };
    let by_size = (order / 5).max(LEAST_SIZED_ROWS);
    let wanted = tile_rows.unwrap_or_else(|| preferred_rows.min(by_threads).min(by_size));
    TileMap::symmetric(order, wanted.clamp(1, MOST_TILE_ROWS).next_multiple_of(PANEL_ROWS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_solves_take_the_other_kernel_too() {
        let ctx = Context::builder().threads(1).build().unwrap();
        let own = ctx.kernel().name();
        let name = |ctx: &Context, order, (columns, each): (usize, usize), bits| {
            solve_kernel(ctx, order, columns, each, bits).map_or(ctx.kernel().name(), |kernel| kernel.name())
        };
        let Some((other, costs)) = kernels::preferred_for_large_solves() else {
            return assert_eq!(name(&ctx, 2000, (500, 500), 300), own);
        };
        let rows = costs.least_rows(300);
        assert!(costs.least_rows(0) >= LEAST_ROWS);
        assert_eq!((name(&ctx, rows - 1, (500, 500), 300), name(&ctx, rows, (500, 500), 300)), (own, other.name()));
        assert_eq!((name(&ctx, rows, (399, 399), 300), name(&ctx, rows, (400, 400), 300)), (own, other.name()));
        assert_eq!((name(&ctx, rows, (500, 95), 300), name(&ctx, rows, (500, 96), 300)), (own, other.name()));
        let limited = ctx.with_memory_bytes(Some(1 << 40));
        let forced = Context::builder().threads(1).kernel(own).build().unwrap();
        assert_eq!((name(&limited, rows, (500, 500), 300), name(&forced, rows, (500, 500), 300)), (own, own));
    }

    #[test]
    fn large_factors_take_the_other_kernel_where_nothing_speaks_against_it() {
        let ctx = Context::builder().threads(1).build().unwrap();
        let own = ctx.kernel().name();
        let name = |ctx: &Context, order: usize, bits: u32| {
            choose_kernel(ctx, kernels::preferred_for_large_factors, order, bits).name()
        };
        assert_eq!(name(&ctx, 10, 770), own);
        let Some((other, costs)) = kernels::preferred_for_large_factors() else {
            return assert_eq!(name(&ctx, 1 << 20, 770), own);
        };
        assert_ne!(other.name(), own);
        let rows = costs.least_rows(770);
        assert!(costs.least_rows(0) >= LEAST_ROWS);
        // Tiles of fewer rows, requested by a caller or needed by threads.
        let with_tiles = |ctx: &Context, tile_rows| engine_for(ctx, rows, tile_rows, 770).unwrap().1.name();
        let many = Context::builder().threads(8).build().unwrap();
        assert_eq!((with_tiles(&ctx, None), with_tiles(&ctx, Some(96))), (other.name(), other.name()));
        assert_eq!((with_tiles(&ctx, Some(88)), with_tiles(&many, None)), (own, own));
        assert_eq!((name(&ctx, rows - 1, 770), name(&ctx, rows, 770)), (own, other.name()));
        // The other kernel's primes end earlier than the context's.
        let most = (other.maximum_modulus_bits() - 3) / 2;
        assert_eq!((name(&ctx, 1 << 20, most), name(&ctx, 1 << 20, most + 1)), (other.name(), own));
        // Under a limit, and in plans of its parts.
        let limited = ctx.with_memory_bytes(Some(1 << 40));
        assert_eq!((name(&limited, rows, 770), name(&limited.with_memory_bytes(None), rows, 770)), (own, own));
        assert_eq!(name(&ctx.with_memory_bytes(None), rows, 770), other.name());
        let forced = Context::builder().threads(1).kernel(own).build().unwrap();
        assert_eq!(name(&forced, rows, 770), own);
    }
}
