//! Residues of one block back to signed integers: scaled residues times the digits of `M / p_i`, less the quotient
//! times `M`, then carries.
//!
//! With `y_i = r_i (M / p_i)^-1 mod p_i`, balanced, `sum_i y_i (M / p_i) = x + q M` and `sum_i y_i / p_i = x / M + q`.
//! The second sum in doubles has an error below `n^2 2^-53 < 2^-35`, so rounding it gives `q` for all
//! `|x| < (1/2 - 2^-35) M`, and otherwise an `x` that is off by `M` but still at least `(1/2 - 2^-35) M` in size,
//! which the range check refuses.
//! Promise: any 64-bit words are taken as residues of some integers, so that a damaged word can at most change a
//! residue of its own plane; allocates nothing.
#![forbid(unsafe_code)]

use super::combine::{F64Reducer, OUTPUTS, ROUNDER, combine};
use super::simd::{DoubleVector, F64Task, LANES};
use super::tables::F64Tables;
use crate::kernels::radix::{Whole, carry, take_magnitudes};
use crate::kernels::{BlockResidues, IntegerBlock};
use crate::plan::BLOCK_WORDS;

/// Vectors of a block.
const VECTORS: usize = BLOCK_WORDS / LANES;

/// No word of a product plane that `multiply` wrote is larger.
const LARGEST_RESIDUE: f64 = 16_777_216.0;

/// One block to reconstruct.
pub struct F64Reconstruct<'a> {
    /// Moduli and tables.
    pub tables: &'a F64Tables,
    /// The positions of the residues.
    pub residues: &'a BlockResidues<'a>,
    /// The output.
    pub integers: &'a mut IntegerBlock,
    /// [`scratch_words`] words.
    pub scratch: &'a mut [u64],
}

/// Words of scratch for one call.
pub fn scratch_words(tables: &F64Tables) -> usize {
    (tables.cofactors.terms() + tables.cofactors.outputs() + tables.result.limbs()) * BLOCK_WORDS
}

impl F64Task for F64Reconstruct<'_> {
    #[inline(always)]
    fn run<V: DoubleVector, const N: usize>(self) {
        let tables = self.tables;
        let (scaled, rest) = self.scratch.split_at_mut(tables.cofactors.terms() * BLOCK_WORDS);
        let (sums, rest) = rest.split_at_mut(tables.cofactors.outputs() * BLOCK_WORDS);
        let limbs = &mut rest[..tables.result.limbs() * BLOCK_WORDS];
        let scaled = bytemuck::cast_slice_mut::<u64, f64>(scaled).as_chunks_mut::<LANES>().0;
        let sums: &mut [f64] = bytemuck::cast_slice_mut(sums);
        scale_residues::<V>(tables, self.residues, scaled);
        multiply_cofactors::<V, N>(tables, scaled, sums.as_chunks_mut::<LANES>().0);
        let negative = carry(tables.result, sums, limbs);
        take_magnitudes(limbs, &negative, self.integers);
    }
}

/// The words of a prime that follow the block: they are most likely read next, and the planes are too far apart for the
/// processor to guess it. The block itself where it is the last one of the window.
#[inline(always)]
fn next_block<'a>(residues: &BlockResidues<'a>, prime: usize) -> &'a [[f64; LANES]] {
    let start = prime * residues.plane_words + residues.offset;
    let next = residues.window.get(start + BLOCK_WORDS..start + 2 * BLOCK_WORDS);
    bytemuck::cast_slice::<u64, f64>(next.unwrap_or(residues.of_prime(prime))).as_chunks::<LANES>().0
}

/// Writes `y_i` for each prime, then `-q`.
#[inline(always)]
fn scale_residues<V: DoubleVector>(tables: &F64Tables, residues: &BlockResidues<'_>, scaled: &mut [[f64; LANES]]) {
    let (low, high, rounder) = (V::splat(-LARGEST_RESIDUE), V::splat(LARGEST_RESIDUE), V::splat(ROUNDER));
    let mut quotients = [V::splat(0.0); VECTORS];
    for (prime, scaled) in scaled.chunks_exact_mut(VECTORS).take(tables.moduli.len()).enumerate() {
        let inverse = V::splat(tables.inverses[prime]);
        let reducer = F64Reducer::<V>::new(tables.primes[prime], tables.inverses[prime]);
        let weight = V::splat(tables.weights[prime]);
        let words: &[f64] = bytemuck::cast_slice(residues.of_prime(prime));
        let words = words.as_chunks::<LANES>().0;
        let next = next_block(residues, prime);
        for n in 0..VECTORS {
            V::prefetch(&next[n]);
            // Clamping and rounding change no word that `multiply` wrote.
            let residue = V::load(&words[n]).clamp(low, high).add(rounder).sub(rounder);
            let y = reducer.reduce(residue.mul_add(weight, V::splat(0.0)));
            quotients[n] = y.mul_add(inverse, quotients[n]);
            y.store(&mut scaled[n]);
        }
    }
    let last = &mut scaled[tables.moduli.len() * VECTORS..];
    for n in 0..VECTORS {
        let quotient = quotients[n].add(rounder).sub(rounder);
        V::splat(0.0).sub(quotient).store(&mut last[n]);
    }
}

/// Writes the sum of each digit position.
#[inline(always)]
fn multiply_cofactors<V: DoubleVector, const N: usize>(
    tables: &F64Tables,
    scaled: &[[f64; LANES]],
    sums: &mut [[f64; LANES]],
) {
    let outputs = tables.cofactors.outputs();
    for group in 0..outputs.div_ceil(OUTPUTS) {
        let table = tables.cofactors.group(group);
        for first in (0..VECTORS).step_by(N) {
            let digits = combine::<V, N>(scaled, VECTORS, first, table);
            for output in 0..OUTPUTS.min(outputs - group * OUTPUTS) {
                let sums = &mut sums[(group * OUTPUTS + output) * VECTORS + first..][..N];
                for n in 0..N {
                    digits[output][n].store(&mut sums[n]);
                }
            }
        }
    }
}

/// A sum of a digit position is an integer below `2^51`.
impl Whole for f64 {
    #[inline(always)]
    fn whole(self) -> i64 {
        // The rounder holds it in its low bits.
        (self + ROUNDER).to_bits().wrapping_sub(ROUNDER.to_bits()) as i64
    }
}
