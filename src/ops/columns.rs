//! Work on the columns of a matrix, independent of each other, shared by the context's threads.

use crate::context::Context;
use crate::drive;
use crate::error::Result;
use crate::math::float::{FloatRef, Head};
use crate::matrix::{Matrix, MatrixViewMut};

/// One column of a matrix, for writing.
pub(crate) struct Column<'a> {
    /// Its number.
    pub index: usize,
    /// Heads of its elements.
    pub heads: &'a mut [u64],
    /// Limbs of its elements.
    pub limbs: &'a mut [u64],
    width: usize,
}

impl Column<'_> {
    /// The element at `row`.
    #[inline]
    pub fn get(&self, row: usize) -> FloatRef<'_> {
        FloatRef { head: Head(self.heads[row]), limbs: &self.limbs[row * self.width..][..self.width] }
    }

    /// Writes the element at `row`: `write` fills its limbs and returns its head.
    #[inline]
    pub fn set(&mut self, row: usize, write: impl FnOnce(&mut [u64]) -> Head) {
        self.heads[row] = write(&mut self.limbs[row * self.width..][..self.width]).0;
    }

    /// Writes the element at `row` as [`Column::set`] does, unless it is an error.
    ///
    /// # Errors
    /// The error of `write`.
    #[inline]
    pub fn try_set(&mut self, row: usize, write: impl FnOnce(&mut [u64]) -> Result<Head>) -> Result<()> {
        self.heads[row] = write(&mut self.limbs[row * self.width..][..self.width])?.0;
        Ok(())
    }

    /// Writes 1 at `row`.
    pub fn set_one(&mut self, row: usize) {
        self.set(row, |limbs| {
            limbs.fill(0);
            limbs[limbs.len() - 1] = 1 << 63;
            Head::new(false, 1)
        });
    }

    /// Multiplies the element at each row `first + i` by `2^-exponents[i]`.
    pub fn shift(&mut self, first: usize, exponents: &[i64]) {
        for (word, exponent) in self.heads[first..].iter_mut().zip(exponents) {
            let head = Head(*word);
            if !head.is_zero() {
                *word = Head::new(head.is_negative(), head.exponent() - exponent).0;
            }
        }
    }

    /// Copies `source` into the rows from `first` on.
    pub fn copy_from(&mut self, first: usize, source: ColumnRef<'_>) {
        let count = source.heads.len();
        self.heads[first..first + count].copy_from_slice(source.heads);
        self.limbs[first * self.width..(first + count) * self.width].copy_from_slice(source.limbs);
    }
}

/// A piece of a column, for reading.
#[derive(Clone, Copy)]
pub(crate) struct ColumnRef<'a> {
    /// Heads of its elements.
    pub heads: &'a [u64],
    /// Limbs of its elements.
    pub limbs: &'a [u64],
}

impl<'a> ColumnRef<'a> {
    /// Rows `rows` of column `col`.
    pub fn of(matrix: &'a Matrix, rows: std::ops::Range<usize>, col: usize) -> ColumnRef<'a> {
        let ((heads, limbs), width) = (matrix.parts(), matrix.limbs_per_element());
        let at = rows.start + col * matrix.rows();
        ColumnRef { heads: &heads[at..at + rows.len()], limbs: &limbs[at * width..(at + rows.len()) * width] }
    }
}

/// Elements that are worth a thread of their own, where one takes some hundred nanoseconds.
const ELEMENTS_PER_WORKER: usize = 1024;

/// Calls `work` once for each column; `local` makes the private memory of each worker.
///
/// # Errors
/// The first error of `work`, or [`crate::Error::Cancelled`].
pub(crate) fn each_column<'a, L: Send>(
    ctx: &Context,
    matrix: impl Into<MatrixViewMut<'a>>,
    local: impl Fn() -> L,
    work: impl Fn(&mut L, Column<'_>) -> Result<()> + Sync,
) -> Result<()> {
    let matrix = matrix.into();
    let (rows, cols, width) = (matrix.rows(), matrix.cols(), matrix.limbs_per_element());
    if rows == 0 || cols == 0 {
        return Ok(());
    }
    let workers = ctx.threads().min(cols).min((rows * cols).div_ceil(ELEMENTS_PER_WORKER));
    let mut columns = matrix.into_columns().enumerate();
    let next = |_: &mut L| columns.next().map(|(index, (heads, limbs))| Column { index, heads, limbs, width });
    if workers == 1 {
        return drive::parallel_for(&mut [local()], next, &work);
    }
    let mut locals = (0..workers).map(|_| local()).collect::<Vec<_>>();
    ctx.install(|| drive::parallel_for(&mut locals, next, &work))
}
