//! Moduli of one engine and the constant tables of its conversions.
//!
//! Knows: big integers, once, while the tables are made. Does not know: matrices, instructions.
#![forbid(unsafe_code)]

use super::combine::Table;
use crate::kernels::EngineSpec;
use crate::math::bound::f64_digit_bits;
use crate::math::family::{f64_prime_count, f64_prime_count_redundant, f64_primes};
use crate::math::modulus::Modulus;
use rug::Integer;
use rug::integer::Order;

/// Number of planes for `spec`.
pub fn plane_count(spec: &EngineSpec) -> usize {
    if spec.redundant { f64_prime_count_redundant(spec.modulus_bits) } else { f64_prime_count(spec.modulus_bits) }
}

/// An integer as `sum_i d_i 2^(bits i)` with balanced digits, `-2^(bits-1) <= d_i < 2^(bits-1)`.
#[derive(Clone, Copy)]
pub struct Digits {
    /// Bits of a digit.
    pub bits: u32,
    /// Number of digits.
    pub count: usize,
}

impl Digits {
    /// The widest digits for integers of magnitude at most `2^magnitude_bits`, when `terms(count)` of them are summed
    /// times residues modulo `modulus`.
    fn for_magnitude(magnitude_bits: u32, modulus: u64, terms: impl Fn(usize) -> usize) -> Digits {
        // The widest digits may make so many terms that they must be narrower, and so on: at most a few rounds.
        let mut bits = f64_digit_bits(1, modulus);
        loop {
            // Two bits more than the magnitude: one for the sign, one because the highest digit is balanced, too.
            let count = (magnitude_bits + 2).div_ceil(bits) as usize;
            let allowed = f64_digit_bits(terms(count), modulus);
            if allowed >= bits {
                return Digits { bits, count };
            }
            bits -= 1;
        }
    }

    /// `sum_i 2^(bits - 1) 2^(bits i)`: added to an integer in range it makes the plain digits of the sum the balanced
    /// digits of the integer, each too large by `2^(bits - 1)`.
    pub fn offset(&self) -> Integer {
        (0..self.count).fold(Integer::new(), |sum, digit| sum + (Integer::from(1) << (self.shift(digit + 1) - 1)))
    }

    /// Limbs that hold the digits.
    pub fn limbs(&self) -> usize {
        self.shift(self.count).div_ceil(64) as usize
    }

    /// The balanced digits of a non-negative integer in range.
    fn of(&self, integer: &Integer) -> Vec<f64> {
        let sum = integer + self.offset();
        assert!(sum.significant_bits() <= self.shift(self.count), "too few digits");
        let half = Integer::from(1) << (self.bits - 1);
        (0..self.count)
            .map(|digit| Integer::from(&sum >> self.shift(digit)).keep_bits(self.bits) - &half)
            .map(|digit| digit.to_f64())
            .collect()
    }

    fn shift(&self, digit: usize) -> u32 {
        digit as u32 * self.bits
    }
}

/// Everything an engine knows.
pub struct Tables {
    /// The primes in plane order.
    pub moduli: Vec<u64>,
    /// The primes as doubles.
    pub primes: Vec<f64>,
    /// The doubles nearest to the inverses of the primes.
    pub inverses: Vec<f64>,
    /// Digits of the scaled integers.
    pub operand: Digits,
    /// [`Digits::offset`] of the operand digits, as limbs.
    pub operand_offset: Vec<u64>,
    /// Balanced residues of the radix powers: terms are digits, outputs are primes.
    pub radix_powers: Table,
    /// Digits of the reconstructed integers.
    pub result: Digits,
    /// Balanced residues of `(M / p_i)^-1` modulo `p_i`.
    pub weights: Vec<f64>,
    /// Digits of `M / p_i` for each prime, then those of `M`: terms are primes and `M`, outputs are digits.
    pub cofactors: Table,
    /// Limbs of `M`.
    pub magnitude_limbs: usize,
}

impl Tables {
    /// The tables for `spec`, which is in range.
    pub fn new(spec: &EngineSpec) -> Tables {
        let moduli = f64_primes()[..plane_count(spec)].to_vec();
        let operand = Digits::for_magnitude(spec.operand_bits, moduli[0], |count| count);
        let balanced = |prime: u64, least: u64| Modulus::new(prime).balanced(least) as f64;
        let radix_powers = Table::new(operand.count, moduli.len(), |digit, prime| {
            let prime = moduli[prime];
            balanced(prime, Modulus::new(prime).power(1 << operand.bits, digit as u64))
        });
        let product = moduli.iter().fold(Integer::from(1), |product, &prime| product * prime);
        // Each residue and the quotient (at most half the number of primes) times a digit.
        let result = Digits::for_magnitude(product.significant_bits(), moduli[0], |_| moduli.len() + 1);
        let mut weights = Vec::with_capacity(moduli.len());
        let mut rows = Vec::with_capacity(moduli.len() + 1);
        for &prime in &moduli {
            let cofactor = Integer::from(&product / prime);
            let modulus = Modulus::new(prime);
            weights.push(balanced(prime, modulus.inverse(modulus.reduce(cofactor.as_limbs()))));
            rows.push(result.of(&cofactor));
        }
        rows.push(result.of(&product));
        let cofactors = Table::new(rows.len(), result.count, |row, digit| rows[row][digit]);
        let mut operand_offset = operand.offset().to_digits::<u64>(Order::Lsf);
        operand_offset.resize(operand.limbs(), 0);
        Tables {
            primes: moduli.iter().map(|&prime| prime as f64).collect(),
            inverses: moduli.iter().map(|&prime| 1.0 / prime as f64).collect(),
            moduli,
            operand,
            operand_offset,
            radix_powers,
            result,
            weights,
            cofactors,
            magnitude_limbs: product.significant_digits::<u64>(),
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        let words = self.moduli.len() * 4 + self.operand_offset.len();
        self.radix_powers.bytes() + self.cofactors.bytes() + words as u64 * 8
    }
}
