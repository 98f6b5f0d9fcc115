//! Residues of 32-bit sums.
#![forbid(unsafe_code)]

use super::tiles::SIDE;
use super::vectors::{HALVES, HalfwordVector, ROUNDER, Vector, WORDS};
use crate::math::modulus::Modulus;

/// A modulus, ready for reductions.
#[derive(Clone, Copy, Debug)]
pub struct I8Reducer {
    modulus: i32,
    inverse: f32,
}

impl I8Reducer {
    /// A reducer for a modulus below `2^14`.
    pub fn new(modulus: u64) -> I8Reducer {
        I8Reducer { modulus: modulus as i32, inverse: 1.0 / modulus as f32 }
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
    #[inline(always)]
    pub fn least_halves<V: Vector>(self, even: V, odd: V) -> V {
        let near = self.near_halves(even, odd);
        // Unsigned, a negative number is larger than its sum with the modulus, and any other number is smaller.
        near.least_halves(near.add_halves(V::splat_half(self.modulus as u16)))
    }

    /// The same as `near_words`, in turns of one of `even` and one of `odd`.
    ///
    /// Halves are enough for the results, which are less than `2^14`.
    #[inline(always)]
    pub fn near_halves<V: Vector>(self, even: V, odd: V) -> V {
        let quotients = even.round_product(self.inverse).join_low_halves(odd.round_product(self.inverse));
        even.join_low_halves(odd).subtract_halves(quotients.multiply_halves(V::splat_half(self.modulus as u16)))
    }

    /// Balanced residues of words, in turns one of `even` and one of `odd`, for `|sum / modulus| <= 2^16`.
    #[inline(always)]
    pub fn balanced_halves<V: Vector>(self, even: V, odd: V) -> V {
        let least = self.least_halves(even, odd);
        // With `rest` added, exactly the residues above half the modulus reach the modulus. For the others, subtracting
        // it wraps around, so that the lesser unsigned number is the right one.
        let modulus = self.modulus as u16;
        let rest = V::splat_half(modulus - 1 - (modulus - 1) / 2);
        let moved = least.add_halves(rest);
        moved.least_halves(moved.subtract_halves(V::splat_half(modulus))).subtract_halves(rest)
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
    pub fn put<V: HalfwordVector>(self, out: &mut [u16; HALVES], residues: V, adds: bool) {
        let residues = if adds { self.add_vectors(V::load_halves(out), residues) } else { residues };
        residues.store_halves(out);
    }

    #[inline(always)]
    fn add_vectors<V: HalfwordVector>(self, sums: V, residues: V) -> V {
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
pub fn row<V: Vector>(reducer: I8Reducer, sums: &[i32; SIDE]) -> V {
    let [even, odd] = halves::<V>(sums);
    reducer.least_halves(even, odd)
}

/// The sums of three planes, of low digits, high digits and sums of digits, combined modulo one modulus:
/// `low + 128 (both - low - high) + 2^14 high = -127 low + (2^14 - 128) high + 128 both`.
///
/// Each sum is taken as two halves with signs, which one instruction multiplies with the residues of its factor and of
/// `2^16` times that. The lower half has none: with its sign bit flipped it is one that is `2^15` less.
#[derive(Clone, Copy, Debug)]
pub struct Karatsuba {
    reducer: I8Reducer,
    /// The residues that the halves of each sum are multiplied with.
    factors: [u32; 3],
    /// The correction for the flipped bits.
    start: u32,
}

impl Karatsuba {
    /// For sums modulo a modulus below `2^14`.
    pub fn new(modulus: u64) -> Karatsuba {
        let arithmetic = Modulus::new(modulus);
        let residue = |integer: i64| arithmetic.balanced(integer.rem_euclid(modulus as i64) as u64);
        let factors = [-127, (1 << 14) - 128, 128];
        let pair = |factor: i64| u32::from(residue(factor) as u16) | u32::from(residue(factor << 16) as u16) << 16;
        let start = residue(factors.iter().sum::<i64>() << 15) as u32;
        Karatsuba { reducer: I8Reducer::new(modulus), factors: factors.map(pair), start }
    }

    /// The reducer of the modulus.
    #[inline(always)]
    pub fn reducer(&self) -> I8Reducer {
        self.reducer
    }

    /// Words with the residues of the combination of the sums: below `3 * 2^29 + 2^13` in magnitude.
    #[inline(always)]
    fn join<V: Vector>(&self, sums: [V; 3]) -> V {
        let mut joined = V::splat(self.start);
        for (sum, factors) in sums.into_iter().zip(self.factors) {
            joined = joined.add_products(sum.xor(V::splat(0x8000)), V::splat(factors));
        }
        joined
    }

    /// Least residues of a row of sums, in the order of [`row`].
    #[inline(always)]
    pub fn row<V: Vector>(&self, [low, high, both]: [&[i32; SIDE]; 3]) -> V {
        let ([low, low_odd], [high, high_odd], [both, both_odd]) =
            (halves::<V>(low), halves::<V>(high), halves::<V>(both));
        let (even, odd) = (self.join([low, high, both]), self.join([low_odd, high_odd, both_odd]));
        self.reducer.least_halves(even, odd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::i8::vectors::PlainVector;
    use crate::math::bound::I8_QUOTIENT_BITS;
    use crate::math::family_i8::{I8_SINGLES, i8_moduli};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// The first word.
    fn word(vector: PlainVector) -> i32 {
        let mut words = [0; WORDS];
        vector.store(&mut words);
        words[0] as i32
    }

    #[test]
    fn residues_are_least_up_to_the_largest_quotient() {
        for &modulus in i8_moduli() {
            let (reducer, m) = (I8Reducer::new(modulus), modulus as i64);
            let largest = (m << I8_QUOTIENT_BITS).min(i64::from(i32::MAX));
            let near = |middle: i64| (-3..=3).map(move |step| middle + step);
            let halves = (0..40).flat_map(|step| near((largest / 40 * step / m) * m + m / 2));
            let multiples = (0..40).flat_map(|step| near((largest / 40 * step / m) * m));
            for sum in halves.chain(multiples).chain(near(largest - 3)).flat_map(|sum| [sum, -sum]) {
                let sum = sum as i32;
                let (least, left) =
                    (i64::from(sum).rem_euclid(m), word(reducer.near_words(PlainVector::splat(sum as u32))));
                assert_eq!(
                    i64::from(word(reducer.least_words(PlainVector::splat(sum as u32)))),
                    least,
                    "{sum} mod {modulus}"
                );
                assert!(16 * i64::from(left).abs() <= 9 * m, "{sum} modulo {modulus} leaves {left}");
                let both = word(reducer.least_halves(PlainVector::splat(sum as u32), PlainVector::splat(-sum as u32)));
                assert_eq!(i64::from(both & 0xffff), least, "{sum} modulo {modulus}");
                assert_eq!(i64::from(both >> 16), i64::from(-sum).rem_euclid(m), "{} modulo {modulus}", -sum);
                let balanced = word(reducer.balanced_halves(PlainVector::splat(sum as u32), PlainVector::splat(0)));
                let wanted = if least > (m - 1) / 2 { least - m } else { least };
                assert_eq!((i64::from(balanced as i16), balanced >> 16), (wanted, 0), "{sum} modulo {modulus}");
            }
        }
    }

    #[test]
    fn three_sums_of_any_words_are_put_together() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let ends = [i32::MIN, i32::MIN + 1, -0x8001, -0x8000, -1, 0, 1, 0x7fff, 0x8000, 0xffff, 0x10000, i32::MAX];
        for &modulus in &i8_moduli()[I8_SINGLES.len()..] {
            let karatsuba = Karatsuba::new(modulus);
            let mut any = || if rng.random_ratio(1, 2) { rng.random() } else { ends[rng.random_range(0..ends.len())] };
            for trial in 0..200 {
                let sums: [i32; 3] = if trial < ends.len() { [ends[trial]; 3] } else { [any(), any(), any()] };
                let rows = sums.map(|sum| [sum; SIDE]);
                let [low, high, both] = sums.map(i128::from);
                let wanted = (low + 128 * (both - low - high) + (high << 14)).rem_euclid(i128::from(modulus));
                let got = word(karatsuba.row([&rows[0], &rows[1], &rows[2]]));
                assert_eq!(got, wanted as i32 * 0x1_0001, "{sums:?} modulo {modulus}");
            }
        }
    }
}
