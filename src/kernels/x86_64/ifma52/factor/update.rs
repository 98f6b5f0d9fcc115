//! `T := T - X Y^T` on residues: register tiles whose sums run through several tiles before they are folded.

use super::super::micro::Fold;
use super::Layout;
use crate::kernels::tiles::{TilePair, TileShape};
use crate::math::bound::IFMA52_CHUNK_ROWS;
use crate::plan::BLOCK;
use std::arch::x86_64::*;

/// Columns of X and Y between two folds: a panel of Y of so many stays in the first-level cache.
const DEPTH: usize = 512;

/// Most tiles between two folds.
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
pub struct Ahead {
    pieces: [(usize, usize); 2 * SEGMENTS],
    count: usize,
    at: usize,
}

impl Ahead {
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
pub unsafe fn subtract_block(fold: &Fold, segments: &[Segment], depth: usize, c: *mut u64, ahead: &mut Ahead) {
    debug_assert!(segments.len() * depth <= IFMA52_CHUNK_ROWS);
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

/// See `TileEngine::update`; `primes` planes of each tile, modulo `primes[i]`.
#[target_feature(enable = "avx512f,avx512ifma")]
pub fn update(primes: &[u64], shape: TileShape, words: &mut [u64], pairs: &[TilePair<'_>], depth: usize) {
    if pairs.is_empty() || depth == 0 {
        return;
    }
    let own = Layout::new(primes.len(), 0, shape);
    let left = Layout::new(primes.len(), 0, TileShape { cols: depth, diagonal: false, ..shape });
    let right = Layout::new(primes.len(), 0, TileShape { rows: shape.cols, cols: depth, diagonal: false });
    assert!(words.len() >= own.residue_words() && depth <= IFMA52_CHUNK_ROWS);
    for pair in pairs {
        assert!(pair.x.len() >= left.residue_words() && pair.y.len() >= right.residue_words());
    }
    let group = (DEPTH / depth).clamp(1, SEGMENTS);
    let groups = pairs.chunks(group).collect::<Vec<_>>();
    for (index, &prime) in primes.iter().enumerate() {
        let fold = Fold::new(prime);
        for (number, pairs) in groups.iter().enumerate() {
            let mut ahead = Ahead::default();
            let next = if number + 1 < groups.len() { (index, number + 1) } else { (index + 1, 0) };
            if next.0 < primes.len() {
                for pair in groups[next.1] {
                    ahead.add(&pair.x[left.residue(next.0, 0, 0)..][..left.plane_words()]);
                    if !shape.diagonal {
                        ahead.add(&pair.y[right.residue(next.0, 0, 0)..][..right.plane_words()]);
                    }
                }
            }
            let mut segments = [Segment { x: std::ptr::null(), y: std::ptr::null() }; SEGMENTS];
            for block in 0..shape.cols.div_ceil(BLOCK) {
                let first = if shape.diagonal { block } else { 0 };
                for panel in first..shape.panels() {
                    for (segment, pair) in segments.iter_mut().zip(*pairs) {
                        segment.x = pair.x[left.residue(index, panel, 0)..].as_ptr();
                        segment.y = pair.y[right.residue(index, block, 0)..].as_ptr();
                    }
                    let c = words[own.residue(index, panel, block * BLOCK)..].as_mut_ptr();
                    // SAFETY: the lengths asserted above give every panel its `depth` columns and C its blocks;
                    // `group * depth` is at most 4092.
                    unsafe { subtract_block(&fold, &segments[..pairs.len()], depth, c, &mut ahead) };
                }
            }
        }
    }
}
