//! A triangle cut recursively: products for all that is off the diagonal blocks, which are solved scalar by scalar.
//!
//! The bits depend only on the triangle, the precision and the column. By norms an entry of a product depends only on
//! its own row of the triangle, so the pieces of rows do not matter. Entry by entry the bits of a column of a product
//! are chosen from its entries in a piece of 128 rows, and the pieces are the same wherever it is computed.

use crate::context::Context;
use crate::drive::Meter;
use crate::error::{Error, Result};
use crate::io::Block;
use crate::matrix::{Diag, Matrix, Uplo};
use crate::ops::columns::each_column;
use crate::ops::fixed_sum::FixedSum;
use crate::ops::solve::band::{Band, gather, scatter, with_column};
use crate::ops::solve::blocks::TriangleBlocks;
use crate::ops::solve::cut::TriangleCut;
use crate::ops::solve::gathered::GatheredColumns;
use crate::ops::solve::room::Room;
use crate::ops::solve::scalar::ScalarBlock;
use crate::ops::solve::schedule::{PartStep, SolveSchedule};
use crate::ops::solve::spaces::Spaces;
use crate::ops::solve::triangle::Triangle;
use crate::ops::solve::update::Update;

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
    /// [`crate::Error::ExponentRange`] with a place in the call; [`crate::Error::MemoryLimit`];
    /// [`crate::Error::Cancelled`]; [`crate::Error::SelfCheck`]; [`crate::Error::OutOfMemory`]; the errors of the
    /// blocks.
    pub fn run(&mut self, band: &Band<'_>, left: Vec<usize>, spaces: &mut Spaces) -> Result<()> {
        let Spaces { w, result, again } = spaces;
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
        let (ctx, limit_bytes) = (band.ctx().with_memory_bytes(Some(retry.limit_bytes)), band.ctx().memory_bytes());
        for some in left.chunks(retry.columns) {
            gather(w, some, again)?;
            let ctx = ctx.holding(band.memory.held_by_parts(&self.cut, band.columns, Some(some.len())));
            let placed = |error| band.placed(with_column(error, some));
            let room = Room { ctx: &ctx, limit_bytes };
            self.solve_columns(&room, first, &placed, again, result)?;
            scatter(again, some, &[], w);
        }
        *again = Matrix::zeros(0, 0, 2)?; // the next try counts on their memory
        *result = Matrix::zeros(0, 0, 2)?;
        Ok(())
    }

    /// [`Parts::run`] over ranks, each of which has columns of its own; `left` are its columns still to solve. Each of
    /// these visits all ranks, which share the rows of the products with it. Collective.
    ///
    /// # Errors
    /// The errors of [`Parts::run`], on every rank.
    pub fn run_shared(&mut self, band: &Band<'_>, left: &[usize], spaces: &mut Spaces) -> Result<()> {
        let Spaces { w, result, again } = spaces;
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
        let (ctx, limit_bytes) = (band.ctx().with_memory_bytes(Some(retry.limit_bytes)), band.ctx().memory_bytes());
        let mut start = 0;
        while start < total {
            let some = GatheredColumns::new(&counts, start..total.min(start + together));
            let own = &left[some.of_rank(world.rank()).own];
            *result = Matrix::empty(); // the messages count on its memory
            let numbers = some.spread(world, own, band.first_column, w, again)?;
            let held = band.memory.held_by_parts(&self.cut, band.columns, Some(numbers.len()));
            // All ranks meet the same error of a column, or the rank that met one names it.
            let placed = |error| Band { first_column: 0, ..*band }.placed(with_column(error, &numbers));
            let room = Room { ctx: &ctx.holding(held), limit_bytes };
            self.solve_columns(&room, 0, &placed, again, result)?;
            some.take_back(world.rank(), own, again, w);
            start += together;
        }
        *again = Matrix::zeros(0, 0, 2)?; // the next try counts on their memory
        *result = Matrix::zeros(0, 0, 2)?;
        Ok(())
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
