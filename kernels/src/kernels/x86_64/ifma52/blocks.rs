//! Blocks of a product's plane as vectors: reading, writing, adding.

use super::micro::Fold;
use crate::plan::{BLOCK, BLOCK_WORDS};
use std::arch::x86_64::*;

/// A block as 8 columns.
pub type VectorBlock = [__m512i; BLOCK];

/// Block number `index` of a plane.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn load_block(words: &[u64], index: usize) -> VectorBlock {
    let block = &words[index * BLOCK_WORDS..][..BLOCK_WORDS];
    // SAFETY: the block has 64 words.
    std::array::from_fn(|column| unsafe { _mm512_loadu_si512(block.as_ptr().add(column * BLOCK).cast()) })
}

/// Writes block number `index` of a plane.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn store_block(words: &mut [u64], index: usize, block: VectorBlock) {
    let words = &mut words[index * BLOCK_WORDS..][..BLOCK_WORDS];
    for (column, vector) in block.into_iter().enumerate() {
        // SAFETY: the block has 64 words.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().add(column * BLOCK).cast(), vector) };
    }
}

/// `a + b`, entry by entry.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn add_blocks(fold: &Fold, a: VectorBlock, b: VectorBlock) -> VectorBlock {
    std::array::from_fn(|column| fold.add(a[column], b[column]))
}
