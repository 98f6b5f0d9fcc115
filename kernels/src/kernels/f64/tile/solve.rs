//! `B := B L^-T`: strips of rows from the left to the right, one register tile after the other.
//!
//! A strip is packed as it is solved, so that its finished columns are at once the left operand of later sums.
#![forbid(unsafe_code)]

use super::micro::{self, RegisterSums};
use super::pack::{self, ranges};
use super::{PackScratch, Tile};
use crate::kernels::f64::simd::{DoubleVector, F64Task, LANES};

/// Columns that are solved for at a time: their triangle stays in the second cache.
pub const SOLVED_COLUMNS: usize = 256;

/// Triangle and solved strip lie packed in the scratch memory; the right side has `rows` rows of at most
/// [`SOLVED_COLUMNS`] columns, `stride` words apart.
pub struct Solve<'a> {
    pub triangle: Triangle,
    pub b: &'a mut [f64],
    pub rows: usize,
    pub stride: usize,
    pub scratch: &'a mut PackScratch,
}

/// A triangle packed by [`PackTriangle`]: its order.
#[derive(Clone, Copy)]
pub struct Triangle(usize);

/// Packs a lower triangle of at most [`SOLVED_COLUMNS`] columns as right operand of [`Solve`].
pub struct PackTriangle<'a> {
    pub l: Tile<'a>,
    pub scratch: &'a mut PackScratch,
}

impl PackTriangle<'_> {
    /// The order of the triangle.
    pub fn triangle(&self) -> Triangle {
        Triangle(self.l.cols)
    }

    /// Every strip is as deep as the triangle's order; its last `C` rows in use are the diagonal block.
    #[inline(always)]
    fn strips<const C: usize>(self) {
        let order = self.l.cols;
        let depth = order.next_multiple_of(C);
        for ((first, width), strip) in ranges(order, C).zip(self.scratch.right.chunks_exact_mut(C * depth)) {
            pack::strips::<C>(self.l, first..first + width, 0..first + width, strip);
            // Columns that are not there divide by 1.
            for missing in width..C {
                strip[(first + missing) * C..][..C].fill(0.0);
                strip[(first + missing) * C + missing] = 1.0;
            }
        }
    }
}

impl F64Task for PackTriangle<'_> {
    #[inline(always)]
    fn run<V: DoubleVector, const N: usize>(self) {
        if N >= 4 { self.strips::<8>() } else { self.strips::<6>() }
    }
}

impl F64Task for Solve<'_> {
    #[inline(always)]
    fn run<V: DoubleVector, const N: usize>(self) {
        if N >= 4 { self.all::<V, 3, 8>() } else { self.all::<V, 1, 6>() }
    }
}

impl Solve<'_> {
    #[inline(always)]
    fn all<V: DoubleVector, const R: usize, const C: usize>(mut self) {
        for (row, height) in ranges(self.rows, R * LANES) {
            match height.div_ceil(LANES) {
                3 if R >= 3 => self.strip::<V, 3, C>(row, height),
                2 if R >= 2 => self.strip::<V, 2, C>(row, height),
                _ => self.strip::<V, 1, C>(row, height),
            }
        }
    }

    /// A strip of at most `R` vectors of rows.
    #[inline(always)]
    fn strip<V: DoubleVector, const R: usize, const C: usize>(&mut self, row: usize, height: usize) {
        let Triangle(order) = self.triangle;
        let depth = order.next_multiple_of(C);
        let (left, _) = self.scratch.left.as_chunks_mut::<LANES>();
        let (right, _) = self.scratch.right.as_chunks::<C>();
        for ((col, width), y) in ranges(order, C).zip(right.chunks_exact(depth)) {
            let words = &mut self.b[col * self.stride + row..];
            let whole = height == R * LANES && width == C;
            let (solved, next) = left.split_at_mut(col * R);
            let known: RegisterSums<V, R, C> = micro::multiply(solved, &y[..col]);
            let given = match whole {
                true => micro::load(words, self.stride),
                false => micro::load_part(words, self.stride, height, width),
            };
            let mut sums = micro::subtract(&given, &known);
            micro::solve(&mut sums, &y[col..]);
            match whole {
                true => micro::store(&sums, words, self.stride),
                false => micro::store_part(&sums, words, self.stride, height, width),
            }
            for c in 0..C {
                for r in 0..R {
                    sums[c][r].store(&mut next[c * R + r]);
                }
            }
        }
    }
}
