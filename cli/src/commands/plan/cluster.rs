//! `sunzi plan --nodes N --ranks-per-node R`: how a SYRK would run on a cluster that need not be there.

use crate::args::PlanSyrk;
use crate::session::Session;
use serde::Serialize;
use sunzi::distributed::{ClusterShape, NodePlan, TeamPlan, even_operand_bytes, plan_syrk_cluster};
use sunzi::{Plan, Result};
use sunzi_lab::engine::Engine;
use sunzi_lab::engine::limited;
use sunzi_lab::memory::Budget;
use sunzi_lab::session::Session as _;
use sunzi_lab::units::format_bytes;

/// The report: the plan, and what the ranks of a node hold beside it.
#[derive(Serialize)]
struct ClusterPlanReport<'a> {
    #[serde(flatten)]
    plan: &'a Plan,
    ranks_per_node: usize,
    threads_per_rank: usize,
    operand_bytes: u64,
}

/// Plans for the cluster. The limit is that of a node, and covers the operands of its ranks too; what this process
/// holds does not count.
pub fn run(session: &mut Session, config: &PlanSyrk, cluster: ClusterShape) -> Result<()> {
    let PlanSyrk { rows, cols, precision: precision_bits, .. } = *config;
    let rank_bytes =
        even_operand_bytes(rows, cluster.nodes.saturating_mul(cluster.ranks_per_node), cols, precision_bits);
    let operand_bytes = rank_bytes.saturating_mul(cluster.ranks_per_node as u64);
    let budget = config.engine.memory_bytes.map(|limit| Budget::of_absent_node(limit).with_held(operand_bytes));
    // Planning takes one thread here, however many a rank has there.
    let engine = Engine { threads: Some(1), ..Engine::clone(&config.engine) };
    let (builder, restate) = limited(session.context(&engine)?.self_check(config.self_check), budget);
    let plan = plan_syrk_cluster(&builder.build()?, cluster, rows, cols, precision_bits).map_err(restate)?;
    session.finish_report(&ClusterPlanReport {
        plan: &plan,
        ranks_per_node: cluster.ranks_per_node,
        threads_per_rank: cluster.threads,
        operand_bytes,
    })?;
    if let Some(budget) = &budget {
        session.say(&format!("memory          {}", budget.describe()))?;
    }
    session.say(&describe(&plan, cluster, operand_bytes))
}

fn describe(plan: &Plan, cluster: ClusterShape, operand_bytes: u64) -> String {
    // The node that takes most; the others differ by a few rows and tiles.
    let Some(team) = &plan.team else { return String::new() };
    let Some(node) = team.per_node.iter().max_by_key(|node| node.planned_bytes) else { return String::new() };
    let mut lines = vec![
        format!(
            "Q := P^T P: {} x {} from {} contracted rows at {} bits (working {}), kernel {}",
            plan.rows, plan.cols, plan.contracted, plan.precision_bits, plan.working_bits, plan.kernel
        ),
        format!(
            "cluster         {} node(s) of {} rank(s) of {} thread(s): {} ranks, {} workers",
            team.nodes, cluster.ranks_per_node, cluster.threads, team.ranks, plan.threads
        ),
        format!("rows            {} on a node", node.rows),
        format!("grid            {} x {} ranks own the result", team.grid.0, team.grid.1),
        format!("tiles           {0} x {0}", team.tile_size),
        format!("primes          {}", plan.primes),
        format!("batches         {} of {} primes", plan.batches, plan.batch_primes),
        format!("bands           {} of {} columns", plan.bands, plan.band_columns),
        format!("chunks          {} of {} rows on a node", plan.chunks, node.chunk_rows),
        format!(
            "jobs            {} per batch and node, by worker {} to {}",
            node.jobs, node.jobs_per_worker.0, node.jobs_per_worker.1
        ),
        format!("balance         largest load {:.4} of the mean of a node", plan.load_max_over_mean),
    ];
    lines.extend(describe_bytes((plan, team), node, operand_bytes));
    lines.join("\n")
}

fn describe_bytes((plan, team): (&Plan, &TeamPlan), node: &NodePlan, operand_bytes: u64) -> Vec<String> {
    let bytes = &node.bytes;
    let parts = [
        ("operands", operand_bytes, "held by the ranks of a node, not planned"),
        ("result", bytes.result, "tiles of the ranks of a node, at most"),
        ("to_residues", bytes.operand_window, "residues of the operands, one batch, shared by the node"),
        ("product", bytes.product_window, "residues of the product, all primes, shared by the node"),
        ("scratch", bytes.scratch, "kernel scratch of all workers of a node"),
        ("reconstruct", bytes.integers, "integers of all workers of a node"),
        ("tables", bytes.tables, "moduli and conversion tables of each rank"),
        ("lists", bytes.lists, "shifts, jobs, messages"),
        ("sent", team.sent_bytes, "from a node to the others, at most"),
    ];
    let line = |(part, bytes, remark): (&str, u64, &str)| format!("{part:<15} {:>11}  {remark}", format_bytes(bytes));
    let mut lines = parts.map(line).to_vec();
    lines.push(format!(
        "planned         {:>11}  ({} bytes on a node, operands excluded)",
        format_bytes(plan.planned_bytes),
        plan.planned_bytes
    ));
    lines
}
