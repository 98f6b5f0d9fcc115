//! Products over some rows of several operands, and integers that stay in lanes as digits: the demands of tiles on
//! engines beyond whole planes.

use crate::kernels::{BlockResidues, PlaneEngine, PlaneFormat, PlaneProduct};
use crate::plan::BlockGrid;
use std::ops::Range;

/// Some rows of the panels of an operand.
#[derive(Clone, Copy)]
pub struct PanelRows<'a> {
    /// The panels, from the first selected one on.
    pub words: &'a [u64],
    /// Rows of a panel.
    pub of: usize,
    /// The first selected row.
    pub first: usize,
}

impl<'a> PanelRows<'a> {
    /// The first `count` panels as panels of `depth` rows, in `out` where they are others.
    fn gather(
        &self,
        engine: &(impl PlaneFormat + ?Sized),
        count: usize,
        depth: usize,
        out: &'a mut [u64],
    ) -> &'a [u64] {
        let (panel_words, own_words) = (engine.panel_words(self.of), engine.panel_words(depth));
        if depth == self.of || own_words == 0 {
            return &self.words[..count * own_words];
        }
        let to = engine.row_runs(depth, 0..depth);
        let from = engine.row_runs(self.of, self.first..self.first + depth);
        for (panel, out) in self.words.chunks_exact(panel_words).zip(out.chunks_exact_mut(own_words)).take(count) {
            for run in 0..from.count {
                let words = &panel[from.first + run * from.stride..][..from.words];
                out[to.first + run * to.stride..][..to.words].copy_from_slice(words);
            }
        }
        &out[..count * own_words]
    }
}

/// Operands of the product after this one, with the same number of rows: an engine may prefetch them.
#[derive(Clone, Copy, Default)]
pub struct NextRows<'a> {
    /// The operands for its rows.
    pub x: &'a [PanelRows<'a>],
    /// The operands for its columns, if they differ from `x`.
    pub y: &'a [PanelRows<'a>],
}

/// A sum of products of some rows of several pairs of operands, of one pair at least.
#[derive(Clone)]
pub struct RowsProduct<'a> {
    /// Panels for the rows of C.
    pub x: &'a [PanelRows<'a>],
    /// Panels for the columns of C, one for each of `x`; the same panels if C is a part of a triangle.
    pub y: &'a [PanelRows<'a>],
    /// Selected rows of each operand.
    pub depth: usize,
    /// The operands of the next product, which may be prefetched; they do not affect the result.
    pub next: NextRows<'a>,
    /// As in [`crate::kernels::PlaneProduct`].
    pub grid: BlockGrid,
    /// As in [`crate::kernels::PlaneProduct`].
    pub blocks: Range<usize>,
    /// As in [`crate::kernels::PlaneProduct`].
    pub accumulate: bool,
    /// Block rows of C that are computed; the other blocks stay as they are. All rows, unless the engine
    /// [reads rows in place](PlaneEngine::reads_rows_in_place).
    pub window: Range<usize>,
}

/// The default of [`PlaneEngine::multiply_rows`]: each pair of operands as panels of its own.
pub(super) fn multiply_gathered(
    engine: &(impl PlaneEngine + ?Sized),
    prime: usize,
    product: &RowsProduct<'_>,
    c: &mut [u64],
    scratch: &mut [u64],
) {
    let RowsProduct { x, y, depth, grid, blocks, accumulate, .. } = product;
    assert_eq!(product.window, 0..grid.rows);
    let panel_words = engine.panel_words(*depth);
    let (left, scratch) = scratch.split_at_mut(grid.rows * panel_words);
    let (right, scratch) = scratch.split_at_mut(grid.cols * panel_words);
    for (number, (x, y)) in x.iter().zip(*y).enumerate() {
        let left = x.gather(engine, grid.rows, *depth, left);
        let is_square = std::ptr::eq(x.words, y.words) && grid.rows == grid.cols;
        let right = if is_square { left } else { y.gather(engine, grid.cols, *depth, right) };
        let accumulate = *accumulate || number > 0;
        let product = PlaneProduct { x: left, y: right, rows: *depth, grid: *grid, blocks: blocks.clone(), accumulate };
        engine.multiply(prime, &product, c, scratch);
    }
}

/// Words of scratch for [`multiply_gathered`].
pub(super) fn gathered_scratch_words(engine: &(impl PlaneFormat + ?Sized), rows: usize, grid: &BlockGrid) -> usize {
    (grid.rows + grid.cols) * engine.panel_words(rows) + engine.scratch_words(rows, grid)
}

/// Columns whose digits are interleaved.
pub const DIGIT_COLUMNS: usize = 4;

/// Conversions between residues and integers as digits of 52 bits, eight rows in the lanes of a vector.
pub trait DigitConversions: Send + Sync {
    /// Digits of a sum.
    fn sum_digits(&self) -> usize;
    /// Digits of an operand.
    fn operand_digits(&self) -> usize;
    /// Words of scratch for [`DigitConversions::digits_of_sums`].
    fn sum_words(&self) -> usize;
    /// The integers of half a block, modulo `2^52` to the number of digits: digits below `2^52` as
    /// `[digit][4 columns][8 rows]`, and for each column the rows whose integer is below 0.
    fn digits_of_sums<'s>(
        &self,
        residues: &BlockResidues<'_>,
        half: usize,
        scratch: &'s mut [u64],
    ) -> (&'s [u64], [u8; DIGIT_COLUMNS]);
    /// Residues of up to 8 columns of finished entries, a plane for each prime with 8 residues for each column.
    ///
    /// `digits` are magnitudes, `[half][1 + digit][4 columns][8 rows]`, the first of which are skipped; `signs` are
    /// those of each column.
    fn residues_of_digits(&self, digits: &[u64], signs: &[u8], planes: &mut [&mut [u64]]);
}
