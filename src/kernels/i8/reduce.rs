//! Residues of 32-bit sums.
#![forbid(unsafe_code)]

use super::tiles::{SIDE, Sums};
use crate::plan::BLOCK;

/// Least residues of the sums of a tile, row after row.
#[repr(C, align(64))]
pub struct Residues(pub [[u16; SIDE]; SIDE]);

impl Residues {
    /// Zeros.
    pub const fn new() -> Residues {
        Residues([[0; SIDE]; SIDE])
    }
}

/// A modulus, ready for reductions.
#[derive(Clone, Copy, Debug)]
pub struct Reducer {
    modulus: i32,
    inverse: f32,
}

/// `1.5 * 2^23`: adding it rounds to an integer, which the low bits of the sum then hold.
const ROUNDER: f32 = 12_582_912.0;

impl Reducer {
    /// For a modulus below `2^14`.
    pub fn new(modulus: u64) -> Reducer {
        Reducer { modulus: modulus as i32, inverse: 1.0 / modulus as f32 }
    }

    /// A residue of less than `9/16` of the modulus in magnitude, for `|sum / modulus| <= 2^I8_QUOTIENT_BITS`.
    #[inline(always)]
    pub fn near(self, sum: i32) -> i32 {
        let quotient = (sum as f32 * self.inverse + ROUNDER).to_bits().wrapping_sub(ROUNDER.to_bits()) as i32;
        sum.wrapping_sub(quotient.wrapping_mul(self.modulus))
    }

    /// The least residue of such a sum.
    #[inline(always)]
    pub fn least(self, sum: i32) -> i32 {
        let near = self.near(sum);
        near + (self.modulus & (near >> 31))
    }

    /// Least residues of each column's sum of one row.
    #[inline(always)]
    pub fn row(self, sums: &[i32; SIDE], residues: &mut [u16; SIDE]) {
        for column in 0..SIDE {
            residues[column] = self.least(sums[column]) as u16;
        }
    }

    /// Least residues of `low + 128 (both - low - high) + 2^14 high`, column by column.
    #[inline(always)]
    pub fn karatsuba(self, [low, high, both]: [&[i32; SIDE]; 3], residues: &mut [u16; SIDE]) {
        for column in 0..SIDE {
            let (low, high) = (low[column], high[column]);
            let middle = both[column].wrapping_sub(low).wrapping_sub(high);
            let upper = self.near(high.wrapping_mul(128).wrapping_add(middle));
            residues[column] = self.least(upper.wrapping_mul(128).wrapping_add(low)) as u16;
        }
    }

    /// `sums := sums + residues`, least residues; words that are none become some others.
    #[inline(always)]
    pub fn add(self, sums: &mut [u16], residues: &[u16]) {
        let modulus = self.modulus as u16;
        for (sum, residue) in sums.iter_mut().zip(residues) {
            // Both lie below 2^14, so neither the sum nor its excess over the modulus wraps; the lesser is the residue.
            let whole = sum.wrapping_add(*residue);
            *sum = whole.min(whole.wrapping_sub(modulus));
        }
    }

    /// Writes eight columns of a tile of residues, or adds them.
    #[inline(always)]
    pub fn put(self, block: &mut [u16; BLOCK], residues: &[u16; BLOCK], adds: bool) {
        if adds {
            self.add(block, residues);
        } else {
            *block = *residues;
        }
    }
}

/// Least residues of a whole tile of sums modulo one modulus.
#[inline(always)]
pub fn tile(reducer: Reducer, sums: &Sums, rows: usize, residues: &mut Residues) {
    for (sums, residues) in sums.0.iter().zip(&mut residues.0).take(rows) {
        reducer.row(sums, residues);
    }
}

/// The same from the three sums of Karatsuba's formula.
#[inline(always)]
pub fn karatsuba_tile(reducer: Reducer, [low, high, both]: &[Sums; 3], rows: usize, residues: &mut Residues) {
    for row in 0..rows {
        reducer.karatsuba([&low.0[row], &high.0[row], &both.0[row]], &mut residues.0[row]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::bound::I8_QUOTIENT_BITS;
    use crate::math::family_i8::i8_moduli;

    #[test]
    fn residues_are_least_up_to_the_largest_quotient() {
        for &modulus in i8_moduli() {
            let (reducer, m) = (Reducer::new(modulus), modulus as i64);
            let largest = (m << I8_QUOTIENT_BITS).min(i64::from(i32::MAX));
            let near = |middle: i64| (-3..=3).map(move |step| middle + step);
            let halves = (0..40).flat_map(|step| near((largest / 40 * step / m) * m + m / 2));
            let multiples = (0..40).flat_map(|step| near((largest / 40 * step / m) * m));
            for sum in halves.chain(multiples).chain(near(largest - 3)).flat_map(|sum| [sum, -sum]) {
                let sum = sum as i32;
                assert_eq!(i64::from(reducer.least(sum)), i64::from(sum).rem_euclid(m), "{sum} modulo {modulus}");
                let left = i64::from(reducer.near(sum));
                assert!(16 * left.abs() <= 9 * m, "{sum} modulo {modulus} leaves {left}");
            }
        }
    }
}
