//! Sparse matrices in blocks, and their products with tall matrices.

use super::small::add_up;
use super::{Handle, NewTask, Session, TallMatrix, numbers, numbers_mut};
use crate::chunks::Chunks;
use crate::engine::Operands;
use crate::sparse::{self, SparseBlock};
use crate::sum;
use std::collections::BTreeMap;
use std::rc::Rc;
use sunzi::{Error, Result};

/// Selects the blocks that are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Symmetry {
    /// All of them.
    General,
    /// The blocks of the lower triangle.
    Lower,
}

/// A sparse matrix whose rows and columns have the same chunks.
#[derive(Clone)]
pub struct SparseMatrix {
    session: Session,
    rows: Chunks,
    cols: Chunks,
    symmetry: Symmetry,
    /// Blocks by column of blocks, then by row.
    blocks: BTreeMap<(usize, usize), Block>,
    bytes: u64,
}

#[derive(Clone)]
struct Block {
    handle: Rc<Handle>,
    bytes: usize,
}

impl Session {
    /// A matrix without entries, to be filled with [`SparseMatrix::insert`].
    ///
    /// # Errors
    /// [`Error::NotSquare`] for a symmetric matrix that is not square.
    pub fn sparse(&self, rows: usize, cols: usize, symmetry: Symmetry) -> Result<SparseMatrix> {
        if symmetry == Symmetry::Lower && rows != cols {
            return Err(Error::NotSquare { operation: "symmetric sparse matrix", rows, cols });
        }
        let (rows, cols) = (self.chunks(rows)?, self.chunks(cols)?);
        Ok(SparseMatrix { session: self.clone(), rows, cols, symmetry, blocks: BTreeMap::new(), bytes: 0 })
    }
}

impl SparseMatrix {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows.rows()
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols.rows()
    }

    /// Where it lives.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The division of the rows into chunks.
    pub fn row_chunks(&self) -> Chunks {
        self.rows
    }

    /// Bytes of all blocks.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Inserts a block at every place, in the order of columns; of a symmetric matrix on and below the diagonal.
    /// `block` receives the row and column chunks and their numbers.
    ///
    /// # Errors
    /// The errors of `block` and of [`SparseMatrix::insert`].
    pub fn fill(&mut self, block: impl Fn(Chunks, usize, usize) -> Result<Vec<u8>>) -> Result<()> {
        for col in 0..self.cols.count() {
            let first = if self.symmetry == Symmetry::Lower { col } else { 0 };
            for row in first..self.rows.count() {
                self.insert(row, col, block(self.rows, row, col)?)?;
            }
        }
        Ok(())
    }

    /// Inserts a block, given as bytes in the format of [`sparse::pack`], at its place; when the call returns, the
    /// block is stored, on the disk of its node if memory is short. The block itself is held in addition to the limit.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for damaged bytes, a place that is occupied, or a place above the diagonal of a
    /// symmetric matrix; [`Error::ShapeMismatch`]; the errors of an evaluation.
    pub fn insert(&mut self, row_chunk: usize, col_chunk: usize, bytes: Vec<u8>) -> Result<()> {
        let block = SparseBlock::parse(&bytes)?;
        block.check()?;
        let (shape, wanted) = (block.shape(), [self.rows.len(row_chunk), self.cols.len(col_chunk)]);
        let is_lower = self.symmetry == Symmetry::Lower && row_chunk == col_chunk;
        if [shape.rows, shape.cols] != wanted || shape.lower != is_lower {
            let [left_rows, left_cols] = wanted;
            let (right_rows, right_cols, operation) = (shape.rows, shape.cols, "place of a sparse block");
            return Err(Error::ShapeMismatch { operation, left_rows, left_cols, right_rows, right_cols });
        }
        let is_above = self.symmetry == Symmetry::Lower && row_chunk < col_chunk;
        if is_above || self.blocks.contains_key(&(col_chunk, row_chunk)) {
            let what = if is_above { "is above the diagonal" } else { "exists already" };
            return Err(Error::InvalidArgument(format!("the block at {row_chunk}, {col_chunk} {what}")));
        }
        if block.entries() == 0 {
            return Ok(());
        }
        let count = bytes.len();
        let handle = self.session.declare(count.div_ceil(8));
        let node = self.node(row_chunk, col_chunk);
        self.session.add(
            NewTask { creates: &[&handle], node, ..NewTask::default() },
            Box::new(move |mut operands| {
                bytemuck::cast_slice_mut::<u64, u8>(operands.writes[0])[..count].copy_from_slice(&bytes);
                Ok(())
            }),
        );
        self.session.evaluate(&handle)?;
        self.bytes += count as u64;
        self.blocks.insert((col_chunk, row_chunk), Block { handle, bytes: count });
        Ok(())
    }

    /// The node of a block: that of its part of the result where the matrix is not symmetric.
    fn node(&self, row: usize, col: usize) -> usize {
        match self.symmetry {
            Symmetry::General => self.session.owner(self.rows, row),
            Symmetry::Lower => self.session.block_owner(self.rows, row, col),
        }
    }

    /// The product `A X`: SpMM, symmetric SpMM, and MV for one column.
    ///
    /// The products of a run of chunks ([`SessionOptions::run_chunks`](super::SessionOptions)) are summed into one
    /// partial result, from the first to the last, and the partial results in the order of [`sum`](mod@crate::sum).
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::InvalidArgument`] for a matrix of another session.
    pub fn times(&self, x: &TallMatrix) -> Result<TallMatrix> {
        x.check_session(&self.session)?;
        if x.chunks != self.cols {
            let (left_rows, left_cols, right_rows, right_cols) = (self.rows(), self.cols(), x.rows(), x.cols);
            let operation = "product of a sparse matrix";
            return Err(Error::ShapeMismatch { operation, left_rows, left_cols, right_rows, right_cols });
        }
        let mut sums = Sums { matrix: self, x, open: BTreeMap::new() };
        for (&(col, row), block) in &self.blocks {
            sums.add_block(block, row, col);
        }
        let parts = (0..self.rows.count()).map(|chunk| sums.close(chunk)).collect();
        Ok(TallMatrix { session: self.session.clone(), chunks: self.rows, cols: x.cols, parts })
    }

    /// The diagonal of a square matrix.
    ///
    /// # Errors
    /// [`Error::NotSquare`].
    pub fn diagonal(&self) -> Result<TallMatrix> {
        if self.rows != self.cols {
            return Err(Error::NotSquare { operation: "diagonal", rows: self.rows(), cols: self.cols() });
        }
        let mut parts = Vec::with_capacity(self.rows.count());
        for chunk in 0..self.rows.count() {
            let part = self.session.declare(self.rows.len(chunk));
            let node = self.session.owner(self.rows, chunk);
            let block = self.blocks.get(&(chunk, chunk));
            let bytes = block.map_or(0, |block| block.bytes);
            let reads = block.iter().map(|block| &block.handle).collect::<Vec<_>>();
            let task = NewTask { reads: &reads, creates: &[&part], node, ..NewTask::default() };
            self.session.add(
                task,
                Box::new(move |mut operands| {
                    let Some(words) = operands.reads.first() else { return Ok(()) };
                    let found = sparse::diagonal(&SparseBlock::parse(&bytemuck::cast_slice(words)[..bytes])?)?;
                    numbers_mut(operands.writes[0]).copy_from_slice(&found);
                    Ok(())
                }),
            );
            parts.push(part);
        }
        Ok(TallMatrix { session: self.session.clone(), chunks: self.rows, cols: 1, parts })
    }
}

/// Partial results of a product, one for each chunk of the result and each run of chunks of the operand.
struct Sums<'a> {
    matrix: &'a SparseMatrix,
    x: &'a TallMatrix,
    open: BTreeMap<(usize, usize), Rc<Handle>>,
}

impl Sums<'_> {
    /// The task of one block, which may stand for its mirror image as well.
    fn add_block(&mut self, block: &Block, row: usize, col: usize) {
        let (vectors, bytes) = (self.x.cols, block.bytes);
        let is_mirrored = self.matrix.symmetry == Symmetry::Lower && row != col;
        let is_lower = self.matrix.symmetry == Symmetry::Lower && row == col;
        // The products of the block for its rows, then those of its mirror image for its columns.
        let run = self.matrix.session.inner.run_chunks;
        let mut places = vec![(row, col / run)];
        let (parts, mut reads) = (&self.x.parts, vec![&block.handle]);
        reads.push(&parts[col]);
        if is_mirrored {
            places.push((col, row / run));
            reads.push(&parts[row]);
        }
        let is_new = places.iter().map(|place| !self.open.contains_key(place)).collect::<Vec<_>>();
        let handles = places.iter().map(|&(chunk, run)| self.sum(chunk, run)).collect::<Vec<_>>();
        let of = |new: bool| handles.iter().zip(&is_new).filter(move |(_, is)| **is == new).map(|(handle, _)| handle);
        let (updates, creates) = (of(false).collect::<Vec<_>>(), of(true).collect::<Vec<_>>());
        // The first to come among the objects that are written: updates stand before objects that are created.
        let rows_second = is_mirrored && is_new[0] && !is_new[1];
        let kernel = move |mut operands: Operands<'_>| {
            let block = SparseBlock::parse(&bytemuck::cast_slice(operands.reads[0])[..bytes])?;
            let x = numbers(operands.reads[1]);
            match operands.writes.as_mut_slice() {
                [y] if is_lower => sparse::multiply_diagonal(&block, x, numbers_mut(y), vectors),
                [y] => sparse::multiply(&block, x, numbers_mut(y), vectors),
                [first, second, ..] => {
                    let (of_rows, of_cols) = if rows_second { (second, first) } else { (first, second) };
                    let y = [numbers_mut(of_cols), numbers_mut(of_rows)];
                    sparse::multiply_symmetric(&block, [x, numbers(operands.reads[2])], y, vectors)
                }
                [] => Ok(()),
            }
        };
        let node = self.matrix.node(row, col);
        let task = NewTask { reads: &reads, updates: &updates, creates: &creates, node };
        self.matrix.session.add(task, Box::new(kernel));
    }

    /// The sum of the products for a chunk of the result with a run of chunks of the operand.
    fn sum(&mut self, chunk: usize, run: usize) -> Rc<Handle> {
        let (session, words) = (&self.matrix.session, self.matrix.rows.len(chunk) * self.x.cols);
        Rc::clone(self.open.entry((chunk, run)).or_insert_with(|| session.declare(words)))
    }

    /// The whole of one chunk of the result.
    fn close(&mut self, chunk: usize) -> Rc<Handle> {
        let (session, rows) = (&self.matrix.session, self.matrix.rows);
        let (words, node) = (rows.len(chunk) * self.x.cols, session.owner(rows, chunk));
        let runs = self.open.range((chunk, 0)..(chunk + 1, 0)).map(|(_, handle)| Rc::clone(handle));
        let mut level = runs.collect::<Vec<_>>();
        if level.is_empty() {
            let zero = session.declare(words);
            session.add(NewTask { creates: &[&zero], node, ..NewTask::default() }, Box::new(|_| Ok(())));
            level.push(zero);
        }
        while level.len() > 1 {
            level = level.chunks(sum::ARITY).map(|parts| add_up(session, parts, words, node)).collect();
        }
        level.remove(0)
    }
}
