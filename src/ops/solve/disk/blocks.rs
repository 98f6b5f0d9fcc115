//! Triangles in files: their blocks in a given order, read ahead while the previous block is in use; their rows for a
//! solve in fixed point; the exponents of norms of rows and columns, by passes over their heads.

use crate::error::Result;
use crate::io::{Block, BlockStream, BlockStreamOptions, FileBlock, MatrixFile, StreamedBlock};
use crate::math::float::{FloatRef, Head, limbs_for};
use crate::math::scale::{norm_exponent, square_bound};
use crate::matrix::{Matrix, MatrixView};
use crate::ops::solve::fixed::{RowPiece, TriangleRows};
use crate::ops::solve::triangle::{BlockOrder, TriangleBlocks, backwards, scaled_head};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Blocks in memory: one in use, one being read.
const BLOCKS: usize = 2;

/// A triangle of a file, and its use as `op(T)`.
#[derive(Clone)]
pub(super) struct FileTriangle {
    pub file: Arc<MatrixFile>,
    /// Whether `op` transposes.
    pub transposed: bool,
    /// Whether `op(T)` is an upper triangle.
    pub reversed: bool,
    /// Row `i` of the file is scaled by `2^-scale[i]`.
    pub scale: Option<Arc<[i64]>>,
    /// The diagonal as a column, not scaled.
    pub pivots: Arc<Matrix>,
    /// Whether the system is requested to drop the pages read from its cache.
    pub forget: bool,
    /// A counter of the bytes read, shared with the other triangles.
    pub read_bytes: Arc<AtomicU64>,
}

impl FileTriangle {
    /// Rows.
    pub fn order(&self) -> usize {
        self.file.rows()
    }

    /// The part of the file that a block of `op(T)` lies in.
    fn place(&self, Block { rows, cols }: Block) -> Block {
        if self.transposed { Block { rows: cols, cols: rows } } else { Block { rows, cols } }
    }

    /// The block of `op(T)` with some rows of the lower triangle.
    pub fn block_of_rows(&self, rows: &Range<usize>) -> Block {
        let order = self.order();
        match self.reversed {
            false => Block { rows: rows.clone(), cols: 0..rows.end },
            true => Block { rows: order - rows.end..order - rows.start, cols: order - rows.end..order },
        }
    }

    /// The head of an entry of row `row` of the file, scaled.
    fn scaled(&self, row: usize, head: u64) -> u64 {
        scaled_head(Head(head), self.scale.as_ref().map_or(0, |scale| -scale[row])).0
    }
}

/// Bytes that each row of a block of whole rows takes at most: blocks, and heads where they are scaled.
pub(super) fn piece_row_bytes(order: usize, bits: u32, is_scaled: bool) -> u64 {
    let heads = if is_scaled { 8 * order as u64 } else { 0 };
    BLOCKS as u64 * Matrix::bytes_for(1, order, bits) + heads
}

/// Bytes of the read-ahead in addition to the blocks.
pub(super) fn stream_bytes(order: usize, bits: u32) -> u64 {
    let options = BlockStreamOptions { buffers: BLOCKS, buffer_words: 0, forget: true };
    BlockStream::memory_bytes(&options, order, limbs_for(bits))
}

/// The blocks of a triangle in a file.
pub(super) struct FileBlocks {
    triangle: FileTriangle,
    /// Of the diagonal, scaled as the rows are.
    pivot_heads: Vec<u64>,
    stream: Option<BlockStream>,
    block: Option<StreamedBlock>,
    /// Scaled heads of the block.
    heads: Vec<u64>,
}

impl FileBlocks {
    /// The blocks of a triangle.
    pub fn new(triangle: FileTriangle) -> FileBlocks {
        let heads = triangle.pivots.parts().0.iter().enumerate();
        let pivot_heads = heads.map(|(row, &head)| triangle.scaled(row, head)).collect();
        FileBlocks { triangle, pivot_heads, stream: None, block: None, heads: Vec::new() }
    }
}

impl TriangleBlocks for FileBlocks {
    fn begin(&mut self, order: BlockOrder, most_entries: usize) -> Result<()> {
        let triangle = self.triangle.clone();
        let buffer_words = most_entries * (1 + triangle.file.limbs());
        let options = BlockStreamOptions { buffers: BLOCKS, buffer_words, forget: triangle.forget };
        TriangleBlocks::finish(self); // its buffers count on the memory of the next ones
        let places = order.map(move |block| FileBlock { file: triangle.file.clone(), block: triangle.place(block) });
        self.stream = Some(BlockStream::counting(options, places, self.triangle.read_bytes.clone())?);
        Ok(())
    }

    fn block(&mut self, block: &Block) -> Result<MatrixView<'_>> {
        let place = self.triangle.place(block.clone());
        loop {
            self.block = None;
            let next = self.stream.as_ref().and_then(BlockStream::next_block).expect("blocks are requested in order");
            let next = next?;
            let is_it = next.place().block == place;
            self.block = Some(next);
            if is_it {
                break;
            }
        }
        let view = self.block.as_ref().expect("it was read").view()?;
        let view = match self.triangle.scale {
            None => view,
            Some(_) => {
                let heads = view.all_heads();
                let height = place.rows.len();
                self.heads.clear();
                let each = heads.iter().enumerate();
                self.heads.extend(each.map(|(at, &head)| self.triangle.scaled(place.rows.start + at % height, head)));
                view.with_heads(&self.heads)
            }
        };
        Ok(if self.triangle.transposed { view.transposed() } else { view })
    }

    fn finish(&mut self) {
        (self.block, self.stream, self.heads) = (None, None, Vec::new());
    }
}

/// The rows of a triangle. Those of an upper one come from the last to the first, reversed, so that it is lower.
impl TriangleRows for FileBlocks {
    fn pivot(&self, row: usize) -> FloatRef<'_> {
        let row = if self.triangle.reversed { self.triangle.order() - 1 - row } else { row };
        FloatRef { head: Head(self.pivot_heads[row]), limbs: self.triangle.pivots.get(row, 0).limbs }
    }

    fn begin(&mut self, piece_rows: usize) -> Result<()> {
        let triangle = self.triangle.clone();
        let order = triangle.order();
        let pieces = (0..order).step_by(piece_rows.max(1));
        let blocks = pieces.map(move |start| triangle.block_of_rows(&(start..(start + piece_rows).min(order))));
        TriangleBlocks::begin(self, Box::new(blocks), piece_rows.min(order) * order)
    }

    fn rows(&mut self, rows: Range<usize>) -> Result<RowPiece<'_>> {
        let (block, reversed) = (self.triangle.block_of_rows(&rows), self.triangle.reversed);
        let view = self.block(&block)?;
        let view = if reversed { backwards(view) } else { view };
        Ok(RowPiece { view, first: rows.start, first_col: 0 })
    }

    fn finish(&mut self) -> Result<()> {
        TriangleBlocks::finish(self);
        Ok(())
    }
}

/// Norms of lines: first the largest entry of each is found, then the squares are summed.
pub(super) struct LineNorms {
    largest: Vec<Option<i64>>,
    sums: Vec<u128>,
}

impl LineNorms {
    /// For `lines` lines, before any entry is read.
    pub fn new(lines: usize) -> LineNorms {
        LineNorms { largest: vec![None; lines], sums: vec![0; lines] }
    }

    /// An entry of a line in the first pass.
    pub fn see(&mut self, line: usize, head: Head) {
        if !head.is_zero() {
            let largest = &mut self.largest[line];
            *largest = Some(largest.map_or(head.exponent(), |largest| largest.max(head.exponent())));
        }
    }

    /// The same entry in the second pass.
    pub fn add(&mut self, line: usize, head: Head) {
        if let Some(largest) = self.largest[line].filter(|_| !head.is_zero()) {
            self.sums[line] += u128::from(square_bound(head, largest));
        }
    }

    /// The exponents, as [`crate::math::scale::column_exponent`] has them.
    pub fn exponents(&self) -> Vec<i64> {
        let each = self.largest.iter().zip(&self.sums);
        each.map(|(largest, &sum)| largest.map_or(0, |largest| norm_exponent(sum, largest))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::scale::column_exponent;

    #[test]
    fn exponents_are_those_of_whole_lines() {
        let lines: [&[i64]; 4] = [&[], &[3], &[1, -4, 700, 698, 0], &[-20; 300]];
        let heads =
            |line: &[i64]| line.iter().map(|&exponent| Head::new(exponent % 2 == 0, exponent)).collect::<Vec<_>>();
        let mut norms = LineNorms::new(lines.len());
        for pass in 0..2 {
            for (at, line) in lines.iter().enumerate() {
                for head in heads(line).into_iter().chain([Head::ZERO]) {
                    if pass == 0 { norms.see(at, head) } else { norms.add(at, head) }
                }
            }
        }
        assert_eq!(norms.exponents(), lines.map(|line| column_exponent(heads(line).into_iter())));
    }
}
