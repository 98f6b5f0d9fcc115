//! Random matrices: ChaCha8, one stream per column, so that columns can be made in any order.
//!
//! An entry is `s * u` with a fair sign `s` and `u` uniform in (0, 1) cut to a full significand: the number of leading
//! zero bits is drawn by its own law (so small entries are as rare as they should be) and the significand after them
//! has all its bits. Source of the stream: the ChaCha8 generator, which is specified to the bit.

use super::columns::MatrixPart;
use crate::error::Result;
use crate::math::float::Head;
use crate::matrix::Matrix;
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::ops::Range;

/// Rows and columns of a graded matrix are scaled by powers of two of at most this magnitude.
const GRADED_EXPONENT: i64 = 2000;

/// Streams of the scales; columns have the streams `0, 1, ...`.
const ROW_SCALES: u64 = u64::MAX;
const COLUMN_SCALES: u64 = u64::MAX - 1;

/// Entries uniform in (-1, 1).
pub fn random(part: &MatrixPart, seed: u64) -> Result<Matrix> {
    fill(part, seed, |_, _| 0)
}

/// Entries `2^(r_i + c_j)` times uniform ones.
pub fn graded(part: &MatrixPart, seed: u64) -> Result<Matrix> {
    let scales = |stream: u64, range: &Range<usize>| -> Vec<i64> {
        let mut generator = generator(seed, stream);
        // A scale takes one word of 64 bits; positions are counted in words of 32.
        generator.set_word_pos(2 * range.start as u128);
        range.clone().map(|_| draw_scale(&mut generator)).collect()
    };
    let (rows, columns) = (scales(ROW_SCALES, &part.rows), scales(COLUMN_SCALES, &part.cols));
    fill(part, seed, |row, col| rows[row - part.rows.start] + columns[col - part.cols.start])
}

fn generator(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(stream);
    generator
}

/// Uniform in [-2000, 2000], by the high word of a product (its bias, 2^-52, does not matter here).
fn draw_scale(generator: &mut ChaCha8Rng) -> i64 {
    let values = (2 * GRADED_EXPONENT + 1) as u128;
    ((u128::from(generator.next_u64()) * values) >> 64) as i64 - GRADED_EXPONENT
}

/// Makes a block; `scale` gives the power of two of each entry.
fn fill(part: &MatrixPart, seed: u64, scale: impl Fn(usize, usize) -> i64 + Sync) -> Result<Matrix> {
    let mut matrix = part.zeros()?;
    let (rows, limbs) = (matrix.rows(), matrix.limbs_per_element());
    let spare_bits = limbs as u32 * 64 - matrix.precision_bits();
    let (heads, all_limbs) = matrix.parts_mut();
    let columns = heads.par_chunks_mut(rows).zip(all_limbs.par_chunks_mut(rows * limbs));
    columns.zip(part.cols.clone()).for_each(|((heads, all_limbs), col)| {
        let mut generator = generator(seed, col as u64);
        // The entries above the block are drawn as well: the number of words that they take is unknown.
        let mut unused = vec![0; limbs];
        for _ in 0..part.rows.start {
            draw_entry(&mut generator, &mut unused, spare_bits, 0);
        }
        for ((head, limbs), row) in heads.iter_mut().zip(all_limbs.chunks_mut(limbs)).zip(part.rows.clone()) {
            *head = draw_entry(&mut generator, limbs, spare_bits, scale(row, col)).0;
        }
    });
    Ok(matrix)
}

/// Draws a significand into `limbs` and returns the head of the number.
fn draw_entry(generator: &mut ChaCha8Rng, limbs: &mut [u64], spare_bits: u32, scale: i64) -> Head {
    let mut leading_zeros = 0;
    let negative = loop {
        let word = generator.next_u64();
        // The lowest bit is the sign; a run of zeros through the other 63 goes on in the next word.
        leading_zeros += i64::from((word | 1).leading_zeros());
        if word > 1 {
            break word & 1 == 1;
        }
    };
    for limb in limbs.iter_mut() {
        *limb = generator.random();
    }
    limbs[0] &= u64::MAX << spare_bits;
    limbs[limbs.len() - 1] |= 1 << 63;
    Head::new(negative, scale - leading_zeros)
}
