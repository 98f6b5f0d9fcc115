//! Test matrices written to binary files block by block, so that a matrix may be larger than memory.

use super::{Kind, Size, generate_block};
use crate::context::{Context, Progress, ProgressCallback};
use crate::error::{Error, Result};
use crate::io::{Block, MatrixFileShape, write_blocks};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of a block that is made at a time.
const BLOCK_BYTES: u64 = 8 << 20;

/// A test matrix to be written to a file.
#[derive(Clone, Copy, Debug)]
pub struct FileMatrix {
    /// Kind of the matrix.
    pub kind: Kind,
    /// Shape and precision of the matrix.
    pub size: Size,
    /// Seed of the random kinds.
    pub seed: u64,
    /// Whether only its lower triangle is stored, as a symmetric file; possible for square matrices of a symmetric
    /// kind.
    pub symmetric: bool,
}

impl FileMatrix {
    /// Returns an error if a matrix that is not symmetric is to be stored as symmetric.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`].
    pub fn check(&self) -> Result<()> {
        let Size { rows, cols, .. } = self.size;
        if self.symmetric && (rows != cols || !self.kind.is_symmetric()) {
            let kind = self.kind.name();
            return Err(Error::InvalidArgument(format!(
                "a {rows} x {cols} matrix of the kind {kind} is not symmetric"
            )));
        }
        Ok(())
    }
}

/// Writes the binary file `path`, which appears complete or not at all; it is byte for byte the file that
/// [`crate::io::write`] writes for the matrix of [`generate`](super::generate). Returns the time spent on making the
/// entries.
///
/// Cost: as `generate`; in addition the file is read once for its checksum. Memory: a few MB, and a column (for
/// `bootstrap1d` 16 rows) for each thread. `progress` receives the entries done (phase `generate`) and the bytes read
/// (phase `checksum`).
///
/// # Errors
/// The errors of [`FileMatrix::check`], [`generate_block`] and [`write_blocks`]; [`Error::Cancelled`].
pub fn generate_file(path: &Path, matrix: &FileMatrix, progress: Option<Arc<ProgressCallback>>) -> Result<Duration> {
    matrix.check()?;
    let FileMatrix { kind, size, seed, symmetric } = *matrix;
    let Size { rows, cols, precision_bits } = size;
    let shape = MatrixFileShape { rows, cols, precision_bits, symmetric };
    let ctx = Context::builder().build()?;
    let entries = |rows: &Range<usize>, cols: &Range<usize>| rows.len() as u64 * cols.len() as u64;
    let mut spent = Duration::ZERO;
    write_blocks(path, shape, progress.clone(), |writer| {
        let blocks = || kind.blocks(size, symmetric, BLOCK_BYTES);
        let (mut done, total) = (0, blocks().map(|(rows, cols)| entries(&rows, &cols)).sum());
        for (rows, cols) in blocks() {
            let start = Instant::now();
            let block = ctx.install(|| generate_block(kind, size, seed, (rows.clone(), cols.clone())))?;
            spent += start.elapsed();
            done += entries(&rows, &cols);
            let (heads, limbs) = block.parts();
            writer.write_block(&Block { rows, cols }, heads, limbs)?;
            let told = Progress::new("generate", done, total);
            if progress.as_ref().is_some_and(|progress| !progress(told)) {
                return Err(Error::Cancelled);
            }
        }
        Ok(())
    })?;
    Ok(spent)
}
