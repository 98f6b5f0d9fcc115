//! `sunzi bench`: our operation compared with others and with the machine's limit, in one process, every answer
//! checked.
//!
//! Runs are interleaved: in each round the instruction rate, ours, then each baseline. Figures are medians over the
//! rounds. A baseline that has taken a minute sits out the remaining rounds, which the report shows by its runs. Each
//! side is warmed up once before it is timed, with its input in its own number type and its memory allocated; our side
//! writes a product into a result that it keeps, as the baselines do.

mod batch;
mod check;
mod double;
mod factor;
mod kernel;
mod limit;
mod operands;
mod product;
mod rank_solves;
mod rank_table;
mod ranks;
mod reading;
mod report;
mod residual;
mod sides;
mod spread;
mod step;
mod sweep;
mod task;

pub use batch::{BenchBatch, run as run_batch};
pub use double::run as run_double;
pub use double::{BenchDouble, BenchRanks};
pub(crate) use double::{RESIDUAL_BOUND, largest_residual, matrix as double_matrix};
pub use kernel::{BenchKernel, run as run_kernel};
pub use ranks::run as run_on_ranks;
pub use step::{BenchStep, run as run_step};
pub use sweep::run as run_sweep;

pub(crate) use sides::hash;

use crate::baselines::{self, Operation};
use crate::machine::Machine;
use check::{Samples, Verifier};
use limit::{IssueRates, LeastTime, Limit};
use operands::Operands;
use reading::Reading;
use report::{BaselineReport, BenchReport, table};
use residual::Residual;
use sides::{Ours, TimedBaseline};
use spread::Spread;
use sunzi::comm::window::WindowKind;
use sunzi::gallery::Size;
use sunzi::{Accuracy, Error, Result};
use sunzi_session::engine::{Engine, limited};
use sunzi_session::session::Session;
use sunzi_session::units::folded;
use task::Task;

/// An operation to time.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The operation.
    pub operation: Operation,
    /// Rows of each operand.
    pub rows: usize,
    /// Columns of each operand of a product, right-hand sides of a system; as `rows` for a factorisation.
    pub cols: usize,
    /// Precision.
    pub precision_bits: u32,
    /// Names of the baselines.
    pub baselines: Vec<String>,
    /// Timed runs of each.
    pub runs: usize,
    /// The accuracy that our products promise for each entry.
    pub accuracy: Accuracy,
    /// Whether to use the redundant prime.
    pub self_check: bool,
    /// Rows of a tile of a factorisation; `None` for the library's choice.
    pub tile_rows: Option<usize>,
    /// Divisors of the memory that a product on several ranks takes.
    pub memory_parts: Vec<u64>,
    /// The provider of the memory that ranks share.
    pub window: WindowKind,
    /// The engine.
    pub engine: Engine,
}

/// Times an operation in this process and reports the results.
///
/// # Errors
/// [`Error::Verification`] for a wrong result on either side, [`Error::InvalidArgument`], and the errors of the
/// operation.
pub fn run(session: &mut dyn Session, config: &Bench) -> Result<()> {
    session.hide_progress();
    let finding = measure(session, config)?;
    session.finish_report(&finding.report)?;
    session.say(&folded(&table(&finding.report)))?;
    finding.into_right().map(drop)
}

/// The results of a benchmark.
struct Finding {
    report: BenchReport,
    /// The check of our own result.
    verified: Result<()>,
}

impl Finding {
    /// The report, if all results are right.
    fn into_right(self) -> Result<BenchReport> {
        let Finding { report, verified } = self;
        verified?;
        match report.baselines.iter().find(|baseline| !baseline.checked) {
            _ if !report.checked => {
                let worst_error = report.worst_error;
                Err(Error::verification(format!("an entry has {worst_error:.3} times its error bound")))
            }
            Some(baseline) => Err(Error::verification(format!("baseline {} gave a wrong result", baseline.name))),
            None => Ok(report),
        }
    }
}

/// Times an operation in this process and checks its results.
fn measure(session: &dyn Session, config: &Bench) -> Result<Finding> {
    let needs_ranks =
        [("--memory-fractions", !config.memory_parts.is_empty()), ("--window", config.window != WindowKind::Auto)];
    if let Some((option, _)) = needs_ranks.iter().find(|(_, given)| *given) {
        return Err(Error::InvalidArgument(format!("{option} needs several ranks: start them with mpirun")));
    }
    for name in &config.baselines {
        baselines::check_for_timing(name, config.operation, config.precision_bits).map_err(Error::InvalidArgument)?;
    }
    let size = Size { rows: config.rows, cols: config.cols, precision_bits: config.precision_bits };
    let operands = Operands::new(config.operation, size)?;
    let builder = session.context(&config.engine)?.self_check(config.self_check);
    let (builder, restate) = limited(builder, config.engine.budget(operands.bytes()));
    let ctx = builder.build()?;
    let mut ours = Ours::new(&ctx, task(config, &operands)?).map_err(restate)?;
    let verifier = verifier(config.operation, &operands);
    let mut timed = prepare_baselines(config, &operands, ctx.threads())?;
    let limit = limit(config);
    let reading = (config.operation == Operation::Solve).then(|| Reading::new(limit.factor_bytes(), ctx.threads()));
    let (mut rates, mut reads) = (Vec::new(), Vec::new());
    for _ in 0..config.runs {
        rates.extend(IssueRates::measure(ctx.threads()));
        reads.extend(reading.as_ref().map(Reading::rate));
        ours.run()?;
        for baseline in &mut timed {
            baseline.run(&*verifier);
        }
    }
    let worst_error = verifier.worst_error(&|i, j| ours.entry(i, j));
    let verified = ours.verify();
    let measured = Measured { rates, reads: spread(&reads), worst_error, verified: verified.is_ok() };
    Ok(Finding { report: summarise(config, &ours, &timed, measured), verified })
}

/// Our side of an operation.
fn task<'a>(config: &Bench, operands: &'a Operands) -> Result<Box<dyn Task + 'a>> {
    let Operands { a, b } = operands;
    let second = || b.as_ref().expect("systems have right-hand sides");
    Ok(match config.operation {
        Operation::Syrk | Operation::Gemm => Box::new(product::Product::new(a, b.as_ref(), config.accuracy)),
        Operation::Cholesky => Box::new(factor::Factorisation::new(a, config.tile_rows, config.accuracy)),
        Operation::Trsm => Box::new(factor::System::triangular(a, second(), config.accuracy)?),
        Operation::Solve => Box::new(factor::System::factored(a, second(), config.accuracy)?),
    })
}

fn verifier<'a>(operation: Operation, operands: &'a Operands) -> Box<dyn Verifier + 'a> {
    let Operands { a, b } = operands;
    match operation {
        Operation::Syrk | Operation::Gemm => Box::new(Samples::new(a, b.as_ref())),
        _ => Box::new(Residual::new(operation, a, b.as_ref())),
    }
}

fn prepare_baselines(config: &Bench, operands: &Operands, threads: usize) -> Result<Vec<TimedBaseline>> {
    if config.baselines.is_empty() {
        return Ok(Vec::new());
    }
    let (a, b) = (operands.a.view().to_floats(), operands.b.as_ref().map(|b| b.view().to_floats()));
    let problem = baselines::Problem {
        operation: config.operation,
        rows: config.rows,
        cols: config.cols,
        precision_bits: config.precision_bits,
        a: &a,
        b: b.as_deref(),
        threads,
    };
    config.baselines.iter().map(|name| TimedBaseline::new(name, problem)).collect()
}

fn limit(config: &Bench) -> Limit {
    let Bench { operation, rows, cols, precision_bits, .. } = *config;
    Limit { operation, rows, cols, precision_bits }
}

fn spread(values: &[f64]) -> Option<Spread> {
    (!values.is_empty()).then(|| Spread::of(values))
}

/// The measurements besides the times.
struct Measured {
    rates: Vec<IssueRates>,
    reads: Option<Spread>,
    worst_error: f64,
    verified: bool,
}

fn summarise(config: &Bench, ours: &Ours<'_>, timed: &[TimedBaseline], measured: Measured) -> BenchReport {
    let (account, seconds) = (ours.median_account(), ours.seconds());
    let read_bytes = measured.reads.map_or(f64::INFINITY, |rate| rate.median);
    // An empty operation has no limit to speak of, and the limit of this CPU's instructions does not apply to devices.
    let on_devices = config.engine.wants_devices();
    let is_limit = |limit: &LeastTime| !on_devices && limit.seconds > 0.0;
    let at_work = limit(config).of_kernel(account.kernel, &measured.rates, read_bytes).filter(is_limit);
    let limit = limit(config).least(&measured.rates, read_bytes).filter(is_limit);
    let at_work_seconds = at_work.as_ref().map(|limit| limit.seconds);
    let limit_seconds = limit.as_ref().map(|limit| limit.seconds);
    let baselines = timed.iter().map(|baseline| BaselineReport {
        name: baseline.name(),
        form: baseline.form(),
        runs: baseline.runs(),
        seconds: baseline.seconds(),
        ratio: baseline.seconds().median / seconds.median,
        phases: baseline.phases(),
        checked: baseline.is_right(),
    });
    BenchReport {
        operation: config.operation.name(),
        rows: config.rows,
        cols: config.cols,
        precision_bits: config.precision_bits,
        working_bits: account.working_bits,
        threads: ours.threads(),
        kernel: account.kernel,
        accuracy: config.accuracy,
        self_check: config.self_check,
        primes: account.primes,
        cut: account.cut,
        runs: config.runs,
        seconds,
        phases: account.phases.clone(),
        kernel_limit_seconds: at_work_seconds,
        kernel_limit_ratio: at_work_seconds.map(|limit| seconds.median / limit),
        kernel_multiply_adds_per_second: at_work.map(|limit| limit.multiply_adds),
        limit_seconds,
        limit_ratio: limit_seconds.map(|limit| seconds.median / limit),
        limit_kernel: limit.as_ref().map(|limit| limit.kernel),
        multiply_adds_per_second: limit.map(|limit| limit.multiply_adds),
        read_bytes_per_second: measured.reads,
        planned_bytes: ours.planned_bytes(),
        peak_bytes: ours.peak_bytes(),
        checked: measured.verified && measured.worst_error <= 1.0,
        worst_error: measured.worst_error,
        baselines: baselines.collect(),
        devices: account.devices.clone(),
        tiles: account.tiles.clone(),
        on_devices,
        machine: Machine::look(),
    }
}
