//! `L L^T X = B` for a few right-hand sides, entry by entry: substitution with the sums of verbs on vectors.
//!
//! Promise: a solution depends only on factor, right side and precision. Bounds: docs/ALGORITHM.md, "Solves with a
//! Cholesky factor".

use crate::context::{Context, Progress};
use crate::error::Result;
use crate::math::float::FloatRef;
use crate::matrix::{Destination, Matrix, MatrixView};
use crate::ops::columns::each_column;
use crate::ops::product::block::moved;
use crate::ops::solve::problem::{SolveBits, SystemShape};
use crate::ops::solve::run::make_room;
use crate::ops::vector::{RightSide, SubstitutionRoom, VectorTriangle, room_bytes};

/// Solves `L L^T X = B` column by column; `factor` is `n x n`, of which the lower triangle is read; `b` has `n` rows.
/// Returns the bytes of the call.
///
/// # Errors
/// [`crate::Error::Singular`], [`crate::Error::ExponentRange`], [`crate::Error::MemoryLimit`],
/// [`crate::Error::Cancelled`], [`crate::Error::OutOfMemory`].
pub(crate) fn solve_columns(
    ctx: &Context,
    factor: &Matrix,
    b: MatrixView<'_>,
    bits: SolveBits,
    result: Destination<'_>,
) -> Result<u64> {
    let shape = SystemShape { order: factor.rows(), columns: b.cols() };
    let order = shape.order;
    let [lower, upper] = [false, true].map(|transposed| VectorTriangle::of_factor(factor.view(), transposed));
    lower.check_diagonal()?;
    let planned_bytes = ctx.memory().admit(bytes(ctx, shape, bits, factor.limbs_per_element()))?;
    make_room(ctx, planned_bytes);
    let result = result.prepare((order, b.cols()), bits.precision)?;
    let local = || (None, [bits.working, bits.precision].map(|bits| SubstitutionRoom::new(order, bits)));
    each_column(ctx, result, local, |(middle, [forward, backward]), mut column| {
        let middle = match middle {
            Some(middle) => middle,
            None => middle.insert(Matrix::zeros(order, 1, bits.working)?),
        };
        let index = column.index;
        let placed = |error| moved(error, 0, index);
        let right = RightSide { b: b.block(0..order, index..index + 1)?, alpha: None };
        lower.substitute(&right, forward, |row, value| middle.set(row, 0, value)).map_err(placed)?;
        let right = RightSide { b: middle.view(), alpha: None };
        let store = |row: usize, value: FloatRef<'_>| {
            column.set(row, |limbs| {
                limbs.copy_from_slice(value.limbs);
                value.head
            });
        };
        upper.substitute(&right, backward, store).map_err(placed)?;
        ctx.report_progress(Progress::new("solve", index as u64 + 1, b.cols() as u64))
    })?;
    Ok(planned_bytes)
}

/// The largest number of bytes of a call with a factor whose entries have `entry_limbs` limbs: the solution, and the
/// memory of each worker.
pub(crate) fn bytes(ctx: &Context, shape: SystemShape, bits: SolveBits, entry_limbs: usize) -> u64 {
    let workers = ctx.threads().min(shape.columns).max(1) as u64;
    let each = worker_bytes(shape.order, bits, entry_limbs);
    shape.right_bytes(bits.precision).saturating_add(workers.saturating_mul(each))
}

/// Bytes of the substitutions of one right side at a time: the unknowns between them, and the memory of each
/// substitution.
pub(crate) fn worker_bytes(order: usize, bits: SolveBits, entry_limbs: usize) -> u64 {
    let rooms = [bits.working, bits.precision].map(|bits| room_bytes(order, bits, entry_limbs));
    Matrix::bytes_for(order, 1, bits.working).saturating_add(rooms[0]).saturating_add(rooms[1])
}
