//! A triangle cut into a tree of blocks, and the solve that walks it: products for all that is off the diagonal blocks.
//!
//! The tree depends on the triangle, the precision and the number of right sides, so the bits do not depend on
//! anything else.

use crate::context::Context;
use crate::drive::Meter;
use crate::error::Result;
use crate::math::bound::{TRSM_BLOCK_ROWS, TRSM_GROUP_ROWS, guard_bits};
use crate::matrix::Matrix;
use crate::ops::block::{BlockProduct, BlockShape, largest_need, moved, plan};
use crate::ops::columns::{ColumnRef, each_column};
use crate::ops::problem::Inner;
use crate::ops::trsm::group::Group;
use crate::ops::trsm::spaces::Spaces;
use crate::ops::trsm::triangle::Triangle;
use crate::ops::trsm::vector::Substitution;
use crate::ops::window::Window;
use std::ops::Range;

/// Parts into which a range of groups is cut.
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
    /// Solved by products with inverses.
    Group(Range<usize>, Group),
    /// Solved scalar by scalar.
    Substitution(Substitution),
}

impl<'a> Solver<'a> {
    /// Cuts `triangle` for solves at `working_bits` with `columns` right sides; `held_bytes` of the memory limit are taken.
    ///
    /// # Errors
    /// Those of the products that prepare diagonal blocks.
    pub fn new(
        ctx: &Context,
        triangle: Triangle<'a>,
        (working_bits, columns): (u32, usize),
        held_bytes: u64,
    ) -> Result<Solver<'a>> {
        let cutter = Cutter { ctx, triangle, working_bits, columns, held_bytes };
        let root = cutter.node(0..triangle.order())?;
        let product_bits = working_bits + guard_bits(triangle.order());
        Ok(Solver { triangle, working_bits, product_bits, root })
    }

    /// Bytes held by what is prepared.
    pub fn bytes(&self) -> u64 {
        self.root.bytes()
    }

    /// Asks whether the products of a solve with `columns` right sides fit the memory limit beside `held_bytes`.
    ///
    /// # Errors
    /// [`crate::Error::MemoryLimit`] with the least that the most demanding product needs.
    pub fn plan(&self, ctx: &Context, columns: usize, held_bytes: u64) -> Result<()> {
        let mut needs = Ok(());
        self.root.visit(&mut |shape, product_bits| {
            let working_bits = Some(product_bits.unwrap_or(self.product_bits));
            // The result of the product lies in the scratch, which is held.
            let result_bytes = Matrix::bytes_for(shape.rows, columns, self.working_bits);
            let inner = Inner { working_bits, held_bytes: held_bytes.saturating_sub(result_bytes) };
            let planned = plan(ctx, BlockShape { cols: columns, ..shape }, self.working_bits, inner);
            needs = largest_need(std::mem::replace(&mut needs, Ok(())), planned.map(|_| ()));
        });
        needs
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
        let Spaces { w, result } = spaces;
        assert_eq!((w.rows(), w.precision_bits()), (self.triangle.order(), self.working_bits));
        assert!(first == 0 || self.triangle.is_lower(), "an upper triangle begins at its last row");
        if w.rows() == 0 || w.cols() == 0 {
            return Ok(());
        }
        result.reshape(self.scratch_rows(), w.cols(), self.working_bits)?;
        self.solve(&self.root, &mut Walk { ctx, first, scratch: Scratch { result, held_bytes } }, w)
    }

    /// Rows of the largest result of a product.
    fn scratch_rows(&self) -> usize {
        let mut rows = 0;
        self.root.visit(&mut |shape, _| rows = rows.max(shape.rows));
        rows
    }

    /// Bytes of the scratch of a solve with `columns` right sides.
    pub fn scratch_bytes(&self, columns: usize) -> u64 {
        Matrix::bytes_for(self.scratch_rows(), columns, self.working_bits)
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
            Node::Group(rows, group) => self.apply(walk, (rows, group), w),
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
    fn update(&self, walk: &mut Walk<'_>, (rows, known): (&Range<usize>, &Range<usize>), w: &mut Matrix) -> Result<()> {
        let all = 0..w.cols();
        let product = BlockProduct {
            left: self.triangle.block(rows.clone(), known.clone())?,
            right: w.view().block(known.clone(), all.clone())?,
            minuend: Some(w.view().block(rows.clone(), all)?),
            precision_bits: self.working_bits,
            inner: Inner { working_bits: Some(self.product_bits), held_bytes: 0 },
        };
        walk.scratch.run(walk.ctx, product, rows.start)?;
        copy_rows(walk.ctx, walk.scratch.result, rows.start, w)
    }

    /// `w_I := V S w_I - M w_J` for each block `I` of a group.
    fn apply(&self, walk: &mut Walk<'_>, (rows, group): (&Range<usize>, &Group), w: &mut Matrix) -> Result<()> {
        each_column(
            walk.ctx,
            w,
            || (),
            |(), mut column| {
                column.shift(rows.start, &group.exponents);
                Ok(())
            },
        )?;
        for part in &group.parts {
            let product = BlockProduct {
                left: part.factors.view(),
                right: w.view().block(part.sources.clone(), 0..w.cols())?,
                minuend: None,
                precision_bits: self.working_bits,
                inner: Inner { working_bits: Some(part.product_bits), held_bytes: 0 },
            };
            walk.scratch.run(walk.ctx, product, part.rows.start)?;
            copy_rows(walk.ctx, walk.scratch.result, part.rows.start, w)?;
        }
        Ok(())
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

/// Makes the tree.
struct Cutter<'a> {
    ctx: &'a Context,
    triangle: Triangle<'a>,
    working_bits: u32,
    columns: usize,
    held_bytes: u64,
}

impl Cutter<'_> {
    fn node(&self, rows: Range<usize>) -> Result<Node> {
        if rows.len() > TRSM_GROUP_ROWS {
            let groups = rows.len().div_ceil(TRSM_GROUP_ROWS);
            return self.split(rows, groups.div_ceil(PARTS) * TRSM_GROUP_ROWS);
        }
        let bits = (self.working_bits, self.held_bytes);
        if self.columns >= INVERSE_COLUMNS
            && let Some(group) = Group::new(self.ctx, &self.triangle, rows.clone(), bits)?
        {
            return Ok(Node::Group(rows, group));
        }
        if rows.len() > SUBSTITUTION_ROWS {
            let half = rows.len().div_ceil(2);
            return self.split(rows, half.next_multiple_of(if half > TRSM_BLOCK_ROWS { TRSM_BLOCK_ROWS } else { 8 }));
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
            Node::Group(_, group) => group.bytes(),
            Node::Substitution(substitution) => substitution.bytes(),
        }
    }

    /// Shows the shape of each product, but for its columns, to `see`, and the bits of its integers, if they are its own.
    fn visit(&self, see: &mut impl FnMut(BlockShape, Option<u32>)) {
        match self {
            Node::Split(parts) => {
                let mut contracted = 0;
                for (rows, part) in parts {
                    if contracted > 0 {
                        see(BlockShape { rows: rows.len(), cols: 0, contracted }, None);
                    }
                    contracted += rows.len();
                    part.visit(see);
                }
            }
            Node::Group(_, group) => {
                for part in &group.parts {
                    let shape = BlockShape { rows: part.rows.len(), cols: 0, contracted: part.sources.len() };
                    see(shape, Some(part.product_bits));
                }
            }
            Node::Substitution(_) => {}
        }
    }
}
