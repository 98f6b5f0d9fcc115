//! Choices of triangular solves, in one process and over ranks.

use crate::comm::say_fields;
use crate::error::{Error, Result};
use crate::matrix::{Diag, Op, Side, Uplo};
use crate::ops::fixed_sum::OwnFloat;
use crate::ops::product::problem::Accuracy;
use crate::options::setters;
use rug::Float;

/// Options of a triangular solve in addition to the operands and the precision.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct TrsmOptions<'a> {
    /// `Left` solves `op(T) X = alpha B` (the default), `Right` solves `X op(T) = alpha B`.
    pub side: Side,
    /// The triangle of `T` that is read; the contents of the other triangle are ignored.
    pub uplo: Uplo,
    /// Whether `T` is used transposed.
    pub op: Op,
    /// Whether the diagonal of `T` is read or taken as ones.
    pub diag: Diag,
    /// Accuracy of each entry of the residual.
    pub accuracy: Accuracy,
    /// Scalar of `B`; `None` is 1.
    pub alpha: Option<&'a Float>,
}

setters! { new TrsmOptions<'a> {
    side: Side,
    uplo: Uplo,
    op: Op,
    diag: Diag,
    accuracy: Accuracy,
    alpha: impl Into<Option<&'a Float>>,
} }

say_fields! { TrsmOptions<'_> { side, uplo, op, diag, accuracy, alpha } }

/// The scalar of right-hand sides.
///
/// # Errors
/// [`Error::InvalidArgument`] where it is not finite.
pub(crate) fn check_scalar(alpha: &Float) -> Result<OwnFloat> {
    if alpha.is_finite() {
        return Ok(OwnFloat::new(alpha));
    }
    Err(Error::InvalidArgument(format!("alpha is {alpha}: it must be finite")))
}
