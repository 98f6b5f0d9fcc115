//! Tile kernels of small orders on limbs, for any CPU: the integers themselves, without planes.
//!
//! There are no tables and no conversions, so that a few rows cost only their products and quotients. The rules are
//! those of all tile kernels, so the bits are the same. Layout of a tile: slots `[row][column]` of a sign and limbs.
//! During updates, a slot holds the entry minus the products so far, in two's complement and without a sign; afterwards
//! it holds the entry's sign and magnitude.

use crate::kernels::entries::{self, Widths};
use crate::kernels::limbs;
use crate::kernels::tiles::{
    DiagonalData, DiagonalTile, FailedPivot, FinishedEntries, NoData, PANEL_ROWS, PanelColumn, SolveTile, TileDevices,
    TileEngine, TileFormat, TileShape, TileSource, UpdateTile, fill_slots,
};
use crate::math::float::{limbs_for, round_shifted};
use crate::math::pivot::RowWeight;
use crate::matrix::EntryIndex;
use rug::Integer;
use rug::integer::Order;

/// Number of rows up to which these kernels are faster than planes.
pub const MOST_ROWS: usize = 56;

/// The kernels for one precision.
pub struct IntegerTiles {
    widths: Widths,
    working_bits: u32,
}

/// Scratch of one call, cut into its parts.
struct Space<'s> {
    rest: &'s mut [u64],
    product: &'s mut [u64],
    quotient: &'s mut [u64],
}

/// A pivot: whether it is negative, and its magnitude.
type SignedPivot<'a> = (bool, &'a [u64]);

impl IntegerTiles {
    /// Kernels for `working_bits` working bits.
    pub fn new(working_bits: u32) -> IntegerTiles {
        IntegerTiles { widths: Widths::new(working_bits), working_bits }
    }

    fn slot_words(&self) -> usize {
        1 + self.widths.rest
    }

    fn index(&self, shape: TileShape, row: usize, col: usize) -> usize {
        (row * shape.cols + col) * self.slot_words()
    }

    /// Cuts `scratch`, which is dirty.
    fn space<'s>(&self, scratch: &'s mut [u64]) -> Space<'s> {
        let (rest, scratch) = scratch.split_at_mut(self.widths.rest);
        let (product, scratch) = scratch.split_at_mut(2 * self.widths.entry);
        Space { rest, product, quotient: &mut scratch[..self.widths.quotient()] }
    }

    /// Takes the products of `count` neighbouring entries of two rows, which begin at `x` and `y`, off `rest`.
    fn reduce(&self, rest: &mut [u64], x: &[u64], y: &[u64], count: usize, product: &mut [u64]) {
        let (each, limbs) = (self.slot_words(), 1..=self.widths.entry);
        for (x, y) in x.chunks_exact(each).zip(y.chunks_exact(each)).take(count) {
            limbs::add_product(rest, &x[limbs.clone()], &y[limbs.clone()], x[0] == y[0], product);
        }
    }

    /// Sets a slot to an entry that fits.
    fn set(&self, slot: &mut [u64], negative: bool, magnitude: &[u64]) {
        let (sign, slot) = slot.split_at_mut(1);
        let count = magnitude.len().min(self.widths.entry);
        slot[..count].copy_from_slice(&magnitude[..count]);
        slot[count..].fill(0);
        sign[0] = u64::from(negative && magnitude.iter().any(|&limb| limb != 0));
    }

    /// Finishes the slot whose rest is in `space.rest`: its quotient by the pivot, 0 in a row that is rejected.
    fn divide(&self, slot: &mut [u64], (sign, pivot): SignedPivot<'_>, weight: &mut RowWeight, space: &mut Space<'_>) {
        if weight.is_rejected() {
            return slot.fill(0);
        }
        let negative = limbs::to_magnitude(space.rest) != sign;
        let quotient = entries::quotient(space.rest, pivot, space.quotient);
        weight.add_limbs(quotient, self.working_bits);
        let kept = if weight.is_rejected() { &[] } else { quotient };
        self.set(slot, negative, kept);
    }

    /// The slot of the entry `at`, less the products with row `y`, into `space.rest`.
    fn take_off<'w>(
        &self,
        shape: TileShape,
        words: &'w mut [u64],
        at: EntryIndex,
        y: Option<&[u64]>,
        space: &mut Space<'_>,
    ) -> (&'w [u64], &'w mut [u64]) {
        let EntryIndex { row, col } = at;
        let (before, rest) = words.split_at_mut(self.index(shape, row, col));
        let slot = &mut rest[..self.slot_words()];
        space.rest.copy_from_slice(&slot[1..]);
        let before = &*before;
        let x = &before[self.index(shape, row, 0)..];
        let y = y.unwrap_or_else(|| &before[self.index(shape, col, 0)..]);
        self.reduce(space.rest, x, y, col, space.product);
        (before, slot)
    }

    /// An entry of a finished tile.
    fn entry<'w>(&self, shape: TileShape, words: &'w [u64], at: EntryIndex) -> SignedPivot<'w> {
        let slot = &words[self.index(shape, at.row, at.col)..][..1 + self.widths.entry];
        (slot[0] == 1, &slot[1..])
    }
}

impl TileFormat for IntegerTiles {
    fn form(&self) -> &'static str {
        "integers"
    }

    fn primes(&self) -> usize {
        0
    }

    fn tile_words(&self, shape: TileShape) -> usize {
        self.index(shape, shape.rows, 0).next_multiple_of(8)
    }

    fn scratch_words(&self, _tile_rows: usize) -> usize {
        let Widths { entry, rest } = self.widths;
        (rest + 2 * entry + self.widths.quotient()).max(PANEL_ROWS * limbs_for(self.working_bits + 2))
    }

    fn diagonal_bytes(&self, _cols: usize) -> u64 {
        0
    }

    fn table_bytes(&self) -> u64 {
        0
    }

    fn preferred_rows(&self) -> usize {
        MOST_ROWS
    }

    fn operand_words(&self, shape: TileShape) -> usize {
        self.tile_words(shape)
    }

    fn entry_limbs(&self) -> usize {
        self.widths.entry
    }
}

impl TileDevices for IntegerTiles {}

impl TileEngine for IntegerTiles {
    fn load(&self, source: &TileSource<'_>, words: &mut [u64], _scratch: &mut [u64]) {
        let shape = source.shape();
        for (row, i) in source.rows.clone().enumerate() {
            for (col, j) in source.cols.clone().enumerate() {
                let slot = &mut words[self.index(shape, row, col)..][..self.slot_words()];
                let value = match source.offset() {
                    Some(offset) if row < col + offset => None,
                    _ => Some(source.matrix.get(i, j)).filter(|value| !value.head.is_zero()),
                };
                let Some(value) = value else {
                    slot.fill(0);
                    continue;
                };
                let shift = source.row_shifts[i] + source.col_shifts[j];
                slot[0] = 0;
                round_shifted(
                    value.limbs,
                    value.limbs.len() as i64 * 64 - value.head.exponent() - shift,
                    &mut slot[1..],
                );
                if value.head.is_negative() {
                    limbs::negate(&mut slot[1..]);
                }
            }
        }
    }

    fn load_operand(&self, source: &TileSource<'_>, words: &mut [u64], scratch: &mut [u64]) {
        self.load(source, words, scratch);
        for slot in words.chunks_exact_mut(self.slot_words()).take(source.rows.len() * source.cols.len()) {
            slot[0] = u64::from(limbs::to_magnitude(&mut slot[1..]));
        }
    }

    fn load_integers(
        &self,
        shape: TileShape,
        mut integers: FinishedEntries<'_>,
        words: &mut [u64],
        scratch: &mut [u64],
    ) {
        fill_slots(shape, &mut integers, words, |row, col| self.index(shape, row, col), scratch);
    }

    fn set_pivots(&self, shape: TileShape, words: &mut [u64], pivots: &[Integer]) {
        for (at, pivot) in pivots.iter().enumerate() {
            let slot = &mut words[self.index(shape, at, at)..][..self.slot_words()];
            self.set(slot, *pivot < 0, pivot.as_limbs());
        }
    }

    fn triangle(&self, _shape: TileShape, _words: &[u64], _pivots: &[Integer]) -> Box<dyn DiagonalData> {
        Box::new(NoData)
    }

    fn factored(&self, _shape: TileShape, _words: &[u64]) -> Box<dyn DiagonalData> {
        Box::new(NoData)
    }

    fn update(
        &self,
        tiles: &mut [UpdateTile<'_>],
        y: &[&[u64]],
        depth: usize,
        scratch: &mut [u64],
    ) -> crate::Result<()> {
        let Space { product, .. } = self.space(scratch);
        for UpdateTile { shape, words, x, .. } in tiles {
            for (row, col) in (0..shape.rows).flat_map(|row| (0..shape.cols).map(move |col| (row, col))) {
                if shape.diagonal && row < col {
                    continue;
                }
                let rest = &mut words[self.index(*shape, row, col)..][1..self.slot_words()];
                let of_row = |row: usize| row * depth * self.slot_words();
                for (x, y) in x.iter().zip(y) {
                    self.reduce(rest, &x[of_row(row)..], &y[of_row(col)..], depth, product);
                }
            }
        }
        Ok(())
    }

    fn factor(
        &self,
        shape: TileShape,
        words: &mut [u64],
        weights: &mut [RowWeight],
        scratch: &mut [u64],
    ) -> Result<Box<dyn DiagonalData>, FailedPivot> {
        let space = &mut self.space(scratch);
        for col in 0..shape.cols {
            if weights[col].is_rejected() {
                return Err(FailedPivot { column: col, value: None });
            }
            let diagonal = EntryIndex { row: col, col };
            let (_, slot) = self.take_off(shape, words, diagonal, None, space);
            let negative = limbs::to_magnitude(space.rest);
            match entries::root(space.rest, space.quotient).filter(|_| !negative) {
                Some(root) => self.set(slot, false, root),
                None => {
                    let value = -Integer::from_digits(space.rest, Order::Lsf);
                    return Err(FailedPivot { column: col, value: Some(value) });
                }
            }
            for (row, weight) in weights.iter_mut().enumerate().take(shape.rows).skip(col + 1) {
                let (before, slot) = self.take_off(shape, words, EntryIndex { row, col }, None, space);
                self.divide(slot, self.entry(shape, before, diagonal), weight, space);
            }
        }
        Ok(Box::new(NoData))
    }

    fn solve(&self, tile: SolveTile<'_>, diagonal: DiagonalTile<'_>, scratch: &mut [u64]) {
        let SolveTile { shape, words, weights } = tile;
        let above = TileShape { rows: shape.cols, cols: shape.cols, diagonal: true };
        let space = &mut self.space(scratch);
        for (row, weight) in weights.iter_mut().enumerate().take(shape.rows) {
            for col in 0..shape.cols {
                let y = &diagonal.words[self.index(above, col, 0)..];
                let (_, slot) = self.take_off(shape, words, EntryIndex { row, col }, Some(y), space);
                let pivot = self.entry(above, diagonal.words, EntryIndex { row: col, col });
                self.divide(slot, pivot, weight, space);
            }
        }
    }

    fn entries(&self, shape: TileShape, words: &[u64], at: PanelColumn, magnitudes: &mut [u64]) -> u8 {
        let PanelColumn { panel, col } = at;
        let mut signs = 0;
        for (lane, out) in magnitudes.chunks_exact_mut(self.widths.entry).enumerate() {
            let row = panel * PANEL_ROWS + lane;
            if row >= shape.rows || shape.diagonal && row < col {
                out.fill(0);
                continue;
            }
            let (negative, magnitude) = self.entry(shape, words, EntryIndex { row, col });
            out.copy_from_slice(magnitude);
            signs |= u8::from(negative) << lane;
        }
        signs
    }
}
