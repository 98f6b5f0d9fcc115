//! Where the parts of a tile lie.
//!
//! A header of [`HEADER_WORDS`] words, the first of which is set where sums of updates are in; a plane for each prime,
//! which holds blocks of such sums and, once the tile is finished, its operand panels; blocks of integers, with the
//! blocks of a panel of rows side by side. An operand that is never solved with ends before the integers.

use crate::kernels::tiles::{PANEL_ROWS, TileShape};
use crate::kernels::{PanelRows, PlaneEngine};
use crate::plan::{BLOCK, BlockGrid};
use std::ops::Range;

/// Words in front of the planes: a cache line.
pub const HEADER_WORDS: usize = 8;

/// Words of a cache line.
const LINE_WORDS: usize = 8;

/// The parts of a tile of one shape.
#[derive(Clone, Copy)]
pub struct PlaneTileLayout {
    /// The tile.
    pub shape: TileShape,
    /// Blocks of its sums.
    pub grid: BlockGrid,
    /// Words from one plane to the next.
    pub plane_words: usize,
    /// Words of an operand panel.
    pub panel_words: usize,
    /// Words of a block of integers.
    block_words: usize,
    primes: usize,
}

impl PlaneTileLayout {
    /// For planes of `engine` and blocks of integers of `block_words` words.
    pub fn new(engine: &dyn PlaneEngine, shape: TileShape, block_words: usize) -> PlaneTileLayout {
        let grid = match shape.diagonal {
            true => BlockGrid::triangle(shape.cols),
            false => BlockGrid::rectangle(shape.rows, shape.cols),
        };
        let panel_words = engine.panel_words(shape.cols);
        // An odd number of cache lines, so that the same place of all planes does not fall into one set of a cache.
        let lines = engine.plane_words(&grid).max(shape.panels() * panel_words).div_ceil(LINE_WORDS) | 1;
        let primes = engine.moduli().len();
        PlaneTileLayout { shape, grid, plane_words: lines * LINE_WORDS, panel_words, block_words, primes }
    }

    /// Words of all planes.
    pub fn residue_words(&self) -> usize {
        self.primes * self.plane_words
    }

    /// Words before the integers.
    pub fn operand_words(&self) -> usize {
        HEADER_WORDS + self.residue_words()
    }

    /// Words of a whole tile.
    pub fn words(&self) -> usize {
        self.operand_words() + (self.shape.panels() * self.row_words()).next_multiple_of(LINE_WORDS)
    }

    /// The operand panels of one prime.
    pub fn panels<'w>(&self, words: &'w [u64], prime: usize) -> &'w [u64] {
        &words[HEADER_WORDS + prime * self.plane_words..][..self.shape.panels() * self.panel_words]
    }

    /// The rows from `first` on of the panels of a plane, from panel `panel` on.
    pub fn rows<'w>(&self, plane: &'w [u64], panel: usize, first: usize) -> PanelRows<'w> {
        let words = &plane[panel * self.panel_words..self.shape.panels() * self.panel_words];
        PanelRows { words, of: self.shape.cols, first }
    }

    /// Words of the integers of a panel of rows.
    pub fn row_words(&self) -> usize {
        self.shape.cols.div_ceil(BLOCK) * self.block_words
    }

    /// Place of a block among all integers.
    pub fn block(&self, panel: usize, block: usize) -> Range<usize> {
        let first = panel * self.row_words() + block * self.block_words;
        first..first + self.block_words
    }

    /// Columns of a block.
    pub fn cols_of_block(&self, block: usize) -> Range<usize> {
        block * BLOCK..((block + 1) * BLOCK).min(self.shape.cols)
    }

    /// Rows of a panel.
    pub fn rows_of_panel(&self, panel: usize) -> Range<usize> {
        panel * PANEL_ROWS..((panel + 1) * PANEL_ROWS).min(self.shape.rows)
    }
}
