//! `T := T - X Y^T` on residues: register tiles whose sums run through several tiles before they are folded.

use super::super::micro::Fold;
use super::FactorTileLayout;
use crate::kernels::tiles::{TileShape, UpdateTile};
use crate::math::bound::IFMA52_CHUNK_ROWS;
use crate::plan::BLOCK;
use std::arch::x86_64::*;
use std::ops::Range;

/// Columns of X and Y between two folds: a panel of Y with this number of columns stays in the first-level cache.
const DEPTH: usize = 512;

/// The largest number of tiles between two folds.
const SEGMENTS: usize = 16;

/// Columns per turn of the inner loop.
const UNROLL: usize = 4;

/// Two panels to contract, the first residue of each.
#[derive(Clone, Copy)]
pub struct Segment {
    /// Panel of X.
    pub x: *const u64,
    /// Panel of Y.
    pub y: *const u64,
}

/// Memory that the next group will read, fetched line by line into the second-level cache while this one is at work.
///
/// Only a hint: the addresses are never read.
#[derive(Default)]
pub struct GroupPrefetch {
    pieces: [(usize, usize); 2 * SEGMENTS],
    count: usize,
    at: usize,
}

impl GroupPrefetch {
    /// The panels of one plane of each tile.
    fn add(&mut self, words: &[u64]) {
        if self.count < self.pieces.len() {
            self.pieces[self.count] = (words.as_ptr() as usize, words.len() / BLOCK);
            self.count += 1;
        }
    }

    /// Where the next `lines` lines lie; past the end, always the same spot.
    fn take(&mut self, lines: usize) -> *const u64 {
        let Some((start, left)) = self.pieces[..self.count].get_mut(self.at) else {
            return std::ptr::null();
        };
        let pointer = *start as *const u64;
        let lines = lines.min(*left);
        (*start, *left) = (*start + lines * BLOCK * 8, *left - lines);
        self.at += usize::from(*left == 0);
        pointer
    }
}

/// `C := C - sum over segments of X^T Y` for one 8 x 8 block.
///
/// # Safety
/// Each segment points to `depth` columns of 8 words, `c` to a block of 64 words below `2^52`; `depth` times the number
/// of segments is at most 4092.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub unsafe fn subtract_block(fold: &Fold, segments: &[Segment], depth: usize, c: *mut u64, ahead: &mut GroupPrefetch) {
    assert!(segments.len() * depth <= IFMA52_CHUNK_ROWS);
    let mut lo = [_mm512_setzero_si512(); BLOCK];
    let mut hi = [_mm512_setzero_si512(); BLOCK];
    // SAFETY: the caller promises `depth` columns behind both pointers of each segment, and the block behind `c`.
    unsafe {
        for column in 0..BLOCK {
            _mm_prefetch::<_MM_HINT_T0>(c.add(column * BLOCK).cast());
        }
        for segment in segments {
            let (mut x, mut y) = (segment.x, segment.y);
            let mut next = ahead.take(depth / UNROLL);
            macro_rules! column {
                ($at:expr) => {
                    let left = _mm512_loadu_si512(x.add($at * BLOCK).cast());
                    for column in 0..BLOCK {
                        let right = _mm512_set1_epi64(*y.add(column + $at * BLOCK) as i64);
                        lo[column] = _mm512_madd52lo_epu64(lo[column], left, right);
                        hi[column] = _mm512_madd52hi_epu64(hi[column], left, right);
                    }
                };
            }
            for _ in 0..depth / UNROLL {
                column!(0);
                column!(1);
                column!(2);
                column!(3);
                _mm_prefetch::<_MM_HINT_T1>(next.cast());
                next = next.wrapping_add(BLOCK);
                x = x.add(UNROLL * BLOCK);
                y = y.add(UNROLL * BLOCK);
            }
            for _ in 0..depth % UNROLL {
                column!(0);
                x = x.add(BLOCK);
                y = y.add(BLOCK);
            }
        }
        for column in 0..BLOCK {
            let at = c.add(column * BLOCK);
            let sum = fold.fold(lo[column], hi[column]);
            _mm512_storeu_si512(at.cast(), fold.subtract(_mm512_loadu_si512(at.cast()), sum));
        }
    }
}

/// Operands on the side of the columns, for all tiles of a call: as many as stay in the second-level cache.
const SHARED_WORDS: usize = (768 << 10) / 8;

/// A step of an update: one tile of the call, and a range of the operands.
struct UpdateStep {
    tile: usize,
    operands: Range<usize>,
}

/// The steps for one prime: the operands that the tiles share are read from memory once.
fn steps(tiles: usize, operands: usize, depth: usize, plane_words: usize) -> Vec<UpdateStep> {
    let group = (DEPTH / depth).clamp(1, SEGMENTS);
    let shared = (SHARED_WORDS / plane_words / group * group).max(group);
    let mut steps = Vec::with_capacity(tiles * operands.div_ceil(group));
    for start in (0..operands).step_by(shared) {
        let end = (start + shared).min(operands);
        for tile in 0..tiles {
            let groups = (start..end).step_by(group).map(|at| at..(at + group).min(end));
            steps.extend(groups.map(|operands| UpdateStep { tile, operands }));
        }
    }
    steps
}

/// See `TileEngine::update`; `primes` planes of each tile, modulo `primes[i]`.
#[target_feature(enable = "avx512f,avx512ifma")]
pub fn update(primes: &[u64], tiles: &mut [UpdateTile<'_>], y: &[&[u64]], depth: usize) {
    let Some(cols) = tiles.first().map(|tile| tile.shape.cols) else { return };
    if y.is_empty() || depth == 0 {
        return;
    }
    let left = |shape| FactorTileLayout::new(primes.len(), 0, TileShape { cols: depth, diagonal: false, ..shape });
    let right = left(TileShape { rows: cols, cols, diagonal: false });
    assert!(depth <= IFMA52_CHUNK_ROWS && y.iter().all(|y| y.len() >= right.residue_words()));
    for tile in &*tiles {
        let own = FactorTileLayout::new(primes.len(), 0, tile.shape);
        assert!(tile.shape.cols == cols && tile.words.len() >= own.residue_words() && tile.x.len() == y.len());
        assert!(tile.x.iter().all(|x| x.len() >= left(tile.shape).residue_words()));
    }
    let steps = steps(tiles.len(), y.len(), depth, right.plane_words());
    for (index, &prime) in primes.iter().enumerate() {
        let fold = Fold::new(prime);
        for (number, step) in steps.iter().enumerate() {
            let mut ahead = GroupPrefetch::default();
            let next = if number + 1 < steps.len() { (index, number + 1) } else { (index + 1, 0) };
            if next.0 < primes.len() {
                let UpdateStep { tile, operands } = &steps[next.1];
                let shape = tiles[*tile].shape;
                for at in operands.clone() {
                    ahead.add(left(shape).plane(next.0, tiles[*tile].x[at]));
                    if *tile == 0 && !shape.diagonal {
                        ahead.add(right.plane(next.0, y[at]));
                    }
                }
            }
            let UpdateTile { shape, words, x, .. } = &mut tiles[step.tile];
            let (own, left) = (FactorTileLayout::new(primes.len(), 0, *shape), left(*shape));
            let mut segments = [Segment { x: std::ptr::null(), y: std::ptr::null() }; SEGMENTS];
            for block in 0..cols.div_ceil(BLOCK) {
                let first = if shape.diagonal { block } else { 0 };
                for panel in first..shape.panels() {
                    for (segment, at) in segments.iter_mut().zip(step.operands.clone()) {
                        segment.x = x[at][left.residue(index, panel, 0)..].as_ptr();
                        segment.y = y[at][right.residue(index, block, 0)..].as_ptr();
                    }
                    let c = words[own.residue(index, panel, block * BLOCK)..].as_mut_ptr();
                    // SAFETY: the lengths asserted above give every panel its `depth` columns and C its blocks; a
                    // step has at most `max(DEPTH, depth)` columns, below 4092.
                    unsafe { subtract_block(&fold, &segments[..step.operands.len()], depth, c, &mut ahead) };
                }
            }
        }
    }
}
