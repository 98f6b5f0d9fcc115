//! The `i16` family: balanced residues of 16 bits modulo primes of 13, 12 and 11 bits, multiplied in pairs and summed
//! in 32-bit integers.
//!
//! `lanes` has the vector instructions, and detects those of the CPU; `micro` is the register tile of all products: of
//! planes (`product`), of digits by radix powers (`to_residues`), of residues by digits of cofactors (`reconstruct`).
//! Layout of an operand panel (`form`): `[row][8 columns]`, 16 bits each; of a tile, which only one process writes and
//! reads, pairs of rows, which are multiplied in place (`panels`); of a block of a product plane: 64 residues of 16
//! bits. Proofs: docs/ALGORITHM.md, "Residues of 16 bits".

mod choice;
mod lanes;
mod levels;
mod micro;
mod operand;
mod panels;
mod product;
mod reconstruct;
mod rules;
mod tables;
mod to_residues;

#[cfg(test)]
mod fold_tests;
#[cfg(test)]
mod panels_tests;
#[cfg(test)]
mod tests;

use crate::error::{Error, Result};
#[cfg(target_arch = "x86_64")]
use crate::kernels::DIGIT_COLUMNS;
use crate::kernels::area::{Area, Target};
use crate::kernels::form::Form;
use crate::kernels::rows::{gathered_scratch_words, multiply_gathered};
#[cfg(target_arch = "x86_64")]
use crate::kernels::x86_64::ifma52::{halves::Composites, wholes::Wholes};
use crate::kernels::{
    BlockResidues, ConversionCosts, DigitConversions, EngineSpec, FactorCosts, IntegerBlock, KernelSelection,
    Multipliers, NextRows, PanelRows, PanelSource, PlaneEngine, PlaneFormat, PlaneKernel, PlaneProduct, ResidueLanes,
    RowsProduct, SmallTriangles, multipliers,
};
use crate::math::family_i16::i16_maximum_modulus_bits;
use crate::plan::{BLOCK, BLOCK_WORDS, BlockGrid};
use lanes::I16Isa;
use levels::{I16Work, Modular, multiply_area};
use operand::{I16Operand, I16Panels};
use panels::MultiplyPanels;
use product::I16Operands;
use std::ops::Range;
use std::sync::Arc;
use tables::{OperandTables, ResultTables, Tables};

/// Entries of a block.
const BLOCK_ENTRIES: usize = BLOCK_WORDS;

/// Bits of most primes.
const PRIME_BITS: f64 = 13.0;

/// Words of the residues of a block.
const RESIDUE_WORDS: usize = BLOCK_ENTRIES / 4;

/// The costs of conversions relative to those of `ifma52` if a core issues one multiplication of either kind per cycle:
/// fitted to 50 products from 64 to 2048 bits on a Zen 4.
pub const ONE_A_CYCLE: ConversionCosts =
    ConversionCosts { saved: 0.5, operands: 35.0, results: 25.0, result_bits: 0.02 };

/// If it issues two, which saves half of that: fitted to 25 products on a Zen 5, before strips were equalised.
pub const TWO_A_CYCLE: ConversionCosts =
    ConversionCosts { saved: 0.5, operands: 102.0, results: 50.0, result_bits: 0.1 };

/// Factors relative to those of `ifma52` if a core issues one multiplication of either kind per cycle: measured on a
/// Zen 4 from 256 to 2048 bits.
pub const FACTORS_AT_ONE_A_CYCLE: FactorCosts = FactorCosts { rows: 400.0, row_bits: 0.45 };

/// The same for triangular solves: measured from 256 to 2048 bits.
pub const SOLVES_AT_ONE_A_CYCLE: FactorCosts = FactorCosts { rows: 600.0, row_bits: 0.3 };

/// Factors if it issues two: measured on a Zen 5 from 256 to 2048 bits.
pub const FACTORS_AT_TWO_A_CYCLE: FactorCosts = FactorCosts { rows: 950.0, row_bits: 0.12 };

/// The same for triangular solves with 500 right-hand sides, whose limit does not depend on the precision: measured
/// from 256 to 2048 bits.
pub const SOLVES_AT_TWO_A_CYCLE: FactorCosts = FactorCosts { rows: 800.0, row_bits: 0.0 };

/// Factors on Intel's processors that issue two: measured on an Emerald Rapids from 256 to 2048 bits.
pub const FACTORS_ON_INTEL: FactorCosts = FactorCosts { rows: 1350.0, row_bits: 0.25 };

/// The same for triangular solves with 500 and 1000 right-hand sides.
pub const SOLVES_ON_INTEL: FactorCosts = FactorCosts { rows: 800.0, row_bits: 0.6 };

/// Rows of several operands that are multiplied in one pass: a strip of panels stays in the second-level cache.
const ROWS_OF_PASS: usize = 1024;

/// The kernel `i16`.
struct I16Kernel;

/// Whether this CPU has an instruction that multiplies pairs of 16 bits and adds them to a sum.
pub fn adds_pairs_at_once() -> bool {
    I16Isa::detect().name() == "vnni"
}

/// The costs of tiles on a processor with these multipliers, where large products gain by them: one of them a cycle,
/// two, or two on a processor of Intel's.
fn large_tiles(
    multipliers: &Multipliers,
    [one_a_cycle, two_a_cycle, on_intel]: [FactorCosts; 3],
) -> Option<FactorCosts> {
    I16Kernel.large_products_with(multipliers)?;
    Some(match (multipliers.one_a_cycle, multipliers.of_intel) {
        (true, _) => one_a_cycle,
        (false, false) => two_a_cycle,
        (false, true) => on_intel,
    })
}

/// The kernel; it runs on every CPU.
pub fn probe() -> std::result::Result<&'static dyn PlaneKernel, &'static str> {
    Ok(&I16Kernel)
}

impl KernelSelection for I16Kernel {
    fn instructions(&self) -> Option<&'static str> {
        Some(choice::of_call(I16Isa::detect()).name())
    }

    fn instruction_seconds(&self) -> Vec<(&'static str, f64)> {
        choice::measured().times.iter().map(|&(isa, seconds)| (isa.name(), seconds)).collect()
    }

    fn settle_instructions(&self, multiplications: f64, modulus_bits: u32) {
        choice::settle((multiplications * f64::from(modulus_bits) / PRIME_BITS) as u64);
    }

    fn is_preferred(&self) -> bool {
        // Twice as fast as doubles of as many bits; where 52-bit integers are multiplied, they come first.
        !I16Isa::detect().is_portable() && crate::kernels::by_name("ifma52").is_err()
    }

    fn large_products_with(&self, multipliers: &Multipliers) -> Option<ConversionCosts> {
        // An instruction multiplies 32 pairs of 13 bits or 8 of 52 bits, and two of the latter make a product: half the
        // time in planes.
        let costs = if multipliers.one_a_cycle { ONE_A_CYCLE } else { TWO_A_CYCLE };
        (multipliers.digits && multipliers.pairs).then_some(costs)
    }

    fn large_factors(&self) -> Option<FactorCosts> {
        large_tiles(&multipliers(), [FACTORS_AT_ONE_A_CYCLE, FACTORS_AT_TWO_A_CYCLE, FACTORS_ON_INTEL])
    }

    fn large_solves(&self) -> Option<FactorCosts> {
        large_tiles(&multipliers(), [SOLVES_AT_ONE_A_CYCLE, SOLVES_AT_TWO_A_CYCLE, SOLVES_ON_INTEL])
    }

    fn issue_rate(&self, trials: usize) -> Option<f64> {
        I16Isa::detect().issue_rate(trials)
    }
}

impl SmallTriangles for I16Kernel {}

impl PlaneKernel for I16Kernel {
    fn name(&self) -> &'static str {
        "i16"
    }

    fn family(&self) -> &'static str {
        "i16"
    }

    fn maximum_modulus_bits(&self) -> u32 {
        i16_maximum_modulus_bits()
    }

    fn plane_count(&self, spec: &EngineSpec) -> usize {
        assert!(spec.modulus_bits <= self.maximum_modulus_bits());
        tables::plane_count(spec)
    }

    fn prepare(&self, spec: &EngineSpec) -> Result<Arc<dyn PlaneEngine>> {
        Ok(Arc::new(self.engine(spec, Form::Rows)?))
    }

    fn prepare_tiles(&self, spec: &EngineSpec) -> Result<Arc<dyn PlaneEngine>> {
        Ok(Arc::new(self.engine(spec, Form::Pairs)?))
    }
}

impl I16Kernel {
    fn engine(&self, spec: &EngineSpec, form: Form) -> Result<I16Engine> {
        if spec.modulus_bits > self.maximum_modulus_bits() {
            let maximum_bits = u64::from(self.maximum_modulus_bits());
            return Err(Error::Precision { precision_bits: spec.modulus_bits.into(), maximum_bits });
        }
        let tables = Tables::new(spec);
        let conversion = ResidueConversion::new(&tables.moduli, spec.operand_bits, form);
        let recovery = Recovery::new(&tables);
        Ok(I16Engine { form, tables, conversion, recovery, isa: I16Isa::detect() })
    }
}

struct I16Engine {
    form: Form,
    tables: Tables,
    conversion: ResidueConversion,
    recovery: Recovery,
    isa: I16Isa,
}

/// The conversion of operands to residues.
enum ResidueConversion {
    /// By digits of 16 bits, on the instructions of the products.
    Digits(OperandTables),
    /// By digits of 52 bits, if the CPU multiplies them: half the time.
    #[cfg(target_arch = "x86_64")]
    Composites(Composites),
}

impl ResidueConversion {
    /// The faster one.
    fn new(moduli: &[u64], operand_bits: u32, form: Form) -> ResidueConversion {
        #[cfg(target_arch = "x86_64")]
        if let Some(composites) = Composites::new(moduli, operand_bits, form) {
            return ResidueConversion::Composites(composites);
        }
        let _ = form;
        ResidueConversion::Digits(OperandTables::new(moduli, operand_bits))
    }

    /// Words of scratch for one call.
    fn scratch_words(&self) -> usize {
        match self {
            ResidueConversion::Digits(tables) => to_residues::scratch_words(tables),
            #[cfg(target_arch = "x86_64")]
            ResidueConversion::Composites(composites) => composites.scratch_words(),
        }
    }

    /// Bytes held.
    fn bytes(&self) -> u64 {
        match self {
            ResidueConversion::Digits(tables) => tables.bytes(),
            #[cfg(target_arch = "x86_64")]
            ResidueConversion::Composites(composites) => composites.bytes(),
        }
    }
}

/// The conversion of residues to integers.
enum Recovery {
    /// By balanced digits, on the instructions of the products.
    Digits(ResultTables),
    /// By digits of 52 bits, where the CPU multiplies them: half the time.
    #[cfg(target_arch = "x86_64")]
    Composites(Wholes),
}

impl Recovery {
    /// The faster one.
    fn new(tables: &Tables) -> Recovery {
        #[cfg(target_arch = "x86_64")]
        if let Some(wholes) = Wholes::new(&tables.moduli, &tables.inverses) {
            return Recovery::Composites(wholes);
        }
        Recovery::Digits(ResultTables::new(tables))
    }

    /// Words of scratch for one call.
    fn scratch_words(&self) -> usize {
        match self {
            Recovery::Digits(tables) => reconstruct::scratch_words(tables),
            #[cfg(target_arch = "x86_64")]
            Recovery::Composites(wholes) => wholes.scratch_words(),
        }
    }

    /// Bytes held.
    fn bytes(&self) -> u64 {
        match self {
            Recovery::Digits(tables) => tables.bytes(),
            #[cfg(target_arch = "x86_64")]
            Recovery::Composites(wholes) => wholes.bytes(),
        }
    }
}

impl PlaneFormat for I16Engine {
    fn moduli(&self) -> &[u64] {
        &self.tables.moduli
    }

    fn magnitude_limbs(&self) -> usize {
        self.tables.magnitude_limbs
    }

    fn panel_words(&self, rows: usize) -> usize {
        self.form.panel_words(rows)
    }

    fn block_words(&self) -> usize {
        RESIDUE_WORDS
    }

    fn scratch_words(&self, rows: usize, grid: &BlockGrid) -> usize {
        levels::scratch_words(rows, *grid).max(self.conversion.scratch_words()).max(self.recovery.scratch_words())
    }

    fn part_scratch_words(&self, rows: usize, grid: &BlockGrid) -> usize {
        product::scratch_words(rows, grid.cols).max(self.conversion.scratch_words()).max(self.recovery.scratch_words())
    }

    fn table_bytes(&self) -> u64 {
        self.tables.bytes() + self.conversion.bytes() + self.recovery.bytes()
    }

    fn row_runs(&self, _rows: usize, part: Range<usize>) -> crate::kernels::RowRuns {
        self.form.row_runs(part)
    }

    fn rows_scratch_words(&self, rows: usize, grid: &BlockGrid) -> usize {
        match self.form {
            Form::Rows => gathered_scratch_words(self, rows, grid),
            Form::Pairs => self.conversion.scratch_words().max(self.recovery.scratch_words()),
        }
    }

    fn residue_lanes(&self) -> ResidueLanes {
        ResidueLanes::BalancedHalves
    }
}

impl PlaneEngine for I16Engine {
    fn to_residues(
        &self,
        primes: Range<usize>,
        source: &PanelSource<'_>,
        planes: &mut [&mut [u64]],
        scratch: &mut [u64],
    ) {
        assert!(primes.end <= self.tables.moduli.len() && planes.len() == primes.len());
        assert!((1..=BLOCK).contains(&source.columns.len()));
        match &self.conversion {
            ResidueConversion::Digits(tables) => {
                let form = self.form;
                choice::of_call(self.isa).run(to_residues::I16ToResidues {
                    tables,
                    primes,
                    source,
                    form,
                    planes,
                    scratch,
                });
            }
            #[cfg(target_arch = "x86_64")]
            ResidueConversion::Composites(composites) => {
                let streams = source.streams_halves(primes.len());
                composites.to_residues(primes, source, streams, planes, scratch);
            }
        }
    }

    fn multiply(&self, prime: usize, product: &PlaneProduct<'_>, c: &mut [u64], scratch: &mut [u64]) {
        let PlaneProduct { x, y, rows, grid, blocks, accumulate } = product;
        if self.form == Form::Pairs {
            let all = |words| [PanelRows { words, of: *rows, first: 0 }];
            let (depth, grid, blocks, accumulate) = (*rows, *grid, blocks.clone(), *accumulate);
            let next = NextRows::default();
            let window = 0..grid.rows;
            let product = RowsProduct { x: &all(x), y: &all(y), depth, next, grid, blocks, accumulate, window };
            return self.multiply_rows(prime, &product, c, scratch);
        }
        assert!(blocks.end <= grid.len() && c.len() == blocks.len() * RESIDUE_WORDS);
        let c = bytemuck::cast_slice_mut(c);
        let panels = |words, count| {
            I16Operand::Panels(I16Panels { residues: bytemuck::cast_slice(words), stride: rows * BLOCK, count })
        };
        let is_square = std::ptr::eq(*x, *y) && grid.rows == grid.cols;
        let right = (!is_square).then(|| panels(y, grid.cols));
        let operands = I16Operands { x: panels(x, grid.rows), y: right, rows: *rows };
        let isa = choice::of_call(self.isa);
        let modular = Modular { isa, factors: &self.tables.factors[prime] };
        let work = I16Work { c, adds: *accumulate, scratch };
        if *blocks == (0..grid.len()) {
            multiply_area(modular, operands, &Area::whole(*grid), work);
        } else {
            modular.multiply(operands, &Target::new(*grid, blocks.clone()), work);
        }
    }

    /// Of pairs of rows many in one pass, so that residues are taken once.
    fn multiply_rows(&self, prime: usize, product: &RowsProduct<'_>, c: &mut [u64], scratch: &mut [u64]) {
        if self.form == Form::Rows {
            return multiply_gathered(self, prime, product, c, scratch);
        }
        let &RowsProduct { x, y, depth, next, grid, ref blocks, mut accumulate, ref window } = product;
        assert!(blocks.end <= grid.len() && c.len() == blocks.len() * RESIDUE_WORDS && x.len() == y.len());
        let target = &Target { row_window: window.clone(), ..Target::new(grid, blocks.clone()) };
        let field = self.tables.factors[prime].field;
        let most = (ROWS_OF_PASS / depth.max(1)).max(1);
        if target.columns().is_empty() {
            return;
        }
        let isa = choice::of_call(self.isa);
        for first in (0..x.len()).step_by(most) {
            let some = |rows: &'_ [PanelRows<'_>], first: usize| first.min(rows.len())..(first + most).min(rows.len());
            let (own, after) = (some(x, first), some(x, first + most));
            // Between passes the rest of the same operands comes next.
            let next = match after.is_empty() {
                true => NextRows { x: &next.x[some(next.x, 0)], y: &next.y[some(next.y, 0)] },
                false => NextRows { x: &x[after.clone()], y: &y[after] },
            };
            let (x, y, c) = (&x[own.clone()], &y[own], bytemuck::cast_slice_mut(c));
            isa.run(MultiplyPanels { field, x, y, depth, next, target, c, adds: accumulate });
            accumulate = true;
        }
    }

    fn reads_rows_in_place(&self) -> bool {
        self.form == Form::Pairs
    }

    fn digit_conversions(&self) -> Option<&dyn DigitConversions> {
        #[cfg(target_arch = "x86_64")]
        if let (ResidueConversion::Composites(_), Recovery::Composites(_)) = (&self.conversion, &self.recovery) {
            return Some(self);
        }
        None
    }

    fn add(&self, prime: usize, sum: &mut [u64], words: &[u64]) {
        let prime = self.tables.moduli[prime] as i16;
        let (sums, words) = (bytemuck::cast_slice_mut::<u64, i16>(sum), bytemuck::cast_slice::<u64, i16>(words));
        for (sum, words) in sums.as_chunks_mut::<8>().0.iter_mut().zip(words.as_chunks().0) {
            rules::put(prime, sum, words, true);
        }
    }

    fn reconstruct(&self, residues: &BlockResidues<'_>, integers: &mut IntegerBlock, scratch: &mut [u64]) {
        assert!(integers.limbs >= self.tables.magnitude_limbs, "{} limbs are too few", integers.limbs);
        match &self.recovery {
            Recovery::Digits(tables) => {
                let isa = choice::of_call(self.isa);
                isa.run(reconstruct::I16Reconstruct { tables, residues, integers, scratch });
            }
            #[cfg(target_arch = "x86_64")]
            Recovery::Composites(wholes) => wholes.reconstruct(residues, integers, scratch),
        }
    }
}

/// By digits of 52 bits, where both conversions are.
#[cfg(target_arch = "x86_64")]
impl I16Engine {
    fn composites(&self) -> (&Composites, &Wholes) {
        match (&self.conversion, &self.recovery) {
            (ResidueConversion::Composites(composites), Recovery::Composites(wholes)) => (composites, wholes),
            _ => unreachable!("conversions are chosen only if both exist"),
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl DigitConversions for I16Engine {
    fn sum_digits(&self) -> usize {
        self.composites().1.digits()
    }

    fn operand_digits(&self) -> usize {
        self.composites().0.digits()
    }

    fn sum_words(&self) -> usize {
        self.composites().1.scratch_words()
    }

    fn digits_of_sums<'s>(
        &self,
        residues: &BlockResidues<'_>,
        half: usize,
        scratch: &'s mut [u64],
    ) -> (&'s [u64], [u8; DIGIT_COLUMNS]) {
        self.composites().1.sums(residues, half, scratch)
    }

    fn residues_of_digits(&self, digits: &[u64], signs: &[u8], planes: &mut [&mut [u64]]) {
        self.composites().0.of_digits(digits, signs, planes);
    }
}
