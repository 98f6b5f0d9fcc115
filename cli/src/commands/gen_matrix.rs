//! `sunzi gen`: writes a test matrix.

use crate::args::Gen;
use crate::files::admit;
use crate::progress::{Stage, product_seconds};
use crate::session::{Session, Work, check_output};
use serde_json::json;
use std::time::Instant;
use sunzi::gallery::{KINDS, Size, generate};
use sunzi::io::Symmetry;
use sunzi::{Matrix, Result};
use sunzi_lab::session::Session as _;
use sunzi_lab::units::describe;

pub fn run(session: &mut Session, config: &Gen) -> Result<()> {
    check_output(&config.output)?;
    let Size { rows, cols, precision_bits } = config.size();
    admit(Matrix::bytes_for(rows, cols, precision_bits))?;
    session.expect(&[], precision_bits, |_| {
        let seconds = product_seconds(rows, (cols, 1), false, precision_bits);
        let stages = vec![Stage::calls("generate", seconds)];
        Work { stages, output: Some((&config.output.path, (rows, cols))) }
    });
    session.stage("generate");
    let start = Instant::now();
    let matrix = generate(config.kind, config.size(), config.seed)?;
    let generated = start.elapsed().as_secs_f64();
    session.write(&config.output, &matrix, Symmetry::General)?;
    let kind = KINDS.iter().find(|(_, kind)| *kind == config.kind).map_or("", |(name, _)| name);
    session.finish_report(&json!({
        "operation": "gen",
        "kind": kind,
        "rows": matrix.rows(),
        "cols": matrix.cols(),
        "precision_bits": matrix.precision_bits(),
        "seed": config.seed,
        "seconds": generated,
        "output_seconds": start.elapsed().as_secs_f64() - generated,
    }))?;
    session.say(&format!("{}: {kind}, {}", config.output.path.display(), describe(&matrix)))
}
