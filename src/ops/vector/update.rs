//! Sums entry by entry: `axpy`: `alpha * x + y`, and `ger`: `alpha * x y^T + A`, of two exact numbers, rounded once;
//! `hadamard`: sums of products of the entries of matrices.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::kernels::digit_sums::{ScaledPair, ScaledSums};
use crate::math::float::{FloatRef, Head};
use crate::matrix::{Destination, EntryIndex, Matrix, MatrixView, check_exponent};
use crate::ops::exact_sum::{ExactEntry, ExactProduct};
use crate::ops::fixed_sum::{FixedSum, OwnFloat};
use crate::ops::product::combine::{AddedMatrix, Epilogue};
use crate::ops::product::report::Outcome;
use crate::ops::vector::entries::{
    ColumnsCall, Strided, VectorCall, VectorReport, check_precision, check_scalar, one, scalar, vector, vector_of,
};
use crate::options::setters;
use rug::Float;
use std::time::Instant;

/// Entries below which the room for eight sums at a time takes longer to make than the sums.
const LEAST_FOR_EIGHTS: usize = 8;

/// Options of a GER in addition to the vectors and the precision.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct GerOptions<'a> {
    /// Scalar of the product; `None` is 1.
    pub alpha: Option<&'a Float>,
    /// A matrix to add: the result is `alpha * x y^T + accumulate`, rounded once.
    pub accumulate: Option<MatrixView<'a>>,
}

setters! { new GerOptions<'a> {
    alpha: impl Into<Option<&'a Float>>,
    accumulate: impl Into<Option<MatrixView<'a>>>,
} }

/// `alpha * x + y` for two vectors, rounded to `precision_bits` bits.
///
/// Shapes: `x` and `y` are matrices or views of one column or one row, with the same number of entries, which may be 0;
/// the result is a column. Accuracy: every entry is the exact number, rounded once to nearest, ties to even.
///
/// ```
/// use sunzi::{Context, Matrix, rug::Float};
/// let ctx = Context::builder().threads(1).build()?;
/// let (x, y) = (Matrix::from_f64s(2, 1, 256, &[1.0, 2.0])?, Matrix::from_f64s(2, 1, 256, &[10.0, 20.0])?);
/// let sum = sunzi::blas::axpy(&ctx, &Float::with_val(256, -3), &x, &y, 256)?;
/// assert_eq!(sum.view().to_f64s(), [7.0, 14.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::ShapeMismatch`]; [`crate::Error::Precision`]; [`crate::Error::InvalidArgument`] if alpha is not
/// finite; [`crate::Error::ExponentRange`] if an entry of the result is outside the exponent range;
/// [`crate::Error::MemoryLimit`]; [`crate::Error::Cancelled`]; [`crate::Error::OutOfMemory`].
pub fn axpy<'x, 'y>(
    ctx: &Context,
    alpha: &Float,
    x: impl Into<MatrixView<'x>>,
    y: impl Into<MatrixView<'y>>,
    precision_bits: u32,
) -> Result<Matrix> {
    let mut result = Matrix::empty();
    axpy_into(ctx, alpha, x, y, precision_bits, &mut result)?;
    Ok(result)
}

/// [`axpy`] into the caller's memory, as [`crate::blas::gemv_into`].
///
/// # Errors
/// As [`axpy`] and [`crate::blas::gemv_into`].
pub fn axpy_into<'x, 'y, 'r>(
    ctx: &Context,
    alpha: &Float,
    x: impl Into<MatrixView<'x>>,
    y: impl Into<MatrixView<'y>>,
    precision_bits: u32,
    result: impl Into<Destination<'r>>,
) -> Result<VectorReport> {
    check_precision(precision_bits)?;
    let x = vector("axpy", x.into())?;
    let y = vector_of("axpy", y.into(), x.rows())?;
    check_scalar("alpha", alpha)?;
    let alpha = OwnFloat::new(alpha);
    let alpha = alpha.get();
    let epilogue = Epilogue::new(None, None, Some(AddedMatrix::Whole(y)));
    let [of_alpha, of_x, of_y] = [alpha.limbs.len(), x.limbs_per_element(), y.limbs_per_element()];
    let scaled_bytes = ScaledSums::bytes([of_alpha, of_x, of_y], precision_bits);
    let call = VectorCall {
        ctx,
        operation: "axpy",
        len: x.rows(),
        terms: 2,
        precision_bits,
        entry_nanoseconds: 60.0 + (of_alpha * of_x) as f64,
        worker_bytes: ExactProduct::bytes(of_alpha, of_x) + scaled_bytes,
    };
    let has_eights = x.rows() >= LEAST_FOR_EIGHTS;
    let local = || {
        let eights = has_eights.then(|| ScaledSums::new(alpha, of_x, of_y, precision_bits));
        (eights.flatten(), None)
    };
    call.fill_pieces(result.into(), local, |(scaled, product), mut piece| {
        let zero = FloatRef { head: Head::ZERO, limbs: &[] };
        for first in (0..piece.count()).step_by(8) {
            let count = (piece.count() - first).min(8);
            let done = scaled.as_mut().map_or(0, |scaled| {
                let mut pairs = [ScaledPair { x: zero, y: zero }; 8];
                for (lane, pair) in pairs[..count].iter_mut().enumerate() {
                    let row = piece.first + first + lane;
                    *pair = ScaledPair { x: x.get(row, 0), y: y.get(row, 0) };
                }
                scaled.form(&pairs[..count])
            });
            for lane in 0..count {
                piece.set(first + lane, |row, limbs| {
                    let sum = match scaled {
                        Some(scaled) if done >> lane & 1 == 1 => scaled.get(lane, limbs),
                        _ => {
                            let product = product.get_or_insert_with(|| ExactProduct::new(of_alpha, of_x));
                            let product = product.of(alpha, x.get(row, 0));
                            epilogue.finish(product, EntryIndex { row, col: 0 }, precision_bits, limbs)?
                        }
                    };
                    check_exponent(sum.exponent(), row, 0)?;
                    Ok(sum)
                })?;
            }
        }
        Ok(())
    })
}

/// `x y^T`; see [`ger_with`].
///
/// ```
/// use sunzi::{Context, Matrix, blas};
/// let ctx = Context::new()?;
/// let x = Matrix::from_f64s(2, 1, 128, &[1.0, 2.0])?;
/// let y = Matrix::from_f64s(2, 1, 128, &[3.0, 4.0])?;
/// assert_eq!(blas::ger(&ctx, &x, &y, 128)?.view().to_f64s(), [3.0, 6.0, 4.0, 8.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`ger_with`].
pub fn ger<'x, 'y>(
    ctx: &Context,
    x: impl Into<MatrixView<'x>>,
    y: impl Into<MatrixView<'y>>,
    precision_bits: u32,
) -> Result<Matrix> {
    Ok(ger_with(ctx, x, y, precision_bits, &GerOptions::default())?.result)
}

/// `alpha * x y^T + A` for two vectors and a matrix, rounded to `precision_bits` bits.
///
/// Shapes: `x` has `M` entries, `y` has `N`, both are matrices or views of one column or one row; the result and
/// `accumulate` are `M x N`. Accuracy: every entry is the exact number, rounded once to nearest, ties to even.
///
/// ```
/// use sunzi::{Context, Matrix, blas};
/// let ctx = Context::new()?;
/// let x = Matrix::from_f64s(2, 1, 128, &[1.0, 2.0])?;
/// let y = Matrix::from_f64s(2, 1, 128, &[3.0, 4.0])?;
/// let identity = Matrix::identity(2, 128)?;
/// let options = blas::GerOptions::new().accumulate(identity.view());
/// let sum = blas::ger_with(&ctx, &x, &y, 128, &options)?; // I + x y^T
/// assert_eq!(sum.result.view().to_f64s(), [4.0, 6.0, 4.0, 9.0]);
/// assert_eq!(sum.report.operation, "ger");
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`axpy`].
pub fn ger_with<'x, 'y>(
    ctx: &Context,
    x: impl Into<MatrixView<'x>>,
    y: impl Into<MatrixView<'y>>,
    precision_bits: u32,
    options: &GerOptions<'_>,
) -> Result<Outcome<Matrix, VectorReport>> {
    let mut result = Matrix::empty();
    let report = ger_into(ctx, x, y, precision_bits, options, &mut result)?;
    Ok(Outcome { result, report })
}

/// [`ger_with`] into the caller's memory: a matrix, which is replaced if its shape or precision do not fit, or a block
/// of a larger one, see [`Destination`].
///
/// After an error the contents of `result` are unspecified numbers.
///
/// # Errors
/// As [`ger_with`]; [`crate::Error::ShapeMismatch`] and [`crate::Error::InvalidArgument`] for a block of another shape
/// or precision.
pub fn ger_into<'x, 'y, 'r>(
    ctx: &Context,
    x: impl Into<MatrixView<'x>>,
    y: impl Into<MatrixView<'y>>,
    precision_bits: u32,
    options: &GerOptions<'_>,
    result: impl Into<Destination<'r>>,
) -> Result<VectorReport> {
    let start = Instant::now();
    check_precision(precision_bits)?;
    let (x, y) = (vector("ger", x.into())?, vector("ger", y.into())?);
    let (rows, cols) = (x.rows(), y.rows());
    let epilogue = Epilogue::new(None, None, options.accumulate.map(AddedMatrix::Whole));
    epilogue.check(rows, cols, false)?;
    let alpha = options.alpha.map_or_else(one, |alpha| scalar("alpha", alpha))?;
    let [of_alpha, of_x, of_y] = [alpha.limbs_per_element(), x.limbs_per_element(), y.limbs_per_element()];
    let worker_bytes = ExactProduct::bytes(of_alpha, of_y) + ExactProduct::bytes(of_alpha + of_y, of_x);
    let call = ColumnsCall { ctx, operation: "ger", rows, cols, precision_bits, worker_bytes, start };
    let local = || (ExactProduct::new(of_alpha, of_y), ExactProduct::new(of_alpha + of_y, of_x));
    call.fill(result.into(), local, |(scaled, product), column| {
        let col = column.index;
        let scaled = as_float(scaled.of(alpha.get(0, 0), y.get(col, 0)));
        for row in 0..rows {
            let product = product.of(scaled, x.get(row, 0));
            column.try_set(row, |limbs| epilogue.finish(product, EntryIndex { row, col }, precision_bits, limbs))?;
        }
        Ok(())
    })
}

/// An exact product as a factor of another one: its leading limb may be 0.
fn as_float(product: ExactEntry<'_>) -> FloatRef<'_> {
    let limbs = product.magnitude;
    if limbs.iter().all(|&limb| limb == 0) {
        return FloatRef { head: Head::ZERO, limbs };
    }
    FloatRef { head: Head::new(product.negative, product.exponent + 64 * limbs.len() as i64), limbs }
}

/// Options of a Hadamard product in addition to the operands and the precision.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct HadamardOptions<'a> {
    /// Scalar of the sum; `None` is 1.
    pub alpha: Option<&'a Float>,
}

setters! { new HadamardOptions<'a> {
    alpha: impl Into<Option<&'a Float>>,
} }

/// `A o B`, entry by entry, rounded to `precision_bits` bits; see [`hadamard_into`].
///
/// ```
/// use sunzi::{Context, Matrix};
/// let ctx = Context::builder().threads(1).build()?;
/// let a = Matrix::from_f64s(2, 2, 256, &[1.0, 2.0, 3.0, 4.0])?;
/// assert_eq!(sunzi::blas::hadamard(&ctx, &a, a.transposed(), 256)?.view().to_f64s(), [1.0, 6.0, 6.0, 16.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`hadamard_into`].
pub fn hadamard<'a, 'b>(
    ctx: &Context,
    a: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
) -> Result<Matrix> {
    let mut result = Matrix::empty();
    hadamard_into(ctx, &[(a.into(), b.into())], precision_bits, &HadamardOptions::new(), &mut result)?;
    Ok(result)
}

/// `alpha sum_k A_k o B_k` for pairs of matrices, entry by entry, rounded once, into the caller's memory, as
/// [`crate::blas::gemv_into`].
///
/// Shapes: all matrices have the shape of the result, any size of which may be 0; there is at least one pair. Accuracy:
/// `|computed - exact|_ij <= 2^(1 - precision_bits) |alpha| sum_k |A_k|_ij |B_k|_ij`, whatever the exponents are; the
/// bits depend only on the entries, the scalar and the precision. Cost: one multiplication of big floats for each pair
/// of matrices and each entry, and one more for each entry if there is a scalar. Source:
/// docs/decisions/074-the-time-of-an-iteration.md.
///
/// ```
/// use sunzi::{Context, Matrix, blas, rug::Float};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 3.0, 4.0])?;
/// let mut sum = Matrix::zeros(2, 2, 128)?;
/// let two = Float::with_val(2, 2);
/// let options = blas::HadamardOptions::new().alpha(&two);
/// let pairs = [(a.view(), a.view()), (a.view(), a.transposed())];
/// let report = blas::hadamard_into(&ctx, &pairs, 128, &options, &mut sum)?; // 2 (A o A + A o A^T)
/// assert_eq!(sum.view().to_f64s(), [4.0, 20.0, 30.0, 64.0]);
/// assert_eq!(report.operation, "hadamard");
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::ShapeMismatch`]; [`crate::Error::InvalidArgument`] if there is no pair, or if a scalar is not
/// finite; [`crate::Error::Precision`]; [`crate::Error::ExponentRange`] if an entry of the result is outside the
/// exponent range; [`crate::Error::MemoryLimit`]; [`crate::Error::Cancelled`]; [`crate::Error::OutOfMemory`].
pub fn hadamard_into<'r>(
    ctx: &Context,
    pairs: &[(MatrixView<'_>, MatrixView<'_>)],
    precision_bits: u32,
    options: &HadamardOptions<'_>,
    result: impl Into<Destination<'r>>,
) -> Result<VectorReport> {
    let start = Instant::now();
    check_precision(precision_bits)?;
    options.alpha.map_or(Ok(()), |alpha| check_scalar("alpha", alpha))?;
    let Some((first, _)) = pairs.first() else {
        return Err(Error::InvalidArgument(
            "the list of Hadamard products is empty: pass at least one pair of matrices".into(),
        ));
    };
    let (rows, cols) = (first.rows(), first.cols());
    for matrix in pairs.iter().flat_map(|(a, b)| [a, b]) {
        if (matrix.rows(), matrix.cols()) != (rows, cols) {
            return Err(Error::shape_mismatch("hadamard", (rows, cols), (matrix.rows(), matrix.cols())));
        }
    }
    let columns_bytes = (pairs.len() * size_of::<(Strided<'_>, Strided<'_>)>()) as u64;
    let worker_bytes = FixedSum::bytes(precision_bits) + columns_bytes;
    let call = ColumnsCall { ctx, operation: "hadamard", rows, cols, precision_bits, worker_bytes, start };
    let alpha = options.alpha.map(OwnFloat::new);
    let local = || FixedSum::new(precision_bits);
    call.fill(result.into(), local, |sum, column| {
        let col = column.index;
        let columns = pairs.iter().map(|&(a, b)| (Strided::column(a, col), Strided::column(b, col)));
        let columns = columns.collect::<Vec<_>>();
        for row in 0..rows {
            column.try_set(row, |limbs| {
                sum.set_products(columns.iter().map(|(a, b)| (a.get(row), b.get(row))));
                let head = match &alpha {
                    Some(alpha) => sum.round_product(alpha, limbs),
                    None => sum.round(limbs),
                };
                check_exponent(head.exponent(), row, col)?;
                Ok(head)
            })?;
        }
        Ok(())
    })
}
