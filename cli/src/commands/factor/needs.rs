//! The memory that a factorisation and what follows from it take at least, from the headers of the files alone.

use super::{Factoring, Task, reader};
use crate::files::header;
use crate::session::Session;
use sunzi::{
    Accuracy, CholeskyOptions, Context, Matrix, RefineOptions, Result, plan_cholesky, plan_inverse, plan_solve,
    plan_solve_refined,
};
use sunzi_lab::engine::least_bytes;

/// Bits that the exponents of entries take beyond those of one size, before they are known.
const USUAL_SPREAD_BITS: u32 = 8;

/// Refuses a memory limit that the command cannot end in at so many bits, before anything is read; files without a
/// header are refused later, where they are too large.
///
/// # Errors
/// [`sunzi::Error::MemoryLimit`] with the least limit that would do for reading, computing and writing.
pub fn admit(session: &Session, config: &Factoring, bits: Option<u32>) -> Result<()> {
    let engine = &config.factor.engine;
    if engine.memory_bytes.is_none() {
        return Ok(());
    }
    let reader = reader(session, config, bits)?;
    let precision_bits = reader.precision_bits();
    let Some(a) = header(&config.factor.a)? else { return Ok(()) };
    let b = match &config.task {
        Task::Solve { b, .. } => Some(header(b)?),
        _ => None,
    };
    let Some(b) = b.map_or(Some(None), |b| b.map(Some)) else { return Ok(()) };
    let order = a.rows;
    let inputs_bytes = reader.bytes(&a).saturating_add(b.as_ref().map_or(0, |b| reader.bytes(b)));
    let columns = b.map_or(0, |b| b.cols);
    let choices = CholeskyOptions::new().tile_rows(config.factor.tile_rows).accuracy(config.accuracy());
    let choices = match config.accuracy() == Accuracy::Entrywise {
        false => choices,
        true => {
            // Entries of one size are rare: the spread of a Gram matrix takes a step more.
            let even = plan_cholesky(&session.context(engine)?.build()?, order, precision_bits, &choices)?;
            choices.range_bits(even.range_bits + USUAL_SPREAD_BITS)
        }
    };
    let plan = |ctx: &Context| match &config.task {
        Task::Cholesky => plan_cholesky(ctx, order, precision_bits, &choices).map(drop),
        Task::Inverse => plan_inverse(ctx, order, precision_bits, &choices).map(drop),
        Task::Solve { refine_from_bits: Some(bits), .. } => {
            let options = RefineOptions::new().factor_bits(*bits);
            plan_solve_refined(ctx, (order, columns), precision_bits, &options).map(drop)
        }
        Task::Solve { .. } => plan_solve(ctx, (order, columns), precision_bits, &choices).map(drop),
    };
    let mut needed_bytes = least_bytes(session.context(engine)?, plan)?;
    if config.factor.condition {
        // One right side, beside the factor.
        let one = least_bytes(session.context(engine)?, |ctx| plan_solve(ctx, (order, 1), precision_bits, &choices))?;
        needed_bytes = needed_bytes.max(one + Matrix::bytes_for(order, 1, precision_bits));
    }
    engine.admit([inputs_bytes.saturating_add(needed_bytes)])
}
