//! `sunzi verify cholesky`: checks a stored factor. It succeeds if and only if every residual is within its bound.

use super::TRIANGLE_FLAGS;
use crate::args::VerifyCholesky;
use crate::commands::verify::counted_from_one;
use crate::input::Reader;
use crate::session::Session;
use crate::signals::{Mode, in_mode};
use serde_json::json;
use std::time::Instant;
use sunzi::verify::{Verification, VerifyOptions, verify_cholesky};
use sunzi::{IndexBase, Result, Uplo};
use sunzi_lab::engine::limited;
use sunzi_lab::session::Session as _;

pub fn run(session: &mut Session, config: &VerifyCholesky) -> Result<()> {
    let start = Instant::now();
    let reader = Reader::new(session, &config.engine, &config.precision, &config.l)?.in_full();
    let precision_bits = reader.precision_bits();
    let a = reader.symmetric(&config.a, config.triangle.uplo(), TRIANGLE_FLAGS)?;
    let l = reader.matrix(&config.l)?;
    let (builder, restate) = limited(session.context(&config.engine)?, config.engine.budget(reader.held_bytes()));
    let ctx = builder.build()?;
    let uplo = config.triangle.uplo().unwrap_or_default();
    let options = VerifyOptions::new().uplo(uplo).seed(config.seed);
    let verification =
        in_mode(Mode::Computing, || verify_cholesky(&ctx, &a, &l, precision_bits, &options).map_err(&restate))?;
    session.finish_report(&json!({
        "operation": "verify",
        "product": "cholesky",
        "precision_bits": precision_bits,
        "verification": counted_from_one(&verification),
        "seconds": start.elapsed().as_secs_f64(),
    }))?;
    session.say(&describe(config, precision_bits, &verification))
}

fn describe(config: &VerifyCholesky, precision_bits: u32, found: &Verification) -> String {
    let product = if config.triangle.uplo() == Some(Uplo::Upper) { "U^T U" } else { "L L^T" };
    let place = |(row, col)| format!(" at {}", IndexBase::One.place(row, col));
    let place = found.worst_place.map_or(String::new(), place);
    format!(
        "{}: A = {product} to {precision_bits} bits (all {} entries; largest residual {:.3} of the bound{place}; \
         seed {})",
        config.l.display(),
        found.entry_count,
        found.worst_entry,
        found.seed
    )
}
