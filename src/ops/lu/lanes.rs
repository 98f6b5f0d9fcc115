//! The integers of a factorisation in digits of 52 bits, eight rows or eight columns at once, where the processor has
//! the instructions. The same steps as on limbs, and the same bits.

use crate::drive;
use crate::kernels::pivot_lanes::{CellLane, LanePivot, LargestLanes, PivotLanes};
use crate::math::float::limbs_for;
use crate::ops::lu::problem::{Headroom, LuProblem, LuStop, Stopped};
use crate::ops::product::steps::Space;
use crate::plan::{BLOCK, BLOCK_WORDS};
use crate::store::zeroed;

/// The lanes of one factorisation.
#[derive(Clone, Copy)]
pub(super) struct LaneRules {
    pub lanes: PivotLanes,
    /// Limbs of an entry of the matrix.
    source_limbs: usize,
    pub precision_bits: u32,
}

impl LaneRules {
    /// Where the processor has lanes.
    pub fn new(problem: &LuProblem, headroom: &Headroom) -> Option<LaneRules> {
        let entry_bits = problem.working_bits + headroom.growth_bits;
        let lanes = PivotLanes::new(problem.working_bits, entry_bits, headroom.modulus_bits)?;
        Some(LaneRules { lanes, source_limbs: problem.source_limbs, precision_bits: problem.precision_bits })
    }

    /// Words of the scratch of a worker, the kernel's not counted.
    pub fn words(&self) -> usize {
        BLOCK_WORDS * (1 + self.float_limbs())
            + self.lanes.block_words()
            + self.lanes.scratch_words(self.precision_bits)
    }

    /// Limbs of the longest of the floats and entries.
    fn float_limbs(&self) -> usize {
        self.source_limbs.max(self.lanes.entry_limbs()).max(limbs_for(self.precision_bits))
    }
}

/// Scratch of a worker.
pub(super) struct LaneSpace<'s> {
    pub heads: &'s mut [u64],
    pub limbs: &'s mut [u64],
    pub block: &'s mut [u64],
    pub lanes: &'s mut [u64],
    pub engine: &'s mut [u64],
}

impl<'s> LaneSpace<'s> {
    pub fn cut(rules: &LaneRules, scratch: &'s mut [u64]) -> LaneSpace<'s> {
        let (heads, scratch) = scratch.split_at_mut(BLOCK_WORDS);
        let (limbs, scratch) = scratch.split_at_mut(BLOCK_WORDS * rules.float_limbs());
        let (block, scratch) = scratch.split_at_mut(rules.lanes.block_words());
        let (lanes, engine) = scratch.split_at_mut(rules.lanes.scratch_words(rules.precision_bits));
        LaneSpace { heads, limbs, block, lanes, engine }
    }
}

/// The columns of a leaf, from the row of their first pivot on.
pub(super) struct LaneLeaf {
    pub rules: LaneRules,
    pub cols: usize,
    /// Panels of eight rows.
    pub panels: usize,
    /// A block of each panel.
    pub blocks: Vec<u64>,
    /// The signs of the column that comes next, of each panel.
    signs: Vec<u8>,
    /// The entries of `U`: a cell for each row.
    pub upper: Vec<u64>,
    /// Of each leaf the block of the rows of its pivots.
    pub triangles: Vec<u64>,
    largest: Vec<LargestLanes>,
}

/// The pivot of a column, for the rows below it.
struct LaneStep<'a> {
    lanes: &'a PivotLanes,
    col: usize,
    /// Whether there is another column.
    more: bool,
    pivot: &'a LanePivot,
    upper: &'a [u64],
}

impl LaneStep<'_> {
    /// The quotients of a panel, and the magnitudes of its next column.
    fn run(&self, panel: usize, block: &mut [u64], signs: &mut u8, largest: &mut LargestLanes, scratch: &mut [u64]) {
        let LaneStep { lanes, col, more, pivot, upper } = *self;
        lanes.divide(block, col, pivot, [*signs, u8::MAX], scratch);
        if more {
            lanes.subtract(block, col + 1, 0..col + 1, upper, col + 1);
            *signs = lanes.magnitudes(block, col + 1);
            lanes.see(block, col + 1, panel, u8::MAX, largest);
        }
    }
}

/// The lanes behind number `col`.
fn behind(col: usize) -> u8 {
    u8::MAX.checked_shl(col as u32 + 1).unwrap_or(0)
}

impl LaneLeaf {
    /// Bytes for a matrix of `order` rows.
    pub fn bytes(rules: &LaneRules, order: usize, workers: usize) -> u64 {
        let (panels, lanes) = (order.div_ceil(BLOCK), &rules.lanes);
        let words = (2 * panels + 1) * lanes.block_words() + workers * lanes.largest_words();
        (8 * words + panels) as u64 + lanes.pivot_bytes()
    }

    /// A leaf of zeros.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub fn new(rules: LaneRules, order: usize, workers: usize) -> crate::Result<LaneLeaf> {
        let (panels, words) = (order.div_ceil(BLOCK), rules.lanes.block_words());
        Ok(LaneLeaf {
            rules,
            cols: 0,
            panels,
            blocks: zeroed(panels * words)?,
            signs: zeroed(panels)?,
            upper: zeroed(words)?,
            triangles: zeroed(panels * words)?,
            largest: (0..workers).map(|_| LargestLanes::new(rules.lanes.largest_words())).collect(),
        })
    }

    /// The blocks of the panels, and the signs of their columns.
    pub fn panels(&mut self) -> impl Iterator<Item = (&mut [u64], &mut u8)> {
        let words = self.rules.lanes.block_words();
        self.blocks.chunks_exact_mut(words).zip(&mut self.signs).take(self.panels)
    }

    /// Finds the pivots of all columns, as [`super::leaf::Leaf::factor`].
    pub fn factor(&mut self, workers: &mut [Space<'_>], mut exchanged: impl FnMut(usize, usize)) -> Stopped<()> {
        self.upper.fill(0);
        self.first_column(workers)?;
        for col in 0..self.cols {
            let row = LargestLanes::first_largest(&self.largest).unwrap_or(col);
            exchanged(col, row);
            self.swap_rows(col, row);
            let pivot = self.pivot(col, workers[0].scratch)?;
            self.divide_below(col, &pivot, workers)?;
        }
        Ok(())
    }

    fn swap_rows(&mut self, one: usize, other: usize) {
        self.rules.lanes.swap_rows(&mut self.blocks, [one, other]);
        let sign = |signs: &[u8], row: usize| signs[row / BLOCK] >> (row % BLOCK) & 1;
        if sign(&self.signs, one) != sign(&self.signs, other) {
            [one, other].into_iter().for_each(|row| self.signs[row / BLOCK] ^= 1 << (row % BLOCK));
        }
    }

    /// The magnitudes of the first column.
    fn first_column(&mut self, workers: &mut [Space<'_>]) -> Stopped<()> {
        let lanes = self.rules.lanes;
        let mut largest = std::mem::take(&mut self.largest);
        largest.iter_mut().for_each(LargestLanes::clear);
        let mut panels = self.panels().enumerate();
        let mut locals = workers.iter_mut().zip(&mut largest).collect::<Vec<_>>();
        let done = drive::parallel_for(
            &mut locals,
            |_| panels.next(),
            |(_, largest), (panel, (block, signs))| {
                *signs = lanes.magnitudes(block, 0);
                lanes.see(block, 0, panel, u8::MAX, largest);
                Ok(())
            },
        );
        drop(panels);
        self.largest = largest;
        Ok(done?)
    }

    /// The entry of `U` in row and column `col`.
    fn pivot(&mut self, col: usize, scratch: &mut [u64]) -> Stopped<LanePivot> {
        let LaneSpace { block: cell, lanes: space, .. } = LaneSpace::cut(&self.rules, scratch);
        let (lanes, at) = (self.rules.lanes, CellLane { cell: col, lane: col });
        lanes.copy(&self.blocks, col, cell);
        lanes.finish_upper(cell, 0, self.signs[0], 1 << col).map_err(LuStop::Growth)?;
        lanes.set_lane(cell, col, &mut self.upper, at);
        lanes.pivot(&self.upper, at, space).ok_or(LuStop::NoPivot(col))
    }

    /// The quotients of all rows below a pivot, and the magnitudes of the next column.
    fn divide_below(&mut self, col: usize, pivot: &LanePivot, workers: &mut [Space<'_>]) -> Stopped<()> {
        let (rules, lanes) = (self.rules, self.rules.lanes);
        self.largest.iter_mut().for_each(LargestLanes::clear);
        self.divide_first_panel(col, pivot, workers[0].scratch)?;
        let mut largest = std::mem::take(&mut self.largest);
        let upper = std::mem::take(&mut self.upper);
        let step = LaneStep { lanes: &lanes, col, more: col + 1 < self.cols, pivot, upper: &upper };
        let mut panels = self.panels().enumerate().skip(1);
        let mut locals = workers.iter_mut().zip(&mut largest).collect::<Vec<_>>();
        let done = drive::parallel_for(
            &mut locals,
            |_| panels.next(),
            |(worker, largest), (panel, (block, signs))| {
                step.run(panel, block, signs, largest, LaneSpace::cut(&rules, worker.scratch).lanes);
                Ok(())
            },
        );
        drop(panels);
        (self.largest, self.upper) = (largest, upper);
        Ok(done?)
    }

    /// The same for the panel of the pivots, and the entries of `U` in the next column.
    fn divide_first_panel(&mut self, col: usize, pivot: &LanePivot, scratch: &mut [u64]) -> Stopped<()> {
        let LaneSpace { block: cell, lanes: space, .. } = LaneSpace::cut(&self.rules, scratch);
        let (lanes, next) = (self.rules.lanes, col + 1);
        let block = &mut self.blocks[..lanes.block_words()];
        lanes.divide(block, col, pivot, [self.signs[0], behind(col)], space);
        if next == self.cols {
            return Ok(());
        }
        for row in 0..next {
            lanes.copy(block, next, cell);
            let signs = lanes.magnitudes(cell, 0);
            lanes.finish_upper(cell, 0, signs, 1 << row).map_err(LuStop::Growth)?;
            lanes.set_lane(cell, row, &mut self.upper, CellLane { cell: row, lane: next });
            lanes.subtract(block, next, row..row + 1, &self.upper, next);
        }
        self.signs[0] = lanes.magnitudes(block, next);
        lanes.see(block, next, 0, behind(col), &mut self.largest[0]);
        Ok(())
    }
}
