//! Residues of many integers and back, through FLINT's subproduct tree (`fmpz_comb`).
//!
//! The primes follow the rule that SDPB and FLINT share: the largest ones with
//! `terms (p/2)^2 < 2^53`, so that a sum of `terms` products of balanced residues is exact in a
//! double, and not above 1664544, so that FLINT reduces three of them at a time in one word.

use std::ffi::c_long;

use super::native::Fmpz;
use super::sys::{self, fmpz_comb_struct, fmpz_comb_temp_struct, ulong};

/// Entries converted together: four cache lines of doubles per prime.
pub(super) const BLOCK_ENTRIES: usize = 32;

/// The largest prime with which three residues share a word below 2^62.
const THREE_IN_A_WORD: u64 = 1_664_544;

/// Below this many bits FLINT does not cap the primes.
const CAP_FROM_BITS: u64 = 200;

/// The primes of one product and FLINT's tables for them.
pub(super) struct Comb {
    raw: fmpz_comb_struct,
    primes: Vec<Prime>,
}

/// One prime, with its inverse as a double.
struct Prime {
    value: i64,
    inverse: f64,
}

// SAFETY: after `new` the tables are only read.
unsafe impl Send for Comb {}
// SAFETY: as above.
unsafe impl Sync for Comb {}

impl Comb {
    /// Primes whose product exceeds `2^bits`, for sums of `terms` products.
    pub(super) fn new(bits: u64, terms: u64) -> Result<Self, String> {
        let values = choose_primes(bits, terms)
            .ok_or_else(|| format!("too few primes below the bound for {terms} terms and {bits} bits"))?;
        let mut raw = fmpz_comb_struct::default();
        // SAFETY: the primes are distinct and there is at least one; FLINT copies them.
        unsafe { sys::fmpz_comb_init(&raw mut raw, values.as_ptr(), values.len() as c_long) };
        let primes = values.iter().map(|&p| Prime { value: p as i64, inverse: 1.0 / p as f64 }).collect();
        Ok(Self { raw, primes })
    }

    /// How many primes there are.
    pub(super) fn prime_count(&self) -> usize {
        self.primes.len()
    }
}

impl Drop for Comb {
    fn drop(&mut self) {
        // SAFETY: the tables are initialised and not used again.
        unsafe { sys::fmpz_comb_clear(&raw mut self.raw) }
    }
}

/// The largest admissible primes, in descending order, until their product has more than `bits`
/// bits; `None` where they run out.
fn choose_primes(bits: u64, terms: u64) -> Option<Vec<ulong>> {
    let mut candidate = 2 + 2 * (((1_u64 << 53) - 1) / terms.max(1)).isqrt();
    if bits > CAP_FROM_BITS {
        candidate = candidate.min(THREE_IN_A_WORD);
    }
    let mut primes = Vec::new();
    let mut product = rug::Integer::from(1);
    while u64::from(product.significant_bits()) <= bits {
        candidate -= 1;
        if candidate < 1000 {
            return None;
        }
        // SAFETY: the function takes any word.
        if unsafe { sys::n_is_prime(candidate) } != 0 {
            primes.push(candidate);
            product *= candidate;
        }
    }
    Some(primes)
}

/// The memory that one thread needs to convert blocks of up to [`BLOCK_ENTRIES`] integers: FLINT's scratch
/// and the residues of the block, all primes of an entry side by side.
pub(super) struct CombBlock<'a> {
    comb: &'a Comb,
    scratch: fmpz_comb_temp_struct,
    residues: Vec<ulong>,
}

impl<'a> CombBlock<'a> {
    /// An empty block.
    pub(super) fn new(comb: &'a Comb) -> Self {
        let mut scratch = fmpz_comb_temp_struct::default();
        // SAFETY: the tables are initialised; the old content of `scratch` needs no freeing.
        unsafe { sys::fmpz_comb_temp_init(&raw mut scratch, &raw const comb.raw) };
        Self { comb, scratch, residues: vec![0; BLOCK_ENTRIES * comb.prime_count()] }
    }

    /// Takes the residues of the integers.
    pub(super) fn set_integers(&mut self, integers: &[Fmpz]) {
        let entries = self.residues.chunks_exact_mut(self.comb.prime_count());
        assert!(integers.len() <= BLOCK_ENTRIES);
        for (integer, residues) in integers.iter().zip(entries) {
            let comb = &raw const self.comb.raw;
            // SAFETY: tables and scratch belong together, and `residues` has a place per prime.
            unsafe { sys::fmpz_multi_mod_ui(residues.as_mut_ptr(), &raw const integer.0, comb, &raw mut self.scratch) };
        }
    }

    /// The residue of each entry modulo one prime, balanced round zero.
    pub(super) fn balanced(&self, prime_index: usize) -> impl Iterator<Item = f64> + use<'_, 'a> {
        let prime = self.comb.primes[prime_index].value;
        let residues = self.residues[prime_index..].iter().step_by(self.comb.prime_count());
        residues.map(move |&residue| {
            let residue = residue as i64;
            (if 2 * residue > prime { residue - prime } else { residue }) as f64
        })
    }

    /// Sets the residue of each entry modulo one prime to that of an integer in a double, which
    /// is below 2^53 in magnitude.
    pub(super) fn set_products(&mut self, prime_index: usize, products: &[f64]) {
        /// Adding this and taking it off again rounds a double below 2^51 to an integer.
        const ROUND: f64 = 1.5 * (1_u64 << 52) as f64;
        assert!(products.len() <= BLOCK_ENTRIES);
        let Prime { value, inverse } = self.comb.primes[prime_index];
        let residues = self.residues[prime_index..].iter_mut().step_by(self.comb.prime_count());
        for (residue, &product) in residues.zip(products) {
            let quotient = (product * inverse + ROUND) - ROUND;
            let balanced = product as i64 - quotient as i64 * value;
            *residue = (if balanced < 0 { balanced + value } else { balanced }) as ulong;
        }
    }

    /// Puts the entries together again, as the integers least in magnitude.
    pub(super) fn reconstruct(&mut self, integers: &mut [Fmpz]) {
        let entries = self.residues.chunks_exact(self.comb.prime_count());
        assert!(integers.len() <= BLOCK_ENTRIES);
        for (integer, residues) in integers.iter_mut().zip(entries) {
            let comb = &raw const self.comb.raw;
            // SAFETY: tables and scratch belong together, and `residues` has one per prime, each
            // below its prime.
            unsafe { sys::fmpz_multi_CRT_ui(&raw mut integer.0, residues.as_ptr(), comb, &raw mut self.scratch, 1) };
        }
    }
}

impl Drop for CombBlock<'_> {
    fn drop(&mut self) {
        // SAFETY: the scratch is initialised and not used again.
        unsafe { sys::fmpz_comb_temp_clear(&raw mut self.scratch) }
    }
}
