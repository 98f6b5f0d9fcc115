//! The blocked factorisation: halves, a triangular solve for the panel between them, and products for the Schur
//! complement.
//!
//! Where `|d| 2^(-2 h)` lies in `[1/4, 1)` for the pivots found so far, columns are scaled by `2^h`, so that the norms
//! in the products' bounds are those of the rows of `|L| |D|^(1/2)`.

use crate::context::{Context, Progress};
use crate::error::{Error, Result};
use crate::math::bound::{guard_bits, ldlt_guard_bits};
use crate::math::float::{FloatRef, Head};
use crate::matrix::{Diag, Matrix, MatrixView, Uplo, check_exponent};
use crate::ops::columns::each_column;
use crate::ops::fixed_sum::{FixedSum, OwnFloat, Sign};
use crate::ops::product::block::{BlockProduct, BlockShape, moved, plan};
use crate::ops::product::problem::Accuracy;
use crate::ops::solve::band::{Band, Spaces, copy_rows};
use crate::ops::solve::cut::{TriangleCut, larger};
use crate::ops::solve::memory::SolveMemory;
use crate::ops::solve::problem::{LOWER, Method, Path, SolveBits, SystemShape, working_bits};
use crate::ops::solve::run::{SolutionPlace, TriangleSolver, load, make_room, store};
use crate::ops::solve::system::SolveReport;
use crate::ops::solve::triangle::{Triangle, half_exponent, scaled};
use std::ops::Range;

/// Rows of the blocks that are factored scalar by scalar.
const BLOCK_ROWS: usize = 64;

/// Columns of a strip of the Schur complement: the products of a strip begin at its diagonal.
const STRIP_COLUMNS: usize = 128;

/// `L`, `D`, and all of the report except its time.
pub(crate) struct LdltFactors {
    pub lower: Matrix,
    pub pivots: Matrix,
    pub report: SolveReport,
}

/// Factors `a`, whose lower triangle is read.
///
/// # Errors
/// The errors of [`crate::ldlt()`].
pub(crate) fn factor(ctx: &Context, a: MatrixView<'_>, precision_bits: u32, accuracy: Accuracy) -> Result<LdltFactors> {
    let order = a.rows();
    if order != a.cols() {
        return Err(Error::NotSquare { operation: "ldlt", rows: order, cols: a.cols() });
    }
    let working_bits = working_bits(ctx, precision_bits, ldlt_guard_bits(order), order)?;
    let bytes = |bits| Matrix::bytes_for(order, order, bits).saturating_add(Matrix::bytes_for(order, 1, bits));
    let heads_bytes = 8 * order as u64 * order as u64;
    let holding = &ctx.holding(bytes(precision_bits)).holding(bytes(working_bits)).holding(heads_bytes);
    let planned_bytes = plan_range(holding, &(0..order), FactoringSizes { order, working_bits, accuracy })?;
    if ctx.memory_bytes().is_some() {
        make_room(ctx, planned_bytes);
    }
    let first = Halves::of(&(0..order)).map(|halves| (halves.left.len(), halves.method(accuracy)));
    let (columns, method) = first.unwrap_or((0, Method { path: Path::Parts, accuracy }));
    let bits = SolveBits { precision: precision_bits, working: working_bits };
    let report = SolveReport::new(ctx, "ldlt", SystemShape { order, columns }, bits, method);
    let report = SolveReport { bands: 1, planned_bytes, ..report };
    let mut lower = Matrix::zeros(order, order, precision_bits)?;
    let mut pivots = Matrix::zeros(order, 1, precision_bits)?;
    let work = Matrix::zeros(order, 1, working_bits)?;
    let mut l = Matrix::zeros(order, order, working_bits)?;
    load(ctx, &a, 0, None, &mut l)?;
    let heads = vec![0; order * order];
    let mut factoring = LdltFactoring { ctx: holding, l, heads, pivots: work, working_bits, accuracy };
    factoring.clear_upper(); // what may hold anything
    factoring.factor(0..order)?;
    factoring.clear_upper(); // what strips left there
    store(ctx, &factoring.l, &SolutionPlace { columns: 0..order, transposed: false }, &mut lower)?;
    store(ctx, &factoring.pivots, &SolutionPlace { columns: 0..1, transposed: false }, &mut pivots)?;
    Ok(LdltFactors { lower, pivots, report })
}

/// The numbers of a factorisation that its memory depends on.
#[derive(Clone, Copy)]
struct FactoringSizes {
    order: usize,
    working_bits: u32,
    accuracy: Accuracy,
}

/// A range of rows and columns cut in two.
struct Halves {
    /// The part that is factored first.
    done: Range<usize>,
    /// The part that the first one changes.
    left: Range<usize>,
}

impl Halves {
    /// The two halves of a range, in whole blocks; `None` for a single block.
    fn of(range: &Range<usize>) -> Option<Halves> {
        let blocks = range.len().div_ceil(BLOCK_ROWS);
        let middle = range.start + blocks.div_ceil(2) * BLOCK_ROWS;
        (blocks > 1).then_some(Halves { done: range.start..middle, left: middle..range.end })
    }

    /// The method for the panel between them.
    fn method(&self, accuracy: Accuracy) -> Method {
        Method::choose(LOWER, self.done.len(), self.left.len(), accuracy)
    }

    /// The memory of the panel's solve, in addition to a strip of the Schur complement.
    fn memory(&self, ctx: &Context, cut: TriangleCut) -> SolveMemory {
        let strip = Matrix::bytes_for(self.left.len(), STRIP_COLUMNS, cut.working_bits);
        SolveMemory::new(ctx.holding(strip), vec![cut])
    }

    /// The context of the products of [`LdltFactoring::update`]: it holds the panel and a strip of the Schur
    /// complement.
    fn beside_panel(&self, ctx: &Context, working_bits: u32, accuracy: Accuracy) -> Context {
        let cut = TriangleCut::expected(self.done.len(), working_bits, self.method(accuracy));
        let columns = self.left.len();
        let strip = Matrix::bytes_for(columns, STRIP_COLUMNS, working_bits);
        ctx.holding(strip).holding(cut.right_bytes(columns)).holding(cut.parts_bytes(columns))
    }
}

/// Bytes of all that a factorisation runs within `range`, on a context that holds its matrices; without a memory limit,
/// of the first panel and its products.
///
/// # Errors
/// [`Error::MemoryLimit`] with the smallest limit that suffices.
fn plan_range(ctx: &Context, range: &Range<usize>, sizes: FactoringSizes) -> Result<u64> {
    let FactoringSizes { order, working_bits, accuracy } = sizes;
    let Some(halves) = Halves::of(range) else { return ctx.memory().admit(0) };
    let columns = STRIP_COLUMNS.min(halves.left.len());
    let shape = BlockShape { rows: halves.left.len(), cols: columns, contracted: halves.done.len() };
    let beside = halves.beside_panel(ctx, working_bits, accuracy);
    let update = plan(&beside, shape, working_bits, working_bits + guard_bits(order));
    let update = update.map(|plan| beside.memory().total(plan.planned_bytes));
    let cut = TriangleCut::expected(halves.done.len(), working_bits, halves.method(accuracy));
    let memory = halves.memory(ctx, cut);
    if ctx.memory_bytes().is_none() {
        return larger(memory.unlimited_bytes(halves.left.len()), update);
    }
    let here = larger(memory.bytes(memory.ctx.memory(), halves.left.len()), update);
    [halves.done, halves.left].iter().fold(here, |most, part| larger(most, plan_range(ctx, part, sizes)))
}

/// A factorisation under way.
struct LdltFactoring<'a> {
    /// Holds all the matrices below.
    ctx: &'a Context,
    /// The Schur complement of `A`, and the columns of `L` found so far.
    l: Matrix,
    /// Heads of `L H` for the columns found so far; zero above the diagonal.
    heads: Vec<u64>,
    pivots: Matrix,
    working_bits: u32,
    accuracy: Accuracy,
}

impl LdltFactoring<'_> {
    fn factor(&mut self, range: Range<usize>) -> Result<()> {
        let Some(halves) = Halves::of(&range) else {
            let (done, total) = (range.start as u64, self.l.rows() as u64);
            self.ctx.report_progress(Progress::new("factor", done, total))?;
            factor_block(&mut self.l, &mut self.pivots, &range)?;
            self.scale_columns(&range, range.clone());
            return Ok(());
        };
        self.factor(halves.done.clone())?;
        let mut spaces = self.solve_panel(&halves)?;
        self.divide_panel(&spaces.w, &halves)?;
        self.update(&mut spaces, &halves)?;
        spaces.give_back(self.ctx);
        self.factor(halves.left)
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
    fn solve_panel(&self, halves: &Halves) -> Result<Spaces> {
        let Halves { done, left } = halves;
        let scaled = self.l.view().with_heads(&self.heads);
        let triangle = Triangle::new(scaled.block(done.clone(), done.clone())?, Uplo::Lower, Diag::NonUnit)?;
        let mut solver = TriangleSolver::new(triangle, self.working_bits, halves.method(self.accuracy));
        let memory = halves.memory(self.ctx, solver.cut());
        let band = Band::first(&memory, left.len(), self.ctx.memory_bytes());
        let right = self.l.transposed().block(done.clone(), left.clone())?;
        let mut spaces = Spaces::take(self.ctx)?;
        spaces.w.reshape(done.len(), left.len(), self.working_bits)?;
        load(self.ctx, &right, 0, None, &mut spaces.w)?;
        let place = |error| transposed(moved(error, done.start, left.start));
        solver.run(&band, (0..left.len()).collect(), &mut spaces).map_err(place)?;
        Ok(spaces)
    }

    /// Writes `L` for the rows `left` and the columns `done`, and its scaled heads.
    fn divide_panel(&mut self, panel: &Matrix, Halves { done, left }: &Halves) -> Result<()> {
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
                    check_exponent(column.get(row).head.exponent(), row, col)?;
                }
                Ok(())
            },
        )?;
        self.scale_columns(done, left.clone());
        Ok(())
    }

    /// Subtracts the products of the columns `done` from the lower triangle of the Schur complement.
    fn update(&mut self, spaces: &mut Spaces, halves: &Halves) -> Result<()> {
        let Halves { done, left } = halves;
        let beside = halves.beside_panel(self.ctx, self.working_bits, self.accuracy);
        let working_bits = self.working_bits + guard_bits(self.l.rows());
        let Spaces { w: panel, result: product, .. } = spaces;
        for start in left.clone().step_by(STRIP_COLUMNS) {
            let columns = start..(start + STRIP_COLUMNS).min(left.end);
            let rows = start..left.end;
            let strip = BlockProduct {
                left: panel.view().block(0..done.len(), rows.start - left.start..rows.end - left.start)?.transposed(),
                right: self.l.view().with_heads(&self.heads).block(columns.clone(), done.clone())?.transposed(),
                minuend: Some(self.l.view().block(rows.clone(), columns.clone())?),
                precision_bits: self.working_bits,
                working_bits,
                accuracy: self.accuracy,
            };
            product.reshape(rows.len(), columns.len(), self.working_bits)?;
            strip.run(&beside, product).map_err(|error| moved(error, rows.start, columns.start))?;
            copy_rows(self.ctx, product, rows.start, &columns, &mut self.l)?;
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

/// Factors the block of rows and columns `range` of `l`, whose lower triangle holds the Schur complement of `A` there.
///
/// Afterwards `l` holds the unit triangle and `pivots` the block's part of `D`.
///
/// # Errors
/// [`Error::Singular`] with the index of a pivot that is 0, [`Error::ExponentRange`].
fn factor_block(l: &mut Matrix, pivots: &mut Matrix, range: &Range<usize>) -> Result<()> {
    let bits = l.precision_bits();
    let mut work = BlockFactoring {
        start: range.start,
        products: Matrix::zeros(range.len(), range.len(), bits)?,
        sum: FixedSum::new(bits),
        limbs: vec![0; l.limbs_per_element()],
    };
    for col in range.clone() {
        for row in col..range.end {
            work.reduce(l, row, col)?;
        }
        let pivot = work.product(col, col);
        if pivot.head.is_zero() {
            return Err(Error::Singular { index: col });
        }
        let reciprocal = OwnFloat::reciprocal(pivot, bits);
        pivots.set(col, 0, pivot);
        l.set_f64(col, col, 1.0)?;
        for row in col + 1..range.end {
            work.divide(l, row, col, &reciprocal)?;
        }
    }
    Ok(())
}

struct BlockFactoring {
    /// First row and column of the block.
    start: usize,
    /// Column k is column k of `L` times its pivot, as it was before the division.
    products: Matrix,
    sum: FixedSum,
    limbs: Vec<u64>,
}

impl BlockFactoring {
    fn product(&self, row: usize, col: usize) -> FloatRef<'_> {
        self.products.get(row - self.start, col - self.start)
    }

    /// `products_ij := l_ij - sum over k < j in the block of products_ik l_jk`.
    fn reduce(&mut self, l: &Matrix, row: usize, col: usize) -> Result<()> {
        let BlockFactoring { start, products, sum, limbs } = self;
        let own = l.get(row, col);
        let factors = |k: usize| (products.get(row - *start, k - *start), l.get(col, k));
        sum.set(own, (*start..col).map(factors), Sign::Minus);
        let head = sum.round(limbs);
        check_exponent(head.exponent(), row, col)?;
        products.set(row - *start, col - *start, FloatRef { head, limbs });
        Ok(())
    }

    /// `l_ij := products_ij / d_j`.
    fn divide(&mut self, l: &mut Matrix, row: usize, col: usize, reciprocal: &OwnFloat) -> Result<()> {
        let value = self.products.get(row - self.start, col - self.start);
        let head = self.sum.multiply(value, reciprocal, &mut self.limbs);
        check_exponent(head.exponent(), row, col)?;
        l.set(row, col, FloatRef { head, limbs: &self.limbs });
        Ok(())
    }
}
