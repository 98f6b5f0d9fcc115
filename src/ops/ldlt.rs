//! `A = L D L^T` without pivoting, for symmetric quasi-definite matrices.
//!
//! Promise: the bits of the factors depend only on the matrix and the precision.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::magnitude::Magnitude;
use crate::matrix::{Destination, Matrix, MatrixView, Symmetric};
use crate::ops::product::problem::Accuracy;
use crate::ops::product::report::Outcome;
use crate::ops::solve;
use crate::ops::solve::ldlt::LdltFactors;
use crate::ops::solve::system::{Factored, SolveReport};
use crate::options::setters;
use rug::Float;
use std::sync::OnceLock;
use std::time::Instant;

/// Numbers of positive and negative eigenvalues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Inertia {
    /// Number of positive eigenvalues.
    pub positive: usize,
    /// Number of negative eigenvalues.
    pub negative: usize,
}

/// Factors `L`, unit lower triangular, and `D`, diagonal, with `A = L D L^T`.
#[derive(Clone, Debug)]
pub struct Ldlt {
    lower: Matrix,
    pivots: Matrix,
    growth: Float,
    accuracy: Accuracy,
}

/// Options of an `L D L^T` factorisation in addition to the matrix and the precision.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct LdltOptions {
    /// Accuracy of each entry, and of the residuals of solves with the factors.
    pub accuracy: Accuracy,
}

setters! { new LdltOptions { accuracy: Accuracy } }

/// Factors `A = L D L^T`; see [`ldlt_with`].
///
/// ```
/// use sunzi::{Context, Inertia, Matrix};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 2.0, 2.0, -1.0])?; // quasi-definite
/// let factors = sunzi::ldlt(&ctx, &a, 128)?;
/// assert_eq!(factors.lower().view().to_f64s(), [1.0, 1.0, 0.0, 1.0]);
/// assert_eq!(factors.pivots().view().to_f64s(), [2.0, -3.0]);
/// assert_eq!(factors.inertia(), Inertia { positive: 1, negative: 1 });
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`ldlt_with`].
pub fn ldlt<'a>(ctx: &Context, a: impl Into<Symmetric<'a>>, precision_bits: u32) -> Result<Ldlt> {
    Ok(ldlt_with(ctx, a, precision_bits, &LdltOptions::default())?.result)
}

/// Factors a symmetric `A = L D L^T` without pivoting, at `precision_bits` bits.
///
/// Shapes: `a` is `n x n` (n may be 0), given as a plain matrix, a symmetric matrix or one triangle, see [`Symmetric`].
/// Accuracy: with `g_i = (|L| |D| |L^T|)_ii`, `|A - L D L^T|_ij <= 2^(3 - precision_bits) sqrt(g_i g_j)`. For positive
/// definite matrices `g_i` is about `a_ii`; for quasi-definite ones, `[H B^T; B -K]` with `H` and `K` positive
/// definite, it is moderate unless `B` is large relative to `H` and `K`; for other matrices it may have any size, see
/// [`Ldlt::growth`]. With [`Accuracy::Entrywise`], `|A - L D L^T|_ij <= 2^(3 - precision_bits) (|L| |D| |L^T|)_ij`. The
/// bits depend only on `A`, the precision and the accuracy. Cost: `n^3 / 6` word products for each of about
/// `2 precision_bits / 52` primes. Source: docs/ALGORITHM.md, "LDL^T without pivoting".
///
/// ```
/// use sunzi::{Accuracy, Context, LdltOptions, Matrix};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 2.0, 2.0, -1.0])?;
/// let made = sunzi::ldlt_with(&ctx, &a, 128, &LdltOptions::new().accuracy(Accuracy::Norm))?;
/// assert_eq!(made.result.pivots().view().to_f64s(), [2.0, -3.0]);
/// assert_eq!((made.report.operation, made.report.accuracy), ("ldlt", Accuracy::Norm));
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::Singular`] with the index of a zero pivot; [`crate::Error::NotSymmetric`];
/// [`crate::Error::NotSquare`] if `A` is not square; [`crate::Error::Precision`]; [`crate::Error::ExponentRange`];
/// [`crate::Error::MemoryLimit`]; [`crate::Error::Cancelled`]; [`crate::Error::OutOfMemory`].
pub fn ldlt_with<'a>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    precision_bits: u32,
    options: &LdltOptions,
) -> Result<Outcome<Ldlt, SolveReport>> {
    let start = Instant::now();
    let a = a.into().lower_view("ldlt")?;
    let LdltFactors { lower, pivots, mut report } = solve::ldlt::factor(ctx, a, precision_bits, options.accuracy)?;
    let growth = growth(&a, &lower, &pivots);
    report.seconds = start.elapsed().as_secs_f64();
    Ok(Outcome { result: Ldlt { lower, pivots, growth, accuracy: options.accuracy }, report })
}

/// The largest `(|L| |D| |L^T|)_ii` over the largest `|a_ij|` of the lower triangle.
///
/// `|L| |D| |L^T|` is a Gram matrix, so its largest entry lies on the diagonal.
fn growth(a: &MatrixView<'_>, lower: &Matrix, pivots: &Matrix) -> Float {
    let order = lower.rows();
    let mut rows = vec![Magnitude::ZERO; order];
    let mut largest = Magnitude::ZERO;
    for col in 0..order {
        let pivot = Magnitude::of(pivots.get(col, 0));
        for (row, sum) in rows.iter_mut().enumerate().skip(col) {
            let entry = Magnitude::of(lower.get(row, col));
            *sum = sum.plus(entry.times(entry).times(pivot));
            largest = largest.max(Magnitude::of(a.get(row, col)));
        }
    }
    let whole = rows.into_iter().fold(Magnitude::ZERO, Magnitude::max);
    if largest.is_zero() { Float::with_val(53, 1) } else { whole.over(largest).to_float() }
}

impl Ldlt {
    /// Factors made elsewhere, with their [`Ldlt::growth`]; entries on and above the diagonal of `lower` are not read.
    /// Solves have entrywise accuracy, see [`Ldlt::with_accuracy`].
    ///
    /// ```
    /// use sunzi::{Context, Ldlt, Matrix, rug::Float};
    /// let ctx = Context::new()?;
    /// let lower = Matrix::from_f64s(2, 2, 128, &[1.0, 1.0, 0.0, 1.0])?;
    /// let pivots = Matrix::from_f64s(2, 1, 128, &[2.0, -3.0])?;
    /// let factors = Ldlt::from_factors(lower, pivots, Float::with_val(53, 2.5))?; // of the matrix [2 2; 2 -1]
    /// let b = Matrix::from_f64s(2, 1, 128, &[4.0, 1.0])?;
    /// assert_eq!(factors.solve(&ctx, &b, 128)?.view().to_f64s(), [1.0, 1.0]);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if `lower` is not `n x n` or `pivots` is not `n x 1`; [`Error::Singular`] for a zero
    /// pivot; [`Error::InvalidArgument`] if the growth is not positive and finite, or the precisions differ.
    pub fn from_factors(mut lower: Matrix, pivots: Matrix, growth: Float) -> Result<Ldlt> {
        let (order, bits) = (lower.rows(), lower.precision_bits());
        if (lower.cols(), pivots.rows(), pivots.cols()) != (order, order, 1) {
            let shapes = ((order, lower.cols()), (pivots.rows(), pivots.cols()));
            return Err(Error::shape_mismatch("factors L and d", shapes.0, shapes.1));
        }
        if bits != pivots.precision_bits() || !growth.is_finite() || growth <= 0 {
            let other = pivots.precision_bits();
            return Err(Error::InvalidArgument(format!(
                "the factors have {bits} and {other} bits and the growth is {growth}: the precisions must be equal, \
                 and the growth positive and finite"
            )));
        }
        if let Some(index) = (0..order).find(|&i| pivots.get(i, 0).head.is_zero()) {
            return Err(Error::Singular { index });
        }
        lower.clear_above_diagonal();
        (0..order).try_for_each(|i| lower.set_f64(i, i, 1.0))?;
        Ok(Ldlt { lower, pivots, growth, accuracy: Accuracy::default() })
    }

    /// The same factors with another accuracy of solves; see [`crate::Cholesky::with_accuracy`].
    #[must_use]
    pub fn with_accuracy(self, accuracy: Accuracy) -> Ldlt {
        Ldlt { accuracy, ..self }
    }

    /// Accuracy of solves with the factors.
    pub fn accuracy(&self) -> Accuracy {
        self.accuracy
    }

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

    /// Numbers of positive and negative pivots: by Sylvester's law also the numbers of positive and negative
    /// eigenvalues of `L D L^T`.
    ///
    /// ```
    /// use sunzi::{Context, Matrix};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 2.0, 1.0])?; // eigenvalues 3 and -1
    /// let inertia = sunzi::ldlt(&ctx, &a, 128)?.inertia();
    /// assert_eq!((inertia.positive, inertia.negative), (1, 1));
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    pub fn inertia(&self) -> Inertia {
        let negative = self.signs().into_iter().filter(|&negative| negative).count();
        Inertia { positive: self.pivots.rows() - negative, negative }
    }

    /// Element growth: the largest entry of `|L| |D| |L^T|` divided by the largest entry of `|A|`. It has 53 bits, and
    /// is 1 for an empty matrix.
    ///
    /// The logarithm to base 2 of the growth is the number of bits that are lost because there is no pivoting.
    ///
    /// ```
    /// use sunzi::{Context, Matrix};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 2.0, 2.0, -1.0])?; // |L| |D| |L^T| is [2 2; 2 5]
    /// assert_eq!(*sunzi::ldlt(&ctx, &a, 128)?.growth(), 2.5);
    /// # Ok::<(), sunzi::Error>(())
    /// ```
    pub fn growth(&self) -> &Float {
        &self.growth
    }

    /// The solution `X` of `A X = B`, rounded to `precision_bits` bits.
    ///
    /// Shapes: `b` and the result are `n x m`. Accuracy: `|b - A x|_i <= 2^(4 - p) (sqrt(g_i) sum_j sqrt(g_j) |x_j| +
    /// |b_i|)` for each column, with the `g_i` of [`ldlt`] and `p` the smaller of `precision_bits` and the precision of
    /// the factors; for factors with entrywise accuracy `|b - A x|_i <= 2^(4 - p) (|L| |D| |L^T| |x| + |b|)_i`. Cost:
    /// `n^2 m` word products for each prime. Source: docs/ALGORITHM.md, "LDL^T without pivoting".
    ///
    /// ```
    /// use sunzi::{Context, Matrix};
    /// let ctx = Context::new()?;
    /// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 2.0, 2.0, -1.0])?;
    /// let b = Matrix::from_f64s(2, 1, 128, &[4.0, 1.0])?;
    /// let factors = sunzi::ldlt(&ctx, &a, 128)?;
    /// assert_eq!(factors.solve(&ctx, &b, 128)?.view().to_f64s(), [1.0, 1.0]);
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

    /// [`Ldlt::solve`] into a matrix of the caller or a block of one.
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
        let factored = Factored {
            lower: &self.lower,
            pivots: Some(&self.pivots),
            precision_bits,
            total_columns: b.cols(),
            accuracy: self.accuracy,
            row_norms: &OnceLock::new(),
        };
        factored.solve(ctx, b, result.into())
    }
}
