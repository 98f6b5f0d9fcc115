//! `sunzi verify`: checks a stored result against its bound. It succeeds if and only if the bound holds.

use crate::args::{Check, VerifyGemm, VerifySyrk};
use crate::commands::product::{Operands, op};
use crate::files::product_precision;
use crate::progress::{Stage, product_seconds};
use crate::session::{Session, Work};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;
use sunzi::io::ReadOptions;
use sunzi::verify::{Verification, VerifyOptions, verify_gemm, verify_syrk, verify_weighted_gram};
use sunzi::{Context, IndexBase, Matrix, Op, Result, Uplo};
use sunzi_session::session::Session as _;
use sunzi_session::units::counted;

/// A stored product to check.
pub struct StoredProduct {
    /// The operation and the files of its operands.
    operands: Operands,
    /// The file of the result.
    result: PathBuf,
    /// The options.
    check: Check,
}

impl From<VerifySyrk> for StoredProduct {
    fn from(args: VerifySyrk) -> StoredProduct {
        let VerifySyrk { p, q, transpose, weights, check } = args;
        let operands = Operands::Syrk { p, op: op(transpose), uplo: Uplo::Lower, weights };
        StoredProduct { operands, result: q, check }
    }
}

impl From<VerifyGemm> for StoredProduct {
    fn from(args: VerifyGemm) -> StoredProduct {
        let (op_a, op_b) = (op(args.transpose_a), op(args.transpose_b));
        let operands = Operands::Gemm { a: args.a, b: args.b, op_a, op_b };
        StoredProduct { operands, result: args.c, check: args.check }
    }
}

pub fn run(session: &mut Session, config: &StoredProduct) -> Result<()> {
    let start = Instant::now();
    let precision_bits = product_precision(config.check.bits, &config.result, config.check.exact_integers)?;
    let files = config.operands.files().into_iter().chain([config.result.as_path()]).collect::<Vec<_>>();
    session.expect(&files, precision_bits, |infos| {
        // A few big products for each entry of the operands and of the result.
        let shapes = infos.iter().map(|info| product_seconds(info.rows, info.cols, 8, false, 2 * precision_bits));
        Work { stages: vec![Stage::calls("verify", shapes.sum())], output: None }
    });
    let read = |path: &Path| -> Result<Matrix> {
        let input_precision_bits = config.check.input_bits;
        Ok(session.read(path, ReadOptions::new(precision_bits).input_precision_bits(input_precision_bits))?.matrix)
    };
    let mut builder = Context::builder().progress({
        let callback = session.progress();
        move |progress| callback(progress)
    });
    if let Some(threads) = config.check.threads {
        builder = builder.threads(threads);
    }
    let ctx = builder.build()?;
    let options = VerifyOptions::new().exact_integers(config.check.exact_integers).seed(config.check.seed);
    let stage = || session.stage("verify");
    let (operation, verification) = match &config.operands {
        Operands::Syrk { p, op, weights, .. } => {
            let (p, d) = (read(p)?, weights.as_deref().map(read).transpose()?);
            let q = read(&config.result)?;
            let options = options.op(*op);
            stage();
            match d {
                Some(d) => ("weighted_gram", verify_weighted_gram(&ctx, &p, &d, &q, precision_bits, &options)?),
                None => ("syrk", verify_syrk(&ctx, &p, &q, precision_bits, &options)?),
            }
        }
        Operands::Gemm { a, b, op_a, op_b } => {
            let (a, b, c) = (read(a)?, read(b)?, read(&config.result)?);
            let options = options.op(*op_a).op_b(*op_b);
            stage();
            ("gemm", verify_gemm(&ctx, (&a, &b), &c, precision_bits, &options)?)
        }
    };
    session.finish_report(&json!({
        "operation": "verify",
        "product": operation,
        "precision_bits": precision_bits,
        "exact_integers": config.check.exact_integers,
        "verification": counted_from_one(&verification),
        "seconds": start.elapsed().as_secs_f64(),
    }))?;
    session.say(&describe(config, precision_bits, &verification))
}

/// The findings in the form of a report: the place counted from 1, as in everything that the program prints.
pub fn counted_from_one(found: &Verification) -> Verification {
    let mut found = *found;
    found.worst_place = found.worst_place.map(|(row, col)| (IndexBase::One.number(row), IndexBase::One.number(col)));
    found
}

fn describe(config: &StoredProduct, precision_bits: u32, found: &Verification) -> String {
    let product = match &config.operands {
        Operands::Syrk { op: Op::NoTranspose, weights: Some(_), .. } => "P^T diag(d) P",
        Operands::Syrk { weights: Some(_), .. } => "P diag(d) P^T",
        Operands::Syrk { op: Op::NoTranspose, .. } => "P^T P",
        Operands::Syrk { .. } => "P P^T",
        Operands::Gemm { .. } => "op(A) op(B)",
    };
    let name = config.result.display();
    if config.check.exact_integers {
        let (vectors, entries) = looked_at(found);
        return format!("{name}: exactly {product} ({vectors}, {entries}; seed {})", found.seed);
    }
    format!("{name}: {product} to {precision_bits} bits ({})", tests_made(found))
}

fn looked_at(found: &Verification) -> (String, String) {
    (counted(found.vector_count, "random vector"), counted_entries(found.entry_count))
}

fn counted_entries(count: usize) -> String {
    if count == 1 { "1 entry".into() } else { format!("{count} entries") }
}

/// The tests that were made, and how close to their bounds the result came.
pub fn tests_made(found: &Verification) -> String {
    let (vectors, entries) = looked_at(found);
    format!(
        "{vectors}, {entries}; largest error {:.3} of the bound in an entry, {:.3} in a vector; seed {}",
        found.worst_entry, found.worst_residual, found.seed
    )
}
