//! The AVX-512 IFMA kernel: residues of 52 bits, `vpmadd52lo/hi`, primes `2^52 - c`.
//!
//! `micro` is the register tile, `product` the cache blocking around it, `to_residues` and `reconstruct` the
//! conversions, `tables` what they read. Layout of an operand panel: `[row][8 columns]`; residues are least residues.

mod micro;
mod product;
mod reconstruct;
mod tables;
mod to_residues;
mod transpose;

use crate::error::{Error, Result};
use crate::kernels::{BlockResidues, EngineSpec, IntegerBlock, PanelSource, PlaneEngine, PlaneKernel, PlaneProduct};
use crate::math::bound::ifma52_prime_count;
use crate::math::family::{ifma52_maximum_modulus_bits, ifma52_primes};
use crate::plan::{BLOCK, BlockGrid};
use micro::Fold;
use product::Operands;
use std::ops::Range;
use std::sync::Arc;
use tables::Tables;

/// The kernel; whoever holds one knows that the CPU has the instructions.
pub struct Ifma52(());

static KERNEL: Ifma52 = Ifma52(());

/// The kernel, where the CPU has AVX-512 F, BW, DQ, VL, VBMI and IFMA.
pub fn probe() -> std::result::Result<&'static dyn PlaneKernel, &'static str> {
    let has = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512ifma");
    if has { Ok(&KERNEL) } else { Err("this CPU lacks AVX-512 IFMA or VBMI") }
}

impl PlaneKernel for Ifma52 {
    fn name(&self) -> &'static str {
        "ifma52"
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

    fn prepare(&self, spec: &EngineSpec) -> Result<Arc<dyn PlaneEngine>> {
        if spec.modulus_bits > self.maximum_modulus_bits() {
            let maximum_bits = u64::from(self.maximum_modulus_bits());
            return Err(Error::Precision { precision_bits: spec.modulus_bits.into(), maximum_bits });
        }
        Ok(Arc::new(Engine { tables: Tables::new(self.plane_count(spec), spec.operand_bits) }))
    }
}

/// Made by [`Ifma52::prepare`] alone, so that having one proves the CPU's instructions.
struct Engine {
    tables: Tables,
}

impl PlaneEngine for Engine {
    fn moduli(&self) -> &[u64] {
        &self.tables.primes
    }

    fn magnitude_limbs(&self) -> usize {
        (self.tables.count() * 52).div_ceil(64)
    }

    fn panel_words(&self, rows: usize) -> usize {
        rows * BLOCK
    }

    fn scratch_words(&self, _rows: usize, _grid: &BlockGrid) -> usize {
        let to = to_residues::scratch_words(self.tables.operand_digits);
        to.max(reconstruct::scratch_words(self.tables.count()))
    }

    fn table_bytes(&self) -> u64 {
        self.tables.bytes()
    }

    fn to_residues(
        &self,
        primes: Range<usize>,
        source: &PanelSource<'_>,
        planes: &mut [&mut [u64]],
        scratch: &mut [u64],
    ) {
        // SAFETY: an engine exists only where `probe` found the instructions.
        unsafe { to_residues::to_residues(&self.tables, primes, source, planes, scratch) }
    }

    fn multiply(&self, prime: usize, product: &PlaneProduct<'_>, c: &mut [u64], _scratch: &mut [u64]) {
        let operands = Operands {
            x: product.x,
            y: product.y,
            panel_words: self.panel_words(product.rows),
            rows: product.rows,
            grid: product.grid,
        };
        // SAFETY: an engine exists only where `probe` found the instructions.
        unsafe {
            let fold = Fold::new(self.tables.primes[prime]);
            product::multiply(&fold, &operands, product.blocks.clone(), c, product.accumulate);
        }
    }

    fn reconstruct(&self, residues: &BlockResidues<'_>, integers: &mut IntegerBlock, scratch: &mut [u64]) {
        // SAFETY: an engine exists only where `probe` found the instructions.
        unsafe { reconstruct::reconstruct(&self.tables, residues, integers, scratch) }
    }
}

#[cfg(test)]
mod tests;
