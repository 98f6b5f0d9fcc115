//! Where a solve in fixed point has the rows of its triangle from: a view of all of them, or pieces that come and go.

use crate::comm::Fence;
use crate::comm::window::SharedWindow;
use crate::error::Result;
use crate::math::float::FloatRef;
use crate::matrix::MatrixView;
use crate::ops::distribution::team::Ranks;
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

    /// The same rows for ranks that make the tiles of a row together; `None` where there is one rank.
    fn together(&mut self) -> Option<&mut dyn SharedRows> {
        None
    }
}

/// A rank of some node: its number there, and how many there are.
#[derive(Clone, Copy)]
pub(crate) struct RankOfNode {
    pub rank: usize,
    pub ranks: usize,
}

/// A lower triangle, row by row, whose tiles the ranks of each node make together: each is brought the entries that it
/// needs, and all of a node read and write one window.
pub(crate) trait SharedRows {
    /// All ranks, those of this node, and which are where.
    fn ranks(&self) -> Ranks<'_>;

    /// A pass over the rows begins, in pieces of at most so many entries, with a window of so many words. Collective.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`], [`crate::Error::Transport`]; on every rank.
    fn begin(&mut self, piece_entries: usize, window_words: usize) -> Result<()>;

    /// Brings the columns `cols(rank)` of some rows to each rank of each node. Collective.
    ///
    /// # Errors
    /// [`crate::Error::Transport`].
    fn share(&mut self, rows: &Range<usize>, cols: &dyn Fn(RankOfNode) -> Range<usize>) -> Result<()>;

    /// Brings the block on the diagonal of some rows to every rank. Collective.
    ///
    /// # Errors
    /// [`crate::Error::Transport`].
    fn diagonal(&mut self, rows: &Range<usize>) -> Result<RowPiece<'_>>;

    /// What was brought last, as rows and columns of the triangle from these on, and where its tiles go.
    fn making(&mut self, first: (usize, usize)) -> Making<'_>;

    /// The window, and the fence of its phases.
    fn window(&mut self) -> (&mut SharedWindow, Fence<'_>);

    /// The pass is over. Collective.
    ///
    /// # Errors
    /// [`crate::Error::Transport`].
    fn end(&mut self) -> Result<()>;
}

/// What a rank makes tiles from, and where they go.
pub(crate) struct Making<'a> {
    pub piece: RowPiece<'a>,
    pub window: &'a mut SharedWindow,
    /// The fence of the window's phases.
    pub fence: Fence<'a>,
}

/// Some rows of a triangle.
pub(crate) struct RowPiece<'a> {
    /// Their entries; nothing above the diagonal is read.
    pub view: MatrixView<'a>,
    /// The row of the triangle that is the first of the view.
    pub first: usize,
    /// The column of the triangle that is the first of the view.
    pub first_col: usize,
}

impl TriangleRows for MatrixView<'_> {
    fn pivot(&self, row: usize) -> FloatRef<'_> {
        self.get(row, row)
    }

    fn rows(&mut self, _rows: Range<usize>) -> Result<RowPiece<'_>> {
        Ok(RowPiece { view: *self, first: 0, first_col: 0 })
    }
}
