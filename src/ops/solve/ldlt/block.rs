//! One diagonal block of an `L D L^T`, scalar by scalar: one sum of products and one rounding per entry.

use crate::error::{Error, Result};
use crate::math::float::FloatRef;
use crate::matrix::{Matrix, check_exponent};
use crate::ops::fixed_sum::{FixedSum, OwnFloat, Sign};
use std::ops::Range;

/// Factors the block of rows and columns `range` of `l`, whose lower triangle holds the Schur complement of `A` there.
///
/// Afterwards `l` holds the unit triangle and `pivots` the block's part of `D`.
///
/// # Errors
/// [`Error::Singular`] with the index of a pivot that is 0, [`Error::ExponentRange`].
pub(super) fn factor(l: &mut Matrix, pivots: &mut Matrix, range: &Range<usize>) -> Result<()> {
    let bits = l.precision_bits();
    let mut work = BlockFactoring {
        start: range.start,
        products: Matrix::zeros(range.len(), range.len(), bits)?,
        sum: FixedSum::new(bits),
        limbs: vec![0; l.limbs_per_element()],
    };
    for col in range.clone() {
        for row in col..range.end {
            work.reduce(l, row, col)?;
        }
        let pivot = work.product(col, col);
        if pivot.head.is_zero() {
            return Err(Error::Singular { index: col });
        }
        let reciprocal = OwnFloat::reciprocal(pivot, bits);
        pivots.set(col, 0, pivot);
        l.set_f64(col, col, 1.0)?;
        for row in col + 1..range.end {
            work.divide(l, row, col, &reciprocal)?;
        }
    }
    Ok(())
}

struct BlockFactoring {
    /// First row and column of the block.
    start: usize,
    /// Column k is column k of `L` times its pivot, as it was before the division.
    products: Matrix,
    sum: FixedSum,
    limbs: Vec<u64>,
}

impl BlockFactoring {
    fn product(&self, row: usize, col: usize) -> FloatRef<'_> {
        self.products.get(row - self.start, col - self.start)
    }

    /// `products_ij := l_ij - sum over k < j in the block of products_ik l_jk`.
    fn reduce(&mut self, l: &Matrix, row: usize, col: usize) -> Result<()> {
        let BlockFactoring { start, products, sum, limbs } = self;
        let own = l.get(row, col);
        let factors = |k: usize| (products.get(row - *start, k - *start), l.get(col, k));
        sum.set(own, (*start..col).map(factors), Sign::Minus);
        let head = sum.round(limbs);
        check_exponent(head.exponent(), row, col)?;
        products.set(row - *start, col - *start, FloatRef { head, limbs });
        Ok(())
    }

    /// `l_ij := products_ij / d_j`.
    fn divide(&mut self, l: &mut Matrix, row: usize, col: usize, reciprocal: &OwnFloat) -> Result<()> {
        let value = self.products.get(row - self.start, col - self.start);
        let head = self.sum.multiply(value, reciprocal, &mut self.limbs);
        check_exponent(head.exponent(), row, col)?;
        l.set(row, col, FloatRef { head, limbs: &self.limbs });
        Ok(())
    }
}
