//! The `f64` family: balanced residues modulo 23-bit primes in doubles, multiplied exactly by a dgemm.
//!
//! Depends on: the kernel trait's layouts, a [`Dgemm`] to multiply with, the vector instructions of this CPU. Does not
//! know: threads, memory limits. The kernels `f64` and `blas` are this engine over two implementations of [`Dgemm`].
//!
//! Promise: every sum of doubles is an integer that a double holds, so that residues are exact whatever the dgemm's
//! order of summation; the proofs are in docs/ALGORITHM.md, "Exact sums in doubles". The conversions and the reductions
//! allocate no memory; the dgemm may have its own packing memory, which `call_bytes` states.

mod combine;
mod cover;
pub mod dgemm;
pub mod packed;
mod product;
mod reconstruct;
pub mod simd;
mod tables;
pub mod tile;
mod to_residues;

#[cfg(test)]
mod tests;

use crate::error::{Error, Result};
use crate::kernels::{
    BlockResidues, EngineSpec, IntegerBlock, KernelSelection, PanelSource, PlaneEngine, PlaneFormat, PlaneKernel,
    PlaneProduct, ResidueLanes, RowRuns, SmallTriangles,
};
use crate::math::family::f64_maximum_modulus_bits;
use crate::plan::{BLOCK, BlockGrid};
use dgemm::{Dgemm, GemmCrate};
use simd::F64Isa;
use std::ops::Range;
use std::sync::Arc;
use tables::F64Tables;

/// A kernel of the family: its name and its dgemm.
pub struct F64Kernel<G> {
    name: &'static str,
    dgemm: G,
}

/// The kernel `f64`; it runs on every CPU.
pub fn probe() -> std::result::Result<&'static dyn PlaneKernel, &'static str> {
    static KERNEL: F64Kernel<GemmCrate> = F64Kernel::new("f64", GemmCrate);
    Ok(&KERNEL)
}

impl<G: Dgemm + Clone> F64Kernel<G> {
    /// A kernel called `name` that multiplies by `dgemm`.
    pub const fn new(name: &'static str, dgemm: G) -> F64Kernel<G> {
        F64Kernel { name, dgemm }
    }
}

impl<G: Dgemm + Clone> KernelSelection for F64Kernel<G> {
    fn instructions(&self) -> Option<&'static str> {
        Some(F64Isa::detect().name())
    }
}

impl<G: Dgemm + Clone> SmallTriangles for F64Kernel<G> {}

impl<G: Dgemm + Clone> PlaneKernel for F64Kernel<G> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn family(&self) -> &'static str {
        "f64"
    }

    fn maximum_modulus_bits(&self) -> u32 {
        f64_maximum_modulus_bits()
    }

    fn plane_count(&self, spec: &EngineSpec) -> usize {
        assert!(spec.modulus_bits <= self.maximum_modulus_bits());
        tables::plane_count(spec)
    }

    fn prepare(&self, spec: &EngineSpec) -> Result<Arc<dyn PlaneEngine>> {
        if spec.modulus_bits > self.maximum_modulus_bits() {
            let maximum_bits = u64::from(self.maximum_modulus_bits());
            return Err(Error::Precision { precision_bits: spec.modulus_bits.into(), maximum_bits });
        }
        Ok(Arc::new(F64Engine { tables: F64Tables::new(spec), dgemm: self.dgemm.clone(), isa: F64Isa::detect() }))
    }
}

struct F64Engine<G> {
    tables: F64Tables,
    dgemm: G,
    isa: F64Isa,
}

impl<G: Dgemm> PlaneFormat for F64Engine<G> {
    fn moduli(&self) -> &[u64] {
        &self.tables.moduli
    }

    fn magnitude_limbs(&self) -> usize {
        self.tables.magnitude_limbs
    }

    fn panel_words(&self, rows: usize) -> usize {
        product::column_stride(rows) * BLOCK
    }

    fn scratch_words(&self, _rows: usize, grid: &BlockGrid) -> usize {
        product::tile_words(self.dgemm.tile(), grid)
            .max(to_residues::scratch_words(&self.tables))
            .max(reconstruct::scratch_words(&self.tables))
    }

    fn table_bytes(&self) -> u64 {
        self.tables.bytes()
    }

    fn call_bytes(&self, rows: usize, grid: &BlockGrid) -> u64 {
        let (chunk, [left, right]) =
            (product::chunk_rows(rows).min(rows), product::tile_columns(self.dgemm.tile(), grid));
        self.dgemm.call_bytes(chunk, left, right)
    }

    fn row_runs(&self, rows: usize, part: Range<usize>) -> RowRuns {
        RowRuns { first: part.start, words: part.len(), count: BLOCK, stride: product::column_stride(rows) }
    }

    fn residue_lanes(&self) -> ResidueLanes {
        ResidueLanes::Doubles
    }
}

impl<G: Dgemm> PlaneEngine for F64Engine<G> {
    fn to_residues(
        &self,
        primes: Range<usize>,
        source: &PanelSource<'_>,
        planes: &mut [&mut [u64]],
        scratch: &mut [u64],
    ) {
        let in_runs = planes.len() == primes.len() * BLOCK;
        assert!(primes.end <= self.tables.moduli.len() && (in_runs || planes.len() == primes.len()));
        assert!((1..=BLOCK).contains(&source.columns.len()));
        let place = match in_runs {
            true => to_residues::Place::Runs,
            false => to_residues::Place::Panel { stride: product::column_stride(source.rows.len()) },
        };
        self.isa.run(to_residues::F64ToResidues { tables: &self.tables, primes, source, place, planes, scratch });
    }

    fn add(&self, prime: usize, sum: &mut [u64], words: &[u64]) {
        let (prime, half) = (self.tables.primes[prime], self.tables.primes[prime] / 2.0);
        for (sum, word) in bytemuck::cast_slice_mut(sum).iter_mut().zip(bytemuck::cast_slice::<u64, f64>(words)) {
            let whole: f64 = *sum + word;
            *sum = if whole > half {
                whole - prime
            } else if whole < -half {
                whole + prime
            } else {
                whole
            };
        }
    }

    fn multiply(&self, prime: usize, product: &PlaneProduct<'_>, c: &mut [u64], scratch: &mut [u64]) {
        let (prime, inverse) = (self.tables.primes[prime], self.tables.inverses[prime]);
        let multiplier = product::Multiplier { dgemm: &self.dgemm, isa: self.isa, prime, inverse };
        let tile = &mut scratch[..product::tile_words(self.dgemm.tile(), &product.grid)];
        multiplier.multiply(product, bytemuck::cast_slice_mut(c), bytemuck::cast_slice_mut(tile));
    }

    fn reconstruct(&self, residues: &BlockResidues<'_>, integers: &mut IntegerBlock, scratch: &mut [u64]) {
        assert!(integers.limbs >= self.tables.magnitude_limbs, "{} limbs are too few", integers.limbs);
        self.isa.run(reconstruct::F64Reconstruct { tables: &self.tables, residues, integers, scratch });
    }
}
