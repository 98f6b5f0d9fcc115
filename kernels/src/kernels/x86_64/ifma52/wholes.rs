//! Conversion of the residues of 16 bits of kernel `i16` to signed integers: they are first combined modulo products of
//! four of its primes, and then converted like residues of 52 bits.
//!
//! Let `y_i` be `r_i (M / p_i)^-1` modulo `p_i`, and `N < 2^52` the product of four of the primes. Then
//! `Y = sum_i y_i (N / p_i)` over the four gives `Y (M / N) = sum_i y_i (M / p_i)`, and modulo `N` it may be reduced,
//! which changes only the quotient: a quarter of the terms, and of the digits, that residues of 16 bits have.
//! Half a block (4 columns of 8 entries) is one vector of residues.
//! Bounds: docs/ALGORITHM.md, "Residues of 16 bits".

use super::digits::load_bytes;
use super::reconstruct::{COLUMNS, accumulate, put_together, scratch_words, weighted_words, write_quotients};
use super::tables::{Cofactors, cofactor_digits};
use crate::kernels::x86_64::cpu;
use crate::kernels::{BlockResidues, IntegerBlock};
use crate::math::family_i16::i16_weight_ratio;
use crate::plan::{BLOCK, BLOCK_WORDS};
use rug::Integer;
use std::arch::x86_64::*;

/// Primes of a product.
const GROUP: usize = 4;

/// Words of the residues of a block.
const RESIDUE_WORDS: usize = BLOCK_WORDS / 4;

/// One prime.
struct Weight {
    prime: i16,
    /// `w = (M / p)^-1` modulo `p`, balanced.
    weight: i16,
    /// `round(2^15 w / p)`.
    ratio: i16,
    /// `N / p`.
    cofactor: u64,
}

/// A product `N` of primes.
struct PrimeProduct {
    product: u64,
    /// `1 / N`.
    reciprocal: f64,
}

/// The tables for some primes; a value proves that the CPU has the instructions.
pub struct Wholes {
    weights: Vec<Weight>,
    composites: Vec<PrimeProduct>,
    digits: usize,
    cofactors: Vec<u64>,
}

impl Wholes {
    /// The tables for odd primes below `2^13` and the balanced inverses of their cofactors, if the CPU has the
    /// instructions.
    pub fn new(primes: &[u64], inverses: &[i64]) -> Option<Wholes> {
        cpu::has_ifma52().ok()?;
        assert!(primes.len() == inverses.len() && primes.iter().all(|&prime| prime < 1 << 13));
        let products = primes.chunks(GROUP).map(|primes| primes.iter().product::<u64>()).collect::<Vec<_>>();
        let weights = primes.iter().zip(inverses).enumerate().map(|(at, (&prime, &inverse))| Weight {
            prime: prime as i16,
            weight: inverse as i16,
            ratio: i16_weight_ratio(inverse, prime as i64) as i16,
            cofactor: products[at / GROUP] / prime,
        });
        let whole = products.iter().fold(Integer::from(1), |whole, &product| whole * product);
        let rest = products.iter().map(|&product| Integer::from(&whole / product)).collect::<Vec<_>>();
        let digits = whole.significant_bits().div_ceil(52) as usize;
        Some(Wholes {
            weights: weights.collect(),
            cofactors: cofactor_digits(&rest, &whole, digits),
            composites: products
                .iter()
                .map(|&product| PrimeProduct { product, reciprocal: 1.0 / product as f64 })
                .collect(),
            digits,
        })
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        let composites = self.composites.len() * size_of::<PrimeProduct>();
        (8 * self.cofactors.len() + composites + self.weights.len() * size_of::<Weight>()) as u64
    }

    /// Words of scratch for one call.
    pub fn scratch_words(&self) -> usize {
        scratch_words(self.table())
    }

    fn table(&self) -> Cofactors<'_> {
        Cofactors { terms: self.composites.len() + 1, digits: self.digits, table: &self.cofactors }
    }

    /// The integers of one block; see `PlaneEngine::reconstruct`.
    pub fn reconstruct(&self, residues: &BlockResidues<'_>, integers: &mut IntegerBlock, scratch: &mut [u64]) {
        let table = self.table();
        let (weighted, digits) = scratch[..scratch_words(table)].split_at_mut(weighted_words(table));
        for half in 0..BLOCK / COLUMNS {
            // SAFETY: only `new` makes this, after the CPU reported all instructions.
            unsafe {
                self.weigh(residues, half, weighted);
                put_together(table, weighted, half, digits, integers);
            }
        }
    }

    /// Digits of an integer.
    pub fn digits(&self) -> usize {
        self.digits
    }

    /// The integers of half a block as digits; see `DigitConversions::digits_of_sums`.
    pub fn sums<'s>(
        &self,
        residues: &BlockResidues<'_>,
        half: usize,
        scratch: &'s mut [u64],
    ) -> (&'s [u64], [u8; COLUMNS]) {
        let table = self.table();
        let (weighted, digits) = scratch[..scratch_words(table)].split_at_mut(weighted_words(table));
        // SAFETY: only `new` makes this, after the CPU reported all instructions.
        let signs = unsafe {
            self.weigh(residues, half, weighted);
            accumulate(table, weighted, digits)
        };
        (digits, signs)
    }

    /// `Y` for every product, and after them the quotient, 4 vectors each.
    #[target_feature(enable = "avx512f,avx512ifma,avx512bw,avx512dq,avx512vbmi")]
    fn weigh(&self, residues: &BlockResidues<'_>, half: usize, weighted: &mut [u64]) {
        let mut quotients = [_mm512_setzero_pd(); COLUMNS];
        let mut slots = weighted.chunks_exact_mut(COLUMNS * BLOCK);
        for ((group, composite), slot) in self.composites.iter().enumerate().zip(&mut slots) {
            let sums = self.group_sums(group, residues, half);
            let (product, twice) =
                (_mm512_set1_epi64(composite.product as i64), _mm512_set1_epi64(2 * composite.product as i64));
            let reciprocal = _mm512_set1_pd(composite.reciprocal);
            for (column, slot) in slot.chunks_exact_mut(BLOCK).enumerate() {
                // Up to four products: two, then one are subtracted where they are present.
                let sum = _mm512_min_epu64(sums[column], _mm512_sub_epi64(sums[column], twice));
                let sum = _mm512_min_epu64(sum, _mm512_sub_epi64(sum, product));
                // SAFETY: the chunk has 8 words.
                unsafe { _mm512_storeu_si512(slot.as_mut_ptr().cast(), sum) };
                quotients[column] = _mm512_fmadd_pd(_mm512_cvtepu64_pd(sum), reciprocal, quotients[column]);
            }
        }
        write_quotients(quotients, slots.next().expect("a slot for the quotients"));
    }

    /// `sum_i y_i (N / p_i)` over the primes of a product, with `y_i` in `[0, p_i]`: a vector for each column.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma,avx512bw,avx512vbmi")]
    fn group_sums(&self, group: usize, residues: &BlockResidues<'_>, half: usize) -> [__m512i; COLUMNS] {
        let (order, mask) = (load_bytes(&COLUMN_BYTES), _mm512_set1_epi64(0xffff));
        let mut sums = [_mm512_setzero_si512(); COLUMNS];
        for (at, prime) in self.weights.iter().enumerate().skip(group * GROUP).take(GROUP) {
            let words = &residues.words_of_prime(at, RESIDUE_WORDS)[half * BLOCK..][..BLOCK];
            // SAFETY: there are 8 words.
            let residue = unsafe { _mm512_loadu_si512(words.as_ptr().cast()) };
            let modulus = _mm512_set1_epi16(prime.prime);
            let multiples = _mm512_mulhrs_epi16(residue, _mm512_set1_epi16(prime.ratio));
            let weighted = _mm512_mullo_epi16(residue, _mm512_set1_epi16(prime.weight));
            let balanced = _mm512_sub_epi16(weighted, _mm512_mullo_epi16(multiples, modulus));
            let least = _mm512_min_epu16(balanced, _mm512_add_epi16(balanced, modulus));
            let least = _mm512_permutexvar_epi8(order, least);
            let columns = [
                _mm512_and_si512(least, mask),
                _mm512_and_si512(_mm512_srli_epi64::<16>(least), mask),
                _mm512_and_si512(_mm512_srli_epi64::<32>(least), mask),
                _mm512_srli_epi64::<48>(least),
            ];
            let cofactor = _mm512_set1_epi64(prime.cofactor as i64);
            for (sum, column) in sums.iter_mut().zip(columns) {
                *sum = _mm512_madd52lo_epu64(*sum, column, cofactor);
            }
        }
        sums
    }
}

/// Where the bytes of 4 columns of 8 entries lie, such that the entries of a row are a lane.
const COLUMN_BYTES: [u8; 64] = {
    let mut bytes = [0; 64];
    let mut at = 0;
    while at < 64 {
        let (row, column) = (at / 8, at % 8 / 2);
        bytes[at] = (2 * (BLOCK * column + row) + at % 2) as u8;
        at += 1;
    }
    bytes
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::family_i16::i16_primes;
    use crate::math::modulus::Modulus;

    /// Residues of any 16 bits: `Y` is reduced, and the block is that of exact arithmetic.
    #[test]
    fn any_residues_are_put_together() {
        let primes = i16_primes();
        for (first, count) in [(0, 1), (0, 4), (0, 5), (3, 41), (primes.len() - 9, 9), (0, primes.len())] {
            let primes = &primes[first..first + count];
            let whole = primes.iter().fold(Integer::from(1), |whole, &prime| whole * prime);
            let inverse = |&prime: &u64| {
                let modulus = Modulus::new(prime);
                modulus.balanced(modulus.inverse(modulus.reduce(Integer::from(&whole / prime).as_limbs())))
            };
            let inverses: Vec<_> = primes.iter().map(inverse).collect();
            let Some(wholes) = Wholes::new(primes, &inverses) else { return println!("skipped: no AVX-512 IFMA") };
            // The largest residues of either sign, the largest halves of either sign, and others.
            let residue = |prime: usize, entry: usize| match entry {
                0 => (primes[prime] / 2) as i16,
                1 => -((primes[prime] / 2) as i16),
                2 => i16::MAX,
                3 => i16::MIN,
                4 => 0,
                _ => (entry * 7919 + prime * 104_729) as i16,
            };
            let halves: Vec<i16> =
                (0..count).flat_map(|prime| (0..BLOCK_WORDS).map(move |entry| residue(prime, entry))).collect();
            let window = bytemuck::pod_collect_to_vec::<i16, u64>(&halves);
            let residues = BlockResidues { window: &window, plane_words: RESIDUE_WORDS, offset: 0 };
            let mut scratch = vec![u64::MAX; wholes.scratch_words()];
            let mut block = IntegerBlock::new(whole.significant_digits::<u64>());
            wholes.reconstruct(&residues, &mut block, &mut scratch);
            for (at, composite) in wholes.composites.iter().enumerate() {
                let weighted = &scratch[at * COLUMNS * BLOCK..][..COLUMNS * BLOCK];
                assert!(weighted.iter().all(|&sum| sum <= composite.product), "{first}, {count}: not reduced");
            }
            for entry in 0..BLOCK_WORDS {
                let magnitude = Integer::from_digits(block.magnitude(entry), rug::integer::Order::Lsf);
                let value = if block.negative[entry] { -magnitude } else { magnitude };
                for (prime, &modulus) in primes.iter().enumerate() {
                    let difference = Integer::from(&value - residue(prime, entry));
                    assert!(difference.is_divisible_u(modulus as u32), "entry {entry} modulo {modulus}");
                }
                assert!(*value.as_abs() <= whole, "entry {entry} is beyond the product");
            }
        }
    }
}
