//! The rows of a triangle in a file, piece by piece, read ahead while the piece before is at work.

use crate::error::Result;
use crate::io::{Block, BlockStream, BlockStreamOptions, FileBlock, MatrixFile, StreamedBlock};
use crate::math::float::{FloatRef, Head, limbs_for};
use crate::matrix::Matrix;
use crate::ops::solve::fixed::{RowPiece, TriangleRows};
use std::ops::Range;
use std::sync::Arc;

/// Pieces in memory: one at work, one that is read.
const PIECES: usize = 2;

/// Which triangle of a file is meant, and how: `op(T)`, or that triangle reversed where it is an upper one.
#[derive(Clone)]
pub(super) struct FileTriangle {
    pub file: Arc<MatrixFile>,
    /// Whether `op` transposes.
    pub transposed: bool,
    /// Whether `op(T)` is an upper triangle: its rows come from the last to the first, so that it is lower.
    pub reversed: bool,
    /// Row `i` of the file is scaled by `2^-scale[i]`.
    pub scale: Option<Arc<[i64]>>,
    /// The diagonal as a column, not scaled.
    pub pivots: Arc<Matrix>,
    /// Whether the system is asked to forget what was read.
    pub forget: bool,
}

impl FileTriangle {
    /// Rows.
    pub fn order(&self) -> usize {
        self.file.rows()
    }

    /// The part of the file that rows of the lower triangle lie in.
    fn block(&self, rows: &Range<usize>) -> Block {
        let order = self.order();
        let (own, others) = match self.reversed {
            false => (rows.clone(), 0..rows.end),
            true => (order - rows.end..order - rows.start, order - rows.end..order),
        };
        let (rows, cols) = if self.transposed { (others, own) } else { (own, others) };
        Block { rows, cols }
    }
}

/// Bytes that each row of a piece takes at most: pieces, and heads where they are scaled.
pub(super) fn piece_row_bytes((order, bits): (usize, u32), is_scaled: bool) -> u64 {
    let heads = if is_scaled { 8 * order as u64 } else { 0 };
    PIECES as u64 * Matrix::bytes_for(1, order, bits) + heads
}

/// Bytes of the read-ahead beside the pieces.
pub(super) fn stream_bytes(order: usize, bits: u32) -> u64 {
    let options = BlockStreamOptions { buffers: PIECES, buffer_words: 0, forget: true };
    BlockStream::memory_bytes(&options, order, limbs_for(bits))
}

/// The rows of a triangle in a file.
pub(super) struct FileRows {
    triangle: FileTriangle,
    /// Of the diagonal, scaled as the rows are.
    pivot_heads: Vec<u64>,
    stream: Option<BlockStream>,
    piece: Option<StreamedBlock>,
    /// Scaled heads of the piece.
    heads: Vec<u64>,
}

impl FileRows {
    /// The rows of a triangle.
    pub fn new(triangle: FileTriangle) -> FileRows {
        let heads = triangle.pivots.parts().0.iter().enumerate();
        let pivot_heads = heads.map(|(row, &head)| scaled(&triangle, row, head)).collect();
        FileRows { triangle, pivot_heads, stream: None, piece: None, heads: Vec::new() }
    }
}

/// The head of an entry of row `row` of the file, scaled.
fn scaled(triangle: &FileTriangle, row: usize, head: u64) -> u64 {
    let (value, scale) = (Head(head), triangle.scale.as_ref().map_or(0, |scale| scale[row]));
    if value.is_zero() { head } else { Head::new(value.is_negative(), value.exponent() - scale).0 }
}

impl TriangleRows for FileRows {
    fn pivot(&self, row: usize) -> FloatRef<'_> {
        let at = if self.triangle.reversed { self.pivot_heads.len() - 1 - row } else { row };
        FloatRef { head: Head(self.pivot_heads[at]), limbs: self.triangle.pivots.get(at, 0).limbs }
    }

    fn begin(&mut self, piece_rows: usize) -> Result<()> {
        let (order, triangle) = (self.triangle.order(), self.triangle.clone());
        let buffer_words = piece_rows.min(order) * order * (1 + triangle.file.limbs());
        let options = BlockStreamOptions { buffers: PIECES, buffer_words, forget: triangle.forget };
        let pieces = (0..order).step_by(piece_rows.max(1)).map(move |start| {
            let rows = start..(start + piece_rows).min(order);
            FileBlock { file: triangle.file.clone(), block: triangle.block(&rows) }
        });
        self.stream = None; // its buffers count on the memory of the next one
        self.stream = Some(BlockStream::new(options, pieces)?);
        Ok(())
    }

    fn rows(&mut self, rows: Range<usize>) -> Result<RowPiece<'_>> {
        let block = self.triangle.block(&rows);
        loop {
            self.piece = None;
            let next = self.stream.as_ref().and_then(BlockStream::next_block).expect("rows are asked for in order");
            let next = next?;
            let is_it = next.place().block == block;
            self.piece = Some(next);
            if is_it {
                break;
            }
        }
        let view = self.piece.as_ref().expect("it was read").view()?;
        let view = match self.triangle.scale {
            None => view,
            Some(_) => {
                let heads = view.all_heads();
                let height = block.rows.len();
                self.heads.clear();
                let each = heads.iter().enumerate();
                self.heads.extend(each.map(|(at, &head)| scaled(&self.triangle, block.rows.start + at % height, head)));
                view.with_heads(&self.heads)
            }
        };
        let view = if self.triangle.transposed { view.transposed() } else { view };
        let turned = || view.reversed_rows().transposed().reversed_rows().transposed();
        let view = if self.triangle.reversed { turned() } else { view };
        Ok(RowPiece { view, first: rows.start })
    }

    fn finish(&mut self) -> Result<()> {
        (self.piece, self.stream, self.heads) = (None, None, Vec::new());
        Ok(())
    }
}
