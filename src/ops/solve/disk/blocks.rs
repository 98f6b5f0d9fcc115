//! The blocks of a triangle in a file, in a given order, read ahead while the previous block is in use.

use crate::error::Result;
use crate::io::{Block, BlockStream, BlockStreamOptions, FileBlock, MatrixFile, StreamedBlock};
use crate::math::float::{FloatRef, Head, limbs_for};
use crate::matrix::{Matrix, MatrixView};
use crate::ops::solve::blocks::{BlockOrder, TriangleBlocks};
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
    /// Bytes read of this and the other triangles.
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
        let (value, scale) = (Head(head), self.scale.as_ref().map_or(0, |scale| scale[row]));
        if value.is_zero() { head } else { Head::new(value.is_negative(), value.exponent() - scale).0 }
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

    /// The triangle.
    pub fn triangle(&self) -> &FileTriangle {
        &self.triangle
    }

    /// The pivot of row `row`.
    pub fn pivot(&self, row: usize) -> FloatRef<'_> {
        FloatRef { head: Head(self.pivot_heads[row]), limbs: self.triangle.pivots.get(row, 0).limbs }
    }
}

impl TriangleBlocks for FileBlocks {
    fn begin(&mut self, order: BlockOrder, most_entries: usize) -> Result<()> {
        let triangle = self.triangle.clone();
        let buffer_words = most_entries * (1 + triangle.file.limbs());
        let options = BlockStreamOptions { buffers: BLOCKS, buffer_words, forget: triangle.forget };
        self.finish(); // its buffers count on the memory of the next ones
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
