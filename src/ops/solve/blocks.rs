//! Where a substitution has the blocks of its triangle from: a view of all of it, or pieces of a file in order.

use crate::error::Result;
use crate::io::Block;
use crate::matrix::MatrixView;

/// Blocks in the order in which a substitution asks for them.
pub(crate) type BlockOrder = Box<dyn Iterator<Item = Block> + Send>;

/// A lower or an upper triangle, block by block. Of a block that reaches over the diagonal the triangle's part counts.
pub(crate) trait TriangleBlocks {
    /// A substitution begins, which asks for the blocks of `order`, of at most so many entries, one after the other.
    ///
    /// # Errors
    /// Those of what brings them.
    fn begin(&mut self, _order: BlockOrder, _most_entries: usize) -> Result<()> {
        Ok(())
    }

    /// The next block in order; blocks may be left out.
    ///
    /// # Errors
    /// Those of what brings it.
    fn block(&mut self, block: &Block) -> Result<MatrixView<'_>>;

    /// The substitution is over.
    fn finish(&mut self) {}
}

impl TriangleBlocks for MatrixView<'_> {
    fn block(&mut self, block: &Block) -> Result<MatrixView<'_>> {
        MatrixView::block(*self, block.rows.clone(), block.cols.clone())
    }
}
