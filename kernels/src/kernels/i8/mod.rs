//! The `i8` family: residues of 8 and 14 bits, multiplied as bytes on tile registers and summed in 32-bit integers.
//!
//! `tiles` has the layout of the operands of a unit, `amx` and `lanes` the units, and `isa` the selection of the unit
//! by the CPU. Tiles compute all products: of planes (`product`, from the bytes of `pack`), of magnitudes by radix
//! powers (`to_residues`), of weighted residues by cofactors (`reconstruct`). Layout of an operand panel: `[row][8
//! columns]`, the two digits of a residue in 16 bits; of a block of a product plane: 64 least residues of 16 bits.
//! Proofs: docs/ALGORITHM.md, "Moduli of signed bytes", "Bytes on a CPU".

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(test)]
mod emulation;
mod isa;
mod lanes;
mod pack;
mod product;
mod reconstruct;
mod reduce;
mod tables;
mod tiles;
mod to_residues;
mod vectors;

#[cfg(test)]
mod tests;

use crate::error::{Error, Result};
use crate::kernels::{
    BlockResidues, ConversionCosts, EngineSpec, IntegerBlock, KernelSelection, Multipliers, PanelSource, PlaneEngine,
    PlaneFormat, PlaneKernel, PlaneProduct, ResidueLanes, RowRuns, SmallTriangles,
};
use crate::math::family_i8::i8_maximum_modulus_bits;
use crate::plan::{BLOCK, BLOCK_WORDS, BlockGrid};
use isa::I8Isa;
use std::ops::Range;
use std::sync::Arc;
use tables::I8Tables;

/// Words of the residues of a block.
const RESIDUE_WORDS: usize = BLOCK_WORDS / 4;

/// Relative to `ifma52`, on a unit that multiplies tiles: from products of 200 to 2000 columns at 64 to 2048 bits on a
/// Xeon, where planes take 0.29 of the time. Square matrices of 400 rows are faster at 256 bits and 7 % slower at 64;
/// those of 300 rows are faster at 512 bits, and are left out.
pub const ON_TILE_REGISTERS: ConversionCosts =
    ConversionCosts { saved: 0.68, operands: 70.0, results: 180.0, result_bits: 0.0 };

/// The kernel `i8`.
struct I8Kernel;

/// Whether this CPU multiplies tiles of bytes in dedicated registers.
pub fn has_tile_registers() -> bool {
    I8Isa::detect().has_tile_registers()
}

/// The kernel; it runs on every CPU.
pub fn probe() -> std::result::Result<&'static dyn PlaneKernel, &'static str> {
    Ok(&I8Kernel)
}

impl KernelSelection for I8Kernel {
    fn instructions(&self) -> Option<&'static str> {
        Some(I8Isa::detect().name())
    }

    fn large_products_with(&self, multipliers: &Multipliers) -> Option<ConversionCosts> {
        (multipliers.digits && multipliers.tiles).then_some(ON_TILE_REGISTERS)
    }

    fn issue_rate(&self, trials: usize) -> Option<f64> {
        I8Isa::detect().issue_rate(trials)
    }
}

impl SmallTriangles for I8Kernel {}

impl PlaneKernel for I8Kernel {
    fn name(&self) -> &'static str {
        "i8"
    }

    fn family(&self) -> &'static str {
        "i8"
    }

    fn maximum_modulus_bits(&self) -> u32 {
        i8_maximum_modulus_bits()
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
        Ok(Arc::new(I8Engine { tables: I8Tables::new(spec), isa: I8Isa::detect() }))
    }
}

struct I8Engine {
    tables: I8Tables,
    isa: I8Isa,
}

impl PlaneFormat for I8Engine {
    fn moduli(&self) -> &[u64] {
        &self.tables.moduli
    }

    fn magnitude_limbs(&self) -> usize {
        self.tables.magnitude_limbs
    }

    fn panel_words(&self, rows: usize) -> usize {
        rows * BLOCK / 4
    }

    fn block_words(&self) -> usize {
        RESIDUE_WORDS
    }

    fn scratch_words(&self, rows: usize, grid: &BlockGrid) -> usize {
        product::scratch_words(rows, grid, self.tables.most_planes())
            .max(to_residues::scratch_words(&self.tables))
            .max(reconstruct::scratch_words(&self.tables))
    }

    fn table_bytes(&self) -> u64 {
        self.tables.bytes()
    }

    fn row_runs(&self, _rows: usize, part: Range<usize>) -> RowRuns {
        let row = self.panel_words(1);
        RowRuns { first: part.start * row, words: part.len() * row, count: 1, stride: 0 }
    }

    fn residue_lanes(&self) -> ResidueLanes {
        ResidueLanes::Halves
    }
}

impl PlaneEngine for I8Engine {
    fn to_residues(
        &self,
        primes: Range<usize>,
        source: &PanelSource<'_>,
        planes: &mut [&mut [u64]],
        scratch: &mut [u64],
    ) {
        assert!(primes.end <= self.tables.moduli.len() && planes.len() == primes.len());
        assert!((1..=BLOCK).contains(&source.columns.len()));
        self.isa.run(to_residues::I8ToResidues { tables: &self.tables, primes, source, planes, scratch });
    }

    fn multiply(&self, prime: usize, product: &PlaneProduct<'_>, c: &mut [u64], scratch: &mut [u64]) {
        let (modulus, is_triple) = (self.tables.moduli[prime], prime >= self.tables.singles);
        let c = bytemuck::cast_slice_mut(c);
        product::I8Multiply { modulus, is_triple, product, c, scratch }.run_on(self.isa);
    }

    fn add(&self, prime: usize, sum: &mut [u64], words: &[u64]) {
        self.tables.reducers[prime].add(bytemuck::cast_slice_mut(sum), bytemuck::cast_slice(words));
    }

    fn reconstruct(&self, residues: &BlockResidues<'_>, integers: &mut IntegerBlock, scratch: &mut [u64]) {
        assert!(integers.limbs >= self.tables.magnitude_limbs, "{} limbs are too few", integers.limbs);
        self.isa.run(reconstruct::I8Reconstruct { tables: &self.tables, residues, integers, scratch });
    }
}
