//! `sunzi solve --general` and `sunzi inverse --general`: any square matrix in, factored by LU with partial pivoting;
//! the solution or the inverse out.
//!
//! Nothing is written unless all went well. Independent of: how a matrix is factored.

use super::digits::{FEW_DIGITS, stated};
use super::steps::Steps;
use super::{Factoring, Task, needs::usual_range_bits};
use crate::args::{Factor, GIVE_BITS, Precision};
use crate::files::{header, shown_output};
use crate::input::Reader;
use crate::progress::{Stage, factor_seconds, solve_seconds};
use crate::session::{Session, Work, check_output};
use crate::signals::{Mode, in_mode};
use rug::Float;
use serde::Serialize;
use std::time::Instant;
use sunzi::advanced::optional_estimate;
use sunzi::estimate::InputRounding;
use sunzi::io::{FileInfo, Symmetry};
use sunzi::plans::{plan_lu, plan_trsm};
use sunzi::report::LuReport;
use sunzi::{Accuracy, Context, Error, Lu, LuOptions, Matrix, Outcome, Result, lu_with};
use sunzi_session::engine::least_bytes;
use sunzi_session::memory::peak_resident_bytes;
use sunzi_session::session::Session as _;
use sunzi_session::trace::Trace;
use sunzi_session::units::{counted, describe, format_bytes, format_seconds};

/// Words of products in an LU factorisation, relative to those in a Cholesky factorisation.
pub(super) const LU_WORK: f64 = 2.0;

/// Bits of the identity.
const IDENTITY_BITS: u32 = 2;

/// The matrices that were read.
struct GeneralOperands {
    a: Matrix,
    /// `None` for an inverse.
    b: Option<Matrix>,
    /// The rounding of both when they were read from the files.
    rounding: InputRounding,
}

/// Rows and columns of a matrix.
#[derive(Clone, Copy)]
struct Shape {
    rows: usize,
    cols: usize,
}

impl Shape {
    fn of(matrix: &Matrix) -> Shape {
        Shape { rows: matrix.rows(), cols: matrix.cols() }
    }
}

/// What was computed.
struct Solved {
    x: Matrix,
    report: LuReport,
    /// The condition number in the 1-norm, where it was requested.
    condition: Option<Float>,
    digits: GeneralDigits,
    seconds: f64,
}

/// Correct digits of the result; absent if they were not requested, or if the memory limit is too small for an
/// estimate.
#[derive(Clone, Copy, Default, Serialize)]
struct GeneralDigits {
    /// An estimate of them.
    digits: Option<f64>,
    /// A proven lower bound of them.
    certified: Option<f64>,
}

/// The report.
#[derive(Serialize)]
struct GeneralReport<'a> {
    operation: &'static str,
    method: &'static str,
    /// Rows of the result.
    rows: usize,
    cols: usize,
    precision_bits: u32,
    kernel: &'static str,
    threads: usize,
    /// Without files.
    seconds: f64,
    #[serde(flatten)]
    digits: GeneralDigits,
    /// An estimate of the condition number in the 1-norm.
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<String>,
    factorisation: &'a LuReport,
    input_seconds: f64,
    output_seconds: f64,
    /// The most memory that the process occupied, files and result included.
    peak_resident_bytes: u64,
}

/// Reads, factors, solves and writes in this process.
pub fn run(session: &mut Session, config: &Factoring) -> Result<()> {
    config.output.iter().try_for_each(check_output)?;
    let mut trace = Trace::begin(config.factor.trace.as_deref())?.telling(session.steps());
    let Factor { a, engine, precision, .. } = &config.factor;
    let typed = Precision { advice: GIVE_BITS, ..precision.typed(None) };
    // Decimals keep the digits of the file, as where the matrix is symmetric.
    let reader = Reader::new(session, engine, &typed, a)?.in_full(0);
    check_headers(config)?;
    reader.admit(&config.files(), |infos| needed_bytes(session, config, &reader, infos))?;
    let bits = reader.precision_bits();
    expect(session, config, bits);
    let (operands, input_seconds) = trace.span("read", || read(config, &reader))?;
    let steps = Steps::new(session, &config.factor.engine, reader.held_bytes())?;
    let solved = in_mode(Mode::Computing, || solve(&steps, config, &operands, bits, &mut trace))?;
    drop(operands);
    finish(session, config, &solved, input_seconds, trace)
}

fn operation(config: &Factoring) -> &'static str {
    match config.task {
        Task::Inverse => "inverse",
        _ => "solve",
    }
}

/// Refuses shapes that do not fit, before anything is read where the files have headers.
fn check_headers(config: &Factoring) -> Result<()> {
    let files = config.files();
    let shape = |at: usize| match files.get(at) {
        Some(path) => Ok(header(path)?.map(|info| Shape { rows: info.rows, cols: info.cols })),
        None => Ok(None),
    };
    shape(0)?.map_or(Ok(()), |a| check_shapes(config, a, shape(1)?))
}

fn check_shapes(config: &Factoring, Shape { rows, cols }: Shape, b: Option<Shape>) -> Result<()> {
    if rows != cols {
        return Err(Error::NotSquare { operation: operation(config), rows, cols });
    }
    match b {
        Some(Shape { rows: right_rows, cols: right_cols }) if right_rows != rows => {
            let (operation, left_rows, left_cols) = (operation(config), rows, cols);
            Err(Error::ShapeMismatch { operation, left_rows, left_cols, right_rows, right_cols })
        }
        _ => Ok(()),
    }
}

/// Bytes of the work on matrices that are read, the result included.
fn needed_bytes(session: &Session, config: &Factoring, reader: &Reader<'_>, infos: &[FileInfo]) -> Result<u64> {
    let (order, bits) = (infos[0].rows, reader.precision_bits());
    let (columns, right_bits) = infos.get(1).map_or((order, IDENTITY_BITS), |b| (b.cols, reader.bits_of(b)));
    let context = || session.context(&config.factor.engine);
    let options = options(config).range_bits(usual_range_bits(order));
    let matrix_bits = reader.bits_of(&infos[0]);
    let factoring = least_bytes(context()?, |ctx| plan_lu(ctx, order, matrix_bits, bits, &options))?;
    let substituting = least_bytes(context()?, |ctx| plan_trsm(ctx, (order, columns), bits, Accuracy::Entrywise))?;
    let bytes = |bits| Matrix::bytes_for(order, columns, bits);
    let identity = if infos.len() == 1 { bytes(IDENTITY_BITS) } else { 0 };
    let beside = [Matrix::bytes_for(order, order, bits), identity, bytes(right_bits), bytes(bits), bytes(bits)];
    Ok(factoring.max(beside.into_iter().fold(substituting, u64::saturating_add)))
}

fn options(config: &Factoring) -> LuOptions {
    LuOptions::new().accuracy(config.factor.accuracy)
}

/// Announces the stages to the session.
fn expect(session: &Session, config: &Factoring, bits: u32) {
    session.expect(&config.files(), bits, |infos| {
        let (order, cols) = (infos[0].rows, infos.get(1).map_or(infos[0].rows, |b| b.cols));
        let factor = Stage::calls("factor", LU_WORK * factor_seconds(order, bits));
        let stages = vec![factor, Stage::calls(operation(config), solve_seconds(order, cols, bits))];
        Work { stages, output: config.output.as_ref().map(|output| (output.path.as_path(), (order, cols))) }
    });
}

fn read(config: &Factoring, reader: &Reader<'_>) -> Result<GeneralOperands> {
    let a = reader.matrix(&config.factor.a)?;
    let mut rounding = InputRounding::new().matrix_bits(reader.rounded_bits());
    let mut b = None;
    if let Task::Solve { b: path, .. } = &config.task {
        b = Some(reader.matrix(path)?);
        rounding = rounding.right_bits(reader.rounded_bits());
    }
    check_shapes(config, Shape::of(&a), b.as_ref().map(Shape::of))?;
    Ok(GeneralOperands { a, b, rounding })
}

fn solve(
    steps: &Steps<'_>,
    config: &Factoring,
    operands: &GeneralOperands,
    bits: u32,
    trace: &mut Trace,
) -> Result<Solved> {
    let start = Instant::now();
    let factor = || steps.run(|ctx| lu_with(ctx, &operands.a, bits, &options(config)));
    let (Outcome { result: factors, report }, _) = trace.span("factor", factor)?;
    steps.hold(factors.factors());
    let mut x = Matrix::empty();
    let substitute = || match &operands.b {
        Some(b) => steps.run(|ctx| factors.solve_into(ctx, b, bits, &mut x)).map(drop),
        None => steps.run(|ctx| factors.inverse(ctx, bits)).map(|inverse| x = inverse),
    };
    trace.span(operation(config), substitute)?;
    steps.hold(&x);
    let condition = || steps.run(|ctx| factors.condition_estimate(ctx, &operands.a.one_norm()));
    let condition = if config.factor.condition { Some(trace.span("condition", condition)?.0) } else { None };
    let digits = digits(steps, config, operands, GeneralAnswer { factors: &factors, x: &x }, trace)?;
    Ok(Solved { x, report, condition, digits, seconds: start.elapsed().as_secs_f64() })
}

/// The factors, and the solution or the inverse by them.
#[derive(Clone, Copy)]
struct GeneralAnswer<'a> {
    factors: &'a Lu,
    x: &'a Matrix,
}

/// Estimates the correct digits, and proves some where that was requested.
fn digits(
    steps: &Steps<'_>,
    config: &Factoring,
    GeneralOperands { a, b, rounding }: &GeneralOperands,
    answer: GeneralAnswer<'_>,
    trace: &mut Trace,
) -> Result<GeneralDigits> {
    let (choices, GeneralAnswer { factors, x }) = (&config.factor.digits, answer);
    if choices.no_estimate {
        return Ok(GeneralDigits::default());
    }
    let estimate = |ctx: &Context| match b {
        Some(b) => factors.solution_digits(ctx, a, b, x, *rounding),
        None => factors.inverse_digits(ctx, a, x, *rounding),
    };
    let digits = optional_estimate(trace.span("estimate", || Ok(steps.run(estimate)))?.0)?;
    if !choices.certified {
        return Ok(GeneralDigits { digits, certified: None });
    }
    let prove = |ctx: &Context| {
        let Some(certificate) = factors.certify(ctx, a, *rounding)? else { return Ok(0.0) };
        match b {
            Some(b) => certificate.solution_digits(ctx, b, x),
            None => certificate.inverse_digits(ctx, x),
        }
    };
    let proven = trace.span("certify", || steps.run(prove))?.0;
    // Proven digits are correct.
    Ok(GeneralDigits { digits: digits.map(|digits| digits.max(proven)), certified: Some(proven) })
}

/// Writes the result and its report.
fn finish(
    session: &mut Session,
    config: &Factoring,
    Solved { x, report, condition, digits, seconds }: &Solved,
    input_seconds: f64,
    mut trace: Trace,
) -> Result<()> {
    let output = config.output.as_ref().expect("solve and inverse have an output");
    let ((), output_seconds) = trace.span("write", || session.write(output, x, Symmetry::General))?;
    trace.finish(session)?;
    session.finish_report(&GeneralReport {
        operation: operation(config),
        method: report.operation,
        rows: x.rows(),
        cols: x.cols(),
        precision_bits: x.precision_bits(),
        kernel: report.kernel,
        threads: report.threads,
        seconds: *seconds,
        digits: *digits,
        condition: condition.as_ref().map(|value| format!("{value:.6e}")),
        factorisation: report,
        input_seconds,
        output_seconds,
        peak_resident_bytes: peak_resident_bytes(),
    })?;
    let files = format_seconds(input_seconds + output_seconds);
    let name = shown_output(&output.path);
    session.say(&format!(
        "{name}: {} ({}) in {} (files {files})\n{}{}",
        describe(x),
        figures(report),
        format_seconds(*seconds),
        description(report),
        digits.lines(config, condition.as_ref(), x.precision_bits()),
    ))?;
    if let Some(few) = digits.digits.filter(|digits| *digits < FEW_DIGITS) {
        let what = config.task.answer();
        session.note(&format!("warning: about {few:.1} digits of the {what} are correct: give more bits"));
    }
    Ok(())
}

impl GeneralDigits {
    /// The lines about the result and the condition.
    fn lines(&self, config: &Factoring, condition: Option<&Float>, precision_bits: u32) -> String {
        let condition =
            condition.map_or(String::new(), |value| format!("\ncondition of A in the 1-norm: about {value:.3e}"));
        let what = config.task.answer();
        match self.digits {
            Some(digits) => {
                format!("{condition}\n{what}: {} ({precision_bits} bits)", stated(digits, self.certified))
            }
            None => condition,
        }
    }
}

pub(super) fn figures(report: &LuReport) -> String {
    let LuReport { kernel, threads, primes, planned_bytes, .. } = report;
    let entrywise = if report.accuracy == Accuracy::Entrywise { ", entrywise" } else { "" };
    let primes = if *primes > 0 { format!(", {primes} primes") } else { String::new() };
    let (threads, planned) = (counted(*threads, "thread"), format_bytes(*planned_bytes));
    format!("{kernel}, {threads}{entrywise}{primes}, {planned} planned")
}

/// The lines about the factors.
pub(super) fn description(report: &LuReport) -> String {
    let LuReport { order, growth_bits, range_bits, missing_bits, .. } = report;
    // The report compares with a power of two, at most twice the largest entry of a column.
    let growth = growth_bits + 1;
    let mut text = format!("LU with partial pivoting of {order} rows: growth of U at most 2^{growth}");
    if *missing_bits > 0 {
        text += &format!(
            "\nthe accuracy is relative to norms only, since some entries require {missing_bits} more bits than the \
             {range_bits} for the range of exponents"
        );
    }
    text
}
