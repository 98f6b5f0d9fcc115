//! Where the entries of a product go: a matrix, the tiles of a rank, tiles of a file.
//!
//! The part of a result that one pair of bands fills is cut into segments that workers write on their own: up to 8
//! neighbouring columns of the result and some blocks of rows of them.

use crate::error::Result;
use crate::matrix::{EntryIndex, MatrixViewMut, Uplo};
use crate::ops::distribution::matrix::DistMatrix;
use crate::plan::{BLOCK, BlockGrid};
use crate::tile::TileId;
use std::ops::Range;
use std::slice::ChunksMut;

/// Blocks of rows of a segment, so that the segments of one column of blocks can be shared out.
const SEGMENT_BLOCKS: usize = 8;

/// The blocks of the result that a product grid fills.
#[derive(Clone, Copy)]
pub(crate) struct Region {
    /// Shape of the product planes.
    pub grid: BlockGrid,
    /// Panel of the left operand at which the grid's rows begin.
    pub first_left: usize,
    /// Panel of the right operand at which the grid's columns begin.
    pub first_right: usize,
    /// `Upper` stores the transpose of the planes' content.
    pub uplo: Uplo,
    /// The triangle that is wanted of the symmetric product of two operands, whose planes have both.
    pub half: Option<Uplo>,
}

impl Region {
    /// First column of blocks of the result, and their number.
    pub fn columns(&self) -> (usize, usize) {
        match self.uplo {
            Uplo::Lower => (self.first_right, self.grid.cols),
            Uplo::Upper => (self.first_left, self.grid.rows),
        }
    }

    /// Blocks of rows of the result that exist in column `col` of blocks, counted from the region's first column.
    pub fn rows(&self, col: usize) -> Range<usize> {
        let (first, last) = (self.first_left, self.first_left + self.grid.rows);
        match (self.half, self.uplo) {
            (Some(Uplo::Lower), _) => (self.first_right + col).clamp(first, last)..last,
            (Some(Uplo::Upper), _) => first..(self.first_right + col + 1).clamp(first, last),
            (None, Uplo::Lower) => first + self.grid.first_row(col)..last,
            (None, Uplo::Upper) => {
                self.first_right..self.first_right + if self.grid.triangle { col + 1 } else { self.grid.cols }
            }
        }
    }

    /// Linear index in the grid of block `(row, col)` of the result.
    pub fn block_index(&self, row: usize, col: usize) -> usize {
        match self.uplo {
            Uplo::Lower => self.grid.index(row - self.first_left, col - self.first_right),
            Uplo::Upper => self.grid.index(col - self.first_left, row - self.first_right),
        }
    }

    /// Number within its block of the integer for row `r` and column `c` of a block of the result.
    #[inline]
    pub fn entry(&self, r: usize, c: usize) -> usize {
        match self.uplo {
            Uplo::Lower => BLOCK * c + r,
            Uplo::Upper => BLOCK * r + c,
        }
    }

    /// Whether row `row`, column `col` of the result belongs to the region's triangle, if it has one.
    #[inline]
    pub fn holds(&self, row: usize, col: usize) -> bool {
        match self.half {
            Some(uplo) => in_triangle(uplo, row, col),
            None => !self.grid.triangle || in_triangle(self.uplo, row, col),
        }
    }
}

/// Whether row `row`, column `col` belongs to the triangle `uplo`.
#[inline]
pub(crate) fn in_triangle(uplo: Uplo, row: usize, col: usize) -> bool {
    match uplo {
        Uplo::Lower => row >= col,
        Uplo::Upper => row <= col,
    }
}

/// Neighbouring rows of one column of a matrix.
#[derive(Default)]
pub(crate) struct ColumnPiece<'w> {
    /// Heads.
    pub heads: &'w mut [u64],
    /// Limbs.
    pub limbs: &'w mut [u64],
}

/// Blocks of rows `rows` of the result's column of blocks `col`.
pub(crate) struct Segment<'w> {
    /// Column of blocks of the result.
    pub col: usize,
    /// Blocks of rows of the result.
    pub rows: Range<usize>,
    /// The columns; empty beyond the matrix.
    pub columns: [ColumnPiece<'w>; BLOCK],
}

/// Segments of a part of a result.
pub(crate) type SegmentIter<'w> = Box<dyn Iterator<Item = Segment<'w>> + Send + 'w>;

/// A matrix, or one rank's part of one, that a product fills.
pub(crate) trait ResultSink: Send {
    /// Passes the part of `region` that is held here to `fill`, as segments in places of the whole matrix: all at once,
    /// or piece by piece.
    ///
    /// # Errors
    /// The errors of `fill`, and of the allocation for a piece.
    fn fill(&mut self, region: Region, fill: &mut dyn FnMut(SegmentIter<'_>) -> Result<()>) -> Result<()>;
}

/// A result in memory: of this process, or of this rank.
pub(crate) enum ResultTarget<'a> {
    /// All of it.
    Whole(MatrixViewMut<'a>),
    /// The tiles of a rank.
    Tiles(&'a mut DistMatrix),
}

impl ResultTarget<'_> {
    /// Precision of the entries.
    pub fn precision_bits(&self) -> u32 {
        match self {
            ResultTarget::Whole(view) => view.precision_bits(),
            ResultTarget::Tiles(matrix) => matrix.precision_bits(),
        }
    }

    /// The matrix that an entry lies in, and where that begins in the result; `None` where the tile is not this rank's.
    pub fn part(&mut self, place: EntryIndex) -> Option<(MatrixViewMut<'_>, EntryIndex)> {
        match self {
            ResultTarget::Whole(view) => Some((view.reborrow(), EntryIndex { row: 0, col: 0 })),
            ResultTarget::Tiles(matrix) => {
                let map = *matrix.map();
                let id = TileId { row: place.row / map.tile_size, col: place.col / map.tile_size };
                let first = EntryIndex { row: map.row_range(id.row).start, col: map.col_range(id.col).start };
                Some((matrix.tile_mut(id)?.view_mut(), first))
            }
        }
    }

    /// Head and limbs of an entry, where this rank has it.
    pub fn entry(&mut self, place: EntryIndex) -> Option<(&mut u64, &mut [u64])> {
        let (part, first) = self.part(place)?;
        let (stride, width) = (part.leading_dimension(), part.limbs_per_element());
        let at = place.row - first.row + (place.col - first.col) * stride;
        let (heads, limbs) = part.into_parts();
        Some((&mut heads[at], &mut limbs[at * width..][..width]))
    }
}

impl ResultSink for ResultTarget<'_> {
    fn fill(&mut self, region: Region, fill: &mut dyn FnMut(SegmentIter<'_>) -> Result<()>) -> Result<()> {
        match self {
            ResultTarget::Whole(view) => fill(Box::new(Segments::new(region, view.reborrow()))),
            ResultTarget::Tiles(matrix) => {
                let tile_blocks = matrix.map().tile_size / BLOCK;
                fill(Box::new(matrix.tiles_mut().iter_mut().flat_map(move |(id, tile)| {
                    let rows = tile.rows();
                    let (heads, limbs) = tile.parts_mut();
                    tile_segments(region, *id, tile_blocks, rows, heads, limbs)
                })))
            }
        }
    }
}

/// The segments of `region` in a tile of `rows` rows of the result, where all tiles have `tile_blocks` rows and columns
/// of blocks.
pub(crate) fn tile_segments<'w>(
    region: Region,
    tile: TileId,
    tile_blocks: usize,
    rows: usize,
    heads: &'w mut [u64],
    limbs: &'w mut [u64],
) -> impl Iterator<Item = Segment<'w>> + Send {
    let (first_row, first_col) = (tile.row * tile_blocks, tile.col * tile_blocks);
    let width = limbs.len() / heads.len().max(1);
    let columns = heads.chunks_mut(BLOCK * rows.max(1)).zip(limbs.chunks_mut((BLOCK * rows * width).max(1)));
    columns.enumerate().filter_map(move |(index, (heads, limbs))| {
        let (region_first, region_cols) = region.columns();
        let col = first_col + index;
        let within = col.checked_sub(region_first).filter(|&within| within < region_cols)?;
        let wanted = region.rows(within);
        let blocks = wanted.start.max(first_row)..wanted.end.min(first_row + rows.div_ceil(BLOCK));
        if blocks.is_empty() {
            return None;
        }
        let elements = (blocks.start - first_row) * BLOCK..((blocks.end - first_row) * BLOCK).min(rows);
        let mut columns: [ColumnPiece<'w>; BLOCK] = Default::default();
        let pieces = heads.chunks_mut(rows).zip(limbs.chunks_mut(rows * width));
        for (column, (heads, limbs)) in columns.iter_mut().zip(pieces) {
            column.heads = &mut heads[elements.clone()];
            column.limbs = &mut limbs[elements.start * width..elements.end * width];
        }
        Some(Segment { col, rows: blocks, columns })
    })
}

/// All segments of a region, column by column.
pub(crate) struct Segments<'w> {
    region: Region,
    heads: ChunksMut<'w, u64>,
    limbs: ChunksMut<'w, u64>,
    matrix_rows: usize,
    /// Distance in elements from one column to the next.
    stride: usize,
    width: usize,
    next_col: usize,
    cols: usize,
    open: Segment<'w>,
}

impl<'w> Segments<'w> {
    /// The segments of `region` in `result`, which is not empty.
    pub fn new(region: Region, result: MatrixViewMut<'w>) -> Segments<'w> {
        let (matrix_rows, stride, width) = (result.rows(), result.leading_dimension(), result.limbs_per_element());
        let (first, cols) = region.columns();
        let (heads, limbs) = result.into_parts();
        let skipped = first * BLOCK * stride;
        Segments {
            region,
            heads: heads[skipped..].chunks_mut(BLOCK * stride),
            limbs: limbs[skipped * width..].chunks_mut(BLOCK * stride * width),
            matrix_rows,
            stride,
            width,
            next_col: 0,
            cols,
            open: Segment { col: 0, rows: 0..0, columns: Default::default() },
        }
    }

    /// Opens the next column of blocks.
    fn open_column(&mut self) -> Option<()> {
        if self.next_col == self.cols {
            return None;
        }
        let (heads, limbs) = (self.heads.next()?, self.limbs.next()?);
        let rows = self.region.rows(self.next_col);
        let elements = rows.start * BLOCK..(rows.end * BLOCK).min(self.matrix_rows);
        let mut columns: [ColumnPiece<'w>; BLOCK] = Default::default();
        let pieces = heads.chunks_mut(self.stride).zip(limbs.chunks_mut(self.stride * self.width));
        for (column, (heads, limbs)) in columns.iter_mut().zip(pieces) {
            column.heads = &mut heads[elements.clone()];
            column.limbs = &mut limbs[elements.start * self.width..elements.end * self.width];
        }
        self.open = Segment { col: self.region.columns().0 + self.next_col, rows, columns };
        self.next_col += 1;
        Some(())
    }
}

impl<'w> Iterator for Segments<'w> {
    type Item = Segment<'w>;

    fn next(&mut self) -> Option<Segment<'w>> {
        while self.open.rows.is_empty() {
            self.open_column()?;
        }
        let rows = self.open.rows.start..self.open.rows.end.min(self.open.rows.start + SEGMENT_BLOCKS);
        let mut columns: [ColumnPiece<'w>; BLOCK] = Default::default();
        for (column, open) in columns.iter_mut().zip(&mut self.open.columns) {
            let count = (rows.len() * BLOCK).min(open.heads.len());
            let (heads, limbs) = (std::mem::take(&mut open.heads), std::mem::take(&mut open.limbs));
            (column.heads, open.heads) = heads.split_at_mut(count);
            (column.limbs, open.limbs) = limbs.split_at_mut(count * self.width);
        }
        self.open.rows.start = rows.end;
        Some(Segment { col: self.open.col, rows, columns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;

    #[test]
    fn segments_cover_each_entry_of_the_triangle_once() {
        for uplo in [Uplo::Lower, Uplo::Upper] {
            for size in [1usize, 8, 9, 77, 200] {
                let mut matrix = Matrix::zeros(size, size, 100).unwrap();
                let grid = BlockGrid::triangle(size);
                let region = Region { grid, first_left: 0, first_right: 0, uplo, half: None };
                let mut seen = vec![false; grid.len()];
                for segment in Segments::new(region, matrix.view_mut()) {
                    for row in segment.rows.clone() {
                        assert!(!std::mem::replace(&mut seen[region.block_index(row, segment.col)], true));
                    }
                    for piece in segment.columns {
                        piece.heads.iter_mut().for_each(|head| *head += 1);
                        assert_eq!(piece.limbs.len(), 2 * piece.heads.len());
                    }
                }
                assert!(seen.iter().all(|&seen| seen));
                for (row, col) in (0..size).flat_map(|row| (0..size).map(move |col| (row, col))) {
                    let in_blocks = region.holds(row / BLOCK, col / BLOCK);
                    assert_eq!(matrix.parts().0[row + col * size], u64::from(in_blocks), "{uplo:?} {row} {col}");
                }
            }
        }
    }
}
