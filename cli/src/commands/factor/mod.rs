//! `sunzi cholesky`, `sunzi solve` and `sunzi inverse`: a symmetric matrix in, its factor or a result of it out; on
//! several ranks the root reads, distributes, gathers and writes.
//!
//! Nothing is written unless all went well. Independent of: how a matrix is factored.

mod above_disk;
mod alone;
mod digits;
mod general;
mod lu;
mod needs;
mod ranks;
mod search;
mod singular;
mod stages;
mod steps;
mod sweep;

use crate::args::{Cholesky, Factor, Inverse, Output, RankChoices, Solve};
use crate::commands::observe;
use crate::files::shown_output;
use crate::input::Reader;
use crate::session::{Session, check_output};
use crate::triangles::{FACTORED, SOLVED, SymmetricUse};
use digits::Digits;
use rug::Float;
use serde::Serialize;
use std::path::{Path, PathBuf};
use sunzi::comm::{Transport, agree, agreed, local};
use sunzi::distributed::RankSummary;
use sunzi::estimate::InputRounding;
use sunzi::io::Symmetry;
use sunzi::report::CholeskyReport;
use sunzi::{Accuracy, Error, Matrix, Result, SymmetricMatrix, Uplo};
use sunzi_session::memory::peak_resident_bytes;
use sunzi_session::report::check_writable;
use sunzi_session::session::{ROOT, Session as _};
use sunzi_session::trace::Trace;
use sunzi_session::units::{counted, describe, format_bytes, format_seconds};

/// The result that is made from a factor.
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

impl Task {
    /// The name of the result.
    fn answer(&self) -> &'static str {
        match self {
            Task::Cholesky => "factor",
            Task::Solve { .. } => "solution",
            Task::Inverse => "inverse",
        }
    }
}

/// A factorisation to compute, and the results made from it.
pub struct Factoring {
    /// The matrix that is factored, and how.
    pub factor: Factor,
    /// The options of a factorisation over ranks.
    pub ranks: RankChoices,
    /// The result made from the factor.
    pub task: Task,
    /// Where the result goes; a factor of which only numbers are requested goes nowhere.
    pub output: Option<Output>,
}

impl Factoring {
    /// The files that are read.
    fn files(&self) -> Vec<&Path> {
        match &self.task {
            Task::Solve { b, .. } => vec![&self.factor.a, b],
            _ => vec![&self.factor.a],
        }
    }

    /// Whether the command would also be accepted for any square matrix, with `--general`.
    fn could_be_general(&self) -> bool {
        let Factor { precision, digits, engine, .. } = &self.factor;
        let Factor { tile_rows: None, log_det: false, plot: None, .. } = self.factor else {
            return false;
        };
        let is_solved = matches!(self.task, Task::Solve { refine_from_bits: None, .. } | Task::Inverse);
        let wants_digits = digits.all_digits || precision.automatic().is_some();
        is_solved && !wants_digits && engine.devices.is_empty()
    }

    /// The use of the matrix in one process, for the message if it is not symmetric.
    fn matrix_use(&self) -> &'static SymmetricUse {
        if self.could_be_general() { &SOLVED } else { &FACTORED }
    }

    /// Whether the logarithm of the determinant is computed: where it is requested, and where the digits of a factor
    /// are, which are those of the logarithm.
    fn wants_log_det(&self) -> bool {
        let automatic = self.factor.precision.automatic().is_some();
        self.factor.log_det || (automatic && matches!(self.task, Task::Cholesky))
    }
}

impl From<Cholesky> for Factoring {
    fn from(Cholesky { factor, ranks, output, .. }: Cholesky) -> Factoring {
        Factoring { factor, ranks, task: Task::Cholesky, output: output.given() }
    }
}

impl From<Solve> for Factoring {
    fn from(Solve { factor, ranks, b, refine_from, output, .. }: Solve) -> Factoring {
        let task = Task::Solve { b, refine_from_bits: refine_from };
        Factoring { factor, ranks, task, output: Some(output.chosen()) }
    }
}

impl From<Inverse> for Factoring {
    fn from(Inverse { factor, output, .. }: Inverse) -> Factoring {
        Factoring { factor, ranks: RankChoices::default(), task: Task::Inverse, output: Some(output) }
    }
}

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
    #[serde(flatten)]
    figures: &'a Figures,
    /// `log det A` in decimals, where it was requested.
    log_det: Option<String>,
    /// Estimate of the condition in the 1-norm, where it was requested.
    condition: Option<String>,
    /// Whether the matrix in the file is singular, where that is proven.
    singular: Option<bool>,
    #[serde(flatten)]
    digits: &'a Digits,
    /// Seconds from gathering to the end of writing.
    output_seconds: f64,
    /// The most memory that the process occupied, files and result included.
    peak_resident_bytes: u64,
}

/// The figures of a refinement.
#[derive(Clone, Copy, Serialize)]
struct Refinement {
    /// Precision of the factor.
    factor_bits: u32,
    /// Corrections made.
    iterations: usize,
    /// An upper bound of `log2` of the componentwise backward error; `None` for an error of 0.
    backward_error_log2: Option<i64>,
}

/// The computation's figures on itself.
#[derive(Default, Serialize)]
struct Figures {
    kernel: &'static str,
    threads: usize,
    /// Without files.
    seconds: f64,
    /// The largest number of bytes that the whole call may take, the result included, where that is planned.
    planned_bytes: Option<u64>,
    /// Of a factorisation at the full precision: tiles, primes, times of tasks, planned memory, messages of ranks.
    factorisation: Option<CholeskyReport>,
    refinement: Option<Refinement>,
    /// Seconds of a solve on ranks.
    solve_seconds: Option<f64>,
    input_seconds: f64,
}

/// The results of the computation.
#[derive(Default)]
struct ComputedFactor {
    /// The matrix that is written, on the root.
    result: Option<Matrix>,
    log_det: Option<Float>,
    condition: Option<Float>,
    digits: Digits,
    /// Whether the matrix in the file is singular, where that is proven.
    singular: Option<bool>,
    /// The precision, where none was given.
    chosen_bits: Option<u32>,
    /// Bits to which decimals were read once more; 0 where they were not.
    decimal_bits: u32,
    gather_seconds: f64,
    figures: Figures,
}

/// To how many bits files are read.
#[derive(Clone, Copy, Default)]
struct ReadAt {
    /// The precision; `None` for the one given or stated.
    precision_bits: Option<u32>,
    /// Decimals are read to at least this number of bits.
    decimal_bits: u32,
    /// Whether they are not read once more, however many digits their rounding costs.
    is_last: bool,
    /// The leading rows of the operands that are kept; `None` for all.
    leading_rows: Option<usize>,
}

/// The operands that were read.
struct FactorInputs {
    a: SymmetricMatrix,
    b: Option<Matrix>,
    precision_bits: u32,
    /// The rounding of both when they were read from the files.
    rounding: InputRounding,
    /// Whether decimals are not read once more.
    is_last: bool,
    /// Bytes of both matrices.
    bytes: u64,
}

pub use above_disk::run as run_above_disk;
pub use general::run as run_general;
pub use lu::run as run_lu;
pub use needs::usual_range_bits;
pub use sweep::run as sweep;

/// Runs in this process, or on the ranks that work `together`.
pub fn run(session: &mut Session, config: &Factoring, together: Option<&dyn Transport>) -> Result<()> {
    if together.is_none() && config.ranks != RankChoices::default() {
        let message = "--grid, --broadcast, --policy, --termination and --remote-tiles require a factorisation or \
                       solve on several ranks: start them with mpirun, without --condition, --certified, \
                       --refine-from, --precision auto and, for solve, --log-det";
        return Err(Error::InvalidArgument(message.into()));
    }
    if let (None, Some(path)) = (together, &config.factor.plot) {
        check_plot(config, path)?;
    }
    let world = together.unwrap_or(local::alone());
    let root = world.rank() == ROOT;
    let checked = config.output.iter().filter(|_| root).try_for_each(check_output);
    agree(world, checked)?;
    let trace = agreed(world, Trace::begin(config.factor.trace.as_deref().filter(|_| root)))?;
    let mut trace = trace.telling(session.steps());
    if config.factor.precision.automatic().is_none() && root {
        stages::expect(session, config, together.is_some());
    }
    let computed = match together {
        Some(world) => ranks::compute(session, config, world, &mut trace)?,
        None => search::compute(session, config, &mut trace)?,
    };
    agree(world, finish(session, config, &computed, trace))
}

/// Refuses the picture of a factorisation that there is not, or that could not be written.
fn check_plot(config: &Factoring, path: &Path) -> Result<()> {
    if let Task::Solve { refine_from_bits: Some(_), .. } = config.task {
        let message = "--plot cannot be used with --refine-from, which does not record the tasks of its factorisation";
        return Err(Error::InvalidArgument(message.into()));
    }
    check_writable(path)
}

/// The reader of the operands.
fn reader<'a>(session: &'a Session, config: &'a Factoring, at: ReadAt) -> Result<Reader<'a>> {
    let Factor { a, engine, precision, .. } = &config.factor;
    Ok(Reader::new(session, engine, &precision.typed(at.precision_bits), a)?.in_full(at.decimal_bits))
}

fn read(session: &Session, config: &Factoring, at: ReadAt, wanted: &SymmetricUse) -> Result<FactorInputs> {
    let choices = &config.factor;
    let reader = reader(session, config, at)?;
    let a = reader.symmetric(&choices.a, choices.triangle.named(), wanted)?;
    let rounding = InputRounding::new().matrix_bits(reader.rounded_bits());
    let b = match &config.task {
        Task::Solve { b, .. } => Some(reader.matrix(b)?),
        _ => None,
    };
    let rounding = if b.is_some() { rounding.right_bits(reader.rounded_bits()) } else { rounding };
    match &b {
        // Refused here, before the work of a factorisation.
        Some(b) if b.rows() != a.rows() => Err(Error::ShapeMismatch {
            operation: "solve",
            left_rows: a.rows(),
            left_cols: a.cols(),
            right_rows: b.rows(),
            right_cols: b.cols(),
        }),
        _ => {
            let (precision_bits, bytes) = (reader.precision_bits(), reader.held_bytes());
            let (a, b) = match at.leading_rows {
                Some(rows) => leading(&a, b.as_ref(), rows)?,
                None => (a, b),
            };
            Ok(FactorInputs { a, b, precision_bits, rounding, is_last: at.is_last, bytes })
        }
    }
}

/// The first `rows` rows and columns of the matrix, and rows of the right sides.
fn leading(a: &SymmetricMatrix, b: Option<&Matrix>, rows: usize) -> Result<(SymmetricMatrix, Option<Matrix>)> {
    let block = |matrix: &Matrix, cols: usize| matrix.view().block(0..rows, 0..cols)?.to_matrix();
    let a = SymmetricMatrix::from_triangle(block(a.as_matrix(), rows)?, Uplo::Lower)?;
    Ok((a, b.map(|b| block(b, b.cols())).transpose()?))
}

/// Writes the result and its report, on the rank that has the result.
fn finish(session: &mut Session, config: &Factoring, computed: &ComputedFactor, mut trace: Trace) -> Result<()> {
    let Some(result) = &computed.result else { return Ok(()) };
    let upper = config.factor.triangle.uplo() == Some(Uplo::Upper);
    let (operation, view, symmetry) = match config.task {
        Task::Cholesky if upper => ("cholesky", result.transposed(), Symmetry::General),
        Task::Cholesky => ("cholesky", result.view(), Symmetry::General),
        Task::Solve { .. } => ("solve", result.view(), Symmetry::General),
        Task::Inverse => ("inverse", result.view(), Symmetry::SymmetricLower),
    };
    let write = |output: &Output| session.write(output, view, symmetry);
    let ((), write_seconds) = trace.span("write", || config.output.as_ref().map_or(Ok(()), write))?;
    trace.finish(session)?;
    // Ranks have drawn theirs.
    let drawn = computed.figures.factorisation.as_ref().filter(|report| report.ranks.is_none());
    if let (Some(path), Some(report)) = (&config.factor.plot, drawn) {
        session.write_file(&mut || observe::draw_tasks(report, path))?;
    }
    let report = FactorReport {
        operation,
        rows: result.rows(),
        cols: result.cols(),
        precision_bits: result.precision_bits(),
        triangle: if upper { "upper" } else { "lower" },
        figures: &computed.figures,
        log_det: computed.log_det.as_ref().map(|value| format!("{value:e}")),
        condition: computed.condition.as_ref().map(|value| format!("{value:.6e}")),
        singular: computed.singular,
        digits: &computed.digits,
        output_seconds: computed.gather_seconds + write_seconds,
        peak_resident_bytes: peak_resident_bytes(),
    };
    session.finish_report(&report)?;
    session.say(&lines(config, computed, &report, &describe(result)))?;
    session.answer(&answers(config, computed))?;
    // More bits are no remedy for a singular matrix, of which a warning was given.
    if computed.singular != Some(true) {
        computed.digits.warn(session, config.task.answer());
    }
    Ok(())
}

fn lines(config: &Factoring, computed: &ComputedFactor, report: &FactorReport<'_>, shape: &str) -> String {
    let figures = &computed.figures;
    let name = config.output.as_ref().map_or("factor, not written".into(), |output| shown_output(&output.path));
    let mut lines = vec![format!(
        "{name}: {shape} ({}, {}{}) in {} (files {})",
        figures.kernel,
        counted(figures.threads, "thread"),
        figures.factorisation.as_ref().map_or(String::new(), describe_factorisation),
        format_seconds(figures.seconds),
        format_seconds(figures.input_seconds + report.output_seconds),
    )];
    lines.extend(figures.factorisation.as_ref().and_then(messages));
    lines.extend(figures.factorisation.as_ref().and_then(missed));
    if let Some(Refinement { factor_bits, iterations, backward_error_log2 }) = &figures.refinement {
        let reached = backward_error_log2.map_or("0".into(), |exponent| format!("at most 2^{exponent}"));
        lines.push(format!(
            "refined from a factor of {factor_bits} bits in {iterations} iterations: backward error {reached}"
        ));
    }
    if let Some(bits) = computed.chosen_bits {
        lines.push(format!("precision chosen: {bits} bits"));
    }
    lines.extend(computed.digits.line(config.task.answer(), report.precision_bits));
    lines.join("\n")
}

/// The numbers that were requested.
fn answers(config: &Factoring, computed: &ComputedFactor) -> Vec<String> {
    let log_det = |value| computed.digits.log_det_line(value, config.factor.digits.all_digits);
    let condition = |value| format!("condition of A in the 1-norm: about {value:.3e}");
    computed.log_det.iter().map(log_det).chain(computed.condition.iter().map(condition)).collect()
}

/// A remark on a factor that is not as accurate as requested.
fn missed(report: &CholeskyReport) -> Option<String> {
    let missing = report.missing_bits;
    let text = "the error is bounded by norms only: for componentwise accuracy the range of exponents requires";
    (missing > 0).then(|| format!("{text} {missing} bits in addition to the {} in use", report.range_bits))
}

fn describe_factorisation(report: &CholeskyReport) -> String {
    let ranks = report.ranks.as_ref().map_or(String::new(), |ranks| {
        format!(" per rank, {} ranks as {} x {}", ranks.ranks, ranks.grid.rows, ranks.grid.cols)
    });
    let CholeskyReport { primes, tile_rows, planned_bytes, .. } = report;
    let entrywise = if report.accuracy == Accuracy::Entrywise { ", entrywise" } else { "" };
    let planned = format_bytes(*planned_bytes);
    format!("{entrywise}, {primes} primes, tiles of {tile_rows} rows, {planned} planned{ranks}")
}

fn messages(report: &CholeskyReport) -> Option<String> {
    let per_rank = &report.ranks.as_ref()?.per_rank;
    let total = |count: fn(&RankSummary) -> u64| per_rank.iter().map(count).sum::<u64>();
    let wait_seconds = per_rank.iter().map(|rank| rank.wait_seconds).sum::<f64>();
    Some(format!(
        "{} messages, {} sent, workers waited for {} of {}",
        total(|rank| rank.messages),
        format_bytes(total(|rank| rank.sent_bytes)),
        format_seconds(wait_seconds),
        format_seconds(report.seconds * report.threads as f64),
    ))
}
