//! Factors of a matrix of midpoints: Cholesky's where it is positive definite, else LU.

use super::matrix::{BallMatrix, BallView};
use super::product::BallProduct;
use super::regular::{BOUND_BITS, Definite, MOST_BITS, Regular, SPARE_BITS, not_regular, perturbation, scales};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound::ceil_log2;
use crate::matrix::Matrix;
use crate::ops::cholesky::Cholesky;
use crate::ops::estimate::power;
use crate::ops::lu::condition::Scales;
use crate::ops::lu::{Lu, LuOptions, lu_with};
use crate::ops::product::problem::Accuracy;
use rug::Float;

/// The factors of a midpoint, the bits of the result, and the bits that the condition loses.
pub(super) struct Midpoint {
    pub factors: MidpointFactors,
    /// Bits of the result.
    pub precision_bits: u32,
    /// Approximate bits that solves lose.
    pub lost_bits: u32,
    /// The scale of each entry of a solution, a power of two.
    pub scales: Vec<Float>,
}

/// The kinds of factors.
pub(super) enum MidpointFactors {
    Definite(Cholesky),
    General(Lu),
}

impl Midpoint {
    /// Factors the midpoint.
    ///
    /// # Errors
    /// [`Error::NotSquare`]; [`Error::NoPivot`] and [`Error::Precision`] where the midpoint is singular to the largest
    /// number of bits; the errors of [`lu_with`].
    pub fn new(ctx: &Context, a: &BallMatrix, precision_bits: u32) -> Result<Midpoint> {
        match Midpoint::definite(ctx, a, precision_bits) {
            Err(Error::NotSymmetric { .. } | Error::NotPositiveDefinite { .. }) => {
                Midpoint::general(ctx, a, precision_bits)
            }
            other => other,
        }
    }

    /// Factors a midpoint that must be positive definite.
    ///
    /// # Errors
    /// As [`Definite::new`].
    pub fn definite(ctx: &Context, a: &BallMatrix, precision_bits: u32) -> Result<Midpoint> {
        let definite = Definite::new(ctx, a, precision_bits, Accuracy::Norm)?;
        let (lost_bits, scales) = (definite.lost_bits, scales(a.midpoint().view()));
        let factors = MidpointFactors::Definite(definite.factor);
        Ok(Midpoint { factors, precision_bits, lost_bits, scales })
    }

    fn general(ctx: &Context, a: &BallMatrix, precision_bits: u32) -> Result<Midpoint> {
        Matrix::check_size(1, 1, precision_bits)?;
        let (options, exponents) = (LuOptions::new().accuracy(Accuracy::Norm), Scales::of(a.midpoint().view()));
        let mut bits = precision_bits.saturating_add(2 * SPARE_BITS);
        let mut refused = None;
        loop {
            match lu_with(ctx, a.midpoint(), bits, &options) {
                Ok(made) => {
                    let factors = made.result;
                    let order = factors.order();
                    let shown = factors.shown_condition(ctx, &exponents)?;
                    let condition = shown.norm.get_exp().unwrap_or(0).max(0) as u32;
                    let lost_bits = condition + 2 * ceil_log2(order.max(1));
                    let wanted = precision_bits.saturating_add(lost_bits).saturating_add(SPARE_BITS);
                    if shown.is_told && wanted <= bits {
                        let scales = exponents.cols.iter().map(|exponent| power(-exponent)).collect();
                        let factors = MidpointFactors::General(factors);
                        return Ok(Midpoint { factors, precision_bits, lost_bits, scales });
                    }
                    bits = if shown.is_told { wanted } else { wanted.max(bits.saturating_mul(2)) };
                }
                Err(error @ Error::NoPivot { .. }) => (bits, refused) = (bits.saturating_mul(2), Some(error)),
                Err(error @ Error::Precision { .. }) => return Err(refused.unwrap_or(error)),
                Err(error) => return Err(error),
            }
            if bits > MOST_BITS {
                return Err(refused.unwrap_or(Error::precision(bits, MOST_BITS)));
            }
        }
    }

    /// About `A^-1 B`.
    ///
    /// # Errors
    /// The errors of the solve.
    pub fn solve(&self, ctx: &Context, b: &Matrix, bits: u32) -> Result<Matrix> {
        match &self.factors {
            MidpointFactors::Definite(factor) => factor.solve(ctx, b, bits),
            MidpointFactors::General(factors) => factors.solve(ctx, b, bits),
        }
    }

    /// About `A^-1`.
    ///
    /// # Errors
    /// The errors of the inverse.
    pub fn inverse(&self, ctx: &Context, bits: u32) -> Result<Matrix> {
        match &self.factors {
            MidpointFactors::Definite(factor) => Ok(factor.inverse(ctx, bits)?.into_matrix()),
            MidpointFactors::General(factors) => factors.inverse(ctx, bits),
        }
    }

    /// Whether the midpoint is positive definite.
    pub fn is_definite(&self) -> bool {
        matches!(self.factors, MidpointFactors::Definite(_))
    }

    /// The numbers whose product is the determinant of the factors, but for its sign; those of Cholesky's factor twice.
    pub fn pivots(&self) -> Vec<Float> {
        match &self.factors {
            MidpointFactors::Definite(factor) => {
                let factor = factor.factor();
                (0..factor.rows()).flat_map(|at| [factor.float(at, at), factor.float(at, at)]).collect()
            }
            MidpointFactors::General(factors) => {
                (0..factors.order()).map(|at| factors.factors().float(at, at)).collect()
            }
        }
    }

    /// Whether the rows are ordered by an odd permutation.
    pub fn is_odd(&self) -> bool {
        matches!(&self.factors, MidpointFactors::General(factors) if factors.is_odd())
    }

    /// `|A - F|` for all points `A` and the product `F` of the factors, at most: the radii, and the residual.
    ///
    /// # Errors
    /// The errors of a product.
    pub fn perturbation(&self, ctx: &Context, a: &BallMatrix) -> Result<Matrix> {
        match &self.factors {
            MidpointFactors::Definite(factor) => perturbation(ctx, a, factor.factor().view()),
            MidpointFactors::General(factors) => lu_perturbation(ctx, a, factors),
        }
    }

    /// An approximate inverse, and the proof from it that all points are regular.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where there is no proof; the errors of the inverse.
    pub fn regular(&self, ctx: &Context, a: BallView<'_>, operation: &str) -> Result<(Matrix, Regular)> {
        let bits = self.lost_bits + BOUND_BITS;
        let inverse = match &self.factors {
            MidpointFactors::Definite(_) => self.inverse(ctx, bits)?,
            MidpointFactors::General(factors) => factors.left_inverse(ctx, bits)?,
        };
        match Regular::prove(ctx, inverse.view(), a, self.scales.clone())? {
            Ok(regular) => Ok((inverse, regular)),
            Err(unproven) => Err(not_regular(a, operation, &unproven)),
        }
    }
}

/// `|A - P^T L U|` for all points `A`, at most.
///
/// # Errors
/// The errors of a product.
pub(super) fn lu_perturbation(ctx: &Context, a: &BallMatrix, factors: &Lu) -> Result<Matrix> {
    let (lower, upper) = (factors.lower()?, factors.upper()?);
    let mut left = Matrix::zeros(lower.rows(), lower.cols(), lower.precision_bits())?;
    for col in 0..lower.cols() {
        factors.rows().iter().enumerate().for_each(|(place, &row)| left.set(row, col, lower.get(place, col)));
    }
    let bits = lower.precision_bits().max(a.midpoint().precision_bits());
    let product = BallProduct::residual(a.view(), BallView::point(&left), BallView::point(&upper));
    product.enclose(ctx, bits + BOUND_BITS)?.magnitudes()
}
