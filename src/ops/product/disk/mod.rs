//! Products of matrices larger than memory: from binary files to a binary file, tiles of the result in a storage
//! directory in between.
//!
//! The product is that of one process (`product::run`) with operands that are read piece by piece, ahead of their
//! conversion (`operands`), and a result that is rounded tile by tile. Tiles are published as they are
//! finished, so a run that was ended continues from them. Source: docs/OUT_OF_CORE.md.

mod operands;
mod plan;
mod run;

pub use plan::OutOfCoreProductPlan;

use crate::context::Context;
use crate::error::Result;
use crate::matrix::Op;
use crate::ops::disk::DiskUse;
use crate::ops::product::report::Phases;
use crate::options::setters;
use crate::site::{Site, Team};
use crate::storage::Caching;
use operands::FileProduct;
use serde::Serialize;
use std::path::Path;

/// An operand in a binary file.
#[derive(Clone, Copy, Debug)]
pub struct OperandFile<'a> {
    /// The file, with all entries or the lower triangle of a symmetric matrix.
    pub path: &'a Path,
    /// Whether the matrix is used transposed.
    pub op: Op,
}

impl<'a> OperandFile<'a> {
    /// The matrix in a file, not transposed.
    pub fn new(path: &'a Path) -> OperandFile<'a> {
        OperandFile { path, op: Op::NoTranspose }
    }

    /// The same operand with `op` applied to its matrix.
    #[must_use]
    pub fn op(self, op: Op) -> OperandFile<'a> {
        OperandFile { op, ..self }
    }
}

/// The paths of an out-of-core product.
#[derive(Clone, Copy, Debug)]
pub struct ProductPaths<'a> {
    /// The binary file of the result.
    pub result: &'a Path,
    /// The directory of finished tiles.
    pub storage: &'a Path,
}

/// Options of an out-of-core product.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct OutOfCoreProductOptions {
    /// Rows and columns of a tile of the result, in multiples of 8; by default chosen from its shape. All tiles in a
    /// directory have one size.
    pub tile_size: Option<usize>,
    /// Whether the system's page cache is used.
    pub caching: Caching,
}

setters! { new OutOfCoreProductOptions {
    tile_size: impl Into<Option<usize>>,
    caching: Caching,
} }

/// The report of an out-of-core product.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct OutOfCoreProductReport {
    /// `syrk` or `gemm`.
    pub operation: &'static str,
    /// Rows contracted.
    pub contracted: usize,
    /// Rows of the result.
    pub rows: usize,
    /// Columns of the result.
    pub cols: usize,
    /// Precision of the result.
    pub precision_bits: u32,
    /// Precision of the scaled integers.
    pub working_bits: u32,
    /// Name of the kernel.
    pub kernel: &'static str,
    /// Residue planes, including a redundant one.
    pub primes: usize,
    /// Worker threads of all ranks together.
    pub threads: usize,
    /// Number of ranks.
    pub ranks: usize,
    /// Bands, chunks, memory and bytes as planned, of one rank.
    pub plan: OutOfCoreProductPlan,
    /// Tiles that an earlier run had left in the directory, and bytes read and written; sums over all ranks.
    #[serde(flatten)]
    pub disk: DiskUse,
    /// Seconds during which pieces of operands were read.
    pub operand_seconds: f64,
    /// Seconds during which workers waited for pieces of operands.
    pub wait_seconds: f64,
    /// Wall-clock seconds of the call.
    pub seconds: f64,
    /// Seconds of the pass over the operands.
    pub scan_seconds: f64,
    /// Seconds of the product.
    pub product_seconds: f64,
    /// Seconds of writing the result.
    pub store_seconds: f64,
    /// Wall-clock seconds of the product's phases.
    pub phases: Phases,
    /// Whether a redundant prime checked the product.
    pub checked: bool,
}

/// `Q := P^T P`, or `P P^T` with [`Op::Transpose`], from the binary file of `P` to a binary file of the lower triangle
/// of `Q`; finished tiles are kept in a storage directory.
///
/// Shapes, accuracy and bits: those of [`crate::syrk_with`] with [`crate::Accuracy::Norm`]. The file is byte for byte
/// the one that [`crate::io::write`] writes for the result of that function, for any memory limit and number of
/// threads, and after any number of interruptions. Memory: as planned, at most the context's limit; without a limit,
/// the memory of the machine. A directory belongs to one matrix, operation, precision and tile size; it contains about
/// the bytes of the result, and is not removed. Cost: that of [`crate::syrk_with`], one conversion of each band for
/// each pair of bands that contains it, and the transfers that the plan counts. Source: docs/OUT_OF_CORE.md.
///
/// ```
/// use sunzi::io::{self, ReadOptions, WriteOptions};
/// use sunzi::out_of_core::{self, OperandFile, OutOfCoreProductOptions, ProductPaths};
/// use sunzi::{Context, Matrix};
/// let folder = tempfile::tempdir().unwrap();
/// let [p, q, tiles] = ["p.bin", "q.bin", "tiles"].map(|name| folder.path().join(name));
/// io::write(&p, &Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 3.0, 4.0])?, &WriteOptions::new())?;
/// let ctx = Context::new()?;
/// let paths = ProductPaths { result: &q, storage: &tiles };
/// out_of_core::syrk(&ctx, OperandFile::new(&p), paths, 128, &OutOfCoreProductOptions::new())?;
/// assert_eq!(io::read(&q, &ReadOptions::new(128))?.matrix.view().to_f64s(), [5.0, 11.0, 11.0, 25.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// The errors of [`crate::syrk_with`]; [`crate::Error::MemoryLimit`] with the smallest limit that suffices;
/// [`crate::Error::StorageMismatch`] for the directory of another product, [`crate::Error::StorageInUse`] if another
/// run uses it; [`crate::Error::DiskFull`], [`crate::Error::Io`]: finished tiles are kept, and the next call continues
/// from them; [`crate::Error::InvalidArgument`] for a context with Freivalds' test, which would have to read the
/// operands a second time.
pub fn syrk(
    ctx: &Context,
    p: OperandFile<'_>,
    paths: ProductPaths<'_>,
    precision_bits: u32,
    options: &OutOfCoreProductOptions,
) -> Result<OutOfCoreProductReport> {
    run::run(Site::one_process(ctx), || FileProduct::syrk(p, precision_bits), paths, options)
}

/// [`syrk`] over the ranks of `team`: each rank multiplies its own pairs of bands, has its own directory in that of
/// `paths`, and an equal share of its node's limit. Collective.
///
/// All ranks read their bands from the operand's file, and rank 0 reads all of it once; rank 0 writes the result. A
/// resumed run may have another number of ranks: a rank does not compute again the tiles that it finds in its
/// directory. The file has the bytes of a run in one process.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{Team, TeamOptions};
/// use sunzi::io::{self, ReadOptions};
/// # use sunzi::io::WriteOptions;
/// use sunzi::out_of_core::{self, OperandFile, OutOfCoreProductOptions, ProductPaths};
/// use sunzi::Context;
/// # use sunzi::Matrix;
/// // The file `p` holds the matrix [1 3; 2 4].
/// # let folder = tempfile::tempdir().unwrap();
/// # let [p, q, tiles] = ["p.bin", "q.bin", "tiles"].map(|name| folder.path().join(name));
/// # io::write(&p, &Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 3.0, 4.0])?, &WriteOptions::new())?;
/// let reports = local::run(2, |rank| -> sunzi::Result<usize> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     let options = OutOfCoreProductOptions::new();
///     let paths = ProductPaths { result: &q, storage: &tiles };
///     Ok(out_of_core::syrk_over_ranks(&ctx, &team, OperandFile::new(&p), paths, 128, &options)?.ranks)
/// });
/// assert!(reports.into_iter().all(|report| report.is_ok()));
/// assert_eq!(io::read(&q, &ReadOptions::new(128))?.matrix.view().to_f64s(), [5.0, 11.0, 11.0, 25.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`syrk`], the same error on every rank; [`crate::Error::Transport`].
pub fn syrk_over_ranks(
    ctx: &Context,
    team: &Team,
    p: OperandFile<'_>,
    paths: ProductPaths<'_>,
    precision_bits: u32,
    options: &OutOfCoreProductOptions,
) -> Result<OutOfCoreProductReport> {
    run::run(Site { ctx, team }, || FileProduct::syrk(p, precision_bits), paths, options)
}

/// `C := op(A) op(B)` from the binary files of `A` and `B` to the file of `C`; otherwise as [`syrk`].
///
/// ```
/// use sunzi::io::{self, ReadOptions, WriteOptions};
/// use sunzi::out_of_core::{self, OperandFile, OutOfCoreProductOptions, ProductPaths};
/// use sunzi::{Context, Matrix, Op};
/// let folder = tempfile::tempdir().unwrap();
/// let [a, b, c, tiles] = ["a.bin", "b.bin", "c.bin", "tiles"].map(|name| folder.path().join(name));
/// io::write(&a, &Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 3.0, 4.0])?, &WriteOptions::new())?;
/// io::write(&b, &Matrix::from_f64s(2, 1, 128, &[5.0, 6.0])?, &WriteOptions::new())?;
/// let ctx = Context::new()?;
/// let paths = ProductPaths { result: &c, storage: &tiles };
/// let operands = (OperandFile::new(&a).op(Op::Transpose), OperandFile::new(&b));
/// out_of_core::gemm(&ctx, operands, paths, 128, &OutOfCoreProductOptions::new())?; // A^T B
/// assert_eq!(io::read(&c, &ReadOptions::new(128))?.matrix.view().to_f64s(), [17.0, 39.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`syrk`]; [`crate::Error::ShapeMismatch`].
pub fn gemm(
    ctx: &Context,
    (a, b): (OperandFile<'_>, OperandFile<'_>),
    paths: ProductPaths<'_>,
    precision_bits: u32,
    options: &OutOfCoreProductOptions,
) -> Result<OutOfCoreProductReport> {
    run::run(Site::one_process(ctx), || FileProduct::gemm(a, b, precision_bits), paths, options)
}

/// [`gemm`] over the ranks of `team`; see [`syrk_over_ranks`].
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{Team, TeamOptions};
/// use sunzi::io::{self, ReadOptions};
/// # use sunzi::io::WriteOptions;
/// use sunzi::out_of_core::{self, OperandFile, OutOfCoreProductOptions, ProductPaths};
/// use sunzi::Context;
/// # use sunzi::Matrix;
/// // The file `a` holds the matrix [1 3; 2 4] and `b` the column (5, 6).
/// # let folder = tempfile::tempdir().unwrap();
/// # let [a, b, c, tiles] = ["a.bin", "b.bin", "c.bin", "tiles"].map(|name| folder.path().join(name));
/// # io::write(&a, &Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 3.0, 4.0])?, &WriteOptions::new())?;
/// # io::write(&b, &Matrix::from_f64s(2, 1, 128, &[5.0, 6.0])?, &WriteOptions::new())?;
/// let reports = local::run(2, |rank| -> sunzi::Result<usize> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     let options = OutOfCoreProductOptions::new();
///     let paths = ProductPaths { result: &c, storage: &tiles };
///     let operands = (OperandFile::new(&a), OperandFile::new(&b));
///     Ok(out_of_core::gemm_over_ranks(&ctx, &team, operands, paths, 128, &options)?.ranks)
/// });
/// assert!(reports.into_iter().all(|report| report.is_ok()));
/// assert_eq!(io::read(&c, &ReadOptions::new(128))?.matrix.view().to_f64s(), [23.0, 34.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`syrk_over_ranks`].
pub fn gemm_over_ranks(
    ctx: &Context,
    team: &Team,
    (a, b): (OperandFile<'_>, OperandFile<'_>),
    paths: ProductPaths<'_>,
    precision_bits: u32,
    options: &OutOfCoreProductOptions,
) -> Result<OutOfCoreProductReport> {
    run::run(Site { ctx, team }, || FileProduct::gemm(a, b, precision_bits), paths, options)
}

/// The plan of [`syrk`]: bands, chunks, memory, and bytes that are read.
///
/// ```
/// use sunzi::io::{self, WriteOptions};
/// use sunzi::out_of_core::{self, OperandFile, OutOfCoreProductOptions};
/// use sunzi::{Context, Matrix};
/// let folder = tempfile::tempdir().unwrap();
/// let p = folder.path().join("p.bin");
/// io::write(&p, &Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 3.0, 4.0])?, &WriteOptions::new())?;
/// let ctx = Context::new()?;
/// let plan = out_of_core::plan_syrk(&ctx, OperandFile::new(&p), 128, &OutOfCoreProductOptions::new())?;
/// assert_eq!((plan.tiles, plan.product.rows), (1, 2));
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// The errors of [`syrk`] that follow from the header of the file and the memory limit.
pub fn plan_syrk(
    ctx: &Context,
    p: OperandFile<'_>,
    precision_bits: u32,
    options: &OutOfCoreProductOptions,
) -> Result<OutOfCoreProductPlan> {
    FileProduct::syrk(p, precision_bits)?.planned(ctx, options)
}

/// The plan of [`gemm`]; see [`plan_syrk`].
///
/// ```
/// use sunzi::io::{self, WriteOptions};
/// use sunzi::out_of_core::{self, OperandFile, OutOfCoreProductOptions};
/// use sunzi::{Context, Matrix};
/// let folder = tempfile::tempdir().unwrap();
/// let [a, b] = ["a.bin", "b.bin"].map(|name| folder.path().join(name));
/// io::write(&a, &Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 3.0, 4.0])?, &WriteOptions::new())?;
/// io::write(&b, &Matrix::from_f64s(2, 1, 128, &[5.0, 6.0])?, &WriteOptions::new())?;
/// let ctx = Context::new()?;
/// let operands = (OperandFile::new(&a), OperandFile::new(&b));
/// let plan = out_of_core::plan_gemm(&ctx, operands, 128, &OutOfCoreProductOptions::new())?;
/// assert_eq!((plan.product.rows, plan.product.cols), (2, 1));
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`plan_syrk`].
pub fn plan_gemm(
    ctx: &Context,
    (a, b): (OperandFile<'_>, OperandFile<'_>),
    precision_bits: u32,
    options: &OutOfCoreProductOptions,
) -> Result<OutOfCoreProductPlan> {
    FileProduct::gemm(a, b, precision_bits)?.planned(ctx, options)
}
