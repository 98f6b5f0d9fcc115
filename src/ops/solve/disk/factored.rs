//! `A X = B` from files: a factorisation above a disk, then two substitutions with the file of the factor.

use super::blocks::FileTriangle;
use super::needs::{FileBits, plan_expected};
use super::norms::Norms;
use super::panels::PanelPlace;
use super::solver::{DiskSystem, Prepared};
use super::triangular::{open_right, pivots};
use super::{OutOfCoreSolveOptions, OutOfCoreSolveReport, Shape, SolvePaths};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::io::MatrixFile;
use crate::math::bound::cholesky_solve_guard_bits;
use crate::math::float::Head;
use crate::ops::disk_use::progress_of;
use crate::ops::factor::disk::{self, OutOfCoreOptions};
use crate::ops::product::problem::Accuracy;
use crate::ops::solve::cut::larger;
use crate::ops::solve::path::Path as SolvePath;
use crate::ops::solve::problem::{CHOLESKY, working_bits};
use crate::ops::solve::report::SolveBits;
use crate::storage::{Caching, Identity};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The parts of a storage directory.
const TILES: &str = "tiles";
const SOLUTION: &str = "solution";

/// Of norms of rows, and of columns.
type Exponents = (Vec<i64>, Vec<i64>);

/// The exponents of the norms of a factor's rows, and, for the path by tiles, of its columns in reversed order once the
/// rows are scaled by these. The file is checked.
fn exponents(ctx: &Context, file: &MatrixFile, path: SolvePath) -> Result<Exponents> {
    let n = file.rows();
    let mut rows = Norms::new(n);
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
    let mut cols = Norms::new(n);
    lower(Box::new(|row, col, head| cols.see(col, scaled(row, head))))?;
    lower(Box::new(|row, col, head| cols.add(col, scaled(row, head))))?;
    let mut cols = cols.exponents();
    cols.reverse();
    Ok((scale, cols))
}

/// Makes a directory in a folder that exists, unless it is there.
fn make_directory(path: &Path) -> Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(Error::Io { path: path.to_path_buf(), action: "create", source: error })
        }
        _ => Ok(()),
    }
}

/// The solution `X` of `A X = B` for a symmetric positive definite `A`, from the binary files `matrix` and `right` to
/// the binary file `solution`.
///
/// Shapes: `matrix` as for [`crate::out_of_core::cholesky`], `right` is `n x m`.
/// Accuracy and bits: those of [`crate::solve_with`] by norms: the file is the same, byte for byte, whatever the limit,
/// the threads, and however often the run was ended and begun again.
/// The directory `storage` holds the tiles of the factorisation, the file of the factor, and finished columns: a run
/// that was ended goes on from what is there. Memory: as planned, at most the context's limit.
/// Cost: that of the factorisation, and the factor is read twice for each band of right sides.
/// Source: docs/OUT_OF_CORE.md.
///
/// # Errors
/// Those of [`crate::out_of_core::cholesky`] and of [`crate::out_of_core::trsm`].
pub fn solve(
    ctx: &Context,
    paths: SolvePaths<'_>,
    precision_bits: u32,
    options: &OutOfCoreSolveOptions,
) -> Result<OutOfCoreSolveReport> {
    let start = Instant::now();
    let SolvePaths { matrix, right, solution, storage } = paths;
    let file = MatrixFile::open(matrix)?;
    let right = open_right(right, "solve", &file)?;
    let shape = Shape { order: right.rows(), columns: right.cols() };
    let working_bits = working_bits(ctx, precision_bits, cholesky_solve_guard_bits(shape.order), shape.order)?;
    let method = shape.method("solve", CHOLESKY, Accuracy::Norm)?;
    let bits = SolveBits { precision: precision_bits, working: working_bits };
    let mut report = OutOfCoreSolveReport::new(ctx, "solve", shape, bits, method.accuracy);
    if shape.is_empty() {
        return shape.write_empty(ctx, solution, precision_bits).map(|()| report);
    }
    let factoring = Factoring::new(ctx, matrix, storage, (precision_bits, options));
    // Refused before the work of a factorisation.
    let file_bits = FileBits { right: right.precision_bits(), triangle: precision_bits, solution: precision_bits };
    let bands = plan_expected(ctx, (shape, method), file_bits, (working_bits, 2));
    larger(bands.map(|plan| plan.planned_bytes), factoring.planned_bytes())?;
    let right_checksum = right.check(progress_of(ctx), |_, _, _| Ok(()))?;
    let identity = Identity::new("solve")
        .with("order", shape.order)
        .with("columns", shape.columns)
        .with("precision_bits", precision_bits)
        .with("matrix_precision_bits", file.precision_bits())
        .with("matrix_checksum", format!("{:016x}", file.checksum()?))
        .with("right_checksum", format!("{right_checksum:016x}"));
    make_directory(storage)?;
    let (factor, (scale, upper)) = factoring.factor((&file, method.path), &mut report)?;
    let pivots = Arc::new(pivots(&factor, false)?);
    let scale: Arc<[i64]> = scale.into();
    let triangle = |reversed: bool| FileTriangle {
        file: factor.clone(),
        transposed: reversed,
        reversed,
        scale: Some(scale.clone()),
        pivots: pivots.clone(),
        forget: options.caching != Caching::Cached,
    };
    let lower = Prepared { triangle: triangle(false), exponents: vec![0; shape.order], unit: false };
    let steps = vec![lower, Prepared { triangle: triangle(true), exponents: upper, unit: false }];
    let system = DiskSystem { ctx, shape, right, alpha: None, steps, scale: Some(scale.clone()), bits, method };
    let directory = &storage.join(SOLUTION);
    let place = PanelPlace { directory, identity: &identity, caching: options.caching };
    system.run(place, solution, &mut report)?;
    report.seconds = start.elapsed().as_secs_f64();
    Ok(report)
}

/// The factorisation that a solve begins with.
struct Factoring<'a> {
    ctx: &'a Context,
    matrix: &'a Path,
    storage: &'a Path,
    precision_bits: u32,
    options: OutOfCoreOptions,
}

impl<'a> Factoring<'a> {
    fn new(
        ctx: &'a Context,
        matrix: &'a Path,
        storage: &'a Path,
        (precision_bits, options): (u32, &OutOfCoreSolveOptions),
    ) -> Factoring<'a> {
        let OutOfCoreSolveOptions { lower, tile_rows, caching } = *options;
        let options = OutOfCoreOptions { lower, tile_rows, caching, ..OutOfCoreOptions::default() };
        Factoring { ctx, matrix, storage, precision_bits, options }
    }

    fn planned_bytes(&self) -> Result<u64> {
        let plan = disk::plan_cholesky(self.ctx, self.matrix, self.precision_bits, &self.options)?;
        Ok(plan.planned_bytes)
    }

    /// The file of the factor, which says by its name what it belongs to: it is complete, or not there.
    fn path(&self, file: &MatrixFile) -> Result<PathBuf> {
        let triangle = if self.options.lower { "-lower" } else { "" };
        let (checksum, matrix_bits, bits) = (file.checksum()?, file.precision_bits(), self.precision_bits);
        Ok(self.storage.join(format!("factor-{checksum:016x}-{matrix_bits}-{bits}{triangle}.bin")))
    }

    /// The factor with the exponents of its norms: made, or found complete. A damaged one is made again.
    fn factor(
        &self,
        (file, solve_path): (&MatrixFile, SolvePath),
        report: &mut OutOfCoreSolveReport,
    ) -> Result<(Arc<MatrixFile>, Exponents)> {
        let path = self.path(file)?;
        loop {
            if !path.exists() {
                let files = (self.matrix, path.as_path());
                let made =
                    disk::cholesky(self.ctx, files, &self.storage.join(TILES), self.precision_bits, &self.options);
                self.ctx.release(); // under a limit the tiles of the factorisation are in the way
                report.factorisation = Some(made?);
            }
            let start = Instant::now();
            let measured =
                MatrixFile::open(&path).and_then(|factor| Ok((exponents(self.ctx, &factor, solve_path)?, factor)));
            report.scan_seconds += start.elapsed().as_secs_f64();
            match measured {
                Err(Error::Format { .. }) if report.factorisation.is_none() => {
                    let removed = fs::remove_file(&path);
                    removed.map_err(|source| Error::Io { path: path.clone(), action: "remove", source })?;
                }
                measured => return measured.map(|(exponents, factor)| (Arc::new(factor), exponents)),
            }
        }
    }
}
