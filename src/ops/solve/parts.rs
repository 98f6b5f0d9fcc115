//! A triangle cut recursively: products for all that is off the diagonal blocks, which are solved scalar by scalar.
//!
//! Depends on the triangle, the precision and the column alone, so the bits do too: an entry of a product knows its own
//! row of the triangle, so they do not show in which pieces the rows come.

use crate::context::Context;
use crate::drive::Meter;
use crate::error::Result;
use crate::io::Block;
use crate::matrix::{Diag, Matrix, MatrixView, Uplo};
use crate::ops::columns::{ColumnRef, each_column};
use crate::ops::fixed_sum::FixedSum;
use crate::ops::product::block::{BlockProduct, moved};
use crate::ops::solve::band::{Band, gather, scatter, with_column};
use crate::ops::solve::blocks::TriangleBlocks;
use crate::ops::solve::cut::TriangleCut;
use crate::ops::solve::scalar::ScalarBlock;
use crate::ops::solve::schedule::{PartStep, Schedule};
use crate::ops::solve::spaces::Spaces;
use crate::ops::solve::triangle::Triangle;
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
    /// Replaces the right sides `left` in `spaces.w` by the solutions; they are 0 above row `first`, for a lower
    /// triangle.
    ///
    /// # Errors
    /// [`crate::Error::ExponentRange`] with a place in the call; [`crate::Error::MemoryLimit`];
    /// [`crate::Error::Cancelled`]; [`crate::Error::SelfCheck`]; [`crate::Error::OutOfMemory`]; those of the blocks.
    pub fn run(&mut self, band: &Band<'_>, (left, first): (Vec<usize>, usize), spaces: &mut Spaces) -> Result<()> {
        let Spaces { w, result, again } = spaces;
        assert_eq!((w.rows(), w.precision_bits()), (self.cut.order, self.cut.working_bits));
        assert!(first == 0 || self.uplo == Uplo::Lower, "an upper triangle begins at its last row");
        if left.is_empty() || self.cut.order == 0 {
            return Ok(());
        }
        if self.cut.first_try_bits.is_none() && left.len() == w.cols() {
            let ctx = band.ctx().holding(band.memory.held_by_parts(&self.cut, band.columns, None));
            return self.solve_columns(&ctx, first, (w, result)).map_err(|error| band.placed(error));
        }
        let retry = band.memory.retry(band.columns)?;
        let ctx = band.ctx().with_memory_bytes(Some(retry.limit_bytes));
        for some in left.chunks(retry.columns) {
            gather(w, some, again)?;
            let ctx = ctx.holding(band.memory.held_by_parts(&self.cut, band.columns, Some(some.len())));
            let solved = self.solve_columns(&ctx, first, (again, result));
            solved.map_err(|error| band.placed(with_column(error, some)))?;
            scatter(again, some, &[], w);
        }
        *again = Matrix::zeros(0, 0, 2)?; // the next try counts on their memory
        *result = Matrix::zeros(0, 0, 2)?;
        Ok(())
    }

    /// All steps on the columns of `w`; `result` takes one product at a time, and the context holds its memory too.
    fn solve_columns(&mut self, ctx: &Context, first: usize, (w, result): (&mut Matrix, &mut Matrix)) -> Result<()> {
        result.reshape(self.cut.scratch_rows(), w.cols(), self.cut.working_bits)?;
        let (cut, is_lower) = (self.cut, self.uplo == Uplo::Lower);
        let schedule = move || Schedule::new(cut, is_lower, first);
        self.blocks.begin(Box::new(schedule().map(|step| step.block())), cut.pieces.rows.min(cut.order) * cut.order)?;
        for step in schedule() {
            let (uplo, diag) = (self.uplo, self.diag);
            let view = self.blocks.block(&step.block())?;
            match step {
                PartStep::Update(block) => Update { cut, block, view }.run(ctx, (w, result))?,
                PartStep::Scalar(rows) => {
                    let block = ScalarBlock::new(Triangle::of_block(view, uplo, diag), rows, cut.working_bits);
                    solve_scalars(ctx, &block, w)?;
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
struct Update<'a> {
    cut: TriangleCut,
    block: Block,
    /// Of the triangle.
    view: MatrixView<'a>,
}

impl Update<'_> {
    fn run(&self, ctx: &Context, (w, result): (&mut Matrix, &mut Matrix)) -> Result<()> {
        let Update { cut, block: Block { rows, cols }, view } = self;
        let of_w = |rows: &Range<usize>| w.view().block(rows.clone(), 0..w.cols());
        let product = BlockProduct {
            left: *view,
            right: of_w(cols)?,
            minuend: Some(of_w(rows)?),
            precision_bits: cut.working_bits,
            working_bits: cut.product_bits(),
            accuracy: cut.accuracy,
        };
        result.reshape(rows.len(), w.cols(), cut.working_bits)?;
        // The plan of the product counts its result itself.
        let memory = ctx.memory().releasing(result.bytes());
        product.run(&ctx.with_memory(memory), result).map_err(|error| moved(error, rows.start, 0))?;
        copy_rows(ctx, result, rows.start, w)
    }
}

/// Copies all of `source` into the rows of `target` from `first` on.
fn copy_rows(ctx: &Context, source: &Matrix, first: usize, target: &mut Matrix) -> Result<()> {
    each_column(
        ctx,
        target,
        || (),
        |_, mut column| {
            column.copy_from(first, ColumnRef::of(source, 0..source.rows(), column.index));
            Ok(())
        },
    )
}
