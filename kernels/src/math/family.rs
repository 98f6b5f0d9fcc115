//! The modulus families as data: their primes, the number of primes, and the products that they reach.

use crate::math::bound::f64_largest_modulus;
use crate::math::prime::odd_primes;
use rug::Integer;
use std::sync::OnceLock;

/// Bits of a digit and of a residue in the `ifma52` family.
pub const IFMA52_BITS: u32 = 52;

/// Largest `c` of a prime `2^52 - c` in the family, exclusive.
pub const IFMA52_LARGEST_C: u64 = 1 << 14;

/// The `c` of all primes `2^52 - c` with `c < 2^14` that are 1 mod 4: finding them takes a millisecond, which programs
/// that work for ten would feel.
const IFMA52_CS: [u16; 213] = [
    47, 143, 183, 335, 395, 495, 635, 659, 699, 755, 819, 839, 867, 963, 1139, 1187, 1347, 1403, 1503, 1607, 1727,
    1827, 1883, 2075, 2115, 2139, 2255, 2283, 2307, 2519, 2595, 2943, 2955, 2999, 3027, 3207, 3275, 3395, 3479, 3575,
    3639, 3675, 3795, 3947, 3983, 3987, 4095, 4395, 4403, 4407, 4467, 4535, 4539, 4599, 4775, 4883, 4947, 4955, 5015,
    5127, 5159, 5423, 5487, 5535, 5555, 5579, 5583, 5627, 5703, 5759, 5787, 5919, 5975, 6027, 6039, 6143, 6303, 6327,
    6599, 6623, 6639, 6683, 6735, 6755, 6767, 6875, 6947, 6963, 7047, 7119, 7199, 7235, 7295, 7379, 7403, 7635, 7659,
    7703, 7743, 7767, 7815, 7899, 7967, 8039, 8055, 8135, 8187, 8235, 8259, 8279, 8387, 8439, 8475, 8487, 8543, 8547,
    8579, 8603, 8679, 8855, 8879, 8987, 9015, 9075, 9143, 9195, 9419, 9639, 9719, 9759, 9863, 9947, 10023, 10115,
    10259, 10463, 10475, 10499, 10515, 10535, 10655, 10667, 10695, 10703, 10755, 10899, 10959, 11099, 11255, 11259,
    11327, 11415, 11439, 11459, 11507, 11855, 12003, 12023, 12039, 12059, 12183, 12215, 12323, 12395, 12459, 12855,
    12939, 13047, 13059, 13079, 13095, 13139, 13167, 13223, 13319, 13455, 13467, 13515, 13607, 13683, 13719, 13755,
    13767, 13815, 13955, 14015, 14019, 14123, 14327, 14423, 14475, 14507, 14547, 14567, 14643, 14679, 14699, 14747,
    14847, 14895, 14903, 15099, 15267, 15335, 15359, 15383, 15443, 15683, 16127, 16143, 16275, 16359, 16367,
];

/// All primes `2^52 - c` with `c < 2^14` that are 1 mod 4, largest first.
///
/// One list is sufficient for every use: -1 is a square modulo each prime, as the five-product scheme needs.
pub fn ifma52_primes() -> &'static [u64] {
    static PRIMES: [u64; IFMA52_CS.len()] = {
        let (mut primes, mut at) = ([0; IFMA52_CS.len()], 0);
        while at < primes.len() {
            assert!((IFMA52_CS[at] as u64) < IFMA52_LARGEST_C);
            primes[at] = (1 << IFMA52_BITS) - IFMA52_CS[at] as u64;
            at += 1;
        }
        primes
    };
    &PRIMES
}

/// Largest `modulus_bits` of the family with one prime left over for the range check.
pub fn ifma52_maximum_modulus_bits() -> u32 {
    (ifma52_primes().len() as u32 - 1) * IFMA52_BITS - 1
}

/// Largest number of rows whose products are summed in doubles before they are reduced, in the `f64` family.
///
/// A shorter chunk allows larger primes (half a bit for half the rows) but costs more reductions.
pub const F64_CHUNK_ROWS: usize = 1024;

/// Primes of the `f64` family: enough for 5000 bits of precision with room to spare.
const F64_PRIME_COUNT: usize = 480;

/// Numbers among which primes of this family are looked for at a time: nearly as many as hold all of them.
const F64_SEARCHED_AT_ONCE: u64 = 1 << 13;

/// The moduli of the `f64` family: the largest primes whose balanced products sum exactly over [`F64_CHUNK_ROWS`]
/// rows, largest first.
pub fn f64_primes() -> &'static [u64] {
    static PRIMES: OnceLock<Vec<u64>> = OnceLock::new();
    PRIMES.get_or_init(|| {
        let mut limit = f64_largest_modulus(F64_CHUNK_ROWS) + 1;
        let mut primes = Vec::with_capacity(F64_PRIME_COUNT);
        while primes.len() < F64_PRIME_COUNT && limit > 0 {
            let least = limit.saturating_sub(F64_SEARCHED_AT_ONCE);
            primes.extend(odd_primes(least..limit).into_iter().take(F64_PRIME_COUNT - primes.len()));
            limit = least;
        }
        primes
    })
}

/// `floor(log2)` of the product of the primes `1..=n` (without the largest, prime 0), for each `n`; 0 for `n = 0`.
fn f64_bits_without_the_largest() -> &'static [u32] {
    static BITS: OnceLock<Vec<u32>> = OnceLock::new();
    BITS.get_or_init(|| floor_log2_of_products(&f64_primes()[1..]))
}

/// `floor(log2)` of the product of the first `n` primes, for each `n`; 0 for `n = 0`.
fn f64_bits() -> &'static [u32] {
    static BITS: OnceLock<Vec<u32>> = OnceLock::new();
    BITS.get_or_init(|| floor_log2_of_products(f64_primes()))
}

pub(super) fn floor_log2_of_products(primes: &[u64]) -> Vec<u32> {
    let mut product = Integer::from(1);
    let following = primes.iter().map(|&prime| {
        product *= prime;
        product.significant_bits() - 1
    });
    std::iter::once(0).chain(following).collect()
}

/// Smallest number of `f64` primes whose product exceeds `2^modulus_bits`, computed from the products.
///
/// A product of odd primes is never a power of two, so it exceeds `2^modulus_bits` if `floor(log2)` is at least that.
pub fn f64_prime_count(modulus_bits: u32) -> usize {
    f64_bits().partition_point(|&bits| bits < modulus_bits.max(1))
}

/// Number of `f64` primes whose product *without its largest factor* exceeds `2^modulus_bits`, as the range check
/// requires to detect every fault in one plane (docs/ALGORITHM.md, "Range check").
pub fn f64_prime_count_redundant(modulus_bits: u32) -> usize {
    f64_bits_without_the_largest().partition_point(|&bits| bits < modulus_bits.max(1)) + 1
}

/// Largest `modulus_bits` of the `f64` family with one prime left over for the range check.
pub fn f64_maximum_modulus_bits() -> u32 {
    *f64_bits_without_the_largest().last().expect("the family has primes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::bound::ifma52_prime_count;
    use crate::math::prime::{is_prime, primes_one_mod_four};

    #[test]
    fn the_list_is_what_the_search_finds() {
        let found = primes_one_mod_four(1 << 52, (1 << 52) - IFMA52_LARGEST_C, usize::MAX);
        assert_eq!(ifma52_primes(), found);
    }

    #[test]
    fn the_count_bound_holds_for_every_length() {
        let mut product = Integer::from(1);
        for (index, &prime) in ifma52_primes().iter().enumerate() {
            product *= prime;
            // `index + 1` primes serve every modulus_bits with floor(bits / 52) + 1 = index + 1.
            let largest_bits = 52 * (index as u32 + 1) - 1;
            assert_eq!(ifma52_prime_count(largest_bits), index + 1);
            assert!(product.significant_bits() > largest_bits, "{largest_bits}");
        }
    }

    #[test]
    fn the_family_reaches_five_thousand_bits() {
        assert!(ifma52_maximum_modulus_bits() > 2 * (5000 + 40) + 2);
        assert!(f64_maximum_modulus_bits() > 2 * (5000 + 40) + 2);
    }

    #[test]
    fn f64_primes_are_distinct_and_meet_the_exactness_bound() {
        let primes = f64_primes();
        assert_eq!(primes.len(), F64_PRIME_COUNT);
        assert!(primes.windows(2).all(|pair| pair[0] > pair[1]) && primes.iter().all(|&p| is_prime(p)));
        let half = u128::from(primes[0] / 2);
        assert!(F64_CHUNK_ROWS as u128 * half * half + 2 * (half + 2) <= 1 << 53);
        assert!(primes[F64_PRIME_COUNT - 1] > 1 << 22);
        // None is left out.
        let all = (primes[F64_PRIME_COUNT - 1]..=f64_largest_modulus(F64_CHUNK_ROWS)).filter(|&p| is_prime(p));
        assert_eq!(all.count(), F64_PRIME_COUNT);
    }

    #[test]
    fn f64_counts_are_the_least_that_serve() {
        let product = |primes: &[u64]| primes.iter().fold(Integer::from(1), |product, &prime| product * prime);
        for bits in (0..f64_maximum_modulus_bits()).step_by(97).chain([1, 22, 23, f64_maximum_modulus_bits()]) {
            let power = Integer::from(1) << bits;
            let count = f64_prime_count(bits);
            assert!(product(&f64_primes()[..count]) > power, "{bits}");
            assert!(count == 1 || product(&f64_primes()[..count - 1]) < power, "{bits}");
            let redundant = f64_prime_count_redundant(bits);
            assert!(product(&f64_primes()[1..redundant]) > power, "{bits}");
            assert!(redundant == 2 || product(&f64_primes()[1..redundant - 1]) < power, "{bits}");
        }
    }
}
