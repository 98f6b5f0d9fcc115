//! A prepared triangle: its columns of right sides are solved in fixed point, and those that outgrow it by parts, with
//! products for all that is off the diagonal blocks.
//!
//! Both depend on the triangle, the precision, the column and the number of right sides alone, so the bits do too.

use crate::context::Context;
use crate::drive::Meter;
use crate::error::Result;
use crate::matrix::{Matrix, MatrixView};
use crate::ops::columns::{ColumnRef, each_column};
use crate::ops::fixed_sum::FixedSum;
use crate::ops::product::block::{BlockProduct, moved};
use crate::ops::product::problem::Inner;
use crate::ops::trsm::fixed::{self, FixedPoint};
use crate::ops::trsm::layout::Layout;
use crate::ops::trsm::spaces::Spaces;
use crate::ops::trsm::triangle::Triangle;
use crate::ops::trsm::vector::Substitution;
use std::ops::Range;
use std::sync::OnceLock;

/// A triangle prepared for solves at one working precision.
pub(crate) struct Solver<'a> {
    triangle: Triangle<'a>,
    layout: Layout,
    /// In fixed point, and the triangle as it sees it.
    fixed: Option<(FixedPoint, MatrixView<'a>)>,
    /// Made when a column first asks for it.
    root: OnceLock<Node>,
}

/// A diagonal block.
enum Node {
    /// Its parts in the order in which their unknowns are found.
    Split(Vec<(Range<usize>, Node)>),
    /// Solved scalar by scalar.
    Substitution(Substitution),
}

impl<'a> Solver<'a> {
    /// Prepares `triangle` for solves.
    pub fn new(triangle: Triangle<'a>, layout: Layout) -> Solver<'a> {
        assert_eq!(triangle.order(), layout.order);
        let fixed = layout.takes_tiles().then(|| FixedPoint::new(&triangle, layout.working_bits));
        Solver { triangle, layout, fixed, root: OnceLock::new() }
    }

    /// Replaces the right sides in `spaces.w`, of the working precision, by the solutions; `held_bytes` of the memory
    /// limit, the spaces included, are not for the products.
    ///
    /// # Errors
    /// [`crate::Error::ExponentRange`] with a place in `w`; [`crate::Error::MemoryLimit`]; [`crate::Error::Cancelled`];
    /// [`crate::Error::SelfCheck`]; [`crate::Error::OutOfMemory`].
    pub fn run(&self, ctx: &Context, spaces: &mut Spaces, held_bytes: u64) -> Result<()> {
        self.run_from(ctx, 0, spaces, held_bytes)
    }

    /// [`Solver::run`] where the right sides are 0 above row `first`, for a lower triangle.
    ///
    /// # Errors
    /// As [`Solver::run`].
    pub fn run_from(&self, ctx: &Context, first: usize, spaces: &mut Spaces, held_bytes: u64) -> Result<()> {
        let Spaces { w, result, again } = spaces;
        assert_eq!((w.rows(), w.precision_bits()), (self.layout.order, self.layout.working_bits));
        assert!(first == 0 || self.triangle.is_lower(), "an upper triangle begins at its last row");
        if w.rows() == 0 || w.cols() == 0 {
            return Ok(());
        }
        let left = match &self.fixed {
            Some((fixed, lower)) => fixed.run(ctx, &mut { *lower }, (w, again), first, held_bytes)?,
            None => (0..w.cols()).collect(),
        };
        if left.len() == w.cols() {
            return self.solve_by_parts(ctx, first, (w, result), held_bytes);
        }
        if !left.is_empty() {
            fixed::gather(w, &left, again)?;
            let place = |error| fixed::with_column(error, &left);
            self.solve_by_parts(ctx, first, (again, result), held_bytes).map_err(place)?;
            fixed::scatter(again, &left, &[], w);
        }
        Ok(())
    }

    fn solve_by_parts(
        &self,
        ctx: &Context,
        first: usize,
        (w, result): (&mut Matrix, &mut Matrix),
        held_bytes: u64,
    ) -> Result<()> {
        result.reshape(self.layout.scratch_rows(), w.cols(), self.layout.working_bits)?;
        let root = self.root.get_or_init(|| self.node(0..self.layout.order));
        self.solve(root, &mut Walk { ctx, first, scratch: Scratch { result, held_bytes } }, w)
    }

    /// The block `rows` and all that it is made of.
    fn node(&self, rows: Range<usize>) -> Node {
        let Some(parts) = self.layout.parts(&rows) else {
            return Node::Substitution(Substitution::new(&self.triangle, rows, self.layout.working_bits));
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
            Node::Substitution(substitution) => {
                let sum = || FixedSum::new(self.layout.working_bits);
                let meter = Meter::new(walk.ctx, w.cols() as u64);
                each_column(walk.ctx, w, sum, |sum, mut column| {
                    substitution.run(&self.triangle, sum, &mut column)?;
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
            precision_bits: self.layout.working_bits,
            inner: Inner { working_bits: Some(self.layout.product_bits()), held_bytes: 0 },
        };
        walk.scratch.run(walk.ctx, product, rows.start)?;
        copy_rows(walk.ctx, walk.scratch.result, rows.start, w)
    }
}

/// What goes along during one solve.
struct Walk<'a> {
    ctx: &'a Context,
    /// Rows before this one are 0 on both sides.
    first: usize,
    /// Takes the products.
    scratch: Scratch<'a>,
}

/// Memory for the result of one product at a time.
struct Scratch<'a> {
    result: &'a mut Matrix,
    /// Bytes of the memory limit that are taken, the scratch included.
    held_bytes: u64,
}

impl Scratch<'_> {
    /// Computes a product; errors name places below row `first`.
    fn run(&mut self, ctx: &Context, mut product: BlockProduct<'_>, first: usize) -> Result<()> {
        self.result.reshape(product.left.rows(), product.right.cols(), product.precision_bits)?;
        product.inner.held_bytes = self.held_bytes.saturating_sub(self.result.bytes());
        product.run(ctx, self.result).map_err(|error| moved(error, first, 0))
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
