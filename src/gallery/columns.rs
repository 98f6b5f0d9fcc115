//! Blocks of matrices that are made at a time, and columns made by all threads.

use super::{Kind, Size};
use crate::error::Result;
use crate::matrix::Matrix;
use rayon::prelude::*;
use std::ops::Range;

/// Rows of a `bootstrap1d` matrix in one block at least: each is made whole, on one thread.
const LEAST_ROWS: usize = 16;

/// Some rows and columns of a matrix of some size, with neither of them empty.
#[derive(Clone, Debug)]
pub struct MatrixPart {
    pub size: Size,
    pub rows: Range<usize>,
    pub cols: Range<usize>,
}

impl MatrixPart {
    /// A matrix for it, of zeros.
    pub fn zeros(&self) -> Result<Matrix> {
        Matrix::zeros(self.rows.len(), self.cols.len(), self.size.precision_bits)
    }

    /// The block whose columns are made by `fill`, each in a matrix of its own; the columns are given by number.
    pub fn by_columns(&self, fill: impl Fn(usize, &mut Matrix) -> Result<()> + Sync) -> Result<Matrix> {
        let mut block = self.zeros()?;
        let (rows, limbs) = (self.rows.len(), block.limbs_per_element());
        let (heads, all_limbs) = block.parts_mut();
        let columns = heads.par_chunks_mut(rows).zip(all_limbs.par_chunks_mut(rows * limbs));
        columns.zip(self.cols.clone()).try_for_each(|((heads, all_limbs), col)| {
            let mut column = Matrix::zeros(rows, 1, self.size.precision_bits)?;
            fill(col, &mut column)?;
            heads.copy_from_slice(column.parts().0);
            all_limbs.copy_from_slice(column.parts().1);
            Ok(())
        })?;
        Ok(block)
    }
}

/// Blocks of about `bytes` bytes, and of one column or a few rows at least, that make up a matrix of this kind, or its
/// lower triangle with little above it; each can be made without the others.
pub fn blocks(kind: Kind, size: Size, lower: bool, bytes: u64) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
    let by_rows = kind == Kind::Bootstrap1d;
    let mut next = 0;
    std::iter::from_fn(move || {
        let Size { rows, cols, precision_bits } = size;
        let end = if by_rows { rows } else { cols };
        if next >= end || rows == 0 || cols == 0 {
            return None;
        }
        let above = if lower { next } else { 0 };
        let line = if by_rows { cols } else { rows - above.min(rows - 1) };
        let fit = usize::try_from(bytes / Matrix::bytes_for(line, 1, precision_bits).max(1)).unwrap_or(usize::MAX);
        let count = fit.max(if by_rows { LEAST_ROWS } else { 1 }).min(end - next);
        let lines = next..next + count;
        next += count;
        Some(if by_rows { (lines, 0..cols) } else { (above..rows, lines) })
    })
}
