//! Solutions of `A X = B` from a Cholesky factor of `A`.

use crate::context::Context;
use crate::error::Result;
use crate::math::bound::cholesky_solve_guard_bits;
use crate::matrix::{Destination, Matrix, MatrixView};
use crate::ops::cholesky::Cholesky;
use crate::ops::product::problem::Accuracy;
use crate::ops::solve::dots;
use crate::ops::solve::factored::Factored;
use crate::ops::solve::report::SolveReport;

impl Cholesky {
    /// The solution `X` of `A X = B`, rounded to `precision_bits` bits.
    ///
    /// Shapes: `b` and the result are `n x m`. Accuracy: `|b - A x|_i <= 2^(4 - p) (sqrt(a_ii) sum_j sqrt(a_jj) |x_j| +
    /// |b_i|)` for each column, where `p` is the smaller of `precision_bits` and the precision of the factor; for a
    /// factor with entrywise accuracy (see [`Cholesky::with_accuracy`]) `|b - A x|_i <= 2^(4 - p) (|L| |L^T| |x| +
    /// |b|)_i`. The bits depend only on the factor, its accuracy, `b` and the precision. Cost: `n^2 m` word products
    /// for each prime. Source: docs/ALGORITHM.md, "Solves with a Cholesky factor".
    ///
    /// ```
    /// use sunzi::{Context, Matrix};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[4.0, 2.0, 2.0, 5.0])?;
    /// let factor = sunzi::cholesky(&ctx, &a, 128)?; // once, for any number of right-hand sides
    /// let b = Matrix::from_f64s(2, 2, 128, &[8.0, 12.0, 6.0, 7.0])?;
    /// assert_eq!(factor.solve(&ctx, &b, 128)?.view().to_f64s(), [1.0, 2.0, 1.0, 1.0]);
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

    /// [`Cholesky::solve`] into a matrix of the caller or a block of one.
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
        let b = b.into();
        self.scaled_doubles.heed_limit(ctx);
        let factored = Factored {
            lower: self.factor(),
            pivots: None,
            precision_bits,
            guard_bits: cholesky_solve_guard_bits(self.factor().rows()),
            total_columns: b.cols(),
            accuracy: self.accuracy,
            row_norms: &self.row_norms,
        };
        factored.solve(ctx, b, result.into())
    }

    /// [`Cholesky::solve`] for any number of columns, each solved as if it were the only one, with entrywise accuracy:
    /// for solves with a few bits, which read only as many bits of the factor.
    ///
    /// # Errors
    /// As [`Cholesky::solve`].
    pub(crate) fn solve_columns(&self, ctx: &Context, b: MatrixView<'_>, precision_bits: u32) -> Result<Matrix> {
        self.scaled_doubles.heed_limit(ctx);
        let factored = Factored {
            lower: self.factor(),
            pivots: None,
            precision_bits,
            guard_bits: cholesky_solve_guard_bits(self.factor().rows()),
            total_columns: 1,
            accuracy: Accuracy::Entrywise,
            row_norms: &self.row_norms,
        };
        let mut result = Matrix::empty();
        factored.solve(ctx, b, Destination::Matrix(&mut result))?;
        Ok(result)
    }

    /// For each row of the factor the `r_i` with `norm(l_i) <= 2^r_i`, at most about twice the norm.
    ///
    /// # Errors
    /// The errors of the pass over the factor on the context's threads.
    pub(crate) fn row_exponents(&self, ctx: &Context) -> Result<&[i64]> {
        dots::kept_row_norms(ctx, self.factor(), &self.row_norms)
    }
}
