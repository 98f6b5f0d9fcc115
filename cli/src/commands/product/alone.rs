//! A product in this process.

use super::{ComputedProduct, Operands, Product};
use crate::files::product_precision;
use crate::input::Reader;
use crate::session::Session;
use crate::signals::{Mode, in_mode};
use rug::Float;
use std::time::Instant;
use sunzi::io::FileInfo;
use sunzi::plans::{ProductPlanOptions, plan_gemm_with, plan_syrk_with, plan_weighted_gram};
use sunzi::{Context, GemmOptions, Matrix, Op, Outcome, Result, Symmetric, SyrkOptions};
use sunzi::{gemm_with, syrk_with, weighted_gram_with};
use sunzi_session::engine::{least_bytes, limited};

/// The operands of a product, all in memory.
struct ProductInputs {
    /// P, P and its weights, or A and B.
    operands: Vec<Matrix>,
    accumulate: Option<Matrix>,
    alpha: Option<Float>,
    beta: Option<Float>,
    precision_bits: u32,
}

impl ProductInputs {
    /// Bytes of all of them.
    fn bytes(&self) -> u64 {
        self.operands.iter().chain(&self.accumulate).map(Matrix::bytes).sum()
    }
}

/// Reads and multiplies.
///
/// # Errors
/// The errors of reading, and of the operation.
pub fn compute(session: &Session, config: &Product) -> Result<ComputedProduct> {
    let start = Instant::now();
    let inputs = read(session, config)?;
    let input_seconds = start.elapsed().as_secs_f64();
    session.stage("compute");
    let (builder, restate) = limited(config.context(session)?, config.choices.engine.budget(inputs.bytes()));
    let outcome = in_mode(Mode::Computing, || multiply(&builder.build()?, config, &inputs).map_err(restate));
    let Outcome { result, report } = outcome?;
    Ok(ComputedProduct { result: Some(result), report, input_seconds, gather_seconds: 0.0, node_peak_bytes: None })
}

fn read(session: &Session, config: &Product) -> Result<ProductInputs> {
    let (files, choices) = (config.operands.files(), &config.choices);
    let precision_bits = product_precision(choices.precision.bits, files[0], choices.exact_integers)?;
    let (alpha, beta) = config.scalars(precision_bits)?;
    let reader = config.reader(session, precision_bits);
    admit(session, config, &reader)?;
    let operands = files.into_iter().map(|path| reader.matrix(path)).collect::<Result<_>>()?;
    let accumulate = choices.accumulate.as_ref().map(|path| config.addend(&reader, path)).transpose()?;
    Ok(ProductInputs { operands, accumulate, alpha, beta, precision_bits })
}

/// Refuses a memory limit in which the product cannot run, by the headers of the files and before they are read;
/// products of integers, which take as many bits as they have, are refused afterwards.
fn admit(session: &Session, config: &Product, reader: &Reader<'_>) -> Result<()> {
    if config.choices.exact_integers {
        return Ok(());
    }
    let bits = reader.precision_bits();
    let options = ProductPlanOptions::new().accuracy(config.choices.accuracy);
    let shape = |info: &FileInfo, op: Op| match op {
        Op::NoTranspose => (info.rows, info.cols),
        Op::Transpose => (info.cols, info.rows),
    };
    let files = config.operands.files().into_iter().chain(config.choices.accumulate.as_deref()).collect::<Vec<_>>();
    reader.admit(&files, |infos| {
        let plan = |ctx: &Context| match config.operands {
            Operands::Syrk { op, ref weights, .. } => {
                let (rows, cols) = shape(&infos[0], op);
                match weights {
                    Some(_) => plan_weighted_gram(ctx, rows, cols, bits.saturating_mul(2), bits, &options),
                    None => plan_syrk_with(ctx, (rows, cols), bits, &options),
                }
            }
            Operands::Gemm { op_a, op_b, .. } => {
                let ((rows, contracted), (_, cols)) = (shape(&infos[0], op_a), shape(&infos[1], op_b));
                plan_gemm_with(ctx, (rows, cols), contracted, bits, &options)
            }
        };
        least_bytes(config.context(session)?, plan)
    })
}

fn multiply(ctx: &Context, config: &Product, inputs: &ProductInputs) -> Result<Outcome> {
    let ProductInputs { operands, precision_bits: bits, .. } = inputs;
    let (alpha, beta, accumulate) = (inputs.alpha.as_ref(), inputs.beta.as_ref(), inputs.accumulate.as_ref());
    let (exact_integers, accuracy) = (config.choices.exact_integers, config.choices.accuracy);
    match config.operands {
        Operands::Syrk { op, uplo, .. } => {
            let accumulate = accumulate.map(|matrix| Symmetric::triangle(matrix, uplo));
            let options = SyrkOptions::new()
                .op(op)
                .uplo(uplo)
                .exact_integers(exact_integers)
                .accuracy(accuracy)
                .alpha(alpha)
                .beta(beta)
                .accumulate(accumulate);
            let Outcome { result, report } = match &operands[..] {
                [p, d] => weighted_gram_with(ctx, p, d, *bits, &options)?,
                _ => syrk_with(ctx, &operands[0], *bits, &options)?,
            };
            Ok(Outcome { result: result.into_matrix(), report })
        }
        Operands::Gemm { op_a, op_b, .. } => {
            let options = GemmOptions::new()
                .op_a(op_a)
                .op_b(op_b)
                .exact_integers(exact_integers)
                .accuracy(accuracy)
                .alpha(alpha)
                .beta(beta)
                .accumulate(accumulate.map(Matrix::view));
            gemm_with(ctx, &operands[0], &operands[1], *bits, &options)
        }
    }
}
