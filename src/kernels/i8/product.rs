//! One plane product: packed operands, chunk of rows after chunk, tile after tile.
//!
//! A panel holds its rows one after the other, 8 least residues of 16 bits each; packing makes bytes of tiles. Columns
//! of the result are the rows of a tile and the other way round, so that the residues of a column are neighbours. The
//! right operand's bytes stay in a large cache, block of columns after block; some strips of the left operand, which
//! stay in the second-level cache, are multiplied with all of them.
#![forbid(unsafe_code)]

use super::isa::Isa;
use super::pack::{Digits, STRIP_PANELS, Single, Triple, pack_columns, pack_rows, steps};
use super::reduce::{Reducer, Residues, karatsuba_tile, tile};
use super::tiles::{
    Columns, Extent, GROUP, LINE_WORDS, Rows, STEP, STEP_WORDS, Sums, Task, Unit, aligned, columns_mut, rows_mut,
};
use crate::kernels::PlaneProduct;
use crate::math::bound::I8_PASS_ROWS;
use crate::plan::{BLOCK, BLOCK_WORDS, BlockGrid};
use std::ops::Range;

/// Most strips of the right operand that are packed at a time.
const RIGHT_STRIPS: usize = 16;

/// Most strips of the left operand that are packed at a time.
const LEFT_STRIPS: usize = 4;

/// Rows of each pass, a multiple of [`STEP`].
fn depth_of_passes(rows: usize) -> usize {
    const { assert!(I8_PASS_ROWS.is_multiple_of(STEP)) };
    rows.div_ceil(rows.div_ceil(I8_PASS_ROWS).max(1)).next_multiple_of(STEP).max(STEP)
}

/// Strips of the left and of the right operand that are packed at a time.
fn strips(grid: &BlockGrid) -> [usize; 2] {
    [grid.rows.div_ceil(STRIP_PANELS).min(LEFT_STRIPS), grid.cols.div_ceil(STRIP_PANELS).min(RIGHT_STRIPS)]
}

/// Words of scratch for one call, with so many planes of bytes.
pub fn scratch_words(rows: usize, grid: &BlockGrid, planes: usize) -> usize {
    let strips = strips(grid).iter().sum::<usize>();
    strips * steps(depth_of_passes(rows).min(rows)) * planes * STEP_WORDS / 2 + LINE_WORDS
}

/// One product modulo one modulus.
pub struct Multiply<'a> {
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

impl Multiply<'_> {
    /// Does it.
    pub fn run_on(self, isa: Isa) {
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
    fn run_with<U: Unit, D: Digits>(self) {
        let Multiply { modulus, product, c, scratch, .. } = self;
        let PlaneProduct { grid, blocks, .. } = product;
        let words = aligned(&mut scratch[..scratch_words(product.rows, grid, D::PLANES)]);
        let step = depth_of_passes(product.rows);
        let columns = grid.column_of(blocks.start)..grid.column_of(blocks.end - 1) + 1;
        let mut tiles = Tiles { sums: [Sums::new(), Sums::new(), Sums::new()], residues: Residues::new() };
        for first in (0..product.rows).step_by(step) {
            let rows = first..(first + step).min(product.rows);
            let strip_steps = steps(rows.len()) * D::PLANES;
            let (right, left) = words.split_at_mut(strips(grid)[1] * strip_steps * STEP_WORDS);
            for begin in columns.clone().step_by(RIGHT_STRIPS * STRIP_PANELS) {
                let columns = begin..(begin + RIGHT_STRIPS * STRIP_PANELS).min(columns.end);
                let pass = Pass { modulus, product, rows: rows.clone(), columns, strip_steps };
                pass.run::<U, D>(rows_mut(right), columns_mut(left), (&mut tiles, c));
            }
        }
    }
}

impl Task for Multiply<'_> {
    #[inline(always)]
    fn run<U: Unit>(self) {
        if self.is_triple { self.run_with::<U, Triple>() } else { self.run_with::<U, Single>() }
    }
}

/// What becomes of one tile.
struct Tiles {
    sums: [Sums; 3],
    residues: Residues,
}

/// Some rows of the operands, some columns of blocks.
struct Pass<'a> {
    modulus: u64,
    product: &'a PlaneProduct<'a>,
    rows: Range<usize>,
    columns: Range<usize>,
    strip_steps: usize,
}

impl Pass<'_> {
    #[inline(always)]
    fn run<U: Unit, D: Digits>(&self, right: &mut [Rows], left: &mut [Columns], (tiles, c): (&mut Tiles, &mut [u16])) {
        let PlaneProduct { x, y, grid, .. } = self.product;
        for (number, panel) in self.columns.clone().enumerate() {
            let strip = &mut right[number / STRIP_PANELS * self.strip_steps..][..self.strip_steps];
            pack_rows::<D>(self.panel(y, panel), self.modulus as u16, number % STRIP_PANELS, strip);
        }
        let wanted = self.wanted_rows(self.columns.clone());
        for start in wanted.clone().step_by(LEFT_STRIPS * STRIP_PANELS) {
            let panels = start..(start + LEFT_STRIPS * STRIP_PANELS).min(wanted.end);
            for (number, panel) in panels.clone().enumerate() {
                let strip = &mut left[number / STRIP_PANELS * self.strip_steps..][..self.strip_steps];
                pack_columns::<D>(self.panel(x, panel), number % STRIP_PANELS, strip);
            }
            for (number, begin) in self.columns.clone().step_by(STRIP_PANELS).enumerate() {
                let columns = begin..(begin + STRIP_PANELS).min(self.columns.end);
                let right = &right[number * self.strip_steps..][..self.strip_steps];
                let reached = self.wanted_rows(columns.clone());
                for (number, first) in panels.clone().step_by(STRIP_PANELS).enumerate() {
                    let rows = first..(first + STRIP_PANELS).min(panels.end);
                    if rows.start < reached.end && rows.end > reached.start && rows.start < grid.rows {
                        let left = &left[number * self.strip_steps..][..self.strip_steps];
                        self.tile::<U, D>((left, right), (rows, columns.clone()), (tiles, c));
                    }
                }
            }
        }
    }

    /// The rows of one panel in this pass.
    #[inline(always)]
    fn panel<'a>(&self, plane: &'a [u64], panel: usize) -> &'a [u16] {
        let words = self.product.rows * BLOCK;
        let panel = &bytemuck::cast_slice::<u64, u16>(plane)[panel * words..][..words];
        &panel[self.rows.start * BLOCK..self.rows.end * BLOCK]
    }

    /// All rows of blocks that some of these columns want: from the first to the last.
    fn wanted_rows(&self, columns: Range<usize>) -> Range<usize> {
        let PlaneProduct { grid, blocks, .. } = self.product;
        let runs = columns.map(|col| grid.rows_in(col, blocks)).filter(|rows| !rows.is_empty());
        runs.reduce(|all, rows| all.start.min(rows.start)..all.end.max(rows.end)).unwrap_or(0..0)
    }

    /// The blocks of C in some rows and columns of blocks, at most a strip each.
    #[inline(always)]
    fn tile<U: Unit, D: Digits>(
        &self,
        (left, right): (&[Columns], &[Rows]),
        (rows, columns): (Range<usize>, Range<usize>),
        (tiles, c): (&mut Tiles, &mut [u16]),
    ) {
        let PlaneProduct { grid, blocks, accumulate, .. } = self.product;
        let steps = self.strip_steps / D::PLANES;
        let groups = self.rows.len().div_ceil(GROUP);
        let extent = Extent { groups, rows: columns.len() * BLOCK, columns: rows.len() * BLOCK };
        for plane in 0..D::PLANES {
            let steps = plane * steps..(plane + 1) * steps;
            U::multiply(&right[steps.clone()], &left[steps], extent, &mut tiles.sums[plane]);
        }
        let reducer = Reducer::new(self.modulus);
        match D::PLANES {
            1 => tile(reducer, &tiles.sums[0], extent.rows, &mut tiles.residues),
            _ => karatsuba_tile(reducer, &tiles.sums, extent.rows, &mut tiles.residues),
        }
        let adds = *accumulate || self.rows.start > 0;
        for (number, col) in columns.enumerate() {
            let wanted = grid.rows_in(col, blocks);
            for row in rows.start.max(wanted.start)..rows.end.min(wanted.end) {
                let block = &mut c[(grid.index(row, col) - blocks.start) * BLOCK_WORDS..][..BLOCK_WORDS];
                for (lane, entries) in block.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
                    let residues = &tiles.residues.0[number * BLOCK + lane][(row - rows.start) * BLOCK..];
                    reducer.put(entries, residues.first_chunk().expect("eight rows"), adds);
                }
            }
        }
    }
}
