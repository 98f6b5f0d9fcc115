//! `A X = B` from files: an out-of-core factorisation, then two substitutions with the file of the factor.

use super::blocks::FileTriangle;
use super::needs::{FileBits, plan_expected};
use super::norms::LineNorms;
use super::solver::{DiskSystem, Prepared};
use super::system::PanelPaths;
use super::triangular::{open_right, pivots};
use super::{OutOfCoreSolveOptions, OutOfCoreSolveReport, SolvePaths};
use crate::comm::agreed;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::io::MatrixFile;
use crate::math::bound::cholesky_solve_guard_bits;
use crate::math::float::Head;
use crate::ops::disk::{DiskWatch, make_directory, progress_of, scanned_by_root};
use crate::ops::factor::disk::{self, OutOfCoreOptions, grid_of};
use crate::ops::product::problem::Accuracy;
use crate::ops::solve::cut::larger;
use crate::ops::solve::path::Path as SolvePath;
use crate::ops::solve::problem::{CHOLESKY, SolveBits, SystemShape, working_bits};
use crate::site::{Site, Team};
use crate::storage::{Caching, Identity};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The parts of a storage directory.
const TILES: &str = "tiles";
const SOLUTION: &str = "solution";

/// Exponents of norms of rows, and of columns.
type Exponents = (Vec<i64>, Vec<i64>);

/// The exponents of the norms of a factor's rows, and, for the path by tiles, of its columns in reversed order once the
/// rows are scaled by these. The file is checked.
fn exponents(ctx: &Context, file: &MatrixFile, path: SolvePath) -> Result<Exponents> {
    let n = file.rows();
    let mut rows = LineNorms::new(n);
    file.check(progress_of(ctx), |row, col, head| {
        if row >= col {
            rows.see(row, head);
        }
        Ok(())
    })?;
    let lower = |mut visit: Box<dyn FnMut(usize, usize, Head) + '_>| {
        file.visit_heads(progress_of(ctx), move |row, col, head| {
            if row >= col {
                visit(row, col, head);
            }
        })
    };
    lower(Box::new(|row, _, head| rows.add(row, head)))?;
    let scale = rows.exponents();
    if path != SolvePath::Tiles {
        return Ok((scale, Vec::new()));
    }
    let scaled = |row: usize, head: Head| match head.is_zero() {
        true => head,
        false => Head::new(head.is_negative(), head.exponent() - scale[row]),
    };
    let mut cols = LineNorms::new(n);
    lower(Box::new(|row, col, head| cols.see(col, scaled(row, head))))?;
    lower(Box::new(|row, col, head| cols.add(col, scaled(row, head))))?;
    let mut cols = cols.exponents();
    cols.reverse();
    Ok((scale, cols))
}

/// The solution `X` of `A X = B` for a symmetric positive definite `A`, from the binary files `matrix` and `right` to
/// the binary file `solution`.
///
/// Shapes: `matrix` as for [`crate::out_of_core::cholesky`], `right` is `n x m`. Accuracy and bits: those of
/// [`crate::solve_with`] with [`crate::Accuracy::Norm`]. The file is the same, byte for byte, for any memory limit and
/// number of threads, and after any number of interruptions. The directory `storage` contains the tiles of the
/// factorisation, the file of the factor, and finished columns: an interrupted run resumes from them. Memory: as
/// planned, at most the context's limit. Cost: that of the factorisation; in addition the factor is read twice for each
/// band of right-hand sides. Source: docs/OUT_OF_CORE.md.
///
/// ```
/// use sunzi::io::{self, ReadOptions, WriteOptions};
/// use sunzi::out_of_core::{self, OutOfCoreSolveOptions, SolvePaths};
/// use sunzi::{Context, Matrix};
/// let folder = tempfile::tempdir().unwrap();
/// let [a, b, x, tiles] = ["a.bin", "b.bin", "x.bin", "tiles"].map(|name| folder.path().join(name));
/// io::write(&a, &Matrix::from_f64s(2, 2, 128, &[4.0, 2.0, 2.0, 5.0])?, &WriteOptions::new())?;
/// io::write(&b, &Matrix::from_f64s(2, 1, 128, &[8.0, 12.0])?, &WriteOptions::new())?;
/// let ctx = Context::new()?;
/// let paths = SolvePaths { matrix: &a, right: &b, solution: &x, storage: &tiles };
/// out_of_core::solve(&ctx, paths, 128, &OutOfCoreSolveOptions::new())?;
/// assert_eq!(io::read(&x, &ReadOptions::new(128))?.matrix.view().to_f64s(), [1.0, 2.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// The errors of [`crate::out_of_core::cholesky`] and of [`crate::out_of_core::trsm`].
pub fn solve(
    ctx: &Context,
    paths: SolvePaths<'_>,
    precision_bits: u32,
    options: &OutOfCoreSolveOptions,
) -> Result<OutOfCoreSolveReport> {
    let options = OutOfCoreSolveOptions { grid: None, ..*options };
    solve_files(Site::one_process(ctx), paths, precision_bits, &options)
}

/// [`solve`] over the ranks of `team`: they factor as in [`crate::out_of_core::cholesky_over_ranks`], and each rank
/// solves for its own columns. Each rank has its own directories in those of one process, and an equal share of its
/// node's limit. Collective.
///
/// The factor is one file, which rank 0 writes and all ranks read.
///
/// ```
/// use sunzi::comm::{Transport, local};
/// use sunzi::distributed::{Team, TeamOptions};
/// use sunzi::io::{self, ReadOptions};
/// # use sunzi::io::WriteOptions;
/// use sunzi::out_of_core::{self, OutOfCoreSolveOptions, SolvePaths};
/// use sunzi::Context;
/// # use sunzi::Matrix;
/// // The file `a` holds the matrix [4 2; 2 5] and `b` the right side (8, 12).
/// # let folder = tempfile::tempdir().unwrap();
/// # let [a, b, x, tiles] = ["a.bin", "b.bin", "x.bin", "tiles"].map(|name| folder.path().join(name));
/// # io::write(&a, &Matrix::from_f64s(2, 2, 128, &[4.0, 2.0, 2.0, 5.0])?, &WriteOptions::new())?;
/// # io::write(&b, &Matrix::from_f64s(2, 1, 128, &[8.0, 12.0])?, &WriteOptions::new())?;
/// let reports = local::run(2, |rank| -> sunzi::Result<usize> {
///     let ctx = Context::builder().threads(1).build()?;
///     let team = Team::new(rank.split(0)?, TeamOptions::new())?;
///     let paths = SolvePaths { matrix: &a, right: &b, solution: &x, storage: &tiles };
///     Ok(out_of_core::solve_over_ranks(&ctx, &team, paths, 128, &OutOfCoreSolveOptions::new())?.ranks)
/// });
/// assert!(reports.into_iter().all(|report| report.is_ok()));
/// assert_eq!(io::read(&x, &ReadOptions::new(128))?.matrix.view().to_f64s(), [1.0, 2.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`solve`], the same error on every rank; [`Error::InvalidArgument`] for a grid of more ranks than there are;
/// [`Error::Transport`].
pub fn solve_over_ranks(
    ctx: &Context,
    team: &Team,
    paths: SolvePaths<'_>,
    precision_bits: u32,
    options: &OutOfCoreSolveOptions,
) -> Result<OutOfCoreSolveReport> {
    agreed(team.world(), grid_of(team, options.grid))?;
    solve_files(Site { ctx, team }, paths, precision_bits, options)
}

fn solve_files(
    site: Site<'_>,
    paths: SolvePaths<'_>,
    precision_bits: u32,
    options: &OutOfCoreSolveOptions,
) -> Result<OutOfCoreSolveReport> {
    let (start, ctx) = (Instant::now(), site.ctx);
    let SolvePaths { matrix, right, solution, storage } = paths;
    let file = site.agreed(MatrixFile::open(matrix))?;
    let right = site.agreed(open_right(right, "solve", &file))?;
    let shape = SystemShape { order: right.rows(), columns: right.cols() };
    let guard = cholesky_solve_guard_bits(shape.order);
    let working_bits = site.agreed(working_bits(ctx, precision_bits, guard, shape.order))?;
    let method = site.agreed(shape.method("solve", CHOLESKY, Accuracy::Norm))?;
    let bits = SolveBits { precision: precision_bits, working: working_bits };
    let mut report = OutOfCoreSolveReport::new(ctx, "solve", shape, bits, method);
    if shape.is_empty() {
        return shape.write_empty(site, solution, precision_bits).map(|()| report);
    }
    let factoring = DiskFactoring::new(site, matrix, storage, precision_bits, options);
    // Refused before the work of a factorisation.
    let file_bits = FileBits { right: right.precision_bits(), triangle: precision_bits, solution: precision_bits };
    let factor_bytes = factoring.planned_bytes();
    let bands = plan_expected(&site.share(), shape, method, file_bits, working_bits, 2);
    let band_bytes = site.agreed(site.of_node(bands.map(|plan| plan.planned_bytes)));
    larger(band_bytes, factor_bytes)?;
    let (_, [checksum, right_checksum]) = scanned_by_root(site, || {
        let right_checksum = right.check(progress_of(ctx), |_, _, _| Ok(()))?;
        Ok((Vec::new(), [file.checksum()?, right_checksum]))
    })?;
    let identity = Identity::new("solve")
        .with("order", shape.order)
        .with("columns", shape.columns)
        .with("precision_bits", precision_bits)
        .with("matrix_precision_bits", file.precision_bits())
        .with("matrix_checksum", format!("{checksum:016x}"))
        .with("right_checksum", format!("{right_checksum:016x}"));
    site.agreed(make_directory(storage))?;
    let (factor, (scale, upper)) = factoring.factor(&file, checksum, method.path, &mut report)?;
    let pivots = Arc::new(site.agreed(pivots(&factor, false))?);
    let (scale, watch): (Arc<[i64]>, _) = (scale.into(), DiskWatch::default());
    let triangle = |reversed: bool| FileTriangle {
        file: factor.clone(),
        transposed: reversed,
        reversed,
        scale: Some(scale.clone()),
        pivots: pivots.clone(),
        forget: options.caching != Caching::Cached,
        read_bytes: watch.read_bytes.clone(),
    };
    let lower = Prepared { triangle: triangle(false), exponents: vec![0; shape.order], unit: false };
    let steps = vec![lower, Prepared { triangle: triangle(true), exponents: upper, unit: false }];
    let (ctx, scale) = (&watch.told(&site.share()), Some(scale.clone()));
    let system = DiskSystem { ctx, site, watch, shape, right, alpha: None, steps, scale, bits, method };
    let directory = &storage.join(SOLUTION);
    system
        .run(PanelPaths { storage: directory, identity: &identity, caching: options.caching, solution }, &mut report)?;
    report.seconds = start.elapsed().as_secs_f64();
    Ok(report)
}

/// The factorisation at the start of a solve.
struct DiskFactoring<'a> {
    site: Site<'a>,
    matrix: &'a Path,
    storage: &'a Path,
    precision_bits: u32,
    options: OutOfCoreOptions,
}

impl<'a> DiskFactoring<'a> {
    fn new(
        site: Site<'a>,
        matrix: &'a Path,
        storage: &'a Path,
        precision_bits: u32,
        options: &OutOfCoreSolveOptions,
    ) -> DiskFactoring<'a> {
        let OutOfCoreSolveOptions { lower, tile_rows, caching, grid } = *options;
        let options = OutOfCoreOptions { lower, tile_rows, caching, grid, ..OutOfCoreOptions::default() };
        DiskFactoring { site, matrix, storage, precision_bits, options }
    }

    /// Collective.
    fn planned_bytes(&self) -> Result<u64> {
        let plan = disk::plan_file(self.site, self.matrix, self.precision_bits, &self.options)?;
        Ok(plan.planned_bytes)
    }

    /// The file of the factor, whose name identifies the matrix and options: the file is complete, or does not exist.
    fn path(&self, file: &MatrixFile, checksum: u64) -> PathBuf {
        let triangle = if self.options.lower { "-lower" } else { "" };
        let (matrix_bits, bits) = (file.precision_bits(), self.precision_bits);
        self.storage.join(format!("factor-{checksum:016x}-{matrix_bits}-{bits}{triangle}.bin"))
    }

    /// The factor with the exponents of its norms: made, or found complete by rank 0. A damaged one is made again.
    /// Collective.
    fn factor(
        &self,
        file: &MatrixFile,
        checksum: u64,
        solve_path: SolvePath,
        report: &mut OutOfCoreSolveReport,
    ) -> Result<(Arc<MatrixFile>, Exponents)> {
        let (path, site) = (self.path(file, checksum), self.site);
        loop {
            if site.root_finds(|| Ok(vec![u64::from(path.exists())]))? == [0] {
                let tiles = self.storage.join(TILES);
                let made = disk::factor_file(site, self.matrix, &path, &tiles, self.precision_bits, &self.options);
                site.ctx.release(); // under a limit the tiles of the factorisation are in the way
                report.factorisation = Some(made?);
            }
            let start = Instant::now();
            let mut is_damaged = false;
            let measured = scanned_by_root(self.site, || {
                let measured = MatrixFile::open(&path).and_then(|factor| exponents(site.ctx, &factor, solve_path));
                is_damaged = matches!(measured, Err(Error::Format { .. })) && report.factorisation.is_none();
                measured.map(|(scale, cols)| ([scale, cols].concat(), [0; 2]))
            });
            report.scan_seconds += start.elapsed().as_secs_f64();
            if site.root_finds(|| Ok(vec![u64::from(is_damaged)]))? == [1] {
                site.root_finds(|| {
                    let removed = fs::remove_file(&path);
                    removed.map_err(|source| Error::Io { path: path.clone(), action: "remove", source })?;
                    Ok(Vec::new())
                })?;
                continue;
            }
            let (both, _) = measured?;
            // One path of solves needs no norms of columns.
            let (scale, cols) = both.split_at(file.rows());
            let factor = site.agreed(MatrixFile::open(&path))?;
            return Ok((Arc::new(factor), (scale.to_vec(), cols.to_vec())));
        }
    }
}
