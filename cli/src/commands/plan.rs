//! `sunzi plan`: how an operation would run, here or on a cluster that need not be there, without computing it.

mod cluster;

use crate::args::{
    PlanCholesky, PlanEigenvalue, PlanFactor, PlanGemm, PlanInverse, PlanMatrix, PlanOperation, PlanPromise, PlanSolve,
    PlanSyrk, PlanSystem, PlanTime, PlanTrsm,
};
use crate::commands::factor::usual_range_bits;
use crate::session::Session;
use serde::Serialize;
use sunzi::advanced::store::available_bytes;
use sunzi::distributed::{ClusterShape, even_operand_bytes, even_share, plan_syrk_cluster_with};
use sunzi::eigenvalue::{EigenvaluePlan, plan_extreme_eigenvalue};
use sunzi::plans::{
    CholeskyPlan, Plan, ProductPlanOptions, SolvePlan, UpdatePlan, plan_cholesky, plan_gemm_with, plan_inverse,
    plan_lu, plan_lu_solve, plan_solve, plan_solve_refined, plan_syrk_with, plan_trsm, plan_weighted_gram,
};
use sunzi::report::{LuReport, Path};
use sunzi::{Accuracy, CholeskyOptions, Context, LuOptions, Matrix, RefineOptions, Result};
use sunzi_lab::forecast::{ForecastOperation, TIMED_BYTES, Workload, forecast};
use sunzi_session::engine::{Engine, least_bytes, limited};
use sunzi_session::memory::{Budget, NodeProcesses};
use sunzi_session::session::Session as _;
use sunzi_session::units::{counted, folded, format_bytes, format_seconds};

/// The report: the plan, and the memory of the operands in addition.
#[derive(Serialize)]
struct PlanReport<'a, P> {
    #[serde(flatten)]
    plan: &'a P,
    operand_bytes: u64,
    /// Memory of the process, of a cluster that of all processes of a node, in addition to operands and plan.
    process_bytes: u64,
    /// The smallest memory limit with which the operation runs: of the process or of a node.
    least_limit_bytes: u64,
    /// Memory that is free on this machine; `None` for a cluster.
    machine_bytes: Option<u64>,
    #[serde(flatten)]
    cluster: Option<ClusterReport>,
    /// By runs timed now, without files; `None` where nothing was timed.
    expected_seconds: Option<f64>,
}

#[derive(Serialize)]
struct ClusterReport {
    ranks_per_node: usize,
    threads_per_rank: usize,
}

/// The request that a plan is made for.
struct Request<'a> {
    engine: &'a Engine,
    operand_bytes: u64,
    /// Without a cluster the limit is that of this process.
    cluster: Option<ClusterShape>,
    self_check: bool,
    /// The workload to time; none for a cluster.
    workload: Option<Workload>,
}

impl<'a> Request<'a> {
    fn new(engine: &'a Engine, operand_bytes: u64) -> Request<'a> {
        Request { engine, operand_bytes, cluster: None, self_check: false, workload: None }
    }

    /// The request, for which small runs are timed unless that is declined.
    fn timing(self, time: PlanTime, workload: Workload) -> Request<'a> {
        Request { workload: Some(workload).filter(|_| !time.no_time), ..self }
    }

    /// The seconds that the operation will take on the CPU, by small runs timed now.
    fn expected_seconds(&self, session: &Session) -> Result<Option<f64>> {
        let Some(workload) = self.workload.as_ref().filter(|_| !self.engine.wants_devices()) else { return Ok(None) };
        let budget = self.engine.budget(0).map(|budget| budget.with_held(TIMED_BYTES));
        let (builder, _) = limited(session.context(self.engine)?, budget);
        forecast(&builder.build()?, workload)
    }

    /// Makes the plan in the memory that the operands leave, reports it, and shows it.
    fn show<P: Serialize>(
        &self,
        session: &mut Session,
        make: impl Fn(&Context) -> Result<P>,
        describe: impl FnOnce(&P, &Request<'_>) -> Vec<String>,
    ) -> Result<()> {
        let Request { engine, operand_bytes, cluster, self_check, .. } = *self;
        let all = budget_of(engine, cluster).with_held(operand_bytes);
        let budget = engine.memory_bytes.map(|_| all);
        let context = |session: &Session| Ok(session.context(engine)?.self_check(self_check));
        let (builder, restate) = limited(context(session)?, budget);
        let plan = make(&builder.build()?).map_err(restate)?;
        let least_limit_bytes = all.least_limit(least_bytes(context(session)?, &make)?);
        let cluster = cluster.map(|ClusterShape { ranks_per_node, threads, .. }| ClusterReport {
            ranks_per_node,
            threads_per_rank: threads,
        });
        let expected_seconds = self.expected_seconds(session)?;
        let machine_bytes = available_bytes().filter(|_| cluster.is_none());
        let report = PlanReport {
            plan: &plan,
            operand_bytes,
            process_bytes: all.process_bytes(),
            least_limit_bytes,
            machine_bytes,
            cluster,
            expected_seconds,
        };
        session.finish_report(&report)?;
        let limit = budget.map(|budget| format!("memory          {}", budget.describe()));
        let time = expected_seconds.map(|seconds| {
            let threads = counted(engine.thread_count(), "thread");
            let seconds = format_seconds(seconds);
            format!("time            about {seconds} on {threads} (from measured rates, without files)")
        });
        let process = [process(all, self.cluster), least(least_limit_bytes)];
        let lines = limit.into_iter().chain(describe(&plan, self)).chain(process);
        let lines = lines.chain(self.beyond(machine_bytes)).chain(time).collect::<Vec<_>>();
        session.say(&folded(&lines.join("\n")))
    }
}

impl Request<'_> {
    /// A warning where the operands exceed the memory that this machine has free.
    fn beyond(&self, machine_bytes: Option<u64>) -> Option<String> {
        let (free, storage) = (machine_bytes?, "use --storage or a cluster");
        (self.operand_bytes > free).then(|| {
            format!(
                "warning         the operands exceed the {} of free memory of this machine: {storage}",
                format_bytes(free)
            )
        })
    }
}

/// The budget of the process that runs the operation, or of a node of the cluster; without a limit that of unlimited
/// memory.
fn budget_of(engine: &Engine, cluster: Option<ClusterShape>) -> Budget {
    let limit_bytes = engine.memory_bytes.unwrap_or(u64::MAX);
    match cluster {
        // The memory of this process does not count.
        Some(ClusterShape { ranks_per_node: count, threads, .. }) => {
            Budget::of_absent_node(limit_bytes, NodeProcesses { count, threads })
        }
        None => Budget::now(limit_bytes, engine.thread_count(), 0),
    }
}

/// The line about the memory that no plan of the library counts.
fn process(budget: Budget, cluster: Option<ClusterShape>) -> String {
    let whose = match cluster {
        Some(cluster) => format!("the programs of {} on a node", counted(cluster.ranks_per_node, "rank")),
        None => "the program itself".to_string(),
    };
    part("process", budget.process_bytes(), &format!("{whose}, counted by --memory"))
}

/// The line about the smallest limit.
fn least(bytes: u64) -> String {
    part("least limit", bytes, &format!("({bytes} bytes), the least --memory for a run"))
}

/// Plans the requested operation.
pub fn run(session: &mut Session, operation: &PlanOperation) -> Result<()> {
    match operation {
        PlanOperation::Syrk(args) => match args.cluster.shape(args.engine.threads) {
            Some(shape) => syrk_on_cluster(session, args, shape),
            None => syrk(session, args),
        },
        PlanOperation::Gemm(args) => gemm(session, args),
        PlanOperation::Cholesky(PlanCholesky { factor, cluster, storage }) => {
            match (storage.storage, cluster.shape(factor.matrix.engine.threads)) {
                (true, shape) => cluster::cholesky_above_disk(session, factor, shape),
                (false, Some(shape)) => cluster::cholesky(session, factor, shape),
                (false, None) => cholesky(session, factor),
            }
        }
        PlanOperation::Lu(args) => lu(session, args),
        PlanOperation::Trsm(args) => trsm(session, args),
        PlanOperation::Solve(PlanSystem { refine_from, general, solve: args, cluster, storage }) => {
            match (storage.storage, cluster.shape(args.matrix.engine.threads)) {
                (true, shape) => cluster::solve_above_disk(session, args, shape),
                (false, Some(shape)) => cluster::solve(session, args, shape),
                (false, None) if *general => general_system(session, &args.matrix, args.cols),
                (false, None) => solve(session, args, *refine_from),
            }
        }
        PlanOperation::Inverse(PlanInverse { general: true, factor: PlanFactor { matrix, .. } }) => {
            general_system(session, matrix, matrix.rows)
        }
        PlanOperation::Inverse(args) => inverse(session, &args.factor),
        PlanOperation::Eigenvalue(args) => eigenvalue(session, args),
    }
}

fn product_options(promise: PlanPromise) -> ProductPlanOptions {
    ProductPlanOptions::new().accuracy(promise.accuracy).range_bits(promise.range_bits)
}

/// Options for the factor of a matrix of `order` rows.
fn factor_options(promise: PlanPromise, order: usize) -> CholeskyOptions {
    let range_bits = promise.range_bits.unwrap_or_else(|| usual_range_bits(order));
    CholeskyOptions::new().accuracy(promise.accuracy).range_bits(range_bits)
}

fn syrk(session: &mut Session, args: &PlanSyrk) -> Result<()> {
    let PlanSyrk { rows, cols, precision, weights, self_check, promise, time, ref engine, .. } = *args;
    let request = Request { self_check, ..Request::new(engine, Matrix::bytes_for(rows, cols, precision)) }
        .timing(time, workload(ForecastOperation::Syrk, [rows, cols, 1], precision, promise.accuracy));
    let options = product_options(promise);
    let plan = |ctx: &Context| match weights {
        true => plan_weighted_gram(ctx, rows, cols, 2 * precision, precision, &options),
        false => plan_syrk_with(ctx, (rows, cols), precision, &options),
    };
    request.show(session, plan, describe)
}

fn syrk_on_cluster(session: &mut Session, args: &PlanSyrk, shape: ClusterShape) -> Result<()> {
    let PlanSyrk { rows, cols, precision, self_check, promise, .. } = *args;
    let options = product_options(promise);
    let rank_bytes = even_operand_bytes(rows, shape.nodes.saturating_mul(shape.ranks_per_node), cols, precision);
    // Planning takes one thread here, however many a rank has there.
    let engine = Engine { threads: Some(1), ..Engine::clone(&args.engine) };
    let operand_bytes = rank_bytes.saturating_mul(shape.ranks_per_node as u64);
    let request = Request { cluster: Some(shape), self_check, ..Request::new(&engine, operand_bytes) };
    request.show(session, |ctx| plan_syrk_cluster_with(ctx, shape, (rows, cols), precision, &options), describe)
}

fn gemm(session: &mut Session, args: &PlanGemm) -> Result<()> {
    let PlanGemm { rows: contracted, cols, result_rows, precision, self_check, promise, time, ref engine } = *args;
    let rows = result_rows.unwrap_or(cols);
    let bytes = |cols| Matrix::bytes_for(contracted, cols, precision);
    let accuracy = promise.accuracy;
    let request = Request { self_check, ..Request::new(engine, bytes(rows).saturating_add(bytes(cols))) }
        .timing(time, workload(ForecastOperation::Gemm, [contracted, cols, rows], precision, accuracy));
    let options = product_options(promise);
    request.show(session, |ctx| plan_gemm_with(ctx, (rows, cols), contracted, precision, &options), describe)
}

fn cholesky(session: &mut Session, args: &PlanFactor) -> Result<()> {
    let PlanMatrix { rows: order, precision, promise, time, ref engine } = args.matrix;
    let options = factor_options(promise, order).tile_rows(args.tile);
    let workload = workload(ForecastOperation::Cholesky, [order, 1, 1], precision, options.accuracy);
    let request = Request::new(engine, Matrix::bytes_for(order, order, precision)).timing(time, workload);
    let make = |ctx: &Context| plan_cholesky(ctx, order, precision, &options);
    request.show(session, make, describe_cholesky)
}

fn inverse(session: &mut Session, args: &PlanFactor) -> Result<()> {
    let PlanMatrix { rows: order, precision, promise, time, ref engine } = args.matrix;
    let options = factor_options(promise, order).tile_rows(args.tile);
    let workload = workload(ForecastOperation::Inverse, [order, 1, 1], precision, options.accuracy);
    let request = Request::new(engine, Matrix::bytes_for(order, order, precision)).timing(time, workload);
    request.show(session, |ctx| plan_inverse(ctx, order, precision, &options), describe_solve)
}

/// Options for the LU factors of a matrix of `order` rows.
fn lu_options(promise: PlanPromise, order: usize) -> LuOptions {
    let range_bits = promise.range_bits.unwrap_or_else(|| usual_range_bits(order));
    LuOptions::new().accuracy(promise.accuracy).range_bits(range_bits)
}

fn lu(session: &mut Session, args: &PlanMatrix) -> Result<()> {
    let PlanMatrix { rows: order, precision, promise, time, ref engine } = *args;
    let options = lu_options(promise, order);
    let workload = workload(ForecastOperation::Lu, [order, 1, 1], precision, options.accuracy);
    let request = Request::new(engine, Matrix::bytes_for(order, order, precision)).timing(time, workload);
    request.show(session, |ctx| plan_lu(ctx, order, precision, precision, &options), describe_lu)
}

/// A system with any square matrix, or its inverse.
fn general_system(session: &mut Session, args: &PlanMatrix, cols: usize) -> Result<()> {
    let PlanMatrix { rows: order, precision, promise, time, ref engine } = *args;
    let options = lu_options(promise, order);
    let workload = workload(ForecastOperation::LuSolve, [order, cols, 1], precision, options.accuracy);
    let request = Request::new(engine, system_bytes(order, cols, precision)).timing(time, workload);
    request.show(session, |ctx| plan_lu_solve(ctx, order, cols, precision, &options), describe_solve)
}

fn eigenvalue(session: &mut Session, args: &PlanEigenvalue) -> Result<()> {
    let PlanEigenvalue { rows: order, precision, ref engine } = *args;
    let request = Request::new(engine, Matrix::bytes_for(order, order, precision));
    request.show(session, |ctx| plan_extreme_eigenvalue(ctx, order, precision, precision), describe_eigenvalue)
}

fn trsm(session: &mut Session, args: &PlanTrsm) -> Result<()> {
    let PlanTrsm { rows: order, cols, precision, accuracy, time, ref engine } = *args;
    let workload = workload(ForecastOperation::Trsm, [order, cols, 1], precision, accuracy);
    let request = Request::new(engine, system_bytes(order, cols, precision)).timing(time, workload);
    request.show(session, |ctx| plan_trsm(ctx, (order, cols), precision, accuracy), describe_solve)
}

fn solve(session: &mut Session, args: &PlanSolve, refine_from: Option<u32>) -> Result<()> {
    let PlanSolve { cols, matrix: PlanMatrix { rows: order, precision, promise, time, ref engine } } = *args;
    let options = factor_options(promise, order);
    let refined = ForecastOperation::Solve { refine_from };
    let workload = workload(refined, [order, cols, 1], precision, options.accuracy);
    let request = Request::new(engine, system_bytes(order, cols, precision)).timing(time, workload);
    let make = |ctx: &Context| match refine_from {
        Some(bits) => plan_solve_refined(ctx, (order, cols), precision, &RefineOptions::new().factor_bits(bits)),
        None => plan_solve(ctx, (order, cols), precision, &options),
    };
    request.show(session, make, describe_solve)
}

/// Bytes of a square matrix and of right-hand sides.
fn system_bytes(order: usize, columns: usize, precision_bits: u32) -> u64 {
    let bytes = |columns| Matrix::bytes_for(order, columns, precision_bits);
    bytes(order).saturating_add(bytes(columns))
}

fn workload(operation: ForecastOperation, sides: [usize; 3], precision_bits: u32, accuracy: Accuracy) -> Workload {
    Workload { operation, sides, precision_bits, accuracy }
}

/// A line of the table of bytes.
fn part(name: &str, bytes: u64, remark: &str) -> String {
    format!("{name:<15} {:>11}  {remark}", format_bytes(bytes)).trim_end().to_string()
}

fn operands(request: &Request<'_>) -> String {
    let whose = if request.cluster.is_some() { "held by the ranks of a node" } else { "given" };
    part("operands", request.operand_bytes, &format!("{whose}, not part of the plan"))
}

fn planned(bytes: u64, request: &Request<'_>) -> String {
    let place = if request.cluster.is_some() { " on a node" } else { "" };
    part("planned", bytes, &format!("({bytes} bytes{place}, operands excluded)"))
}

fn describe_cholesky(plan: &CholeskyPlan, request: &Request<'_>) -> Vec<String> {
    let CholeskyPlan { order, precision_bits, working_bits, kernel, threads, primes, tile_rows, tiles, .. } = plan;
    let threads = counted(*threads, "thread");
    let mut lines = vec![format!(
        "A = L L^T: {order} x {order} at {precision_bits} bits (working {working_bits}), kernel {kernel}, {threads}"
    )];
    lines.extend(promise(plan.accuracy, plan.range_bits));
    lines.extend([
        format!("primes          {primes}"),
        format!("tiles           {} of {tile_rows} rows", counted(*tiles, "tile row")),
        operands(request),
        part("result", plan.factor_bytes, ""),
        part("tiles", plan.tile_bytes, "residues and integers"),
        part("rest", plan.planned_bytes - plan.tile_bytes - plan.factor_bytes, "scratch, tables, lists"),
    ]);
    lines.extend(plan.devices.iter().map(|UpdatePlan { device, kernel, moduli, tile_bytes, .. }| {
        let (name, bytes) = (device.label(), format_bytes(*tile_bytes));
        format!("{name:<15} {}: updates by {kernel}, {moduli} moduli, {bytes} of its memory per tile", device.name)
    }));
    lines.push(planned(plan.planned_bytes, request));
    lines
}

fn describe_lu(plan: &LuReport, request: &Request<'_>) -> Vec<String> {
    let LuReport { order, precision_bits, working_bits, growth_bits, kernel, threads, primes, .. } = plan;
    let (threads, result_bytes) =
        (counted(*threads, "thread"), Matrix::bytes_for(plan.order, plan.order, plan.precision_bits));
    let mut lines = vec![format!(
        "P A = L U: {order} x {order} at {precision_bits} bits (working {working_bits}), kernel {kernel}, {threads}"
    )];
    lines.extend(promise(plan.accuracy, plan.range_bits));
    lines.extend([
        format!("primes          {primes}"),
        format!("growth          room for U up to 2^{growth_bits} times the largest entry of a column"),
        operands(request),
        part("result", result_bytes, ""),
        part("rest", plan.planned_bytes - result_bytes, "residues, integers, scratch, tables"),
        planned(plan.planned_bytes, request),
    ]);
    lines
}

fn describe_eigenvalue(plan: &EigenvaluePlan, request: &Request<'_>) -> Vec<String> {
    let EigenvaluePlan { order, precision_bits, factorisation, .. } = plan;
    let CholeskyPlan { working_bits, kernel, threads, tile_rows, tiles, .. } = factorisation;
    let threads = counted(*threads, "thread");
    vec![
        format!(
            "A v = t v: {order} x {order}, an interval of {precision_bits} bits (working {working_bits}), kernel \
             {kernel}, {threads}"
        ),
        format!("tiles           {} of {tile_rows} rows", counted(*tiles, "tile row")),
        operands(request),
        part("search", plan.search_bytes, "copy, shifted matrix, vectors"),
        part("factorisation", factorisation.planned_bytes, "of a shifted matrix"),
        planned(plan.planned_bytes, request),
    ]
}

fn describe_solve(plan: &SolvePlan, request: &Request<'_>) -> Vec<String> {
    let SolvePlan { order, columns, precision_bits, working_bits, kernel, threads, .. } = plan;
    let name = match plan.operation {
        "trsm" => "T X = B",
        "inverse" => "A X = I",
        _ => "A X = B",
    };
    let (columns, threads) = (counted(*columns, "right-hand side"), counted(*threads, "thread"));
    let path = match plan.path {
        Path::Dots => "dot products in fixed point, one right-hand side after the other",
        Path::Sums => "sums of digits, one right-hand side after the other",
        Path::Parts => "recursive splitting of the triangle",
        Path::Tiles => "tiles in fixed point",
    };
    let mut lines = vec![
        format!(
            "{name}: {order} x {order} and {columns} at {precision_bits} bits (working {working_bits}), kernel \
             {kernel}, {threads}"
        ),
        format!("path            {path}"),
        format!("bands           {} of {}", plan.bands, counted(plan.band_columns, "right-hand side")),
        operands(request),
        part("result", Matrix::bytes_for(plan.order, plan.columns, *precision_bits), ""),
    ];
    if plan.factorisation_bytes > 0 {
        lines.push(part("factorisation", plan.factorisation_bytes, "before the solve, including the factor"));
    }
    lines.push(part("least", plan.least_bytes, "least memory that suffices"));
    lines.push(planned(plan.planned_bytes, request));
    lines
}

/// The bits that accuracy entry by entry takes.
fn promise(accuracy: Accuracy, range_bits: u32) -> Option<String> {
    let bits = counted(range_bits as usize, "bit");
    (accuracy == Accuracy::Entrywise).then(|| format!("accuracy        entrywise, {bits} for the range of exponents"))
}

/// The shape of a product and the engine that it runs on.
fn heading(plan: &Plan) -> String {
    let name = match plan.operation {
        "syrk" => "Q := P^T P",
        "weighted_gram" => "Q := P^T diag(d) P",
        _ => "C := A B",
    };
    let Plan { rows, cols, contracted, precision_bits, working_bits, kernel, .. } = plan;
    let threads = if plan.team.is_some() { String::new() } else { format!(", {}", counted(plan.threads, "thread")) };
    format!(
        "{name}: {rows} x {cols}, summed over {contracted} rows, at {precision_bits} bits (working {working_bits}), \
         kernel {kernel}{threads}"
    )
}

fn describe(plan: &Plan, request: &Request<'_>) -> Vec<String> {
    let mut lines = vec![heading(plan)];
    lines.extend(promise(plan.accuracy, plan.range_bits));
    match plan.devices.is_empty() {
        true => lines.extend(describe_cuts(plan, request)),
        false => lines.extend(describe_devices(plan, request)),
    }
    lines.push(operands(request));
    lines.extend(describe_bytes(plan));
    lines.push(planned(plan.planned_bytes, request));
    lines
}

/// The division of a product on the CPU; on a cluster that of the node with the most memory, from which the others
/// differ by a few rows and tiles.
fn describe_cuts(plan: &Plan, request: &Request<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let team = plan.team.as_ref();
    let node = team.and_then(|team| team.per_node.iter().max_by_key(|node| node.planned_bytes));
    if let (Some(node), Some(cluster)) = (node, request.cluster) {
        lines.extend(describe_cluster(plan, cluster, node.rows));
    }
    let (on, and, of) = if node.is_some() { (" on a node", " and node", " of a node") } else { ("", "", "") };
    let (chunk_rows, jobs, workers) = match node {
        Some(node) => (node.chunk_rows, node.jobs, range(node.jobs_per_worker.0, node.jobs_per_worker.1)),
        None => (plan.chunk_rows, plan.jobs_per_worker.iter().sum(), each(&plan.jobs_per_worker)),
    };
    lines.extend([
        format!("primes          {}", plan.primes),
        format!("batches         {} of {} primes", plan.batches, plan.batch_primes),
        format!("bands           {} of {} columns", plan.bands, plan.band_columns),
        format!("chunks          {} of {chunk_rows} rows{on}", plan.chunks),
        format!("jobs            {jobs} per batch{and}, per worker {workers}"),
        format!("balance         largest load {:.4} times the mean{of}", plan.load_max_over_mean),
    ]);
    lines
}

/// A planned cluster, with the rows of its largest node, and the owners of the result.
fn describe_cluster(plan: &Plan, cluster: ClusterShape, rows: usize) -> Vec<String> {
    let Some(team) = &plan.team else { return Vec::new() };
    vec![
        format!(
            "cluster         {} of {} of {}: {}, {}",
            counted(team.nodes, "node"),
            counted(cluster.ranks_per_node, "rank"),
            counted(cluster.threads, "thread"),
            counted(team.ranks, "rank"),
            counted(plan.threads, "worker")
        ),
        format!("rows            {rows} on a node"),
        format!("grid            {} x {} ranks own the result", team.grid.0, team.grid.1),
        format!("tiles           {0} x {0}", team.tile_size),
    ]
}

/// The division of a product on devices, and the memory that it takes there; on a cluster those of its first rank.
fn describe_devices(plan: &Plan, request: &Request<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    if let (Some(team), Some(cluster)) = (&plan.team, request.cluster) {
        let rows = (0..cluster.ranks_per_node).map(|rank| even_share(plan.contracted, team.ranks, rank).len()).sum();
        lines.extend(describe_cluster(plan, cluster, rows));
    }
    lines.push(format!("moduli          {}", plan.primes));
    for device in &plan.devices {
        let (cut, bytes) = (&device.cut, &device.bytes);
        lines.push(format!(
            "{:<15} {}: {} moduli, {} planes, in batches of {} moduli, bands of {} columns, chunks of {} rows",
            format!("{} {}", device.kind, device.index),
            device.name,
            device.moduli,
            device.planes,
            cut.batch_moduli,
            cut.band_cols,
            cut.chunk_rows
        ));
        lines.extend([
            part("  input", bytes.input, "big floats copied to the device"),
            part("  digits", bytes.digits, "scaled entries of a chunk"),
            part("  to_residues", bytes.planes, "operand planes of a batch"),
            part("  product", bytes.sums, "sums of products, for some columns of a band"),
            part("  residues", bytes.residues, "of the product, for one band"),
            part("  output", bytes.output, "integers and big floats copied from the device"),
            part("  tables", bytes.tables, "moduli, conversion tables, shifts"),
            part("  on the device", device.planned_bytes, "in total"),
        ]);
        if let Some(bytes) = device.share_bytes {
            let share = format!("of this rank: {} ranks use equal parts of the memory of the device", device.ranks);
            lines.push(part("  share", bytes, &share));
        }
    }
    lines
}

/// The parts of the host's memory; those of the node that takes the most where there are several.
fn describe_bytes(plan: &Plan) -> Vec<String> {
    let bytes = &plan.bytes;
    if !plan.devices.is_empty() {
        let copies = part("copies", bytes.scratch, "host buffers for copies to and from devices");
        return vec![part("result", bytes.result, ""), copies];
    }
    let team = plan.team.as_ref();
    let on_nodes = |text: &'static str| if team.is_some() { text } else { "" };
    let (shared, node) = (on_nodes(", shared by the node"), on_nodes(" of a node"));
    let mut lines = vec![
        part("result", bytes.result, on_nodes("at most, tiles of all ranks of a node")),
        part("to_residues", bytes.operand_window, &format!("residues of the operands, one batch{shared}")),
        part("product", bytes.product_window, &format!("residues of the product, all primes{shared}")),
        part("scratch", bytes.scratch, &format!("kernel scratch of all workers{node}")),
        part("reconstruct", bytes.integers, &format!("integers of all workers{node}")),
        part("tables", bytes.tables, &format!("moduli and conversion tables{}", on_nodes(" of each rank"))),
        part("lists", bytes.lists, &format!("shifts, jobs{}", on_nodes(", messages"))),
    ];
    lines.extend(team.map(|team| {
        let beside = match team.exchange_parts {
            0 | 1 => String::new(),
            parts => format!(", in {parts} parts per batch, while the next batch is multiplied"),
        };
        part("sent", team.sent_bytes, &format!("at most, from each node to the others{beside}"))
    }));
    lines
}

/// Jobs of each worker; where there are many workers, the range only.
fn each(counts: &[usize]) -> String {
    if counts.len() <= 16 {
        return format!("{counts:?}");
    }
    range(counts.iter().min().copied().unwrap_or(0), counts.iter().max().copied().unwrap_or(0))
}

fn range(least: usize, most: usize) -> String {
    format!("{least} to {most}")
}
