//! `sunzi syrk` and `sunzi gemm` on several ranks: rows shared out, product, result gathered and written by the root.

pub(super) mod factor;
mod input;
mod observe;
mod trace;

use crate::commands::product;
use crate::commands::product::{Operands, Product};
use crate::session::{Session, check_output};
use crate::signals::while_computing;
use input::Inputs;
use serde::Serialize;
use std::time::Instant;
use sunzi::advanced::store::{allocated_bytes, peak_bytes, reset_peak_bytes};
use sunzi::comm::{Transport, agree, agreed};
use sunzi::distributed::{DistOptions, DistOutcome, NodePlan, PlanHook, Team, TeamOptions, gemm_rows, syrk};
use sunzi::{Context, Error, Matrix, Plan, Report, Result, Uplo};
use sunzi_lab::memory::Budget;
use sunzi_lab::session::ROOT;
use sunzi_lab::session::Session as _;
use sunzi_lab::trace::Trace;
use sunzi_lab::units::describe;
use sunzi_lab::units::{format_bytes, format_seconds};

/// The report: that of the operation, the time of the files, and what each node took.
#[derive(Serialize)]
struct RanksReport<'a> {
    #[serde(flatten)]
    operation: &'a Report,
    result_rows: usize,
    result_cols: usize,
    result_precision_bits: u32,
    input_seconds: f64,
    output_seconds: f64,
    /// The most bytes that each node's ranks had allocated during the call, windows included, operands not.
    node_peak_bytes: Vec<u64>,
}

/// What the product left behind on this rank.
struct Computed {
    outcome: DistOutcome,
    node_peak_bytes: Vec<u64>,
}

/// Runs on all ranks of `world`.
pub fn run(session: &mut Session, config: &Product, world: &dyn Transport) -> Result<()> {
    let root = world.rank() == ROOT;
    agree(world, if root { check_output(&config.output) } else { Ok(()) })?;
    let options = TeamOptions { window: config.choices.window, ..agreed(world, TeamOptions::from_environment())? };
    let mut team = Team::new(world.split(0)?, options)?;
    let mut trace = agreed(world, Trace::begin(config.choices.trace.as_deref().filter(|_| root)))?;
    let (inputs, input_seconds) = trace.span("read", || Inputs::read(session, config, &team))?;
    let (computed, _) = trace.span("compute", || while_computing(|| compute(session, config, &inputs, &mut team)))?;
    let Computed { outcome: DistOutcome { result, report, spans }, node_peak_bytes } = computed;
    if config.choices.trace.is_some() {
        trace::add(&mut trace, &team, &spans)?;
    }
    drop(inputs);
    let written = Instant::now();
    let (whole, _) = trace.span("gather", || result.gather(world, ROOT))?;
    let shape = whole.as_ref().map(describe);
    let write = || whole.map_or(Ok(()), |whole| product::write(session, config, &whole));
    let (outcome, _) = trace.span("write", || Ok(write()))?;
    agree(world, outcome)?;
    let all = RanksReport {
        operation: &report,
        result_rows: result.map().rows,
        result_cols: result.map().cols,
        result_precision_bits: result.precision_bits(),
        input_seconds,
        output_seconds: written.elapsed().as_secs_f64(),
        node_peak_bytes,
    };
    team.close()?;
    let outcome = trace.finish(session).and_then(|()| session.finish_report(&all));
    agree(world, outcome)?;
    match shape {
        Some(shape) => session.say(&summary(config, &shape, &all)),
        None => Ok(()),
    }
}

fn compute(session: &Session, config: &Product, inputs: &Inputs, team: &mut Team) -> Result<Computed> {
    let builder = session
        .context(&config.choices.engine)?
        .self_check(config.choices.self_check)
        .freivalds(config.choices.freivalds);
    let budget = node_budget(config, inputs, team)?;
    let builder = match &budget {
        Some(budget) => builder.memory_bytes(budget.left()),
        None => builder,
    };
    let ctx = agreed(team.world(), builder.build())?;
    let before = allocated_bytes();
    reset_peak_bytes();
    let outcome = multiply(session, &ctx, config, inputs, team).map_err(|error| match &budget {
        Some(budget) => budget.restate(error),
        None => error,
    })?;
    let own = [peak_bytes().saturating_sub(before), team.window_bytes()];
    let mut all = vec![[0; 2]; team.size()];
    team.world().all_gather(&own, all.as_flattened_mut())?;
    // Each rank of a node says the bytes of the node's windows.
    let of_node = |ranks: &Vec<usize>| ranks.iter().map(|&rank| all[rank][0]).sum::<u64>() + all[ranks[0]][1];
    let node_peak_bytes = team.layout().nodes.iter().map(of_node).collect();
    Ok(Computed { outcome, node_peak_bytes })
}

fn multiply(
    session: &Session,
    ctx: &Context,
    config: &Product,
    inputs: &Inputs,
    team: &mut Team,
) -> Result<DistOutcome> {
    let nodes = |plan: &Plan| plan.team.iter().flat_map(|team| team.per_node.clone()).collect::<Vec<_>>();
    let tell = |plan: &Plan| nodes(plan).iter().for_each(|node| session.note(&plan_line(plan, node)));
    let on_plan = Some(PlanHook(&tell));
    let (alpha, beta, accumulate) = (inputs.alpha.as_ref(), inputs.beta.as_ref(), inputs.accumulate.as_ref());
    let uplo = if let Operands::Syrk { uplo, .. } = config.operands { uplo } else { Uplo::Lower };
    let exact_integers = config.choices.exact_integers;
    let options = DistOptions { uplo, exact_integers, alpha, beta, accumulate, on_plan, ..DistOptions::default() };
    match inputs.operands.as_slice() {
        [p] => syrk(ctx, team, &[p.view()], inputs.precision_bits, &options),
        [a, b] => gemm_rows(ctx, team, (&[a.view()], &[b.view()]), inputs.precision_bits, &options),
        _ => Err(Error::InvalidArgument("a product with the wrong number of operands".into())),
    }
}

/// What a node is about to take.
fn plan_line(plan: &Plan, node: &NodePlan) -> String {
    let nodes = match node.count {
        1 => format!("node {}", node.first_node),
        count => format!("{count} nodes like {}", node.first_node),
    };
    format!(
        "{nodes}: {} ranks, {} workers, {} rows; {} planned (operands {}, products {}); \
         batches {}, bands {}, chunks {}",
        node.ranks,
        node.workers,
        node.rows,
        format_bytes(node.planned_bytes),
        format_bytes(node.bytes.operand_window),
        format_bytes(node.bytes.product_window),
        plan.batches,
        plan.bands,
        plan.chunks,
    )
}

/// What is left of the limit of a node, all its ranks together, and the whole result beside its tiles on the root's.
fn node_budget(config: &Product, inputs: &Inputs, team: &Team) -> Result<Option<Budget>> {
    let Some(limit) = config.choices.engine.memory_bytes else { return Ok(None) };
    let shape = match inputs.operands.as_slice() {
        [p] => (p.cols(), p.cols()),
        [a, b] => (a.cols(), b.cols()),
        _ => (0, 0),
    };
    let gathered = Matrix::bytes_for(shape.0, shape.1, inputs.precision_bits);
    let budget = Budget::now(limit, config.choices.engine.thread_count()).of_node(team.node())?;
    Ok(Some(if team.layout().node_of[team.rank()] == 0 { budget.with_held(gathered) } else { budget }))
}

fn summary(config: &Product, shape: &str, all: &RanksReport<'_>) -> String {
    let RanksReport { operation, input_seconds, output_seconds, .. } = all;
    let team = operation.team.as_ref().map(|team| &team.plan);
    let (ranks, nodes) = team.map_or((1, 1), |team| (team.ranks, team.nodes));
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    format!(
        "{}: {shape} ({}, {} primes, {} rank{} on {} node{}, {} thread{}, {} planned a node{}) in {} (files {})",
        config.output.path.display(),
        operation.kernel,
        operation.primes,
        ranks,
        plural(ranks),
        nodes,
        plural(nodes),
        operation.threads,
        plural(operation.threads),
        format_bytes(operation.planned_bytes),
        if operation.checked { ", self-checked" } else { "" },
        format_seconds(operation.seconds),
        format_seconds(input_seconds + output_seconds),
    )
}
