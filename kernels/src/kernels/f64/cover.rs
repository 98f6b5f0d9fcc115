//! A contiguous range of blocks of a product plane, cut into rectangles and triangles that one call each computes.
//!
//! Promise: every block of the range lies in exactly one piece, no piece leaves the range, and no piece is larger than
//! the tile shape. Independent of: residues, doubles.
#![forbid(unsafe_code)]

use super::dgemm::DgemmShape;
use crate::plan::BlockGrid;
use std::ops::Range;

/// The blocks that one call computes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    /// All blocks of these rows and columns.
    Rectangle { rows: Range<usize>, cols: Range<usize> },
    /// The blocks on and below the diagonal of these columns, and of the same rows.
    Triangle { cols: Range<usize> },
}

impl Piece {
    /// Rows and columns of blocks of the smallest rectangle around the piece.
    pub fn extent(&self) -> (Range<usize>, Range<usize>) {
        match self {
            Piece::Rectangle { rows, cols } => (rows.clone(), cols.clone()),
            Piece::Triangle { cols } => (cols.clone(), cols.clone()),
        }
    }
}

/// Cuts are multiples of this many blocks, where there is a choice: 24 rows, a common height of register tiles.
const STEP: usize = 3;

/// Calls `visit` for each piece of the blocks `blocks` of `grid`.
pub fn for_each_piece(grid: &BlockGrid, blocks: &Range<usize>, tile: DgemmShape, visit: &mut dyn FnMut(Piece)) {
    if blocks.is_empty() {
        return;
    }
    let (first, last) = (grid.column_of(blocks.start), grid.column_of(blocks.end - 1));
    let (top, bottom) = (grid.rows_in(first, blocks).start, grid.rows_in(last, blocks).end);
    if first == last {
        return rectangle(top..bottom, first..first + 1, tile, visit);
    }
    // The first column starts at row `top`, the last one ends at row `bottom`. Between these two cuts every band of
    // rows has the same columns, apart from the diagonal.
    let mut cuts = [grid.first_row(first), top, bottom, grid.rows];
    cuts.sort_unstable();
    for pair in cuts.windows(2) {
        let rows = pair[0]..pair[1];
        let left = if rows.start >= top { first } else { first + 1 };
        let right = if rows.start < bottom { last + 1 } else { last };
        if grid.triangle {
            trapezoid(rows, left..right, tile, visit);
        } else {
            rectangle(rows, left..right, tile, visit);
        }
    }
}

/// The blocks `(i, j)` with `i >= j` of a rectangle.
fn trapezoid(rows: Range<usize>, cols: Range<usize>, tile: DgemmShape, visit: &mut dyn FnMut(Piece)) {
    if rows.is_empty() {
        return;
    }
    let split = (rows.start + 1).clamp(cols.start, cols.end.max(cols.start)); // columns up to rows.start are complete
    rectangle(rows.clone(), cols.start..split, tile, visit);
    let end = cols.end.min(rows.end);
    if split < end {
        rectangle(end..rows.end, split..end, tile, visit);
        triangle(split..end, tile, visit);
    }
}

fn triangle(cols: Range<usize>, tile: DgemmShape, visit: &mut dyn FnMut(Piece)) {
    if cols.len() <= tile.diagonal {
        return visit(Piece::Triangle { cols });
    }
    let middle = cols.start + (cols.len() / 2).next_multiple_of(STEP).min(cols.len() - 1);
    triangle(cols.start..middle, tile, visit);
    rectangle(middle..cols.end, cols.start..middle, tile, visit);
    triangle(middle..cols.end, tile, visit);
}

fn rectangle(rows: Range<usize>, cols: Range<usize>, tile: DgemmShape, visit: &mut dyn FnMut(Piece)) {
    for cols in pieces(cols, tile.cols) {
        for rows in pieces(rows.clone(), tile.rows) {
            visit(Piece::Rectangle { rows, cols: cols.clone() });
        }
    }
}

/// Nearly equal parts of at most `most` blocks.
fn pieces(range: Range<usize>, most: usize) -> impl Iterator<Item = Range<usize>> {
    let count = range.len().div_ceil(most).max(1);
    let size = range.len().div_ceil(count).next_multiple_of(STEP).clamp(1, most);
    range.clone().step_by(size).map(move |start| start..(start + size).min(range.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks every block of the pieces once; returns the marks in linear order.
    fn marks(grid: &BlockGrid, blocks: &Range<usize>, tile: DgemmShape) -> Vec<u8> {
        let mut marks = vec![0u8; grid.len()];
        for_each_piece(grid, blocks, tile, &mut |piece| match piece {
            Piece::Rectangle { rows, cols } => {
                assert!(rows.len() <= tile.rows && cols.len() <= tile.cols && !rows.is_empty() && !cols.is_empty());
                cols.for_each(|col| rows.clone().for_each(|row| marks[grid.index(row, col)] += 1));
            }
            Piece::Triangle { cols } => {
                assert!(cols.len() <= tile.diagonal && !cols.is_empty());
                cols.clone().for_each(|col| (col..cols.end).for_each(|row| marks[grid.index(row, col)] += 1));
            }
        });
        marks
    }

    #[test]
    fn every_range_is_covered_exactly_once() {
        let tiles = [DgemmShape { rows: 6, cols: 3, diagonal: 2 }, DgemmShape { rows: 48, cols: 24, diagonal: 9 }];
        for tile in tiles {
            for grid in [BlockGrid::triangle(70), BlockGrid::rectangle(50, 70), BlockGrid::rectangle(8, 100)] {
                for start in 0..=grid.len() {
                    for end in start..=grid.len() {
                        let want = |index: usize| u8::from((start..end).contains(&index));
                        let marks = marks(&grid, &(start..end), tile);
                        assert!(
                            marks.iter().enumerate().all(|(index, &mark)| mark == want(index)),
                            "{grid:?}, blocks {start}..{end}, {tile:?}: {marks:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn large_triangles_waste_little_above_the_diagonal() {
        let tile = DgemmShape { rows: 48, cols: 24, diagonal: 9 };
        for (columns, most) in [(1000, 1.07), (2000, 1.04), (300, 1.25)] {
            let grid = BlockGrid::triangle(columns);
            let mut computed = 0;
            for_each_piece(&grid, &(0..grid.len()), tile, &mut |piece| {
                let (rows, cols) = piece.extent();
                computed += rows.len() * cols.len();
            });
            let ratio = computed as f64 / grid.len() as f64;
            assert!(ratio < most, "{columns} columns: {ratio}");
        }
    }
}
