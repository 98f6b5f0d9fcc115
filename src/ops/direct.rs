//! The path of sizes where residues cost more than they save: exact sums of products, no engine, no thread.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::{Matrix, Uplo};
use crate::ops::combine::{ExactEntry, Place};
use crate::ops::plan::{Plan, PlanRequest};
use crate::ops::problem::Problem;
use crate::plan::PlanBytes;

/// The kernel name in reports of this path.
pub(crate) const NAME: &str = "direct";

/// Whether a product of this shape takes the direct path.
pub(crate) fn is_chosen(_ctx: &Context, request: &PlanRequest) -> bool {
    request.contracted == 0 || request.rows == 0 || request.cols == 0
}

/// The plan of the direct path.
///
/// # Errors
/// [`Error::MemoryLimit`].
pub(crate) fn plan(ctx: &Context, request: &PlanRequest) -> Result<Plan> {
    let bytes = PlanBytes { result: request.result_bytes, ..PlanBytes::default() };
    let (limit_bytes, minimum_bytes) = (ctx.memory_bytes().unwrap_or(u64::MAX), bytes.total());
    if minimum_bytes > limit_bytes {
        return Err(Error::MemoryLimit { limit_bytes, minimum_bytes });
    }
    Ok(Plan {
        operation: request.operation,
        contracted: request.contracted,
        rows: request.rows,
        cols: request.cols,
        precision_bits: request.bits.result,
        working_bits: request.bits.working,
        kernel: NAME,
        threads: 1,
        batches: 1,
        bands: 1,
        band_columns: request.rows.max(request.cols),
        chunks: 1,
        chunk_rows: request.contracted,
        bytes,
        planned_bytes: bytes.total(),
        jobs_per_worker: vec![1],
        load_max_over_mean: 1.0,
        ..Plan::default()
    })
}

/// Computes the product into `result`.
///
/// # Errors
/// [`Error::ExponentRange`].
pub(crate) fn run(problem: &Problem<'_>, result: &mut Matrix) -> Result<()> {
    let (rows, cols) = problem.result_shape();
    let mut limbs = vec![0; result.limbs_per_element()];
    for col in 0..cols {
        for row in 0..rows {
            let held = match problem.uplo {
                Uplo::Lower => row >= col,
                Uplo::Upper => row <= col,
            };
            if problem.triangle() && !held {
                continue;
            }
            let exact = ExactEntry { negative: false, magnitude: &[], exponent: 0 };
            let place = Place { row, col };
            let head = problem.combination.finish(exact, place, result.precision_bits(), &mut limbs)?;
            result.set(row, col, crate::math::float::FloatRef { head, limbs: &limbs });
        }
    }
    Ok(())
}
