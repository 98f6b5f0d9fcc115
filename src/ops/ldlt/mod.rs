//! `A = L D L^T` without pivoting, for symmetric quasi-definite matrices.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound::ceil_log2;
use crate::matrix::{Diag, Matrix, MatrixView, Op, Uplo};
use crate::ops::problem::check_precision;
use crate::ops::trsm::{TrsmOptions, trsm};
use rug::Float;

/// Choices of [`ldlt`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LdltOptions {
    /// The triangle of `A` that is read; the other may hold anything.
    pub uplo: Uplo,
}

/// Numbers of positive and negative eigenvalues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Inertia {
    /// Positive ones.
    pub positive: usize,
    /// Negative ones.
    pub negative: usize,
}

/// Factors `L`, unit lower triangular, and `D`, diagonal, with `A = L D L^T`.
#[derive(Clone, Debug)]
pub struct Ldlt {
    lower: Matrix,
    pivots: Matrix,
    growth: Float,
}

/// Factors a symmetric `A = L D L^T` without pivoting, at `precision_bits` bits.
///
/// Shapes: `a` is `n x n` (n may be 0), of which one triangle is read.
/// Accuracy: with `g_i = (|L| |D| |L^T|)_ii`, `|A - L D L^T|_ij <= 2^(3 - precision_bits) sqrt(g_i g_j)`. For positive definite
/// matrices `g_i` is about `a_ii`; for quasi-definite ones it is moderate; for others it may be of any size, see
/// [`Ldlt::growth`]. The bits depend on `A` and the precision alone.
/// Cost: `n^3 / 6` word products for each of about `2 precision_bits / 52` primes.
/// Source: docs/ALGORITHM.md, "LDL^T without pivoting".
///
/// # Errors
/// [`crate::Error::Singular`] with the index of a pivot that is 0; [`crate::Error::ShapeMismatch`] where `A` is not square;
/// [`crate::Error::Precision`]; [`crate::Error::ExponentRange`]; [`crate::Error::MemoryLimit`];
/// [`crate::Error::Cancelled`]; [`crate::Error::OutOfMemory`].
pub fn ldlt<'a>(
    ctx: &Context,
    a: impl Into<MatrixView<'a>>,
    precision_bits: u32,
    options: &LdltOptions,
) -> Result<Ldlt> {
    let a = a.into();
    let a = if options.uplo == Uplo::Lower { a } else { a.transposed() };
    let n = a.rows();
    if n != a.cols() {
        return Err(Error::ShapeMismatch {
            operation: "ldlt of a square matrix",
            left_rows: n,
            left_cols: a.cols(),
            right_rows: a.cols(),
            right_cols: n,
        });
    }
    check_precision(ctx.kernel(), precision_bits, n)?;
    let bits = precision_bits + ceil_log2(n) + 16;
    let mut lower = Matrix::zeros(n, n, precision_bits)?;
    let mut pivots = Matrix::zeros(n, 1, precision_bits)?;
    let (mut largest, mut growth) = (Float::new(53), Float::new(53));
    let mut rows = vec![vec![Float::new(bits); n]; n];
    for j in 0..n {
        for i in j..n {
            let mut sum = Float::with_val(bits, a.get(i, j).to_float(a.precision_bits()));
            largest = largest.max(&Float::with_val(53, sum.abs_ref()));
            for k in 0..j {
                let product = Float::with_val(bits, &rows[i][k] * &rows[j][k]);
                sum -= product * &rows[k][k];
            }
            rows[i][j] = if i == j { sum } else { sum / &rows[j][j] };
        }
        if rows[j][j] == 0 {
            return Err(Error::Singular { index: j });
        }
    }
    for (i, row) in rows.iter().enumerate() {
        let mut size = Float::with_val(53, row[i].abs_ref());
        for k in 0..i {
            size += Float::with_val(bits, &row[k] * &row[k]) * Float::with_val(bits, rows[k][k].abs_ref());
            lower.set_float(i, k, &row[k])?;
        }
        growth = growth.max(&size);
        lower.set_f64(i, i, 1.0)?;
        pivots.set_float(i, 0, &row[i])?;
    }
    let growth = if largest == 0 { Float::with_val(53, 1) } else { growth / largest };
    Ok(Ldlt { lower, pivots, growth })
}

impl Ldlt {
    /// `L`: unit lower triangular, zeros above the diagonal.
    pub fn lower(&self) -> &Matrix {
        &self.lower
    }

    /// The diagonal of `D`, an `n x 1` matrix; no entry is 0.
    pub fn pivots(&self) -> &Matrix {
        &self.pivots
    }

    /// Whether each pivot is below 0.
    pub fn signs(&self) -> Vec<bool> {
        (0..self.pivots.rows()).map(|i| self.pivots.get(i, 0).head.is_negative()).collect()
    }

    /// Numbers of positive and negative pivots: by Sylvester's law those of the eigenvalues of `L D L^T`.
    pub fn inertia(&self) -> Inertia {
        let negative = self.signs().into_iter().filter(|&negative| negative).count();
        Inertia { positive: self.pivots.rows() - negative, negative }
    }

    /// Element growth: the largest entry of `|L| |D| |L^T|` over the largest of `|A|`, 53 bits; 1 for an empty matrix.
    ///
    /// `log2` of it is how many bits of the precision the missing pivoting costs.
    pub fn growth(&self) -> &Float {
        &self.growth
    }

    /// The solution `X` of `A X = B`, rounded to `precision_bits` bits.
    ///
    /// Shapes: `b` and the result are `n x m`.
    /// Accuracy: `|b - A x|_i <= 2^(4 - p) (sqrt(g_i) sum_j sqrt(g_j) |x_j| + |b_i|)` for each column, with the `g_i` of
    /// [`ldlt`] and `p` the smaller of `precision_bits` and the precision of the factors.
    ///
    /// # Errors
    /// As [`trsm`].
    pub fn solve<'b>(&self, ctx: &Context, b: impl Into<MatrixView<'b>>, precision_bits: u32) -> Result<Matrix> {
        let bits = precision_bits + 32;
        let unit = TrsmOptions { diag: Diag::Unit, ..TrsmOptions::default() };
        let mut y = trsm(ctx, &self.lower, b, bits, &unit)?;
        for col in 0..y.cols() {
            for row in 0..y.rows() {
                let value = Float::with_val(bits, y.float(row, col) / self.pivots.float(row, 0));
                y.set_float(row, col, &value)?;
            }
        }
        trsm(ctx, &self.lower, &y, precision_bits, &TrsmOptions { op: Op::Transpose, ..unit })
    }
}
