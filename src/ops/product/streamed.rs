//! Operands of a product that come from files: pieces of bands, read ahead in the order of the schedule.

use crate::error::Result;
use crate::io::{Block, BlockStream, BlockStreamOptions, BlockStreamStatistics, FileBlock, MatrixFile, StreamedBlock};
use crate::matrix::Op;
use crate::ops::product::convert::MatrixRows;
use crate::ops::product::schedule::{ProductSchedule, Side};
use crate::plan::{BLOCK, rank_chunk};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// An operand in a file: its columns are contracted with those of the other.
#[derive(Clone, Debug)]
pub(crate) struct FileOperand {
    pub file: Arc<MatrixFile>,
    /// Whether the operand is the transpose of the file's matrix.
    pub transposed: bool,
}

impl FileOperand {
    /// `op` of the matrix in a file.
    pub fn new(file: Arc<MatrixFile>, op: Op) -> FileOperand {
        FileOperand { file, transposed: op == Op::Transpose }
    }

    /// Rows contracted.
    pub fn rows(&self) -> usize {
        if self.transposed { self.file.cols() } else { self.file.rows() }
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        if self.transposed { self.file.rows() } else { self.file.cols() }
    }

    /// The part of the file that holds some rows of some panels.
    fn piece(&self, panels: &Range<usize>, rows: Range<usize>) -> FileBlock {
        let cols = panels.start * BLOCK..(panels.end * BLOCK).min(self.cols());
        let (rows, cols) = if self.transposed { (cols, rows) } else { (rows, cols) };
        FileBlock { file: self.file.clone(), block: Block { rows, cols } }
    }
}

/// Both operands, of which the right one may be the left one.
pub(crate) struct StreamedOperands {
    stream: BlockStream,
    /// Whether each is the transpose of its file.
    transposed: [bool; 2],
}

/// A piece of an operand. Its buffer is free again when it is dropped.
pub(crate) struct OperandPiece {
    block: StreamedBlock,
    transposed: bool,
}

impl OperandPiece {
    /// Its rows, all of them.
    ///
    /// # Errors
    /// The errors of [`StreamedBlock::view`].
    pub fn part(&self) -> Result<MatrixRows<'_>> {
        let view = self.block.view()?;
        let view = if self.transposed { view.transposed() } else { view };
        Ok(MatrixRows { view, rows: 0..view.rows() })
    }
}

impl StreamedOperands {
    /// Begins to read the pieces that `schedule` converts, with the rows in `chunks` chunks, and adds up the bytes
    /// read.
    ///
    /// # Errors
    /// The errors of [`BlockStream::new`].
    pub fn new(
        left: &FileOperand,
        right: &FileOperand,
        schedule: &ProductSchedule,
        chunks: usize,
        options: BlockStreamOptions,
        read_bytes: &Arc<AtomicU64>,
    ) -> Result<StreamedOperands> {
        let transposed = [left.transposed, right.transposed];
        let operands = [left.clone(), right.clone()];
        let order = schedule.loads().map(move |load| {
            let operand = &operands[load.side as usize];
            operand.piece(&load.panels, rank_chunk(operand.rows(), chunks, load.step.chunk))
        });
        Ok(StreamedOperands { stream: BlockStream::counting(options, order, read_bytes.clone())?, transposed })
    }

    /// Waits for the next piece of the schedule, which is one of the operand on this `side`.
    ///
    /// # Errors
    /// The errors of the read.
    pub fn next(&self, side: Side) -> Result<OperandPiece> {
        let block = self.stream.next_block().expect("a piece for each band that is converted")?;
        Ok(OperandPiece { block, transposed: self.transposed[side as usize] })
    }

    /// The statistics of the reads so far.
    pub fn statistics(&self) -> BlockStreamStatistics {
        self.stream.statistics()
    }
}
