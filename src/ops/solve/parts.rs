//! A triangle cut recursively: products for all that is off the diagonal blocks, which are solved scalar by scalar;
//! over ranks on columns of all ranks, which visit every rank.
//!
//! The bits depend only on the triangle, the precision and the column. By norms an entry of a product depends only on
//! its own row of the triangle, so the pieces of rows do not matter. Entry by entry the bits of a column of a product
//! are chosen from its entries in a piece of 128 rows, and the pieces are the same wherever it is computed.
//! Each column has the bits that it needs by itself; columns that need equally many share a product.
//!
//! Promise of the substitution scalar by scalar: `|w - T x|_i <= 1.01 * 2^-p ||t_i|| ||x|| + 0.01 * 2^-p |w_i|` for a
//! working precision of `p` bits.

use crate::comm::{Transport, agree};
use crate::context::Context;
use crate::drive::Meter;
use crate::error::{Error, Result};
use crate::io::Block;
use crate::matrix::{Diag, Matrix, MatrixView, Uplo, check_exponent};
use crate::ops::columns::{Column, each_column};
use crate::ops::distribution::rect::{Rect, unpack};
use crate::ops::fixed_sum::{FixedSum, OwnFloat, Sign};
use crate::ops::product::block::{BlockProduct, moved};
use crate::ops::product::problem::{Accuracy, ColumnRange};
use crate::ops::solve::band::{Band, Room, Spaces, copy_rows, gather, scatter, with_column};
use crate::ops::solve::cut::{PartStep, SolveSchedule, TriangleCut};
use crate::ops::solve::memory::Retry;
use crate::ops::solve::triangle::{Triangle, TriangleBlocks};
use std::ops::Range;

/// A triangle that is solved by parts.
pub(crate) struct Parts<'a> {
    /// Its blocks; no pivot is 0.
    pub blocks: Box<dyn TriangleBlocks + 'a>,
    pub uplo: Uplo,
    pub diag: Diag,
    pub cut: TriangleCut,
}

impl Parts<'_> {
    /// Replaces the right-hand sides `left` in `spaces.w` by the solutions.
    ///
    /// # Errors
    /// [`crate::Error::ExponentRange`] with the place in the solution; [`crate::Error::MemoryLimit`];
    /// [`crate::Error::Cancelled`]; [`crate::Error::SelfCheck`]; [`crate::Error::OutOfMemory`]; the errors of the
    /// blocks.
    pub fn run(&mut self, band: &Band<'_>, left: Vec<usize>, spaces: &mut Spaces) -> Result<()> {
        let Spaces { w, result, .. } = spaces;
        assert_eq!((w.rows(), w.precision_bits()), (self.cut.order, self.cut.working_bits));
        let first = band.first_row;
        assert!(first == 0 || self.uplo == Uplo::Lower, "an upper triangle begins at its last row");
        if left.is_empty() || self.cut.order == 0 {
            return Ok(());
        }
        if self.cut.first_try_bits.is_none() && left.len() == w.cols() {
            let ctx = band.ctx().holding(band.memory.held_by_parts(&self.cut, band.columns, None));
            let room = Room { ctx: &ctx, limit_bytes: ctx.memory_bytes() };
            return self.solve_columns(&room, first, &|error| band.placed(error), w, result);
        }
        let retry = band.memory.retry(band.columns)?;
        for some in left.chunks(retry.columns) {
            gather(&spaces.w, some, &mut spaces.again)?;
            self.solve_copies(band, retry, &|error| band.placed(with_column(error, some)), spaces)?;
            scatter(&spaces.again, some, &[], &mut spaces.w);
        }
        spaces.release_copies()
    }

    /// [`Parts::run`] over ranks, each of which has columns of its own; `left` are its columns still to solve. Each of
    /// these visits all ranks, which share the rows of the products with it. Collective.
    ///
    /// # Errors
    /// The errors of [`Parts::run`], on every rank.
    pub fn run_shared(&mut self, band: &Band<'_>, left: &[usize], spaces: &mut Spaces) -> Result<()> {
        let site = band.site();
        let world = site.world();
        let mut counts = vec![0; world.size()];
        world.all_gather(&[left.len() as u64], &mut counts)?;
        let total = counts.iter().sum::<u64>() as usize;
        if total == 0 || self.cut.order == 0 {
            return Ok(());
        }
        let retry = site.agreed(band.memory.retry(band.columns))?;
        let together = site.smallest(retry.columns as u64)? as usize;
        let mut start = 0;
        while start < total {
            let some = GatheredColumns::new(&counts, start..total.min(start + together));
            let own = &left[some.of_rank(world.rank()).own];
            spaces.result = Matrix::empty(); // the messages count on its memory
            let numbers = some.spread(world, own, band.first_column, &spaces.w, &mut spaces.again)?;
            // All ranks meet the same error of a column, or the rank that met one names it.
            let placed = |error| Band { first_column: 0, ..*band }.placed(with_column(error, &numbers));
            self.solve_copies(band, retry, &placed, spaces)?;
            some.take_back(world.rank(), own, &spaces.again, &mut spaces.w);
            start += together;
        }
        spaces.release_copies()
    }

    /// All steps on the copies of some columns in `spaces.again`, within the bytes of a later try.
    fn solve_copies(
        &mut self,
        band: &Band<'_>,
        retry: Retry,
        placed: &dyn Fn(Error) -> Error,
        spaces: &mut Spaces,
    ) -> Result<()> {
        let Spaces { result, again, .. } = spaces;
        let held_bytes = band.memory.held_by_parts(&self.cut, band.columns, Some(again.cols()));
        let ctx = &band.ctx().with_memory_bytes(Some(retry.limit_bytes)).holding(held_bytes);
        let room = Room { ctx, limit_bytes: band.ctx().memory_bytes() };
        self.solve_columns(&room, band.first_row, placed, again, result)
    }

    /// All steps on the columns of `w`, which are 0 above row `first`; `result` takes one product at a time, and the
    /// room's context holds its memory too.
    fn solve_columns(
        &mut self,
        room: &Room<'_>,
        first: usize,
        placed: &dyn Fn(Error) -> Error,
        w: &mut Matrix,
        result: &mut Matrix,
    ) -> Result<()> {
        let (cut, is_lower) = (self.cut, self.uplo == Uplo::Lower);
        let made = result.reshape(cut.scratch_rows(), w.cols(), cut.working_bits);
        self.blocks.exchange(&(0..0), w, made)?;
        let schedule = move || SolveSchedule::new(cut, is_lower, first);
        self.blocks.begin(Box::new(schedule().map(|step| step.block())), cut.most_piece_entries())?;
        for step in schedule() {
            let (uplo, diag) = (self.uplo, self.diag);
            match step {
                PartStep::Update(Block { rows, cols }) => {
                    let own = self.blocks.own_rows(&rows);
                    let view = self.blocks.block(&Block { rows: rows.clone(), cols: cols.clone() })?;
                    let done = match own.is_empty() {
                        true => Ok(()),
                        false => Update { cut, block: Block { rows: own, cols }, view }.run(room, w, result),
                    };
                    self.blocks.exchange(&rows, w, done.map_err(placed))?;
                }
                PartStep::Scalar(rows) => {
                    let view = self.blocks.block(&Block { rows: rows.clone(), cols: rows.clone() })?;
                    let block = ScalarBlock::new(Triangle::of_block(view, uplo, diag), rows, cut.working_bits);
                    let done = solve_scalars(room.ctx, &block, w);
                    self.blocks.exchange(&(0..0), w, done.map_err(placed))?;
                }
            }
        }
        self.blocks.finish();
        Ok(())
    }
}

/// Solves a block on the diagonal for all columns.
fn solve_scalars(ctx: &Context, block: &ScalarBlock<'_>, w: &mut Matrix) -> Result<()> {
    let working_bits = w.precision_bits();
    let meter = Meter::new(ctx, w.cols() as u64);
    each_column(
        ctx,
        w,
        || FixedSum::new(working_bits),
        |sum, mut column| {
            block.run(sum, &mut column)?;
            meter.add("solve", 1)
        },
    )
}

/// `w_rows := w_rows - T_(rows, cols) w_cols`.
pub(crate) struct Update<'a> {
    pub cut: TriangleCut,
    pub block: Block,
    /// The tiles of the triangle.
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

/// A diagonal block that is solved scalar by scalar.
struct ScalarBlock<'a> {
    triangle: Triangle<'a>,
    /// Its rows in the whole triangle.
    rows: Range<usize>,
    /// `1 / t_ii` for each of them; empty for a unit triangle.
    reciprocals: Vec<OwnFloat>,
}

impl<'a> ScalarBlock<'a> {
    /// Prepares a block, which has the rows `rows` of a larger one, for unknowns of `working_bits`.
    pub fn new(triangle: Triangle<'a>, rows: Range<usize>, working_bits: u32) -> ScalarBlock<'a> {
        let reciprocals = match triangle.is_unit() {
            true => Vec::new(),
            false => (0..rows.len()).map(|i| OwnFloat::reciprocal(triangle.get(i, i), working_bits)).collect(),
        };
        ScalarBlock { triangle, rows, reciprocals }
    }

    /// Replaces the right side in the block's rows of `column` by the unknowns.
    ///
    /// # Errors
    /// [`crate::Error::ExponentRange`] with the place of an unknown that leaves the exponent range.
    pub fn run(&self, sum: &mut FixedSum, column: &mut Column<'_>) -> Result<()> {
        let ScalarBlock { triangle, rows, .. } = self;
        for step in 0..rows.len() {
            let at = if triangle.is_lower() { step } else { rows.len() - 1 - step };
            let row = rows.start + at;
            let others = triangle.others(at, &(0..rows.len()));
            let products = others.map(|k| (triangle.get(at, k), column.get(rows.start + k)));
            sum.set(column.get(row), products, Sign::Minus);
            column.set(row, |limbs| match self.reciprocals.get(at) {
                Some(reciprocal) => sum.round_product(reciprocal, limbs),
                None => sum.round(limbs),
            });
            check_exponent(column.get(row).head.exponent(), row, column.index)?;
        }
        Ok(())
    }
}

/// Some of the columns of all ranks, those of rank 0 first.
struct GatheredColumns {
    ranks: Vec<OfRank>,
}

/// GatheredColumns of one rank.
#[derive(Clone, Debug, PartialEq)]
struct OfRank {
    /// The numbers of the columns among the rank's columns.
    pub own: Range<usize>,
    /// The positions of these columns among the gathered columns.
    pub places: Range<usize>,
}

impl GatheredColumns {
    /// Gathers the columns `some`; rank `r` has `counts[r]` of all columns.
    pub fn new(counts: &[u64], some: Range<usize>) -> GatheredColumns {
        let mut next = 0;
        let of_rank = |&count: &u64| {
            let all = next..next + count as usize;
            next = all.end;
            let common = all.start.max(some.start).min(all.end)..all.end.min(some.end).max(all.start);
            let length = common.end.saturating_sub(common.start);
            let (own, place) = match length {
                0 => (0, 0),
                _ => (common.start - all.start, common.start - some.start),
            };
            OfRank { own: own..own + length, places: place..place + length }
        };
        GatheredColumns { ranks: counts.iter().map(of_rank).collect() }
    }

    /// The columns of a rank.
    pub fn of_rank(&self, rank: usize) -> OfRank {
        self.ranks[rank].clone()
    }

    /// Brings them side by side into `target` on every rank; `own` are the columns of `source` that this rank sends,
    /// the first column of `source` being number `first` of the call. Their numbers in the call. Collective.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`], [`crate::Error::Transport`].
    pub fn spread(
        &self,
        world: &dyn Transport,
        own: &[usize],
        first: usize,
        source: &Matrix,
        target: &mut Matrix,
    ) -> Result<Vec<usize>> {
        let (rows, width) = (source.rows(), 1 + source.limbs_per_element());
        let total = self.ranks.iter().map(|of_rank| of_rank.places.len()).sum();
        let mut part = Matrix::empty();
        let made = gather(source, own, &mut part);
        agree(world, made.and_then(|()| target.reshape(rows, total, source.precision_bits())))?;
        let mut numbers = Vec::with_capacity(total);
        for (rank, OfRank { places, .. }) in self.ranks.iter().enumerate().filter(|(_, some)| !some.places.is_empty()) {
            let mut words = Vec::with_capacity(places.len() * (1 + rows * width));
            if rank == world.rank() {
                words.extend(own.iter().map(|col| (first + col) as u64));
                let (heads, limbs) = part.parts();
                words.extend_from_slice(heads);
                words.extend_from_slice(limbs);
            }
            words.resize(places.len() * (1 + rows * width), 0);
            world.broadcast(rank, &mut words)?;
            let (said, entries) = words.split_at(places.len());
            numbers.extend(said.iter().map(|&number| number as usize));
            let place = Rect { rows: 0..rows, cols: places.clone() };
            unpack(entries, &place, target);
        }
        Ok(numbers)
    }

    /// Copies this rank's own back to their columns of `target`.
    pub fn take_back(&self, rank: usize, own: &[usize], source: &Matrix, target: &mut Matrix) {
        let places = self.ranks[rank].places.clone();
        for (place, col) in places.zip(own) {
            for row in 0..source.rows() {
                target.set(row, *col, source.get(row, place));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::local;

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

    #[test]
    fn columns_visit_all_ranks_and_return() {
        for (counts, together) in [(vec![3u64, 0, 2, 4], 4), (vec![1, 1], 1), (vec![0, 0, 5], 8), (vec![2, 3], 5)] {
            let total = counts.iter().sum::<u64>() as usize;
            local::run(counts.len(), |rank| {
                let before = counts[..rank.rank()].iter().sum::<u64>() as usize;
                let count = counts[rank.rank()] as usize;
                // Every second column is taken, and its entries encode its number.
                let mut w = Matrix::zeros(3, 2 * count, 80).unwrap();
                let left = (0..count).map(|at| 2 * at + 1).collect::<Vec<_>>();
                left.iter().enumerate().for_each(|(at, col)| w.set_f64(1, *col, (before + at + 1) as f64).unwrap());
                let (mut target, mut start) = (Matrix::empty(), 0);
                while start < total {
                    let some = GatheredColumns::new(&counts, start..total.min(start + together));
                    let own = &left[some.of_rank(rank.rank()).own];
                    let numbers = some.spread(rank, own, 100, &w, &mut target).unwrap();
                    assert_eq!(target.cols(), numbers.len());
                    for col in 0..target.cols() {
                        assert_eq!(target.float(1, col), (start + col + 1) as f64);
                        let negative = -target.float(1, col);
                        target.set_float(1, col, &negative).unwrap();
                    }
                    let own_numbers = own.iter().map(|col| 100 + col).collect::<Vec<_>>();
                    assert_eq!(numbers[some.of_rank(rank.rank()).places], own_numbers[..]);
                    some.take_back(rank.rank(), own, &target, &mut w);
                    start += together;
                }
                for (at, col) in left.iter().enumerate() {
                    assert_eq!(w.float(1, *col), -((before + at + 1) as f64));
                }
            });
        }
    }
}
