//! The blocked factorisation: halves, a triangular solve for the panel between them, and products for what is left.
//!
//! Where `|d| 2^(-2 h)` lies in `[1/4, 1)` for the pivots found so far, columns are scaled by `2^h`, so that the norms
//! in the products' bounds are those of the rows of `|L| |D|^(1/2)`.

use crate::context::{Context, Progress};
use crate::error::{Error, Result};
use crate::math::bound::{guard_bits, ldlt_guard_bits};
use crate::math::float::Head;
use crate::matrix::{Diag, Matrix, MatrixView, Uplo};
use crate::ops::columns::{ColumnRef, each_column};
use crate::ops::fixed_sum::{FixedSum, OwnFloat};
use crate::ops::ldlt::block;
use crate::ops::product::block::{BlockProduct, BlockShape, largest_need, maximum_working_bits, moved, plan};
use crate::ops::product::problem::Inner;
use crate::ops::trsm::factored::half_exponent;
use crate::ops::trsm::layout::Layout;
use crate::ops::trsm::solver::Solver;
use crate::ops::trsm::spaces::Spaces;
use crate::ops::trsm::system::{Target, load, store};
use crate::ops::trsm::triangle::{Triangle, scaled};
use std::ops::Range;

/// Rows of the blocks that are factored scalar by scalar.
const BLOCK_ROWS: usize = 64;

/// Columns of a strip of what is left: the products of a strip begin at its diagonal.
const STRIP_COLUMNS: usize = 128;

/// Factors `a`, whose lower triangle is read; returns `L` and `D`.
///
/// # Errors
/// Those of [`crate::ldlt()`].
pub(super) fn factor(ctx: &Context, a: MatrixView<'_>, precision_bits: u32) -> Result<(Matrix, Matrix)> {
    let order = a.rows();
    if order != a.cols() {
        return Err(Error::ShapeMismatch {
            operation: "ldlt of a square matrix",
            left_rows: order,
            left_cols: a.cols(),
            right_rows: a.cols(),
            right_cols: order,
        });
    }
    let guards = ldlt_guard_bits(order);
    let maximum_bits = maximum_working_bits(ctx).saturating_sub(guards + guard_bits(order));
    if !(2..=maximum_bits).contains(&precision_bits) {
        return Err(Error::Precision { precision_bits: precision_bits.into(), maximum_bits: maximum_bits.into() });
    }
    let mut lower = Matrix::zeros(order, order, precision_bits)?;
    let mut pivots = Matrix::zeros(order, 1, precision_bits)?;
    let working_bits = precision_bits + guards;
    let work = Matrix::zeros(order, 1, working_bits)?;
    let heads_bytes = 8 * order as u64 * order as u64;
    let parts =
        [lower.bytes(), pivots.bytes(), work.bytes(), Matrix::bytes_for(order, order, working_bits), heads_bytes];
    let held_bytes = parts.iter().fold(0, |sum: u64, &part| sum.saturating_add(part));
    if ctx.memory_bytes().is_some() {
        plan_range(ctx, &(0..order), (order, working_bits, held_bytes))?;
    }
    let mut l = Matrix::zeros(order, order, working_bits)?;
    load(ctx, (&a, 0), None, &mut l)?;
    let heads = vec![0; order * order];
    let mut factoring = Factoring { ctx, l, heads, pivots: work, working_bits, held_bytes };
    factoring.clear_upper(); // what may hold anything
    factoring.factor(0..order)?;
    factoring.clear_upper(); // what strips left there
    store(ctx, &factoring.l, &Target { columns: 0..order, flipped: false }, &mut lower)?;
    store(ctx, &factoring.pivots, &Target { columns: 0..1, flipped: false }, &mut pivots)?;
    Ok((lower, pivots))
}

/// A range of rows and columns cut in two.
struct Cut {
    /// The part that is factored first.
    done: Range<usize>,
    /// The part that the first one changes.
    left: Range<usize>,
}

impl Cut {
    /// The two halves of a range, in whole blocks; `None` for a single block.
    fn of(range: &Range<usize>) -> Option<Cut> {
        let blocks = range.len().div_ceil(BLOCK_ROWS);
        let middle = range.start + blocks.div_ceil(2) * BLOCK_ROWS;
        (blocks > 1).then_some(Cut { done: range.start..middle, left: middle..range.end })
    }

    fn layout(&self, working_bits: u32) -> Layout {
        Layout { order: self.done.len(), working_bits, columns: self.left.len() }
    }

    /// Bytes held at its widest, `base_bytes` among them.
    fn held_bytes(&self, working_bits: u32, base_bytes: u64) -> u64 {
        let layout = self.layout(working_bits);
        let strip = Matrix::bytes_for(self.left.len(), STRIP_COLUMNS, working_bits);
        let bytes = [layout.prepared_bytes(), layout.band_bytes(self.left.len()), strip];
        bytes.iter().fold(base_bytes, |sum, &part| sum.saturating_add(part))
    }

    /// What the products of [`Factoring::update`] take, in a factorisation of that order.
    fn inner(&self, order: usize, working_bits: u32, base_bytes: u64) -> Inner {
        let held_bytes = self.held_bytes(working_bits, base_bytes);
        Inner { working_bits: Some(working_bits + guard_bits(order)), held_bytes }
    }
}

/// Asks whether all that a factorisation runs within `range` fits the memory limit.
///
/// # Errors
/// [`Error::MemoryLimit`] with the least limit that would do.
fn plan_range(ctx: &Context, range: &Range<usize>, (order, working_bits, base_bytes): (usize, u32, u64)) -> Result<()> {
    let Some(cut) = Cut::of(range) else { return ctx.admit(base_bytes) };
    let held_bytes = cut.held_bytes(working_bits, base_bytes);
    let columns = STRIP_COLUMNS.min(cut.left.len());
    let shape = BlockShape { rows: cut.left.len(), cols: columns, contracted: cut.done.len() };
    let update = plan(ctx, shape, working_bits, cut.inner(order, working_bits, base_bytes)).map(|_| ());
    let here = largest_need(cut.layout(working_bits).plan(ctx, cut.left.len(), held_bytes), update);
    let numbers = (order, working_bits, base_bytes);
    [cut.done, cut.left].iter().fold(here, |needs, part| largest_need(needs, plan_range(ctx, part, numbers)))
}

/// A factorisation under way.
struct Factoring<'a> {
    ctx: &'a Context,
    /// What is left of `A`, and the columns of `L` found so far.
    l: Matrix,
    /// Heads of `L H` for the columns found so far; zero above the diagonal.
    heads: Vec<u64>,
    pivots: Matrix,
    working_bits: u32,
    held_bytes: u64,
}

impl Factoring<'_> {
    fn factor(&mut self, range: Range<usize>) -> Result<()> {
        let Some(cut) = Cut::of(&range) else {
            let (done, total) = (range.start as u64, self.l.rows() as u64);
            self.ctx.report_progress(Progress { phase: "factor", done, total })?;
            block::factor(&mut self.l, &mut self.pivots, &range)?;
            self.scale_columns(&range, range.clone());
            return Ok(());
        };
        self.factor(cut.done.clone())?;
        let mut spaces = self.solve_panel(&cut)?;
        self.divide_panel(&spaces.w, &cut)?;
        self.update(&mut spaces, &cut)?;
        spaces.give_back(self.ctx);
        self.factor(cut.left)
    }

    /// Fills in the heads of `L H` for the given columns and rows, on and below the diagonal.
    fn scale_columns(&mut self, columns: &Range<usize>, rows: Range<usize>) {
        let order = self.l.rows();
        for col in columns.clone() {
            let half = half_exponent(self.pivots.get(col, 0).head);
            for row in rows.start.max(col)..rows.end {
                self.heads[row + col * order] = scaled(self.l.get(row, col), half).head.0;
            }
        }
    }

    /// `(L D H^-1)^T` for the rows `left` and the columns `done`: the solution of `L H X = A^T` there.
    fn solve_panel(&self, cut: &Cut) -> Result<Spaces> {
        let Cut { done, left } = cut;
        let (layout, held_bytes) = (cut.layout(self.working_bits), cut.held_bytes(self.working_bits, self.held_bytes));
        let scaled = self.l.view().with_heads(&self.heads);
        let triangle = Triangle::new(scaled.block(done.clone(), done.clone())?, Uplo::Lower, Diag::NonUnit)?;
        let solver = Solver::new(triangle, layout);
        let right = self.l.transposed().block(done.clone(), left.clone())?;
        let mut spaces = Spaces::take(self.ctx)?;
        spaces.w.reshape(done.len(), left.len(), self.working_bits)?;
        load(self.ctx, (&right, 0), None, &mut spaces.w)?;
        let place = |error| transposed(moved(error, done.start, left.start));
        solver.run(self.ctx, &mut spaces, held_bytes).map_err(place)?;
        Ok(spaces)
    }

    /// Writes `L` for the rows `left` and the columns `done`, and its scaled heads.
    fn divide_panel(&mut self, panel: &Matrix, Cut { done, left }: &Cut) -> Result<()> {
        let bits = self.working_bits;
        let factor = |col: usize| {
            let pivot = self.pivots.get(col, 0);
            OwnFloat::reciprocal(pivot, bits).shifted(half_exponent(pivot.head))
        };
        let factors: Vec<OwnFloat> = done.clone().map(factor).collect();
        each_column(
            self.ctx,
            &mut self.l,
            || FixedSum::new(bits),
            |sum, mut column| {
                let col = column.index;
                if !done.contains(&col) {
                    return Ok(());
                }
                for row in left.clone() {
                    let value = panel.get(col - done.start, row - left.start);
                    column.set(row, |limbs| sum.multiply(value, &factors[col - done.start], limbs));
                    block::check_range(column.get(row).head, row, col)?;
                }
                Ok(())
            },
        )?;
        self.scale_columns(done, left.clone());
        Ok(())
    }

    /// Subtracts the products of the columns `done` from the lower triangle of what is left.
    fn update(&mut self, spaces: &mut Spaces, cut: &Cut) -> Result<()> {
        let Cut { done, left } = cut;
        let inner = cut.inner(self.l.rows(), self.working_bits, self.held_bytes);
        let Spaces { w: panel, result: product, .. } = spaces;
        for start in left.clone().step_by(STRIP_COLUMNS) {
            let columns = start..(start + STRIP_COLUMNS).min(left.end);
            let rows = start..left.end;
            let strip = BlockProduct {
                left: panel.view().block(0..done.len(), rows.start - left.start..rows.end - left.start)?.transposed(),
                right: self.l.view().with_heads(&self.heads).block(columns.clone(), done.clone())?.transposed(),
                minuend: Some(self.l.view().block(rows.clone(), columns.clone())?),
                precision_bits: self.working_bits,
                inner,
            };
            product.reshape(rows.len(), columns.len(), self.working_bits)?;
            strip.run(self.ctx, product).map_err(|error| moved(error, rows.start, columns.start))?;
            each_column(
                self.ctx,
                &mut self.l,
                || (),
                |(), mut column| {
                    if columns.contains(&column.index) {
                        let source = ColumnRef::of(product, 0..rows.len(), column.index - columns.start);
                        column.copy_from(rows.start, source);
                    }
                    Ok(())
                },
            )?;
        }
        Ok(())
    }

    /// Zeros above the diagonal.
    fn clear_upper(&mut self) {
        let (order, width) = (self.l.rows().max(1), self.l.limbs_per_element());
        let (heads, limbs) = self.l.parts_mut();
        for (col, (heads, limbs)) in heads.chunks_mut(order).zip(limbs.chunks_mut(order * width)).enumerate() {
            heads[..col].fill(Head::ZERO.0);
            limbs[..col * width].fill(0);
        }
    }
}

/// The error with row and column exchanged.
fn transposed(error: Error) -> Error {
    match error {
        Error::ExponentRange { row, column, exponent, limit } => {
            Error::ExponentRange { row: column, column: row, exponent, limit }
        }
        other => other,
    }
}
