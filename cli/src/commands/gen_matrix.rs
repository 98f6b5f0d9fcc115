//! `sunzi gen`: writes a test matrix; a binary file block by block, so that it may be larger than memory.

use crate::args::Gen;
use crate::files::{admit, has_blocks};
use crate::progress::{Stage, checking, generate_seconds};
use crate::session::{Session, Work, check_output};
use crate::signals::{Mode, complete, in_mode};
use serde_json::json;
use std::time::Instant;
use sunzi::gallery::{FileMatrix, Size, generate_block, generate_file};
use sunzi::io::Symmetry;
use sunzi::{Context, Error, Matrix, Progress, Result};
use sunzi_session::session::Session as _;
use sunzi_session::units::describe_shape;

/// Bytes of a block that is made at a time.
const BLOCK_BYTES: u64 = 8 << 20;

pub fn run(session: &mut Session, config: &Gen) -> Result<()> {
    check_output(&config.output)?;
    let path = config.output.path.as_path();
    let matrix = FileMatrix { kind: config.kind, size: config.size(), seed: config.seed, symmetric: config.symmetric };
    matrix.check()?;
    let Size { rows, cols, precision_bits } = matrix.size;
    let is_by_blocks = has_blocks(path);
    session.expect(&[], precision_bits, |_| {
        let mut stages = vec![Stage::call("generate", generate_seconds(matrix.kind, rows, cols, precision_bits))];
        // A file that is written block by block is read once for its checksum.
        stages.extend(is_by_blocks.then(|| checking(rows, cols, precision_bits)));
        Work { stages, output: Some((path, (rows, cols))).filter(|_| !is_by_blocks) }
    });
    if is_by_blocks {
        session.follow_phases();
    }
    session.stage("generate");
    let start = Instant::now();
    let generated = if is_by_blocks {
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
    let made = by_blocks(session, matrix)?;
    let generated = start.elapsed().as_secs_f64();
    let symmetry = if matrix.symmetric { Symmetry::SymmetricLower } else { Symmetry::General };
    session.write(&config.output, &made, symmetry)?;
    Ok(generated)
}

/// Makes the matrix block by block, and reports the part done.
fn by_blocks(session: &Session, matrix: &FileMatrix) -> Result<Matrix> {
    let FileMatrix { kind, size, seed, .. } = *matrix;
    let (ctx, progress) = (Context::builder().build()?, session.progress());
    let mut whole = Matrix::zeros(size.rows, size.cols, size.precision_bits)?;
    let (mut done, total) = (0, size.rows as u64 * size.cols as u64);
    for (rows, cols) in kind.blocks(size, false, BLOCK_BYTES) {
        done += rows.len() as u64 * cols.len() as u64;
        let block = ctx.install(|| generate_block(kind, size, seed, (rows.clone(), cols.clone())))?;
        whole.view_mut().block(rows, cols)?.copy_from(&block);
        if !progress(Progress::new("generate", done, total)) {
            return Err(Error::Cancelled);
        }
    }
    Ok(whole)
}
