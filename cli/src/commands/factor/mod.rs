//! `sunzi cholesky`, `sunzi solve` and `sunzi inverse`: a symmetric matrix in, its factor or what follows from it out.
//!
//! Nothing is written unless all went well. Does not know: how a matrix is factored.

mod compute;
mod symmetric;
pub(super) mod verify;

use crate::args::{Cholesky, Factor, Inverse, Output, RankChoices, Solve};
use crate::session::{Session, check_output, header, read_within, stated_precision};
use crate::signals::{Mode, in_mode};
use compute::{Outcome, Refinement, compute};
use serde::Serialize;
use std::path::PathBuf;
use sunzi::io::{ReadOptions, Symmetry};
use sunzi::{CholeskyReport, Error, Matrix, Result, SymmetricMatrix, Uplo};
use sunzi_lab::memory::peak_resident_bytes;
use sunzi_lab::session::Session as _;
use sunzi_lab::trace::Trace;
use sunzi_lab::units::describe;
use sunzi_lab::units::{format_bytes, format_seconds};
use symmetric::read_symmetric;

/// What is made of a factor.
pub enum Task {
    /// The factor itself.
    Cholesky,
    /// The solution of `A X = B`.
    Solve {
        /// The file of B.
        b: PathBuf,
        /// Precision of the factor, where the solution is refined from it.
        refine_from_bits: Option<u32>,
    },
    /// The inverse.
    Inverse,
}

/// A factorisation to compute, and what follows from it.
pub struct Factoring {
    /// What is factored and how.
    pub factor: Factor,
    /// What is made of it.
    pub task: Task,
    /// Where the result goes.
    pub output: Output,
}

impl From<Cholesky> for Factoring {
    fn from(Cholesky { factor, output }: Cholesky) -> Factoring {
        Factoring { factor, task: Task::Cholesky, output }
    }
}

impl From<Solve> for Factoring {
    fn from(Solve { factor, b, refine_from, output }: Solve) -> Factoring {
        Factoring { factor, task: Task::Solve { b, refine_from_bits: refine_from }, output }
    }
}

impl From<Inverse> for Factoring {
    fn from(Inverse { factor, output }: Inverse) -> Factoring {
        Factoring { factor, task: Task::Inverse, output }
    }
}

/// Digits of the logarithm that are printed; the report has all.
const SHOWN_DIGITS: usize = 30;

/// The report.
#[derive(Serialize)]
struct FactorReport<'a> {
    operation: &'static str,
    /// Rows of the result.
    rows: usize,
    cols: usize,
    precision_bits: u32,
    /// The triangle that was read.
    triangle: &'static str,
    kernel: &'static str,
    threads: usize,
    /// Without files.
    seconds: f64,
    /// Of a factorisation at the full precision: tiles, primes, times of its tasks, planned memory.
    factorisation: Option<&'a CholeskyReport>,
    refinement: Option<Refinement>,
    /// `log det A` in decimals, where it was asked for.
    log_det: Option<String>,
    /// Estimate of the condition in the 1-norm, where it was asked for.
    condition: Option<String>,
    input_seconds: f64,
    output_seconds: f64,
    /// The most memory that the process occupied, files and result included.
    peak_resident_bytes: u64,
}

/// What was read.
pub(super) struct Inputs {
    pub a: SymmetricMatrix,
    pub b: Option<Matrix>,
    pub precision_bits: u32,
}

pub fn run(session: &mut Session, config: &Factoring) -> Result<()> {
    if config.factor.ranks != RankChoices::default() {
        let message = "--grid, --broadcast, --policy, --termination, --remote-tiles and --plot are for a factor or a \
                       solution on several ranks: start them with mpirun, without --condition, --refine-from and, for \
                       a solution, --log-det";
        return Err(Error::InvalidArgument(message.into()));
    }
    check_output(&config.output)?;
    let mut trace = Trace::begin(config.factor.trace.as_deref())?;
    let (inputs, input_seconds) = trace.span("read", || read_inputs(session, config))?;
    let outcome = in_mode(Mode::Computing, || compute(session, config, &inputs, &mut trace))?;
    drop(inputs);
    let result = &outcome.result;
    let ((), output_seconds) = trace.span("write", || match (&config.task, config.factor.triangle.uplo()) {
        (Task::Cholesky, Some(Uplo::Upper)) => session.write(&config.output, result.transposed(), Symmetry::General),
        (Task::Inverse, _) => session.write(&config.output, result, Symmetry::SymmetricLower),
        _ => session.write(&config.output, result, Symmetry::General),
    })?;
    trace.finish(session)?;
    session.finish_report(&FactorReport {
        operation: match config.task {
            Task::Cholesky => "cholesky",
            Task::Solve { .. } => "solve",
            Task::Inverse => "inverse",
        },
        rows: result.rows(),
        cols: result.cols(),
        precision_bits: result.precision_bits(),
        triangle: if config.factor.triangle.uplo() == Some(Uplo::Upper) { "upper" } else { "lower" },
        kernel: outcome.kernel,
        threads: outcome.threads,
        seconds: outcome.seconds,
        factorisation: outcome.factorisation.as_ref(),
        refinement: outcome.refinement,
        log_det: outcome.log_det.as_ref().map(|value| format!("{value:e}")),
        condition: outcome.condition.as_ref().map(|value| format!("{value:.6e}")),
        input_seconds,
        output_seconds,
        peak_resident_bytes: peak_resident_bytes(),
    })?;
    session.say(&lines(config, &outcome, input_seconds + output_seconds))
}

fn lines(config: &Factoring, outcome: &Outcome, file_seconds: f64) -> String {
    let tiles = outcome.factorisation.as_ref().map_or(String::new(), |report| {
        let CholeskyReport { primes, tile_rows, planned_bytes, .. } = report;
        format!(", {primes} primes, tiles of {tile_rows} rows, {} planned", format_bytes(*planned_bytes))
    });
    let mut lines = vec![format!(
        "{}: {} ({}, {} thread{}{tiles}) in {} (files {})",
        config.output.path.display(),
        describe(&outcome.result),
        outcome.kernel,
        outcome.threads,
        if outcome.threads == 1 { "" } else { "s" },
        format_seconds(outcome.seconds),
        format_seconds(file_seconds),
    )];
    if let Some(Refinement { factor_bits, iterations, backward_error_log2 }) = &outcome.refinement {
        let reached = backward_error_log2.map_or("0".into(), |exponent| format!("at most 2^{exponent}"));
        lines.push(format!(
            "refined from a factor of {factor_bits} bits in {iterations} iterations: backward error {reached}"
        ));
    }
    if let Some(value) = &outcome.log_det {
        lines.push(format!("log det A = {value:.SHOWN_DIGITS$e}"));
    }
    if let Some(value) = &outcome.condition {
        lines.push(format!("condition of A in the 1-norm: about {value:.3e}"));
    }
    lines.join("\n")
}

pub(super) fn read_inputs(session: &Session, config: &Factoring) -> Result<Inputs> {
    let choices = &config.factor;
    let precision_bits = stated_precision(choices.precision.bits, &choices.a, header(&choices.a)?.as_ref())?;
    let options =
        || ReadOptions { input_precision_bits: choices.precision.input_bits, ..ReadOptions::new(precision_bits) };
    let a = read_symmetric(session, &choices.engine, &choices.a, choices.triangle.uplo(), options())?;
    let b = match &config.task {
        Task::Solve { b, .. } => Some(read_within(session, &choices.engine, b, options())?.matrix),
        _ => None,
    };
    match &b {
        // Said here, before the work of a factorisation.
        Some(b) if b.rows() != a.rows() => Err(Error::ShapeMismatch {
            operation: "solve",
            left_rows: a.rows(),
            left_cols: a.cols(),
            right_rows: b.rows(),
            right_cols: b.cols(),
        }),
        _ => Ok(Inputs { a, b, precision_bits }),
    }
}
