//! One plan for all ranks: the same batches, bands and chunks everywhere, within the memory of every node.

use crate::comm::window::SharedWindow;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::kernels::{EngineSpec, PlaneEngine};
use crate::math::float::limbs_for;
use crate::matrix::{Matrix, Uplo};
use crate::ops::direct::ProductSize;
use crate::ops::distributed::DistMatrix;
use crate::ops::problem::{Bits, check_precision};
use crate::plan::{
    BLOCK, BLOCK_WORDS, BlockGrid, Cut, NodeShape, PlanBytes, PlanInput, RankGrid, TileMap, WindowWords, plan_jobs,
};
use crate::store::Buffer;
use serde::Serialize;
use std::sync::Arc;

/// Words of the largest message between two ranks; each rank has room for one that it sends to each partner of a node
/// and one that it receives.
pub(crate) const MESSAGE_WORDS: usize = 1 << 16;

/// Bytes of the lists of one rank beside those that a call in one process has: groups, facts of other ranks.
const RANK_BYTES: u64 = 64 << 10;

/// The ranks a product runs on, and what it computes.
pub(crate) struct ClusterRequest<'a> {
    pub operation: &'static str,
    pub size: ProductSize,
    pub bits: Bits,
    /// The ranks of each node.
    pub nodes: &'a [NodeShape],
    /// World ranks of each node, in the order of its shape.
    pub ranks: &'a [Vec<usize>],
    /// Tiles of the result.
    pub map: TileMap,
    /// Bytes that each node may take.
    pub node_bytes: &'a [u64],
    /// A cut to run instead of the one the memory asks for.
    pub cut: Option<Cut>,
}

/// How a product will run on many ranks.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ClusterPlan {
    /// `syrk` or `gemm`.
    pub operation: &'static str,
    /// Rows contracted (K).
    pub contracted: usize,
    /// Rows of the result.
    pub rows: usize,
    /// Columns of the result.
    pub cols: usize,
    /// Precision of the result.
    pub precision_bits: u32,
    /// Precision of the scaled integers; 0 in exact integer arithmetic.
    pub working_bits: u32,
    /// Name of the kernel.
    pub kernel: &'static str,
    /// Nodes.
    pub nodes: usize,
    /// Ranks on all nodes.
    pub ranks: usize,
    /// Rows and columns of the grid of ranks that owns the result.
    pub grid: (usize, usize),
    /// Rows and columns of a tile of the result.
    pub tile_size: usize,
    /// Planes, a redundant one included.
    pub primes: usize,
    /// Groups of primes whose operand planes are in memory at the same time.
    pub batches: usize,
    /// Primes of a batch; the last may have fewer.
    pub batch_primes: usize,
    /// Bands of the result, in its longer direction.
    pub bands: usize,
    /// Columns of a band; the last may have fewer.
    pub band_columns: usize,
    /// Chunks of contracted rows, on every node.
    pub chunks: usize,
    /// What each kind of node takes.
    pub per_node: Vec<NodePlan>,
    /// Most bytes that a node takes.
    pub planned_bytes: u64,
    /// Bytes of residues that a node sends to others, at most; 0 on one node.
    pub sent_bytes: u64,
    /// Largest load of a worker over the mean of its node, for one full batch on the largest pair of bands.
    pub load_max_over_mean: f64,
}

/// What some nodes, which are alike, take.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NodePlan {
    /// The nodes.
    pub count: usize,
    /// The first of them.
    pub first_node: usize,
    /// Ranks of such a node.
    pub ranks: usize,
    /// Worker threads of such a node.
    pub workers: usize,
    /// Contracted rows on such a node.
    pub rows: usize,
    /// Bytes of each part, at most.
    pub bytes: PlanBytes,
    /// Sum of `bytes`.
    pub planned_bytes: u64,
}

/// A plan with what it takes to run it.
pub(crate) struct PlannedCluster {
    pub engine: Arc<dyn PlaneEngine>,
    pub cut: Cut,
    pub chunks: usize,
    /// Words of each node's windows and of a worker's scratch.
    pub words: Vec<WindowWords>,
    /// Panels that the operand window has room for, of the left and of the right operand.
    pub slot_panels: (usize, usize),
    pub plan: ClusterPlan,
}

/// Plans a product on many ranks. The same result on all ranks that pass the same request.
///
/// # Errors
/// [`Error::MemoryLimit`] names the least memory per node that would do; [`Error::Precision`].
pub(crate) fn plan_cluster(ctx: &Context, request: &ClusterRequest<'_>) -> Result<PlannedCluster> {
    let spec = EngineSpec {
        operand_bits: request.bits.operand,
        modulus_bits: request.bits.modulus,
        redundant: ctx.self_check(),
    };
    let engine = ctx.engine(ctx.kernel(), spec)?;
    let shapes = distinct_shapes(request);
    let contracted = shapes.iter().map(|shape| shape.shape.total_rows()).max().unwrap_or(0).max(1);
    let cut = choose(request, &*engine, &shapes, contracted)?;
    let chunks = contracted.div_ceil(cut.chunk_rows);
    let one = |shape: &Shape<'_>| {
        with_input(request, &*engine, &[*shape], contracted, |input| {
            let words = input.window_words(&cut);
            (words, input.bytes(&cut), input.slot_panels(&cut), describe(ctx, request, input, &cut))
        })
    };
    let planned = shapes.iter().map(one).collect::<Vec<_>>();
    let mut plan = planned.first().map_or_else(ClusterPlan::default, |first| first.3.clone());
    for (shape, (_, bytes, _, described)) in shapes.iter().zip(&planned) {
        plan.load_max_over_mean = plan.load_max_over_mean.max(described.load_max_over_mean);
        plan.planned_bytes = plan.planned_bytes.max(bytes.total());
        plan.per_node.push(NodePlan {
            count: shape.count,
            first_node: shape.first_node,
            ranks: shape.shape.ranks(),
            workers: shape.shape.workers(),
            rows: shape.shape.total_rows(),
            bytes: *bytes,
            planned_bytes: bytes.total(),
        });
    }
    let of_node = |node: &NodeShape| shapes.iter().position(|shape| shape.shape == node).expect("every shape is there");
    let words = request.nodes.iter().map(|node| planned[of_node(node)].0).collect();
    let slot_panels = planned.first().map_or((0, 0), |first| first.2);
    Ok(PlannedCluster { engine, cut, chunks, words, slot_panels, plan })
}

/// Nodes that are alike.
#[derive(Clone, Copy)]
struct Shape<'a> {
    shape: &'a NodeShape,
    count: usize,
    first_node: usize,
    /// Most bytes of results on one of them.
    result_bytes: u64,
    /// Fewest bytes that one of them may take.
    node_bytes: u64,
}

fn distinct_shapes<'a>(request: &ClusterRequest<'a>) -> Vec<Shape<'a>> {
    let mut shapes: Vec<Shape<'a>> = Vec::new();
    let mut known = std::collections::HashMap::new();
    for (node, shape) in request.nodes.iter().enumerate() {
        let tiles = |&rank: &usize| DistMatrix::bytes_for(&request.map, rank, request.bits.result);
        let result_bytes = request.ranks[node].iter().map(tiles).sum();
        let index = *known.entry(shape).or_insert_with(|| {
            shapes.push(Shape { shape, count: 0, first_node: node, result_bytes: 0, node_bytes: u64::MAX });
            shapes.len() - 1
        });
        let entry = &mut shapes[index];
        entry.count += 1;
        entry.result_bytes = entry.result_bytes.max(result_bytes);
        entry.node_bytes = entry.node_bytes.min(request.node_bytes[node]);
    }
    shapes
}

/// The cut whose bytes fit every node: that of a node which has the most of everything and the least memory.
fn choose(
    request: &ClusterRequest<'_>,
    engine: &dyn PlaneEngine,
    shapes: &[Shape<'_>],
    contracted: usize,
) -> Result<Cut> {
    let limit_bytes = shapes.iter().map(|shape| shape.node_bytes).min().unwrap_or(u64::MAX);
    with_input(request, engine, shapes, contracted, |input| match request.cut {
        Some(cut) => Ok(cut.within(&input.whole())),
        None => input.choose(limit_bytes).map_err(|minimum_bytes| Error::MemoryLimit { limit_bytes, minimum_bytes }),
    })
}

/// Runs `use_input` with the plan input of a node that has at least as much of everything as each of `shapes`.
fn with_input<R>(
    request: &ClusterRequest<'_>,
    engine: &dyn PlaneEngine,
    shapes: &[Shape<'_>],
    contracted: usize,
    use_input: impl FnOnce(&PlanInput<'_>) -> R,
) -> R {
    let size = &request.size;
    let most = |of: &dyn Fn(&Shape<'_>) -> u64| shapes.iter().map(of).max().unwrap_or(0);
    let ranks = most(&|shape| shape.shape.ranks() as u64);
    let workers = most(&|shape| shape.shape.workers() as u64).max(1);
    let messages = if request.nodes.len() > 1 { message_buffers(request) as u64 } else { 0 };
    // A plan counts chunks in rows of the tallest node; what a node then has in its window depends on its ranks.
    let rows_of = |rows: usize| {
        let chunks = contracted.div_ceil(rows.max(1));
        let chunk_rows = |shape: &Shape<'_>| shape.shape.chunk_rows(chunks, 0);
        shapes.iter().map(chunk_rows).max().unwrap_or(0)
    };
    let columns = (size.rows + size.cols) as u64;
    // Exponents, their largest and their sums on the way to all ranks.
    let list_bytes = ranks * (RANK_BYTES + 8 * 8 * columns)
        + ranks * messages * Buffer::bytes_for(MESSAGE_WORDS)
        + ranks * run_bytes(request)
        + ranks * workers * 64 * engine.moduli().len() as u64;
    let input = PlanInput {
        contracted,
        left_panels: size.rows.div_ceil(BLOCK).max(1),
        right_panels: size.cols.div_ceil(BLOCK).max(1),
        triangle: size.triangle,
        primes: engine.moduli().len(),
        workers: workers as usize,
        result_bytes: most(&|shape| shape.result_bytes),
        table_bytes: ranks * engine.table_bytes(),
        list_bytes,
        integer_bytes: (BLOCK_WORDS * engine.magnitude_limbs() * 8) as u64,
        operand_limbs: limbs_for(request.bits.operand.max(1)),
        panel_words: &|rows| engine.panel_words(rows_of(rows)),
        scratch_words: &|rows, grid| engine.scratch_words(rows_of(rows), grid),
        call_bytes: &|rows, grid| engine.call_bytes(rows_of(rows), grid),
        window_bytes: &SharedWindow::bytes_for,
        scratch_bytes: &Buffer::bytes_for,
    };
    use_input(&input)
}

/// Messages that a rank holds at the same time: one that it receives, and one for each rank of another node that it
/// serves.
fn message_buffers(request: &ClusterRequest<'_>) -> usize {
    let sizes = request.nodes.iter().map(NodeShape::ranks);
    let (least, most) = (sizes.clone().min().unwrap_or(1), sizes.max().unwrap_or(1));
    1 + most.div_ceil(least)
}

/// Bytes of the lists of owned blocks of one rank, and of the slices of its own blocks.
fn run_bytes(request: &ClusterRequest<'_>) -> u64 {
    let (blocks, tile_blocks) = (request.size.cols.div_ceil(BLOCK), request.map.tile_size / BLOCK);
    let runs = blocks * request.size.rows.div_ceil(BLOCK).div_ceil(tile_blocks);
    let runs = (if request.size.triangle { runs / 2 + blocks } else { runs }) as u64;
    let owned = runs.div_ceil(request.map.grid.size() as u64);
    let planes = u64::from(request.bits.modulus / 20 + 2);
    if request.nodes.len() > 1 { 120 * runs + 24 * owned * planes } else { 48 * runs }
}

fn describe(ctx: &Context, request: &ClusterRequest<'_>, input: &PlanInput<'_>, cut: &Cut) -> ClusterPlan {
    let (row_bands, col_bands) = input.bands(cut);
    let panels = |total: usize| total.min(cut.band_panels);
    let (rows, cols) = (panels(input.left_panels), panels(input.right_panels));
    let grid = BlockGrid { rows, cols, triangle: input.triangle && row_bands == 1 };
    let jobs = plan_jobs(cut.batch_primes, grid.len(), input.workers);
    let nodes = request.nodes.len();
    let ranks: usize = request.nodes.iter().map(NodeShape::ranks).sum();
    let plane_words = if request.size.triangle {
        BlockGrid::triangle(request.size.cols).words()
    } else {
        BlockGrid::rectangle(request.size.rows, request.size.cols).words()
    };
    ClusterPlan {
        operation: request.operation,
        contracted: request.size.contracted,
        rows: request.size.rows,
        cols: request.size.cols,
        precision_bits: request.bits.result,
        working_bits: request.bits.working,
        kernel: ctx.kernel().name(),
        nodes,
        ranks,
        grid: (request.map.grid.rows, request.map.grid.cols),
        tile_size: request.map.tile_size,
        primes: input.primes,
        batches: input.batches(cut),
        batch_primes: cut.batch_primes,
        bands: row_bands.max(col_bands),
        band_columns: (cut.band_panels * BLOCK).min(request.size.rows.max(request.size.cols)),
        chunks: input.chunks(cut),
        per_node: Vec::new(),
        planned_bytes: 0,
        sent_bytes: if nodes > 1 { (plane_words * input.primes) as u64 * 8 } else { 0 },
        load_max_over_mean: jobs.assignment.max_over_mean(),
    }
}

/// A cluster that one does not have: `nodes` nodes of `ranks_per_node` ranks with `threads` threads each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterShape {
    /// Nodes.
    pub nodes: usize,
    /// Ranks of each node.
    pub ranks_per_node: usize,
    /// Worker threads of each rank.
    pub threads: usize,
}

/// The plan of a distributed [`crate::ops::distributed::syrk`] of a `rows x cols` matrix whose rows are shared out
/// evenly over a cluster; the context's memory limit is that of a node. Nothing is computed.
///
/// # Errors
/// As [`crate::plan_syrk`]; [`Error::InvalidArgument`] for an empty cluster.
pub fn plan_syrk_cluster(
    ctx: &Context,
    cluster: ClusterShape,
    rows: usize,
    cols: usize,
    precision_bits: u32,
) -> Result<ClusterPlan> {
    let ClusterShape { nodes, ranks_per_node, threads } = cluster;
    let ranks = nodes.checked_mul(ranks_per_node).filter(|&ranks| ranks <= 1 << 24).unwrap_or(0);
    if ranks == 0 || threads == 0 {
        let message = format!("a cluster of {nodes} nodes with {ranks_per_node} ranks of {threads} threads each");
        return Err(Error::InvalidArgument(message));
    }
    let size = ProductSize { contracted: rows, rows: cols, cols, triangle: true };
    check_precision(ctx.kernel(), precision_bits, rows)?;
    size.check(precision_bits)?;
    let shape = |node: usize| NodeShape {
        rows: (0..ranks_per_node).map(|local| even_share(rows, ranks, node * ranks_per_node + local).len()).collect(),
        threads: vec![threads; ranks_per_node],
    };
    let node_shapes = (0..nodes).map(shape).collect::<Vec<_>>();
    let members = (0..nodes).map(|node| (node * ranks_per_node..(node + 1) * ranks_per_node).collect());
    let grid = RankGrid::for_ranks(ranks);
    let tile_size = TileMap::default_tile_size(cols, grid);
    let planned = plan_cluster(
        ctx,
        &ClusterRequest {
            operation: "syrk",
            size,
            bits: Bits::scaled(precision_bits, rows),
            nodes: &node_shapes,
            ranks: &members.collect::<Vec<_>>(),
            map: TileMap { rows: cols, cols, tile_size, grid, triangle: Some(Uplo::Lower) },
            node_bytes: &vec![ctx.memory_bytes().unwrap_or(u64::MAX); nodes],
            cut: None,
        },
    )?;
    Ok(planned.plan)
}

/// The rows that `rank` of `ranks` holds where `rows` rows are shared out evenly.
pub fn even_share(rows: usize, ranks: usize, rank: usize) -> std::ops::Range<usize> {
    let (each, more) = (rows / ranks, rows % ranks);
    let start = |rank: usize| rank * each + rank.min(more);
    start(rank)..start(rank + 1)
}

/// Bytes of the rows that each rank of an even cluster holds, at most.
pub fn even_operand_bytes(rows: usize, ranks: usize, cols: usize, precision_bits: u32) -> u64 {
    Matrix::bytes_for(rows.div_ceil(ranks), cols, precision_bits)
}
