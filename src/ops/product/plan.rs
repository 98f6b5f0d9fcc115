//! The plan of a call as numbers a user can read, made without allocating windows or computing anything.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::kernels::{EngineSpec, PlaneEngine, PlaneKernel};
use crate::math::bound;
use crate::math::float::limbs_for;
use crate::matrix::Matrix;
use crate::ops::product::device::DevicePart;
use crate::ops::product::inner_check::InnerCheck;
use crate::ops::product::kernel::choose_kernel;
use crate::ops::product::problem::{Accuracy, Bits};
use crate::ops::product::schedule::{Cutting, ProductSchedule};
use crate::ops::product::size::{BlockShape, ProductSize};
use crate::plan::{BLOCK, BLOCK_WORDS, BlockGrid, Cut, DiskInput, PlanBytes, PlanInput, WindowWords};
use crate::store::{Buffer, available_bytes};
use serde::Serialize;
use std::sync::Arc;

/// From this many new bytes on, a call without a limit queries the system's free memory, which takes a fraction of a
/// millisecond.
const ASK_SYSTEM_BYTES: u64 = 64 << 20;

/// How a product will run: batches, bands, chunks, bytes and jobs.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Plan {
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
    /// Accuracy promised for each entry.
    pub accuracy: Accuracy,
    /// Part of `working_bits`: the bits assumed for the range of the operands' exponents.
    pub range_bits: u32,
    /// Name of the kernel, or `direct` for the path of tiny sizes.
    pub kernel: &'static str,
    /// Worker threads.
    pub threads: usize,
    /// Residue planes, including a redundant one; 0 on the direct path.
    pub primes: usize,
    /// Groups of primes whose operand planes are in memory at the same time.
    pub batches: usize,
    /// Primes of a batch; the last may have fewer.
    pub batch_primes: usize,
    /// Bands of the result, in its longer direction.
    pub bands: usize,
    /// Columns of a band; the last band may have fewer.
    pub band_columns: usize,
    /// Chunks of contracted rows.
    pub chunks: usize,
    /// Rows of a chunk; the last chunk may have fewer.
    pub chunk_rows: usize,
    /// Bytes of each part.
    pub bytes: PlanBytes,
    /// Sum of `bytes`.
    pub planned_bytes: u64,
    /// Kernel calls of each worker for one full batch on the largest pair of bands.
    pub jobs_per_worker: Vec<usize>,
    /// Largest load of a worker divided by the mean load, in blocks.
    pub load_max_over_mean: f64,
    /// The division of the product between ranks; `None` in one process. The bytes above are then the largest over the
    /// nodes, and the threads are those of all ranks.
    #[serde(flatten)]
    pub team: Option<TeamPlan>,
    /// The memory that each device will use; empty on the CPU. The bytes above are then those of the host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DevicePart>,
}

/// The division of a product between the ranks of a team.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct TeamPlan {
    /// Nodes.
    pub nodes: usize,
    /// Ranks on all nodes.
    pub ranks: usize,
    /// Rows and columns of the grid of ranks that owns the result.
    pub grid: (usize, usize),
    /// Rows and columns of a tile of the result.
    pub tile_size: usize,
    /// The memory and work of each kind of node.
    pub per_node: Vec<NodePlan>,
    /// The largest number of bytes of residues that a node sends to others; 0 on one node. If ranks have devices, bytes
    /// sent between ranks of a node are included.
    pub sent_bytes: u64,
    /// Parts of a batch of primes that are multiplied one after the other, each while the previous one is exchanged; 1
    /// if little is exchanged.
    pub exchange_parts: usize,
}

/// The memory and work of each node of a group of equal nodes.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct NodePlan {
    /// The nodes.
    pub count: usize,
    /// Number of the first node of the group.
    pub first_node: usize,
    /// Ranks of such a node.
    pub ranks: usize,
    /// Worker threads of such a node.
    pub workers: usize,
    /// Contracted rows on such a node.
    pub rows: usize,
    /// The largest number of rows of a chunk.
    pub chunk_rows: usize,
    /// Kernel calls for one full batch on the largest pair of bands.
    pub jobs: usize,
    /// The smallest and the largest number of jobs of a worker.
    pub jobs_per_worker: (usize, usize),
    /// The largest number of bytes of each part.
    pub bytes: PlanBytes,
    /// Sum of `bytes`.
    pub planned_bytes: u64,
}

/// Shape and bit counts of a product: all that a plan depends on besides the context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanRequest {
    pub operation: &'static str,
    pub size: ProductSize,
    pub bits: Bits,
    /// Bytes of the result, new or the caller's.
    pub result_bytes: u64,
    /// A cut to run instead of the one that the memory limit leads to.
    pub cut: Option<Cut>,
    /// Whether it is part of another operation that keeps it on the CPU.
    pub on_cpu: bool,
    /// Whether it is a part of another operation, which has counted the tables of the context's kernel.
    pub is_part: bool,
}

impl PlanRequest {
    /// A product inside another operation.
    pub fn inner(shape: BlockShape, precision_bits: u32, working_bits: u32) -> PlanRequest {
        let BlockShape { rows, cols, contracted } = shape;
        PlanRequest {
            operation: "gemm",
            size: ProductSize { contracted, rows, cols, triangle: false },
            bits: Bits::scaled(precision_bits, contracted).widened(working_bits),
            result_bytes: Matrix::bytes_for(rows, cols, precision_bits),
            cut: None,
            on_cpu: true,
            is_part: true,
        }
    }
}

/// A plan with the objects needed to run it.
pub(crate) struct PlannedRun {
    pub engine: Arc<dyn PlaneEngine>,
    pub cutting: Cutting,
    pub schedule: ProductSchedule,
    pub words: WindowWords,
    pub plan: Plan,
}

/// Plans a product on planes; the context's windows already hold `held_bytes`.
pub(crate) fn plan_planes(ctx: &Context, request: &PlanRequest, workers: usize, held_bytes: u64) -> Result<PlannedRun> {
    plan_with(ctx, request, workers, held_bytes, None)
}

/// Plans a product of operands on a disk.
pub(crate) fn plan_above_disk(ctx: &Context, request: &PlanRequest, disk: DiskInput<'_>) -> Result<PlannedRun> {
    plan_with(ctx, request, ctx.threads(), 0, Some(disk))
}

fn plan_with(
    ctx: &Context,
    request: &PlanRequest,
    workers: usize,
    held_bytes: u64,
    disk: Option<DiskInput<'_>>,
) -> Result<PlannedRun> {
    let spec = request.bits.spec(ctx.self_check());
    let kernel = match request.is_part {
        true => ctx.kernel_for(spec.modulus_bits),
        false => choose_kernel(ctx, &request.size, &request.bits),
    };
    let engine = ctx.engine(kernel, spec)?;
    let size = &request.size;
    ctx.settle(kernel, spec.modulus_bits, size.entries() * size.contracted as f64);
    let check_bytes =
        if ctx.freivalds() { InnerCheck::bytes(size.rows, size.cols, size.contracted, workers) } else { 0 };
    let input = PlanInput {
        contracted: size.contracted,
        left_panels: size.rows.div_ceil(BLOCK),
        right_panels: size.cols.div_ceil(BLOCK),
        triangle: size.triangle,
        primes: engine.moduli().len(),
        workers,
        least_workers: workers,
        result_bytes: request.result_bytes,
        table_bytes: engine.table_bytes(),
        list_bytes: (size.rows + size.cols) as u64 * size_of::<i64>() as u64 + check_bytes,
        integer_bytes: (BLOCK_WORDS * engine.magnitude_limbs() * 8) as u64,
        block_words: engine.block_words(),
        operand_limbs: limbs_for(request.bits.operand.max(1)),
        panel_words: &|rows| engine.panel_words(rows),
        scratch_words: &|rows, grid| engine.scratch_words(rows, grid),
        part_scratch_words: &|rows, grid| engine.part_scratch_words(rows, grid),
        call_bytes: &|rows, grid| engine.call_bytes(rows, grid),
        window_bytes: &Buffer::bytes_for,
        scratch_bytes: &Buffer::bytes_for,
        disk,
        exchanges: false,
    };
    let cut = match request.cut {
        Some(cut) => cut.within(&input.whole()),
        None => choose(ctx, &input, held_bytes)?,
    };
    let plan = describe(kernel, request.operation, size, &request.bits, &input, &cut);
    let (words, slot_panels) = (input.window_words(&cut), input.slot_panels(&cut));
    let cutting = Cutting { cut, chunks: input.chunks(&cut), slot_panels };
    let panels = BlockGrid { rows: input.left_panels, cols: input.right_panels, triangle: size.triangle };
    let schedule = ProductSchedule::new(&cutting, panels, input.primes);
    Ok(PlannedRun { cutting, schedule, plan, words, engine })
}

/// The cut for the context's limit, or for the machine's memory where the whole might not fit it.
///
/// `window_bytes` are held by the windows that the product can use.
fn choose(ctx: &Context, input: &PlanInput<'_>, window_bytes: u64) -> Result<Cut> {
    let (whole, other_bytes) = (input.whole(), ctx.memory().held_bytes());
    let needed = input.bytes(&whole).total();
    let limit_bytes = match ctx.memory_bytes() {
        Some(limit) => limit,
        None if needed.saturating_sub(window_bytes) <= ASK_SYSTEM_BYTES => return Ok(whole),
        None => available_bytes().map_or(u64::MAX, |bytes| bytes.saturating_add(window_bytes + other_bytes)),
    };
    let least = |bytes: u64| Error::MemoryLimit { limit_bytes, minimum_bytes: bytes.saturating_add(other_bytes) };
    input.choose(limit_bytes.saturating_sub(other_bytes)).map_err(least)
}

/// The plan of `input` with `cut`, for the windows of one process or of a node.
pub(crate) fn describe(
    kernel: &dyn PlaneKernel,
    operation: &'static str,
    size: &ProductSize,
    bits: &Bits,
    input: &PlanInput<'_>,
    cut: &Cut,
) -> Plan {
    let bytes = input.bytes(cut);
    let (row_bands, col_bands) = input.bands(cut);
    let jobs = input.jobs(cut);
    Plan {
        operation,
        contracted: size.contracted,
        rows: size.rows,
        cols: size.cols,
        precision_bits: bits.result,
        working_bits: bits.working,
        accuracy: Accuracy::Norm,
        range_bits: 0,
        kernel: kernel.name(),
        threads: input.workers,
        primes: input.primes,
        batches: input.batches(cut),
        batch_primes: cut.batch_primes,
        bands: row_bands.max(col_bands),
        band_columns: (cut.band_panels * BLOCK).min(size.rows.max(size.cols)),
        chunks: input.chunks(cut),
        chunk_rows: input.contracted.div_ceil(input.chunks(cut)),
        bytes,
        planned_bytes: bytes.total(),
        jobs_per_worker: jobs.per_worker(),
        load_max_over_mean: jobs.assignment.max_over_mean(),
        team: None,
        devices: Vec::new(),
    }
}

impl Bits {
    /// Bit counts of a product whose columns are scaled to the working precision.
    pub fn scaled(precision_bits: u32, contracted: usize) -> Bits {
        let working = bound::working_bits(precision_bits, contracted);
        let modulus = bound::modulus_bits(working, working);
        Bits { working, operand: working, modulus, result: precision_bits }
    }

    /// The same with `working_bits`, where they are more.
    pub fn widened(self, working_bits: u32) -> Bits {
        let working = working_bits.max(self.working);
        Bits { working, operand: working, modulus: bound::modulus_bits(working, working), ..self }
    }

    /// The requirements of such a product on an engine, with a redundant prime where wanted.
    pub fn spec(self, redundant: bool) -> EngineSpec {
        EngineSpec { operand_bits: self.operand, modulus_bits: self.modulus, redundant }
    }
}
