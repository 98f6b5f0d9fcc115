//! Tile kernels for any plane kernel: products are computed on planes, and the last step of every entry on integers.
//!
//! Updates are summed as residues, in blocks of the plane kernel; nothing is reconstructed until a tile is finished.
//! Then its columns are finished in blocks of 8. Products with the columns before, in parts of the tile and parts of
//! these, are planes too (`finish`). The remaining work inside a block is done on integers, by `rules` that depend on
//! the CPU: one entry after the other on any CPU (`limbs`), eight rows at once if the CPU multiplies 52-bit digits.
//! Finished entries are converted to residues again, for later columns and later tiles (`publish`). Layout of a tile:
//! `layout`.

mod finish;
mod layout;
mod limbs;
mod publish;
pub mod rules;

#[cfg(test)]
mod tests;

use crate::kernels::tiles::{
    DiagonalData, DiagonalTile, FailedPivot, FinishedEntries, PANEL_ROWS, PanelColumn, SolveTile, TileDevices,
    TileEngine, TileFormat, TileShape, TileSource, UpdateTile, pivots_of,
};
use crate::kernels::{IntegerBlock, NextRows, PanelRows, PlaneEngine, RowsProduct};
use crate::math::pivot::RowWeight;
use crate::plan::{BLOCK, BLOCK_WORDS, BlockGrid};
use finish::Finish;
use layout::{HEADER_WORDS, PlaneTileLayout};
use limbs::LimbRules;
use publish::Publisher;
use rug::Integer;
use rules::{BlockRules, PivotedTriangle};
use std::sync::Arc;

/// Tile kernels over `engine`, which holds operands of `working_bits` and products of
/// [`crate::math::bound::cholesky_modulus_bits`], with the fastest rules of this CPU.
pub fn over(engine: Arc<dyn PlaneEngine>, working_bits: u32) -> Arc<dyn TileEngine> {
    #[cfg(target_arch = "x86_64")]
    if let Some(rules) = crate::kernels::x86_64::ifma52::digit_tiles::blocks::LaneRules::new(working_bits) {
        return Arc::new(PlaneTiles::new(engine, rules));
    }
    Arc::new(PlaneTiles::new(engine, LimbRules::new(working_bits)))
}

/// Tile kernels over one plane engine.
pub struct PlaneTiles<R> {
    engine: Arc<dyn PlaneEngine>,
    rules: R,
}

/// The pivots of a diagonal tile.
struct Pivots<P>(Vec<P>);

impl<P: Send + Sync + 'static> DiagonalData for Pivots<P> {
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl<R: BlockRules> PlaneTiles<R> {
    fn new(engine: Arc<dyn PlaneEngine>, rules: R) -> PlaneTiles<R> {
        PlaneTiles { engine, rules }
    }

    fn layout(&self, shape: TileShape) -> PlaneTileLayout {
        PlaneTileLayout::new(&*self.engine, shape, self.rules.block_words())
    }

    fn primes(&self) -> usize {
        self.engine.moduli().len()
    }

    /// Words of the plane kernel's scratch for tiles of `tile_rows` rows.
    fn engine_words(&self, tile_rows: usize) -> usize {
        let grids = [BlockGrid::rectangle(tile_rows, tile_rows), BlockGrid::triangle(tile_rows)];
        grids.map(|grid| self.engine.rows_scratch_words(tile_rows, &grid)).into_iter().max().expect("two grids")
    }

    /// The operands of a tile of this shape modulo one prime, none for a prime that is not there.
    fn operands<'w>(
        &self,
        shape: TileShape,
        x: &[&'w [u64]],
        y: &[&'w [u64]],
        prime: usize,
        depth: usize,
    ) -> [Vec<PanelRows<'w>>; 2] {
        if prime >= self.primes() {
            return [Vec::new(), Vec::new()];
        }
        let left = self.layout(TileShape { cols: depth, diagonal: false, ..shape });
        let right = self.layout(TileShape { rows: shape.cols, cols: depth, diagonal: false });
        let rows = |layout: PlaneTileLayout, words: &[&'w [u64]]| {
            words.iter().map(|words| layout.rows(layout.panels(words, prime), 0, 0)).collect::<Vec<_>>()
        };
        let x = rows(left, x);
        let y = if shape.diagonal { x.clone() } else { rows(right, y) };
        [x, y]
    }

    /// The sums of tile number `at` modulo one prime.
    fn update_plane(
        &self,
        tiles: &mut [UpdateTile<'_>],
        at: usize,
        y: &[&[u64]],
        depth: usize,
        prime: usize,
        scratch: &mut [u64],
    ) {
        let operands = |prime: usize, at: usize| self.operands(tiles[at].shape, &tiles[at].x, y, prime, depth);
        let [x, y] = operands(prime, at);
        let next = if at + 1 < tiles.len() { (prime, at + 1) } else { (prime + 1, 0) };
        let [next_x, next_y] = operands(next.0, next.1);
        // Tiles of one prime share the operands of columns.
        let next = NextRows { x: &next_x, y: if next.0 == prime { &[] } else { &next_y } };
        let UpdateTile { shape, words, .. } = &mut tiles[at];
        let layout = self.layout(*shape);
        let (header, planes) = words.split_at_mut(HEADER_WORDS);
        let c = &mut planes[prime * layout.plane_words..][..self.engine.plane_words(&layout.grid)];
        let (blocks, accumulate) = (0..layout.grid.len(), header[0] == 1);
        let (grid, window) = (layout.grid, 0..layout.grid.rows);
        let product = RowsProduct { x: &x, y: &y, depth, next, grid, blocks, accumulate, window };
        self.engine.multiply_rows(prime, &product, c, scratch);
    }
}

impl<R: BlockRules> TileFormat for PlaneTiles<R> {
    fn form(&self) -> &'static str {
        R::FORM
    }

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
        cols as u64 * self.rules.pivot_bytes() + 64
    }

    fn table_bytes(&self) -> u64 {
        self.engine.table_bytes()
    }

    fn call_bytes(&self, tile_rows: usize) -> u64 {
        let integers = (BLOCK_WORDS * self.engine.magnitude_limbs() * 8 + size_of::<IntegerBlock>()) as u64;
        // Slices of the planes in their runs.
        let slices = (self.primes() * BLOCK * size_of::<&mut [u64]>()) as u64;
        let grids = [BlockGrid::rectangle(tile_rows, tile_rows), BlockGrid::triangle(tile_rows)];
        let engine = grids.map(|grid| self.engine.call_bytes(tile_rows, &grid));
        integers + slices + self.rules.call_bytes() + engine.into_iter().max().expect("two grids")
    }

    fn preferred_rows(&self) -> usize {
        128
    }

    fn operand_words(&self, shape: TileShape) -> usize {
        let layout = self.layout(shape);
        if shape.diagonal { layout.words() } else { layout.operand_words() }
    }

    fn entry_limbs(&self) -> usize {
        self.rules.entry_limbs()
    }
}

impl<R: BlockRules> TileDevices for PlaneTiles<R> {}

impl<R: BlockRules> TileEngine for PlaneTiles<R> {
    fn load(&self, source: &TileSource<'_>, words: &mut [u64], scratch: &mut [u64]) {
        let layout = self.layout(source.shape());
        let (residues, blocks) = words[..layout.words()].split_at_mut(layout.operand_words());
        residues[0] = 0;
        for (panel, blocks) in blocks.chunks_exact_mut(layout.row_words().max(1)).enumerate() {
            self.rules.load(source, panel, false, blocks, scratch);
        }
    }

    fn load_operand(&self, source: &TileSource<'_>, words: &mut [u64], scratch: &mut [u64]) {
        publish::load_operand(self, source, words, scratch);
    }

    fn load_integers(&self, shape: TileShape, integers: FinishedEntries<'_>, words: &mut [u64], scratch: &mut [u64]) {
        publish::load_integers(self, shape, integers, words, scratch);
    }

    fn triangle(&self, _shape: TileShape, _words: &[u64], pivots: &[Integer]) -> Box<dyn DiagonalData> {
        Box::new(Pivots(pivots.iter().map(|pivot| self.rules.pivot(pivot)).collect()))
    }

    fn factored(&self, shape: TileShape, words: &[u64]) -> Box<dyn DiagonalData> {
        Box::new(Pivots(pivots_of(self, shape, words).iter().map(|pivot| self.rules.pivot(pivot)).collect()))
    }

    fn update(
        &self,
        tiles: &mut [UpdateTile<'_>],
        y: &[&[u64]],
        depth: usize,
        scratch: &mut [u64],
    ) -> crate::Result<()> {
        if y.is_empty() {
            return Ok(());
        }
        // Prime by prime: data that the tiles share are read from memory once.
        for prime in 0..self.primes() {
            (0..tiles.len()).for_each(|at| self.update_plane(tiles, at, y, depth, prime, scratch));
        }
        tiles.iter_mut().for_each(|tile| tile.words[0] = 1);
        Ok(())
    }

    fn factor(
        &self,
        shape: TileShape,
        words: &mut [u64],
        weights: &mut [RowWeight],
        scratch: &mut [u64],
    ) -> Result<Box<dyn DiagonalData>, FailedPivot> {
        let pivots = Finish::new(self, SolveTile { shape, words, weights }, None, scratch).run()?;
        Ok(Box::new(Pivots(pivots)))
    }

    fn solve(&self, tile: SolveTile<'_>, diagonal: DiagonalTile<'_>, scratch: &mut [u64]) {
        let Pivots::<R::Pivot>(pivots) = diagonal.data.as_any().downcast_ref().expect("data of these kernels");
        let above = PivotedTriangle { words: diagonal.words, pivots };
        Finish::new(self, tile, Some(above), scratch).run().expect("no pivots of its own");
    }

    fn entries(&self, shape: TileShape, words: &[u64], at: PanelColumn, magnitudes: &mut [u64]) -> u8 {
        let PanelColumn { panel, col } = at;
        let layout = self.layout(shape);
        if col >= shape.cols_of(panel) {
            magnitudes.fill(0);
            return 0;
        }
        let blocks = &words[layout.operand_words()..];
        let signs = self.rules.get(&blocks[layout.block(panel, col / BLOCK)], col % BLOCK, magnitudes);
        // Where a pivot has failed the columns from there on are not finished, above the diagonal neither.
        let above = if shape.diagonal { col.saturating_sub(panel * PANEL_ROWS) } else { 0 };
        magnitudes[..above * self.entry_limbs()].fill(0);
        signs & u8::MAX << above
    }
}
