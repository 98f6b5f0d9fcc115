//! The columns of a tile, all of whose updates are in: POTRF of a tile on the diagonal, TRSM of one below it.
//!
//! Columns are finished from left to right, in blocks of 8. A range of blocks is cut into a few parts; before a part is
//! begun, the products with the parts before it are added to the sums of updates, plane by plane, so that a block finds
//! all that is to be taken off its entries but for the products inside it. Finished residues lie in scratch, since sums
//! of later columns are where they belong.

use super::layout::{HEADER_WORDS, Layout};
use super::publish::Publisher;
use super::rows::{Rows, Space};
use super::{LimbTiles, Reciprocal};
use crate::kernels::tiles::{FailedPivot, TileShape};
use crate::kernels::{BlockResidues, IntegerBlock, PlaneEngine, PlaneProduct};
use crate::math::pivot::RowWeight;
use crate::plan::{BLOCK, BlockGrid};
use std::ops::Range;

/// The factored tile above the one that is finished.
#[derive(Clone, Copy)]
struct Above<'a> {
    layout: Layout,
    words: &'a [u64],
    pivots: &'a [Reciprocal],
}

/// A tile that is finished.
pub struct Finish<'a> {
    kernels: &'a LimbTiles,
    layout: Layout,
    above: Option<Above<'a>>,
    /// Whether updates have come.
    has_sums: bool,
    /// Sums, at the end operand panels.
    sums: &'a mut [u64],
    slots: &'a mut [u64],
    weights: &'a mut [RowWeight],
    /// Of the tile's own columns, where it lies on the diagonal.
    pivots: Vec<Reciprocal>,
    /// Sums of a block as integers.
    integers: IntegerBlock,
    scratch: Scratch<'a>,
}

/// Memory of one call.
struct Scratch<'a> {
    /// Operand panels of the columns that are finished.
    planes: &'a mut [u64],
    /// Some columns of these panels.
    left: &'a mut [u64],
    /// Some columns of panels of the tile above.
    right: &'a mut [u64],
    publisher: Publisher<'a>,
    space: Space<'a>,
    engine: &'a mut [u64],
}

/// Parts of a range of blocks: with more, sums are reduced less often and operands are read more often.
const PARTS: usize = 4;

/// Blocks of a part of so many blocks, of which there are at least two.
fn part_of(blocks: usize) -> usize {
    let mut part = 1;
    while part * PARTS < blocks {
        part *= PARTS;
    }
    part
}

impl<'a> Finish<'a> {
    /// Words of scratch for tiles of this shape, the plane kernel's own not counted.
    pub fn words(kernels: &LimbTiles, shape: TileShape) -> usize {
        let layout = kernels.layout(shape);
        let deep = kernels.engine.panel_words(shape.padded_cols());
        // A tile on the diagonal has no more sums, and as many panels.
        layout.residue_words()
            + (shape.panels() + shape.cols.div_ceil(BLOCK)) * deep
            + Publisher::words_for(kernels, BLOCK)
            + Space::words(kernels.widths, kernels.working_bits)
    }

    /// For a tile below the factored one `above`, whose pivots are given, or for one on the diagonal.
    pub fn new(
        kernels: &'a LimbTiles,
        (shape, words): (TileShape, &'a mut [u64]),
        weights: &'a mut [RowWeight],
        above: Option<(&'a [u64], &'a [Reciprocal])>,
        scratch: &'a mut [u64],
    ) -> Finish<'a> {
        let layout = kernels.layout(shape);
        let deep = kernels.engine.panel_words(shape.padded_cols());
        let (planes, scratch) = scratch.split_at_mut(layout.residue_words());
        let (left, scratch) = scratch.split_at_mut(shape.panels() * deep);
        let (right, scratch) = scratch.split_at_mut(shape.cols.div_ceil(BLOCK) * deep);
        let (own, scratch) = scratch.split_at_mut(Publisher::words_for(kernels, BLOCK));
        let publisher = Publisher::new(kernels, BLOCK, own);
        let (space, engine) = Space::new(kernels.widths, kernels.working_bits, scratch);
        let (residues, slots) = words[..layout.words()].split_at_mut(layout.operand_words());
        let (header, sums) = residues.split_at_mut(HEADER_WORDS);
        let square = TileShape { rows: shape.cols, cols: shape.cols, diagonal: true };
        Finish {
            kernels,
            layout,
            above: above.map(|(words, pivots)| Above { layout: kernels.layout(square), words, pivots }),
            has_sums: header[0] == 1,
            sums,
            slots,
            weights,
            pivots: Vec::with_capacity(if above.is_none() { shape.cols } else { 0 }),
            integers: IntegerBlock::new(kernels.engine.magnitude_limbs()),
            scratch: Scratch { planes, left, right, publisher, space, engine },
        }
    }

    /// Finishes the tile; the pivots of one on the diagonal.
    ///
    /// # Errors
    /// The first pivot that is not positive; the rows before it are in place.
    pub fn run(mut self) -> Result<Vec<Reciprocal>, FailedPivot> {
        self.blocks(0..self.layout.grid.cols)?;
        self.sums.copy_from_slice(self.scratch.planes);
        Ok(self.pivots)
    }

    /// Finishes a range of blocks of columns, from which the products with all columns before it are taken off.
    fn blocks(&mut self, range: Range<usize>) -> Result<(), FailedPivot> {
        if range.len() <= 1 {
            return range.into_iter().try_for_each(|block| self.block(block));
        }
        for start in range.clone().step_by(part_of(range.len())) {
            let part = start..(start + part_of(range.len())).min(range.end);
            if start > range.start {
                self.multiply(range.start..start, part.clone());
            }
            self.blocks(part)?;
        }
        Ok(())
    }

    /// Whether there is anything to take off the entries of a range of blocks that begins at `first`.
    fn is_reduced(&self, first: usize) -> bool {
        self.has_sums || first > 0
    }

    /// Adds the products with the columns of the blocks `done` to the sums of the blocks `next`.
    fn multiply(&mut self, done: Range<usize>, next: Range<usize>) {
        let (engine, layout) = (&*self.kernels.engine, self.layout);
        let (shape, depth) = (layout.shape, done.len() * BLOCK);
        let columns = done.start * BLOCK..done.end * BLOCK;
        let panels = if shape.diagonal { next.start..shape.panels() } else { 0..shape.panels() };
        // The columns from `next.start` on are a triangle again, or a rectangle.
        let (grid, count) = match shape.diagonal {
            true => (BlockGrid::triangle(panels.len() * BLOCK), next.len()),
            false => (BlockGrid::rectangle(panels.len() * BLOCK, next.len() * BLOCK), next.len()),
        };
        let blocks = 0..grid.column_start(count);
        let first = layout.grid.column_start(next.start) * engine.block_words();
        let words = blocks.len() * engine.block_words();
        let accumulate = self.is_reduced(done.start);
        let Scratch { planes, left, right, engine: scratch, .. } = &mut self.scratch;
        for (prime, c) in self.sums.chunks_exact_mut(layout.plane_words).enumerate() {
            let own = &planes[prime * layout.plane_words..][..shape.panels() * layout.panel_words];
            let x = gather(engine, (own, shape.cols), panels.clone(), columns.clone(), left);
            let y = match &self.above {
                None => x,
                Some(above) => {
                    let own = above.layout.panels(above.words, prime);
                    gather(engine, (own, shape.cols), next.clone(), columns.clone(), right)
                }
            };
            let product = PlaneProduct { x, y, rows: depth, grid, blocks: blocks.clone(), accumulate };
            engine.multiply(prime, &product, &mut c[first..][..words], scratch);
        }
    }

    /// Finishes one block of columns, panel by panel.
    fn block(&mut self, block: usize) -> Result<(), FailedPivot> {
        let layout = self.layout;
        let cols = layout.cols_of_block(block);
        let first = if layout.shape.diagonal { block } else { 0 };
        for panel in first..layout.shape.panels() {
            if self.is_reduced(block) {
                self.reconstruct(panel, block);
            } else {
                self.integers.magnitudes.fill(0);
            }
            self.rows(panel, block)?;
            let Scratch { planes, publisher, engine: scratch, .. } = &mut self.scratch;
            for (lane, row) in layout.rows_of_panel(panel).enumerate() {
                for (at, col) in cols.clone().enumerate() {
                    publisher.set(lane, at, &self.slots[layout.slot(row, col)..]);
                }
            }
            publisher.write(self.kernels, (&layout, planes), (panel, cols.clone()), scratch);
        }
        Ok(())
    }

    /// The sums of one block as integers.
    fn reconstruct(&mut self, panel: usize, block: usize) {
        let (engine, layout) = (&*self.kernels.engine, self.layout);
        let offset = layout.grid.index(panel, block) * engine.block_words();
        let residues = BlockResidues { window: self.sums, plane_words: layout.plane_words, offset };
        engine.reconstruct(&residues, &mut self.integers, self.scratch.engine);
    }

    /// Finishes the rows of a panel in one block of columns.
    fn rows(&mut self, panel: usize, block: usize) -> Result<(), FailedPivot> {
        let (layout, row_words) = (self.layout, self.layout.row_words());
        let (rows, cols) = (layout.rows_of_panel(panel), layout.cols_of_block(block));
        let space = &mut self.scratch.space;
        let mut rules = Rows { kernels: self.kernels, integers: &self.integers, cols: cols.len(), space };
        let weights = &mut self.weights[rows.clone()];
        if let Some(above) = &self.above {
            let slots = &above.words[above.layout.operand_words()..][above.layout.slot(cols.start, cols.start)..];
            let own = &mut self.slots[layout.slot(rows.start, cols.start)..];
            rules.solve(own, (slots, &above.pivots[cols]), weights);
            return Ok(());
        }
        let (before, own) = self.slots.split_at_mut(layout.slot(rows.start, cols.start));
        if panel == block {
            let own = &mut own[..rows.len() * row_words];
            let factored = rules.factor(own, weights, &mut self.pivots);
            return factored.map_err(|failed| FailedPivot { column: cols.start + failed.column, ..failed });
        }
        let diagonal = &before[layout.slot(cols.start, cols.start)..];
        rules.solve(own, (diagonal, &self.pivots[cols]), weights);
        Ok(())
    }
}

/// The columns `columns` of a plane's panels `panels`, which are columns of the tile, as panels of their own.
fn gather<'s>(
    engine: &dyn PlaneEngine,
    (plane, cols): (&[u64], usize),
    panels: Range<usize>,
    columns: Range<usize>,
    out: &'s mut [u64],
) -> &'s [u64] {
    let (panel_words, own_words) = (engine.panel_words(cols), engine.panel_words(columns.len()));
    let to = engine.row_runs(columns.len(), 0..columns.len());
    let from = engine.row_runs(cols, columns);
    let out = &mut out[..panels.len() * own_words];
    for (panel, out) in panels.zip(out.chunks_exact_mut(own_words)) {
        let panel = &plane[panel * panel_words..][..panel_words];
        for run in 0..from.count {
            let words = &panel[from.first + run * from.stride..][..from.words];
            out[to.first + run * to.stride..][..to.words].copy_from_slice(words);
        }
    }
    out
}
