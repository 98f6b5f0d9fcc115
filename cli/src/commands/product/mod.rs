//! `sunzi syrk` and `sunzi gemm`: files in, product out, within the memory limit of the process; on several ranks the
//! root reads, shares out, gathers and writes.

mod above_disk;
mod alone;
mod ranks;
mod rows;

use crate::args::{Gemm, NamedTriangle, Output, ProductArgs, ProductStorage, Syrk};
use crate::files::product_precision;
use crate::input::Reader;
use crate::number::parse_scalar;
use crate::progress::{Stage, product_seconds};
use crate::session::{Session, Work, check_output};
use crate::triangles::ADDED;
use rug::Float;
use serde::Serialize;
use std::path::{Path, PathBuf};
use sunzi::comm::window::WindowKind;
use sunzi::comm::{Transport, agree, agreed, local};
use sunzi::io::{FileInfo, Symmetry};
use sunzi::report::Report;
use sunzi::{Accuracy, ContextBuilder, Error, Matrix, Op, Result, Uplo};
use sunzi_session::memory::peak_resident_bytes;
use sunzi_session::session::{ROOT, Session as _};
use sunzi_session::trace::Trace;
use sunzi_session::units::{counted, describe, format_bytes, format_seconds};

/// The two products, with the files that they read.
pub enum Operands {
    /// `P^T P`, or `P P^T` with [`Op::Transpose`]; with weights `P^T diag(d) P`, or `P diag(d) P^T`.
    Syrk {
        /// The file of P.
        p: PathBuf,
        /// Selects one of the two products.
        op: Op,
        /// The triangle computed.
        uplo: Uplo,
        /// The file of the weights.
        weights: Option<PathBuf>,
    },
    /// `op(A) op(B)`.
    Gemm {
        /// The file of A.
        a: PathBuf,
        /// The file of B.
        b: PathBuf,
        /// The use of A: itself or its transpose.
        op_a: Op,
        /// The use of B: itself or its transpose.
        op_b: Op,
    },
}

impl Operands {
    /// The files of the operands: one of a SYRK, with that of its weights; two of a GEMM.
    pub fn files(&self) -> Vec<&Path> {
        match self {
            Operands::Syrk { p, weights, .. } => {
                [Some(p), weights.as_ref()].into_iter().flatten().map(PathBuf::as_path).collect()
            }
            Operands::Gemm { a, b, .. } => vec![a, b],
        }
    }
}

/// A product to compute.
pub struct Product {
    /// The operation and the files of its operands.
    pub operands: Operands,
    /// The triangle that is read of the matrix to add to a SYRK; `None` for both, which must agree.
    pub accumulate_triangle: Option<NamedTriangle>,
    /// The options.
    pub choices: ProductArgs,
    /// The destination of the result.
    pub output: Output,
    /// Where the finished parts of a product larger than memory go.
    pub storage: ProductStorage,
}

impl From<Syrk> for Product {
    fn from(args: Syrk) -> Product {
        let Syrk { p, transpose, weights, upper, accumulate_triangle, ignore_other_triangle, .. } = args;
        let (choices, output, storage) = (args.choices, args.output, args.storage);
        let named = |uplo| NamedTriangle { uplo, ignores_other: ignore_other_triangle };
        let uplo = if upper { Uplo::Upper } else { Uplo::Lower };
        Product {
            operands: Operands::Syrk { p, op: op(transpose), uplo, weights },
            accumulate_triangle: accumulate_triangle.map(named),
            choices,
            output,
            storage,
        }
    }
}

impl From<Gemm> for Product {
    fn from(args: Gemm) -> Product {
        let Gemm { a, b, transpose_a, transpose_b, choices, output, storage } = args;
        let operands = Operands::Gemm { a, b, op_a: op(transpose_a), op_b: op(transpose_b) };
        Product { operands, accumulate_triangle: None, choices, output, storage }
    }
}

/// The use of an operand: itself or its transpose.
pub fn op(transpose: bool) -> Op {
    if transpose { Op::Transpose } else { Op::NoTranspose }
}

/// The report of a product: that of the operation, the time of the files, and the memory.
#[derive(Serialize)]
struct ProductReport<'a> {
    #[serde(flatten)]
    operation: &'a Report,
    result_rows: usize,
    result_cols: usize,
    result_precision_bits: u32,
    input_seconds: f64,
    /// Seconds from gathering to the end of writing.
    output_seconds: f64,
    /// The most memory that the process occupied, files and result included.
    peak_resident_bytes: u64,
    /// The most bytes that each node's ranks had allocated during the call, windows included, operands not.
    #[serde(skip_serializing_if = "Option::is_none")]
    node_peak_bytes: Option<Vec<u64>>,
}

/// The result, and the time and memory that it took.
struct ComputedProduct {
    /// The whole result, on the root.
    result: Option<Matrix>,
    report: Report,
    input_seconds: f64,
    gather_seconds: f64,
    /// Peaks of each node, of a product by ranks.
    node_peak_bytes: Option<Vec<u64>>,
}

/// Runs in this process, or on the ranks that work `together`.
pub fn run(session: &mut Session, config: &Product, together: Option<&dyn Transport>) -> Result<()> {
    if let Some(directory) = &config.storage.directory {
        return above_disk::run(session, config, directory, together);
    }
    let (choices, world) = (&config.choices, together.unwrap_or(local::alone()));
    if together.is_none() && choices.window == WindowKind::Mpi {
        return Err(Error::InvalidArgument("--window mpi needs several ranks: start them with mpirun".into()));
    }
    let root = world.rank() == ROOT;
    agree(world, if root { check_output(&config.output) } else { Ok(()) })?;
    let trace = agreed(world, Trace::begin(choices.trace.as_deref().filter(|_| root)))?;
    let mut trace = trace.telling(session.steps());
    if root {
        expect(session, config, "compute");
    }
    // Traces and windows are those of ranks, of which there may be one.
    let by_ranks = together.is_some() || choices.trace.is_some() || choices.window != WindowKind::Auto;
    let computed = match by_ranks {
        true => ranks::compute(session, config, world, &mut trace)?,
        false => alone::compute(session, config)?,
    };
    agree(world, finish(session, config, &computed, trace))
}

/// Announces the stages to the session, with the `name` of the computation. An error in a file is reported where it is
/// read.
fn expect(session: &Session, config: &Product, name: &'static str) {
    let (choices, files) = (&config.choices, config.operands.files());
    let Ok(bits) = product_precision(choices.precision.bits, files[0], choices.exact_integers) else { return };
    let inputs = files.into_iter().chain(choices.accumulate.as_deref()).collect::<Vec<_>>();
    session.expect(&inputs, bits, |infos| {
        let shape =
            |info: &FileInfo, op: Op| if op == Op::Transpose { (info.cols, info.rows) } else { (info.rows, info.cols) };
        let (contracted, rows, cols) = match config.operands {
            Operands::Syrk { op, .. } => {
                let (rows, cols) = shape(&infos[0], op);
                (rows, cols, cols)
            }
            Operands::Gemm { op_a, op_b, .. } => {
                (shape(&infos[0], op_a).1, shape(&infos[0], op_a).0, shape(&infos[1], op_b).1)
            }
        };
        let is_symmetric = matches!(config.operands, Operands::Syrk { .. });
        let seconds = product_seconds(contracted, rows, cols, is_symmetric, bits);
        // A symmetric file has one triangle.
        let written = if is_symmetric { cols.div_ceil(2) } else { cols };
        Work { stages: vec![Stage::call(name, seconds)], output: Some((&config.output.path, (rows, written))) }
    });
}

/// Writes the result and its report, on the rank that has the result.
fn finish(session: &mut Session, config: &Product, computed: &ComputedProduct, mut trace: Trace) -> Result<()> {
    let Some(result) = &computed.result else { return Ok(()) };
    // The result of a SYRK holds both triangles.
    let symmetry = match config.operands {
        Operands::Syrk { .. } => Symmetry::SymmetricLower,
        Operands::Gemm { .. } => Symmetry::General,
    };
    let ((), write_seconds) = trace.span("write", || session.write(&config.output, result, symmetry))?;
    trace.finish(session)?;
    let report = ProductReport {
        operation: &computed.report,
        result_rows: result.rows(),
        result_cols: result.cols(),
        result_precision_bits: result.precision_bits(),
        input_seconds: computed.input_seconds,
        output_seconds: computed.gather_seconds + write_seconds,
        peak_resident_bytes: peak_resident_bytes(),
        node_peak_bytes: computed.node_peak_bytes.clone(),
    };
    session.finish_report(&report)?;
    session.say(&summary(config, &describe(result), &report))
}

fn summary(config: &Product, shape: &str, all: &ProductReport<'_>) -> String {
    let ProductReport { operation, input_seconds, output_seconds, .. } = all;
    let team = operation.team.as_ref().map(|team| &team.plan);
    let ranks = team
        .map_or(String::new(), |team| format!("{} on {}, ", counted(team.ranks, "rank"), counted(team.nodes, "node")));
    format!(
        "{}: {shape} ({}, {} primes, {ranks}{}, {} planned{}{}{}) in {} (files {})",
        config.output.path.display(),
        operation.kernel,
        operation.primes,
        counted(operation.threads, "thread"),
        format_bytes(operation.planned_bytes),
        if team.is_some() { " per node" } else { "" },
        if operation.checked { ", self-checked" } else { "" },
        if operation.accuracy == Accuracy::Entrywise { ", entrywise" } else { "" },
        format_seconds(operation.seconds),
        format_seconds(input_seconds + output_seconds),
    )
}

impl Product {
    /// The options for reading the files of the command.
    fn reader<'a>(&'a self, session: &'a Session, precision_bits: u32) -> Reader<'a> {
        Reader::at(session, &self.choices.engine, &self.choices.precision, precision_bits)
    }

    /// Alpha and beta at `precision_bits`.
    fn scalars(&self, precision_bits: u32) -> Result<(Option<Float>, Option<Float>)> {
        let scalar = |name: &str, text: &Option<String>| {
            text.as_ref().map(|text| parse_scalar(name, text, precision_bits)).transpose()
        };
        Ok((scalar("--alpha", &self.choices.alpha)?, scalar("--beta", &self.choices.beta)?))
    }

    /// The matrix to add, which is symmetric where the product is.
    fn addend(&self, reader: &Reader<'_>, path: &Path) -> Result<Matrix> {
        match self.operands {
            Operands::Syrk { .. } => Ok(reader.symmetric(path, self.accumulate_triangle, &ADDED)?.into_matrix()),
            Operands::Gemm { .. } => reader.matrix(path),
        }
    }

    /// A builder with the choices of the command line but the memory limit.
    fn context(&self, session: &Session) -> Result<ContextBuilder> {
        let ProductArgs { engine, self_check, freivalds, .. } = &self.choices;
        Ok(session.context(engine)?.self_check(*self_check).freivalds(*freivalds))
    }
}
