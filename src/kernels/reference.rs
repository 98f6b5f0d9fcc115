//! The reference kernel: every step the slow, plain way, on the `ifma52` primes.
//!
//! Promise: complete and safe; the oracle that the fast kernels are compared with, word for word on the residues and
//! bit for bit on the integers. Scaled integers and the reconstruction go through `rug::Integer`.
#![forbid(unsafe_code)]

use crate::error::{Error, Result};
use crate::kernels::dots::{DotSource, FixedVector, by_limbs, limb_bytes};
use crate::kernels::{BlockResidues, EngineSpec, IntegerBlock, PanelSource, PlaneEngine, PlaneKernel, PlaneProduct};
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

/// The reference kernel; it needs nothing of the CPU.
pub struct Reference;

/// Always succeeds.
pub fn probe() -> std::result::Result<&'static dyn PlaneKernel, &'static str> {
    Ok(&Reference)
}

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

struct ReferenceEngine {
    moduli: Vec<u64>,
    product: Integer,
    cofactors: Vec<Integer>,
    weights: Vec<u64>,
}

impl PlaneEngine for ReferenceEngine {
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

    fn to_residues(&self, primes: Range<usize>, source: &PanelSource<'_>, planes: &mut [&mut [u64]], _: &mut [u64]) {
        planes.iter_mut().for_each(|plane| plane.fill(0));
        for (offset, row) in source.rows.clone().enumerate() {
            for (lane, col) in source.columns.clone().enumerate() {
                let integer = scaled_integer(source.view.get(row, col), source.shifts[col]);
                for (plane, &prime) in planes.iter_mut().zip(&self.moduli[primes.clone()]) {
                    let modulus = Modulus::new(prime);
                    let magnitude = modulus.reduce(integer.as_limbs());
                    plane[offset * BLOCK + lane] = if integer < 0 { modulus.subtract(0, magnitude) } else { magnitude };
                }
            }
        }
    }

    fn multiply(&self, prime: usize, product: &PlaneProduct<'_>, c: &mut [u64], _scratch: &mut [u64]) {
        let modulus = Modulus::new(self.moduli[prime]);
        let panel = self.panel_words(product.rows);
        let mut blocks = c.chunks_exact_mut(BLOCK_WORDS);
        for col in 0..product.grid.cols {
            for row in product.grid.rows_in(col, &product.blocks) {
                let block = blocks.next().expect("c holds product.blocks");
                let (x, y) = (&product.x[row * panel..][..panel], &product.y[col * panel..][..panel]);
                for (entry, word) in block.iter_mut().enumerate() {
                    let (r, c) = (entry % BLOCK, entry / BLOCK);
                    let start = if product.accumulate { *word } else { 0 };
                    *word = (0..product.rows)
                        .fold(start, |sum, k| modulus.add(sum, modulus.multiply(x[k * BLOCK + r], y[k * BLOCK + c])));
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
                value += &self.cofactors[index] * Integer::from(scaled);
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
