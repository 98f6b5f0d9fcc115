//! The check of a factor in a file, for matrices larger than memory.

use super::source::LowerTriangle;
use super::{FactorCheck, check_bits, check_shapes};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::io::MatrixFile;
use crate::matrix::Uplo;
use crate::ops::verify::Verification;
use crate::options::setters;
use std::path::Path;

/// Choices of [`verify_cholesky_files`].
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct FileFactorOptions {
    /// The triangle of the matrix that is read, and the triangle of the factor; by default both triangles of the
    /// matrix, which must be equal, and a lower factor.
    pub triangle: Option<Uplo>,
    /// Seed of Freivalds' test; `None` draws a random seed.
    pub seed: Option<u64>,
}

setters! { new FileFactorOptions {
    triangle: impl Into<Option<Uplo>>,
    seed: impl Into<Option<u64>>,
} }

/// [`verify_cholesky`](super::verify_cholesky) of the matrix in the binary file `matrix` and the factor in the binary
/// file `factor`, which are read block by block.
///
/// Shapes, accuracy, decision, worst entry and its place are those of the check in memory. Both files are read once to
/// check every number and the checksums; then the factor is read about `2 n / (3 T)` times, in tiles of `T` rows that
/// are as large as the context's memory limit allows (512 rows without a limit). Memory: the limit, which must be at
/// least some MB.
///
/// ```
/// use sunzi::io::{self, WriteOptions};
/// use sunzi::verify::{FileFactorOptions, verify_cholesky_files};
/// use sunzi::{Context, Matrix};
/// let ctx = Context::new()?;
/// let folder = tempfile::tempdir().unwrap();
/// let (matrix, factor) = (folder.path().join("a.bin"), folder.path().join("l.bin"));
/// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 1.0, 2.0])?;
/// io::write(&matrix, &a, &WriteOptions::new())?;
/// io::write(&factor, sunzi::cholesky(&ctx, &a, 128)?.factor(), &WriteOptions::new())?;
/// let checked = verify_cholesky_files(&ctx, (&matrix, &factor), 128, &FileFactorOptions::new())?;
/// assert!(checked.worst_entry <= 1.0);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`verify_cholesky`](super::verify_cholesky); [`Error::Format`] for a damaged file, [`Error::Io`];
/// [`Error::MemoryLimit`] if tiles of 64 rows do not fit.
pub fn verify_cholesky_files(
    ctx: &Context,
    (matrix, factor): (&Path, &Path),
    precision_bits: u32,
    options: &FileFactorOptions,
) -> Result<Verification> {
    check_bits(precision_bits)?;
    let (a, l) = (MatrixFile::open(matrix)?, MatrixFile::open(factor)?);
    if a.rows() != a.cols() {
        return Err(Error::NotSquare { operation: "verify cholesky", rows: a.rows(), cols: a.cols() });
    }
    check_shapes(
        LowerTriangle::File { file: &a, transposed: false },
        LowerTriangle::File { file: &l, transposed: false },
    )?;
    let uplo = options.triangle.unwrap_or_default();
    let is_upper = uplo == Uplo::Upper;
    let check = FactorCheck {
        a: LowerTriangle::File { file: &a, transposed: is_upper && !a.is_symmetric() },
        l: LowerTriangle::File { file: &l, transposed: is_upper },
        uplo,
        precision_bits,
        compared: if options.triangle.is_none() { Some(&a) } else { None },
    };
    // A refusal comes before a file is read.
    check.plan_least(ctx)?;
    check.decide_by(check.look_at_rows(ctx)?, ctx, options.seed)
}
