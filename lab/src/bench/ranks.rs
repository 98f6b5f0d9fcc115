//! `sunzi bench` on several ranks. This module times a SYRK: the ranks are compared with one process with as many
//! threads, in the same run.
//!
//! Each round times the instruction rate of all ranks at once; one process on the root with the threads of all ranks,
//! while the others wait; the ranks as they are; where nodes are emulated, the ranks as one node; and the ranks within
//! parts of the memory. Every result is compared once with the result of the one process, bit by bit.

use super::Bench;
use super::limit::{IssueRates, Limit};
use super::operands::Operands;
use super::rank_solves;
use super::rank_table::{header, row, total_threads};
use super::spread::Spread;
use crate::baselines::Operation;
use crate::machine::Machine;
use serde::Serialize;
use std::time::Instant;
use sunzi::comm::{Reduction, Transport, agree, agreed, barrier};
use sunzi::distributed::{DistOptions, DistOutcome, RankPhases, Team, TeamOptions, TeamReport, scatter_rows, syrk};
use sunzi::gallery::Size;
use sunzi::report::Report;
use sunzi::{Context, Error, Matrix, Result, SymmetricMatrix, SyrkOptions, syrk_into};
use sunzi_session::session::ROOT;
use sunzi_session::session::Session;
use sunzi_session::units::{folded, format_bytes, format_seconds};

/// The report.
#[derive(Serialize)]
struct RanksBench {
    operation: &'static str,
    rows: usize,
    cols: usize,
    precision_bits: u32,
    runs: usize,
    ranks: usize,
    nodes: usize,
    threads: usize,
    window: &'static str,
    limit_kernel: Option<&'static str>,
    multiply_adds_per_second: Option<Spread>,
    limit_seconds: Option<f64>,
    /// One process with the threads of all ranks.
    one_process: Spread,
    comparisons: Vec<ComparisonReport>,
    machine: Machine,
}

/// One way of running on the ranks.
#[derive(Serialize)]
struct ComparisonReport {
    name: String,
    seconds: Spread,
    /// Over one process, of the medians and of the least times.
    ratio: f64,
    ratio_of_least: f64,
    /// The time divided by the time of the first comparison, of the medians and of the least times.
    over_first: f64,
    over_first_of_least: f64,
    limit_ratio: Option<f64>,
    cluster: Report,
    /// Whether the result has the same bits as with one process.
    same_bits: bool,
}

/// One way of running, with its measurements.
struct Comparison {
    name: String,
    team: Team,
    ctx: Context,
    seconds: Vec<f64>,
    last: Option<Report>,
    same_bits: bool,
}

/// Times a product, a factorisation or a solve on all ranks and reports the results. Collective.
///
/// # Errors
/// [`Error::Verification`] where the bits differ from the result of one process, [`Error::InvalidArgument`], and the
/// errors of the operation.
pub fn run(session: &mut dyn Session, config: &Bench, world: &dyn Transport) -> Result<()> {
    if !config.baselines.is_empty() {
        return Err(Error::InvalidArgument("--against works in one process only: start sunzi without mpirun".into()));
    }
    if config.operation != Operation::Syrk {
        return rank_solves::run(session, config, world);
    }
    config.engine.refuse_devices("a product on several ranks")?;
    session.hide_progress();
    let size = Size { rows: config.rows, cols: config.cols, precision_bits: config.precision_bits };
    let root = world.rank() == ROOT;
    let made = if root { Operands::new(Operation::Syrk, size).map(|operands| Some(operands.a)) } else { Ok(None) };
    let whole = agreed(world, made)?;
    let own = scatter_rows(world, ROOT, whole.as_ref().map(Matrix::view))?;
    let options = agreed(world, TeamOptions::from_environment())?.window(config.window);
    let mut comparisons = vec![Comparison::new(session, config, world, "ranks", options, None)?];
    let threads = total_threads(&comparisons[0].ctx, world)?;
    let builder = session.context(&config.engine)?.threads(threads);
    let alone = agreed(world, if root { builder.build().map(Some) } else { Ok(None) })?;
    let mut reference = OneProcess { ctx: alone, result: SymmetricMatrix::default(), seconds: vec![] };
    reference.run(world, whole.as_ref(), config)?; // warm, and the answer for all others
    add_comparisons(session, config, world, options, &mut comparisons, &own)?;
    for comparison in &mut comparisons {
        comparison.warm(&own, config, &reference)?;
    }
    let mut rates = Vec::new();
    for _ in 0..config.runs {
        rates.extend(all_rates(world, comparisons[0].ctx.threads())?);
        let seconds = reference.run(world, whole.as_ref(), config)?;
        reference.seconds.extend(seconds);
        for comparison in &mut comparisons {
            comparison.run(&own, config)?;
        }
    }
    let report = summarise(config, &comparisons, &reference, &rates, threads);
    let right = comparisons.iter().all(|comparison| comparison.same_bits);
    comparisons.into_iter().try_for_each(|comparison| comparison.team.close())?;
    if let Some(report) = report {
        let said = session.finish_report(&report).and_then(|()| session.say(&folded(&table(&report))));
        agree(world, said)?;
    } else {
        agree(world, Ok(()))?;
    }
    let wrong = Error::verification("the result on several ranks differs bitwise from that of one process");
    agree(world, if right { Ok(()) } else { Err(wrong) })
}

/// Where nodes are emulated, all ranks as the nodes that they are; and the parts of the memory.
fn add_comparisons(
    session: &dyn Session,
    config: &Bench,
    world: &dyn Transport,
    options: TeamOptions,
    comparisons: &mut Vec<Comparison>,
    own: &Matrix,
) -> Result<()> {
    if options.ranks_per_node.is_some() && comparisons[0].team.layout().nodes.len() > 1 {
        let mut whole = options;
        whole.ranks_per_node = None;
        let comparison = Comparison::new(session, config, world, "as one node", whole, None)?;
        if comparison.team.layout().nodes.len() < comparisons[0].team.layout().nodes.len() {
            comparisons.push(comparison);
        } else {
            comparison.team.close()?;
        }
    }
    if !config.memory_parts.is_empty() {
        let planned = comparisons[0].once(own, config)?.report.planned_bytes;
        for part in &config.memory_parts {
            let name = format!("in 1/{part} of {}", format_bytes(planned));
            comparisons.push(Comparison::new(session, config, world, &name, options, Some(planned / part))?);
        }
    }
    Ok(())
}

impl Comparison {
    fn new(
        session: &dyn Session,
        config: &Bench,
        world: &dyn Transport,
        name: &str,
        options: TeamOptions,
        limit_bytes: Option<u64>,
    ) -> Result<Comparison> {
        let builder = session.context(&config.engine)?.self_check(config.self_check);
        let builder = match limit_bytes.or(config.engine.memory_bytes) {
            Some(bytes) => builder.memory_bytes(bytes),
            None => builder,
        };
        let team = Team::new(world.split(0)?, options)?;
        let ctx = agreed(world, builder.build())?;
        Ok(Comparison { name: name.to_string(), team, ctx, seconds: Vec::new(), last: None, same_bits: false })
    }

    fn once(&mut self, own: &Matrix, config: &Bench) -> Result<DistOutcome> {
        syrk(
            &self.ctx,
            &mut self.team,
            &[own.view()],
            config.precision_bits,
            &DistOptions::new().accuracy(config.accuracy),
        )
    }

    /// Runs once outside the clock and compares the bits.
    fn warm(&mut self, own: &Matrix, config: &Bench, reference: &OneProcess) -> Result<()> {
        let outcome = self.once(own, config)?;
        let whole = outcome.result.gather(self.team.world(), ROOT)?;
        let mut different = [u64::from(whole.is_some_and(|whole| whole != reference.result))];
        self.team.world().all_reduce(Reduction::Max, &mut different)?;
        self.same_bits = different[0] == 0;
        Ok(())
    }

    fn run(&mut self, own: &Matrix, config: &Bench) -> Result<()> {
        barrier(self.team.world())?;
        let report = self.once(own, config)?.report;
        self.seconds.push(report.seconds);
        self.last = Some(report);
        Ok(())
    }
}

/// The product in one process, on the root.
struct OneProcess {
    ctx: Option<Context>,
    result: SymmetricMatrix,
    seconds: Vec<f64>,
}

impl OneProcess {
    /// Computes on the root while the others wait; the seconds on the root.
    fn run(&mut self, world: &dyn Transport, whole: Option<&Matrix>, config: &Bench) -> Result<Option<f64>> {
        let (Some(ctx), Some(whole)) = (&self.ctx, whole) else {
            agree(world, Ok(()))?;
            return Ok(None);
        };
        let start = Instant::now();
        let done = syrk_into(
            ctx,
            whole,
            config.precision_bits,
            &SyrkOptions::new().accuracy(config.accuracy),
            &mut self.result,
        );
        let seconds = start.elapsed().as_secs_f64();
        agree(world, done.map(drop))?;
        Ok(Some(seconds))
    }
}

/// The issue rates of all threads of all ranks, measured at the same time; on every rank.
fn all_rates(world: &dyn Transport, threads: usize) -> Result<Option<IssueRates>> {
    barrier(world)?;
    let mut rates = IssueRates::measure(threads).unwrap_or_default().0.map(|rate| rate as u64);
    world.all_reduce(Reduction::Sum, &mut rates)?;
    Ok(rates.iter().any(|&rate| rate > 0).then_some(IssueRates(rates.map(|rate| rate as f64))))
}

/// The report, on the root.
fn summarise(
    config: &Bench,
    comparisons: &[Comparison],
    reference: &OneProcess,
    rates: &[IssueRates],
    threads: usize,
) -> Option<RanksBench> {
    reference.ctx.as_ref()?;
    let Bench { rows, cols, precision_bits, runs, .. } = *config;
    let limit = Limit { operation: Operation::Syrk, rows, cols, precision_bits }.least(rates, f64::INFINITY);
    let limit_seconds = limit.as_ref().map(|limit| limit.seconds).filter(|&seconds| seconds > 0.0);
    let one_process = Spread::of(&reference.seconds);
    let first = Spread::of(&comparisons[0].seconds);
    let report = |comparison: &Comparison| {
        let seconds = Spread::of(&comparison.seconds);
        ComparisonReport {
            name: comparison.name.clone(),
            ratio: seconds.median / one_process.median,
            ratio_of_least: seconds.min / one_process.min,
            over_first: seconds.median / first.median,
            over_first_of_least: seconds.min / first.min,
            limit_ratio: limit_seconds.map(|limit| seconds.median / limit),
            cluster: comparison.last.clone().unwrap_or_default(),
            same_bits: comparison.same_bits,
            seconds,
        }
    };
    Some(RanksBench {
        operation: "syrk",
        rows,
        cols,
        precision_bits,
        runs,
        ranks: comparisons[0].team.size(),
        nodes: comparisons[0].team.layout().nodes.len(),
        threads,
        window: comparisons[0].team.window_kind(),
        limit_kernel: limit.as_ref().map(|limit| limit.kernel),
        multiply_adds_per_second: limit.map(|limit| limit.multiply_adds),
        limit_seconds,
        one_process,
        comparisons: comparisons.iter().map(report).collect(),
        machine: Machine::look(),
    })
}

/// The report for people.
fn table(report: &RanksBench) -> String {
    let RanksBench { rows, cols, precision_bits, runs, ranks, nodes, threads, window, .. } = report;
    let mut lines = vec![
        format!(
            "syrk {rows} x {cols}, {precision_bits} bits, {ranks} ranks on {nodes} nodes, {threads} threads, \
             {window} windows, {runs} runs"
        ),
        format!("{}  over one process, over the limit", header()),
        row("one process", &report.one_process, ""),
    ];
    for comparison in &report.comparisons {
        let limit = comparison.limit_ratio.map_or(String::new(), |ratio| format!(", {ratio:.2}"));
        let bits = if comparison.same_bits { "" } else { ", OTHER BITS" };
        let ratios = format!("{:.3} (least {:.3}){limit}{bits}", comparison.ratio, comparison.ratio_of_least);
        lines.push(row(&comparison.name, &comparison.seconds, &ratios));
        let plan = &comparison.cluster;
        lines.push(format!(
            "    {} batches, {} bands, {} chunks, {} planned per node; {}{}",
            plan.batches,
            plan.bands,
            plan.chunks,
            format_bytes(plan.planned_bytes),
            plan.team.as_ref().map_or(String::new(), |team| phases(&team.rank_phases)),
            plan.team.as_ref().map_or(String::new(), hidden)
        ));
    }
    lines.join("\n")
}

/// How much of the exchange overlapped with products.
fn hidden(team: &TeamReport) -> String {
    match team.exchanged_bytes {
        0 => String::new(),
        _ => format!(", {:.1} % of the exchange during products", 100.0 * team.exchange_hidden),
    }
}

/// The longest of each phase over the ranks.
fn phases(phases: &RankPhases) -> String {
    let RankPhases { scale, windows, to_residues, product, exchange, reconstruct, wait } = phases;
    let all = [
        ("scale", scale),
        ("windows", windows),
        ("to_residues", to_residues),
        ("product", product),
        ("exchange", exchange),
        ("reconstruct", reconstruct),
        ("wait", wait),
    ];
    let text =
        |(name, seconds): &(&str, &sunzi::distributed::Spread)| format!("{name} {}", format_seconds(seconds.max));
    all.iter().map(text).collect::<Vec<_>>().join(", ")
}
