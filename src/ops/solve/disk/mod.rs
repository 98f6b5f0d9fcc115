//! Triangular solves and solves larger than memory: from binary files to a binary file.
//!
//! The triangle is streamed once for each substitution of a band of right-hand sides; the right-hand sides come band by
//! band from their file, and panels of solutions go to a storage directory, so that a run that was ended continues from
//! them. The bits are those of a solve in memory, whose loop and tiles are used. Source: docs/OUT_OF_CORE.md.

mod blocks;
mod system;

use crate::comm::agreed;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::io::{HeadVisitor, MatrixFile, MatrixFileShape};
use crate::math::float::{FloatRef, Head};
use crate::matrix::{Diag, Matrix, Op, Uplo};
use crate::ops::disk::{DiskUse, DiskWatch, ResultCut, make_directory, progress_of, scanned_by_root, write_zeros};
use crate::ops::factor::disk::{self, OutOfCoreOptions, OutOfCorePlan, OutOfCoreReport, grid_of};
use crate::ops::product::problem::Accuracy;
use crate::ops::solve::cut::{kernel_name, larger};
use crate::ops::solve::disk::blocks::{FileTriangle, LineNorms};
use crate::ops::solve::disk::system::{DiskSystem, PanelPaths, Prepared, plan_expected};
use crate::ops::solve::memory::LEAST_COLUMNS;
use crate::ops::solve::problem::{
    CHOLESKY, LOWER, Method, Path as SolvePath, SolveBits, Substitution, SystemShape, TrsmBits, UPPER, solve_bits,
};
use crate::ops::solve::system::TrsmOptions;
use crate::ops::solve::triangle::scaled_head;
use crate::options::setters;
use crate::site::{Site, Team};
use crate::storage::{Caching, Identity};
use crate::tile::RankGrid;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Options of an out-of-core solve.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct OutOfCoreSolveOptions {
    /// Whether only the lower triangle of a symmetric matrix stored with all entries is used; by default both triangles
    /// are read and must be equal. Triangular solves have their own option for the triangle.
    pub lower: bool,
    /// Rows of a tile of the factorisation; by default chosen from the order.
    pub tile_rows: Option<usize>,
    /// Whether the system's cache is used for the files of the storage directory.
    pub caching: Caching,
    /// Rows and columns of the grid of ranks that factor, if there are several; by default nearly square.
    pub grid: Option<RankGrid>,
}

setters! { new OutOfCoreSolveOptions {
    lower: bool,
    tile_rows: impl Into<Option<usize>>,
    caching: Caching,
    grid: impl Into<Option<RankGrid>>,
} }

impl OutOfCoreSolveOptions {
    /// The options of the factorisation at the start.
    fn of_factor(&self) -> OutOfCoreOptions {
        let OutOfCoreSolveOptions { lower, tile_rows, caching, grid } = *self;
        OutOfCoreOptions { lower, tile_rows, caching, grid, ..OutOfCoreOptions::default() }
    }
}

/// The files of a solve, and the directory for finished parts.
#[derive(Clone, Copy, Debug)]
pub struct SolvePaths<'a> {
    /// The file of the matrix or triangle.
    pub matrix: &'a Path,
    /// The right-hand sides.
    pub right: &'a Path,
    /// The solution.
    pub solution: &'a Path,
    /// The directory.
    pub storage: &'a Path,
}

/// The report of an out-of-core solve.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct OutOfCoreSolveReport {
    /// `trsm` or `solve`.
    pub operation: &'static str,
    /// Rows of the triangle, or of the matrix.
    pub order: usize,
    /// Right-hand sides.
    pub columns: usize,
    /// Requested precision.
    pub precision_bits: u32,
    /// Working precision in bits of right-hand sides and unknowns.
    pub working_bits: u32,
    /// Accuracy of the residual.
    pub accuracy: Accuracy,
    /// Name of the kernel.
    pub kernel: &'static str,
    /// Worker threads of all ranks together.
    pub threads: usize,
    /// Number of ranks.
    pub ranks: usize,
    /// The largest number of right-hand sides that are solved together: the triangle is read once for each band of this
    /// width and each substitution, and again for columns that are solved with more bits.
    pub band_columns: usize,
    /// Number of bands of right-hand sides that were solved, summed over all ranks.
    pub bands: usize,
    /// Bytes that the plan allows for one rank.
    pub planned_bytes: u64,
    /// Panels of eight columns that an earlier run had left in the directory of the solution, and bytes read and
    /// written; sums over all ranks.
    #[serde(flatten)]
    pub disk: DiskUse,
    /// Wall-clock seconds of the call.
    pub seconds: f64,
    /// Seconds of the passes over the files before the solve.
    pub scan_seconds: f64,
    /// Seconds of the solve.
    pub solve_seconds: f64,
    /// Seconds of writing the solution.
    pub store_seconds: f64,
    /// The report of the factorisation at the start of the call, unless a finished factor was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factorisation: Option<OutOfCoreReport>,
}

/// The plan of an out-of-core solve.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct OutOfCoreSolvePlan {
    /// The plan of the factorisation with which the call starts.
    pub factorisation: OutOfCorePlan,
    /// The largest number of right-hand sides of a rank that are solved together.
    pub band_columns: usize,
    /// Bytes of memory that the solve needs.
    pub solve_bytes: u64,
    /// Bytes of memory that the call needs: the larger of `solve_bytes` and those of the factorisation.
    pub planned_bytes: u64,
}

/// The plan for `columns` right-hand sides and a matrix of `order` rows, of which no files exist. Collective.
///
/// # Errors
/// The errors of [`disk::plan_order`]; [`Error::InvalidArgument`] for a shape that is solved in memory only.
pub(crate) fn plan_system(
    site: Site<'_>,
    order: usize,
    columns: usize,
    precision_bits: u32,
    options: &OutOfCoreSolveOptions,
) -> Result<OutOfCoreSolvePlan> {
    let shape = SystemShape { order, columns };
    let bits = site.agreed(solve_bits(site.ctx, CHOLESKY, precision_bits, order))?;
    let method = site.agreed(shape.method("solve", CHOLESKY, Accuracy::Norm))?;
    let factorisation = disk::plan_order(site, order, precision_bits, &options.of_factor());
    let (factorisation, factor_bytes) = with_bytes(factorisation, |plan| plan.planned_bytes);
    let file_bits = TrsmBits { right: precision_bits, triangle: precision_bits, solution: precision_bits };
    let bands = plan_expected(&site.share(), shape, method, file_bits, bits.working, 2);
    let (bands, band_bytes) = with_bytes(site.agreed(site.of_node(bands)), |plan| plan.planned_bytes);
    let planned_bytes = larger(band_bytes, factor_bytes)?;
    let (factorisation, bands) = factorisation.zip(bands).expect("neither was refused");
    let (band_columns, solve_bytes) = (bands.columns, bands.planned_bytes);
    Ok(OutOfCoreSolvePlan { factorisation, band_columns, solve_bytes, planned_bytes })
}

/// A plan, if there is one, and its bytes or the reason that there is none.
fn with_bytes<T>(plan: Result<T>, bytes: impl Fn(&T) -> u64) -> (Option<T>, Result<u64>) {
    match plan {
        Ok(plan) => {
            let bytes = bytes(&plan);
            (Some(plan), Ok(bytes))
        }
        Err(error) => (None, Err(error)),
    }
}

impl OutOfCoreSolveReport {
    /// The report of a call about to begin.
    fn new(ctx: &Context, operation: &'static str, shape: SystemShape, bits: SolveBits, method: Method) -> Self {
        OutOfCoreSolveReport {
            operation,
            order: shape.order,
            columns: shape.columns,
            precision_bits: bits.precision,
            working_bits: bits.working,
            accuracy: method.accuracy,
            kernel: kernel_name(ctx, method, shape.order, bits.working),
            threads: ctx.threads(),
            ranks: 1,
            ..OutOfCoreSolveReport::default()
        }
    }
}

impl SystemShape {
    /// The panels of a solution: columns of it, as many as the narrowest band has.
    fn panels(self) -> ResultCut {
        let SystemShape { order: rows, columns: cols } = self;
        ResultCut { rows, cols, block_rows: rows.max(1), block_cols: LEAST_COLUMNS, is_triangle: false }
    }

    /// Writes a solution without entries. Collective.
    fn write_empty(self, site: Site<'_>, path: &Path, precision_bits: u32) -> Result<()> {
        let shape = MatrixFileShape { rows: self.order, cols: self.columns, precision_bits, symmetric: false };
        write_zeros(site, path, shape)
    }

    /// The method of a solve; one accurate by norms may be done by parts.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`].
    fn method(self, operation: &str, substitutions: &[Substitution], accuracy: Accuracy) -> Result<Method> {
        let SystemShape { order, columns } = self;
        let method = Method::choose(substitutions, order, columns, accuracy);
        if method.path != SolvePath::Parts || method.by_parts_of_files() || self.is_empty() {
            return Ok(method);
        }
        Err(Error::InvalidArgument(format!(
            "{operation} out of core: {columns} right-hand sides of {order} rows are too few for entrywise accuracy, \
             which needs at least 8 of at least 8 rows: choose accuracy by norms, or solve in memory"
        )))
    }
}

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
    let scaled = |row: usize, head: Head| scaled_head(head, -scale[row]);
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
    let opened = OpenedSystem::new(site, "solve", &file, right, precision_bits, CHOLESKY, Accuracy::Norm)?;
    let OpenedSystem { right, shape, bits, method, mut report } = opened;
    if shape.is_empty() {
        return shape.write_empty(site, solution, precision_bits).map(|()| report);
    }
    let (caching, of_factor) = (options.caching, options.of_factor());
    let factoring = DiskFactoring { site, matrix, storage, precision_bits, options: of_factor };
    // Refused before the work of a factorisation.
    let file_bits = TrsmBits { right: right.precision_bits(), triangle: precision_bits, solution: precision_bits };
    let factor_bytes = disk::plan_file(site, matrix, precision_bits, &of_factor).map(|plan| plan.planned_bytes);
    let bands = plan_expected(&site.share(), shape, method, file_bits, bits.working, 2);
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
        forget: caching != Caching::Cached,
        read_bytes: watch.read_bytes.clone(),
    };
    let lower = Prepared { triangle: triangle(false), exponents: vec![0; shape.order], unit: false };
    let steps = vec![lower, Prepared { triangle: triangle(true), exponents: upper, unit: false }];
    let (ctx, scale) = (&watch.told(&site.share()), Some(scale.clone()));
    let system = DiskSystem { ctx, site, watch, shape, right, alpha: None, steps, scale, bits, method };
    let paths = PanelPaths { storage: &storage.join(SOLUTION), identity: &identity, caching, solution };
    system.run(paths, &mut report)?;
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

impl DiskFactoring<'_> {
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

/// The triangle of a file.
struct DiskTriangle<'a> {
    file: &'a MatrixFile,
    /// Whether it is the lower one, of the file.
    is_lower: bool,
    transposed: bool,
    unit: bool,
}

impl<'a> DiskTriangle<'a> {
    /// The selected triangle; the upper one of a symmetric file is the lower one transposed.
    fn of(file: &'a MatrixFile, options: &TrsmOptions<'_>) -> DiskTriangle<'a> {
        let is_mirrored = file.is_symmetric() && options.uplo == Uplo::Upper;
        DiskTriangle {
            file,
            is_lower: options.uplo == Uplo::Lower || is_mirrored,
            transposed: (options.op == Op::Transpose) != is_mirrored,
            unit: options.diag == Diag::Unit,
        }
    }

    fn reversed(&self) -> bool {
        self.is_lower == self.transposed
    }

    /// The row of `op(T)` that an entry of the file belongs to; `None` where it is outside the triangle.
    fn line(&self, row: usize, col: usize) -> Option<usize> {
        let is_inside = if self.is_lower { row >= col } else { row <= col };
        let is_read = is_inside && !(self.unit && row == col);
        is_read.then_some(if self.transposed { col } else { row })
    }

    /// Checks the file; the exponents of the norms of the rows of `op(T)`, in the order of the unknowns; the checksum.
    fn exponents(&self, ctx: &Context) -> Result<(Vec<i64>, u64)> {
        let n = self.file.rows();
        let one = Head::new(false, 1);
        let ones = 0..if self.unit { n } else { 0 };
        let mut seen = TriangleNorms { triangle: self, norms: LineNorms::new(n) };
        ones.clone().for_each(|line| seen.norms.see(line, one));
        let checksum = self.file.check_heads(progress_of(ctx), &mut seen)?;
        ones.for_each(|line| seen.norms.add(line, one));
        let norms = seen.norms;
        let mut exponents = norms.exponents();
        if self.reversed() {
            exponents.reverse();
        }
        Ok((exponents, checksum))
    }
}

/// Norms of the rows of `op(T)` under way.
struct TriangleNorms<'t> {
    triangle: &'t DiskTriangle<'t>,
    norms: LineNorms,
}

impl HeadVisitor for TriangleNorms<'_> {
    fn first(&mut self, row: usize, col: usize, head: Head) -> Result<()> {
        self.triangle.line(row, col).into_iter().for_each(|line| self.norms.see(line, head));
        Ok(())
    }

    fn second(&mut self, row: usize, col: usize, number: FloatRef<'_>) -> Result<()> {
        self.triangle.line(row, col).into_iter().for_each(|line| self.norms.add(line, number.head));
        Ok(())
    }
}

/// The diagonal of a file as a column.
///
/// # Errors
/// The errors of reading; [`Error::Singular`] with the first zero, unless the diagonal counts as ones.
fn pivots(file: &MatrixFile, unit: bool) -> Result<Matrix> {
    let mut pivots = Matrix::zeros(file.rows(), 1, file.precision_bits())?;
    for (row, head) in file.diagonal_heads()?.into_iter().enumerate() {
        if head.is_zero() && !unit {
            return Err(Error::Singular { index: row });
        }
        pivots.set(row, 0, FloatRef { head, limbs: &file.entry_limbs(row, row)? });
    }
    Ok(pivots)
}

/// Opens right-hand sides, which have to be stored with all entries.
fn open_right(path: &Path, operation: &'static str, triangle: &MatrixFile) -> Result<Arc<MatrixFile>> {
    let right = MatrixFile::open(path)?;
    let (order, cols) = (triangle.rows(), triangle.cols());
    if order != cols || right.rows() != order {
        return Err(Error::shape_mismatch(operation, (order, cols), (right.rows(), right.cols())));
    }
    if right.is_symmetric() {
        let path = path.display();
        let message = format!(
            "{path}: the right-hand sides are stored as one triangle of a symmetric matrix, but a solve out of core \
             needs all entries"
        );
        return Err(Error::InvalidArgument(message));
    }
    Ok(Arc::new(right))
}

/// A system whose files are open.
struct OpenedSystem {
    right: Arc<MatrixFile>,
    shape: SystemShape,
    bits: SolveBits,
    method: Method,
    report: OutOfCoreSolveReport,
}

impl OpenedSystem {
    /// Opens the right sides of a matrix or triangle, and chooses the bits and the method. Collective.
    fn new(
        site: Site<'_>,
        operation: &'static str,
        matrix: &MatrixFile,
        right: &Path,
        precision_bits: u32,
        substitutions: &[Substitution],
        accuracy: Accuracy,
    ) -> Result<OpenedSystem> {
        let right = site.agreed(open_right(right, operation, matrix))?;
        let shape = SystemShape { order: right.rows(), columns: right.cols() };
        let bits = site.agreed(solve_bits(site.ctx, substitutions, precision_bits, shape.order))?;
        let method = site.agreed(shape.method(operation, substitutions, accuracy))?;
        let report = OutOfCoreSolveReport::new(site.ctx, operation, shape, bits, method);
        Ok(OpenedSystem { right, shape, bits, method, report })
    }
}

/// See [`crate::out_of_core::trsm`]; the triangle stands on the left side, and alpha is finite. Collective.
pub(crate) fn solve_triangle(
    site: Site<'_>,
    SolvePaths { matrix, right, solution, storage }: SolvePaths<'_>,
    precision_bits: u32,
    options: &TrsmOptions<'_>,
    caching: Caching,
) -> Result<OutOfCoreSolveReport> {
    let start = Instant::now();
    let file = Arc::new(site.agreed(MatrixFile::open(matrix))?);
    let triangle = DiskTriangle::of(&file, options);
    let substitutions = if triangle.reversed() { UPPER } else { LOWER };
    let opened = OpenedSystem::new(site, "trsm", &file, right, precision_bits, substitutions, options.accuracy)?;
    let OpenedSystem { right, shape, bits, method, mut report } = opened;
    if shape.is_empty() {
        return shape.write_empty(site, solution, precision_bits).map(|()| report);
    }
    let watch = DiskWatch::default();
    let ctx = &watch.told(&site.share());
    let file_bits =
        TrsmBits { right: right.precision_bits(), triangle: file.precision_bits(), solution: precision_bits };
    site.agreed(site.of_node(plan_expected(ctx, shape, method, file_bits, bits.working, 1)))?;
    let (exponents, [checksum, right_checksum]) = scanned_by_root(site, || {
        let (exponents, checksum) = triangle.exponents(ctx)?;
        Ok((exponents, [checksum, right.check(progress_of(ctx), |_, _, _| Ok(()))?]))
    })?;
    let pivots = Arc::new(site.agreed(pivots(&file, triangle.unit))?);
    report.scan_seconds = start.elapsed().as_secs_f64();
    let (transposed, reversed, unit) = (triangle.transposed, triangle.reversed(), triangle.unit);
    let identity = Identity::new("trsm")
        .with("order", shape.order)
        .with("columns", shape.columns)
        .with("precision_bits", precision_bits)
        .with("triangle_checksum", format!("{checksum:016x}"))
        .with("right_checksum", format!("{right_checksum:016x}"))
        .with("system", format!("{:?} {:?} {:?} {:?}", options.uplo, options.op, options.diag, method.accuracy))
        .with("alpha", options.alpha.map_or("1".into(), |alpha| alpha.to_string_radix(16, None)));
    let forget = caching != Caching::Cached;
    let triangle = FileTriangle {
        file: file.clone(),
        transposed,
        reversed,
        scale: None,
        pivots,
        forget,
        read_bytes: watch.read_bytes.clone(),
    };
    let steps = vec![Prepared { triangle, exponents, unit }];
    let system = DiskSystem { ctx, site, watch, shape, right, alpha: options.alpha, steps, scale: None, bits, method };
    let paths = PanelPaths { storage, identity: &identity, caching, solution };
    system.run(paths, &mut report)?;
    report.seconds = start.elapsed().as_secs_f64();
    Ok(report)
}
