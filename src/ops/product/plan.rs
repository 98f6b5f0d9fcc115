//! Plans of products, as numbers for users: of a call on its path, and from sizes only before there are operands. Made
//! without allocating windows or computing anything.

use crate::context::{Context, WorkspaceNeeds};
use crate::error::{Error, Result};
use crate::kernels::PlaneKernel;
use crate::math::float::limbs_for;
use crate::matrix::Matrix;
use crate::ops::product::combine::Epilogue;
use crate::ops::product::device::{CutCounts, DevicePart, DevicePlan, DeviceRequest};
use crate::ops::product::direct;
use crate::ops::product::entrywise::{Singles, choice_bytes, possible_range_bits, takes_all};
use crate::ops::product::inner_check::InnerCheck;
use crate::ops::product::path::{ProductMethod, choose_kernel, choose_path, other_path};
use crate::ops::product::problem::{Accuracy, Bits, BlockShape, IntegerBits, ProductProblem, ProductSize};
use crate::ops::product::run::{Cutting, ProductSchedule, RunPlan};
use crate::options::setters;
use crate::plan::{BLOCK, BLOCK_WORDS, Cut, DiskInput, PlanBytes, PlanInput};
use crate::site::Site;
use crate::store::{Buffer, available_bytes};
use serde::Serialize;

/// From this many new bytes on, a call without a limit queries the system's free memory, which takes a fraction of a
/// millisecond.
const ASK_SYSTEM_BYTES: u64 = 64 << 20;

/// Bands of the product of two operands of which one triangle is wanted: five eighths of the pairs have entries of it.
const HALF_BANDS: usize = 4;

/// The fewest panels of such a band: narrower ones cost more conversions than they save products.
const HALF_PANELS: usize = 16;

/// The plan of a product: batches, bands, chunks, bytes and jobs.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Plan {
    /// `syrk`, `gemm` or `weighted_gram`.
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
    /// Name of the kernel, or `direct` for tiny products, which are computed without residues.
    pub kernel: &'static str,
    /// Worker threads.
    pub threads: usize,
    /// Residue planes, including a redundant one; 0 if the kernel is `direct`.
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
    /// Largest load of a worker divided by the mean load; a load is a number of blocks.
    pub load_max_over_mean: f64,
    /// The division of the product between ranks; `None` in one process. In that case the bytes above are the largest
    /// over the nodes, and `threads` counts the threads of all ranks.
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
    /// Number of nodes.
    pub nodes: usize,
    /// Number of ranks on all nodes.
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
    /// Number of parts into which a batch of primes is divided: each part is multiplied while the previous one is
    /// exchanged; 1 if little is exchanged.
    pub exchange_parts: usize,
}

/// The memory and work of each node of a group of equal nodes.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct NodePlan {
    /// Number of nodes in the group.
    pub count: usize,
    /// Number of the first node of the group.
    pub first_node: usize,
    /// Number of ranks of such a node.
    pub ranks: usize,
    /// Number of worker threads of such a node.
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

impl Plan {
    /// The kept memory that a call in one process uses.
    pub(crate) fn needs(&self) -> WorkspaceNeeds {
        let bytes = &self.bytes;
        WorkspaceNeeds {
            operand_bytes: bytes.operand_window,
            product_bytes: bytes.product_window,
            workers: self.threads,
            worker_bytes: (bytes.scratch + bytes.integers) / self.threads.max(1) as u64,
            planned_bytes: self.planned_bytes,
        }
    }

    /// The part of a plan that is the same on each path.
    fn of(
        operation: &'static str,
        size: &ProductSize,
        bits: &Bits,
        kernel: &'static str,
        threads: usize,
        bytes: PlanBytes,
    ) -> Plan {
        Plan {
            operation,
            contracted: size.contracted,
            rows: size.rows,
            cols: size.cols,
            precision_bits: bits.result,
            working_bits: bits.working,
            accuracy: Accuracy::Norm,
            kernel,
            threads,
            bytes,
            planned_bytes: bytes.total(),
            load_max_over_mean: 1.0,
            ..Plan::default()
        }
    }

    /// The plan of a product on devices, with `bytes` on the host.
    pub(crate) fn on_devices(
        operation: &'static str,
        size: &ProductSize,
        bits: &Bits,
        devices: &DevicePlan,
        threads: usize,
        bytes: PlanBytes,
    ) -> Plan {
        let CutCounts { batches, bands, chunks } = devices.cuts();
        Plan {
            primes: devices.moduli(),
            batches,
            bands,
            chunks,
            devices: devices.describe(),
            ..Plan::of(operation, size, bits, devices.kernel(), threads, bytes)
        }
    }
}

/// Shape and bit counts of a product: all that a plan depends on besides the context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanRequest {
    pub operation: &'static str,
    pub size: ProductSize,
    pub bits: Bits,
    /// Bytes of the result, new or the caller's.
    pub result_bytes: u64,
    /// The cut to use; by default it is computed from the memory limit.
    pub cut: Option<Cut>,
    /// Whether it is part of another operation that keeps it on the CPU.
    pub on_cpu: bool,
    /// Whether it is a part of another operation, which has counted the tables of the context's kernel.
    pub is_part: bool,
}

impl PlanRequest {
    /// A product by itself.
    pub fn new(size: ProductSize, bits: Bits) -> PlanRequest {
        PlanRequest {
            operation: size.operation(),
            size,
            bits,
            result_bytes: Matrix::bytes_for(size.rows, size.cols, bits.result),
            cut: None,
            on_cpu: false,
            is_part: false,
        }
    }

    /// A call in one process whose operands need these bits; it has chosen between CPU and devices already.
    pub fn of(problem: &ProductProblem<'_>, bits: Bits) -> PlanRequest {
        PlanRequest {
            operation: problem.operation,
            cut: problem.hooks.cut,
            on_cpu: true,
            is_part: problem.inner_bits.is_some(),
            ..PlanRequest::new(problem.size(), bits)
        }
    }

    /// Bytes while the bits of entrywise accuracy are chosen: the result may be there already.
    pub fn choice_bytes(&self) -> u64 {
        choice_bytes(&self.size).saturating_add(self.result_bytes)
    }

    /// A product inside another operation.
    pub fn inner(shape: BlockShape, precision_bits: u32, working_bits: u32) -> PlanRequest {
        let BlockShape { rows, cols, contracted } = shape;
        let size = ProductSize { contracted, rows, cols, triangle: false, half: None };
        let bits = Bits::scaled(precision_bits, contracted).widened(working_bits);
        PlanRequest { on_cpu: true, is_part: true, ..PlanRequest::new(size, bits) }
    }
}

/// The plan of any product.
///
/// # Errors
/// [`crate::Error::MemoryLimit`] with the smallest limit that suffices.
pub(crate) fn plan_request(ctx: &Context, request: &PlanRequest) -> Result<Plan> {
    plan_on(choose_path(ctx, &request.size, request.bits.operand), ctx, request)
}

/// The plan of any product on this path.
///
/// # Errors
/// As [`plan_request`].
pub(crate) fn plan_on(path: ProductMethod, ctx: &Context, request: &PlanRequest) -> Result<Plan> {
    match (plan_alone(path, ctx, request), other_path(path, ctx, &request.size, &request.bits)) {
        (Err(refusal @ Error::MemoryLimit { .. }), Some(other)) => {
            plan_alone(other, ctx, request).map_err(|other| smaller(refusal, other))
        }
        (planned, _) => planned,
    }
}

/// The plan on this path, without a look at the other one.
///
/// # Errors
/// As [`plan_request`].
pub(crate) fn plan_alone(path: ProductMethod, ctx: &Context, request: &PlanRequest) -> Result<Plan> {
    match path {
        ProductMethod::Direct => plan_direct(ctx, request).map(as_one_job),
        ProductMethod::Planes(_) if !request.on_cpu && !ctx.devices().is_empty() => {
            let PlanRequest { size, bits, .. } = *request;
            plan_devices(ctx, request, &DeviceRequest::plain(size, bits)).map(|(_, plan)| plan)
        }
        ProductMethod::Planes(workers) => plan_planes(ctx, request, workers, 0).map(|planned| planned.plan),
    }
}

/// The refusal that names fewer bytes.
fn smaller(one: Error, other: Error) -> Error {
    let least = |error: &Error| match error {
        Error::MemoryLimit { minimum_bytes, .. } => *minimum_bytes,
        _ => u64::MAX,
    };
    if least(&other) < least(&one) { other } else { one }
}

/// The plan of the direct path.
///
/// # Errors
/// [`Error::MemoryLimit`].
pub(crate) fn plan_direct(ctx: &Context, request: &PlanRequest) -> Result<Plan> {
    let PlanRequest { operation, ref size, ref bits, .. } = *request;
    let mut bytes = PlanBytes { result: request.result_bytes, ..PlanBytes::default() };
    if !size.is_empty() {
        bytes.lists = (size.operand_columns() * size_of::<i64>()) as u64;
        let [fast, narrow] = direct::operand_bytes(size, bits);
        // Kept memory takes room from the next step of a call, which was planned for products of other lengths: under a
        // tight limit the narrow form leaves that room.
        let roomy = bytes.total().saturating_add(2 * fast);
        let is_fast = narrow >= fast || ctx.admit(roomy).is_ok();
        bytes.operand_window = if is_fast { fast } else { narrow };
    }
    ctx.admit(bytes.total())?;
    Ok(Plan {
        batches: 1,
        bands: 1,
        band_columns: size.rows.max(size.cols),
        chunks: 1,
        chunk_rows: size.contracted,
        ..Plan::of(operation, size, bits, direct::NAME, 1, bytes)
    })
}

/// The plan with the list of its jobs, which a direct call does not need.
fn as_one_job(plan: Plan) -> Plan {
    Plan { jobs_per_worker: vec![1], ..plan }
}

/// The plan of a product of which every entry is summed term by term.
///
/// # Errors
/// [`Error::MemoryLimit`].
pub(crate) fn plan_entries(ctx: &Context, request: &PlanRequest) -> Result<Plan> {
    let nothing = ProductSize { contracted: 0, ..request.size };
    let plan = plan_direct(ctx, &PlanRequest { size: nothing, ..*request })?;
    Ok(Plan { contracted: request.size.contracted, chunk_rows: request.size.contracted, ..plan })
}

/// Plans a product on the context's devices; the host's bytes have not been admitted.
///
/// # Errors
/// The errors of [`DevicePlan::new`].
pub(crate) fn plan_devices(
    ctx: &Context,
    request: &PlanRequest,
    on_devices: &DeviceRequest,
) -> Result<(DevicePlan, Plan)> {
    let devices = DevicePlan::new(Site::one_process(ctx), on_devices, None)?;
    let bytes = PlanBytes {
        result: request.result_bytes,
        scratch: devices.pinned_bytes(),
        lists: devices.list_bytes(ctx.freivalds().then(|| ctx.threads())),
        ..PlanBytes::default()
    };
    let plan = Plan::on_devices(request.operation, &request.size, &request.bits, &devices, ctx.threads(), bytes);
    Ok((devices, plan))
}

/// A plan of a product on planes, and what its run needs.
pub(crate) struct PlannedRun {
    pub run: RunPlan,
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
        None => in_bands(size, &input, choose(ctx, &input, held_bytes)?),
    };
    let plan = describe(kernel, request.operation, size, &request.bits, &input, &cut);
    let (words, slot_panels) = (input.window_words(&cut), input.slot_panels(&cut));
    let cutting = Cutting { cut, chunks: input.chunks(&cut), slot_panels };
    let schedule = ProductSchedule::new(&cutting, size.panels(), input.primes).of_half(size.half);
    Ok(PlannedRun { run: RunPlan { engine, cutting, schedule, words }, plan })
}

/// The cut in narrower bands for one triangle of the product of two operands: pairs of bands outside the triangle are
/// not multiplied.
pub(crate) fn in_bands(size: &ProductSize, input: &PlanInput<'_>, cut: Cut) -> Cut {
    let band_panels = input.left_panels.div_ceil(HALF_BANDS).max(HALF_PANELS);
    let narrow = Cut { band_panels: cut.band_panels.min(band_panels), ..cut };
    let fits = || input.bytes(&narrow).total() <= input.bytes(&cut).total();
    if size.half.is_some() && fits() { narrow } else { cut }
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
    let (row_bands, col_bands) = input.bands(cut);
    let jobs = input.jobs(cut);
    Plan {
        primes: input.primes,
        batches: input.batches(cut),
        batch_primes: cut.batch_primes,
        bands: row_bands.max(col_bands),
        band_columns: (cut.band_panels * BLOCK).min(size.rows.max(size.cols)),
        chunks: input.chunks(cut),
        chunk_rows: input.contracted.div_ceil(input.chunks(cut)),
        jobs_per_worker: jobs.per_worker(),
        load_max_over_mean: jobs.assignment.max_over_mean(),
        ..Plan::of(operation, size, bits, kernel.name(), input.workers, input.bytes(cut))
    }
}

/// The properties of the operands that the plan of a product needs.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ProductPlanOptions {
    /// Accuracy promised for each entry.
    pub accuracy: Accuracy,
    /// With [`Accuracy::Entrywise`]: the bits that the exponents of the operands need, in steps of 8 (`range_bits` in
    /// [`crate::report::Report`]); with `None`, the bits for entries of equal magnitude. The plan does not include
    /// entries that a product computes as separate sums.
    pub range_bits: Option<u32>,
}

setters! { new ProductPlanOptions {
    accuracy: Accuracy,
    range_bits: impl Into<Option<u32>>,
} }

/// [`plan_syrk_with`] with default options.
///
/// ```
/// use sunzi::{Context, Matrix, plans};
/// let ctx = Context::new()?;
/// let plan = plans::plan_syrk(&ctx, 1000, 100, 256)?;
/// assert_eq!((plan.operation, plan.contracted, plan.rows, plan.cols), ("syrk", 1000, 100, 100));
/// assert!(plan.planned_bytes >= Matrix::bytes_for(100, 100, 256)); // the result is among them
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`plan_syrk_with`].
pub fn plan_syrk(ctx: &Context, rows: usize, cols: usize, precision_bits: u32) -> Result<Plan> {
    plan_syrk_with(ctx, (rows, cols), precision_bits, &ProductPlanOptions::new())
}

/// The plan of [`crate::syrk`] for a `rows x cols` operand: bytes of every part, batches, bands, chunks, jobs.
///
/// Nothing is computed and no window allocated; only the kernel's tables are made and kept in the context.
///
/// ```
/// use sunzi::{Accuracy, Context, Error, plans};
/// let ctx = Context::builder().memory_bytes(1 << 20).build()?;
/// let options = plans::ProductPlanOptions::new().accuracy(Accuracy::Norm);
/// let refusal = plans::plan_syrk_with(&ctx, (1000, 500), 256, &options); // the result alone takes more than 1 MiB
/// assert!(matches!(refusal, Err(Error::MemoryLimit { .. })));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Precision`]; [`crate::Error::MemoryLimit`] with the smallest limit that suffices.
pub fn plan_syrk_with(
    ctx: &Context,
    (rows, cols): (usize, usize),
    precision_bits: u32,
    options: &ProductPlanOptions,
) -> Result<Plan> {
    let size = ProductSize { contracted: rows, rows: cols, cols, triangle: true, half: None };
    plan_size(ctx, size, precision_bits, options)
}

/// [`plan_gemm_with`] with default options.
///
/// ```
/// use sunzi::{Accuracy, Context, plans};
/// let ctx = Context::new()?;
/// let plan = plans::plan_gemm(&ctx, 100, 80, 1000, 256)?;
/// assert_eq!((plan.operation, plan.rows, plan.cols, plan.contracted), ("gemm", 100, 80, 1000));
/// assert_eq!(plan.accuracy, Accuracy::Entrywise); // as a product has it by default
/// println!("{} bytes, {} primes, kernel {}", plan.planned_bytes, plan.primes, plan.kernel);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`plan_syrk_with`].
pub fn plan_gemm(ctx: &Context, rows: usize, cols: usize, contracted: usize, precision_bits: u32) -> Result<Plan> {
    plan_gemm_with(ctx, (rows, cols), contracted, precision_bits, &ProductPlanOptions::new())
}

/// The plan of [`crate::gemm`] for a product of a `rows x contracted` and a `contracted x cols` matrix; see
/// [`plan_syrk_with`].
///
/// ```
/// use sunzi::{Accuracy, Context, plans};
/// let ctx = Context::new()?;
/// let by_norms = plans::ProductPlanOptions::new().accuracy(Accuracy::Norm);
/// let wide_range = plans::ProductPlanOptions::new().accuracy(Accuracy::Entrywise).range_bits(64);
/// let short = plans::plan_gemm_with(&ctx, (100, 80), 1000, 256, &by_norms)?;
/// let long = plans::plan_gemm_with(&ctx, (100, 80), 1000, 256, &wide_range)?;
/// assert_eq!(long.working_bits, short.working_bits + 64);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`plan_syrk_with`].
pub fn plan_gemm_with(
    ctx: &Context,
    (rows, cols): (usize, usize),
    contracted: usize,
    precision_bits: u32,
    options: &ProductPlanOptions,
) -> Result<Plan> {
    let size = ProductSize { contracted, rows, cols, triangle: false, half: None };
    plan_size(ctx, size, precision_bits, options)
}

/// The plan of an exact product of integers: the norms of the columns contracted are below 2 to `bits`.
///
/// # Errors
/// As [`plan_syrk_with`].
pub(crate) fn plan_integers(ctx: &Context, size: ProductSize, bits: i64) -> Result<Plan> {
    let epilogue = Epilogue::new(None, None, None);
    let bits = IntegerBits { left: bits, right: bits, addend: 0 };
    let bits = Bits::integers(ctx.maximum_modulus_bits(), bits, &epilogue, 2)?;
    plan_request(ctx, &PlanRequest::new(size, bits))
}

pub(crate) fn plan_size(
    ctx: &Context,
    size: ProductSize,
    precision_bits: u32,
    options: &ProductPlanOptions,
) -> Result<Plan> {
    size.check(ctx.maximum_modulus_bits(), precision_bits)?;
    let request = PlanRequest::new(size, Bits::scaled(precision_bits, size.contracted));
    match options.accuracy {
        Accuracy::Entrywise if !size.is_empty() => plan_entrywise(ctx, &request, options.range_bits),
        _ => plan_request(ctx, &request),
    }
}

/// The plan of a product entry by entry, the choice of its bits included.
fn plan_entrywise(ctx: &Context, request: &PlanRequest, range_bits: Option<u32>) -> Result<Plan> {
    let PlanRequest { ref size, bits, .. } = *request;
    let accuracy = Accuracy::Entrywise;
    if takes_all(size, bits.result) {
        let sums = Singles::All.bytes(size, bits.result);
        let plan = as_one_job(plan_entries(&ctx.holding(sums), request)?);
        let planned_bytes = plan.planned_bytes + sums;
        return Ok(Plan { accuracy, working_bits: 0, planned_bytes, ..plan });
    }
    let range_bits = possible_range_bits(size, bits.result, range_bits);
    let choice = request.choice_bytes();
    let chosen = ctx.admit(choice);
    let plan = plan_widened(ctx, request, range_bits);
    let plan = larger_refusal(chosen, plan)?;
    let planned_bytes = plan.planned_bytes.max(choice);
    Ok(Plan { accuracy, range_bits, planned_bytes, ..plan })
}

/// The plan of a product with `range_bits` more bits than norm-wise accuracy needs, on the path that is chosen without
/// them.
pub(crate) fn plan_widened(ctx: &Context, request: &PlanRequest, range_bits: u32) -> Result<Plan> {
    let widened = PlanRequest { bits: request.bits.with_range(range_bits), ..*request };
    plan_on(choose_path(ctx, &request.size, request.bits.operand), ctx, &widened)
}

/// `planned`, or `admitted` where it is a refusal; of two refusals the one that names more bytes.
pub(crate) fn larger_refusal<T>(admitted: Result<()>, planned: Result<T>) -> Result<T> {
    match (admitted, planned) {
        (Ok(()), planned) => planned,
        (
            Err(Error::MemoryLimit { limit_bytes, minimum_bytes: one }),
            Err(Error::MemoryLimit { minimum_bytes: other, .. }),
        ) => Err(Error::MemoryLimit { limit_bytes, minimum_bytes: one.max(other) }),
        (Err(refusal), _) => Err(refusal),
    }
}
