//! Arithmetic modulo one word-size prime, in plain integers: used to make tables and to test kernels.

/// One prime modulus below 2^62.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Modulus {
    prime: u64,
}

impl Modulus {
    /// The modulus `prime`; at least 3 and below 2^62 (asserted), and the caller ensures that it is prime.
    pub fn new(prime: u64) -> Modulus {
        assert!((3..1 << 62).contains(&prime), "modulus {prime} out of range");
        Modulus { prime }
    }

    /// The prime itself.
    #[inline]
    pub fn prime(self) -> u64 {
        self.prime
    }

    /// `a * b mod p` in `[0, p)`, for any 64-bit operands.
    #[inline]
    pub fn multiply(self, a: u64, b: u64) -> u64 {
        (u128::from(a) * u128::from(b) % u128::from(self.prime)) as u64
    }

    /// `a + b mod p` for least residues.
    #[inline]
    pub fn add(self, a: u64, b: u64) -> u64 {
        let sum = a + b;
        if sum >= self.prime { sum - self.prime } else { sum }
    }

    /// `a - b mod p` for least residues.
    #[inline]
    pub fn subtract(self, a: u64, b: u64) -> u64 {
        if a >= b { a - b } else { a + self.prime - b }
    }

    /// `base^exponent mod p`.
    pub fn power(self, base: u64, exponent: u64) -> u64 {
        let (mut result, mut square, mut left) = (1, base % self.prime, exponent);
        while left > 0 {
            if left & 1 == 1 {
                result = self.multiply(result, square);
            }
            square = self.multiply(square, square);
            left >>= 1;
        }
        result
    }

    /// Inverse of a nonzero residue, by Fermat.
    pub fn inverse(self, a: u64) -> u64 {
        assert!(!a.is_multiple_of(self.prime), "0 has no inverse");
        self.power(a, self.prime - 2)
    }

    /// A square root of -1; the prime must be 1 mod 4 (asserted).
    pub fn root_of_minus_one(self) -> u64 {
        assert_eq!(self.prime % 4, 1, "-1 is not a square modulo {}", self.prime);
        let quarter = (self.prime - 1) / 4;
        (2..)
            .map(|base| self.power(base, quarter))
            .find(|&root| self.multiply(root, root) == self.prime - 1)
            .expect("half of all bases are non-residues")
    }

    /// Two residues whose squares add up to -1; they exist modulo every odd prime, and the second is 0 if -1 is a
    /// square itself.
    pub fn squares_of_minus_one(self) -> (u64, u64) {
        if self.prime % 4 == 1 {
            return (self.root_of_minus_one(), 0);
        }
        // Half of all residues are squares, and modulo a prime that is 3 mod 4 a root is a power.
        (1..self.prime)
            .find_map(|b| {
                let square = self.prime - 1 - self.multiply(b, b);
                let root = self.power(square, self.prime.div_ceil(4));
                (self.multiply(root, root) == square).then_some((root, b))
            })
            .expect("-1 is a sum of two squares")
    }

    /// The least residue of a little-endian integer.
    pub fn reduce(self, limbs: &[u64]) -> u64 {
        let step =
            |high: u64, &limb: &u64| (((u128::from(high) << 64) | u128::from(limb)) % u128::from(self.prime)) as u64;
        limbs.iter().rev().fold(0, step)
    }

    /// The balanced form of a least residue: `|r| <= (p - 1) / 2`.
    #[inline]
    pub fn balanced(self, least: u64) -> i64 {
        if least > self.prime / 2 { least as i64 - self.prime as i64 } else { least as i64 }
    }
}

/// The inverse of an odd number modulo `2^64`, and in its lower bits modulo every lesser power of two.
pub fn inverse_modulo_word(odd: u64) -> u64 {
    assert!(odd % 2 == 1, "{odd} has no inverse modulo a power of two");
    // Newton's iteration doubles the bits of an inverse; an odd number is its own one modulo 8.
    (0..5).fold(odd, |inverse, _| inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverses_modulo_a_word_hold() {
        for odd in [1u64, 3, 5, 7, 8191, (1 << 52) - 47, (1 << 63) + 1, u64::MAX] {
            assert_eq!(odd.wrapping_mul(inverse_modulo_word(odd)), 1, "{odd}");
        }
    }

    #[test]
    fn inverse_and_root_hold() {
        for prime in [5u64, 13, 10_000_169 - 169 + 19, (1 << 52) - 143] {
            if !crate::math::prime::is_prime(prime) {
                continue;
            }
            let modulus = Modulus::new(prime);
            assert_eq!(modulus.multiply(modulus.inverse(3), 3), 1);
            if prime % 4 == 1 {
                let root = modulus.root_of_minus_one();
                assert_eq!(modulus.multiply(root, root), prime - 1);
            }
        }
    }

    #[test]
    fn minus_one_is_a_sum_of_two_squares() {
        for prime in (3..2000).filter(|&prime| crate::math::prime::is_prime(prime)).chain([(1 << 52) - 143]) {
            let modulus = Modulus::new(prime);
            let (a, b) = modulus.squares_of_minus_one();
            assert_eq!(modulus.add(modulus.multiply(a, a), modulus.multiply(b, b)), prime - 1, "{prime}");
        }
    }

    #[test]
    fn reduction_equals_the_big_integer() {
        let limbs = [0x0123_4567_89ab_cdef, u64::MAX, 7, 1 << 63];
        let big = rug::Integer::from_digits(&limbs, rug::integer::Order::Lsf);
        for prime in [3u64, 65_537, (1 << 52) - 47, (1 << 61) - 1] {
            assert_eq!(Modulus::new(prime).reduce(&limbs), big.mod_u64(prime));
        }
    }

    trait ModU64 {
        fn mod_u64(&self, modulus: u64) -> u64;
    }

    impl ModU64 for rug::Integer {
        fn mod_u64(&self, modulus: u64) -> u64 {
            rug::Integer::from(self % modulus).to_u64().expect("a residue fits")
        }
    }
}
