//! A product on several ranks: rows distributed, product, result gathered by the root.

use super::rows::{RankInputs, is_per_rank};
use super::{ComputedProduct, Operands, Product};
use crate::commands::observe;
use crate::files::product_precision;
use crate::input::Announced;
use crate::rank_memory::{self, Held, announced};
use crate::session::Session;
use crate::signals::while_computing;
use sunzi::advanced::store::{allocated_bytes, peak_bytes, reset_peak_bytes};
use sunzi::comm::{Transport, agreed};
use sunzi::distributed::{DistMatrix, DistOptions, DistOutcome, NodePlan, PlanHook};
use sunzi::distributed::{Team, TeamOptions, even_share, gemm_rows, plan_gemm, plan_syrk, syrk, weighted_gram};
use sunzi::plans::{Plan, ProductPlanOptions};
use sunzi::{Context, Matrix, Op, Result, Uplo};
use sunzi_session::engine::limited;
use sunzi_session::memory::Budget;
use sunzi_session::session::ROOT;
use sunzi_session::trace::Trace;
use sunzi_session::units::format_bytes;

/// Reads, multiplies and gathers. Collective.
///
/// # Errors
/// The errors of reading, and of the operation; the same on all ranks.
pub fn compute(
    session: &Session,
    config: &Product,
    world: &dyn Transport,
    trace: &mut Trace,
) -> Result<ComputedProduct> {
    let options = agreed(world, TeamOptions::from_environment())?.window(config.choices.window);
    let mut team = Team::new(world.split(0)?, options)?;
    admit(session, config, &team)?;
    let (inputs, input_seconds) = trace.span("read", || RankInputs::read(session, config, &team))?;
    let (made, _) =
        trace.span("compute", || while_computing(|| multiply_counted(session, config, &inputs, &mut team)))?;
    let (DistOutcome { result, report, spans, .. }, node_peak_bytes) = made;
    if config.choices.trace.is_some() {
        observe::add_phases(trace, &team, &spans)?;
    }
    drop(inputs);
    let (result, gather_seconds) = trace.span("gather", || result.gather(world, ROOT))?;
    team.close()?;
    Ok(ComputedProduct { result, report, input_seconds, gather_seconds, node_peak_bytes: Some(node_peak_bytes) })
}

/// Refuses a memory limit of a node in which the command cannot run to its end, before anything is read; files for each
/// rank and integers, whose product takes as many bits as they have, are refused afterwards. Collective.
fn admit(session: &Session, config: &Product, team: &Team) -> Result<()> {
    let (world, choices): (&dyn Transport, _) = (team.world(), &config.choices);
    let engine = &choices.engine;
    let operands = config.operands.files();
    if engine.memory_bytes.is_none() || choices.exact_integers || operands.iter().any(|path| is_per_rank(path)) {
        return Ok(());
    }
    let files = operands.iter().copied().chain(choices.accumulate.as_deref()).collect::<Vec<_>>();
    let reader = || Ok(config.reader(session, product_precision(choices.precision.bits, files[0], false)?));
    let Some((bits, found)) = announced(world, &files, reader)? else { return Ok(()) };
    let by_rows = |matrix: &Announced, transposed: bool| match transposed {
        true => (matrix.cols, matrix.rows),
        false => (matrix.rows, matrix.cols),
    };
    // Both with the contracted index as rows.
    let (left, right) = match config.operands {
        Operands::Syrk { op, .. } => (by_rows(&found[0], op == Op::Transpose), None),
        Operands::Gemm { op_a, op_b, .. } => {
            (by_rows(&found[0], op_a == Op::NoTranspose), Some(by_rows(&found[1], op_b == Op::Transpose)))
        }
    };
    let (rows, cols) = (left.1, right.map_or(left.1, |right| right.1));
    let share = even_share(left.0, world.size(), world.rank()).len();
    let own = [Some(left), right].into_iter().flatten().zip(&found);
    let added_bytes = found.get(operands.len()).map_or(0, Announced::bytes);
    let held = Held {
        own_bytes: own.map(|((_, cols), matrix)| Matrix::bytes_for(share, cols, matrix.bits)).sum::<u64>()
            + added_bytes.div_ceil(world.size() as u64),
        whole_bytes: found.iter().map(Announced::bytes).max().unwrap_or(0),
        gathered_bytes: Matrix::bytes_for(rows, cols, bits),
    };
    let options = ProductPlanOptions::new().accuracy(choices.accuracy);
    rank_memory::admit(team, engine, config.context(session)?, &held, |ctx| {
        let plan = match right {
            None => plan_syrk(ctx, team, left, bits, &options),
            Some(_) => plan_gemm(ctx, team, (rows, cols), left.0, bits, &options),
        };
        vec![plan.map(drop)]
    })
}

/// The product, and the most bytes that the ranks of each node had allocated meanwhile.
fn multiply_counted(
    session: &Session,
    config: &Product,
    inputs: &RankInputs,
    team: &mut Team,
) -> Result<(DistOutcome, Vec<u64>)> {
    let (builder, restate) = limited(config.context(session)?, node_budget(config, inputs, team)?);
    let ctx = agreed(team.world(), builder.build())?;
    let before = allocated_bytes();
    reset_peak_bytes();
    let outcome = multiply(session, &ctx, config, inputs, team).map_err(restate)?;
    let own = [peak_bytes().saturating_sub(before), team.window_bytes()];
    let mut all = vec![[0; 2]; team.size()];
    team.world().all_gather(&own, all.as_flattened_mut())?;
    // Each rank of a node reports the bytes of the node's windows.
    let of_node = |ranks: &Vec<usize>| ranks.iter().map(|&rank| all[rank][0]).sum::<u64>() + all[ranks[0]][1];
    let node_peak_bytes = team.layout().nodes.iter().map(of_node).collect();
    Ok((outcome, node_peak_bytes))
}

fn multiply(
    session: &Session,
    ctx: &Context,
    config: &Product,
    inputs: &RankInputs,
    team: &mut Team,
) -> Result<DistOutcome> {
    let nodes = |plan: &Plan| plan.team.iter().flat_map(|team| team.per_node.clone()).collect::<Vec<_>>();
    let tell = |plan: &Plan| nodes(plan).iter().for_each(|node| session.note(&plan_line(plan, node)));
    let on_plan = Some(PlanHook(&tell));
    let (alpha, beta, accumulate) = (inputs.alpha.as_ref(), inputs.beta.as_ref(), inputs.accumulate.as_ref());
    let uplo = if let Operands::Syrk { uplo, .. } = config.operands { uplo } else { Uplo::Lower };
    let (exact_integers, accuracy) = (config.choices.exact_integers, config.choices.accuracy);
    let options = DistOptions::new()
        .uplo(uplo)
        .exact_integers(exact_integers)
        .accuracy(accuracy)
        .alpha(alpha)
        .beta(beta)
        .accumulate(accumulate)
        .on_plan(on_plan);
    let (rows, bits) = (inputs.operands.iter().map(Matrix::view).collect::<Vec<_>>(), inputs.precision_bits);
    match config.operands {
        Operands::Syrk { weights: Some(_), .. } => weighted_gram(ctx, team, &rows[..1], &rows[1..], bits, &options),
        Operands::Syrk { .. } => syrk(ctx, team, &rows, bits, &options),
        Operands::Gemm { .. } => gemm_rows(ctx, team, (&rows[..1], &rows[1..]), bits, &options),
    }
}

/// The memory that a node is about to take.
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

/// The part of a node's limit that the operands of all its ranks leave, and on the root's node also the whole result
/// next to its tiles.
fn node_budget(config: &Product, inputs: &RankInputs, team: &Team) -> Result<Option<Budget>> {
    let Some(limit) = config.choices.engine.memory_bytes else { return Ok(None) };
    // P^T P has as many rows and columns as P has columns; A^T B has as many rows as A has columns, and those of B.
    let cols = |operand: Option<&Matrix>| operand.map_or(0, Matrix::cols);
    let first = inputs.operands.first();
    let last = if matches!(config.operands, Operands::Syrk { .. }) { first } else { inputs.operands.last() };
    let gathered = Matrix::bytes_for(cols(first), cols(last), inputs.precision_bits);
    let own = inputs.operands.iter().map(Matrix::bytes).sum::<u64>()
        + inputs.accumulate.as_ref().map_or(0, DistMatrix::bytes);
    let budget = Budget::now(limit, config.choices.engine.thread_count(), own).of_node(team.node())?;
    Ok(Some(if team.layout().node_of[team.rank()] == 0 { budget.with_held(gathered) } else { budget }))
}
