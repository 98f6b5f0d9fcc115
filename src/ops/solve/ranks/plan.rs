//! The memory that a solve over ranks takes, before there is a factor.

use crate::comm::{agree, agreed};
use crate::context::Context;
use crate::error::Result;
use crate::matrix::{Diag, Matrix, Side, Uplo};
use crate::ops::distributed::{DistMatrix, Team};
use crate::ops::distribution::travel;
use crate::ops::product::plan::larger_refusal;
use crate::ops::product::problem::Accuracy;
use crate::ops::solve::cut::TriangleCut;
use crate::ops::solve::memory::SolveMemory;
use crate::ops::solve::plan::check_sizes;
use crate::ops::solve::problem::{CHOLESKY, LOWER, Method, Path, Substitution, SystemShape, TrsmBits, solve_bits};
use crate::ops::solve::ranks::stream::pieces;
use crate::ops::solve::ranks::vector::{SumSizes, vectors_bytes};
use crate::ops::solve::ranks::{ColumnSizes, SolutionLayout, first_kernel, is_small, panel_share, ranks_together};
use crate::ops::solve::system::TrsmOptions;
use crate::ops::solve::tiles::NodeShared;
use crate::site::Site;
use crate::tile::{RankGrid, TileMap};

/// Rows of the tiles that a plan assumes for the factor: those of the C and Python packages. Smaller tiles need longer
/// lists.
const FACTOR_TILE: usize = 64;

/// The plan of [`super::solve_with`] for a factor of `order` rows and `columns` right-hand sides whose entries have
/// `right_bits`: the bytes that this rank needs in addition to the factor. Collective.
///
/// Nothing is computed, except that the kernel's tables are made and kept in the context. The memory limit of the
/// context applies to the whole node, as for the solve. The pivots are assumed to be as in [`crate::plans::plan_trsm`].
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, Team, TeamOptions};
/// use sunzi::{Accuracy, Context};
/// let ranks = local::run(2, |rank| -> sunzi::Result<u64> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     distributed::plan_solve(&ctx, &team, (100, 5), (128, 128), Accuracy::Norm)
/// });
/// for bytes in ranks {
///     assert!(bytes? > 0); // of each rank
/// }
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// On every rank: [`crate::Error::MemoryLimit`] with the smallest limit that suffices; [`crate::Error::Precision`];
/// [`crate::Error::DimensionOverflow`].
pub fn plan_solve(
    ctx: &Context,
    team: &Team,
    (order, columns): (usize, usize),
    (right_bits, precision_bits): (u32, u32),
    accuracy: Accuracy,
) -> Result<u64> {
    let asked = SolveSizes::of_factor(SystemShape { order, columns }, right_bits, precision_bits, accuracy);
    asked.plan(ctx, team, OperandCopies::default())
}

/// The plan of [`super::solve_local`]: [`plan_solve`] without tiles of the solution, which stays in the distribution in
/// which it is computed. Collective.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, Team, TeamOptions};
/// use sunzi::{Accuracy, Context};
/// let ranks = local::run(2, |rank| -> sunzi::Result<u64> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     distributed::plan_solve_local(&ctx, &team, (100, 5), (128, 128), Accuracy::Norm)
/// });
/// for bytes in ranks {
///     assert!(bytes? > 0); // of each rank
/// }
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`plan_solve`].
pub fn plan_solve_local(
    ctx: &Context,
    team: &Team,
    (order, columns): (usize, usize),
    (right_bits, precision_bits): (u32, u32),
    accuracy: Accuracy,
) -> Result<u64> {
    let asked = SolveSizes::of_factor(SystemShape { order, columns }, right_bits, precision_bits, accuracy);
    SolveSizes { in_tiles: false, ..asked }.plan(ctx, team, OperandCopies::default())
}

/// The plan of [`super::trsm_with`] for a triangle of `order` rows, in tiles of only that triangle, and `columns`
/// right-hand sides (rows of `B` if `T` is on the right), whose entries have the precisions `bits`: the bytes that this
/// rank needs in addition to `T` and `B`, including the copies of them that the options require. Under a limit the
/// messages of 1 to 8 MiB that are needed for these copies are not counted. Collective; see [`plan_solve`].
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, Team, TeamOptions, TrsmBits};
/// use sunzi::{Context, TrsmOptions};
/// let ranks = local::run(2, |rank| -> sunzi::Result<u64> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     let bits = TrsmBits { triangle: 128, right: 128, solution: 128 };
///     distributed::plan_trsm(&ctx, &team, (100, 5), bits, &TrsmOptions::new())
/// });
/// for bytes in ranks {
///     assert!(bytes? > 0); // of each rank
/// }
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`plan_solve`].
pub fn plan_trsm(
    ctx: &Context,
    team: &Team,
    (order, columns): (usize, usize),
    bits: TrsmBits,
    options: &TrsmOptions<'_>,
) -> Result<u64> {
    let TrsmBits { right: right_bits, solution: precision_bits, .. } = bits;
    let asked = SolveSizes::of_triangle(SystemShape { order, columns }, bits, options);
    let turned = |bits| if options.side == Side::Right { tiles_bytes(team, order, columns, bits, None) } else { 0 };
    agreed(team.world(), check_sizes(order, columns, right_bits.max(precision_bits)))?;
    let copies = OperandCopies { triangle: asked.copied_bytes(team, options), rights: turned(right_bits) };
    // A transposed solution lies both in its own tiles and in the caller's, when all else is released.
    let found = turned(precision_bits);
    let both = agree(team.world(), Site { ctx, team }.holding(2 * found)?.admit(0));
    let planned = larger_refusal(both, asked.plan(ctx, team, copies))?.max(2 * found);
    let (rights, copies) = (copies.rights, copies.triangle + copies.rights);
    // No limit counts the messages in which copies are made.
    if ctx.memory_bytes().is_some() || copies == 0 {
        return Ok(planned);
    }
    let messages = |bytes, bits| travel::redistribution_bytes(team.size(), (order, bits), (bytes, bytes));
    // The context keeps the memory of the solve while the solution is transposed, in the place of the right sides.
    let (turn, gone) = (found + messages(found, precision_bits), rights + messages(rights, right_bits));
    let planned = planned + turn.saturating_sub(gone);
    Ok(planned.max(copies + messages(copies, bits.triangle)).max(found + turn))
}

/// The plan of [`super::trsm_local`]: [`plan_trsm`] without tiles of the solution, for the left side. Collective.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, Team, TeamOptions, TrsmBits};
/// use sunzi::{Context, TrsmOptions};
/// let ranks = local::run(2, |rank| -> sunzi::Result<u64> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     let bits = TrsmBits { triangle: 128, right: 128, solution: 128 };
///     distributed::plan_trsm_local(&ctx, &team, (100, 5), bits, &TrsmOptions::new())
/// });
/// for bytes in ranks {
///     assert!(bytes? > 0); // of each rank
/// }
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`plan_solve`].
pub fn plan_trsm_local(
    ctx: &Context,
    team: &Team,
    (order, columns): (usize, usize),
    bits: TrsmBits,
    options: &TrsmOptions<'_>,
) -> Result<u64> {
    let TrsmBits { right: right_bits, solution: precision_bits, .. } = bits;
    let asked = SolveSizes::of_triangle(SystemShape { order, columns }, bits, options);
    agreed(team.world(), check_sizes(order, columns, right_bits.max(precision_bits)))?;
    let copies = OperandCopies { triangle: asked.copied_bytes(team, options), rights: 0 };
    SolveSizes { in_tiles: false, ..asked }.plan(ctx, team, copies)
}

/// The tiles in which a plan takes matrices, or one triangle of them, to be.
fn tiles_of(team: &Team, rows: usize, cols: usize, triangle: Option<Uplo>) -> TileMap {
    TileMap { rows, cols, tile_size: FACTOR_TILE, grid: RankGrid::for_ranks(team.size()), triangle }
}

/// Bytes of this rank's of these tiles.
fn tiles_bytes(team: &Team, rows: usize, cols: usize, precision_bits: u32, triangle: Option<Uplo>) -> u64 {
    DistMatrix::bytes_for(&tiles_of(team, rows, cols, triangle), team.rank(), precision_bits)
}

/// The planned problem: a solve with a triangle in tiles, or with it and its transpose.
#[derive(Clone, Copy)]
struct SolveSizes {
    substitutions: &'static [Substitution],
    shape: SystemShape,
    bits: TrsmBits,
    accuracy: Accuracy,
    /// Whether the solution goes into tiles like those of the right-hand sides.
    in_tiles: bool,
}

/// The needs of this rank's part of a solve.
enum Needs {
    /// A number of bytes.
    Bytes(u64),
    /// The memory of a solve, its number of right-hand sides, and the bytes for bringing the result to its place.
    Columns(Box<SolveMemory>, usize, u64),
}

/// Bytes of the copies of a rank's operands that a call works on.
#[derive(Clone, Copy, Default)]
struct OperandCopies {
    triangle: u64,
    rights: u64,
}

impl SolveSizes {
    fn of_factor(shape: SystemShape, right_bits: u32, precision_bits: u32, accuracy: Accuracy) -> SolveSizes {
        let bits = TrsmBits { triangle: precision_bits, right: right_bits, solution: precision_bits };
        SolveSizes { substitutions: CHOLESKY, shape, bits, accuracy, in_tiles: true }
    }

    fn of_triangle(shape: SystemShape, bits: TrsmBits, options: &TrsmOptions<'_>) -> SolveSizes {
        SolveSizes { substitutions: LOWER, shape, bits, accuracy: options.accuracy, in_tiles: true }
    }

    fn target(&self, team: &Team) -> SolutionLayout {
        let tiles = || SolutionLayout::Tiles(tiles_of(team, self.shape.order, self.shape.columns, None));
        if self.in_tiles { tiles() } else { SolutionLayout::Caller }
    }

    /// Bytes of this rank's copy of the triangle, where the call works on one.
    fn copied_bytes(&self, team: &Team, options: &TrsmOptions<'_>) -> u64 {
        let order = self.shape.order;
        match (options.uplo, options.diag) {
            (Uplo::Lower, Diag::NonUnit) => 0,
            _ => tiles_bytes(team, order, order, self.bits.triangle, Some(Uplo::Lower)),
        }
    }

    /// Bytes of this rank in addition to the operands, including the copies of them that it holds. Collective.
    fn plan(&self, ctx: &Context, team: &Team, copies: OperandCopies) -> Result<u64> {
        let copied_bytes = copies.triangle + copies.rights;
        let ctx = &Site { ctx, team }.holding(copied_bytes)?;
        let site = Site { ctx, team };
        let together = ranks_together(site, self.shape.order, FACTOR_TILE, self.accuracy)?;
        let (mut memory, own, result) = match site.agreed(self.needs(site, together))? {
            Needs::Bytes(bytes) => return Ok(bytes + copied_bytes),
            Needs::Columns(memory, own, result) => (memory, own, result),
        };
        memory.first_tries = first_kernel(team, &memory, own)?;
        let planned = site.of_node(memory.plan(own).map(|(_, bytes)| bytes));
        // Copies count as an even share of those of the node.
        let all = site.agreed(planned)? - site.share().memory().held_bytes() + copied_bytes;
        // The copy of the triangle is released before the result is made; a limit has room for both.
        Ok(if ctx.memory_bytes().is_some() { all } else { all - result.min(copies.triangle) })
    }

    fn needs(&self, site: Site<'_>, together: Option<NodeShared>) -> Result<Needs> {
        let SolveSizes { substitutions, shape, bits, accuracy, .. } = *self;
        let SystemShape { order, columns } = shape;
        check_sizes(order, columns, bits.solution)?;
        if shape.is_empty() {
            return Ok(Needs::Bytes(0));
        }
        let Site { ctx, team } = site;
        let world = team.world();
        let of_solve = solve_bits(ctx, substitutions, bits.solution, order)?;
        let method = Method::choose(substitutions, order, columns, accuracy);
        let ranks = world.size();
        let on_each = match method.path {
            Path::Dots => Some(vectors_bytes(ctx, shape, bits.right, bits.solution)),
            Path::Sums => Some(SumSizes { shape, working_bits: of_solve.working, bits, ranks }.bytes()),
            Path::Parts | Path::Tiles => None,
        };
        if let Some(bytes) = on_each {
            ctx.admit(site.on_node(bytes))?;
            return Ok(Needs::Bytes(bytes));
        }
        let own = SystemShape { order, columns: panel_share(columns, ranks, world.rank()).len() };
        let share = site.share();
        let expected = TriangleCut::expected(order, of_solve.working, method);
        let (memory, result) = match is_small(order, method) {
            true => {
                let held_bytes = own.right_bytes(bits.right) + Matrix::bytes_for(order, order, bits.triangle);
                let cuts = vec![expected; substitutions.len()];
                (SolveMemory::of_system(&share.holding(held_bytes), substitutions, own, of_solve, cuts), 0)
            }
            false => {
                let pieces = pieces(order, bits.triangle, accuracy, ranks);
                let cuts = vec![TriangleCut { pieces, ..expected }; substitutions.len()];
                let sizes = ColumnSizes { own, total: columns, bits, path: method.path, target: self.target(team) };
                (sizes.memory(site.with(&share), cuts, together), sizes.result_bytes(world))
            }
        };
        Ok(Needs::Columns(Box::new(memory), own.columns, result))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::{Transport, local};
    use crate::kernels;
    use crate::ops::solve::memory::Bands;
    use crate::site::TeamOptions;

    /// The names of the kernels that ranks with these contexts take for a solve, with `ranks_per_node` ranks on each
    /// node; "" is the kernel of the context.
    fn kernels_of(contexts: &[Context], ranks_per_node: usize, shape: SystemShape) -> Vec<&'static str> {
        local::run(contexts.len(), |rank| {
            let options = TeamOptions::new().ranks_per_node(ranks_per_node);
            let (ctx, team) = (&contexts[rank.rank()], Team::new(rank.split(0).unwrap(), options).unwrap());
            let site = Site { ctx, team: &team };
            let together = ranks_together(site, shape.order, FACTOR_TILE, Accuracy::Norm).unwrap();
            let needs = SolveSizes::of_factor(shape, 60, 60, Accuracy::Norm).needs(site, together);
            let Ok(Needs::Columns(mut memory, own, _)) = needs else { panic!("solved in bands") };
            let columns = Bands::widest(own).columns;
            memory.first_tries = first_kernel(&team, &memory, own).unwrap();
            memory.first_kernel(columns).map_or("", |kernel| kernel.name())
        })
    }

    #[test]
    fn the_ranks_of_a_node_take_one_kernel() {
        let builder = || Context::builder().threads(1);
        let free = || builder().build().unwrap();
        let large = kernels::preferred_for_large_solves();
        let other = large.map_or("", |(kernel, _)| kernel.name());
        let [small, order] = [0, 200].map(|bits| large.map_or(700, |(_, costs)| costs.least_rows(bits)));
        let forced = || builder().kernel(free().kernel().name()).build().unwrap();
        let limited = || builder().memory_bytes(1 << 40).build().unwrap();
        let system = |order: usize, columns: usize| SystemShape { order, columns };
        // As many right sides for each node as one process has.
        for (ranks, ranks_per_node, columns, want) in [
            (2, 2, 400, other),
            (2, 2, 384, ""),
            (4, 4, 512, other),
            // One of the four has fewer than 96.
            (4, 4, 400, ""),
            (4, 2, 800, other),
            (2, 1, 400, ""),
        ] {
            let contexts = (0..ranks).map(|_| free()).collect::<Vec<_>>();
            let found = kernels_of(&contexts, ranks_per_node, system(order, columns));
            assert_eq!(found, vec![want; ranks], "{ranks} ranks, {ranks_per_node} a node, {columns} right sides");
        }
        assert_eq!(kernels_of(&[free(), free()], 2, system(small - 1, 400)), ["", ""]);
        assert_eq!(kernels_of(&[free(), forced()], 2, system(order, 400)), ["", ""]);
        assert_eq!(kernels_of(&[limited(), free()], 2, system(order, 400)), ["", ""]);
        // Ranks that share no window choose separately, and so do nodes.
        assert_eq!(kernels_of(&[free(), forced()], 1, system(order, 800)), [other, ""]);
        assert_eq!(kernels_of(&[free(), free(), forced(), free()], 2, system(order, 800)), [other, other, "", ""]);
        // Too few right sides for each worker.
        let threads = || Context::builder().threads(4).build().unwrap();
        assert_eq!(kernels_of(&[threads(), threads()], 2, system(order, 752)), ["", ""]);
        assert_eq!(kernels_of(&[threads(), threads()], 2, system(order, 768)), [other, other]);
    }
}
