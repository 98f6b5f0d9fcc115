//! `A x = b` by substitution for a few right-hand sides: exact dot products in fixed point, blocks of 8 rows.
//!
//! Promise: a solution depends on factor, right-hand side and precision alone. Bounds: docs/ALGORITHM.md, "One
//! right-hand side".

use crate::context::Context;
use crate::drive;
use crate::error::{Error, Result};
use crate::kernels::dots::{DotSource, FixedVector, PADDING};
use crate::kernels::{PanelSource, PlaneKernel};
use crate::math::bound::vector_solve_bits;
use crate::matrix::{Matrix, MatrixView, Op};
use crate::ops::problem::Operand;
use crate::ops::scale::norm_exponents;
use crate::plan::BLOCK;
use rug::{Float, Integer};

/// Extra bits of the numbers inside a block of 8 rows.
const BLOCK_BITS: u32 = 32;

/// For each row of the factor the `r_i` with `norm(l_i) <= 2^r_i`.
///
/// # Errors
/// Those of [`norm_exponents`].
pub(crate) fn row_norms(ctx: &Context, factor: &Matrix) -> Result<Vec<i64>> {
    let mut norms = vec![0; factor.rows()];
    let operand = Operand::new(factor.view(), Op::Transpose);
    ctx.install(|| norm_exponents(ctx.threads(), &operand, &mut norms))?;
    Ok(norms)
}

/// Solves `L L^T X = B` column by column; `factor` is `n x n` with zeros above its diagonal and none on it, and its
/// [`row_norms`]; `b` has `n` rows. Of the memory limit `held_bytes` are taken.
///
/// # Errors
/// [`Error::ExponentRange`], [`Error::MemoryLimit`], [`Error::Cancelled`], [`Error::OutOfMemory`].
pub(crate) fn solve_columns(
    ctx: &Context,
    (factor, norms): (&Matrix, &[i64]),
    b: MatrixView<'_>,
    (precision_bits, held_bytes): (u32, u64),
) -> Result<Matrix> {
    let order = factor.rows();
    let workers = ctx.threads().min(b.cols()).max(1);
    ctx.admit(held_bytes + bytes((order, b.cols()), precision_bits, workers))?;
    let bits = vector_solve_bits(precision_bits, order);
    let system = System {
        kernel: ctx.kernel(),
        factor,
        bits,
        forward_shifts: norms.iter().map(|norm| i64::from(bits) - norm).collect(),
        backward_shifts: norms.iter().map(|norm| -norm).collect(),
        even_shifts: vec![i64::from(bits); order],
        no_shifts: vec![0; order],
        norms,
    };
    let mut columns = vec![Vec::new(); b.cols()];
    let mut locals = vec![(); workers];
    let mut items = columns.iter_mut().enumerate();
    ctx.install(|| {
        drive::share(
            &mut locals,
            |()| items.next(),
            |(), (col, solution)| {
                let right = (0..order).map(|row| b.get(row, col).to_float(b.precision_bits())).collect::<Vec<_>>();
                *solution = system.backward(&system.forward(&right));
                ctx.report_progress(crate::Progress { phase: "solve", done: col as u64, total: b.cols() as u64 })
            },
        )
    })?;
    let mut solution = Matrix::zeros(order, b.cols(), precision_bits)?;
    for (col, column) in columns.iter().enumerate() {
        for (row, value) in column.iter().enumerate() {
            let range =
                |exponent| Error::ExponentRange { row, column: col, exponent, limit: crate::matrix::MAXIMUM_EXPONENT };
            match value.is_finite() {
                true => solution.set_float(row, col, value)?,
                false => return Err(range(i64::from(i32::MAX))),
            }
        }
    }
    Ok(solution)
}

/// Most bytes of a call: the solution, unknowns of all columns, those under way as numbers and as digits, exponents.
fn bytes((order, cols): (usize, usize), precision_bits: u32, workers: usize) -> u64 {
    let bits = vector_solve_bits(precision_bits, order);
    let number = u64::from(bits.div_ceil(64)) * 8 + 48;
    let digits = 8 * (u64::from(bits.div_ceil(52)) + 2 * PADDING as u64 + 1);
    let each = cols as u64 * number + workers as u64 * (3 * number + digits) + 8 * 6;
    Matrix::bytes_for(order, cols, precision_bits) + order as u64 * each + workers as u64 * (64 << 10)
}

/// A factor with its scaling.
struct System<'a> {
    kernel: &'static dyn PlaneKernel,
    factor: &'a Matrix,
    /// Fixed-point bits of scaled entries and of the unknowns.
    bits: u32,
    /// `r_i` with `norm(l_i) <= 2^r_i`, for every row of the factor.
    norms: &'a [i64],
    /// `bits - r_i`.
    forward_shifts: Vec<i64>,
    /// `-r_k`.
    backward_shifts: Vec<i64>,
    /// `bits`, for every column.
    even_shifts: Vec<i64>,
    no_shifts: Vec<i64>,
}

/// Unknowns found so far: as numbers, and in fixed point below one common exponent.
struct Unknowns {
    values: Vec<Float>,
    fixed: FixedVector,
    /// All known values lie below `2^exponent`.
    exponent: Option<i64>,
    bits: u32,
}

impl System<'_> {
    /// `y` with `L y = b`.
    fn forward(&self, b: &[Float]) -> Vec<Float> {
        let order = b.len();
        let mut unknowns = Unknowns::new(order, self.bits);
        for first in (0..order).step_by(BLOCK) {
            let rows = first..(first + BLOCK).min(order);
            let panel = PanelSource {
                view: self.factor.transposed(),
                columns: rows.clone(),
                rows: 0..first,
                shifts: &self.forward_shifts,
            };
            let sums = self.sums(DotSource { panel, row_shifts: &self.no_shifts }, &unknowns);
            for row in rows.clone() {
                let sum = unknowns.unscale(&sums[row - first], self.norms[row]);
                let mut rest = Float::with_val(self.bits + BLOCK_BITS, &b[row] - &sum);
                for other in first..row {
                    rest -= &self.factor.float(row, other) * &unknowns.values[other];
                }
                unknowns.values[row] = Float::with_val(self.bits, rest / self.factor.float(row, row));
            }
            unknowns.publish(rows, |_| 0, 0..first);
        }
        unknowns.values
    }

    /// `x` with `L^T x = y`. Unknowns are scaled by the norms of the factor's rows.
    fn backward(&self, y: &[Float]) -> Vec<Float> {
        let order = y.len();
        let mut unknowns = Unknowns::new(order, self.bits);
        for first in (0..order).step_by(BLOCK).rev() {
            let rows = first..(first + BLOCK).min(order);
            let panel = PanelSource {
                view: self.factor.view(),
                columns: rows.clone(),
                rows: rows.end..order,
                shifts: &self.even_shifts,
            };
            let sums = self.sums(DotSource { panel, row_shifts: &self.backward_shifts }, &unknowns);
            for row in rows.clone().rev() {
                let sum = unknowns.unscale(&sums[row - first], 0);
                let mut rest = Float::with_val(self.bits + BLOCK_BITS, &y[row] - &sum);
                for other in row + 1..rows.end {
                    rest -= &self.factor.float(other, row) * &unknowns.values[other];
                }
                unknowns.values[row] = Float::with_val(self.bits, rest / self.factor.float(row, row));
            }
            unknowns.publish(rows.clone(), |row| self.norms[row], rows.end..order);
        }
        unknowns.values
    }

    fn sums(&self, source: DotSource<'_>, unknowns: &Unknowns) -> [Integer; BLOCK] {
        let mut sums = [Integer::ZERO; BLOCK];
        if !source.panel.rows.is_empty() {
            self.kernel.dots(&source, &unknowns.fixed, &mut sums);
        }
        sums
    }
}

impl Unknowns {
    fn new(order: usize, bits: u32) -> Unknowns {
        let values = vec![Float::new(bits); order];
        Unknowns { values, fixed: FixedVector::new(order, bits), exponent: None, bits }
    }

    /// A sum of products of entries scaled by `2^(bits - norm)` with fixed-point unknowns.
    fn unscale(&self, sum: &Integer, norm: i64) -> Float {
        let exact = Float::with_val(sum.significant_bits().max(2), sum);
        match self.exponent {
            Some(exponent) => shifted(exact, norm + exponent - 2 * i64::from(self.bits)),
            None => exact, // nothing but zeros was added up
        }
    }

    /// Makes the new unknowns `rows` known in fixed point, scaled by `2^norm(row)`; `before` are those known already.
    fn publish(&mut self, rows: std::ops::Range<usize>, norm: impl Fn(usize) -> i64, before: std::ops::Range<usize>) {
        let exponent_of = |row: usize| self.values[row].get_exp().map(|exponent| i64::from(exponent) + norm(row));
        let largest = rows.clone().filter_map(exponent_of).max();
        let mut stale = None;
        if largest > self.exponent {
            self.exponent = largest;
            stale = Some(before);
        }
        let Some(exponent) = self.exponent else { return };
        for row in stale.into_iter().flatten().chain(rows) {
            let scaled = shifted(self.values[row].clone(), i64::from(self.bits) + norm(row) - exponent);
            let size = scaled.abs().trunc().to_integer().unwrap_or_default();
            self.fixed.set(row, self.values[row].is_sign_negative(), size.as_limbs());
        }
    }
}

/// `value * 2^shift`, or 0 or infinity beyond MPFR's range.
fn shifted(value: Float, shift: i64) -> Float {
    value << shift.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}
