//! Where the entries of a matrix lie, and which of them count.

use crate::array::entry::Flaw;
use crate::failure::Failure;
use std::ops::Range;
use sunzi::advanced::calls::LocalTriangle;

/// Entries in the caller's memory: `(i, j)` has index `i * row_stride + j * col_stride`.
pub struct Grid<T> {
    /// Entry `(0, 0)`.
    pub first: *mut T,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Distance between vertical neighbours.
    pub row_stride: isize,
    /// Distance between horizontal neighbours.
    pub col_stride: isize,
    /// Whether it is the transpose of the matrix that the caller passed, for the places in errors.
    pub flipped: bool,
}

impl<T> Clone for Grid<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Grid<T> {}

// SAFETY: a grid is numbers and a pointer; code that follows the pointer proves in an `unsafe` block of its own that no
// other thread is at the same entry.
unsafe impl<T> Send for Grid<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Grid<T> {}

impl<T> Grid<T> {
    /// Address of an entry, which is within the grid.
    #[inline]
    pub fn place(&self, row: usize, col: usize) -> *mut T {
        debug_assert!(row < self.rows && col < self.cols);
        self.first.wrapping_offset(row as isize * self.row_stride + col as isize * self.col_stride)
    }

    /// The same entries as the transpose.
    pub fn transposed(self) -> Self {
        Grid {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            first: self.first,
            flipped: !self.flipped,
        }
    }

    /// The failure of the argument `name` for a flaw of an entry, at its place in the caller's matrix.
    pub fn flaw(&self, name: &'static str, row: usize, col: usize, flaw: Flaw) -> Failure {
        let (row, col) = if self.flipped { (col, row) } else { (row, col) };
        flaw.at(name, row, col)
    }

    /// The diagonal as one column.
    pub fn diagonal(self) -> Self {
        let rows = self.rows.min(self.cols);
        Grid { rows, cols: 1, row_stride: self.row_stride + self.col_stride, col_stride: 1, ..self }
    }

    /// One column at another distance between its entries; where it is negative, the first entry is the last in memory.
    pub fn with_step(self, step: isize) -> Self {
        let back = if step < 0 { self.rows.saturating_sub(1) as isize * -step } else { 0 };
        Grid { first: self.first.wrapping_offset(back), row_stride: step, col_stride: 0, ..self }
    }

    /// Whether neighbours in memory are horizontal neighbours.
    pub fn is_row_major(&self) -> bool {
        self.col_stride == 1 && self.row_stride != 1
    }
}

/// The part of a matrix that is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// All.
    All,
    /// `row >= column`.
    Lower,
    /// `row <= column`.
    Upper,
    /// `row > column`.
    StrictLower,
    /// `row < column`.
    StrictUpper,
    /// A triangle of a matrix over ranks, of which this is one rank's part.
    Dealt(LocalTriangle),
}

impl From<Option<LocalTriangle>> for Part {
    /// That triangle, or all.
    fn from(triangle: Option<LocalTriangle>) -> Part {
        triangle.map_or(Part::All, Part::Dealt)
    }
}

impl Part {
    /// The same part of the transpose.
    pub fn transposed(self) -> Part {
        match self {
            Part::All => Part::All,
            Part::Lower => Part::Upper,
            Part::Upper => Part::Lower,
            Part::StrictLower => Part::StrictUpper,
            Part::StrictUpper => Part::StrictLower,
            Part::Dealt(triangle) => Part::Dealt(triangle.transposed()),
        }
    }

    /// Whether no entry of a grid counts.
    pub fn is_empty<T>(self, grid: &Grid<T>) -> bool {
        Part::columns(grid.rows, grid.cols).all(|col| self.rows(col, grid.rows).is_empty())
    }

    /// The columns that have entries that may count.
    pub fn columns(rows: usize, cols: usize) -> Range<usize> {
        if rows == 0 { 0..0 } else { 0..cols }
    }

    /// The rows of column `col` that lie in the part, of a matrix of `rows` rows.
    pub fn rows(self, col: usize, rows: usize) -> Range<usize> {
        match self {
            Part::All => 0..rows,
            Part::Lower => col.min(rows)..rows,
            Part::Upper => 0..(col + 1).min(rows),
            Part::StrictLower => (col + 1).min(rows)..rows,
            Part::StrictUpper => 0..col.min(rows),
            Part::Dealt(triangle) => triangle.rows(col, rows),
        }
    }
}
