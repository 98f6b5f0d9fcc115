//! Residues of one block back to signed integers: bytes of weighted residues times the bytes of `M / m_i`, less the
//! quotient times `M`, then carries.
//!
//! With `y_i = r_i (M / m_i)^-1 mod m_i`, least, `sum_i y_i (M / m_i) = x + q M` and `sum_i y_i / m_i = x / M + q`. The
//! second sum in doubles has an error below `n^2 2^-52 < 2^-32`, so rounding it gives `q` for all
//! `|x| < (1/2 - 2^-32) M`, and otherwise an `x` that is off by `M` but still at least `(1/2 - 2^-32) M` in size, which
//! the range check refuses.
//! Promise: any words are taken as residues of some integers, so that a damaged word can at most change residues of
//! its own plane; allocates nothing.
#![forbid(unsafe_code)]

use super::RESIDUE_WORDS;
use super::tables::I8Tables;
use super::tiles::{
    AlignedSums, Extent, GROUP, I8Task, LINE_WORDS, SIDE, STEP_GROUPS, STEP_WORDS, TileColumns, Unit, aligned,
    columns_mut,
};
use super::vectors::{Vector, WORDS};
use crate::kernels::radix::{Whole, carry, take_magnitudes};
use crate::kernels::{BlockResidues, IntegerBlock};
use crate::plan::BLOCK_WORDS;

/// Tiles of columns that the entries of a block make.
const STRIPS: usize = BLOCK_WORDS / SIDE;

/// `1.5 * 2^52`: adding it to a small double rounds that to an integer, which the low bits of the sum then hold.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// One block to reconstruct.
pub struct I8Reconstruct<'a> {
    /// Moduli and tables.
    pub tables: &'a I8Tables,
    /// The positions of the residues.
    pub residues: &'a BlockResidues<'a>,
    /// The output.
    pub integers: &'a mut IntegerBlock,
    /// [`scratch_words`] words.
    pub scratch: &'a mut [u64],
}

/// Words of scratch for one call.
pub fn scratch_words(tables: &I8Tables) -> usize {
    let (positions, limbs) = (tables.result_words.count * BLOCK_WORDS, tables.result_words.limbs() * BLOCK_WORDS);
    limbs + positions + positions * GROUP / 2 + STRIPS * tables.cofactors.steps() * STEP_WORDS / 2 + LINE_WORDS
}

/// A sum of the positions of four bytes.
impl Whole for i64 {
    #[inline(always)]
    fn whole(self) -> i64 {
        self
    }
}

impl I8Task for I8Reconstruct<'_> {
    #[inline(always)]
    fn run<U: Unit>(self) {
        let (tables, shape) = (self.tables, self.tables.result_words);
        let count = shape.count * GROUP;
        let (limbs, rest) = self.scratch.split_at_mut(shape.limbs() * BLOCK_WORDS);
        let (words, rest) = rest.split_at_mut(shape.count * BLOCK_WORDS);
        let (positions, rest) = rest.split_at_mut(count * BLOCK_WORDS / 2);
        let positions: &mut [i32] = bytemuck::cast_slice_mut(positions);
        let words: &mut [i64] = bytemuck::cast_slice_mut(words);
        let strip_steps = tables.cofactors.steps();
        let weighted = columns_mut(&mut aligned(rest)[..STRIPS * strip_steps * STEP_WORDS]);
        weigh::<U::Vectors>(tables, self.residues, weighted);
        let mut sums = AlignedSums::new();
        for strip in 0..tables.cofactors.strips() {
            let outputs = strip * SIDE..(strip * SIDE + SIDE).min(count);
            let extent = Extent { groups: tables.cofactors.groups(), rows: outputs.len(), columns: SIDE };
            for (number, columns) in weighted.chunks_exact(strip_steps).enumerate() {
                U::multiply::<false>(tables.cofactors.strip(strip), columns, extent, &mut sums.0);
                for (output, sums) in outputs.clone().zip(&sums.0) {
                    positions[output * BLOCK_WORDS + number * SIDE..][..SIDE].copy_from_slice(sums);
                }
            }
        }
        join(positions, words);
        let negative = carry(shape, words, limbs);
        take_magnitudes(limbs, &negative, self.integers);
    }
}

/// The sums of each four positions of bytes as one: at most `2^26 (1 + 2^8 + 2^16 + 2^24) < 2^51`.
#[inline(always)]
fn join(positions: &[i32], words: &mut [i64]) {
    let positions = positions.as_chunks::<BLOCK_WORDS>().0.as_chunks::<GROUP>().0;
    for (positions, words) in positions.iter().zip(words.as_chunks_mut::<BLOCK_WORDS>().0) {
        for entry in 0..BLOCK_WORDS {
            let at = |byte: usize| i64::from(positions[byte][entry]) << (8 * byte);
            words[entry] = at(0) + at(1) + at(2) + at(3);
        }
    }
}

/// The residues of the next block for one modulus, as far as the window goes.
#[inline(always)]
fn block_behind<'a>(residues: &BlockResidues<'a>, modulus: usize) -> &'a [u64] {
    let start = (modulus * residues.plane_words + residues.offset + RESIDUE_WORDS).min(residues.window.len());
    &residues.window[start..(start + RESIDUE_WORDS).min(residues.window.len())]
}

/// Weighted residues of all entries for one modulus, added to the quotients.
#[inline(always)]
fn weigh_one<V: Vector>(
    tables: &I8Tables,
    residues: &BlockResidues<'_>,
    modulus: usize,
    sum: &mut [f64; BLOCK_WORDS],
) -> [u32; 64] {
    let words: &[u16] = bytemuck::cast_slice(residues.words_of_prime(modulus, RESIDUE_WORDS));
    let words: &[u16; BLOCK_WORDS] = words.first_chunk().expect("a block");
    // The block that is taken next lies right behind in every plane: too many places for the CPU to see them coming.
    V::prefetch(bytemuck::cast_slice(block_behind(residues, modulus)));
    let (reducer, weight) = (tables.reducers[modulus], V::splat(tables.weights[modulus] as u32));
    let mut weighted = [0; BLOCK_WORDS];
    for (words, weighted) in words.as_chunks::<WORDS>().0.iter().zip(weighted.as_chunks_mut::<WORDS>().0) {
        let mut wide = [0; WORDS];
        for entry in 0..WORDS {
            wide[entry] = u32::from(words[entry]);
        }
        reducer.least_words(V::load(&wide).multiply(weight)).store(weighted);
    }
    let inverse = tables.inverses[modulus];
    for entry in 0..BLOCK_WORDS {
        sum[entry] += f64::from(weighted[entry]) * inverse;
    }
    weighted
}

/// Writes the bytes of `y_i` for each modulus, then those of `q`.
#[inline(always)]
fn weigh<V: Vector>(tables: &I8Tables, residues: &BlockResidues<'_>, columns: &mut [TileColumns]) {
    let mut quotients = [0.0; BLOCK_WORDS];
    let (mut group, count) = (0, tables.moduli.len());
    let each = |from: usize| if from < tables.singles { (GROUP, 8, tables.singles) } else { (2, 16, count) };
    let mut from = 0;
    while from < count {
        let (width, bits, end) = each(from);
        let mut words = [0u32; BLOCK_WORDS];
        for (number, modulus) in (from..(from + width).min(end)).enumerate() {
            let weighted = weigh_one::<V>(tables, residues, modulus, &mut quotients);
            for entry in 0..BLOCK_WORDS {
                words[entry] |= weighted[entry] << (bits * number);
            }
        }
        put(columns, group, &words);
        group += 1;
        from = (from + width).min(end);
    }
    let mut words = [0; BLOCK_WORDS];
    for entry in 0..BLOCK_WORDS {
        words[entry] = (quotients[entry] + ROUNDER).to_bits().wrapping_sub(ROUNDER.to_bits()) as u32;
    }
    put(columns, group, &words);
}

/// Writes one group of terms of all entries.
#[inline(always)]
fn put(columns: &mut [TileColumns], group: usize, words: &[u32; BLOCK_WORDS]) {
    let steps = columns.len() / STRIPS;
    for (number, words) in words.as_chunks::<16>().0.iter().enumerate() {
        columns[number / 2 * steps + group / STEP_GROUPS][number % 2][group % STEP_GROUPS] = *words;
    }
}
