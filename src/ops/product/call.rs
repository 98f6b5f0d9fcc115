//! A product in one process, step by step: choose the path, scale the operands, plan, run, complete the result.

use crate::context::{Context, Workspace, WorkspaceNeeds};
use crate::error::{Error, Result};
use crate::matrix::{Destination, MatrixViewMut, SymmetricDestination, SymmetricMatrix, Uplo};
use crate::ops::product::clock::{PhaseClock, RankPhase};
use crate::ops::product::device::{DeviceRequest, DeviceRun};
use crate::ops::product::direct;
use crate::ops::product::entrywise::{self, Entrywise, Singles, Terms};
use crate::ops::product::path::{ProductMethod, choose_path, is_worth_a_device, other_path};
use crate::ops::product::plan::{
    Plan, PlanRequest, PlannedRun, larger_refusal, plan_alone, plan_devices, plan_direct, plan_entries, plan_planes,
    plan_widened,
};
use crate::ops::product::problem::{Bits, ColumnRange, IntegerBits, ProductOperand, ProductProblem};
use crate::ops::product::report::{Phases, Report};
use crate::ops::product::run::{ProductRun, RunMemory};
use crate::ops::product::scale::{NormPass, check_operand_integers, norm_exponents};
use crate::ops::product::sink::ResultTarget;
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
    let workspace = &mut *ctx.workspace();
    let (path, scaled) = choose(ctx, problem, workspace)?;
    let call = ProductCall { ctx, problem, workspace, start, scaled };
    let mut report = match path {
        ProductMethod::Direct => return call.direct(result),
        ProductMethod::Planes(_) if devices_take(ctx, problem)? => call.devices(result)?,
        ProductMethod::Planes(1) => call.planes(1, result)?,
        ProductMethod::Planes(workers) => ctx.install(|| call.planes(workers, result))?,
    };
    report.seconds = start.elapsed().as_secs_f64();
    Ok(report)
}

/// Fills a symmetric result by `fill`, whose second argument is whether the other triangle becomes the mirror image of
/// the one that is computed.
///
/// # Errors
/// The errors of `fill`.
pub(crate) fn fill_symmetric(
    result: SymmetricDestination<'_>,
    fill: impl FnOnce(Destination<'_>, bool) -> Result<Report>,
) -> Result<Report> {
    match result {
        SymmetricDestination::Matrix(result) => {
            // While it is half written it is not symmetric, so it is moved out of sight.
            let mut matrix = std::mem::take(result).into_matrix();
            let report = fill(Destination::Matrix(&mut matrix), true)?;
            *result = SymmetricMatrix::trusted(matrix);
            Ok(report)
        }
        SymmetricDestination::Block(block) => fill(Destination::Block(block), true),
        SymmetricDestination::Triangle(result) => fill(result, false),
    }
}

/// The path of a product; with its operands scaled, where the choice had to look at them.
fn choose<'a>(
    ctx: &Context,
    problem: &'a ProductProblem<'a>,
    workspace: &mut Workspace,
) -> Result<(ProductMethod, Option<ScaledProduct<'a>>)> {
    let size = problem.size();
    let summed = problem.is_entrywise() && problem.range.is_none();
    if summed && entrywise::takes_all(&size, problem.precision_bits) {
        // Every entry is summed term by term, and no product formed.
        let bits = Bits { working: 0, ..problem.scaled_bits() };
        let entrywise = Entrywise { range_bits: 0, singles: Singles::All };
        return Ok((ProductMethod::Direct, Some(ScaledProduct { problem, bits, entrywise })));
    }
    let path = choose_path(ctx, &size, problem.expected_operand_bits());
    if ctx.memory_bytes().is_none() || size.is_empty() {
        return Ok((path, None));
    }
    // A small product takes the other path where a limit refuses only this one.
    let Some(other) = other_path(path, ctx, &size, &problem.scaled_bits()) else { return Ok((path, None)) };
    let scaled = scale_operands(ctx, 1, problem, workspace)?;
    let (request, beside) = (scaled.request(), scaled.beside(ctx));
    let fits = |path| plan_alone(path, &beside, &request).is_ok();
    Ok((if !fits(path) && fits(other) { other } else { path }, Some(scaled)))
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
    match plan_devices(ctx, &PlanRequest::of(problem, bits), &DeviceRequest::of(problem, bits)) {
        Ok((_, plan)) => Ok(ctx.admit(plan.planned_bytes).is_ok()),
        Err(Error::DeviceLimit { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A call whose path is chosen.
struct ProductCall<'a> {
    ctx: &'a Context,
    problem: &'a ProductProblem<'a>,
    workspace: &'a mut Workspace,
    start: Instant,
    /// The operands scaled, where the choice of the path had to look at them.
    scaled: Option<ScaledProduct<'a>>,
}

impl<'a> ProductCall<'a> {
    /// Scales the operands, where they are not scaled yet.
    fn scale(&mut self, workers: usize) -> Result<ScaledProduct<'a>> {
        match self.scaled.take() {
            Some(scaled) => Ok(scaled),
            None => scale_operands(self.ctx, workers, self.problem, self.workspace),
        }
    }

    fn direct(mut self, result: Destination<'_>) -> Result<Report> {
        let scaled = self.scale(1)?;
        let ProductCall { ctx, problem, workspace, start, .. } = self;
        let (bits, ctx, end) = (scaled.bits, &scaled.beside(ctx), Instant::now());
        let summed = matches!(scaled.entrywise.singles, Singles::All);
        let plan = if summed { plan_entries } else { plan_direct }(ctx, &scaled.request())?;
        workspace.trim(ctx.memory_beside_tables(), &plan.needs());
        let mut result = result.prepare(problem.result_shape(), bits.result)?;
        if !summed {
            direct::run(ctx, problem, &bits, plan.bytes.operand_window, workspace, result.reborrow())?;
        }
        scaled.complete(ctx, 1, &mut result)?;
        let (scale, product) = ((end - start).as_secs_f64(), end.elapsed().as_secs_f64());
        let mut report = Report::new(&plan, problem.precision_bits, Phases { scale, product, ..Phases::default() });
        report.seconds = scale + product;
        Ok(scaled.report(report))
    }

    /// Runs the product as the only rank of a team, in the windows of the workspace.
    fn planes(mut self, workers: usize, result: Destination<'_>) -> Result<Report> {
        let mut clock = PhaseClock::alone(self.start);
        let scaled = clock.time(RankPhase::Scale, || self.scale(workers))?;
        let ProductCall { ctx, problem, workspace, .. } = self;
        let ctx = &scaled.beside(ctx);
        let PlannedRun { run, plan } = plan_planes(ctx, &scaled.request(), workers, workspace.bytes())?;
        workspace.trim(ctx.memory(), &plan.needs());
        let mut result = result.prepare(problem.result_shape(), scaled.bits.result)?;
        workspace.reserve_workers(plan.threads);
        let Workspace { operands, products, workers: spaces, left_shifts, right_shifts, .. } = workspace;
        let (left, right) = problem.operands(left_shifts, right_shifts);
        let run = ProductRun {
            site: Site::one_process(ctx),
            shape: &NodeShape::alone(problem.contracted(), plan.threads),
            plan: &run,
            left,
            right,
            source: None,
            uplo: if problem.half { Uplo::Lower } else { problem.uplo },
            half: problem.size().half,
            bits: scaled.bits,
            epilogue: problem.epilogue,
            owners: None,
            fault: problem.hooks.fault,
        };
        let memory = RunMemory { operands, products, workers: &mut spaces[..plan.threads] };
        let recovery = run.run_alone(memory, &mut clock, &mut ResultTarget::Whole(result.reborrow()))?;
        scaled.complete(ctx, workers, &mut result)?;
        let mut report = Report::new(&plan, problem.precision_bits, Phases::new(&clock, &recovery));
        report.checked = ctx.self_check() || ctx.freivalds();
        Ok(scaled.report(report))
    }

    fn devices(mut self, result: Destination<'_>) -> Result<Report> {
        let (start, ctx, workers) = (Instant::now(), self.ctx, self.ctx.threads());
        let scaled = ctx.install(|| self.scale(workers))?;
        let ProductCall { problem, workspace, .. } = self;
        let (bits, ctx) = (scaled.bits, &scaled.beside(ctx));
        let scale = start.elapsed().as_secs_f64();
        let request = DeviceRequest::of(problem, bits);
        let (devices, Plan { planned_bytes, bytes, .. }) = plan_devices(ctx, &scaled.request(), &request)?;
        ctx.admit(planned_bytes)?;
        workspace.trim(ctx.memory(), &WorkspaceNeeds { planned_bytes, ..WorkspaceNeeds::default() });
        let start = Instant::now();
        let mut result = result.prepare(problem.result_shape(), bits.result)?;
        let (left, right) = problem.operands(&workspace.left_shifts, &workspace.right_shifts);
        let epilogue = problem.epilogue;
        let run = DeviceRun { site: Site::one_process(ctx), left, right, epilogue, request, owners: None };
        let target = ResultTarget::Whole(result.reborrow());
        let (ran, devices) = run.run(devices, target, &mut PhaseClock::alone(start))?;
        scaled.complete(ctx, workers, &mut result)?;
        // Where a device was short of memory, another plan ran than the first one.
        let plan = Plan::on_devices(problem.operation, &problem.size(), &bits, &ran, workers, bytes);
        let phases = Phases { scale, product: start.elapsed().as_secs_f64(), ..Phases::default() };
        let report = Report::new(&plan, problem.precision_bits, phases);
        let checked = ctx.self_check() || ctx.freivalds();
        Ok(scaled.report(Report { checked, devices, ..report }))
    }
}

/// A product whose operands are scaled: their shifts are in the workspace.
pub(super) struct ScaledProduct<'a> {
    problem: &'a ProductProblem<'a>,
    bits: Bits,
    entrywise: Entrywise,
}

impl ScaledProduct<'_> {
    /// The bits for the range of exponents, where no entry is summed by itself.
    pub fn common_range(&self) -> Option<u32> {
        matches!(self.entrywise.singles, Singles::None).then_some(self.entrywise.range_bits)
    }

    fn request(&self) -> PlanRequest {
        PlanRequest::of(self.problem, self.bits)
    }

    /// Bytes of the entries that are summed singly.
    fn single_bytes(&self) -> u64 {
        self.entrywise.singles.bytes(&self.problem.size(), self.problem.precision_bits)
    }

    /// The context of the product, which counts the memory of single entries.
    fn beside<'c>(&self, ctx: &'c Context) -> Cow<'c, Context> {
        match self.single_bytes() {
            0 => Cow::Borrowed(ctx),
            bytes => Cow::Owned(ctx.holding(bytes)),
        }
    }

    /// The steps that remain when the product lies in `result`.
    fn complete(&self, ctx: &Context, workers: usize, result: &mut MatrixViewMut<'_>) -> Result<()> {
        let (problem, singles) = (self.problem, &self.entrywise.singles);
        if !matches!(singles, Singles::None) {
            let (pass, terms) = (NormPass::one_process(ctx, workers), Terms::of(problem, &[], &[]));
            singles.finish(&pass, &terms, &problem.epilogue, &mut ResultTarget::Whole(result.reborrow()))?;
        }
        problem.complete(ctx, result.reborrow());
        Ok(())
    }

    /// The report, with what the accuracy took.
    fn report(&self, report: Report) -> Report {
        let (problem, Entrywise { range_bits, singles }) = (self.problem, &self.entrywise);
        let chosen = problem.is_entrywise() && !matches!(singles, Singles::All);
        let least_bytes = if chosen { self.request().choice_bytes() } else { 0 };
        let planned_bytes = (report.planned_bytes + self.single_bytes()).max(least_bytes);
        let (accuracy, single_entries) = (problem.accuracy, singles.count(&problem.size()));
        Report { accuracy, range_bits: *range_bits, single_entries, planned_bytes, ..report }
    }
}

/// Fills the workspace with the scale shifts of all columns; the problem is not one of sums alone.
pub(super) fn scale_operands<'a>(
    ctx: &Context,
    workers: usize,
    problem: &'a ProductProblem<'a>,
    workspace: &mut Workspace,
) -> Result<ScaledProduct<'a>> {
    let by_norms = |bits| ScaledProduct { problem, bits, entrywise: Entrywise::default() };
    if problem.size().is_empty() {
        return match problem.exact_integers {
            true => integer_bits(ctx, problem, 0, 0).map(by_norms),
            false => Ok(by_norms(problem.scaled_bits())),
        };
    }
    let pass = NormPass::one_process(ctx, workers);
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
            let terms = Terms::of(problem, &workspace.left_shifts, &workspace.right_shifts);
            let entrywise = entrywise::choose(&pass, &terms, problem.range)?;
            ScaledProduct { problem, bits: problem.scaled_bits().with_range(entrywise.range_bits), entrywise }
        }
        false => by_norms(problem.scaled_bits()),
    };
    for exponent in workspace.left_shifts.iter_mut().chain(&mut workspace.right_shifts) {
        *exponent = scaled.bits.shift(*exponent);
    }
    Ok(scaled)
}

/// Makes room for choosing the bits of entrywise accuracy.
///
/// # Errors
/// [`Error::MemoryLimit`]: the refusal of a choice, or that of the product after it where that takes more, with the
/// bits of entries of one size.
fn make_room_to_choose(ctx: &Context, problem: &ProductProblem<'_>, workspace: &mut Workspace) -> Result<()> {
    let request = PlanRequest::of(problem, problem.scaled_bits());
    let planned_bytes = request.choice_bytes();
    if let Err(refusal) = ctx.admit(planned_bytes) {
        let even = entrywise::possible_range_bits(&problem.size(), problem.precision_bits, None);
        larger_refusal(Err(refusal), plan_widened(ctx, &request, even))?;
    }
    workspace.trim(ctx.memory_beside_tables(), &WorkspaceNeeds { planned_bytes, ..WorkspaceNeeds::default() });
    Ok(())
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
        let pass = NormPass::one_process(ctx, workers);
        operand_exponents(&pass, problem, &problem.left, left_shifts)?;
        operand_exponents(&pass, problem, &problem.right_operand(), right_shifts)?;
        entrywise::choose_columns(&pass, &Terms::of(problem, left_shifts, right_shifts), least_bits)
    };
    match choose_path(ctx, &problem.size(), problem.expected_operand_bits()) {
        ProductMethod::Direct | ProductMethod::Planes(1) => choose(1),
        ProductMethod::Planes(workers) => ctx.install(|| choose(workers)),
    }
}

fn integer_bits(ctx: &Context, problem: &ProductProblem<'_>, left: i64, right: i64) -> Result<Bits> {
    let bits = IntegerBits { left, right, addend: problem.epilogue.addend_bits() };
    Bits::integers(ctx.maximum_modulus_bits(), bits, &problem.epilogue, problem.precision_bits)
}

/// The norm exponents of one operand into `shifts`; returns the largest, at least 0.
fn operand_exponents(
    pass: &NormPass<'_>,
    problem: &ProductProblem<'_>,
    operand: &ProductOperand<'_>,
    shifts: &mut Vec<i64>,
) -> Result<i64> {
    if problem.exact_integers {
        check_operand_integers(pass.workers, operand)?;
    }
    shifts.clear();
    shifts.resize(operand.view.cols(), 0);
    norm_exponents(pass, &[operand.view], operand.transposed, shifts)?;
    Ok(shifts.iter().copied().max().unwrap_or(0).max(0))
}
