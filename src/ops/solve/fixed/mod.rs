//! Triangular solves in fixed point: exact updates on tiles of residues, one rounding per unknown.
//!
//! Each right side has one power of two for all of its unknowns. How far they may outgrow their right side is a guess
//! from the diagonal; a column that outgrows it is found out exactly, and tried again with more bits or left to the
//! solve by parts. Promise: what becomes of a column depends on the triangle, the column and the precision alone.
//! Proof: docs/ALGORITHM.md, "Solves in fixed point".

mod plan;
mod rows;
mod run;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound::{COMMON_WORKING_BITS, TRSM_FIXED_BITS};
use crate::math::pivot::round_shift;
use crate::matrix::{Matrix, MatrixView};
use crate::ops::solve::cut::Layout;
use crate::ops::solve::triangle::Triangle;
pub(crate) use plan::Plan;
pub(crate) use plan::least_bytes;
pub(crate) use rows::{RowPiece, TriangleRows};
use rug::Integer;

/// A triangle whose rows are scaled by powers of two to norms of about 1, its unknowns in the order in which they are
/// found. Its entries come from [`TriangleRows`].
pub(crate) struct FixedPoint {
    /// Whether rows and columns of the caller's triangle run backwards in the one that is lower.
    turned: bool,
    /// Whether the diagonal is ones.
    unit: bool,
    /// Row `i` is scaled by `2^-exponents[i]`.
    exponents: Vec<i64>,
    working_bits: u32,
    /// Bits beyond those of the unknowns at which the first try is made.
    first_bits: i64,
}

impl FixedPoint {
    /// Scales `triangle` for unknowns of `working_bits`; beside it the triangle turned so that it is lower.
    pub fn new<'a>(triangle: &Triangle<'a>, working_bits: u32) -> (FixedPoint, MatrixView<'a>) {
        let turned = !triangle.is_lower();
        let view = triangle.view();
        let lower = if turned { view.reversed_rows().transposed().reversed_rows().transposed() } else { view };
        let mut exponents = triangle.row_exponents(&(0..triangle.order()));
        if turned {
            exponents.reverse();
        }
        (FixedPoint::of_rows(&lower, exponents, (turned, triangle.is_unit()), working_bits), lower)
    }

    /// A lower triangle whose row `i` has a norm of about `2^exponents[i]`; whether it is a turned upper one, and
    /// whether its diagonal is ones.
    pub fn of_rows(
        rows: &dyn TriangleRows,
        exponents: Vec<i64>,
        (turned, unit): (bool, bool),
        working_bits: u32,
    ) -> FixedPoint {
        let mut fixed = FixedPoint { turned, unit, exponents, working_bits, first_bits: 0 };
        // Unknowns are about as large as the reciprocal of the least pivot.
        let growth = (0..fixed.exponents.len()).map(|i| -fixed.pivot_exponent(rows, i)).max().unwrap_or(0);
        let step = i64::from(TRSM_FIXED_BITS);
        fixed.first_bits = ((growth + 10).max(0) / step + 1) * step;
        fixed
    }

    /// Power of two below the scaled pivot `i`.
    fn pivot_exponent(&self, rows: &dyn TriangleRows, i: usize) -> i64 {
        let exponent = if self.unit { 1 } else { rows.pivot(i).head.exponent() };
        exponent - 1 - self.exponents[i]
    }

    /// The scaled pivots as integers with `fixed_bits` after the point.
    fn pivots(&self, rows: &dyn TriangleRows, fixed_bits: u32) -> Vec<Integer> {
        let pivot = |i: usize| {
            let (integer, exponent) = match self.unit {
                true => (Integer::from(1), 0),
                false => rows.pivot(i).to_integer_exponent(),
            };
            round_shift(&integer, exponent + i64::from(fixed_bits) - self.exponents[i])
        };
        (0..self.exponents.len()).map(pivot).collect()
    }

    /// Replaces the columns of `w` by their solutions where some try holds them; gives the numbers of those that are
    /// left, unchanged. Right sides are 0 above row `first` of a lower triangle, which is not turned.
    ///
    /// `spare` takes copies of columns; `held_bytes` of the memory limit are taken.
    ///
    /// # Errors
    /// [`crate::Error::ExponentRange`] with a place in `w`; [`crate::Error::Cancelled`];
    /// [`crate::Error::OutOfMemory`]; those of `rows`.
    pub fn run(
        &self,
        ctx: &Context,
        rows: &mut dyn TriangleRows,
        (w, spare): (&mut Matrix, &mut Matrix),
        first: usize,
        held_bytes: u64,
    ) -> Result<Vec<usize>> {
        let mut left = (0..w.cols()).collect::<Vec<_>>();
        for fixed_bits in self.tries() {
            let plan = Plan::new(ctx, self.exponents.len(), left.len(), fixed_bits, held_bytes)?;
            left = self.attempt(ctx, (&plan, rows), left, (w, spare), first)?;
            if left.is_empty() {
                break;
            }
        }
        Ok(left)
    }

    /// The bits after the point that are tried, one after the other.
    pub fn tries(&self) -> impl Iterator<Item = u32> + use<> {
        let working_bits = self.working_bits;
        tries(working_bits, self.first_bits).map(move |extra_bits| working_bits + extra_bits)
    }

    /// One try with `plan`, on the columns `left` of `w`; those that it does not hold.
    ///
    /// # Errors
    /// As [`FixedPoint::run`].
    pub fn attempt(
        &self,
        ctx: &Context,
        (plan, rows): (&Plan, &mut dyn TriangleRows),
        left: Vec<usize>,
        (w, spare): (&mut Matrix, &mut Matrix),
        first: usize,
    ) -> Result<Vec<usize>> {
        if left.len() == w.cols() {
            return run::run(ctx, (self, rows), plan, w, first);
        }
        gather(w, &left, spare)?;
        let place = |error| with_column(error, &left);
        let rest = run::run(ctx, (self, rows), plan, spare, first).map_err(place)?;
        scatter(spare, &left, &rest, w);
        Ok(rest.into_iter().map(|at| left[at]).collect())
    }
}

/// The bits beyond those of the unknowns that are tried: each twice as many as before, up to half as many bits more
/// than the unknowns have. Beyond that the solve by parts costs less.
fn tries(working_bits: u32, first_bits: i64) -> impl Iterator<Item = u32> {
    let most = (working_bits / 2).max(2 * TRSM_FIXED_BITS);
    let fits = move |&bits: &u32| bits <= most && working_bits + bits <= COMMON_WORKING_BITS;
    let first = u32::try_from(first_bits).ok();
    std::iter::successors(first, |bits| bits.checked_mul(2)).take_while(fits)
}

/// The most bits after the point that a solve may try; `None` where it tries none.
fn most_fixed_bits(layout: &Layout) -> Option<u32> {
    let all = (1..)
        .map(|step| step * TRSM_FIXED_BITS)
        .take_while(|&bits| tries(layout.working_bits, bits.into()).next().is_some());
    all.last().map(|bits| layout.working_bits + bits)
}

/// Copies columns of `source` side by side.
pub(crate) fn gather(source: &Matrix, columns: &[usize], target: &mut Matrix) -> Result<()> {
    target.reshape(source.rows(), columns.len(), source.precision_bits())?;
    for (at, &col) in columns.iter().enumerate() {
        for row in 0..source.rows() {
            target.set(row, at, source.get(row, col));
        }
    }
    Ok(())
}

/// Copies the columns of `source`, but for those in `without`, to their places in `target`.
pub(crate) fn scatter(source: &Matrix, columns: &[usize], without: &[usize], target: &mut Matrix) {
    for (at, &col) in columns.iter().enumerate().filter(|(at, _)| !without.contains(at)) {
        for row in 0..source.rows() {
            target.set(row, col, source.get(row, at));
        }
    }
}

/// The error with the column that `columns` gives for the one it names.
pub(crate) fn with_column(error: Error, columns: &[usize]) -> Error {
    match error {
        Error::ExponentRange { row, column, exponent, limit } => {
            Error::ExponentRange { row, column: columns[column], exponent, limit }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels;
    use crate::matrix::{Diag, MAXIMUM_EXPONENT, Uplo};

    const ORDER: usize = 80;

    /// 1 on the diagonal, -8 below it: a right side `e_s` has the unknowns `8^(i - s)`.
    fn growing() -> Matrix {
        let mut t = Matrix::zeros(ORDER, ORDER, 90).unwrap();
        for i in 0..ORDER {
            t.set_f64(i, i, 1.0).unwrap();
            if i > 0 {
                t.set_f64(i, i - 1, -8.0).unwrap();
            }
        }
        t
    }

    #[test]
    fn columns_that_outgrow_every_try_are_left_alone() {
        let t = growing();
        // How often the unknowns of each column grow; the tries hold 29 and 61 bits of growth.
        let growths = [79usize, 0, 5, 12, 8, 30, 15, 1, 17];
        for (kernel, uplo) in kernels::available().into_iter().flat_map(|k| [(k, Uplo::Lower), (k, Uplo::Upper)]) {
            let ctx = Context::builder().threads(2).kernel(kernel.name()).build().unwrap();
            let view = if uplo == Uplo::Lower { t.view() } else { t.transposed() };
            let place = |step: usize| if uplo == Uplo::Lower { ORDER - 1 - step } else { step };
            for diag in [Diag::NonUnit, Diag::Unit] {
                let (fixed, mut rows) = FixedPoint::new(&Triangle::new(view, uplo, diag).unwrap(), 100);
                let (mut w, mut again) = (Matrix::zeros(ORDER, 9, 100).unwrap(), Matrix::zeros(0, 0, 2).unwrap());
                for (col, &growth) in growths.iter().enumerate() {
                    w.set_f64(place(growth), col, -3.0).unwrap();
                }
                let before = w.clone();
                assert_eq!(
                    fixed.run(&ctx, &mut rows, (&mut w, &mut again), 0, 0).unwrap(),
                    [0, 5],
                    "{}",
                    kernel.name()
                );
                for (col, &growth) in growths.iter().enumerate() {
                    for step in 0..ORDER {
                        let got = w.float(place(step), col).to_f64();
                        let want = match [0, 5].contains(&col) {
                            true => before.float(place(step), col).to_f64(),
                            false if step <= growth => -3.0 * 8f64.powi((growth - step) as i32),
                            false => 0.0,
                        };
                        assert_eq!(got, want, "{} {uplo:?} {diag:?} column {col}, step {step}", kernel.name());
                    }
                }
            }
        }
    }

    #[test]
    fn unknowns_beyond_the_exponent_range_are_named_by_their_column_of_the_right_sides() {
        let (t, ctx) = (growing(), Context::builder().threads(1).build().unwrap());
        let (fixed, mut rows) = FixedPoint::new(&Triangle::new(t.view(), Uplo::Lower, Diag::NonUnit).unwrap(), 100);
        let (mut w, mut again) = (Matrix::zeros(ORDER, 9, 100).unwrap(), Matrix::zeros(0, 0, 2).unwrap());
        for col in 0..9 {
            // Columns 4 and 7 take a second try; one of them ends beyond the range.
            let (row, exponent) = match col {
                4 => (ORDER - 16, MAXIMUM_EXPONENT - 10),
                7 => (ORDER - 16, 0),
                _ => (ORDER - 1, 0),
            };
            w.set_integer_exponent(row, col, &Integer::from(1), exponent).unwrap();
        }
        match fixed.run(&ctx, &mut rows, (&mut w, &mut again), 0, 0) {
            Err(Error::ExponentRange { column: 4, row, .. }) => assert!(row > ORDER - 16),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn tries_double_up_to_half_the_precision() {
        assert_eq!(tries(1031, 32).collect::<Vec<_>>(), [32, 64, 128, 256, 512]);
        assert_eq!(tries(60, 32).collect::<Vec<_>>(), [32, 64]);
        assert_eq!(tries(1031, 320).collect::<Vec<_>>(), [320]);
        assert_eq!(tries(5030, 32).count() + tries(100, 1 << 40).count(), 0);
        for bits in [60, 1031, 4000, 5000, 5030] {
            let layout = Layout { order: 9, working_bits: bits, columns: 9 };
            let all = (1..200).flat_map(|step| tries(bits, step * 32));
            assert_eq!(most_fixed_bits(&layout), all.max().map(|extra| bits + extra), "{bits} bits");
        }
    }
}
