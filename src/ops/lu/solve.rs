//! Factors in use: their parts, solves with them, the inverse, the determinant.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::{Destination, Diag, Matrix, MatrixView, Uplo};
use crate::ops::determinant::product;
use crate::ops::lu::{Lu, NAME};
use crate::ops::product::problem::Accuracy;
use crate::ops::solve::system::{SolveReport, TriangularSystem};
use rug::Float;
use std::time::Instant;

/// The rows of `b` in another order: row `i` of the result is row `rows[i]`.
fn in_order(b: MatrixView<'_>, rows: &[usize]) -> Result<Matrix> {
    let mut ordered = Matrix::zeros(b.rows(), b.cols(), b.precision_bits())?;
    for col in 0..b.cols() {
        rows.iter().enumerate().for_each(|(place, &row)| ordered.set(place, col, b.get(row, col)));
    }
    Ok(ordered)
}

/// The systems that factors of one matrix solve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LuSystem {
    /// `A X = B`.
    Plain,
    /// `A^T X = B`.
    Transposed,
}

impl Lu {
    /// Rows and columns of the matrix.
    pub fn order(&self) -> usize {
        self.rows.len()
    }

    /// Factors made elsewhere, stored as in [`Lu::factors`], and the order of the rows, see [`Lu::rows`].
    ///
    /// ```
    /// use sunzi::{Context, Lu, Matrix};
    /// let ctx = Context::new()?;
    /// let entries = Matrix::from_f64s(2, 2, 128, &[4.0, 0.25, 4.0, 1.0])?; // L = [1 0; 1/4 1], U = [4 4; 0 1]
    /// let factors = Lu::from_factors(entries, vec![1, 0])?; // of the matrix [1 2; 4 4]
    /// let b = Matrix::from_f64s(2, 1, 128, &[5.0, 12.0])?;
    /// assert_eq!(factors.solve(&ctx, &b, 128)?.view().to_f64s(), [1.0, 2.0]);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotSquare`]; [`Error::Singular`] for a zero on the diagonal of `U`; [`Error::InvalidArgument`] if
    /// `rows` does not have each row exactly once.
    pub fn from_factors(factors: Matrix, rows: Vec<usize>) -> Result<Lu> {
        let order = factors.rows();
        if factors.cols() != order {
            return Err(Error::NotSquare { operation: NAME, rows: order, cols: factors.cols() });
        }
        let mut ordered = rows.clone();
        ordered.sort_unstable();
        if rows.len() != order {
            let count = rows.len();
            return Err(Error::InvalidArgument(format!("the order of {order} rows has {count} entries")));
        }
        if let Some((place, &row)) = ordered.iter().enumerate().find(|(place, row)| place != *row) {
            let row = row.min(place);
            return Err(Error::InvalidArgument(format!(
                "the order of {order} rows, numbered from 0, does not have row {row} exactly once"
            )));
        }
        match (0..order).find(|&i| factors.get(i, i).head.is_zero()) {
            Some(index) => Err(Error::Singular { index }),
            None => Ok(Lu { factors, rows }),
        }
    }

    /// The factors in one matrix, as LAPACK's `getrf` stores them: `U` on and above the diagonal, `L` below it, whose
    /// diagonal is 1.
    pub fn factors(&self) -> &Matrix {
        &self.factors
    }

    /// The order of the rows: row `i` of `P A` is row `rows()[i]` of `A`.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// The factors in one matrix and the order of the rows, without a copy: see [`Lu::factors`] and [`Lu::rows`].
    pub fn into_parts(self) -> (Matrix, Vec<usize>) {
        (self.factors, self.rows)
    }

    /// `L`: unit lower triangular.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn lower(&self) -> Result<Matrix> {
        let mut lower = self.factors.view().to_matrix()?;
        lower.clear_above_diagonal();
        (0..self.order()).try_for_each(|i| lower.set_f64(i, i, 1.0))?;
        Ok(lower)
    }

    /// `U`: upper triangular.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn upper(&self) -> Result<Matrix> {
        let mut transposed = self.factors.transposed().to_matrix()?;
        transposed.clear_above_diagonal();
        transposed.transposed().to_matrix()
    }

    /// Whether the order of the rows is an odd permutation: then `det P = -1`.
    pub(crate) fn is_odd(&self) -> bool {
        let mut seen = vec![false; self.order()];
        let mut odd = false;
        for start in 0..self.order() {
            let mut at = start;
            while !std::mem::replace(&mut seen[at], true) {
                at = self.rows[at];
                odd ^= at != start;
            }
        }
        odd
    }

    /// `det A`, as the determinant of `P^T L U`, rounded to the precision `p` of the factors; 1 for an empty matrix.
    ///
    /// Accuracy: `2^(1 - p)` relative to the determinant of `P^T L U`, taking the factors as exact. Cost: one product
    /// for each row.
    ///
    /// ```
    /// use sunzi::{Context, Matrix};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[1.0, 4.0, 2.0, 4.0])?; // [1 2; 4 4]
    /// assert_eq!(sunzi::lu(&ctx, &a, 128)?.det()?, -4);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ExponentRange`] for a determinant outside the exponent range.
    pub fn det(&self) -> Result<Float> {
        let pivots = (0..self.order()).map(|i| self.factors.float(i, i));
        let det = product(pivots, self.order(), self.factors.precision_bits())?;
        Ok(if self.is_odd() { -det } else { det })
    }

    /// The solution `X` of `A X = B`, rounded to `precision_bits` bits.
    ///
    /// Shapes: `b` and the result are `n x m`. Accuracy: `|b - A x|_i <= 2^(4 - p) (P^T |L| |U| |x|)_i` for each column
    /// and factors with entrywise accuracy, where `p` is the smaller of `precision_bits` and the precision of the
    /// factors; the bound for other factors has the error of the factors in addition, see [`crate::lu_with`]. Cost:
    /// `n^2 m` word products for each prime. Source: docs/ALGORITHM.md, "LU with partial pivoting".
    ///
    /// ```
    /// use sunzi::{Context, Matrix};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[1.0, 4.0, 2.0, 4.0])?; // [1 2; 4 4]
    /// let b = Matrix::from_f64s(2, 1, 128, &[5.0, 12.0])?;
    /// assert_eq!(sunzi::lu(&ctx, &a, 128)?.solve(&ctx, &b, 128)?.view().to_f64s(), [1.0, 2.0]);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`crate::trsm()`].
    pub fn solve<'b>(&self, ctx: &Context, b: impl Into<MatrixView<'b>>, precision_bits: u32) -> Result<Matrix> {
        let mut result = Matrix::empty();
        self.solve_into(ctx, b, precision_bits, &mut result)?;
        Ok(result)
    }

    /// [`Lu::solve`] into a matrix of the caller or a block of one.
    ///
    /// # Errors
    /// As [`crate::trsm_into`].
    pub fn solve_into<'b, 'r>(
        &self,
        ctx: &Context,
        b: impl Into<MatrixView<'b>>,
        precision_bits: u32,
        result: impl Into<Destination<'r>>,
    ) -> Result<SolveReport> {
        self.solve_system(ctx, LuSystem::Plain, b.into(), precision_bits, result.into())
    }

    /// The solution `X` of `A^T X = B`; otherwise as [`Lu::solve`], with the bound `2^(4 - p) (|U^T| |L^T| |P x|)_i`.
    ///
    /// # Errors
    /// As [`crate::trsm()`].
    pub fn solve_transposed<'b>(
        &self,
        ctx: &Context,
        b: impl Into<MatrixView<'b>>,
        precision_bits: u32,
    ) -> Result<Matrix> {
        let mut result = Matrix::empty();
        self.solve_transposed_into(ctx, b, precision_bits, &mut result)?;
        Ok(result)
    }

    /// [`Lu::solve_transposed`] into a matrix of the caller or a block of one.
    ///
    /// # Errors
    /// As [`crate::trsm_into`].
    pub fn solve_transposed_into<'b, 'r>(
        &self,
        ctx: &Context,
        b: impl Into<MatrixView<'b>>,
        precision_bits: u32,
        result: impl Into<Destination<'r>>,
    ) -> Result<SolveReport> {
        self.solve_system(ctx, LuSystem::Transposed, b.into(), precision_bits, result.into())
    }

    /// `A^-1`, rounded to `precision_bits` bits: the solution for the columns of the identity, with the bound of
    /// [`Lu::solve`].
    ///
    /// Cost: `n^3` word products for each prime.
    ///
    /// ```
    /// use sunzi::{Context, Matrix};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[1.0, 4.0, 2.0, 4.0])?; // [1 2; 4 4]
    /// assert_eq!(sunzi::lu(&ctx, &a, 128)?.inverse(&ctx, 128)?.view().to_f64s(), [-1.0, 1.0, 0.5, -0.25]);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Lu::solve`].
    pub fn inverse(&self, ctx: &Context, precision_bits: u32) -> Result<Matrix> {
        self.solve(ctx, &Matrix::identity(self.order(), 2)?, precision_bits)
    }

    fn solve_system(
        &self,
        ctx: &Context,
        system: LuSystem,
        b: MatrixView<'_>,
        precision_bits: u32,
        result: Destination<'_>,
    ) -> Result<SolveReport> {
        let (start, order) = (Instant::now(), self.order());
        if b.rows() != order {
            return Err(Error::shape_mismatch("solve with a factor", (order, order), (b.rows(), b.cols())));
        }
        let bytes = |bits| Matrix::bytes_for(order, b.cols(), bits);
        let beside = ctx.holding(bytes(b.precision_bits())).holding(2 * bytes(precision_bits));
        let step = |uplo, diag, t, b: &Matrix, result: Destination<'_>| {
            let (b, total_columns) = (b.view(), b.cols());
            let (alpha, transposed, accuracy) = (None, false, Accuracy::Entrywise);
            let system =
                TriangularSystem { t, uplo, diag, b, alpha, transposed, precision_bits, accuracy, total_columns };
            system.solve(&beside, result)
        };
        let (factors, mut middle) = (&self.factors, Matrix::empty());
        let into = Destination::from(&mut middle);
        let report = match system {
            LuSystem::Plain => {
                let right = in_order(b, &self.rows)?;
                step(Uplo::Lower, Diag::Unit, factors.view(), &right, into)?;
                step(Uplo::Upper, Diag::NonUnit, factors.view(), &middle, result)?
            }
            LuSystem::Transposed => {
                let mut places = vec![0; order];
                self.rows.iter().enumerate().for_each(|(place, &row)| places[row] = place);
                step(Uplo::Lower, Diag::NonUnit, factors.transposed(), &b.to_matrix()?, into)?;
                let mut ordered = Matrix::empty();
                let into = Destination::from(&mut ordered);
                let report = step(Uplo::Upper, Diag::Unit, factors.transposed(), &middle, into)?;
                let ordered = in_order(ordered.view(), &places)?;
                result.prepare((order, b.cols()), precision_bits)?.copy_from(ordered.view());
                report
            }
        };
        Ok(SolveReport { operation: "solve", seconds: start.elapsed().as_secs_f64(), ..report })
    }
}
