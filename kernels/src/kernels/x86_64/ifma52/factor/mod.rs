//! Tile kernels of Cholesky factorisations and triangular solves on 52-bit residues.
//!
//! Layout of a tile: residues `[prime][panel of 8 rows][column][8 rows]`, so that a tile is accumulator while updates
//! come in and operand of products once it is factored, in the same place; behind them the integers of the factor,
//! `[panel][column][digit][8 rows]`, a vector of signs after the digits. `update` holds the products, `column` finishes
//! one column, `divide` rounds its quotients, `weights` rejects rows, `load` takes the matrix in.

mod column;
pub(super) mod divide;
mod load;
mod triangle;
mod update;
pub(super) mod weights;

use super::tables::Ifma52Tables;
use crate::kernels::tiles::{
    DiagonalData, DiagonalTile, EntryForm, FailedPivot, FinishedEntries, PanelColumn, SolveTile, TileDevices,
    TileEngine, TileFormat, TileShape, TileSource, UpdateTile, pivots_of,
};
use crate::math::bound::{cholesky_modulus_bits, ifma52_prime_count};
use crate::math::family::IFMA52_BITS;
use crate::math::float::LIMB_BITS;
use crate::math::pivot::RowWeight;
use crate::plan::BLOCK;
use divide::QuotientBits;
use rug::Integer;
use std::arch::x86_64::*;
use std::ops::Range;
use weights::WeightRule;

/// Tables of one precision. Made only where the CPU has the instructions, so that a value proves them.
pub struct FactorTables {
    tables: Ifma52Tables,
    /// Digits of an entry of the factor, at most `2^working_bits (1 + 2^-30)` where its row is accepted.
    digits: usize,
    working_bits: u32,
    /// `M / p_i`.
    cofactors: Vec<Integer>,
    /// `M`.
    product: Integer,
    /// When a row is rejected.
    rule: WeightRule,
    /// Half-width of the window in which quotients are divided exactly.
    window: u64,
}

/// The positions of the words of a tile.
#[derive(Clone, Copy)]
struct FactorTileLayout {
    primes: usize,
    panels: usize,
    padded_cols: usize,
    /// Words of the 8 entries of one column of a panel.
    entry_words: usize,
}

impl FactorTileLayout {
    fn new(primes: usize, digits: usize, shape: TileShape) -> FactorTileLayout {
        let entry_words = (digits + 1) * BLOCK;
        FactorTileLayout { primes, panels: shape.panels(), padded_cols: shape.padded_cols(), entry_words }
    }

    /// An odd number of cache lines, so that the same place of all planes does not fall into one set of a cache.
    fn plane_words(&self) -> usize {
        ((self.panels * self.padded_cols) | 1) * BLOCK
    }

    fn residue_words(&self) -> usize {
        self.primes * self.plane_words()
    }

    fn words(&self) -> usize {
        self.residue_words() + self.panels * self.padded_cols * self.entry_words
    }

    /// The residues of one prime.
    fn plane<'a>(&self, prime: usize, words: &'a [u64]) -> &'a [u64] {
        &words[self.residue(prime, 0, 0)..][..self.plane_words()]
    }

    /// First word of the residues of a column of a panel.
    fn residue(&self, prime: usize, panel: usize, col: usize) -> usize {
        prime * self.plane_words() + (panel * self.padded_cols + col) * BLOCK
    }

    /// First word of the integers of a column of a panel.
    fn entry(&self, panel: usize, col: usize) -> usize {
        self.residue_words() + (panel * self.padded_cols + col) * self.entry_words
    }
}

impl FactorTables {
    /// Tables for `working_bits`. The caller has checked that the CPU has the instructions and that the primes suffice.
    pub(super) fn new(working_bits: u32) -> FactorTables {
        let count = ifma52_prime_count(cholesky_modulus_bits(working_bits));
        let tables = Ifma52Tables::new(count, 2 * working_bits + 2); // what is left of an entry may exceed the entry
        let product = tables.primes.iter().fold(Integer::from(1), |product, &prime| product * prime);
        let cofactors = tables.primes.iter().map(|&prime| Integer::from(&product / prime)).collect();
        let digits = (working_bits / IFMA52_BITS + 1) as usize;
        let rule = WeightRule::new(working_bits, digits);
        let window = divide::WINDOW;
        FactorTables { tables, digits, working_bits, cofactors, product, rule, window }
    }

    fn quotient_bits(&self) -> QuotientBits {
        QuotientBits { working: self.working_bits, raised: 0 }
    }

    fn layout(&self, shape: TileShape) -> FactorTileLayout {
        FactorTileLayout::new(self.tables.count(), self.digits, shape)
    }

    /// `sum of digit d times 2^(52 d)` modulo `P` neighbouring primes, as low and high sums; digit `d` of vector `v` at
    /// `(d V + v) 8`.
    ///
    /// # Safety
    /// `values` has `digits.end * V * 8` words.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    unsafe fn radix_sums<const V: usize, const P: usize>(
        &self,
        prime: usize,
        values: *const u64,
        digits: Range<usize>,
    ) -> [[(__m512i, __m512i); V]; P] {
        let stride = self.tables.operand_digits;
        assert!(digits.end <= stride && self.tables.radix_powers.len() >= (prime + P) * stride);
        let powers = &self.tables.radix_powers[prime * stride..];
        let mut sums = [[(_mm512_setzero_si512(), _mm512_setzero_si512()); V]; P];
        for digit in digits {
            // SAFETY: asserted for the powers, promised for the digits.
            unsafe {
                let rows: [__m512i; V] =
                    std::array::from_fn(|v| _mm512_loadu_si512(values.add((digit * V + v) * BLOCK).cast()));
                for (which, sums) in sums.iter_mut().enumerate() {
                    let power = _mm512_set1_epi64(*powers.as_ptr().add(which * stride + digit) as i64);
                    for (v, (lo, hi)) in sums.iter_mut().enumerate() {
                        *lo = _mm512_madd52lo_epu64(*lo, rows[v], power);
                        *hi = _mm512_madd52hi_epu64(*hi, rows[v], power);
                    }
                }
            }
        }
        sums
    }
}

impl TileFormat for FactorTables {
    fn form(&self) -> &'static str {
        "residues of 52 bits"
    }

    fn primes(&self) -> usize {
        self.tables.count()
    }

    fn tile_words(&self, shape: TileShape) -> usize {
        self.layout(shape).words()
    }

    /// The integers come with the last task.
    fn update_words(&self, shape: TileShape) -> usize {
        self.layout(shape).residue_words()
    }

    fn scratch_words(&self, tile_rows: usize) -> usize {
        let lanes = 2 * tile_rows.next_multiple_of(BLOCK);
        let column = column::scratch_words(self.tables.count(), self.digits);
        lanes + column.max(load::scratch_words(self))
    }

    fn diagonal_bytes(&self, cols: usize) -> u64 {
        triangle::FactoredDiagonal::bytes(self, cols)
    }

    fn table_bytes(&self) -> u64 {
        self.tables.bytes() + (self.cofactors.len() as u64 + 1) * (self.tables.count() as u64 * 8 + 40)
    }

    /// Large tiles spare folds and traffic; smaller ones keep the panels of a few rows, and the diagonal tile, in the
    /// second-level cache while their columns are finished.
    fn preferred_rows(&self) -> usize {
        (96 * 40 / self.tables.count()).clamp(64, 192)
    }

    fn operand_words(&self, shape: TileShape) -> usize {
        self.layout(shape).residue_words()
    }

    fn entry_limbs(&self) -> usize {
        (self.digits * IFMA52_BITS as usize).div_ceil(LIMB_BITS as usize)
    }

    fn entry_form(&self) -> EntryForm {
        EntryForm::Digits(self.digits)
    }
}

impl TileDevices for FactorTables {}

impl TileEngine for FactorTables {
    fn load(&self, source: &TileSource<'_>, words: &mut [u64], scratch: &mut [u64]) {
        // SAFETY: a `FactorTables` exists only where `probe` found the instructions.
        unsafe { load::load(self, source, words, scratch) }
    }

    fn load_operand(&self, source: &TileSource<'_>, words: &mut [u64], scratch: &mut [u64]) {
        self.load(source, words, scratch);
    }

    fn load_integers(&self, shape: TileShape, integers: FinishedEntries<'_>, words: &mut [u64], scratch: &mut [u64]) {
        // SAFETY: as above.
        unsafe { load::load_integers(self, shape, integers, words, scratch) }
    }

    fn triangle(&self, shape: TileShape, words: &[u64], pivots: &[Integer]) -> Box<dyn DiagonalData> {
        Box::new(triangle::given(self, shape, words, pivots))
    }

    fn factored(&self, shape: TileShape, words: &[u64]) -> Box<dyn DiagonalData> {
        Box::new(triangle::given(self, shape, words, &pivots_of(self, shape, words)))
    }

    fn update(
        &self,
        tiles: &mut [UpdateTile<'_>],
        y: &[&[u64]],
        depth: usize,
        _scratch: &mut [u64],
    ) -> crate::Result<()> {
        // SAFETY: as above.
        unsafe { update::update(&self.tables.primes, tiles, y, depth) };
        Ok(())
    }

    fn factor(
        &self,
        shape: TileShape,
        words: &mut [u64],
        weights: &mut [RowWeight],
        scratch: &mut [u64],
    ) -> Result<Box<dyn DiagonalData>, FailedPivot> {
        // SAFETY: as above.
        unsafe { triangle::factor(self, shape, words, weights, scratch) }
    }

    fn solve(&self, tile: SolveTile<'_>, diagonal: DiagonalTile<'_>, scratch: &mut [u64]) {
        // SAFETY: as above.
        unsafe { triangle::solve(self, tile, diagonal, scratch) }
    }

    fn entries(&self, shape: TileShape, words: &[u64], at: PanelColumn, magnitudes: &mut [u64]) -> u8 {
        let layout = self.layout(shape);
        let vectors = &words[layout.entry(at.panel, at.col)..][..layout.entry_words];
        // SAFETY: as above.
        unsafe { triangle::entries(self, vectors, magnitudes) }
    }

    fn entries_in_form(&self, shape: TileShape, words: &[u64], at: PanelColumn, magnitudes: &mut [u64]) -> u8 {
        let layout = self.layout(shape);
        let vectors = &words[layout.entry(at.panel, at.col)..][..layout.entry_words];
        let (digits, signs) = vectors.split_at(self.digits * BLOCK);
        magnitudes.copy_from_slice(digits);
        (0..BLOCK).fold(0, |all, lane| all | u8::from(signs[lane] != 0) << lane)
    }
}

#[cfg(test)]
mod tests;
