//! A step of a solve by parts: the products of a block with the known unknowns, taken off the right-hand sides of its
//! rows.
//!
//! Promise: the result of a column depends only on the block, the precision and the column. Entry by entry each column
//! has the bits that it needs by itself; columns that need equally many share a product.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::io::Block;
use crate::matrix::{Matrix, MatrixView};
use crate::ops::columns::{ColumnRef, each_column};
use crate::ops::product::block::{BlockProduct, moved};
use crate::ops::product::problem::{Accuracy, ColumnRange};
use crate::ops::solve::band::with_column;
use crate::ops::solve::cut::TriangleCut;
use crate::ops::solve::room::Room;
use std::ops::Range;

/// `w_rows := w_rows - T_(rows, cols) w_cols`.
pub(crate) struct Update<'a> {
    pub cut: TriangleCut,
    pub block: Block,
    /// Of the triangle.
    pub view: MatrixView<'a>,
}

impl Update<'_> {
    /// Updates all columns of `w`; `result` takes a product, and the room's context holds its memory too.
    ///
    /// # Errors
    /// [`Error::ExponentRange`] with the place in `w`; the errors of the product.
    pub fn run(&self, room: &Room<'_>, w: &mut Matrix, result: &mut Matrix) -> Result<()> {
        let (cut, columns) = (&self.cut, 0..w.cols());
        if cut.accuracy == Accuracy::Norm {
            return room.within(|ctx| self.run_on(ctx, columns.clone(), None, w, result));
        }
        result.reshape(self.block.rows.len(), w.cols(), cut.working_bits)?;
        let product = self.product(w, &columns)?;
        let ranges = room.within(|ctx| {
            let memory = ctx.memory().releasing(result.bytes());
            product.column_ranges(&ctx.with_memory(memory), cut.most_range_bits())
        })?;
        let groups = Groups::new(&ranges);
        groups.swaps.iter().for_each(|&(first, second)| swap_columns(w, first, second));
        for (columns, range) in &groups.list {
            let done = room.within(|ctx| self.run_on(ctx, columns.clone(), Some(*range), w, result));
            done.map_err(|error| groups.placed(error))?;
        }
        groups.swaps.iter().rev().for_each(|&(first, second)| swap_columns(w, first, second));
        Ok(())
    }

    /// Updates neighbouring columns by one product. A refusal for memory leaves them as they are.
    fn run_on(
        &self,
        ctx: &Context,
        columns: Range<usize>,
        range: Option<ColumnRange>,
        w: &mut Matrix,
        result: &mut Matrix,
    ) -> Result<()> {
        let rows = &self.block.rows;
        result.reshape(rows.len(), columns.len(), self.cut.working_bits)?;
        // The plan of the product counts its result itself.
        let ctx = &ctx.with_memory(ctx.memory().releasing(result.bytes()));
        let done = self.product(w, &columns)?.run_in_range(ctx, range, result);
        done.map_err(|error| moved(error, rows.start, columns.start))?;
        copy_rows(ctx, result, rows.start, &columns, w)
    }

    /// The product for some columns.
    fn product<'s>(&'s self, w: &'s Matrix, columns: &Range<usize>) -> Result<BlockProduct<'s>> {
        let Update { cut, block: Block { rows, cols }, view } = self;
        let of_w = |rows: &Range<usize>| w.view().block(rows.clone(), columns.clone());
        Ok(BlockProduct {
            left: *view,
            right: of_w(cols)?,
            minuend: Some(of_w(rows)?),
            precision_bits: cut.working_bits,
            working_bits: cut.product_bits(),
            accuracy: cut.accuracy,
        })
    }
}

/// Columns that need equally many bits, side by side.
struct Groups {
    /// Ranges of neighbouring columns, and their bits, once all columns are in their places.
    list: Vec<(Range<usize>, ColumnRange)>,
    /// The swaps that bring them there, one after the other.
    swaps: Vec<(usize, usize)>,
    /// The columns in these places.
    order: Vec<usize>,
}

impl Groups {
    fn new(ranges: &[ColumnRange]) -> Groups {
        let mut order = (0..ranges.len()).collect::<Vec<_>>();
        order.sort_by_key(|&col| ranges[col].range_bits);
        let mut list: Vec<(Range<usize>, ColumnRange)> = Vec::new();
        for (place, range) in order.iter().map(|&col| ranges[col]).enumerate() {
            match list.last_mut() {
                Some((columns, common)) if common.range_bits == range.range_bits => {
                    columns.end = place + 1;
                    common.has_singles |= range.has_singles;
                }
                _ => list.push((place..place + 1, range)),
            }
        }
        // Who is where, as the columns are swapped, and where each one is.
        let (mut at, mut places) = ((0..order.len()).collect::<Vec<_>>(), (0..order.len()).collect::<Vec<_>>());
        let mut swaps = Vec::new();
        for (place, &col) in order.iter().enumerate() {
            let from = places[col];
            if from != place {
                swaps.push((place, from));
                at.swap(place, from);
                (places[at[place]], places[at[from]]) = (place, from);
            }
        }
        Groups { list, swaps, order }
    }

    /// The error with the column that was in its place before.
    fn placed(&self, error: Error) -> Error {
        match error {
            Error::SelfCheck { row, column } => Error::SelfCheck { row, column: self.order[column] },
            other => with_column(other, &self.order),
        }
    }
}

/// Swaps two columns of `w`, the first of which comes first.
fn swap_columns(w: &mut Matrix, first: usize, second: usize) {
    let (rows, width) = (w.rows(), w.limbs_per_element());
    let (heads, limbs) = w.parts_mut();
    for (words, each) in [(heads, rows), (limbs, rows * width)] {
        let (before, after) = words.split_at_mut(second * each);
        before[first * each..][..each].swap_with_slice(&mut after[..each]);
    }
}

/// Copies all of `source` into the columns `columns` of `target`, its rows from `first` on.
fn copy_rows(ctx: &Context, source: &Matrix, first: usize, columns: &Range<usize>, target: &mut Matrix) -> Result<()> {
    each_column(
        ctx,
        target,
        || (),
        |_, mut column| {
            if columns.contains(&column.index) {
                column.copy_from(first, ColumnRef::of(source, 0..source.rows(), column.index - columns.start));
            }
            Ok(())
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_ask_for_as_many_bits_come_together() {
        let mut w = Matrix::zeros(2, 9, 80).unwrap();
        (0..9).for_each(|col| w.set_f64(1, col, col as f64 + 1.0).unwrap());
        let before = w.clone();
        for asked in [[8; 9], [0, 32, 0, 64, 32, 0, 0, 64, 0], [9, 8, 7, 6, 5, 4, 3, 2, 1], [1, 1, 1, 1, 0, 1, 1, 1, 1]]
        {
            let range = |range_bits| ColumnRange { range_bits, has_singles: range_bits == 64 };
            let groups = Groups::new(&asked.map(range));
            groups.swaps.iter().for_each(|&(first, second)| swap_columns(&mut w, first, second));
            let mut next = 0;
            for (columns, common) in &groups.list {
                assert_eq!((columns.start, *common), (next, range(common.range_bits)));
                next = columns.end;
                for place in columns.clone() {
                    assert_eq!(w.float(1, place), groups.order[place] as f64 + 1.0);
                    assert_eq!(asked[groups.order[place]], common.range_bits);
                }
            }
            assert!(next == 9 && groups.list.is_sorted_by_key(|(_, range)| range.range_bits));
            groups.swaps.iter().rev().for_each(|&(first, second)| swap_columns(&mut w, first, second));
            assert!(w == before);
        }
    }
}
