//! `sunzi cholesky`: a symmetric matrix in, its factor out.
//!
//! Nothing is written unless all went well. Does not know: how a matrix is factored.

mod symmetric;
pub(super) mod verify;

use super::trace::Trace;
use super::{Session, budget, check_output, describe, header, limited, stated_precision};
use crate::error::Result;
use crate::front::cli::config::{Factor, Factoring};
use crate::front::cli::memory::peak_resident_bytes;
use crate::front::cli::signals::{Mode, in_mode};
use crate::front::cli::units::format_seconds;
use crate::front::formats::{ReadOptions, Symmetry};
use crate::matrix::{Matrix, Uplo};
use crate::ops::{Cholesky, CholeskyOptions, cholesky_with};
use rug::Float;
use serde::Serialize;
use symmetric::read_symmetric;

/// Digits of numbers that are printed; the report has all.
const SHOWN_DIGITS: usize = 30;

/// The report.
#[derive(Serialize)]
struct FactorReport {
    operation: &'static str,
    rows: usize,
    cols: usize,
    precision_bits: u32,
    /// The triangle that was read.
    triangle: &'static str,
    kernel: &'static str,
    threads: usize,
    /// Of the factorisation alone.
    seconds: f64,
    /// `log det A` in decimals, where it was asked for.
    log_det: Option<String>,
    input_seconds: f64,
    output_seconds: f64,
    /// The most memory that the process occupied, files and result included.
    peak_resident_bytes: u64,
}

/// What was read.
struct Inputs {
    a: Matrix,
    precision_bits: u32,
}

/// What was computed.
struct Outcome {
    factor: Cholesky,
    log_det: Option<Float>,
    kernel: &'static str,
    threads: usize,
    seconds: f64,
}

pub fn run(session: &mut Session, config: &Factoring) -> Result<()> {
    check_output(&config.output)?;
    let mut trace = Trace::begin(config.factor.trace.as_deref())?;
    let (inputs, input_seconds) = trace.span("read", || read_inputs(session, &config.factor))?;
    let outcome = in_mode(Mode::Computing, || compute(session, &config.factor, &inputs, &mut trace))?;
    drop(inputs);
    let uplo = config.factor.uplo.unwrap_or_default();
    let factor = outcome.factor.factor();
    let shape = describe(factor);
    let ((), output_seconds) = trace.span("write", || match uplo {
        Uplo::Lower => session.write(&config.output, factor, Symmetry::General),
        Uplo::Upper => session.write(&config.output, factor.transposed(), Symmetry::General),
    })?;
    trace.finish()?;
    session.finish_report(&FactorReport {
        operation: "cholesky",
        rows: factor.rows(),
        cols: factor.cols(),
        precision_bits: factor.precision_bits(),
        triangle: if uplo == Uplo::Lower { "lower" } else { "upper" },
        kernel: outcome.kernel,
        threads: outcome.threads,
        seconds: outcome.seconds,
        log_det: outcome.log_det.as_ref().map(|value| format!("{value:e}")),
        input_seconds,
        output_seconds,
        peak_resident_bytes: peak_resident_bytes(),
    })?;
    session.say(&format!(
        "{}: {shape} ({}, {} thread{}) in {} (files {})",
        config.output.path.display(),
        outcome.kernel,
        outcome.threads,
        if outcome.threads == 1 { "" } else { "s" },
        format_seconds(outcome.seconds),
        format_seconds(input_seconds + output_seconds),
    ))?;
    match outcome.log_det {
        Some(value) => session.say(&format!("log det A = {value:.SHOWN_DIGITS$e}")),
        None => Ok(()),
    }
}

fn read_inputs(session: &Session, config: &Factor) -> Result<Inputs> {
    let precision_bits = stated_precision(config.precision.bits, &config.a, header(&config.a)?.as_ref())?;
    let options = ReadOptions { input_precision_bits: config.precision.input_bits, ..ReadOptions::new(precision_bits) };
    let a = read_symmetric(session, &config.engine, &config.a, config.uplo, options)?;
    Ok(Inputs { a, precision_bits })
}

fn compute(session: &Session, config: &Factor, inputs: &Inputs, trace: &mut Trace) -> Result<Outcome> {
    let (builder, restate) = limited(session.context(&config.engine), budget(&config.engine));
    let ctx = builder.build()?;
    let options = CholeskyOptions { uplo: config.uplo.unwrap_or_default(), tile_rows: config.tile_rows };
    let (factor, seconds) =
        trace.span("factor", || cholesky_with(&ctx, &inputs.a, inputs.precision_bits, &options).map_err(&restate))?;
    let log_det = config.log_det.then(|| factor.log_det());
    Ok(Outcome { factor, log_det, kernel: ctx.kernel().name(), threads: ctx.threads(), seconds })
}
