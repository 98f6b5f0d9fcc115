//! Whether a file that stores all entries is that of a symmetric matrix.

use crate::error::{Error, Result};
use crate::io::{Block, MatrixFile};
use crate::store::zeroed;
use std::ops::Range;

impl MatrixFile {
    /// Compares both triangles of a file that stores all entries of a square matrix, block by block of so many rows and
    /// columns; memory for two blocks.
    ///
    /// # Errors
    /// [`Error::NotSymmetric`] with the first entry found, block by block, that is not that of its mirror image;
    /// [`Error::NotSquare`], [`Error::Io`], [`Error::OutOfMemory`].
    pub fn check_symmetric(&self, step: usize) -> Result<()> {
        let n = self.rows();
        if n != self.cols() {
            return Err(Error::NotSquare { operation: "a symmetric file", rows: n, cols: self.cols() });
        }
        if self.is_symmetric() {
            return Ok(());
        }
        let step = step.clamp(1, n.max(1));
        let words = step * step * (1 + self.limbs());
        let (mut lower, mut upper) = (zeroed(words)?, zeroed(words)?);
        let pieces = |from: usize| (from..n).step_by(step).map(move |start| start..(start + step).min(n));
        for cols in pieces(0) {
            for rows in pieces(cols.start) {
                self.compare_mirrored(&rows, &cols, (&mut lower, &mut upper))?;
            }
        }
        Ok(())
    }

    fn compare_mirrored(
        &self,
        rows: &Range<usize>,
        cols: &Range<usize>,
        (lower, upper): (&mut [u64], &mut [u64]),
    ) -> Result<()> {
        let block = |rows: &Range<usize>, cols: &Range<usize>| Block { rows: rows.clone(), cols: cols.clone() };
        let words = self.block_words(&block(rows, cols));
        self.read_block(&block(rows, cols), &mut lower[..words])?;
        self.read_block(&block(cols, rows), &mut upper[..words])?;
        let (count, limbs) = (rows.len() * cols.len(), self.limbs());
        for (row, col) in (0..cols.len()).flat_map(|col| (0..rows.len()).map(move |row| (row, col))) {
            let (one, other) = (row + col * rows.len(), col + row * cols.len());
            let at = |entry: usize| count + entry * limbs..count + (entry + 1) * limbs;
            if lower[one] != upper[other] || lower[at(one)] != upper[at(other)] {
                return Err(Error::NotSymmetric { row: rows.start + row, column: cols.start + col });
            }
        }
        Ok(())
    }
}
