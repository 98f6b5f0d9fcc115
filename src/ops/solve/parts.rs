//! A triangle cut recursively: products for all that is off the diagonal blocks, which are solved scalar by scalar.
//!
//! Depends on the triangle, the precision and the column alone, so the bits do too.

use crate::context::Context;
use crate::drive::Meter;
use crate::error::Result;
use crate::matrix::Matrix;
use crate::ops::columns::{ColumnRef, each_column};
use crate::ops::fixed_sum::FixedSum;
use crate::ops::product::block::{BlockProduct, moved};
use crate::ops::solve::band::{Band, gather, scatter, with_column};
use crate::ops::solve::cut::TriangleCut;
use crate::ops::solve::scalar::ScalarBlock;
use crate::ops::solve::spaces::Spaces;
use crate::ops::solve::triangle::Triangle;
use std::ops::Range;

/// A triangle that is solved by parts.
pub(crate) struct Parts<'a> {
    pub triangle: Triangle<'a>,
    pub cut: TriangleCut,
}

/// A diagonal block.
enum Node {
    /// Its parts in the order in which their unknowns are found.
    Split(Vec<(Range<usize>, Node)>),
    /// Solved scalar by scalar.
    Scalar(ScalarBlock),
}

impl Parts<'_> {
    /// Replaces the right sides `left` in `spaces.w` by the solutions; they are 0 above row `first`, for a lower
    /// triangle.
    ///
    /// # Errors
    /// [`crate::Error::ExponentRange`] with a place in the call; [`crate::Error::MemoryLimit`];
    /// [`crate::Error::Cancelled`]; [`crate::Error::SelfCheck`]; [`crate::Error::OutOfMemory`].
    pub fn run(&self, band: &Band<'_>, (left, first): (Vec<usize>, usize), spaces: &mut Spaces) -> Result<()> {
        let Spaces { w, result, again } = spaces;
        assert_eq!((w.rows(), w.precision_bits()), (self.cut.order, self.cut.working_bits));
        assert!(first == 0 || self.triangle.is_lower(), "an upper triangle begins at its last row");
        if left.is_empty() || self.cut.order == 0 {
            return Ok(());
        }
        let (columns, root) = (w.cols(), self.node(0..self.cut.order));
        if self.cut.first_try_bits.is_none() && left.len() == columns {
            let ctx = band.ctx().holding(band.memory.held_by_parts(&self.cut, band.columns, None));
            let solved = self.solve_columns((&ctx, &root), first, (w, result));
            return solved.map_err(|error| band.placed(error));
        }
        let retry = band.memory.retry(band.columns)?;
        let ctx = band.ctx().with_memory_bytes(Some(retry.limit_bytes));
        for some in left.chunks(retry.columns) {
            gather(w, some, again)?;
            let ctx = ctx.holding(band.memory.held_by_parts(&self.cut, band.columns, Some(some.len())));
            let solved = self.solve_columns((&ctx, &root), first, (again, result));
            solved.map_err(|error| band.placed(with_column(error, some)))?;
            scatter(again, some, &[], w);
        }
        *again = Matrix::zeros(0, 0, 2)?; // the next try counts on their memory
        *result = Matrix::zeros(0, 0, 2)?;
        Ok(())
    }

    fn solve_columns(
        &self,
        (ctx, root): (&Context, &Node),
        first: usize,
        (w, result): (&mut Matrix, &mut Matrix),
    ) -> Result<()> {
        result.reshape(self.cut.scratch_rows(), w.cols(), self.cut.working_bits)?;
        self.solve(root, &mut Walk { ctx, first, result }, w)
    }

    /// The block `rows` and all that it is made of.
    fn node(&self, rows: Range<usize>) -> Node {
        let Some(parts) = self.cut.parts(&rows) else {
            return Node::Scalar(ScalarBlock::new(&self.triangle, rows, self.cut.working_bits));
        };
        let mut parts = parts.map(|part| (part.clone(), self.node(part))).collect::<Vec<_>>();
        if !self.triangle.is_lower() {
            parts.reverse();
        }
        Node::Split(parts)
    }

    fn solve(&self, node: &Node, walk: &mut Walk<'_>, w: &mut Matrix) -> Result<()> {
        match node {
            Node::Split(parts) => {
                let mut known: Option<Range<usize>> = None;
                let first = walk.first;
                for (rows, part) in parts.iter().filter(|(rows, _)| rows.end > first) {
                    if let Some(known) = &known {
                        self.update(walk, (rows, known), w)?;
                    }
                    self.solve(part, walk, w)?;
                    let both = |known: Range<usize>| known.start.min(rows.start)..known.end.max(rows.end);
                    known = Some(known.map_or(rows.clone(), both));
                }
                Ok(())
            }
            Node::Scalar(block) => {
                let sum = || FixedSum::new(self.cut.working_bits);
                let meter = Meter::new(walk.ctx, w.cols() as u64);
                each_column(walk.ctx, w, sum, |sum, mut column| {
                    block.run(&self.triangle, sum, &mut column)?;
                    meter.add("solve", 1)
                })
            }
        }
    }

    /// `w_rows := w_rows - T_(rows, known) w_known`.
    fn update(&self, walk: &mut Walk<'_>, (rows, known): (&Range<usize>, &Range<usize>), w: &mut Matrix) -> Result<()> {
        let all = 0..w.cols();
        let product = BlockProduct {
            left: self.triangle.block(rows.clone(), known.clone())?,
            right: w.view().block(known.clone(), all.clone())?,
            minuend: Some(w.view().block(rows.clone(), all)?),
            precision_bits: self.cut.working_bits,
            working_bits: self.cut.product_bits(),
            accuracy: self.cut.accuracy,
        };
        walk.run(&product).map_err(|error| moved(error, rows.start, 0))?;
        copy_rows(walk.ctx, walk.result, rows.start, w)
    }
}

/// What goes along during one solve.
struct Walk<'a> {
    /// Holds the memory for results too.
    ctx: &'a Context,
    /// Rows before this one are 0 on both sides.
    first: usize,
    /// Takes the result of one product at a time.
    result: &'a mut Matrix,
}

impl Walk<'_> {
    /// Computes a product.
    fn run(&mut self, product: &BlockProduct<'_>) -> Result<()> {
        self.result.reshape(product.left.rows(), product.right.cols(), product.precision_bits)?;
        // The plan of the product counts its result itself.
        let memory = self.ctx.memory().releasing(self.result.bytes());
        product.run(&self.ctx.with_memory(memory), self.result)
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
