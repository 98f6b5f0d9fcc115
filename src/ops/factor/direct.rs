//! The path of small orders, where tiles of residues cost more than they save: the integers of the factorisation on the
//! calling thread, in one tile of digits where the kernel has such tiles, else one after the other on limbs.
//!
//! The same rules as on other tiles (`math::pivot`), so the same bits; no task graph, no threads, one block of memory.
//! A matrix that is not positive definite is left to the factorisation by definition, which makes its error.

use crate::context::{Context, Progress, Workspace, WorkspaceNeeds};
use crate::error::Result;
use crate::kernels::entries::{self, Widths};
use crate::kernels::limbs;
use crate::kernels::rounding::{EntryRounding, scratch_words};
use crate::kernels::tiles::{EightEntries, PANEL_ROWS, PanelColumn, TileEngine, TilePart, TileShape, TileSource};
use crate::math::float::Head;
use crate::math::pivot::RowWeight;
use crate::matrix::{EntryIndex, Matrix, check_exponent};
use crate::ops::factor::lanes::{LaneLayout, Rounded};
use crate::ops::factor::options::CholeskyOptions;
use crate::ops::factor::problem::FactorInput;
use crate::store::Buffer;
use bytemuck::cast_slice_mut;
use std::sync::Arc;

/// The kernel name in reports of this path.
pub(crate) const NAME: &str = "direct";

/// Rows up to which tiles cost more, for numbers of few limbs and, below, for numbers of many.
const MOST_ROWS: usize = 12;
const MOST_ROWS_OF_LONG: usize = 10;

/// Limbs of an entry of the factor from which on numbers count as long: products on limbs become slower than tiles.
const LONG_LIMBS: usize = 12;

/// Rows up to which one thread in lanes is faster than tiles, where tiles are not requested.
const MOST_ROWS_IN_LANES: usize = 128;

/// The layout of a factor's entries.
#[derive(Clone)]
enum FactorLayout {
    /// In one tile of a kernel that has tiles for few rows.
    Tile(Arc<dyn TileEngine>),
    Lanes(LaneLayout),
    Limbs(Widths),
}

impl FactorLayout {
    /// Without tiles.
    fn entry_by_entry(order: usize, working_bits: u32) -> FactorLayout {
        LaneLayout::new(order, working_bits)
            .map_or_else(|| FactorLayout::Limbs(Widths::new(working_bits)), FactorLayout::Lanes)
    }

    /// Words of all entries, and of the scratch that makes them.
    fn words(&self, order: usize, precision_bits: u32) -> usize {
        match self {
            // The shifts of rows and columns.
            FactorLayout::Tile(engine) => {
                2 * order + engine.tile_words(tile_shape(order)) + scratch_words(&**engine, order, precision_bits)
            }
            FactorLayout::Lanes(lanes) => lanes.words(),
            // A sign each.
            FactorLayout::Limbs(widths) => {
                order * order * (widths.entry + 1) + widths.rest + 2 * widths.entry + widths.quotient()
            }
        }
    }
}

/// All rows of a factor as one tile.
fn tile_shape(order: usize) -> TileShape {
    TileShape { rows: order, cols: order, diagonal: true }
}

/// A factorisation on this path, for a given order and working precision.
pub(crate) struct Direct {
    layout: FactorLayout,
    order: usize,
}

impl Direct {
    /// The path where it is the fastest, and where neither tiles nor devices are requested.
    pub fn choose(ctx: &Context, order: usize, working_bits: u32, options: &CholeskyOptions) -> Option<Direct> {
        if options.tile_rows.is_some() || !ctx.devices().is_empty() {
            return None;
        }
        let kernel = ctx.kernel();
        let on_limbs = if Widths::new(working_bits).entry < LONG_LIMBS { MOST_ROWS } else { MOST_ROWS_OF_LONG };
        let most_on_limbs = kernel.most_rows_on_limbs(working_bits);
        let other = || FactorLayout::entry_by_entry(order, working_bits);
        if order <= on_limbs.min(most_on_limbs) {
            return Some(Direct { layout: other(), order });
        }
        // A forced kernel keeps its tiles, and the driver of these.
        if ctx.forced_kernel().is_some() {
            return None;
        }
        // A kernel with tiles of its own for few rows has measured them against limbs.
        let layout = match most_on_limbs {
            usize::MAX if order <= MOST_ROWS_IN_LANES => {
                Some(other()).filter(|layout| matches!(layout, FactorLayout::Lanes(_)))
            }
            usize::MAX => None,
            _ if order <= kernel.most_rows_in_one_tile(working_bits) => {
                Some(FactorLayout::Tile(ctx.small_tile_engine(working_bits)))
            }
            _ => None,
        };
        layout.map(|layout| Direct { layout, order })
    }

    /// The variant that takes least memory, regardless of its time; none where tiles, a kernel or devices are
    /// requested.
    pub fn least(ctx: &Context, order: usize, working_bits: u32, options: &CholeskyOptions) -> Option<Direct> {
        let is_asked = options.tile_rows.is_some() || ctx.forced_kernel().is_some() || !ctx.devices().is_empty();
        (!is_asked).then(|| Direct { layout: FactorLayout::Limbs(Widths::new(working_bits)), order })
    }

    /// Bytes of the factor, and of the scratch for its entries.
    pub fn bytes(&self, precision_bits: u32) -> u64 {
        let words = Buffer::bytes_for(self.layout.words(self.order, precision_bits));
        let lists = (self.order * (2 * size_of::<RowWeight>() + size_of::<i64>())) as u64;
        Matrix::bytes_for(self.order, self.order, precision_bits) + words + lists
    }

    /// Factors `input`, in `memory` of the factor's shape and precision if there is some; `None` where a pivot is not
    /// positive. Memory in addition to the factor comes from the workspace.
    ///
    /// # Errors
    /// [`crate::Error::ExponentRange`] with the place in the matrix; [`crate::Error::Cancelled`];
    /// [`crate::Error::OutOfMemory`].
    pub fn factor(&self, ctx: &Context, input: FactorInput<'_>, memory: Option<Matrix>) -> Result<Option<Matrix>> {
        let problem = input.problem;
        let order = problem.order;
        ctx.report_progress(Progress::new("factor", 0, order as u64))?;
        let mut workspace = ctx.workspace();
        let operand_bytes = Buffer::bytes_for(self.layout.words(order, problem.precision_bits));
        let planned_bytes = self.bytes(problem.precision_bits);
        workspace.trim(ctx.memory(), &WorkspaceNeeds { operand_bytes, planned_bytes, ..WorkspaceNeeds::default() });
        let mut factor = memory.map_or_else(|| Matrix::zeros(order, order, problem.precision_bits), Ok)?;
        factor.clear_above_diagonal();
        Ok(self.layout.fill(input, &mut workspace, &mut factor)?.then_some(factor))
    }
}

impl FactorLayout {
    /// Fills in the factor; returns whether all pivots are positive.
    fn fill(&self, input: FactorInput<'_>, workspace: &mut Workspace, factor: &mut Matrix) -> Result<bool> {
        let problem = input.problem;
        let Workspace { operands, weights: [weights, _], .. } = workspace;
        weights.clone_from(&problem.weights);
        let words = operands.words(self.words(problem.order, problem.precision_bits))?;
        match self {
            FactorLayout::Tile(engine) => fill_tile(input, &**engine, weights, words, factor),
            FactorLayout::Lanes(lanes) => lanes.factor(input, weights, words, factor),
            FactorLayout::Limbs(_) => fill_on_limbs(input, weights, words, factor),
        }
    }
}

/// The same in one tile.
fn fill_tile(
    FactorInput { problem, lower }: FactorInput<'_>,
    engine: &dyn TileEngine,
    weights: &mut [RowWeight],
    words: &mut [u64],
    factor: &mut Matrix,
) -> Result<bool> {
    let (order, bits, shape) = (problem.order, i64::from(problem.working_bits), tile_shape(problem.order));
    let (shifts, words) = words.split_at_mut(2 * order);
    let (row_shifts, col_shifts) = cast_slice_mut::<u64, i64>(shifts).split_at_mut(order);
    for ((row, col), exponent) in row_shifts.iter_mut().zip(&mut *col_shifts).zip(&problem.exponents) {
        (*row, *col) = (2 * bits - exponent, -exponent);
    }
    let (words, scratch) = words.split_at_mut(engine.tile_words(shape));
    let (rows, cols, part) = (0..order, 0..order, TilePart::Lower);
    engine.load(&TileSource { matrix: lower, part, rows, cols, row_shifts, col_shifts }, words, scratch);
    if engine.factor_whole(shape, words, weights, scratch).is_err() {
        return Ok(false);
    }
    let (precision_bits, width) = (factor.precision_bits(), factor.limbs_per_element());
    let rounding = EntryRounding::new(engine.entry_form(), precision_bits);
    let (magnitudes, scratch) = scratch.split_at_mut(engine.entry_form().words());
    let (heads, limbs) = factor.parts_mut();
    for col in 0..order {
        for panel in col / PANEL_ROWS..shape.panels() {
            let signs = engine.entries_in_form(shape, words, PanelColumn { panel, col }, magnitudes);
            let start = panel * PANEL_ROWS;
            let exponent = |lane: usize| problem.exponents.get(start + lane).map_or(0, |exponent| exponent - bits);
            let eight = EightEntries { magnitudes, signs, exponents: std::array::from_fn(exponent) };
            let rows = start.max(col)..(start + PANEL_ROWS).min(order);
            let at = col * order + rows.start..col * order + rows.end;
            let limbs = &mut limbs[at.start * width..at.end * width];
            rounding.round(&eight, rows.start - start..rows.end - start, &mut heads[at], limbs, scratch);
            for row in rows {
                check_exponent(Head(heads[col * order + row]).exponent(), row, col)?;
            }
        }
    }
    Ok(true)
}

/// The same on limbs.
fn fill_on_limbs(
    input: FactorInput<'_>,
    weights: &mut [RowWeight],
    words: &mut [u64],
    factor: &mut Matrix,
) -> Result<bool> {
    let problem = input.problem;
    let (order, widths) = (problem.order, Widths::new(problem.working_bits));
    let (entries, rest) = words.split_at_mut(order * order * (widths.entry + 1));
    let (rest, space) = rest.split_at_mut(widths.rest);
    let mut rows = FactorRows { input, widths, entries };
    let mut out = Rounded { problem, factor };
    for col in 0..order {
        for (row, weight) in weights.iter_mut().enumerate().skip(col) {
            let (place, is_rejected) = (EntryIndex { row, col }, weight.is_rejected());
            if row == col && is_rejected {
                return Ok(false);
            }
            let mut negative = false;
            if is_rejected {
                rows.set(place, false, &[]); // its memory is not clear
            } else {
                rows.reduce(place, rest, &mut space[..2 * widths.entry]);
                negative = limbs::to_magnitude(rest);
                let space = &mut space[2 * widths.entry..];
                if row > col {
                    rows.divide(place, negative, rest, space, weight);
                } else if negative || !rows.root(col, rest, space) {
                    return Ok(false);
                }
            }
            out.set(place, negative, rows.get(place).1)?;
        }
    }
    Ok(true)
}

/// The entries of the factor so far, row by row: for each a word that is not 0 for a negative one, and its limbs.
struct FactorRows<'a> {
    input: FactorInput<'a>,
    widths: Widths,
    entries: &'a mut [u64],
}

impl FactorRows<'_> {
    fn start(&self, row: usize, col: usize) -> usize {
        (row * self.input.problem.order + col) * (self.widths.entry + 1)
    }

    /// Whether an entry is negative, and its magnitude.
    fn get(&self, place: EntryIndex) -> (bool, &[u64]) {
        let words = &self.entries[self.start(place.row, place.col)..][..self.widths.entry + 1];
        (words[0] != 0, &words[1..])
    }

    /// Sets an entry to a magnitude that fits.
    fn set(&mut self, place: EntryIndex, negative: bool, magnitude: &[u64]) {
        let start = self.start(place.row, place.col);
        let words = &mut self.entries[start..][..self.widths.entry + 1];
        words[0] = u64::from(negative);
        let count = magnitude.len().min(self.widths.entry);
        words[1..=count].copy_from_slice(&magnitude[..count]);
        words[count + 1..].fill(0);
    }

    /// An entry of the matrix less the products of the previous columns, in two's complement.
    fn reduce(&self, place: EntryIndex, rest: &mut [u64], product: &mut [u64]) {
        self.input.scaled_limbs(place, rest);
        let EntryIndex { row, col } = place;
        let each = self.widths.entry + 1;
        let (left, right) = (&self.entries[self.start(row, 0)..], &self.entries[self.start(col, 0)..]);
        for (left, right) in left.chunks_exact(each).zip(right.chunks_exact(each)).take(col) {
            limbs::add_product(rest, &left[1..], &right[1..], left[0] == right[0], product);
        }
    }

    /// The square root of the reduced pivot, rounded to nearest; returns whether the pivot is positive.
    fn root(&mut self, col: usize, rest: &[u64], space: &mut [u64]) -> bool {
        let Some(root) = entries::root(rest, space) else { return false };
        self.set(EntryIndex { row: col, col }, false, root);
        true
    }

    /// The reduced entry divided by the pivot of its column; rejects the row where the quotient is too large.
    fn divide(&mut self, place: EntryIndex, negative: bool, rest: &[u64], space: &mut [u64], weight: &mut RowWeight) {
        let pivot = EntryIndex { row: place.col, col: place.col };
        let quotient = entries::quotient(rest, self.get(pivot).1, space);
        weight.add_limbs(quotient, self.input.problem.working_bits);
        let kept = if weight.is_rejected() { &[] } else { quotient };
        self.set(place, negative, kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::factor::problem::{FactorProblem, working_bits};
    use crate::ops::factor::reference;
    use crate::testing::effort;
    use rug::{Float, Integer, rand::RandState};

    /// A symmetric matrix of random entries of at most 1 with `diagonal` on it; some are 0, some tiny.
    fn random(order: usize, bits: u32, diagonal: f64, rng: &mut RandState<'_>) -> Matrix {
        let mut a = Matrix::zeros(order, order, bits).unwrap();
        for (row, col) in (0..order).flat_map(|row| (0..=row).map(move |col| (row, col))) {
            let down = [0, 0, 3, bits, 2 * bits + 5][rng.below(5) as usize] as i32;
            let value = Float::with_val(bits, Float::random_bits(rng)) - 0.5f64;
            let value = if row == col { value + diagonal } else { value >> down };
            let value = if rng.below(7) == 0 && row != col { Float::new(bits) } else { value };
            a.set_float(row, col, &value).unwrap();
        }
        a
    }

    /// The path of processors without lanes, in memory that is not clear; whether there is a factor.
    fn by_limbs(input: FactorInput<'_>) -> (bool, Matrix) {
        let problem = input.problem;
        let widths = Widths::new(problem.working_bits);
        let mut words = vec![0xdead_beef; FactorLayout::Limbs(widths).words(problem.order, problem.precision_bits)];
        let mut factor = Matrix::zeros(problem.order, problem.order, problem.precision_bits).unwrap();
        let mut weights = problem.weights.clone();
        let done = fill_on_limbs(input, &mut weights, &mut words, &mut factor).unwrap();
        (done, factor)
    }

    #[test]
    fn factors_are_those_of_the_definition() {
        let mut rng = RandState::new();
        rng.seed(&Integer::from(11));
        let (mut factored, mut refused) = (0, 0);
        let (ctx, mut workspace) = (Context::new().unwrap(), Workspace::default());
        // Each order with each precision and number of extra bits.
        let cases = 570 * effort() as u32;
        for case in 0..cases {
            let order = if case % 50 == 49 { 70 } else { (case % 19) as usize };
            let bits = [2, 20, 62, 63, 64, 126, 127, 256, 510, 1000][(case / 19 % 10) as usize];
            let extra = [0, 8, 200][(case % 3) as usize];
            let diagonal = [0.6, 1.2, 4.0][(case / 5 % 3) as usize];
            let a = random(order, bits.max(12), diagonal, &mut rng);
            let problem = FactorProblem::new(a.view(), bits, working_bits(bits, 11_000).unwrap() + extra).unwrap();
            let mut got = Matrix::zeros(problem.order, problem.order, bits).unwrap();
            let input = FactorInput { problem: &problem, lower: a.view() };
            let want = reference::factor(input).map(|rows| rows.to_matrix(&problem).unwrap());
            let layout = FactorLayout::entry_by_entry(problem.order, problem.working_bits);
            let done = layout.fill(input, &mut workspace, &mut got).unwrap();
            let (done_on_limbs, on_limbs) = by_limbs(input);
            assert_eq!((done, done_on_limbs), (want.is_ok(), want.is_ok()), "{order} rows, {bits} bits");
            let mut in_tile = Matrix::zeros(problem.order, problem.order, bits).unwrap();
            let tile = FactorLayout::Tile(ctx.kernel().small_tile_engine(problem.working_bits));
            let done_in_tile = tile.fill(input, &mut workspace, &mut in_tile).unwrap();
            assert_eq!(done_in_tile, want.is_ok(), "{order} rows, {bits} bits");
            assert!(want.as_ref().map_or(true, |want| in_tile == *want), "{order} rows, {bits} bits");
            if let Ok(want) = want {
                assert!(got == want && on_limbs == want, "{order} rows, {bits} bits");
            }
            factored += u32::from(done);
            refused += u32::from(!done);
        }
        assert!(factored > cases / 5 && refused > cases / 5, "{factored} factored, {refused} refused");
    }

    #[test]
    fn roots_and_entries_just_below_one_are_rounded_up() {
        for bits in [62, 126, 254] {
            let mut a = Matrix::zeros(2, 2, 3 * bits).unwrap();
            let below = Float::with_val(3 * bits, 1) - (Float::with_val(3 * bits, 1) >> (2 * bits + 40));
            (0..2).for_each(|i| a.set_float(i, i, &below).unwrap());
            let problem = FactorProblem::new(a.view(), bits, working_bits(bits, 11_000).unwrap()).unwrap();
            assert_eq!(problem.working_bits % 64, 0);
            let mut got = Matrix::zeros(2, 2, bits).unwrap();
            let layout = FactorLayout::entry_by_entry(2, problem.working_bits);
            let input = FactorInput { problem: &problem, lower: a.view() };
            assert!(layout.fill(input, &mut Workspace::default(), &mut got).unwrap());
            assert!(got == Matrix::identity(2, bits).unwrap());
        }
    }
}
