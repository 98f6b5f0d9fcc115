//! `A x = b` by substitution for a few right-hand sides: exact dot products in fixed point, blocks of 8 rows.
//!
//! Promise: a solution depends on factor, right-hand side and precision alone. Bounds: docs/ALGORITHM.md, "One
//! right-hand side".

pub(crate) mod unknowns;

use crate::context::Context;
use crate::drive;
use crate::error::{Error, Result};
use crate::kernels::PlaneKernel;
use crate::kernels::dots::PADDING;
use crate::math::bound::vector_solve_bits;
use crate::matrix::{Destination, MAXIMUM_EXPONENT, Matrix, MatrixView, MatrixViewMut};
use crate::ops::product::scale::{Walkers, norm_exponents};
use crate::ops::solve::dots::unknowns::{FactorPiece, Scaling, Sweep, Unknowns};
use crate::ops::solve::run::make_room;
use crate::plan::BLOCK;
use rug::{Float, Integer};
use std::sync::OnceLock;

/// For each row of the factor the `r_i` with `norm(l_i) <= 2^r_i`.
///
/// # Errors
/// Those of [`norm_exponents`].
pub(crate) fn row_norms(ctx: &Context, factor: &Matrix) -> Result<Vec<i64>> {
    let mut norms = vec![0; factor.rows()];
    let rows = [factor.transposed()];
    norm_exponents(&Walkers::alone(ctx, ctx.threads()), &rows, true, &mut norms)?;
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
    (factor, norms): (&Matrix, &[i64]),
    b: MatrixView<'_>,
    precision_bits: u32,
    result: Destination<'_>,
) -> Result<u64> {
    let order = factor.rows();
    let workers = workers(ctx, b.cols());
    let planned_bytes = ctx.memory().admit(bytes(ctx, (order, b.cols()), precision_bits))?;
    make_room(ctx, planned_bytes);
    let result = result.prepare((order, b.cols()), precision_bits)?;
    let system = DotSystem { kernel: ctx.kernel(), factor, scaling: Scaling::new(precision_bits, norms) };
    let mut columns = vec![Vec::new(); b.cols()];
    let mut locals = vec![(); workers];
    let mut items = columns.iter_mut().enumerate();
    ctx.install(|| {
        drive::parallel_for(
            &mut locals,
            |()| items.next(),
            |(), (col, solution)| {
                let right = (0..order).map(|row| b.get(row, col).to_float(b.precision_bits())).collect::<Vec<_>>();
                *solution = system.sweep(Sweep::Backward, &system.sweep(Sweep::Forward, &right));
                ctx.report_progress(crate::Progress::new("solve", col as u64, b.cols() as u64))
            },
        )
    })?;
    store_columns(&columns, result)?;
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

/// Most bytes of a call: the solution, unknowns of all columns, those under way as numbers and as digits, exponents.
pub(crate) fn bytes(ctx: &Context, (order, cols): (usize, usize), precision_bits: u32) -> u64 {
    let workers = workers(ctx, cols);
    let bits = vector_solve_bits(precision_bits, order);
    let number = u64::from(bits.div_ceil(64)) * 8 + 48;
    let digits = 8 * (u64::from(bits.div_ceil(52)) + 2 * PADDING as u64 + 1);
    let each = cols as u64 * number + workers as u64 * (3 * number + digits) + 8 * 6;
    Matrix::bytes_for(order, cols, precision_bits) + order as u64 * each + workers as u64 * (64 << 10)
}

/// Each has a column at a time.
fn workers(ctx: &Context, cols: usize) -> usize {
    ctx.threads().min(cols).max(1)
}

/// A factor with its scaling.
struct DotSystem<'a> {
    kernel: &'static dyn PlaneKernel,
    factor: &'a Matrix,
    scaling: Scaling,
}

impl DotSystem<'_> {
    /// One of the two substitutions.
    fn sweep(&self, sweep: Sweep, right: &[Float]) -> Vec<Float> {
        let order = right.len();
        let mut unknowns = Unknowns::new(&self.scaling, sweep, order.max(1));
        let whole = FactorPiece { view: self.factor.view(), first_row: 0, first_col: 0 };
        let blocks = order.div_ceil(BLOCK);
        for step in 0..blocks {
            let block = if sweep == Sweep::Forward { step } else { blocks - 1 - step };
            let rows = block * BLOCK..((block + 1) * BLOCK).min(order);
            let mut sums = [Integer::ZERO; BLOCK];
            unknowns.solve_rows(self.kernel, (&whole, &rows), &right[rows.clone()], &mut sums);
        }
        unknowns.into_values()
    }
}
