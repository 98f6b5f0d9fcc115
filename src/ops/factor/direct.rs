//! The path of small orders, where tiles of residues cost more than they save: the integers of the factorisation on the
//! calling thread, in one tile of digits where the kernel has such tiles, else one after the other on limbs.
//!
//! The same rules as on other tiles (`math::pivot`), so the same bits; no task graph, no threads, one block of memory.
//! A matrix that is not positive definite is left to the factorisation by definition, which makes its error.

use crate::context::{Context, Progress, Workspace, WorkspaceNeeds};
use crate::error::Result;
use crate::kernels::digit_lanes::{DigitLanes, LANES};
use crate::kernels::entries::{self, Reciprocal, Widths};
use crate::kernels::limbs;
use crate::kernels::rounding::{EntryRounding, scratch_words};
use crate::kernels::tiles::{PanelColumn, TileEngine, TilePart, TileShape, TileSource};
use crate::math::float::{Head, round_integer};
use crate::math::pivot::RowWeight;
use crate::matrix::{EntryIndex, Matrix, check_exponent};
use crate::ops::factor::options::CholeskyOptions;
use crate::ops::factor::problem::{FactorInput, FactorProblem};
use crate::ops::factor::tile_work::{ColumnOfTile, TileRounding};
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
    let (precision_bits, width, form) = (factor.precision_bits(), factor.limbs_per_element(), engine.entry_form());
    let (first, rounding) = (EntryIndex { row: 0, col: 0 }, EntryRounding::new(form, precision_bits));
    let rounding = TileRounding { shape, first, form, rounding, working_bits: problem.working_bits, row_shifts };
    let mut entries = |at: PanelColumn, magnitudes: &mut [u64]| engine.entries_in_form(shape, words, at, magnitudes);
    let (heads, limbs) = factor.parts_mut();
    for col in 0..order {
        let (heads, limbs) = (&mut heads[col * order..][..order], &mut limbs[col * order * width..][..order * width]);
        rounding.column(&mut entries, ColumnOfTile { col, heads, limbs, precision_bits }, scratch)?;
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

// A factor column by column in digits, where this processor multiplies digits in lanes. Four rows of the factor lie
// side by side in a panel, so that a column's sums of products are made for four rows at a time; a reduced entry is
// divided by its pivot as a product with the reciprocal.

/// The memory layout of a factor of one order and length.
#[derive(Clone, Copy)]
struct LaneLayout {
    lanes: DigitLanes,
    widths: Widths,
    order: usize,
    working_bits: u32,
}

impl LaneLayout {
    /// `None` where there are no lanes for numbers of `working_bits` bits.
    pub fn new(order: usize, working_bits: u32) -> Option<LaneLayout> {
        let lanes = DigitLanes::new(working_bits + 1)?;
        Some(LaneLayout { lanes, widths: Widths::new(working_bits), order, working_bits })
    }

    /// Words of the panels and of the scratch for entries.
    pub fn words(&self) -> usize {
        let LaneLayout { lanes, widths, order, working_bits } = *self;
        let panels = order.div_ceil(LANES) * lanes.panel_words(order);
        let quotient = entries::quotient_words(widths, working_bits);
        panels + lanes.sum_words() + 2 * widths.rest + widths.entry + Reciprocal::words(working_bits) + quotient
    }

    /// Factors `input`, with running `weights`, in `words`; returns whether all pivots are positive.
    ///
    /// # Errors
    /// [`crate::Error::ExponentRange`] with the place in the matrix.
    pub fn factor(
        &self,
        input: FactorInput<'_>,
        weights: &mut [RowWeight],
        words: &mut [u64],
        factor: &mut Matrix,
    ) -> Result<bool> {
        let LaneLayout { lanes, widths, order, working_bits } = *self;
        let (panels, words) = words.split_at_mut(order.div_ceil(LANES) * lanes.panel_words(order));
        let (sums, words) = words.split_at_mut(lanes.sum_words());
        let (rest, words) = words.split_at_mut(widths.rest);
        let (sum, words) = words.split_at_mut(widths.rest);
        let (pivot, words) = words.split_at_mut(widths.entry);
        let (reciprocal, space) = words.split_at_mut(Reciprocal::words(working_bits));
        let mut columns = FactorColumns { layout: self, input, panels, sums, rest, sum };
        let mut out = Rounded { problem: input.problem, factor };
        for col in 0..input.problem.order {
            let pivot_place = EntryIndex { row: col, col };
            let weight = &weights[col];
            columns.multiply(col, col / LANES);
            if weight.is_rejected() || columns.reduce(pivot_place) {
                return Ok(false);
            }
            let Some(root) = entries::root(columns.rest, space) else { return Ok(false) };
            let count = root.len().min(pivot.len());
            pivot[..count].copy_from_slice(&root[..count]);
            pivot[count..].fill(0);
            columns.set(pivot_place, false, pivot);
            out.set(pivot_place, false, pivot)?;
            let reciprocal = Reciprocal::new(pivot, working_bits, reciprocal);
            for (row, weight) in weights.iter_mut().enumerate().skip(col + 1) {
                let place = EntryIndex { row, col };
                if row % LANES == 0 {
                    columns.multiply(col, row / LANES);
                }
                if weight.is_rejected() {
                    columns.set(place, false, &[]);
                    out.set(place, false, &[])?;
                    continue;
                }
                let negative = columns.reduce(place);
                let quotient = reciprocal.quotient(columns.rest, pivot, space);
                weight.add_limbs(quotient, working_bits);
                let kept = if weight.is_rejected() { &[] } else { quotient };
                columns.set(place, negative, kept);
                out.set(place, negative, kept)?;
            }
        }
        Ok(true)
    }
}

/// The columns of the factor so far, and the scratch for the next one.
struct FactorColumns<'a> {
    layout: &'a LaneLayout,
    input: FactorInput<'a>,
    /// For each four rows of the factor the columns so far.
    panels: &'a mut [u64],
    /// Sums of the current column with the rows of a panel.
    sums: &'a mut [u64],
    rest: &'a mut [u64],
    sum: &'a mut [u64],
}

impl FactorColumns<'_> {
    /// The products of row `col` with the four rows of a panel, over all columns before `col`.
    fn multiply(&mut self, col: usize, panel: usize) {
        let LaneLayout { lanes, order, .. } = *self.layout;
        let words = lanes.panel_words(order);
        let of_panel = |panel: usize| &self.panels[panel * words..][..words];
        lanes.multiply(of_panel(col / LANES), col % LANES, of_panel(panel), col, self.sums);
    }

    /// An entry of the matrix less the products of the previous columns: writes its magnitude to `rest` and returns
    /// whether it is negative.
    fn reduce(&mut self, place: EntryIndex) -> bool {
        self.input.scaled_limbs(place, self.rest);
        self.layout.lanes.sum(self.sums, place.row % LANES, self.sum);
        limbs::subtract_equal(self.rest, self.sum);
        limbs::to_magnitude(self.rest)
    }

    /// Sets an entry of the factor.
    fn set(&mut self, EntryIndex { row, col }: EntryIndex, negative: bool, magnitude: &[u64]) {
        let LaneLayout { lanes, order, .. } = *self.layout;
        let panel = &mut self.panels[row / LANES * lanes.panel_words(order)..];
        lanes.set(&mut panel[col * lanes.row_words()..], row % LANES, negative, magnitude);
    }
}

/// The factor that is rounded into.
struct Rounded<'a> {
    pub problem: &'a FactorProblem,
    pub factor: &'a mut Matrix,
}

impl Rounded<'_> {
    /// Rounds an integer of the factor.
    ///
    /// # Errors
    /// [`crate::Error::ExponentRange`] with the place in the matrix.
    pub fn set(&mut self, EntryIndex { row, col }: EntryIndex, negative: bool, magnitude: &[u64]) -> Result<()> {
        let FactorProblem { order, exponents, working_bits, .. } = self.problem;
        let exponent = exponents[row] - i64::from(*working_bits);
        let (precision_bits, width) = (self.factor.precision_bits(), self.factor.limbs_per_element());
        let (heads, significands) = self.factor.parts_mut();
        let at = row + col * order;
        let out = &mut significands[at * width..][..width];
        let head: Head = round_integer(negative, magnitude, exponent, precision_bits, out);
        check_exponent(head.exponent(), row, col)?;
        heads[at] = head.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::factor::problem::working_bits;
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
