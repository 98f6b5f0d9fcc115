//! One plan for all ranks: the same batches, bands and chunks everywhere, within the memory of every node.

use crate::comm::window::SharedWindow;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::kernels::PlaneEngine;
use crate::math::float::limbs_for;
use crate::matrix::{Matrix, Uplo};
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::product::entrywise::{choice_bytes, possible_range_bits};
use crate::ops::product::exchange::{MESSAGE_WORDS, Packing};
use crate::ops::product::inner_check::InnerCheck;
use crate::ops::product::path::choose_kernel;
use crate::ops::product::plan::{
    NodePlan, Plan, PlannedRun, ProductPlanOptions, TeamPlan, describe, in_bands, larger_refusal,
};
use crate::ops::product::problem::{Accuracy, Bits, ProductSize};
use crate::ops::product::ranks::devices::{self, DeviceShape};
use crate::ops::product::run::{Cutting, ProductSchedule, RunPlan};
use crate::plan::default_tile_size;
use crate::plan::overhead;
use crate::plan::{BLOCK, BLOCK_WORDS, BlockGrid, Cut, JobList, NodeShape, PlanInput, even_share};
use crate::site::{NodeLayout, Team};
use crate::store::Buffer;
use crate::tile::{RankGrid, TileId, TileMap};

/// The largest number of ranks of a cluster that is planned for.
const MOST_RANKS: usize = 1 << 20;

/// Most worker threads of a node of such a cluster.
const MOST_WORKERS: usize = 1 << 16;

/// The ranks that a product runs on, and its problem.
pub(crate) struct ClusterRequest<'a> {
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
    /// The cut to use; by default it is computed from `node_bytes`.
    pub cut: Option<Cut>,
    /// Whether the kernel is chosen by size and precision, equally on all ranks.
    pub chooses: bool,
}

/// Plans a product on many ranks, with the windows of node number `own_node`. The same plan on all ranks that pass the
/// same request.
///
/// # Errors
/// [`Error::MemoryLimit`] names the least memory per node that would do; [`Error::Precision`].
pub(crate) fn plan_cluster(ctx: &Context, request: &ClusterRequest<'_>, own_node: usize) -> Result<PlannedRun> {
    let kernel = if request.chooses { choose_kernel(ctx, &request.size, &request.bits) } else { ctx.kernel() };
    let spec = request.bits.spec(ctx.self_check());
    let engine = ctx.engine(kernel, spec)?;
    let shapes = distinct_shapes(request);
    let contracted = shapes.iter().map(|shape| shape.shape.total_rows()).max().unwrap_or(0).max(1);
    let ranks = shapes.iter().map(|shape| shape.shape.threads.len()).max().unwrap_or(1).max(1);
    ctx.settle(kernel, spec.modulus_bits, request.size.entries() * contracted as f64 / ranks as f64);
    let planner = NodePlanner { ctx, request, engine: &*engine, contracted };
    let cut = planner.choose(&shapes)?;
    let cut = match request.cut {
        Some(_) => cut,
        None => planner.with_input(&shapes, |input| in_bands(&request.size, input, cut)),
    };
    let chunks = contracted.div_ceil(cut.chunk_rows);
    let (mut plan, slot_panels, parts) = planner.with_input(&shapes, |input| {
        let plan = describe(kernel, request.size.operation(), &request.size, &request.bits, input, &cut);
        (plan, input.slot_panels(&cut), input.parts(&cut))
    });
    let mut team = describe_team(request);
    (team.sent_bytes, team.exchange_parts) = (sent_bytes(request, &shapes, &*engine), parts);
    (plan.planned_bytes, plan.load_max_over_mean) = (0, 0.0);
    let mut words = None;
    for shape in &shapes {
        let (own_words, node, jobs) = planner.with_input(&[*shape], |input| {
            let jobs = input.jobs(&cut);
            (input.window_words(&cut), describe_node(shape, input, &cut, &jobs), jobs)
        });
        plan.load_max_over_mean = plan.load_max_over_mean.max(jobs.assignment.max_over_mean());
        if node.planned_bytes > plan.planned_bytes {
            (plan.planned_bytes, plan.bytes) = (node.planned_bytes, node.bytes);
            (plan.chunk_rows, plan.jobs_per_worker) = (node.chunk_rows, jobs.per_worker());
        }
        team.per_node.push(node);
        if shape.shape == &request.nodes[own_node] {
            words = Some(own_words);
        }
    }
    plan.threads = request.nodes.iter().map(NodeShape::workers).sum();
    plan.team = Some(team);
    let words = words.expect("every node has a shape");
    let cutting = Cutting { cut, chunks, slot_panels };
    let schedule = ProductSchedule::new(&cutting, request.size.panels(), plan.primes);
    let schedule = schedule.of_half(request.size.half).in_parts(parts);
    Ok(PlannedRun { run: RunPlan { engine, cutting, schedule, words }, plan })
}

/// Nodes that are alike.
#[derive(Clone, Copy)]
struct EqualNodes<'a> {
    shape: &'a NodeShape,
    count: usize,
    first_node: usize,
    /// The largest number of bytes of results on one of them.
    result_bytes: u64,
    /// Fewest blocks of the result that one of them owns.
    owned_blocks: usize,
    /// Fewest bytes that one of them may take.
    node_bytes: u64,
}

fn distinct_shapes<'a>(request: &ClusterRequest<'a>) -> Vec<EqualNodes<'a>> {
    let mut shapes: Vec<EqualNodes<'a>> = Vec::new();
    let mut known = std::collections::HashMap::new();
    for (node, shape) in request.nodes.iter().enumerate() {
        let tiles = |&rank: &usize| DistMatrix::bytes_for(&request.map, rank, request.bits.result);
        let result_bytes = request.ranks[node].iter().map(tiles).sum();
        let owned_blocks = request.ranks[node].iter().map(|&rank| owned_blocks(&request.map, rank)).sum();
        let index = *known.entry(shape).or_insert_with(|| {
            let (result_bytes, owned_blocks, node_bytes) = (0, usize::MAX, u64::MAX);
            shapes.push(EqualNodes { shape, count: 0, first_node: node, result_bytes, owned_blocks, node_bytes });
            shapes.len() - 1
        });
        let entry = &mut shapes[index];
        entry.count += 1;
        entry.result_bytes = entry.result_bytes.max(result_bytes);
        entry.owned_blocks = entry.owned_blocks.min(owned_blocks);
        entry.node_bytes = entry.node_bytes.min(request.node_bytes[node]);
    }
    shapes
}

/// The common part of the plans of all nodes.
struct NodePlanner<'a> {
    ctx: &'a Context,
    request: &'a ClusterRequest<'a>,
    engine: &'a dyn PlaneEngine,
    /// Rows of the tallest node.
    contracted: usize,
}

impl NodePlanner<'_> {
    /// The cut whose bytes fit every node: chosen for a node with the largest share of everything and the least memory.
    fn choose(&self, shapes: &[EqualNodes<'_>]) -> Result<Cut> {
        let limit_bytes = shapes.iter().map(|shape| shape.node_bytes).min().unwrap_or(u64::MAX);
        self.with_input(shapes, |input| match self.request.cut {
            Some(cut) => Ok(cut.within(&input.whole())),
            None => {
                input.choose(limit_bytes).map_err(|minimum_bytes| Error::MemoryLimit { limit_bytes, minimum_bytes })
            }
        })
    }

    /// Runs `use_input` with the plan input of a node that has at least as much of everything as each of `shapes`.
    fn with_input<R>(&self, shapes: &[EqualNodes<'_>], use_input: impl FnOnce(&PlanInput<'_>) -> R) -> R {
        let NodePlanner { ctx, request, engine, contracted } = *self;
        let size = &request.size;
        let most = |of: &dyn Fn(&EqualNodes<'_>) -> u64| shapes.iter().map(of).max().unwrap_or(0);
        let ranks = most(&|shape| shape.shape.ranks() as u64);
        let workers = most(&|shape| shape.shape.workers() as u64).max(1);
        let messages = if request.nodes.len() > 1 { message_buffers(request) as u64 } else { 0 };
        // A plan counts chunks in rows of the tallest node; the content of a node's window then depends on its ranks.
        let rows_of = |rows: usize| {
            let chunks = contracted.div_ceil(rows.max(1));
            let chunk_rows = |shape: &EqualNodes<'_>| shape.shape.chunk_rows(chunks, 0);
            shapes.iter().map(chunk_rows).max().unwrap_or(0)
        };
        let columns = (size.rows + size.cols) as u64;
        let primes = engine.moduli().len() as u64;
        let peers = request.nodes.iter().map(|node| node.ranks() as u64).sum::<u64>();
        let rank_bytes = overhead::RANK
            + 8 * 8 * columns // exponents, their largest and their sums on the way to all ranks
            + overhead::PEER * peers
            + overhead::NEIGHBOUR * ranks
            + overhead::NODE_JOB * (primes + workers)
            + messages * Buffer::bytes_for(MESSAGE_WORDS)
            + run_bytes(request, primes);
        let check_bytes = if ctx.freivalds() { most(&|shape| check_bytes(size, shape.shape)) } else { 0 };
        let list_bytes = (ranks.saturating_mul(rank_bytes))
            .saturating_add(overhead::PRIME * primes * workers)
            .saturating_add(check_bytes);
        let input = PlanInput {
            contracted,
            left_panels: size.rows.div_ceil(BLOCK).max(1),
            right_panels: size.cols.div_ceil(BLOCK).max(1),
            triangle: size.triangle,
            primes: engine.moduli().len(),
            workers: workers as usize,
            least_workers: shapes.iter().map(|shape| shape.shape.workers()).min().unwrap_or(0).max(1),
            result_bytes: most(&|shape| shape.result_bytes),
            table_bytes: ranks * engine.table_bytes(),
            list_bytes,
            integer_bytes: (BLOCK_WORDS * engine.magnitude_limbs() * 8) as u64,
            block_words: engine.block_words(),
            operand_limbs: limbs_for(request.bits.operand.max(1)),
            panel_words: &|rows| engine.panel_words(rows_of(rows)),
            scratch_words: &|rows, grid| engine.scratch_words(rows_of(rows), grid),
            part_scratch_words: &|rows, grid| engine.part_scratch_words(rows_of(rows), grid),
            call_bytes: &|rows, grid| engine.call_bytes(rows_of(rows), grid),
            window_bytes: &SharedWindow::bytes_for,
            scratch_bytes: &Buffer::bytes_for,
            disk: None,
            exchanges: request.nodes.len() > 1,
        };
        use_input(&input)
    }
}

/// Bytes of Freivalds' test on all ranks of a node: sums over ranks travel in two words each.
fn check_bytes(size: &ProductSize, node: &NodeShape) -> u64 {
    let ranks = node.rows.iter().zip(&node.threads);
    let sums = 2 * 8 * size.rows as u64;
    ranks.map(|(&rows, &threads)| InnerCheck::bytes(size.rows, size.cols, rows, threads) + sums).sum()
}

/// Messages that a rank holds at the same time: one that it receives, and one for each rank of another node that it
/// serves.
fn message_buffers(request: &ClusterRequest<'_>) -> usize {
    let sizes = request.nodes.iter().map(NodeShape::ranks);
    let (least, most) = (sizes.clone().min().unwrap_or(1), sizes.max().unwrap_or(1));
    1 + most.div_ceil(least)
}

/// Bytes of the list of a rank's tiles, and of the lists that an exchange makes: the owners of all blocks, the slices
/// of the blocks of a rank.
fn run_bytes(request: &ClusterRequest<'_>, primes: u64) -> u64 {
    let map = &request.map;
    let tiles = map.tile_rows().div_ceil(map.grid.rows) * map.tile_cols().div_ceil(map.grid.cols);
    let tile_bytes = 2 * (size_of::<(TileId, Matrix)>() * tiles) as u64; // lists grow by doubling
    if request.nodes.len() == 1 {
        return tile_bytes;
    }
    let (blocks, tile_blocks) = (request.size.cols.div_ceil(BLOCK), map.tile_size / BLOCK);
    let runs = blocks * request.size.rows.div_ceil(BLOCK).div_ceil(tile_blocks);
    let runs = if request.size.is_half() { runs / 2 + blocks } else { runs };
    let owned = runs.min(tiles * tile_blocks);
    tile_bytes + 160 * runs as u64 + 40 * owned as u64 * primes
}

/// Blocks of a product plane whose entries `rank` owns.
fn owned_blocks(map: &TileMap, rank: usize) -> usize {
    let blocks = |tile: TileId| {
        let (rows, cols) =
            (map.row_range(tile.row).len().div_ceil(BLOCK), map.col_range(tile.col).len().div_ceil(BLOCK));
        BlockGrid { rows, cols, triangle: map.triangle.is_some() && tile.row == tile.col }.len()
    };
    map.tiles_of(rank).map(blocks).sum()
}

/// Every block that a node does not own goes to its owner, in all planes, its residues packed.
fn sent_bytes(request: &ClusterRequest<'_>, shapes: &[EqualNodes<'_>], engine: &dyn PlaneEngine) -> u64 {
    if request.nodes.len() == 1 {
        return 0;
    }
    let owned = shapes.iter().map(|shape| shape.owned_blocks).min().unwrap_or(0);
    let blocks = BlockGrid { triangle: request.size.is_half(), ..request.size.panels() }.len();
    Packing::new(engine).plane_bits((blocks - owned) * engine.block_words()).div_ceil(8)
}

fn describe_node(shape: &EqualNodes<'_>, input: &PlanInput<'_>, cut: &Cut, jobs: &JobList) -> NodePlan {
    let by_worker = jobs.per_worker();
    let bytes = input.bytes(cut);
    NodePlan {
        count: shape.count,
        first_node: shape.first_node,
        ranks: shape.shape.ranks(),
        workers: shape.shape.workers(),
        rows: shape.shape.total_rows(),
        chunk_rows: shape.shape.chunk_rows(input.chunks(cut), 0),
        jobs: jobs.jobs.len(),
        jobs_per_worker: (by_worker.iter().min().copied().unwrap_or(0), by_worker.iter().max().copied().unwrap_or(0)),
        bytes,
        planned_bytes: bytes.total(),
    }
}

/// The numbers of ranks and nodes.
fn describe_team(request: &ClusterRequest<'_>) -> TeamPlan {
    TeamPlan {
        nodes: request.nodes.len(),
        ranks: request.nodes.iter().map(NodeShape::ranks).sum(),
        grid: (request.map.grid.rows, request.map.grid.cols),
        tile_size: request.map.tile_size,
        ..TeamPlan::default()
    }
}

/// A cluster for a plan: `nodes` nodes of `ranks_per_node` ranks with `threads` threads each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterShape {
    /// Number of nodes.
    pub nodes: usize,
    /// Number of ranks of each node.
    pub ranks_per_node: usize,
    /// Number of worker threads of each rank.
    pub threads: usize,
}

impl ClusterShape {
    /// Number of ranks.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an empty cluster, and for one that is too large for a plan.
    pub fn ranks(&self) -> Result<usize> {
        let ClusterShape { nodes, ranks_per_node, threads } = *self;
        let ranks = nodes.saturating_mul(ranks_per_node);
        let workers = ranks_per_node.saturating_mul(threads);
        if (1..=MOST_RANKS).contains(&ranks) && (1..=MOST_WORKERS).contains(&workers) {
            return Ok(ranks);
        }
        Err(Error::InvalidArgument(format!(
            "{nodes} nodes with {ranks_per_node} ranks of {threads} threads: choose 1 to {MOST_RANKS} ranks in all and \
             1 to {MOST_WORKERS} threads on a node"
        )))
    }
}

/// [`plan_syrk_cluster_with`] with default options.
///
/// ```
/// use sunzi::Context;
/// use sunzi::distributed::{ClusterShape, plan_syrk_cluster};
/// let ctx = Context::builder().memory_bytes(1 << 30).build()?; // of a node
/// let cluster = ClusterShape { nodes: 2, ranks_per_node: 4, threads: 8 };
/// let plan = plan_syrk_cluster(&ctx, cluster, 100_000, 1000, 256)?;
/// assert_eq!(plan.threads, 64);
/// assert!(plan.planned_bytes <= 1 << 30); // of the node that takes most
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`plan_syrk_cluster_with`].
pub fn plan_syrk_cluster(
    ctx: &Context,
    cluster: ClusterShape,
    rows: usize,
    cols: usize,
    precision_bits: u32,
) -> Result<Plan> {
    plan_syrk_cluster_with(ctx, cluster, (rows, cols), precision_bits, &ProductPlanOptions::new())
}

/// The plan of a distributed [`crate::ops::distributed::syrk`] of a `rows x cols` matrix whose rows are divided evenly
/// over a cluster; the memory limit of the context applies to each node, and the kernel is chosen for this machine.
/// Nothing is computed. A cluster has at most 2^20 ranks, and a node at most 2^16 threads.
///
/// ```
/// use sunzi::distributed::{ClusterShape, plan_syrk_cluster_with};
/// use sunzi::{Accuracy, Context, plans::ProductPlanOptions};
/// let ctx = Context::new()?;
/// let cluster = ClusterShape { nodes: 2, ranks_per_node: 4, threads: 8 };
/// let options = ProductPlanOptions::new().accuracy(Accuracy::Norm);
/// let plan = plan_syrk_cluster_with(&ctx, cluster, (100_000, 1000), 256, &options)?;
/// assert_eq!((plan.threads, plan.range_bits), (64, 0));
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`crate::plans::plan_syrk_with`]; [`Error::InvalidArgument`] for an empty cluster or a cluster that is too large.
pub fn plan_syrk_cluster_with(
    ctx: &Context,
    cluster: ClusterShape,
    (rows, cols): (usize, usize),
    precision_bits: u32,
    options: &ProductPlanOptions,
) -> Result<Plan> {
    let (ranks, ClusterShape { nodes, ranks_per_node, threads }) = (cluster.ranks()?, cluster);
    let layout = NodeLayout {
        nodes: (0..nodes).map(|node| (node * ranks_per_node..(node + 1) * ranks_per_node).collect()).collect(),
        node_of: (0..ranks).map(|rank| rank / ranks_per_node).collect(),
        local_of: (0..ranks).map(|rank| rank % ranks_per_node).collect(),
    };
    let cluster = Cluster { layout: &layout, own_rank: 0, threads };
    let size = ProductSize { contracted: rows, rows: cols, cols, triangle: true, half: None };
    cluster.plan(ctx, size, precision_bits, options)
}

/// The plan of [`crate::ops::distributed::syrk`] on a team whose ranks have equal shares of the rows of a `rows x cols`
/// matrix, all with the number of threads of the context; the memory limit of the context applies to each node. Nothing
/// is computed, and no rank waits for another rank.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, Team, TeamOptions};
/// use sunzi::{Context, plans::ProductPlanOptions};
/// let ranks = local::run(2, |rank| -> sunzi::Result<(usize, usize, usize)> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     let plan = distributed::plan_syrk(&ctx, &team, (1000, 100), 128, &ProductPlanOptions::new())?;
///     Ok((plan.contracted, plan.cols, plan.threads)) // the threads of both ranks
/// });
/// assert_eq!(ranks.into_iter().collect::<sunzi::Result<Vec<_>>>()?, [(1000, 100, 2); 2]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`crate::plans::plan_syrk_with`].
pub fn plan_syrk(
    ctx: &Context,
    team: &Team,
    (rows, cols): (usize, usize),
    precision_bits: u32,
    options: &ProductPlanOptions,
) -> Result<Plan> {
    let size = ProductSize { contracted: rows, rows: cols, cols, triangle: true, half: None };
    Cluster::of(ctx, team).plan(ctx, size, precision_bits, options)
}

/// The plan of [`crate::ops::distributed::gemm_rows`] with a result of `rows x cols` from operands of `contracted`
/// rows; see [`plan_syrk`].
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{self, Team, TeamOptions};
/// use sunzi::{Context, plans::ProductPlanOptions};
/// let ranks = local::run(2, |rank| -> sunzi::Result<(usize, usize, usize)> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     let plan = distributed::plan_gemm(&ctx, &team, (100, 80), 1000, 128, &ProductPlanOptions::new())?;
///     Ok((plan.rows, plan.cols, plan.contracted))
/// });
/// assert_eq!(ranks.into_iter().collect::<sunzi::Result<Vec<_>>>()?, [(100, 80, 1000); 2]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`crate::plans::plan_gemm_with`].
pub fn plan_gemm(
    ctx: &Context,
    team: &Team,
    (rows, cols): (usize, usize),
    contracted: usize,
    precision_bits: u32,
    options: &ProductPlanOptions,
) -> Result<Plan> {
    let size = ProductSize { contracted, rows, cols, triangle: false, half: None };
    Cluster::of(ctx, team).plan(ctx, size, precision_bits, options)
}

/// Ranks on nodes.
struct Cluster<'a> {
    layout: &'a NodeLayout,
    /// The rank whose node's bytes are reported.
    own_rank: usize,
    /// Number of worker threads of each rank.
    threads: usize,
}

impl<'a> Cluster<'a> {
    fn of(ctx: &Context, team: &'a Team) -> Cluster<'a> {
        Cluster { layout: team.layout(), own_rank: team.rank(), threads: ctx.threads() }
    }

    /// The plan of a product whose contracted rows are shared out evenly.
    fn plan(
        &self,
        ctx: &Context,
        size: ProductSize,
        precision_bits: u32,
        options: &ProductPlanOptions,
    ) -> Result<Plan> {
        let contracted = size.contracted;
        size.check(ctx.maximum_modulus_bits(), precision_bits)?;
        let nodes = &self.layout.nodes;
        let ranks = self.layout.node_of.len();
        let shape = |node: &Vec<usize>| NodeShape {
            rows: node.iter().map(|&rank| even_share(contracted, ranks, rank).len()).collect(),
            threads: vec![self.threads; node.len()],
        };
        let node_shapes = nodes.iter().map(shape).collect::<Vec<_>>();
        let grid = RankGrid::for_ranks(ranks);
        let tile_size = default_tile_size(size.rows.max(size.cols), grid);
        let triangle = size.triangle.then_some(Uplo::Lower);
        let accuracy = options.accuracy;
        let (range_bits, choice) = match accuracy {
            Accuracy::Entrywise if !size.is_empty() => {
                let own = ProductSize { contracted: contracted.div_ceil(ranks), ..size };
                let most = nodes.iter().map(Vec::len).max().unwrap_or(1) as u64;
                let choice = choice_bytes(&own).saturating_mul(most);
                (possible_range_bits(&size, precision_bits, options.range_bits), choice)
            }
            _ => (0, 0),
        };
        let bits = Bits::scaled(precision_bits, contracted).with_range(range_bits);
        let map = TileMap { rows: size.rows, cols: size.cols, tile_size, grid, triangle };
        let planned = match ctx.devices().is_empty() || size.is_empty() {
            true => {
                let (node_bytes, ranks) = (&vec![ctx.memory_bytes().unwrap_or(u64::MAX); nodes.len()], &nodes[..]);
                let (nodes, cut, chooses) = (&node_shapes[..], None, true);
                let request = ClusterRequest { size, bits, nodes, ranks, map, node_bytes, cut, chooses };
                plan_cluster(ctx, &request, self.layout.node_of[self.own_rank]).map(|planned| planned.plan)
            }
            false => self.plan_on_devices(ctx, size, bits, map),
        };
        let plan = larger_refusal(ctx.admit(choice), planned)?;
        let planned_bytes = plan.planned_bytes.max(choice);
        Ok(Plan { accuracy, range_bits, planned_bytes, ..plan })
    }

    /// The same on devices like those of the context, where each rank has its devices to itself, apart from ranks that
    /// have opened them already.
    fn plan_on_devices(&self, ctx: &Context, size: ProductSize, bits: Bits, map: TileMap) -> Result<Plan> {
        let ranks = self.layout.node_of.len();
        let shape = DeviceShape {
            size,
            bits,
            map,
            plain: true,
            input_limbs: limbs_for(bits.result),
            check_threads: ctx.freivalds().then_some(self.threads),
            cut: None,
        };
        let plan = devices::plan_ahead(ctx, self.layout, self.own_rank, &shape)?;
        Ok(Plan { threads: self.threads * ranks, ..plan })
    }
}

/// The largest number of bytes of rows that a rank of an even cluster holds.
///
/// ```
/// use sunzi::{Matrix, distributed};
/// assert_eq!(distributed::even_operand_bytes(1000, 4, 10, 128), Matrix::bytes_for(250, 10, 128));
/// ```
pub fn even_operand_bytes(rows: usize, ranks: usize, cols: usize, precision_bits: u32) -> u64 {
    Matrix::bytes_for(rows.div_ceil(ranks), cols, precision_bits)
}
