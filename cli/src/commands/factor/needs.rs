//! The memory that a factorisation and the results made from it take at least, only from the headers of the files.

use super::{Factoring, ReadAt, Task, reader};
use crate::session::Session;
use sunzi::plans::{plan_cholesky, plan_inverse, plan_solve, plan_solve_refined};
use sunzi::{CholeskyOptions, Context, Matrix, RefineOptions, Result};
use sunzi_session::engine::least_bytes;

/// Bits for the range of exponents, for each bit of the order: of a Gram matrix of random numbers the smallest entry
/// lies about `2.5 log2(n)` bits below its diagonal, by chance some bits more.
const RANGE_BITS_PER_ORDER_BIT: u32 = 3;

/// Refuses a memory limit in which the command cannot run to its end at these bits, before anything is read.
///
/// # Errors
/// [`sunzi::Error::MemoryLimit`] with the smallest limit that suffices for reading, computing and writing.
pub fn admit(session: &Session, config: &Factoring, at: ReadAt) -> Result<()> {
    let reader = reader(session, config, at)?;
    reader.admit(&config.files(), |infos| {
        let columns = infos.get(1).map_or(0, |b| b.cols);
        needed_bytes(session, config, infos[0].rows, columns, reader.precision_bits())
    })
}

/// Bytes of the work on a matrix of `order` rows and `columns` right-hand sides, the result included.
fn needed_bytes(session: &Session, config: &Factoring, order: usize, columns: usize, bits: u32) -> Result<u64> {
    let context = || session.context(&config.factor.engine);
    let choices = CholeskyOptions::new()
        .tile_rows(config.factor.tile_rows)
        .accuracy(config.factor.accuracy)
        .range_bits(usual_range_bits(order));
    let plan = |ctx: &Context| match &config.task {
        Task::Cholesky => plan_cholesky(ctx, order, bits, &choices).map(drop),
        Task::Inverse => plan_inverse(ctx, order, bits, &choices).map(drop),
        Task::Solve { refine_from_bits: Some(factor_bits), .. } => {
            let options = RefineOptions::new().factor_bits(*factor_bits);
            plan_solve_refined(ctx, (order, columns), bits, &options).map(drop)
        }
        Task::Solve { .. } => plan_solve(ctx, (order, columns), bits, &choices).map(drop),
    };
    let needed = least_bytes(context()?, plan)?;
    if !config.factor.condition {
        return Ok(needed);
    }
    // One right side, in addition to the factor.
    let one = least_bytes(context()?, |ctx| plan_solve(ctx, (order, 1), bits, &choices))?;
    Ok(needed.max(one + Matrix::bytes_for(order, 1, bits)))
}

/// Bits for the range of exponents that Gram matrices of `order` rows take, where accuracy is entry by entry.
pub fn usual_range_bits(order: usize) -> u32 {
    RANGE_BITS_PER_ORDER_BIT * order.checked_ilog2().map_or(0, |log2| log2 + 1)
}
