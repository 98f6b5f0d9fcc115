//! Classical plane products: packed operands, chunk of rows after chunk, tile after tile.
//!
//! The right operand's pairs stay in a large cache, block of columns after block, while strips of the left operand,
//! which stay in the second-level cache, are multiplied with all of them.
#![forbid(unsafe_code)]

use super::lanes::{I16Isa, I16Task, INTERLEAVED, Lanes};
use super::micro::{COLUMNS, FoldedPrime, I16Tile, MOST_LANES, PairStrip, blocks};
use super::operand::{I16Operand, MOST_DEPTH};
use crate::kernels::area::Target;
use crate::plan::{BLOCK, BLOCK_WORDS};
use std::ops::Range;

/// Most panels of the right operand that are packed at a time: each strip of the left one is packed once for them.
const MOST_PANELS: usize = 64;

/// Pairs of rows of a strip that are packed of all its panels before those below them: two panels share a cache line,
/// which stays in the first cache from one to the next.
const PAIRS_AT_A_TIME: usize = 64;

/// Words by which a buffer may begin too early for whole cache lines.
const LINE_WORDS: usize = 8;

/// The two operands of a product over `rows` rows.
#[derive(Clone, Copy)]
pub struct I16Operands<'a> {
    /// Panels that give the rows of C.
    pub x: I16Operand<'a>,
    /// Panels that give the columns of C, where X does not.
    pub y: Option<I16Operand<'a>>,
    /// Rows of both.
    pub rows: usize,
}

impl<'a> I16Operands<'a> {
    /// The panels that give the columns of C.
    pub fn right(&self) -> I16Operand<'a> {
        self.y.unwrap_or(self.x)
    }
}

/// Rows of pairs in a pass of `depth` rows; those past the last row are 0.
fn pairs(depth: usize) -> usize {
    depth.div_ceil(INTERLEAVED) * (INTERLEAVED / 2)
}

/// Rows of each of the fewest equal pieces of at most `most` rows, a multiple of [`INTERLEAVED`]; the last piece may
/// have fewer.
pub fn depth_of_passes(rows: usize, most: usize) -> usize {
    rows.div_ceil(rows.div_ceil(most).max(1)).next_multiple_of(INTERLEAVED).max(INTERLEAVED)
}

/// Panels of the next strip where `left` panels remain; the largest strip has `V` vectors. Where `V + 1` vectors
/// remain, the last two strips share them: a strip of one vector has too few sums to keep the multiplier busy.
pub fn strip_panels<L: Lanes, const V: usize>(left: usize) -> usize {
    let (panels, vectors) = (L::WIDTH / BLOCK, left.div_ceil(L::WIDTH / BLOCK));
    let shared = if vectors == V + 1 { vectors.div_ceil(2) } else { V };
    left.min(shared * panels)
}

/// Words of scratch for a product over up to `rows` rows into at most `columns` block columns. Passes are equal, so a
/// few rows more may need less.
pub fn scratch_words(rows: usize, columns: usize) -> usize {
    let pairs = pairs(rows.min(MOST_DEPTH));
    pairs * (columns.min(MOST_PANELS) * COLUMNS + MOST_LANES) / 2 + LINE_WORDS
}

/// `C := C + X^T Y` or `C := X^T Y` on the blocks of `target`.
pub struct I16Multiply<'a> {
    /// The prime.
    pub field: FoldedPrime,
    /// The operands.
    pub operands: I16Operands<'a>,
    /// Its destination.
    pub target: &'a Target,
    /// The blocks of the target.
    pub c: &'a mut [i16],
    /// Whether the product is added to C.
    pub adds: bool,
    /// [`scratch_words`] words.
    pub scratch: &'a mut [u64],
}

impl I16Multiply<'_> {
    /// Does it.
    pub fn run_on(self, isa: I16Isa) {
        let Target { grid, blocks, row_window, .. } = self.target;
        assert!(blocks.end <= grid.len() && self.c.len() == blocks.len() * BLOCK_WORDS);
        if self.operands.rows > 0 {
            isa.run(self);
        } else if !self.adds {
            for col in self.target.columns() {
                let (run, first) = self.target.run(col, row_window);
                self.c[first * BLOCK_WORDS..][..run.len() * BLOCK_WORDS].fill(0);
            }
        }
    }
}

impl I16Task for I16Multiply<'_> {
    #[inline(always)]
    fn run<L: Lanes, const V: usize, const C: usize>(self) {
        let I16Multiply { field, operands, target, c, adds, scratch } = self;
        let (columns, rows) = (target.columns(), operands.rows);
        let scratch = &mut scratch[..scratch_words(rows, columns.len())];
        let skipped = scratch.as_ptr().align_offset(8 * LINE_WORDS).min(LINE_WORDS);
        let words: &mut [i32] = bytemuck::cast_slice_mut(&mut scratch[skipped..]);
        let step = depth_of_passes(rows, MOST_DEPTH);
        for first in (0..rows).step_by(step) {
            let rows = first..(first + step).min(rows);
            let (right, left) = words.split_at_mut(columns.len().min(MOST_PANELS) * pairs(rows.len()) * COLUMNS);
            let count = columns.len().div_ceil(columns.len().div_ceil(MOST_PANELS).max(1)).max(1);
            for begin in columns.clone().step_by(count) {
                let columns = begin..(begin + count).min(columns.end);
                let adds = adds || rows.start > 0;
                let pass = I16Pass { operands, target, rows: rows.clone(), columns, field: &field, adds };
                pass.run::<L, V, C>(right.as_chunks_mut().0, left, c);
            }
        }
    }
}

/// Some rows of the operands, some columns of blocks.
struct I16Pass<'a> {
    operands: I16Operands<'a>,
    target: &'a Target,
    rows: Range<usize>,
    columns: Range<usize>,
    field: &'a FoldedPrime,
    adds: bool,
}

impl I16Pass<'_> {
    #[inline(always)]
    fn run<L: Lanes, const V: usize, const C: usize>(
        &self,
        right: &mut [[i32; COLUMNS]],
        left: &mut [i32],
        c: &mut [i16],
    ) {
        let Target { grid, row_window, origin, .. } = self.target;
        let pairs = pairs(self.rows.len());
        for (number, col) in self.columns.clone().enumerate() {
            let out = right[number * pairs..][..pairs].as_flattened_mut();
            self.operands.right().pack::<L>(col - origin.1, &self.rows, out, COLUMNS, 0);
        }
        let mut tile = I16Tile::new();
        let mut start = row_window.start.max(grid.first_row(self.columns.start));
        while start < row_window.end {
            let strip = start..start + strip_panels::<L, V>(row_window.end - start);
            let lanes = strip.len().next_multiple_of(L::WIDTH / BLOCK) * BLOCK;
            let left = &mut left[..pairs * lanes];
            self.pack_strip::<L>(&strip, left, lanes, right);
            for (number, col) in self.columns.clone().enumerate() {
                let (run, block) = self.target.run(col, &strip);
                if !run.is_empty() {
                    let factors = &right[number * pairs..][..pairs];
                    let out = &mut c[block * BLOCK_WORDS..][..run.len() * BLOCK_WORDS];
                    let left = PairStrip { words: left, stride: lanes, skipped: 0 };
                    self.tile::<L, V, C>(left, factors, run.start - start..run.end - start, &mut tile, out);
                }
            }
            start = strip.end;
        }
    }

    /// Pairs of rows of the panels of a strip side by side, zeros up to whole vectors.
    #[inline(always)]
    fn pack_strip<L: Lanes>(&self, strip: &Range<usize>, left: &mut [i32], lanes: usize, right: &[[i32; COLUMNS]]) {
        let all = pairs(self.rows.len());
        for (number, left) in left.chunks_mut(PAIRS_AT_A_TIME * lanes).enumerate() {
            let first = number * PAIRS_AT_A_TIME;
            self.pack_part::<L>(strip, first..(first + PAIRS_AT_A_TIME).min(all), left, lanes, right);
        }
    }

    /// Some pairs of rows of a strip, as `right` has them where it does.
    #[inline(always)]
    fn pack_part<L: Lanes>(
        &self,
        strip: &Range<usize>,
        part: Range<usize>,
        left: &mut [i32],
        lanes: usize,
        right: &[[i32; COLUMNS]],
    ) {
        let (pairs, origin) = (pairs(self.rows.len()), self.target.origin);
        let packed = self.columns.start - origin.1..self.columns.end - origin.1;
        let rows = self.rows.start + 2 * part.start..(self.rows.start + 2 * part.end).min(self.rows.end);
        for number in 0..strip.len().next_multiple_of(L::WIDTH / BLOCK) {
            let panel = strip.start + number - origin.0;
            if number >= strip.len() {
                for row in left.chunks_exact_mut(lanes) {
                    row[number * BLOCK..][..BLOCK].fill(0);
                }
            } else if self.operands.y.is_none() && packed.contains(&panel) {
                let from = &right[(panel - packed.start) * pairs..][part.clone()];
                for (row, from) in left.chunks_exact_mut(lanes).zip(from) {
                    row[number * BLOCK..][..BLOCK].copy_from_slice(from);
                }
            } else {
                self.operands.x.pack::<L>(panel, &rows, left, lanes, number * BLOCK);
            }
        }
    }

    /// The blocks of one column in the panels `run` of the strip.
    #[inline(always)]
    fn tile<L: Lanes, const V: usize, const C: usize>(
        &self,
        left: PairStrip<'_>,
        right: &[[i32; COLUMNS]],
        run: Range<usize>,
        tile: &mut I16Tile,
        out: &mut [i16],
    ) {
        let panels = L::WIDTH / BLOCK;
        let skipped = run.start / panels;
        let vectors = run.end.div_ceil(panels) - skipped;
        let strip = PairStrip { skipped: skipped * L::WIDTH, ..left };
        let (first, out) = (run.start - skipped * panels, bytemuck::cast_slice_mut(out));
        blocks::<L, V, C>(vectors, (strip, right), self.field, tile, first, out, self.adds);
    }
}
