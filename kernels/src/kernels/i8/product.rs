//! One plane product: packed operands, chunk of rows after chunk, tile after tile.
//!
//! A panel holds its rows one after the other, the digits of 8 residues each; packing makes bytes of tiles. Columns of
//! the result are the rows of a tile and the other way round, so that the residues of a column are neighbours.
//!
//! Tile registers take 64 bytes a cycle, which only the first-level cache supplies; the second-level cache supplies
//! half of that. So a pass has few rows: one plane of a strip of the right operand stays in the first-level cache while
//! it is multiplied with many strips of the left one, which come from the second. The right strip is packed just
//! before, from residues that lie in order, since a strip packed long before would come from the third-level cache, too
//! late; and while the strip before is multiplied, its residues are fetched. Left strips are loaded past the
//! first-level cache, which keeps more of the right one.
#![forbid(unsafe_code)]

use super::isa::I8Isa;
use super::pack::{ByteDigits, STRIP_PANELS, Single, Triple, pack_columns, pack_rows, steps};
use super::reduce::Karatsuba;
use super::tiles::{
    Extent, I8Task, LINE_WORDS, SIDE, STEP, STEP_GROUPS, STEP_WORDS, SUM_WORDS, TileColumns, TileRows, TileSums, Unit,
    aligned, columns_mut, rows_mut, sums_mut,
};
use super::vectors::{HalfwordVector, Vector};
use crate::kernels::PlaneProduct;
use crate::math::bound::I8_PASS_ROWS;
use crate::plan::{BLOCK, BLOCK_WORDS, BlockGrid};
use std::ops::Range;

/// Most strips of the left operand that are packed at a time: with three planes a megabyte.
const LEFT_STRIPS: usize = 16;

/// The largest number of rows of a pass: a plane of a strip takes 22 KiB.
pub const PASS_ROWS: usize = 11 * STEP;

/// Rows of each pass, a multiple of [`STEP`].
fn depth_of_passes(rows: usize) -> usize {
    const { assert!(PASS_ROWS <= I8_PASS_ROWS) };
    rows.div_ceil(rows.div_ceil(PASS_ROWS).max(1)).next_multiple_of(STEP).max(STEP)
}

/// Strips of the left operand that are packed at a time.
fn left_strips(grid: &BlockGrid) -> usize {
    grid.rows.div_ceil(STRIP_PANELS).min(LEFT_STRIPS)
}

/// Words of scratch for one call over up to `rows` rows, with `planes` planes of bytes. Passes are equal, so that a few
/// rows more may need less.
pub fn scratch_words(rows: usize, grid: &BlockGrid, planes: usize) -> usize {
    let (left, steps) = (left_strips(grid), steps(rows.min(PASS_ROWS)));
    ((left + 1) * steps * STEP_WORDS + left * SUM_WORDS) * planes / 2 + LINE_WORDS
}

/// One product modulo one modulus.
pub struct I8Multiply<'a> {
    /// The modulus.
    pub modulus: u64,
    /// Whether its residues take three planes of bytes.
    pub is_triple: bool,
    /// Operands and extent.
    pub product: &'a PlaneProduct<'a>,
    /// The blocks of the product.
    pub c: &'a mut [u16],
    /// [`scratch_words`] words.
    pub scratch: &'a mut [u64],
}

impl I8Multiply<'_> {
    /// Does it.
    pub fn run_on(self, isa: I8Isa) {
        let PlaneProduct { rows, grid, blocks, accumulate, .. } = self.product;
        assert!(blocks.end <= grid.len() && self.c.len() == blocks.len() * BLOCK_WORDS);
        if *rows == 0 && !accumulate {
            self.c.fill(0);
        }
        if *rows > 0 && !blocks.is_empty() {
            isa.run(self);
        }
    }

    #[inline(always)]
    fn run_with<U: Unit, D: ByteDigits>(self) {
        let I8Multiply { modulus, product, c, scratch, .. } = self;
        let PlaneProduct { grid, blocks, .. } = product;
        let joiner = Karatsuba::new(modulus);
        let words = aligned(&mut scratch[..scratch_words(product.rows, grid, D::PLANES)]);
        let step = depth_of_passes(product.rows);
        let columns = grid.column_of(blocks.start)..grid.column_of(blocks.end - 1) + 1;
        for first in (0..product.rows).step_by(step) {
            let rows = first..(first + step).min(product.rows);
            let strip_steps = steps(rows.len()) * D::PLANES;
            let (right, rest) = words.split_at_mut(strip_steps * STEP_WORDS);
            let (left, sums) = rest.split_at_mut(left_strips(grid) * strip_steps * STEP_WORDS);
            let pass = I8Pass { joiner: &joiner, product, rows, columns: columns.clone(), strip_steps };
            let buffers = PassBuffers { right: rows_mut(right), left: columns_mut(left), sums: sums_mut(sums) };
            pass.run::<U, D>(buffers, c);
        }
    }
}

impl I8Task for I8Multiply<'_> {
    #[inline(always)]
    fn run<U: Unit>(self) {
        if self.is_triple { self.run_with::<U, Triple>() } else { self.run_with::<U, Single>() }
    }
}

/// The buffers into which a pass packs, and its sums.
struct PassBuffers<'a> {
    right: &'a mut [TileRows],
    left: &'a mut [TileColumns],
    /// For each strip of the left operand the sums of each plane.
    sums: &'a mut [TileSums],
}

/// Tiles that share a strip of the right operand.
struct Tiles<'a> {
    left: &'a [TileColumns],
    right: &'a [TileRows],
    /// The panel that strip 0 of the left operand begins with.
    start: usize,
    /// Strips of the left operand.
    strips: Range<usize>,
    /// Columns of blocks.
    columns: Range<usize>,
    /// The columns of blocks that follow.
    next: Range<usize>,
}

/// Some rows of the operands, some columns of blocks.
struct I8Pass<'a> {
    joiner: &'a Karatsuba,
    product: &'a PlaneProduct<'a>,
    rows: Range<usize>,
    columns: Range<usize>,
    strip_steps: usize,
}

impl I8Pass<'_> {
    #[inline(always)]
    fn run<U: Unit, D: ByteDigits>(&self, buffers: PassBuffers<'_>, c: &mut [u16]) {
        let PlaneProduct { x, y, .. } = self.product;
        let PassBuffers { right, left, sums } = buffers;
        let wanted = self.wanted_rows(self.columns.clone());
        for start in wanted.clone().step_by(LEFT_STRIPS * STRIP_PANELS) {
            let panels = start..(start + LEFT_STRIPS * STRIP_PANELS).min(wanted.end);
            for (strip, first) in left.chunks_exact_mut(self.strip_steps).zip(panels.clone().step_by(STRIP_PANELS)) {
                let mut of_strip = [Default::default(); STRIP_PANELS];
                for (panel, number) in of_strip.iter_mut().zip(first..panels.end) {
                    *panel = self.panel(x, number);
                }
                pack_columns::<U::Vectors, D>(of_strip, strip);
            }
            for begin in self.columns.clone().step_by(STRIP_PANELS) {
                let columns = begin..(begin + STRIP_PANELS).min(self.columns.end);
                let reached = self.wanted_rows(columns.clone());
                let reached = reached.start.max(panels.start)..reached.end.min(panels.end);
                if reached.is_empty() {
                    continue;
                }
                for (number, panel) in columns.clone().enumerate() {
                    pack_rows::<U::Vectors, D>(self.panel(y, panel), number, right);
                }
                let strips = (reached.start - start) / STRIP_PANELS..(reached.end - start).div_ceil(STRIP_PANELS);
                let next = columns.end..(columns.end + STRIP_PANELS).min(self.columns.end);
                let tiles = Tiles { left, right, start, strips, columns, next };
                self.multiply::<U, D>(&tiles, sums, c);
            }
        }
    }

    /// The products of some strips of the left operand with the right one, plane by plane.
    ///
    /// The residues of a tile are taken once the products of the next have been issued: the vector units work on them
    /// while the tile registers go on.
    #[inline(always)]
    fn multiply<U: Unit, D: ByteDigits>(&self, tiles: &Tiles<'_>, sums: &mut [TileSums], c: &mut [u16]) {
        let steps = self.strip_steps / D::PLANES;
        let extent = Extent { groups: steps * STEP_GROUPS, rows: tiles.columns.len() * BLOCK, columns: SIDE };
        let mut last = None;
        for plane in 0..D::PLANES {
            let right = &tiles.right[plane * steps..][..steps];
            for strip in tiles.strips.clone() {
                let left = &tiles.left[strip * self.strip_steps + plane * steps..][..steps];
                self.fetch::<U, D>(tiles, plane, strip);
                U::multiply::<true>(right, left, extent, &mut sums[strip * D::PLANES + plane]);
                if plane + 1 == D::PLANES
                    && let Some(last) = last.replace(strip)
                {
                    self.put::<U, D>(tiles, last, sums, c);
                }
            }
        }
        if let Some(last) = last {
            self.put::<U, D>(tiles, last, sums, c);
        }
    }

    /// Prefetches a part of the panels that are packed next, to be there when all products of `tiles` are done.
    #[inline(always)]
    fn fetch<U: Unit, D: ByteDigits>(&self, tiles: &Tiles<'_>, plane: usize, strip: usize) {
        let (part, parts) = (plane * tiles.strips.len() + strip - tiles.strips.start, D::PLANES * tiles.strips.len());
        for panel in tiles.next.clone() {
            let rows = self.panel(self.product.y, panel);
            U::Vectors::prefetch(&rows[rows.len() * part / parts..rows.len() * (part + 1) / parts]);
        }
    }

    /// The rows of one panel in this pass.
    #[inline(always)]
    fn panel<'a>(&self, plane: &'a [u64], panel: usize) -> &'a [u16] {
        let words = self.product.rows * BLOCK;
        let panel = &bytemuck::cast_slice::<u64, u16>(plane)[panel * words..][..words];
        &panel[self.rows.start * BLOCK..self.rows.end * BLOCK]
    }

    /// All rows of blocks that some of these columns need: from the first to the last.
    fn wanted_rows(&self, columns: Range<usize>) -> Range<usize> {
        let PlaneProduct { grid, blocks, .. } = self.product;
        let runs = columns.map(|col| grid.rows_in(col, blocks)).filter(|rows| !rows.is_empty());
        runs.reduce(|all, rows| all.start.min(rows.start)..all.end.max(rows.end)).unwrap_or(0..0)
    }

    /// The blocks of C of one tile, from its sums.
    #[inline(always)]
    fn put<U: Unit, D: ByteDigits>(&self, tiles: &Tiles<'_>, strip: usize, sums: &[TileSums], c: &mut [u16]) {
        let PlaneProduct { grid, blocks, accumulate, .. } = self.product;
        let sums = &sums[strip * D::PLANES..][..D::PLANES];
        let start = tiles.start + strip * STRIP_PANELS;
        let adds = *accumulate || self.rows.start > 0;
        for (number, col) in tiles.columns.clone().enumerate() {
            let wanted = grid.rows_in(col, blocks);
            // A vector holds the residues of a column of the result in four blocks, half a block those of four columns.
            for half in 0..2 {
                let first = number * BLOCK + 4 * half;
                let mut residues = [U::Vectors::splat(0); 4];
                for (lane, residues) in residues.iter_mut().enumerate() {
                    *residues = D::least(self.joiner, sums, first + lane);
                }
                let parts = U::Vectors::swap_quarters(residues);
                for row in start.max(wanted.start)..(start + STRIP_PANELS).min(wanted.end) {
                    let block = &mut c[(grid.index(row, col) - blocks.start) * BLOCK_WORDS..][..BLOCK_WORDS];
                    self.joiner.reducer().put(&mut block.as_chunks_mut().0[half], parts[row - start], adds);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_covers_all_products_of_fewer_rows() {
        let grid = BlockGrid::rectangle(300, 40);
        let mut most = 0;
        for rows in 0..5 * PASS_ROWS {
            let words = scratch_words(rows, &grid, 3);
            // The words that a pass over `rows` rows packs.
            let needed = (left_strips(&grid) + 1) * steps(depth_of_passes(rows).min(rows)) * STEP_WORDS * 3 / 2;
            assert!(words >= most && words > needed, "{rows} rows: {words} words, {most} before");
            most = words;
        }
    }
}
