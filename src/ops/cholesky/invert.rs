//! The inverse of the matrix behind a factor: the inverse of the row-scaled factor, and the product with its transpose.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound::{cholesky_inverse_guard_bits, guard_bits};
use crate::math::float::Head;
use crate::math::scale::column_exponent;
use crate::matrix::{MAXIMUM_EXPONENT, Matrix};
use crate::ops::block::{BlockProduct, BlockShape, largest_need, maximum_working_bits, plan};
use crate::ops::cholesky::Cholesky;
use crate::ops::columns::{ColumnRef, each_column};
use crate::ops::problem::Inner;
use crate::ops::trsm::bands::{self, Band, Banded};
use crate::ops::trsm::factored::ScaledRows;
use crate::ops::trsm::solver::Solver;
use crate::ops::trsm::triangle::scaled;

/// Columns of the inverse factor that are found together: rows above the first are known to be 0. Fixed, as it shows in
/// the last bits.
const STRIP_COLUMNS: usize = 256;

impl Cholesky {
    /// The inverse of `L L^T`, rounded to `precision_bits` bits: symmetric, both triangles filled.
    ///
    /// Accuracy: with `Z = (L L^T)^-1` for the factor as it is, `|computed - Z|_ij <= 2^(2 - precision_bits) sqrt(z_ii
    /// z_jj)`, whatever the condition. The bits depend on the factor and the precision alone.
    /// Cost: about `n^3 / 3` word products for each prime, at a precision raised by half the bits of the condition.
    /// Source: docs/ALGORITHM.md, "Solves with a Cholesky factor".
    ///
    /// # Errors
    /// As [`crate::trsm`]; [`Error::Precision`] also where the condition asks for more bits than the kernel has.
    pub fn inverse(&self, ctx: &Context, precision_bits: u32) -> Result<Matrix> {
        let order = self.factor().rows();
        let mut result = Matrix::zeros(order, order, precision_bits)?;
        if order == 0 {
            return Ok(result);
        }
        let scaled = ScaledRows::new(self.factor(), &[]);
        let held_bytes = result.bytes().saturating_add(ScaledRows::bytes(order));
        // A diagonal entry of the inverse factor is the reciprocal of the factor's; a guess below is corrected once.
        let head = |i: usize| self.factor().get(i, i).head.exponent() - scaled.exponents[i];
        let mut norm_exponent = (0..order).map(|i| 1 - head(i)).max().unwrap_or(0).max(0) + 4;
        loop {
            let working_bits = working_bits(ctx, precision_bits, order, norm_exponent)?;
            let inverse = invert_rows(ctx, &scaled, working_bits, held_bytes)?;
            let found = column_exponent(inverse.parts().0.iter().map(|&head| Head(head)));
            if found <= norm_exponent {
                let held_bytes = held_bytes.saturating_add(inverse.bytes());
                multiply(ctx, &inverse, &scaled.exponents, (&mut result, held_bytes))?;
                return Ok(result);
            }
            norm_exponent = found + 1;
        }
    }
}

fn working_bits(ctx: &Context, precision_bits: u32, order: usize, norm_exponent: i64) -> Result<u32> {
    let guards = cholesky_inverse_guard_bits(order, norm_exponent) + i64::from(guard_bits(order));
    let maximum_bits = (i64::from(maximum_working_bits(ctx)) - guards).max(0) as u64;
    if !(2..=maximum_bits).contains(&u64::from(precision_bits)) {
        return Err(Error::Precision { precision_bits: precision_bits.into(), maximum_bits });
    }
    Ok(precision_bits + cholesky_inverse_guard_bits(order, norm_exponent) as u32)
}

/// `L'^-1`, lower triangular.
fn invert_rows(ctx: &Context, scaled: &ScaledRows<'_>, working_bits: u32, held_bytes: u64) -> Result<Matrix> {
    let order = scaled.exponents.len();
    let solver = Solver::new(ctx, scaled.lower()?, working_bits, order.min(STRIP_COLUMNS))?;
    let inverse = Matrix::zeros(order, order, working_bits)?;
    let held_bytes = held_bytes.saturating_add(inverse.bytes());
    let mut strips = Strips { solver, first: 0, working_bits, held_bytes, inverse };
    for first in (0..order).step_by(STRIP_COLUMNS) {
        strips.first = first;
        bands::run(ctx, STRIP_COLUMNS.min(order - first), &mut strips)?;
    }
    Ok(strips.inverse)
}

/// The inverse factor, filled strip by strip.
struct Strips<'a> {
    solver: Solver<'a>,
    /// First column of the strip at work.
    first: usize,
    working_bits: u32,
    held_bytes: u64,
    inverse: Matrix,
}

impl Banded for Strips<'_> {
    fn held_bytes(&self, columns: usize) -> u64 {
        let band = Matrix::bytes_for(self.inverse.rows(), columns, self.working_bits);
        let solver = self.solver.bytes().saturating_add(self.solver.scratch_bytes(columns));
        self.held_bytes.saturating_add(solver).saturating_add(band)
    }

    fn plan(&self, ctx: &Context, columns: usize, held_bytes: u64) -> Result<()> {
        self.solver.plan(ctx, columns, held_bytes)
    }

    fn run(&mut self, ctx: &Context, Band { columns, spaces, held_bytes }: Band<'_>) -> Result<()> {
        let rows = self.inverse.rows();
        let columns = self.first + columns.start..self.first + columns.end;
        spaces.w.reshape(rows, columns.len(), self.working_bits)?;
        spaces.w.clear();
        each_column(
            ctx,
            &mut spaces.w,
            || (),
            |(), mut column| {
                column.set_one(columns.start + column.index);
                Ok(())
            },
        )?;
        self.solver.run_from(ctx, self.first, spaces, held_bytes)?;
        each_column(
            ctx,
            &mut self.inverse,
            || (),
            |(), mut column| {
                if columns.contains(&column.index) {
                    column.copy_from(0, ColumnRef::of(&spaces.w, 0..rows, column.index - columns.start));
                }
                Ok(())
            },
        )
    }
}

/// `D^-1 V^T V D^-1` for a lower triangular `V` and `D` with the powers `exponents`, into `result`.
fn multiply(ctx: &Context, v: &Matrix, exponents: &[i64], (result, held_bytes): (&mut Matrix, u64)) -> Result<()> {
    let (order, precision_bits) = (v.rows(), result.precision_bits());
    let inner = Inner { working_bits: Some(precision_bits + guard_bits(order)), held_bytes };
    let starts = || (0..order).step_by(STRIP_COLUMNS);
    let strip = |start: usize| start..(start + STRIP_COLUMNS).min(order);
    starts().map(strip).fold(Ok(()), |needs, rows| {
        let shape = BlockShape { rows: rows.len(), cols: rows.end, contracted: order - rows.start };
        largest_need(needs, plan(ctx, shape, precision_bits, inner).map(|_| ()))
    })?;
    let mut product = Matrix::zeros(0, 0, precision_bits)?;
    for rows in starts().map(strip) {
        let (left, right) =
            (v.view().block(rows.start..order, rows.clone())?, v.view().block(rows.start..order, 0..rows.end)?);
        let product_of = BlockProduct { left: left.transposed(), right, minuend: None, precision_bits, inner };
        product.reshape(rows.len(), rows.end, precision_bits)?;
        product_of.run(ctx, &mut product)?;
        for col in 0..rows.end {
            for row in rows.clone().filter(|&row| row >= col) {
                let value = scaled(product.get(row - rows.start, col), -exponents[row] - exponents[col]);
                let exponent = value.head.exponent();
                if exponent.abs() > MAXIMUM_EXPONENT {
                    return Err(Error::ExponentRange { row, column: col, exponent, limit: MAXIMUM_EXPONENT });
                }
                result.set(row, col, value);
                result.set(col, row, value);
            }
        }
    }
    Ok(())
}
