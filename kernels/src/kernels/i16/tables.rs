//! Moduli of one engine and the constant tables of its conversions.
//!
//! Depends on: big integers, once, while the tables are made. Independent of: matrices, instructions.
#![forbid(unsafe_code)]

use super::micro::{COLUMNS, FoldedPrime, Prime, pair};
use crate::kernels::EngineSpec;
use crate::kernels::radix::Digits;
use crate::math::bound::{
    I16_DIGIT_BITS, I16_PRIME_BITS, I16_QUOTIENT_BITS, i16_digit_bits, i16_digit_sum_fits, i16_sum_pairs,
};
use crate::math::family_i16::{i16_prime_count, i16_prime_count_redundant, i16_primes, i16_weight_ratio};
use crate::math::modulus::Modulus;
use rug::Integer;

/// Number of planes for `spec`.
pub fn plane_count(spec: &EngineSpec) -> usize {
    if spec.redundant { i16_prime_count_redundant(spec.modulus_bits) } else { i16_prime_count(spec.modulus_bits) }
}

/// The constant factors of a conversion: terms in pairs, outputs in groups of [`COLUMNS`].
pub struct I16Table {
    pairs: usize,
    outputs: usize,
    words: Vec<[i32; COLUMNS]>,
}

impl I16Table {
    /// A table of zeros.
    fn empty(terms: usize, outputs: usize) -> I16Table {
        let pairs = terms.div_ceil(2);
        I16Table { pairs, outputs, words: vec![[0; COLUMNS]; pairs * outputs.div_ceil(COLUMNS)] }
    }

    /// The table with `entry(term, output)`, integers of 16 bits.
    fn new(terms: usize, outputs: usize, entry: impl Fn(usize, usize) -> i64) -> I16Table {
        let mut table = I16Table::empty(terms, outputs);
        for term in 0..terms {
            let factors: Vec<_> = (0..outputs).map(|output| entry(term, output)).collect();
            table.set_term(term, &factors);
        }
        table
    }

    /// Sets all factors of a term, which are 0 before: tables of many primes are made a term at a time.
    fn set_term(&mut self, term: usize, factors: &[i64]) {
        let rows = self.words[term / 2..].iter_mut().step_by(self.pairs);
        for (row, factors) in rows.zip(factors.chunks(COLUMNS)) {
            for (pair, &factor) in row.iter_mut().zip(factors) {
                let half = i16::try_from(factor).expect("factors have 16 bits");
                *pair |= i32::from(half as u16) << (16 * (term % 2));
            }
        }
    }

    /// Pairs of terms.
    pub fn pairs(&self) -> usize {
        self.pairs
    }

    /// Number of sums.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Groups of outputs.
    pub fn groups(&self) -> usize {
        self.outputs.div_ceil(COLUMNS)
    }

    /// The factors of one group, pair by pair.
    #[inline(always)]
    pub fn group(&self, index: usize) -> &[[i32; COLUMNS]] {
        &self.words[index * self.pairs..][..self.pairs]
    }

    fn bytes(&self) -> u64 {
        (self.words.len() * COLUMNS * 4) as u64
    }
}

/// A skew-orthogonal matrix of order 2, `(a, -b; b, a)` with `a^2 + b^2 = -1`, as pairs that rows are multiplied with;
/// both are ready for Montgomery's reduction.
#[derive(Clone, Copy)]
pub struct Rotation {
    /// For the first row of the result: `2^16 (a, b)`.
    pub even: i32,
    /// For the second one: `2^16 (-b, a)`.
    pub odd: i32,
}

impl Rotation {
    /// For an odd prime, modulo which -1 is a sum of two squares.
    pub fn new(modulus: Modulus) -> Rotation {
        let (a, b) = modulus.squares_of_minus_one();
        let lifted = |residue: u64| modulus.balanced(modulus.multiply(residue, 1 << 16)) as i32;
        let (a, b) = (lifted(a), lifted(b));
        Rotation { even: pair(a, b), odd: pair(-b, a) }
    }
}

/// Constants for products modulo one prime.
#[derive(Clone, Copy)]
pub struct ProductConstants {
    /// The prime, and when its sums are folded.
    pub field: FoldedPrime,
    /// For the products of a matrix with itself.
    pub rotation: Rotation,
}

/// The weights of two neighbouring primes as pairs.
#[derive(Clone, Copy)]
pub struct PairWeights {
    /// `(M / p)^-1` modulo `p`, balanced.
    pub weight: i32,
    /// `round(2^15 weight / p)`.
    pub ratio: i32,
    /// The primes.
    pub prime: i32,
}

/// Tables of every engine.
pub struct Tables {
    /// The primes in plane order.
    pub moduli: Vec<u64>,
    /// Constants for products, of each prime.
    pub factors: Vec<ProductConstants>,
    /// `(M / p_i)^-1` modulo each prime `p_i`, balanced.
    pub inverses: Vec<i64>,
    /// Limbs of `M`.
    pub magnitude_limbs: usize,
}

impl Tables {
    /// The tables for `spec`, which is in range.
    pub fn new(spec: &EngineSpec) -> Tables {
        let moduli = i16_primes()[..plane_count(spec)].to_vec();
        let product = product(&moduli);
        let inverse = |&prime: &u64| {
            let modulus = Modulus::new(prime);
            modulus.balanced(modulus.inverse(modulus.reduce(Integer::from(&product / prime).as_limbs())))
        };
        Tables {
            factors: moduli.iter().zip(&folds(&moduli)).map(|(&prime, &fold)| factors(prime, fold)).collect(),
            inverses: moduli.iter().map(inverse).collect(),
            magnitude_limbs: product.significant_digits::<u64>(),
            moduli,
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        (self.moduli.len() * 16 + self.factors.len() * size_of::<ProductConstants>()) as u64
    }
}

/// Tables of the reconstruction by balanced digits.
pub struct ResultTables {
    /// Number of primes.
    pub count: usize,
    /// Balanced digits of the reconstructed integers.
    pub result: Digits,
    /// Weights of the primes, in pairs.
    pub weights: Vec<PairWeights>,
    /// Digits of `2^30 / p_i`: terms are primes, outputs are digits of the result's width.
    pub quotients: I16Table,
    /// Digits of `M / p_i` for each prime, then those of `M`, which begin a pair.
    pub cofactors: I16Table,
}

impl ResultTables {
    /// The tables for the primes of `tables`.
    pub fn new(tables: &Tables) -> ResultTables {
        let moduli = &tables.moduli;
        let product = product(moduli);
        // Two bits more than those of M: for the sign, and because the highest digit is balanced, too.
        let bits = i16_digit_bits(moduli.len() + 1);
        let result = Digits { bits, count: (product.significant_bits() + 2).div_ceil(bits) as usize };
        let mut cofactors = I16Table::empty(moduli.len().next_multiple_of(2) + 1, result.count);
        for (term, &prime) in moduli.iter().enumerate() {
            cofactors.set_term(term, &result.balanced(&Integer::from(&product / prime)));
        }
        cofactors.set_term(moduli.len().next_multiple_of(2), &result.balanced(&product));
        let shares = Digits { bits, count: (I16_QUOTIENT_BITS - I16_PRIME_BITS + 5).div_ceil(bits) as usize };
        let share = |prime: u64| shares.balanced(&Integer::from(((1 << I16_QUOTIENT_BITS) + prime / 2) / prime));
        let share_rows: Vec<_> = moduli.iter().map(|&prime| share(prime)).collect();
        ResultTables {
            count: moduli.len(),
            result,
            weights: paired_weights(moduli, &tables.inverses),
            quotients: I16Table::new(moduli.len(), shares.count, |prime, digit| share_rows[prime][digit]),
            cofactors,
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        let tables = [&self.quotients, &self.cofactors].map(I16Table::bytes);
        tables.into_iter().sum::<u64>() + (self.weights.len() * size_of::<PairWeights>()) as u64
    }
}

/// The product of all primes.
fn product(moduli: &[u64]) -> Integer {
    moduli.iter().fold(Integer::from(1), |product, &prime| product * prime)
}

/// Tables of the conversion of operands by digits of 16 bits.
pub struct OperandTables {
    /// The primes, ready for reductions, padded to whole groups.
    pub primes: Vec<[Prime; COLUMNS]>,
    /// Number of balanced digits of the scaled integers.
    pub digits: usize,
    /// Pairs of digits after which sums modulo the primes of a group are folded.
    pub intervals: Vec<usize>,
    /// Balanced residues of the radix powers: terms are digits, outputs are primes.
    pub radix_powers: I16Table,
}

impl OperandTables {
    /// The tables for operands of `operand_bits` bits.
    pub fn new(moduli: &[u64], operand_bits: u32) -> OperandTables {
        // The magnitude may be 2^operand_bits, and the highest digit must not be carried out of.
        let digits = (operand_bits + 2).div_ceil(I16_DIGIT_BITS) as usize;
        let (primes, radix_powers) = (prime_groups(moduli), radix_powers(digits, moduli));
        let intervals = primes.iter().enumerate().map(|(group, primes)| interval(radix_powers.group(group), primes));
        OperandTables { intervals: intervals.collect(), primes, digits, radix_powers }
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        let group = COLUMNS * size_of::<Prime>() + size_of::<usize>();
        self.radix_powers.bytes() + (self.primes.len() * group) as u64
    }
}

/// `2^16` modulo each prime, balanced.
fn folds(moduli: &[u64]) -> Vec<i64> {
    moduli.iter().map(|&prime| Modulus::new(prime).balanced((1 << 16) % prime)).collect()
}

/// Constants for products modulo `prime`.
fn factors(prime: u64, fold: i64) -> ProductConstants {
    let half = (prime / 2) as u32;
    let interval = i16_sum_pairs(half, half, fold.unsigned_abs() as u32);
    ProductConstants {
        field: FoldedPrime { prime: Prime::new(prime), interval },
        rotation: Rotation::new(Modulus::new(prime)),
    }
}

/// Pairs of digits between folds for a group of primes: of the fewest equal runs whose sums fit. The factors of the
/// table are known, and on average half as large as they may be.
fn interval(factors: &[[i32; COLUMNS]], primes: &[Prime; COLUMNS]) -> usize {
    let size = |pair: i32| u64::from((pair as i16).unsigned_abs()) + u64::from((pair >> 16).unsigned_abs());
    let fits = |pairs: &usize| {
        factors.chunks(*pairs).enumerate().all(|(number, run)| {
            (0..COLUMNS).all(|column| {
                let fold = if number == 0 { 0 } else { (primes[column].fold >> 16).unsigned_abs() };
                i16_digit_sum_fits(run.iter().map(|row| size(row[column])).sum(), fold)
            })
        })
    };
    let runs = 1..=factors.len();
    runs.map(|runs| factors.len().div_ceil(runs)).find(fits).expect("one pair of digits fits")
}

/// Residues of the powers of their radix.
fn radix_powers(digits: usize, moduli: &[u64]) -> I16Table {
    let moduli: Vec<_> = moduli.iter().map(|&prime| Modulus::new(prime)).collect();
    let mut powers = vec![1; moduli.len()];
    let mut table = I16Table::empty(digits, moduli.len());
    for digit in 0..digits {
        let balanced: Vec<_> = moduli.iter().zip(&powers).map(|(modulus, &power)| modulus.balanced(power)).collect();
        table.set_term(digit, &balanced);
        moduli
            .iter()
            .zip(&mut powers)
            .for_each(|(modulus, power)| *power = modulus.multiply(*power, 1 << I16_DIGIT_BITS));
    }
    table
}

/// Primes in groups; those past the last are the last one again.
fn prime_groups(moduli: &[u64]) -> Vec<[Prime; COLUMNS]> {
    let ready = |at: usize| Prime::new(moduli[at.min(moduli.len() - 1)]);
    (0..moduli.len().div_ceil(COLUMNS)).map(|group| std::array::from_fn(|at| ready(group * COLUMNS + at))).collect()
}

fn paired_weights(moduli: &[u64], weights: &[i64]) -> Vec<PairWeights> {
    let pair = |low: i64, high: i64| pair(low as i32, high as i32);
    let both = |at: usize| {
        let of = |at: usize| match moduli.get(at) {
            Some(&prime) => (weights[at], prime as i64),
            None => (0, 1),
        };
        let ratio = |(weight, prime)| i16_weight_ratio(weight, prime);
        let (low, high) = (of(at), of(at + 1));
        PairWeights { weight: pair(low.0, high.0), ratio: pair(ratio(low), ratio(high)), prime: pair(low.1, high.1) }
    };
    (0..moduli.len()).step_by(2).map(both).collect()
}
