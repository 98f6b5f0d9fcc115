//! `sunzi verify`: checks a stored result against its bound. It succeeds if and only if the bound holds.

use crate::config::{Operands, Verify};
use crate::session::{Session, header, stated_precision};
use serde_json::json;
use std::path::Path;
use std::time::Instant;
use sunzi::context::Context;
use sunzi::error::Result;
use sunzi::io::ReadOptions;
use sunzi::matrix::{Matrix, Op};
use sunzi::ops::verify::{Verification, VerifyOptions, verify_gemm, verify_syrk};
use sunzi_lab::session::Session as _;

/// Precision to which decimals are read where results must be exact: integers take what they need.
const EXACT_BITS: u32 = 64;

pub fn run(session: &mut Session, config: &Verify) -> Result<()> {
    let start = Instant::now();
    let info = header(&config.result)?;
    let precision_bits = match config.precision.bits {
        None if config.exact_integers => info.and_then(|info| info.precision_bits_comment).unwrap_or(EXACT_BITS),
        given => stated_precision(given, &config.result, info.as_ref())?,
    };
    let read = |path: &Path| -> Result<Matrix> {
        let input_precision_bits = config.precision.input_bits;
        Ok(session.read(path, ReadOptions { input_precision_bits, ..ReadOptions::new(precision_bits) })?.matrix)
    };
    let mut builder = Context::builder().progress({
        let callback = session.progress();
        move |progress| callback(progress)
    });
    if let Some(threads) = config.threads {
        builder = builder.threads(threads);
    }
    let ctx = builder.build()?;
    let options =
        VerifyOptions { exact_integers: config.exact_integers, seed: config.seed, ..VerifyOptions::default() };
    let (operation, verification) = match &config.operands {
        Operands::Syrk { p, op, .. } => {
            let (p, q) = (read(p)?, read(&config.result)?);
            let options = VerifyOptions { op: *op, ..options };
            ("syrk", verify_syrk(&ctx, &p, &q, precision_bits, &options)?)
        }
        Operands::Gemm { a, b, op_a, op_b } => {
            let (a, b, c) = (read(a)?, read(b)?, read(&config.result)?);
            let options = VerifyOptions { op: *op_a, op_b: *op_b, ..options };
            ("gemm", verify_gemm(&ctx, (&a, &b), &c, precision_bits, &options)?)
        }
    };
    session.finish_report(&json!({
        "operation": "verify",
        "product": operation,
        "precision_bits": precision_bits,
        "exact_integers": config.exact_integers,
        "verification": verification,
        "seconds": start.elapsed().as_secs_f64(),
    }))?;
    session.say(&describe(config, precision_bits, &verification))
}

fn describe(config: &Verify, precision_bits: u32, found: &Verification) -> String {
    let product = match &config.operands {
        Operands::Syrk { op: Op::NoTranspose, .. } => "P^T P",
        Operands::Syrk { .. } => "P P^T",
        Operands::Gemm { .. } => "op(A) op(B)",
    };
    let name = config.result.display();
    let tests = format!("{} random vectors, {} entries", found.vector_count, found.entry_count);
    if config.exact_integers {
        return format!("{name}: exactly {product} ({tests}; seed {})", found.seed);
    }
    format!(
        "{name}: {product} to {precision_bits} bits ({tests}; largest error {:.3} of the bound in an entry, {:.3} in a \
         vector; seed {})",
        found.worst_entry, found.worst_residual, found.seed
    )
}
