//! The micro-kernel of both conversions, and the reduction modulo one prime.
//!
//! A conversion is a product `out[o][lane] = sum_t rows[t][lane] * table[t][o]` of integers held in doubles, with a
//! table that is made once: digits by radix powers for the conversion to residues, residues by digits of `M / p_i` for
//! the conversion back. `math::bound::f64_digit_bits` keeps all sums below `2^51`, so no operation rounds.
#![forbid(unsafe_code)]

use super::simd::{DoubleVector, LANES};

/// Outputs that the micro-kernel computes at a time.
pub const OUTPUTS: usize = 6;

/// Adding and subtracting `1.5 * 2^52` rounds a double below `2^51` to the nearest integer, ties to even.
pub const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// The constant factors of a conversion, grouped for the micro-kernel.
pub struct F64Table {
    terms: usize,
    outputs: usize,
    groups: Vec<[f64; OUTPUTS]>,
}

impl F64Table {
    /// The table with `entry(term, output)`.
    pub fn new(terms: usize, outputs: usize, entry: impl Fn(usize, usize) -> f64) -> F64Table {
        let mut groups = vec![[0.0; OUTPUTS]; terms * outputs.div_ceil(OUTPUTS)];
        for output in 0..outputs {
            for term in 0..terms {
                groups[output / OUTPUTS * terms + term][output % OUTPUTS] = entry(term, output);
            }
        }
        F64Table { terms, outputs, groups }
    }

    /// Number of products in each sum.
    pub fn terms(&self) -> usize {
        self.terms
    }

    /// Number of sums.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// The factors of outputs `OUTPUTS * index..`, term by term; those past the last output are 0.
    #[inline(always)]
    pub fn group(&self, index: usize) -> &[[f64; OUTPUTS]] {
        &self.groups[index * self.terms..][..self.terms]
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        (self.groups.len() * OUTPUTS * 8) as u64
    }
}

/// Sums of one group of outputs for the `N` vectors of lanes from `first` on; `rows` has `stride` vectors per term.
#[inline(always)]
pub fn combine<V: DoubleVector, const N: usize>(
    rows: &[[f64; LANES]],
    stride: usize,
    first: usize,
    group: &[[f64; OUTPUTS]],
) -> [[V; N]; OUTPUTS] {
    let mut sums = [[V::splat(0.0); N]; OUTPUTS];
    for (row, factors) in rows.chunks_exact(stride).zip(group) {
        let row = &row[first..first + N];
        let mut lanes = [V::splat(0.0); N];
        for n in 0..N {
            lanes[n] = V::load(&row[n]);
        }
        for output in 0..OUTPUTS {
            let factor = V::splat(factors[output]);
            for n in 0..N {
                sums[output][n] = lanes[n].mul_add(factor, sums[output][n]);
            }
        }
    }
    sums
}

/// A modulus ready for reductions.
#[derive(Clone, Copy)]
pub struct F64Reducer<V> {
    inverse: V,
    negated: V,
    rounder: V,
}

impl<V: DoubleVector> F64Reducer<V> {
    /// The modulus `prime`, given with the double nearest to its inverse.
    #[inline(always)]
    pub fn new(prime: f64, inverse: f64) -> F64Reducer<V> {
        F64Reducer { inverse: V::splat(inverse), negated: V::splat(-prime), rounder: V::splat(ROUNDER) }
    }

    /// A residue of the integers `sum`: balanced where `|sum| < 2^51`, at most 2 beyond where `|sum| < 2^53`.
    ///
    /// `|sum * inverse - sum / p| <= 2^-52 (1 + 2^-53) |sum| / p`. Below `2^51` that is less than `1 / 2p`, the least
    /// distance of `sum / p` from a half (`p` is odd), so the quotient is the nearest integer. Below `2^53` the
    /// quotient is within `1/2 + 2.01 / p`. Both products are exact: see `math::bound::f64_largest_modulus`.
    #[inline(always)]
    pub fn reduce(self, sum: V) -> V {
        let quotient = sum.mul_add(self.inverse, self.rounder).sub(self.rounder);
        quotient.mul_add(self.negated, sum)
    }
}
