//! Cholesky factorisation `A = L L^T` in fixed point: exact updates, one rounding per entry of the factor.
//!
//! Promise: the bits of the factor, and the index at which it fails, depend on the matrix and the precision alone.

mod condition;
mod diagnose;
mod invert;
mod problem;
mod reference;
mod solve;

use crate::context::Context;
use crate::error::Result;
use crate::matrix::{Matrix, MatrixView, Uplo};
use problem::Problem;
use rug::Float;

/// Choices of a factorisation beyond the matrix and the precision.
#[derive(Clone, Debug, Default)]
pub struct CholeskyOptions {
    /// The triangle of `A` that is read; the other may hold anything.
    pub uplo: Uplo,
    /// Rows of a tile; `None` chooses by size and precision. It never shows in the result.
    pub tile_rows: Option<usize>,
}

/// A factor `L` with `A = L L^T`.
#[derive(Clone, Debug)]
pub struct Cholesky {
    factor: Matrix,
}

/// `A = L L^T`; see [`cholesky_with`].
///
/// # Errors
/// As [`cholesky_with`].
pub fn cholesky<'a>(ctx: &Context, a: impl Into<MatrixView<'a>>, precision_bits: u32) -> Result<Cholesky> {
    cholesky_with(ctx, a, precision_bits, &CholeskyOptions::default())
}

/// The lower triangular `L` with `A = L L^T` for a symmetric positive definite `A`, rounded to `precision_bits` bits.
///
/// Shapes: `a` is `n x n` (n may be 0), of which one triangle is read.
/// Accuracy: `|A - L L^T|_ij <= 2^(2 - precision_bits) sqrt(a_ii a_jj)`, whatever n and the condition of `A`. The bits
/// depend on `A` and the precision alone: not on threads, tiles, kernel or memory limit.
/// Cost: `n^3 / 6` word products for each of about `2 precision_bits / 52` primes, and `n^2 / 2` conversions.
/// Source: docs/ALGORITHM.md, "Cholesky in residues".
///
/// # Errors
/// [`crate::Error::NotPositiveDefinite`] with the first leading minor that is not positive;
/// [`crate::Error::ShapeMismatch`] where `A` is not square; [`crate::Error::Precision`];
/// [`crate::Error::MemoryLimit`]; [`crate::Error::Cancelled`]; [`crate::Error::OutOfMemory`].
pub fn cholesky_with<'a>(
    ctx: &Context,
    a: impl Into<MatrixView<'a>>,
    precision_bits: u32,
    options: &CholeskyOptions,
) -> Result<Cholesky> {
    let maximum = ctx.kernel().maximum_modulus_bits();
    let problem = Problem::new(a.into(), options.uplo, precision_bits, maximum)?;
    match reference::factor(&problem) {
        Ok(rows) if problem.is_whole() => Ok(Cholesky { factor: rows.to_matrix(&problem)? }),
        Ok(rows) => Err(diagnose::failure(&problem, problem.order, &rows.to_matrix(&problem)?, None)),
        Err((index, rows, pivot)) => Err(diagnose::failure(&problem, index, &rows.to_matrix(&problem)?, pivot)),
    }
}

impl Cholesky {
    /// Takes a factor made elsewhere; what lies above its diagonal is not looked at.
    ///
    /// # Errors
    /// [`crate::Error::ShapeMismatch`] where it is not square, [`crate::Error::Singular`] where its diagonal has a zero.
    pub fn from_factor(factor: Matrix) -> Result<Cholesky> {
        let (rows, cols) = (factor.rows(), factor.cols());
        if rows != cols {
            return Err(crate::Error::ShapeMismatch {
                operation: "a square factor",
                left_rows: rows,
                left_cols: cols,
                right_rows: cols,
                right_cols: rows,
            });
        }
        match (0..rows).find(|&i| factor.get(i, i).head.is_zero()) {
            Some(index) => Err(crate::Error::Singular { index }),
            None => Ok(Cholesky { factor }),
        }
    }

    /// The factor: lower triangular, zeros above the diagonal.
    pub fn factor(&self) -> &Matrix {
        &self.factor
    }

    /// The factor, by value.
    pub fn into_factor(self) -> Matrix {
        self.factor
    }

    /// `log det A = 2 sum log l_ii`, to nearly the factor's precision.
    pub fn log_det(&self) -> Float {
        let bits = self.factor.precision_bits() + 32;
        let mut sum = Float::new(bits);
        for i in 0..self.factor.rows() {
            sum += Float::with_val(bits, self.factor.float(i, i)).abs().ln();
        }
        Float::with_val(self.factor.precision_bits(), sum << 1)
    }
}
