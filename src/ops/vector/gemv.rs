//! `gemv`: `y := alpha * op(A) x + beta * y0`, and `symv`, the same for a symmetric `A`.

use crate::context::Context;
use crate::error::Result;
use crate::matrix::{Destination, EntryIndex, Matrix, MatrixView, Op, Symmetric};
use crate::ops::product::combine::{AddedMatrix, Epilogue};
use crate::ops::product::report::Outcome;
use crate::ops::vector::entries::VectorCall;
use crate::ops::vector::operand::{check_precision, vector_of};
use crate::ops::vector::report::VectorReport;
use crate::ops::vector::terms::{RightFactors, TermRun, TermSum, term_nanoseconds};
use crate::options::setters;
use rug::Float;

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
/// Cost: one product of limbs for each entry of `A`. Source: docs/decisions/032-vectors.md.
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
