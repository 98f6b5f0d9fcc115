//! The modulus families as data: which primes, how many, how far they reach.

use crate::math::prime::primes_one_mod_four;
use std::sync::OnceLock;

/// Bits of a digit and of a residue in the `ifma52` family.
pub const IFMA52_BITS: u32 = 52;

/// Largest `c` of a prime `2^52 - c` in the family, exclusive.
pub const IFMA52_LARGEST_C: u64 = 1 << 14;

/// All primes `2^52 - c` with `c < 2^14` that are 1 mod 4, largest first.
///
/// One list serves every use: -1 is a square modulo each, as the five-product scheme needs.
pub fn ifma52_primes() -> &'static [u64] {
    static PRIMES: OnceLock<Vec<u64>> = OnceLock::new();
    PRIMES.get_or_init(|| primes_one_mod_four(1 << 52, (1 << 52) - IFMA52_LARGEST_C, usize::MAX))
}

/// Largest `modulus_bits` that the family reaches with one prime left over for the range check.
pub fn ifma52_maximum_modulus_bits() -> u32 {
    (ifma52_primes().len() as u32 - 1) * IFMA52_BITS - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::bound::ifma52_prime_count;
    use rug::Integer;

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
    }
}
