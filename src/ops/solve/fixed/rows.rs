//! The sources of the rows of a triangle for a solve in fixed point: a view of all of them, or pieces that come and go.

use crate::comm::window::{Shown, WindowPieces};
use crate::error::Result;
use crate::math::float::FloatRef;
use crate::matrix::MatrixView;
use crate::site::Team;
use std::ops::Range;

/// A lower triangle, row by row.
pub(crate) trait TriangleRows {
    /// The pivot of row `row`; not used where the diagonal is ones.
    fn pivot(&self, row: usize) -> FloatRef<'_>;

    /// Begins a pass over the rows, in pieces of `_piece_rows` rows. Collective where the rows come from ranks.
    ///
    /// # Errors
    /// The errors of the source that brings the rows.
    fn begin(&mut self, _piece_rows: usize) -> Result<()> {
        Ok(())
    }

    /// The rows `rows`, at least as far as their diagonal. Called from the first row to the last.
    ///
    /// # Errors
    /// The errors of the source that brings the rows.
    fn rows(&mut self, rows: Range<usize>) -> Result<RowPiece<'_>>;

    /// Ends the pass, whether or not all rows were read. Collective where the rows come from ranks.
    ///
    /// # Errors
    /// The errors of the source that brings the rows.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    /// The same rows for ranks that make the tiles of a row together; `None` where there is one rank.
    fn together(&mut self) -> Option<&mut dyn SharedRows> {
        None
    }
}

/// A lower triangle, row by row, whose tiles the ranks of each node make together: all of a node read the entries of a
/// row of tiles in one window, write its tiles into another, and publish each to the others when it is finished.
pub(crate) trait SharedRows {
    /// The team: all ranks, and their nodes.
    fn team(&self) -> &Team;

    /// Begins a pass over the rows, in pieces of at most `piece_entries` entries, with tiles of `tile_words` words in
    /// all. Collective.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`], [`crate::Error::Transport`]; on every rank.
    fn begin(&mut self, piece_entries: usize, tile_words: usize) -> Result<()>;

    /// Brings some rows to each node, from a column on up to the diagonal; entries from another node arrive at the rank
    /// whose columns `cols(rank)` contain them. Collective.
    ///
    /// # Errors
    /// [`crate::Error::Transport`].
    fn share(&mut self, from: RowsFrom<'_>, cols: &dyn Fn(usize) -> Range<usize>) -> Result<()>;

    /// The rows brought last, and the tiles to make from them, once no rank works on those of another row. Collective.
    ///
    /// # Errors
    /// [`crate::Error::Transport`].
    fn making<'a>(&'a mut self, tiles: &'a WindowPieces) -> Result<Making<'a>>;

    /// The pass is over. Collective.
    ///
    /// # Errors
    /// [`crate::Error::Transport`].
    fn end(&mut self) -> Result<()>;
}

/// A row of tiles on its way from entries to residues.
pub(crate) struct Making<'a> {
    /// The entries.
    pub piece: RowPiece<'a>,
    /// The tiles that this rank makes, in order.
    pub own: Vec<&'a mut [u64]>,
    /// Publishes this rank's tiles and finds those of the other ranks of the node.
    pub shown: Shown<'a>,
}

/// Rows of a triangle from a column on.
#[derive(Clone, Copy)]
pub(crate) struct RowsFrom<'a> {
    pub rows: &'a Range<usize>,
    pub first_col: usize,
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
