//! Residues of 32-bit sums.
#![forbid(unsafe_code)]

use super::tiles::SIDE;
use super::vectors::{HALVES, ROUNDER, Vector, WORDS};

/// A modulus, ready for reductions.
#[derive(Clone, Copy, Debug)]
pub struct Reducer {
    modulus: i32,
    inverse: f32,
}

impl Reducer {
    /// For a modulus below `2^14`.
    pub fn new(modulus: u64) -> Reducer {
        Reducer { modulus: modulus as i32, inverse: 1.0 / modulus as f32 }
    }

    /// Residues of less than `9/16` of the modulus in magnitude, for `|sum / modulus| <= 2^I8_QUOTIENT_BITS`.
    #[inline(always)]
    pub fn near_words<V: Vector>(self, sums: V) -> V {
        let quotients = sums.round_product(self.inverse).subtract(V::splat(ROUNDER.to_bits()));
        sums.subtract(quotients.multiply(V::splat(self.modulus as u32)))
    }

    /// The least residues of words.
    #[inline(always)]
    pub fn least_words<V: Vector>(self, sums: V) -> V {
        let near = self.near_words(sums);
        near.least(near.add(V::splat(self.modulus as u32)))
    }

    /// The least residues of words, in turns one of `even` and one of `odd`.
    ///
    /// Halves are enough for what is left, which is less than `2^14`.
    #[inline(always)]
    pub fn least_halves<V: Vector>(self, even: V, odd: V) -> V {
        let quotients = even.round_product(self.inverse).join_low_halves(odd.round_product(self.inverse));
        let modulus = V::splat_half(self.modulus as u16);
        let near = even.join_low_halves(odd).subtract_halves(quotients.multiply_halves(modulus));
        // Without signs, what is negative is larger than its sum with the modulus, and what is not is smaller.
        near.least_halves(near.add_halves(modulus))
    }

    /// The residues of `low + 128 (both - low - high) + 2^14 high` but for one reduction more.
    #[inline(always)]
    fn karatsuba<V: Vector>(self, [low, high, both]: [V; 3]) -> V {
        let middle = both.subtract(low).subtract(high);
        self.near_words(high.shift_left_7().add(middle)).shift_left_7().add(low)
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

    /// Writes residues, or adds them.
    #[inline(always)]
    pub fn put<V: Vector>(self, out: &mut [u16; HALVES], residues: V, adds: bool) {
        let residues = if adds { self.add_vectors(V::load_halves(out), residues) } else { residues };
        residues.store_halves(out);
    }

    #[inline(always)]
    fn add_vectors<V: Vector>(self, sums: V, residues: V) -> V {
        let whole = sums.add_halves(residues);
        whole.least_halves(whole.subtract_halves(V::splat_half(self.modulus as u16)))
    }
}

/// The two halves of a row of sums.
#[inline(always)]
pub fn halves<V: Vector>(sums: &[i32; SIDE]) -> [V; 2] {
    const { assert!(SIDE == 2 * WORDS && SIDE == HALVES) };
    let words: &[u32; SIDE] = bytemuck::cast_ref(sums);
    let (even, odd) = words.split_at(WORDS);
    [V::load(even.first_chunk().expect("a half")), V::load(odd.first_chunk().expect("a half"))]
}

/// Least residues of a row of sums modulo one modulus: those of column `n` of the first half and of the second stand at
/// `2 n` and `2 n + 1`.
#[inline(always)]
pub fn row<V: Vector>(reducer: Reducer, sums: &[i32; SIDE]) -> V {
    let [even, odd] = halves::<V>(sums);
    reducer.least_halves(even, odd)
}

/// The same from the three sums of Karatsuba's formula.
#[inline(always)]
pub fn karatsuba_row<V: Vector>(reducer: Reducer, [low, high, both]: [&[i32; SIDE]; 3]) -> V {
    let ([low, low_odd], [high, high_odd], [both, both_odd]) = (halves::<V>(low), halves::<V>(high), halves::<V>(both));
    let (even, odd) = (reducer.karatsuba([low, high, both]), reducer.karatsuba([low_odd, high_odd, both_odd]));
    reducer.least_halves(even, odd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::i8::vectors::Plain;
    use crate::math::bound::I8_QUOTIENT_BITS;
    use crate::math::family_i8::i8_moduli;

    /// The first word.
    fn word(vector: Plain) -> i32 {
        let mut words = [0; WORDS];
        vector.store(&mut words);
        words[0] as i32
    }

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
                let (least, left) = (i64::from(sum).rem_euclid(m), word(reducer.near_words(Plain::splat(sum as u32))));
                assert_eq!(
                    i64::from(word(reducer.least_words(Plain::splat(sum as u32)))),
                    least,
                    "{sum} mod {modulus}"
                );
                assert!(16 * i64::from(left).abs() <= 9 * m, "{sum} modulo {modulus} leaves {left}");
                let both = word(reducer.least_halves(Plain::splat(sum as u32), Plain::splat(-sum as u32)));
                assert_eq!(i64::from(both & 0xffff), least, "{sum} modulo {modulus}");
                assert_eq!(i64::from(both >> 16), i64::from(-sum).rem_euclid(m), "{} modulo {modulus}", -sum);
            }
        }
    }
}
