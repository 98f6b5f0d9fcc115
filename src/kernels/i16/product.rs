//! One plane product: packed operands, chunk of rows after chunk, tile after tile.
//!
//! A panel holds its rows one after the other, 8 residues of 16 bits each; packing makes pairs of neighbouring rows.
//! The right operand's pairs stay in a large cache, block of columns after block, while strips of the left operand,
//! which stay in the second-level cache, are multiplied with all of them.
#![forbid(unsafe_code)]

use super::lanes::{INTERLEAVED, Isa, Lanes, Task};
use super::micro::{COLUMNS, MOST_LANES, Prime, Strip, Tile, residues};
use crate::kernels::PlaneProduct;
use crate::plan::{BLOCK, BLOCK_WORDS, BlockGrid};
use std::ops::Range;

/// Most rows of one pass over the operands: residues are taken once a pass.
pub const MOST_DEPTH: usize = 2048;

/// Most panels of the right operand that are packed at a time.
const MOST_PANELS: usize = 64;

/// Words by which a buffer may begin too early for whole cache lines.
const LINE_WORDS: usize = 8;

/// Rows of pairs in a pass of `depth` rows; those past the last row are 0.
fn pairs(depth: usize) -> usize {
    depth.div_ceil(INTERLEAVED) * (INTERLEAVED / 2)
}

/// Rows of each pass, a multiple of [`INTERLEAVED`].
fn depth_of_passes(rows: usize) -> usize {
    rows.div_ceil(rows.div_ceil(MOST_DEPTH).max(1)).next_multiple_of(INTERLEAVED).max(INTERLEAVED)
}

/// Words of scratch for one call.
pub fn scratch_words(rows: usize, grid: &BlockGrid) -> usize {
    let pairs = pairs(depth_of_passes(rows).min(rows));
    pairs * (grid.cols.min(MOST_PANELS) * COLUMNS + MOST_LANES) / 2 + LINE_WORDS
}

/// One product modulo one prime.
pub struct Multiply<'a> {
    /// The prime.
    pub prime: Prime,
    /// Rows of pairs after which sums are folded.
    pub interval: usize,
    /// Operands and extent.
    pub product: &'a PlaneProduct<'a>,
    /// The blocks of the product.
    pub c: &'a mut [i16],
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
}

impl Task for Multiply<'_> {
    #[inline(always)]
    fn run<L: Lanes, const V: usize, const C: usize>(self) {
        let Multiply { prime, interval, product, c, scratch } = self;
        let PlaneProduct { grid, blocks, .. } = product;
        let scratch = &mut scratch[..scratch_words(product.rows, grid)];
        let skipped = scratch.as_ptr().align_offset(8 * LINE_WORDS).min(LINE_WORDS);
        let words: &mut [i32] = bytemuck::cast_slice_mut(&mut scratch[skipped..]);
        let primes = [prime; COLUMNS];
        let (columns, step) =
            (grid.column_of(blocks.start)..grid.column_of(blocks.end - 1) + 1, depth_of_passes(product.rows));
        for first in (0..product.rows).step_by(step) {
            let rows = first..(first + step).min(product.rows);
            let (right, left) = words.split_at_mut(grid.cols.min(MOST_PANELS) * pairs(rows.len()) * COLUMNS);
            for begin in columns.clone().step_by(MOST_PANELS) {
                let columns = begin..(begin + MOST_PANELS).min(columns.end);
                let pass = Pass { product, rows: rows.clone(), columns, moduli: (&primes, interval) };
                pass.run::<L, V, C>(right.as_chunks_mut().0, left, c);
            }
        }
    }
}

/// Some rows of the operands, some columns of blocks.
struct Pass<'a> {
    product: &'a PlaneProduct<'a>,
    rows: Range<usize>,
    columns: Range<usize>,
    moduli: (&'a [Prime; COLUMNS], usize),
}

impl Pass<'_> {
    #[inline(always)]
    fn run<L: Lanes, const V: usize, const C: usize>(
        &self,
        right: &mut [[i32; COLUMNS]],
        left: &mut [i32],
        c: &mut [i16],
    ) {
        let PlaneProduct { x, y, grid, blocks, .. } = self.product;
        let (pairs, lanes) = (pairs(self.rows.len()), V * L::WIDTH);
        for (number, panel) in self.columns.clone().enumerate() {
            let out = right[number * pairs..][..pairs].as_flattened_mut();
            self.pack::<L>(y, panel, out, (COLUMNS, 0));
        }
        let mut tile = Tile::new();
        let first = grid.first_row(self.columns.start);
        for start in (first..grid.rows).step_by(lanes / BLOCK) {
            let strip = start..(start + lanes / BLOCK).min(grid.rows);
            let left = &mut left[..pairs * lanes];
            for number in 0..lanes / BLOCK {
                if start + number < grid.rows {
                    self.pack::<L>(x, start + number, left, (lanes, number * BLOCK));
                } else {
                    left.chunks_exact_mut(lanes).for_each(|row| row[number * BLOCK..][..BLOCK].fill(0));
                }
            }
            for (number, col) in self.columns.clone().enumerate() {
                let present = grid.rows_in(col, blocks);
                let run = present.start.max(strip.start)..present.end.min(strip.end);
                if run.start < run.end {
                    let factors = &right[number * pairs..][..pairs];
                    self.tile::<L, V, C>((left, factors), (start, col), run, (&mut tile, c));
                }
            }
        }
    }

    /// The blocks `run` of column `col`, whose panels lie in the strip that begins with panel `start`.
    #[inline(always)]
    fn tile<L: Lanes, const V: usize, const C: usize>(
        &self,
        (left, right): (&[i32], &[[i32; COLUMNS]]),
        (start, col): (usize, usize),
        run: Range<usize>,
        (tile, c): (&mut Tile, &mut [i16]),
    ) {
        let PlaneProduct { grid, blocks, accumulate, .. } = self.product;
        let panels = L::WIDTH / BLOCK;
        let skipped = (run.start - start) / panels;
        let vectors = (run.end - start).div_ceil(panels) - skipped;
        let strip = Strip { words: &left[skipped * L::WIDTH..], stride: V * L::WIDTH };
        residues::<L, V, C>(vectors, (strip, right), self.moduli, tile);
        let first = grid.column_start(col) + run.start - grid.first_row(col) - blocks.start;
        let out = &mut c[first * BLOCK_WORDS..][..run.len() * BLOCK_WORDS];
        let at = (run.start - start - skipped * panels) * BLOCK;
        let adds = *accumulate || self.rows.start > 0;
        for (number, block) in out.chunks_exact_mut(BLOCK_WORDS).enumerate() {
            for (column, entries) in block.chunks_exact_mut(BLOCK).enumerate() {
                let residues = &tile.residues[column][at + number * BLOCK..][..BLOCK];
                if adds {
                    add(self.moduli.0[0].prime, entries, residues);
                } else {
                    entries.copy_from_slice(residues);
                }
            }
        }
    }

    /// Pairs of rows of one panel, `stride` integers apart, from integer `at` on.
    #[inline(always)]
    fn pack<L: Lanes>(&self, plane: &[u64], panel: usize, out: &mut [i32], (stride, at): (usize, usize)) {
        let words = self.product.rows * BLOCK;
        let panel = &bytemuck::cast_slice::<u64, i16>(plane)[panel * words..][..words];
        let rows = &panel[self.rows.start * BLOCK..self.rows.end * BLOCK];
        let (whole, rest) = rows.as_chunks::<{ INTERLEAVED * BLOCK }>();
        let mut last = [0; INTERLEAVED * BLOCK];
        last[..rest.len()].copy_from_slice(rest);
        let mut groups = out.chunks_exact_mut(INTERLEAVED / 2 * stride);
        for (rows, group) in whole.iter().zip(&mut groups) {
            interleave::<L>(rows, group, stride, at);
        }
        if let Some(group) = groups.next().filter(|_| !rest.is_empty()) {
            interleave::<L>(&last, group, stride, at);
        }
    }
}

#[inline(always)]
fn interleave<L: Lanes>(rows: &[i16; INTERLEAVED * BLOCK], group: &mut [i32], stride: usize, at: usize) {
    let (first, second) = group.split_at_mut(stride);
    let (first, second) = (first[at..].first_chunk_mut(), second[at..].first_chunk_mut());
    L::interleave(rows, [first.expect("eight pairs"), second.expect("eight pairs")]);
}

/// `sums := sums + residues` for balanced residues.
#[inline(always)]
pub fn add(prime: i32, sums: &mut [i16], residues: &[i16]) {
    let (prime, half) = (prime as i16, (prime / 2) as i16);
    for (sum, residue) in sums.iter_mut().zip(residues) {
        // Damaged words may wrap, others lie far from the ends.
        let whole = sum.wrapping_add(*residue);
        let lower = if whole > half { whole.wrapping_sub(prime) } else { whole };
        *sum = if whole < -half { whole.wrapping_add(prime) } else { lower };
    }
}
