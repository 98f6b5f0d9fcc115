//! The columns of a tile, all of whose updates are in: POTRF of a tile on the diagonal, TRSM of one below it.
//!
//! Columns are finished from left to right, in blocks of 8. A range of blocks is cut into a few parts; before a part is
//! begun, the products with the parts before it are added to the sums of updates, plane by plane, so that a block finds
//! all sums that are to be subtracted from its entries except the products inside it. Finished residues lie in scratch,
//! since sums of later columns are where they belong.

use super::PlaneTiles;
use super::layout::{HEADER_WORDS, PlaneTileLayout};
use super::publish::{OfPanel, Publisher};
use super::rules::{BlockRules, BlockSums, PivotedTriangle};
use crate::kernels::tiles::{FailedPivot, SolveTile, TileShape};
use crate::kernels::{BlockResidues, IntegerBlock, NextRows, PlaneEngine, RowsProduct};
use crate::math::pivot::RowWeight;
use crate::plan::{BLOCK, BlockGrid};
use std::ops::Range;

/// The factored tile above the one that is finished.
struct Above<'a, P> {
    layout: PlaneTileLayout,
    triangle: PivotedTriangle<'a, P>,
}

/// A tile that is finished.
pub struct Finish<'a, R: BlockRules> {
    tiles: &'a PlaneTiles<R>,
    layout: PlaneTileLayout,
    above: Option<Above<'a, R::Pivot>>,
    /// Whether updates have come.
    has_sums: bool,
    /// Sums, at the end operand panels.
    sums: &'a mut [u64],
    /// Blocks of integers.
    blocks: &'a mut [u64],
    weights: &'a mut [RowWeight],
    /// Of the tile's own columns, where it lies on the diagonal.
    pivots: Vec<R::Pivot>,
    /// Sums of a block as integers.
    integers: IntegerBlock,
    scratch: FinishScratch<'a>,
}

/// Memory of one call.
struct FinishScratch<'a> {
    /// Operand panels of the columns that are finished.
    planes: &'a mut [u64],
    publisher: Publisher<'a>,
    rules: &'a mut [u64],
    engine: &'a mut [u64],
}

/// Parts of a range of blocks: with more, sums are reduced less often and operands are copied more often.
const PARTS: usize = 6;

/// Blocks of a part where `blocks` blocks, at least two, are cut: one where products copy nothing.
fn part_of(engine: &dyn PlaneEngine, blocks: usize) -> usize {
    let mut part = 1;
    while !engine.reads_rows_in_place() && part * PARTS < blocks {
        part *= PARTS;
    }
    part
}

impl<'a, R: BlockRules> Finish<'a, R> {
    /// Words of scratch for tiles of this shape, the plane kernel's own not counted.
    pub fn words(tiles: &PlaneTiles<R>, shape: TileShape) -> usize {
        let layout = tiles.layout(shape);
        // A tile on the diagonal has no more sums, and as many panels.
        layout.residue_words() + Publisher::words_for(tiles, BLOCK) + tiles.rules.scratch_words()
    }

    /// For a tile below the factored one `above`, whose pivots are given, or for one on the diagonal.
    pub fn new(
        tiles: &'a PlaneTiles<R>,
        tile: SolveTile<'a>,
        above: Option<PivotedTriangle<'a, R::Pivot>>,
        scratch: &'a mut [u64],
    ) -> Finish<'a, R> {
        let SolveTile { shape, words, weights } = tile;
        let layout = tiles.layout(shape);
        let (planes, scratch) = scratch.split_at_mut(layout.residue_words());
        let (publisher, scratch) = Publisher::new(tiles, BLOCK, scratch);
        let (rules, engine) = scratch.split_at_mut(tiles.rules.scratch_words());
        let (residues, blocks) = words[..layout.words()].split_at_mut(layout.operand_words());
        let (header, sums) = residues.split_at_mut(HEADER_WORDS);
        let square = TileShape { rows: shape.cols, cols: shape.cols, diagonal: true };
        let pivots = Vec::with_capacity(if above.is_none() { shape.cols } else { 0 });
        Finish {
            tiles,
            layout,
            above: above.map(|triangle| Above { layout: tiles.layout(square), triangle }),
            has_sums: header[0] == 1,
            sums,
            blocks,
            weights,
            pivots,
            integers: IntegerBlock::new(tiles.engine.magnitude_limbs()),
            scratch: FinishScratch { planes, publisher, rules, engine },
        }
    }

    /// Finishes the tile; the pivots of one on the diagonal.
    ///
    /// # Errors
    /// The first pivot that is not positive; the rows before it are in place.
    pub fn run(mut self) -> Result<Vec<R::Pivot>, FailedPivot> {
        self.blocks(0..self.layout.grid.cols)?;
        self.sums.copy_from_slice(self.scratch.planes);
        Ok(self.pivots)
    }

    /// Finishes a range of blocks of columns, from which the products with all columns before it are subtracted.
    fn blocks(&mut self, range: Range<usize>) -> Result<(), FailedPivot> {
        if range.len() <= 1 {
            return range.into_iter().try_for_each(|block| self.block(block));
        }
        let size = part_of(&*self.tiles.engine, range.len());
        for start in range.clone().step_by(size) {
            let part = start..(start + size).min(range.end);
            if start > range.start {
                self.multiply(range.start..start, part.clone());
            }
            self.blocks(part)?;
        }
        Ok(())
    }

    /// Whether there are products to subtract from the entries of a range of blocks that begins at `first`.
    fn is_reduced(&self, first: usize) -> bool {
        self.has_sums || first > 0
    }

    /// Adds the products with the columns of the blocks `done` to the sums of the blocks `next`.
    fn multiply(&mut self, done: Range<usize>, next: Range<usize>) {
        let (engine, layout) = (&*self.tiles.engine, self.layout);
        let (shape, depth, first) = (layout.shape, done.len() * BLOCK, done.start * BLOCK);
        let panels = if shape.diagonal { next.start..shape.panels() } else { 0..shape.panels() };
        // The columns from `next.start` on are a triangle again, or a rectangle.
        let (grid, count) = match shape.diagonal {
            true => (BlockGrid::triangle(panels.len() * BLOCK), next.len()),
            false => (BlockGrid::rectangle(panels.len() * BLOCK, next.len() * BLOCK), next.len()),
        };
        let blocks = 0..grid.column_start(count);
        let begin = layout.grid.column_start(next.start) * engine.block_words();
        let words = blocks.len() * engine.block_words();
        let accumulate = self.is_reduced(done.start);
        let FinishScratch { planes, engine: scratch, .. } = &mut self.scratch;
        let primes = engine.moduli().len();
        let operands = |prime: usize| {
            let x = layout.rows(&planes[prime * layout.plane_words..], panels.start, first);
            let y = match &self.above {
                None => x,
                Some(above) => above.layout.rows(above.layout.panels(above.triangle.words, prime), next.start, first),
            };
            [[x], [y]]
        };
        for (prime, c) in self.sums.chunks_exact_mut(layout.plane_words).enumerate() {
            let ([x, y], [next_x, next_y]) = (operands(prime), operands((prime + 1).min(primes - 1)));
            let after = NextRows { x: &next_x, y: &next_y };
            let blocks = blocks.clone();
            let product =
                RowsProduct { x: &x, y: &y, depth, next: after, grid, blocks, accumulate, window: 0..grid.rows };
            engine.multiply_rows(prime, &product, &mut c[begin..][..words], scratch);
        }
    }

    /// Finishes one block of columns, panel by panel.
    fn block(&mut self, block: usize) -> Result<(), FailedPivot> {
        let layout = self.layout;
        let cols = layout.cols_of_block(block);
        let first = if layout.shape.diagonal { block } else { 0 };
        for panel in first..layout.shape.panels() {
            if self.is_reduced(block) {
                self.take_off(panel, block);
            }
            self.rows(panel, block)?;
            let FinishScratch { planes, publisher, rules, engine: scratch } = &mut self.scratch;
            let finished = &self.blocks[layout.block(panel, block)];
            let of_panel = OfPanel { layout: &layout, panel, cols: cols.clone() };
            let (engine, count) = (&*self.tiles.engine, cols.len());
            let targets = &mut of_panel.targets(engine, planes);
            if !self.tiles.rules.to_residues(finished, count, engine, targets, rules) {
                publisher.set_blocks(&self.tiles.rules, finished, cols.len());
                publisher.write(self.tiles, &of_panel, planes, scratch);
            }
        }
        Ok(())
    }

    /// Takes the sums of one block off its integers.
    fn take_off(&mut self, panel: usize, block: usize) {
        let (engine, layout) = (&*self.tiles.engine, self.layout);
        let offset = layout.grid.index(panel, block) * engine.block_words();
        let residues = BlockResidues { window: self.sums, plane_words: layout.plane_words, offset };
        let sums = BlockSums { engine, residues, integers: &mut self.integers, scratch: self.scratch.engine };
        let (own, cols) = (&mut self.blocks[layout.block(panel, block)], layout.cols_of_block(block).len());
        self.tiles.rules.take_residues_off(own, cols, sums, self.scratch.rules);
    }

    /// Finishes the rows of a panel in one block of columns.
    fn rows(&mut self, panel: usize, block: usize) -> Result<(), FailedPivot> {
        let (layout, rules) = (self.layout, &self.tiles.rules);
        let (rows, cols) = (layout.rows_of_panel(panel), layout.cols_of_block(block));
        let (weights, space) = (&mut self.weights[rows], &mut *self.scratch.rules);
        if let Some(above) = &self.above {
            let words = &above.triangle.words[above.layout.operand_words()..][above.layout.block(block, block)];
            let triangle = PivotedTriangle { words, pivots: &above.triangle.pivots[cols] };
            rules.solve(&mut self.blocks[layout.block(panel, block)], triangle, weights, space);
            return Ok(());
        }
        let own = layout.block(panel, block);
        let (before, rest) = self.blocks.split_at_mut(own.start);
        let own = &mut rest[..own.len()];
        if panel == block {
            let factored = rules.factor(own, weights, &mut self.pivots, space);
            return factored.map_err(|failed| FailedPivot { column: cols.start + failed.column, ..failed });
        }
        let triangle = PivotedTriangle { words: &before[layout.block(block, block)], pivots: &self.pivots[cols] };
        rules.solve(own, triangle, weights, space);
        Ok(())
    }
}
