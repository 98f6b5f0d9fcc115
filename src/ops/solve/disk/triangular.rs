//! `op(T) X = alpha B` from files.

use super::blocks::FileTriangle;
use super::needs::{FileBits, plan_expected};
use super::norms::LineNorms;
use super::solver::{DiskSystem, Prepared};
use super::system::PanelPaths;
use super::{OutOfCoreSolveReport, SolvePaths};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::io::{HeadVisitor, MatrixFile};
use crate::math::float::{FloatRef, Head};
use crate::matrix::{Diag, Matrix, Op, Uplo};
use crate::ops::disk::{DiskWatch, progress_of, scanned_by_root};
use crate::ops::product::problem::Accuracy;
use crate::ops::solve::problem::{LOWER, SolveBits, SystemShape, UPPER, triangle_working_bits};
use crate::site::Site;
use crate::storage::{Caching, Identity};
use rug::Float;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

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
    fn of(file: &'a MatrixFile, options: &TriangleOptions<'_>) -> DiskTriangle<'a> {
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
pub(super) fn pivots(file: &MatrixFile, unit: bool) -> Result<Matrix> {
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
pub(super) fn open_right(path: &Path, operation: &'static str, triangle: &MatrixFile) -> Result<Arc<MatrixFile>> {
    let right = MatrixFile::open(path)?;
    let (order, cols) = (triangle.rows(), triangle.cols());
    if order != cols || right.rows() != order {
        return Err(Error::shape_mismatch(operation, (order, cols), (right.rows(), right.cols())));
    }
    if right.is_symmetric() {
        let path = path.display();
        let message = format!("{path}: right-hand sides of a solve out of core must be stored with all entries");
        return Err(Error::InvalidArgument(message));
    }
    Ok(Arc::new(right))
}

/// A triangular system on the left side.
#[derive(Clone, Copy)]
pub(crate) struct TriangleOptions<'a> {
    pub uplo: Uplo,
    pub op: Op,
    pub diag: Diag,
    pub accuracy: Accuracy,
    /// Finite; `None` is 1.
    pub alpha: Option<&'a Float>,
    pub caching: Caching,
}

/// See [`crate::out_of_core::trsm`]. Collective.
pub(crate) fn solve_triangle(
    site: Site<'_>,
    SolvePaths { matrix, right, solution, storage }: SolvePaths<'_>,
    precision_bits: u32,
    options: &TriangleOptions<'_>,
) -> Result<OutOfCoreSolveReport> {
    let (start, ctx) = (Instant::now(), site.ctx);
    let file = Arc::new(site.agreed(MatrixFile::open(matrix))?);
    let right = site.agreed(open_right(right, "trsm", &file))?;
    let shape = SystemShape { order: right.rows(), columns: right.cols() };
    let working_bits = site.agreed(triangle_working_bits(ctx, precision_bits, shape.order))?;
    let triangle = DiskTriangle::of(&file, options);
    let substitutions = if triangle.reversed() { UPPER } else { LOWER };
    let method = site.agreed(shape.method("trsm", substitutions, options.accuracy))?;
    let bits = SolveBits { precision: precision_bits, working: working_bits };
    let mut report = OutOfCoreSolveReport::new(ctx, "trsm", shape, bits, method);
    if shape.is_empty() {
        return shape.write_empty(site, solution, precision_bits).map(|()| report);
    }
    let watch = DiskWatch::default();
    let ctx = &watch.told(&site.share());
    let file_bits =
        FileBits { right: right.precision_bits(), triangle: file.precision_bits(), solution: precision_bits };
    site.agreed(site.of_node(plan_expected(ctx, shape, method, file_bits, working_bits, 1)))?;
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
    let forget = options.caching != Caching::Cached;
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
    let paths = PanelPaths { storage, identity: &identity, caching: options.caching, solution };
    system.run(paths, &mut report)?;
    report.seconds = start.elapsed().as_secs_f64();
    Ok(report)
}
