//! A symmetric matrix of balls with a positive definite midpoint, factored at as many bits as its condition takes.

use super::matrix::{BallMatrix, BallView};
use super::regular::{Regular, Unproven};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::math::bound::ceil_log2;
use crate::math::pivot::diagonal_exponent;
use crate::matrix::{Matrix, MatrixView, Symmetric};
use crate::ops::cholesky::{Cholesky, CholeskyOptions, cholesky_with};
use crate::ops::estimate::power;
use crate::ops::product::problem::Accuracy;
use rug::Float;

/// Bits of factors beyond those of the result and of the condition.
pub(super) const SPARE_BITS: u32 = 32;

/// Bits, beyond those of the condition, of quantities of which only the size matters.
pub(super) const BOUND_BITS: u32 = 64;

/// No factorisation takes more bits.
const MOST_BITS: u32 = 1 << 14;

/// The factor of the midpoint, and bits that go with it.
pub(super) struct Definite {
    pub factor: Cholesky,
    /// Bits of the result.
    pub precision_bits: u32,
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
                        return Ok(Definite { factor, precision_bits, lost_bits });
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

    /// An approximate inverse, and the proof from it that all points are regular.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where there is no proof; the errors of [`Cholesky::inverse`].
    pub fn regular(&self, ctx: &Context, a: BallView<'_>, operation: &str) -> Result<(Matrix, Regular)> {
        let inverse = self.factor.inverse(ctx, self.lost_bits + BOUND_BITS)?.into_matrix();
        let start = scales(a.midpoint);
        match Regular::prove(ctx, inverse.view(), a, start)? {
            Ok(regular) => Ok((inverse, regular)),
            Err(unproven) => Err(not_regular(a, operation, &unproven)),
        }
    }
}

/// Powers of two that the entries of a solution are measured by: `1 / d_i` for `a_ii` about `d_i^2`.
pub(super) fn scales(a: MatrixView<'_>) -> Vec<Float> {
    (0..a.rows()).map(|at| power(-diagonal_exponent(a.head(at, at).exponent()))).collect()
}

fn lost_bits(ctx: &Context, factor: &Cholesky) -> Result<u32> {
    let condition = factor.scaled_condition(ctx)?.get_exp().unwrap_or(0).max(0) as u32;
    Ok(condition + 2 * ceil_log2(factor.factor().rows().max(1)))
}

fn not_regular(a: BallView<'_>, operation: &str, unproven: &Unproven) -> Error {
    let Unproven { ratio } = unproven;
    let order = a.midpoint.rows();
    Error::InvalidArgument(format!(
        "{operation}: the {order} x {order} balls may contain a singular matrix: with an approximate inverse R of the \
         midpoint, |I - R A| for a matrix A in the balls scales some vector by {ratio:.3}, but the proof needs a \
         factor below 1: the radii are too large compared with the least eigenvalue"
    ))
}
