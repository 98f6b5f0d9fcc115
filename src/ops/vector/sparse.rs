//! `spmm`: a sparse matrix times a dense one, and `sddmm`: some entries of a product of dense ones.
//!
//! Each entry is a sum of few terms, formed in fixed point below the largest of them and rounded once
//! (`ops::fixed_sum`): no number of its own is made for a term.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::float::limbs_for;
use crate::matrix::{Destination, Matrix, MatrixView, SparseView, check_exponent};
use crate::ops::fixed_sum::FixedSum;
use crate::ops::vector::entries::{ColumnsCall, Strided, VectorCall, VectorReport, check_precision};
use std::time::Instant;

/// `A B` for a sparse matrix and a dense one, rounded to `precision_bits` bits.
///
/// Shapes: `A`, a [`crate::sparse::SparseMatrix`] or some of its rows, is `M x K`, `B` is `K x N`; any may be 0.
/// Accuracy: `|computed - exact|_ij <= 2^(1 - precision_bits) (|A| |B|)_ij`, whatever the exponents are; the bits
/// depend only on the entries and the precision. Cost: one multiplication of big floats for each entry of `A` and each
/// column of `B`; short entries of `A`, such as integers, cost less. Source: docs/decisions/055-sparse-sums.md.
///
/// ```
/// use sunzi::{Context, Matrix};
/// use sunzi::sparse::SparseMatrix;
/// use sunzi::rug::Float;
/// let ctx = Context::builder().threads(1).build()?;
/// let (two, minus) = (Float::with_val(53, 2), Float::with_val(53, -1));
/// let a = SparseMatrix::from_entries(2, 3, [((0, 0), &two), ((0, 2), &minus)])?;
/// let b = Matrix::from_f64s(3, 2, 256, &[1.0, 2.0, 3.0, 10.0, 20.0, 30.0])?;
/// assert_eq!(sunzi::sparse::spmm(&ctx, &a, &b, 256)?.view().to_f64s(), [-1.0, 0.0, -10.0, 0.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::ShapeMismatch`]; [`crate::Error::Precision`]; [`crate::Error::ExponentRange`] if an entry of the
/// result is outside the exponent range; [`crate::Error::MemoryLimit`]; [`crate::Error::Cancelled`];
/// [`crate::Error::OutOfMemory`].
pub fn spmm<'a, 'b>(
    ctx: &Context,
    a: impl Into<SparseView<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
) -> Result<Matrix> {
    let mut result = Matrix::empty();
    spmm_into(ctx, a, b, precision_bits, &mut result)?;
    Ok(result)
}

/// [`spmm`] into the caller's memory, as [`crate::blas::gemv_into`].
///
/// # Errors
/// As [`spmm`] and [`crate::blas::gemv_into`].
pub fn spmm_into<'a, 'b, 'r>(
    ctx: &Context,
    a: impl Into<SparseView<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
    result: impl Into<Destination<'r>>,
) -> Result<VectorReport> {
    let start = Instant::now();
    check_precision(precision_bits)?;
    let (a, b) = (a.into(), b.into());
    if a.cols() != b.rows() {
        return Err(Error::shape_mismatch("spmm", (a.rows(), a.cols()), (b.rows(), b.cols())));
    }
    let (rows, cols) = (a.rows(), b.cols());
    let entry = |sum: &mut FixedSum, column: &Strided<'_>, (row, col): (usize, usize), limbs: &mut [u64]| {
        sum.set_products(a.row(row).map(|(at, value)| (value, column.get(at))));
        let head = sum.round(limbs);
        check_exponent(head.exponent(), row, col)?;
        Ok(head)
    };
    if cols == 1 {
        let call = VectorCall {
            ctx,
            operation: "spmm",
            len: rows,
            terms: a.longest_row(),
            precision_bits,
            entry_nanoseconds: entry_nanoseconds(a.entries() / rows.max(1), precision_bits),
            worker_bytes: FixedSum::bytes(precision_bits),
        };
        let (column, local) = (Strided::column(b, 0), || FixedSum::new(precision_bits));
        return call.fill(result.into(), local, |sum, row, limbs| entry(sum, &column, (row, 0), limbs));
    }
    let worker_bytes = FixedSum::bytes(precision_bits);
    let call = ColumnsCall { ctx, operation: "spmm", rows, cols, precision_bits, worker_bytes, start };
    call.fill(
        result.into(),
        || FixedSum::new(precision_bits),
        |sum, column| {
            let (col, of_b) = (column.index, Strided::column(b, column.index));
            (0..rows).try_for_each(|row| column.try_set(row, |limbs| entry(sum, &of_b, (row, col), limbs)))
        },
    )
}

/// Selected entries of `A B`, rounded to `precision_bits` bits: a sampled product of dense matrices.
///
/// Shapes: `A` is `M x K`, `B` is `K x N`; the result is a column with one entry for each of `positions`, which are
/// pairs of a row of `A` and a column of `B`, counted from 0, in any order, with repetitions allowed. Accuracy:
/// `|computed - exact| <= 2^(1 - precision_bits) (|A| |B|)_ij`; the bits depend only on the entries and the precision.
/// Cost: `K` multiplications of big floats for each position. The function is fastest if `A` is the transpose of a
/// column-major matrix. Source: docs/decisions/055-sparse-sums.md.
///
/// ```
/// use sunzi::{Context, Matrix};
/// let ctx = Context::builder().threads(1).build()?;
/// let a = Matrix::from_f64s(2, 2, 256, &[1.0, 2.0, 3.0, 4.0])?;
/// let some = sunzi::sparse::sddmm(&ctx, &a, a.transposed(), &[(0, 0), (1, 0)], 256)?;
/// assert_eq!(some.view().to_f64s(), [10.0, 14.0]);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`spmm`]; [`crate::Error::InvalidArgument`] for a position outside the product.
pub fn sddmm<'a, 'b>(
    ctx: &Context,
    a: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    positions: &[(usize, usize)],
    precision_bits: u32,
) -> Result<Matrix> {
    let mut result = Matrix::empty();
    sddmm_into(ctx, a, b, positions, precision_bits, &mut result)?;
    Ok(result)
}

/// [`sddmm`] into the caller's memory, as [`crate::blas::gemv_into`].
///
/// # Errors
/// As [`sddmm`] and [`crate::blas::gemv_into`].
pub fn sddmm_into<'a, 'b, 'r>(
    ctx: &Context,
    a: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    positions: &[(usize, usize)],
    precision_bits: u32,
    result: impl Into<Destination<'r>>,
) -> Result<VectorReport> {
    check_precision(precision_bits)?;
    let (a, b) = (a.into(), b.into());
    if a.cols() != b.rows() {
        return Err(Error::shape_mismatch("sddmm", (a.rows(), a.cols()), (b.rows(), b.cols())));
    }
    if let Some(at) = positions.iter().position(|&(row, col)| row >= a.rows() || col >= b.cols()) {
        let ((row, col), (rows, cols)) = (positions[at], (a.rows(), b.cols()));
        let message = format!("position {at}, row {row} and column {col}, lies outside the {rows} x {cols} product");
        return Err(Error::InvalidArgument(message));
    }
    let terms = a.cols();
    let call = VectorCall {
        ctx,
        operation: "sddmm",
        len: positions.len(),
        terms,
        precision_bits,
        entry_nanoseconds: entry_nanoseconds(terms, precision_bits),
        worker_bytes: FixedSum::bytes(precision_bits),
    };
    let (left, local) = (a.transposed(), || FixedSum::new(precision_bits));
    call.fill(result.into(), local, |sum, at, limbs| {
        let (row, col) = positions[at];
        let (x, y) = (Strided::column(left, row), Strided::column(b, col));
        sum.set_products((0..terms).map(|k| (x.get(k), y.get(k))));
        let head = sum.round(limbs);
        check_exponent(head.exponent(), at, 0)?;
        Ok(head)
    })
}

/// Estimate for an entry of `terms` terms.
fn entry_nanoseconds(terms: usize, precision_bits: u32) -> f64 {
    let limbs = limbs_for(precision_bits) as f64;
    40.0 + terms as f64 * (6.0 + limbs * (1.0 + 0.3 * limbs))
}
