//! A triangle cut into a tree of blocks, and the solve that walks it: products for all that is off the diagonal blocks.
//!
//! The tree depends on the triangle, the precision and the number of right sides, so the bits do not depend on
//! anything else.

use crate::context::Context;
use crate::drive::Meter;
use crate::error::{Error, Result};
use crate::math::bound::{TRSM_BLOCK_ROWS, guard_bits};
use crate::matrix::Matrix;
use crate::ops::block::{BlockProduct, BlockShape, moved, plan};
use crate::ops::columns::{ColumnRef, each_column};
use crate::ops::problem::Inner;
use crate::ops::trsm::inverse::Inverse;
use crate::ops::trsm::triangle::Triangle;
use crate::ops::trsm::vector::Substitution;
use crate::ops::window::Window;
use std::ops::Range;

/// Parts into which a range of blocks is cut.
const PARTS: usize = 4;

/// From this many right sides on, the inverse of a diagonal block costs less than substitution.
const INVERSE_COLUMNS: usize = 40;

/// Rows of the blocks that are solved by substitution.
const SUBSTITUTION_ROWS: usize = 16;

/// A triangle prepared for solves at one working precision.
pub(crate) struct Solver<'a> {
    triangle: Triangle<'a>,
    working_bits: u32,
    /// Bits of the scaled integers in all products off the diagonal blocks, the same so that one engine serves all.
    product_bits: u32,
    root: Node,
}

/// A diagonal block.
enum Node {
    /// Its parts in the order in which their unknowns are found.
    Split(Vec<(Range<usize>, Node)>),
    /// Solved by a product with its inverse.
    Inverse(Inverse),
    /// Solved scalar by scalar.
    Substitution(Substitution),
}

impl<'a> Solver<'a> {
    /// Cuts `triangle` for solves with `columns` right sides at `working_bits`.
    ///
    /// # Errors
    /// Those of the solves that invert diagonal blocks.
    pub fn new(ctx: &Context, triangle: Triangle<'a>, working_bits: u32, columns: usize) -> Result<Solver<'a>> {
        let cutter = Cutter { ctx, triangle, working_bits, columns };
        let root = cutter.node(0..triangle.order())?;
        let product_bits = working_bits + guard_bits(triangle.order());
        Ok(Solver { triangle, working_bits, product_bits, root })
    }

    /// Bytes held by the inverses.
    pub fn bytes(&self) -> u64 {
        self.root.bytes()
    }

    /// Asks whether the products of a solve with `columns` right sides fit the memory limit beside `held_bytes`.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`] with the least that the most demanding product needs.
    pub fn plan(&self, ctx: &Context, columns: usize, held_bytes: u64) -> Result<()> {
        let mut largest = None;
        self.root.visit(&mut |shape, inverse| {
            let copied = inverse.map_or(0, |_| Matrix::bytes_for(shape.contracted, columns, self.working_bits));
            let working_bits = Some(inverse.map_or(self.product_bits, |inverse| inverse.product_bits));
            let inner = Inner { working_bits, held_bytes: held_bytes.saturating_add(copied) };
            match plan(ctx, BlockShape { cols: columns, ..shape }, self.working_bits, inner) {
                Err(Error::MemoryLimit { minimum_bytes, .. }) => {
                    largest = largest.max(Some(minimum_bytes));
                    Ok(())
                }
                other => other.map(|_| ()),
            }
        })?;
        let limit_bytes = ctx.memory_bytes().unwrap_or(u64::MAX);
        largest.map_or(Ok(()), |minimum_bytes| Err(Error::MemoryLimit { limit_bytes, minimum_bytes }))
    }

    /// Replaces the right sides in `w`, of the working precision, by the solutions; `held_bytes` of the memory limit
    /// are not for the products.
    ///
    /// # Errors
    /// [`Error::ExponentRange`] with a place in `w`; [`Error::MemoryLimit`]; [`Error::Cancelled`];
    /// [`Error::SelfCheck`]; [`Error::OutOfMemory`].
    pub fn run(&self, ctx: &Context, w: &mut Matrix, held_bytes: u64) -> Result<()> {
        assert_eq!((w.rows(), w.precision_bits()), (self.triangle.order(), self.working_bits));
        if w.rows() == 0 || w.cols() == 0 {
            return Ok(());
        }
        self.solve(&self.root, &Walk { ctx, held_bytes }, w)
    }

    fn solve(&self, node: &Node, walk: &Walk<'_>, w: &mut Matrix) -> Result<()> {
        match node {
            Node::Split(parts) => {
                let mut known: Option<Range<usize>> = None;
                for (rows, part) in parts {
                    if let Some(known) = &known {
                        self.update(walk, (rows, known), w)?;
                    }
                    self.solve(part, walk, w)?;
                    let both = |known: Range<usize>| known.start.min(rows.start)..known.end.max(rows.end);
                    known = Some(known.map_or(rows.clone(), both));
                }
                Ok(())
            }
            Node::Inverse(inverse) => self.apply(walk, inverse, w),
            Node::Substitution(substitution) => {
                let window = || Window::new(self.working_bits);
                let meter = Meter::new(walk.ctx, w.cols() as u64);
                each_column(walk.ctx, w, window, |window, mut column| {
                    substitution.run(&self.triangle, window, &mut column)?;
                    meter.add("solve", 1)
                })
            }
        }
    }

    /// `w_rows := w_rows - T_(rows, known) w_known`.
    fn update(&self, walk: &Walk<'_>, (rows, known): (&Range<usize>, &Range<usize>), w: &mut Matrix) -> Result<()> {
        let all = 0..w.cols();
        let product = BlockProduct {
            left: self.triangle.block(rows.clone(), known.clone())?,
            right: w.view().block(known.clone(), all.clone())?,
            minuend: Some(w.view().block(rows.clone(), all)?),
            precision_bits: self.working_bits,
            inner: Inner { working_bits: Some(self.product_bits), held_bytes: walk.held_bytes },
        };
        let mut result = Matrix::zeros(0, 0, 2)?;
        product.run(walk.ctx, &mut result).map_err(|error| moved(error, rows.start, 0))?;
        copy_rows(walk.ctx, &result, rows.start, w)
    }

    /// `w_rows := V S w_rows`.
    fn apply(&self, walk: &Walk<'_>, inverse: &Inverse, w: &mut Matrix) -> Result<()> {
        let Inverse { rows, exponents, .. } = inverse;
        let mut right = Matrix::zeros(rows.len(), w.cols(), self.working_bits)?;
        each_column(
            walk.ctx,
            &mut right,
            || (),
            |_, mut column| {
                column.copy_from(0, ColumnRef::of(w, rows.clone(), column.index));
                column.shift(exponents);
                Ok(())
            },
        )?;
        let held_bytes = walk.held_bytes + right.bytes();
        let product = BlockProduct {
            left: inverse.scaled.view(),
            right: right.view(),
            minuend: None,
            precision_bits: self.working_bits,
            inner: Inner { working_bits: Some(inverse.product_bits), held_bytes },
        };
        let mut result = Matrix::zeros(0, 0, 2)?;
        product.run(walk.ctx, &mut result).map_err(|error| moved(error, rows.start, 0))?;
        copy_rows(walk.ctx, &result, rows.start, w)
    }
}

/// What stays the same during one solve.
struct Walk<'a> {
    ctx: &'a Context,
    held_bytes: u64,
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

/// Makes the tree.
struct Cutter<'a> {
    ctx: &'a Context,
    triangle: Triangle<'a>,
    working_bits: u32,
    columns: usize,
}

impl Cutter<'_> {
    fn node(&self, rows: Range<usize>) -> Result<Node> {
        if rows.len() > TRSM_BLOCK_ROWS {
            let blocks = rows.len().div_ceil(TRSM_BLOCK_ROWS);
            return self.split(rows, blocks.div_ceil(PARTS) * TRSM_BLOCK_ROWS);
        }
        if self.columns >= INVERSE_COLUMNS
            && let Some(inverse) = Inverse::new(self.ctx, &self.triangle, rows.clone(), self.working_bits)?
        {
            return Ok(Node::Inverse(inverse));
        }
        if rows.len() > SUBSTITUTION_ROWS {
            let half = rows.len().div_ceil(2).next_multiple_of(8);
            return self.split(rows, half);
        }
        Ok(Node::Substitution(Substitution::new(&self.triangle, rows, self.working_bits)))
    }

    /// Parts of `count` rows each, the last with what is left.
    fn split(&self, rows: Range<usize>, count: usize) -> Result<Node> {
        let starts = rows.clone().step_by(count);
        let part = |start: usize| {
            let part = start..(start + count).min(rows.end);
            Ok((part.clone(), self.node(part)?))
        };
        let mut parts = starts.map(part).collect::<Result<Vec<_>>>()?;
        if !self.triangle.is_lower() {
            parts.reverse();
        }
        Ok(Node::Split(parts))
    }
}

impl Node {
    fn bytes(&self) -> u64 {
        match self {
            Node::Split(parts) => parts.iter().map(|(_, part)| part.bytes()).sum(),
            Node::Inverse(inverse) => inverse.bytes(),
            Node::Substitution(substitution) => substitution.bytes(),
        }
    }

    /// Shows the shape of each product, but for its columns, to `see`, and the inverse that it applies.
    fn visit(&self, see: &mut impl FnMut(BlockShape, Option<&Inverse>) -> Result<()>) -> Result<()> {
        match self {
            Node::Split(parts) => {
                let mut contracted = 0;
                for (rows, part) in parts {
                    if contracted > 0 {
                        see(BlockShape { rows: rows.len(), cols: 0, contracted }, None)?;
                    }
                    contracted += rows.len();
                    part.visit(see)?;
                }
                Ok(())
            }
            Node::Inverse(inverse) => {
                let rows = inverse.rows.len();
                see(BlockShape { rows, cols: 0, contracted: rows }, Some(inverse))
            }
            Node::Substitution(_) => Ok(()),
        }
    }
}
