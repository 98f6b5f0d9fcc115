//! Balls: enclosures of products, solutions, inverses, Cholesky factors and log-determinants.
//!
//! A [`BallMatrix`] consists of a matrix of midpoints and a matrix of radii. Each function here returns balls that
//! contain the exact result for every point of the operands: roundings, truncations and the radii of the operands are
//! all included, rounded upward. The precision is that of midpoints; radii have 64 bits. The rounded midpoint of a
//! result other than a product adds two units in its last place to the radius, so that the ball also contains the exact
//! number rounded to the same precision in any direction.
//!
//! ```
//! use sunzi::{Context, Matrix, ball::{self, BallMatrix}, rug::Rational};
//! let ctx = Context::builder().threads(1).build()?;
//! let a = BallMatrix::exact(Matrix::from_f64s(2, 2, 128, &[3.0, 1.0, 1.0, 4.0])?)?;
//! let inverse = ball::inverse(&ctx, &a, 128)?;
//! assert!(inverse.contains(0, 0, &Rational::from((4, 11))));
//! assert!(inverse.radius().float(0, 0) < 1e-38);
//! # Ok::<(), sunzi::Error>(())
//! ```
//! Proofs: docs/CHECKS.md, "Balls".

mod bounds;
mod cholesky;
mod definite;
mod inverse_factor;
mod log_det;
mod matrix;
mod product;
mod regular;
mod solve;

pub use matrix::{Ball, BallMatrix};

use crate::context::Context;
use crate::error::Result;
use crate::matrix::Op;
use matrix::BallView;
use product::BallProduct;

/// Balls that contain `op(A) op(B) + C`, or `op(A) op(B)`, for all points of the operands.
///
/// Shapes: `op(A)` is `M x K`, `op(B)` is `K x N`, the result and `c` are `M x N`; any of them may be 0. To multiply by
/// a scalar, scale an operand first, see [`BallMatrix::scaled`]. Radius: `|A| rB + rA (|B| + rB) + rC`, plus the
/// rounding error of the midpoint at `precision_bits` bits. Entries that cancel are computed with more bits. Cost: a
/// product of `precision_bits + 32` bits, of up to four times as many bits if entries cancel, and up to three products
/// of 32 bits. Source: S. M. Rump, *Fast and parallel interval arithmetic*, BIT 39 (1999).
///
/// ```
/// use sunzi::ball::{self, BallMatrix};
/// use sunzi::{Context, Matrix, Op, rug::Rational};
/// let ctx = Context::new()?;
/// let a = BallMatrix::exact(Matrix::from_f64s(1, 2, 128, &[1.0, 2.0])?)?;
/// let radius = Matrix::from_f64s(2, 1, 64, &[0.5, 0.25])?;
/// let b = BallMatrix::new(Matrix::from_f64s(2, 1, 128, &[3.0, 4.0])?, &radius)?;
/// let c = ball::gemm(&ctx, (&a, Op::NoTranspose), (&b, Op::NoTranspose), None, 128)?; // 11, give or take 1
/// assert!(c.contains(0, 0, &Rational::from(10)) && c.contains(0, 0, &Rational::from(12)));
/// assert!(c.radius().float(0, 0) < 1.001);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// The errors of [`crate::gemm_with`].
pub fn gemm(
    ctx: &Context,
    (a, op_a): (&BallMatrix, Op),
    (b, op_b): (&BallMatrix, Op),
    c: Option<&BallMatrix>,
    precision_bits: u32,
) -> Result<BallMatrix> {
    let product = BallProduct::plain(oriented(a.view(), op_a), oriented(b.view(), op_b));
    BallProduct { added: c.map(BallMatrix::view), ..product }.balls(ctx, precision_bits)
}

/// Balls that contain `P^T P + C`, with [`Op::Transpose`] `P P^T + C`, for all points `P`, and all symmetric points
/// `C`.
///
/// Shapes: `p` is `K x N`, the result and `c` are `N x N`; `c` has a symmetric midpoint. Radius and cost: as for
/// [`gemm`].
///
/// ```
/// use sunzi::ball::{self, BallMatrix};
/// use sunzi::{Context, Matrix, Op, rug::Rational};
/// let ctx = Context::new()?;
/// let p = Matrix::from_f64s(2, 1, 128, &[3.0, 4.0])?;
/// let p = BallMatrix::new(p, &Matrix::from_f64s(2, 1, 64, &[0.5, 0.0])?)?;
/// let q = ball::syrk(&ctx, (&p, Op::NoTranspose), None, 128)?; // 2.5^2 + 16 to 3.5^2 + 16
/// assert!(q.contains(0, 0, &Rational::from((89, 4))) && q.contains(0, 0, &Rational::from((113, 4))));
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// The errors of [`crate::syrk_with`].
pub fn syrk(
    ctx: &Context,
    (p, op): (&BallMatrix, Op),
    c: Option<&BallMatrix>,
    precision_bits: u32,
) -> Result<BallMatrix> {
    if let Some(c) = c {
        crate::matrix::Symmetric::from(c.midpoint()).lower_view("syrk")?;
    }
    let right = oriented(p.view(), op);
    let product = BallProduct { symmetric: true, ..BallProduct::plain(right.transposed(), right) };
    BallProduct { added: c.map(BallMatrix::view), ..product }.balls(ctx, precision_bits)
}

/// Balls that contain the solution `X` of `A X = B` for all points `A`, symmetric or not, and all points `B`.
///
/// Shapes: `a` is `n x n` with a symmetric positive definite midpoint, `b` and the result are `n x m`. Radius: for
/// operands of radius 0, two to three units in the last place of each entry, or 0 for exact entries; otherwise, to
/// first order, the largest change over the points of the operands, `|A^-1| (rB + rA |X|)`. Cost: a factorisation, an
/// inverse and a solve with as many bits as `precision_bits` and the condition require, and a few products of few bits.
/// Source: S. M. Rump, *Verification methods: rigorous results using floating-point arithmetic*, Acta Numerica 19
/// (2010); docs/CHECKS.md, "Balls".
///
/// ```
/// use sunzi::ball::{self, BallMatrix};
/// use sunzi::{Context, Matrix, rug::Rational};
/// let ctx = Context::new()?;
/// let a = BallMatrix::exact(Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 1.0, 2.0])?)?;
/// let b = BallMatrix::exact(Matrix::from_f64s(2, 1, 128, &[1.0, 0.0])?)?;
/// let x = ball::solve(&ctx, &a, &b, 128)?;
/// assert!(x.contains(0, 0, &Rational::from((2, 3))) && x.contains(1, 0, &Rational::from((-1, 3))));
/// assert!(x.radius().float(0, 0) < 1e-37);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::NotPositiveDefinite`] for the midpoint; [`crate::Error::InvalidArgument`] if no proof is found that
/// all points are regular; [`crate::Error::NotSymmetric`]; [`crate::Error::ShapeMismatch`]; the errors of
/// [`crate::solve_with`].
pub fn solve(ctx: &Context, a: &BallMatrix, b: &BallMatrix, precision_bits: u32) -> Result<BallMatrix> {
    solve::solve(ctx, a, b, precision_bits)
}

/// Balls that contain the inverse of every point of `a`, symmetric or not; as [`solve()`] for the columns of the
/// identity.
///
/// ```
/// use sunzi::ball::{self, BallMatrix};
/// use sunzi::{Context, Matrix, rug::Rational};
/// let ctx = Context::new()?;
/// let midpoint = Matrix::from_f64s(2, 2, 128, &[2.0, 1.0, 1.0, 2.0])?;
/// let radius = Matrix::from_f64s(2, 2, 64, &[0.25, 0.0, 0.0, 0.0])?;
/// let inverse = ball::inverse(&ctx, &BallMatrix::new(midpoint, &radius)?, 128)?;
/// assert!(inverse.contains(0, 0, &Rational::from((4, 5)))); // for a_00 = 1.75
/// assert!(inverse.contains(0, 0, &Rational::from((4, 7)))); // for a_00 = 2.25
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// The errors of [`solve()`].
pub fn inverse(ctx: &Context, a: &BallMatrix, precision_bits: u32) -> Result<BallMatrix> {
    solve::inverse(ctx, a, precision_bits)
}

/// Balls that contain the lower triangular `L` with `A = L L^T` for every symmetric point of `a`.
///
/// Shapes: `a` is `n x n` with a symmetric midpoint; only the lower triangle of the radii is used. Above the diagonal
/// both midpoint and radius are 0. Radius: to first order the sum of all derivatives times the radii; the rest is
/// proportional to their square. Cost: a factorisation with as many bits as `precision_bits` and the condition require,
/// the inverse of a triangle, and `2 n^3 / 3` multiply-adds of about 64 bits. Source: docs/CHECKS.md, "Balls".
///
/// ```
/// use sunzi::ball::{self, BallMatrix};
/// use sunzi::{Context, Matrix, rug::Rational};
/// let ctx = Context::new()?;
/// let midpoint = Matrix::from_f64s(2, 2, 128, &[4.0, 2.0, 2.0, 5.0])?;
/// let radius = Matrix::from_f64s(2, 2, 64, &[0.0, 0.5, 0.5, 0.0])?;
/// let l = ball::cholesky(&ctx, &BallMatrix::new(midpoint, &radius)?, 128)?;
/// assert!(l.contains(0, 0, &Rational::from(2)) && l.contains(1, 1, &Rational::from(2)));
/// assert!(l.contains(1, 0, &Rational::from((3, 4))) && l.contains(1, 0, &Rational::from((5, 4))));
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`crate::Error::NotPositiveDefinite`] for the midpoint; [`crate::Error::InvalidArgument`] if no proof is found that
/// all points are positive definite; [`crate::Error::NotSymmetric`]; the errors of [`crate::cholesky_with`].
pub fn cholesky(ctx: &Context, a: &BallMatrix, precision_bits: u32) -> Result<BallMatrix> {
    cholesky::cholesky(ctx, a, precision_bits)
}

/// A ball that contains `log det A` for every point of `a`, symmetric or not.
///
/// Shapes: `a` is `n x n` with a symmetric positive definite midpoint; the result is 0 for an empty matrix. Radius: to
/// first order `sum |A^-1|_ij rA_ij`. Cost: a factorisation and an inverse. Source: docs/CHECKS.md, "Balls".
///
/// ```
/// use sunzi::ball::{self, BallMatrix};
/// use sunzi::{Context, Matrix, rug::Float};
/// let ctx = Context::new()?;
/// let a = BallMatrix::exact(Matrix::from_f64s(2, 2, 128, &[4.0, 2.0, 2.0, 5.0])?)?; // its determinant is 16
/// let log_det = ball::log_det(&ctx, &a, 128)?;
/// assert!((log_det.midpoint - Float::with_val(256, 16).ln()).abs() <= log_det.radius);
/// assert!(log_det.radius < 1e-36);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// As [`solve()`].
pub fn log_det(ctx: &Context, a: &BallMatrix, precision_bits: u32) -> Result<Ball> {
    log_det::log_det(ctx, a, precision_bits)
}

fn oriented(view: BallView<'_>, op: Op) -> BallView<'_> {
    if op == Op::Transpose { view.transposed() } else { view }
}
