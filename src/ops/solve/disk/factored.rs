//! `A X = B` from files: a factorisation above a disk, then two substitutions with the file of the factor.

use super::norms::Norms;
use super::rows::FileTriangle;
use super::system::{DiskSystem, Prepared, plan_expected};
use super::triangular::{open_right, pivots};
use super::{OutOfCoreSolveOptions, OutOfCoreSolveReport, Shape, progress_of};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::io::{MatrixFile, MatrixFileShape, write_blocks};
use crate::math::bound::cholesky_solve_guard_bits;
use crate::math::float::Head;
use crate::ops::factor::disk::{self, OutOfCoreOptions};
use crate::ops::product::problem::Accuracy;
use crate::ops::solve::cut::larger;
use crate::ops::solve::problem::{CHOLESKY, working_bits};
use crate::storage::Identity;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The parts of a storage directory.
const TILES: &str = "tiles";
const SOLUTION: &str = "solution";

/// The exponents of the norms of a factor's rows, and of its columns in reversed order once the rows are scaled by
/// these; the checksum. The file is checked.
fn exponents(ctx: &Context, file: &MatrixFile) -> Result<(Vec<i64>, Vec<i64>)> {
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
/// Shapes: `matrix` as for [`disk::cholesky`], `right` is `n x m` with `m >= 8` and `n > 16`.
/// Accuracy and bits: those of [`crate::solve_with`] by norms: the file is the same, byte for byte, whatever the limit,
/// the threads, and however often the run was ended and begun again.
/// The directory `storage` holds the tiles of the factorisation, the file of the factor, and finished columns: a run
/// that was ended goes on from what is there. Memory: as planned, at most the context's limit.
/// Cost: that of the factorisation, and the factor is read twice for each band of right sides.
/// Source: docs/OUT_OF_CORE.md.
///
/// # Errors
/// Those of [`disk::cholesky`] and of [`super::trsm`].
pub fn solve(
    ctx: &Context,
    (matrix, right, solution): (&Path, &Path, &Path),
    storage: &Path,
    precision_bits: u32,
    options: &OutOfCoreSolveOptions,
) -> Result<OutOfCoreSolveReport> {
    let start = Instant::now();
    let file = MatrixFile::open(matrix)?;
    let right = open_right(right, "solve", &file)?;
    let shape = Shape { order: right.rows(), columns: right.cols() };
    let working_bits = working_bits(ctx, precision_bits, cholesky_solve_guard_bits(shape.order), shape.order)?;
    let method = shape.method("solve", CHOLESKY, Accuracy::Norm)?;
    let mut report = OutOfCoreSolveReport {
        operation: "solve",
        order: shape.order,
        columns: shape.columns,
        precision_bits,
        working_bits,
        kernel: ctx.kernel().name(),
        threads: ctx.threads(),
        ..OutOfCoreSolveReport::default()
    };
    if shape.is_empty() {
        let all = MatrixFileShape { rows: shape.order, cols: shape.columns, precision_bits, symmetric: false };
        return write_blocks(solution, all, progress_of(ctx), |_| Ok(())).map(|()| report);
    }
    // Refused before the work of a factorisation.
    let bits = (right.precision_bits(), precision_bits, precision_bits);
    let bands = plan_expected(ctx, (shape, method), bits, (working_bits, 2));
    let factoring = OutOfCoreOptions {
        lower: options.lower,
        tile_rows: options.tile_rows,
        caching: options.caching,
        ..OutOfCoreOptions::default()
    };
    let factored = disk::plan_cholesky(ctx, matrix, precision_bits, &factoring);
    larger(bands.map(|plan| plan.planned_bytes), factored.map(|plan| plan.planned_bytes))?;
    let right_checksum = right.check(progress_of(ctx), |_, _, _| Ok(()))?;
    make_directory(storage)?;
    let matrix_checksum = file.checksum()?;
    let factor = factor_path(storage, (matrix_checksum, options.lower), (file.precision_bits(), precision_bits));
    if !factor.exists() {
        let tiles = storage.join(TILES);
        report.factorisation = Some(disk::cholesky(ctx, (matrix, &factor), &tiles, precision_bits, &factoring)?);
        ctx.release(); // under a limit the tiles of the factorisation are in the way
    }
    let scan = Instant::now();
    let factor = Arc::new(MatrixFile::open(&factor)?);
    let (scale, upper) = exponents(ctx, &factor)?;
    let pivots = Arc::new(pivots(&factor, false)?);
    report.scan_seconds = scan.elapsed().as_secs_f64();
    let identity = Identity::new("solve")
        .with("order", shape.order)
        .with("columns", shape.columns)
        .with("precision_bits", precision_bits)
        .with("matrix_precision_bits", file.precision_bits())
        .with("matrix_checksum", format!("{matrix_checksum:016x}"))
        .with("right_checksum", format!("{right_checksum:016x}"));
    let scale: Arc<[i64]> = scale.into();
    let triangle = |reversed: bool| FileTriangle {
        file: factor.clone(),
        transposed: reversed,
        reversed,
        scale: Some(scale.clone()),
        pivots: pivots.clone(),
    };
    let lower = Prepared { triangle: triangle(false), exponents: vec![0; shape.order], unit: false };
    let upper = Prepared { triangle: triangle(true), exponents: upper, unit: false };
    let system = DiskSystem {
        ctx,
        shape,
        right,
        alpha: None,
        steps: vec![lower, upper],
        scale: Some(scale),
        precision_bits,
        working_bits,
        accuracy: method.accuracy,
    };
    system.run((&storage.join(SOLUTION), &identity, options.caching), solution, &mut report)?;
    report.seconds = start.elapsed().as_secs_f64();
    Ok(report)
}

/// The file of a factor, which says by its name what it belongs to: it is complete, or not there.
fn factor_path(storage: &Path, (checksum, lower): (u64, bool), (matrix_bits, precision_bits): (u32, u32)) -> PathBuf {
    let triangle = if lower { "-lower" } else { "" };
    storage.join(format!("factor-{checksum:016x}-{matrix_bits}-{precision_bits}{triangle}.bin"))
}
