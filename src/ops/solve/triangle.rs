//! Triangular matrices as a solve sees them: a view of which one triangle counts, the rows of a factor scaled to norms
//! near 1, and the sources of a triangle's blocks: a view of all of it, pieces of a file in order, or tiles of other
//! ranks.
//!
//! A solve with a factored symmetric matrix `A = L D L^T` (`D` absent for Cholesky) is Lower, Diagonal, Upper in a
//! system that powers of two scale to row norms of about 1. With `H` such that `|D| H^-2` lies in `[1/4, 1)` and `S`
//! the norms of the rows of `L H`, it is `L' D' L'^T z = S^-1 b`, `L' = S^-1 L H`, `D' = D H^-2`, `x = S^-1 z`.

use crate::error::{Error, Result};
use crate::io::Block;
use crate::math::float::{FloatRef, Head};
use crate::math::pivot::diagonal_exponent;
use crate::math::scale::column_exponent;
use crate::matrix::{Diag, Matrix, MatrixView, Uplo};
use crate::ops::fixed_sum::OwnFloat;
use std::ops::Range;

/// A triangular matrix; nothing outside its triangle is read, nor the diagonal of a unit triangle.
#[derive(Clone, Copy)]
pub(crate) struct Triangle<'a> {
    view: MatrixView<'a>,
    uplo: Uplo,
    diag: Diag,
}

impl<'a> Triangle<'a> {
    /// The triangle of a square view.
    ///
    /// # Errors
    /// [`Error::Singular`] with the first zero on the diagonal.
    pub fn new(view: MatrixView<'a>, uplo: Uplo, diag: Diag) -> Result<Triangle<'a>> {
        assert_eq!(view.rows(), view.cols(), "a triangle is square");
        let is_zero = |&i: &usize| diag == Diag::NonUnit && view.get(i, i).head.is_zero();
        match (0..view.rows()).find(is_zero) {
            Some(index) => Err(Error::Singular { index }),
            None => Ok(Triangle { view, uplo, diag }),
        }
    }

    /// A block on the diagonal of a triangle, whose pivots are not 0.
    pub fn of_block(view: MatrixView<'a>, uplo: Uplo, diag: Diag) -> Triangle<'a> {
        assert_eq!(view.rows(), view.cols(), "a block on the diagonal is square");
        Triangle { view, uplo, diag }
    }

    /// The triangle that is used, and its diagonal.
    pub fn kind(&self) -> (Uplo, Diag) {
        (self.uplo, self.diag)
    }

    /// Rows and columns.
    pub fn order(&self) -> usize {
        self.view.rows()
    }

    /// Whether the unknowns are found from the first to the last.
    pub fn is_lower(&self) -> bool {
        self.uplo == Uplo::Lower
    }

    /// Whether the diagonal is ones.
    pub fn is_unit(&self) -> bool {
        self.diag == Diag::Unit
    }

    /// The unknowns within `range` that row `row` needs in addition to its own.
    pub fn others(&self, row: usize, range: &Range<usize>) -> Range<usize> {
        if self.is_lower() { range.start..row } else { row + 1..range.end }
    }

    /// The element at `(row, col)` of the triangle; not the diagonal of a unit triangle.
    #[inline]
    pub fn get(&self, row: usize, col: usize) -> FloatRef<'a> {
        self.view.get(row, col)
    }

    /// The whole view, with the entries outside of the triangle.
    pub fn view(&self) -> MatrixView<'a> {
        self.view
    }

    /// The exponent of the norm of each row of the diagonal block `range`.
    pub fn row_exponents(&self, range: &Range<usize>) -> Vec<i64> {
        range.clone().map(|row| self.row_exponent(row, range)).collect()
    }

    /// The exponent of the norm of one row of the diagonal block `range`.
    pub fn row_exponent(&self, row: usize, range: &Range<usize>) -> i64 {
        column_exponent(self.row_heads(row, range))
    }

    fn row_heads(&self, row: usize, range: &Range<usize>) -> impl Iterator<Item = Head> + Clone {
        let own = if self.is_unit() { Head::new(false, 1) } else { self.get(row, row).head };
        self.others(row, range).map(move |col| self.get(row, col).head).chain(std::iter::once(own))
    }
}

/// A matrix with its rows and columns in reverse order, which makes an upper triangle a lower one.
pub(crate) fn backwards(view: MatrixView<'_>) -> MatrixView<'_> {
    view.reversed_rows().transposed().reversed_rows().transposed()
}

/// A lower triangular `L H = S L'`: the rows of `L'` have norms in `(1/5, 1]`.
pub(crate) struct ScaledRows<'a> {
    factor: &'a Matrix,
    /// Heads of `L'`, zero above the diagonal.
    heads: Vec<u64>,
    /// Row `i` of `S` is `2^exponents[i]`.
    pub exponents: Vec<i64>,
}

impl<'a> ScaledRows<'a> {
    /// Scales column `j` by `2^columns[j]`, by 1 beyond their end, then the rows; entries above the diagonal are not
    /// read.
    pub fn new(factor: &'a Matrix, columns: &[i64]) -> ScaledRows<'a> {
        let order = factor.rows();
        let head =
            |row: usize, col: usize| scaled_head(factor.get(row, col).head, columns.get(col).copied().unwrap_or(0));
        let exponents = (0..order).map(|row| column_exponent((0..=row).map(|col| head(row, col)))).collect::<Vec<_>>();
        let mut heads = vec![0; order * order];
        for (col, column) in heads.chunks_mut(order.max(1)).enumerate() {
            for (row, word) in column.iter_mut().enumerate().skip(col) {
                *word = scaled_head(head(row, col), -exponents[row]).0;
            }
        }
        ScaledRows { factor, heads, exponents }
    }

    /// `L'`.
    ///
    /// # Errors
    /// [`Error::Singular`] where the diagonal has a zero.
    pub fn lower(&self) -> Result<Triangle<'_>> {
        Triangle::new(self.factor.view().with_heads(&self.heads), Uplo::Lower, Diag::NonUnit)
    }

    /// Its transpose.
    ///
    /// # Errors
    /// As [`ScaledRows::lower`].
    pub fn upper(&self) -> Result<Triangle<'_>> {
        Triangle::new(self.factor.view().with_heads(&self.heads).transposed(), Uplo::Upper, Diag::NonUnit)
    }

    /// Bytes held for a factor of that order.
    pub fn bytes(order: usize) -> u64 {
        8 * (order as u64 + 1) * order as u64
    }
}

/// For each pivot the `h` with `|d| 2^(-2 h)` in `[1/4, 1)`.
pub(crate) fn half_exponents(pivots: &Matrix) -> Vec<i64> {
    (0..pivots.rows()).map(|i| half_exponent(pivots.get(i, 0).head)).collect()
}

/// The `h` with `|d| 2^(-2 h)` in `[1/4, 1)`.
pub(crate) fn half_exponent(head: Head) -> i64 {
    diagonal_exponent(head.exponent())
}

/// The entries of `D'^-1`.
pub(crate) fn reciprocals(pivots: &Matrix, halves: &[i64], working_bits: u32) -> Vec<OwnFloat> {
    let each = halves.iter().enumerate();
    each.map(|(i, half)| OwnFloat::reciprocal(pivots.get(i, 0), working_bits).shifted(2 * half)).collect()
}

/// `value * 2^shift`, exactly.
#[inline]
pub(crate) fn scaled(value: FloatRef<'_>, shift: i64) -> FloatRef<'_> {
    FloatRef { head: scaled_head(value.head, shift), ..value }
}

/// The head of a number times `2^shift`.
#[inline]
pub(crate) fn scaled_head(head: Head, shift: i64) -> Head {
    if head.is_zero() { head } else { Head::new(head.is_negative(), head.exponent() + shift) }
}

/// Blocks in the order in which a substitution needs them.
pub(crate) type BlockOrder = Box<dyn Iterator<Item = Block> + Send>;

/// A lower or an upper triangle, block by block. Only the triangle's part of a block that crosses the diagonal is used.
pub(crate) trait TriangleBlocks {
    /// Begins a substitution, which will call [`TriangleBlocks::block`] for the blocks of `order`, one after the other;
    /// each has at most `_most_entries` entries.
    ///
    /// # Errors
    /// The errors of the source that brings them.
    fn begin(&mut self, _order: BlockOrder, _most_entries: usize) -> Result<()> {
        Ok(())
    }

    /// The next block in order; blocks may be left out.
    ///
    /// # Errors
    /// The errors of the source that brings it.
    fn block(&mut self, block: &Block) -> Result<MatrixView<'_>>;

    /// The rows of a product with a block that are computed here, all or this rank's share; [`TriangleBlocks::block`]
    /// brings only these.
    fn own_rows(&self, rows: &Range<usize>) -> Range<usize> {
        rows.clone()
    }

    /// Ends a step: each rank has computed its own of the rows `rows` of `w`; afterwards all ranks have all of them.
    /// Collective.
    ///
    /// # Errors
    /// The error of the step, on every rank; the errors of the transport.
    fn exchange(&mut self, _rows: &Range<usize>, _w: &mut Matrix, done: Result<()>) -> Result<()> {
        done
    }

    /// The substitution is over.
    fn finish(&mut self) {}
}

impl TriangleBlocks for MatrixView<'_> {
    fn block(&mut self, block: &Block) -> Result<MatrixView<'_>> {
        MatrixView::block(*self, block.rows.clone(), block.cols.clone())
    }
}
