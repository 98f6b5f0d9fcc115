//! Logarithms of determinants of matrices of balls.
//!
//! `log det A = log det L L^T + log det(I + K)` with `K = (L L^T)^-1 (A - L L^T)`; the trace of `K` is its first order.
//! Proof: docs/CHECKS.md, "Balls".

use super::bounds::{self, RADIUS_BITS, image, largest_row_sum};
use super::definite::{Definite, scales};
use super::inverse_factor::perturbation;
use super::matrix::{Ball, BallMatrix};
use super::product::rounding;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::ops::estimate::bounds::Upper;
use crate::ops::estimate::power;
use crate::ops::product::problem::Accuracy;
use rug::Float;
use rug::float::Round;

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

/// The ball that holds `log det A` for all points; the page is [`super::log_det`].
///
/// # Errors
/// The errors of [`super::log_det`].
pub(super) fn log_det(ctx: &Context, a: &BallMatrix, precision_bits: u32) -> Result<Ball> {
    let definite = Definite::new(ctx, a, precision_bits, Accuracy::Norm)?;
    let factor = definite.factor.factor();
    let a = &mirrored(a)?;
    let perturbation = perturbation(ctx, a, factor.view())?;
    // A bound of the inverses of the balls around the midpoint that hold L L^T.
    let around = BallMatrix::trusted(a.midpoint().clone(), residual(&perturbation, a)?);
    let (inverse, regular) = definite.regular(ctx, around.view(), "log_det")?;
    let size = regular.solution(ctx, &bounds::magnitudes(inverse.view())?)?;
    let relative = bounds::product(ctx, size.view(), perturbation.view())?;
    let Some(change) = logarithm(&relative, &scales(a.midpoint().view())) else {
        return Err(not_regular(a, &relative));
    };
    let (sum, off) = sum_of_logarithms(factor, precision_bits + SPARE_BITS);
    let midpoint = Float::with_val(precision_bits, &sum);
    let moved = rounding(sum, &midpoint);
    Ok(Ball { midpoint, radius: change.add(&off).add(&moved).0 })
}

/// The part of a perturbation that does not come from the radii.
fn residual(perturbation: &Matrix, a: &BallMatrix) -> Result<Matrix> {
    Matrix::from_fn(a.rows(), a.cols(), RADIUS_BITS, |row, col| {
        let whole = perturbation.float(row, col);
        Float::with_val_round(RADIUS_BITS, &whole - &a.radius().float(row, col), Round::Up).0
    })
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

/// `2 sum log l_ii` with `bits` bits, and a bound of its error.
fn sum_of_logarithms(factor: &Matrix, bits: u32) -> (Float, Float) {
    let unit = power(-i64::from(bits));
    let (mut sum, mut error) = (Float::new(bits), Upper::zero());
    for at in 0..factor.rows() {
        let logarithm = Float::with_val_round(bits, factor.float(at, at).ln_ref(), Round::Nearest).0;
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
        "log_det: the {order} x {order} balls may contain a matrix whose determinant is not positive: with the factor \
         L of the midpoint, the absolute sum of a row of (L L^T)^-1 (A - L L^T) may be {widest:.3}, but the proof \
         needs a spectral radius below 1"
    ))
}
