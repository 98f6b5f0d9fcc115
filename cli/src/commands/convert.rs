//! `sunzi convert`: copies a matrix into another format or number form; the numbers stay the same.

use crate::args::Convert;
use crate::files::{header, stated_precision};
use crate::session::{Session, Work, check_output};
use serde_json::json;
use std::time::Instant;
use sunzi::Result;
use sunzi::io::{ReadOptions, Symmetry};
use sunzi_session::session::Session as _;
use sunzi_session::units::describe;

pub fn run(session: &mut Session, config: &Convert) -> Result<()> {
    let output = config.output();
    check_output(&output)?;
    let start = Instant::now();
    let info = header(&config.input)?;
    let precision_bits = stated_precision(config.precision, &config.input, info.as_ref())?;
    session.expect(&[&config.input], precision_bits, |infos| {
        let shape = (infos[0].rows, infos[0].cols);
        Work { stages: Vec::new(), output: Some((&output.path, shape)) }
    });
    let loaded = session.read(&config.input, ReadOptions::new(precision_bits))?;
    let symmetry = if loaded.symmetric { Symmetry::SymmetricLower } else { Symmetry::General };
    session.write(&output, &loaded.matrix, symmetry)?;
    session.finish_report(&json!({
        "operation": "convert",
        "rows": loaded.matrix.rows(),
        "cols": loaded.matrix.cols(),
        "precision_bits": loaded.matrix.precision_bits(),
        "symmetric": loaded.symmetric,
        "seconds": start.elapsed().as_secs_f64(),
    }))?;
    let form = if loaded.symmetric { "symmetric" } else { "general" };
    session.say(&format!("{}: {form}, {}", output.path.display(), describe(&loaded.matrix)))
}
