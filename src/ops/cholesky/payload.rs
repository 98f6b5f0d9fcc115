//! The words in which a finished tile travels: the exact integers of the factor and the weights of its rows.
//!
//! Limbs take a half to a third of the words of the residues. How many there are follows from the tiling and the
//! working bits alone. Layout: for each panel of 8 rows and each column, from left to right as far as the panel's rows
//! reach (all columns below the diagonal), a group of 8 entries; then, for a tile below the diagonal, the words of the
//! rows' weights after it.
//! A group: the whole limbs of entry after entry, then the top bits of all 8, a word for each 8 of these bits with a
//! byte for each entry. The highest bit of an entry is its sign.

use crate::error::Result;
use crate::kernels::tiles::{DiagonalData, PANEL_ROWS, TileShape, TileSource};
use crate::math::float::{LIMB_BITS, limbs_for, round_integer};
use crate::math::pivot::RowWeight;
use crate::matrix::Matrix;
use crate::ops::cholesky::tile_work::{TileWork, part};
use crate::runtime::TileId;
use rug::Integer;
use rug::integer::Order;
use std::ops::Range;

/// Words of a weight.
const WEIGHT_WORDS: usize = 2;

/// Bits beyond the working bits: one since an entry of the factor may pass `2^working_bits` a little, one for its sign.
const SPARE_BITS: u32 = 2;

/// How 8 entries are written.
#[derive(Clone, Copy)]
struct Group {
    /// Bits of an entry with its sign.
    bits: u32,
}

impl Group {
    fn new(working_bits: u32) -> Group {
        Group { bits: working_bits + SPARE_BITS }
    }

    /// Limbs of an entry of which all bits count.
    fn whole_limbs(self) -> usize {
        (self.bits / LIMB_BITS) as usize
    }

    /// Bytes of the bits above the whole limbs.
    fn top_bytes(self) -> usize {
        (self.bits % LIMB_BITS).div_ceil(8) as usize
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
            debug_assert!(magnitude[self.bits.div_ceil(LIMB_BITS).min(each as u32) as usize..].iter().all(|&l| l == 0));
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

    /// Reads the magnitude of entry `lane` into `limbs`, which hold `bits`; returns whether it is negative.
    fn read(self, group: &[u64], lane: usize, limbs: &mut [u64]) -> bool {
        let (count, (sign_limb, sign_bit)) = (self.whole_limbs(), self.sign());
        limbs[..count].copy_from_slice(&group[lane * count..][..count]);
        if let Some(top) = limbs.get_mut(count) {
            let bytes = group[PANEL_ROWS * count..].iter().enumerate();
            *top = bytes.fold(0, |top, (byte, word)| top | (word >> (8 * lane) & 0xff) << (8 * byte));
        }
        let negative = limbs[sign_limb] >> sign_bit & 1 == 1;
        limbs[sign_limb] &= !(1 << sign_bit);
        negative
    }
}

/// Memory of [`TileWork::unpack`], one for each that unpacks at a time.
pub(crate) struct UnpackSpace {
    integers: Matrix,
    shifts: Vec<i64>,
}

impl TileWork<'_> {
    /// Words in which `tile` travels once it is finished.
    pub fn payload_words(&self, tile: TileId) -> usize {
        self.entry_words(self.shape(tile)) + self.weight_words(tile)
    }

    fn weight_words(&self, tile: TileId) -> usize {
        let shape = self.shape(tile);
        if shape.diagonal { 0 } else { shape.rows * WEIGHT_WORDS }
    }

    fn entry_words(&self, shape: TileShape) -> usize {
        groups(shape).count() * Group::new(self.working_bits).words()
    }

    /// Writes the words in which a finished tile travels; `weights` are those of its rows after it, which a tile on the
    /// diagonal has no use for.
    ///
    /// `payload` has [`TileWork::payload_words`], `scratch` as many words as any task on a tile.
    pub fn pack(
        &self,
        tile: TileId,
        (words, weights): (&[u64], &[RowWeight]),
        payload: &mut [u64],
        scratch: &mut [u64],
    ) {
        let (shape, group) = (self.shape(tile), Group::new(self.working_bits));
        let (entries, rest) = payload.split_at_mut(self.entry_words(shape));
        let magnitudes = &mut scratch[..PANEL_ROWS * self.engine.entry_limbs()];
        for (at, out) in groups(shape).zip(entries.chunks_exact_mut(group.words())) {
            let signs = self.engine.entries(shape, words, at, magnitudes);
            group.write(signs, magnitudes, out);
        }
        for (out, weight) in rest[..self.weight_words(tile)].chunks_exact_mut(WEIGHT_WORDS).zip(weights) {
            out.copy_from_slice(&weight.to_words());
        }
    }

    /// The weights that the next tile in the row of `tile` needs; none for a tile on the diagonal.
    pub fn unpack_weights(&self, tile: TileId, payload: &[u64]) -> Vec<RowWeight> {
        let words = &payload[self.entry_words(self.shape(tile))..][..self.weight_words(tile)];
        words.chunks_exact(WEIGHT_WORDS).map(|pair| RowWeight::from_words([pair[0], pair[1]])).collect()
    }

    /// Words of an unpacked tile: fewer than those of a tile that is worked on.
    pub fn operand_words(&self, tile: TileId) -> usize {
        self.engine.operand_words(self.shape(tile))
    }

    /// Bytes of an [`UnpackSpace`] for the tiles of this factorisation.
    pub fn unpack_bytes(&self) -> u64 {
        let rows = self.tiling.tile_rows;
        Matrix::bytes_for(rows, rows, self.working_bits + SPARE_BITS) + 8 * rows as u64
    }

    /// Memory for [`TileWork::unpack`].
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub fn unpack_space(&self) -> Result<UnpackSpace> {
        let rows = self.tiling.tile_rows;
        Ok(UnpackSpace { integers: Matrix::zeros(rows, rows, self.working_bits + SPARE_BITS)?, shifts: vec![0; rows] })
    }

    /// Makes a tile that has travelled an operand: of updates below the diagonal, of solves on it, with what these need
    /// beside the words.
    ///
    /// `words` has [`TileWork::operand_words`] and is dirty before.
    ///
    /// # Errors
    /// Those of [`TileWork::unpack_space`], for a space of another factorisation.
    pub fn unpack(
        &self,
        (tile, payload): (TileId, &[u64]),
        words: &mut [u64],
        space: &mut UnpackSpace,
        scratch: &mut [u64],
    ) -> Result<Option<Box<dyn DiagonalData>>> {
        let (shape, bits) = (self.shape(tile), self.working_bits + SPARE_BITS);
        let UnpackSpace { integers, shifts } = space;
        integers.reshape(shape.rows, shape.cols, bits)?;
        self.read_entries(shape, payload, integers);
        shifts.resize(shape.rows.max(shape.cols), 0);
        let source = TileSource {
            matrix: integers.view(),
            part: part(shape),
            rows: 0..shape.rows,
            cols: 0..shape.cols,
            row_shifts: shifts,
            col_shifts: shifts,
        };
        self.engine.load_operand(&source, words, scratch);
        Ok(shape.diagonal.then(|| self.engine.triangle(shape, words, &self.pivots(shape, payload))))
    }

    /// The integers of a payload as numbers; what lies above the diagonal is not written.
    fn read_entries(&self, shape: TileShape, payload: &[u64], integers: &mut Matrix) {
        let (group, bits, width) =
            (Group::new(self.working_bits), integers.precision_bits(), integers.limbs_per_element());
        let mut magnitude = vec![0; limbs_for(bits)];
        let (heads, limbs) = integers.parts_mut();
        for ((panel, col), words) in groups(shape).zip(payload.chunks_exact(group.words())) {
            let first = if shape.diagonal { col } else { 0 };
            for row in rows_of_panel(shape, panel).filter(|&row| row >= first) {
                let negative = group.read(words, row % PANEL_ROWS, &mut magnitude);
                let at = col * shape.rows + row;
                heads[at] = round_integer(negative, &magnitude, 0, bits, &mut limbs[at * width..][..width]).0;
            }
        }
    }

    /// The diagonal of a payload.
    fn pivots(&self, shape: TileShape, payload: &[u64]) -> Vec<Integer> {
        let group = Group::new(self.working_bits);
        let mut magnitude = vec![0; limbs_for(group.bits)];
        let on_diagonal = groups(shape).zip(payload.chunks_exact(group.words())).filter_map(|((panel, col), words)| {
            rows_of_panel(shape, panel).contains(&col).then(|| {
                group.read(words, col % PANEL_ROWS, &mut magnitude);
                Integer::from_digits(&magnitude, Order::Lsf)
            })
        });
        on_diagonal.collect()
    }
}

/// Panel and column of each group of a payload.
fn groups(shape: TileShape) -> impl Iterator<Item = (usize, usize)> {
    (0..shape.panels()).flat_map(move |panel| {
        let end = if shape.diagonal { rows_of_panel(shape, panel).end } else { shape.cols };
        (0..end).map(move |col| (panel, col))
    })
}

fn rows_of_panel(shape: TileShape, panel: usize) -> Range<usize> {
    panel * PANEL_ROWS..((panel + 1) * PANEL_ROWS).min(shape.rows)
}
