//! Carries a factorisation out in one process: tiles in one block of memory, work as the protocol hands it out, then
//! the factor.

use crate::comm::local;
use crate::context::Context;
use crate::drive::{self, Meter};
use crate::error::Result;
use crate::kernels::tiles::TileEngine;
use crate::matrix::Matrix;
use crate::ops::factor::plan::{Plan, units};
use crate::ops::factor::problem::Problem;
use crate::ops::factor::report::{Clock, TaskLog};
use crate::ops::factor::tile_store::{Local, TileMemory, TileStore};
use crate::ops::factor::tile_work::{FailedRow, TileWork};
use crate::tile::{OwnTiles, TileId};
use rug::Integer;

/// How a factorisation ended, if not with an error.
pub(crate) enum Ending {
    /// The factor of all rows that were tried.
    Factor(Matrix),
    /// The pivot `index` is not positive; the factor of the rows before it.
    Failed(usize, Matrix, Option<Integer>),
}

/// Factors `problem` as planned; the times of all tasks are added to `clock`. The factor of all rows takes the place of
/// `memory`, which has its shape and precision.
pub(crate) fn run(
    ctx: &Context,
    problem: &Problem<'_>,
    (plan, engine): (&Plan, &dyn TileEngine),
    memory: Option<Matrix>,
    clock: &mut Clock,
) -> Result<Ending> {
    let mut workspace = ctx.workspace();
    let workspace = &mut *workspace;
    workspace.trim(ctx, &plan.needs());
    workspace.reserve_workers(plan.threads);
    let mut locals = Vec::with_capacity(plan.threads);
    for (worker, space) in workspace.workers[..plan.threads].iter_mut().enumerate() {
        let log = TaskLog::with_spans(clock.start, worker);
        locals.push(Local { scratch: space.scratch.words(plan.scratch_words)?, log });
    }
    let tiling = &plan.tiling;
    let total = tiling.tiles().map(|tile| units(tiling, tile, tile.col + 1)).sum::<u64>();
    let rank_plan = plan.rank_plan(engine);
    let own = OwnTiles::new(tiling.grid, tiling.tile_rows(), 0);
    let memory_of_tiles =
        TileMemory { own: workspace.operands.words(plan.tile_words)?, remote: &mut [], remote_words: 0 };
    let entries = |tile: TileId| problem.lower.block(tiling.row_range(tile.row), tiling.col_range(tile.col));
    let work = TileWork::new(engine, tiling, problem.working_bits, &problem.exponents);
    let tiles = TileStore::new(work, (own, memory_of_tiles), &entries, &problem.weights(), Meter::new(ctx, total));
    let finished = drive::run_tiles(ctx, local::alone(), &rank_plan, &tiles, &mut locals);
    let order = match (tiles.failed(), finished) {
        (Some(failed), _) => failed.index,
        (None, result) => result.map(|_| problem.order)?,
    };
    let mut factor = match memory.filter(|_| order == problem.order) {
        Some(mut memory) => {
            memory.clear_above_diagonal();
            memory
        }
        None => Matrix::zeros(order, order, problem.precision_bits)?,
    };
    ctx.install(|| tiles.store_whole(&mut factor, &mut locals))?;
    let failed = tiles.into_failed();
    clock.add(locals.into_iter().map(|local| local.log));
    Ok(match failed {
        Some(FailedRow { index, pivot }) => Ending::Failed(index, factor, pivot),
        None => Ending::Factor(factor),
    })
}
