//! A factorisation in this process, and what is made of the factor. Each step is a span of the trace.

use super::{Computed, Factoring, Figures, Inputs, Refinement, Task, read};
use crate::session::Session;
use crate::signals::{Mode, in_mode};
use std::time::Instant;
use sunzi::{
    CholeskyOptions, Context, Matrix, Outcome, RefineOptions, Result, Symmetric, SymmetricMatrix, cholesky_with,
    plan_solve, solve_refined_with,
};
use sunzi_lab::engine::limited;
use sunzi_lab::trace::Trace;

/// Reads and computes the task within the memory limit.
///
/// # Errors
/// Those of reading, and of the operations.
pub fn compute(session: &Session, config: &Factoring, trace: &mut Trace) -> Result<Computed> {
    let (inputs, input_seconds) = trace.span("read", || read(session, config))?;
    let (builder, restate) = limited(session.context(&config.factor.engine)?, config.factor.engine.budget());
    let ctx = builder.build()?;
    let start = Instant::now();
    let computed = in_mode(Mode::Computing, || carry_out(&ctx, config, &inputs, trace).map_err(restate))?;
    let (kernel, threads, seconds) = (ctx.kernel().name(), ctx.threads(), start.elapsed().as_secs_f64());
    let figures = Figures { kernel, threads, seconds, input_seconds, ..computed.figures };
    Ok(Computed { figures, ..computed })
}

fn carry_out(ctx: &Context, config: &Factoring, inputs: &Inputs, trace: &mut Trace) -> Result<Computed> {
    let bits = inputs.precision_bits;
    if let (Task::Solve { refine_from_bits: Some(factor_bits), .. }, Some(b)) = (&config.task, &inputs.b) {
        return refine(ctx, (&inputs.a, b, bits), *factor_bits, trace);
    }
    let options = CholeskyOptions::new().tile_rows(config.factor.tile_rows);
    let (outcome, _) = trace.span("factor", || cholesky_with(ctx, &inputs.a, bits, &options))?;
    let Outcome { result: factor, report } = outcome;
    trace.add_tasks(&report.spans);
    let log_det = config.factor.log_det.then(|| factor.log_det());
    let condition = || factor.condition_estimate(ctx, &Symmetric::from(&inputs.a).one_norm()?);
    let condition = match config.factor.condition {
        true => Some(trace.span("condition", condition)?.0),
        false => None,
    };
    let (made, planned_bytes) = match (&config.task, &inputs.b) {
        (Task::Solve { .. }, Some(b)) => {
            let plan = plan_solve(ctx, b.rows(), b.cols(), bits)?;
            (Some(trace.span("solve", || factor.solve(ctx, b, bits))?.0), Some(plan.planned_bytes))
        }
        (Task::Inverse, _) => (Some(trace.span("inverse", || factor.inverse(ctx, bits))?.0.into_matrix()), None),
        _ => (None, Some(report.planned_bytes)),
    };
    let figures = Figures { planned_bytes, factorisation: Some(report), ..Figures::default() };
    Ok(Computed {
        result: Some(made.unwrap_or(factor.into_factor())),
        log_det,
        condition,
        figures,
        ..Computed::default()
    })
}

/// The solution by a factor of few bits.
fn refine(
    ctx: &Context,
    (a, b, bits): (&SymmetricMatrix, &Matrix, u32),
    factor_bits: u32,
    trace: &mut Trace,
) -> Result<Computed> {
    let options = RefineOptions::new().factor_bits(factor_bits);
    let (refined, _) = trace.span("refine", || solve_refined_with(ctx, a, b, bits, &options))?;
    let log2 = refined.report.backward_error_log2;
    let refinement = Refinement {
        factor_bits,
        iterations: refined.report.iterations,
        backward_error_log2: (log2 != i64::MIN).then_some(log2),
    };
    let figures = Figures { refinement: Some(refinement), ..Figures::default() };
    Ok(Computed { result: Some(refined.result), figures, ..Computed::default() })
}
