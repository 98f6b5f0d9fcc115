//! `trmv`: `y := alpha * op(T) x`, and `trsv`: the solution of `op(T) x = alpha * b`, for a triangular `T`.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::float::{FloatRef, limbs_for};
use crate::matrix::{Destination, Diag, EntryIndex, Matrix, MatrixView, Op, Uplo, check_exponent};
use crate::ops::fixed_sum::FixedSum;
use crate::ops::product::report::Outcome;
use crate::ops::vector::entries::{VectorReport, check_precision, one, prepare, scalar, vector_of};
use crate::ops::vector::products::VectorSums;
use crate::ops::vector::terms::{RightFactors, TermRun, TermSum};
use crate::options::setters;
use rug::Float;
use std::ops::Range;
use std::time::Instant;

/// Options of a TRMV or TRSV in addition to the operands and the precision.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct TriangleVectorOptions<'a> {
    /// The triangle of `T` that is read; the contents of the other triangle are ignored.
    pub uplo: Uplo,
    /// Whether `T` is used transposed.
    pub op: Op,
    /// Whether the diagonal of `T` is read or taken as ones.
    pub diag: Diag,
    /// Scalar of the given vector; `None` is 1.
    pub alpha: Option<&'a Float>,
}

setters! { new TriangleVectorOptions<'a> {
    uplo: Uplo,
    op: Op,
    diag: Diag,
    alpha: impl Into<Option<&'a Float>>,
} }

/// `y := L x` for a lower triangular `L`; see [`trmv_with`].
///
/// ```
/// use sunzi::{Context, Matrix, blas};
/// let ctx = Context::new()?;
/// let l = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 99.0, 3.0])?; // what stands above the diagonal is not read
/// let x = Matrix::from_f64s(2, 1, 128, &[10.0, 1.0])?;
/// assert_eq!(blas::trmv(&ctx, &l, &x, 128)?.view().to_f64s(), [10.0, 23.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`trmv_with`].
pub fn trmv<'a, 'x>(
    ctx: &Context,
    t: impl Into<MatrixView<'a>>,
    x: impl Into<MatrixView<'x>>,
    precision_bits: u32,
) -> Result<Matrix> {
    Ok(trmv_with(ctx, t, x, precision_bits, &TriangleVectorOptions::default())?.result)
}

/// `y := alpha * op(T) x` for a triangular `T` and a vector, rounded to `precision_bits` bits.
///
/// Shapes: `t` is `n x n`, of which one triangle is read (with [`Diag::Unit`] without its diagonal); `x` and the result
/// have `n` entries. Accuracy, bits and cost per entry of the triangle are those of [`crate::blas::gemv_with`].
///
/// ```
/// use sunzi::{Context, Diag, Matrix, Op, blas};
/// let ctx = Context::new()?;
/// let l = Matrix::from_f64s(2, 2, 128, &[99.0, 2.0, 0.0, 99.0])?; // its diagonal is taken as ones
/// let x = Matrix::from_f64s(2, 1, 128, &[10.0, 1.0])?;
/// let options = blas::TriangleVectorOptions::new().op(Op::Transpose).diag(Diag::Unit);
/// let y = blas::trmv_with(&ctx, &l, &x, 128, &options)?; // L^T x
/// assert_eq!(y.result.view().to_f64s(), [12.0, 1.0]);
/// assert_eq!(y.report.operation, "trmv");
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`crate::blas::gemv_with`].
pub fn trmv_with<'a, 'x>(
    ctx: &Context,
    t: impl Into<MatrixView<'a>>,
    x: impl Into<MatrixView<'x>>,
    precision_bits: u32,
    options: &TriangleVectorOptions<'_>,
) -> Result<Outcome<Matrix, VectorReport>> {
    let mut result = Matrix::empty();
    let report = trmv_into(ctx, t, x, precision_bits, options, &mut result)?;
    Ok(Outcome { result, report })
}

/// [`trmv_with`] into the caller's memory, as [`crate::blas::gemv_into`].
///
/// # Errors
/// As [`trmv_with`] and [`crate::blas::gemv_into`].
pub fn trmv_into<'a, 'x, 'r>(
    ctx: &Context,
    t: impl Into<MatrixView<'a>>,
    x: impl Into<MatrixView<'x>>,
    precision_bits: u32,
    options: &TriangleVectorOptions<'_>,
    result: impl Into<Destination<'r>>,
) -> Result<VectorReport> {
    let triangle = VectorTriangle::new("trmv", t.into(), options)?;
    let order = triangle.order();
    let (x, one) = (vector_of("trmv", x.into(), order)?, one()?);
    let sums =
        VectorSums { operation: "trmv", len: order, terms: order, scalars: (options.alpha, None), accumulate: None };
    sums.run(ctx, precision_bits, x, result.into(), |row| {
        let others = triangle.others(row);
        let own = if options.diag == Diag::Unit { one.view() } else { triangle.entries(row, row..row + 1)? };
        let others = TermRun { left: triangle.entries(row, others.clone())?, right: others };
        Ok([others, TermRun { left: own, right: row..row + 1 }])
    })
}

/// The solution `x` of `L x = b` for a lower triangular `L`; see [`trsv_with`].
///
/// ```
/// use sunzi::{Context, Matrix, blas};
/// let ctx = Context::new()?;
/// let l = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 99.0, 3.0])?; // what stands above the diagonal is not read
/// let b = Matrix::from_f64s(2, 1, 128, &[10.0, 23.0])?;
/// assert_eq!(blas::trsv(&ctx, &l, &b, 128)?.view().to_f64s(), [10.0, 1.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`trsv_with`].
pub fn trsv<'a, 'b>(
    ctx: &Context,
    t: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
) -> Result<Matrix> {
    Ok(trsv_with(ctx, t, b, precision_bits, &TriangleVectorOptions::default())?.result)
}

/// The solution `x` of `op(T) x = alpha * b` for a triangular `T` and a vector `b`, by substitution, rounded to
/// `precision_bits` bits.
///
/// Shapes: `t` is `n x n`, of which one triangle is read (with [`Diag::Unit`] without its diagonal); `b` and the result
/// have `n` entries. Accuracy: `|alpha b - op(T) x|_i <= 2^(1 - precision_bits) (|op(T)| |x|)_i`, a componentwise bound
/// for any exponents and any condition of `T`. The bits depend only on the operands, the precision and the options.
/// Cost: one multiplication of big floats for each entry of the triangle, and one division for each row; only the
/// calling thread computes, since each unknown depends on the previous one. Source: docs/decisions/032-vectors.md.
///
/// ```
/// use sunzi::{Context, Matrix, Op, blas};
/// let ctx = Context::new()?;
/// let l = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 0.0, 3.0])?;
/// let b = Matrix::from_f64s(2, 1, 128, &[5.0, 6.0])?;
/// let options = blas::TriangleVectorOptions::new().op(Op::Transpose);
/// let x = blas::trsv_with(&ctx, &l, &b, 128, &options)?; // L^T x = b
/// assert_eq!(x.result.view().to_f64s(), [1.0, 2.0]);
/// assert_eq!(x.report.operation, "trsv");
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Singular`] with the first zero on the diagonal; [`crate::Error::ExponentRange`] if an unknown is
/// outside the exponent range; the errors of [`crate::blas::gemv_with`].
pub fn trsv_with<'a, 'b>(
    ctx: &Context,
    t: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
    options: &TriangleVectorOptions<'_>,
) -> Result<Outcome<Matrix, VectorReport>> {
    let mut result = Matrix::empty();
    let report = trsv_into(ctx, t, b, precision_bits, options, &mut result)?;
    Ok(Outcome { result, report })
}

/// [`trsv_with`] into the caller's memory, as [`crate::blas::gemv_into`].
///
/// # Errors
/// As [`trsv_with`] and [`crate::blas::gemv_into`].
pub fn trsv_into<'a, 'b, 'r>(
    ctx: &Context,
    t: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
    options: &TriangleVectorOptions<'_>,
    result: impl Into<Destination<'r>>,
) -> Result<VectorReport> {
    let start = Instant::now();
    check_precision(precision_bits)?;
    let triangle = VectorTriangle::new("trsv", t.into(), options)?;
    let order = triangle.order();
    let b = vector_of("trsv", b.into(), order)?;
    let alpha = options.alpha.map(|alpha| scalar("alpha", alpha)).transpose()?;
    triangle.check_diagonal()?;
    let result_bytes = Matrix::bytes_for(order, 1, precision_bits);
    let planned_bytes = result_bytes.saturating_mul(2).saturating_add(triangle.room_bytes(precision_bits));
    ctx.admit(planned_bytes)?;
    let mut result = prepare(result.into(), order, precision_bits)?;
    let along = result.rows() == order;
    let mut room = SubstitutionRoom::new(order, precision_bits);
    let right = RightSide { b, alpha: alpha.as_ref().map(|alpha| alpha.get(0, 0)) };
    triangle.substitute(&right, &mut room, |row, value| match along {
        true => result.set(row, 0, value),
        false => result.set(0, row, value),
    })?;
    let (threads, seconds) = (1, start.elapsed().as_secs_f64());
    let report =
        VectorReport { operation: "trsv", rows: order, cols: order, precision_bits, ..VectorReport::default() };
    Ok(VectorReport { threads, seconds, planned_bytes, ..report })
}

/// A triangular operand of a vector, its `op` done.
pub(crate) struct VectorTriangle<'a> {
    /// All of it, or the rows of a piece, as far as the triangle goes in them.
    view: MatrixView<'a>,
    /// The place of the first entry of the view.
    first: EntryIndex,
    order: usize,
    lower: bool,
    diag: Diag,
}

/// The start of a substitution.
pub(crate) struct RightSide<'a> {
    /// One column.
    pub b: MatrixView<'a>,
    /// Its scalar; `None` is 1.
    pub alpha: Option<FloatRef<'a>>,
}

/// The scratch of a substitution.
pub(crate) struct SubstitutionRoom {
    sum: TermSum,
    /// The unknowns found so far with the other sign, as their terms are subtracted, and alpha.
    factors: RightFactors,
    limbs: Vec<u64>,
    quotient: Vec<u64>,
}

impl SubstitutionRoom {
    /// Room for `order` unknowns of `precision_bits` bits.
    pub fn new(order: usize, precision_bits: u32) -> SubstitutionRoom {
        SubstitutionRoom {
            sum: TermSum::new(precision_bits, order + 1),
            factors: RightFactors::zeros(order + 1, precision_bits, order + 1),
            limbs: vec![0; limbs_for(precision_bits)],
            quotient: Vec::new(),
        }
    }
}

impl<'a> VectorTriangle<'a> {
    fn new(operation: &'static str, t: MatrixView<'a>, options: &TriangleVectorOptions<'_>) -> Result<Self> {
        let (rows, cols) = (t.rows(), t.cols());
        if rows != cols {
            return Err(Error::shape_mismatch(operation, (rows, cols), (cols, rows)));
        }
        let transposed = options.op == Op::Transpose;
        let view = if transposed { t.transposed() } else { t };
        let lower = (options.uplo == Uplo::Lower) != transposed;
        Ok(VectorTriangle { view, first: EntryIndex::default(), order: rows, lower, diag: options.diag })
    }

    fn order(&self) -> usize {
        self.order
    }

    /// The columns of a row without the diagonal.
    fn others(&self, row: usize) -> Range<usize> {
        if self.lower { 0..row } else { row + 1..self.order() }
    }

    /// Some entries of a row, as a column.
    fn entries(&self, row: usize, cols: Range<usize>) -> Result<MatrixView<'a>> {
        let (row, first_col) = (row - self.first.row, self.first.col);
        Ok(self.view.block(row..row + 1, cols.start - first_col..cols.end - first_col)?.transposed())
    }

    fn pivot(&self, row: usize) -> FloatRef<'a> {
        self.view.get(row - self.first.row, row - self.first.col)
    }

    /// A lower triangle, or the upper one that is its transpose, with its diagonal.
    pub fn of_factor(lower: MatrixView<'a>, transposed: bool) -> Self {
        let view = if transposed { lower.transposed() } else { lower };
        VectorTriangle {
            view,
            first: EntryIndex::default(),
            order: lower.rows(),
            lower: !transposed,
            diag: Diag::NonUnit,
        }
    }

    /// Some rows of a triangle of `order` rows, as far as it goes in them: their first entry is that at
    /// `first`.
    pub fn of_piece(view: MatrixView<'a>, first: EntryIndex, order: usize, lower: bool) -> Self {
        VectorTriangle { view, first, order, lower, diag: Diag::NonUnit }
    }

    /// Refuses a diagonal with a zero.
    ///
    /// # Errors
    /// [`Error::Singular`] with the first one.
    pub fn check_diagonal(&self) -> Result<()> {
        let is_zero = |&i: &usize| self.diag == Diag::NonUnit && self.pivot(i).head.is_zero();
        (0..self.order()).find(is_zero).map_or(Ok(()), |index| Err(Error::Singular { index }))
    }

    /// Bytes of the room for a substitution.
    pub fn room_bytes(&self, precision_bits: u32) -> u64 {
        room_bytes(self.order(), precision_bits, self.view.limbs_per_element())
    }

    /// Finds the unknowns one after the other: a sum of products, a quotient, one rounding to the precision of the
    /// room.
    ///
    /// # Errors
    /// [`Error::ExponentRange`] with the row of an unknown that leaves the exponent range.
    pub fn substitute(
        &self,
        right: &RightSide<'_>,
        room: &mut SubstitutionRoom,
        store: impl FnMut(usize, FloatRef<'_>),
    ) -> Result<()> {
        self.substitute_rows(0..self.order(), right, room, store)
    }

    /// The part of [`VectorTriangle::substitute`] that finds the unknowns `rows`, after those before them in its order.
    ///
    /// # Errors
    /// As [`VectorTriangle::substitute`].
    pub fn substitute_rows(
        &self,
        rows: Range<usize>,
        right: &RightSide<'_>,
        room: &mut SubstitutionRoom,
        mut store: impl FnMut(usize, FloatRef<'_>),
    ) -> Result<()> {
        let order = self.order();
        let SubstitutionRoom { sum, factors, limbs, quotient } = room;
        if let Some(alpha) = right.alpha {
            factors.set(order, alpha);
        }
        for step in 0..rows.len() {
            let row = if self.lower { rows.start + step } else { rows.end - 1 - step };
            let others = self.others(row);
            let others = TermRun { left: self.entries(row, others.clone())?, right: others };
            match right.alpha {
                None => sum.add_up_to(factors, right.b.get(row, 0), &others),
                Some(_) => {
                    let own = right.b.block(row..row + 1, 0..1)?;
                    sum.add_up(factors, &[TermRun { left: own, right: order..order + 1 }, others]);
                }
            }
            let head = match self.diag {
                Diag::Unit => sum.sum.round(limbs),
                Diag::NonUnit => sum.sum.round_quotient(self.pivot(row), quotient, limbs),
            };
            check_exponent(head.exponent(), row, 0)?;
            store(row, FloatRef { head, limbs });
            factors.set(row, FloatRef { head: head.negated(), limbs });
        }
        Ok(())
    }
}

/// Bytes of a [`SubstitutionRoom`] for a triangle whose entries have `entry_limbs` limbs.
pub(crate) fn room_bytes(order: usize, precision_bits: u32, entry_limbs: usize) -> u64 {
    let sums = TermSum::bytes(precision_bits, order + 1) + FixedSum::quotient_bytes(precision_bits, entry_limbs);
    let limbs = limbs_for(precision_bits);
    sums.saturating_add(RightFactors::bytes(order + 1, precision_bits, order + 1, limbs)) + 8 * limbs as u64
}
