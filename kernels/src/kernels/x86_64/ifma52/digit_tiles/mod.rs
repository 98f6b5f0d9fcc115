//! Tile kernels of small orders: the integers themselves as digits of 52 bits, without residues.
//!
//! A product of entries of `d` digits takes `d^2` multiply-adds instead of about two for each prime, but there are no
//! conversions to residues and back, and no tables: it is faster up to some tens of rows. Layout of a tile: cells
//! `[panel of 8 rows][column]` of `2 d` vectors. During updates, a cell holds the remainders of its entries, which are
//! the entries minus the products so far: signed digits, modulo `2^(104 d)`. A finished cell holds the digits of its
//! entries modulo `2^(52 d)`, followed by a vector that is 1 for negative entries. `sums` has the products, `column`
//! finishes cells. Same rules as all tile kernels, so the same bits.

pub mod blocks;
pub(super) mod column;
pub(super) mod entries;
pub(super) mod sums;

pub(super) use column::magnitudes;
use column::{Raise, Reduced};
pub(super) use sums::normalize;

use super::digits::{Cutter, GROUP_DIGITS, ROWS, cut_integers, padded};
use super::factor::divide::{OwnPivot, PivotDivisor, QuotientBits, space_words};
use super::factor::weights::{First, WeightLanes, WeightRule};
use crate::kernels::PanelSource;
use crate::kernels::radix::CutLanes;
use crate::kernels::tiles::{
    DiagonalData, DiagonalTile, EntryForm, FailedPivot, FinishedEntries, PanelColumn, SolveTile, TileDevices,
    TileEngine, TileFormat, TileShape, TileSource, UpdateTile, pivots_of,
};
use crate::math::bound::{cholesky_modulus_bits, digit_sum_terms};
use crate::math::float::{LIMB_BITS, limbs_for};
use crate::math::pivot::RowWeight;
use crate::plan::BLOCK;
use rug::Integer;
use rug::integer::Order;
use std::any::Any;
use std::arch::x86_64::*;
use std::ops::Range;
use sums::{CellTerms, Part};

/// Rows up to which digits are faster than residues, and for entries of few digits: measured.
const MOST_ROWS: usize = 24;
const MOST_ROWS_OF_SHORT: usize = 64;

/// The same for factors in one tile of entries of few digits, and of no more rows than this: at 512 to 1024 bits.
const MOST_ROWS_OF_SHORT_IN_ONE_TILE: usize = 104;
const MOST_ROWS_IN_ONE_TILE: usize = 32;
const ONE_TILE_DIGITS: usize = 20;

/// Digits of a short entry.
const SHORT_DIGITS: usize = 6;

/// Rows of a tile: one for all orders at which these kernels are worth it.
const TILE_ROWS: usize = MOST_ROWS_OF_SHORT;

/// Digits of an entry.
#[derive(Clone, Copy)]
pub(super) struct EntryDigits {
    /// The number of digits `d`, a whole number of groups.
    pub count: usize,
    /// Digits that are multiplied together.
    pub group: usize,
    /// Number of products whose sums are formed without a carry.
    pub terms: usize,
    /// Bits of zeros below all entries, fewer than a digit has: then the top digits are full, and more of the products
    /// lie below those that a quotient depends on.
    pub below: u32,
}

impl EntryDigits {
    /// Digits for entries below `2^(working_bits + 1)`, and twice that number for the remainder of an entry; in groups
    /// of one size that need the fewest additional digits and are not small.
    pub fn new(working_bits: u32) -> EntryDigits {
        // One bit for the sign, one since entries of a matrix may be as large as a bound.
        let least = (cholesky_modulus_bits(working_bits) as usize + 1).div_ceil(104);
        let fewest = least.div_ceil(sums::GROUP);
        let groups = (fewest..=least.min(fewest + 1)).min_by_key(|&groups| least.next_multiple_of(groups));
        let groups = groups.unwrap_or(least);
        let group = least.div_ceil(groups);
        let count = group * groups;
        EntryDigits { count, group, terms: digit_sum_terms(count), below: 0 }
    }

    /// The same with as many bits below the entries as there is room for, if products can be left out.
    fn filled(working_bits: u32) -> EntryDigits {
        let digits = EntryDigits::new(working_bits);
        let spare = 52 * digits.count as u32 - working_bits - 2;
        EntryDigits { below: if sums::can_leave_out(digits.group) { spare.min(51) } else { 0 }, ..digits }
    }

    /// Whole digits of zeros below the rest of an entry, and bits beyond them.
    fn below_rest(self) -> (usize, u32) {
        ((2 * self.below / 52) as usize, 2 * self.below % 52)
    }

    pub fn cell_words(self) -> usize {
        2 * self.count * BLOCK
    }

    fn layout(&self, shape: TileShape) -> DigitTileLayout {
        let (panels, padded_cols) = (shape.panels(), shape.padded_cols());
        DigitTileLayout { panels, padded_cols, cell_words: self.cell_words() }
    }

    /// Words of the digits of 8 entries, as they are cut out of their limbs.
    pub fn cut_words(&self) -> usize {
        padded(2 * self.count).next_multiple_of(GROUP_DIGITS) * ROWS * BLOCK
    }

    /// Calls `each` with the first word of each cell of some panels of a tile that has entries, their digits without
    /// signs, `ROWS * 8` words from one to the next, their signs, and the carries of rounding.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi")]
    fn cut(
        &self,
        source: &TileSource<'_>,
        panels: Range<usize>,
        scratch: &mut [u64],
        mut each: impl FnMut(usize, &[u64], CutLanes),
    ) {
        let TileSource { matrix, rows, cols, row_shifts, col_shifts, .. } = source.clone();
        let layout = self.layout(source.shape());
        assert!(rows.end <= matrix.rows() && cols.end <= col_shifts.len());
        let scratch = &mut scratch[..self.cut_words()];
        for panel in panels.clone() {
            let first = rows.start + panel * BLOCK;
            let columns = first..(first + BLOCK).min(rows.end);
            // First column that the last row of the panel does not have.
            let end = match source.offset() {
                Some(offset) => cols.end.min((columns.end - offset).max(cols.start)),
                None => cols.end,
            };
            let entries = PanelSource { view: matrix.transposed(), columns, rows: cols.start..end, shifts: row_shifts };
            let mut cutter = Cutter::new(&entries);
            for (col, &shift) in col_shifts.iter().enumerate().take(end).skip(cols.start) {
                let above = source.offset().map_or(0, |offset| (col + offset).saturating_sub(first));
                let lanes = u8::MAX.checked_shl(above as u32).unwrap_or(0); // rows of the part
                let signs = cutter.next_digits(lanes, shift, 2 * self.count + 1, scratch);
                // The digits that count follow the one for rounding.
                each(layout.cell(panel - panels.start, col - cols.start), &scratch[ROWS * BLOCK..], signs);
            }
        }
    }
}

/// The positions of the cells of a tile.
#[derive(Clone, Copy)]
struct DigitTileLayout {
    panels: usize,
    padded_cols: usize,
    cell_words: usize,
}

impl DigitTileLayout {
    fn words(&self) -> usize {
        self.panels * self.padded_cols * self.cell_words
    }

    fn cell(&self, panel: usize, col: usize) -> usize {
        (panel * self.padded_cols + col) * self.cell_words
    }
}

/// The kernels for one precision. It is made only if the CPU has the instructions, so that a value proves their
/// presence.
pub struct DigitTiles {
    digits: EntryDigits,
    working_bits: u32,
    rule: WeightRule,
    /// Half-width of the window in which quotients are divided exactly.
    window: u64,
}

/// The data of a factored diagonal tile that the tiles below it need in addition to its cells.
struct DigitDiagonal(Vec<OwnPivot>);

impl DiagonalData for DigitDiagonal {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl DigitTiles {
    /// For `working_bits`. The caller has checked that the CPU has the instructions.
    pub(super) fn new(working_bits: u32) -> DigitTiles {
        let digits = EntryDigits::filled(working_bits);
        let rule = WeightRule::new(working_bits, digits.count);
        DigitTiles { digits, working_bits, rule, window: column::WINDOW }
    }

    /// Rows up to which the integers themselves are faster than residues.
    pub(super) fn most_rows(working_bits: u32) -> usize {
        let is_short = EntryDigits::new(working_bits).count <= SHORT_DIGITS;
        if is_short { MOST_ROWS_OF_SHORT } else { MOST_ROWS }
    }

    /// Rows up to which a factor in one tile is faster than one of residues.
    pub(super) fn most_rows_in_one_tile(working_bits: u32) -> usize {
        match EntryDigits::new(working_bits).count {
            0..=SHORT_DIGITS => MOST_ROWS_OF_SHORT_IN_ONE_TILE,
            count if count <= ONE_TILE_DIGITS => MOST_ROWS_IN_ONE_TILE,
            _ => MOST_ROWS,
        }
    }

    /// Rows up to which limbs are faster than digits, most of whose vectors are empty there.
    pub(super) fn most_rows_on_limbs(working_bits: u32) -> usize {
        match EntryDigits::new(working_bits).count {
            0..=SHORT_DIGITS => 10,
            7..15 => 9,
            _ => 6,
        }
    }

    fn quotient_bits(&self) -> QuotientBits {
        QuotientBits { working: self.working_bits, raised: 2 * self.digits.below }
    }

    fn layout(&self, shape: TileShape) -> DigitTileLayout {
        self.digits.layout(shape)
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi")]
pub(super) fn load(
    digits: EntryDigits,
    source: &TileSource<'_>,
    panels: Range<usize>,
    words: &mut [u64],
    scratch: &mut [u64],
) {
    let (cell_words, mask) = (digits.cell_words(), _mm512_set1_epi64((1 << 52) - 1));
    let (empty, bits) = digits.below_rest();
    let (raise, zero) = (Raise::new(bits), _mm512_setzero_si512());
    digits.cut(source, panels, scratch, |cell, digits, CutLanes { signs, carries }| {
        let (zeros, cell) = words[cell..cell + cell_words].split_at_mut(empty * BLOCK);
        zeros.fill(0);
        let (mut more, mut below) = (_mm512_maskz_set1_epi64(carries, 1), zero);
        for (cell, digit) in cell.chunks_exact_mut(BLOCK).zip(digits.chunks(ROWS * BLOCK)) {
            assert!(digit.len() >= BLOCK);
            // SAFETY: both have 8 words.
            unsafe {
                let digit = _mm512_add_epi64(_mm512_and_si512(_mm512_loadu_si512(digit.as_ptr().cast()), mask), more);
                let value = raise.above(digit, below);
                (more, below) = (zero, digit);
                let value = _mm512_mask_sub_epi64(value, signs, zero, value);
                _mm512_storeu_si512(cell.as_mut_ptr().cast(), value);
            }
        }
    });
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi")]
fn load_operand(
    tiles: &DigitTiles,
    source: &TileSource<'_>,
    panels: Range<usize>,
    words: &mut [u64],
    scratch: &mut [u64],
) {
    let digits = tiles.digits;
    digits.cut(source, panels, scratch, |cell, cut, signs| {
        let cell = &mut words[cell..cell + digits.cell_words()];
        assert!(cut.len() >= ((digits.count - 1) * ROWS + 1) * BLOCK);
        // SAFETY: the cut digits and the cell have the lengths that `store` reads and writes.
        unsafe { column::store(digits, cut.as_ptr(), ROWS * BLOCK, signs, cell.as_mut_ptr()) };
    });
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi")]
fn load_integers(
    tiles: &DigitTiles,
    shape: TileShape,
    mut integers: FinishedEntries<'_>,
    words: &mut [u64],
    scratch: &mut [u64],
) {
    let (layout, digits) = (tiles.layout(shape), tiles.digits);
    let (magnitudes, cut) = scratch.split_at_mut(BLOCK * integers.limbs);
    let cut = &mut cut[..digits.cut_words()];
    for (panel, col) in (0..layout.panels).flat_map(|panel| (0..shape.cols_of(panel)).map(move |col| (panel, col))) {
        let signs = integers.read(panel, col, magnitudes);
        cut_integers::<{ ROWS * BLOCK }>(magnitudes, cut);
        let cell = &mut words[layout.cell(panel, col)..][..digits.cell_words()];
        // SAFETY: `cut_words` has more digits than an entry, and the cell has room for them.
        unsafe { column::store(digits, cut.as_ptr(), ROWS * BLOCK, CutLanes::exact(signs), cell.as_mut_ptr()) };
    }
}

#[target_feature(enable = "avx512f,avx512vl,avx512ifma")]
fn update(tiles: &DigitTiles, strip: &mut [UpdateTile<'_>], y: &[&[u64]], depth: usize) {
    let digits = tiles.digits;
    for UpdateTile { shape, words, x, .. } in strip {
        let layout = tiles.layout(*shape);
        let operand = |rows| tiles.layout(TileShape { rows, cols: depth, diagonal: false });
        let (left, right) = (operand(shape.rows), operand(shape.cols));
        assert!(words.len() >= layout.words() && x.len() == y.len());
        for (x, y) in x.iter().zip(y) {
            assert!(x.len() >= left.words() && y.len() >= right.words());
            for (panel, col) in cells(*shape) {
                // SAFETY: the cells lie in the tiles (asserted), of which the one written is not one of the others.
                unsafe {
                    let (x, y) = (x.as_ptr().add(left.cell(panel, 0)), y.as_ptr().add(right.cell(col / BLOCK, 0)));
                    let cell = words.as_mut_ptr().add(layout.cell(panel, col));
                    let terms = CellTerms { x, y: y.add(col % BLOCK), count: depth, from: 0 };
                    sums::subtract(digits, terms, Part::All, cell);
                    normalize(digits, cell, cell);
                }
            }
        }
    }
}

/// The cells of a tile that count, panel by panel.
fn cells(shape: TileShape) -> impl Iterator<Item = (usize, usize)> {
    (0..shape.panels()).flat_map(move |panel| (0..shape.cols_of(panel)).map(move |col| (panel, col)))
}

#[target_feature(enable = "avx512f,avx512vl,avx512ifma,avx512dq")]
fn factor(
    tiles: &DigitTiles,
    shape: TileShape,
    words: &mut [u64],
    weights: &mut [RowWeight],
    scratch: &mut [u64],
    mut keep: impl FnMut(&PivotDivisor<'_>),
) -> Result<(), FailedPivot> {
    let (layout, digits) = (tiles.layout(shape), tiles.digits);
    let (mut lanes, scratch) = WeightLanes::new(layout.panels, weights, scratch);
    let (value, scratch) = scratch.split_at_mut(column::value_limbs(digits));
    let (space, scratch) = scratch.split_at_mut(space_words(tiles.working_bits));
    assert!(shape.rows == shape.cols && words.len() >= layout.words());
    assert!(scratch.len() >= column::scratch_words(digits));
    let (words, scratch) = (words.as_mut_ptr(), scratch.as_mut_ptr());
    for col in 0..shape.cols {
        let (block, lane) = (col / BLOCK, col % BLOCK);
        if lanes.is_rejected(col) {
            return Err(FailedPivot { column: col, value: None });
        }
        // SAFETY: the cells lie in the tile and the scratch has room (asserted); columns before `col` are finished and
        // only read.
        unsafe {
            let y = words.add(layout.cell(block, 0) + lane).cast_const();
            let take_off = |panel: usize, from: usize| {
                let first = if panel == block { lane } else { 0 };
                let part = Part::of(first..(shape.rows - panel * BLOCK).min(BLOCK));
                let terms = CellTerms { x: words.add(layout.cell(panel, 0)), y, count: col, from };
                let terms = terms.cut_for(digits, part);
                let cell = words.add(layout.cell(panel, col));
                sums::subtract(digits, terms, part, cell);
                Reduced { cell, terms }
            };
            let diagonal = take_off(block, 0);
            let signs = column::value(digits, diagonal.cell, lane, scratch, value);
            let root =
                if signs >> lane & 1 == 1 { None } else { PivotDivisor::root(value, tiles.quotient_bits(), space) };
            let Some(pivot) = root else {
                let value = -Integer::from_digits(value, Order::Lsf);
                return Err(FailedPivot { column: col, value: Some(value) });
            };
            let (first, weights) = (First::Diagonal(lane), lanes.of_panel(block));
            column::finish_magnitudes(tiles, diagonal, signs, &pivot, first, weights, scratch);
            for panel in block + 1..layout.panels {
                column::finish(tiles, take_off(panel, pivot.first), &pivot, lanes.of_panel(panel), scratch);
            }
            keep(&pivot);
        }
    }
    lanes.give_back(weights);
    Ok(())
}

#[target_feature(enable = "avx512f,avx512vl,avx512ifma,avx512dq")]
fn solve(tiles: &DigitTiles, tile: SolveTile<'_>, diagonal: DiagonalTile<'_>, scratch: &mut [u64]) {
    let SolveTile { shape, words, weights } = tile;
    let (layout, digits) = (tiles.layout(shape), tiles.digits);
    let above = tiles.layout(TileShape { rows: shape.cols, cols: shape.cols, diagonal: true });
    let data =
        diagonal.data.as_any().downcast_ref::<DigitDiagonal>().expect("the data of a diagonal tile of this kernel");
    let (mut lanes, scratch) = WeightLanes::new(layout.panels, weights, scratch);
    assert!(words.len() >= layout.words() && diagonal.words.len() >= above.words() && data.0.len() == shape.cols);
    assert!(scratch.len() >= column::scratch_words(digits));
    let (words, scratch) = (words.as_mut_ptr(), scratch.as_mut_ptr());
    for panel in 0..layout.panels {
        for (col, pivot) in data.0.iter().enumerate() {
            // SAFETY: the cells lie in the tiles and the scratch has room (asserted); columns before `col` are finished
            // and only read.
            unsafe {
                let x = words.add(layout.cell(panel, 0));
                let y = diagonal.words.as_ptr().add(above.cell(col / BLOCK, 0) + col % BLOCK);
                let cell = words.add(layout.cell(panel, col));
                let part = Part::of(0..(shape.rows - panel * BLOCK).min(BLOCK));
                let pivot = pivot.get();
                let terms = CellTerms { x, y, count: col, from: pivot.first }.cut_for(digits, part);
                sums::subtract(digits, terms, part, cell);
                column::finish(tiles, Reduced { cell, terms }, &pivot, lanes.of_panel(panel), scratch);
            }
        }
    }
    lanes.give_back(weights);
}

impl TileFormat for DigitTiles {
    fn form(&self) -> &'static str {
        "digits"
    }

    fn primes(&self) -> usize {
        0
    }

    fn tile_words(&self, shape: TileShape) -> usize {
        self.layout(shape).words()
    }

    fn scratch_words(&self, tile_rows: usize) -> usize {
        let lanes = 2 * tile_rows.next_multiple_of(BLOCK);
        let integers = BLOCK * limbs_for(self.working_bits + 2);
        let pivot = column::value_limbs(self.digits) + space_words(self.working_bits);
        (lanes + pivot + column::scratch_words(self.digits)).max(integers + self.digits.cut_words())
    }

    fn diagonal_bytes(&self, cols: usize) -> u64 {
        cols as u64 * OwnPivot::bytes(self.digits.count)
    }

    fn table_bytes(&self) -> u64 {
        0
    }

    fn preferred_rows(&self) -> usize {
        TILE_ROWS
    }

    fn operand_words(&self, shape: TileShape) -> usize {
        self.tile_words(shape)
    }

    fn entry_limbs(&self) -> usize {
        (52 * self.digits.count).div_ceil(LIMB_BITS as usize)
    }

    fn entry_form(&self) -> EntryForm {
        EntryForm::Digits(self.digits.count)
    }
}

impl TileDevices for DigitTiles {}

impl TileEngine for DigitTiles {
    fn load(&self, source: &TileSource<'_>, words: &mut [u64], scratch: &mut [u64]) {
        // SAFETY: the kernels exist only where `probe` found the instructions; so for all below.
        unsafe { load(self.digits, source, 0..source.shape().panels(), words, scratch) }
    }

    fn load_operand(&self, source: &TileSource<'_>, words: &mut [u64], scratch: &mut [u64]) {
        // SAFETY: as above.
        unsafe { load_operand(self, source, 0..source.shape().panels(), words, scratch) }
    }

    fn load_integers(&self, shape: TileShape, integers: FinishedEntries<'_>, words: &mut [u64], scratch: &mut [u64]) {
        // SAFETY: as above.
        unsafe { load_integers(self, shape, integers, words, scratch) }
    }

    fn triangle(&self, _shape: TileShape, _words: &[u64], pivots: &[Integer]) -> Box<dyn DiagonalData> {
        Box::new(DigitDiagonal(pivots.iter().map(|pivot| OwnPivot::new(pivot, self.quotient_bits())).collect()))
    }

    fn factored(&self, shape: TileShape, words: &[u64]) -> Box<dyn DiagonalData> {
        let pivots = pivots_of(self, shape, words);
        Box::new(DigitDiagonal(pivots.iter().map(|pivot| OwnPivot::new(pivot, self.quotient_bits())).collect()))
    }

    fn update(
        &self,
        tiles: &mut [UpdateTile<'_>],
        y: &[&[u64]],
        depth: usize,
        _scratch: &mut [u64],
    ) -> crate::Result<()> {
        // SAFETY: as above.
        unsafe { update(self, tiles, y, depth) };
        Ok(())
    }

    fn factor(
        &self,
        shape: TileShape,
        words: &mut [u64],
        weights: &mut [RowWeight],
        scratch: &mut [u64],
    ) -> Result<Box<dyn DiagonalData>, FailedPivot> {
        let mut pivots = Vec::with_capacity(shape.cols);
        let keep = |pivot: &PivotDivisor<'_>| pivots.push(OwnPivot::from(pivot));
        // SAFETY: as above.
        unsafe { factor(self, shape, words, weights, scratch, keep) }?;
        Ok(Box::new(DigitDiagonal(pivots)))
    }

    fn factor_whole(
        &self,
        shape: TileShape,
        words: &mut [u64],
        weights: &mut [RowWeight],
        scratch: &mut [u64],
    ) -> Result<(), FailedPivot> {
        // SAFETY: as above.
        unsafe { factor(self, shape, words, weights, scratch, |_: &PivotDivisor<'_>| {}) }
    }

    fn solve(&self, tile: SolveTile<'_>, diagonal: DiagonalTile<'_>, scratch: &mut [u64]) {
        // SAFETY: as above.
        unsafe { solve(self, tile, diagonal, scratch) }
    }

    fn entries(&self, shape: TileShape, words: &[u64], at: PanelColumn, magnitudes: &mut [u64]) -> u8 {
        let cell = &words[self.layout(shape).cell(at.panel, at.col)..][..self.digits.cell_words()];
        // SAFETY: as above.
        unsafe { entries::limbs(self.digits, cell, magnitudes) }
    }

    fn entries_in_form(&self, shape: TileShape, words: &[u64], at: PanelColumn, magnitudes: &mut [u64]) -> u8 {
        let cell = &words[self.layout(shape).cell(at.panel, at.col)..][..self.digits.cell_words()];
        // SAFETY: as above.
        unsafe { entries::digits(self.digits, cell, magnitudes) }
    }
}

#[cfg(test)]
mod tests;
