//! The memory of factorisations and solves on clusters that need not exist: the plans of their ranks, one after the
//! other in this process.

use crate::comm::PlannedRank;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::Uplo;
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::factor::disk::{OutOfCoreOptions, OutOfCorePlan, plan_order};
use crate::ops::factor::options::DistCholeskyOptions;
use crate::ops::factor::ranks::{cholesky_tiles, plan_cholesky};
use crate::ops::product::ranks::plan::ClusterShape;
use crate::ops::solve::disk::{OutOfCoreSolveOptions, OutOfCoreSolvePlan, plan_system};
use crate::ops::solve::ranks::plan_solve;
use crate::plan::default_tile_size;
use crate::site::{Site, Team};
use crate::tile::{RankGrid, TileMap};
use serde::Serialize;
use std::cmp::Reverse;

/// Ranks that are planned, at most: those with the most entries of the matrix.
const MOST_PLANNED: usize = 16;

/// Columns of right-hand sides in a tile.
const RIGHT_TILE: usize = 64;

/// The memory of a factorisation, or of a factorisation and a solve, on a cluster. Every number of bytes is that of
/// the rank that needs the most memory.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ClusterPlan {
    /// `cholesky` or `solve`.
    pub operation: &'static str,
    /// Number of rows of the matrix.
    pub order: usize,
    /// Number of right-hand sides; 0 for a factorisation.
    pub columns: usize,
    /// Precision of the matrix, the right-hand sides and the result.
    pub precision_bits: u32,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of ranks on all nodes.
    pub ranks: usize,
    /// Rows and columns of the grid of ranks.
    pub grid: (usize, usize),
    /// Number of rows of a tile of the factor.
    pub tile_rows: usize,
    /// Bytes of a rank's tiles of the matrix and of the right-hand sides.
    pub operand_bytes: u64,
    /// Bytes of a rank's tiles of the factor and of the solution.
    pub result_bytes: u64,
    /// Bytes that the factorisation needs, including the factor.
    pub factorisation_bytes: u64,
    /// Bytes that the solve needs, including the factor and the solution; 0 for a factorisation.
    pub solve_bytes: u64,
    /// The larger of `factorisation_bytes` and `solve_bytes`: the memory of a rank in addition to the operands.
    pub planned_bytes: u64,
}

/// The plan of a distributed [`crate::distributed::cholesky_with`] on a cluster, for a matrix of `order` rows whose
/// lower triangle is distributed over the ranks in tiles. [`plan_solve_cluster`] states what the plan assumes.
///
/// ```
/// use sunzi::Context;
/// use sunzi::distributed::{ClusterShape, DistCholeskyOptions, plan_cholesky_cluster};
/// let ctx = Context::builder().threads(1).build()?;
/// let cluster = ClusterShape { nodes: 2, ranks_per_node: 4, threads: 1 };
/// let plan = plan_cholesky_cluster(&ctx, cluster, 2000, 256, &DistCholeskyOptions::new())?;
/// assert_eq!((plan.ranks, plan.grid), (8, (2, 4)));
/// assert!(plan.planned_bytes > plan.result_bytes); // of each rank
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`plan_solve_cluster`].
pub fn plan_cholesky_cluster(
    ctx: &Context,
    cluster: ClusterShape,
    order: usize,
    precision_bits: u32,
    options: &DistCholeskyOptions,
) -> Result<ClusterPlan> {
    plan_ranks(ctx, cluster, &ClusterSystem { order, columns: None, precision_bits, options })
}

/// The plan of a distributed [`crate::distributed::cholesky_with`] and [`crate::distributed::solve_with`] on a cluster,
/// for `columns` right-hand sides.
///
/// The memory limit of the context is that of a node, for the memory in addition to the operands; the threads of the
/// context are those of a rank, and all ranks use its kernel. The function computes nothing and starts no rank. It
/// plans the part of each rank; of more than 16 ranks, it plans the 16 with the most entries of the matrix. It assumes
/// that the ranks of a node can share all memory of the node.
///
/// ```
/// use sunzi::Context;
/// use sunzi::distributed::{ClusterShape, DistCholeskyOptions, plan_solve_cluster};
/// let ctx = Context::builder().threads(1).build()?;
/// let cluster = ClusterShape { nodes: 2, ranks_per_node: 4, threads: 1 };
/// let plan = plan_solve_cluster(&ctx, cluster, 2000, 10, 256, &DistCholeskyOptions::new())?;
/// assert!(plan.solve_bytes > plan.result_bytes && plan.planned_bytes >= plan.solve_bytes);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`Error::MemoryLimit`] with the smallest limit of a node that suffices; [`Error::InvalidArgument`] for an empty
/// cluster, a cluster that is too large and a grid of more ranks than there are; [`Error::Precision`];
/// [`Error::DimensionOverflow`].
pub fn plan_solve_cluster(
    ctx: &Context,
    cluster: ClusterShape,
    order: usize,
    columns: usize,
    precision_bits: u32,
    options: &DistCholeskyOptions,
) -> Result<ClusterPlan> {
    plan_ranks(ctx, cluster, &ClusterSystem { order, columns: Some(columns), precision_bits, options })
}

/// The plan of [`crate::out_of_core::cholesky_over_ranks`] on a cluster, or with one rank of
/// [`crate::out_of_core::cholesky`], for a matrix of `order` rows and `precision_bits` bits: the plan of the rank that
/// needs the most memory. [`crate::distributed::plan_solve_cluster`] states what the plan assumes.
///
/// ```
/// use sunzi::Context;
/// use sunzi::distributed::ClusterShape;
/// use sunzi::out_of_core::{OutOfCoreOptions, plan_cholesky_cluster};
/// let ctx = Context::builder().threads(1).memory_bytes(20 << 20).build()?;
/// let one = ClusterShape { nodes: 1, ranks_per_node: 1, threads: 1 };
/// let plan = plan_cholesky_cluster(&ctx, one, 2000, 256, &OutOfCoreOptions::new())?;
/// assert!(plan.planned_bytes <= 20 << 20); // of a triangle of 80 MiB
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`crate::distributed::plan_solve_cluster`].
pub fn plan_file_cholesky_cluster(
    ctx: &Context,
    cluster: ClusterShape,
    order: usize,
    precision_bits: u32,
    options: &OutOfCoreOptions,
) -> Result<OutOfCorePlan> {
    let ranks = cluster.ranks()?;
    let grid = options.grid.unwrap_or_else(|| RankGrid::for_ranks(ranks));
    let each = planned_ranks(&matrix_tiles(order, grid), ranks).into_iter().map(|rank| {
        let team = planned_team(cluster, rank)?;
        plan_order(Site { ctx, team: &team }, order, precision_bits, options)
    });
    most(each, |plan| plan.planned_bytes)
}

/// The plan of [`crate::out_of_core::solve_over_ranks`] on a cluster, or with one rank of
/// [`crate::out_of_core::solve`], for `columns` right-hand sides: the plan of the rank that needs the most memory.
/// [`crate::distributed::plan_solve_cluster`] states what the plan assumes.
///
/// ```
/// use sunzi::Context;
/// use sunzi::distributed::ClusterShape;
/// use sunzi::out_of_core::{OutOfCoreSolveOptions, plan_solve_cluster};
/// let ctx = Context::builder().threads(1).memory_bytes(20 << 20).build()?;
/// let one = ClusterShape { nodes: 1, ranks_per_node: 1, threads: 1 };
/// let plan = plan_solve_cluster(&ctx, one, 2000, 10, 256, &OutOfCoreSolveOptions::new())?;
/// assert!(plan.planned_bytes <= 20 << 20 && plan.band_columns <= 10);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`crate::distributed::plan_solve_cluster`].
pub fn plan_file_solve_cluster(
    ctx: &Context,
    cluster: ClusterShape,
    order: usize,
    columns: usize,
    precision_bits: u32,
    options: &OutOfCoreSolveOptions,
) -> Result<OutOfCoreSolvePlan> {
    let ranks = cluster.ranks()?;
    let grid = options.grid.unwrap_or_else(|| RankGrid::for_ranks(ranks));
    let each = planned_ranks(&matrix_tiles(order, grid), ranks).into_iter().map(|rank| {
        let team = planned_team(cluster, rank)?;
        plan_system(Site { ctx, team: &team }, order, columns, precision_bits, options)
    });
    most(each, |plan| plan.planned_bytes)
}

/// A problem on a cluster.
struct ClusterSystem<'a> {
    order: usize,
    /// Right-hand sides, if there are any.
    columns: Option<usize>,
    precision_bits: u32,
    options: &'a DistCholeskyOptions,
}

fn plan_ranks(ctx: &Context, cluster: ClusterShape, system: &ClusterSystem<'_>) -> Result<ClusterPlan> {
    let ranks = cluster.ranks()?;
    let grid = system.options.grid.unwrap_or_else(|| RankGrid::for_ranks(ranks));
    grid.check_ranks(ranks)?;
    let map = matrix_tiles(system.order, grid);
    let each = planned_ranks(&map, ranks).into_iter().map(|rank| plan_rank(ctx, cluster, system, map, rank));
    most(each, |plan| plan.planned_bytes)
}

/// The plan of one rank.
fn plan_rank(
    ctx: &Context,
    cluster: ClusterShape,
    system: &ClusterSystem<'_>,
    map: TileMap,
    rank: usize,
) -> Result<ClusterPlan> {
    let ClusterSystem { order, columns, precision_bits: bits, options } = *system;
    let team = &planned_team(cluster, rank)?;
    let tiles = cholesky_tiles(ctx, team, order, bits, &options.grid(map.grid))?;
    let factor_bytes = DistMatrix::bytes_for(&tiles, rank, bits);
    let factorisation = plan_cholesky(ctx, team, (&map, bits), bits, options);
    let right = TileMap { rows: order, cols: columns.unwrap_or(0), tile_size: RIGHT_TILE, triangle: None, ..map };
    let right_bytes = DistMatrix::bytes_for(&right, rank, bits);
    let solve = columns.map_or(Ok(0), |columns| {
        // The factor is held.
        let ctx = &Site { ctx, team }.holding(factor_bytes)?;
        plan_solve(ctx, team, (order, columns), (bits, bits), options.accuracy).map(|bytes| factor_bytes + bytes)
    });
    let (factorisation_bytes, solve_bytes) = both(factorisation, solve)?;
    Ok(ClusterPlan {
        operation: if columns.is_some() { "solve" } else { "cholesky" },
        order,
        columns: columns.unwrap_or(0),
        precision_bits: bits,
        nodes: cluster.nodes,
        ranks: team.size(),
        grid: (map.grid.rows, map.grid.cols),
        tile_rows: tiles.tile_size,
        operand_bytes: DistMatrix::bytes_for(&map, rank, bits) + right_bytes,
        result_bytes: factor_bytes + right_bytes,
        factorisation_bytes,
        solve_bytes,
        planned_bytes: factorisation_bytes.max(solve_bytes),
    })
}

/// The tiles in which a matrix is distributed before it is factored.
fn matrix_tiles(order: usize, grid: RankGrid) -> TileMap {
    let tile_size = default_tile_size(order, grid);
    TileMap { grid, ..TileMap { triangle: Some(Uplo::Lower), ..TileMap::symmetric(order, tile_size) } }
}

/// All ranks, or those with the most entries of the matrix.
fn planned_ranks(map: &TileMap, ranks: usize) -> Vec<usize> {
    let mut all = (0..ranks).collect::<Vec<_>>();
    if ranks > MOST_PLANNED {
        all.sort_by_cached_key(|&rank| Reverse(DistMatrix::bytes_for(map, rank, 64)));
        all.truncate(MOST_PLANNED);
    }
    all
}

fn planned_team(cluster: ClusterShape, rank: usize) -> Result<Team> {
    let ranks = cluster.ranks()?;
    Team::planned(PlannedRank::new(rank, ranks, cluster.ranks_per_node), cluster.ranks_per_node)
}

/// The plan with the most bytes, or the refusal that names the largest limit.
fn most<T>(plans: impl Iterator<Item = Result<T>>, bytes: impl Fn(&T) -> u64) -> Result<T> {
    let larger = |one: Result<T>, other: Result<T>| match (one, other) {
        (Ok(one), Ok(other)) => Ok(if bytes(&one) >= bytes(&other) { one } else { other }),
        (Err(one), Err(other)) => Err(larger_of(one, other)),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
    };
    plans.reduce(larger).expect("a cluster has a rank")
}

/// Two numbers, or the refusal that names the larger limit.
fn both(one: Result<u64>, other: Result<u64>) -> Result<(u64, u64)> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(one), Err(other)) => Err(larger_of(one, other)),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
    }
}

/// The refusal that names the larger limit; the first error that no limit can remove.
fn larger_of(one: Error, other: Error) -> Error {
    match (&one, &other) {
        (Error::MemoryLimit { minimum_bytes: least, .. }, Error::MemoryLimit { minimum_bytes, .. }) => {
            if least >= minimum_bytes { one } else { other }
        }
        (Error::MemoryLimit { .. }, _) => other,
        _ => one,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::{Transport, local};
    use crate::ops::product::problem::Accuracy;
    use crate::site::TeamOptions;

    /// The plan of a cluster is that of ranks that exist.
    #[test]
    fn a_planned_cluster_takes_what_its_ranks_take() {
        for (ranks, ranks_per_node) in [(1, 1), (4, 4), (4, 2), (6, 2), (3, 1)] {
            for limit in [None, Some(64 << 20)] {
                let context = || {
                    let builder = Context::builder().threads(1);
                    limit.map_or(builder.clone(), |bytes| builder.memory_bytes(bytes)).build().unwrap()
                };
                let options = DistCholeskyOptions::new().accuracy(Accuracy::Norm);
                let cluster = ClusterShape { nodes: ranks / ranks_per_node, ranks_per_node, threads: 1 };
                let plan = plan_cholesky_cluster(&context(), cluster, 500, 200, &options).unwrap();
                let map = matrix_tiles(500, RankGrid::for_ranks(ranks));
                let real = local::run(ranks, |rank| {
                    let team = TeamOptions::new().ranks_per_node(ranks_per_node);
                    let team = Team::new(rank.split(0).unwrap(), team).unwrap();
                    plan_cholesky(&context(), &team, (&map, 200), 200, &options).unwrap()
                });
                let most = real.into_iter().max();
                assert_eq!(Some(plan.planned_bytes), most, "{ranks} ranks, {ranks_per_node} a node, {limit:?}");
            }
        }
    }

    #[test]
    fn the_least_limit_of_a_cluster_suffices() {
        let cluster = ClusterShape { nodes: 2, ranks_per_node: 3, threads: 1 };
        let within = |bytes| Context::builder().threads(1).memory_bytes(bytes).build().unwrap();
        let options = DistCholeskyOptions::new();
        let plan = |bytes| plan_solve_cluster(&within(bytes), cluster, 400, 30, 200, &options);
        let Err(Error::MemoryLimit { minimum_bytes, .. }) = plan(0) else { panic!("no bytes suffice") };
        assert!(plan(minimum_bytes).unwrap().planned_bytes <= minimum_bytes);
        assert!(matches!(plan(minimum_bytes - 1), Err(Error::MemoryLimit { .. })));
        let files = |bytes| {
            let options = OutOfCoreSolveOptions::new();
            plan_file_solve_cluster(&within(bytes), cluster, 400, 30, 200, &options).map(|plan| plan.planned_bytes)
        };
        let Err(Error::MemoryLimit { minimum_bytes, .. }) = files(0) else { panic!("no bytes suffice") };
        assert!(3 * files(minimum_bytes).unwrap() <= minimum_bytes);
        assert!(matches!(files(minimum_bytes - 1), Err(Error::MemoryLimit { .. })));
        let empty = ClusterShape { nodes: 0, ..cluster };
        let refused = plan_cholesky_cluster(&within(1 << 30), empty, 400, 200, &options);
        assert!(matches!(refused, Err(Error::InvalidArgument(_))));
    }
}
