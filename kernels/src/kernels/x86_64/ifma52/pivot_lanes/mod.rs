//! A few columns of a factorisation with partial pivoting, as cells of digits: eight rows at once, or eight columns.
//!
//! A block is eight cells. In a block of `L` a cell is a column, and its lanes are rows; in one of `U` a cell is a row,
//! and its lanes are columns. Both begin as remainders of entries of the matrix, integers times `2^(-2 w)`; a finished
//! cell has entries of a factor, integers times `2^(-w)`. Products and quotients are those of `digit_tiles`. Bounds:
//! docs/ALGORITHM.md, "LU with partial pivoting".

use super::digit_tiles::blocks::{cut_words, take_digits_off, take_off, write_magnitudes};
use super::digit_tiles::entries::CellMagnitudes;
use super::digit_tiles::sums::{self, CellTerms, Part};
use super::digit_tiles::{self, EntryDigits, column, entries};
use super::factor::divide::{OwnPivot, QuotientBits, divide, space_words};
use super::row_lanes::round::{Magnitudes, Rounding};
use super::row_lanes::{load, store};
use super::transpose::transpose;
use crate::kernels::pivot_cells::{CellLane, Finished, LargestLanes};
use crate::kernels::plane_tiles::rules::BlockSums;
use crate::kernels::radix::CutLanes;
use crate::kernels::tiles::TileSource;
use crate::kernels::x86_64::cpu;
use crate::kernels::{DIGIT_COLUMNS, PlaneEngine};
use crate::math::float::limbs_for;
use crate::plan::BLOCK;
use rug::Integer;
use rug::integer::Order;
use std::arch::x86_64::*;
use std::ops::Range;

const DIGIT: u32 = 52;
const MASK: i64 = (1 << DIGIT) - 1;

/// The sizes of the integers; a value proves that the CPU has the instructions.
#[derive(Clone, Copy)]
pub struct PivotLanes {
    digits: EntryDigits,
    working_bits: u32,
    entry_bits: u32,
    /// Half-width of the window in which quotients are divided exactly.
    window: u64,
}

/// A pivot, ready for quotients.
pub struct LanePivot(OwnPivot);

impl PivotLanes {
    /// For `w = working_bits`, entries of at most `2^entry_bits`, and rests below `2^(modulus_bits - 1)`, as integers;
    /// `None` if this processor lacks the instructions, or for too many digits.
    pub fn new(working_bits: u32, entry_bits: u32, modulus_bits: u32) -> Option<PivotLanes> {
        cpu::has_ifma52().ok()?;
        let digits = EntryDigits::new((entry_bits + 1).max(modulus_bits.div_ceil(2)));
        (digits.terms >= BLOCK).then_some(PivotLanes { digits, working_bits, entry_bits, window: column::WINDOW })
    }

    /// The same with quotients that are all divided exactly.
    #[cfg(test)]
    pub fn exact(self) -> PivotLanes {
        PivotLanes { window: u64::MAX >> 1, ..self }
    }

    fn cell_words(&self) -> usize {
        self.digits.cell_words()
    }

    /// Words of a block.
    pub fn block_words(&self) -> usize {
        BLOCK * self.cell_words()
    }

    /// Limbs of an entry.
    pub fn entry_limbs(&self) -> usize {
        (DIGIT as usize * self.digits.count).div_ceil(64)
    }

    /// Words of scratch of any call, for entries that are rounded to `precision_bits` bits.
    pub fn scratch_words(&self, precision_bits: u32) -> usize {
        let digits = self.digits;
        let residues = BLOCK / DIGIT_COLUMNS * (digits.count + 1) * DIGIT_COLUMNS * BLOCK;
        let rounded = digits.count * BLOCK + Rounding::new(precision_bits).scratch_words();
        let cells = 2 * self.cell_words();
        let limbs = BLOCK * self.entry_limbs();
        digits.cut_words().max(cut_words(digits)).max(residues).max(rounded).max(cells).max(limbs)
    }

    /// Fills the cells of `source`, one for each of its columns, whose lanes are its rows, at most eight.
    pub fn load(&self, source: &TileSource<'_>, block: &mut [u64], scratch: &mut [u64]) {
        assert!(source.shape().panels() == 1 && source.cols.len() <= BLOCK);
        let block = &mut block[..self.block_words()];
        block.fill(0);
        // SAFETY: there is a `PivotLanes`, so the CPU has the instructions; so for all below.
        unsafe { digit_tiles::load(self.digits, source, 0..1, block, scratch) }
    }

    /// Takes sums off the first `cells` cells of a block, whose lanes are theirs.
    pub fn take_off(&self, block: &mut [u64], cells: usize, mut sums: BlockSums<'_>, scratch: &mut [u64]) {
        let block = &mut block[..self.block_words()];
        // SAFETY: as above.
        unsafe {
            match sums.engine.digit_conversions() {
                Some(short) => take_digits_off(self.digits, block, cells, short, &sums.residues, sums.scratch),
                None => take_off(self.digits, block, sums.reconstruct(), cells, scratch),
            }
        }
    }

    /// Makes the lanes of a block that is not finished its cells, and the cells its lanes.
    pub fn transpose(&self, block: &mut [u64]) {
        assert!(block.len() >= self.block_words());
        // SAFETY: as above.
        unsafe { transpose_cells(self.cell_words() / BLOCK, block) }
    }

    /// Exchanges two rows of blocks of `L`, one block for each eight rows.
    pub fn swap_rows(&self, blocks: &mut [u64], [one, other]: [usize; 2]) {
        let (low, high) = (one.min(other), one.max(other));
        if low == high {
            return;
        }
        let words = self.block_words();
        let (place, to) = (|row: usize| row / BLOCK * words + row % BLOCK, high % BLOCK);
        let (before, after) = match low / BLOCK == high / BLOCK {
            true => {
                return blocks[place(low) - low % BLOCK..][..words]
                    .chunks_exact_mut(BLOCK)
                    .for_each(|lanes| lanes.swap(low % BLOCK, to));
            }
            false => blocks.split_at_mut(place(high) - to),
        };
        let lows = before[place(low) - low % BLOCK..][..words].chunks_exact_mut(BLOCK);
        for (lows, highs) in lows.zip(after.chunks_exact_mut(BLOCK)) {
            std::mem::swap(&mut lows[low % BLOCK], &mut highs[to]);
        }
    }

    /// Takes the products of the finished cells `terms` of a block with entries of `U` in column `col` off a cell. In a
    /// block of `L` those entries are lane `lane` of the cells of `upper`.
    ///
    /// A block of `U` is the other way round: its own cells are the entries of `U`, and those of `L` are a row of the
    /// triangle of its rows, lane `lane` of the cells of the block of `L` with these rows.
    pub fn subtract(&self, block: &mut [u64], cell: usize, terms: Range<usize>, others: &[u64], lane: usize) {
        let words = self.cell_words();
        assert!(terms.end <= cell && cell < BLOCK && lane < BLOCK);
        assert!(block.len() >= self.block_words() && others.len() >= terms.end * words);
        // SAFETY: the cells of the terms lie in both (asserted) and before the one that is written, which has all its
        // words; so the CPU.
        unsafe {
            let block = block.as_mut_ptr();
            let (x, y) = (block.add(terms.start * words), others.as_ptr().wrapping_add(terms.start * words + lane));
            let some = CellTerms { x, y, count: terms.len(), from: 0 };
            sums::subtract(self.digits, some, Part::All, block.add(cell * words));
        }
    }

    /// Makes a cell the magnitudes of its numbers; their signs.
    pub fn magnitudes(&self, block: &mut [u64], cell: usize) -> u8 {
        let cell = &mut block[cell * self.cell_words()..][..self.cell_words()];
        let words = cell.as_mut_ptr();
        // SAFETY: the cell has all its words; so the CPU.
        unsafe { column::magnitudes(self.digits, words, words) }
    }

    /// Compares the magnitudes of a cell with the largest ones so far.
    pub fn see(&self, block: &[u64], cell: usize, panel: usize, live: u8, largest: &mut LargestLanes) {
        let cell = &block[cell * self.cell_words()..][..self.cell_words()];
        assert!(largest.digits.len() == cell.len());
        // SAFETY: as above.
        unsafe { see(cell, panel, live, largest) }
    }

    /// Words of the largest magnitudes.
    pub fn largest_words(&self) -> usize {
        self.cell_words()
    }

    /// The entries of `U` from the magnitudes of rests with their signs: `round(rest 2^-w)`, ties to even, as a
    /// finished cell in place of these. Lanes that are not `live` may have any content.
    ///
    /// # Errors
    /// The bits of the longest magnitude less `2 w`, if an entry is too large.
    pub fn finish_upper(&self, block: &mut [u64], cell: usize, signs: u8, live: u8) -> Result<(), u32> {
        let cell = &mut block[cell * self.cell_words()..][..self.cell_words()];
        // SAFETY: as above.
        unsafe { finish_upper(self, cell, signs, live) }
    }

    /// Copies a cell of a block.
    pub fn copy(&self, block: &[u64], cell: usize, out: &mut [u64]) {
        out[..self.cell_words()].copy_from_slice(&block[cell * self.cell_words()..][..self.cell_words()]);
    }

    /// Copies an entry of the finished cell `from` to a lane of a block.
    pub fn set_lane(&self, from: &[u64], lane: usize, block: &mut [u64], to: CellLane) {
        let cell = &mut block[to.cell * self.cell_words()..][..self.cell_words()];
        let lanes = cell.chunks_exact_mut(BLOCK).zip(from.chunks_exact(BLOCK)).take(self.digits.count + 1);
        lanes.for_each(|(cell, from)| cell[to.lane] = from[lane]);
    }

    /// The pivot in a lane of a block of `U`; `None` for 0.
    pub fn pivot(&self, block: &[u64], at: CellLane, scratch: &mut [u64]) -> Option<LanePivot> {
        let limbs = self.entry_limbs();
        let signs = self.limbs(block, at.cell, scratch);
        let magnitude = Integer::from_digits(&scratch[at.lane * limbs..][..limbs], Order::Lsf);
        let value = if signs >> at.lane & 1 == 1 { -magnitude } else { magnitude };
        let bits = QuotientBits { working: self.entry_bits, raised: 0 };
        (value != 0).then(|| LanePivot(OwnPivot::new(&value, bits)))
    }

    /// Bytes of a pivot, and of what is allocated to make it.
    pub fn pivot_bytes(&self) -> u64 {
        let space = space_words(self.entry_bits);
        OwnPivot::bytes(self.digits.count) + 8 * (space + 2 * self.entry_limbs()) as u64
    }

    /// The quotients of the magnitudes of a cell by a pivot, as a finished cell in its place; `lanes` are the signs of
    /// the magnitudes, and the lanes that are divided: the others become 0.
    pub fn divide(&self, block: &mut [u64], cell: usize, pivot: &LanePivot, lanes: [u8; 2], scratch: &mut [u64]) {
        let cell = &mut block[cell * self.cell_words()..][..self.cell_words()];
        let quotients = &mut scratch[..self.digits.count * BLOCK];
        // SAFETY: as above.
        unsafe { quotients_of(self, cell, pivot, lanes, quotients) }
    }

    /// The magnitudes of a finished cell, one after the other; their signs.
    pub fn limbs(&self, block: &[u64], cell: usize, out: &mut [u64]) -> u8 {
        let cell = &block[cell * self.cell_words()..][..self.cell_words()];
        // SAFETY: as above.
        unsafe { entries::limbs(self.digits, cell, &mut out[..BLOCK * self.entry_limbs()]) }
    }

    /// Rounds a finished cell times `2^exponents` to `precision_bits`, ties to even; the bits of its longest magnitude.
    pub fn round(
        &self,
        block: &[u64],
        cell: usize,
        precision_bits: u32,
        out: Finished<'_>,
        scratch: &mut [u64],
    ) -> u32 {
        let cell = &block[cell * self.cell_words()..][..self.cell_words()];
        // SAFETY: as above.
        unsafe { round(self.digits, cell, precision_bits, out, scratch) }
    }

    /// Writes the residues of the first `cells` cells of a finished block to a plane for each prime, where the engine
    /// takes digits; whether it does.
    pub fn to_residues(
        self,
        block: &[u64],
        cells: usize,
        engine: &dyn PlaneEngine,
        planes: &mut [&mut [u64]],
        scratch: &mut [u64],
    ) -> bool {
        let Some(conversions) = engine.digit_conversions() else { return false };
        let given = conversions.operand_digits();
        if given > self.digits.count {
            return false;
        }
        // SAFETY: as above.
        let signs = unsafe { write_magnitudes(self.digits, &block[..self.block_words()], given, scratch) };
        conversions.residues_of_digits(scratch, &signs[..cells], planes);
        true
    }
}

#[target_feature(enable = "avx512f")]
fn transpose_cells(vectors: usize, block: &mut [u64]) {
    for at in 0..vectors {
        let lanes = transpose(std::array::from_fn(|cell| load(block, cell * vectors + at)));
        lanes.into_iter().enumerate().for_each(|(cell, lanes)| store(block, cell * vectors + at, lanes));
    }
}

#[target_feature(enable = "avx512f")]
fn see(cell: &[u64], panel: usize, live: u8, largest: &mut LargestLanes) {
    let (mut greater, mut equal) = (0, live);
    for at in (0..cell.len() / BLOCK).rev() {
        let (own, other) = (load(cell, at), load(&largest.digits, at));
        greater |= _mm512_cmpgt_epu64_mask(own, other) & equal;
        equal &= _mm512_cmpeq_epi64_mask(own, other);
        if equal == 0 {
            break;
        }
    }
    if greater == 0 {
        return;
    }
    for at in 0..cell.len() / BLOCK {
        let own = _mm512_mask_mov_epi64(load(&largest.digits, at), greater, load(cell, at));
        store(&mut largest.digits, at, own);
    }
    for (lane, place) in largest.panels.iter_mut().enumerate() {
        *place = if greater >> lane & 1 == 1 { Some(panel) } else { *place };
    }
}

/// The bits of the longest of the numbers in some lanes.
#[target_feature(enable = "avx512f")]
fn most_bits(digits: &[u64], live: u8) -> u32 {
    let zero = _mm512_setzero_si512();
    for at in (0..digits.len() / BLOCK).rev() {
        let own = _mm512_mask_mov_epi64(zero, live, load(digits, at));
        if _mm512_test_epi64_mask(own, own) != 0 {
            let mut words = [0; BLOCK];
            store(&mut words, 0, own);
            let all = words.iter().fold(0u64, |all, word| all | word);
            return DIGIT * at as u32 + u64::BITS - all.leading_zeros();
        }
    }
    0
}

#[target_feature(enable = "avx512f")]
fn finish_upper(lanes: &PivotLanes, cell: &mut [u64], signs: u8, live: u8) -> Result<(), u32> {
    let (count, bits) = (lanes.digits.count, lanes.working_bits);
    let longest = most_bits(cell, live);
    if longest > bits + lanes.entry_bits {
        return Err(longest - 2 * bits);
    }
    let (zero, mask) = (_mm512_setzero_si512(), _mm512_set1_epi64(MASK));
    let (half, bit) = (((bits - 1) / DIGIT) as usize, (bits - 1) % DIGIT);
    let mut sticky = _mm512_and_si512(load(cell, half), _mm512_set1_epi64((1 << bit) - 1));
    for at in 0..half {
        sticky = _mm512_or_si512(sticky, load(cell, at));
    }
    let halves = _mm512_test_epi64_mask(load(cell, half), _mm512_set1_epi64(1 << bit));
    let (first, shift) = ((bits / DIGIT) as usize, i64::from(bits % DIGIT));
    let (down, up) = (_mm512_set1_epi64(shift), _mm512_set1_epi64(i64::from(DIGIT) - shift));
    let mut more = zero;
    for at in 0..count {
        let from = first + at;
        let above = if from + 1 < 2 * count { load(cell, from + 1) } else { zero };
        let low = if from < 2 * count { load(cell, from) } else { zero };
        let digit = _mm512_or_si512(_mm512_srlv_epi64(low, down), _mm512_sllv_epi64(above, up));
        let digit = _mm512_and_si512(digit, mask);
        if at == 0 {
            let odd = _mm512_test_epi64_mask(digit, _mm512_set1_epi64(1));
            more = _mm512_maskz_set1_epi64(halves & (odd | _mm512_test_epi64_mask(sticky, sticky)), 1);
        }
        let sum = _mm512_add_epi64(digit, more);
        more = _mm512_srli_epi64::<52>(sum);
        store(cell, at, _mm512_and_si512(sum, mask));
    }
    let words = cell.as_mut_ptr();
    // SAFETY: a cell has twice the digits of an entry; each is read before it is written.
    unsafe { column::store(lanes.digits, words, BLOCK, CutLanes::exact(signs), words) };
    Ok(())
}

#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
fn quotients_of(lanes: &PivotLanes, cell: &mut [u64], pivot: &LanePivot, [signs, live]: [u8; 2], out: &mut [u64]) {
    let (digits, pivot) = (lanes.digits, pivot.0.get());
    let (cell, out) = (cell.as_mut_ptr(), out.as_mut_ptr());
    let signs = (signs ^ if pivot.negative { u8::MAX } else { 0 }) & live;
    // SAFETY: the cell has twice the digits of an entry, and there are as many digits for the quotients.
    unsafe {
        let verdict = divide::<1>(&pivot, cell, 2 * digits.count, out, digits.count, lanes.window);
        let mut unclear = verdict.unclear[0] & live;
        while unclear != 0 {
            let lane = unclear.trailing_zeros() as usize;
            unclear &= unclear - 1;
            column::divide_exactly(digits, cell, out, lane, &pivot);
        }
        if live != u8::MAX {
            for at in 0..digits.count {
                let slot = out.add(at * BLOCK);
                let digit = _mm512_mask_mov_epi64(_mm512_setzero_si512(), live, _mm512_loadu_si512(slot.cast()));
                _mm512_storeu_si512(slot.cast(), digit);
            }
        }
        column::store(digits, out, BLOCK, CutLanes::exact(signs), cell);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512cd,avx512vbmi")]
fn round(digits: EntryDigits, cell: &[u64], precision_bits: u32, out: Finished<'_>, scratch: &mut [u64]) -> u32 {
    let rounding = Rounding::new(precision_bits);
    let (magnitudes, window) = scratch.split_at_mut(digits.count * BLOCK);
    let mut all = CellMagnitudes::new(digits, cell);
    for at in 0..digits.count {
        store(magnitudes, at, all.take());
    }
    let Finished { exponents, heads, limbs } = out;
    assert!(limbs.len() == BLOCK * limbs_for(precision_bits));
    let from = Magnitudes { digits: magnitudes, exponents, signs: all.signs };
    rounding.round(from, heads, limbs, &mut window[..rounding.scratch_words()]);
    most_bits(magnitudes, u8::MAX)
}

#[cfg(test)]
mod tests;
