//! The memory of an interval for an extreme eigenvalue, before any computation.

use super::{check, interval};
use crate::context::Context;
use crate::error::Result;
use crate::matrix::Matrix;
use crate::ops::cholesky::{CholeskyOptions, CholeskyPlan, plan_cholesky};
use crate::ops::product::problem::Accuracy;
use serde::Serialize;

/// The plan of an interval for an extreme eigenvalue: the factorisation of a shifted matrix, and the memory.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct EigenvaluePlan {
    /// Always `extreme_eigenvalue`.
    pub operation: &'static str,
    /// Rows of the matrix.
    pub order: usize,
    /// Number of bits to which the interval determines the eigenvalue.
    pub precision_bits: u32,
    /// The plan of each factorisation; the call makes one or two, or a few more for many bits.
    pub factorisation: CholeskyPlan,
    /// Bytes of the copy of the matrix, of shifted matrices, and of vectors.
    pub search_bytes: u64,
    /// Bytes of all memory of the call, without the matrix itself.
    pub planned_bytes: u64,
}

/// Plans [`extreme_eigenvalue_with`](super::extreme_eigenvalue_with) for a matrix of `order` rows and an interval that
/// determines `precision_bits` bits of the eigenvalue; `matrix_bits` is the precision of the matrix.
///
/// An eigenvalue that is far smaller than the norm of the matrix needs more bits, and so more memory; an interval of a
/// few digits, which doubles can prove, needs less. Cost: independent of the order.
///
/// ```
/// use sunzi::{Context, eigenvalue};
/// let plan = eigenvalue::plan_extreme_eigenvalue(&Context::new()?, 100, 256, 256)?;
/// assert!(plan.planned_bytes > plan.search_bytes);
/// # Ok::<(), sunzi::Error>(())
/// ```
///
/// # Errors
/// The errors of [`extreme_eigenvalue_with`](super::extreme_eigenvalue_with) about sizes and precision;
/// [`Error::MemoryLimit`](crate::Error::MemoryLimit) with the smallest limit that suffices;
/// [`Error::DimensionOverflow`](crate::Error::DimensionOverflow).
pub fn plan_extreme_eigenvalue(
    ctx: &Context,
    order: usize,
    matrix_bits: u32,
    precision_bits: u32,
) -> Result<EigenvaluePlan> {
    check(order, precision_bits)?;
    let working_bits = interval::first_bits(precision_bits);
    Matrix::check_size(order, order, matrix_bits.max(working_bits))?;
    let copy_bytes = Matrix::bytes_for(order, order, matrix_bits);
    let search_bytes = copy_bytes.saturating_add(interval::search_bytes(order, matrix_bits.max(working_bits)));
    let options = CholeskyOptions::new().accuracy(Accuracy::Norm);
    let factorisation = plan_cholesky(&ctx.holding(search_bytes), order, working_bits, &options)?;
    let planned_bytes = search_bytes.saturating_add(factorisation.planned_bytes);
    let operation = "extreme_eigenvalue";
    Ok(EigenvaluePlan { operation, order, precision_bits, factorisation, search_bytes, planned_bytes })
}
