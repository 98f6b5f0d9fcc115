//! Linear systems with a symmetric positive definite matrix: by one factorisation, or refined from a cheaper one.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound::ceil_log2;
use crate::matrix::{Matrix, MatrixView};
use crate::ops::cholesky::cholesky;
use rug::Float;

/// Choices of [`solve_refined`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RefineOptions {
    /// Precision of the factorisation, at least 2 bits.
    pub factor_bits: u32,
    /// Most corrections that are made.
    pub max_iterations: usize,
}

impl Default for RefineOptions {
    /// A factor of 53 bits and at most 200 corrections.
    fn default() -> Self {
        RefineOptions { factor_bits: 53, max_iterations: 200 }
    }
}

/// A refined solution.
#[derive(Clone, Debug)]
pub struct Refined {
    /// The solution, rounded to the precision asked for.
    pub solution: Matrix,
    /// Corrections made.
    pub iterations: usize,
    /// An upper bound of `log2` of the componentwise backward error of `solution`,
    /// `max_ij |b - A x|_ij / (|A| |x| + |b|)_ij`; `i64::MIN` where the residual is 0.
    pub backward_error_log2: i64,
}

/// The solution `X` of `A X = B` for a symmetric positive definite `A`, rounded to `precision_bits` bits.
///
/// Shapes: `a` is `n x n`, of which the lower triangle is read; `b` and the result are `n x m`.
/// Accuracy: `|b - A x|_i <= 2^(4 - precision_bits) (sqrt(a_ii) sum_j sqrt(a_jj) |x_j| + |b_i|)` for each column. The bits
/// depend on `A`, `B` and the precision alone.
/// Cost: one factorisation, `n^3 / 6` word products for each prime, and `n^2 m`.
///
/// # Errors
/// Those of [`crate::cholesky`] and [`crate::Cholesky::solve`].
pub fn solve<'a, 'b>(
    ctx: &Context,
    a: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
) -> Result<Matrix> {
    cholesky(ctx, a, precision_bits)?.solve(ctx, b, precision_bits)
}

/// [`solve`] with a factor of few bits, refined to the full precision.
///
/// Shapes as in [`solve`].
/// Accuracy: `|b - A x|_ij <= 2^(1 - precision_bits) (|A| |x| + |b|)_ij` for every entry: a componentwise bound, which the
/// unrefined solve does not give.
/// Cost: one factorisation at `factor_bits`; each correction takes a product with `A` at the full precision and a solve at
/// `factor_bits`, and gains about `factor_bits - log2(condition)` bits.
///
/// # Errors
/// As [`solve`]; [`crate::Error::NotPositiveDefinite`] also where `factor_bits` are too few to factor `A`;
/// [`crate::Error::RefinementStalls`] where the corrections do not converge.
pub fn solve_refined<'a, 'b>(
    ctx: &Context,
    a: impl Into<MatrixView<'a>>,
    b: impl Into<MatrixView<'b>>,
    precision_bits: u32,
    options: &RefineOptions,
) -> Result<Refined> {
    let (a, b) = (a.into(), b.into());
    let factor = cholesky(ctx, a, options.factor_bits)?;
    let bits = precision_bits + 32;
    let mut x = Matrix::zeros(b.rows(), b.cols(), bits)?;
    let wanted_log2 = 1 - i64::from(precision_bits);
    let mut reached_log2 = 0;
    for iterations in 0..=options.max_iterations {
        let mut solution = Matrix::zeros(b.rows(), b.cols(), precision_bits)?;
        for col in 0..b.cols() {
            for row in 0..b.rows() {
                solution.set_float(row, col, &x.float(row, col))?;
            }
        }
        let (_, log2) = residual((a, b), &solution)?;
        if log2 <= wanted_log2 {
            return Ok(Refined { solution, iterations, backward_error_log2: log2 });
        }
        reached_log2 = log2;
        let correction = factor.solve(ctx, &residual((a, b), &x)?.0, options.factor_bits)?;
        x = x.add(&correction, bits)?;
    }
    Err(Error::RefinementStalls {
        iterations: options.max_iterations,
        reached_log2,
        wanted_log2,
        factor_bits: options.factor_bits,
    })
}

/// `B - A X` and a bound of `log2` of the componentwise backward error.
fn residual((a, b): (MatrixView<'_>, MatrixView<'_>), x: &Matrix) -> Result<(Matrix, i64)> {
    let bits = 2 * x.precision_bits() + 2 * a.precision_bits() + b.precision_bits() + ceil_log2(a.rows());
    let mut residual = Matrix::zeros(b.rows(), b.cols(), x.precision_bits())?;
    let mut worst = i64::MIN;
    for j in 0..b.cols() {
        for i in 0..b.rows() {
            let mut sum = b.get(i, j).to_float(bits);
            let mut size = sum.clone().abs();
            for k in 0..a.rows() {
                let entry = if k <= i { a.get(i, k) } else { a.get(k, i) };
                let product = Float::with_val(bits, entry.to_float(bits) * x.float(k, j));
                sum -= &product;
                size += product.abs();
            }
            residual.set_float(i, j, &sum)?;
            if sum != 0 {
                let ratio = Float::with_val(53, sum.abs() / size);
                worst = worst.max(i64::from(ratio.get_exp().unwrap_or(0)));
            }
        }
    }
    Ok((residual, worst))
}
