//! `syrk`: `Q := alpha * P^T P + beta * C`, a symmetric matrix.
//!
//! The page of the verb: its options, its forms, its contract. The work is that of every product, `ops::product`.

use crate::context::Context;
use crate::error::Result;
use crate::matrix::{MatrixView, Op, Symmetric, SymmetricDestination, SymmetricMatrix, Uplo};
use crate::ops::product::call;
use crate::ops::product::combine::{AddedMatrix, Epilogue};
use crate::ops::product::problem::{Accuracy, Hooks, ProductProblem};
use crate::ops::product::report::{Outcome, Report};
use crate::options::setters;
use rug::Float;

/// Options of a SYRK in addition to the operand and the precision.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SyrkOptions<'a> {
    /// `NoTranspose` gives `P^T P` (the default), `Transpose` gives `P P^T`.
    pub op: Op,
    /// The triangle of the result that is computed; the other is its mirror image. It does not affect the result.
    pub uplo: Uplo,
    /// `P` is a matrix of integers and the result is exact; `precision_bits` is then only a lower bound of the
    /// precision of the result.
    pub exact_integers: bool,
    /// Accuracy promised for each entry.
    pub accuracy: Accuracy,
    /// Scalar of the product; `None` is 1.
    pub alpha: Option<&'a Float>,
    /// Scalar of `accumulate`; `None` is 1.
    pub beta: Option<&'a Float>,
    /// A symmetric matrix to add: the result is `alpha * P^T P + beta * accumulate`, rounded once. The symmetry of a
    /// plain matrix is checked, see [`Symmetric`].
    pub accumulate: Option<Symmetric<'a>>,
    /// Faults that tests inject into the product.
    #[doc(hidden)]
    pub hooks: Hooks<'a>,
}

setters! { new SyrkOptions<'a> {
    op: Op,
    uplo: Uplo,
    exact_integers: bool,
    accuracy: Accuracy,
    alpha: impl Into<Option<&'a Float>>,
    beta: impl Into<Option<&'a Float>>,
    accumulate: impl Into<Option<Symmetric<'a>>>,
    hooks: Hooks<'a>,
} }

/// `Q := P^T P`; see [`syrk_with`].
///
/// ```
/// use sunzi::{Context, Matrix};
/// let ctx = Context::new()?;
/// let p = Matrix::from_f64s(3, 2, 128, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?; // column by column
/// let q = sunzi::syrk(&ctx, &p, 128)?;
/// assert_eq!(q.view().to_f64s(), [14.0, 32.0, 32.0, 77.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`syrk_with`].
pub fn syrk<'a>(ctx: &Context, p: impl Into<MatrixView<'a>>, precision_bits: u32) -> Result<SymmetricMatrix> {
    Ok(syrk_with(ctx, p, precision_bits, &SyrkOptions::default())?.result)
}

/// `Q := alpha * P^T P + beta * C` for a big-float matrix `P` and a symmetric `C`, rounded to `precision_bits` bits.
///
/// Shapes: `p` is `K x N` (either may be 0), read only; with [`Op::Transpose`] it is `N x K` and the result is `P P^T`.
/// The result and `accumulate` are `N x N`; one triangle is computed and mirrored. Accuracy: without scalars,
/// `|computed - exact| <= 2^(1 - precision_bits) * ||p_i|| * ||p_j||`; with scalars, `alpha` times the unrounded
/// product plus `beta * C` is rounded once. With `exact_integers` the result is exact, at a precision that represents
/// it. [`Accuracy::Entrywise`] gives a stronger, componentwise bound: the error of each entry is small relative to the
/// sum of the magnitudes of its terms. The bits depend only on the operands, the precision and the options, not on
/// threads, memory limit or kernel. Cost: `K * N * (N + 1) / 2` word products for each of about
/// `(2 precision_bits + log2 K) / 52` primes.
///
/// ```
/// use sunzi::{Context, Matrix, Op, Symmetric, SyrkOptions};
/// let ctx = Context::new()?;
/// let p = Matrix::from_f64s(2, 1, 128, &[3.0, 4.0])?;
/// let identity = Matrix::identity(2, 128)?;
/// let options = SyrkOptions::new().op(Op::Transpose).accumulate(Symmetric::lower(&identity));
/// let q = sunzi::syrk_with(&ctx, &p, 128, &options)?; // P P^T + I
/// assert_eq!(q.result.view().to_f64s(), [10.0, 12.0, 12.0, 17.0]);
/// assert_eq!((q.report.operation, q.report.precision_bits), ("syrk", 128));
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Precision`]; [`crate::Error::ShapeMismatch`] and [`crate::Error::NotSymmetric`] for `accumulate`;
/// [`crate::Error::MemoryLimit`] with the smallest limit that suffices; [`crate::Error::NotInteger`] with
/// `exact_integers`; [`crate::Error::InvalidArgument`] for scalars that are not finite, or not integers with
/// `exact_integers`; [`crate::Error::ExponentRange`] if an entry of the result is outside the exponent range;
/// [`crate::Error::SelfCheck`]; [`crate::Error::Cancelled`]; [`crate::Error::OutOfMemory`].
pub fn syrk_with<'a>(
    ctx: &Context,
    p: impl Into<MatrixView<'a>>,
    precision_bits: u32,
    options: &SyrkOptions<'_>,
) -> Result<Outcome<SymmetricMatrix>> {
    let mut result = SymmetricMatrix::default();
    let report = syrk_into(ctx, p, precision_bits, options, &mut result)?;
    Ok(Outcome { result, report })
}

/// [`syrk_with`] into the caller's memory: a symmetric matrix, which is replaced if its order or precision do not fit,
/// a block of a larger matrix, or one triangle of either, see [`SymmetricDestination`].
///
/// After an error a symmetric matrix is empty, and the numbers in a block are unspecified.
///
/// ```
/// use sunzi::{Context, Matrix, SymmetricDestination, SyrkOptions};
/// let ctx = Context::new()?;
/// let p = Matrix::from_f64s(1, 2, 128, &[1.0, 2.0])?;
/// let mut q = Matrix::from_f64s(2, 2, 128, &[0.0, 0.0, 99.0, 0.0])?;
/// let lower = SymmetricDestination::Triangle((&mut q).into());
/// sunzi::syrk_into(&ctx, &p, 128, &SyrkOptions::new(), lower)?;
/// assert_eq!(q.view().to_f64s(), [1.0, 2.0, 99.0, 4.0]); // nothing was written above the diagonal
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`syrk_with`]; [`crate::Error::ShapeMismatch`] and [`crate::Error::InvalidArgument`] for a block of another shape
/// or precision.
pub fn syrk_into<'a, 'r>(
    ctx: &Context,
    p: impl Into<MatrixView<'a>>,
    precision_bits: u32,
    options: &SyrkOptions<'_>,
    result: impl Into<SymmetricDestination<'r>>,
) -> Result<Report> {
    let triangle = problem(p.into(), precision_bits, options)?;
    call::fill_symmetric(result.into(), |result, mirrored| {
        call::run(ctx, &ProductProblem { mirrored, ..triangle }, result)
    })
}

fn problem<'a>(p: MatrixView<'a>, precision_bits: u32, options: &SyrkOptions<'a>) -> Result<ProductProblem<'a>> {
    let SyrkOptions { uplo, exact_integers, accuracy, hooks, .. } = *options;
    let view = options.accumulate.map(|matrix| matrix.triangle_view(uplo, "accumulate")).transpose()?;
    let addend = view.map(|view| AddedMatrix::Triangle(view, uplo));
    let epilogue = Epilogue::new(options.alpha, options.beta, addend);
    Ok(ProductProblem {
        uplo,
        epilogue,
        exact_integers,
        accuracy,
        hooks,
        ..ProductProblem::syrk(p, options.op, precision_bits)
    })
}
