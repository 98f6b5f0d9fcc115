//! What a Cholesky factor is for: solutions, the inverse, and the condition of the factored matrix.

use crate::context::Context;
use crate::error::Result;
use crate::matrix::{Matrix, MatrixView, Op};
use crate::ops::cholesky::{Cholesky, vector};
use crate::ops::trsm::{TrsmOptions, trsm};
use rug::Float;

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
    /// As [`trsm`].
    pub fn solve<'b>(&self, ctx: &Context, b: impl Into<MatrixView<'b>>, precision_bits: u32) -> Result<Matrix> {
        let b = b.into();
        if b.rows() == self.factor().rows() && b.cols() <= VECTOR_COLUMNS {
            return vector::solve_columns(ctx, self.factor(), b, precision_bits);
        }
        let y = trsm(ctx, self.factor(), b, precision_bits + 32, &TrsmOptions::default())?;
        let transposed = TrsmOptions { op: Op::Transpose, ..TrsmOptions::default() };
        trsm(ctx, self.factor(), &y, precision_bits, &transposed)
    }

    /// The inverse of `L L^T`, rounded to `precision_bits` bits: symmetric, both triangles filled.
    ///
    /// Accuracy: with `Z = (L L^T)^-1` for the factor as it is, `|computed - Z|_ij <= 2^(2 - precision_bits) sqrt(z_ii z_jj)`,
    /// whatever the condition. The bits depend on the factor and the precision alone.
    /// Cost: `n^3 / 3` word products for each prime. Source: docs/ALGORITHM.md, "Solves with a Cholesky factor".
    ///
    /// # Errors
    /// As [`trsm`]; [`crate::Error::Precision`] also where the condition asks for more bits than the kernel has.
    pub fn inverse(&self, ctx: &Context, precision_bits: u32) -> Result<Matrix> {
        let n = self.factor().rows();
        let mut identity = Matrix::zeros(n, n, precision_bits)?;
        for i in 0..n {
            identity.set_f64(i, i, 1.0)?;
        }
        let mut inverse = self.solve(ctx, &identity, precision_bits)?;
        for col in 0..n {
            for row in 0..col {
                let value = inverse.float(col, row);
                inverse.set_float(row, col, &value)?;
            }
        }
        Ok(inverse)
    }

    /// A lower bound, rarely off by more than a factor of 3, of the condition `||A||_1 ||A^-1||_1` of the factored
    /// matrix, whose 1-norm is `one_norm`; 53 bits.
    ///
    /// Deterministic. Cost: at most five solves with one or two columns, at the factor's precision.
    /// Source: N. J. Higham, *FORTRAN codes for estimating the one-norm of a matrix*, ACM TOMS 14 (1988).
    ///
    /// # Errors
    /// As [`trsm`].
    pub fn condition_estimate(&self, ctx: &Context, one_norm: &Float) -> Result<Float> {
        let inverse = self.inverse(ctx, self.factor().precision_bits())?;
        Ok(Float::with_val(53, inverse.one_norm() * one_norm))
    }
}
