//! Moduli of one engine and the constant tables of its conversions.
//!
//! Depends on: big integers, once, while the tables are made. Independent of: matrices, instructions.
#![forbid(unsafe_code)]

use super::combine::F64Table;
use crate::kernels::EngineSpec;
use crate::kernels::radix::Digits;
use crate::math::bound::f64_digit_bits;
use crate::math::family::{f64_prime_count, f64_prime_count_redundant, f64_primes};
use crate::math::modulus::Modulus;
use rug::Integer;

/// Number of planes for `spec`.
pub fn plane_count(spec: &EngineSpec) -> usize {
    if spec.redundant { f64_prime_count_redundant(spec.modulus_bits) } else { f64_prime_count(spec.modulus_bits) }
}

/// The widest digits for `integer_bits` bits, when `terms(count)` products of a digit and a residue modulo at most
/// `modulus` are summed and `spare` bits of [`f64_digit_bits`] are not to be used.
fn widest(integer_bits: u32, modulus: u64, spare: u32, terms: impl Fn(usize) -> usize) -> Digits {
    Digits::widest(integer_bits, f64_digit_bits(1, modulus) - spare, |count| {
        f64_digit_bits(terms(count), modulus) - spare
    })
}

/// All constants of an engine.
pub struct F64Tables {
    /// The primes in plane order.
    pub moduli: Vec<u64>,
    /// The primes as doubles.
    pub primes: Vec<f64>,
    /// The doubles nearest to the inverses of the primes.
    pub inverses: Vec<f64>,
    /// Plain digits of the scaled integers' magnitudes.
    pub operand: Digits,
    /// Balanced residues of the radix powers: terms are digits, outputs are primes.
    pub radix_powers: F64Table,
    /// Balanced digits of the reconstructed integers.
    pub result: Digits,
    /// Balanced residues of `(M / p_i)^-1` modulo `p_i`.
    pub weights: Vec<f64>,
    /// Digits of `M / p_i` for each prime, then those of `M`: terms are primes and `M`, outputs are digits.
    pub cofactors: F64Table,
    /// Limbs of `M`.
    pub magnitude_limbs: usize,
}

impl F64Tables {
    /// The tables for `spec`, which is in range.
    pub fn new(spec: &EngineSpec) -> F64Tables {
        let moduli = f64_primes()[..plane_count(spec)].to_vec();
        // A plain digit is below 2^bits, twice a balanced one, so one bit is spared; the lowest digit plus the rounding
        // bit may reach 2^bits. The magnitude itself may be 2^operand_bits.
        let operand = widest(spec.operand_bits + 1, moduli[0], 1, |count| count);
        let balanced = |prime: u64, least: u64| Modulus::new(prime).balanced(least) as f64;
        let radix_powers = F64Table::new(operand.count, moduli.len(), |digit, prime| {
            let prime = moduli[prime];
            balanced(prime, Modulus::new(prime).power(1 << operand.bits, digit as u64))
        });
        let product = moduli.iter().fold(Integer::from(1), |product, &prime| product * prime);
        // Each residue and the quotient (at most half the number of primes) times a digit. Two bits more than those of
        // M: for the sign, and because the highest digit is balanced, too.
        let result = widest(product.significant_bits() + 2, moduli[0], 0, |_| moduli.len() + 1);
        let mut weights = Vec::with_capacity(moduli.len());
        let mut rows = Vec::with_capacity(moduli.len() + 1);
        for &prime in &moduli {
            let cofactor = Integer::from(&product / prime);
            let modulus = Modulus::new(prime);
            weights.push(balanced(prime, modulus.inverse(modulus.reduce(cofactor.as_limbs()))));
            rows.push(result.balanced(&cofactor));
        }
        rows.push(result.balanced(&product));
        let cofactors = F64Table::new(rows.len(), result.count, |row, digit| rows[row][digit] as f64);
        F64Tables {
            primes: moduli.iter().map(|&prime| prime as f64).collect(),
            inverses: moduli.iter().map(|&prime| 1.0 / prime as f64).collect(),
            moduli,
            operand,
            radix_powers,
            result,
            weights,
            cofactors,
            magnitude_limbs: product.significant_digits::<u64>(),
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.radix_powers.bytes() + self.cofactors.bytes() + self.moduli.len() as u64 * 4 * 8
    }
}
