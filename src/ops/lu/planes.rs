//! The residues of a factorisation: finished columns of `L`, finished rows of `U` in one block of columns, and the sums
//! of their products that are still to be subtracted from that block.
//!
//! Rows of the matrix lie in panels of 8, in the order of the pivots found so far. A *strip* has the operand panels of
//! some columns of `L`, from the panel of their first pivot on, or of the rows of `U` with the same numbers. Sums lie
//! row panel after row panel, so that the rows below any panel are one piece of memory.
//! Independent of: integers, pivots, threads.

use crate::kernels::{BlockResidues, NextRows, PanelRows, PlaneEngine, RowsProduct};
use crate::plan::{BLOCK, BLOCK_WORDS, BlockGrid};
use std::ops::Range;

/// A row of the matrix that moves from one place to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RowMove {
    pub from: usize,
    pub to: usize,
}

/// Where the residues of one of eight lanes lie in an operand panel: pieces of the same length, one for each contracted
/// row or pair of rows.
#[derive(Clone, Copy)]
struct Lanes {
    /// Bytes of a piece.
    piece: usize,
    /// Bytes from one lane to the next.
    lane: usize,
    /// Bytes from one piece of a lane to the next.
    step: usize,
    /// Pieces of a lane.
    count: usize,
}

impl Lanes {
    /// The lanes of a panel of `rows` contracted rows.
    fn new(engine: &dyn PlaneEngine, rows: usize) -> Lanes {
        let [one, two] = [1, 2].map(|count| engine.row_runs(rows, 0..count));
        if one.count > 1 {
            // A run for each lane.
            return Lanes { piece: 8 * one.words, lane: 8 * one.stride, step: 8 * one.words, count: rows };
        }
        // Eight pieces side by side; a pair of rows has as many words as one row of a pair.
        let together = if one.words == two.words { 2 } else { 1 };
        let piece = 8 * one.words / BLOCK;
        Lanes { piece, lane: piece, step: 8 * one.words, count: rows.div_ceil(together) }
    }
}

/// Operand panels of some columns of `L`, or of the rows of `U` with the same numbers.
pub(super) struct Strip<'w> {
    /// The first panel that is here.
    first: usize,
    /// Number of panels.
    panels: usize,
    /// Contracted rows of a panel.
    width: usize,
    /// The planes, prime by prime.
    words: &'w mut [u64],
}

impl<'w> Strip<'w> {
    /// Words of a strip.
    pub fn words(engine: &dyn PlaneEngine, panels: usize, width: usize) -> usize {
        engine.moduli().len() * panels * engine.panel_words(width)
    }

    /// A strip of some panels in the front of `words`, of any contents; and the other words.
    pub fn cut(
        engine: &dyn PlaneEngine,
        panels: Range<usize>,
        width: usize,
        words: &'w mut [u64],
    ) -> (Strip<'w>, &'w mut [u64]) {
        let (words, rest) = words.split_at_mut(Strip::words(engine, panels.len(), width));
        (Strip { first: panels.start, panels: panels.len(), width, words }, rest)
    }

    fn plane_words(&self, engine: &dyn PlaneEngine) -> usize {
        self.panels * engine.panel_words(self.width)
    }

    /// The panels from number `panel` on modulo one prime, from contracted row `row` on.
    fn operand(&self, engine: &dyn PlaneEngine, prime: usize, panel: usize, row: usize) -> PanelRows<'_> {
        let words = self.plane_words(engine);
        let plane = &self.words[prime * words..][..words];
        PanelRows { words: &plane[(panel - self.first) * engine.panel_words(self.width)..], of: self.width, first: row }
    }

    /// For each panel the places of the contracted rows `rows`, prime by prime.
    pub fn places<'s>(&'s mut self, engine: &dyn PlaneEngine, rows: &Range<usize>) -> Vec<Vec<&'s mut [u64]>> {
        let panel_words = engine.panel_words(self.width);
        let runs = engine.row_runs(self.width, rows.clone());
        let count = engine.moduli().len() * runs.count;
        let mut places = (0..self.panels).map(|_| Vec::with_capacity(count)).collect::<Vec<_>>();
        let panels = self.panels.max(1);
        for (number, panel) in self.words.chunks_exact_mut(panel_words).enumerate() {
            let mut rest = &mut panel[runs.first..];
            for run in 0..runs.count {
                let (place, others) = std::mem::take(&mut rest).split_at_mut(runs.words);
                places[number % panels].push(place);
                let skipped = if run + 1 < runs.count { runs.stride - runs.words } else { 0 };
                rest = &mut others[skipped..];
            }
        }
        places
    }

    /// Bytes of [`Strip::move_rows`] for the pivots of `width` columns of a matrix of `order` rows.
    pub fn move_bytes(engine: &dyn PlaneEngine, order: usize, width: usize) -> u64 {
        let Lanes { piece, count, .. } = Lanes::new(engine, width);
        // Each pivot exchanges two rows.
        (order.min(2 * width) * piece * count) as u64
    }

    /// Moves rows of the matrix within the planes.
    pub fn move_rows(&mut self, engine: &dyn PlaneEngine, moves: &[RowMove]) {
        let (plane_words, panel_words) = (self.plane_words(engine), engine.panel_words(self.width));
        let Lanes { piece, lane, step, count } = Lanes::new(engine, self.width);
        let place = |number: usize| 8 * (number / BLOCK - self.first) * panel_words + number % BLOCK * lane;
        let lists = Lists { moves, count, step };
        for plane in self.words.chunks_exact_mut(plane_words.max(1)) {
            // Pieces of one, two and four bytes for each residue of a row, or of a pair of rows.
            match piece {
                2 => lists.run::<u16>(bytemuck::cast_slice_mut(plane), place),
                4 => lists.run::<u32>(bytemuck::cast_slice_mut(plane), place),
                _ => lists.run::<u64>(plane, place),
            }
        }
    }
}

/// Rows to move, as pieces of one plane.
struct Lists<'a> {
    moves: &'a [RowMove],
    /// Pieces of a row.
    count: usize,
    /// Bytes from one to the next.
    step: usize,
}

impl Lists<'_> {
    /// Moves the pieces of all rows; `place` is the first byte of a row.
    fn run<P: Copy + Default>(&self, plane: &mut [P], place: impl Fn(usize) -> usize) {
        let Lists { moves, count, step } = *self;
        let (size, mut kept) = (size_of::<P>(), vec![P::default(); moves.len() * count]);
        for (RowMove { from, .. }, kept) in moves.iter().zip(kept.chunks_exact_mut(count)) {
            let pieces = plane[place(*from) / size..].iter().step_by(step / size);
            kept.iter_mut().zip(pieces).for_each(|(kept, &piece)| *kept = piece);
        }
        for (RowMove { to, .. }, kept) in moves.iter().zip(kept.chunks_exact(count)) {
            let pieces = plane[place(*to) / size..].iter_mut().step_by(step / size);
            pieces.zip(kept).for_each(|(piece, &kept)| *piece = kept);
        }
    }
}

/// Sums of products for all rows of one block of columns.
pub(super) struct Sums<'w> {
    /// Blocks of 8 columns.
    pub blocks: usize,
    /// Row panels.
    panels: usize,
    /// Words of a block of 8 rows and 8 columns.
    block_words: usize,
    primes: usize,
    /// The planes, prime by prime, from the front.
    words: &'w mut [u64],
}

/// A product that is added to sums: rows of `L` by columns of `U`.
#[derive(Clone)]
pub(super) struct StripProduct<'a> {
    /// Columns of `L`.
    pub left: &'a Strip<'a>,
    /// Rows of `U`.
    pub right: &'a Strip<'a>,
    /// Contracted rows within both.
    pub depth: Range<usize>,
    /// Row panels of the sums.
    pub panels: Range<usize>,
    /// Blocks of columns of the sums.
    pub blocks: Range<usize>,
}

impl StripProduct<'_> {
    /// The shape of the product.
    fn grid(&self) -> BlockGrid {
        BlockGrid::rectangle(self.blocks.len() * BLOCK, self.panels.len() * BLOCK)
    }
}

impl<'w> Sums<'w> {
    /// Words of the sums.
    pub fn words(engine: &dyn PlaneEngine, panels: usize, blocks: usize) -> usize {
        engine.moduli().len() * panels * blocks * engine.block_words()
    }

    /// In `words`, for up to `blocks` blocks of columns.
    pub fn new(engine: &dyn PlaneEngine, panels: usize, blocks: usize, words: &'w mut [u64]) -> Sums<'w> {
        Sums { blocks, panels, block_words: engine.block_words(), primes: engine.moduli().len(), words }
    }

    /// Sums of nothing for another block of columns.
    pub fn clear(&mut self, blocks: usize) {
        self.blocks = blocks;
        let used = self.primes * self.plane_words();
        self.words[..used].fill(0);
    }

    fn plane_words(&self) -> usize {
        self.panels * self.blocks * self.block_words
    }

    /// The residues of one block.
    pub fn residues(&self, panel: usize, block: usize) -> BlockResidues<'_> {
        let offset = (panel * self.blocks + block) * self.block_words;
        BlockResidues { window: self.words, plane_words: self.plane_words(), offset }
    }

    /// The planes, for one prime after the other.
    pub fn planes(&mut self) -> std::slice::ChunksExactMut<'_, u64> {
        let words = self.plane_words();
        self.words[..self.primes * words].chunks_exact_mut(words.max(1))
    }

    /// Words of scratch for [`SumsShape::add`] of products of at most `width` contracted rows.
    pub fn scratch_words(engine: &dyn PlaneEngine, panels: usize, blocks: usize, width: usize) -> usize {
        let grid = BlockGrid::rectangle(blocks * BLOCK, panels * BLOCK);
        // Products of some blocks are formed apart where the engine does not add them in place.
        let apart = if engine.reads_rows_in_place() { 0 } else { engine.plane_words(&grid) };
        engine.rows_scratch_words(width, &grid) + apart
    }

    /// The shape of a plane.
    pub fn shape(&self) -> SumsShape {
        SumsShape { blocks: self.blocks, block_words: self.block_words }
    }

    /// Exchanges two rows in some blocks of columns.
    pub fn swap_rows(&mut self, [one, other]: [usize; 2], blocks: &Range<usize>) {
        // The eight columns of a row in a block lie side by side.
        let row = 8 * self.block_words / BLOCK;
        let (all, block_bytes) = (self.blocks, 8 * self.block_words);
        for plane in self.planes() {
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(plane);
            for block in blocks.clone() {
                let place = |number: usize| (number / BLOCK * all + block) * block_bytes + number % BLOCK * row;
                let (low, high) = (place(one).min(place(other)), place(one).max(place(other)));
                let (before, after) = bytes.split_at_mut(high);
                before[low..low + row].swap_with_slice(&mut after[..row]);
            }
        }
    }
}

/// The shape of one plane of sums.
#[derive(Clone, Copy)]
pub(super) struct SumsShape {
    blocks: usize,
    block_words: usize,
}

impl SumsShape {
    /// Adds a product to the sums modulo one prime.
    pub fn add(
        self,
        engine: &dyn PlaneEngine,
        prime: usize,
        update: &StripProduct<'_>,
        plane: &mut [u64],
        scratch: &mut [u64],
    ) {
        let SumsShape { blocks: all, block_words } = self;
        let StripProduct { left, right, depth, panels, blocks } = update;
        if update.grid().is_empty() || depth.is_empty() {
            return;
        }
        let in_place = blocks.len() == all || engine.reads_rows_in_place();
        // In place the other blocks are left as they are; else the product is formed apart, and added.
        let (window, grid) = match in_place {
            true => (blocks.clone(), StripProduct { blocks: 0..all, ..update.clone() }.grid()),
            false => (0..blocks.len(), update.grid()),
        };
        let x = [right.operand(engine, prime, blocks.start - window.start, depth.start)];
        let y = [left.operand(engine, prime, panels.start, depth.start)];
        let (part, scratch) = scratch.split_at_mut(if in_place { 0 } else { engine.plane_words(&grid) });
        let own = &mut plane[panels.start * all * block_words..panels.end * all * block_words];
        let product = RowsProduct {
            x: &x,
            y: &y,
            depth: depth.len(),
            next: NextRows::default(),
            grid,
            blocks: 0..grid.len(),
            accumulate: in_place,
            window,
        };
        if in_place {
            return engine.multiply_rows(prime, &product, own, scratch);
        }
        engine.multiply_rows(prime, &product, part, scratch);
        let (rows, parts) = (own.chunks_exact_mut(all * block_words), part.chunks_exact(blocks.len() * block_words));
        for (row, part) in rows.zip(parts) {
            engine.add(prime, &mut row[blocks.start * block_words..blocks.end * block_words], part);
        }
    }
}

/// The number of an entry in a reconstructed block, by its row and column there.
pub(super) fn entry_of_block(row: usize, col: usize) -> usize {
    debug_assert!(row < BLOCK && col < BLOCK_WORDS / BLOCK);
    BLOCK * row + col
}
