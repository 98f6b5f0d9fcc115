//! `symm`: `alpha * A B + beta * C` and `alpha * B A + beta * C` for a symmetric `A`.
//!
//! The page of the verb: its options, its forms, its contract. The work is that of every product, `ops::product`.

use crate::context::Context;
use crate::error::Result;
use crate::matrix::{Destination, Matrix, MatrixView, Op, Side, Symmetric};
use crate::ops::product::call;
use crate::ops::product::combine::{AddedMatrix, Epilogue};
use crate::ops::product::problem::{Accuracy, ProductProblem};
use crate::ops::product::report::{Outcome, Report};
use crate::options::setters;
use rug::Float;

/// Options of a SYMM in addition to the operands and the precision.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SymmOptions<'a> {
    /// `Left` gives `A B` (the default), `Right` gives `B A`.
    pub side: Side,
    /// Accuracy promised for each entry.
    pub accuracy: Accuracy,
    /// Scalar of the product; `None` is 1.
    pub alpha: Option<&'a Float>,
    /// Scalar of `accumulate`; `None` is 1.
    pub beta: Option<&'a Float>,
    /// A matrix to add; the sum is rounded once.
    pub accumulate: Option<MatrixView<'a>>,
}

setters! { new SymmOptions<'a> {
    side: Side,
    accuracy: Accuracy,
    alpha: impl Into<Option<&'a Float>>,
    beta: impl Into<Option<&'a Float>>,
    accumulate: impl Into<Option<MatrixView<'a>>>,
} }

/// `A B` for a symmetric `A`; see [`symm_with`].
///
/// ```
/// use sunzi::{Context, Matrix, Symmetric};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 99.0, 3.0])?; // only its lower triangle is read
/// let b = Matrix::from_f64s(2, 1, 128, &[1.0, 2.0])?;
/// let c = sunzi::symm(&ctx, Symmetric::lower(&a), &b, 128)?;
/// assert_eq!(c.view().to_f64s(), [4.0, 7.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`symm_with`].
pub fn symm<'a, 'b>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
) -> Result<Matrix> {
    Ok(symm_with(ctx, a, b, precision_bits, &SymmOptions::default())?.result)
}

/// `alpha * A B + beta * C` or `alpha * B A + beta * C` for a symmetric `A`, rounded to `precision_bits` bits.
///
/// Shapes: `a` is `n x n`, given as a plain matrix, a symmetric matrix or one triangle (the other triangle is then not
/// read), see [`Symmetric`]; `b`, the result and `accumulate` are `n x m` for side left, `m x n` for side right.
/// Accuracy, bits and cost are those of [`crate::gemm_with`] for the whole matrix; if one triangle is given, the whole
/// matrix is first made from it.
///
/// ```
/// use sunzi::{Context, Matrix, Side, SymmOptions};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 1.0, 3.0])?;
/// let b = Matrix::from_f64s(1, 2, 128, &[1.0, 2.0])?;
/// let options = SymmOptions::new().side(Side::Right).accumulate(b.view());
/// let c = sunzi::symm_with(&ctx, &a, &b, 128, &options)?; // B A + B
/// assert_eq!(c.result.view().to_f64s(), [5.0, 9.0]);
/// assert_eq!(c.report.precision_bits, 128);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`crate::gemm_with`]; [`crate::Error::NotSymmetric`] for a plain matrix that is not symmetric.
pub fn symm_with<'a, 'b>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
    options: &SymmOptions<'_>,
) -> Result<Outcome> {
    let mut result = Matrix::empty();
    let report = symm_into(ctx, a, b, precision_bits, options, &mut result)?;
    Ok(Outcome { result, report })
}

/// [`symm_with`] into the caller's memory: a matrix, which is replaced if its shape or precision do not fit, or a block
/// of a larger one, see [`Destination`].
///
/// After an error the contents of `result` are unspecified numbers.
///
/// # Errors
/// As [`symm_with`]; [`crate::Error::ShapeMismatch`] and [`crate::Error::InvalidArgument`] for a block of another shape
/// or precision.
pub fn symm_into<'a, 'b, 'r>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
    options: &SymmOptions<'_>,
    result: impl Into<Destination<'r>>,
) -> Result<Report> {
    let (a, b) = (a.into(), b.into());
    let lower = a.lower_view("symm")?;
    let copied = a.named().is_some();
    let copy_bytes = if copied { Matrix::bytes_for(lower.rows(), lower.cols(), lower.precision_bits()) } else { 0 };
    ctx.admit(copy_bytes)?;
    let whole = copied.then(|| a.to_symmetric()).transpose()?;
    let a = whole.as_ref().map_or(lower, |whole| whole.as_matrix().view());
    let (left, right) = if options.side == Side::Left { (a, b) } else { (b, a) };
    let epilogue = Epilogue::new(options.alpha, options.beta, options.accumulate.map(AddedMatrix::Whole));
    let product = ProductProblem::gemm(left, Op::NoTranspose, right, Op::NoTranspose, precision_bits);
    let problem = ProductProblem { operation: "symm", epilogue, accuracy: options.accuracy, ..product };
    let report = call::run(&ctx.holding(copy_bytes), &problem, result.into())?;
    Ok(Report { planned_bytes: report.planned_bytes + copy_bytes, ..report })
}
