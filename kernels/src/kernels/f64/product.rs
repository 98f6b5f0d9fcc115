//! One plane product: tiles by dgemm into scratch, chunk of rows after chunk, each reduced into the blocks of C.
//!
//! A panel holds its 8 columns one after the other, so that neighbouring panels are one column-major matrix which dgemm
//! reads in place. Words of C are doubles of magnitude at most `(p - 1) / 2 + 2`; `math::bound::f64_largest_modulus`
//! proves that a chunk's sums on top of them are exact.
#![forbid(unsafe_code)]

use super::combine::F64Reducer;
use super::cover::{Piece, for_each_piece};
use super::dgemm::{Dgemm, DgemmShape, DoubleColumns};
use super::simd::{DoubleVector, F64Isa, F64Task, LANES};
use crate::kernels::PlaneProduct;
use crate::math::family::F64_CHUNK_ROWS;
use crate::plan::{BLOCK, BLOCK_WORDS, BlockGrid};
use std::ops::Range;

/// Words from one column of a panel to the next: whole cache lines, and an odd number of them, so that columns do not
/// share the same few sets of a cache.
pub fn column_stride(rows: usize) -> usize {
    let lines = rows.div_ceil(LANES);
    (lines + (lines + 1) % 2) * LANES * usize::from(rows > 0)
}

/// Words of the largest tile of a product on `grid`.
pub fn tile_words(tile: DgemmShape, grid: &BlockGrid) -> usize {
    let rectangle = tile.rows.min(grid.rows) * tile.cols.min(grid.cols);
    let triangle = if grid.triangle { tile.diagonal.min(grid.cols).pow(2) } else { 0 };
    rectangle.max(triangle) * BLOCK_WORDS
}

/// Most columns of the left and of the right operand of one call.
pub fn tile_columns(tile: DgemmShape, grid: &BlockGrid) -> [usize; 2] {
    let diagonal = if grid.triangle { tile.diagonal } else { 0 };
    [(tile.rows, grid.rows), (tile.cols, grid.cols)].map(|(most, blocks)| most.max(diagonal).min(blocks) * BLOCK)
}

/// Rows of one chunk when `rows` rows are cut into as few nearly equal chunks as exact sums allow.
pub fn chunk_rows(rows: usize) -> usize {
    const { assert!(F64_CHUNK_ROWS.is_multiple_of(LANES)) };
    rows.div_ceil(rows.div_ceil(F64_CHUNK_ROWS).max(1)).next_multiple_of(LANES).max(LANES)
}

/// The tools for products of one plane: a modulus, a dgemm and the instructions for the reductions.
#[derive(Clone, Copy)]
pub struct Multiplier<'a, G> {
    /// The product in doubles.
    pub dgemm: &'a G,
    /// Instructions of this CPU.
    pub isa: F64Isa,
    /// The prime.
    pub prime: f64,
    /// The double nearest to its inverse.
    pub inverse: f64,
}

impl<G: Dgemm> Multiplier<'_, G> {
    /// Computes `product` into `c`; `tile` has [`tile_words`] words.
    pub fn multiply(&self, product: &PlaneProduct<'_>, c: &mut [f64], tile: &mut [f64]) {
        assert_eq!(c.len(), product.blocks.len() * BLOCK_WORDS, "c must hold the blocks {:?}", product.blocks);
        if product.rows == 0 {
            if !product.accumulate {
                c.fill(0.0);
            }
            return;
        }
        for_each_piece(&product.grid, &product.blocks, self.dgemm.tile(), &mut |piece| {
            self.multiply_piece(product, &piece, c, tile);
        });
    }

    fn multiply_piece(&self, product: &PlaneProduct<'_>, piece: &Piece, c: &mut [f64], tile: &mut [f64]) {
        let stride = column_stride(product.rows);
        let chunk = chunk_rows(product.rows);
        let (rows, cols) = piece.extent();
        for start in (0..product.rows).step_by(chunk) {
            let end = (start + chunk).min(product.rows);
            let left = columns(product.x, stride, &rows, start..end);
            match piece {
                Piece::Rectangle { .. } => {
                    self.dgemm.product(left, columns(product.y, stride, &cols, start..end), tile);
                }
                Piece::Triangle { .. } => {
                    self.dgemm.gram(left, tile);
                    mirror_diagonal_blocks(tile, cols.len() * BLOCK);
                }
            }
            let (prime, inverse, accumulate) = (self.prime, self.inverse, product.accumulate || start > 0);
            self.isa.run(ReduceTile { prime, inverse, product, piece, accumulate, tile, c });
        }
    }
}

/// The columns of the panels `blocks`, rows `chunk`.
fn columns<'a>(panels: &'a [u64], stride: usize, blocks: &Range<usize>, chunk: Range<usize>) -> DoubleColumns<'a> {
    let words: &[f64] = bytemuck::cast_slice(panels);
    let first = blocks.start * BLOCK * stride + chunk.start;
    DoubleColumns::new(&words[first..], chunk.len(), blocks.len() * BLOCK, stride)
}

/// Fills the upper triangles of the 8 x 8 blocks on the diagonal of a square tile: they exist in C.
fn mirror_diagonal_blocks(tile: &mut [f64], side: usize) {
    for col in 0..side {
        for row in col / BLOCK * BLOCK..col {
            tile[col * side + row] = tile[row * side + col];
        }
    }
}

/// Adds a tile to its blocks of C, or stores it there, modulo the prime.
struct ReduceTile<'a> {
    prime: f64,
    inverse: f64,
    product: &'a PlaneProduct<'a>,
    piece: &'a Piece,
    accumulate: bool,
    tile: &'a [f64],
    c: &'a mut [f64],
}

impl F64Task for ReduceTile<'_> {
    #[inline(always)]
    fn run<V: DoubleVector, const N: usize>(self) {
        if self.accumulate { self.pass::<V, true>() } else { self.pass::<V, false>() }
    }
}

impl ReduceTile<'_> {
    #[inline(always)]
    fn pass<V: DoubleVector, const ACCUMULATE: bool>(self) {
        let grid = &self.product.grid;
        let reducer = F64Reducer::<V>::new(self.prime, self.inverse);
        let (rows, cols) = self.piece.extent();
        let leading = rows.len() * BLOCK;
        for col in cols.clone() {
            let first_row = match self.piece {
                Piece::Rectangle { .. } => rows.start,
                Piece::Triangle { .. } => col,
            };
            let start = (grid.index(first_row, col) - self.product.blocks.start) * BLOCK_WORDS;
            let blocks = &mut self.c[start..][..(rows.end - first_row) * BLOCK_WORDS];
            let tile = &self.tile[(col - cols.start) * BLOCK * leading..][..BLOCK * leading];
            let above = (first_row - rows.start) * BLOCK;
            for (offset, block) in blocks.chunks_exact_mut(BLOCK_WORDS).enumerate() {
                let column = block.as_chunks_mut::<LANES>().0;
                for lane in 0..BLOCK {
                    let from = &tile[lane * leading + above + offset * BLOCK..];
                    let mut sum = V::load(from.first_chunk().expect("a tile has whole blocks"));
                    if ACCUMULATE {
                        sum = sum.add(V::load(&column[lane]));
                    }
                    reducer.reduce(sum).store(&mut column[lane]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_are_odd_numbers_of_lines_and_chunks_fit() {
        for rows in [0, 1, 7, 8, 9, 16, 500, 512, 513, 1024, 4000] {
            let stride = column_stride(rows);
            assert!(stride >= rows && stride < rows + 2 * LANES && (rows == 0 || stride / LANES % 2 == 1), "{rows}");
            let chunk = chunk_rows(rows);
            assert!((LANES..=F64_CHUNK_ROWS).contains(&chunk) && chunk.is_multiple_of(LANES), "{rows}");
            assert_eq!(rows.div_ceil(chunk), rows.div_ceil(F64_CHUNK_ROWS), "{rows}");
        }
    }
}
