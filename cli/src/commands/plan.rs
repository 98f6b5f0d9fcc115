//! `sunzi plan`: how a product or a factorisation would run, without computing it.

mod cluster;

use crate::args::{PlanCholesky, PlanGemm, PlanOperation, PlanSyrk};
use crate::session::Session;
use serde::Serialize;
use sunzi::{
    CholeskyOptions, CholeskyPlan, Context, Matrix, Plan, Result, UpdatePlan, plan_cholesky, plan_gemm, plan_syrk,
};
use sunzi_lab::engine::{Engine, limited};
use sunzi_lab::session::Session as _;
use sunzi_lab::units::format_bytes;

/// The report: the plan, and what the operands take beside it.
#[derive(Serialize)]
struct PlanReport<'a, P> {
    #[serde(flatten)]
    plan: &'a P,
    operand_bytes: u64,
}

/// Plans what was asked for.
pub fn run(session: &mut Session, operation: &PlanOperation) -> Result<()> {
    match operation {
        PlanOperation::Syrk(args) => match args.cluster() {
            Some(shape) => cluster::run(session, args, shape),
            None => syrk(session, args),
        },
        PlanOperation::Gemm(args) => gemm(session, args),
        PlanOperation::Cholesky(args) => cholesky(session, args),
    }
}

fn syrk(session: &mut Session, args: &PlanSyrk) -> Result<()> {
    let PlanSyrk { rows, cols, precision, self_check, ref engine, .. } = *args;
    let operand_bytes = Matrix::bytes_for(rows, cols, precision);
    product(session, engine, self_check, operand_bytes, |ctx| plan_syrk(ctx, rows, cols, precision))
}

fn gemm(session: &mut Session, args: &PlanGemm) -> Result<()> {
    let PlanGemm { rows: contracted, cols, result_rows, precision, self_check, ref engine } = *args;
    let rows = result_rows.unwrap_or(cols);
    let bytes = |cols| Matrix::bytes_for(contracted, cols, precision);
    let operand_bytes = bytes(rows).saturating_add(bytes(cols));
    product(session, engine, self_check, operand_bytes, |ctx| plan_gemm(ctx, rows, cols, contracted, precision))
}

fn product(
    session: &mut Session,
    engine: &Engine,
    self_check: bool,
    operand_bytes: u64,
    make: impl Fn(&Context) -> Result<Plan>,
) -> Result<()> {
    let budget = engine.budget().map(|budget| budget.with_held(operand_bytes));
    let (builder, restate) = limited(session.context(engine)?.self_check(self_check), budget);
    let plan = make(&builder.build()?).map_err(restate)?;
    session.finish_report(&PlanReport { plan: &plan, operand_bytes })?;
    if let Some(budget) = &budget {
        session.say(&format!("memory          {}", budget.describe()))?;
    }
    session.say(&describe(&plan, operand_bytes))
}

/// The plan of a factorisation.
fn cholesky(session: &mut Session, config: &PlanCholesky) -> Result<()> {
    let PlanCholesky { rows: order, precision: precision_bits, tile: tile_rows, .. } = *config;
    let operand_bytes = Matrix::bytes_for(order, order, precision_bits);
    let budget = config.engine.budget().map(|budget| budget.with_held(operand_bytes));
    let (builder, restate) = limited(session.context(&config.engine)?, budget);
    let options = CholeskyOptions { tile_rows };
    let plan = plan_cholesky(&builder.build()?, order, precision_bits, &options).map_err(restate)?;
    session.finish_report(&PlanReport { plan: &plan, operand_bytes })?;
    if let Some(budget) = &budget {
        session.say(&format!("memory          {}", budget.describe()))?;
    }
    session.say(&describe_cholesky(&plan, operand_bytes))
}

fn describe_cholesky(plan: &CholeskyPlan, operand_bytes: u64) -> String {
    let CholeskyPlan { order, precision_bits, working_bits, kernel, threads, primes, tile_rows, tiles, .. } = plan;
    let rest = plan.planned_bytes - plan.tile_bytes - plan.factor_bytes;
    let mut lines = vec![
        format!(
            "A = L L^T: {order} x {order} at {precision_bits} bits (working {working_bits}), kernel {kernel}, \
             {threads} thread{}",
            if *threads == 1 { "" } else { "s" }
        ),
        format!("primes          {primes}"),
        format!("tiles           {tiles} tile row(s) of {tile_rows} rows"),
        format!("operands        {:>11}  given, not planned", format_bytes(operand_bytes)),
        format!("result          {:>11}", format_bytes(plan.factor_bytes)),
        format!("tiles           {:>11}  residues and integers", format_bytes(plan.tile_bytes)),
        format!("rest            {:>11}  scratch, tables, lists", format_bytes(rest)),
    ];
    lines.extend(plan.devices.iter().map(|UpdatePlan { device, kernel, moduli, tile_bytes }| {
        let name = format!("{} {}", device.kind, device.index);
        let bytes = format_bytes(*tile_bytes);
        format!("{name:<15} {}: updates by {kernel}, {moduli} moduli, {bytes} of its memory for a tile", device.name)
    }));
    lines.push(planned_line(plan.planned_bytes));
    lines.join("\n")
}

/// The shape of a product and what it runs on.
fn heading(plan: &Plan) -> String {
    let name = if plan.operation == "syrk" { "Q := P^T P" } else { "C := A B" };
    format!(
        "{name}: {} x {} from {} contracted rows at {} bits (working {}), kernel {}, {} thread{}",
        plan.rows,
        plan.cols,
        plan.contracted,
        plan.precision_bits,
        plan.working_bits,
        plan.kernel,
        plan.threads,
        if plan.threads == 1 { "" } else { "s" }
    )
}

/// A product on devices: how each is cut, and what it takes there and here.
fn describe_devices(plan: &Plan, operand_bytes: u64) -> String {
    let line = |part: &str, bytes: u64, remark: &str| {
        format!("{part:<15} {:>11}  {remark}", format_bytes(bytes)).trim_end().to_string()
    };
    let mut lines = vec![heading(plan), format!("moduli          {}", plan.primes)];
    for device in &plan.devices {
        let (cut, bytes) = (&device.cut, &device.bytes);
        lines.push(format!(
            "{:<15} {}: {} moduli, {} planes, in batches of {} moduli, bands of {} columns, chunks of {} rows",
            format!("{} {}", device.kind, device.index),
            device.name,
            device.moduli,
            device.planes,
            cut.batch_moduli,
            cut.band_cols,
            cut.chunk_rows
        ));
        let parts = [
            ("  input", bytes.input, "big floats on their way in"),
            ("  digits", bytes.digits, "scaled entries of a chunk"),
            ("  to_residues", bytes.planes, "operand planes of a batch"),
            ("  product", bytes.sums, "sums of a strip"),
            ("  residues", bytes.residues, "of the product, of a band"),
            ("  output", bytes.output, "integers and big floats on their way out"),
            ("  tables", bytes.tables, "moduli, conversion tables, shifts"),
            ("  on the device", device.planned_bytes, "in all"),
        ];
        lines.extend(parts.map(|(part, bytes, remark)| line(part, bytes, remark)));
    }
    lines.push(line("operands", operand_bytes, "given, not planned"));
    lines.push(line("result", plan.bytes.result, ""));
    lines.push(line("copies", plan.bytes.scratch, "host memory that copies run to and from"));
    lines.push(planned_line(plan.planned_bytes));
    lines.join("\n")
}

fn describe(plan: &Plan, operand_bytes: u64) -> String {
    if !plan.devices.is_empty() {
        return describe_devices(plan, operand_bytes);
    }
    let mut lines = vec![
        heading(plan),
        format!("primes          {}", plan.primes),
        format!("batches         {} of {} primes", plan.batches, plan.batch_primes),
        format!("bands           {} of {} columns", plan.bands, plan.band_columns),
        format!("chunks          {} of {} rows", plan.chunks, plan.chunk_rows),
        format!("jobs            {} per batch, by worker {}", plan.jobs_per_worker.iter().sum::<usize>(), jobs(plan)),
        format!("balance         largest load {:.4} of the mean", plan.load_max_over_mean),
    ];
    let parts = [
        ("operands", operand_bytes, "given, not planned"),
        ("result", plan.bytes.result, ""),
        ("to_residues", plan.bytes.operand_window, "residues of the operands, one batch"),
        ("product", plan.bytes.product_window, "residues of the product, all primes"),
        ("scratch", plan.bytes.scratch, "kernel scratch of all workers"),
        ("reconstruct", plan.bytes.integers, "integers of all workers"),
        ("tables", plan.bytes.tables, "moduli and conversion tables"),
        ("lists", plan.bytes.lists, "shifts, jobs"),
    ];
    for (part, bytes, remark) in parts {
        lines.push(format!("{part:<15} {:>11}  {remark}", format_bytes(bytes)).trim_end().to_string());
    }
    lines.push(planned_line(plan.planned_bytes));
    lines.join("\n")
}

fn planned_line(bytes: u64) -> String {
    format!("planned         {:>11}  ({bytes} bytes, operands excluded)", format_bytes(bytes))
}

/// Jobs of each worker; where there are many workers, the range only.
fn jobs(plan: &Plan) -> String {
    let counts = &plan.jobs_per_worker;
    if counts.len() <= 16 {
        return format!("{counts:?}");
    }
    let (least, most) = (counts.iter().min().copied().unwrap_or(0), counts.iter().max().copied().unwrap_or(0));
    format!("{least} to {most}")
}
