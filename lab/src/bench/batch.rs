//! `sunzi bench batch`: many small problems in one call, compared with as many single calls and with the baselines.
//!
//! All problems differ. The batch and the single calls must give the same bits; for some of the problems, their results
//! and those of every baseline are checked by the verifier of the operation. Baselines take one problem after the
//! other, on one thread each.

use super::check::{Verifier, worst};
use super::operands::Operands;
use super::report::{BaselineReport, rows_of_sides};
use super::sides::{TimedBaseline, hash, repeats};
use super::spread::Spread;
use super::verifier;
use crate::baselines::{self, Operation};
use crate::machine::Machine;
use serde::Serialize;
use std::time::Instant;
use sunzi::batch::{cholesky_batch_into, gemm_batch_into, syrk_batch_into, trsm_batch_into};
use sunzi::gallery::Size;
use sunzi::report::BatchReport;
use sunzi::{
    Accuracy, Cholesky, CholeskyOptions, Context, Error, GemmOptions, Matrix, Op, Result, Symmetric, SymmetricMatrix,
    SyrkOptions, TrsmOptions, cholesky_into, gemm_into, syrk_into, trsm_into,
};
use sunzi_session::engine::{Engine, limited};
use sunzi_session::session::Session;
use sunzi_session::units::{counted, folded, format_bytes, format_seconds};

/// The baseline that is our own single calls.
const CALLS: &str = "calls";

/// Problems that are held against the verifier.
const CHECKED_PROBLEMS: usize = 5;

/// A batch to time.
#[derive(Clone, Debug)]
pub struct BenchBatch {
    /// The operation.
    pub operation: Operation,
    /// Problems.
    pub count: usize,
    /// Rows of each operand.
    pub rows: usize,
    /// The columns of each operand of a product, or the right-hand sides of a system; equal to `rows` for a
    /// factorisation.
    pub cols: usize,
    /// Precision.
    pub precision_bits: u32,
    /// The names of the baselines; the name `calls` selects the single calls.
    pub baselines: Vec<String>,
    /// The number of timed runs of each side.
    pub runs: usize,
    /// The accuracy that our results promise for each entry.
    pub accuracy: Accuracy,
    /// The engine.
    pub engine: Engine,
}

#[derive(Serialize)]
struct BatchBenchReport {
    operation: &'static str,
    count: usize,
    rows: usize,
    cols: usize,
    precision_bits: u32,
    accuracy: Accuracy,
    runs: usize,
    seconds: Spread,
    seconds_each: f64,
    #[serde(flatten)]
    batch: BatchFigures,
    checked: bool,
    worst_error: f64,
    baselines: Vec<BaselineReport>,
    machine: Machine,
}

/// The figures of the batch on itself.
#[derive(Serialize)]
struct BatchFigures {
    threads: usize,
    direct: usize,
    planned_bytes: u64,
}

/// Our side: operands, and results that are kept.
struct BatchSide<'a> {
    config: &'a BenchBatch,
    operands: &'a [Operands],
    matrices: Vec<Matrix>,
    grams: Vec<SymmetricMatrix>,
    factors: Vec<Cholesky>,
    /// Seconds of the timed runs of the whole batch in one call.
    batch_seconds: Vec<f64>,
    /// Seconds of the timed runs with a separate call for each problem.
    call_seconds: Vec<f64>,
}

impl<'a> BatchSide<'a> {
    fn new(config: &'a BenchBatch, operands: &'a [Operands]) -> BatchSide<'a> {
        let places = |of: &[Operation]| if of.contains(&config.operation) { operands.len() } else { 0 };
        BatchSide {
            config,
            operands,
            matrices: vec![Matrix::empty(); places(&[Operation::Gemm, Operation::Trsm])],
            grams: vec![SymmetricMatrix::default(); places(&[Operation::Syrk])],
            factors: vec![Cholesky::default(); places(&[Operation::Cholesky])],
            batch_seconds: Vec::new(),
            call_seconds: Vec::new(),
        }
    }

    /// All problems in one call.
    fn batch(&mut self, ctx: &Context) -> Result<BatchReport> {
        let (bits, accuracy) = (self.config.precision_bits, self.config.accuracy);
        let firsts = self.operands.iter().map(|operands| &operands.a);
        let pairs = self.operands.iter().map(|operands| (&operands.a, operands.second()));
        let outcome = match self.config.operation {
            Operation::Syrk => {
                let options = SyrkOptions::new().accuracy(accuracy);
                syrk_batch_into(ctx, firsts, bits, &options, &mut self.grams)?
            }
            Operation::Gemm => {
                let options = GemmOptions::new().op_a(Op::Transpose).accuracy(accuracy);
                gemm_batch_into(ctx, pairs, bits, &options, &mut self.matrices)?
            }
            Operation::Cholesky => {
                let options = CholeskyOptions::new().accuracy(accuracy);
                cholesky_batch_into(ctx, firsts.map(Symmetric::lower), bits, &options, &mut self.factors)?
            }
            _ => {
                let options = TrsmOptions::new().accuracy(accuracy);
                trsm_batch_into(ctx, pairs, bits, &options, &mut self.matrices)?
            }
        };
        outcome.result.into_iter().collect::<Result<Vec<()>>>()?;
        Ok(outcome.report)
    }

    /// One call for each problem.
    fn calls(&mut self, ctx: &Context) -> Result<()> {
        let (bits, accuracy) = (self.config.precision_bits, self.config.accuracy);
        for (at, operands) in self.operands.iter().enumerate() {
            let a = &operands.a;
            match self.config.operation {
                Operation::Syrk => {
                    syrk_into(ctx, a, bits, &SyrkOptions::new().accuracy(accuracy), &mut self.grams[at])?;
                }
                Operation::Gemm => {
                    let options = GemmOptions::new().op_a(Op::Transpose).accuracy(accuracy);
                    gemm_into(ctx, a, operands.second(), bits, &options, &mut self.matrices[at])?;
                }
                Operation::Cholesky => {
                    let options = CholeskyOptions::new().accuracy(accuracy);
                    cholesky_into(ctx, Symmetric::lower(a), bits, &options, &mut self.factors[at])?;
                }
                _ => {
                    let options = TrsmOptions::new().accuracy(accuracy);
                    trsm_into(ctx, a, operands.second(), bits, &options, &mut self.matrices[at])?;
                }
            }
        }
        Ok(())
    }

    fn result(&self, at: usize) -> &Matrix {
        match self.config.operation {
            Operation::Syrk => &self.grams[at],
            Operation::Cholesky => self.factors[at].factor(),
            _ => &self.matrices[at],
        }
    }

    /// Forgets all numbers, so that a run that writes nothing cannot pass.
    fn clear(&mut self) {
        self.matrices.iter_mut().for_each(Matrix::clear);
        self.grams.iter_mut().for_each(SymmetricMatrix::clear);
        for factor in &mut self.factors {
            let mut memory = std::mem::take(factor).into_factor();
            memory.clear();
            *factor = Cholesky::with_memory(memory);
        }
    }

    /// One hash for all results.
    fn hash(&self) -> u128 {
        let each = (0..self.operands.len()).map(|at| hash(self.result(at)));
        each.fold(0, |all: u128, one| all.rotate_left(7) ^ one)
    }

    /// The time of one run of `work`, repeated `repeats` times; its bits must be those of `first`.
    fn time(&mut self, repeats: usize, first: u128, mut work: impl FnMut(&mut Self) -> Result<()>) -> Result<f64> {
        self.clear();
        let start = Instant::now();
        for _ in 0..repeats {
            work(self)?;
        }
        let seconds = start.elapsed().as_secs_f64() / repeats as f64;
        match self.hash() == first {
            true => Ok(seconds),
            false => Err(Error::verification("the result of a run differs bitwise from that of the first batch")),
        }
    }
}

/// A baseline on every problem.
struct Baselines {
    each: Vec<TimedBaseline>,
    seconds: Vec<f64>,
    repeats: usize,
}

impl Baselines {
    fn new(name: &str, config: &BenchBatch, operands: &[Operands]) -> Result<Baselines> {
        let prepared = operands.iter().map(|operands| {
            let (a, b) = (operands.a.view().to_floats(), operands.b.as_ref().map(|b| b.view().to_floats()));
            let problem = baselines::Problem {
                operation: config.operation,
                rows: config.rows,
                cols: config.cols,
                precision_bits: config.precision_bits,
                a: &a,
                b: b.as_deref(),
                threads: 1,
            };
            TimedBaseline::prepare(name, problem)
        });
        let mut all = Baselines { each: prepared.collect::<Result<_>>()?, seconds: Vec::new(), repeats: 1 };
        all.time();
        all.repeats = repeats(all.time());
        Ok(all)
    }

    fn time(&mut self) -> f64 {
        let start = Instant::now();
        for _ in 0..self.repeats {
            self.each.iter_mut().for_each(TimedBaseline::run_once);
        }
        start.elapsed().as_secs_f64() / self.repeats as f64
    }
}

/// Times a batch and reports the results.
///
/// # Errors
/// [`Error::Verification`] for a wrong result on either side, [`Error::InvalidArgument`], and the errors of the
/// operation.
pub fn run(session: &mut dyn Session, config: &BenchBatch) -> Result<()> {
    let wants_calls = config.baselines.iter().any(|name| name == CALLS);
    let others = config.baselines.iter().filter(|name| *name != CALLS).collect::<Vec<_>>();
    for name in &others {
        baselines::check_for_timing(name, config.operation, config.precision_bits).map_err(Error::InvalidArgument)?;
    }
    session.hide_progress();
    let size = Size { rows: config.rows, cols: config.cols, precision_bits: config.precision_bits };
    let operands = (0..config.count as u64).map(|at| Operands::seeded(config.operation, size, 2 * at + 1));
    let operands = operands.collect::<Result<Vec<_>>>()?;
    let budget = config.engine.budget(operands.iter().map(Operands::bytes).sum());
    let (builder, restate) = limited(session.context(&config.engine)?, budget);
    let ctx = builder.build()?;
    let mut ours = BatchSide::new(config, &operands);
    let report = ours.batch(&ctx).map_err(&restate)?;
    let first = ours.hash();
    let mut timed = others.iter().map(|name| Baselines::new(name, config, &operands)).collect::<Result<Vec<_>>>()?;
    let once = ours.time(1, first, |ours| ours.batch(&ctx).map(drop))?;
    let repeats = repeats(once);
    for _ in 0..config.runs {
        let seconds = ours.time(repeats, first, |ours| ours.batch(&ctx).map(drop))?;
        ours.batch_seconds.push(seconds);
        if wants_calls {
            let seconds = ours.time(repeats, first, |ours| ours.calls(&ctx))?;
            ours.call_seconds.push(seconds);
        }
        for baseline in &mut timed {
            let seconds = baseline.time();
            baseline.seconds.push(seconds);
        }
    }
    let judged = judge(config, &operands, &ours, &timed);
    let report = summarise(config, &report, &ours, &timed, &judged);
    session.finish_report(&report)?;
    session.say(&folded(&table(&report)))?;
    match report.baselines.iter().find(|baseline| !baseline.checked) {
        _ if !report.checked => {
            Err(Error::verification(format!("an entry has {:.3} times its error bound", report.worst_error)))
        }
        Some(baseline) => Err(Error::verification(format!("baseline {} gave a wrong result", baseline.name))),
        None => Ok(()),
    }
}

/// Our worst error, and whether each baseline is right.
struct Judged {
    worst_error: f64,
    right: Vec<bool>,
}

fn judge(config: &BenchBatch, operands: &[Operands], ours: &BatchSide<'_>, timed: &[Baselines]) -> Judged {
    let count = operands.len();
    let mut places = (0..CHECKED_PROBLEMS.min(count)).map(|at| at * count / CHECKED_PROBLEMS.min(count));
    let mut judged = Judged { worst_error: 0.0, right: vec![true; timed.len()] };
    let mut last = count.checked_sub(1);
    while let Some(at) = places.next().or_else(|| last.take()) {
        let verifier: Box<dyn Verifier> = verifier(config.operation, &operands[at]);
        let entry = |i: usize, j: usize| match config.operation {
            Operation::Cholesky => ours.result(at).float(i.max(j), i.min(j)),
            _ => ours.result(at).float(i, j),
        };
        judged.worst_error = worst([judged.worst_error, verifier.worst_error(&entry)].into_iter());
        for (right, baseline) in judged.right.iter_mut().zip(timed) {
            *right &= baseline.each[at].is_right_by(&*verifier);
        }
    }
    judged
}

fn summarise(
    config: &BenchBatch,
    batch: &BatchReport,
    ours: &BatchSide<'_>,
    timed: &[Baselines],
    judged: &Judged,
) -> BatchBenchReport {
    let seconds = Spread::of(&ours.batch_seconds);
    let side = |name, form: String, times: &[f64], checked| {
        let own = Spread::of(times);
        let (runs, ratio) = (times.len(), own.median / seconds.median);
        BaselineReport { name, form, runs, seconds: own, ratio, phases: Vec::new(), checked }
    };
    let calls = &ours.call_seconds;
    let calls = (!calls.is_empty()).then(|| side(CALLS, "one call of Sunzi for each problem".into(), calls, true));
    let others = timed.iter().zip(&judged.right).filter_map(|(baseline, right)| {
        let one = baseline.each.first()?;
        Some(side(one.name(), one.form(), &baseline.seconds, *right))
    });
    BatchBenchReport {
        operation: batch.operation,
        count: config.count,
        rows: config.rows,
        cols: config.cols,
        precision_bits: config.precision_bits,
        accuracy: config.accuracy,
        runs: config.runs,
        seconds,
        seconds_each: seconds.median / config.count.max(1) as f64,
        batch: BatchFigures { threads: batch.threads, direct: batch.direct, planned_bytes: batch.planned_bytes },
        checked: judged.worst_error <= 1.0,
        worst_error: judged.worst_error,
        baselines: calls.into_iter().chain(others).collect(),
        machine: Machine::look(),
    }
}

fn table(report: &BatchBenchReport) -> String {
    let BatchBenchReport { operation, count, rows, cols, precision_bits, batch, .. } = report;
    let threads = counted(batch.threads, "thread");
    let mut lines = vec![format!("{operation} {count} of {rows} x {cols}, {precision_bits} bits, {threads}")];
    lines.extend(rows_of_sides(&report.seconds, &report.baselines));
    lines.push(format!(
        "each       {}, {} of {count} without residues",
        format_seconds(report.seconds_each),
        batch.direct
    ));
    lines.push(format!("memory     planned {}", format_bytes(batch.planned_bytes)));
    let verdict = if report.checked { "every run right" } else { "WRONG RESULT" };
    let error = report.worst_error;
    lines.push(format!("answers    {verdict}: largest error {error:.3} of the bound in sampled entries"));
    lines.join("\n")
}
