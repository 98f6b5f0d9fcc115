//! The path of tiny sizes, where residues cost more than they save: exact sums of products in digits or on limbs.
//!
//! The same scaled integers, the same exact product and the same rounding as on planes, so the same bits; no engine,
//! no thread, and one block of memory in addition to the result.

use crate::context::{Context, Workspace};
use crate::drive::Meter;
use crate::error::Result;
use crate::kernels::digit_lanes::{DigitLanes, LANES};
use crate::kernels::limbs;
use crate::kernels::row_lanes::{ENTRIES, LaneColumns, RowLanes};
use crate::math::float::{FloatRef, Head, limbs_for, round_shifted};
use crate::matrix::{EntryIndex, MatrixView, MatrixViewMut};
use crate::ops::exact_sum::ExactEntry;
use crate::ops::product::combine::Epilogue;
use crate::ops::product::problem::{Bits, ProductProblem, ProductSize};
use crate::store::Buffer;
use std::ops::Range;

/// The kernel name in reports of this path.
pub(crate) const NAME: &str = "direct";

/// The sign word of an entry that is 0.
const ZERO: u64 = 2;

/// The form of the scaled entries: the first that this processor has.
#[derive(Clone, Copy)]
enum ScaledForm {
    /// Digits, eight rows of a column side by side.
    Rows(RowLanes),
    /// Digits, four columns side by side.
    Panels(DigitLanes),
    /// A sign word and limbs, column by column.
    Limbs,
}

/// Layout of the scaled operands, and the arithmetic of their products.
#[derive(Clone, Copy)]
struct OperandLayout {
    /// Limbs of an entry.
    width: usize,
    contracted: usize,
    left_words: usize,
    right_words: usize,
    form: ScaledForm,
    /// Bits of the result.
    precision_bits: u32,
}

impl OperandLayout {
    /// The fastest, then one that takes no more memory for fewer bits, and no more than limbs where rows are padded.
    fn choices(size: &ProductSize, bits: &Bits) -> [OperandLayout; 2] {
        let of = |form| OperandLayout::new(size, bits, form);
        if let Some(lanes) = RowLanes::new(bits.operand) {
            let (rows, limbs) = (of(ScaledForm::Rows(lanes)), of(ScaledForm::Limbs));
            return [rows, if limbs.bytes() < rows.bytes() { limbs } else { rows }];
        }
        let panels = |lanes: Option<DigitLanes>| of(lanes.map_or(ScaledForm::Limbs, ScaledForm::Panels));
        [panels(DigitLanes::new(bits.operand)), panels(DigitLanes::narrow(bits.operand))]
    }

    /// The one that a plan with `operand_bytes` has room for.
    fn planned(size: &ProductSize, bits: &Bits, operand_bytes: u64) -> OperandLayout {
        let [fast, narrow] = OperandLayout::choices(size, bits);
        if fast.bytes() <= operand_bytes { fast } else { narrow }
    }

    fn new(size: &ProductSize, bits: &Bits, form: ScaledForm) -> OperandLayout {
        let width = limbs_for(bits.operand + 1); // a norm of exactly 2^operand_bits is allowed
        let contracted = size.contracted;
        let words = |columns: usize| match form {
            ScaledForm::Rows(lanes) => columns * lanes.column_words(contracted),
            ScaledForm::Panels(lanes) => columns.div_ceil(LANES) * lanes.panel_words(contracted),
            ScaledForm::Limbs => columns * contracted * (width + 1),
        };
        let right_words = if size.triangle { 0 } else { words(size.cols) };
        OperandLayout {
            width,
            contracted,
            left_words: words(size.rows),
            right_words,
            form,
            precision_bits: bits.result,
        }
    }

    /// Words of all entries, one product, and the sum of products with room for every carry and the sign.
    fn words(&self) -> usize {
        let product = match self.form {
            ScaledForm::Rows(lanes) => lanes.scratch_words(self.precision_bits) + lanes.limbs(),
            ScaledForm::Panels(lanes) => lanes.sum_words() + (2 * self.width + 1),
            ScaledForm::Limbs => 2 * self.width + (2 * self.width + 1),
        };
        self.left_words + self.right_words + product
    }

    fn bytes(&self) -> u64 {
        Buffer::bytes_for(self.words())
    }

    fn panels(&self) -> Option<DigitLanes> {
        if let ScaledForm::Panels(lanes) = self.form { Some(lanes) } else { None }
    }

    fn column(&self, col: usize) -> Range<usize> {
        let words = self.contracted * (self.width + 1);
        col * words..(col + 1) * words
    }
}

/// Bytes of the scaled operands and of one product: in the fastest form, and in one that takes no more memory for fewer
/// bits.
pub(crate) fn operand_bytes(size: &ProductSize, bits: &Bits) -> [u64; 2] {
    OperandLayout::choices(size, bits).map(|layout| layout.bytes())
}

/// Computes the product into `result`, with the shifts of the workspace, in the form that a plan with `operand_bytes`
/// has room for.
///
/// # Errors
/// [`Error::ExponentRange`], [`Error::Cancelled`], [`Error::OutOfMemory`].
pub(crate) fn run(
    ctx: &Context,
    problem: &ProductProblem<'_>,
    bits: &Bits,
    operand_bytes: u64,
    workspace: &mut Workspace,
    result: MatrixViewMut<'_>,
) -> Result<()> {
    if problem.size().is_empty() {
        return fill(ctx, problem, result, |_, finish| finish(ExactEntry::ZERO));
    }
    let layout = OperandLayout::planned(&problem.size(), bits, operand_bytes);
    let Workspace { operands, left_shifts, right_shifts, .. } = workspace;
    let (left, rest) = operands.words(layout.words())?.split_at_mut(layout.left_words);
    let (right, space) = rest.split_at_mut(layout.right_words);
    layout.scale_columns(problem.left.view, left_shifts, left, space);
    let (right, right_shifts) = match problem.right {
        Some(operand) => {
            layout.scale_columns(operand.view, right_shifts, right, space);
            (&*right, &*right_shifts)
        }
        None => (&*left, &*left_shifts),
    };
    if let ScaledForm::Rows(lanes) = layout.form {
        let columns = LaneColumns { left, right, rows: layout.contracted };
        return fill_eights(ctx, problem, &RowLaneSums { lanes, columns, left_shifts, right_shifts }, space, result);
    }
    let (product, sum) = space.split_at_mut(space.len() - (2 * layout.width + 1));
    let mut sums = ColumnSums { layout, left, right, product, known: None };
    fill(ctx, problem, result, |place, finish| {
        sums.add_up(place, sum);
        let negative = limbs::to_magnitude(sum);
        finish(ExactEntry { negative, magnitude: sum, exponent: -(left_shifts[place.row] + right_shifts[place.col]) })
    })
}

/// Fills the wanted entries of `result`: `entry` passes the exact product of a place to its function argument.
fn fill(
    ctx: &Context,
    problem: &ProductProblem<'_>,
    result: MatrixViewMut<'_>,
    mut entry: impl FnMut(EntryIndex, &mut dyn FnMut(ExactEntry<'_>) -> Result<()>) -> Result<()>,
) -> Result<()> {
    let (rows, cols) = problem.result_shape();
    let meter = Meter::new(ctx, cols as u64);
    let (precision_bits, width) = (result.precision_bits(), result.limbs_per_element());
    let stride = result.leading_dimension();
    let (heads, significands) = result.into_parts();
    for col in 0..if rows == 0 { 0 } else { cols } {
        meter.add("product", 1)?;
        for row in (0..rows).filter(|&row| problem.wants(row, col)) {
            let (at, place) = (row + col * stride, EntryIndex { row, col });
            let limbs = &mut significands[at * width..][..width];
            entry(place, &mut |exact| {
                heads[at] = problem.epilogue.finish(exact, place, precision_bits, limbs)?.0;
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// Fills the wanted entries of `result`, eight at a time.
fn fill_eights(
    ctx: &Context,
    problem: &ProductProblem<'_>,
    sums: &RowLaneSums<'_>,
    space: &mut [u64],
    result: MatrixViewMut<'_>,
) -> Result<()> {
    let (rows, cols) = problem.result_shape();
    let meter = Meter::new(ctx, cols as u64);
    let mut target = DirectTarget {
        epilogue: &problem.epilogue,
        precision_bits: result.precision_bits(),
        width: result.limbs_per_element(),
        stride: result.leading_dimension(),
        entries: result.into_parts(),
    };
    let (mut entries, mut count) = ([EntryIndex::default(); ENTRIES], 0);
    for col in 0..if rows == 0 { 0 } else { cols } {
        meter.add("product", 1)?;
        for row in (0..rows).filter(|&row| problem.wants(row, col)) {
            entries[count] = EntryIndex { row, col };
            count += 1;
            if count == ENTRIES {
                sums.finish(&entries, space, &mut target)?;
                count = 0;
            }
        }
    }
    if count > 0 { sums.finish(&entries[..count], space, &mut target) } else { Ok(()) }
}

/// Scaled columns in digits, eight rows side by side, whose products are summed for eight entries together.
struct RowLaneSums<'s> {
    lanes: RowLanes,
    columns: LaneColumns<'s>,
    left_shifts: &'s [i64],
    right_shifts: &'s [i64],
}

/// Where entries of a result go, and the epilogue of their products.
struct DirectTarget<'t> {
    epilogue: &'t Epilogue<'t>,
    precision_bits: u32,
    width: usize,
    stride: usize,
    /// Heads and limbs.
    entries: (&'t mut [u64], &'t mut [u64]),
}

impl RowLaneSums<'_> {
    /// Makes up to eight entries of the result.
    fn finish(&self, entries: &[EntryIndex], space: &mut [u64], target: &mut DirectTarget<'_>) -> Result<()> {
        let (lanes, precision_bits, width) = (&self.lanes, target.precision_bits, target.width);
        let (exact, scratch) = space.split_at_mut(lanes.limbs());
        let signs = lanes.multiply(self.columns, entries, scratch);
        let mut exponents = [0; ENTRIES];
        for (exponent, &EntryIndex { row, col }) in exponents.iter_mut().zip(entries) {
            *exponent = -(self.left_shifts[row] + self.right_shifts[col]);
        }
        let (heads, significands) = (&mut *target.entries.0, &mut *target.entries.1);
        let places = entries.iter().map(|&place| (place.row + place.col * target.stride, place)).enumerate();
        if target.epilogue.is_plain() {
            let mut rounded = [0; ENTRIES];
            let limbs = lanes.round(signs, &exponents, precision_bits, &mut rounded, scratch);
            for (lane, (at, place)) in places {
                heads[at] = target.epilogue.check_rounded(Head(rounded[lane]), place)?.0;
                significands[at * width..][..width].copy_from_slice(&limbs[lane * width..][..width]);
            }
            return Ok(());
        }
        for (lane, (at, place)) in places {
            lanes.magnitude(lane, scratch, exact);
            let negative = signs >> lane & 1 == 1;
            let entry = ExactEntry { negative, magnitude: exact, exponent: exponents[lane] };
            let out = &mut significands[at * width..][..width];
            heads[at] = target.epilogue.finish(entry, place, precision_bits, out)?.0;
        }
        Ok(())
    }
}

impl OperandLayout {
    /// Writes `round(a_kj * 2^shifts[j])`, column by column; `space` has room for one entry, or is the scratch of eight
    /// rows.
    fn scale_columns(&self, view: MatrixView<'_>, shifts: &[i64], out: &mut [u64], space: &mut [u64]) {
        if let ScaledForm::Rows(lanes) = self.form {
            return lanes.cut(view, shifts, out, space);
        }
        let magnitude = &mut space[..self.width];
        for (col, &shift) in shifts.iter().enumerate() {
            match self.panels() {
                Some(lanes) => {
                    let panel = &mut out[col / LANES * lanes.panel_words(self.contracted)..];
                    let rows = panel.chunks_exact_mut(lanes.row_words()).take(view.rows());
                    for (row, words) in rows.enumerate() {
                        let value = view.get(row, col);
                        let kept = if value.head.is_zero() { &[] } else { &*scaled(value, shift, magnitude) };
                        lanes.set(words, col % LANES, value.head.is_negative(), kept);
                    }
                }
                None => {
                    let entries = out[self.column(col)].chunks_exact_mut(self.width + 1);
                    for (row, entry) in entries.enumerate() {
                        let value = view.get(row, col);
                        let (sign, magnitude) = entry.split_at_mut(1);
                        sign[0] = u64::from(value.head.is_negative());
                        if value.head.is_zero() {
                            sign[0] = ZERO;
                            magnitude.fill(0);
                        } else {
                            scaled(value, shift, magnitude);
                        }
                    }
                }
            }
        }
    }
}

/// `round(|value| * 2^shift)` in all of `out`.
fn scaled<'o>(value: FloatRef<'_>, shift: i64, out: &'o mut [u64]) -> &'o mut [u64] {
    let drop = value.limbs.len() as i64 * 64 - value.head.exponent() - shift;
    round_shifted(value.limbs, drop, out);
    out
}

/// The exact sums of products of two scaled columns.
struct ColumnSums<'s> {
    layout: OperandLayout,
    /// Scaled columns of both operands.
    left: &'s [u64],
    right: &'s [u64],
    /// Room for one product, or for the sums of a column with a panel.
    product: &'s mut [u64],
    /// The column of the result and the panel of rows that `product` has the sums of.
    known: Option<(usize, usize)>,
}

impl ColumnSums<'_> {
    /// The sum of an entry of the result, in two's complement.
    fn add_up(&mut self, EntryIndex { row, col }: EntryIndex, sum: &mut [u64]) {
        let (layout, left, right) = (&self.layout, self.left, self.right);
        let Some(lanes) = layout.panels() else {
            let (x, y) = (&left[layout.column(row)], &right[layout.column(col)]);
            return sum_of_products(x, y, layout.width, self.product, sum);
        };
        if self.known != Some((col, row / LANES)) {
            let words = lanes.panel_words(layout.contracted);
            let (x, y) = (&right[col / LANES * words..], &left[row / LANES * words..]);
            lanes.multiply(x, col % LANES, y, layout.contracted, self.product);
            self.known = Some((col, row / LANES));
        }
        lanes.sum(self.product, row % LANES, sum);
    }
}

/// The exact sum of the products of two scaled columns in two's complement; `product` has room for one of them.
fn sum_of_products(x: &[u64], y: &[u64], width: usize, product: &mut [u64], sum: &mut [u64]) {
    sum.fill(0);
    for (a, b) in x.chunks_exact(width + 1).zip(y.chunks_exact(width + 1)) {
        // Zeros, as in triangles, are skipped.
        if (a[0] | b[0]) & ZERO == 0 {
            limbs::add_product(sum, &a[1..], &b[1..], a[0] != b[0], product);
        }
    }
}
