//! `A x = b` by substitution for a few right-hand sides: exact dot products in fixed point, blocks of 8 rows.
//!
//! Promise: a solution depends only on factor, right-hand side and precision. Bounds: docs/ALGORITHM.md, "One
//! right-hand side".

pub(crate) mod unknowns;

use crate::context::Context;
use crate::drive::{self, Meter};
use crate::error::{Error, Result};
use crate::io::Block;
use crate::kernels::dots::{DIGIT_BITS, PADDING};
use crate::math::bound::vector_solve_bits;
use crate::matrix::{Destination, MAXIMUM_EXPONENT, Matrix, MatrixView, MatrixViewMut};
use crate::ops::product::scale::{NormPass, norm_exponents};
use crate::ops::solve::blocks::TriangleBlocks;
use crate::ops::solve::dots::unknowns::{FactorPiece, Scaling, Sweep, Unknowns};
use crate::ops::solve::problem::SystemShape;
use crate::ops::solve::run::make_room;
use crate::plan::BLOCK;
use rug::{Float, Integer};
use std::ops::Range;
use std::sync::OnceLock;

/// For each row of the factor the `r_i` with `norm(l_i) <= 2^r_i`.
///
/// # Errors
/// The errors of [`norm_exponents`].
pub(crate) fn row_norms(ctx: &Context, factor: &Matrix) -> Result<Vec<i64>> {
    let mut norms = vec![0; factor.rows()];
    let rows = [factor.transposed()];
    norm_exponents(&NormPass::one_process(ctx, ctx.threads()), &rows, true, &mut norms)?;
    Ok(norms)
}

/// [`row_norms`], found once and kept.
///
/// # Errors
/// As [`row_norms`].
pub(crate) fn kept_row_norms<'a>(ctx: &Context, factor: &Matrix, kept: &'a OnceLock<Vec<i64>>) -> Result<&'a [i64]> {
    if kept.get().is_none() {
        let norms = row_norms(ctx, factor)?;
        kept.get_or_init(|| norms);
    }
    Ok(kept.get().map_or(&[], |norms| norms))
}

/// Solves `L L^T X = B` column by column; `factor` is `n x n` with zeros above its diagonal and none on it, and its
/// [`row_norms`]; `b` has `n` rows. Returns the bytes of the call.
///
/// # Errors
/// [`Error::ExponentRange`], [`Error::MemoryLimit`], [`Error::Cancelled`], [`Error::OutOfMemory`].
pub(crate) fn solve_columns(
    ctx: &Context,
    factor: &Matrix,
    norms: &[i64],
    b: MatrixView<'_>,
    precision_bits: u32,
    result: Destination<'_>,
) -> Result<u64> {
    let order = factor.rows();
    let shape = SystemShape { order, columns: b.cols() };
    let planned_bytes = ctx.memory().admit(bytes(ctx, shape, precision_bits))?;
    make_room(ctx, planned_bytes);
    let result = result.prepare((order, b.cols()), precision_bits)?;
    let system = DotSystem::new(precision_bits, norms, order);
    let (mut lower, mut upper) = (factor.view(), factor.transposed());
    store_columns(&system.solve(ctx, [&mut lower, &mut upper], b)?, result)?;
    Ok(planned_bytes)
}

/// Rounds columns of numbers into a matrix.
///
/// # Errors
/// [`Error::ExponentRange`] with the first place, column by column, that leaves the exponent range.
pub(crate) fn store_columns(columns: &[Vec<Float>], mut solution: MatrixViewMut<'_>) -> Result<()> {
    for (column, values) in columns.iter().enumerate() {
        for (row, value) in values.iter().enumerate() {
            if !value.is_finite() {
                let (exponent, limit) = (i64::from(i32::MAX), MAXIMUM_EXPONENT);
                return Err(Error::ExponentRange { row, column, exponent, limit });
            }
            solution.set_float(row, column, value)?;
        }
    }
    Ok(())
}

/// Most bytes of a call: the solution, and what [`vector_bytes`] counts.
pub(crate) fn bytes(ctx: &Context, shape: SystemShape, precision_bits: u32) -> u64 {
    shape.right_bytes(precision_bits) + vector_bytes(ctx, shape, precision_bits)
}

/// Most bytes in addition to the solution: for each column the unknowns as numbers and as digits, and those of the
/// previous substitution as numbers; exponents; for each worker the sums of a block, and their operands.
pub(crate) fn vector_bytes(ctx: &Context, shape: SystemShape, precision_bits: u32) -> u64 {
    let SystemShape { order, columns } = shape;
    let bits = vector_solve_bits(precision_bits, order);
    let number = u64::from(bits.div_ceil(64)) * 8 + 48;
    let digits = bits.div_ceil(DIGIT_BITS);
    let fixed = 8 * (u64::from(digits) + 2 * PADDING as u64 + 1);
    // Sums as the kernel returns them and as they are kept, both of twice the bits, right sides, and some on the way.
    let block = ctx.kernel().dots_bytes(digits as usize) + (4 * BLOCK as u64 + BLOCK as u64 + 12) * number;
    order as u64 * (columns as u64 * (2 * number + fixed) + 8 * 6) + workers(ctx, columns) as u64 * block.max(64 << 10)
}

/// Each has a column at a time.
fn workers(ctx: &Context, cols: usize) -> usize {
    ctx.threads().min(cols).max(1)
}

/// A factor's scaling, and the number of its rows that are read together.
pub(crate) struct DotSystem {
    scaling: Scaling,
    /// Rows of a piece, whole blocks of 8; they never change the solution.
    piece_rows: usize,
}

impl DotSystem {
    /// For a factor whose rows have these norms, in pieces of `piece_rows` rows or a few more.
    pub fn new(precision_bits: u32, norms: &[i64], piece_rows: usize) -> DotSystem {
        DotSystem {
            scaling: Scaling::new(precision_bits, norms),
            piece_rows: piece_rows.next_multiple_of(BLOCK).max(BLOCK),
        }
    }

    /// The columns of `X` with `L L^T X = B`; the triangles are `L` and its transpose.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and the errors of the triangles.
    pub fn solve(
        &self,
        ctx: &Context,
        [lower, upper]: [&mut dyn TriangleBlocks; 2],
        b: MatrixView<'_>,
    ) -> Result<Vec<Vec<Float>>> {
        let right = |row: usize, col: usize| b.get(row, col).to_float(b.precision_bits());
        let blocks = self.scaling.order().div_ceil(BLOCK) * b.cols();
        let meter = Meter::new(ctx, 2 * blocks as u64);
        let middle = self.sweep(&meter, Sweep::Forward, lower, b.cols(), &right)?;
        self.sweep(&meter, Sweep::Backward, upper, b.cols(), &|row, col| middle[col][row].clone())
    }

    /// The pieces of a substitution: a fixed number of rows of its triangle at a time, up to the diagonal.
    fn pieces(&self, sweep: Sweep) -> impl Iterator<Item = Block> + Send + use<> {
        let (order, piece_rows) = (self.scaling.order(), self.piece_rows);
        let count = order.div_ceil(piece_rows);
        (0..count).map(move |step| {
            let at = if sweep == Sweep::Forward { step } else { count - 1 - step };
            let rows = at * piece_rows..((at + 1) * piece_rows).min(order);
            let cols = if sweep == Sweep::Forward { 0..rows.end } else { rows.start..order };
            Block { rows, cols }
        })
    }

    /// One of the two substitutions, on `columns` columns with the right-hand sides `right(row, col)`.
    fn sweep(
        &self,
        meter: &Meter<'_>,
        sweep: Sweep,
        triangle: &mut dyn TriangleBlocks,
        columns: usize,
        right: &(dyn Fn(usize, usize) -> Float + Sync),
    ) -> Result<Vec<Vec<Float>>> {
        let ctx = meter.ctx();
        let mut unknowns = (0..columns).map(|_| Unknowns::new(&self.scaling, sweep)).collect::<Vec<_>>();
        let mut locals = vec![(); workers(ctx, columns)];
        let order = self.scaling.order();
        triangle.begin(Box::new(self.pieces(sweep)), self.piece_rows.min(order) * order)?;
        for Block { rows, cols } in self.pieces(sweep) {
            let view = triangle.block(&Block { rows: rows.clone(), cols: cols.clone() })?;
            let piece = match sweep {
                Sweep::Forward => FactorPiece { view, first_row: rows.start, first_col: 0 },
                Sweep::Backward => {
                    FactorPiece { view: view.transposed(), first_row: rows.start, first_col: rows.start }
                }
            };
            let mut items = unknowns.iter_mut().enumerate();
            let solve = |(): &mut (), (col, unknowns): (usize, &mut Unknowns<'_>)| {
                self.solve_piece(meter, &piece, &rows, unknowns, &|row| right(row, col))
            };
            ctx.install(|| drive::parallel_for(&mut locals, |()| items.next(), solve))?;
        }
        triangle.finish();
        Ok(unknowns.into_iter().map(Unknowns::into_values).collect())
    }

    /// The unknowns `rows`, for which all entries of the factor are in a piece, a block after the other.
    fn solve_piece(
        &self,
        meter: &Meter<'_>,
        piece: &FactorPiece<'_>,
        rows: &Range<usize>,
        unknowns: &mut Unknowns<'_>,
        right: &dyn Fn(usize) -> Float,
    ) -> Result<()> {
        let ctx = meter.ctx();
        let blocks = rows.len().div_ceil(BLOCK);
        for step in 0..blocks {
            let at = rows.start + BLOCK * if unknowns.sweep() == Sweep::Forward { step } else { blocks - 1 - step };
            let block = at..(at + BLOCK).min(rows.end);
            let right = block.clone().map(right).collect::<Vec<_>>();
            let mut sums = [Integer::ZERO; BLOCK];
            unknowns.solve_rows(ctx.kernel(), piece, &block, &right, &mut sums);
            meter.add("solve", 1)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rug::rand::RandState;

    #[test]
    fn pieces_never_show() {
        let ctx = Context::builder().threads(2).build().unwrap();
        let mut rng = RandState::new();
        for order in [1, 7, 8, 9, 16, 17, 100] {
            let mut random = || Float::with_val(130, Float::random_bits(&mut rng)) - 0.5f64;
            // Unknowns that grow and shrink.
            let entry = |row: usize, col: usize, value: Float| match row >= col {
                true => value >> ((row * 7 % 11) as i32 + if row == col { 0 } else { 5 }),
                false => Float::new(130),
            };
            let places = (0..order * order).map(|at| (at % order, at / order));
            let entries = places.map(|(row, col)| entry(row, col, random())).collect::<Vec<_>>();
            let right = (0..2 * order).map(|_| random()).collect::<Vec<_>>();
            let factor = Matrix::from_floats(order, order, 130, &entries).unwrap();
            let b = Matrix::from_floats(order, 2, 130, &right).unwrap();
            let norms = row_norms(&ctx, &factor).unwrap();
            let solve = |piece_rows| {
                let (mut lower, mut upper) = (factor.view(), factor.transposed());
                let system = DotSystem::new(150, &norms, piece_rows);
                system.solve(&ctx, [&mut lower, &mut upper], b.view()).unwrap()
            };
            let whole = solve(order);
            assert!(whole.iter().flatten().all(|value| value.is_finite() && !value.is_zero()));
            for piece_rows in [1, 8, 16, 24, 1000] {
                assert_eq!(solve(piece_rows), whole, "{order} rows in pieces of {piece_rows}");
            }
        }
    }
}
