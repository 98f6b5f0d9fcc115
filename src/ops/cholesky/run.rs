//! Carries a factorisation out: tiles in one block of memory, work as the scheduler hands it out, then the factor.

use crate::context::Context;
use crate::drive::{self, Meter};
use crate::error::{Error, Result};
use crate::kernels::tiles::{DiagonalData, TileEngine, UpdateTile};
use crate::math::pivot::RowWeight;
use crate::matrix::Matrix;
use crate::ops::cholesky::plan::{Plan, shape_of};
use crate::ops::cholesky::problem::Problem;
use crate::ops::cholesky::report::{Clock, Span, TaskKind};
use crate::ops::cholesky::tile_work::{ColumnOfTile, FailedRow, TileWork};
use crate::runtime::CholeskyGraph;
use crate::runtime::{Scheduler, Work};
use crate::tile::TileId;
use crate::tile::TileMap;
use rug::Integer;
use std::sync::{Mutex, OnceLock, PoisonError, RwLock, RwLockWriteGuard};

/// How a factorisation ended, if not with an error.
pub(crate) enum Ending {
    /// The factor of all rows that were tried.
    Factor(Matrix),
    /// The pivot `index` is not positive; the factor of the rows before it.
    Failed(usize, Matrix, Option<Integer>),
}

/// One factorisation under way.
struct Run<'a, 'w> {
    problem: &'a Problem<'a>,
    on_tiles: TileWork<'a>,
    tiling: &'a TileMap,
    tiles: Vec<RwLock<&'w mut [u64]>>,
    diagonals: Vec<OnceLock<Box<dyn DiagonalData>>>,
    weights: Vec<Mutex<Vec<RowWeight>>>,
    failed: OnceLock<FailedRow>,
    meter: Meter<'a>,
    clock: &'a Clock,
}

/// What one worker has for itself.
struct Local<'s> {
    scratch: &'s mut [u64],
    worker: usize,
    spans: Vec<Span>,
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
    workspace.hire(plan.threads);
    let mut locals = Vec::with_capacity(plan.threads);
    for (worker, space) in workspace.workers[..plan.threads].iter_mut().enumerate() {
        locals.push(Local { scratch: space.scratch.words(plan.scratch_words)?, worker, spans: Vec::new() });
    }
    let run = Run::new(ctx, problem, plan, engine, (workspace.operands.words(plan.tile_words)?, clock));
    let mut scheduler = Scheduler::new(CholeskyGraph::of(&plan.tiling), plan.threads);
    if engine.updates_at_once() {
        scheduler = scheduler.with_updates_at_once();
    }
    let finished = ctx.install(|| drive::run_graph(&mut locals, &mut scheduler, |local, work| run.work(local, work)));
    let order = match (run.failed.get(), finished) {
        (Some(failed), _) => failed.index,
        (None, result) => result.map(|()| problem.order)?,
    };
    let mut factor = match memory.filter(|_| order == problem.order) {
        Some(mut memory) => {
            memory.clear_above_diagonal();
            memory
        }
        None => Matrix::zeros(order, order, problem.precision_bits)?,
    };
    ctx.install(|| run.store(&mut factor, &mut locals))?;
    let failed = run.failed.into_inner();
    let spans = locals.into_iter().flat_map(|local| local.spans).collect::<Vec<_>>();
    clock.add(spans);
    Ok(match failed {
        Some(FailedRow { index, pivot }) => Ending::Failed(index, factor, pivot),
        None => Ending::Factor(factor),
    })
}

impl<'a, 'w> Run<'a, 'w> {
    fn new(
        ctx: &'a Context,
        problem: &'a Problem<'a>,
        plan: &'a Plan,
        engine: &'a dyn TileEngine,
        (mut words, clock): (&'w mut [u64], &'a Clock),
    ) -> Run<'a, 'w> {
        let tiling = &plan.tiling;
        let mut tiles = Vec::with_capacity(CholeskyGraph::of(tiling).tile_count());
        for tile in tiling.tiles() {
            let (own, rest) = words.split_at_mut(engine.tile_words(shape_of(tiling, tile)));
            tiles.push(RwLock::new(own));
            words = rest;
        }
        let columns = 0..tiling.tile_rows();
        let weights = problem.weights();
        let total = tiling.tiles().map(|tile| units(tiling, tile, tile.col + 1)).sum::<u64>();
        Run {
            problem,
            on_tiles: TileWork::new(engine, tiling, problem.working_bits, &problem.exponents),
            tiling,
            tiles,
            diagonals: columns.clone().map(|_| OnceLock::new()).collect(),
            weights: columns.map(|at| Mutex::new(weights[tiling.row_range(at)].to_vec())).collect(),
            failed: OnceLock::new(),
            meter: Meter::new(ctx, total),
            clock,
        }
    }

    fn tile(&self, tile: TileId) -> &RwLock<&'w mut [u64]> {
        &self.tiles[CholeskyGraph::of(self.tiling).index(tile)]
    }

    /// Does one piece of work.
    fn work(&self, local: &mut Local<'_>, work: &Work) -> Result<()> {
        let (tiling, col) = (self.tiling, work.col);
        let lock = |tile| self.tile(tile).write().unwrap_or_else(PoisonError::into_inner);
        let mut own = work.tiles().map(lock).collect::<Vec<_>>();
        if work.first {
            let start = self.clock.now();
            for (tile, words) in work.tiles().zip(&mut own) {
                self.load(tile, words, local.scratch)?;
            }
            local.span(self.clock, TaskKind::Load, work, start);
        }
        if !work.updates.is_empty() {
            let start = self.clock.now();
            self.update(work, &mut own, local.scratch)?;
            let kind = if work.rows == (col..col + 1) { TaskKind::Syrk } else { TaskKind::Gemm };
            local.span(self.clock, kind, work, start);
        }
        for (tile, mut words) in work.tiles().zip(own) {
            // The guard of the diagonal tile ends here: the tiles below read it.
            if work.finish {
                self.finish(local, tile, &mut words)?;
            }
            let done = work.updates.len() + usize::from(work.finish);
            self.meter.add("factor", units(tiling, tile, done))?;
        }
        Ok(())
    }

    fn load(&self, tile: TileId, words: &mut [u64], scratch: &mut [u64]) -> Result<()> {
        let (rows, cols) = (self.tiling.row_range(tile.row), self.tiling.row_range(tile.col));
        self.on_tiles.load(tile, self.problem.lower.block(rows, cols)?, words, scratch);
        Ok(())
    }

    /// SYRK and GEMM.
    fn update(&self, work: &Work, own: &mut [RwLockWriteGuard<'_, &'w mut [u64]>], scratch: &mut [u64]) -> Result<()> {
        let guards = |row: usize| {
            let tiles = work.updates.clone().map(move |col| self.tile(TileId { row, col }));
            tiles.map(|tile| tile.read().unwrap_or_else(PoisonError::into_inner)).collect::<Vec<_>>()
        };
        let left =
            work.rows.clone().map(|row| if row == work.col { Vec::new() } else { guards(row) }).collect::<Vec<_>>();
        let right = guards(work.col);
        let y = right.iter().map(|tile| &***tile).collect::<Vec<_>>();
        let mut tiles = Vec::with_capacity(own.len());
        for ((tile, words), left) in work.tiles().zip(own).zip(&left) {
            let shape = shape_of(self.tiling, tile);
            let x = if shape.diagonal { y.clone() } else { left.iter().map(|tile| &***tile).collect() };
            tiles.push(UpdateTile { shape, words, x });
        }
        self.on_tiles.update(TileId { row: work.rows.start, col: work.col }, &mut tiles, &y, scratch)
    }

    /// POTRF or TRSM.
    fn finish(&self, local: &mut Local<'_>, tile: TileId, words: &mut [u64]) -> Result<()> {
        let start = self.clock.now();
        let mut weights = self.weights[tile.row].lock().unwrap_or_else(PoisonError::into_inner);
        if tile.row != tile.col {
            let above =
                self.tile(TileId { row: tile.col, col: tile.col }).read().unwrap_or_else(PoisonError::into_inner);
            let data = self.diagonals[tile.col].get().expect("the diagonal tile is finished");
            self.on_tiles.solve(tile, words, &mut weights, (&above, &**data), local.scratch);
            local.span_of(self.clock, TaskKind::Trsm, tile, start);
            return Ok(());
        }
        let result = self.on_tiles.factor(tile, words, &mut weights, local.scratch);
        local.span_of(self.clock, TaskKind::Potrf, tile, start);
        match result {
            Ok(data) => {
                let _ = self.diagonals[tile.col].set(data); // each diagonal tile is finished once
                Ok(())
            }
            Err(failed) => {
                let _ = self.failed.set(failed);
                Err(Error::Cancelled) // stops the others; the failure itself is reported by the caller
            }
        }
    }

    /// Rounds the integers of the factor's rows into `factor`, whose order says how many there are.
    fn store(&self, factor: &mut Matrix, locals: &mut [Local<'_>]) -> Result<()> {
        let (order, precision_bits, width) = (factor.rows(), factor.precision_bits(), factor.limbs_per_element());
        if order == 0 {
            return Ok(());
        }
        let guards = self.tiles.iter().map(|tile| tile.read().unwrap_or_else(PoisonError::into_inner));
        let tiles = guards.collect::<Vec<_>>();
        let (heads, limbs) = factor.parts_mut();
        let mut columns = heads.chunks_exact_mut(order).zip(limbs.chunks_exact_mut(order * width)).enumerate();
        let start = self.clock.now();
        drive::share(
            locals,
            |_| columns.next(),
            |local, (col, (heads, limbs))| {
                let tile_col = col / self.tiling.tile_size;
                for tile_row in tile_col..order.div_ceil(self.tiling.tile_size) {
                    let tile = TileId { row: tile_row, col: tile_col };
                    let rows = self.tiling.row_range(tile_row).start..self.tiling.row_range(tile_row).end.min(order);
                    let column = ColumnOfTile {
                        col: col - self.tiling.row_range(tile_col).start,
                        heads: &mut heads[rows.clone()],
                        limbs: &mut limbs[rows.start * width..rows.end * width],
                        precision_bits,
                    };
                    let words = &tiles[CholeskyGraph::of(self.tiling).index(tile)];
                    self.on_tiles.store_column(tile, words, column, local.scratch)?;
                }
                self.meter.add("unscale", 0)
            },
        )?;
        locals[0].spans.push(Span { worker: 0, kind: TaskKind::Store, row: 0, col: 0, start, end: self.clock.now() });
        Ok(())
    }
}

impl Local<'_> {
    /// A span of work on a strip, by its first tile.
    fn span(&mut self, clock: &Clock, kind: TaskKind, work: &Work, start: f64) {
        self.span_of(clock, kind, TileId { row: work.rows.start, col: work.col }, start);
    }

    fn span_of(&mut self, clock: &Clock, kind: TaskKind, TileId { row, col }: TileId, start: f64) {
        self.spans.push(Span { worker: self.worker, kind, row, col, start, end: clock.now() });
    }
}

/// Units of work of `tasks` tasks on a tile.
fn units(tiling: &TileMap, tile: TileId, tasks: usize) -> u64 {
    let shape = shape_of(tiling, tile);
    (shape.rows * shape.cols * tasks) as u64
}
