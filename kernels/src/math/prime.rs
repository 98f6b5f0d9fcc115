//! Prime test and prime search for the modulus families.

use crate::math::modulus::inverse_modulo_word;
use std::ops::Range;

/// Whether `n < 2^62` is prime: Miller-Rabin with the first twelve primes as bases.
///
/// Deterministic below 3.3e24 (Sorenson and Webster 2015), so for every 64-bit number.
pub fn is_prime(n: u64) -> bool {
    const BASES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
    if n < 41 {
        return BASES.contains(&n);
    }
    if BASES.iter().any(|&base| n.is_multiple_of(base)) {
        return false;
    }
    let (twos, odd) = ((n - 1).trailing_zeros(), (n - 1) >> (n - 1).trailing_zeros());
    let modulus = Montgomery::new(n);
    let (one, minus_one) = (modulus.one, n - modulus.one);
    BASES.iter().all(|&base| {
        let mut power = modulus.power(base, odd);
        power == one
            || (0..twos).any(|_| {
                let hit = power == minus_one;
                power = modulus.multiply(power, power);
                hit
            })
    })
}

/// The odd primes of `range`, the largest first, by the sieve of Eratosthenes over odd numbers.
///
/// Cost: one step for each of these numbers and for each multiple of one in the range: some microseconds for ten
/// thousand numbers of 24 bits, where separate tests would take a millisecond.
pub fn odd_primes(range: Range<u64>) -> Vec<u64> {
    let first = range.start.max(3) | 1;
    let number = |at: usize| first + 2 * at as u64;
    let mut is_struck = vec![false; range.end.saturating_sub(first).div_ceil(2) as usize];
    for divisor in (3..).step_by(2).take_while(|divisor| divisor * divisor < range.end) {
        let least = first.next_multiple_of(divisor).max(divisor * divisor);
        let least = if least % 2 == 0 { least + divisor } else { least };
        is_struck.iter_mut().skip(((least - first) / 2) as usize).step_by(divisor as usize).for_each(|it| *it = true);
    }
    (0..is_struck.len()).rev().filter(|&at| !is_struck[at]).map(number).collect()
}

/// Products modulo an odd `n < 2^62` without divisions: a residue `a` is kept as `2^64 a mod n` (Montgomery 1985).
struct Montgomery {
    n: u64,
    /// `-1 / n` modulo `2^64`.
    inverse: u64,
    /// 1 and `2^64` in Montgomery's form.
    one: u64,
    radix: u64,
}

impl Montgomery {
    fn new(n: u64) -> Montgomery {
        let one = ((1u128 << 64) % u128::from(n)) as u64;
        let radix = (u128::from(one) * u128::from(one) % u128::from(n)) as u64;
        Montgomery { n, inverse: inverse_modulo_word(n).wrapping_neg(), one, radix }
    }

    /// The product of two numbers in this form.
    #[inline]
    fn multiply(&self, a: u64, b: u64) -> u64 {
        let product = u128::from(a) * u128::from(b);
        let multiple = u128::from((product as u64).wrapping_mul(self.inverse)) * u128::from(self.n);
        let quotient = ((product + multiple) >> 64) as u64; // below 2 n
        if quotient >= self.n { quotient - self.n } else { quotient }
    }

    /// `base^exponent` in this form, for a `base < n`.
    fn power(&self, base: u64, exponent: u64) -> u64 {
        let (mut result, mut square, mut left) = (self.one, self.multiply(base, self.radix), exponent);
        while left > 0 {
            if left & 1 == 1 {
                result = self.multiply(result, square);
            }
            square = self.multiply(square, square);
            left >>= 1;
        }
        result
    }
}

/// The `count` largest primes `p <= limit` with `p = 1 mod 4` that exceed `floor`, largest first.
///
/// -1 is a square modulo each of them, which the five-product scheme for `A^T A` needs. May return fewer. It is
/// compared with the list of the family.
#[cfg(test)]
pub fn primes_one_mod_four(limit: u64, floor: u64, count: usize) -> Vec<u64> {
    let start = limit - (limit + 3) % 4; // the largest number <= limit that is 1 mod 4
    (0..).map(|step| start - 4 * step).take_while(|&p| p > floor).filter(|&p| is_prime(p)).take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_equals_a_sieve() {
        let mut composite = vec![false; 20_000];
        for n in 2..composite.len() {
            assert_eq!(is_prime(n as u64), !composite[n], "{n}");
            for multiple in (n * n..composite.len()).step_by(n) {
                composite[multiple] = true;
            }
        }
    }

    #[test]
    fn the_primes_of_a_range_are_those_that_the_test_finds() {
        let ranges = [0..0, 0..3, 0..4, 3..10, 9..10, 9..26, 25..26, 48..50, 1000..3000, 4097..8192];
        let large = [(1 << 22)..(1 << 22) + 3000, 5_930_641 - 9000..5_930_641];
        for range in ranges.into_iter().chain(large) {
            let tested = range.clone().rev().filter(|&number| number > 2 && is_prime(number)).collect::<Vec<_>>();
            assert_eq!(odd_primes(range.clone()), tested, "{range:?}");
        }
    }

    #[test]
    fn products_without_divisions_are_those_of_fractions() {
        for n in [43u64, (1 << 52) - 47, (1 << 62) - 57, (1 << 62) - 1] {
            let modulus = Montgomery::new(n);
            let plain = |a: u64, b: u64| (u128::from(a) * u128::from(b) % u128::from(n)) as u64;
            for (a, b) in [(1, 1), (n - 1, n - 1), (n / 2, n - 2), (0, 5), (12_345 % n, 987_654_321 % n)] {
                let product = modulus.multiply(modulus.multiply(a, modulus.radix), modulus.multiply(b, modulus.radix));
                assert_eq!(modulus.multiply(product, 1), plain(a, b), "{a} {b} modulo {n}");
            }
            assert_eq!(modulus.multiply(modulus.power(3, 5), 1), 243 % n);
        }
        assert!(is_prime((1 << 62) - 57) && !is_prime((1 << 62) - 1) && is_prime((1 << 61) - 1));
        assert!(!is_prime(2_147_483_647 * 2_147_483_629) && is_prime(4_503_599_627_370_449));
    }

    #[test]
    fn the_search_finds_large_primes_that_are_one_mod_four() {
        let primes = primes_one_mod_four(1 << 52, (1 << 52) - (1 << 14), 300);
        assert!(primes.len() > 200, "{}", primes.len());
        assert!(primes.windows(2).all(|pair| pair[0] > pair[1]) && primes.iter().all(|p| p % 4 == 1));
    }
}
