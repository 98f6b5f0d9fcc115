//! Accuracy entry by entry of a factor in tiles over ranks: the numbers that one process finds, without gathering the
//! factor.
//!
//! Blocks of columns of the exponents go to all ranks, one after the other. Each rank has a share of the sums: of 32
//! rows by 32 rows, in turn. One maximum over the ranks decides.

use crate::comm::{Reduction, Transport, agreed};
use crate::error::Result;
use crate::kernels::max_plus::{DepthRow, EMPTY, PANEL, depth, raise_sums};
use crate::math::float::Head;
use crate::matrix::EntryIndex;
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::distribution::rect::Rect;
use crate::ops::factor::entrywise::{entry_bits, entry_depth};
use crate::ops::factor::problem::FactorProblem;
use crate::ops::product::scale::NormPass;
use crate::site::Site;
use crate::store::zeroed;
use std::ops::Range;

/// Columns whose exponents all ranks have at a time: whole panels.
const COLUMNS: usize = 256;

/// Depths in a word that travels.
const DEPTHS_IN_WORD: usize = 4;

/// The sums of a panel of rows with one of columns.
type PanelSums = [DepthRow; PANEL];

/// Bytes of [`needed_bits`] on one rank.
pub(super) fn check_bytes(order: usize, ranks: usize) -> u64 {
    let panels = order.div_ceil(PANEL) as u64;
    let own = (panels * (panels + 1) / 2).div_ceil(ranks as u64);
    let each = (size_of::<PanelSums>() + size_of::<Pair>()) as u64;
    // The depths of the factor and of the matrix as words, and those of the factor also in panels.
    own * each + 3 * (panels * PANEL as u64) * (COLUMNS.min(order.next_multiple_of(PANEL)) as u64) * 2
}

/// The largest depth of an entry of the matrix below its rows' norms. Collective.
///
/// # Errors
/// [`Error::Transport`].
pub(super) fn deepest_entry(world: &dyn Transport, problem: &FactorProblem, a: &DistMatrix) -> Result<u32> {
    let mut deepest = 0;
    each_entry(problem, a, 0..problem.order, |place, head| {
        deepest = deepest.max(entry_depth(problem, place, head).unwrap_or(0));
    });
    let mut word = [u64::from(deepest)];
    world.all_reduce(Reduction::Max, &mut word)?;
    Ok(word[0] as u32)
}

/// The bits beyond those of the norms with which this factor of `a` would be accurate entry by entry, as
/// `ops::factor::entrywise` finds them. Collective.
///
/// # Errors
/// [`Error::OutOfMemory`], [`Error::Transport`].
pub(super) fn needed_bits(site: Site<'_>, problem: &FactorProblem, a: &DistMatrix, factor: &DistMatrix) -> Result<u32> {
    let world = site.world();
    let mut share = Share::new(problem, world);
    let mut needed = 0;
    for first in (0..problem.order).step_by(COLUMNS) {
        let block = ColumnBlock { first, end: (first + COLUMNS).min(problem.order), order: problem.order };
        let lower = block.gather(world, problem, factor, |place, head| depth(head, problem.exponents[place.row]))?;
        let entries = block.gather(world, problem, a, |place, head| {
            // At most the deepest depth, which fits.
            entry_depth(problem, place, head).map_or(EMPTY, |depth| -(depth as i16))
        })?;
        share.raise(&NormPass::of_ranks(site), &block, &block.panels(&lower));
        needed = needed.max(share.needed(&block, &lower, &entries));
    }
    let mut word = [u64::from(needed)];
    world.all_reduce(Reduction::Max, &mut word)?;
    Ok(word[0] as u32)
}

/// Visits the own entries of the lower triangle in some columns: their places in the matrix, and their heads.
fn each_entry(
    problem: &FactorProblem,
    matrix: &DistMatrix,
    columns: Range<usize>,
    mut see: impl FnMut(EntryIndex, Head),
) {
    for (id, tile) in matrix.tiles().iter().filter(|(id, _)| id.col <= id.row) {
        let Rect { rows, cols } = Rect::of_tile(matrix.map(), *id);
        for col in cols.start.max(columns.start)..cols.end.min(columns.end) {
            for row in rows.start.max(col)..rows.end.min(problem.order) {
                see(EntryIndex { row, col }, tile.get(row - rows.start, col - cols.start).head);
            }
        }
    }
}

/// Some columns of the lower triangle, and the rows from the first of these on.
struct ColumnBlock {
    first: usize,
    end: usize,
    order: usize,
}

impl ColumnBlock {
    /// Places of the depths of a row in a list of all.
    fn width(&self) -> usize {
        (self.end - self.first).next_multiple_of(PANEL)
    }

    fn index(&self, place: EntryIndex) -> usize {
        (place.row - self.first) * self.width() + place.col - self.first
    }

    /// The depths of all entries of the block, row by row, on all ranks. Collective.
    fn gather(
        &self,
        world: &dyn Transport,
        problem: &FactorProblem,
        matrix: &DistMatrix,
        of: impl Fn(EntryIndex, Head) -> i16,
    ) -> Result<Vec<i16>> {
        let count = (self.order - self.first) * self.width();
        let mut words = agreed(world, zeroed::<u64>(count / DEPTHS_IN_WORD))?;
        // Above the value of empty entries, so that a rank without the entry does not change it.
        each_entry(problem, matrix, self.first..self.end, |place, head| {
            let depth = of(place, head).abs_diff(EMPTY);
            let index = self.index(place);
            words[index / DEPTHS_IN_WORD] |= u64::from(depth) << (16 * (index % DEPTHS_IN_WORD));
        });
        world.all_reduce(Reduction::Sum, &mut words)?;
        let depths = words.iter().flat_map(|word| (0..DEPTHS_IN_WORD).map(move |at| (word >> (16 * at)) as u16));
        Ok(depths.map(|depth| EMPTY.wrapping_add_unsigned(depth)).collect())
    }

    /// The depths of the factor by panels of 32 rows from the block's first on, column by column.
    fn panels(&self, lower: &[i16]) -> Vec<DepthRow> {
        let (width, rows) = (self.width(), self.order - self.first);
        let mut panels = vec![[EMPTY; PANEL]; rows.div_ceil(PANEL) * width];
        for (row, depths) in lower.chunks_exact(width).enumerate() {
            let panel = &mut panels[row / PANEL * width..][..width];
            panel.iter_mut().zip(depths).for_each(|(lanes, &depth)| lanes[row % PANEL] = depth);
        }
        panels
    }
}

/// A panel of rows and one of columns, by their numbers.
#[derive(Clone, Copy)]
struct Pair {
    row: usize,
    col: usize,
}

/// The sums of a rank's share.
struct Share<'a> {
    problem: &'a FactorProblem,
    sums: Vec<(Pair, PanelSums)>,
}

impl<'a> Share<'a> {
    fn new(problem: &'a FactorProblem, world: &dyn Transport) -> Share<'a> {
        let panels = problem.order.div_ceil(PANEL);
        let pairs = (0..panels).flat_map(|row| (0..=row).map(move |col| Pair { row, col }));
        let own = pairs.skip(world.rank()).step_by(world.size());
        Share { problem, sums: own.map(|pair| (pair, [[EMPTY; PANEL]; PANEL])).collect() }
    }

    /// Takes in the terms of a block of columns.
    fn raise(&mut self, pass: &NormPass<'_>, block: &ColumnBlock, panels: &[DepthRow]) {
        let (width, first) = (block.width(), block.first / PANEL);
        let panel = |index: usize| &panels[(index - first) * width..][..width];
        // Columns from the diagonal of the pair on are 0 in its rows.
        pass.each_group(16, &mut self.sums, |_, sums| {
            for (pair, sums) in sums.iter_mut().filter(|(pair, _)| pair.col >= first) {
                let count = width.min((pair.col + 1 - first) * PANEL);
                raise_sums(&panel(pair.row)[..count], &panel(pair.col)[..count], sums);
            }
        });
    }

    /// The bits that the entries in the columns of a block need; their sums are complete.
    fn needed(&self, block: &ColumnBlock, lower: &[i16], entries: &[i16]) -> u32 {
        let told = |depth: i16| (depth != EMPTY).then(|| u32::from(depth.unsigned_abs()));
        let mut needed = 0;
        let inside = |col: usize| (block.first..block.end).contains(&(col * PANEL));
        for (pair, sums) in self.sums.iter().filter(|(pair, _)| inside(pair.col)) {
            for (row, sums) in (pair.row * PANEL..self.problem.order).zip(sums) {
                for (col, &sum) in (pair.col * PANEL..=row.min(block.end - 1)).zip(sums) {
                    let pivot = lower[block.index(EntryIndex { row: col, col })].unsigned_abs();
                    let own = told(entries[block.index(EntryIndex { row, col })]);
                    needed = needed.max(entry_bits(told(sum), pivot.into(), own, row == col));
                }
            }
        }
        needed
    }
}
