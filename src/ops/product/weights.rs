//! The two operands of `P^T diag(d) P = X^T Y`: weights are divided between them so that the norms of both columns are
//! those of a symmetric product, and nothing is rounded.
//!
//! With `|d_k| = 4^t m`, `1/2 <= m < 2`, row `k` of X is `2^t p_k`, which takes other heads and no other limbs, and row
//! `k` of Y is `2^-t d_k p_k`, with the bits of both factors. Source: docs/ALGORITHM.md, "Weighted Gram matrices".

use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::float::{Head, round_integer};
use crate::matrix::{MAXIMUM_EXPONENT, Matrix, MatrixView};
use crate::ops::columns::{Column, each_column};
use crate::ops::exact_sum::ExactProduct;
use crate::store::filled;

/// `P` and its weights, in the form of two operands.
pub(crate) struct WeightedOperand<'a> {
    p: MatrixView<'a>,
    /// Heads of X, whose limbs are those of P; none where X is P.
    heads: Vec<u64>,
    /// Y.
    weighted: Matrix,
}

impl<'a> WeightedOperand<'a> {
    /// Bytes of the operands of `elements` elements in memory, of which `rows x cols` are weighted, with
    /// `precision_bits` bits of matrix and weights together.
    pub fn bytes(elements: usize, rows: usize, cols: usize, precision_bits: u32) -> u64 {
        Matrix::bytes_for(rows, cols, precision_bits).saturating_add(8 * elements as u64)
    }

    /// Bytes of these operands in memory.
    pub fn bytes_of(p: &MatrixView<'_>, weights: &MatrixView<'_>) -> u64 {
        let bits = p.precision_bits().saturating_add(weights.precision_bits());
        WeightedOperand::bytes(p.all_heads().len(), p.rows(), p.cols(), bits)
    }

    /// Multiplies the rows of `p` by the column `weights`, which has an entry for each (checked by
    /// [`weights_of`]). Exact integers stay integers: X is then P.
    ///
    /// # Errors
    /// [`Error::Precision`], [`Error::OutOfMemory`], [`Error::Cancelled`].
    pub fn new(
        ctx: &Context,
        p: MatrixView<'a>,
        weights: MatrixView<'_>,
        exact_integers: bool,
    ) -> Result<WeightedOperand<'a>> {
        let shift = |row: usize| if exact_integers { 0 } else { weights.get(row, 0).head.exponent().div_euclid(2) };
        let mut heads = Vec::new();
        if !exact_integers {
            heads = filled(0, p.all_heads().len())?;
            for (row, col) in (0..p.cols()).flat_map(|col| (0..p.rows()).map(move |row| (row, col))) {
                let (head, is_dropped) = (p.head(row, col), weights.get(row, 0).head.is_zero());
                if !head.is_zero() {
                    // The terms of a weight 0 are 0; so small a number weighs in no norm.
                    let exponent = if is_dropped { -MAXIMUM_EXPONENT } else { head.exponent() + shift(row) };
                    heads[p.element_index(row, col)] = Head::new(head.is_negative(), exponent).0;
                }
            }
        }
        let precision_bits = p.precision_bits().saturating_add(weights.precision_bits());
        let mut weighted = Matrix::zeros(p.rows(), p.cols(), precision_bits)?;
        let local = || ExactProduct::new(p.limbs_per_element(), weights.limbs_per_element());
        each_column(ctx, &mut weighted, local, |product, mut column: Column<'_>| {
            let col = column.index;
            for row in 0..p.rows() {
                let exact = product.of(p.get(row, col), weights.get(row, 0));
                let exponent = exact.exponent - shift(row);
                column.set(row, |out| round_integer(exact.negative, exact.magnitude, exponent, precision_bits, out));
            }
            Ok(())
        })?;
        Ok(WeightedOperand { p, heads, weighted })
    }

    /// X and Y.
    pub fn views(&self) -> [MatrixView<'_>; 2] {
        let x = if self.heads.is_empty() { self.p } else { self.p.with_heads(&self.heads) };
        [x, self.weighted.view()]
    }
}

/// The weights of `rows` rows as a column.
///
/// # Errors
/// [`Error::ShapeMismatch`].
pub(crate) fn weights_of(d: MatrixView<'_>, rows: usize) -> Result<MatrixView<'_>> {
    let column = if d.rows() == 1 { d.transposed() } else { d };
    match (column.rows(), column.cols()) {
        (count, 1) if count == rows => Ok(column),
        (0, 0) if rows == 0 => Ok(column),
        _ => Err(Error::shape_mismatch("weighted_gram", (rows, 1), (d.rows(), d.cols()))),
    }
}
