//! The moduli of the family `i8` as data: signed bytes whose products are summed in 32-bit integers.
//!
//! They are pairwise coprime, in this order: moduli whose balanced residues are signed bytes, then primes whose
//! residues take three planes of signed bytes. Proofs: docs/ALGORITHM.md, "Moduli of signed bytes".

use crate::math::bound::{I8_LARGEST_SINGLE, I8_TRIPLE_BITS};
use crate::math::prime::odd_primes;
use rug::{Assign, Integer};
use std::ops::Range;
use std::sync::OnceLock;

/// Moduli of one plane each: 2^8, products and powers of primes that come close to it, and the primes from 29 on.
///
/// A plane of any of them carries more bits than a third of a modulus of three planes does. 17 would not.
pub const I8_SINGLES: [u64; 50] = [
    256, 253, 251, 247, 245, 243, 241, 239, 233, 229, 227, 223, 211, 199, 197, 193, 191, 181, 179, 173, 167, 163, 157,
    151, 149, 139, 137, 131, 127, 113, 109, 107, 103, 101, 97, 89, 83, 79, 73, 71, 67, 61, 59, 53, 47, 43, 41, 37, 31,
    29,
];

/// Primes of three planes each: with them the family reaches as far as `f64`.
const TRIPLE_COUNT: usize = 780;

/// All moduli: [`I8_SINGLES`], then the largest primes below `2^14`, largest first.
pub fn i8_moduli() -> &'static [u64] {
    static MODULI: OnceLock<Vec<u64>> = OnceLock::new();
    MODULI.get_or_init(|| {
        let triples = odd_primes(I8_LARGEST_SINGLE..1 << I8_TRIPLE_BITS).into_iter().take(TRIPLE_COUNT);
        I8_SINGLES.iter().copied().chain(triples).collect()
    })
}

/// For the product of the first `n` moduli, and for the same without its largest factor, the largest number of bits
/// such that it exceeds `2^bits`; 0 for none.
struct Reach {
    whole: Vec<u32>,
    without_the_largest: Vec<u32>,
}

fn reach() -> &'static Reach {
    static REACH: OnceLock<Reach> = OnceLock::new();
    REACH.get_or_init(|| {
        // Only 256 is a power of two, which does not exceed itself.
        let exceeded = |product: &Integer| {
            let below = 1 + u32::from(product.is_power_of_two());
            product.significant_bits().saturating_sub(below)
        };
        let (mut product, mut largest) = (Integer::from(1), 1);
        // Without the largest factor. A new one takes the place of the one before, which comes back.
        let mut others = Integer::from(1);
        let mut reach = Reach { whole: vec![0], without_the_largest: vec![0] };
        for &modulus in i8_moduli() {
            if modulus > largest {
                others.assign(&product);
                largest = modulus;
            } else {
                others *= modulus;
            }
            product *= modulus;
            reach.whole.push(exceeded(&product));
            reach.without_the_largest.push(exceeded(&others));
        }
        reach
    })
}

/// Smallest number of moduli whose product exceeds `2^modulus_bits`.
pub fn i8_modulus_count(modulus_bits: u32) -> usize {
    reach().whole.partition_point(|&bits| bits < modulus_bits.max(1))
}

/// Number of moduli whose product *without its largest factor* exceeds `2^modulus_bits`, as the range check requires to
/// detect every fault in one plane (docs/ALGORITHM.md, "Range check").
pub fn i8_modulus_count_redundant(modulus_bits: u32) -> usize {
    reach().without_the_largest.partition_point(|&bits| bits < modulus_bits.max(1))
}

/// Largest `modulus_bits` of the family with one modulus left over for the range check.
pub fn i8_maximum_modulus_bits() -> u32 {
    *reach().without_the_largest.last().expect("the family has moduli")
}

/// The operand planes of some moduli: one for each of [`I8_SINGLES`], three for each of the others.
pub fn i8_planes(moduli: Range<usize>) -> Range<usize> {
    let first_plane = |modulus: usize| modulus + 2 * modulus.saturating_sub(I8_SINGLES.len());
    first_plane(moduli.start)..first_plane(moduli.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::bound::COMMON_WORKING_BITS;
    use crate::math::family::f64_maximum_modulus_bits;

    #[test]
    fn moduli_are_pairwise_coprime_and_in_range() {
        let moduli = i8_moduli();
        assert_eq!(moduli.len(), I8_SINGLES.len() + TRIPLE_COUNT);
        let mut product = Integer::from(1);
        for &modulus in moduli {
            assert_eq!(product.clone().gcd(&Integer::from(modulus)), 1, "{modulus}");
            product *= modulus;
        }
        assert!(I8_SINGLES.iter().all(|&modulus| modulus <= I8_LARGEST_SINGLE));
        let triples = &moduli[I8_SINGLES.len()..];
        assert!(triples.iter().all(|&p| p > I8_LARGEST_SINGLE && p < 1 << I8_TRIPLE_BITS && p % 2 == 1));
        // A plane of a single modulus carries more bits than each of the three of the largest other one.
        assert!(I8_SINGLES.iter().all(|&modulus| modulus.pow(3) > triples[0]));
    }

    #[test]
    fn the_family_reaches_as_far_as_the_others() {
        assert!(i8_maximum_modulus_bits() >= f64_maximum_modulus_bits());
        assert!(i8_maximum_modulus_bits() > 2 * COMMON_WORKING_BITS + 3);
    }

    #[test]
    fn counts_are_the_least_that_serve() {
        let product = |moduli: &[u64]| moduli.iter().fold(Integer::from(1), |product, &modulus| product * modulus);
        let without = |moduli: &[u64]| product(moduli) / moduli.iter().max().copied().unwrap_or(1);
        let maximum = i8_maximum_modulus_bits();
        for bits in (0..maximum).step_by(397).chain([1, 7, 8, 9, 15, 16, 340, 346, 347, 360, maximum]) {
            let power = Integer::from(1) << bits.max(1);
            let count = i8_modulus_count(bits);
            assert!(product(&i8_moduli()[..count]) > power && product(&i8_moduli()[..count - 1]) <= power, "{bits}");
            let count = i8_modulus_count_redundant(bits);
            assert!(without(&i8_moduli()[..count]) > power && without(&i8_moduli()[..count - 1]) <= power, "{bits}");
        }
    }

    #[test]
    fn planes_follow_each_other() {
        assert_eq!((i8_planes(0..0), i8_planes(0..3), i8_planes(48..52)), (0..0, 0..3, 48..56));
        assert_eq!((i8_planes(51..53), i8_planes(50..50)), (53..59, 50..50));
    }
}
