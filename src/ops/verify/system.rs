//! Is this stored matrix the solution of that system? Residuals of `A X = B`, `op(T) X = alpha B` and `A X = I`.
//!
//! Promise: a solution that meets the bound of [`solve_with`](crate::solve_with), [`trsm_with`](crate::trsm_with) or
//! [`inverse_with`](crate::inverse_with) is never rejected. A system is the claim that its right side is a product, so
//! it is tested like a product, with other bounds. Independent of: how a system is solved. Source: docs/CHECKS.md,
//! "Verification".

use super::exact::{ColumnSize, UpperBound, column_size};
use super::{Bounds, Claim, ClaimedProduct, Verification, VerifyOptions, judge, map_indices};
use crate::context::Context;
use crate::error::{Error, ErrorText, IndexBase, Result};
use crate::math::float::{FloatRef, Head};
use crate::math::pivot::diagonal_exponent;
use crate::matrix::{Diag, Matrix, MatrixView, Op, Side, Symmetric, Uplo};
use crate::ops::TrsmOptions;
use rug::Float;

/// Bits below which the bound of a solve allows any solution.
const LEAST_BITS: u32 = 5;

/// Checks that `x` solves `A X = B` to `precision_bits` bits, where `operands` is `(A, B)`.
///
/// The tests are those of [`verify_gemm`](super::verify_gemm) for `B` as the product `A X`: sampled entries (all
/// entries if there are few) have `|B - A X|_ij <= 2^(4-b) (sqrt(a_ii) sum_k sqrt(a_kk) |x_kj| + |b_ij|)`, and random
/// combinations of the columns of the residual meet the combined bounds; residuals are exact sums. This is the bound of
/// [`solve_with`](crate::solve_with); a solution that meets the entrywise bound, or the bound of a refined solution,
/// meets this bound too. The bound limits the backward error: the number of correct digits of `x` also depends on the
/// condition. Only the options `vector_count`, `sample_count` and `seed` are used. Shapes: `a` is `n x n`, given as a
/// plain matrix, a symmetric matrix or one triangle, see [`Symmetric`]; `b` and `x` are `n x m`. Cost: `n (n + m)`
/// multiplications of big integers for each vector and `n` for each compared entry; copies of all three matrices.
///
/// ```
/// use sunzi::verify::{VerifyOptions, verify_solve};
/// use sunzi::{Context, Matrix};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 1.0, 2.0])?;
/// let b = Matrix::from_f64s(2, 1, 128, &[1.0, 0.0])?;
/// let x = sunzi::solve(&ctx, &a, &b, 128)?;
/// assert!(verify_solve(&ctx, (&a, &b), &x, 128, &VerifyOptions::new())?.worst_entry <= 1.0);
/// assert!(verify_solve(&ctx, (&a, &b), &b, 128, &VerifyOptions::new()).is_err());
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`Error::Verification`] names the worst entry or row, or a proof that `a` is not positive definite;
/// [`Error::ShapeMismatch`]; [`Error::NotSquare`] and [`Error::NotSymmetric`] for `a`; [`Error::InvalidArgument`] for
/// fewer than 5 bits; [`Error::OutOfMemory`].
pub fn verify_solve<'a, 'b, 'c>(
    ctx: &Context,
    operands: (impl Into<Symmetric<'a>>, impl Into<MatrixView<'b>>),
    x: impl Into<MatrixView<'c>>,
    precision_bits: u32,
    options: &VerifyOptions,
) -> Result<Verification> {
    let operation = "verify solve";
    check_bits(operation, precision_bits)?;
    let (a, b, x) = (operands.0.into().lower_view(operation)?, operands.1.into(), x.into());
    if b.rows() != a.rows() {
        return Err(Error::shape_mismatch(operation, (a.rows(), a.cols()), (b.rows(), b.cols())));
    }
    check_solution(operation, b, x)?;
    admit(ctx, &[a, b, x], options)?;
    let balanced = Balanced::new(operation, a)?;
    let opposite = balanced.scales.iter().map(|scale| -scale).collect::<Vec<_>>();
    let (right, result) = (moved(x, &balanced.scales)?, moved(b, &opposite)?);
    let claim = Claim {
        power: 4,
        with_result: true,
        subject: "the residual",
        unit: "2^(4-b) (sqrt(a_ii) sum_k sqrt(a_kk) |x_kj| + |b_ij|)",
        row_unit: "for the combined right-hand side",
        transposed: false,
    };
    let problem = ClaimedProduct {
        operation,
        left: balanced.matrix.view(),
        right: right.view(),
        result: result.view(),
        triangle: None,
        claim,
    };
    let sizes = map_indices(ctx, right.cols(), |col| {
        let terms =
            balanced.weights.iter().enumerate().map(|(k, &weight)| weight.times(UpperBound::of(right.get(k, col))));
        ColumnSize { norm: terms.fold(UpperBound::ZERO, UpperBound::plus), ..column_size(right.view(), col) }
    });
    let bounds = Bounds::with_sizes(&problem, balanced.sizes(ctx), sizes, precision_bits);
    judge(ctx, &problem, &bounds, options)
}

/// Checks that `x` is the inverse of `a` to `precision_bits` bits.
///
/// As [`verify_solve`] with the identity for `B`; the bound is `|A X - I|_ij <= 2^(4-b) sqrt(a_ii x_jj) sum_k sqrt(a_kk
/// x_kk)`, which every result of [`inverse_with`](crate::inverse_with) meets. Shapes: both `n x n`, given as plain
/// matrices, symmetric matrices or one triangle.
///
/// ```
/// use sunzi::verify::{VerifyOptions, verify_inverse};
/// use sunzi::{Context, Matrix};
/// let ctx = Context::new()?;
/// let a = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 1.0, 2.0])?;
/// let inverse = sunzi::inverse(&ctx, &a, 128)?;
/// assert!(verify_inverse(&ctx, &a, &inverse, 128, &VerifyOptions::new())?.worst_entry <= 1.0);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`verify_solve`]; [`Error::Verification`] also if `x` is not symmetric.
pub fn verify_inverse<'a, 'b>(
    ctx: &Context,
    a: impl Into<Symmetric<'a>>,
    x: impl Into<Symmetric<'b>>,
    precision_bits: u32,
    options: &VerifyOptions,
) -> Result<Verification> {
    let operation = "verify inverse";
    check_bits(operation, precision_bits)?;
    let a = a.into().lower_view(operation)?;
    let x = x.into().lower_view(operation).map_err(|error| super::asymmetric_result(operation, error))?;
    if x.rows() != a.rows() {
        return Err(Error::shape_mismatch(operation, (a.rows(), a.cols()), (x.rows(), x.cols())));
    }
    admit(ctx, &[a, x], options)?;
    let balanced = Balanced::new(operation, a)?;
    let right = mirrored(x, &balanced.scales)?;
    check_definite(operation, right.view(), "the inverse", 1)?;
    let order = right.rows();
    let identity = Matrix::identity(order, 2)?;
    let claim = Claim {
        power: 4,
        with_result: false,
        subject: "the residual",
        unit: "2^(4-b) sqrt(a_ii x_jj) sum_k sqrt(a_kk x_kk)",
        row_unit: "for the combined columns",
        transposed: false,
    };
    let problem = ClaimedProduct {
        operation,
        left: balanced.matrix.view(),
        right: right.view(),
        result: identity.view(),
        triangle: None,
        claim,
    };
    let roots = (0..order).map(|k| UpperBound::of(right.get(k, k)).square_root()).collect::<Vec<_>>();
    let terms = balanced.weights.iter().zip(&roots).map(|(weight, root)| weight.times(*root));
    let sum = terms.fold(UpperBound::ZERO, UpperBound::plus);
    let sizes =
        map_indices(ctx, order, |col| ColumnSize { norm: roots[col].times(sum), ..column_size(right.view(), col) });
    let bounds = Bounds::with_sizes(&problem, balanced.sizes(ctx), sizes, precision_bits);
    judge(ctx, &problem, &bounds, options)
}

/// Checks that `x` solves `op(T) X = alpha B` or `X op(T) = alpha B` to `precision_bits` bits, where `operands` is `(T,
/// B)` and `system` are the options of [`trsm_with`](crate::trsm_with).
///
/// As [`verify_solve`], with the bound `|alpha B - op(T) X|_ij <= 2^(1-b) (||t_i|| ||x_j|| + |alpha b_ij|)` for rows
/// `t_i` of `op(T)` and columns `x_j`; for side right the bound holds for the transposed matrices. A solution that
/// meets the entrywise bound meets this bound too. Shapes: those of [`trsm_with`](crate::trsm_with); `x` has the shape
/// of `b`.
///
/// ```
/// use sunzi::verify::{VerifyOptions, verify_trsm};
/// use sunzi::{Context, Matrix, Op, TrsmOptions};
/// let ctx = Context::new()?;
/// let l = Matrix::from_f64s(2, 2, 128, &[1.0, 2.0, 0.0, 3.0])?;
/// let b = Matrix::from_f64s(2, 1, 128, &[1.0, 1.0])?;
/// let system = TrsmOptions::new().op(Op::Transpose);
/// let x = sunzi::trsm_with(&ctx, &l, &b, 128, &system)?.result;
/// assert!(verify_trsm(&ctx, (&l, &b), &x, 128, (&system, &VerifyOptions::new()))?.worst_entry <= 1.0);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`Error::Verification`] names the worst entry or row; [`Error::ShapeMismatch`]; [`Error::NotSquare`] for `t`;
/// [`Error::Precision`] for fewer than 2 bits, and if an entry of `alpha B` has more bits than a matrix can store;
/// [`Error::InvalidArgument`] if alpha is not finite; [`Error::OutOfMemory`].
pub fn verify_trsm<'a, 'b, 'c>(
    ctx: &Context,
    operands: (impl Into<MatrixView<'a>>, impl Into<MatrixView<'b>>),
    x: impl Into<MatrixView<'c>>,
    precision_bits: u32,
    (system, options): (&TrsmOptions<'_>, &VerifyOptions),
) -> Result<Verification> {
    let operation = "verify trsm";
    super::check_bits(precision_bits)?;
    let (t, b, x) = (operands.0.into(), operands.1.into(), x.into());
    if t.rows() != t.cols() {
        return Err(Error::NotSquare { operation, rows: t.rows(), cols: t.cols() });
    }
    let facing = if system.side == Side::Left { b.rows() } else { b.cols() };
    if facing != t.rows() {
        return Err(Error::shape_mismatch(operation, (t.rows(), t.cols()), (b.rows(), b.cols())));
    }
    check_solution(operation, b, x)?;
    admit(ctx, &[t, b, x], options)?;
    let triangle = triangle(t, system.uplo, system.diag)?;
    let scaled = system.alpha.map(|alpha| times(b, alpha)).transpose()?;
    let b = scaled.as_ref().map_or(b, Matrix::view);
    let transposed = system.side == Side::Right;
    let claim = Claim {
        power: 1,
        with_result: true,
        subject: "the residual",
        unit: match system.side {
            Side::Left => "2^(1-b) (||t_i|| ||x_j|| + |alpha b_ij|)",
            Side::Right => "2^(1-b) (||x_i|| ||t_j|| + |alpha b_ij|)",
        },
        row_unit: "for the combined right-hand side",
        transposed,
    };
    // A product is `left^T right`; on the right side of X everything is transposed.
    let is_left_transposed = transposed == (system.op == Op::Transpose);
    let left = turned(triangle.view(), is_left_transposed);
    let (right, result) = (turned(x, transposed), turned(b, transposed));
    let problem = ClaimedProduct { operation, left, right, result, triangle: None, claim };
    let bounds = Bounds::new(ctx, &problem, precision_bits);
    judge(ctx, &problem, &bounds, options)
}

/// Refuses a solution of another shape than the right sides.
fn check_solution(operation: &'static str, b: MatrixView<'_>, x: MatrixView<'_>) -> Result<()> {
    let (right, solution) = ((b.rows(), b.cols()), (x.rows(), x.cols()));
    if right == solution { Ok(()) } else { Err(Error::shape_mismatch(operation, right, solution)) }
}

/// Refuses a memory limit without room for copies of the matrices, and for their products with the random vectors.
pub(super) fn admit(ctx: &Context, copied: &[MatrixView<'_>], options: &VerifyOptions) -> Result<()> {
    let copy = |view: &MatrixView<'_>| Matrix::bytes_for(view.rows(), view.cols(), view.precision_bits());
    let Some(order) = copied.first() else { return Ok(()) };
    let bits = copied.iter().map(|view| view.precision_bits()).max().unwrap_or(0);
    // The sum of a row has a few more bits than its terms, and an integer its own head.
    let images = Matrix::bytes_for(order.rows(), options.vector_count, bits.saturating_add(512));
    ctx.memory().admit(copied.iter().map(copy).fold(images, u64::saturating_add)).map(drop)
}

/// The view, or its transpose.
fn turned(view: MatrixView<'_>, transposed: bool) -> MatrixView<'_> {
    if transposed { view.transposed() } else { view }
}

fn check_bits(operation: &str, precision_bits: u32) -> Result<()> {
    if precision_bits >= LEAST_BITS {
        return Ok(());
    }
    let message = format!(
        "{operation}: the error bound proves nothing at {precision_bits} bits: at least {LEAST_BITS} bits are needed"
    );
    Err(Error::InvalidArgument(message))
}

/// A positive definite matrix, its rows and columns scaled by powers of two.
struct Balanced {
    /// Both triangles; the diagonal lies in `[1/4, 1)`, all else in `(-1, 1)`.
    matrix: Matrix,
    /// `s_i`: row and column `i` were divided by `2^(s_i)`.
    scales: Vec<i64>,
    /// At least the square root of each diagonal entry.
    weights: Vec<UpperBound>,
}

impl Balanced {
    /// Refuses a matrix that is not positive definite by its diagonal, or by a minor of order 2 as far as exponents
    /// show.
    fn new(operation: &str, lower: MatrixView<'_>) -> Result<Balanced> {
        check_definite(operation, lower, "the matrix", 0)?;
        let head = |i: usize| lower.get(i, i).head;
        let scales = (0..lower.rows()).map(|i| diagonal_exponent(head(i).exponent())).collect::<Vec<_>>();
        let opposite = scales.iter().map(|scale| -scale).collect::<Vec<_>>();
        let matrix = mirrored(lower, &opposite)?;
        let weights = (0..lower.rows()).map(|i| UpperBound::of(matrix.get(i, i)).square_root()).collect();
        Ok(Balanced { matrix, scales, weights })
    }

    /// The columns, with the weights for norms.
    fn sizes(&self, ctx: &Context) -> Vec<ColumnSize> {
        map_indices(ctx, self.weights.len(), |col| ColumnSize {
            norm: self.weights[col],
            ..column_size(self.matrix.view(), col)
        })
    }
}

/// Refuses a diagonal that is not positive, and entries of the lower triangle beyond `2^slack sqrt(a_ii a_jj)`, about.
fn check_definite(operation: &str, lower: MatrixView<'_>, name: &str, slack: i64) -> Result<()> {
    let head = |i: usize, j: usize| lower.get(i, j).head;
    let refusal = |say: &dyn Fn(IndexBase) -> String| {
        Err(Error::verification(ErrorText::counted(|base| format!("{operation}: {}", say(base)))))
    };
    if let Some(i) = (0..lower.rows()).find(|&i| head(i, i).is_zero() || head(i, i).is_negative()) {
        return refusal(&|base| format!("{} of {name} is not positive", base.one("diagonal entry", i)));
    }
    let exponent = |i: usize| 2 * diagonal_exponent(head(i, i).exponent());
    for j in 0..lower.cols() {
        // |entry| >= 2^(exponent - 1), and the root of the diagonal entries' product is below 2^(s_i + s_j).
        let is_beyond = |&i: &usize| {
            !head(i, j).is_zero() && 2 * (head(i, j).exponent() - 1) >= exponent(i) + exponent(j) + 2 * slack
        };
        if let Some(i) = (j + 1..lower.rows()).find(is_beyond) {
            return refusal(&|base| {
                let place = base.place(i, j);
                format!(
                    "the entry at {place} of {name} is too large compared with the diagonal: {name} is not positive \
                     definite"
                )
            });
        }
    }
    Ok(())
}

/// The number times `2^power`.
fn shifted(value: FloatRef<'_>, power: i64) -> FloatRef<'_> {
    if value.head.is_zero() {
        return value;
    }
    FloatRef { head: Head::new(value.head.is_negative(), value.head.exponent() + power), limbs: value.limbs }
}

/// A copy with row `i` times `2^(powers_i)`.
fn moved(view: MatrixView<'_>, powers: &[i64]) -> Result<Matrix> {
    let mut copy = Matrix::zeros(view.rows(), view.cols(), view.precision_bits())?;
    for col in 0..view.cols() {
        for (row, &power) in powers.iter().enumerate() {
            copy.set(row, col, shifted(view.get(row, col), power));
        }
    }
    Ok(copy)
}

/// Both triangles of a symmetric matrix with row and column `i` times `2^(powers_i)`; the lower triangle is read.
fn mirrored(lower: MatrixView<'_>, powers: &[i64]) -> Result<Matrix> {
    let mut copy = Matrix::zeros(lower.rows(), lower.cols(), lower.precision_bits())?;
    for col in 0..lower.cols() {
        for row in col..lower.rows() {
            let value = shifted(lower.get(row, col), powers[row] + powers[col]);
            copy.set(row, col, value);
            copy.set(col, row, value);
        }
    }
    Ok(copy)
}

/// The triangle that is read, with zeros elsewhere.
fn triangle(t: MatrixView<'_>, uplo: Uplo, diag: Diag) -> Result<Matrix> {
    let mut copy = Matrix::zeros(t.rows(), t.cols(), t.precision_bits())?;
    for col in 0..t.cols() {
        let rows = if uplo == Uplo::Lower { col + 1..t.rows() } else { 0..col };
        rows.for_each(|row| copy.set(row, col, t.get(row, col)));
        match diag {
            Diag::Unit => copy.set_f64(col, col, 1.0)?,
            Diag::NonUnit => copy.set(col, col, t.get(col, col)),
        }
    }
    Ok(copy)
}

/// `alpha B` with all its bits.
fn times(b: MatrixView<'_>, alpha: &Float) -> Result<Matrix> {
    if !alpha.is_finite() {
        return Err(Error::InvalidArgument(format!("alpha is {alpha}: it must be finite")));
    }
    let mut product = Matrix::zeros(b.rows(), b.cols(), b.precision_bits().saturating_add(alpha.prec()))?;
    let (factor, exponent) = alpha.to_integer_exp().unwrap_or_default();
    for col in 0..b.cols() {
        for row in 0..b.rows() {
            let (integer, low) = b.get(row, col).to_integer_exponent();
            product.set_integer_exponent(row, col, &(integer * &factor), low + i64::from(exponent))?;
        }
    }
    Ok(product)
}

#[cfg(test)]
#[path = "system_tests.rs"]
mod tests;
