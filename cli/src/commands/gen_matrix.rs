//! `sunzi gen`: writes a test matrix; a binary file block by block, so that it may be larger than memory.

use crate::args::Gen;
use crate::files::{admit, has_blocks};
use crate::progress::{Stage, product_seconds};
use crate::session::{Session, Work, check_output};
use crate::signals::{Mode, complete, in_mode};
use serde_json::json;
use std::time::Instant;
use sunzi::gallery::{FileMatrix, Size, generate, generate_file};
use sunzi::io::Symmetry;
use sunzi::{Matrix, Result};
use sunzi_session::session::Session as _;
use sunzi_session::units::describe_shape;

pub fn run(session: &mut Session, config: &Gen) -> Result<()> {
    check_output(&config.output)?;
    let path = config.output.path.as_path();
    let matrix = FileMatrix { kind: config.kind, size: config.size(), seed: config.seed, symmetric: config.symmetric };
    matrix.check()?;
    let Size { rows, cols, precision_bits } = matrix.size;
    session.expect(&[], precision_bits, |_| {
        let seconds = product_seconds(rows, cols, 1, false, precision_bits);
        let stages = vec![Stage::calls("generate", seconds)];
        Work { stages, output: Some((path, (rows, cols))) }
    });
    session.stage("generate");
    let start = Instant::now();
    let generated = if has_blocks(path) {
        let generate = || generate_file(path, &matrix, Some(session.progress()));
        in_mode(Mode::Writing, || generate().inspect(|_| complete()))?.as_secs_f64()
    } else {
        whole(session, config, &matrix)?
    };
    session.finish_report(&json!({
        "operation": "gen",
        "kind": matrix.kind.name(),
        "rows": rows,
        "cols": cols,
        "precision_bits": precision_bits,
        "symmetric": matrix.symmetric,
        "seed": matrix.seed,
        "seconds": generated,
        "output_seconds": start.elapsed().as_secs_f64() - generated,
    }))?;
    let shape = describe_shape(rows, cols, precision_bits);
    session.say(&format!("{}: {}, {shape}", path.display(), matrix.kind.name()))
}

/// Makes the matrix, then writes it; the seconds that making it took.
fn whole(session: &Session, config: &Gen, matrix: &FileMatrix) -> Result<f64> {
    let start = Instant::now();
    let Size { rows, cols, precision_bits } = matrix.size;
    admit(Matrix::bytes_for(rows, cols, precision_bits))?;
    let made = generate(matrix.kind, matrix.size, matrix.seed)?;
    let generated = start.elapsed().as_secs_f64();
    let symmetry = if matrix.symmetric { Symmetry::SymmetricLower } else { Symmetry::General };
    session.write(&config.output, &made, symmetry)?;
    Ok(generated)
}
