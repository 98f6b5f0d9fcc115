//! `sunzi bench`: passes the arguments on to the laboratory.

use crate::args::{
    BatchOperation, Bench, BenchBatch, BenchCholesky, BenchOperation, BenchStep, Comparison, ElementType,
};
use crate::ranks::Ranks;
use crate::session::Session;
use std::path::PathBuf;
use sunzi::advanced::device::DeviceName;
use sunzi::comm::Transport;
use sunzi::comm::window::WindowKind;
use sunzi::{Error, Result};
use sunzi_lab::baselines::Operation;
use sunzi_lab::bench;
use sunzi_session::engine::Engine;

/// Whether ranks work on it together.
pub fn is_shared(args: &Bench) -> bool {
    matches!(
        args.operation,
        BenchOperation::Syrk(_)
            | BenchOperation::Cholesky(_)
            | BenchOperation::Trsm(_)
            | BenchOperation::Solve(_)
            | BenchOperation::Step(_)
    )
}

/// The words of a benchmark that one process runs.
pub fn name(args: &Bench) -> &'static str {
    match args.operation {
        BenchOperation::Gemm(_) => "bench gemm",
        BenchOperation::Batch(_) => "bench batch",
        BenchOperation::Kernel(_) => "bench kernel",
        _ => "bench",
    }
}

/// The picture that is requested of an operation on big floats.
fn plot(operation: &BenchOperation) -> Option<PathBuf> {
    let comparison = match operation {
        BenchOperation::Syrk(args) => &args.comparison,
        BenchOperation::Gemm(args) => &args.comparison,
        BenchOperation::Cholesky(args) => &args.comparison,
        BenchOperation::Trsm(args) => &args.comparison,
        BenchOperation::Solve(args) => &args.comparison,
        BenchOperation::Batch(_) | BenchOperation::Step(_) | BenchOperation::Kernel(_) => return None,
    };
    comparison.plot.clone()
}

/// Runs a benchmark, `together` with other ranks or in one process.
pub fn run(session: &mut Session, args: Bench, all: &Ranks, together: Option<&dyn Transport>) -> Result<()> {
    let plot = plot(&args.operation);
    let options = match args.operation {
        BenchOperation::Syrk(args) => bench::Bench {
            cols: args.cols,
            self_check: args.self_check,
            memory_parts: args.memory_fractions,
            window: args.window,
            ..options(Operation::Syrk, args.rows, args.comparison)
        },
        BenchOperation::Gemm(args) => bench::Bench {
            cols: args.cols,
            self_check: args.self_check,
            ..options(Operation::Gemm, args.rows, args.comparison)
        },
        BenchOperation::Cholesky(args) if args.element_type == ElementType::Double => {
            let options = doubles(args);
            let world = together.map_or(Ok(bench::BenchRanks::alone()), |world| all.world(world))?;
            return bench::run_double(session, &options, &world);
        }
        BenchOperation::Cholesky(args) => bench::Bench {
            tile_rows: args.tile,
            ..options(Operation::Cholesky, args.rows.unwrap_or(1000), args.comparison)
        },
        BenchOperation::Trsm(args) => {
            let rows = args.rows;
            bench::Bench { cols: args.cols.unwrap_or(rows), ..options(Operation::Trsm, rows, args.comparison) }
        }
        BenchOperation::Solve(args) => {
            bench::Bench { cols: args.cols, ..options(Operation::Solve, args.rows, args.comparison) }
        }
        BenchOperation::Batch(args) => return bench::run_batch(session, &batch(args)),
        BenchOperation::Step(args) => {
            let world = together.map_or(Ok(bench::BenchRanks::alone()), |world| all.world(world))?;
            return bench::run_step(session, &step(args), world.ranks);
        }
        BenchOperation::Kernel(args) => {
            let engine = Engine::clone(&args.engine);
            let options = bench::BenchKernel { rows: args.rows, cols: args.cols, runs: args.runs, engine };
            return bench::run_kernel(session, &options);
        }
    };
    match (together, plot) {
        (Some(_), Some(_)) => {
            Err(Error::InvalidArgument("--plot requires a single process: run the command without mpirun".into()))
        }
        (Some(world), None) => bench::run_on_ranks(session, &options, world),
        (None, Some(picture)) => bench::run_sweep(session, &options, &picture),
        (None, None) => bench::run(session, &options),
    }
}

/// An operation on square operands of `rows` rows.
fn options(operation: Operation, rows: usize, comparison: Comparison) -> bench::Bench {
    bench::Bench {
        operation,
        rows,
        cols: rows,
        precision_bits: comparison.precision_bits(),
        engine: Engine::clone(&comparison.engine),
        baselines: comparison.against.into_iter().filter(|name| !name.is_empty()).collect(),
        runs: comparison.runs,
        accuracy: comparison.accuracy,
        self_check: false,
        tile_rows: None,
        memory_parts: Vec::new(),
        window: WindowKind::Auto,
    }
}

/// A batch of small problems.
fn batch(args: BenchBatch) -> bench::BenchBatch {
    let operation = match args.operation {
        BatchOperation::Syrk => Operation::Syrk,
        BatchOperation::Gemm => Operation::Gemm,
        BatchOperation::Cholesky => Operation::Cholesky,
        BatchOperation::Trsm => Operation::Trsm,
    };
    let options = options(operation, args.rows, Comparison::clone(&args.comparison));
    bench::BenchBatch {
        operation,
        count: args.count,
        rows: args.rows,
        cols: args.cols.unwrap_or(args.rows),
        precision_bits: options.precision_bits,
        baselines: options.baselines,
        runs: options.runs,
        accuracy: options.accuracy,
        engine: options.engine,
    }
}

/// A step of an interior-point method.
fn step(args: BenchStep) -> bench::BenchStep {
    bench::BenchStep {
        blocks: args.blocks,
        order: args.order,
        cols: args.cols,
        precision_bits: args.precision,
        baselines: args.against.into_iter().filter(|name| !name.is_empty()).collect(),
        runs: args.runs,
        engine: Engine::clone(&args.engine),
    }
}

/// A factorisation of doubles, on the software device where none is named.
fn doubles(args: BenchCholesky) -> bench::BenchDouble {
    let mut engine = Engine::clone(&args.comparison.engine);
    let devices_given = !engine.devices.is_empty();
    if !devices_given {
        engine.devices = vec![DeviceName::SOFT];
    }
    bench::BenchDouble {
        rows: args.rows.unwrap_or(2000),
        tile_rows: args.tile,
        policy: args.policy,
        eviction: args.eviction,
        runs: args.comparison.runs,
        devices_given,
        engine,
    }
}
