//! Products with vectors: `dot`: `x^T y`, and `nrm2`: the Euclidean norm of `x`; `gemv`:
//! `y := alpha * op(A) x + beta * y0`, and `symv`, the same for a symmetric `A`.

use crate::context::Context;
use crate::error::Result;
use crate::math::float::{FloatRef, Head, limbs_for, round_integer};
use crate::matrix::{Destination, EntryIndex, Matrix, MatrixView, Op, Symmetric, check_exponent};
use crate::ops::fixed_sum::FixedSum;
use crate::ops::product::combine::{AddedMatrix, Epilogue};
use crate::ops::product::report::Outcome;
use crate::ops::vector::entries::{VectorCall, VectorReport, check_precision, vector, vector_of};
use crate::ops::vector::terms::{RightFactors, TermRun, TermSum, cut_columns, term_nanoseconds};
use crate::options::setters;
use rug::{Float, Integer, integer::Order};

/// The sum `x^T y` of the products of the entries of two vectors, rounded to `precision_bits` bits.
///
/// Shapes: `x` and `y` are matrices or views of one column or one row, with the same number of entries, which may be 0.
/// Accuracy: `|computed - exact| <= 2^(1 - precision_bits) |x|^T |y|`, for any exponents; only the sum is rounded, and
/// the bits depend only on the entries and the precision. Cost: one multiplication of big floats for each term. Source:
/// docs/decisions/032-vectors.md.
///
/// ```
/// use sunzi::{Context, Matrix};
/// let ctx = Context::builder().threads(1).build()?;
/// let x = Matrix::from_f64s(3, 1, 256, &[1.0, 2.0, 3.0])?;
/// let y = Matrix::from_f64s(1, 3, 256, &[4.0, -5.0, 6.0])?; // rows are vectors too
/// assert_eq!(sunzi::blas::dot(&ctx, &x, &y, 256)?, 12);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::ShapeMismatch`]; [`crate::Error::Precision`]; [`crate::Error::ExponentRange`] if the sum is outside
/// the exponent range; [`crate::Error::MemoryLimit`].
pub fn dot<'a, 'b>(
    ctx: &Context,
    x: impl Into<MatrixView<'a>>,
    y: impl Into<MatrixView<'b>>,
    precision_bits: u32,
) -> Result<Float> {
    check_precision(precision_bits)?;
    let x = vector("dot", x.into())?;
    let y = vector_of("dot", y.into(), x.rows())?;
    let mut sum = sum_of_products(ctx, x, y, precision_bits)?;
    let mut limbs = vec![0; limbs_for(precision_bits)];
    let head = sum.round(&mut limbs);
    float(head, &limbs, precision_bits)
}

/// The Euclidean norm `sqrt(x^T x)` of a vector, rounded to `precision_bits` bits.
///
/// Shapes: `x` is a matrix or view of one column or one row; the norm of no entries is 0. Accuracy: `|computed - exact|
/// <= 2^(1 - precision_bits) exact`. The squares cannot overflow. Source: docs/decisions/032-vectors.md.
///
/// ```
/// use sunzi::{Context, Matrix};
/// let ctx = Context::builder().threads(1).build()?;
/// let x = Matrix::from_f64s(2, 1, 256, &[3.0, -4.0])?;
/// assert_eq!(sunzi::blas::nrm2(&ctx, &x, 256)?, 5);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`dot`].
pub fn nrm2<'a>(ctx: &Context, x: impl Into<MatrixView<'a>>, precision_bits: u32) -> Result<Float> {
    check_precision(precision_bits)?;
    let x = vector("nrm2", x.into())?;
    let mut sum = sum_of_products(ctx, x, x, precision_bits)?;
    let square = sum.exact();
    let bits = 64 * square.magnitude.len() as u32;
    // An even power of two stays outside of the root, so that no number leaves MPFR's range.
    let odd = square.exponent.rem_euclid(2);
    let integer = Integer::from_digits(square.magnitude, Order::Lsf) << odd as u32;
    let root = Float::with_val(precision_bits, Float::with_val(bits + 1, integer).sqrt_ref());
    let Some((integer, exponent)) = root.to_integer_exp() else { return Ok(Float::new(precision_bits)) };
    let exponent = i64::from(exponent) + (square.exponent - odd) / 2;
    let mut limbs = vec![0; limbs_for(precision_bits)];
    let head = round_integer(false, integer.as_limbs(), exponent, precision_bits, &mut limbs);
    float(head, &limbs, precision_bits)
}

/// Terms whose right factors are held as digits at a time.
const PIECE: usize = 512;

/// Short sums hold fewer: blocks of at most this many bytes are allocated faster.
const SHORT_PIECE_BYTES: usize = 960;
const SHORT: usize = 128;

/// Terms of a sum of `len` terms whose right factors are held at a time.
fn piece_of(len: usize, precision_bits: u32) -> usize {
    let eights = SHORT_PIECE_BYTES / (64 * cut_columns(precision_bits, len).max(1));
    if len <= SHORT && eights > 0 { len.min(8 * eights) } else { len.min(PIECE) }
}

fn sum_of_products(ctx: &Context, x: MatrixView<'_>, y: MatrixView<'_>, precision_bits: u32) -> Result<FixedSum> {
    let len = x.rows();
    let piece = piece_of(len, precision_bits);
    let factor_bytes = RightFactors::bytes(piece, precision_bits, len, y.limbs_per_element());
    ctx.admit(TermSum::bytes(precision_bits, len).saturating_add(factor_bytes))?;
    let mut sum = TermSum::new(precision_bits, len);
    let mut factors = RightFactors::zeros(piece, precision_bits, len);
    sum.begin_product(&factors, &x, &y);
    for first in (0..len).step_by(piece.max(1)) {
        let rows = first..(first + piece).min(len);
        factors.set_all(&y.block(rows.clone(), 0..1)?);
        sum.add(&factors, &TermRun { right: 0..rows.len(), left: x.block(rows.clone(), 0..1)? }, rows);
    }
    sum.finish(&factors);
    Ok(sum.sum)
}

/// The number as an MPFR float.
fn float(head: Head, limbs: &[u64], precision_bits: u32) -> Result<Float> {
    check_exponent(head.exponent(), 0, 0)?;
    Ok(FloatRef { head, limbs }.to_float(precision_bits))
}

/// Options of a GEMV in addition to the operands and the precision.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct GemvOptions<'a> {
    /// Whether `A` is used transposed.
    pub op: Op,
    /// Scalar of the product; `None` is 1.
    pub alpha: Option<&'a Float>,
    /// Scalar of `accumulate`; `None` is 1.
    pub beta: Option<&'a Float>,
    /// A vector to add: the result is `alpha * op(A) x + beta * accumulate`, rounded once.
    pub accumulate: Option<MatrixView<'a>>,
}

setters! { new GemvOptions<'a> {
    op: Op,
    alpha: impl Into<Option<&'a Float>>,
    beta: impl Into<Option<&'a Float>>,
    accumulate: impl Into<Option<MatrixView<'a>>>,
} }

/// Options of a SYMV in addition to the operands and the precision.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SymvOptions<'a> {
    /// Scalar of the product; `None` is 1.
    pub alpha: Option<&'a Float>,
    /// Scalar of `accumulate`; `None` is 1.
    pub beta: Option<&'a Float>,
    /// A vector to add: the result is `alpha * A x + beta * accumulate`, rounded once.
    pub accumulate: Option<MatrixView<'a>>,
}

setters! { new SymvOptions<'a> {
    alpha: impl Into<Option<&'a Float>>,
    beta: impl Into<Option<&'a Float>>,
    accumulate: impl Into<Option<MatrixView<'a>>>,
} }

/// `y := A x`; see [`gemv_with`].
///
/// ```
/// use sunzi::{Context, Matrix, blas};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 3.0, 4.0])?; // column by column
/// let x = Matrix::from_f64s(2, 1, 128, &[5.0, 6.0])?;
/// assert_eq!(blas::gemv(&ctx, &a, &x, 128)?.view().to_f64s(), [23.0, 34.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`gemv_with`].
pub fn gemv<'a, 'x>(
    ctx: &Context,
    a: impl Into<MatrixView<'a>>,
    x: impl Into<MatrixView<'x>>,
    precision_bits: u32,
) -> Result<Matrix> {
    Ok(gemv_with(ctx, a, x, precision_bits, &GemvOptions::default())?.result)
}

/// `y := alpha * op(A) x + beta * y0` for a matrix `A` and vectors, rounded to `precision_bits` bits.
///
/// Shapes: `op(A)` is `M x N`; `x` has `N` entries, the result and `accumulate` have `M`; vectors are matrices or views
/// of one column or one row. Any size may be 0. Accuracy: `|computed - exact|_i <= 2^(1 - precision_bits) (|alpha| (|A|
/// |x|)_i + |beta| |y0_i|)`: a componentwise bound, for any exponents. The bits are the same on any number of threads.
/// Cost: one multiplication of big floats for each entry of `A`. Source: docs/decisions/032-vectors.md.
///
/// ```
/// use sunzi::{Context, Matrix, Op, blas, rug::Float};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 3.0, 4.0])?;
/// let x = Matrix::from_f64s(2, 1, 128, &[5.0, 6.0])?;
/// let b = Matrix::from_f64s(2, 1, 128, &[20.0, 40.0])?;
/// let minus = Float::with_val(2, -1);
/// let options = blas::GemvOptions::new().op(Op::Transpose).alpha(&minus).accumulate(b.view());
/// let residual = blas::gemv_with(&ctx, &a, &x, 128, &options)?; // b - A^T x
/// assert_eq!(residual.result.view().to_f64s(), [3.0, 1.0]);
/// assert_eq!((residual.report.operation, residual.report.rows), ("gemv", 2));
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::ShapeMismatch`]; [`crate::Error::Precision`]; [`crate::Error::InvalidArgument`] for scalars that are
/// not finite; [`crate::Error::ExponentRange`] if an entry of the result is outside the exponent range;
/// [`crate::Error::MemoryLimit`]; [`crate::Error::Cancelled`]; [`crate::Error::OutOfMemory`].
pub fn gemv_with<'a, 'x>(
    ctx: &Context,
    a: impl Into<MatrixView<'a>>,
    x: impl Into<MatrixView<'x>>,
    precision_bits: u32,
    options: &GemvOptions<'_>,
) -> Result<Outcome<Matrix, VectorReport>> {
    let mut result = Matrix::empty();
    let report = gemv_into(ctx, a, x, precision_bits, options, &mut result)?;
    Ok(Outcome { result, report })
}

/// [`gemv_with`] into the caller's memory: a matrix, which is replaced if it is not a vector of that length and
/// precision, or a block of a larger one, such as a part of a column or of a row, see [`Destination`].
///
/// After an error the contents of `result` are unspecified numbers.
///
/// ```
/// use sunzi::{Context, Matrix, blas};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 3.0, 4.0])?;
/// let x = Matrix::from_f64s(2, 1, 128, &[5.0, 6.0])?;
/// let mut large = Matrix::zeros(2, 3, 128)?;
/// let row = large.view_mut().block(1..2, 0..2)?; // a piece of the second row
/// blas::gemv_into(&ctx, &a, &x, 128, &blas::GemvOptions::new(), row)?;
/// assert_eq!(large.view().to_f64s(), [0.0, 23.0, 0.0, 34.0, 0.0, 0.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`gemv_with`]; [`crate::Error::ShapeMismatch`] and [`crate::Error::InvalidArgument`] for a block of another shape
/// or precision.
pub fn gemv_into<'a, 'x, 'r>(
    ctx: &Context,
    a: impl Into<MatrixView<'a>>,
    x: impl Into<MatrixView<'x>>,
    precision_bits: u32,
    options: &GemvOptions<'_>,
    result: impl Into<Destination<'r>>,
) -> Result<VectorReport> {
    let GemvOptions { op, alpha, beta, accumulate } = *options;
    // Row i of op(A) is column i of this view.
    let a = if op == Op::Transpose { a.into() } else { a.into().transposed() };
    let x = vector_of("gemv", x.into(), a.rows())?;
    let sums = VectorSums { operation: "gemv", len: a.cols(), terms: a.rows(), scalars: (alpha, beta), accumulate };
    sums.run(ctx, precision_bits, x, result.into(), |row| {
        Ok([TermRun { left: a.block(0..a.rows(), row..row + 1)?, right: 0..a.rows() }])
    })
}

/// `y := A x` for a symmetric `A`; see [`symv_with`].
///
/// ```
/// use sunzi::{Context, Matrix, Symmetric, blas};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 99.0, 3.0])?; // only its lower triangle is read
/// let x = Matrix::from_f64s(2, 1, 128, &[1.0, 2.0])?;
/// assert_eq!(blas::symv(&ctx, Symmetric::lower(&a), &x, 128)?.view().to_f64s(), [4.0, 7.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`symv_with`].
pub fn symv<'a, 'x>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    x: impl Into<MatrixView<'x>>,
    precision_bits: u32,
) -> Result<Matrix> {
    Ok(symv_with(ctx, a, x, precision_bits, &SymvOptions::default())?.result)
}

/// `y := alpha * A x + beta * y0` for a symmetric `A` and vectors, rounded to `precision_bits` bits.
///
/// Shapes: `a` is `N x N`, given as a plain matrix, a symmetric matrix or one triangle (the other triangle is then not
/// read), see [`Symmetric`]; `x`, the result and `accumulate` have `N` entries. Accuracy, bits and cost are those of
/// [`gemv_with`].
///
/// ```
/// use sunzi::{Context, Matrix, blas, rug::Float};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 1.0, 3.0])?;
/// let x = Matrix::from_f64s(2, 1, 128, &[1.0, 2.0])?;
/// let b = Matrix::from_f64s(2, 1, 128, &[8.0, 8.0])?;
/// let minus = Float::with_val(2, -1);
/// let options = blas::SymvOptions::new().alpha(&minus).accumulate(b.view());
/// let residual = blas::symv_with(&ctx, &a, &x, 128, &options)?; // b - A x
/// assert_eq!(residual.result.view().to_f64s(), [4.0, 1.0]);
/// assert_eq!(residual.report.operation, "symv");
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`gemv_with`]; [`crate::Error::NotSymmetric`] for a plain matrix that is not symmetric.
pub fn symv_with<'a, 'x>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    x: impl Into<MatrixView<'x>>,
    precision_bits: u32,
    options: &SymvOptions<'_>,
) -> Result<Outcome<Matrix, VectorReport>> {
    let mut result = Matrix::empty();
    let report = symv_into(ctx, a, x, precision_bits, options, &mut result)?;
    Ok(Outcome { result, report })
}

/// [`symv_with`] into the caller's memory, as [`gemv_into`].
///
/// # Errors
/// As [`symv_with`] and [`gemv_into`].
pub fn symv_into<'a, 'x, 'r>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    x: impl Into<MatrixView<'x>>,
    precision_bits: u32,
    options: &SymvOptions<'_>,
    result: impl Into<Destination<'r>>,
) -> Result<VectorReport> {
    let SymvOptions { alpha, beta, accumulate } = *options;
    let a = a.into();
    let (lower, named) = (a.lower_view("symv")?, a.named().is_some());
    let order = lower.rows();
    let x = vector_of("symv", x.into(), order)?;
    let sums = VectorSums { operation: "symv", len: order, terms: order, scalars: (alpha, beta), accumulate };
    sums.run(ctx, precision_bits, x, result.into(), |row| {
        // Row i: the mirror images of what stands before the diagonal in the row, then what stands below it. Where
        // both triangles count, all of it stands in column i.
        let above = if named { row } else { 0 };
        let below = lower.block(above..order, row..row + 1)?;
        let left = lower.block(row..row + 1, 0..above)?.transposed();
        Ok([TermRun { left: below, right: above..order }, TermRun { left, right: 0..above }])
    })
}

/// A vector of sums, each combined with an entry that is added.
pub(super) struct VectorSums<'a> {
    pub operation: &'static str,
    /// Entries of the result.
    pub len: usize,
    /// Terms of the longest sum.
    pub terms: usize,
    /// Alpha and beta.
    pub scalars: (Option<&'a Float>, Option<&'a Float>),
    pub accumulate: Option<MatrixView<'a>>,
}

impl VectorSums<'_> {
    /// Fills `result`; `runs` gives the terms of an entry, with the entries of `x` as factors.
    ///
    /// # Errors
    /// The errors of [`gemv_into`].
    pub fn run<'t, const N: usize>(
        &self,
        ctx: &Context,
        precision_bits: u32,
        x: MatrixView<'_>,
        result: Destination<'_>,
        runs: impl Fn(usize) -> Result<[TermRun<'t>; N]> + Sync,
    ) -> Result<VectorReport> {
        check_precision(precision_bits)?;
        let added = self.accumulate.map(|view| vector_of(self.operation, view, self.len)).transpose()?;
        let epilogue = Epilogue::new(self.scalars.0, self.scalars.1, added.map(AddedMatrix::Whole));
        epilogue.check_scalars(false)?;
        let factor_bytes = RightFactors::bytes(x.rows(), precision_bits, self.terms, x.limbs_per_element());
        ctx.admit(factor_bytes)?;
        let call = VectorCall {
            ctx: &ctx.holding(factor_bytes),
            operation: self.operation,
            len: self.len,
            terms: self.terms,
            precision_bits,
            entry_nanoseconds: 50.0 + self.terms as f64 * term_nanoseconds(precision_bits),
            worker_bytes: TermSum::bytes(precision_bits, self.terms),
        };
        let factors = RightFactors::new(&x, precision_bits, self.terms);
        let local = || TermSum::new(precision_bits, self.terms);
        let report = call.fill(result, local, |sum, row, limbs| {
            sum.add_up(&factors, &runs(row)?);
            epilogue.finish(sum.sum.exact(), EntryIndex { row, col: 0 }, precision_bits, limbs)
        })?;
        Ok(VectorReport { planned_bytes: report.planned_bytes + factor_bytes, ..report })
    }
}
