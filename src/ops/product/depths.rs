//! How far the largest term of each sum of a product lies below the product of the norms: the depths of both operands,
//! panel by panel, and their product in the (max, +) semiring.
//!
//! The ranks of a team each have some rows of the operands; the result is the same on all. Independent of: how it is
//! used.

use crate::comm::{Reduction, Transport};
use crate::error::Result;
use crate::kernels::max_plus::{DepthRow, EMPTY, PANEL, depth, largest_sums};
use crate::math::float::Head;
use crate::matrix::{EntryIndex, Uplo};
use crate::ops::product::problem::OperandRows;
use crate::ops::product::scale::NormPass;
use crate::ops::product::segments::in_triangle;
use crate::ops::product::size::ProductSize;
use crate::store::filled;

/// Bytes of a row of a panel.
const ROW_BYTES: u64 = size_of::<DepthRow>() as u64;

/// Approximate number of rows of panels that a worker takes at a time.
const GROUP_ROWS: usize = 4096;

/// Bytes of the depths of both operands, where all rows are here, and of the sums of a panel.
pub(crate) fn choice_bytes(size: &ProductSize) -> u64 {
    let panels = size.rows.div_ceil(PANEL) + if size.triangle { 0 } else { size.cols.div_ceil(PANEL) };
    let sums = (size.rows.div_ceil(PANEL) as u64).saturating_mul(PANEL as u64).saturating_mul(ROW_BYTES);
    (panels as u64).saturating_mul(size.contracted as u64).saturating_mul(ROW_BYTES).saturating_add(sums)
}

/// Bytes of the depths of an upper triangular operand of `order` rows, and of the sums of a panel.
pub(crate) fn triangle_bytes(order: usize) -> u64 {
    let panels = order.div_ceil(PANEL) as u64;
    let blocks = (panels + 1).saturating_mul(panels) / 2 + panels;
    blocks.saturating_mul(PANEL as u64).saturating_mul(ROW_BYTES)
}

/// The largest sums of a product of few rows and columns on one rank: one panel, on the stack.
pub(crate) struct OnePanel {
    sums: [DepthRow; PANEL],
}

impl OnePanel {
    /// Finds the sums; `None` where there are more rows or columns.
    pub fn new(
        pass: &NormPass<'_>,
        left: &OperandRows<'_>,
        right: Option<&OperandRows<'_>>,
        size: &ProductSize,
    ) -> Option<OnePanel> {
        let rows = size.contracted;
        if pass.site.team.size() > 1 || size.rows.max(size.cols).max(rows) > PANEL {
            return None;
        }
        let mut depths = [[[EMPTY; PANEL]; PANEL]; 2];
        let [of_left, of_right] = &mut depths;
        fill_panel(&mut of_left[..rows], left, 0);
        let of_left = &of_left[..rows];
        let of_right = match right {
            None => of_left,
            Some(right) => {
                fill_panel(&mut of_right[..rows], right, 0);
                &of_right[..rows]
            }
        };
        let mut panel = OnePanel { sums: [[EMPTY; PANEL]; PANEL] };
        largest_sums(of_left, of_right, &mut panel.sums);
        Some(panel)
    }

    /// As [`Depths::visit`].
    pub fn visit(&self, size: &ProductSize, uplo: Uplo, see: impl FnMut(EntryIndex, Option<u32>)) {
        show(size, uplo, EntryIndex { row: 0, col: 0 }, &self.sums, see);
    }
}

/// Passes on the sums of a panel of columns and of some rows of the product, as far as they are wanted; the first of
/// them is that of the entry at `first`.
fn show(
    size: &ProductSize,
    uplo: Uplo,
    first: EntryIndex,
    sums: &[DepthRow],
    mut see: impl FnMut(EntryIndex, Option<u32>),
) {
    for (row, sums) in (first.row..size.rows).zip(sums) {
        for (col, &sum) in (first.col..size.cols).zip(sums) {
            if !size.triangle || in_triangle(uplo, row, col) {
                see(EntryIndex { row, col }, (sum != EMPTY).then(|| u32::from(sum.unsigned_abs())));
            }
        }
    }
}

/// The depths of the columns from `first` on, row by row.
fn fill_panel(part: &mut [DepthRow], operand: &OperandRows<'_>, first: usize) {
    let norms = &operand.shifts[first..operand.shifts.len().min(first + PANEL)];
    let places = operand.blocks.iter().flat_map(|block| (0..block.rows()).map(move |row| (block, row)));
    for (depths, (block, row)) in part.iter_mut().zip(places) {
        let heads = block.all_heads()[block.element_index(row, first)..].iter();
        let heads = heads.step_by(block.col_stride().max(1));
        for ((own, &norm), &head) in depths.iter_mut().zip(norms).zip(heads) {
            *own = depth(Head(head), norm);
        }
    }
}

/// The depths of own rows of both operands.
pub(crate) struct Depths {
    left: Panels,
    /// `None` where it is the left operand.
    right: Option<Panels>,
}

/// The depths of an operand: of 32 columns and all rows that count for them, then of the next 32.
struct Panels {
    rows: usize,
    /// Whether rows below the diagonal of the operand are all 0, and left out.
    is_upper: bool,
    depths: Vec<DepthRow>,
}

impl Depths {
    /// Finds the depths of the entries below the norm exponents in `shifts`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn new(pass: &NormPass<'_>, left: &OperandRows<'_>, right: Option<&OperandRows<'_>>) -> Result<Depths> {
        let right = right.map(|right| Panels::new(pass, right, false)).transpose()?;
        Ok(Depths { left: Panels::new(pass, left, false)?, right })
    }

    /// The depths of an upper triangular operand, for the products of its columns with each other.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn of_upper(pass: &NormPass<'_>, operand: &OperandRows<'_>) -> Result<Depths> {
        Ok(Depths { left: Panels::new(pass, operand, true)?, right: None })
    }

    /// Visits all entries of the product, or of its triangle, with the distance of their largest term below the product
    /// of the norms; `None` where all terms are 0. Collective.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn visit(
        &self,
        pass: &NormPass<'_>,
        size: &ProductSize,
        uplo: Uplo,
        mut see: impl FnMut(EntryIndex, Option<u32>),
    ) -> Result<()> {
        let ProductSize { rows, cols, triangle, .. } = *size;
        let (left, right) = (&self.left, self.right.as_ref().unwrap_or(&self.left));
        let mut all = vec![[[EMPTY; PANEL]; PANEL]; rows.div_ceil(PANEL)];
        for panel in 0..cols.div_ceil(PANEL) {
            let wanted = match (triangle, uplo) {
                (false, _) => 0..all.len(),
                (true, Uplo::Lower) => panel..all.len(),
                (true, Uplo::Upper) => 0..panel + 1,
            };
            let (sums, right) = (&mut all[wanted.clone()], right.panel(panel));
            pass.each_group(GROUP_ROWS.div_ceil(right.len() + 1), sums, |first, sums| {
                for (sums, other) in sums.iter_mut().zip(wanted.start + first..) {
                    // Two triangles have as many rows in common as the narrower one.
                    let left = left.panel(other);
                    let common = left.len().min(right.len());
                    largest_sums(&left[..common], &right[..common], sums);
                }
            });
            raise_over_ranks(pass.site.world(), sums)?;
            let first = EntryIndex { row: wanted.start * PANEL, col: panel * PANEL };
            show(size, uplo, first, sums.as_flattened(), &mut see);
        }
        Ok(())
    }
}

impl Panels {
    /// Columns beyond the last are empty.
    fn new(pass: &NormPass<'_>, operand: &OperandRows<'_>, is_upper: bool) -> Result<Panels> {
        let (rows, norms) = (operand.blocks.iter().map(|block| block.rows()).sum(), operand.shifts);
        let mut panels = Panels { rows, is_upper, depths: Vec::new() };
        let count = panels.start(norms.len().div_ceil(PANEL));
        panels.depths = filled([EMPTY; PANEL], count)?;
        let mut parts = Vec::with_capacity(norms.len().div_ceil(PANEL));
        let mut rest = &mut panels.depths[..];
        for panel in 0..norms.len().div_ceil(PANEL) {
            let (own, others) = rest.split_at_mut(if is_upper { ((panel + 1) * PANEL).min(rows) } else { rows });
            parts.push(own);
            rest = others;
        }
        pass.each_group(1, &mut parts, |panel, part| fill_panel(part[0], operand, panel * PANEL));
        drop(parts);
        Ok(panels)
    }

    /// The first row of a panel in the list of all.
    fn start(&self, panel: usize) -> usize {
        if self.is_upper {
            // All panels but the last have as many rows as columns up to their end.
            (PANEL * panel * (panel + 1) / 2).min(self.upper_rows())
        } else {
            self.rows * panel
        }
    }

    /// Rows of all panels of an upper triangle.
    fn upper_rows(&self) -> usize {
        let whole = self.rows / PANEL;
        let last = if self.rows.is_multiple_of(PANEL) { 0 } else { self.rows };
        PANEL * whole * (whole + 1) / 2 + last
    }

    fn panel(&self, index: usize) -> &[DepthRow] {
        &self.depths[self.start(index)..self.start(index + 1)]
    }
}

/// The largest of the sums of all ranks. Collective.
fn raise_over_ranks(world: &dyn Transport, sums: &mut [[DepthRow; PANEL]]) -> Result<()> {
    if world.size() == 1 {
        return Ok(());
    }
    let sums = sums.as_flattened_mut().as_flattened_mut();
    // As unsigned words in the same order.
    let mut words = sums.iter().map(|&sum| u64::from(sum.abs_diff(EMPTY))).collect::<Vec<_>>();
    world.all_reduce(Reduction::Max, &mut words)?;
    sums.iter_mut().zip(words).for_each(|(sum, word)| *sum = EMPTY.wrapping_add_unsigned(word as u16));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use crate::matrix::Matrix;

    #[test]
    fn one_panel_tells_what_all_panels_do() {
        let ctx = Context::builder().threads(1).build().unwrap();
        let pass = NormPass::one_process(&ctx, 1);
        let mut state = 88_172_645_463_325_252u64;
        let mut next = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        for (contracted, rows, cols) in
            [(1, 1, 1), (3, 4, 5), (32, 32, 32), (32, 31, 2), (33, 4, 4), (4, 33, 4), (4, 4, 33)]
        {
            let mut matrix = |cols: usize| {
                let mut matrix = Matrix::zeros(contracted, cols, 60).unwrap();
                for (row, col) in (0..contracted).flat_map(|row| (0..cols).map(move |col| (row, col))) {
                    let value = if next(4) == 0 { 0.0 } else { 2f64.powi(-(next(900) as i32)) };
                    matrix.set_f64(row, col, value).unwrap();
                }
                matrix
            };
            let (left, right) = (matrix(rows), matrix(cols));
            let (left, right) = ([left.view()], [right.view()]);
            let shifts = vec![1; rows.max(cols)];
            let left = OperandRows { blocks: &left, shifts: &shifts[..rows] };
            for right in [None, Some(OperandRows { blocks: &right, shifts: &shifts[..cols] })] {
                let cols = if right.is_some() { cols } else { rows };
                let size = ProductSize { contracted, rows, cols, triangle: right.is_none() };
                let Some(panel) = OnePanel::new(&pass, &left, right.as_ref(), &size) else {
                    assert!(contracted.max(rows).max(cols) > PANEL);
                    continue;
                };
                assert!(contracted.max(rows).max(cols) <= PANEL);
                for uplo in [Uplo::Lower, Uplo::Upper] {
                    let (mut got, mut want) = (Vec::new(), Vec::new());
                    panel.visit(&size, uplo, |EntryIndex { row, col }, depth| got.push((row, col, depth)));
                    let depths = Depths::new(&pass, &left, right.as_ref()).unwrap();
                    let mut see = |EntryIndex { row, col }: EntryIndex, depth| want.push((row, col, depth));
                    depths.visit(&pass, &size, uplo, &mut see).unwrap();
                    assert!(!got.is_empty() && got == want, "{size:?}");
                }
            }
        }
    }
}
