//! Runs a product: norms, plan, the direct path or the planes, the result and its report.

use crate::comm::window::NodeWindow;
use crate::context::{Context, Workspace, WorkspaceNeeds};
use crate::error::{Error, Result};
use crate::matrix::{Destination, Matrix, MatrixView, MatrixViewMut};
use crate::ops::product::clock::{PhaseClock, RankPhase};
use crate::ops::product::device::{CutCounts, DevicePlan, DeviceRequest, DeviceRun, ResultTarget};
use crate::ops::product::direct;
use crate::ops::product::entrywise::{self, Entrywise, Singles, Terms};
use crate::ops::product::forecast::{larger_refusal, plan_widened};
use crate::ops::product::path::{ProductMethod, choose_path, is_worth_a_device, other_path, plan_alone};
use crate::ops::product::plan::{Plan, PlanRequest, PlannedRun, plan_planes};
use crate::ops::product::problem::{Bits, ColumnRange, IntegerBits, OperandRows, ProductOperand, ProductProblem};
use crate::ops::product::recover::RecoveryTime;
use crate::ops::product::report::{Phases, Report};
use crate::ops::product::run::{ProductRun, RunState};
use crate::ops::product::scale;
use crate::ops::product::space::worker_spaces;
use crate::plan::NodeShape;
use crate::site::Site;
use std::borrow::Cow;
use std::time::Instant;

/// Computes `problem` into `result`.
///
/// # Errors
/// The errors of [`crate::syrk_with`].
pub(crate) fn run(ctx: &Context, problem: &ProductProblem<'_>, result: Destination<'_>) -> Result<Report> {
    let start = Instant::now();
    problem.check(ctx.maximum_modulus_bits())?;
    let mut workspace = ctx.workspace();
    let path = choose_path(ctx, &problem.size(), problem.expected_operand_bits());
    let (path, scaled) = path_within_limit(ctx, path, problem, &mut workspace)?;
    let begun = Begun { problem, start, scaled };
    let mut report = match path {
        _ if is_summed(problem) => return run_direct(ctx, begun, result, &mut workspace),
        ProductMethod::Direct => return run_direct(ctx, begun, result, &mut workspace),
        ProductMethod::Planes(_) if devices_take(ctx, problem)? => run_devices(ctx, problem, result, &mut workspace)?,
        ProductMethod::Planes(1) => run_planes(ctx, 1, begun, result, &mut workspace)?,
        ProductMethod::Planes(workers) => ctx.install(|| run_planes(ctx, workers, begun, result, &mut workspace))?,
    };
    report.seconds = start.elapsed().as_secs_f64();
    Ok(report)
}

/// A product of which the path is chosen.
struct Begun<'a> {
    problem: &'a ProductProblem<'a>,
    start: Instant,
    /// The bits that its operands need, where the choice of the path had to compute them.
    scaled: Option<ScaledBits>,
}

impl Begun<'_> {
    /// The bits that the operands need; their scale shifts are written to the workspace.
    fn scale(&mut self, ctx: &Context, workers: usize, workspace: &mut Workspace) -> Result<ScaledBits> {
        self.scaled.take().map_or_else(|| scale_operands(ctx, workers, self.problem, workspace), Ok)
    }
}

/// Whether every entry is summed term by term, and no product formed.
fn is_summed(problem: &ProductProblem<'_>) -> bool {
    problem.is_entrywise() && problem.range.is_none() && entrywise::takes_all(&problem.size(), problem.precision_bits)
}

/// `path`, or the other path of a small product where a limit refuses only this one; with the bits that the operands
/// need, where the choice had to compute them.
fn path_within_limit(
    ctx: &Context,
    path: ProductMethod,
    problem: &ProductProblem<'_>,
    workspace: &mut Workspace,
) -> Result<(ProductMethod, Option<ScaledBits>)> {
    if ctx.memory_bytes().is_none() || problem.size().is_empty() || is_summed(problem) {
        return Ok((path, None));
    }
    let Some(other) = other_path(path, ctx, &request(problem, problem.scaled_bits())) else { return Ok((path, None)) };
    let scaled = scale_operands(ctx, 1, problem, workspace)?;
    if matches!(scaled.entrywise.singles, Singles::All) {
        return Ok((path, Some(scaled)));
    }
    let (request, beside) = (request(problem, scaled.bits), scaled.beside(ctx, problem));
    let fits = |path| plan_alone(path, &beside, &request).is_ok();
    Ok((if !fits(path) && fits(other) { other } else { path }, Some(scaled)))
}

fn run_direct(
    ctx: &Context,
    mut begun: Begun<'_>,
    result: Destination<'_>,
    workspace: &mut Workspace,
) -> Result<Report> {
    let scaled = begun.scale(ctx, 1, workspace)?;
    let Begun { problem, start, .. } = begun;
    let (bits, ctx, end) = (scaled.bits, &scaled.beside(ctx, problem), Instant::now());
    let summed = matches!(scaled.entrywise.singles, Singles::All);
    let plan = if summed { direct::plan_entries } else { direct::plan }(ctx, &request(problem, bits))?;
    workspace.trim(ctx.memory_beside_tables(), &needs(&plan));
    let mut result = result.prepare(problem.result_shape(), bits.result)?;
    if !summed {
        direct::run(ctx, problem, &bits, &plan, workspace, result.reborrow())?;
    }
    scaled.complete(ctx, 1, problem, &mut result)?;
    let (scale, product) = ((end - start).as_secs_f64(), end.elapsed().as_secs_f64());
    let mut report = Report::new(&plan, problem.precision_bits, Phases { scale, product, ..Phases::default() });
    report.seconds = scale + product;
    Ok(scaled.report(report, problem))
}

fn run_planes(
    ctx: &Context,
    workers: usize,
    mut begun: Begun<'_>,
    result: Destination<'_>,
    workspace: &mut Workspace,
) -> Result<Report> {
    let mut clock = PhaseClock::alone(begun.start);
    let scaled = clock.time(RankPhase::Scale, || begun.scale(ctx, workers, workspace))?;
    let problem = begun.problem;
    let ctx = &scaled.beside(ctx, problem);
    let planned = plan_planes(ctx, &request(problem, scaled.bits), workers, workspace.bytes())?;
    workspace.trim(ctx.memory(), &needs(&planned.plan));
    let mut result = result.prepare(problem.result_shape(), scaled.bits.result)?;
    let recovery = fill_planes(ctx, problem, scaled.bits, &planned, workspace, &mut clock, &mut result)?;
    scaled.complete(ctx, workers, problem, &mut result)?;
    let mut report = Report::new(&planned.plan, problem.precision_bits, Phases::new(&clock, &recovery));
    report.checked = ctx.self_check() || ctx.freivalds();
    Ok(scaled.report(report, problem))
}

/// Runs the product as the only rank of a team, in the windows of the workspace.
fn fill_planes(
    ctx: &Context,
    problem: &ProductProblem<'_>,
    bits: Bits,
    planned: &PlannedRun,
    workspace: &mut Workspace,
    clock: &mut PhaseClock,
    result: &mut MatrixViewMut<'_>,
) -> Result<RecoveryTime> {
    let PlannedRun { engine, cutting, schedule, words, plan } = planned;
    workspace.reserve_workers(plan.threads);
    let Workspace { operands, products, workers, left_shifts, right_shifts, .. } = workspace;
    let spaces = worker_spaces(&mut workers[..plan.threads], engine.magnitude_limbs(), words.scratch)?;
    let blocks = [problem.left, problem.right_operand()].map(|operand| [operand.view]);
    let shape = NodeShape::alone(problem.contracted(), plan.threads);
    let run = ProductRun {
        site: Site::one_process(ctx),
        shape: &shape,
        engine: &**engine,
        cutting: *cutting,
        schedule: schedule.clone(),
        left: OperandRows { blocks: &blocks[0], shifts: left_shifts },
        right: problem.right.map(|_| OperandRows { blocks: &blocks[1], shifts: right_shifts }),
        streamed: None,
        uplo: problem.uplo,
        bits,
        epilogue: problem.epilogue,
        owners: None,
        fault: problem.hooks.fault,
    };
    let operands = NodeWindow::Alone(operands.words(words.operands)?);
    let products = NodeWindow::Alone(products.words(words.products)?);
    clock.skip();
    run.run(&mut RunState { operands, products, spaces, clock }, result)
}

/// Whether a product runs on devices. A product inside another operation, which has planned for the CPU, does so where
/// that pays for the copies, and where devices and the memory limit have room for it.
fn devices_take(ctx: &Context, problem: &ProductProblem<'_>) -> Result<bool> {
    if ctx.devices().is_empty() || problem.inner_bits.is_none() {
        return Ok(!ctx.devices().is_empty());
    }
    if !is_worth_a_device(ctx, &problem.size(), problem.expected_operand_bits()) {
        return Ok(false);
    }
    let bits = problem.scaled_bits();
    match DevicePlan::new(Site::one_process(ctx), &DeviceRequest::of(problem, bits), None) {
        Ok(plan) => Ok(ctx.admit(device_host_bytes(ctx, problem, bits, &plan)).is_ok()),
        Err(Error::DeviceLimit { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Bytes on the host of a product on devices.
fn device_host_bytes(ctx: &Context, problem: &ProductProblem<'_>, bits: Bits, plan: &DevicePlan) -> u64 {
    let (rows, cols) = problem.result_shape();
    let beside = plan.pinned_bytes() + plan.list_bytes(ctx.freivalds().then(|| ctx.threads()));
    Matrix::bytes_for(rows, cols, bits.result).saturating_add(beside)
}

fn run_devices(
    ctx: &Context,
    problem: &ProductProblem<'_>,
    result: Destination<'_>,
    workspace: &mut Workspace,
) -> Result<Report> {
    let start = Instant::now();
    let workers = ctx.threads();
    let scaled = ctx.install(|| scale_operands(ctx, workers, problem, workspace))?;
    let (bits, ctx) = (scaled.bits, &scaled.beside(ctx, problem));
    let scale = start.elapsed().as_secs_f64();
    let request = DeviceRequest::of(problem, bits);
    let plan = DevicePlan::new(Site::one_process(ctx), &request, None)?;
    let planned_bytes = device_host_bytes(ctx, problem, bits, &plan);
    ctx.admit(planned_bytes)?;
    workspace.trim(ctx.memory(), &WorkspaceNeeds { planned_bytes, ..WorkspaceNeeds::default() });
    let start = Instant::now();
    let mut result = result.prepare(problem.result_shape(), bits.result)?;
    let blocks = [problem.left, problem.right_operand()].map(|operand| [operand.view]);
    let left = OperandRows { blocks: &blocks[0], shifts: &workspace.left_shifts };
    let right = problem.right.map(|_| OperandRows { blocks: &blocks[1], shifts: &workspace.right_shifts });
    let epilogue = problem.epilogue;
    let run = DeviceRun { site: Site::one_process(ctx), left, right, epilogue, request, owners: None };
    let (plan, devices) = run.run(plan, ResultTarget::Whole(result.reborrow()), &mut PhaseClock::alone(start))?;
    scaled.complete(ctx, workers, problem, &mut result)?;
    let CutCounts { batches, bands, chunks } = plan.cuts();
    let report = Report {
        operation: problem.operation,
        rows: problem.contracted(),
        cols: problem.result_shape().1,
        precision_bits: problem.precision_bits,
        working_bits: bits.working,
        threads: workers,
        kernel: plan.kernel(),
        primes: plan.moduli(),
        batches,
        bands,
        chunks,
        phases: Phases { scale, product: start.elapsed().as_secs_f64(), ..Phases::default() },
        planned_bytes,
        checked: ctx.self_check() || ctx.freivalds(),
        devices,
        ..Report::default()
    };
    Ok(scaled.report(report, problem))
}

fn request(problem: &ProductProblem<'_>, bits: Bits) -> PlanRequest {
    let (rows, cols) = problem.result_shape();
    let result_bytes = Matrix::bytes_for(rows, cols, bits.result);
    PlanRequest {
        operation: problem.operation,
        size: problem.size(),
        bits,
        result_bytes,
        cut: problem.hooks.cut,
        on_cpu: true,
        is_part: problem.inner_bits.is_some(),
    }
}

/// The bits that the operands of a product need.
pub(super) struct ScaledBits {
    bits: Bits,
    entrywise: Entrywise,
}

impl ScaledBits {
    /// The bits for the range of exponents, where no entry is summed by itself.
    pub fn common_range(&self) -> Option<u32> {
        matches!(self.entrywise.singles, Singles::None).then_some(self.entrywise.range_bits)
    }

    /// The context of the product, which counts the memory of single entries.
    fn beside<'c>(&self, ctx: &'c Context, problem: &ProductProblem<'_>) -> Cow<'c, Context> {
        match self.entrywise.singles.bytes(&problem.size(), problem.precision_bits) {
            0 => Cow::Borrowed(ctx),
            bytes => Cow::Owned(ctx.holding(bytes)),
        }
    }

    /// The steps that remain when the product lies in `result`.
    fn complete(
        &self,
        ctx: &Context,
        workers: usize,
        problem: &ProductProblem<'_>,
        result: &mut MatrixViewMut<'_>,
    ) -> Result<()> {
        let (precision_bits, width) = (result.precision_bits(), result.limbs_per_element());
        let (stride, (heads, limbs)) = (result.leading_dimension(), result.reborrow().into_parts());
        let blocks = [problem.left, problem.right_operand()].map(|operand| [operand.view]);
        let terms = terms(problem, &blocks, &[], &[]);
        self.entrywise.singles.sum(&scale::NormPass::one_process(ctx, workers), &terms, |place, exact| {
            let at = place.row + place.col * stride;
            heads[at] = problem.epilogue.finish(exact, place, precision_bits, &mut limbs[at * width..][..width])?.0;
            Ok(())
        })?;
        problem.complete(ctx, result.reborrow());
        Ok(())
    }

    fn report(&self, report: Report, problem: &ProductProblem<'_>) -> Report {
        let Entrywise { range_bits, singles } = &self.entrywise;
        let chosen = problem.is_entrywise() && !matches!(singles, Singles::All);
        let least_bytes = if chosen { choice_bytes(problem) } else { 0 };
        let planned_bytes =
            (report.planned_bytes + singles.bytes(&problem.size(), problem.precision_bits)).max(least_bytes);
        let (accuracy, single_entries) = (problem.accuracy, singles.count(&problem.size()));
        Report { accuracy, range_bits: *range_bits, single_entries, planned_bytes, ..report }
    }
}

/// Bytes while the bits of entrywise accuracy are chosen: the result may be there already.
fn choice_bytes(problem: &ProductProblem<'_>) -> u64 {
    let (rows, cols) = problem.result_shape();
    let result_bytes = Matrix::bytes_for(rows, cols, problem.precision_bits);
    entrywise::choice_bytes(&problem.size()).saturating_add(result_bytes)
}

/// The terms of all entries, with the norm exponents of the operands' columns.
fn terms<'t>(
    problem: &ProductProblem<'_>,
    blocks: &'t [[MatrixView<'t>; 1]; 2],
    left: &'t [i64],
    right: &'t [i64],
) -> Terms<'t> {
    let ProductProblem { uplo, precision_bits, .. } = *problem;
    let left = OperandRows { blocks: &blocks[0], shifts: left };
    let right = problem.right.map(|_| OperandRows { blocks: &blocks[1], shifts: right });
    Terms { size: problem.size(), uplo, precision_bits, left, right }
}

/// The bits that each column of a product needs by itself, at least `least_bits`.
///
/// # Errors
/// [`Error::MemoryLimit`], [`Error::OutOfMemory`].
pub(crate) fn choose_columns(ctx: &Context, problem: &ProductProblem<'_>, least_bits: u32) -> Result<Vec<ColumnRange>> {
    let mut workspace = ctx.workspace();
    make_room_to_choose(ctx, problem, &mut workspace)?;
    let Workspace { left_shifts, right_shifts, .. } = &mut *workspace;
    let mut choose = |workers: usize| {
        let pass = scale::NormPass::one_process(ctx, workers);
        operand_exponents(&pass, problem, &problem.left, left_shifts)?;
        operand_exponents(&pass, problem, &problem.right_operand(), right_shifts)?;
        let blocks = [problem.left, problem.right_operand()].map(|operand| [operand.view]);
        entrywise::choose_columns(&pass, &terms(problem, &blocks, left_shifts, right_shifts), least_bits)
    };
    match choose_path(ctx, &problem.size(), problem.expected_operand_bits()) {
        ProductMethod::Direct | ProductMethod::Planes(1) => choose(1),
        ProductMethod::Planes(workers) => ctx.install(|| choose(workers)),
    }
}

/// Makes room for choosing the bits of entrywise accuracy.
///
/// # Errors
/// [`Error::MemoryLimit`]: the refusal of a choice, or that of the product after it where that takes more, with the
/// bits of entries of one size.
fn make_room_to_choose(ctx: &Context, problem: &ProductProblem<'_>, workspace: &mut Workspace) -> Result<()> {
    let planned_bytes = choice_bytes(problem);
    if let Err(refusal) = ctx.admit(planned_bytes) {
        let even = entrywise::possible_range_bits(&problem.size(), problem.precision_bits, None);
        let product = plan_widened(ctx, &request(problem, problem.scaled_bits()), even);
        larger_refusal(Err(refusal), product)?;
    }
    workspace.trim(ctx.memory_beside_tables(), &WorkspaceNeeds { planned_bytes, ..WorkspaceNeeds::default() });
    Ok(())
}

/// Fills the workspace with the scale shifts of all columns.
pub(super) fn scale_operands(
    ctx: &Context,
    workers: usize,
    problem: &ProductProblem<'_>,
    workspace: &mut Workspace,
) -> Result<ScaledBits> {
    let by_norms = |bits| ScaledBits { bits, entrywise: Entrywise::default() };
    if problem.size().is_empty() {
        return match problem.exact_integers {
            true => integer_bits(ctx, problem, 0, 0).map(by_norms),
            false => Ok(by_norms(problem.scaled_bits())),
        };
    }
    if is_summed(problem) {
        let bits = Bits { working: 0, ..problem.scaled_bits() };
        return Ok(ScaledBits { bits, entrywise: Entrywise { range_bits: 0, singles: Singles::All } });
    }
    let pass = scale::NormPass::one_process(ctx, workers);
    let left = operand_exponents(&pass, problem, &problem.left, &mut workspace.left_shifts)?;
    let right = match &problem.right {
        Some(right) => operand_exponents(&pass, problem, right, &mut workspace.right_shifts)?,
        None => {
            workspace.right_shifts.clear();
            left
        }
    };
    let scaled = match problem.exact_integers {
        true => by_norms(integer_bits(ctx, problem, left, right)?),
        false if problem.is_entrywise() => {
            if problem.range.is_none_or(|range| range.has_singles) {
                make_room_to_choose(ctx, problem, workspace)?;
            }
            let Workspace { left_shifts, right_shifts, .. } = workspace;
            let blocks = [problem.left, problem.right_operand()].map(|operand| [operand.view]);
            let terms = terms(problem, &blocks, left_shifts, right_shifts);
            let entrywise = entrywise::choose(&pass, &terms, problem.range)?;
            let bits = problem.scaled_bits();
            ScaledBits { bits: bits.widened(bits.working + entrywise.range_bits), entrywise }
        }
        false => by_norms(problem.scaled_bits()),
    };
    let bits = &scaled.bits;
    for exponent in workspace.left_shifts.iter_mut().chain(&mut workspace.right_shifts) {
        *exponent = if problem.exact_integers { 0 } else { i64::from(bits.working) - *exponent };
    }
    Ok(scaled)
}

fn integer_bits(ctx: &Context, problem: &ProductProblem<'_>, left: i64, right: i64) -> Result<Bits> {
    let bits = IntegerBits { left, right, addend: problem.epilogue.addend_bits() };
    Bits::integers(ctx.maximum_modulus_bits(), bits, &problem.epilogue, problem.precision_bits)
}

/// The norm exponents of one operand into `shifts`; returns the largest, at least 0.
fn operand_exponents(
    pass: &scale::NormPass<'_>,
    problem: &ProductProblem<'_>,
    operand: &ProductOperand<'_>,
    shifts: &mut Vec<i64>,
) -> Result<i64> {
    if problem.exact_integers {
        scale::check_operand_integers(pass.workers, operand)?;
    }
    shifts.clear();
    shifts.resize(operand.view.cols(), 0);
    scale::norm_exponents(pass, &[operand.view], operand.transposed, shifts)?;
    Ok(shifts.iter().copied().max().unwrap_or(0).max(0))
}

/// The kept memory that a call uses.
pub(crate) fn needs(plan: &Plan) -> WorkspaceNeeds {
    let bytes = &plan.bytes;
    WorkspaceNeeds {
        operand_bytes: bytes.operand_window,
        product_bytes: bytes.product_window,
        workers: plan.threads,
        worker_bytes: (bytes.scratch + bytes.integers) / plan.threads.max(1) as u64,
        planned_bytes: plan.planned_bytes,
    }
}
