//! `gemm`: `C := alpha * op(A) op(B) + beta * C0`.
//!
//! The page of the verb: its options, its forms, its contract. The work is that of every product, `ops::product`.

use crate::context::Context;
use crate::error::Result;
use crate::matrix::{Destination, Matrix, MatrixView, Op};
use crate::ops::product::call;
use crate::ops::product::combine::{AddedMatrix, Epilogue};
use crate::ops::product::problem::{Accuracy, Hooks, ProductProblem};
use crate::ops::product::report::{Outcome, Report};
use crate::options::setters;
use rug::Float;

/// Options of a GEMM in addition to the operands and the precision.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct GemmOptions<'a> {
    /// Whether `A` is used transposed.
    pub op_a: Op,
    /// Whether `B` is used transposed.
    pub op_b: Op,
    /// Operands hold integers and the result is exact, as in [`crate::SyrkOptions::exact_integers`].
    pub exact_integers: bool,
    /// Accuracy promised for each entry.
    pub accuracy: Accuracy,
    /// Scalar of the product; `None` is 1.
    pub alpha: Option<&'a Float>,
    /// Scalar of `accumulate`; `None` is 1.
    pub beta: Option<&'a Float>,
    /// A matrix to add: the result is `alpha * op(A) op(B) + beta * accumulate`, rounded once.
    pub accumulate: Option<MatrixView<'a>>,
    /// Faults that tests inject into the product.
    #[doc(hidden)]
    pub hooks: Hooks<'a>,
}

setters! { new GemmOptions<'a> {
    op_a: Op,
    op_b: Op,
    exact_integers: bool,
    accuracy: Accuracy,
    alpha: impl Into<Option<&'a Float>>,
    beta: impl Into<Option<&'a Float>>,
    accumulate: impl Into<Option<MatrixView<'a>>>,
    hooks: Hooks<'a>,
} }

/// `C := A B`; see [`gemm_with`].
///
/// ```
/// use sunzi::{Context, Matrix};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 3.0, 4.0])?; // column by column
/// let b = Matrix::from_f64s(2, 1, 128, &[5.0, 6.0])?;
/// let c = sunzi::gemm(&ctx, &a, &b, 128)?;
/// assert_eq!(c.view().to_f64s(), [23.0, 34.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`gemm_with`].
pub fn gemm<'a, 'b>(
    ctx: &Context,
    a: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
) -> Result<Matrix> {
    Ok(gemm_with(ctx, a, b, precision_bits, &GemmOptions::default())?.result)
}

/// `C := alpha * op(A) op(B) + beta * C0` for big-float matrices, rounded to `precision_bits` bits.
///
/// Shapes: `op(A)` is `M x K`, `op(B)` is `K x N`, the result and `accumulate` are `M x N`; any of them may be 0.
/// Accuracy: `|computed - exact| <= 2^(1 - precision_bits) * ||a_i|| * ||b_j||` with the norms of row `i` of `op(A)`
/// and column `j` of `op(B)`; scalars, exact integers and [`Accuracy::Entrywise`] as in [`crate::syrk_with`]. The bits
/// are the same for any number of threads, memory limit and kernel. Cost: `M * N * K` word products for each prime.
///
/// ```
/// use sunzi::{Context, GemmOptions, Matrix, Op, rug::Float};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 3.0, 4.0])?;
/// let x = Matrix::from_f64s(2, 1, 128, &[5.0, 6.0])?;
/// let b = Matrix::from_f64s(2, 1, 128, &[20.0, 40.0])?;
/// let minus = Float::with_val(2, -1);
/// let options = GemmOptions::new().op_a(Op::Transpose).alpha(&minus).accumulate(b.view());
/// let residual = sunzi::gemm_with(&ctx, &a, &x, 128, &options)?; // b - A^T x
/// assert_eq!(residual.result.view().to_f64s(), [3.0, 1.0]);
/// assert_eq!(residual.report.operation, "gemm");
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`crate::syrk_with`]; [`crate::Error::ShapeMismatch`] also if the contracted sizes differ.
pub fn gemm_with<'a, 'b>(
    ctx: &Context,
    a: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
    options: &GemmOptions<'_>,
) -> Result<Outcome> {
    let mut result = Matrix::empty();
    let report = gemm_into(ctx, a, b, precision_bits, options, &mut result)?;
    Ok(Outcome { result, report })
}

/// [`gemm_with`] into the caller's memory: a matrix, which is replaced if its shape or precision do not fit, or a block
/// of a larger one, see [`Destination`].
///
/// After an error the contents of `result` are unspecified numbers.
///
/// ```
/// use sunzi::{Context, GemmOptions, Matrix};
/// let ctx = Context::builder().threads(1).build()?;
/// let (a, b) = (Matrix::identity(2, 256)?, Matrix::from_f64s(2, 3, 256, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?);
/// let mut large = Matrix::zeros(5, 5, 256)?;
/// let block = large.view_mut().block(1..3, 2..5)?;
/// sunzi::gemm_into(&ctx, &a, &b, 256, &GemmOptions::default(), block)?;
/// assert_eq!((large.float(2, 2), large.float(3, 2)), (large.float(1, 2) + 1u32, sunzi::rug::Float::new(256)));
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`gemm_with`]; [`crate::Error::ShapeMismatch`] and [`crate::Error::InvalidArgument`] for a block of another shape
/// or precision.
pub fn gemm_into<'a, 'b, 'r>(
    ctx: &Context,
    a: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
    options: &GemmOptions<'_>,
    result: impl Into<Destination<'r>>,
) -> Result<Report> {
    let GemmOptions { op_a, op_b, exact_integers, accuracy, alpha, beta, hooks, .. } = *options;
    let epilogue = Epilogue::new(alpha, beta, options.accumulate.map(AddedMatrix::Whole));
    let product = ProductProblem::gemm(a.into(), op_a, b.into(), op_b, precision_bits);
    call::run(ctx, &ProductProblem { epilogue, exact_integers, accuracy, hooks, ..product }, result.into())
}
