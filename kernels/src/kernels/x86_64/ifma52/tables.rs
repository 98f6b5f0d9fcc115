//! Conversion tables of the IFMA engine: radix powers modulo each prime, cofactor digits, weights.

use crate::math::family::{IFMA52_BITS, ifma52_primes};
use crate::math::modulus::Modulus;
use rug::Integer;
use rug::integer::Order;

/// Everything the conversions read; all digits are base `2^52`.
pub struct Ifma52Tables {
    /// The moduli in plane order.
    pub primes: Vec<u64>,
    /// Digits of a scaled operand entry.
    pub operand_digits: usize,
    /// `2^(52 d) mod p_i` at `i * operand_digits + d`.
    pub radix_powers: Vec<u64>,
    /// `w_i = (M / p_i)^-1 mod p_i`.
    pub weights: Vec<u64>,
    /// A square root of -1 modulo each prime.
    pub roots: Vec<u64>,
    /// `1 / p_i`.
    pub reciprocals: Vec<f64>,
    /// Digit `d` of `M / p_i` at `d * (n + 1) + i`, and digit `d` of `2^(52 n) - M` at `d * (n + 1) + n`.
    pub cofactors: Vec<u64>,
}

/// The factors of weighted residues.
#[derive(Clone, Copy)]
pub struct Cofactors<'a> {
    /// Moduli, and one for the quotient.
    pub terms: usize,
    /// Digits of a result.
    pub digits: usize,
    /// Digit `d` of term `t` at `d * terms + t`; see [`cofactor_digits`].
    pub table: &'a [u64],
}

impl Ifma52Tables {
    /// Tables for the first `count` primes of the family and operands of at most `2^operand_bits`.
    pub fn new(count: usize, operand_bits: u32) -> Ifma52Tables {
        let primes = ifma52_primes()[..count].to_vec();
        let operand_digits = (operand_bits / IFMA52_BITS + 1) as usize;
        let mut radix_powers = Vec::with_capacity(count * operand_digits);
        for &prime in &primes {
            let c = (1u64 << IFMA52_BITS) - prime; // 2^52 = c modulo p
            let modulus = Modulus::new(prime);
            radix_powers.extend((0..operand_digits).map(|digit| modulus.power(c, digit as u64)));
        }
        let product = primes.iter().fold(Integer::from(1), |product, &prime| product * prime);
        let cofactors = primes.iter().map(|&prime| Integer::from(&product / prime)).collect::<Vec<_>>();
        let weights = primes.iter().zip(&cofactors).map(|(&prime, cofactor)| {
            let modulus = Modulus::new(prime);
            modulus.inverse(modulus.reduce(cofactor.as_limbs()))
        });
        let weights = weights.collect();
        let cofactors = cofactor_digits(&cofactors, &product, count);
        let roots = primes.iter().map(|&prime| Modulus::new(prime).root_of_minus_one()).collect();
        let reciprocals = primes.iter().map(|&prime| 1.0 / prime as f64).collect();
        Ifma52Tables { primes, operand_digits, radix_powers, weights, roots, reciprocals, cofactors }
    }

    /// Number of primes, and of digits of a product.
    pub fn count(&self) -> usize {
        self.primes.len()
    }

    /// The table of the reconstruction.
    pub fn cofactors(&self) -> Cofactors<'_> {
        Cofactors { terms: self.count() + 1, digits: self.count(), table: &self.cofactors }
    }

    /// Bytes of all tables.
    pub fn bytes(&self) -> u64 {
        8 * (self.radix_powers.len() + self.cofactors.len() + 4 * self.count()) as u64
    }
}

/// Digit `d` of each `M / p_i` at `d * (n + 1) + i`, and of `2^(52 count) - M` behind them, for an `M` below
/// `2^(52 count)`.
pub fn cofactor_digits(cofactors: &[Integer], product: &Integer, count: usize) -> Vec<u64> {
    let complement = (Integer::from(1) << (IFMA52_BITS * count as u32)) - product;
    let terms = cofactors.len() + 1;
    // One number after the other, since all of their digits in lists of their own would take as much again.
    let mut table = vec![0; count * terms];
    for (term, value) in cofactors.iter().chain([&complement]).enumerate() {
        for (digit, value) in digits(value, count).into_iter().enumerate() {
            table[digit * terms + term] = value;
        }
    }
    table
}

/// The low `count` digits of a non-negative integer, least first.
fn digits(value: &Integer, count: usize) -> Vec<u64> {
    let limbs = value.to_digits::<u64>(Order::Lsf);
    let limb = |index: usize| limbs.get(index).copied().unwrap_or(0);
    (0..count)
        .map(|digit| {
            let bit = digit * IFMA52_BITS as usize;
            let (index, shift) = (bit / 64, bit % 64);
            let pair = (u128::from(limb(index + 1)) << 64) | u128::from(limb(index));
            (pair >> shift) as u64 & ((1 << IFMA52_BITS) - 1)
        })
        .collect()
}
