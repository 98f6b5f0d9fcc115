//! Determinants of matrices of balls, and their logarithms.
//!
//! `det A = det F det(I + K)` with `K = F^-1 (A - F)` for the product `F` of factors, `L L^T` or `P^T L U`; the trace
//! of `K` is the first order of the logarithm.
//! Proof: docs/CHECKS.md, "Balls".

use super::bounds::{self, RADIUS_BITS, image, largest_row_sum};
use super::matrix::{Ball, BallMatrix};
use super::midpoint::Midpoint;
use super::product::rounding;
use super::regular::Regular;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::{MAXIMUM_EXPONENT, Matrix};
use crate::ops::estimate::{Upper, power};
use rug::Float;
use rug::float::Round;
use std::cmp::Ordering;

/// Bits of the logarithms beyond those of the result.
const SPARE_BITS: u32 = 64;

/// Steps of the search for a vector that `K` shrinks.
const MOST_STEPS: usize = 400;

/// A vector whose image is at most this part of it is not improved upon.
const FINE_RATIO: f64 = 0.5;

/// No larger part is taken.
const MOST_RATIO: f64 = 1.0 - 1e-6;

/// Steps that gain less than this are the last.
const SETTLED: f64 = 1e-3;

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
/// As [`solve()`](super::solve()).
pub fn log_det(ctx: &Context, a: &BallMatrix, precision_bits: u32) -> Result<Ball> {
    let midpoint = Midpoint::definite(ctx, a, precision_bits)?;
    let relative = Relative::of(ctx, a, &midpoint, "log_det")?;
    let Some(change) = relative.logarithm() else { return Err(not_regular(a, &relative.bound)) };
    let (sum, off) = sum_of_logarithms(&midpoint.pivots(), precision_bits + SPARE_BITS);
    let midpoint = Float::with_val(precision_bits, &sum);
    let moved = rounding(sum, &midpoint);
    Ok(Ball { midpoint, radius: change.add(&off).add(&moved).0 })
}

/// A ball that contains `det A` for every point of `a`.
///
/// Shapes: `a` is `n x n` with a regular midpoint. Its balls may contain singular matrices. The result is 1 for an
/// empty matrix. Radius: to first order `|det A| sum |A^-1|_ij rA_ji`. Cost: a factorisation, `L L^T` or LU, and an
/// inverse. Source: docs/CHECKS.md, "Balls".
///
/// ```
/// use sunzi::ball::{self, BallMatrix};
/// use sunzi::{Context, Matrix};
/// let ctx = Context::new()?;
/// let midpoint = Matrix::from_f64s(2, 2, 128, &[4.0, 2.0, 2.0, 5.0])?; // its determinant is 16
/// let radius = Matrix::from_f64s(2, 2, 64, &[0.5, 0.0, 0.0, 0.0])?;
/// let det = ball::det(&ctx, &BallMatrix::new(midpoint, &radius)?, 128)?; // 13.5 to 18.5
/// assert!(det.midpoint.clone() - &det.radius <= 13.5 && det.midpoint + det.radius >= 18.5);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// [`Error::NotSquare`]; [`Error::NoPivot`] and [`Error::Precision`] if the midpoint is singular to the largest number
/// of bits; [`Error::ExponentRange`] for a determinant outside the exponent range; the errors of [`crate::lu_with`].
pub fn det(ctx: &Context, a: &BallMatrix, precision_bits: u32) -> Result<Ball> {
    let midpoint = Midpoint::new(ctx, a, precision_bits)?;
    let change = Relative::of(ctx, a, &midpoint, "det")?.quotient();
    let DiagonalProduct { significand, exponent, error } =
        DiagonalProduct::of(&midpoint.pivots(), precision_bits + SPARE_BITS);
    let significand = if midpoint.is_odd() { -significand } else { significand };
    let midpoint = Float::with_val(precision_bits, &significand);
    let size = Float::with_val_round(RADIUS_BITS, significand.abs_ref(), Round::Up).0;
    let rounded = rounding(significand, &midpoint);
    // (1 + u) (1 + k) - 1 for the errors of the product and of the quotient.
    let both = Upper(change.clone()).times(&error).add(&change).add(&error);
    let radius = both.times(&size).add(&rounded).0;
    let top = exponent + i64::from(midpoint.get_exp().unwrap_or(0)).max(i64::from(radius.get_exp().unwrap_or(0)));
    if exponent.abs().max(top.abs()) > MAXIMUM_EXPONENT {
        return Err(Error::ExponentRange { row: 0, column: 0, exponent: top, limit: MAXIMUM_EXPONENT });
    }
    let shift = exponent as i32;
    Ok(Ball { midpoint: midpoint << shift, radius: radius << shift })
}

/// The points relative to a product of factors near them: `K = F^-1 (A - F)` for the product `F`.
pub(super) struct Relative {
    /// A bound of `|K|`.
    bound: Matrix,
    /// A first guess of a vector that `K` shrinks.
    start: Vec<Float>,
}

impl Relative {
    /// Relative to the product of the factors of the midpoint.
    fn of(ctx: &Context, a: &BallMatrix, midpoint: &Midpoint, operation: &str) -> Result<Relative> {
        let a = &if midpoint.is_definite() { mirrored(a)? } else { a.clone() };
        let near = Near::of(a, &|a| midpoint.perturbation(ctx, a))?;
        let (inverse, regular) = midpoint.regular(ctx, near.around.view(), operation)?;
        near.relative(ctx, &inverse, &regular, midpoint.scales.clone())
    }
}

/// Balls, and a product `F` of factors near them.
pub(super) struct Near {
    /// `|A - F|` for all points, at most.
    perturbation: Matrix,
    /// The balls around the midpoint that hold the product. Their radii are the residual of the factors, which may be
    /// far below the last bit of the radii of the points.
    pub around: BallMatrix,
}

impl Near {
    /// `perturbation_of` bounds the distance of all points of balls from the product.
    ///
    /// # Errors
    /// The errors of the bound; [`Error::OutOfMemory`].
    pub fn of(a: &BallMatrix, perturbation_of: &dyn Fn(&BallMatrix) -> Result<Matrix>) -> Result<Near> {
        let perturbation = perturbation_of(a)?;
        let residual = match a.radius().max_norm().is_zero() {
            true => perturbation.clone(),
            false => perturbation_of(&BallMatrix::exact(a.midpoint().clone())?)?,
        };
        Ok(Near { perturbation, around: BallMatrix::trusted(a.midpoint().clone(), residual) })
    }

    /// The points relative to the product, where `regular` is the proof for the balls around the midpoint, from an
    /// approximate inverse; `start` is a first guess of a vector that `K` shrinks.
    ///
    /// # Errors
    /// The errors of [`crate::gemm_with`].
    pub fn relative(self, ctx: &Context, inverse: &Matrix, regular: &Regular, start: Vec<Float>) -> Result<Relative> {
        let size = regular.solution(ctx, &bounds::magnitudes(inverse.view())?)?;
        let bound = bounds::product(ctx, size.view(), self.perturbation.view())?;
        Ok(Relative { bound, start })
    }
}

impl Relative {
    /// A bound of `|log det(I + K)|`; `None` where a determinant may be 0.
    fn logarithm(&self) -> Option<Upper> {
        logarithm(&self.bound, &self.start)
    }

    /// A bound of `|det(I + K) - 1|`: `e^t - 1` for a bound `t` of the logarithm, or the product of `1 + r_i` for the
    /// sums `r_i` of the rows, less 1.
    pub fn quotient(&self) -> Float {
        let rows = image(&self.bound, &self.start);
        let rows: Vec<Float> = rows.into_iter().zip(&self.start).map(|(sum, own)| Upper(sum).over(own).0).collect();
        let sum = rows.iter().fold(Upper::zero(), |sum, row| sum.add(row)).0;
        let growth = |exponent: &Float| Float::with_val_round(RADIUS_BITS, exponent.exp_m1_ref(), Round::Up).0;
        let by_rows = if sum < 0.25 {
            growth(&sum)
        } else {
            let one = Float::with_val(RADIUS_BITS, 1);
            let product =
                rows.iter().fold(Upper(one.clone()), |product, row| product.times(&Upper(row.clone()).add(&one).0));
            Float::with_val_round(RADIUS_BITS, product.0 - 1u32, Round::Up).0
        };
        self.logarithm().map_or(by_rows.clone(), |change| growth(&change.0).min(&by_rows))
    }
}

/// The product of the pivots.
struct DiagonalProduct {
    /// Between 1/2 and 1 in magnitude.
    significand: Float,
    exponent: i64,
    /// A bound of the relative error; 0 where no step rounds.
    error: Float,
}

impl DiagonalProduct {
    fn of(pivots: &[Float], bits: u32) -> DiagonalProduct {
        let (mut significand, mut exponent, mut roundings) = (Float::with_val(bits, 1), 0i64, 0u32);
        for pivot in pivots {
            let top = pivot.get_exp().unwrap_or(0);
            let own = Float::with_val(pivot.prec(), pivot >> top);
            let (next, order) = Float::with_val_round(bits, &significand * &own, Round::Nearest);
            let next_top = next.get_exp().unwrap_or(0);
            (significand, exponent) = (next >> next_top, exponent + i64::from(top) + i64::from(next_top));
            roundings += u32::from(order != Ordering::Equal);
        }
        // Each error is at most 2^-bits of its product: twice their sum is a bound for all together.
        let error = Upper(Float::with_val(RADIUS_BITS, roundings)).times(&power(1 - i64::from(bits))).0;
        DiagonalProduct { significand, exponent, error }
    }
}

/// The same balls with the larger radius of each entry and its mirror image, which hold all points of both triangles.
fn mirrored(a: &BallMatrix) -> Result<BallMatrix> {
    let radius = a.radius();
    let larger = |row: usize, col: usize| radius.float(row, col).max(&radius.float(col, row));
    let order = radius.rows().min(radius.cols());
    let radius = Matrix::from_fn(order, order, RADIUS_BITS, larger)?;
    Ok(BallMatrix::trusted(a.midpoint().clone(), radius))
}

/// A bound of `|log det(I + K)|` for all `|K| <= relative`; `None` where a determinant may be 0. `start` is a first
/// guess of a vector that `K` shrinks.
///
/// With eigenvalues of magnitude at most `t < 1`, and `f` the Frobenius norm of `K` scaled by a positive vector,
/// `|log det(I + K) - tr K| <= f^2 sum_(k >= 2) t^(k-2) / k`.
fn logarithm(relative: &Matrix, start: &[Float]) -> Option<Upper> {
    let order = relative.rows();
    let mut vector = start.to_vec();
    let mut last = Float::with_val(RADIUS_BITS, f64::INFINITY);
    for _ in 0..MOST_STEPS {
        let moved = image(relative, &vector);
        let ratio = moved.iter().zip(&vector).map(|(moved, own)| Upper(moved.clone()).over(own).0);
        let ratio = ratio.fold(Float::new(RADIUS_BITS), |most, ratio| most.max(&ratio));
        let has_settled = Float::with_val(RADIUS_BITS, &last - &ratio) < SETTLED;
        if ratio < FINE_RATIO || ratio < MOST_RATIO && has_settled {
            let trace = (0..order).fold(Upper::zero(), |sum, at| sum.add(&relative.float(at, at)));
            return Some(trace.add(&scaled_squares(relative, &vector).times(&tail(&ratio)).0));
        }
        last = ratio;
        vector = moved.into_iter().zip(start).map(|(moved, first)| Upper(moved).add(first).0).collect();
        if vector.iter().any(|entry| !entry.is_finite() || entry.get_exp().is_some_and(|top| top > 1 << 29)) {
            break;
        }
    }
    None
}

/// `sum_(k >= 2) t^(k-2) / k = (-log(1 - t) - t) / t^2`, at most `1 / (2 (1 - t))`, for `0 <= t < 1`; rounded up.
fn tail(t: &Float) -> Float {
    let left = Float::with_val_round(RADIUS_BITS, 1 - t, Round::Down).0;
    if *t < 0.25 {
        return Upper(Float::with_val(RADIUS_BITS, 1)).over(&(left << 1)).0;
    }
    let logarithm = Float::with_val_round(RADIUS_BITS, left.ln_ref(), Round::Down).0;
    let size = -logarithm;
    let rest = Float::with_val_round(RADIUS_BITS, &size - t, Round::Up).0;
    let square = Float::with_val_round(RADIUS_BITS, t.square_ref(), Round::Down).0;
    Upper(rest).over(&square).0
}

/// The sum of all `(k_ij v_j / v_i)^2`, rounded up.
fn scaled_squares(relative: &Matrix, vector: &[Float]) -> Upper {
    let mut squares = Upper::zero();
    for (col, from) in vector.iter().enumerate() {
        for (row, to) in vector.iter().enumerate() {
            let entry = Upper(relative.float(row, col)).times(from).over(to);
            squares = squares.add(&entry.clone().times(&entry.0).0);
        }
    }
    squares
}

/// The sum of the logarithms of pivots with `bits` bits, each of which occurs twice in succession, and a bound of its
/// error.
fn sum_of_logarithms(pivots: &[Float], bits: u32) -> (Float, Float) {
    let unit = power(-i64::from(bits));
    let (mut sum, mut error) = (Float::new(bits), Upper::zero());
    for pivot in pivots.iter().step_by(2) {
        let logarithm = Float::with_val_round(bits, pivot.ln_ref(), Round::Nearest).0;
        let size = |value: &Float| Float::with_val_round(RADIUS_BITS, value.abs_ref(), Round::Up).0;
        error = error.add(&Upper(size(&logarithm)).times(&unit).0);
        sum += &logarithm;
        error = error.add(&Upper(size(&sum)).times(&unit).0);
    }
    (sum << 1, error.0 << 1)
}

fn not_regular(a: &BallMatrix, relative: &Matrix) -> Error {
    let (order, widest) = (a.rows(), largest_row_sum(relative));
    Error::InvalidArgument(format!(
        "log_det: the {order} x {order} balls may contain a matrix whose determinant is not positive: give smaller \
         radii, or more bits of precision. The proof needs a spectral radius of |(L L^T)^-1 (A - L L^T)| below 1, \
         where L is the factor of the midpoints and A any matrix in the balls; the largest bound of the sum of a row \
         is {widest:.3}"
    ))
}
