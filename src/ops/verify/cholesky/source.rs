//! The sources of the verifier's numbers: matrices in memory, or files of which blocks are read.
//!
//! Both are read as lower triangles. Independent of: the use of the numbers.

use crate::context::Context;
use crate::error::Result;
use crate::io::{Block, HeadVisitor, MatrixFile};
use crate::math::float::{FloatRef, Head};
use crate::matrix::{Matrix, MatrixView};
use crate::ops::disk::progress_of;
use crate::ops::verify::exact::Dyadic;
use std::ops::Range;

/// A matrix whose lower triangle is looked at.
#[derive(Clone, Copy)]
pub(super) enum LowerTriangle<'a> {
    /// A matrix in memory.
    Memory(MatrixView<'a>),
    /// A file; where it is transposed, its upper triangle is read.
    File { file: &'a MatrixFile, transposed: bool },
}

impl<'a> LowerTriangle<'a> {
    /// Rows and columns.
    pub fn shape(self) -> (usize, usize) {
        match self {
            LowerTriangle::Memory(view) => (view.rows(), view.cols()),
            LowerTriangle::File { file, transposed: false } => (file.rows(), file.cols()),
            LowerTriangle::File { file, transposed: true } => (file.cols(), file.rows()),
        }
    }

    /// Bits of the entries.
    pub fn precision_bits(self) -> u32 {
        match self {
            LowerTriangle::Memory(view) => view.precision_bits(),
            LowerTriangle::File { file, .. } => file.precision_bits(),
        }
    }

    /// Heads of the diagonal.
    ///
    /// # Errors
    /// The errors of reading.
    pub fn diagonal_heads(self) -> Result<Vec<Head>> {
        match self {
            LowerTriangle::Memory(view) => Ok((0..view.rows()).map(|i| view.get(i, i).head).collect()),
            LowerTriangle::File { file, .. } => file.diagonal_heads(),
        }
    }

    /// A diagonal entry with the head `head`, as an integer times a power of two.
    ///
    /// # Errors
    /// The errors of reading.
    pub fn diagonal_integer(self, i: usize, head: Head) -> Result<Dyadic> {
        match self {
            LowerTriangle::Memory(view) => Ok(Dyadic::of(view.get(i, i))),
            LowerTriangle::File { file, .. } => {
                let limbs = file.entry_limbs(i, i)?;
                Ok(Dyadic::of(FloatRef { head, limbs: &limbs }))
            }
        }
    }

    /// A block; of a file that stores one triangle, the other entries are 0.
    ///
    /// # Errors
    /// The errors of reading; [`crate::Error::OutOfMemory`].
    pub fn block(self, rows: &Range<usize>, cols: &Range<usize>) -> Result<Matrix> {
        match self {
            LowerTriangle::Memory(view) => view.block(rows.clone(), cols.clone())?.to_matrix(),
            LowerTriangle::File { file, transposed: false } => read(file, rows, cols),
            LowerTriangle::File { file, transposed: true } => read(file, cols, rows)?.transposed().to_matrix(),
        }
    }

    /// Announces that a block will be needed: a file can be read ahead.
    pub fn announce(self, rows: &Range<usize>, cols: &Range<usize>) {
        if let LowerTriangle::File { file, transposed } = self {
            let (rows, cols) = if transposed { (cols, rows) } else { (rows, cols) };
            file.announce_block(&Block { rows: rows.clone(), cols: cols.clone() });
        }
    }

    /// Bytes that a block takes while it is made.
    pub fn block_bytes(self, rows: usize, cols: usize) -> u64 {
        let copies = if matches!(self, LowerTriangle::File { transposed: true, .. }) { 2 } else { 1 };
        copies * Matrix::bytes_for(rows, cols, self.precision_bits())
    }
}

fn read(file: &MatrixFile, rows: &Range<usize>, cols: &Range<usize>) -> Result<Matrix> {
    let mut matrix = Matrix::zeros(rows.len(), cols.len(), file.precision_bits())?;
    let block = Block { rows: rows.clone(), cols: cols.clone() };
    // The system may cache what it has room for: all is read again.
    file.read_block(&block, matrix.words_mut())?;
    Ok(matrix)
}

/// Reads a whole file, checks it, and passes each number with its place in the triangle's matrix to `visit`; a number
/// that is stored once but stands for two entries is passed twice.
///
/// # Errors
/// The errors of [`MatrixFile::check`].
pub(super) fn visit_file(
    ctx: &Context,
    file: &MatrixFile,
    transposed: bool,
    visit: impl FnMut(usize, usize, FloatRef<'_>),
) -> Result<()> {
    let mirrored = file.is_symmetric();
    file.check_heads(progress_of(ctx), &mut NumberVisitor { transposed, mirrored, visit }).map(|_| ())
}

/// Shows numbers to `visit`.
struct NumberVisitor<F> {
    transposed: bool,
    mirrored: bool,
    visit: F,
}

impl<F: FnMut(usize, usize, FloatRef<'_>)> HeadVisitor for NumberVisitor<F> {
    fn first(&mut self, _row: usize, _col: usize, _head: Head) -> Result<()> {
        Ok(())
    }

    fn second(&mut self, row: usize, col: usize, number: FloatRef<'_>) -> Result<()> {
        let (i, j) = if self.transposed { (col, row) } else { (row, col) };
        (self.visit)(i, j, number);
        if self.mirrored && i != j {
            (self.visit)(j, i, number);
        }
        Ok(())
    }
}
