//! Are these matrices LU factors of that matrix? Residuals of `P A = L U`.
//!
//! Promise: factors that meet the entrywise bound of [`lu_with`](crate::lu_with) are never rejected. The equation is
//! the claim that `P A` is the product of `L` and `U`, so it is tested like a product. Independent of: how a matrix is
//! factored. Source: docs/CHECKS.md, "Verification".

use super::{Bounds, Claim, ClaimedProduct, Verification, VerifyOptions, check_bits, judge, system};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::{Matrix, MatrixView};
use crate::ops::Lu;

/// Checks that `P A = L U` holds to `precision_bits` bits for these factors.
///
/// The tests are those of [`verify_gemm`](super::verify_gemm) for `P A` as the product `L U`: sampled entries (all
/// entries if there are few) have `|P A - L U|_ij <= 2^(2-b) ||l_i|| ||u_j||`, where `l_i` is a row of `L` and `u_j` a
/// column of `U`, and random combinations of the columns of the residual meet the combined bounds; residuals are exact
/// sums. Factors with entrywise accuracy meet this bound; factors with accuracy by norms may exceed it. Whether the
/// pivots are the largest of their columns is not tested. Only the options `vector_count`, `sample_count` and `seed`
/// are used. Shapes: `a` is `n x n`. Cost: `n^2` multiplications of big integers for each vector and `n` for each
/// compared entry; copies of the matrix and of both factors.
///
/// ```
/// use sunzi::verify::{VerifyOptions, verify_lu};
/// use sunzi::{Context, Matrix};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[1.0, 3.0, 2.0, 4.0])?; // [1 2; 3 4]
/// let factors = sunzi::lu(&ctx, &a, 128)?;
/// assert!(verify_lu(&ctx, &a, &factors, 128, &VerifyOptions::new())?.worst_entry <= 1.0);
/// let other = Matrix::from_f64s(2, 2, 128, &[1.0, 3.0, 2.0, 5.0])?;
/// assert!(verify_lu(&ctx, &other, &factors, 128, &VerifyOptions::new()).is_err());
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`Error::Verification`] names the worst entry or row; [`Error::NotSquare`] for `a`; [`Error::ShapeMismatch`] for
/// factors of another order; [`Error::Precision`] for fewer than 2 bits; [`Error::MemoryLimit`];
/// [`Error::OutOfMemory`].
pub fn verify_lu<'a>(
    ctx: &Context,
    a: impl Into<MatrixView<'a>>,
    factors: &Lu,
    precision_bits: u32,
    options: &VerifyOptions,
) -> Result<Verification> {
    let (operation, a, order) = ("verify lu", a.into(), factors.order());
    check_bits(precision_bits)?;
    if a.rows() != a.cols() {
        return Err(Error::NotSquare { operation, rows: a.rows(), cols: a.cols() });
    }
    if a.rows() != order {
        return Err(Error::shape_mismatch(operation, (a.rows(), a.cols()), (order, order)));
    }
    let entries = factors.factors().view();
    system::admit(ctx, &[a, entries, entries], options)?;
    let mut ordered = Matrix::zeros(order, order, a.precision_bits())?;
    for col in 0..order {
        factors.rows().iter().enumerate().for_each(|(place, &row)| ordered.set(place, col, a.get(row, col)));
    }
    let (lower, upper) = (factors.lower()?, factors.upper()?);
    let claim = Claim {
        power: 2,
        with_result: false,
        subject: "the residual",
        unit: "2^(2-b) ||l_i|| ||u_j||",
        row_unit: "2^(2-b) ||l_i|| sum_j ||u_j|| |x_j|",
        transposed: false,
    };
    // A product is `left^T right`.
    let (left, right, result) = (lower.transposed(), upper.view(), ordered.view());
    let problem = ClaimedProduct { operation, left, right, result, triangle: None, claim };
    judge(ctx, &problem, &Bounds::new(ctx, &problem, precision_bits), options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery::{Kind, Size, generate};
    use crate::{Accuracy, LuOptions, lu_with};
    use rug::Float;

    const BITS: u32 = 130;

    fn options() -> VerifyOptions {
        VerifyOptions { seed: Some(5), sample_count: 10_000, ..VerifyOptions::default() }
    }

    /// The largest `|P A - L U|_ij / (2^(2-b) ||l_i|| ||u_j||)`, from sums in many bits.
    fn worst(a: &Matrix, factors: &Lu, bits: u32) -> f64 {
        let wide = |value: Float| Float::with_val(4000, value);
        let (lower, upper, n) = (factors.lower().unwrap(), factors.upper().unwrap(), a.rows());
        let norm =
            |entries: Vec<Float>| entries.into_iter().fold(wide(Float::new(53)), |sum, x| sum + wide(x).square());
        let mut worst = 0.0;
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let terms = (0..n).map(|k| wide(lower.float(i, k)) * wide(upper.float(k, j)));
            let residual = terms.fold(wide(a.float(factors.rows()[i], j)), |sum, term| sum - term);
            let sizes =
                norm((0..n).map(|k| lower.float(i, k)).collect()) * norm((0..n).map(|k| upper.float(k, j)).collect());
            let bound = sizes.sqrt() * (wide(Float::with_val(53, 4)) >> bits as i32);
            worst = f64::max(worst, (residual.abs() / bound).to_f64());
        }
        worst
    }

    #[test]
    fn factors_pass_and_changed_factors_pass_within_the_bound_only() {
        let ctx = Context::builder().threads(2).build().unwrap();
        for (order, seed) in [(1, 1), (7, 2), (8, 3), (9, 4), (30, 5)] {
            let size = Size { rows: order, cols: order, precision_bits: BITS };
            let a = generate(Kind::Random, size, seed).unwrap();
            let factors = lu_with(&ctx, &a, BITS, &LuOptions::new().accuracy(Accuracy::Entrywise)).unwrap().result;
            let found = verify_lu(&ctx, &a, &factors, BITS, &options()).unwrap();
            assert!((found.worst_entry - worst(&a, &factors, BITS)).abs() < 1e-6, "{order} rows");
            assert_eq!(found.entry_count, order * order);
            // The bound is tested on both sides of 1, with changes of one entry of U.
            let (mut passed, mut failed) = (0, 0);
            for power in 0..20 {
                let (mut entries, rows) = factors.clone().into_parts();
                let last = entries.float(order - 1, order - 1);
                let step = Float::with_val(BITS + 40, 1) >> (BITS as i32 + 3 - power);
                entries.set_float(order - 1, order - 1, &(last.clone() + step * last)).unwrap();
                let changed = Lu::from_factors(entries, rows).unwrap();
                let expected = worst(&a, &changed, BITS) <= 1.0;
                let outcome = verify_lu(&ctx, &a, &changed, BITS, &options());
                assert_eq!(outcome.is_ok(), expected, "{order} rows, 2^{power}");
                (passed, failed) = (passed + u32::from(expected), failed + u32::from(!expected));
            }
            assert!(passed > 0 && failed > 0, "{passed} passed, {failed} failed");
        }
    }

    #[test]
    fn another_order_of_rows_and_other_shapes_are_refused() {
        let ctx = Context::new().unwrap();
        let a = Matrix::from_f64s(2, 2, BITS, &[1.0, 3.0, 2.0, 4.0]).unwrap();
        let factors = crate::lu(&ctx, &a, BITS).unwrap();
        let (entries, _) = factors.clone().into_parts();
        let turned = Lu::from_factors(entries, vec![0, 1]).unwrap();
        let error = verify_lu(&ctx, &a, &turned, BITS, &options()).unwrap_err();
        assert!(matches!(error, Error::Verification { .. }), "{error}");
        let wide = Matrix::zeros(2, 3, BITS).unwrap();
        assert!(matches!(verify_lu(&ctx, &wide, &factors, BITS, &options()), Err(Error::NotSquare { .. })));
        let large = Matrix::identity(3, BITS).unwrap();
        assert!(matches!(verify_lu(&ctx, &large, &factors, BITS, &options()), Err(Error::ShapeMismatch { .. })));
        assert!(matches!(verify_lu(&ctx, &a, &factors, 1, &options()), Err(Error::Precision { .. })));
        let empty = crate::lu(&ctx, &Matrix::zeros(0, 0, BITS).unwrap(), BITS).unwrap();
        let found = verify_lu(&ctx, &Matrix::zeros(0, 0, BITS).unwrap(), &empty, BITS, &options()).unwrap();
        assert_eq!((found.entry_count, found.worst_entry), (0, 0.0));
    }
}
