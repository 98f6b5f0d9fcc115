//! `sunzi plan cholesky` and `sunzi plan solve` on a cluster, and above a disk: memory of a rank and of a node, the
//! largest.

use super::{factor_options, least, part, process};
use crate::args::{PlanFactor, PlanMatrix, PlanSolve};
use crate::session::Session;
use serde::Serialize;
use sunzi::advanced::plan::default_tile_size;
use sunzi::distributed::{
    ClusterPlan, ClusterShape, DistCholeskyOptions, DistMatrix, RankGrid, TileMap, plan_cholesky_cluster,
    plan_solve_cluster,
};
use sunzi::out_of_core::{self, OutOfCoreOptions, OutOfCorePlan, OutOfCoreSolveOptions};
use sunzi::{Context, Matrix, Result, Uplo};
use sunzi_session::engine::{Engine, least_bytes, limited};
use sunzi_session::session::Session as _;
use sunzi_session::units::{counted, folded, format_bytes};

/// Columns of right-hand sides in a tile.
const RIGHT_TILE: usize = 64;

/// One process.
const ALONE: ClusterShape = ClusterShape { nodes: 1, ranks_per_node: 1, threads: 1 };

/// The memory of a node in addition to the plans of its ranks.
#[derive(Clone, Copy)]
struct NodeMatrices {
    /// Tiles of the operands on all ranks of the node.
    operand_bytes: u64,
    /// Whole operands, which the first node holds while it distributes them.
    whole_bytes: u64,
    /// The whole result, which is gathered on the first node.
    gathered_bytes: u64,
}

/// The report.
#[derive(Serialize)]
struct NodeReport<'a, P> {
    #[serde(flatten)]
    plan: &'a P,
    ranks_per_node: usize,
    threads_per_rank: usize,
    /// Memory of the rank that needs the most: operands and plan.
    rank_bytes: u64,
    /// Memory of the node that needs the most, the first one: processes, operands, plans, and the whole operands or the
    /// whole result.
    node_bytes: u64,
    /// Memory of the processes of a node in addition to matrices and plans.
    process_bytes: u64,
    /// The smallest limit of a node.
    least_limit_bytes: u64,
}

/// A plan on a cluster, or in one process.
struct ClusterRequest<'a> {
    engine: &'a Engine,
    /// `None` for one process.
    cluster: Option<ClusterShape>,
    matrices: NodeMatrices,
}

impl ClusterRequest<'_> {
    /// Makes the plan in the memory that a node has left, reports it, and shows it: the heading, and the lines that
    /// `describe` gives.
    fn show<P: Serialize>(
        &self,
        session: &mut Session,
        make: impl Fn(&Context) -> Result<P>,
        rank_bytes: impl Fn(&P) -> u64,
        describe: impl FnOnce(&P) -> Vec<String>,
    ) -> Result<()> {
        let ClusterRequest { engine, cluster, matrices, .. } = *self;
        let NodeMatrices { operand_bytes, whole_bytes, gathered_bytes } = matrices;
        let shape = cluster.unwrap_or(ALONE);
        let node = super::budget_of(engine, cluster).with_held(operand_bytes);
        let limit = engine.memory_bytes;
        let budget = limit.map(|_| node.with_held(gathered_bytes));
        let planned = Engine { threads: Some(engine.threads.unwrap_or(1)), ..Engine::clone(engine) };
        let planned = if cluster.is_some() { &planned } else { engine };
        let needed = gathered_bytes.saturating_add(least_bytes(session.context(planned)?, &make)?).max(whole_bytes);
        if limit.is_some() {
            node.admit(needed)?;
        }
        let (builder, restate) = limited(session.context(planned)?, budget);
        let plan = make(&builder.build()?).map_err(restate)?;
        let ranks = shape.ranks_per_node as u64;
        let own = operand_bytes / ranks + rank_bytes(&plan);
        let all = ranks.saturating_mul(rank_bytes(&plan)).saturating_add(gathered_bytes).max(whole_bytes);
        let report = NodeReport {
            plan: &plan,
            ranks_per_node: shape.ranks_per_node,
            threads_per_rank: planned.thread_count(),
            rank_bytes: own,
            node_bytes: node.least_limit(all),
            process_bytes: node.process_bytes(),
            least_limit_bytes: node.least_limit(needed),
        };
        session.finish_report(&report)?;
        let mut lines = limit.map(|_| format!("memory          {}", node.describe())).into_iter().collect::<Vec<_>>();
        lines.extend(describe(&plan));
        if cluster.is_some() {
            lines.push(part("rank", own, "operands and plan of the rank that needs the most memory"));
        }
        let whole = [
            ("whole operands", whole_bytes, "on the first node, while it distributes them"),
            ("whole result", gathered_bytes, "gathered on the first node"),
        ];
        lines.extend(
            whole.iter().filter(|(_, bytes, _)| *bytes > 0).map(|(name, bytes, text)| part(name, *bytes, text)),
        );
        lines.push(process(node, cluster));
        if cluster.is_some() {
            let bytes = report.node_bytes;
            lines.push(part("node", bytes, &format!("({bytes} bytes) all of this, on the first node")));
        }
        lines.push(least(report.least_limit_bytes));
        session.say(&folded(&lines.join("\n")))
    }
}

/// The matrix in tiles over the ranks of a cluster.
fn matrix_tiles(order: usize, shape: ClusterShape) -> Result<TileMap> {
    let grid = RankGrid::for_ranks(shape.ranks()?);
    let tile_size = default_tile_size(order, grid);
    Ok(TileMap { rows: order, cols: order, tile_size, grid, triangle: Some(Uplo::Lower) })
}

/// The matrices of a factorisation, and of a solve for `columns` right-hand sides.
///
/// # Errors
/// The errors of [`ClusterShape::ranks`].
fn matrices(order: usize, columns: Option<usize>, bits: u32, shape: ClusterShape) -> Result<NodeMatrices> {
    let map = matrix_tiles(order, shape)?;
    let right = TileMap { cols: columns.unwrap_or(0), tile_size: RIGHT_TILE, triangle: None, ..map };
    let on_rank = |rank| DistMatrix::bytes_for(&map, rank, bits) + DistMatrix::bytes_for(&right, rank, bits);
    let most = (0..map.grid.size()).map(on_rank).max().unwrap_or(0);
    Ok(NodeMatrices {
        operand_bytes: most.saturating_mul(shape.ranks_per_node as u64),
        whole_bytes: Matrix::bytes_for(order, order.saturating_add(right.cols), bits),
        gathered_bytes: Matrix::bytes_for(order, columns.unwrap_or(order), bits),
    })
}

/// No matrix is in memory as a whole.
const IN_FILES: NodeMatrices = NodeMatrices { operand_bytes: 0, whole_bytes: 0, gathered_bytes: 0 };

fn rank_options(args: &PlanFactor) -> DistCholeskyOptions {
    let options = factor_options(args.matrix.promise, args.matrix.rows);
    DistCholeskyOptions::new().tile_rows(args.tile).accuracy(options.accuracy).range_bits(options.range_bits)
}

/// Plans a factorisation on a cluster.
pub fn cholesky(session: &mut Session, args: &PlanFactor, shape: ClusterShape) -> Result<()> {
    let PlanMatrix { rows: order, precision, ref engine, .. } = args.matrix;
    let (options, cluster) = (rank_options(args), Some(shape));
    let request = ClusterRequest { engine, cluster, matrices: matrices(order, None, precision, shape)? };
    let make = |ctx: &Context| plan_cholesky_cluster(ctx, shape, order, precision, &options);
    request.show(session, make, |plan| plan.planned_bytes, |plan| describe_cluster(plan, shape))
}

/// Plans a factorisation and a solve on a cluster.
pub fn solve(session: &mut Session, args: &PlanSolve, shape: ClusterShape) -> Result<()> {
    let PlanSolve { cols, matrix: PlanMatrix { rows: order, precision, promise, ref engine, .. } } = *args;
    let options = factor_options(promise, order);
    let options = DistCholeskyOptions::new().accuracy(options.accuracy).range_bits(options.range_bits);
    let cluster = Some(shape);
    let request = ClusterRequest { engine, cluster, matrices: matrices(order, Some(cols), precision, shape)? };
    let make = |ctx: &Context| plan_solve_cluster(ctx, shape, order, cols, precision, &options);
    request.show(session, make, |plan| plan.planned_bytes, |plan| describe_cluster(plan, shape))
}

/// Plans a factorisation with `--storage`, in one process or on a cluster.
pub fn cholesky_above_disk(session: &mut Session, args: &PlanFactor, cluster: Option<ClusterShape>) -> Result<()> {
    let PlanFactor { tile, matrix: PlanMatrix { rows: order, precision, ref engine, .. } } = *args;
    let shape = cluster.unwrap_or(ALONE);
    let options = OutOfCoreOptions::new().tile_rows(tile);
    let request = ClusterRequest { engine, cluster, matrices: IN_FILES };
    let make = |ctx: &Context| out_of_core::plan_cholesky_cluster(ctx, shape, order, precision, &options);
    request.show(
        session,
        make,
        |plan| plan.planned_bytes,
        |plan| {
            let mut lines = vec![format!("A = L L^T: {order} x {order} at {precision} bits, tiles on a disk")];
            lines.extend(cluster.map(cluster_line));
            lines.extend(describe_disk(plan));
            lines.push(planned(plan.planned_bytes));
            lines
        },
    )
}

/// Plans a factorisation and a solve with `--storage`, in one process or on a cluster.
pub fn solve_above_disk(session: &mut Session, args: &PlanSolve, cluster: Option<ClusterShape>) -> Result<()> {
    let PlanSolve { cols, matrix: PlanMatrix { rows: order, precision, ref engine, .. } } = *args;
    let shape = cluster.unwrap_or(ALONE);
    let options = OutOfCoreSolveOptions::new();
    let request = ClusterRequest { engine, cluster, matrices: IN_FILES };
    let make = |ctx: &Context| out_of_core::plan_solve_cluster(ctx, shape, order, cols, precision, &options);
    request.show(
        session,
        make,
        |plan| plan.planned_bytes,
        |plan| {
            let columns = counted(cols, "right-hand side");
            let heading = format!("A X = B: {order} x {order} and {columns} at {precision} bits, tiles on a disk");
            let mut lines = vec![heading];
            lines.extend(cluster.map(cluster_line));
            lines.extend(describe_disk(&plan.factorisation));
            lines.push(format!("bands           of {}", counted(plan.band_columns, "right-hand side")));
            lines.push(part("factorisation", plan.factorisation.planned_bytes, ""));
            lines.push(part("solve", plan.solve_bytes, ""));
            lines.push(planned(plan.planned_bytes));
            lines
        },
    )
}

fn cluster_line(shape: ClusterShape) -> String {
    let ClusterShape { nodes, ranks_per_node, threads } = shape;
    format!(
        "cluster         {} of {} of {}: {}",
        counted(nodes, "node"),
        counted(ranks_per_node, "rank"),
        counted(threads, "thread"),
        counted(nodes.saturating_mul(ranks_per_node), "rank")
    )
}

fn planned(bytes: u64) -> String {
    part("planned", bytes, &format!("({bytes} bytes, the largest of all ranks)"))
}

fn describe_cluster(plan: &ClusterPlan, shape: ClusterShape) -> Vec<String> {
    let ClusterPlan { order, columns, precision_bits, grid, tile_rows, .. } = plan;
    let heading = match plan.operation {
        "solve" => {
            let columns = counted(*columns, "right-hand side");
            format!("A X = B: {order} x {order} and {columns} at {precision_bits} bits")
        }
        _ => format!("A = L L^T: {order} x {order} at {precision_bits} bits"),
    };
    let mut lines = vec![
        heading,
        cluster_line(shape),
        format!("grid            {} x {} ranks own tiles of {tile_rows} rows", grid.0, grid.1),
        part("operands", plan.operand_bytes, "tiles of a rank, not part of the plan"),
        part("result", plan.result_bytes, "tiles of a rank"),
    ];
    if plan.solve_bytes > 0 {
        lines.push(part("factorisation", plan.factorisation_bytes, "of a rank, including the factor"));
        lines.push(part("solve", plan.solve_bytes, "of a rank, including factor and solution"));
    }
    let bytes = plan.planned_bytes;
    lines.push(part("planned", bytes, &format!("({bytes} bytes on a rank, operands excluded)")));
    lines
}

fn describe_disk(plan: &OutOfCorePlan) -> Vec<String> {
    let OutOfCorePlan { tile_rows, tiles, room_tiles, block_tiles: (rows, cols), traffic, .. } = plan;
    let (read, written) = (format_bytes(traffic.read_bytes()), format_bytes(traffic.written_bytes));
    vec![
        "accuracy        by norms".to_string(),
        format!("tiles           {} of {tile_rows} rows, {room_tiles} in memory", counted(*tiles, "tile row")),
        format!("blocks          {rows} x {cols} tiles stay in memory"),
        format!("disk            {read} read, {written} written by a rank for the factor"),
    ]
}
