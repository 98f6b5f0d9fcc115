//! Where a solve in fixed point has the rows of its triangle from: a view of all of them, or pieces that come and go.

use crate::error::Result;
use crate::math::float::FloatRef;
use crate::matrix::MatrixView;
use std::ops::Range;

/// A lower triangle, row by row.
pub(crate) trait TriangleRows {
    /// The pivot of row `row`; not asked for where the diagonal is ones.
    fn pivot(&self, row: usize) -> FloatRef<'_>;

    /// A pass over the rows begins, in pieces of so many. Collective where the rows come from ranks.
    ///
    /// # Errors
    /// Those of what brings them.
    fn begin(&mut self, _piece_rows: usize) -> Result<()> {
        Ok(())
    }

    /// The rows `rows`, at least as far as their diagonal. Asked for from the first row to the last.
    ///
    /// # Errors
    /// Those of what brings them.
    fn rows(&mut self, rows: Range<usize>) -> Result<RowPiece<'_>>;

    /// The pass is over, whether all rows were asked for or not. Collective where the rows come from ranks.
    ///
    /// # Errors
    /// Those of what brings them.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Some rows of a triangle.
pub(crate) struct RowPiece<'a> {
    /// Their entries; nothing above the diagonal is read.
    pub view: MatrixView<'a>,
    /// The row of the triangle that is the first of the view.
    pub first: usize,
}

impl TriangleRows for MatrixView<'_> {
    fn pivot(&self, row: usize) -> FloatRef<'_> {
        self.get(row, row)
    }

    fn rows(&mut self, _rows: Range<usize>) -> Result<RowPiece<'_>> {
        Ok(RowPiece { view: *self, first: 0 })
    }
}
