//! A factorisation in this process, and the results made from the factor. Each step is a span of the trace.

use super::digits::Answer;
use super::singular::warn_of_singular;
use super::steps::Steps;
use super::{ComputedFactor, FactorInputs, Factoring, Figures, ReadAt, Refinement, Task, needs, read, reader};
use crate::session::Session;
use crate::signals::{Mode, in_mode};
use crate::triangles::FACTORED;
use std::time::Instant;
use sunzi::plans::plan_solve;
use sunzi::{
    CholeskyOptions, Context, Error, Matrix, Outcome, RefineOptions, Result, Symmetric, SymmetricMatrix, cholesky_with,
    solve_refined_with,
};
use sunzi_session::trace::Trace;

/// Whether the matrix has a factor at `bits` bits.
///
/// # Errors
/// The errors of reading, and of the factorisation.
pub fn factors_at(session: &Session, config: &Factoring, bits: u32) -> Result<()> {
    let reader = reader(session, config, ReadAt { precision_bits: Some(bits), ..ReadAt::default() })?;
    let a = reader.symmetric(&config.factor.a, config.factor.triangle.named(), &FACTORED)?;
    let engine = Steps::new(session, &config.factor.engine, reader.held_bytes())?;
    let options = CholeskyOptions::new().tile_rows(config.factor.tile_rows).accuracy(config.factor.accuracy);
    in_mode(Mode::Computing, || engine.run(|ctx| cholesky_with(ctx, &a, bits, &options))).map(drop)
}

/// Reads and computes the task at one precision. If digits are proven or requested, and the rounding of decimals
/// reduces their number, decimals are read once more with as many bits as needed, provided that the memory limit allows
/// it.
///
/// # Errors
/// The errors of reading, and of the operations.
pub fn at_precision(session: &Session, config: &Factoring, at: ReadAt, trace: &mut Trace) -> Result<ComputedFactor> {
    let computed = at_bits(session, config, at, trace)?;
    let Some(decimal_bits) = computed.digits.missing_decimal_bits else { return Ok(computed) };
    let mut last = |decimal_bits| {
        let again = at_bits(session, config, ReadAt { decimal_bits, is_last: true, ..at }, trace)?;
        Ok(ComputedFactor { decimal_bits, ..again })
    };
    match last(decimal_bits) {
        Err(Error::MemoryLimit { .. }) => last(at.decimal_bits),
        outcome => outcome,
    }
}

fn at_bits(session: &Session, config: &Factoring, at: ReadAt, trace: &mut Trace) -> Result<ComputedFactor> {
    needs::admit(session, config, at)?;
    let (inputs, input_seconds) = trace.span("read", || read(session, config, at, config.matrix_use()))?;
    let engine = Steps::new(session, &config.factor.engine, inputs.bytes)?;
    let start = Instant::now();
    let computed = in_mode(Mode::Computing, || carry_out(&engine, config, &inputs, trace))?;
    let figures = Figures { seconds: start.elapsed().as_secs_f64(), input_seconds, ..computed.figures };
    let is_last = at.precision_bits.is_none() && computed.digits.missing_decimal_bits.is_none();
    let singular = if is_last { warn_of_singular(session, config, &inputs)? } else { None };
    Ok(ComputedFactor { figures, singular, ..computed })
}

fn carry_out(
    steps: &Steps<'_>,
    config: &Factoring,
    inputs: &FactorInputs,
    trace: &mut Trace,
) -> Result<ComputedFactor> {
    let FactorInputs { a, b, precision_bits: bits, .. } = inputs;
    if let (Task::Solve { refine_from_bits: Some(factor_bits), .. }, Some(b)) = (&config.task, b) {
        return steps.run(|ctx| refine(ctx, a, b, *bits, *factor_bits, trace));
    }
    let options = CholeskyOptions::new().tile_rows(config.factor.tile_rows).accuracy(config.factor.accuracy);
    let factored = steps.run(|ctx| {
        // Refuses a limit before the work of a factorisation.
        let plan = b.as_ref().map(|b| plan_solve(ctx, (b.rows(), b.cols()), *bits, &options)).transpose()?;
        let (outcome, _) = trace.span("factor", || cholesky_with(ctx, a, *bits, &options))?;
        trace.add_tasks(&outcome.report.spans);
        Ok((outcome, plan))
    });
    let (Outcome { result: factor, report }, plan) = factored?;
    steps.hold(factor.factor());
    let wants_log_det = config.wants_log_det();
    let log_det = wants_log_det.then(|| factor.log_det());
    let condition = || steps.run(|ctx| factor.condition_estimate(ctx, &Symmetric::from(a).one_norm()?));
    let condition = match config.factor.condition {
        true => Some(trace.span("condition", condition)?.0),
        false => None,
    };
    let (matrix, later_bytes) = match (&config.task, b) {
        (Task::Solve { .. }, Some(b)) => {
            let mut x = Matrix::empty();
            trace.span("solve", || steps.run(|ctx| factor.solve_into(ctx, b, *bits, &mut x)))?;
            (Some(x), plan.map_or(0, |plan| plan.planned_bytes))
        }
        (Task::Inverse, _) => {
            let mut inverse = SymmetricMatrix::default();
            let invert = || steps.run(|ctx| factor.inverse_into(ctx, *bits, &mut inverse));
            let made = trace.span("inverse", invert)?.0;
            (Some(inverse.into_matrix()), made.planned_bytes.saturating_add(factor.factor().bytes()))
        }
        _ => (None, 0),
    };
    if let Some(matrix) = &matrix {
        steps.hold(matrix);
    }
    let answer = Answer { factor: &factor, inputs, matrix: matrix.as_ref(), log_det: wants_log_det };
    let digits = answer.digits(steps, config, trace)?;
    let result = matrix.unwrap_or_else(|| factor.into_factor());
    let figures = Figures {
        kernel: report.kernel,
        threads: report.threads,
        planned_bytes: Some(report.planned_bytes.max(later_bytes)),
        factorisation: Some(report),
        ..Figures::default()
    };
    Ok(ComputedFactor { result: Some(result), log_det, condition, digits, figures, ..ComputedFactor::default() })
}

/// The solution by a factor of few bits.
fn refine(
    ctx: &Context,
    a: &SymmetricMatrix,
    b: &Matrix,
    bits: u32,
    factor_bits: u32,
    trace: &mut Trace,
) -> Result<ComputedFactor> {
    let options = RefineOptions::new().factor_bits(factor_bits);
    let (refined, _) = trace.span("refine", || solve_refined_with(ctx, a, b, bits, &options))?;
    let log2 = refined.report.backward_error_log2;
    let refinement = Refinement {
        factor_bits,
        iterations: refined.report.iterations,
        backward_error_log2: (log2 != i64::MIN).then_some(log2),
    };
    let (kernel, threads) = (refined.report.kernel, ctx.threads());
    let figures = Figures { kernel, threads, refinement: Some(refinement), ..Figures::default() };
    Ok(ComputedFactor { result: Some(refined.result), figures, ..ComputedFactor::default() })
}
