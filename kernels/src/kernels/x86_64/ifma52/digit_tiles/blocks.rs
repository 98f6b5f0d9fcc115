//! Blocks of integers of tiles over planes, as cells of digits: eight rows at once.
//!
//! A block is the cells of its 8 columns. Sums of updates and a cell's own integers are both below `2^52` in every
//! digit, so that after their subtraction the products of a block can be added without a carry. Bounds:
//! docs/ALGORITHM.md, "Tiles of digits".

use super::super::digits::{GROUP_DIGITS, ROWS, cut_integers};
use super::super::factor::divide::{OwnPivot, PivotDivisor, space_words};
use super::super::factor::weights::{First, WeightLanes};
use super::column::{Raise, Reduced};
use super::entries::CellMagnitudes;
use super::sums::{self, CellTerms};
use super::{DigitTiles, EntryDigits, column, entries, load, load_operand};
use crate::kernels::plane_tiles::rules::{BlockRules, BlockSums, PivotedTriangle};
use crate::kernels::radix::CutLanes;
use crate::kernels::tiles::{FailedPivot, TileSource};
use crate::kernels::x86_64::cpu;
use crate::kernels::{BlockResidues, DIGIT_COLUMNS, DigitConversions, IntegerBlock, PlaneEngine};
use crate::math::pivot::RowWeight;
use crate::plan::BLOCK;
use rug::Integer;
use rug::integer::Order;
use std::arch::x86_64::*;

/// The rules for one precision; a value proves that the CPU has the instructions.
pub struct LaneRules(DigitTiles);

impl LaneRules {
    /// The rules for `working_bits`, if the CPU has the instructions.
    pub fn new(working_bits: u32) -> Option<LaneRules> {
        cpu::has_ifma52().ok()?;
        Some(LaneRules(DigitTiles::new(working_bits)))
    }

    /// Words of the magnitudes of a block.
    fn magnitude_words(&self) -> usize {
        (self.0.digits.count + 1) * BLOCK * BLOCK
    }
}

/// Takes sums off the cells of a block, the first `cols` of them.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(in super::super) fn take_off(
    digits: EntryDigits,
    block: &mut [u64],
    sums: &IntegerBlock,
    cols: usize,
    scratch: &mut [u64],
) {
    let (mask, zero) = (_mm512_set1_epi64((1 << 52) - 1), _mm512_setzero_si512());
    let cut = &mut scratch[..cut_words(digits)];
    let (empty, bits) = digits.below_rest();
    let raise = Raise::new(bits);
    let columns = sums.magnitudes.chunks_exact(BLOCK * sums.limbs).zip(sums.negative.as_chunks::<BLOCK>().0);
    for (cell, (magnitudes, negative)) in block.chunks_exact_mut(digits.cell_words()).zip(columns).take(cols) {
        let signs = negative.iter().enumerate().fold(0, |signs, (lane, &negative)| signs | u8::from(negative) << lane);
        cut_integers::<{ ROWS * BLOCK }>(magnitudes, cut);
        let mut below = zero;
        for (digit, cut) in cell.chunks_exact_mut(BLOCK).skip(empty).zip(cut.chunks(ROWS * BLOCK)) {
            assert!(cut.len() >= BLOCK);
            // SAFETY: both have 8 words.
            unsafe {
                let own = _mm512_and_si512(_mm512_loadu_si512(cut.as_ptr().cast()), mask);
                let sum = raise.above(own, below);
                below = own;
                let sum = _mm512_mask_sub_epi64(sum, signs, zero, sum);
                let value = _mm512_sub_epi64(_mm512_loadu_si512(digit.as_ptr().cast()), sum);
                _mm512_storeu_si512(digit.as_mut_ptr().cast(), value);
            }
        }
    }
}

/// Takes sums off the cells of a block, the first `cols` of them.
#[target_feature(enable = "avx512f")]
pub(in super::super) fn take_digits_off(
    digits: EntryDigits,
    block: &mut [u64],
    cols: usize,
    conversions: &dyn DigitConversions,
    residues: &BlockResidues<'_>,
    scratch: &mut [u64],
) {
    let (given, (empty, bits), zero) = (conversions.sum_digits(), digits.below_rest(), _mm512_setzero_si512());
    // Digits of sums that a cell has room for.
    let (all, raise) = (2 * digits.count - empty, Raise::new(bits));
    for half in 0..cols.div_ceil(DIGIT_COLUMNS) {
        let (sums, signs) = conversions.digits_of_sums(residues, half, scratch);
        assert!(sums.len() >= given * DIGIT_COLUMNS * BLOCK);
        let cells = block.chunks_exact_mut(digits.cell_words()).take(cols).skip(half * DIGIT_COLUMNS);
        for ((column, sign), cell) in signs.into_iter().enumerate().zip(cells) {
            let (cell, mut below) = (&mut cell[empty * BLOCK..], zero);
            for at in 0..all.min(given + 1) {
                // SAFETY: a digit of the cell, and one of the sums (asserted).
                unsafe {
                    let slot = cell.as_mut_ptr().add(at * BLOCK).cast();
                    let own = match at < given {
                        true => _mm512_loadu_si512(sums.as_ptr().add((at * DIGIT_COLUMNS + column) * BLOCK).cast()),
                        false => zero,
                    };
                    let sum = raise.above(own, below);
                    below = own;
                    _mm512_storeu_si512(slot, _mm512_sub_epi64(_mm512_loadu_si512(slot), sum));
                }
            }
            // A sum below 0 is its digits less one unit of the next.
            for (lane, digit) in cell[given.min(all) * BLOCK..].iter_mut().enumerate().take(BLOCK) {
                *digit = digit.wrapping_add(u64::from(sign >> lane & 1) << bits);
            }
        }
    }
}

/// The magnitudes of finished cells, as [`DigitConversions::residues_of_digits`] takes them, and their signs.
#[target_feature(enable = "avx512f")]
pub(in super::super) fn write_magnitudes(
    digits: EntryDigits,
    block: &[u64],
    given: usize,
    out: &mut [u64],
) -> [u8; BLOCK] {
    let half_words = (given + 1) * DIGIT_COLUMNS * BLOCK;
    assert!(given <= digits.count && out.len() >= BLOCK / DIGIT_COLUMNS * half_words);
    let mut signs = [0; BLOCK];
    for ((col, cell), signs) in block.chunks_exact(digits.cell_words()).enumerate().zip(&mut signs) {
        let out = &mut out[col / DIGIT_COLUMNS * half_words..][..half_words];
        let mut magnitudes = CellMagnitudes::new(digits, cell);
        *signs = magnitudes.signs;
        for at in 0..given {
            // SAFETY: all that is written lies in `out`.
            unsafe {
                let to = out.as_mut_ptr().add(((at + 1) * DIGIT_COLUMNS + col % DIGIT_COLUMNS) * BLOCK);
                _mm512_storeu_si512(to.cast(), magnitudes.take());
            }
        }
    }
    signs
}

/// Words of the digits of 8 sums.
pub(in super::super) fn cut_words(digits: EntryDigits) -> usize {
    (2 * digits.count).next_multiple_of(GROUP_DIGITS) * ROWS * BLOCK
}

#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
fn factor(
    tiles: &DigitTiles,
    block: &mut [u64],
    weights: &mut [RowWeight],
    pivots: &mut Vec<OwnPivot>,
    scratch: &mut [u64],
) -> Result<(), FailedPivot> {
    let digits = tiles.digits;
    let (mut lanes, scratch) = WeightLanes::new(1, weights, scratch);
    let (value, scratch) = scratch.split_at_mut(column::value_limbs(digits));
    let (space, scratch) = scratch.split_at_mut(space_words(tiles.working_bits));
    assert!(block.len() >= BLOCK * digits.cell_words() && weights.len() <= BLOCK);
    assert!(scratch.len() >= column::scratch_words(digits));
    let (block, scratch) = (block.as_mut_ptr(), scratch.as_mut_ptr());
    for lane in 0..weights.len() {
        if lanes.is_rejected(lane) {
            return Err(FailedPivot { column: lane, value: None });
        }
        // SAFETY: the block has a cell for each column and the scratch has room (asserted); cells before this one are
        // finished and only read.
        unsafe {
            let cell = block.add(lane * digits.cell_words());
            let terms = CellTerms { x: block, y: block.add(lane), count: lane, from: 0 };
            sums::subtract(digits, terms, sums::Part::All, cell);
            let signs = column::value(digits, cell, lane, scratch, value);
            let root =
                if signs >> lane & 1 == 1 { None } else { PivotDivisor::root(value, tiles.quotient_bits(), space) };
            let Some(pivot) = root else {
                let value = -Integer::from_digits(value, Order::Lsf);
                return Err(FailedPivot { column: lane, value: Some(value) });
            };
            let (reduced, weights) = (Reduced { cell, terms }, lanes.of_panel(0));
            column::finish_magnitudes(tiles, reduced, signs, &pivot, First::Diagonal(lane), weights, scratch);
            pivots.push(OwnPivot::from(&pivot));
        }
    }
    lanes.give_back(weights);
    Ok(())
}

#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
fn solve(
    tiles: &DigitTiles,
    block: &mut [u64],
    above: PivotedTriangle<'_, OwnPivot>,
    weights: &mut [RowWeight],
    scratch: &mut [u64],
) {
    let PivotedTriangle { words: above, pivots } = above;
    let digits = tiles.digits;
    let (mut lanes, scratch) = WeightLanes::new(1, weights, scratch);
    assert!(block.len().min(above.len()) >= BLOCK * digits.cell_words() && pivots.len() <= BLOCK);
    assert!(scratch.len() >= column::scratch_words(digits));
    let (block, above, scratch) = (block.as_mut_ptr(), above.as_ptr(), scratch.as_mut_ptr());
    for (col, pivot) in pivots.iter().enumerate() {
        // SAFETY: both blocks have a cell for each column and the scratch has room (asserted); cells before this one
        // are finished and only read.
        unsafe {
            let cell = block.add(col * digits.cell_words());
            let (pivot, part) = (pivot.get(), sums::Part::All);
            let terms = CellTerms { x: block, y: above.add(col), count: col, from: pivot.first };
            let terms = terms.cut_for(digits, part);
            sums::subtract(digits, terms, part, cell);
            column::finish(tiles, Reduced { cell, terms }, &pivot, lanes.of_panel(0), scratch);
        }
    }
    lanes.give_back(weights);
}

/// Sets a cell to entries that are finished.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn set(digits: EntryDigits, cell: &mut [u64], signs: u8, magnitudes: &[u64], scratch: &mut [u64]) {
    let cut = &mut scratch[..cut_words(digits)];
    assert!(cell.len() >= digits.cell_words());
    cut_integers::<{ ROWS * BLOCK }>(magnitudes, cut);
    // SAFETY: as many digits are cut as a cell has, twice those of an entry.
    unsafe { column::store(digits, cut.as_ptr(), ROWS * BLOCK, CutLanes::exact(signs), cell.as_mut_ptr()) };
}

impl BlockRules for LaneRules {
    type Pivot = OwnPivot;

    const FORM: &'static str = "planes and digits in lanes";

    fn block_words(&self) -> usize {
        BLOCK * self.0.digits.cell_words()
    }

    fn entry_limbs(&self) -> usize {
        (52 * self.0.digits.count).div_ceil(64)
    }

    fn scratch_words(&self) -> usize {
        let (digits, lanes) = (self.0.digits, 2 * BLOCK);
        let pivot = column::value_limbs(digits) + space_words(self.0.working_bits);
        (lanes + pivot + column::scratch_words(digits))
            .max(self.0.digits.cut_words())
            .max(cut_words(digits))
            .max(self.magnitude_words())
    }

    fn pivot_bytes(&self) -> u64 {
        OwnPivot::bytes(self.0.digits.count)
    }

    fn call_bytes(&self) -> u64 {
        // Exact quotients take integers of GMP.
        8 * 4 * 2 * self.0.digits.count as u64
    }

    fn pivot(&self, value: &Integer) -> OwnPivot {
        OwnPivot::new(value, self.0.quotient_bits())
    }

    fn load(&self, source: &TileSource<'_>, panel: usize, finished: bool, blocks: &mut [u64], scratch: &mut [u64]) {
        // Columns that the block lacks are read as zeros.
        blocks[..self.0.layout(source.shape()).cell(1, 0)].fill(0);
        // SAFETY: the rules exist only where the CPU has the instructions; so for all below.
        unsafe {
            match finished {
                false => load(self.0.digits, source, panel..panel + 1, blocks, scratch),
                true => load_operand(&self.0, source, panel..panel + 1, blocks, scratch),
            }
        }
    }

    fn set(&self, block: &mut [u64], col: usize, signs: u8, magnitudes: &[u64], scratch: &mut [u64]) {
        let cell = &mut block[col * self.0.digits.cell_words()..];
        // SAFETY: as above.
        unsafe { set(self.0.digits, cell, signs, magnitudes, scratch) }
    }

    fn get(&self, block: &[u64], col: usize, magnitudes: &mut [u64]) -> u8 {
        let cell = &block[col * self.0.digits.cell_words()..];
        // SAFETY: as above.
        unsafe { entries::limbs(self.0.digits, cell, magnitudes) }
    }

    fn take_off(&self, block: &mut [u64], sums: &IntegerBlock, cols: usize, scratch: &mut [u64]) {
        // SAFETY: as above.
        unsafe { take_off(self.0.digits, block, sums, cols, scratch) }
    }

    fn take_residues_off(&self, block: &mut [u64], cols: usize, mut sums: BlockSums<'_>, scratch: &mut [u64]) {
        match sums.engine.digit_conversions() {
            // SAFETY: as above.
            Some(short) => unsafe {
                take_digits_off(self.0.digits, block, cols, short, &sums.residues, sums.scratch);
            },
            None => self.take_off(block, sums.reconstruct(), cols, scratch),
        }
    }

    fn to_residues(
        &self,
        block: &[u64],
        cols: usize,
        engine: &dyn PlaneEngine,
        planes: &mut [&mut [u64]],
        scratch: &mut [u64],
    ) -> bool {
        let Some(conversions) = engine.digit_conversions() else { return false };
        // SAFETY: as above.
        let signs = unsafe { write_magnitudes(self.0.digits, block, conversions.operand_digits(), scratch) };
        conversions.residues_of_digits(scratch, &signs[..cols], planes);
        true
    }

    fn factor(
        &self,
        block: &mut [u64],
        weights: &mut [RowWeight],
        pivots: &mut Vec<OwnPivot>,
        scratch: &mut [u64],
    ) -> Result<(), FailedPivot> {
        // SAFETY: as above.
        unsafe { factor(&self.0, block, weights, pivots, scratch) }
    }

    fn solve(
        &self,
        block: &mut [u64],
        above: PivotedTriangle<'_, OwnPivot>,
        weights: &mut [RowWeight],
        scratch: &mut [u64],
    ) {
        // SAFETY: as above.
        unsafe { solve(&self.0, block, above, weights, scratch) }
    }
}
