//! Whole matrices as vectors: sums, inner products, sizes, other precisions.
//!
//! Every sum has one order, so no result depends on threads. Independent of: programs, blocks.

use crate::calls::{Call, call, dot};
use rug::Float;
use std::borrow::Cow;
use sunzi::blas::axpy_into;
use sunzi::{Accuracy, Context, GemmOptions, Head, Matrix, MatrixView, MatrixViewMut, Result};

/// A context, and the bits to which all is rounded.
#[derive(Clone, Copy)]
pub struct Arithmetic<'c> {
    /// The context of the library's calls.
    pub ctx: &'c Context,
    /// Precision of every result.
    pub bits: u32,
}

/// Rows and columns of a matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dimensions {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
}

impl Dimensions {
    /// The dimensions of a column.
    pub fn column(rows: usize) -> Dimensions {
        Dimensions { rows, cols: 1 }
    }

    /// Numbers of the matrix.
    pub fn count(self) -> usize {
        self.rows * self.cols
    }
}

/// The options of every product except that of Q: each entry is accurate relative to its own terms.
pub fn entrywise<'a>() -> GemmOptions<'a> {
    GemmOptions::new().accuracy(Accuracy::Entrywise)
}

/// All entries, column by column, as one column.
///
/// # Errors
/// The errors of [`MatrixView::from_parts`].
pub fn flat(matrix: &Matrix) -> Result<MatrixView<'_>> {
    let count = matrix.rows() * matrix.cols();
    MatrixView::from_parts(matrix.parts(), (count, 1), count, matrix.precision_bits())
}

/// The matrix rounded to `bits`, or itself if it has no more.
///
/// # Errors
/// The errors of [`MatrixView::rounded`].
pub fn rounded(matrix: Matrix, bits: u32) -> Result<Matrix> {
    if matrix.precision_bits() == bits { Ok(matrix) } else { matrix.view().rounded(bits) }
}

/// The largest magnitude among the entries; 0 for an empty matrix.
pub fn largest(matrix: &Matrix) -> Float {
    let heads = matrix.parts().0;
    let top = heads.iter().map(|&head| Head(head)).filter(|head| !head.is_zero()).map(Head::exponent).max();
    let mut found = Float::new(matrix.precision_bits());
    let Some(top) = top else { return found };
    for (at, head) in heads.iter().map(|&head| Head(head)).enumerate() {
        if !head.is_zero() && head.exponent() == top {
            let size = matrix.float(at % matrix.rows(), at / matrix.rows()).abs();
            if size > found {
                found = size;
            }
        }
    }
    found
}

/// The column of `entry(index)`.
///
/// # Errors
/// The errors of [`Matrix::from_fn`].
pub fn column(rows: usize, bits: u32, mut entry: impl FnMut(usize) -> Float) -> Result<Matrix> {
    Matrix::from_fn(rows, 1, bits, |row, _| entry(row))
}

impl<'c> Arithmetic<'c> {
    /// The context for a call while this task holds `bytes` bytes: a limit is for both. A context without one needs no
    /// copy, which would take as long as a short sum.
    pub fn beside(&self, bytes: u64) -> Cow<'c, Context> {
        let Some(limit) = self.ctx.memory_bytes() else { return Cow::Borrowed(self.ctx) };
        Cow::Owned(self.ctx.with_memory_bytes(Some(limit.saturating_sub(bytes))))
    }

    /// `alpha x + y`, rounded once.
    ///
    /// # Errors
    /// The errors of [`axpy_into`].
    pub fn sum(&self, alpha: &Float, x: &Matrix, y: &Matrix) -> Result<Matrix> {
        let count = x.rows() * x.cols();
        call(Call { verb: "axpy", shape: (count, 1, 2), bits: self.bits }, || {
            let mut sum = Matrix::zeros(x.rows(), x.cols(), self.bits)?;
            let column = MatrixViewMut::from_parts(sum.parts_mut(), (count, 1), count, self.bits)?;
            axpy_into(self.ctx, alpha, flat(x)?, flat(y)?, self.bits, column)?;
            Ok(sum)
        })
    }

    /// `x - y`, rounded once.
    ///
    /// # Errors
    /// The errors of [`axpy_into`].
    pub fn difference(&self, x: &Matrix, y: &Matrix) -> Result<Matrix> {
        self.sum(&Float::with_val(2, -1), y, x)
    }

    /// The sum of the products of entries.
    ///
    /// # Errors
    /// The errors of [`dot`].
    pub fn inner(&self, x: &Matrix, y: &Matrix) -> Result<Float> {
        dot(self.ctx, flat(x)?, flat(y)?, self.bits)
    }
}

/// Multiplies each entry by a power of two, by its row and column.
pub fn shift(matrix: &mut Matrix, by: impl Fn(usize, usize) -> i64) {
    let rows = matrix.rows();
    for (at, head) in matrix.parts_mut().0.iter_mut().enumerate() {
        let own = Head(*head);
        if !own.is_zero() {
            *head = Head::new(own.is_negative(), own.exponent() + by(at % rows, at / rows)).0;
        }
    }
}

/// The number with as few bits as it has: products with it are cheap.
pub fn trimmed(value: Float) -> Float {
    let Some((integer, _)) = value.to_integer_exp() else { return value };
    let zeros = integer.find_one(0).unwrap_or(0);
    let bits = integer.significant_bits().saturating_sub(zeros).max(2);
    Float::with_val(bits, &value)
}

/// Whether all entries are 0.
pub fn is_zero(matrix: &Matrix) -> bool {
    matrix.parts().0.iter().all(|&head| head == 0)
}

/// The exponent above the largest magnitude; far below all others for 0.
pub fn exponent(value: &Float) -> i64 {
    value.get_exp().map_or(i64::MIN / 4, i64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_sizes_are_those_of_single_entries() -> Result<()> {
        let ctx = Context::builder().threads(1).build()?;
        let k = Arithmetic { ctx: &ctx, bits: 128 };
        let x = Matrix::from_f64s(2, 2, 128, &[1.0, -7.5, 2.0, 3.0])?;
        let y = Matrix::from_f64s(2, 2, 128, &[0.5, 1.0, -1.0, 0.0])?;
        assert_eq!(k.sum(&Float::with_val(8, 2), &x, &y)?.view().to_f64s(), [2.5, -14.0, 3.0, 6.0]);
        assert_eq!(k.difference(&x, &y)?.view().to_f64s(), [0.5, -8.5, 3.0, 3.0]);
        assert_eq!(k.inner(&x, &y)?, -9);
        assert_eq!(largest(&x), 7.5);
        assert_eq!(largest(&Matrix::zeros(0, 3, 64)?), 0);
        assert_eq!(rounded(x, 2)?.view().to_f64s(), [1.0, -8.0, 2.0, 3.0]);
        Ok(())
    }
}
