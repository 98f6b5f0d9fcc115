//! `sunzi syrk` and `sunzi gemm`: files in, product out, within the memory limit of the process.

use crate::args::{Gemm, Output, ProductArgs, Syrk};
use crate::number::parse_scalar;
use crate::session::{Session, check_output, header, read_within, stated_precision};
use crate::signals::{Mode, in_mode};
use rug::Float;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;
use sunzi::io::{ReadOptions, Symmetry};
use sunzi::{
    Context, Error, GemmOptions, Matrix, Op, Outcome, Report, Result, Symmetric, SyrkOptions, Uplo, gemm_with,
    syrk_with,
};
use sunzi_lab::engine::limited;
use sunzi_lab::memory::peak_resident_bytes;
use sunzi_lab::session::Session as _;
use sunzi_lab::units::describe;
use sunzi_lab::units::{format_bytes, format_seconds};

/// The two products, with what they read.
pub enum Operands {
    /// `P^T P`, or `P P^T` with [`Op::Transpose`].
    Syrk {
        /// The file of P.
        p: PathBuf,
        /// Which of the two.
        op: Op,
        /// The triangle computed.
        uplo: Uplo,
    },
    /// `op(A) op(B)`.
    Gemm {
        /// The file of A.
        a: PathBuf,
        /// The file of B.
        b: PathBuf,
        /// How A is used.
        op_a: Op,
        /// How B is used.
        op_b: Op,
    },
}

/// A product to compute.
pub struct Product {
    /// Which product of which files.
    pub operands: Operands,
    /// How.
    pub choices: ProductArgs,
    /// Where the result goes.
    pub output: Output,
}

impl From<Syrk> for Product {
    fn from(args: Syrk) -> Product {
        let uplo = if args.upper { Uplo::Upper } else { Uplo::Lower };
        let operands = Operands::Syrk { p: args.p, op: op(args.transpose), uplo };
        Product { operands, choices: args.choices, output: args.output }
    }
}

impl From<Gemm> for Product {
    fn from(args: Gemm) -> Product {
        let (op_a, op_b) = (op(args.transpose_a), op(args.transpose_b));
        let operands = Operands::Gemm { a: args.a, b: args.b, op_a, op_b };
        Product { operands, choices: args.choices, output: args.output }
    }
}

/// How an operand is used.
pub fn op(transpose: bool) -> Op {
    if transpose { Op::Transpose } else { Op::NoTranspose }
}

/// Precision to which decimals are read where the result is exact: integers take what they need.
const EXACT_BITS: u32 = 64;

/// The report of a product: that of the operation, and the time of the files.
#[derive(Serialize)]
struct ProductReport<'a> {
    #[serde(flatten)]
    operation: &'a Report,
    result_rows: usize,
    result_cols: usize,
    result_precision_bits: u32,
    input_seconds: f64,
    output_seconds: f64,
    /// The most memory that the process occupied, files and result included.
    peak_resident_bytes: u64,
}

/// What a product works on, all in memory.
struct Inputs {
    matrices: Vec<Matrix>,
    accumulate: Option<Matrix>,
    alpha: Option<Float>,
    beta: Option<Float>,
    precision_bits: u32,
}

pub fn run(session: &mut Session, config: &Product) -> Result<()> {
    check_output(&config.output)?;
    let start = Instant::now();
    let inputs = read_inputs(session, config)?;
    let input_seconds = start.elapsed().as_secs_f64();
    let Outcome { result, report } = in_mode(Mode::Computing, || compute(session, config, &inputs))?;
    let shape = describe(&result);
    let (result_rows, result_cols, result_precision_bits) = (result.rows(), result.cols(), result.precision_bits());
    // The operands are done with; a long write need not hold them.
    drop(inputs);
    let written = Instant::now();
    write(session, config, &result)?;
    let output_seconds = written.elapsed().as_secs_f64();
    let all = ProductReport {
        operation: &report,
        result_rows,
        result_cols,
        result_precision_bits,
        input_seconds,
        output_seconds,
        peak_resident_bytes: peak_resident_bytes(),
    };
    session.finish_report(&all)?;
    session.say(&format!(
        "{}: {shape} ({}, {} primes, {} thread{}, {} planned{}) in {} (files {})",
        config.output.path.display(),
        report.kernel,
        report.primes,
        report.threads,
        if report.threads == 1 { "" } else { "s" },
        format_bytes(report.planned_bytes),
        if report.checked { ", self-checked" } else { "" },
        format_seconds(report.seconds),
        format_seconds(input_seconds + output_seconds),
    ))
}

fn read_inputs(session: &Session, config: &Product) -> Result<Inputs> {
    let paths: Vec<&PathBuf> = match &config.operands {
        Operands::Syrk { p, .. } => vec![p],
        Operands::Gemm { a, b, .. } => vec![a, b],
    };
    let precision_bits = precision_bits(config, paths[0])?;
    let scalar =
        |what, text: &Option<String>| text.as_ref().map(|text| parse_scalar(what, text, precision_bits)).transpose();
    let (alpha, beta) = (scalar("--alpha", &config.choices.alpha)?, scalar("--beta", &config.choices.beta)?);
    let matrices = paths.iter().map(|path| read(session, config, path, precision_bits)).collect::<Result<_>>()?;
    let accumulate =
        config.choices.accumulate.as_ref().map(|path| read(session, config, path, precision_bits)).transpose()?;
    Ok(Inputs { matrices, accumulate, alpha, beta, precision_bits })
}

/// The precision given, else the one that the file of the first operand states.
///
/// # Errors
/// Those of [`header`] and [`stated_precision`].
pub(super) fn precision_bits(config: &Product, first: &Path) -> Result<u32> {
    let info = header(first)?;
    match config.choices.precision.bits {
        None if config.choices.exact_integers => {
            Ok(info.and_then(|info| info.precision_bits_comment).unwrap_or(EXACT_BITS))
        }
        given => stated_precision(given, first, info.as_ref()),
    }
}

/// Reads an operand within the memory limit of the process.
///
/// # Errors
/// Those of [`read_within`].
pub(super) fn read(session: &Session, config: &Product, path: &Path, precision_bits: u32) -> Result<Matrix> {
    let input_precision_bits = config.choices.precision.input_bits;
    let options = ReadOptions { input_precision_bits, ..ReadOptions::new(precision_bits) };
    Ok(read_within(session, &config.choices.engine, path, options)?.matrix)
}

/// Writes the result, of a SYRK the triangle that was computed.
///
/// # Errors
/// Those of [`Session::write`].
pub(super) fn write(session: &Session, config: &Product, result: &Matrix) -> Result<()> {
    match config.operands {
        Operands::Syrk { uplo: Uplo::Lower, .. } => session.write(&config.output, result, Symmetry::SymmetricLower),
        Operands::Syrk { .. } => session.write(&config.output, result.transposed(), Symmetry::SymmetricLower),
        Operands::Gemm { .. } => session.write(&config.output, result, Symmetry::General),
    }
}

fn compute(session: &Session, config: &Product, inputs: &Inputs) -> Result<Outcome> {
    let builder = session
        .context(&config.choices.engine)?
        .self_check(config.choices.self_check)
        .freivalds(config.choices.freivalds);
    let (builder, restate) = limited(builder, config.choices.engine.budget());
    multiply(&builder.build()?, config, inputs).map_err(restate)
}

fn multiply(ctx: &Context, config: &Product, inputs: &Inputs) -> Result<Outcome> {
    let (alpha, beta) = (inputs.alpha.as_ref(), inputs.beta.as_ref());
    let (accumulate, exact_integers) = (inputs.accumulate.as_ref(), config.choices.exact_integers);
    match (&config.operands, inputs.matrices.as_slice()) {
        (Operands::Syrk { op, uplo, .. }, [p]) => {
            let accumulate = accumulate.map(|matrix| Symmetric::triangle(matrix, *uplo));
            let options = SyrkOptions { op: *op, uplo: *uplo, exact_integers, alpha, beta, accumulate };
            let Outcome { result, report } = syrk_with(ctx, p, inputs.precision_bits, &options)?;
            Ok(Outcome { result: result.into_matrix(), report })
        }
        (Operands::Gemm { op_a, op_b, .. }, [a, b]) => {
            let options = GemmOptions { op_a: *op_a, op_b: *op_b, exact_integers, alpha, beta, accumulate };
            gemm_with(ctx, a, b, inputs.precision_bits, &options)
        }
        _ => Err(Error::InvalidArgument("a product with the wrong number of operands".into())),
    }
}
