//! `sunzi trsm`: a triangular system in, its solution out.

use crate::args::{TriangularSystem, Trsm};
use crate::input::Reader;
use crate::number::parse_scalar;
use crate::progress::{Stage, trsm_seconds};
use crate::session::{Session, Work, check_output};
use crate::signals::{Mode, in_mode};
use rug::Float;
use serde_json::json;
use std::time::Instant;
use sunzi::io::Symmetry;
use sunzi::plans::plan_trsm;
use sunzi::{Context, Outcome, Result, Side, trsm_with};
use sunzi_session::engine::{least_bytes, limited};
use sunzi_session::memory::peak_resident_bytes;
use sunzi_session::session::Session as _;
use sunzi_session::units::{counted, describe, format_bytes, format_seconds};

pub fn run(session: &mut Session, config: &Trsm) -> Result<()> {
    check_output(&config.output)?;
    let start = Instant::now();
    let reader = Reader::new(session, &config.engine, &config.precision, &config.t)?;
    let precision_bits = reader.precision_bits();
    let alpha = scalar(&config.system, precision_bits)?;
    admit(session, config, &reader)?;
    session.expect(&[&config.t, &config.b], precision_bits, |infos| {
        let (order, shape) = (infos[0].rows, (infos[1].rows, infos[1].cols));
        let columns = if config.system.side == Side::Left { shape.1 } else { shape.0 };
        let stages = vec![Stage::calls("solve", trsm_seconds(order, columns, precision_bits))];
        Work { stages, output: Some((&config.output.path, shape)) }
    });
    let (t, b) = (reader.matrix(&config.t)?, reader.matrix(&config.b)?);
    let input_seconds = start.elapsed().as_secs_f64();
    let (builder, restate) = limited(session.context(&config.engine)?, config.engine.budget(reader.held_bytes()));
    let ctx = builder.build()?;
    let options = config.system.options(alpha.as_ref()).accuracy(config.accuracy);
    session.stage("solve");
    let start = Instant::now();
    let solve = || trsm_with(&ctx, &t, &b, precision_bits, &options).map_err(&restate);
    let Outcome { result: x, report } = in_mode(Mode::Computing, solve)?;
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
        "accuracy": report.accuracy,
        "kernel": report.kernel,
        "threads": report.threads,
        "planned_bytes": report.planned_bytes,
        "seconds": seconds,
        "input_seconds": input_seconds,
        "output_seconds": output_seconds,
        "peak_resident_bytes": peak_resident_bytes(),
    }))?;
    session.say(&format!(
        "{}: {} ({}, {}, {} planned) in {} (files {})",
        config.output.path.display(),
        describe(&x),
        report.kernel,
        counted(report.threads, "thread"),
        format_bytes(report.planned_bytes),
        format_seconds(seconds),
        format_seconds(input_seconds + output_seconds),
    ))
}

/// The scalar of B, where one is given.
///
/// # Errors
/// The errors of [`parse_scalar`].
pub fn scalar(system: &TriangularSystem, precision_bits: u32) -> Result<Option<Float>> {
    system.alpha.as_ref().map(|text| parse_scalar("--alpha", text, precision_bits)).transpose()
}

/// Refuses a memory limit that the solve cannot run in, by the headers of the files and before they are read.
fn admit(session: &Session, config: &Trsm, reader: &Reader<'_>) -> Result<()> {
    reader.admit(&[&config.t, &config.b], |infos| {
        let columns = if config.system.side == Side::Left { infos[1].cols } else { infos[1].rows };
        let plan = |ctx: &Context| plan_trsm(ctx, (infos[0].rows, columns), reader.precision_bits(), config.accuracy);
        least_bytes(session.context(&config.engine)?, plan)
    })
}
