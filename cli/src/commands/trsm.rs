//! `sunzi trsm`: a triangular system in, its solution out.

use crate::args::Trsm;
use crate::commands::product::op;
use crate::number::parse_scalar;
use crate::session::{Session, check_output, header, read_within, stated_precision};
use crate::signals::{Mode, in_mode};
use serde_json::json;
use std::path::Path;
use std::time::Instant;
use sunzi::io::{ReadOptions, Symmetry};
use sunzi::{Diag, Result, TrsmOptions, trsm};
use sunzi_lab::engine::limited;
use sunzi_lab::memory::peak_resident_bytes;
use sunzi_lab::session::Session as _;
use sunzi_lab::units::describe;
use sunzi_lab::units::format_seconds;

pub fn run(session: &mut Session, config: &Trsm) -> Result<()> {
    check_output(&config.output)?;
    let start = Instant::now();
    let precision_bits = stated_precision(config.precision.bits, &config.t, header(&config.t)?.as_ref())?;
    let alpha = config.alpha.as_ref().map(|text| parse_scalar("--alpha", text, precision_bits)).transpose()?;
    let read = |path: &Path| {
        let input_precision_bits = config.precision.input_bits;
        let options = ReadOptions { input_precision_bits, ..ReadOptions::new(precision_bits) };
        read_within(session, &config.engine, path, options).map(|loaded| loaded.matrix)
    };
    let (t, b) = (read(&config.t)?, read(&config.b)?);
    let input_seconds = start.elapsed().as_secs_f64();
    let (builder, restate) = limited(session.context(&config.engine)?, config.engine.budget());
    let ctx = builder.build()?;
    let diag = if config.unit { Diag::Unit } else { Diag::NonUnit };
    let (side, uplo, op) = (config.side, config.uplo, op(config.transpose));
    let options = TrsmOptions { side, uplo, op, diag, alpha: alpha.as_ref() };
    let start = Instant::now();
    let x = in_mode(Mode::Computing, || trsm(&ctx, &t, &b, precision_bits, &options).map_err(&restate))?;
    let seconds = start.elapsed().as_secs_f64();
    drop((t, b));
    let start = Instant::now();
    session.write(&config.output, &x, Symmetry::General)?;
    let output_seconds = start.elapsed().as_secs_f64();
    session.finish_report(&json!({
        "operation": "trsm",
        "rows": x.rows(),
        "cols": x.cols(),
        "precision_bits": x.precision_bits(),
        "kernel": ctx.kernel().name(),
        "threads": ctx.threads(),
        "seconds": seconds,
        "input_seconds": input_seconds,
        "output_seconds": output_seconds,
        "peak_resident_bytes": peak_resident_bytes(),
    }))?;
    session.say(&format!(
        "{}: {} in {} (files {})",
        config.output.path.display(),
        describe(&x),
        format_seconds(seconds),
        format_seconds(input_seconds + output_seconds),
    ))
}
