//! Proofs that every point of a matrix of balls is regular, and bounds of inverses times small vectors; the factors
//! with which they begin.
//!
//! With `R` near the inverse, `E >= |I - R A|` for every point `A`, and a vector `v > 0` with `E v < v`, all powers
//! of `E` sum up to `(I - E)^-1 >= 0`, so no `A` is singular and `|A^-1| <= (I - E)^-1 |R|`. The factor of a positive
//! definite midpoint has as many bits as its condition takes.
//! Proof: docs/CHECKS.md, "Balls".

use super::bounds::{self, RADIUS_BITS};
use super::matrix::{BallMatrix, BallView};
use super::product::BallProduct;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound::ceil_log2;
use crate::math::pivot::diagonal_exponent;
use crate::matrix::{Matrix, MatrixView, Symmetric};
use crate::ops::cholesky::{Cholesky, CholeskyOptions, cholesky_with};
use crate::ops::estimate::{ESTIMATE_BITS, Upper, power};
use crate::ops::product::problem::Accuracy;
use crate::ops::trsm::trsm;
use rug::Float;
use rug::float::Round;

/// Bits of factors beyond those of the result and of the condition.
pub(super) const SPARE_BITS: u32 = 32;

/// Bits, beyond those of the condition, of quantities of which only the size matters.
pub(super) const BOUND_BITS: u32 = 64;

/// No factorisation of a midpoint takes more bits.
pub(super) const MOST_BITS: u32 = 1 << 14;

/// The factor of a positive definite midpoint, and the bits that the condition loses.
pub(super) struct Definite {
    pub factor: Cholesky,
    /// Approximate bits that solves lose.
    pub lost_bits: u32,
}

impl Definite {
    /// Factors the midpoint.
    ///
    /// # Errors
    /// [`Error::NotSquare`], [`Error::NotSymmetric`], [`Error::NotPositiveDefinite`] of the midpoint; the errors of
    /// [`cholesky_with`].
    pub fn new(ctx: &Context, a: &BallMatrix, precision_bits: u32, accuracy: Accuracy) -> Result<Definite> {
        Matrix::check_size(1, 1, precision_bits)?;
        let lower = Symmetric::from(a.midpoint()).lower_view("cholesky")?;
        let options = CholeskyOptions::new().accuracy(accuracy);
        let mut bits = precision_bits.saturating_add(2 * SPARE_BITS);
        let mut refused = None;
        loop {
            match cholesky_with(ctx, Symmetric::lower(lower), bits, &options) {
                Ok(outcome) => {
                    let factor = outcome.result;
                    let lost_bits = lost_bits(ctx, &factor)?;
                    let wanted = precision_bits.saturating_add(lost_bits).saturating_add(SPARE_BITS);
                    let is_told = lower.rows() == 0 || factor.tells_condition(ctx)?;
                    if is_told && wanted <= bits {
                        return Ok(Definite { factor, lost_bits });
                    }
                    bits = if is_told { wanted } else { wanted.max(bits.saturating_mul(2)) };
                }
                Err(error @ Error::NotPositiveDefinite { more_bits, .. }) if more_bits.might_help() => {
                    bits = bits.saturating_mul(2);
                    refused = Some(error);
                }
                Err(error @ Error::Precision { .. }) => return Err(refused.unwrap_or(error)),
                Err(error) => return Err(error),
            }
            if bits > MOST_BITS {
                return Err(refused.unwrap_or(Error::precision(bits, MOST_BITS)));
            }
        }
    }
}

/// The scale of each entry of a solution, a power of two: `1 / d_i`, where `d_i^2` is about `a_ii`.
pub(super) fn scales(a: MatrixView<'_>) -> Vec<Float> {
    (0..a.rows()).map(|at| power(-diagonal_exponent(a.head(at, at).exponent()))).collect()
}

fn lost_bits(ctx: &Context, factor: &Cholesky) -> Result<u32> {
    let condition = factor.scaled_condition(ctx)?.get_exp().unwrap_or(0).max(0) as u32;
    Ok(condition + 2 * ceil_log2(factor.factor().rows().max(1)))
}

pub(super) fn not_regular(a: BallView<'_>, operation: &str, unproven: &Unproven) -> Error {
    let Unproven { ratio } = unproven;
    let order = a.midpoint.rows();
    Error::InvalidArgument(format!(
        "{operation}: the {order} x {order} balls may contain a singular matrix: the radii are too large in comparison \
         with the least eigenvalue; give smaller radii. The proof bounds |I - R A| for all matrices A in the balls, \
         where R is an approximate inverse of the midpoints, and needs a bound with a spectral radius below 1; here \
         the spectral radius is about {ratio:.3}"
    ))
}

/// Most steps of the search for a vector that proves regularity, each of which adds a power of `E`.
const MOST_STEPS: usize = 400;

/// The search for a vector ends when no entry of its image exceeds this fraction of the vector's entry.
const FINE_RATIO: f64 = 0.9;

/// After the last step a vector is accepted if no entry of its image exceeds this fraction of the vector's entry.
const MOST_RATIO: f64 = 1.0 - 1e-6;

/// The largest number of improvements of a bound.
const MOST_IMPROVEMENTS: usize = 100;

/// A bound is not improved any more when a step leaves each entry at least this fraction of its value.
const SHARP_RATIO: f64 = 0.97;

/// A matrix of balls that is proven to hold no singular point.
#[derive(Clone, Debug)]
pub(super) struct Regular {
    /// `E >= |I - R A|`.
    deviation: Matrix,
    /// `v`.
    vector: Vec<Float>,
    /// A lower bound of `v - E v`, positive.
    left: Vec<Float>,
}

/// The result where there is no proof: an estimate of the spectral radius of `E`.
pub(super) struct Unproven {
    ratio: f64,
}

impl Regular {
    /// Proves that no point of `a` is singular, from an approximate `inverse`; `start` is a first guess of `v`.
    ///
    /// # Errors
    /// The errors of [`crate::gemm_with`].
    pub fn prove(
        ctx: &Context,
        inverse: MatrixView<'_>,
        a: BallView<'_>,
        start: Vec<Float>,
    ) -> Result<std::result::Result<Regular, Unproven>> {
        let unit = Matrix::identity(inverse.rows(), 2)?;
        let product = BallProduct::residual(BallView::point(&unit), BallView::point(inverse), a);
        // The sum is about 0, apart from the error of the inverse: more bits would not make the bound much better.
        let deviation = product.enclose(ctx, inverse.precision_bits())?.magnitudes()?;
        Ok(Regular::of(deviation, start))
    }

    /// The proof for a given `E`.
    fn of(deviation: Matrix, start: Vec<Float>) -> std::result::Result<Regular, Unproven> {
        let mut vector = start.clone();
        let mut worst = 0.0;
        for step in 0..MOST_STEPS {
            let image = bounds::image(&deviation, &vector);
            let ratios = image.iter().zip(&vector).map(|(image, own)| Float::with_val(ESTIMATE_BITS, image / own));
            worst = ratios.fold(0.0, |most: f64, ratio| most.max(ratio.to_f64()));
            if worst <= FINE_RATIO || step + 1 == MOST_STEPS && worst <= MOST_RATIO {
                let left = vector.iter().zip(&image);
                let left: Vec<Float> =
                    left.map(|(own, image)| Float::with_val_round(ESTIMATE_BITS, own - image, Round::Down).0).collect();
                if left.iter().all(|left| *left > 0) {
                    return Ok(Regular { deviation, vector, left });
                }
            }
            vector = image.into_iter().zip(&start).map(|(image, first)| Upper(image).add(first).0).collect();
            if vector.iter().any(|entry| !entry.is_finite() || entry.get_exp().is_some_and(|top| top > 1 << 29)) {
                break;
            }
        }
        Err(Unproven { ratio: worst })
    }

    /// A bound of `|A^-1| Y'` for all points `A` of the balls, where `bound >= |R Y'|` for the columns of a `Y'`; an
    /// entry that is 0 for all of them stays 0.
    ///
    /// # Errors
    /// The errors of [`crate::gemm_with`].
    pub fn solution(&self, ctx: &Context, bound: &Matrix) -> Result<Matrix> {
        let (rows, cols) = (bound.rows(), bound.cols());
        let moved = bounds::product(ctx, self.deviation.view(), bound.view())?;
        // (I - E)^-1 y = y + (I - E)^-1 E y, and w <= t (I - E) v gives (I - E)^-1 w <= t v.
        let mut whole = Matrix::zeros(rows, cols, RADIUS_BITS)?;
        for col in 0..cols {
            let times = (0..rows).map(|row| Upper(moved.float(row, col)).over(&self.left[row]).0);
            let times = times.fold(Float::new(RADIUS_BITS), |most, ratio| most.max(&ratio));
            let start: Vec<bool> = (0..rows).map(|row| !bound.get(row, col).head.is_zero()).collect();
            for (row, _) in bounds::reached(&self.deviation, &start).iter().enumerate().filter(|(_, seen)| **seen) {
                let tail = Upper(times.clone()).times(&self.vector[row]);
                whole.set_float(row, col, &tail.add(&bound.float(row, col)).0)?;
            }
        }
        // Each step is a bound where the last one was: y + E s for s >= (I - E)^-1 y.
        for _ in 0..MOST_IMPROVEMENTS {
            let moved = bounds::product(ctx, self.deviation.view(), whole.view())?;
            let better = bounds::sum(moved.view(), bound.view())?;
            let is_better = |row: usize, col: usize| {
                better.float(row, col) < Float::with_val(ESTIMATE_BITS, whole.float(row, col) * SHARP_RATIO)
            };
            let go_on = (0..cols).any(|col| (0..rows).any(|row| is_better(row, col)));
            whole = Matrix::from_fn(rows, cols, RADIUS_BITS, |row, col| {
                better.float(row, col).min(&whole.float(row, col))
            })?;
            if !go_on {
                break;
            }
        }
        Ok(whole)
    }
}

/// `W`, near `L^-1`, and a bound of its error.
pub(super) struct InverseFactor {
    /// `W`, lower triangular.
    pub near: Matrix,
    /// An upper bound of `|L^-1 - W|`.
    pub off: Matrix,
    /// An upper bound of `|L^-1|`.
    pub size: Matrix,
}

impl InverseFactor {
    /// The inverse of the factor.
    ///
    /// # Errors
    /// The errors of [`trsm`].
    pub fn of(ctx: &Context, definite: &Definite) -> Result<InverseFactor> {
        let factor = definite.factor.factor();
        let order = factor.rows();
        let unit = Matrix::identity(order, 2)?;
        let near = trsm(ctx, factor, &unit, definite.lost_bits + BOUND_BITS)?;
        let start = vec![Float::with_val(RADIUS_BITS, 1); order];
        let regular = match Regular::prove(ctx, near.view(), BallView::point(factor), start)? {
            Ok(regular) => regular,
            Err(unproven) => {
                let ratio = unproven.ratio;
                let message = format!(
                    "no proof: the inverse of the Cholesky factor was computed with a relative error of {ratio:.3e}, \
                     which must be below 1: give more bits of precision"
                );
                return Err(Error::InvalidArgument(message));
            }
        };
        // L^-1 - W = (I - E)^-1 E W.
        let moved = bounds::product(ctx, regular.deviation.view(), bounds::magnitudes(near.view())?.view())?;
        let off = regular.solution(ctx, &moved)?;
        let size = bounds::sum(bounds::magnitudes(near.view())?.view(), off.view())?;
        Ok(InverseFactor { near, off, size })
    }
}

/// `|A - L L^T|` for all points `A`, at most: the radii, and the residual of the factor.
///
/// # Errors
/// The errors of [`crate::syrk_with`].
pub(super) fn perturbation(ctx: &Context, a: &BallMatrix, factor: MatrixView<'_>) -> Result<Matrix> {
    let (left, right) = (BallView::point(factor), BallView::point(factor.transposed()));
    let product = BallProduct { symmetric: true, ..BallProduct::residual(a.view(), left, right) };
    let bits = factor.precision_bits().max(a.midpoint().precision_bits());
    product.enclose(ctx, bits + BOUND_BITS)?.magnitudes()
}
