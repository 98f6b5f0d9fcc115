//! The inverse of a Cholesky factor in bounds, and the size of perturbations of a matrix relative to its factor.
//!
//! Proof: docs/CHECKS.md, "Balls".

use super::bounds::{self, RADIUS_BITS};
use super::definite::{BOUND_BITS, Definite};
use super::matrix::{BallMatrix, BallView};
use super::product::BallProduct;
use super::regular::Regular;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::{Matrix, MatrixView};
use crate::ops::trsm::trsm;
use rug::Float;

/// `W`, near `L^-1`, and a bound of its error.
pub(super) struct InverseFactor {
    /// `W`, lower triangular.
    pub near: Matrix,
    /// `|L^-1 - W|`, at most.
    pub off: Matrix,
    /// `|L^-1|`, at most.
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
                let message = format!("the inverse of a Cholesky factor has a relative error of {ratio:.3e}");
                return Err(Error::InvalidArgument(message));
            }
        };
        // L^-1 - W = (I - E)^-1 E W.
        let moved = bounds::product(ctx, regular.deviation().view(), bounds::magnitudes(near.view())?.view())?;
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
