//! The moduli of the family `i16` as data: balanced residues of 16 bits whose products are summed in pairs in 32-bit
//! integers. Proofs: docs/ALGORITHM.md, "Residues of 16 bits".

use crate::math::bound::I16_PRIME_BITS;
use crate::math::family::floor_log2_of_products;
use crate::math::prime::odd_primes;
use std::sync::OnceLock;

/// Bits of the smallest primes: below them a plane carries too little.
const LEAST_PRIME_BITS: u32 = 11;

/// All primes of 13, 12 and 11 bits, largest first.
pub fn i16_primes() -> &'static [u64] {
    static PRIMES: OnceLock<Vec<u64>> = OnceLock::new();
    PRIMES.get_or_init(|| {
        let (least, limit) = (1u64 << (LEAST_PRIME_BITS - 1), 1u64 << I16_PRIME_BITS);
        odd_primes(least..limit)
    })
}

/// `floor(log2)` of the product of the first `n` primes, for each `n`; 0 for `n = 0`.
fn bits() -> &'static [u32] {
    static BITS: OnceLock<Vec<u32>> = OnceLock::new();
    BITS.get_or_init(|| floor_log2_of_products(i16_primes()))
}

/// The same without the largest, prime 0.
fn bits_without_the_largest() -> &'static [u32] {
    static BITS: OnceLock<Vec<u32>> = OnceLock::new();
    BITS.get_or_init(|| floor_log2_of_products(&i16_primes()[1..]))
}

/// Smallest number of primes whose product exceeds `2^modulus_bits`.
pub fn i16_prime_count(modulus_bits: u32) -> usize {
    bits().partition_point(|&bits| bits < modulus_bits.max(1))
}

/// Number of primes whose product *without its largest factor* exceeds `2^modulus_bits`, as the range check requires to
/// detect every fault in one plane (docs/ALGORITHM.md, "Range check").
pub fn i16_prime_count_redundant(modulus_bits: u32) -> usize {
    bits_without_the_largest().partition_point(|&bits| bits < modulus_bits.max(1)) + 1
}

/// `2^15 weight / prime`, rounded: the factor of a residue for the quotient of its product with the weight.
pub fn i16_weight_ratio(weight: i64, prime: i64) -> i64 {
    (2 * (weight << 15) + prime).div_euclid(2 * prime)
}

/// Largest `modulus_bits` that the family reaches with one prime left over for the range check.
pub fn i16_maximum_modulus_bits() -> u32 {
    *bits_without_the_largest().last().expect("the family has primes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::prime::is_prime;
    use rug::Integer;

    #[test]
    fn the_family_is_all_primes_of_eleven_to_thirteen_bits() {
        let primes = i16_primes();
        assert_eq!((primes.len(), primes[0], primes[855]), (856, 8191, 1031));
        assert!(primes.windows(2).all(|pair| pair[0] > pair[1]) && primes.iter().all(|&p| is_prime(p)));
        let of_bits = |bits: u32| primes.iter().filter(|&&p| p.ilog2() + 1 == bits).count();
        assert_eq!([13, 12, 11].map(of_bits), [464, 255, 137]);
        let product = primes.iter().fold(Integer::from(1), |product, &prime| product * prime);
        assert_eq!(product.significant_bits() - 1, 10_214);
        // Enough for 5000 bits of precision.
        assert!(i16_maximum_modulus_bits() > 2 * (5000 + 40) + 2);
    }

    #[test]
    fn counts_are_the_least_that_serve() {
        let product = |primes: &[u64]| primes.iter().fold(Integer::from(1), |product, &prime| product * prime);
        for bits in (0..i16_maximum_modulus_bits()).step_by(97).chain([1, 12, 13, i16_maximum_modulus_bits()]) {
            let power = Integer::from(1) << bits;
            let count = i16_prime_count(bits);
            assert!(product(&i16_primes()[..count]) > power, "{bits}");
            assert!(count == 1 || product(&i16_primes()[..count - 1]) < power, "{bits}");
            let redundant = i16_prime_count_redundant(bits);
            assert!(product(&i16_primes()[1..redundant]) > power, "{bits}");
            assert!(redundant == 2 || product(&i16_primes()[1..redundant - 1]) < power, "{bits}");
        }
    }
}
