//! The result of a product as a grid of 8 x 8 blocks, stored column of blocks after column of blocks.
//!
//! A block is 64 words, entry `(8 I + r, 8 J + c)` at word `8 c + r` of block `(I, J)`. In a triangle only blocks
//! with `I >= J` exist. Any range of linear block indices is one contiguous piece of memory, so a plane can be cut
//! into jobs anywhere.

use std::ops::Range;

/// Rows and columns of a block, and columns of an operand panel.
pub const BLOCK: usize = 8;

/// Words of a block.
pub const BLOCK_WORDS: usize = BLOCK * BLOCK;

/// Shape of a product plane in blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockGrid {
    /// Rows of blocks.
    pub rows: usize,
    /// Columns of blocks; equal to `rows` for a triangle.
    pub cols: usize,
    /// Whether only the blocks on and below the diagonal exist.
    pub triangle: bool,
}

impl BlockGrid {
    /// Lower triangle of a `columns x columns` result.
    pub fn triangle(columns: usize) -> BlockGrid {
        let blocks = columns.div_ceil(BLOCK);
        BlockGrid { rows: blocks, cols: blocks, triangle: true }
    }

    /// Full `rows x cols` result.
    pub fn rectangle(rows: usize, cols: usize) -> BlockGrid {
        BlockGrid { rows: rows.div_ceil(BLOCK), cols: cols.div_ceil(BLOCK), triangle: false }
    }

    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.column_start(self.cols)
    }

    /// Whether there is no block.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Words of one plane.
    pub fn words(&self) -> usize {
        self.len() * BLOCK_WORDS
    }

    /// First block row that exists in column `col` of blocks.
    pub fn first_row(&self, col: usize) -> usize {
        if self.triangle { col } else { 0 }
    }

    /// Linear index of the first block of column `col`; `col == cols` gives the number of blocks.
    pub fn column_start(&self, col: usize) -> usize {
        if self.triangle { col * self.rows - col * col.saturating_sub(1) / 2 } else { col * self.rows }
    }

    /// Linear index of block `(row, col)`, which must exist (asserted).
    pub fn index(&self, row: usize, col: usize) -> usize {
        assert!(row < self.rows && col < self.cols && row >= self.first_row(col), "no block ({row}, {col})");
        self.column_start(col) + row - self.first_row(col)
    }

    /// Column of blocks that holds linear index `index`.
    pub fn column_of(&self, index: usize) -> usize {
        assert!(index < self.len());
        let (mut low, mut high) = (0, self.cols);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if self.column_start(middle) <= index { low = middle } else { high = middle }
        }
        low
    }

    /// Block rows of column `col` whose linear indices are in `range`; may be empty.
    pub fn rows_in(&self, col: usize, range: &Range<usize>) -> Range<usize> {
        let (start, end) = (self.column_start(col), self.column_start(col + 1));
        let (low, high) = (range.start.clamp(start, end), range.end.clamp(start, end));
        let first = self.first_row(col);
        (low - start + first)..(high.max(low) - start + first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_count_the_blocks_in_order() {
        for (columns, other) in [(0, 5), (1, 1), (8, 9), (9, 64), (100, 41)] {
            for grid in [BlockGrid::triangle(columns), BlockGrid::rectangle(columns, other)] {
                let mut next = 0;
                for col in 0..grid.cols {
                    for row in grid.first_row(col)..grid.rows {
                        assert_eq!(grid.index(row, col), next);
                        assert_eq!(grid.column_of(next), col);
                        next += 1;
                    }
                }
                assert_eq!(grid.len(), next);
            }
        }
    }

    #[test]
    fn rows_of_a_range_cover_it_once() {
        let grid = BlockGrid::triangle(75);
        for (start, end) in [(0, 55), (3, 4), (10, 10), (9, 31)] {
            let covered: usize = (0..grid.cols).map(|col| grid.rows_in(col, &(start..end)).len()).sum();
            assert_eq!(covered, end - start);
        }
    }
}
