//! `sunzi bench`: our product beside others and beside the machine's limit, in one process, every answer checked.
//!
//! Runs are interleaved: in each round the instruction rate, ours, then each rival. Figures are medians over the
//! rounds. Each side is warmed up once outside the clock, with its input in its own number type and its memory in
//! place; ours writes into a result that it keeps, as the rivals do.

mod check;
mod contest;
mod kernel;
mod limit;
mod spread;

pub use kernel::run as run_kernel;

use super::{Session, budget, limited};
use crate::error::{Error, Result};
use crate::front::cli::config::{Bench, Operation};
use crate::front::cli::machine::Machine;
use crate::front::cli::progress::{Bar, Visibility};
use crate::front::cli::units::{format_bytes, format_seconds};
use crate::front::generate::{Kind, Size, generate};
use crate::matrix::Matrix;
use crate::ops::{Phases, Report};
use crate::rivals::{self, openblas_core};
use check::Samples;
use contest::{Ours, Theirs};
use limit::{Limit, instruction_rate};
use serde::Serialize;
use spread::Spread;

/// Seed of the operands: A and B are random matrices of this seed and the next.
const SEED: u64 = 1;

/// What is written by `--report`.
#[derive(Serialize)]
struct BenchReport {
    operation: &'static str,
    rows: usize,
    cols: usize,
    precision_bits: u32,
    working_bits: u32,
    threads: usize,
    kernel: &'static str,
    self_check: bool,
    primes: usize,
    batches: usize,
    bands: usize,
    chunks: usize,
    runs: usize,
    seconds: Spread,
    phases: Phases,
    limit_seconds: Option<f64>,
    limit_ratio: Option<f64>,
    instructions_per_second: Option<Spread>,
    planned_bytes: u64,
    peak_bytes: u64,
    checked: bool,
    worst_error: f64,
    rivals: Vec<RivalReport>,
    machine: Machine,
}

#[derive(Serialize)]
struct RivalReport {
    name: &'static str,
    form: String,
    seconds: Spread,
    ratio: f64,
    phases: Vec<(&'static str, f64)>,
    checked: bool,
}

pub fn run(session: &mut Session, config: &Bench) -> Result<()> {
    check_names(&config.rivals)?;
    session.bar = Bar::new(Visibility::Hidden); // drawing would be timed
    let size = Size { rows: config.rows, cols: config.cols, precision_bits: config.precision_bits };
    let a = generate(Kind::Random, size, SEED)?;
    let b = match config.operation {
        Operation::Syrk => None,
        Operation::Gemm => Some(generate(Kind::Random, size, SEED + 1)?),
    };
    let builder = session.context(&config.engine).self_check(config.self_check);
    let (builder, restate) = limited(builder, budget(&config.engine));
    let ctx = builder.build()?;
    let mut ours = Ours::new(&ctx, &a, b.as_ref()).map_err(restate)?;
    let samples = Samples::new(&a, b.as_ref());
    let mut theirs = prepare_rivals(config, &a, b.as_ref(), ctx.threads())?;
    let mut rates = Vec::new();
    for _ in 0..config.runs {
        rates.extend(instruction_rate(ctx.threads()));
        ours.run()?;
        for rival in &mut theirs {
            rival.run(&samples);
        }
    }
    let worst_error = samples.worst_error(|i, j| ours.result().float(i, j));
    let verified = ours.verify();
    let rate = (!rates.is_empty()).then(|| Spread::of(&rates));
    let report = summarise(config, &ours, &theirs, (rate, worst_error, verified.is_ok()));
    session.finish_report(&report)?;
    session.say(&table(&report))?;
    verified?;
    match report.rivals.iter().find(|rival| !rival.checked) {
        _ if !report.checked => {
            Err(Error::Verification(format!("an entry has {worst_error:.3} times its error bound")))
        }
        Some(rival) => Err(Error::Verification(format!("rival {} gave a wrong result", rival.name))),
        None => Ok(()),
    }
}

fn check_names(names: &[String]) -> Result<()> {
    let known = rivals::names(rivals::Operation::Syrk);
    match names.iter().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(Error::InvalidArgument(format!("unknown rival '{name}': choose from {}", known.join(", ")))),
        None => Ok(()),
    }
}

fn prepare_rivals(config: &Bench, a: &Matrix, b: Option<&Matrix>, threads: usize) -> Result<Vec<Theirs>> {
    if config.rivals.is_empty() {
        return Ok(Vec::new());
    }
    let (a, b) = (a.view().to_floats(), b.map(|b| b.view().to_floats()));
    let operation = match config.operation {
        Operation::Syrk => rivals::Operation::Syrk,
        Operation::Gemm => rivals::Operation::Gemm,
    };
    let problem = rivals::Problem {
        operation,
        rows: config.rows,
        cols: config.cols,
        precision_bits: config.precision_bits,
        a: &a,
        b: b.as_deref(),
        threads,
    };
    config.rivals.iter().map(|name| Theirs::new(name, problem)).collect()
}

fn summarise(
    config: &Bench,
    ours: &Ours<'_>,
    theirs: &[Theirs],
    (rate, worst_error, verified): (Option<Spread>, f64, bool),
) -> BenchReport {
    let (report, seconds): (&Report, Spread) = (ours.median_report(), ours.seconds());
    let limit = Limit {
        operation: config.operation,
        rows: config.rows,
        cols: config.cols,
        precision_bits: config.precision_bits,
    };
    // An empty product has no limit to speak of.
    let limit_seconds = rate.map(|rate| limit.seconds(rate.median)).filter(|&seconds| seconds > 0.0);
    let rivals = theirs.iter().map(|rival| RivalReport {
        name: rival.name(),
        form: rival.form(),
        seconds: rival.seconds(),
        ratio: rival.seconds().median / seconds.median,
        phases: rival.phases(),
        checked: rival.is_right(),
    });
    BenchReport {
        operation: report.operation,
        rows: config.rows,
        cols: config.cols,
        precision_bits: config.precision_bits,
        working_bits: report.working_bits,
        threads: ours.threads(),
        kernel: report.kernel,
        self_check: config.self_check,
        primes: report.primes,
        batches: report.batches,
        bands: report.bands,
        chunks: report.chunks,
        runs: config.runs,
        seconds,
        phases: report.phases,
        limit_seconds,
        limit_ratio: limit_seconds.map(|limit| seconds.median / limit),
        instructions_per_second: rate,
        planned_bytes: ours.planned_bytes(),
        peak_bytes: ours.peak_bytes(),
        checked: verified && worst_error <= 1.0,
        worst_error,
        rivals: rivals.collect(),
        machine: Machine::look(),
    }
}

fn table(report: &BenchReport) -> String {
    let row = |name: &str, seconds: &Spread, last: String| {
        let [min, median, max] = [seconds.min, seconds.median, seconds.max].map(format_seconds);
        format!("{name:<10} {min:>10} {median:>10} {max:>10}  {last}").trim_end().to_string()
    };
    let mut lines = vec![
        format!(
            "{} {} x {}, {} bits, {} thread(s), kernel {}: {} primes in {} batch(es), {} band(s), {} chunk(s)",
            report.operation,
            report.rows,
            report.cols,
            report.precision_bits,
            report.threads,
            report.kernel,
            report.primes,
            report.batches,
            report.bands,
            report.chunks
        ),
        format!("{:<10} {:>10} {:>10} {:>10}  over ours", "", "least", "median", "most"),
        row("sunzi", &report.seconds, String::new()),
    ];
    for rival in &report.rivals {
        let wrong = if rival.checked { "" } else { "  WRONG RESULT" };
        lines.push(row(rival.name, &rival.seconds, format!("{:.2}{wrong}  {}", rival.ratio, rival.form)));
    }
    let phases = &report.phases;
    let parts = [
        ("scale", phases.scale),
        ("to_residues", phases.to_residues),
        ("product", phases.product),
        ("reconstruct", phases.reconstruct),
        ("unscale", phases.unscale),
    ];
    let parts = parts.map(|(name, seconds)| format!("{name} {}", format_seconds(seconds)));
    lines.push(format!("phases     {}", parts.join(", ")));
    lines.push(match (report.limit_seconds, report.limit_ratio, &report.instructions_per_second) {
        (Some(limit), Some(ratio), Some(rate)) => format!(
            "limit      {} at {:.2} G IFMA instructions a second: ours takes {ratio:.3} times that",
            format_seconds(limit),
            rate.median / 1e9
        ),
        _ => "limit      not known: no work, or no IFMA instructions to measure".into(),
    });
    if let Some(core) = openblas_core() {
        lines.push(format!("openblas   {core} kernels"));
    }
    let (planned, peak) = (format_bytes(report.planned_bytes), format_bytes(report.peak_bytes));
    lines.push(format!("memory     planned {planned}, peak {peak}"));
    let verdict = if report.checked { "every run right" } else { "WRONG" };
    lines
        .push(format!("answers    {verdict}: largest error {:.3} of the bound in sampled entries", report.worst_error));
    lines.join("\n")
}
