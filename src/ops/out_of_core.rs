//! Operations on matrices larger than memory: they read and write binary files, and keep finished parts in a storage
//! directory. An interrupted run resumes from the finished parts; the result is that of a call in memory, byte for
//! byte.
//!
//! docs/OUT_OF_CORE.md describes the algorithms and their costs.

pub use crate::ops::cluster::plan_file_cholesky_cluster as plan_cholesky_cluster;
pub use crate::ops::cluster::plan_file_solve_cluster as plan_solve_cluster;
pub use crate::ops::disk::DiskUse;
pub use crate::ops::factor::disk::{OutOfCoreOptions, OutOfCorePlan, OutOfCoreReport};
pub use crate::ops::factor::disk::{
    cholesky, cholesky_over_ranks, double_cholesky, double_cholesky_over_ranks, plan_cholesky, plan_double_cholesky,
};
pub use crate::ops::product::disk::{
    OperandFile, OutOfCoreProductOptions, OutOfCoreProductPlan, OutOfCoreProductReport, ProductPaths, gemm,
    gemm_over_ranks, plan_gemm, plan_syrk, syrk, syrk_over_ranks,
};
pub use crate::ops::solve::disk::{
    OutOfCoreSolveOptions, OutOfCoreSolvePlan, OutOfCoreSolveReport, SolvePaths, solve, solve_over_ranks,
};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::Side;
use crate::ops::distribution::shared_devices::with_shared_devices;
use crate::ops::solve::disk::solve_triangle;
use crate::ops::solve::system::{TrsmOptions, check_scalar};
use crate::site::{Site, Team};

/// The solution `X` of `op(T) X = alpha B` for a triangular `T`, from files to a file; finished columns are kept in the
/// directory.
///
/// Shapes and accuracy as [`crate::trsm_with`] on the left side; if the file of `T` stores one triangle of a symmetric
/// matrix, `uplo` selects the triangle of that matrix. Bits: those of `trsm_with`. The file is the same, byte for byte,
/// for any memory limit and number of threads, and after any number of interruptions. Entrywise accuracy needs at least
/// eight right-hand sides of at least 8 rows. Memory: as planned, at most the context's limit; without a limit, bands
/// of up to 512 right-hand sides. A first pass reads the triangle once and its heads twice; the solve reads the
/// triangle once for each band, and again for columns that are solved with more bits. Cost: as `trsm_with`. Source:
/// docs/OUT_OF_CORE.md.
///
/// ```
/// use sunzi::io::{self, ReadOptions, WriteOptions};
/// use sunzi::out_of_core::{self, OutOfCoreSolveOptions, SolvePaths};
/// use sunzi::{Accuracy, Context, Matrix, Op, TrsmOptions};
/// let folder = tempfile::tempdir().unwrap();
/// let [l, b, x, tiles] = ["l.bin", "b.bin", "x.bin", "tiles"].map(|name| folder.path().join(name));
/// io::write(&l, &Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 0.0, 3.0])?, &WriteOptions::new())?;
/// io::write(&b, &Matrix::from_f64s(2, 1, 128, &[5.0, 6.0])?, &WriteOptions::new())?;
/// let ctx = Context::new()?;
/// let paths = SolvePaths { matrix: &l, right: &b, solution: &x, storage: &tiles };
/// let system = TrsmOptions::new().op(Op::Transpose).accuracy(Accuracy::Norm); // L^T X = B
/// out_of_core::trsm(&ctx, paths, 128, &system, &OutOfCoreSolveOptions::new())?;
/// assert_eq!(io::read(&x, &ReadOptions::new(128))?.matrix.view().to_f64s(), [1.0, 2.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// The errors of [`crate::trsm_with`]; [`Error::InvalidArgument`] for [`Side::Right`], and with entrywise accuracy for
/// few right-hand sides and for columns whose unknowns exceed the range of fixed point; [`Error::Format`] for a damaged
/// file; [`Error::StorageMismatch`] for the directory of another solve, [`Error::StorageInUse`] if another run uses it;
/// [`Error::DiskFull`], [`Error::Io`]: finished parts are kept, and the next call continues from them.
pub fn trsm(
    ctx: &Context,
    paths: SolvePaths<'_>,
    precision_bits: u32,
    system: &TrsmOptions<'_>,
    options: &OutOfCoreSolveOptions,
) -> Result<OutOfCoreSolveReport> {
    trsm_at(Site::one_process(ctx), paths, precision_bits, system, options)
}

/// [`trsm`] over the ranks of `team`: each rank solves for its own columns, has its own directory in that of `paths`,
/// and an equal share of its node's limit. Collective.
///
/// All ranks read the triangle and their columns from the files, and rank 0 reads both files completely once; rank 0
/// writes the solution.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{Team, TeamOptions};
/// use sunzi::io::{self, ReadOptions};
/// # use sunzi::io::WriteOptions;
/// use sunzi::out_of_core::{self, OutOfCoreSolveOptions, SolvePaths};
/// use sunzi::{Accuracy, Context, TrsmOptions};
/// # use sunzi::Matrix;
/// // The file `l` holds the triangle [1 0; 2 3] and `b` the right side (10, 23).
/// # let folder = tempfile::tempdir().unwrap();
/// # let [l, b, x, tiles] = ["l.bin", "b.bin", "x.bin", "tiles"].map(|name| folder.path().join(name));
/// # io::write(&l, &Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 0.0, 3.0])?, &WriteOptions::new())?;
/// # io::write(&b, &Matrix::from_f64s(2, 1, 128, &[10.0, 23.0])?, &WriteOptions::new())?;
/// let reports = local::run(2, |rank| -> sunzi::Result<usize> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     let paths = SolvePaths { matrix: &l, right: &b, solution: &x, storage: &tiles };
///     let (system, options) = (TrsmOptions::new().accuracy(Accuracy::Norm), OutOfCoreSolveOptions::new());
///     Ok(out_of_core::trsm_over_ranks(&ctx, &team, paths, 128, &system, &options)?.ranks)
/// });
/// assert!(reports.into_iter().all(|report| report.is_ok()));
/// assert_eq!(io::read(&x, &ReadOptions::new(128))?.matrix.view().to_f64s(), [10.0, 1.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`trsm`], the same error on every rank; [`Error::Transport`].
pub fn trsm_over_ranks(
    ctx: &Context,
    team: &Team,
    paths: SolvePaths<'_>,
    precision_bits: u32,
    system: &TrsmOptions<'_>,
    options: &OutOfCoreSolveOptions,
) -> Result<OutOfCoreSolveReport> {
    let ctx = &with_shared_devices(ctx, team.world())?;
    trsm_at(Site { ctx, team }, paths, precision_bits, system, options)
}

fn trsm_at(
    site: Site<'_>,
    paths: SolvePaths<'_>,
    precision_bits: u32,
    system: &TrsmOptions<'_>,
    options: &OutOfCoreSolveOptions,
) -> Result<OutOfCoreSolveReport> {
    if system.side == Side::Right {
        return Err(Error::InvalidArgument(
            "trsm out of core: the triangle is on the right side, but must be on the left".into(),
        ));
    }
    system.alpha.map(check_scalar).transpose()?;
    solve_triangle(site, paths, precision_bits, system, options.caching)
}
