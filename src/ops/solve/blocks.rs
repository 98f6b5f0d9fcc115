//! The sources of the blocks of a triangle in a substitution: a view of all of it, pieces of a file in order, or tiles
//! of other ranks.

use crate::error::Result;
use crate::io::Block;
use crate::matrix::{Matrix, MatrixView};
use std::ops::Range;

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
