//! Prime test and prime search for the modulus families.

use crate::math::modulus::Modulus;

/// Whether `n < 2^62` is prime: Miller-Rabin with the twelve first primes as bases.
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
    let modulus = Modulus::new(n);
    BASES.iter().all(|&base| {
        let mut power = modulus.power(base, odd);
        power == 1
            || (0..twos).any(|_| {
                let hit = power == n - 1;
                power = modulus.multiply(power, power);
                hit
            })
    })
}

/// The `count` largest primes `p <= limit` with `p = 1 mod 4` that exceed `floor`, largest first.
///
/// -1 is a square modulo each, which the five-product scheme for `A^T A` needs. May return fewer.
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
    fn the_search_finds_large_primes_that_are_one_mod_four() {
        let primes = primes_one_mod_four(1 << 52, (1 << 52) - (1 << 14), 300);
        assert!(primes.len() > 200, "{}", primes.len());
        assert!(primes.windows(2).all(|pair| pair[0] > pair[1]) && primes.iter().all(|p| p % 4 == 1));
    }
}
