//! Finished integers to residues: operand panels, or the rows of a block of columns in one.

use super::PlaneTiles;
use super::layout::{HEADER_WORDS, PlaneTileLayout};
use super::rules::BlockRules;
use crate::kernels::tiles::{FinishedEntries, PANEL_ROWS, TileShape, TileSource};
use crate::kernels::{PanelSource, PlaneEngine};
use crate::math::float::Head;
use crate::matrix::MatrixView;
use crate::plan::BLOCK;
use std::ops::Range;

/// Integers of the rows of a panel in some columns, as the plane kernel takes them in: 8 of a column side by side.
pub struct Publisher<'s> {
    entry: usize,
    heads: &'s mut [u64],
    limbs: &'s mut [u64],
}

/// Exponents of two that the integers are scaled by: none.
const SHIFTS: [i64; PANEL_ROWS] = [0; PANEL_ROWS];

impl<'s> Publisher<'s> {
    /// Words of scratch for tiles of this shape, the plane kernel's own not counted.
    pub fn words(tiles: &PlaneTiles<impl BlockRules>, shape: TileShape) -> usize {
        let blocks = shape.cols.div_ceil(BLOCK) * tiles.rules.block_words();
        // The limbs that are passed on are as many as an entry takes, or one more.
        let magnitudes = PANEL_ROWS * (2 + tiles.rules.entry_limbs());
        Publisher::words_for(tiles, shape.cols) + tiles.rules.scratch_words() + blocks.max(magnitudes)
    }

    /// Words of scratch for `cols` columns.
    pub fn words_for(tiles: &PlaneTiles<impl BlockRules>, cols: usize) -> usize {
        PANEL_ROWS * cols * (1 + tiles.rules.entry_limbs())
    }

    /// For `cols` columns, cut from the front of `scratch`; returns the rest of it, too.
    pub fn new(
        tiles: &PlaneTiles<impl BlockRules>,
        cols: usize,
        scratch: &'s mut [u64],
    ) -> (Publisher<'s>, &'s mut [u64]) {
        let (heads, scratch) = scratch.split_at_mut(PANEL_ROWS * cols);
        let entry = tiles.rules.entry_limbs();
        let (limbs, scratch) = scratch.split_at_mut(PANEL_ROWS * cols * entry);
        (Publisher { entry, heads, limbs }, scratch)
    }

    /// Sets a column to the magnitudes that `fill` writes, with the signs that it returns.
    #[inline]
    pub fn set(&mut self, col: usize, fill: impl FnOnce(&mut [u64]) -> u8) {
        let limbs = &mut self.limbs[col * PANEL_ROWS * self.entry..][..PANEL_ROWS * self.entry];
        let signs = fill(limbs);
        let heads = &mut self.heads[col * PANEL_ROWS..][..PANEL_ROWS];
        for ((lane, head), limbs) in heads.iter_mut().enumerate().zip(limbs.chunks_exact(self.entry)) {
            // An integer is a significand with the point behind it; its leading zeros do not matter.
            let is_zero = limbs.iter().fold(0, |all, &limb| all | limb) == 0;
            *head = if is_zero { 0 } else { Head::new(signs >> lane & 1 == 1, 64 * self.entry as i64).0 };
        }
    }

    /// Sets the first columns to the entries of finished blocks.
    pub fn set_blocks(&mut self, rules: &impl BlockRules, blocks: &[u64], cols: usize) {
        for col in 0..cols {
            let block = &blocks[col / BLOCK * rules.block_words()..][..rules.block_words()];
            self.set(col, |magnitudes| rules.get(block, col % BLOCK, magnitudes));
        }
    }

    /// Writes the residues of the entries of the panel's rows in the columns that were set to all `planes`.
    pub fn write(
        &self,
        tiles: &PlaneTiles<impl BlockRules>,
        of_panel: &OfPanel<'_>,
        planes: &mut [u64],
        scratch: &mut [u64],
    ) {
        let OfPanel { layout, panel, cols } = of_panel;
        let (engine, lanes) = (&*tiles.engine, layout.rows_of_panel(*panel).len());
        let (bits, entries) = (64 * self.entry as u32, PANEL_ROWS * cols.len());
        let (heads, limbs) = (&self.heads[..entries], &self.limbs[..entries * self.entry]);
        let view = MatrixView::from_parts((heads, limbs), (PANEL_ROWS, cols.len()), PANEL_ROWS, bits);
        let view = view.expect("lengths that fit each other").transposed();
        let source = PanelSource { view, columns: 0..lanes, rows: 0..cols.len(), shifts: &SHIFTS };
        engine.to_residues(0..tiles.primes(), &source, &mut of_panel.targets(engine, planes), scratch);
    }
}

/// Columns `cols` of a tile in one of its operand panels.
pub struct OfPanel<'a> {
    /// The tile.
    pub layout: &'a PlaneTileLayout,
    /// The panel.
    pub panel: usize,
    /// The columns.
    pub cols: Range<usize>,
}

impl OfPanel<'_> {
    /// Their words in all planes: the runs of the first prime first.
    pub fn targets<'p>(&self, engine: &dyn PlaneEngine, planes: &'p mut [u64]) -> Vec<&'p mut [u64]> {
        let PlaneTileLayout { plane_words, panel_words, .. } = *self.layout;
        let runs = engine.row_runs(self.layout.shape.cols, self.cols.clone());
        let mut targets = Vec::with_capacity(planes.len() / plane_words * runs.count);
        for plane in planes.chunks_exact_mut(plane_words) {
            let mut rest = &mut plane[self.panel * panel_words..][..panel_words][runs.first..];
            for run in 0..runs.count {
                let (target, others) = std::mem::take(&mut rest).split_at_mut(runs.words);
                targets.push(target);
                let skipped = if run + 1 < runs.count { runs.stride - runs.words } else { 0 };
                rest = &mut others[skipped..];
            }
        }
        targets
    }
}

/// An operand with the entries of `source`.
pub fn load_operand(
    tiles: &PlaneTiles<impl BlockRules>,
    source: &TileSource<'_>,
    words: &mut [u64],
    scratch: &mut [u64],
) {
    let (shape, rules) = (source.shape(), &tiles.rules);
    let layout = tiles.layout(shape);
    let (planes, integers) = words.split_at_mut(layout.operand_words());
    let (own, scratch) = scratch.split_at_mut(layout.row_words());
    let (of_rules, scratch) = scratch.split_at_mut(rules.scratch_words());
    let (mut publisher, scratch) = Publisher::new(tiles, shape.cols, scratch);
    for panel in 0..shape.panels() {
        let blocks = match shape.diagonal {
            true => &mut integers[panel * layout.row_words()..][..layout.row_words()],
            false => &mut *own,
        };
        rules.load(source, panel, true, blocks, of_rules);
        publisher.set_blocks(rules, blocks, shape.cols);
        let of_panel = OfPanel { layout: &layout, panel, cols: 0..shape.cols };
        publisher.write(tiles, &of_panel, &mut planes[HEADER_WORDS..], scratch);
    }
}

/// An operand with the integers of `source`.
pub fn load_integers(
    tiles: &PlaneTiles<impl BlockRules>,
    shape: TileShape,
    mut integers: FinishedEntries<'_>,
    words: &mut [u64],
    scratch: &mut [u64],
) {
    let (layout, rules) = (tiles.layout(shape), &tiles.rules);
    let limbs = integers.limbs;
    let (planes, blocks) = words.split_at_mut(layout.operand_words());
    let (magnitudes, scratch) = scratch.split_at_mut(PANEL_ROWS * limbs);
    let (of_rules, scratch) = scratch.split_at_mut(rules.scratch_words());
    let (mut publisher, scratch) = Publisher::new(tiles, shape.cols, scratch);
    if shape.diagonal {
        blocks.fill(0);
    }
    for panel in 0..shape.panels() {
        for col in 0..shape.cols {
            if col >= shape.cols_of(panel) {
                publisher.set(col, |out| {
                    out.fill(0);
                    0
                });
                continue;
            }
            let signs = integers.read(panel, col, magnitudes);
            publisher.set(col, |out| {
                out.fill(0);
                let kept = limbs.min(rules.entry_limbs());
                for (out, magnitude) in out.chunks_exact_mut(rules.entry_limbs()).zip(magnitudes.chunks_exact(limbs)) {
                    out[..kept].copy_from_slice(&magnitude[..kept]);
                }
                signs
            });
            if shape.diagonal {
                let block = &mut blocks[layout.block(panel, col / BLOCK)];
                rules.set(block, col % BLOCK, signs, magnitudes, of_rules);
            }
        }
        let of_panel = OfPanel { layout: &layout, panel, cols: 0..shape.cols };
        publisher.write(tiles, &of_panel, &mut planes[HEADER_WORDS..], scratch);
    }
}
