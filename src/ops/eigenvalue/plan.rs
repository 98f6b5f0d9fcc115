//! What an interval for an extreme eigenvalue takes, before any computation.

use super::{check, interval};
use crate::context::Context;
use crate::error::Result;
use crate::matrix::Matrix;
use crate::ops::cholesky::{CholeskyOptions, CholeskyPlan, plan_cholesky};
use crate::ops::product::problem::Accuracy;
use serde::Serialize;

/// How an extreme eigenvalue will be enclosed: the factorisation of a shifted matrix, and bytes.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct EigenvaluePlan {
    /// `extreme_eigenvalue`.
    pub operation: &'static str,
    /// Rows of the matrix.
    pub order: usize,
    /// Bits of the eigenvalue that the interval determines.
    pub precision_bits: u32,
    /// One factorisation, of which there are one or two, or a few more for many bits.
    pub factorisation: CholeskyPlan,
    /// Bytes of the copy of the matrix, of shifted matrices, and of vectors.
    pub search_bytes: u64,
    /// Bytes of everything that the call holds, the matrix not.
    pub planned_bytes: u64,
}

/// Plans [`extreme_eigenvalue_with`](super::extreme_eigenvalue_with) for a matrix of `order` rows and as many bits as
/// are asked of the interval.
///
/// An eigenvalue that is far smaller than the norm of the matrix takes more bits, and so more memory; a few digits that
/// doubles prove take less. Cost: independent of the order.
///
/// ```
/// use sunzi::{Context, eigenvalue};
/// let plan = eigenvalue::plan_extreme_eigenvalue(&Context::new()?, 100, 256)?;
/// assert!(plan.planned_bytes > plan.search_bytes);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// Those of [`extreme_eigenvalue_with`](super::extreme_eigenvalue_with) about sizes and precision;
/// [`Error::MemoryLimit`](crate::Error::MemoryLimit) with the least limit that would do;
/// [`Error::DimensionOverflow`](crate::Error::DimensionOverflow).
pub fn plan_extreme_eigenvalue(ctx: &Context, order: usize, precision_bits: u32) -> Result<EigenvaluePlan> {
    check(order, precision_bits)?;
    let working_bits = interval::first_bits(precision_bits);
    Matrix::check_size(order, order, working_bits)?;
    let copy_bytes = Matrix::bytes_for(order, order, precision_bits);
    let search_bytes = copy_bytes.saturating_add(interval::search_bytes(order, working_bits));
    let options = CholeskyOptions::new().accuracy(Accuracy::Norm);
    let factorisation = plan_cholesky(&ctx.holding(search_bytes), order, working_bits, &options)?;
    let planned_bytes = search_bytes.saturating_add(factorisation.planned_bytes);
    let operation = "extreme_eigenvalue";
    Ok(EigenvaluePlan { operation, order, precision_bits, factorisation, search_bytes, planned_bytes })
}
