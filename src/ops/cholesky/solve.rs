//! What a Cholesky factor is for: solutions, the inverse, and the condition of the factored matrix.
//!
//! The rows of the factor are scaled by powers of two to norms of about 1. In the scaled system the bounds of the
//! triangular solves become those of the Cholesky solve.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound::{cholesky_solve_guard_bits, guard_bits};
use crate::math::float::Head;
use crate::math::scale::column_exponent;
use crate::matrix::{Diag, Matrix, MatrixView, Uplo};
use crate::ops::block::{largest_need, maximum_working_bits, moved};
use crate::ops::cholesky::{Cholesky, vector};
use crate::ops::columns::each_column;
use crate::ops::trsm::bands::{self, Banded};
use crate::ops::trsm::solver::Solver;
use crate::ops::trsm::system::{Target, load, store};
use crate::ops::trsm::triangle::Triangle;
use std::ops::Range;

/// So many right-hand sides are solved for one by one; the residues of the factor would cost more.
const VECTOR_COLUMNS: usize = 3;

impl Cholesky {
    /// The solution `X` of `A X = B`, rounded to `precision_bits` bits.
    ///
    /// Shapes: `b` and the result are `n x m`.
    /// Accuracy: `|b - A x|_i <= 2^(4 - p) (sqrt(a_ii) sum_j sqrt(a_jj) |x_j| + |b_i|)` for each column, where `p` is the
    /// smaller of `precision_bits` and the precision of the factor. The bits depend on the factor, `b` and the precision
    /// alone.
    /// Cost: `n^2 m` word products for each prime. Source: docs/ALGORITHM.md, "Solves with a Cholesky factor".
    ///
    /// # Errors
    /// As [`crate::trsm`].
    pub fn solve<'b>(&self, ctx: &Context, b: impl Into<MatrixView<'b>>, precision_bits: u32) -> Result<Matrix> {
        self.solve_beside(ctx, b.into(), precision_bits, 0)
    }

    /// [`Cholesky::solve`] where `held_bytes` of the memory limit are taken.
    ///
    /// # Errors
    /// As [`Cholesky::solve`].
    pub(crate) fn solve_beside(
        &self,
        ctx: &Context,
        b: MatrixView<'_>,
        precision_bits: u32,
        held_bytes: u64,
    ) -> Result<Matrix> {
        let order = self.factor().rows();
        if b.rows() != order {
            return Err(Error::ShapeMismatch {
                operation: "solve with a factor",
                left_rows: order,
                left_cols: order,
                right_rows: b.rows(),
                right_cols: b.cols(),
            });
        }
        let working_bits = working_bits(ctx, precision_bits, order)?;
        let result = Matrix::zeros(order, b.cols(), precision_bits)?;
        if order == 0 || b.cols() == 0 {
            return Ok(result);
        }
        if b.cols() <= VECTOR_COLUMNS {
            return vector::solve_columns(ctx, self.factor(), b, precision_bits);
        }
        let scaled = ScaledRows::new(self.factor());
        let lower = Solver::new(ctx, scaled.lower()?, working_bits, b.cols())?;
        let upper = Solver::new(ctx, scaled.upper()?, working_bits, b.cols())?;
        let exponents = &scaled.exponents;
        let mut system = System { b, exponents, lower, upper, working_bits, held_bytes, result };
        bands::run(ctx, b.cols(), &mut system)?;
        Ok(system.result)
    }
}

/// The working precision of a solve.
///
/// # Errors
/// [`Error::Precision`] where the kernel has not enough primes.
fn working_bits(ctx: &Context, precision_bits: u32, order: usize) -> Result<u32> {
    let guards = cholesky_solve_guard_bits(order) + guard_bits(order);
    let maximum_bits = maximum_working_bits(ctx).saturating_sub(guards);
    if !(2..=maximum_bits).contains(&precision_bits) {
        return Err(Error::Precision { precision_bits: precision_bits.into(), maximum_bits: maximum_bits.into() });
    }
    Ok(precision_bits + cholesky_solve_guard_bits(order))
}

/// A lower triangular factor `L = S L'`, `S` powers of two, the rows of `L'` of norms in `(1/5, 1]`.
pub(super) struct ScaledRows<'a> {
    factor: &'a Matrix,
    /// Heads of `L'`, zero above the diagonal.
    heads: Vec<u64>,
    /// Row `i` of `S` is `2^exponents[i]`.
    pub exponents: Vec<i64>,
}

impl<'a> ScaledRows<'a> {
    /// Scales the rows; what lies above the diagonal is not read.
    pub fn new(factor: &'a Matrix) -> ScaledRows<'a> {
        let order = factor.rows();
        let head = |row: usize, col: usize| factor.get(row, col).head;
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

    /// Bytes held.
    pub fn bytes(order: usize) -> u64 {
        8 * (order as u64 + 1) * order as u64
    }
}

struct System<'a> {
    b: MatrixView<'a>,
    exponents: &'a [i64],
    lower: Solver<'a>,
    upper: Solver<'a>,
    working_bits: u32,
    held_bytes: u64,
    result: Matrix,
}

impl Banded for System<'_> {
    fn held_bytes(&self, columns: usize) -> u64 {
        let band = Matrix::bytes_for(self.b.rows(), columns, self.working_bits);
        let scratch = self.lower.scratch_bytes(columns).max(self.upper.scratch_bytes(columns));
        let solvers = self.lower.bytes() + self.upper.bytes() + ScaledRows::bytes(self.b.rows());
        [self.held_bytes, self.result.bytes(), solvers, scratch]
            .iter()
            .fold(band, |sum, &part| sum.saturating_add(part))
    }

    fn plan(&self, ctx: &Context, columns: usize, held_bytes: u64) -> Result<()> {
        largest_need(self.lower.plan(ctx, columns, held_bytes), self.upper.plan(ctx, columns, held_bytes))
    }

    fn run(&mut self, ctx: &Context, columns: Range<usize>, held_bytes: u64) -> Result<()> {
        let place = |error| moved(error, 0, columns.start);
        let mut w = load(ctx, (&self.b, columns.clone()), None, self.working_bits)?;
        unscale(ctx, &mut w, self.exponents)?;
        self.lower.run(ctx, &mut w, held_bytes).map_err(place)?;
        self.upper.run(ctx, &mut w, held_bytes).map_err(place)?;
        unscale(ctx, &mut w, self.exponents)?;
        store(ctx, &w, &Target { columns, flipped: false }, &mut self.result)
    }
}

/// Row `i` times `2^-exponents[i]`.
fn unscale(ctx: &Context, w: &mut Matrix, exponents: &[i64]) -> Result<()> {
    each_column(
        ctx,
        w,
        || (),
        |(), mut column| {
            column.shift(exponents);
            Ok(())
        },
    )
}
