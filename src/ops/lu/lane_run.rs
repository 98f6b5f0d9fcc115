//! The steps of a factorisation on integers in lanes: entries of the matrix to blocks, finished blocks to residues and
//! to floats.

use crate::drive;
use crate::kernels::pivot_lanes::Finished;
use crate::kernels::plane_tiles::rules::BlockSums;
use crate::kernels::tiles::{TilePart, TileSource};
use crate::kernels::{PanelSource, PlaneEngine};
use crate::math::float::{Head, limbs_for};
use crate::matrix::{MatrixView, check_exponent};
use crate::ops::lu::lanes::{LaneLeaf, LaneRules, LaneSpace};
use crate::ops::lu::leaf::rows_of;
use crate::ops::lu::problem::{FactorPlace, LuProblem, LuStop, Stopped};
use crate::ops::lu::run::{Exchanges, LuRun, SHIFTS};
use crate::ops::product::steps::Space;
use crate::plan::BLOCK;
use std::ops::Range;

/// Entries of the matrix: eight rows and eight columns at most.
struct Eights<'a> {
    a: MatrixView<'a>,
    problem: &'a LuProblem,
    /// The rows of the matrix.
    rows: &'a [usize],
    cols: Range<usize>,
}

impl Eights<'_> {
    /// The entries less their sums as a block, a cell for each row.
    fn load(&self, rules: &LaneRules, block: &mut [u64], sums: BlockSums<'_>, space: &mut Gathered<'_>) {
        let Eights { a, problem, rows, cols } = self;
        let width = a.limbs_per_element();
        let (mut row_shifts, mut col_shifts) = ([0; BLOCK], [0; BLOCK]);
        for (lane, col) in cols.clone().enumerate() {
            row_shifts[lane] = 2 * i64::from(problem.working_bits) - problem.col_exponents[col];
        }
        for (cell, &row) in rows.iter().enumerate() {
            col_shifts[cell] = -problem.row_exponents[row];
            for (lane, col) in cols.clone().enumerate() {
                let (entry, at) = (a.get(row, col), cell * BLOCK + lane);
                space.heads[at] = entry.head.0;
                space.limbs[at * width..][..width].copy_from_slice(entry.limbs);
            }
        }
        let words = (&space.heads[..rows.len() * BLOCK], &space.limbs[..rows.len() * BLOCK * width]);
        let matrix = MatrixView::from_parts(words, (BLOCK, rows.len()), BLOCK, 64 * width as u32);
        let source = TileSource {
            matrix: matrix.expect("lengths that fit each other"),
            part: TilePart::Whole,
            rows: 0..cols.len(),
            cols: 0..rows.len(),
            row_shifts: &row_shifts,
            col_shifts: &col_shifts,
        };
        rules.lanes.load(&source, block, space.lanes);
        rules.lanes.take_off(block, rows.len(), sums, space.lanes);
    }
}

/// Memory for entries of a matrix.
struct Gathered<'s> {
    heads: &'s mut [u64],
    limbs: &'s mut [u64],
    lanes: &'s mut [u64],
}

/// The residues of a finished block.
struct BlockOperand<'a> {
    engine: &'a dyn PlaneEngine,
    rules: &'a LaneRules,
    /// Lanes that count.
    lanes: usize,
    cells: usize,
}

impl BlockOperand<'_> {
    fn write(&self, block: &[u64], places: &mut [&mut [u64]], space: Gathered<'_>, scratch: &mut [u64]) {
        let BlockOperand { engine, rules, lanes, cells } = *self;
        if rules.lanes.to_residues(block, cells, engine, places, space.lanes) {
            return;
        }
        let width = rules.lanes.entry_limbs();
        for cell in 0..cells {
            let limbs = &mut space.limbs[cell * BLOCK * width..][..BLOCK * width];
            let signs = rules.lanes.limbs(block, cell, limbs);
            for (lane, limbs) in limbs.chunks_exact(width).enumerate() {
                // An integer is a significand with the point behind it; its leading zeros do not matter.
                let is_zero = limbs.iter().all(|&limb| limb == 0);
                let head = Head::new(signs >> lane & 1 == 1, 64 * width as i64);
                space.heads[cell * BLOCK + lane] = if is_zero { 0 } else { head.0 };
            }
        }
        let words = (&space.heads[..cells * BLOCK], &space.limbs[..cells * BLOCK * width]);
        let view = MatrixView::from_parts(words, (BLOCK, cells), BLOCK, 64 * width as u32);
        let view = view.expect("lengths that fit each other").transposed();
        let source = PanelSource { view, columns: 0..lanes, rows: 0..cells, shifts: &SHIFTS };
        engine.to_residues(0..engine.moduli().len(), &source, places, scratch);
    }
}

/// Finished cells as floats.
struct Rounder<'a> {
    rules: &'a LaneRules,
    problem: &'a LuProblem,
}

impl Rounder<'_> {
    /// Rounds the entries of a cell whose places are given, and calls `take` with each place's number, head and limbs;
    /// the bits of the longest entry.
    fn run(
        &self,
        block: &[u64],
        cell: usize,
        places: impl Iterator<Item = FactorPlace> + Clone,
        space: &mut Gathered<'_>,
        mut take: impl FnMut(usize, u64, &[u64]),
    ) -> crate::Result<u32> {
        let (bits, mut exponents, mut heads) = (self.rules.precision_bits, [0; BLOCK], [0; BLOCK]);
        let width = limbs_for(bits);
        for (exponent, place) in exponents.iter_mut().zip(places.clone()) {
            *exponent = self.problem.entry_exponent(place);
        }
        let limbs = &mut space.limbs[..BLOCK * width];
        let out = Finished { exponents: &exponents, heads: &mut heads, limbs };
        let longest = self.rules.lanes.round(block, cell, bits, out, space.lanes);
        for (number, (place, limbs)) in places.zip(space.limbs.chunks_exact(width)).enumerate() {
            check_exponent(Head(heads[number]).exponent(), place.row, place.col)?;
            take(number, heads[number], limbs);
        }
        Ok(longest)
    }
}

/// Rows of `U` that are found by substitution.
struct UpperBlock<'a> {
    eights: Eights<'a>,
    rules: &'a LaneRules,
    /// The block of `L` in these rows.
    triangle: &'a [u64],
}

impl UpperBlock<'_> {
    /// Finishes a block, and rounds it into these columns of the factors; the bits of the longest entry.
    fn finish(
        &self,
        block: &mut [u64],
        space: &mut Gathered<'_>,
        heads: &mut [u64],
        limbs: &mut [u64],
    ) -> Stopped<u32> {
        let UpperBlock { eights, rules, triangle } = self;
        let Eights { problem, rows, cols, .. } = eights;
        let (width, order, mut longest) = (limbs.len() / heads.len(), problem.order, 0);
        for (cell, &row) in rows.iter().enumerate() {
            rules.lanes.subtract(block, cell, 0..cell, triangle, cell);
            let signs = rules.lanes.magnitudes(block, cell);
            rules.lanes.finish_upper(block, cell, signs, u8::MAX).map_err(LuStop::Growth)?;
            let places = cols.clone().map(|col| FactorPlace { row, col, pivot: None });
            let bits = Rounder { rules, problem }.run(block, cell, places, space, |lane, head, significand| {
                let at = lane * order + row;
                heads[at] = head;
                limbs[at * width..][..width].copy_from_slice(significand);
            })?;
            longest = longest.max(bits);
        }
        Ok(longest)
    }
}

impl LuRun<'_, '_> {
    /// Fills a leaf with the entries of the matrix less the sums, and finds the pivots of its columns.
    pub(super) fn factor_lanes(&mut self, leaf: &mut LaneLeaf, strip: usize, number: usize) -> Stopped<()> {
        let sizes = self.sizes;
        let panel = sizes.first_panel(strip) + number;
        let first = panel * BLOCK;
        let cols = first..(first + BLOCK).min(sizes.order);
        (leaf.cols, leaf.panels) = (cols.len(), sizes.panels() - panel);
        self.load_lanes(leaf, panel, number, &cols)?;
        let mut exchanges = Exchanges {
            first,
            strip,
            leaf: number,
            engine: self.engine,
            sums: &mut self.sums,
            rows: &mut self.rows,
            strips: &mut self.strips,
        };
        leaf.factor(&mut self.workers, |one, other| exchanges.run(one, other)).map_err(|stop| stop.behind(first))?;
        let words = leaf.rules.lanes.block_words();
        leaf.triangles[panel * words..][..words].copy_from_slice(&leaf.blocks[..words]);
        self.store_lanes(leaf, first, &cols)?;
        self.publish_lanes(leaf, strip, number)
    }

    fn load_lanes(&mut self, leaf: &mut LaneLeaf, first: usize, number: usize, cols: &Range<usize>) -> Stopped<()> {
        let LuRun { a, problem, engine, sizes, rows, sums, workers, .. } = self;
        let (rules, count) = (leaf.rules, sizes.order - first * BLOCK);
        let mut panels = leaf.panels().zip(first..);
        drive::parallel_for(
            workers,
            |_| panels.next(),
            |Space { scratch, integers }, ((block, _), panel)| {
                let LaneSpace { heads, limbs, lanes, engine: scratch, .. } = LaneSpace::cut(&rules, scratch);
                let own = rows_of(panel, first * BLOCK, count);
                let rows = &rows[first * BLOCK..][own];
                let sums = BlockSums { engine: *engine, residues: sums.residues(panel, number), integers, scratch };
                let eights = Eights { a: *a, problem, rows, cols: cols.clone() };
                eights.load(&rules, block, sums, &mut Gathered { heads, limbs, lanes });
                rules.lanes.transpose(block);
                Ok(())
            },
        )?;
        Ok(())
    }

    /// Rounds the entries of a leaf into the factors.
    fn store_lanes(&mut self, leaf: &LaneLeaf, first: usize, cols: &Range<usize>) -> Stopped<()> {
        let LuRun { problem, rows, factors, growth_bits, workers, sizes, .. } = self;
        let (rules, order, width) = (&leaf.rules, sizes.order, factors.limbs_per_element());
        let (words, rows) = (rules.lanes.block_words(), &rows[first..]);
        let (heads, limbs) = factors.parts_mut();
        let (heads, limbs) = (&mut heads[first * order..], &mut limbs[first * order * width..]);
        let rounder = Rounder { rules, problem };
        let LaneSpace { heads: scratch, limbs: floats, lanes, .. } = LaneSpace::cut(rules, workers[0].scratch);
        let mut space = Gathered { heads: scratch, limbs: floats, lanes };
        for (cell, &row) in rows.iter().enumerate().take(cols.len()) {
            let places = cols.clone().map(|col| FactorPlace { row, col, pivot: None });
            let bits = rounder.run(&leaf.upper, cell, places, &mut space, |lane, head, significand| {
                if lane >= cell {
                    let at = lane * order + row;
                    heads[at] = head;
                    limbs[at * width..][..width].copy_from_slice(significand);
                }
            })?;
            *growth_bits = (*growth_bits).max(bits.saturating_sub(problem.working_bits));
        }
        let columns = heads.chunks_exact_mut(order).zip(limbs.chunks_exact_mut(order * width));
        let mut columns = columns.zip(cols.clone()).enumerate();
        drive::parallel_for(
            workers,
            |_| columns.next(),
            |worker, (cell, ((heads, limbs), col))| {
                let LaneSpace { heads: scratch, limbs: floats, lanes, .. } = LaneSpace::cut(rules, worker.scratch);
                let mut space = Gathered { heads: scratch, limbs: floats, lanes };
                let pivot = Some(rows[cell]);
                for (panel, own) in rows.chunks(BLOCK).enumerate() {
                    let places = own.iter().map(|&row| FactorPlace { row, col, pivot });
                    rounder.run(
                        &leaf.blocks[panel * words..],
                        cell,
                        places,
                        &mut space,
                        |lane, head, significand| {
                            if panel * BLOCK + lane > cell {
                                heads[own[lane]] = head;
                                limbs[own[lane] * width..][..width].copy_from_slice(significand);
                            }
                        },
                    )?;
                }
                Ok(())
            },
        )?;
        Ok(())
    }

    /// The residues of the entries of a leaf below its pivots.
    fn publish_lanes(&mut self, leaf: &LaneLeaf, strip: usize, number: usize) -> Stopped<()> {
        let LuRun { engine, sizes, strips, workers, .. } = self;
        let (engine, rules, words) = (*engine, &leaf.rules, leaf.rules.lanes.block_words());
        let first = (sizes.first_panel(strip) + number) * BLOCK;
        let count = sizes.order - first;
        let places = strips[strip].places(engine, &(number * BLOCK..number * BLOCK + leaf.cols));
        let mut places = places.into_iter().zip(sizes.first_panel(strip)..).skip(number + 1);
        drive::parallel_for(
            workers,
            |_| places.next(),
            |worker, (mut places, panel)| {
                let lanes = rows_of(panel, first, count).len();
                let LaneSpace { heads, limbs, lanes: own, engine: scratch, .. } = LaneSpace::cut(rules, worker.scratch);
                let block = &leaf.blocks[(panel - first / BLOCK) * words..][..words];
                let operand = BlockOperand { engine, rules, lanes, cells: leaf.cols };
                operand.write(block, &mut places, Gathered { heads, limbs, lanes: own }, scratch);
                Ok(())
            },
        )?;
        Ok(())
    }

    /// The rows of `U` of leaf number `number` of strip `above`, in some blocks of the current columns.
    pub(super) fn substitute_lanes(
        &mut self,
        leaf: &LaneLeaf,
        strip: usize,
        above: usize,
        number: usize,
        blocks: Range<usize>,
    ) -> Stopped<()> {
        let LuRun { a, problem, engine, sizes, rows, sums, upper, factors, workers, .. } = self;
        let (engine, order, width, rules) = (*engine, sizes.order, factors.limbs_per_element(), &leaf.rules);
        let (panel, words) = (sizes.first_panel(above) + number, rules.lanes.block_words());
        let rows = &rows[panel * BLOCK..((panel + 1) * BLOCK).min(order)];
        let places = upper.places(engine, &(number * BLOCK..number * BLOCK + rows.len()));
        let (heads, limbs) = factors.parts_mut();
        let columns = heads.chunks_mut(BLOCK * order).zip(limbs.chunks_mut(BLOCK * order * width));
        let columns = columns.enumerate().skip(strip * sizes.width / BLOCK);
        let mut items = places.into_iter().zip(columns).enumerate().skip(blocks.start).take(blocks.len());
        let found = std::sync::Mutex::new((None, 0));
        drive::parallel_for(
            workers,
            |_| items.next(),
            |Space { scratch, integers }, (block, (mut places, (columns, (heads, limbs))))| {
                let LaneSpace { heads: gathered, limbs: floats, block: own, lanes, engine: scratch } =
                    LaneSpace::cut(rules, scratch);
                let mut space = Gathered { heads: gathered, limbs: floats, lanes };
                let cols = columns * BLOCK..((columns + 1) * BLOCK).min(order);
                let lanes = cols.len();
                let residues = sums.residues(panel, block);
                let eights = Eights { a: *a, problem, rows, cols };
                eights.load(rules, own, BlockSums { engine, residues, integers, scratch }, &mut space);
                let triangle = &leaf.triangles[panel * words..][..words];
                let done = UpperBlock { eights, rules, triangle }.finish(own, &mut space, heads, limbs);
                let mut shared = found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                match done {
                    Ok(bits) => shared.1 = shared.1.max(bits.saturating_sub(problem.working_bits)),
                    Err(LuStop::Failed(error)) => return Err(error),
                    Err(other) => shared.0 = Some(other),
                }
                drop(shared);
                BlockOperand { engine, rules, lanes, cells: rows.len() }.write(own, &mut places, space, scratch);
                Ok(())
            },
        )?;
        let (stopped, growth) = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.growth_bits = self.growth_bits.max(growth);
        stopped.map_or(Ok(()), Err)
    }
}
