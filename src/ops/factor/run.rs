//! Carries out one rank's part of a factorisation: tiles in one block of memory, work in the order of the protocol,
//! then the use of the finished tiles.

use crate::comm::{Transport, agreed};
use crate::context::Context;
use crate::drive::{self, RankReport};
use crate::error::Result;
use crate::kernels::tiles::TileEngine;
use crate::matrix::Matrix;
use crate::ops::factor::node_tiles::{NodeTiles, TileWindow};
use crate::ops::factor::options::DistCholeskyOptions;
use crate::ops::factor::plan::FactorPlan;
use crate::ops::factor::problem::{FactorInput, FactorProblem};
use crate::ops::factor::spans::Clock;
use crate::ops::factor::tile_store::{TileMemory, TileStore, TileViews, WorkerMemory};
use crate::ops::factor::tile_work::{FailedRow, TileWork};
use crate::tile::TileId;
use rug::Integer;

/// One factorisation, as one rank sees it; one process is a single rank.
pub(crate) struct Factorisation<'a> {
    pub ctx: &'a Context,
    /// The ranks that share it.
    pub world: &'a dyn Transport,
    pub problem: &'a FactorProblem,
    pub plan: &'a FactorPlan,
    pub engine: &'a dyn TileEngine,
    pub options: &'a DistCholeskyOptions,
    /// The entries of own tiles.
    pub entries: &'a TileViews<'a>,
}

/// Finished tiles, or the row that ended the factorisation.
pub(crate) struct FactoredTiles<'t, 'a, 'w> {
    pub tiles: &'t TileStore<'a, 'w>,
    pub locals: &'t mut [WorkerMemory<'w>],
    /// The result of the driver; where a row has failed, an error to ignore.
    pub outcome: Result<RankReport>,
}

/// The outcome of a factorisation in one process without errors.
pub(crate) enum Ending {
    /// The factor of all rows that were tried.
    Factor(Matrix),
    /// The pivot `index` is not positive; the factor of the rows before it.
    Failed(usize, Matrix, Option<Integer>),
}

impl Factorisation<'_> {
    /// Factors the own tiles, in the window of the node where the plan has one, and passes them to `finish`; the times
    /// of all tasks are added to `clock`. Collective.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`], and those of `finish`.
    pub fn run<R>(
        &self,
        window: Option<TileWindow<'_>>,
        clock: &mut Clock,
        finish: impl FnOnce(FactoredTiles<'_, '_, '_>) -> Result<R>,
    ) -> Result<R> {
        let Factorisation { ctx, world, problem, plan, engine, options, entries } = *self;
        let mut workspace = ctx.workspace();
        let workspace = &mut *workspace;
        workspace.trim(ctx.memory(), &plan.needs());
        workspace.reserve_workers(plan.threads);
        let (spaces, spans) = (&mut workspace.workers[..plan.threads], world.size() == 1);
        let locals = WorkerMemory::of_workers(spaces, plan.scratch_words, 0, clock.start, spans);
        let words = workspace.operands.words(plan.private_words() + plan.slot_words());
        let both = locals.and_then(|locals| words.map(|words| (locals, words)));
        let (mut locals, words) = agreed(world, both)?;
        let (own_words, remote) = words.split_at_mut(plan.private_words());
        let work = TileWork::new(engine, &plan.tiling, problem.working_bits, &problem.exponents);
        let own = match window {
            Some(window) => NodeTiles::new(window, &plan.tiling).map(|(own, node)| (own, Some(node))),
            None => Ok((work.cut(plan.rank, own_words), None)),
        };
        let (own, node) = agreed(world, own)?;
        let memory = TileMemory { own, node, remote, remote_words: plan.operand_words };
        let tiles = TileStore::new(ctx, work, plan.rank, memory, entries, &problem.weights);
        let outcome = drive::run_tiles(ctx, world, &plan.rank_plan(engine, options), &tiles, &mut locals);
        let finished = finish(FactoredTiles { tiles: &tiles, locals: &mut locals, outcome });
        clock.add(locals.into_iter().map(|local| local.log));
        finished
    }
}

/// Factors `input` in one process, as planned. The factor of all rows takes the place of `memory`, which has its shape
/// and precision.
pub(crate) fn run(
    ctx: &Context,
    FactorInput { problem, lower }: FactorInput<'_>,
    plan: &FactorPlan,
    engine: &dyn TileEngine,
    memory: Option<Matrix>,
    clock: &mut Clock,
) -> Result<Ending> {
    let options = DistCholeskyOptions::default();
    let tiling = &plan.tiling;
    let entries = |tile: TileId| lower.block(tiling.row_range(tile.row), tiling.col_range(tile.col));
    let world = crate::comm::local::alone();
    let factorisation = Factorisation { ctx, world, problem, plan, engine, options: &options, entries: &entries };
    factorisation.run(None, clock, |FactoredTiles { tiles, locals, outcome }| {
        let order = match (tiles.failed(), outcome) {
            (Some(failed), _) => failed.index,
            (None, outcome) => outcome.map(|_| problem.order)?,
        };
        let mut factor = match memory.filter(|_| order == problem.order) {
            Some(mut memory) => {
                memory.clear_above_diagonal();
                memory
            }
            None => Matrix::zeros(order, order, problem.precision_bits)?,
        };
        ctx.install(|| tiles.store_whole(&mut factor, locals))?;
        Ok(match tiles.failed().cloned() {
            Some(FailedRow { index, pivot }) => Ending::Failed(index, factor, pivot),
            None => Ending::Factor(factor),
        })
    })
}
