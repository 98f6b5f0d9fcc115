//! Accuracy entry by entry of a factorisation: how many bits it takes beyond those of norm-wise accuracy, and whether
//! the factor keeps the promise.
//!
//! Entry `(i, j)` of `A - L L^T` is one rounding of `T_ij` and one of the quotient: small relative to the norms of two
//! rows. It is small relative to `(|L| |L^T|)_ij` where the largest of the sum's terms does not lie too far below these
//! norms; the product of the factor's exponents in the (max, +) semiring shows how far. Before the factorisation the
//! entries of `A` show it, except in places where they are 0 and the factor is not.
//! Source: docs/ALGORITHM.md, "Componentwise accuracy of Cholesky factors".

use crate::comm::{Reduction, Transport, agreed};
use crate::context::Context;
use crate::error::Result;
use crate::kernels::max_plus::{self, DepthRow, PANEL, Spread};
use crate::math::bound::{COMMON_WORKING_BITS, RANGE_STEP_BITS, ceil_log2, cholesky_range_bits, cholesky_working_bits};
use crate::math::float::Head;
use crate::matrix::{EntryIndex, Matrix, MatrixView};
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::distribution::rect::Rect;
use crate::ops::factor::problem::{FactorInput, FactorProblem};
use crate::ops::product::entrywise::{Depths, triangle_bytes};
use crate::ops::product::problem::{Accuracy, OperandRows};
use crate::ops::product::scale::NormPass;
use crate::site::Site;
use crate::store::zeroed;
use std::ops::Range;

/// Factorisations with more bits after the first one: fill-in may decay exponentially, and no number of bits is enough.
const MAXIMUM_REPEATS: u32 = 3;

/// The largest number of bits beyond those of the norms that a factorisation takes, where they are more than three
/// times the precision: work and memory grow with them.
const LEAST_CAP_BITS: u32 = 1024;

/// Depths of entries from this one on count as equal, as those of sums do.
const MOST_DEPTH: u32 = 2 * max_plus::DEEPEST.unsigned_abs() as u32;

/// Rows from which the check takes all threads: below, waking them takes longer.
const ROWS_OF_THREADS: usize = 256;

/// The bits of a factorisation beyond those of the norms, from one try to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RangeBits {
    /// Bits of the try under way.
    pub bits: u32,
    /// Tries before it.
    pub repeats: u32,
    most: u32,
}

impl RangeBits {
    /// The bits of a first try: those for a matrix of `order` rows whose entries, and those of its factor, are of
    /// similar size, at least `least_bits`.
    pub fn first(order: usize, precision_bits: u32, least_bits: u32) -> RangeBits {
        let most = COMMON_WORKING_BITS.saturating_sub(cholesky_working_bits(0)).saturating_sub(precision_bits);
        let most = most.min(precision_bits.saturating_mul(3).max(LEAST_CAP_BITS)) / RANGE_STEP_BITS * RANGE_STEP_BITS;
        let bits = (ceil_log2(order).div_ceil(2) + 2).next_multiple_of(RANGE_STEP_BITS).min(most);
        RangeBits { bits, repeats: 0, most }.at_least(least_bits)
    }

    /// The bits of a first try for that accuracy; `None` by norms.
    pub fn for_accuracy(accuracy: Accuracy, order: usize, precision_bits: u32, least_bits: u32) -> Option<RangeBits> {
        (accuracy == Accuracy::Entrywise).then(|| RangeBits::first(order, precision_bits, least_bits))
    }

    /// These bits, but at least `bits`, up to the largest number of bits.
    pub fn at_least(self, bits: u32) -> RangeBits {
        RangeBits { bits: self.bits.max(bits.min(self.most).next_multiple_of(RANGE_STEP_BITS)).min(self.most), ..self }
    }

    /// Enough for a matrix of which some entry lies `deepest` bits below the norms of its rows; unchanged where no try
    /// has as many.
    pub fn for_depth(self, deepest: u32) -> RangeBits {
        self.raised(deepest).unwrap_or(self)
    }

    /// The next try after one that would have needed `needed` bits; `None` where it had them, or there is none.
    pub fn next(self, needed: u32) -> Option<RangeBits> {
        let repeats = self.repeats + 1;
        let next = self.raised(needed).filter(|next| next.bits > self.bits && repeats <= MAXIMUM_REPEATS);
        next.map(|next| RangeBits { repeats, ..next })
    }

    fn raised(self, bits: u32) -> Option<RangeBits> {
        (bits <= self.most).then(|| self.at_least(bits))
    }
}

/// The depth of an entry, the number of bits by which it is smaller than the product of its rows' norms, at most the
/// depth that counts as deepest; `None` for 0.
fn entry_depth(problem: &FactorProblem, EntryIndex { row, col }: EntryIndex, head: Head) -> Option<u32> {
    let depth = problem.exponents[row] + problem.exponents[col] - head.exponent();
    (!head.is_zero()).then(|| depth.clamp(0, MOST_DEPTH.into()) as u32)
}

/// The largest depth of an entry below its rows' norms.
pub(crate) fn deepest_entry(FactorInput { problem, lower }: FactorInput<'_>) -> u32 {
    let Spread { least, .. } = problem.spread(&lower);
    if least == i64::MAX { 0 } else { (-least).clamp(0, MOST_DEPTH.into()) as u32 }
}

/// The bits that an entry of a factor needs beyond those of the norms: its largest term lies `depth` bits below them
/// (`None` where all terms are 0), the pivot of its column `pivot` bits, and the entry of the matrix `own` bits.
fn entry_bits(depth: Option<u32>, pivot: u32, own: impl FnOnce() -> Option<u32>, is_diagonal: bool) -> u32 {
    match depth {
        Some(depth) => cholesky_range_bits(-i64::from(pivot), depth, is_diagonal),
        // All terms are 0: so is the residual, unless the entry itself was lost.
        None => own().map_or(0, |depth| depth + 1),
    }
}

/// Bytes of [`needed_bits`].
pub(crate) fn check_bytes(order: usize) -> u64 {
    if order <= PANEL { 0 } else { triangle_bytes(order) }
}

/// The number of bits beyond those of the norms with which `|A - L L^T|_ij <= 2^(2 - b) (|L| |L^T|)_ij` holds for every
/// entry of this factor of `A`, if the factorisation had at least as many. If the factorisation had `enough` bits, and
/// these suffice, the result is some number up to `enough`: often a few terms of each sum prove that they suffice.
///
/// # Errors
/// [`crate::Error::OutOfMemory`].
pub(crate) fn needed_bits(ctx: &Context, input: FactorInput<'_>, factor: &Matrix, enough: u32) -> Result<u32> {
    let FactorInput { problem, lower } = input;
    let order = problem.order;
    let pivot = |col: usize| max_plus::depth(factor.get(col, col).head, problem.exponents[col]).unsigned_abs();
    let pivots = (0..order).map(|col| pivot(col).into()).collect::<Vec<u32>>();
    let needs = |EntryIndex { row, col }: EntryIndex, depth: Option<u32>| {
        let own = || entry_depth(problem, EntryIndex { row, col }, lower.head(row, col));
        entry_bits(depth, pivots[col], own, row == col)
    };
    if order <= PANEL {
        let mut needed = 0;
        one_panel(&factor.view(), &problem.exponents, |place, depth| needed = needed.max(needs(place, depth)));
        return Ok(needed);
    }
    let workers = if order < ROWS_OF_THREADS { 1 } else { ctx.threads() };
    let pass = NormPass::one_process(ctx, workers);
    let blocks = [factor.transposed()];
    let rows = OperandRows { blocks: &blocks, shifts: &problem.exponents };
    // An entry needs no more than `enough` bits if its largest term is no smaller than this.
    let least = pivots.iter().map(|&pivot| 1 - i16::try_from(enough + pivot).unwrap_or(i16::MAX)).collect::<Vec<_>>();
    let check = Check { depths: Depths::of_upper(&pass, &rows)?, least: &least, needs: &needs };
    let mut needed = vec![0; order.div_ceil(PANEL)];
    pass.each_group(1, &mut needed, |first, needed| {
        needed.iter_mut().zip(first..).for_each(|(needed, col)| *needed = check.columns(col));
    });
    Ok(needed.into_iter().max().unwrap_or(0))
}

/// The check of a factor, whose rows are taken in panels of 32.
struct Check<'a> {
    depths: Depths,
    /// For each column, the size of a term that shows an entry there to have enough bits.
    least: &'a [i16],
    /// The bits that an entry needs, by its place and the depth of its largest term.
    needs: &'a (dyn Fn(EntryIndex, Option<u32>) -> u32 + Sync),
}

impl Check<'_> {
    /// The bits that the entries in a panel of columns need.
    fn columns(&self, col: usize) -> u32 {
        (col..self.least.len().div_ceil(PANEL)).map(|row| self.pair(row, col)).max().unwrap_or(0)
    }

    /// The bits that the entries in a panel of rows and one of columns need; 0 where the terms of the panel's own
    /// columns show that these are enough.
    fn pair(&self, row: usize, col: usize) -> u32 {
        let (left, right) = (self.depths.panel(row), self.depths.panel(col));
        let (left, rest) = (&left[..right.len()], right.len() - PANEL.min(right.len()));
        let (rows, cols) = (row * PANEL, col * PANEL);
        let least = &self.least[cols..self.least.len().min(cols + PANEL)];
        let count = PANEL.min(self.least.len() - rows);
        let mut sums = [[max_plus::EMPTY; PANEL]; PANEL];
        max_plus::raise_sums(&left[rest..], &right[rest..], &mut sums);
        let wanted = |at: usize| if row == col { at + 1 } else { least.len() };
        let has_enough = |(at, sums): (usize, &DepthRow)| sums[..wanted(at)].iter().zip(least).all(|(a, b)| a >= b);
        if sums[..count].iter().enumerate().all(has_enough) {
            return 0;
        }
        max_plus::raise_sums(&left[..rest], &right[..rest], &mut sums);
        let needs = |(at, sums): (usize, &DepthRow)| {
            let told = |sum: i16| (sum != max_plus::EMPTY).then(|| u32::from(sum.unsigned_abs()));
            let places = (cols..).map(|col| EntryIndex { row: rows + at, col });
            sums[..wanted(at)].iter().zip(places).map(|(&sum, place)| (self.needs)(place, told(sum))).max()
        };
        sums[..count].iter().enumerate().filter_map(needs).max().unwrap_or(0)
    }
}

/// [`Depths::visit`] for the rows of a factor that make one panel.
fn one_panel(factor: &MatrixView<'_>, exponents: &[i64], mut see: impl FnMut(EntryIndex, Option<u32>)) {
    let (mut depths, mut sums) = ([[max_plus::EMPTY; PANEL]; PANEL], [[max_plus::EMPTY; PANEL]; PANEL]);
    let order = exponents.len();
    for (col, depths) in depths[..order].iter_mut().enumerate() {
        for (row, depth) in depths[..order].iter_mut().enumerate().skip(col) {
            *depth = max_plus::depth(factor.head(row, col), exponents[row]);
        }
    }
    max_plus::largest_sums(&depths[..order], &depths[..order], &mut sums);
    for row in 0..order {
        for (col, &sum) in sums[row][..=row].iter().enumerate() {
            see(EntryIndex { row, col }, (sum != max_plus::EMPTY).then(|| u32::from(sum.unsigned_abs())));
        }
    }
}

// Over ranks the factor is not gathered. Blocks of columns of the exponents go to all ranks, one after the other. Each
// rank has a share of the sums: of 32 rows by 32 rows, in turn. One maximum over the ranks decides.

/// Columns whose exponents all ranks have at a time: whole panels.
const COLUMNS: usize = 256;

/// Depths in a word that travels.
const DEPTHS_IN_WORD: usize = 4;

/// The sums of a panel of rows with one of columns.
type PanelSums = [DepthRow; PANEL];

/// Bytes of [`needed_bits_over_ranks`] on one rank.
pub(super) fn check_bytes_on_rank(order: usize, ranks: usize) -> u64 {
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
pub(super) fn deepest_entry_over_ranks(world: &dyn Transport, problem: &FactorProblem, a: &DistMatrix) -> Result<u32> {
    let mut deepest = 0;
    each_entry(problem, a, 0..problem.order, |place, head| {
        deepest = deepest.max(entry_depth(problem, place, head).unwrap_or(0));
    });
    let mut word = [u64::from(deepest)];
    world.all_reduce(Reduction::Max, &mut word)?;
    Ok(word[0] as u32)
}

/// The bits beyond those of the norms with which this factor of `a` would be accurate entry by entry, as
/// [`needed_bits`] finds them. Collective.
///
/// # Errors
/// [`Error::OutOfMemory`], [`Error::Transport`].
pub(super) fn needed_bits_over_ranks(
    site: Site<'_>,
    problem: &FactorProblem,
    a: &DistMatrix,
    factor: &DistMatrix,
) -> Result<u32> {
    let world = site.world();
    let mut share = Share::new(problem, world);
    let mut needed = 0;
    for first in (0..problem.order).step_by(COLUMNS) {
        let block = ColumnBlock { first, end: (first + COLUMNS).min(problem.order), order: problem.order };
        let lower =
            block.gather(world, problem, factor, |place, head| max_plus::depth(head, problem.exponents[place.row]))?;
        let entries = block.gather(world, problem, a, |place, head| {
            // At most the deepest depth, which fits.
            entry_depth(problem, place, head).map_or(max_plus::EMPTY, |depth| -(depth as i16))
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
            let depth = of(place, head).abs_diff(max_plus::EMPTY);
            let index = self.index(place);
            words[index / DEPTHS_IN_WORD] |= u64::from(depth) << (16 * (index % DEPTHS_IN_WORD));
        });
        world.all_reduce(Reduction::Sum, &mut words)?;
        let depths = words.iter().flat_map(|word| (0..DEPTHS_IN_WORD).map(move |at| (word >> (16 * at)) as u16));
        Ok(depths.map(|depth| max_plus::EMPTY.wrapping_add_unsigned(depth)).collect())
    }

    /// The depths of the factor by panels of 32 rows from the block's first on, column by column.
    fn panels(&self, lower: &[i16]) -> Vec<DepthRow> {
        let (width, rows) = (self.width(), self.order - self.first);
        let mut panels = vec![[max_plus::EMPTY; PANEL]; rows.div_ceil(PANEL) * width];
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
        Share { problem, sums: own.map(|pair| (pair, [[max_plus::EMPTY; PANEL]; PANEL])).collect() }
    }

    /// Takes in the terms of a block of columns.
    fn raise(&mut self, pass: &NormPass<'_>, block: &ColumnBlock, panels: &[DepthRow]) {
        let (width, first) = (block.width(), block.first / PANEL);
        let panel = |index: usize| &panels[(index - first) * width..][..width];
        // Columns from the diagonal of the pair on are 0 in its rows.
        pass.each_group(16, &mut self.sums, |_, sums| {
            for (pair, sums) in sums.iter_mut().filter(|(pair, _)| pair.col >= first) {
                let count = width.min((pair.col + 1 - first) * PANEL);
                max_plus::raise_sums(&panel(pair.row)[..count], &panel(pair.col)[..count], sums);
            }
        });
    }

    /// The bits that the entries in the columns of a block need; their sums are complete.
    fn needed(&self, block: &ColumnBlock, lower: &[i16], entries: &[i16]) -> u32 {
        let told = |depth: i16| (depth != max_plus::EMPTY).then(|| u32::from(depth.unsigned_abs()));
        let mut needed = 0;
        let inside = |col: usize| (block.first..block.end).contains(&(col * PANEL));
        for (pair, sums) in self.sums.iter().filter(|(pair, _)| inside(pair.col)) {
            for (row, sums) in (pair.row * PANEL..self.problem.order).zip(sums) {
                for (col, &sum) in (pair.col * PANEL..=row.min(block.end - 1)).zip(sums) {
                    let pivot = lower[block.index(EntryIndex { row: col, col })].unsigned_abs();
                    let own = || told(entries[block.index(EntryIndex { row, col })]);
                    needed = needed.max(entry_bits(told(sum), pivot.into(), own, row == col));
                }
            }
        }
        needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rug::rand::RandState;

    /// The bits that a factor needs, entry by entry and term by term.
    fn by_definition(FactorInput { problem, lower }: FactorInput<'_>, factor: &Matrix) -> u32 {
        let depth = |row: usize, col: usize| match max_plus::depth(factor.get(row, col).head, problem.exponents[row]) {
            max_plus::EMPTY => None,
            depth => Some(u32::from(depth.unsigned_abs())),
        };
        let places = (0..problem.order).flat_map(|row| (0..=row).map(move |col| EntryIndex { row, col }));
        let needs = places.map(|place| {
            let EntryIndex { row, col } = place;
            let terms = (0..=col).filter_map(|k| Some(depth(row, k)? + depth(col, k)?));
            let own = || entry_depth(problem, place, lower.head(row, col));
            entry_bits(terms.min(), depth(col, col).unwrap(), own, row == col)
        });
        needs.max().unwrap()
    }

    #[test]
    fn some_terms_show_what_all_terms_do() {
        let ctx = Context::builder().threads(2).build().unwrap();
        let mut rng = RandState::new();
        let mut below = |bound: u32| rng.below(bound);
        for (order, zeros, depth) in [(1, 2, 9), (32, 3, 60), (33, 3, 60), (64, 20, 300), (97, 2, 25), (130, 90, 9)] {
            // Only exponents count: neither is a factor of the other.
            let mut lower = |diagonal: i32| {
                let mut matrix = Matrix::zeros(order, order, 60).unwrap();
                for (row, col) in (0..order).flat_map(|row| (0..=row).map(move |col| (row, col))) {
                    let exponent = if row == col { diagonal } else { 1 + below(depth) as i32 };
                    let value = if row != col && below(100) < zeros { 0.0 } else { 0.3 * 2f64.powi(-exponent) };
                    matrix.set_f64(row, col, value).unwrap();
                }
                matrix
            };
            for diagonal in [1, 4] {
                let (a, factor) = (lower(0), lower(diagonal));
                let problem = FactorProblem::new(a.view(), 50, 52).unwrap();
                let input = FactorInput { problem: &problem, lower: a.view() };
                let exact = by_definition(input, &factor);
                for enough in (0..exact + 9).step_by(1 + exact as usize / 20).chain([exact, exact.max(1) - 1]) {
                    let needed = needed_bits(&ctx, input, &factor, enough).unwrap();
                    let what = format!("{order} rows, {enough} bits of {exact}");
                    if exact > enough {
                        assert_eq!(needed, exact, "{what}")
                    } else {
                        assert!(needed <= enough, "{what}")
                    }
                }
            }
        }
    }
}
