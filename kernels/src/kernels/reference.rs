//! The reference kernel: every step by the plain, slow method, on the `ifma52` primes.
//!
//! Promise: complete and safe; the oracle for the fast kernels, which must agree with it word for word on the residues
//! and bit for bit on the integers. Scaled integers and the reconstruction go through `rug::Integer`.
#![forbid(unsafe_code)]

use crate::error::{Error, Result};
use crate::kernels::dots::{DotSource, FixedVector, by_limbs, limb_bytes};
use crate::kernels::{
    BlockResidues, EngineSpec, IntegerBlock, KernelSelection, PanelSource, PlaneEngine, PlaneFormat, PlaneKernel,
    PlaneProduct, SmallTriangles,
};
use crate::math::bound::ifma52_prime_count;
use crate::math::family::{ifma52_maximum_modulus_bits, ifma52_primes};
use crate::math::modulus::Modulus;
use crate::math::scale::scaled_integer;
use crate::plan::{BLOCK, BLOCK_WORDS, BlockGrid};
use rug::Integer;
use rug::integer::Order;
use std::ops::Range;
use std::sync::Arc;

/// Its name in the table.
pub const NAME: &str = "reference";

/// The reference kernel; it needs no special instructions.
pub struct Reference;

/// Always succeeds.
pub fn probe() -> std::result::Result<&'static dyn PlaneKernel, &'static str> {
    Ok(&Reference)
}

impl KernelSelection for Reference {}

impl SmallTriangles for Reference {}

impl PlaneKernel for Reference {
    fn name(&self) -> &'static str {
        NAME
    }

    fn family(&self) -> &'static str {
        "ifma52"
    }

    fn maximum_modulus_bits(&self) -> u32 {
        ifma52_maximum_modulus_bits()
    }

    fn plane_count(&self, spec: &EngineSpec) -> usize {
        let count = ifma52_prime_count(spec.modulus_bits) + usize::from(spec.redundant);
        assert!(count <= ifma52_primes().len());
        count
    }

    fn dots(&self, sources: &[DotSource<'_>], vector: &FixedVector, sums: &mut [Integer; BLOCK]) {
        by_limbs(sources, vector, sums);
    }

    fn dots_bytes(&self, digits: usize) -> u64 {
        limb_bytes(digits)
    }

    fn prepare(&self, spec: &EngineSpec) -> Result<Arc<dyn PlaneEngine>> {
        if spec.modulus_bits > self.maximum_modulus_bits() {
            let maximum_bits = u64::from(self.maximum_modulus_bits());
            return Err(Error::Precision { precision_bits: spec.modulus_bits.into(), maximum_bits });
        }
        let moduli = ifma52_primes()[..self.plane_count(spec)].to_vec();
        let product = moduli.iter().fold(Integer::from(1), |product, &prime| product * prime);
        let cofactors = moduli.iter().map(|&prime| Integer::from(&product / prime)).collect::<Vec<_>>();
        let weights = moduli
            .iter()
            .zip(&cofactors)
            .map(|(&prime, cofactor)| {
                let modulus = Modulus::new(prime);
                modulus.inverse(modulus.reduce(cofactor.as_limbs()))
            })
            .collect();
        Ok(Arc::new(ReferenceEngine { moduli, product, cofactors, weights }))
    }
}

/// Products of two residues below `2^52` that are summed in 128 bits before one remainder: with the residue that was
/// there before them they stay below `2^128`.
const SUMMED_ROWS: usize = 1 << 23;

struct ReferenceEngine {
    moduli: Vec<u64>,
    product: Integer,
    cofactors: Vec<Integer>,
    weights: Vec<u64>,
}

/// The least residue of a little-endian integer: the sum of its limbs times `powers` of `2^64`, which are made where
/// some are missing, and one remainder.
fn residue_of_limbs(modulus: Modulus, limbs: &[u64], powers: &mut Vec<u64>) -> u64 {
    // Each product is below 2^116.
    assert!(limbs.len() <= 1 << 12);
    let word = modulus.reduce(&[0, 1]);
    while powers.len() < limbs.len() {
        powers.push(modulus.multiply(powers[powers.len() - 1], word));
    }
    let sum = limbs.iter().zip(powers).map(|(&limb, power)| u128::from(limb) * u128::from(*power)).sum::<u128>();
    (sum % u128::from(modulus.prime())) as u64
}

impl PlaneFormat for ReferenceEngine {
    fn moduli(&self) -> &[u64] {
        &self.moduli
    }

    fn magnitude_limbs(&self) -> usize {
        self.product.significant_digits::<u64>()
    }

    fn panel_words(&self, rows: usize) -> usize {
        rows * BLOCK
    }

    fn scratch_words(&self, _rows: usize, _grid: &BlockGrid) -> usize {
        0
    }

    fn table_bytes(&self) -> u64 {
        (self.moduli.len() * (self.magnitude_limbs() + 2) * 8) as u64
    }
}

impl PlaneEngine for ReferenceEngine {
    fn to_residues(&self, primes: Range<usize>, source: &PanelSource<'_>, planes: &mut [&mut [u64]], _: &mut [u64]) {
        planes.iter_mut().for_each(|plane| plane.fill(0));
        // Modulo each prime the powers of 2^64, as many as the longest integer so far has limbs.
        let mut powers = vec![vec![1]; primes.len()];
        for (offset, row) in source.rows.clone().enumerate() {
            for (lane, col) in source.columns.clone().enumerate() {
                let integer = scaled_integer(source.view.get(row, col), source.shifts[col]);
                let moduli = self.moduli[primes.clone()].iter().zip(&mut powers);
                for (plane, (&prime, powers)) in planes.iter_mut().zip(moduli) {
                    let modulus = Modulus::new(prime);
                    let magnitude = residue_of_limbs(modulus, integer.as_limbs(), powers);
                    plane[offset * BLOCK + lane] = if integer < 0 { modulus.subtract(0, magnitude) } else { magnitude };
                }
            }
        }
    }

    fn multiply(&self, prime: usize, product: &PlaneProduct<'_>, c: &mut [u64], _scratch: &mut [u64]) {
        let modulus = u128::from(self.moduli[prime]);
        let panel = self.panel_words(product.rows);
        let mut blocks = c.chunks_exact_mut(BLOCK_WORDS);
        for col in 0..product.grid.cols {
            for row in product.grid.rows_in(col, &product.blocks) {
                let block = blocks.next().expect("c holds product.blocks");
                let (x, y) = (&product.x[row * panel..][..panel], &product.y[col * panel..][..panel]);
                for (entry, word) in block.iter_mut().enumerate() {
                    let (r, c) = (entry % BLOCK, entry / BLOCK);
                    let mut sum = if product.accumulate { u128::from(*word) } else { 0 };
                    for start in (0..product.rows).step_by(SUMMED_ROWS) {
                        for k in start..product.rows.min(start + SUMMED_ROWS) {
                            sum += u128::from(x[k * BLOCK + r]) * u128::from(y[k * BLOCK + c]);
                        }
                        sum %= modulus;
                    }
                    *word = sum as u64;
                }
            }
        }
    }

    fn reconstruct(&self, residues: &BlockResidues<'_>, integers: &mut IntegerBlock, _scratch: &mut [u64]) {
        let half = Integer::from(&self.product >> 1);
        for entry in 0..BLOCK_WORDS {
            let mut value = Integer::new();
            for (index, &prime) in self.moduli.iter().enumerate() {
                let scaled = Modulus::new(prime).multiply(residues.of_prime(index)[entry], self.weights[index]);
                value += &self.cofactors[index] * scaled;
            }
            value %= &self.product;
            if value > half {
                value -= &self.product;
            }
            integers.negative[entry] = value < 0;
            let limbs = integers.limbs;
            let magnitude = &mut integers.magnitudes[entry * limbs..][..limbs];
            magnitude.fill(0);
            value.abs_mut();
            value.write_digits(&mut magnitude[..value.significant_digits::<u64>()], Order::Lsf);
        }
    }
}
