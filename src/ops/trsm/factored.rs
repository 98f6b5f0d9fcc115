//! Solves with a factored symmetric matrix `A = L D L^T` (`D` absent for Cholesky): two triangular solves in a system
//! that powers of two scale to row norms of about 1.
//!
//! With `H` such that `|D| H^-2` lies in `[1/4, 1)` and `S` the norms of the rows of `L H`, the system is
//! `L' D' L'^T z = S^-1 b`, `L' = S^-1 L H`, `D' = D H^-2`, `x = S^-1 z`.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound::guard_bits;
use crate::math::float::Head;
use crate::math::pivot::diagonal_exponent;
use crate::math::scale::column_exponent;
use crate::matrix::{Diag, MAXIMUM_EXPONENT, Matrix, MatrixView, Uplo};
use crate::ops::columns::each_column;
use crate::ops::fixed_sum::{FixedSum, OwnFloat, Sign};
use crate::ops::product::block::{maximum_working_bits, moved};
use crate::ops::trsm::bands::Bands;
use crate::ops::trsm::layout::Layout;
use crate::ops::trsm::solver::Solver;
use crate::ops::trsm::spaces::Spaces;
use crate::ops::trsm::system::{Target, load, store};
use crate::ops::trsm::triangle::Triangle;
use std::ops::Range;

/// A lower triangular `L H = S L'`: the rows of `L'` have norms in `(1/5, 1]`.
pub(crate) struct ScaledRows<'a> {
    factor: &'a Matrix,
    /// Heads of `L'`, zero above the diagonal.
    heads: Vec<u64>,
    /// Row `i` of `S` is `2^exponents[i]`.
    pub exponents: Vec<i64>,
}

impl<'a> ScaledRows<'a> {
    /// Scales column `j` by `2^columns[j]`, by 1 beyond their end, then the rows; what lies above the diagonal is not
    /// read.
    pub fn new(factor: &'a Matrix, columns: &[i64]) -> ScaledRows<'a> {
        let order = factor.rows();
        let head = |row: usize, col: usize| {
            let head = factor.get(row, col).head;
            let exponent = || head.exponent() + columns.get(col).copied().unwrap_or(0);
            if head.is_zero() { head } else { Head::new(head.is_negative(), exponent()) }
        };
        let exponents = (0..order).map(|row| column_exponent((0..=row).map(|col| head(row, col)))).collect::<Vec<_>>();
        let mut heads = vec![0; order * order];
        for (col, column) in heads.chunks_mut(order.max(1)).enumerate() {
            for (row, word) in column.iter_mut().enumerate().skip(col) {
                let head = head(row, col);
                if !head.is_zero() {
                    *word = Head::new(head.is_negative(), head.exponent() - exponents[row]).0;
                }
            }
        }
        ScaledRows { factor, heads, exponents }
    }

    /// `L'`.
    ///
    /// # Errors
    /// [`Error::Singular`] where the diagonal has a zero.
    pub fn lower(&self) -> Result<Triangle<'_>> {
        Triangle::new(self.factor.view().with_heads(&self.heads), Uplo::Lower, Diag::NonUnit)
    }

    /// Its transpose.
    ///
    /// # Errors
    /// As [`ScaledRows::lower`].
    pub fn upper(&self) -> Result<Triangle<'_>> {
        Triangle::new(self.factor.view().with_heads(&self.heads).transposed(), Uplo::Upper, Diag::NonUnit)
    }

    /// Bytes held for a factor of that order.
    pub fn bytes(order: usize) -> u64 {
        8 * (order as u64 + 1) * order as u64
    }
}

/// A factored matrix and the choices of a solve with it.
pub(crate) struct Factored<'a> {
    /// `L`.
    pub lower: &'a Matrix,
    /// `D`, an `n x 1` matrix without zeros.
    pub pivots: Option<&'a Matrix>,
    /// Bits of the solution.
    pub precision_bits: u32,
    /// Bits beyond them that the solve takes.
    pub guard_bits: u32,
    /// Bytes of the memory limit that are taken.
    pub held_bytes: u64,
    /// Right sides of the call that these are some of, where they are not all: the way of a column depends on it.
    pub among: Option<usize>,
}

impl Factored<'_> {
    /// The solution of `L D L^T X = B`.
    ///
    /// # Errors
    /// Those of [`crate::trsm()`].
    pub fn solve(&self, ctx: &Context, b: MatrixView<'_>) -> Result<Matrix> {
        let order = self.lower.rows();
        if b.rows() != order {
            return Err(Error::ShapeMismatch {
                operation: "solve with a factor",
                left_rows: order,
                left_cols: order,
                right_rows: b.rows(),
                right_cols: b.cols(),
            });
        }
        let working_bits = self.working_bits(ctx)?;
        let result = Matrix::zeros(order, b.cols(), self.precision_bits)?;
        if order == 0 || b.cols() == 0 {
            return Ok(result);
        }
        let halves: Vec<i64> = self.pivots.map_or(Vec::new(), half_exponents);
        let reciprocal = |(i, half): (usize, &i64)| {
            let pivot = self.pivots.map(|pivots| OwnFloat::reciprocal(pivots.get(i, 0), working_bits));
            pivot.map(|own| own.shifted(2 * half))
        };
        let middle: Vec<OwnFloat> = halves.iter().enumerate().filter_map(reciprocal).collect();
        let scaled = ScaledRows::new(self.lower, &halves);
        let held_bytes = self.held_bytes.saturating_add(result.bytes()).saturating_add(ScaledRows::bytes(order));
        let layout = Layout { order, working_bits, columns: self.among.unwrap_or(b.cols()) };
        let bands = Bands::plan(ctx, b.cols(), &[layout; 2], held_bytes)?;
        let lower = Solver::new(scaled.lower()?, layout);
        let upper = Solver::new(scaled.upper()?, layout);
        let mut system = System { b, exponents: &scaled.exponents, middle, lower, upper, result };
        let mut spaces = Spaces::take(ctx)?;
        for columns in bands.iter() {
            spaces.w.reshape(order, columns.len(), working_bits)?;
            system.solve(ctx, columns, &mut spaces, bands.held_bytes)?;
        }
        spaces.give_back(ctx);
        Ok(system.result)
    }

    pub fn working_bits(&self, ctx: &Context) -> Result<u32> {
        working_bits(ctx, (self.precision_bits, self.guard_bits), self.lower.rows())
    }
}

/// The working precision of a solve with a factor for results of `precision_bits`, by its guard bits.
///
/// # Errors
/// [`Error::Precision`] where the kernel has not enough primes.
pub(crate) fn working_bits(ctx: &Context, (precision_bits, guard): (u32, u32), order: usize) -> Result<u32> {
    let maximum_bits = maximum_working_bits(ctx).saturating_sub(guard + guard_bits(order));
    if !(2..=maximum_bits).contains(&precision_bits) {
        let (precision_bits, maximum_bits) = (precision_bits.into(), maximum_bits.into());
        return Err(Error::Precision { precision_bits, maximum_bits });
    }
    Ok(precision_bits + guard)
}

/// For each pivot the `h` with `|d| 2^(-2 h)` in `[1/4, 1)`.
pub(crate) fn half_exponents(pivots: &Matrix) -> Vec<i64> {
    (0..pivots.rows()).map(|i| half_exponent(pivots.get(i, 0).head)).collect()
}

/// The `h` with `|d| 2^(-2 h)` in `[1/4, 1)`.
pub(crate) fn half_exponent(head: Head) -> i64 {
    diagonal_exponent(head.exponent())
}

struct System<'a> {
    b: MatrixView<'a>,
    exponents: &'a [i64],
    /// `D'^-1`; empty where there is no `D`.
    middle: Vec<OwnFloat>,
    lower: Solver<'a>,
    upper: Solver<'a>,
    result: Matrix,
}

impl System<'_> {
    /// Solves for the right sides `columns`.
    fn solve(&mut self, ctx: &Context, columns: Range<usize>, spaces: &mut Spaces, held_bytes: u64) -> Result<()> {
        let place = |error| moved(error, 0, columns.start);
        load(ctx, (&self.b, columns.start), None, &mut spaces.w)?;
        unscale(ctx, &mut spaces.w, self.exponents)?;
        self.lower.run(ctx, spaces, held_bytes).map_err(place)?;
        if !self.middle.is_empty() {
            multiply_rows(ctx, &mut spaces.w, &self.middle).map_err(place)?;
        }
        self.upper.run(ctx, spaces, held_bytes).map_err(place)?;
        unscale(ctx, &mut spaces.w, self.exponents)?;
        store(ctx, &spaces.w, &Target { columns, flipped: false }, &mut self.result)
    }
}

/// Row `i` times `2^-exponents[i]`.
pub(crate) fn unscale(ctx: &Context, w: &mut Matrix, exponents: &[i64]) -> Result<()> {
    each_column(
        ctx,
        w,
        || (),
        |(), mut column| {
            column.shift(0, exponents);
            Ok(())
        },
    )
}

/// Row `i` times `factors[i]`, each entry rounded once.
fn multiply_rows(ctx: &Context, w: &mut Matrix, factors: &[OwnFloat]) -> Result<()> {
    let precision_bits = w.precision_bits();
    each_column(
        ctx,
        w,
        || FixedSum::new(precision_bits),
        |sum, mut column| {
            for (row, factor) in factors.iter().enumerate() {
                sum.set(column.get(row), std::iter::empty(), Sign::Plus);
                column.set(row, |limbs| sum.round_product(factor, limbs));
                let exponent = column.get(row).head.exponent();
                if exponent.abs() > MAXIMUM_EXPONENT {
                    return Err(Error::ExponentRange { row, column: column.index, exponent, limit: MAXIMUM_EXPONENT });
                }
            }
            Ok(())
        },
    )
}
