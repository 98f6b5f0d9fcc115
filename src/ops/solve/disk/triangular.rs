//! `op(T) X = alpha B` from files.

use super::norms::Norms;
use super::rows::FileTriangle;
use super::system::{DiskSystem, Prepared, plan_expected};
use super::{OutOfCoreSolveOptions, OutOfCoreSolveReport, Shape, progress_of};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::io::MatrixFile;
use crate::math::float::{FloatRef, Head};
use crate::matrix::{Diag, Matrix, Op, Side, Uplo};
use crate::ops::solve::problem::{LOWER, UPPER, triangle_working_bits};
use crate::ops::solve::report::SolveBits;
use crate::ops::trsm::{TrsmOptions, check_scalar};
use crate::storage::{Caching, Identity};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// The triangle of a file.
struct Triangle<'a> {
    file: &'a MatrixFile,
    /// Whether it is the lower one, of the file.
    is_lower: bool,
    transposed: bool,
    unit: bool,
}

impl<'a> Triangle<'a> {
    /// The triangle that is meant; the upper one of a symmetric file is the lower one transposed.
    fn of(file: &'a MatrixFile, options: &TrsmOptions<'_>) -> Triangle<'a> {
        let is_mirrored = file.is_symmetric() && options.uplo == Uplo::Upper;
        Triangle {
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
        let mut norms = Norms::new(n);
        let checksum = self.file.check(progress_of(ctx), |row, col, head| {
            self.line(row, col).into_iter().for_each(|line| norms.see(line, head));
            Ok(())
        })?;
        let one = Head::new(false, 1);
        (0..if self.unit { n } else { 0 }).for_each(|line| norms.see(line, one));
        self.file.visit_heads(progress_of(ctx), |row, col, head| {
            self.line(row, col).into_iter().for_each(|line| norms.add(line, head));
        })?;
        (0..if self.unit { n } else { 0 }).for_each(|line| norms.add(line, one));
        let mut exponents = norms.exponents();
        if self.reversed() {
            exponents.reverse();
        }
        Ok((exponents, checksum))
    }
}

/// The diagonal of a file as a column.
///
/// # Errors
/// Those of reading; [`Error::Singular`] with the first zero, unless the diagonal is taken as ones.
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

/// Opens right sides, which have to be stored with all entries.
pub(super) fn open_right(path: &Path, operation: &'static str, triangle: &MatrixFile) -> Result<Arc<MatrixFile>> {
    let right = MatrixFile::open(path)?;
    let (order, cols) = (triangle.rows(), triangle.cols());
    if order != cols || right.rows() != order {
        return Err(Error::shape_mismatch(operation, (order, cols), (right.rows(), right.cols())));
    }
    if right.is_symmetric() {
        let path = path.display();
        return Err(Error::InvalidArgument(format!("{path}: right sides above a disk are stored with all entries")));
    }
    Ok(Arc::new(right))
}

/// The solution `X` of `op(T) X = alpha B` for a triangular `T`, from the binary files `triangle` and `right` to the
/// binary file `solution`, with finished columns in the directory `storage`.
///
/// Shapes and accuracy as [`crate::trsm_with`] on the left side; of a file that stores one triangle of a symmetric
/// matrix, that matrix' triangle is meant. Bits: those of `trsm_with`: the file is the same, byte for byte, whatever
/// the limit, the threads, and however often the run was ended and begun again.
/// Eight right sides or more, of more than 16 rows. Memory: as planned, at most the context's limit; without one bands
/// of up to 512 right sides. The triangle is read twice by its heads, once whole, and once for each band.
/// Cost: as `trsm_with`. Source: docs/OUT_OF_CORE.md.
///
/// # Errors
/// Those of [`crate::trsm_with`]; [`Error::InvalidArgument`] for the right side, for few right sides, and for columns
/// whose unknowns outgrow fixed point; [`Error::Format`] for a damaged file; [`Error::StorageMismatch`] for the
/// directory of another solve, [`Error::StorageInUse`] where another run works there; [`Error::DiskFull`],
/// [`Error::Io`]: what was finished stays, and the next call goes on from there.
pub fn trsm(
    ctx: &Context,
    (triangle, right, solution): (&Path, &Path, &Path),
    storage: &Path,
    precision_bits: u32,
    (options, above): (&TrsmOptions<'_>, &OutOfCoreSolveOptions),
) -> Result<OutOfCoreSolveReport> {
    let start = Instant::now();
    if options.side == Side::Right {
        return Err(Error::InvalidArgument("trsm above a disk: the triangle stands on the left side".into()));
    }
    options.alpha.map(check_scalar).transpose()?;
    let file = Arc::new(MatrixFile::open(triangle)?);
    let right = open_right(right, "trsm", &file)?;
    let shape = Shape { order: right.rows(), columns: right.cols() };
    let working_bits = triangle_working_bits(ctx, precision_bits, shape.order)?;
    let triangle = Triangle::of(&file, options);
    let substitutions = if triangle.reversed() { UPPER } else { LOWER };
    let method = shape.method("trsm", substitutions, options.accuracy)?;
    let bits = SolveBits { precision: precision_bits, working: working_bits };
    let mut report = OutOfCoreSolveReport::new(ctx, "trsm", shape, bits, method.accuracy);
    if shape.is_empty() {
        return shape.write_empty(ctx, solution, precision_bits).map(|()| report);
    }
    let file_bits = (right.precision_bits(), file.precision_bits(), precision_bits);
    plan_expected(ctx, (shape, method), file_bits, (working_bits, 1))?;
    let (exponents, checksum) = triangle.exponents(ctx)?;
    let right_checksum = right.check(progress_of(ctx), |_, _, _| Ok(()))?;
    let pivots = Arc::new(pivots(&file, triangle.unit)?);
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
    let forget = above.caching != Caching::Cached;
    let triangle = FileTriangle { file: file.clone(), transposed, reversed, scale: None, pivots, forget };
    let steps = vec![Prepared { triangle, exponents, unit }];
    let system =
        DiskSystem { ctx, shape, right, alpha: options.alpha, steps, scale: None, bits, accuracy: method.accuracy };
    system.run((storage, &identity, above.caching), solution, &mut report)?;
    report.seconds = start.elapsed().as_secs_f64();
    Ok(report)
}
