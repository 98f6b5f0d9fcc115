//! `hadamard`: sums of products entry by entry.

use crate::context::{Context, Progress};
use crate::error::{Error, Result};
use crate::matrix::{Destination, Matrix, MatrixView, check_exponent};
use crate::ops::columns::each_column;
use crate::ops::fixed_sum::{FixedSum, OwnFloat};
use crate::ops::vector::operand::{Strided, check_precision, check_scalar};
use crate::ops::vector::report::VectorReport;
use crate::options::setters;
use rug::Float;
use std::time::Instant;

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

/// `alpha sum_i A_i o B_i` for pairs of matrices, entry by entry, rounded once, into the caller's memory, as
/// [`crate::blas::gemv_into`].
///
/// Shapes: all matrices have the shape of the result, any size of which may be 0; there is at least one pair. Accuracy:
/// `|computed - exact|_ij <= 2^(1 - precision_bits) |alpha| sum |A_i|_ij |B_i|_ij`, whatever the exponents are; the
/// bits depend only on the entries, the scalar and the precision. Cost: one product of limbs for each pair and entry,
/// and one more if there is a scalar. Source: docs/decisions/074-the-time-of-an-iteration.md.
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
        return Err(Error::InvalidArgument("a sum of no Hadamard products has no shape".into()));
    };
    let (rows, cols) = (first.rows(), first.cols());
    for matrix in pairs.iter().flat_map(|(a, b)| [a, b]) {
        if (matrix.rows(), matrix.cols()) != (rows, cols) {
            return Err(Error::shape_mismatch("hadamard", (rows, cols), (matrix.rows(), matrix.cols())));
        }
    }
    let columns_bytes = (pairs.len() * size_of::<(Strided<'_>, Strided<'_>)>()) as u64;
    let sums = (ctx.threads() as u64).saturating_mul(FixedSum::bytes(precision_bits) + columns_bytes);
    let planned_bytes = Matrix::bytes_for(rows, cols, precision_bits).saturating_add(sums);
    ctx.admit(planned_bytes)?;
    let alpha = options.alpha.map(OwnFloat::new);
    let result = result.into().prepare((rows, cols), precision_bits)?;
    each_column(
        ctx,
        result,
        || FixedSum::new(precision_bits),
        |sum, mut column| {
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
            ctx.report_progress(Progress::new("hadamard", col as u64 + 1, cols as u64))
        },
    )?;
    let (threads, seconds) = (ctx.threads(), start.elapsed().as_secs_f64());
    Ok(VectorReport { operation: "hadamard", rows, cols, precision_bits, threads, seconds, planned_bytes })
}
