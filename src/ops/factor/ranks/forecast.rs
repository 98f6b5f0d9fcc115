//! The memory that a factorisation over ranks takes, before there is a matrix.

use super::memory::PlanInput;
use super::plan::tiling;
use super::{check_options, engine_in_tiles, entrywise, tiles_for, window};
use crate::comm::agreed;
use crate::context::Context;
use crate::error::Result;
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::distribution::travel::redistribution_bytes;
use crate::ops::factor::entrywise::RangeBits;
use crate::ops::factor::options::DistCholeskyOptions;
use crate::ops::factor::plan::FactorPlan;
use crate::ops::factor::problem::{FactorProblem, working_bits};
use crate::ops::factor::tile_work::TileWork;
use crate::ops::product::plan::larger_refusal;
use crate::ops::product::problem::Accuracy;
use crate::site::Site;
use crate::site::Team;
use crate::tile::TileMap;

/// The plan of [`super::cholesky_with`] for a matrix in the tiles `map`, whose entries have `input_bits`, including the
/// symmetry check of a whole matrix: the bytes that this rank needs, including the factor. Collective.
///
/// Nothing is computed, except that the kernel's tables are made and kept in the context. The memory limit of the
/// context is that of the node, as for the factorisation. Entries of many sizes need more bits for entrywise accuracy,
/// which can be given as [`DistCholeskyOptions::range_bits`] if they are known. A factor in the memory of an old one
/// ([`super::cholesky_into`]) may need in addition the bytes of tiles in transit, since the old factor is held from the
/// start.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, DistCholeskyOptions, RankGrid, Team, TeamOptions, TileMap};
/// use sunzi::{Context};
/// let ranks = local::run(2, |rank| -> sunzi::Result<u64> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     let map = TileMap { grid: RankGrid::for_ranks(2), ..TileMap::symmetric(100, 64) };
///     distributed::plan_cholesky(&ctx, &team, (&map, 128), 128, &DistCholeskyOptions::new())
/// });
/// for bytes in ranks {
///     assert!(bytes? > 0); // of each rank
/// }
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// On every rank: [`crate::Error::MemoryLimit`] with the smallest limit that suffices; the errors of
/// [`super::cholesky_with`] about sizes and grids.
pub fn plan_cholesky(
    ctx: &Context,
    team: &Team,
    (map, input_bits): (&TileMap, u32),
    precision_bits: u32,
    options: &DistCholeskyOptions,
) -> Result<u64> {
    let (site, order) = (Site { ctx, team }, map.rows);
    let world = site.world();
    check_options(world, map, precision_bits, options)?;
    let norm_bits = agreed(world, working_bits(precision_bits, ctx.maximum_modulus_bits()))?;
    let (range_bits, check_bytes) = match options.accuracy {
        Accuracy::Norm => (0, 0),
        Accuracy::Entrywise => {
            let range = RangeBits::first(order, precision_bits, options.range_bits);
            (range.bits, entrywise::check_bytes(order, world.size()))
        }
    };
    let tiles = tiles_for(site, map, norm_bits, options)?;
    let (engine, kernel) = engine_in_tiles(site, &tiles, norm_bits + range_bits)?;
    let problem = agreed(world, FactorProblem::unscaled(map.rows, map.cols, precision_bits, norm_bits + range_bits))?;
    let moved_bytes = if tiles == *map { 0 } else { DistMatrix::bytes_for(&tiles, team.rank(), input_bits) };
    let beside = ctx.holding(site.on_node(check_bytes));
    let tiling = tiling(&problem, tiles);
    let work = TileWork::new(&*engine, &tiling, problem.working_bits, &problem.exponents);
    let memories = window::memories(site.with(&beside), &work, kernel.name())?;
    let input = PlanInput { problem: &problem, map: tiles, memories: &memories, moved_bytes, holds_factor: false };
    // A whole matrix is compared with its mirror image first.
    let compared_bytes = match map.triangle {
        None if map.rows == map.cols => 3 * DistMatrix::bytes_for(&tiles, team.rank(), input_bits),
        _ => 0,
    };
    let compared = site.admit(compared_bytes);
    // No limit counts the messages of this comparison.
    let messages = match (ctx.memory_bytes(), compared_bytes) {
        (None, 1..) => redistribution_bytes(team.size(), (order, input_bits), (compared_bytes, compared_bytes)),
        _ => 0,
    };
    let planned = larger_refusal(compared, FactorPlan::over_ranks(&beside, team, &input, options, &*engine))?;
    Ok((planned.bytes + check_bytes).max(compared_bytes + messages))
}
