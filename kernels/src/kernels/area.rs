//! Parts of a product plane: the sub-cubic schemes of all kernels cut it into these.
//!
//! Depends on: `plan::BlockGrid`. Independent of: residues, instructions.

use crate::plan::BlockGrid;
use std::ops::Range;

/// A rectangle of blocks of a plane, or a triangle on its diagonal.
#[derive(Clone)]
pub struct Area {
    /// Blocks of the whole plane.
    pub grid: BlockGrid,
    /// Block rows.
    pub rows: Range<usize>,
    /// Block columns.
    pub cols: Range<usize>,
}

impl Area {
    /// The whole plane.
    pub fn whole(grid: BlockGrid) -> Area {
        Area { grid, rows: 0..grid.rows, cols: 0..grid.cols }
    }

    /// The part in the given block rows and columns, counted from where the area begins.
    pub fn part(&self, rows: Range<usize>, cols: Range<usize>) -> Area {
        let (row, col) = (self.rows.start, self.cols.start);
        Area { rows: row + rows.start..row + rows.end, cols: col + cols.start..col + cols.end, ..self.clone() }
    }

    /// Block rows and block columns.
    pub fn panels(&self) -> (usize, usize) {
        (self.rows.len(), self.cols.len())
    }

    /// The area as a plane of its own.
    pub fn shape(&self) -> BlockGrid {
        BlockGrid { rows: self.rows.len(), cols: self.cols.len(), triangle: self.is_triangle() }
    }

    /// Whether only the blocks on and below the diagonal exist.
    pub fn is_triangle(&self) -> bool {
        self.grid.triangle && self.rows == self.cols
    }

    /// Linear index in the plane of a block, counted from where the area begins.
    pub fn index(&self, row: usize, col: usize) -> usize {
        self.grid.index(self.rows.start + row, self.cols.start + col)
    }

    /// The blocks of the area in the given block rows and columns; the operands begin where the area does.
    pub fn target(&self, rows: Range<usize>, cols: Range<usize>) -> Target {
        let part = self.part(rows, cols);
        let origin = (self.rows.start, self.cols.start);
        Target { row_window: part.rows, col_window: part.cols, origin, ..Target::whole(self.grid) }
    }
}

/// The blocks of C to compute: those of `blocks` whose row and column lie in the windows.
#[derive(Clone)]
pub struct Target {
    /// Blocks of the whole plane.
    pub grid: BlockGrid,
    /// Linear indices of the blocks that the slice C holds.
    pub blocks: Range<usize>,
    /// Block rows.
    pub row_window: Range<usize>,
    /// Block columns.
    pub col_window: Range<usize>,
    /// Block row and block column to which panel 0 of X and of Y belong.
    pub origin: (usize, usize),
}

impl Target {
    /// All blocks of `blocks`.
    pub fn new(grid: BlockGrid, blocks: Range<usize>) -> Target {
        Target { grid, blocks, row_window: 0..grid.rows, col_window: 0..grid.cols, origin: (0, 0) }
    }

    /// The whole plane.
    pub fn whole(grid: BlockGrid) -> Target {
        Target::new(grid, 0..grid.len())
    }

    /// The block columns that may have blocks.
    pub fn columns(&self) -> Range<usize> {
        if self.blocks.is_empty() {
            return self.col_window.start..self.col_window.start;
        }
        let columns = self.grid.column_of(self.blocks.start)..self.grid.column_of(self.blocks.end - 1) + 1;
        columns.start.max(self.col_window.start)..columns.end.min(self.col_window.end)
    }

    /// Block rows of column `col` within `rows`, and the number of the first of them in C.
    pub fn run(&self, col: usize, rows: &Range<usize>) -> (Range<usize>, usize) {
        let present = self.grid.rows_in(col, &self.blocks);
        let start = present.start.max(rows.start).max(self.row_window.start);
        let end = present.end.min(rows.end).min(self.row_window.end);
        if start >= end {
            return (0..0, 0);
        }
        let linear = self.grid.column_start(col) + start - self.grid.first_row(col);
        (start..end, linear - self.blocks.start)
    }
}
