//! Tile kernels for any plane kernel: products on planes, the last step of every entry on integers.
//!
//! Updates are summed as residues, in blocks of the plane kernel; nothing is reconstructed until a tile is finished.
//! Then its columns are finished in blocks of 8: products with the columns before, in parts of the tile and parts of
//! these, are planes too (`finish`); what is left inside a block are integers (`rows`). Finished entries are residues
//! again, for later columns and later tiles (`publish`). Layout of a tile: `layout`.

mod finish;
mod layout;
mod publish;
mod rows;

#[cfg(test)]
mod tests;

use crate::kernels::entries::Widths;
use crate::kernels::limbs;
use crate::kernels::tiles::{
    DiagonalData, EntrySource, FailedPivot, PANEL_ROWS, SolveTile, TileEngine, TileShape, TileSource, UpdateTile,
};
use crate::kernels::{IntegerBlock, PlaneEngine, PlaneProduct};
use crate::math::bound::TILE_SPARE_BITS;
use crate::math::float::{limbs_for, round_shifted};
use crate::math::pivot::RowWeight;
use crate::plan::{BLOCK, BLOCK_WORDS, BlockGrid};
use finish::Finish;
use layout::{HEADER_WORDS, Layout};
use publish::Publisher;
use rug::Integer;
use std::sync::Arc;

/// Tile kernels over one plane engine.
pub struct LimbTiles {
    engine: Arc<dyn PlaneEngine>,
    working_bits: u32,
    widths: Widths,
}

/// A pivot, ready for quotients.
type Reciprocal = crate::kernels::entries::Reciprocal<Box<[u64]>>;

/// The pivots of a diagonal tile.
struct Pivots(Vec<Reciprocal>);

impl DiagonalData for Pivots {
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl LimbTiles {
    /// Over `engine`, which holds operands of `working_bits` and products of
    /// [`crate::math::bound::cholesky_modulus_bits`].
    pub fn new(engine: Arc<dyn PlaneEngine>, working_bits: u32) -> LimbTiles {
        LimbTiles { engine, working_bits, widths: Widths::new(working_bits) }
    }

    /// Words of an integer: what is left of an entry in two's complement or, once it is finished, a sign and limbs.
    fn slot_words(&self) -> usize {
        limbs_for(2 * self.working_bits + TILE_SPARE_BITS + 1).max(1 + self.widths.entry)
    }

    fn layout(&self, shape: TileShape) -> Layout {
        Layout::new(&*self.engine, shape, self.slot_words())
    }

    fn primes(&self) -> usize {
        self.engine.moduli().len()
    }

    /// Writes the scaled entries of a source as integers in two's complement, `place(i, j)` words into `out`; all else
    /// there becomes 0.
    fn write_source(&self, source: &TileSource<'_>, out: &mut [u64], place: impl Fn(usize, usize) -> usize) {
        out.fill(0);
        for (col, j) in source.cols.clone().enumerate() {
            for (row, i) in source.rows.clone().enumerate().skip(source.offset().map_or(0, |offset| col + offset)) {
                let value = source.matrix.get(i, j);
                if value.head.is_zero() {
                    continue;
                }
                let slot = &mut out[place(row, col)..][..self.slot_words()];
                let shift = value.head.exponent() + source.row_shifts[i] + source.col_shifts[j];
                round_shifted(value.limbs, value.limbs.len() as i64 * 64 - shift, slot);
                if value.head.is_negative() {
                    limbs::negate(slot);
                }
            }
        }
    }

    /// A sign and limbs in place of an integer in two's complement.
    fn to_signed(&self, slot: &mut [u64]) {
        let negative = limbs::to_magnitude(slot);
        slot.copy_within(..self.widths.entry, 1);
        slot[0] = u64::from(negative);
    }

    /// Words of the plane kernel's scratch for tiles of so many rows.
    fn engine_words(&self, tile_rows: usize) -> usize {
        let grids = [BlockGrid::rectangle(tile_rows, tile_rows), BlockGrid::triangle(tile_rows)];
        grids.map(|grid| self.engine.scratch_words(tile_rows, &grid)).into_iter().max().expect("two grids")
    }

    fn update_tile(&self, tile: &mut UpdateTile<'_>, y: &[&[u64]], depth: usize, scratch: &mut [u64]) {
        let UpdateTile { shape, words, x, .. } = tile;
        let layout = self.layout(*shape);
        let left = self.layout(TileShape { cols: depth, diagonal: false, ..*shape });
        let right = self.layout(TileShape { rows: shape.cols, cols: depth, diagonal: false });
        let (grid, sum_words) = (layout.grid, self.engine.plane_words(&layout.grid));
        let (header, planes) = words.split_at_mut(HEADER_WORDS);
        for (prime, c) in planes[..layout.residue_words()].chunks_exact_mut(layout.plane_words).enumerate() {
            let mut accumulate = header[0] == 1;
            for (x, y) in x.iter().zip(y) {
                let (x, y) = (left.panels(x, prime), right.panels(y, prime));
                let product = PlaneProduct { x, y, rows: depth, grid, blocks: 0..grid.len(), accumulate };
                self.engine.multiply(prime, &product, &mut c[..sum_words], scratch);
                accumulate = true;
            }
        }
        header[0] = 1;
    }
}

impl TileEngine for LimbTiles {
    fn primes(&self) -> usize {
        self.primes()
    }

    fn tile_words(&self, shape: TileShape) -> usize {
        self.layout(shape).words()
    }

    fn scratch_words(&self, tile_rows: usize) -> usize {
        let whole = TileShape { rows: tile_rows, cols: tile_rows, diagonal: false };
        self.engine_words(tile_rows) + Finish::words(self, whole).max(Publisher::words(self, whole))
    }

    fn diagonal_bytes(&self, cols: usize) -> u64 {
        cols as u64 * Reciprocal::bytes(self.working_bits) + 64
    }

    fn table_bytes(&self) -> u64 {
        self.engine.table_bytes()
    }

    fn call_bytes(&self, tile_rows: usize) -> u64 {
        let integers = (BLOCK_WORDS * self.engine.magnitude_limbs() * 8 + size_of::<IntegerBlock>()) as u64;
        // Slices of the planes in their runs, and the integers of GMP that a pivot takes.
        let slices = (self.primes() * BLOCK * size_of::<&mut [u64]>()) as u64;
        let pivot = 8 * (40 + 8 * self.slot_words() as u64);
        let grids = [BlockGrid::rectangle(tile_rows, tile_rows), BlockGrid::triangle(tile_rows)];
        let engine = grids.map(|grid| self.engine.call_bytes(tile_rows, &grid));
        integers + slices + pivot + engine.into_iter().max().expect("two grids")
    }

    fn preferred_rows(&self) -> usize {
        128
    }

    fn load(&self, source: &TileSource<'_>, words: &mut [u64], _scratch: &mut [u64]) {
        let layout = self.layout(source.shape());
        let (residues, slots) = words[..layout.words()].split_at_mut(layout.operand_words());
        residues[0] = 0;
        self.write_source(source, slots, |row, col| layout.slot(row, col));
    }

    fn operand_words(&self, shape: TileShape) -> usize {
        let layout = self.layout(shape);
        if shape.diagonal { layout.words() } else { layout.operand_words() }
    }

    fn load_operand(&self, source: &TileSource<'_>, words: &mut [u64], scratch: &mut [u64]) {
        publish::load_operand(self, source, words, scratch);
    }

    fn load_integers(
        &self,
        shape: TileShape,
        integers: (usize, &mut EntrySource<'_>),
        words: &mut [u64],
        scratch: &mut [u64],
    ) {
        publish::load_integers(self, shape, integers, words, scratch);
    }

    fn triangle(&self, shape: TileShape, words: &mut [u64], pivots: &[Integer]) -> Box<dyn DiagonalData> {
        let layout = self.layout(shape);
        let slots = &mut words[layout.operand_words()..];
        let reciprocal = |(at, pivot): (usize, &Integer)| {
            let (sign, limbs) = slots[layout.slot(at, at)..][..self.slot_words()].split_at_mut(1);
            sign[0] = u64::from(*pivot < 0);
            limbs.fill(0);
            limbs[..pivot.as_limbs().len()].copy_from_slice(pivot.as_limbs());
            Reciprocal::boxed(pivot.as_limbs(), self.working_bits)
        };
        Box::new(Pivots(pivots.iter().enumerate().map(reciprocal).collect()))
    }

    fn update(
        &self,
        tiles: &mut [UpdateTile<'_>],
        y: &[&[u64]],
        depth: usize,
        scratch: &mut [u64],
    ) -> crate::Result<()> {
        if !y.is_empty() {
            tiles.iter_mut().for_each(|tile| self.update_tile(tile, y, depth, scratch));
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
        let pivots = Finish::new(self, (shape, words), weights, None, scratch).run()?;
        Ok(Box::new(Pivots(pivots)))
    }

    fn solve(&self, tile: SolveTile<'_>, diagonal: (&[u64], &dyn DiagonalData), scratch: &mut [u64]) {
        let SolveTile { shape, words, weights } = tile;
        let Pivots(pivots) = diagonal.1.as_any().downcast_ref().expect("data of these kernels");
        let above = Some((diagonal.0, &pivots[..]));
        Finish::new(self, (shape, words), weights, above, scratch).run().expect("no pivots of its own");
    }

    fn entries(&self, shape: TileShape, words: &[u64], at: (usize, usize), magnitudes: &mut [u64]) -> u8 {
        let (panel, col) = at;
        let layout = self.layout(shape);
        let slots = &words[layout.operand_words()..];
        let mut signs = 0;
        for (lane, out) in magnitudes.chunks_exact_mut(self.widths.entry).enumerate() {
            let row = panel * PANEL_ROWS + lane;
            if row >= shape.rows || shape.diagonal && row < col {
                out.fill(0);
                continue;
            }
            let slot = &slots[layout.slot(row, col)..][..1 + self.widths.entry];
            out.copy_from_slice(&slot[1..]);
            signs |= (slot[0] as u8) << lane;
        }
        signs
    }

    fn entry_limbs(&self) -> usize {
        self.widths.entry
    }
}
