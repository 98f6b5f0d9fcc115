//! Cholesky factorisation of a matrix larger than memory: from a file to a file, tiles on a disk in between.
//!
//! The tiles and tasks are those of a factorisation in memory, under the order of blocks (`runtime::tile_level`): a
//! block of tiles stays in memory while the finished columns before it are streamed. Finished tiles are published in a
//! storage directory, big floats as exact integers and doubles as they are, so a run that was ended continues from
//! them. `call` holds the part common to all element types, `big` and `double` the differences. Source:
//! docs/OUT_OF_CORE.md.

mod big;
mod call;
mod double;

pub(crate) use big::{factor_file, plan_file, plan_order};
pub use call::OutOfCorePlan;
pub(crate) use call::grid_of;

use crate::context::Context;
use crate::drive::RankReport;
use crate::error::Result;
use crate::ops::disk::DiskUse;
use crate::ops::distribution::shared_devices::with_shared_devices;
use crate::ops::factor::report::RanksReport;
use crate::ops::factor::spans::{Span, TaskTimes};
use crate::options::setters;
use crate::site::{Site, Team};
use crate::storage::Caching;
use crate::tile::RankGrid;
use double::{factor_doubles, plan_doubles};
use serde::Serialize;
use std::path::Path;

/// Options of an out-of-core factorisation.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct OutOfCoreOptions {
    /// Rows of a tile, at most 4088 for big floats; by default chosen from the order. All tiles in a directory have one
    /// size.
    pub tile_rows: Option<usize>,
    /// Whether only the lower triangle of a file that stores all entries is used; by default both triangles are read
    /// and must be equal.
    pub lower: bool,
    /// Whether the system's page cache is used.
    pub caching: Caching,
    /// Whether the report includes the time spans of all tasks.
    pub spans: bool,
    /// Rows and columns of the grid of ranks, if there are several; by default nearly square.
    pub grid: Option<RankGrid>,
}

setters! { new OutOfCoreOptions {
    tile_rows: impl Into<Option<usize>>,
    lower: bool,
    caching: Caching,
    spans: bool,
    grid: impl Into<Option<RankGrid>>,
} }

impl OutOfCoreOptions {
    /// The options of one process, which has no grid.
    fn of_one_process(&self) -> OutOfCoreOptions {
        OutOfCoreOptions { grid: None, ..*self }
    }
}

/// The report of an out-of-core factorisation.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct OutOfCoreReport {
    /// `cholesky`.
    pub operation: &'static str,
    /// `big` or `double`.
    pub element: &'static str,
    /// Rows of the matrix.
    pub order: usize,
    /// Precision of the factor.
    pub precision_bits: u32,
    /// Fixed-point bits of the computation; 53 for doubles.
    pub working_bits: u32,
    /// Name of the kernel; for doubles the name of the instruction set.
    pub kernel: &'static str,
    /// Number of residue planes; 0 for doubles.
    pub primes: usize,
    /// Worker threads of all ranks together.
    pub threads: usize,
    /// Tiles, memory and bytes as planned, of one rank.
    pub plan: OutOfCorePlan,
    /// Tiles that an earlier run had left in the directory, and bytes read and written; sums over all ranks.
    #[serde(flatten)]
    pub disk: DiskUse,
    /// Wall-clock seconds of the call.
    pub seconds: f64,
    /// Seconds of the pass over the matrix.
    pub scan_seconds: f64,
    /// Seconds of the factorisation.
    pub factor_seconds: f64,
    /// Seconds of rounding and writing the factor.
    pub store_seconds: f64,
    /// Seconds of the tasks, summed over all workers.
    pub tasks: TaskTimes,
    /// The division of the work between ranks, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<RanksReport>,
    /// The time span of every task, for a trace.
    #[serde(skip)]
    pub spans: Vec<Span>,
    /// The counters of the scheduler.
    #[serde(skip)]
    pub rank: RankReport,
}

/// The lower triangular `L` with `A = L L^T`, from the binary file `matrix` to the binary file `factor`, with the tiles
/// that do not fit memory in the directory `storage`.
///
/// Shapes: `matrix` is `n x n`: the lower triangle of a symmetric matrix, or all entries, whose symmetry is checked or
/// of which only the lower triangle is used, see [`OutOfCoreOptions::lower`] and docs/FORMATS.md. Accuracy and bits:
/// those of [`crate::cholesky_with`] with [`crate::Accuracy::Norm`]. The file is the same, byte for byte, for any
/// memory limit and number of threads, and after any number of interruptions. Memory: as planned, at most the context's
/// limit; without one, the bytes of all tiles. A directory belongs to one matrix, precision and tile size; it contains
/// the finished tiles, about the bytes of the factor, and is not removed. Cost: that of [`crate::cholesky_with`], the
/// conversion of each finished tile once for each block that reads it, and the transfers that the plan counts. Source:
/// docs/OUT_OF_CORE.md.
///
/// ```
/// use sunzi::io::{self, ReadOptions, WriteOptions};
/// use sunzi::out_of_core::{self, OutOfCoreOptions};
/// use sunzi::{Context, Matrix};
/// let folder = tempfile::tempdir().unwrap();
/// let [a, l, tiles] = ["a.bin", "l.bin", "tiles"].map(|name| folder.path().join(name));
/// io::write(&a, &Matrix::from_f64s(2, 2, 128, &[4.0, 2.0, 2.0, 5.0])?, &WriteOptions::new())?;
/// let ctx = Context::new()?;
/// let report = out_of_core::cholesky(&ctx, (&a, &l), &tiles, 128, &OutOfCoreOptions::new())?;
/// assert_eq!((report.order, report.disk.tiles_found), (2, 0)); // nothing was there from an earlier run
/// assert_eq!(io::read(&l, &ReadOptions::new(128))?.matrix.view().to_f64s(), [2.0, 1.0, 0.0, 2.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// The errors of [`crate::cholesky_with`]; [`crate::Error::MemoryLimit`] if not even three tiles fit;
/// [`crate::Error::StorageMismatch`] for the directory of another factorisation, [`crate::Error::StorageInUse`] if
/// another run uses it; [`crate::Error::DiskFull`], [`crate::Error::Io`]: finished tiles are kept, and the next call
/// continues from them.
pub fn cholesky(
    ctx: &Context,
    (matrix, factor): (&Path, &Path),
    storage: &Path,
    precision_bits: u32,
    options: &OutOfCoreOptions,
) -> Result<OutOfCoreReport> {
    factor_file(Site::one_process(ctx), matrix, factor, storage, precision_bits, &options.of_one_process())
}

/// [`cholesky`] over the ranks of `team`: each rank has its own tiles, its own directory in `storage`, and an equal
/// share of its node's limit. Collective.
///
/// All ranks read their tiles from the file `matrix`, and rank 0 reads all of it once; rank 0 writes the file `factor`.
/// Finished tiles are sent to the ranks that read them, which keep them in their directories. A resumed run may have
/// another number of ranks: a rank does not compute again the tiles that it finds in its directory. The file has the
/// bytes of a run in one process.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{Team, TeamOptions};
/// use sunzi::io::{self, ReadOptions};
/// # use sunzi::io::WriteOptions;
/// use sunzi::out_of_core::{self, OutOfCoreOptions};
/// use sunzi::Context;
/// # use sunzi::Matrix;
/// // The file `a` holds the matrix [4 2; 2 5].
/// # let folder = tempfile::tempdir().unwrap();
/// # let [a, l, tiles] = ["a.bin", "l.bin", "tiles"].map(|name| folder.path().join(name));
/// # io::write(&a, &Matrix::from_f64s(2, 2, 128, &[4.0, 2.0, 2.0, 5.0])?, &WriteOptions::new())?;
/// let reports = local::run(2, |rank| -> sunzi::Result<usize> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     let options = OutOfCoreOptions::new();
///     Ok(out_of_core::cholesky_over_ranks(&ctx, &team, (&a, &l), &tiles, 128, &options)?.order)
/// });
/// assert!(reports.into_iter().all(|report| report.is_ok()));
/// assert_eq!(io::read(&l, &ReadOptions::new(128))?.matrix.view().to_f64s(), [2.0, 1.0, 0.0, 2.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`cholesky`], the same error on every rank; [`crate::Error::InvalidArgument`] for a grid of more ranks than there
/// are; [`crate::Error::Transport`].
pub fn cholesky_over_ranks(
    ctx: &Context,
    team: &Team,
    (matrix, factor): (&Path, &Path),
    storage: &Path,
    precision_bits: u32,
    options: &OutOfCoreOptions,
) -> Result<OutOfCoreReport> {
    team.drop_windows_if_limited(ctx.memory_bytes())?;
    let ctx = &with_shared_devices(ctx, team.world())?;
    factor_file(Site { ctx, team }, matrix, factor, storage, precision_bits, options)
}

/// The plan of [`cholesky`] for a file: blocks, memory, and transfers between memory and disk.
///
/// ```
/// use sunzi::io::{self, WriteOptions};
/// use sunzi::out_of_core::{self, OutOfCoreOptions};
/// use sunzi::{Context, Matrix};
/// let folder = tempfile::tempdir().unwrap();
/// let a = folder.path().join("a.bin");
/// io::write(&a, &Matrix::from_f64s(2, 2, 128, &[4.0, 2.0, 2.0, 5.0])?, &WriteOptions::new())?;
/// let ctx = Context::new()?;
/// let plan = out_of_core::plan_cholesky(&ctx, &a, 128, &OutOfCoreOptions::new())?;
/// assert_eq!(plan.tiles, 1);
/// assert!(plan.planned_bytes > 0);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// The errors of [`cholesky`] that follow from the header of the file and the memory limit.
pub fn plan_cholesky(
    ctx: &Context,
    matrix: &Path,
    precision_bits: u32,
    options: &OutOfCoreOptions,
) -> Result<OutOfCorePlan> {
    plan_file(Site::one_process(ctx), matrix, precision_bits, &options.of_one_process())
}

/// The lower triangular `L` with `A = L L^T` in doubles, from the binary file `matrix` to the binary file `factor` of
/// 53 bits, with the tiles that do not fit memory in the directory `storage`.
///
/// Shapes: as for [`cholesky`]. Entries of `matrix` that are not doubles are rounded to the nearest double, ties to
/// even, when they are read: entries of more than 53 bits, and entries below the range of normal doubles, which become
/// subnormal or 0. Accuracy: `|A - L L^T| <= c n eps |A|` with a small constant c, as any Cholesky factorisation in
/// doubles. Bits: those of [`crate::double::double_cholesky`] on CPUs of one kind with tiles of
/// [`OutOfCorePlan::tile_rows`] rows: the updates of a tile are applied in the order of their columns, for any memory
/// limit and number of threads, and after any number of interruptions. Memory: as planned, at most the context's limit;
/// without one, the bytes of all tiles. A directory belongs to one matrix, tile size and instruction set; finished
/// tiles are stored as doubles, 8 bytes for each entry of the triangle, and are not removed. Devices of the context are
/// not used. Cost: `n^3 / 6` multiply-adds in doubles, and the transfers that the plan counts. Source:
/// docs/OUT_OF_CORE.md.
///
/// ```
/// use sunzi::io::{self, ReadOptions, WriteOptions};
/// use sunzi::out_of_core::{self, OutOfCoreOptions};
/// use sunzi::{Context, Matrix};
/// let folder = tempfile::tempdir().unwrap();
/// let [a, l, tiles] = ["a.bin", "l.bin", "tiles"].map(|name| folder.path().join(name));
/// io::write(&a, &Matrix::from_f64s(2, 2, 53, &[4.0, 2.0, 2.0, 5.0])?, &WriteOptions::new())?;
/// let ctx = Context::new()?;
/// out_of_core::double_cholesky(&ctx, (&a, &l), &tiles, &OutOfCoreOptions::new())?;
/// assert_eq!(io::read(&l, &ReadOptions::new(128))?.matrix.view().to_f64s(), [2.0, 1.0, 0.0, 2.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::ExponentRange`] with the first entry, column by column, outside the range of doubles;
/// [`crate::Error::NotPositiveDefinite`] with the index of the first computed pivot that is not positive;
/// [`crate::Error::NotSquare`], [`crate::Error::NotSymmetric`], [`crate::Error::Format`] for a damaged file;
/// [`crate::Error::Cancelled`]; the errors of [`cholesky`] for limits, directories and disks.
pub fn double_cholesky(
    ctx: &Context,
    (matrix, factor): (&Path, &Path),
    storage: &Path,
    options: &OutOfCoreOptions,
) -> Result<OutOfCoreReport> {
    factor_doubles(Site::one_process(ctx), matrix, factor, storage, &options.of_one_process())
}

/// [`double_cholesky`] over the ranks of `team`, divided as in [`cholesky_over_ranks`]. Collective.
///
/// The file has the bytes of a run in one process if all ranks have CPUs of one kind; a mixture is refused.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{Team, TeamOptions};
/// use sunzi::io::{self, ReadOptions};
/// # use sunzi::io::WriteOptions;
/// use sunzi::out_of_core::{self, OutOfCoreOptions};
/// use sunzi::Context;
/// # use sunzi::Matrix;
/// // The file `a` holds the matrix [4 2; 2 5].
/// # let folder = tempfile::tempdir().unwrap();
/// # let [a, l, tiles] = ["a.bin", "l.bin", "tiles"].map(|name| folder.path().join(name));
/// # io::write(&a, &Matrix::from_f64s(2, 2, 53, &[4.0, 2.0, 2.0, 5.0])?, &WriteOptions::new())?;
/// let reports = local::run(2, |rank| -> sunzi::Result<usize> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     let options = OutOfCoreOptions::new();
///     Ok(out_of_core::double_cholesky_over_ranks(&ctx, &team, (&a, &l), &tiles, &options)?.order)
/// });
/// assert!(reports.into_iter().all(|report| report.is_ok()));
/// assert_eq!(io::read(&l, &ReadOptions::new(128))?.matrix.view().to_f64s(), [2.0, 1.0, 0.0, 2.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`double_cholesky`], the same error on every rank; [`crate::Error::InvalidArgument`] for a grid of more ranks
/// than there are, and for CPUs of several kinds; [`crate::Error::Transport`].
pub fn double_cholesky_over_ranks(
    ctx: &Context,
    team: &Team,
    (matrix, factor): (&Path, &Path),
    storage: &Path,
    options: &OutOfCoreOptions,
) -> Result<OutOfCoreReport> {
    team.drop_windows_if_limited(ctx.memory_bytes())?;
    factor_doubles(Site { ctx, team }, matrix, factor, storage, options)
}

/// The plan of [`double_cholesky`] for a file: blocks, memory, and transfers between memory and disk.
///
/// ```
/// use sunzi::io::{self, WriteOptions};
/// use sunzi::out_of_core::{self, OutOfCoreOptions};
/// use sunzi::{Context, Matrix};
/// let folder = tempfile::tempdir().unwrap();
/// let a = folder.path().join("a.bin");
/// io::write(&a, &Matrix::from_f64s(2, 2, 53, &[4.0, 2.0, 2.0, 5.0])?, &WriteOptions::new())?;
/// let ctx = Context::new()?;
/// let plan = out_of_core::plan_double_cholesky(&ctx, &a, &OutOfCoreOptions::new())?;
/// assert_eq!(plan.tiles, 1);
/// assert!(plan.planned_bytes > 0);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// The errors of [`double_cholesky`] that follow from the header of the file and the memory limit.
pub fn plan_double_cholesky(ctx: &Context, matrix: &Path, options: &OutOfCoreOptions) -> Result<OutOfCorePlan> {
    plan_doubles(Site::one_process(ctx), matrix, &options.of_one_process())
}
