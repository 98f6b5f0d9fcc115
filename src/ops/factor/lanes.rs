//! A factor column by column in digits: the method of `direct` where this processor multiplies digits in lanes.
//!
//! The same integers by the same rules as on limbs, so the same bits. Four rows of the factor lie side by side in a
//! panel, so that a column's sums of products are made for four rows at a time; a reduced entry is divided by its pivot
//! as a product with the reciprocal.

use crate::error::Result;
use crate::kernels::digit_lanes::{DigitLanes, LANES};
use crate::kernels::entries::{self, Reciprocal, Widths};
use crate::kernels::limbs;
use crate::math::float::{Head, round_integer};
use crate::math::pivot::RowWeight;
use crate::matrix::{EntryIndex, Matrix, check_exponent};
use crate::ops::factor::problem::{FactorInput, FactorProblem};

/// How a factor of one order and length lies in memory.
#[derive(Clone, Copy)]
pub(super) struct LaneLayout {
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
pub(super) struct Rounded<'a> {
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
