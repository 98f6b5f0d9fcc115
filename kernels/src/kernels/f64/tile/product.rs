//! `C := C - X Y^T`, whole or its lower triangle, in blocks that the caches hold.
#![forbid(unsafe_code)]

use super::micro;
use super::pack::{self, ranges};
use super::{PackScratch, Tile, TileMut};
use crate::kernels::f64::simd::{DoubleVector, F64Task, LANES};
use std::ops::Range;

/// Columns of the operands that are packed at a time, at most: a strip of either side then fits in the first cache.
pub const DEPTH: usize = 192;

/// Rows of the left operand that are packed at a time, at most: they stay in the second cache.
pub const ROWS: usize = 264;

/// The largest number of rows of the right operand that are packed at a time.
pub const COLS: usize = 528;

/// The sum of some products, subtracted one after the other.
pub struct Product<'a> {
    /// The operands of each; all left ones have equally many rows, and all right ones.
    pub pairs: &'a [(Tile<'a>, Tile<'a>)],
    pub c: TileMut<'a>,
    /// Whether only entries on and below the diagonal of `C` are computed and written.
    pub lower: bool,
    pub scratch: &'a mut PackScratch,
}

impl F64Task for Product<'_> {
    #[inline(always)]
    fn run<V: DoubleVector, const N: usize>(self) {
        // With 32 registers a tile of 24 x 8 leaves room for its operands; two halves of 4 with 16 take 8 x 6.
        if N >= 4 { self.blocks::<V, 3, 8>() } else { self.blocks::<V, 1, 6>() }
    }
}

/// Nearly equal parts of at most `most`, multiples of `step`.
fn part_len(total: usize, most: usize, step: usize) -> usize {
    total.div_ceil(total.div_ceil(most).max(1)).next_multiple_of(step).clamp(step, most)
}

/// Operands that are packed next, and how far they have been prefetched.
///
/// They come from memory or from a cache shared with others, and packing would wait for each line. So the second cache
/// gets them a few lines at a time, while register tiles are computed.
struct OperandPrefetch<'a> {
    words: [&'a [f64]; 2],
    /// Lines for each register tile.
    lines: usize,
}

impl<'a> OperandPrefetch<'a> {
    /// The words of columns `cols` of both operands, by the time that `steps` register tiles are done.
    fn new(x: Tile<'a>, y: Tile<'a>, cols: Range<usize>, steps: usize) -> OperandPrefetch<'a> {
        let (x_words, y_words) = (x.contiguous(cols.clone()), y.contiguous(cols));
        let y_words = if x_words.as_ptr() == y_words.as_ptr() { &[] } else { y_words };
        let lines = (x_words.len() + y_words.len()).div_ceil(LANES).div_ceil(steps.max(1));
        OperandPrefetch { words: [x_words, y_words], lines }
    }

    /// Prefetches the next lines.
    #[inline(always)]
    fn step<V: DoubleVector>(&mut self) {
        for _ in 0..self.lines {
            if self.words[0].len() < LANES {
                self.words.swap(0, 1);
            }
            let Some((line, rest)) = self.words[0].split_first_chunk() else { return };
            V::prefetch_far(line);
            self.words[0] = rest;
        }
    }
}

impl<'a> Product<'a> {
    #[inline(always)]
    fn blocks<V: DoubleVector, const R: usize, const C: usize>(mut self) {
        for (index, &(x, y)) in self.pairs.iter().enumerate() {
            let depth = x.cols;
            for (first_k, part_k) in ranges(depth, part_len(depth, DEPTH, 1)) {
                let end = first_k + part_k;
                let mut ahead = self.ahead::<R, C>(index, end);
                self.part::<V, R, C>(x, y, first_k..end, &mut ahead);
            }
        }
    }

    /// The columns that follow those before `end` of pair `index`.
    fn ahead<const R: usize, const C: usize>(&self, index: usize, end: usize) -> OperandPrefetch<'a> {
        let steps = self.c.rows.div_ceil(R * LANES) * self.c.cols.div_ceil(C);
        let steps = if self.lower { steps / 2 } else { steps };
        let part = |depth: usize, first: usize| first..depth.min(first + part_len(depth, DEPTH, 1));
        let (x, y) = self.pairs[index];
        match self.pairs.get(index + 1) {
            _ if end < x.cols => OperandPrefetch::new(x, y, part(x.cols, end), steps),
            Some(&(x, y)) => OperandPrefetch::new(x, y, part(x.cols, 0), steps),
            None => OperandPrefetch { words: [&[]; 2], lines: 0 },
        }
    }

    /// The product of some columns of the operands.
    #[inline(always)]
    fn part<V: DoubleVector, const R: usize, const C: usize>(
        &mut self,
        x: Tile<'_>,
        y: Tile<'_>,
        depth: Range<usize>,
        ahead: &mut OperandPrefetch<'_>,
    ) {
        let (rows, cols) = (self.c.rows, self.c.cols);
        let (row_part, col_part) = (part_len(rows, ROWS, R * LANES), part_len(cols, COLS, C));
        for (first_col, part_cols) in ranges(cols, col_part) {
            let top = if self.lower { first_col / LANES * LANES } else { 0 };
            pack::strips::<C>(y, first_col..first_col + part_cols, depth.clone(), &mut self.scratch.right);
            for (below, part_rows) in ranges(rows.saturating_sub(top), row_part) {
                let first_row = top + below;
                let (rows, cols) = (first_row..first_row + part_rows, first_col..first_col + part_cols);
                pack::vectors::<R>(x, rows.clone(), depth.clone(), &mut self.scratch.left);
                self.block::<V, R, C>(rows, cols, depth.len(), ahead);
            }
        }
    }

    /// One packed block of rows by one packed block of columns.
    #[inline(always)]
    fn block<V: DoubleVector, const R: usize, const C: usize>(
        &mut self,
        rows: Range<usize>,
        cols: Range<usize>,
        depth: usize,
        ahead: &mut OperandPrefetch<'_>,
    ) {
        let (right, _) = self.scratch.right.as_chunks::<C>();
        let (left, _) = self.scratch.left.as_chunks::<LANES>();
        for ((col, width), y) in ranges(cols.len(), C).zip(right.chunks_exact(depth)) {
            for (row, height) in ranges(rows.len(), R * LANES) {
                let at = At { row: rows.start + row, col: cols.start + col, height, width };
                let vectors = height.div_ceil(LANES);
                let x = &left[row / LANES * depth..][..vectors * depth];
                if self.lower && at.row + height <= at.col {
                    continue;
                }
                ahead.step::<V>();
                match vectors {
                    3 if R >= 3 => at.update::<V, 3, C>(x, y, &mut self.c, self.lower),
                    2 if R >= 2 => at.update::<V, 2, C>(x, y, &mut self.c, self.lower),
                    _ => at.update::<V, 1, C>(x, y, &mut self.c, self.lower),
                }
            }
        }
    }
}

/// A register tile in the result.
struct At {
    row: usize,
    col: usize,
    height: usize,
    width: usize,
}

impl At {
    #[inline(always)]
    fn update<V: DoubleVector, const R: usize, const C: usize>(
        &self,
        x: &[[f64; LANES]],
        y: &[[f64; C]],
        c: &mut TileMut<'_>,
        lower: bool,
    ) {
        let stride = c.stride;
        let words = &mut c.words[self.col * stride + self.row..];
        let below_diagonal = !lower || self.row + 1 >= self.col + self.width;
        if self.height == R * LANES && self.width == C && below_diagonal {
            micro::prefetch::<V, R, C>(words, stride);
            let sums = micro::multiply::<V, R, C>(x, y);
            micro::store(&micro::subtract(&micro::load(words, stride), &sums), words, stride);
        } else {
            let sums = micro::multiply::<V, R, C>(x, y);
            self.subtract_part::<V, R, C>(&sums, words, stride, lower);
        }
    }

    /// Subtracts the sums from the entries that exist.
    #[inline(always)]
    fn subtract_part<V: DoubleVector, const R: usize, const C: usize>(
        &self,
        sums: &micro::RegisterSums<V, R, C>,
        words: &mut [f64],
        stride: usize,
        lower: bool,
    ) {
        let mut lanes = [[0.0; LANES]; R];
        for c in 0..C {
            if c < self.width {
                for r in 0..R {
                    sums[c][r].store(&mut lanes[r]);
                }
                let first = if lower { (self.col + c).saturating_sub(self.row).min(self.height) } else { 0 };
                let column = &mut words[c * stride..][first..self.height];
                for (entry, sum) in column.iter_mut().zip(&lanes.as_flattened()[first..]) {
                    *entry -= sum;
                }
            }
        }
    }
}
