//! The words in which a finished tile travels: the exact integers of the factor and the weights of its rows.
//!
//! Limbs take a half to a third of the words of the residues. Their number depends only on the tiling and the working
//! bits. Layout: for each panel of 8 rows and each column, from left to right as far as the panel's rows reach (all
//! columns below the diagonal), a group of 8 entries; then, for a tile below the diagonal, the words of the rows'
//! weights after it.
//! A group: the whole limbs of entry after entry, then the top bits of all 8, a word for each 8 of these bits with a
//! byte for each entry. The highest bit of an entry is its sign.

use crate::error::Result;
use crate::kernels::rounding::rounding_words;
use crate::kernels::tiles::{DiagonalData, EntryForm, FinishedEntries, PANEL_ROWS, PanelColumn, TileShape};
use crate::math::float::{LIMB_BITS, limbs_for};
use crate::math::pivot::RowWeight;
use crate::ops::factor::tile_work::{ColumnOfTile, TileWork};
use crate::tile::TileId;
use rug::Integer;
use rug::integer::Order;

/// Words of a weight.
const WEIGHT_WORDS: usize = 2;

/// Bits beyond the working bits: one since an entry of the factor may pass `2^working_bits` a little, one for its sign.
const SPARE_BITS: u32 = 2;

/// The encoding of 8 entries.
#[derive(Clone, Copy)]
struct EntryGroup {
    /// Bits of an entry with its sign.
    bits: u32,
}

impl EntryGroup {
    fn new(working_bits: u32) -> EntryGroup {
        EntryGroup { bits: working_bits + SPARE_BITS }
    }

    /// Limbs of an entry of which all bits count.
    fn whole_limbs(self) -> usize {
        (self.bits / LIMB_BITS) as usize
    }

    /// Bytes of the bits above the whole limbs.
    fn top_bytes(self) -> usize {
        (self.bits % LIMB_BITS).div_ceil(8) as usize
    }

    /// Limbs of an entry.
    fn limbs(self) -> usize {
        limbs_for(self.bits)
    }

    /// Words of 8 entries.
    fn words(self) -> usize {
        PANEL_ROWS * self.whole_limbs() + self.top_bytes()
    }

    /// Limb and bit of the sign.
    fn sign(self) -> (usize, u32) {
        (((self.bits - 1) / LIMB_BITS) as usize, (self.bits - 1) % LIMB_BITS)
    }

    /// Writes 8 entries, given by their signs and magnitudes, all below `2^(bits - 1)`.
    fn write(self, signs: u8, magnitudes: &[u64], out: &mut [u64]) {
        let each = magnitudes.len() / PANEL_ROWS;
        let (whole, tops) = out.split_at_mut(PANEL_ROWS * self.whole_limbs());
        let (count, (sign_limb, sign_bit)) = (self.whole_limbs(), self.sign());
        tops.fill(0);
        for (lane, magnitude) in magnitudes.chunks_exact(each).enumerate() {
            let sign = u64::from(signs >> lane & 1) << sign_bit;
            let limbs = &mut whole[lane * count..][..count];
            let given = count.min(each);
            limbs[..given].copy_from_slice(&magnitude[..given]);
            limbs[given..].fill(0);
            let mut top = magnitude.get(count).copied().unwrap_or(0);
            match limbs.get_mut(sign_limb) {
                Some(limb) => *limb |= sign,
                None => top |= sign,
            }
            for (byte, word) in tops.iter_mut().enumerate() {
                *word |= (top >> (8 * byte) & 0xff) << (8 * lane);
            }
        }
    }

    /// Reads 8 entries of a tile: magnitudes of as many limbs as `bits` take each, and a sign bit each.
    #[inline]
    fn read(self, shape: TileShape, payload: &[u64], at: PanelColumn, magnitudes: &mut [u64]) -> u8 {
        let words = &payload[group_index(shape, at.panel, at.col) * self.words()..][..self.words()];
        let (whole, tops) = words.split_at(PANEL_ROWS * self.whole_limbs());
        let (count, (sign_limb, sign_bit)) = (self.whole_limbs(), self.sign());
        let mut signs = 0;
        for (lane, limbs) in magnitudes.chunks_exact_mut(self.limbs()).enumerate() {
            limbs[..count].copy_from_slice(&whole[lane * count..][..count]);
            if let Some(top) = limbs.get_mut(count) {
                let bytes = tops.iter().enumerate();
                *top = bytes.fold(0, |top, (byte, word)| top | (word >> (8 * lane) & 0xff) << (8 * byte));
            }
            signs |= ((limbs[sign_limb] >> sign_bit & 1) as u8) << lane;
            limbs[sign_limb] &= !(1 << sign_bit);
        }
        signs
    }
}

impl TileWork<'_> {
    /// Words in which `tile` travels once it is finished.
    pub fn payload_words(&self, tile: TileId) -> usize {
        self.entry_words(self.shape(tile)) + self.weight_words(tile)
    }

    /// Number of words of the row weights after a finished tile.
    pub fn weight_words(&self, tile: TileId) -> usize {
        let shape = self.shape(tile);
        if shape.diagonal { 0 } else { shape.rows * WEIGHT_WORDS }
    }

    fn entry_words(&self, shape: TileShape) -> usize {
        groups(shape).count() * EntryGroup::new(self.working_bits).words()
    }

    /// Writes the words in which a finished tile travels; `weights` are the weights of its rows after it, which a tile
    /// on the diagonal does not use.
    ///
    /// `payload` has [`TileWork::payload_words`], `scratch` as many words as any task on a tile.
    pub fn pack(&self, tile: TileId, words: &[u64], weights: &[RowWeight], payload: &mut [u64], scratch: &mut [u64]) {
        let (shape, group) = (self.shape(tile), EntryGroup::new(self.working_bits));
        let (entries, rest) = payload.split_at_mut(self.entry_words(shape));
        let magnitudes = &mut scratch[..PANEL_ROWS * self.engine.entry_limbs()];
        for (at, out) in groups(shape).zip(entries.chunks_exact_mut(group.words())) {
            let signs = self.engine.entries(shape, words, at, magnitudes);
            group.write(signs, magnitudes, out);
        }
        self.pack_weights(tile, weights, rest);
    }

    /// Writes these weights into the first [`TileWork::weight_words`] words.
    pub fn pack_weights(&self, tile: TileId, weights: &[RowWeight], words: &mut [u64]) {
        for (out, weight) in words[..self.weight_words(tile)].chunks_exact_mut(WEIGHT_WORDS).zip(weights) {
            out.copy_from_slice(&weight.to_words());
        }
    }

    /// The weights that the next tile in the row of `tile` needs; none for a tile on the diagonal.
    pub fn unpack_weights(&self, tile: TileId, payload: &[u64]) -> Vec<RowWeight> {
        self.read_weights(tile, &payload[self.entry_words(self.shape(tile))..])
    }

    /// Reads the weights that [`TileWork::pack_weights`] has written.
    pub fn read_weights(&self, tile: TileId, words: &[u64]) -> Vec<RowWeight> {
        let words = words[..self.weight_words(tile)].chunks_exact(WEIGHT_WORDS);
        words.map(|pair| RowWeight::from_words([pair[0], pair[1]])).collect()
    }

    /// Words of an unpacked tile: fewer than those of a tile being factored.
    pub fn operand_words(&self, tile: TileId) -> usize {
        self.engine.operand_words(self.shape(tile))
    }

    /// Makes a received tile an operand: of updates if it lies below the diagonal, of solves if on it; returns the data
    /// that solves need in addition to the words.
    ///
    /// `words` has the length [`TileWork::operand_words`]; its old contents are ignored.
    pub fn unpack(
        &self,
        tile: TileId,
        payload: &[u64],
        words: &mut [u64],
        scratch: &mut [u64],
    ) -> Option<Box<dyn DiagonalData>> {
        let (shape, group) = (self.shape(tile), EntryGroup::new(self.working_bits));
        let mut read = |at: PanelColumn, magnitudes: &mut [u64]| group.read(shape, payload, at, magnitudes);
        let integers = FinishedEntries { limbs: group.limbs(), source: &mut read };
        self.engine.load_integers(shape, integers, words, scratch);
        shape.diagonal.then(|| {
            let pivots = self.pivots(shape, payload);
            self.engine.set_pivots(shape, words, &pivots);
            self.engine.triangle(shape, words, &pivots)
        })
    }

    /// Rounds a received tile into heads and limbs of its shape, column by column; entries above the diagonal stay
    /// unchanged.
    ///
    /// # Errors
    /// As [`TileWork::store`].
    pub fn round_payload(
        &self,
        tile: TileId,
        payload: &[u64],
        heads: &mut [u64],
        limbs: &mut [u64],
        precision_bits: u32,
    ) -> Result<()> {
        let (shape, group) = (self.shape(tile), EntryGroup::new(self.working_bits));
        let mut entries = |at: PanelColumn, magnitudes: &mut [u64]| group.read(shape, payload, at, magnitudes);
        let form = EntryForm::Limbs(group.limbs());
        let mut scratch = vec![0; rounding_words(form, precision_bits)];
        let column_limbs = shape.rows * limbs_for(precision_bits);
        let columns = heads.chunks_exact_mut(shape.rows).zip(limbs.chunks_exact_mut(column_limbs));
        for (col, (heads, limbs)) in columns.enumerate().take(shape.cols) {
            let column = ColumnOfTile { col, heads, limbs, precision_bits };
            self.round_column(tile, form, &mut entries, column, &mut scratch)?;
        }
        Ok(())
    }

    /// The diagonal of a payload.
    fn pivots(&self, shape: TileShape, payload: &[u64]) -> Vec<Integer> {
        let group = EntryGroup::new(self.working_bits);
        let mut magnitudes = vec![0; PANEL_ROWS * group.limbs()];
        let pivot = |col: usize| {
            group.read(shape, payload, PanelColumn { panel: col / PANEL_ROWS, col }, &mut magnitudes);
            Integer::from_digits(&magnitudes[col % PANEL_ROWS * group.limbs()..][..group.limbs()], Order::Lsf)
        };
        (0..shape.cols).map(pivot).collect()
    }
}

/// Panel and column of each group of a payload.
fn groups(shape: TileShape) -> impl Iterator<Item = PanelColumn> {
    let columns = move |panel| (0..shape.cols_of(panel)).map(move |col| PanelColumn { panel, col });
    (0..shape.panels()).flat_map(columns)
}

/// The number of the group of a panel and a column.
fn group_index(shape: TileShape, panel: usize, col: usize) -> usize {
    // All panels above the last are whole.
    let above = if shape.diagonal { PANEL_ROWS * panel * (panel + 1) / 2 } else { panel * shape.cols };
    above + col
}
