//! The steps between reading and writing: the factor, and what is made of it. Each is a span of the trace.

use super::{Factoring, Inputs, Task};
use crate::session::Session;
use rug::Float;
use serde::Serialize;
use std::time::Instant;
use sunzi::{
    Cholesky, CholeskyOptions, CholeskyReport, Context, Matrix, RefineOptions, Result, Symmetric, SymmetricMatrix,
    cholesky_with, solve_refined,
};
use sunzi_lab::engine::limited;
use sunzi_lab::trace::Trace;

/// How a refined solution was reached.
#[derive(Clone, Copy, Serialize)]
pub struct Refinement {
    /// Precision of the factor.
    pub factor_bits: u32,
    /// Corrections made.
    pub iterations: usize,
    /// An upper bound of `log2` of the componentwise backward error; `None` for an error of 0.
    pub backward_error_log2: Option<i64>,
}

/// What was computed.
pub struct Outcome {
    /// The matrix that is written.
    pub result: Matrix,
    pub log_det: Option<Float>,
    pub condition: Option<Float>,
    pub refinement: Option<Refinement>,
    /// How the factor was made, where it was made at the full precision.
    pub factorisation: Option<CholeskyReport>,
    pub kernel: &'static str,
    pub threads: usize,
    pub seconds: f64,
}

/// Computes the task within the memory limit.
///
/// # Errors
/// Those of the operations.
pub fn compute(session: &Session, config: &Factoring, inputs: &Inputs, trace: &mut Trace) -> Result<Outcome> {
    let (builder, restate) = limited(session.context(&config.factor.engine)?, config.factor.engine.budget());
    let ctx = builder.build()?;
    let start = Instant::now();
    let mut outcome = carry_out(&ctx, config, inputs, trace).map_err(restate)?;
    outcome.seconds = start.elapsed().as_secs_f64();
    Ok(outcome)
}

fn carry_out(ctx: &Context, config: &Factoring, inputs: &Inputs, trace: &mut Trace) -> Result<Outcome> {
    let bits = inputs.precision_bits;
    if let (Task::Solve { refine_from_bits: Some(factor_bits), .. }, Some(b)) = (&config.task, &inputs.b) {
        return refine(ctx, (&inputs.a, b, bits), *factor_bits, trace);
    }
    let options = CholeskyOptions { tile_rows: config.factor.tile_rows };
    let (factor, _) = trace.span("factor", || cholesky_with(ctx, &inputs.a, bits, &options))?;
    trace.add_tasks(&factor.report().spans);
    let log_det = config.factor.log_det.then(|| factor.log_det());
    let condition = match config.factor.condition {
        true => Some(trace.span("condition", || condition(ctx, &factor, inputs))?.0),
        false => None,
    };
    let result = match (&config.task, &inputs.b) {
        (Task::Solve { .. }, Some(b)) => Some(trace.span("solve", || factor.solve(ctx, b, bits))?.0),
        (Task::Inverse, _) => Some(trace.span("inverse", || factor.inverse(ctx, bits))?.0.into_matrix()),
        _ => None,
    };
    let (lower, report) = factor.into_parts();
    let factorisation = Some(report);
    Ok(Outcome { log_det, condition, factorisation, ..Outcome::new(ctx, result.unwrap_or(lower)) })
}

/// The solution by a factor of few bits.
fn refine(
    ctx: &Context,
    (a, b, bits): (&SymmetricMatrix, &Matrix, u32),
    factor_bits: u32,
    trace: &mut Trace,
) -> Result<Outcome> {
    let options = RefineOptions { factor_bits, ..RefineOptions::default() };
    let (refined, _) = trace.span("refine", || solve_refined(ctx, a, b, bits, &options))?;
    let log2 = refined.backward_error_log2;
    let refinement = Refinement {
        factor_bits,
        iterations: refined.iterations,
        backward_error_log2: (log2 != i64::MIN).then_some(log2),
    };
    Ok(Outcome { refinement: Some(refinement), ..Outcome::new(ctx, refined.solution) })
}

fn condition(ctx: &Context, factor: &Cholesky, inputs: &Inputs) -> Result<Float> {
    factor.condition_estimate(ctx, &Symmetric::from(&inputs.a).one_norm()?)
}

impl Outcome {
    fn new(ctx: &Context, result: Matrix) -> Outcome {
        Outcome {
            result,
            log_det: None,
            condition: None,
            refinement: None,
            factorisation: None,
            kernel: ctx.kernel().name(),
            threads: ctx.threads(),
            seconds: 0.0,
        }
    }
}
