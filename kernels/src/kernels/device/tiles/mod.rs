//! Tile kernels whose updates run on devices: products of tiles there, factors and triangles on the CPU.
//!
//! A tile's home is the host, as integers; its updates belong to one device. Each device keeps operand planes of
//! finished tiles as a cache of them ([`crate::runtime::Residency`]), so that a tile crosses the bus once as long as
//! there is room for it. Every finished tile carries a number of its own, and copies of its words carry the same: the
//! cache identifies a tile by this number. All products are exact, so the bits are those of any other tile kernel.
//!
//! Layout of a tile: eight words, the first of them its number (0 while it is not finished); integers
//! `[row][column][sign, limbs]`; for a tile on the diagonal also the words of the CPU's tile kernel.

mod integers;
mod products;
mod setup;
mod slots;

use products::DeviceProducts;
use setup::Site;

use crate::device::{Allowance, Device};
use crate::error::Result;
use crate::kernels::EngineSpec;
use crate::kernels::device::{DeviceEngine, DeviceFamily};
use crate::kernels::tiles::{
    DiagonalData, DiagonalTile, FailedPivot, FinishedEntries, PANEL_ROWS, PanelColumn, SolveTile, TileDevices,
    TileEngine, TileFormat, TilePart, TileShape, TileSource, TileTraffic, UpdateTile, fill_slots,
};
use crate::math::bound::{TILE_SPARE_BITS, cholesky_modulus_bits};
use crate::math::float::{limbs_for, round_integer};
use crate::math::pivot::RowWeight;
use crate::matrix::Matrix;
use crate::runtime::Eviction;
use crate::store::raise;
use integers::{add_signed, round_into};
use products::{OperandPair, TileOperand};
use rug::Integer;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words in front of a tile's integers.
const HEADER_WORDS: usize = 8;

/// The next number of a finished tile; none is given twice while the process runs.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);

/// A device, its family of moduli, and the memory that may be used on it.
pub struct TileDevice {
    /// The device.
    pub device: Arc<dyn Device>,
    /// The family.
    pub family: DeviceFamily,
    /// The memory that may be used on it.
    pub allowance: Allowance,
}

/// Tile kernels over devices and the CPU's own.
pub struct DeviceTiles {
    /// The products on each device, at least one.
    products: Vec<DeviceProducts>,
    inner: Arc<dyn TileEngine>,
    working_bits: u32,
    /// Limbs of an integer of a tile, without its sign.
    limbs: usize,
}

impl DeviceTiles {
    /// Over `devices` and `inner`, the CPU's kernels for the same bits; each device may have a family of its own.
    ///
    /// # Errors
    /// [`crate::Error::Precision`]; [`crate::Error::DeviceLost`].
    pub fn new(
        devices: Vec<TileDevice>,
        working_bits: u32,
        redundant: bool,
        eviction: Eviction,
        inner: Arc<dyn TileEngine>,
    ) -> Result<DeviceTiles> {
        let spec =
            EngineSpec { operand_bits: working_bits, modulus_bits: cholesky_modulus_bits(working_bits), redundant };
        let products = |TileDevice { device, family, allowance }| {
            let engine = DeviceEngine::new(family, &spec)?;
            Ok(DeviceProducts::new(Site { device, engine, allowance, eviction }))
        };
        let products = devices.into_iter().map(products).collect::<Result<Vec<_>>>()?;
        Ok(DeviceTiles { products, inner, working_bits, limbs: limbs_for(2 * working_bits + TILE_SPARE_BITS) })
    }

    /// The most of something that any device takes.
    fn most<T: Ord>(&self, of: impl Fn(&DeviceProducts) -> T) -> T {
        self.products.iter().map(of).max().expect("there is a device")
    }

    /// Words of the integers of a tile.
    fn integer_words(&self, shape: TileShape) -> usize {
        shape.rows * shape.cols * (1 + self.limbs)
    }

    /// Where the words of the CPU's kernel begin in a tile on the diagonal.
    fn inner_start(&self, shape: TileShape) -> usize {
        (HEADER_WORDS + self.integer_words(shape)).next_multiple_of(8)
    }

    /// Words of a tile as the CPU's kernel has it, in addition to the kernel's own scratch.
    fn inner_words(&self, tile_rows: usize) -> usize {
        let square = TileShape { rows: tile_rows, cols: tile_rows, diagonal: false };
        let diagonal = TileShape { diagonal: true, ..square };
        self.inner.tile_words(square).max(self.inner.tile_words(diagonal)).next_multiple_of(8)
    }

    fn integers<'w>(&self, shape: TileShape, words: &'w [u64]) -> &'w [u64] {
        &words[HEADER_WORDS..][..self.integer_words(shape)]
    }

    fn integers_mut<'w>(&self, shape: TileShape, words: &'w mut [u64]) -> &'w mut [u64] {
        &mut words[HEADER_WORDS..][..self.integer_words(shape)]
    }

    /// Gives the CPU's kernel the integers of a tile.
    fn hand_over(&self, shape: TileShape, integers: &[u64], inner: &mut [u64], scratch: &mut [u64]) {
        let bits = self.limbs as u32 * 64;
        let mut matrix = Matrix::zeros(shape.rows, shape.cols, bits).unwrap_or_else(|refused| raise(refused));
        let width = matrix.limbs_per_element();
        let (heads, limbs) = matrix.parts_mut();
        for (at, slot) in integers.chunks_exact(1 + self.limbs).enumerate() {
            let place = at % shape.cols * shape.rows + at / shape.cols;
            let out = &mut limbs[place * width..][..width];
            heads[place] = round_integer(slot[0] == 1, &slot[1..], 0, bits, out).0;
        }
        let zeros = vec![0; shape.rows.max(shape.cols)];
        let part = if shape.diagonal { TilePart::Lower } else { TilePart::Whole };
        let (rows, cols) = (0..shape.rows, 0..shape.cols);
        let source = TileSource { matrix: matrix.view(), part, rows, cols, row_shifts: &zeros, col_shifts: &zeros };
        self.inner.load(&source, inner, scratch);
    }

    /// Takes the finished entries from the CPU's kernel, and numbers the tile.
    ///
    /// Zeros above the diagonal, and in rows that are rejected, where the kernel may have left anything: all sums of
    /// products then keep their bound.
    fn take_back(&self, shape: TileShape, inner: &[u64], words: &mut [u64], weights: &[RowWeight]) {
        let each = self.inner.entry_limbs();
        let mut magnitudes = vec![0; PANEL_ROWS * each];
        let slot_words = 1 + self.limbs;
        for panel in 0..shape.panels() {
            for col in 0..shape.cols {
                let signs = self.inner.entries(shape, inner, PanelColumn { panel, col }, &mut magnitudes);
                for lane in 0..PANEL_ROWS.min(shape.rows - panel * PANEL_ROWS) {
                    let row = panel * PANEL_ROWS + lane;
                    let slot = &mut words[HEADER_WORDS + (row * shape.cols + col) * slot_words..][..slot_words];
                    slot.fill(0);
                    if (!shape.diagonal || row >= col) && !weights[row].is_rejected() {
                        let kept = each.min(self.limbs);
                        slot[0] = u64::from(signs >> lane & 1);
                        slot[1..1 + kept].copy_from_slice(&magnitudes[lane * each..][..kept]);
                    }
                }
            }
        }
        words[0] = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
    }

    /// Writes the scaled entries of a source.
    fn write_source(&self, source: &TileSource<'_>, words: &mut [u64]) {
        let shape = source.shape();
        words[0] = 0;
        let integers = self.integers_mut(shape, words);
        integers.fill(0);
        for (row, i) in source.rows.clone().enumerate() {
            // The columns left of the part's end in this row.
            let end = source.offset().map_or(shape.cols, |offset| (row + 1).saturating_sub(offset).min(shape.cols));
            for (col, j) in source.cols.clone().enumerate().take(end) {
                let slot = &mut integers[(row * shape.cols + col) * (1 + self.limbs)..][..1 + self.limbs];
                round_into(source.matrix.get(i, j), source.row_shifts[i] + source.col_shifts[j], slot);
            }
        }
    }

    /// A finished tile of `rows` rows and `depth` columns.
    fn operand<'w>(&self, words: &'w [u64], rows: usize, depth: usize) -> TileOperand<'w> {
        assert!(words[0] > 0, "an operand is finished");
        TileOperand { number: words[0], rows, integers: &words[HEADER_WORDS..][..rows * depth * (1 + self.limbs)] }
    }

    fn update_tile(&self, tile: &mut UpdateTile<'_>, y: &[&[u64]], depth: usize, scratch: &mut [u64]) -> Result<()> {
        let shape = tile.shape;
        let pairs = tile
            .x
            .iter()
            .zip(y)
            .map(|(x, y)| OperandPair { x: self.operand(x, shape.rows, depth), y: self.operand(y, shape.cols, depth) });
        let pairs = pairs.collect::<Vec<_>>();
        let products = &self.products[tile.device];
        let sums = &mut scratch[..products.sum_words(shape.rows, shape.cols)];
        products.multiply(&pairs, depth, 1 + self.limbs, self.working_bits, sums)?;
        // The sums come column by column.
        let (each, slot_words) = (products.sum_limbs() + 1, 1 + self.limbs);
        let integers = &mut tile.words[HEADER_WORDS..];
        for (at, sum) in sums.chunks_exact(each).enumerate() {
            let (row, col) = (at % shape.rows, at / shape.rows);
            if !shape.diagonal || row >= col {
                let slot = &mut integers[(row * shape.cols + col) * slot_words..][..slot_words];
                add_signed(slot, sum[0] == 0, &sum[1..]);
            }
        }
        Ok(())
    }
}

impl TileFormat for DeviceTiles {
    fn form(&self) -> &'static str {
        "integers on a device"
    }

    fn primes(&self) -> usize {
        self.products[0].engine().moduli().len()
    }

    fn tile_words(&self, shape: TileShape) -> usize {
        let inner = if shape.diagonal { self.inner.tile_words(shape) } else { 0 };
        (self.inner_start(shape) + inner).next_multiple_of(8)
    }

    fn scratch_words(&self, tile_rows: usize) -> usize {
        let inner = self.inner_words(tile_rows) + self.inner.scratch_words(tile_rows);
        inner.max(self.most(|products| products.sum_words(tile_rows, tile_rows)))
    }

    fn diagonal_bytes(&self, cols: usize) -> u64 {
        self.inner.diagonal_bytes(cols)
    }

    fn table_bytes(&self) -> u64 {
        let tables = self.products.iter().map(|products| products.engine().table_bytes() as u64);
        self.inner.table_bytes() + tables.sum::<u64>()
    }

    fn call_bytes(&self, tile_rows: usize) -> u64 {
        let matrix = Matrix::bytes_for(tile_rows, tile_rows, self.limbs as u32 * 64);
        let pinned = self.products.iter().map(|products| products.pinned_bytes(tile_rows)).sum::<u64>();
        self.inner.call_bytes(tile_rows) + matrix + pinned
    }

    fn preferred_rows(&self) -> usize {
        self.most(|products| products.preferred_rows(self.inner.preferred_rows()))
    }

    fn operand_words(&self, shape: TileShape) -> usize {
        let inner = if shape.diagonal { self.inner.operand_words(shape) } else { 0 };
        (self.inner_start(shape) + inner).next_multiple_of(8)
    }

    fn entry_limbs(&self) -> usize {
        self.limbs
    }
}

impl TileDevices for DeviceTiles {
    fn end_operation(&self) {
        self.products.iter().for_each(DeviceProducts::end_operation);
    }

    fn device_count(&self) -> usize {
        self.products.len()
    }

    fn traffic(&self) -> Vec<TileTraffic> {
        self.products.iter().map(DeviceProducts::traffic).collect()
    }

    fn device_tile_bytes(&self, device: usize, tile_rows: usize) -> u64 {
        self.products[device].site().tile_bytes(tile_rows)
    }
}

impl TileEngine for DeviceTiles {
    fn updates_at_once(&self) -> bool {
        true
    }

    fn load(&self, source: &TileSource<'_>, words: &mut [u64], _scratch: &mut [u64]) {
        self.write_source(source, words);
    }

    fn load_operand(&self, source: &TileSource<'_>, words: &mut [u64], scratch: &mut [u64]) {
        self.write_source(source, words);
        let shape = source.shape();
        if shape.diagonal {
            let start = self.inner_start(shape);
            self.inner.load_operand(source, &mut words[start..], scratch);
        }
        words[0] = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
    }

    fn load_integers(
        &self,
        shape: TileShape,
        mut integers: FinishedEntries<'_>,
        words: &mut [u64],
        scratch: &mut [u64],
    ) {
        let place = |row: usize, col: usize| (row * shape.cols + col) * (1 + self.limbs);
        fill_slots(shape, &mut integers, self.integers_mut(shape, words), place, scratch);
        if shape.diagonal {
            let start = self.inner_start(shape);
            self.inner.load_integers(shape, integers, &mut words[start..], scratch);
        }
        words[0] = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
    }

    fn set_pivots(&self, shape: TileShape, words: &mut [u64], pivots: &[Integer]) {
        let start = self.inner_start(shape);
        self.inner.set_pivots(shape, &mut words[start..], pivots);
    }

    fn triangle(&self, shape: TileShape, words: &[u64], pivots: &[Integer]) -> Box<dyn DiagonalData> {
        self.inner.triangle(shape, &words[self.inner_start(shape)..], pivots)
    }

    fn factored(&self, shape: TileShape, words: &[u64]) -> Box<dyn DiagonalData> {
        self.inner.factored(shape, &words[self.inner_start(shape)..])
    }

    fn update(&self, tiles: &mut [UpdateTile<'_>], y: &[&[u64]], depth: usize, scratch: &mut [u64]) -> Result<()> {
        if y.is_empty() {
            return Ok(());
        }
        tiles.iter_mut().try_for_each(|tile| self.update_tile(tile, y, depth, scratch))
    }

    fn factor(
        &self,
        shape: TileShape,
        words: &mut [u64],
        weights: &mut [RowWeight],
        scratch: &mut [u64],
    ) -> std::result::Result<Box<dyn DiagonalData>, FailedPivot> {
        let (own, inner) = words.split_at_mut(self.inner_start(shape));
        self.hand_over(shape, self.integers(shape, own), inner, scratch);
        let ending = self.inner.factor(shape, inner, weights, scratch);
        self.take_back(shape, inner, own, weights); // the rows before a pivot that fails are in place
        ending
    }

    fn solve(&self, tile: SolveTile<'_>, diagonal: DiagonalTile<'_>, scratch: &mut [u64]) {
        let SolveTile { shape, words, weights } = tile;
        let (inner, scratch) = scratch.split_at_mut(self.inner.tile_words(shape).next_multiple_of(8));
        self.hand_over(shape, self.integers(shape, words), inner, scratch);
        let above = TileShape { rows: shape.cols, cols: shape.cols, diagonal: true };
        let triangle = DiagonalTile { words: &diagonal.words[self.inner_start(above)..], ..diagonal };
        let own = SolveTile { shape, words: inner, weights: &mut *weights };
        self.inner.solve(own, triangle, scratch);
        self.take_back(shape, inner, words, weights);
    }

    fn entries(&self, shape: TileShape, words: &[u64], at: PanelColumn, magnitudes: &mut [u64]) -> u8 {
        let PanelColumn { panel, col } = at;
        let mut signs = 0;
        magnitudes.fill(0);
        for (lane, out) in magnitudes.chunks_exact_mut(self.limbs).enumerate() {
            let row = panel * PANEL_ROWS + lane;
            if row < shape.rows {
                let slot = &words[HEADER_WORDS + (row * shape.cols + col) * (1 + self.limbs)..][..1 + self.limbs];
                out.copy_from_slice(&slot[1..]);
                signs |= (slot[0] as u8) << lane;
            }
        }
        signs
    }
}
