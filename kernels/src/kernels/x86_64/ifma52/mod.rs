//! The AVX-512 IFMA kernel: residues of 52 bits, `vpmadd52lo/hi`, primes `2^52 - c`.
//!
//! `micro` is the register tile, `product` the cache blocking. `symmetric` and `winograd` save an eighth of the
//! products of a plane each time they are used, with `sums` of the operands; `levels` decides where they are used.
//! `to_residues` (with `digits`) and `reconstruct` are the conversions, `tables` their constants; `halves` and `wholes`
//! are the conversions of `i16`. Layout of an operand panel: `[row][8 columns]`; residues lie below `2^52`. On a CPU
//! without these instructions `kernels::on_model` runs the tests.

mod blocks;
pub mod digit_tiles;
mod digits;
mod dots;
mod factor;
pub mod halves;
mod levels;
mod micro;
pub mod pivot_lanes;
pub mod problem_lanes;
mod product;
mod reconstruct;
pub mod row_lanes;
mod sums;
mod tables;
mod to_residues;
mod transpose;
pub mod wholes;

use crate::error::{Error, Result};
use crate::kernels::area::{Area, Target};
use crate::kernels::dots::{DotSource, FixedVector};
use crate::kernels::tiles::TileEngine;
use crate::kernels::x86_64::cpu;
use crate::kernels::{
    BlockResidues, EngineSpec, IntegerBlock, KernelSelection, PanelRows, PanelSource, PlaneEngine, PlaneFormat,
    PlaneKernel, PlaneProduct, RowsProduct, SmallTriangles,
};
use crate::math::bound::{cholesky_modulus_bits, ifma52_prime_count};
use crate::math::family::{IFMA52_BITS, ifma52_maximum_modulus_bits, ifma52_primes};
use crate::plan::{BLOCK, BlockGrid};
use levels::{Ifma52Work, PrimeConstants};
use micro::Fold;
use product::{Ifma52Operands, Ifma52Panels, Next, Store};
use rug::Integer;
use std::ops::Range;
use std::sync::Arc;
use tables::Ifma52Tables;

/// The kernel; a value proves that the CPU has the instructions.
pub struct Ifma52(());

static KERNEL: Ifma52 = Ifma52(());

/// The kernel, if the CPU has AVX-512 F, BW, DQ, VL, VBMI and IFMA.
pub fn probe() -> std::result::Result<&'static dyn PlaneKernel, &'static str> {
    cpu::has_ifma52().map(|()| &KERNEL as &dyn PlaneKernel)
}

impl KernelSelection for Ifma52 {
    fn issue_rate(&self, trials: usize) -> Option<f64> {
        // A product has a lower and an upper half, and eight lanes.
        cpu::ifma_rate(trials).map(|rate| rate * 8.0 / 2.0)
    }
}

impl SmallTriangles for Ifma52 {
    fn most_rows_on_limbs(&self, working_bits: u32) -> usize {
        digit_tiles::DigitTiles::most_rows_on_limbs(working_bits)
    }

    fn most_rows_in_small_tiles(&self, working_bits: u32) -> usize {
        digit_tiles::DigitTiles::most_rows(working_bits)
    }

    fn most_rows_in_one_tile(&self, working_bits: u32) -> usize {
        digit_tiles::DigitTiles::most_rows_in_one_tile(working_bits)
    }

    fn small_tile_engine(&self, working_bits: u32) -> Arc<dyn TileEngine> {
        Arc::new(digit_tiles::DigitTiles::new(working_bits))
    }
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

    /// An engine depends only on the number of its primes and of the digits of an operand.
    fn class(&self, spec: EngineSpec) -> EngineSpec {
        let most = |bits: u32| (bits / IFMA52_BITS * IFMA52_BITS).saturating_add(IFMA52_BITS - 1);
        EngineSpec { operand_bits: most(spec.operand_bits), modulus_bits: most(spec.modulus_bits), ..spec }
    }

    fn dots(&self, sources: &[DotSource<'_>], vector: &FixedVector, sums: &mut [Integer; BLOCK]) {
        // SAFETY: only `probe` hands the kernel out, having found the instructions.
        unsafe { dots::dots(sources, vector, sums) }
    }

    fn dots_bytes(&self, digits: usize) -> u64 {
        dots::bytes(digits)
    }

    fn tile_engine(&self, working_bits: u32) -> Result<Arc<dyn TileEngine>> {
        let bits = cholesky_modulus_bits(working_bits);
        if bits > self.maximum_modulus_bits() {
            let maximum_bits = u64::from(self.maximum_modulus_bits());
            return Err(Error::Precision { precision_bits: bits.into(), maximum_bits });
        }
        Ok(Arc::new(factor::FactorTables::new(working_bits)))
    }

    fn prepare(&self, spec: &EngineSpec) -> Result<Arc<dyn PlaneEngine>> {
        if spec.modulus_bits > self.maximum_modulus_bits() {
            let maximum_bits = u64::from(self.maximum_modulus_bits());
            return Err(Error::Precision { precision_bits: spec.modulus_bits.into(), maximum_bits });
        }
        Ok(Arc::new(Ifma52Engine { tables: Ifma52Tables::new(self.plane_count(spec), spec.operand_bits) }))
    }
}

/// Made only by [`Ifma52::prepare`], so that a value proves the CPU's instructions.
struct Ifma52Engine {
    tables: Ifma52Tables,
}

impl PlaneFormat for Ifma52Engine {
    fn moduli(&self) -> &[u64] {
        &self.tables.primes
    }

    fn magnitude_limbs(&self) -> usize {
        (self.tables.count() * 52).div_ceil(64)
    }

    fn panel_words(&self, rows: usize) -> usize {
        rows * BLOCK
    }

    fn scratch_words(&self, rows: usize, grid: &BlockGrid) -> usize {
        let fast = levels::most_scratch_words(rows, *grid);
        self.part_scratch_words(rows, grid).max(fast)
    }

    /// The sub-cubic schemes are for whole planes.
    fn part_scratch_words(&self, _rows: usize, _grid: &BlockGrid) -> usize {
        to_residues::scratch_words(self.tables.operand_digits).max(reconstruct::scratch_words(self.tables.cofactors()))
    }

    /// Rows are read where they lie.
    fn rows_scratch_words(&self, rows: usize, grid: &BlockGrid) -> usize {
        self.scratch_words(rows, grid)
    }

    fn table_bytes(&self) -> u64 {
        self.tables.bytes()
    }
}

impl PlaneEngine for Ifma52Engine {
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

    fn multiply(&self, prime: usize, product: &PlaneProduct<'_>, c: &mut [u64], scratch: &mut [u64]) {
        let PlaneProduct { x, y, rows, grid, blocks, .. } = product.clone();
        let stride = self.panel_words(rows);
        let (x, y) = (Ifma52Panels { words: x, stride }, Ifma52Panels { words: y, stride });
        let operands = Ifma52Operands { x, y, rows, next: Some(Next::following(x, &grid, rows)) };
        let into = if product.accumulate { Store::Add } else { Store::Overwrite };
        // SAFETY: an engine exists only where `probe` found the instructions.
        unsafe {
            let fold = Fold::new(self.tables.primes[prime]);
            if blocks.len() == grid.len() {
                let words = levels::scratch_words(rows, grid);
                let work = Ifma52Work { c, into, scratch: &mut scratch[..words] };
                let field = PrimeConstants { fold: &fold, root: self.tables.roots[prime] };
                levels::multiply_area(field, &operands, &Area::whole(grid), work);
            } else {
                product::multiply(&fold, &operands, &Target::new(grid, blocks), c, into);
            }
        }
    }

    fn multiply_rows(&self, prime: usize, product: &RowsProduct<'_>, c: &mut [u64], _scratch: &mut [u64]) {
        let RowsProduct { x, y, depth, grid, blocks, accumulate, .. } = product;
        fn panels<'a>(rows: &PanelRows<'a>) -> Ifma52Panels<'a> {
            Ifma52Panels { words: &rows.words[rows.first * BLOCK..], stride: rows.of * BLOCK }
        }
        let target = Target { row_window: product.window.clone(), ..Target::new(*grid, blocks.clone()) };
        let mut into = if *accumulate { Store::Add } else { Store::Overwrite };
        for (x, y) in x.iter().zip(*y) {
            let operands = Ifma52Operands { x: panels(x), y: panels(y), rows: *depth, next: None };
            // SAFETY: an engine exists only where `probe` found the instructions.
            unsafe { product::multiply(&Fold::new(self.tables.primes[prime]), &operands, &target, c, into) };
            into = Store::Add;
        }
    }

    fn reads_rows_in_place(&self) -> bool {
        true
    }

    fn reconstruct(&self, residues: &BlockResidues<'_>, integers: &mut IntegerBlock, scratch: &mut [u64]) {
        // SAFETY: an engine exists only where `probe` found the instructions.
        unsafe { reconstruct::reconstruct(&self.tables, residues, integers, scratch) }
    }
}

#[cfg(test)]
mod tests;
