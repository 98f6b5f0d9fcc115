//! The rows of a triangle in a file, piece by piece, for a solve in fixed point.

use super::blocks::{FileBlocks, FileTriangle};
use crate::error::Result;
use crate::math::float::FloatRef;
use crate::ops::solve::fixed::{RowPiece, TriangleRows};
use crate::ops::solve::triangle::TriangleBlocks;
use std::ops::Range;

/// The rows of a triangle in a file. Those of an upper triangle come from the last to the first, reversed, so that it
/// is lower.
pub(super) struct FileRows(FileBlocks);

impl FileRows {
    /// The rows of a triangle.
    pub fn new(triangle: FileTriangle) -> FileRows {
        FileRows(FileBlocks::new(triangle))
    }
}

impl TriangleRows for FileRows {
    fn pivot(&self, row: usize) -> FloatRef<'_> {
        let triangle = self.0.triangle();
        self.0.pivot(if triangle.reversed { triangle.order() - 1 - row } else { row })
    }

    fn begin(&mut self, piece_rows: usize) -> Result<()> {
        let triangle = self.0.triangle().clone();
        let order = triangle.order();
        let pieces = (0..order).step_by(piece_rows.max(1));
        let blocks = pieces.map(move |start| triangle.block_of_rows(&(start..(start + piece_rows).min(order))));
        self.0.begin(Box::new(blocks), piece_rows.min(order) * order)
    }

    fn rows(&mut self, rows: Range<usize>) -> Result<RowPiece<'_>> {
        let (block, reversed) = (self.0.triangle().block_of_rows(&rows), self.0.triangle().reversed);
        let view = self.0.block(&block)?;
        let turned = || view.reversed_rows().transposed().reversed_rows().transposed();
        let view = if reversed { turned() } else { view };
        Ok(RowPiece { view, first: rows.start, first_col: 0 })
    }

    fn finish(&mut self) -> Result<()> {
        self.0.finish();
        Ok(())
    }
}
