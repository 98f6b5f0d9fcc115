//! Residues of one block back to signed integers: weighted residues times the digits of `M / p_i`, less the quotient
//! times `M`, then carries.
//!
//! With `y_i` equal to `r_i (M / p_i)^-1` modulo `p_i` and at most `9/16 p_i`, `sum_i y_i (M / p_i) = x + q M` and
//! `sum_i y_i / p_i = x / M + q`. The second sum is found in fixed point to `2^-9`, so rounding it gives `q` for all
//! `|x| < (1/2 - 2^-9) M`, and otherwise an `x` that is off by `M` but still at least `(1/2 - 2^-9) M` in size, which
//! the range check refuses.
//! Promise: any words are taken as residues of some integers, so that a damaged word can at most change residues of
//! its own plane; allocates nothing.
#![forbid(unsafe_code)]

use super::lanes::{I16Task, Lanes};
use super::micro::{COLUMNS, CONVERTED_VECTORS as VECTORS, PairStrip, sums};
use super::tables::{I16Table, ResultTables};
use super::{BLOCK_ENTRIES, RESIDUE_WORDS};
use crate::kernels::radix::{Whole, carry, take_magnitudes};
use crate::kernels::{BlockResidues, IntegerBlock};
use crate::math::bound::I16_QUOTIENT_BITS;

/// One block to reconstruct.
pub struct I16Reconstruct<'a> {
    /// Weights and digits.
    pub tables: &'a ResultTables,
    /// The positions of the residues.
    pub residues: &'a BlockResidues<'a>,
    /// The output.
    pub integers: &'a mut IntegerBlock,
    /// [`scratch_words`] words.
    pub scratch: &'a mut [u64],
}

/// Words of scratch for one call.
pub fn scratch_words(tables: &ResultTables) -> usize {
    let (weighted, positions) = (tables.cofactors.pairs(), tables.cofactors.groups() * COLUMNS);
    ((weighted + positions).div_ceil(2) + tables.result.limbs()) * BLOCK_ENTRIES
}

/// A sum of a digit position.
impl Whole for i32 {
    #[inline(always)]
    fn whole(self) -> i64 {
        i64::from(self)
    }
}

impl I16Task for I16Reconstruct<'_> {
    #[inline(always)]
    fn run<L: Lanes, const V: usize, const C: usize>(self) {
        let tables = self.tables;
        let (limbs, rest) = self.scratch.split_at_mut(tables.result.limbs() * BLOCK_ENTRIES);
        let rest: &mut [i32] = bytemuck::cast_slice_mut(rest);
        let (weighted, rest) = rest.split_at_mut(tables.cofactors.pairs() * BLOCK_ENTRIES);
        let positions = &mut rest[..tables.cofactors.groups() * COLUMNS * BLOCK_ENTRIES];
        weigh::<L>(tables, self.residues, weighted);
        subtract_quotients::<L, C>(tables, weighted, positions);
        multiply::<L, C>(weighted, &tables.cofactors, positions);
        let negative = carry(tables.result, &positions[..tables.result.count * BLOCK_ENTRIES], limbs);
        take_magnitudes(limbs, &negative, self.integers);
    }
}

/// Writes `y_i` for each pair of primes.
#[inline(always)]
fn weigh<L: Lanes>(tables: &ResultTables, residues: &BlockResidues<'_>, weighted: &mut [i32]) {
    const NONE: [i16; BLOCK_ENTRIES] = [0; BLOCK_ENTRIES];
    let of_prime = |prime: usize| bytemuck::cast_slice::<u64, i16>(residues.words_of_prime(prime, RESIDUE_WORDS));
    for (number, weights) in tables.weights.iter().enumerate() {
        let low = of_prime(2 * number);
        let high = if 2 * number + 1 < tables.count { of_prime(2 * number + 1) } else { &NONE };
        let out = &mut weighted[number * BLOCK_ENTRIES..][..BLOCK_ENTRIES];
        let (weight, ratio) = (L::splat(weights.weight), L::splat(weights.ratio));
        let prime = L::splat(weights.prime);
        for first in (0..BLOCK_ENTRIES).step_by(L::WIDTH) {
            let residue = L::widen(&low[first..]).pair(L::widen(&high[first..]));
            let quotient = residue.multiply_halves_high(ratio);
            let product = residue.multiply_halves(weight);
            product.sub_halves(quotient.multiply_halves(prime)).store(&mut out[first..]);
        }
    }
}

/// Writes `-q` behind the weighted residues.
#[inline(always)]
fn subtract_quotients<L: Lanes, const C: usize>(tables: &ResultTables, weighted: &mut [i32], positions: &mut [i32]) {
    multiply::<L, C>(weighted, &tables.quotients, positions);
    let (last, bits) = (tables.weights.len() * BLOCK_ENTRIES, tables.result.bits);
    let mut shares = [0i64; BLOCK_ENTRIES];
    for (digit, sums) in positions.chunks_exact(BLOCK_ENTRIES).take(tables.quotients.outputs()).enumerate() {
        for lane in 0..BLOCK_ENTRIES {
            shares[lane] += i64::from(sums[lane]) << (digit as u32 * bits);
        }
    }
    let out = &mut weighted[last..][..BLOCK_ENTRIES];
    for lane in 0..BLOCK_ENTRIES {
        let quotient = (shares[lane] + (1 << (I16_QUOTIENT_BITS - 1))) >> I16_QUOTIENT_BITS;
        out[lane] = (-quotient) as i32 & 0xffff;
    }
}

/// Sums of each output of a table over the pairs that it has, for all entries of a block.
#[inline(always)]
fn multiply<L: Lanes, const C: usize>(weighted: &[i32], table: &I16Table, out: &mut [i32]) {
    for group in 0..table.groups() {
        let out = &mut out[group * COLUMNS * BLOCK_ENTRIES..][..COLUMNS * BLOCK_ENTRIES];
        for first in (0..BLOCK_ENTRIES).step_by(VECTORS * L::WIDTH) {
            let strip = PairStrip { words: weighted, stride: BLOCK_ENTRIES, skipped: first };
            sums::<L, VECTORS, C>(strip, table.group(group), &mut out[first..], BLOCK_ENTRIES);
        }
    }
}
