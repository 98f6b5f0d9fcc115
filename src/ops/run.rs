//! Runs a product: norms, plan, the direct path or the planes, the result and its report.

use crate::context::{Context, Workspace, WorkspaceNeeds};
use crate::error::Result;
use crate::matrix::Matrix;
use crate::ops::device::DeviceRun;
use crate::ops::direct::{self, Road};
use crate::ops::plan::{Plan, PlanRequest, plan_planes};
use crate::ops::planes::PlaneRun;
use crate::ops::problem::{Bits, Operand, Problem, Target, fits};
use crate::ops::report::{Phases, Report};
use crate::ops::scale;
use std::time::Instant;

/// Computes `problem`; the matrix is returned where the target is a new one.
///
/// # Errors
/// Those of [`crate::syrk_with`].
pub(crate) fn run(ctx: &Context, problem: &Problem<'_>, target: Target<'_>) -> Result<(Option<Matrix>, Report)> {
    let start = Instant::now();
    problem.check(ctx.kernel())?;
    let mut workspace = ctx.workspace();
    let (result, mut report) = match direct::choose_road(ctx, &problem.size(), problem.expected_operand_bits()) {
        Road::Direct => run_direct(ctx, problem, target, &mut workspace)?,
        Road::Planes(_) if ctx.devices().serve(problem.inner.working_bits) => {
            run_devices(ctx, problem, target, &mut workspace)?
        }
        Road::Planes(1) => run_planes((ctx, 1), problem, target, &mut workspace)?,
        Road::Planes(workers) => ctx.install(|| run_planes((ctx, workers), problem, target, &mut workspace))?,
    };
    report.seconds = start.elapsed().as_secs_f64();
    Ok((result, report))
}

fn run_direct(
    ctx: &Context,
    problem: &Problem<'_>,
    target: Target<'_>,
    workspace: &mut Workspace,
) -> Result<(Option<Matrix>, Report)> {
    let start = Instant::now();
    let bits = scale_operands(ctx, 1, problem, workspace)?;
    let scaled = Instant::now();
    let plan = direct::plan(ctx, &request(problem, bits))?;
    workspace.trim(ctx, &needs(&plan, problem.inner.held_bytes));
    let fill = |result: &mut Matrix| direct::run(ctx, problem, &bits, workspace, result);
    let (made, ()) = with_result(target, problem, bits.result, fill)?;
    let (scale, product) = ((scaled - start).as_secs_f64(), scaled.elapsed().as_secs_f64());
    Ok((made, make_report(&plan, problem, Phases { scale, product, ..Phases::default() })))
}

fn run_planes(
    (ctx, workers): (&Context, usize),
    problem: &Problem<'_>,
    target: Target<'_>,
    workspace: &mut Workspace,
) -> Result<(Option<Matrix>, Report)> {
    let start = Instant::now();
    let bits = scale_operands(ctx, workers, problem, workspace)?;
    let scale = start.elapsed().as_secs_f64();
    let planned = plan_planes(ctx, &request(problem, bits), workers, workspace.bytes())?;
    workspace.trim(ctx, &needs(&planned.plan, problem.inner.held_bytes));
    let fill = |result: &mut Matrix| PlaneRun::new(ctx, problem, &planned, bits).run(workspace, result);
    let (made, phases) = with_result(target, problem, bits.result, fill)?;
    let mut report = make_report(&planned.plan, problem, Phases { scale, ..phases });
    report.checked = ctx.self_check() || ctx.freivalds();
    Ok((made, report))
}

fn run_devices(
    ctx: &Context,
    problem: &Problem<'_>,
    target: Target<'_>,
    workspace: &mut Workspace,
) -> Result<(Option<Matrix>, Report)> {
    let start = Instant::now();
    let workers = ctx.threads();
    let bits = ctx.install(|| scale_operands(ctx, workers, problem, workspace))?;
    let scale = start.elapsed().as_secs_f64();
    let run = DeviceRun { ctx, problem, bits };
    let plan = run.plan()?;
    let (rows, cols) = problem.result_shape();
    let planned_bytes = Matrix::bytes_for(rows, cols, bits.result)
        .saturating_add(plan.pinned_bytes)
        .saturating_add(problem.inner.held_bytes);
    ctx.admit(planned_bytes)?;
    let none = WorkspaceNeeds { operand_bytes: 0, product_bytes: 0, workers: 0, worker_bytes: 0, planned_bytes };
    workspace.trim(ctx, &none);
    let start = Instant::now();
    let fill = |result: &mut Matrix| run.run(plan, workspace, result);
    let (made, (plan, devices)) = with_result(target, problem, bits.result, fill)?;
    let (batches, bands, chunks) = plan.cuts();
    let report = Report {
        operation: problem.operation,
        rows: problem.contracted(),
        cols,
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
    Ok((made, report))
}

fn request(problem: &Problem<'_>, bits: Bits) -> PlanRequest {
    let (rows, cols) = problem.result_shape();
    let result_bytes = Matrix::bytes_for(rows, cols, bits.result);
    let held_bytes = problem.inner.held_bytes;
    PlanRequest {
        operation: problem.operation,
        size: problem.size(),
        bits,
        result_bytes,
        held_bytes,
        cut: problem.cut,
        on_cpu: true,
    }
}

/// Makes or prepares the result matrix and lets `fill` write it.
fn with_result<R>(
    target: Target<'_>,
    problem: &Problem<'_>,
    precision_bits: u32,
    fill: impl FnOnce(&mut Matrix) -> Result<R>,
) -> Result<(Option<Matrix>, R)> {
    let shape = problem.result_shape();
    let make = || Matrix::zeros(shape.0, shape.1, precision_bits);
    match target {
        Target::New => {
            let mut matrix = make()?;
            let filled = fill(&mut matrix)?;
            Ok((Some(matrix), filled))
        }
        Target::Into(matrix) => {
            if !fits(matrix, shape, precision_bits) {
                *matrix = Matrix::empty(); // give the old memory back before asking for the new
                *matrix = make()?;
            }
            Ok((None, fill(matrix)?))
        }
    }
}

/// Fills the workspace with the scale shifts of all columns.
fn scale_operands(ctx: &Context, workers: usize, problem: &Problem<'_>, workspace: &mut Workspace) -> Result<Bits> {
    if problem.size().is_empty() {
        return match problem.exact_integers {
            true => integer_bits(ctx, problem, 0, 0),
            false => Ok(problem.scaled_bits()),
        };
    }
    let left = operand_exponents(workers, problem, &problem.left, &mut workspace.left_shifts)?;
    let right = match &problem.right {
        Some(right) => operand_exponents(workers, problem, right, &mut workspace.right_shifts)?,
        None => {
            workspace.right_shifts.clear();
            left
        }
    };
    let bits = match problem.exact_integers {
        true => integer_bits(ctx, problem, left, right)?,
        false => problem.scaled_bits(),
    };
    for exponent in workspace.left_shifts.iter_mut().chain(&mut workspace.right_shifts) {
        *exponent = if problem.exact_integers { 0 } else { i64::from(bits.working) - *exponent };
    }
    Ok(bits)
}

fn integer_bits(ctx: &Context, problem: &Problem<'_>, left: i64, right: i64) -> Result<Bits> {
    Bits::integers(ctx.kernel(), (left, right), &problem.combination, problem.precision_bits)
}

/// The norm exponents of one operand into `shifts`; returns the largest, at least 0.
fn operand_exponents(
    workers: usize,
    problem: &Problem<'_>,
    operand: &Operand<'_>,
    shifts: &mut Vec<i64>,
) -> Result<i64> {
    if problem.exact_integers {
        scale::check_operand_integers(workers, operand)?;
    }
    shifts.clear();
    shifts.resize(operand.view.cols(), 0);
    scale::norm_exponents(workers, operand, shifts)?;
    Ok(shifts.iter().copied().max().unwrap_or(0).max(0))
}

fn needs(plan: &Plan, held_bytes: u64) -> WorkspaceNeeds {
    let bytes = &plan.bytes;
    WorkspaceNeeds {
        operand_bytes: bytes.operand_window,
        product_bytes: bytes.product_window,
        workers: plan.threads,
        worker_bytes: (bytes.scratch + bytes.integers) / plan.threads.max(1) as u64,
        planned_bytes: plan.planned_bytes.saturating_add(held_bytes),
    }
}

fn make_report(plan: &Plan, problem: &Problem<'_>, phases: Phases) -> Report {
    Report {
        operation: plan.operation,
        rows: plan.contracted,
        cols: plan.cols,
        precision_bits: problem.precision_bits,
        working_bits: plan.working_bits,
        threads: plan.threads,
        kernel: plan.kernel,
        primes: plan.primes,
        batches: plan.batches,
        bands: plan.bands,
        chunks: plan.chunks,
        phases,
        planned_bytes: plan.planned_bytes,
        ..Report::default()
    }
}
