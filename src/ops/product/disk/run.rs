//! A product from the headers of its files to its report: missing tiles are made, then the file is written.

use super::plan::of_rank;
use super::problem::{FileProduct, Scanned};
use super::tiles::{PairTiles, is_wanted};
use super::{OutOfCoreProductOptions, OutOfCoreProductReport, ProductPaths};
use crate::comm::window::NodeWindow;
use crate::comm::{Reduction, agree, agreed};
use crate::context::{Workspace, WorkspaceNeeds};
use crate::error::Result;
use crate::io::BlockStreamStatistics;
use crate::matrix::Uplo;
use crate::ops::disk::{
    DiskUse, DiskWatch, ResultCut, ResultPlace, StoredBlocks, StoredResult, rank_directory, until_whole, write_file,
    write_zeros,
};
use crate::ops::product::clock::PhaseClock;
use crate::ops::product::combine::Epilogue;
use crate::ops::product::plan::PlannedRun;
use crate::ops::product::problem::{Bits, OperandRows};
use crate::ops::product::report::Phases;
use crate::ops::product::run::{ProductRun, RunState};
use crate::ops::product::steps::worker_spaces;
use crate::ops::product::streamed::StreamedOperands;
use crate::plan::NodeShape;
use crate::site::Site;
use crate::storage::{Caching, Identity};
use std::path::Path;
use std::time::Instant;

/// The product of the files that `open` opens. Collective.
pub(super) fn run(
    site: Site<'_>,
    open: impl FnOnce() -> Result<FileProduct>,
    paths: ProductPaths<'_>,
    options: &OutOfCoreProductOptions,
) -> Result<OutOfCoreProductReport> {
    let (start, world) = (Instant::now(), site.world());
    let problem = agreed(world, open().and_then(|problem| problem.check(site.ctx).map(|()| problem)))?;
    let (ctx, cut) = (&site.share(), problem.cut(options));
    // Refused before a file is read.
    let (planned, plan) = problem.plan(site, ctx, &cut, options.caching)?;
    let bits = Bits::scaled(problem.precision_bits, problem.size().contracted);
    let scanned = problem.scan(site.with(ctx), &bits)?;
    let scan_seconds = start.elapsed().as_secs_f64();
    let call = DiskProduct {
        site: site.with(ctx),
        problem: &problem,
        planned: &planned,
        cut,
        bits,
        scanned: &scanned,
        identity: problem.identity(&cut, &scanned),
        caching: options.caching,
    };
    let mut made =
        agreed(world, rank_directory(site, paths.storage)).and_then(|directory| call.make(paths.result, &directory))?;
    made.disk.sum(world)?;
    let mut threads = [ctx.threads() as u64];
    world.all_reduce(Reduction::Sum, &mut threads)?;
    let size = problem.size();
    Ok(OutOfCoreProductReport {
        operation: problem.operation,
        contracted: size.contracted,
        rows: size.rows,
        cols: size.cols,
        precision_bits: problem.precision_bits,
        working_bits: bits.working,
        kernel: planned.plan.kernel,
        primes: planned.plan.primes,
        threads: threads[0] as usize,
        ranks: world.size(),
        plan,
        disk: made.disk,
        operand_seconds: made.operand_seconds,
        wait_seconds: made.wait_seconds,
        seconds: start.elapsed().as_secs_f64(),
        scan_seconds,
        product_seconds: made.product_seconds,
        store_seconds: made.store_seconds,
        phases: made.phases,
        checked: ctx.self_check(),
    })
}

/// A product under way.
pub(super) struct DiskProduct<'a> {
    /// With this rank's share of the limit.
    pub site: Site<'a>,
    pub problem: &'a FileProduct,
    pub planned: &'a PlannedRun,
    pub cut: ResultCut,
    pub bits: Bits,
    pub scanned: &'a Scanned,
    pub identity: Identity,
    pub caching: Caching,
}

/// The outcome of a run.
#[derive(Default)]
pub(super) struct DiskProductOutcome {
    pub disk: DiskUse,
    pub operand_seconds: f64,
    pub wait_seconds: f64,
    pub phases: Phases,
    pub product_seconds: f64,
    pub store_seconds: f64,
}

impl DiskProduct<'_> {
    /// Makes all tiles that are not there, and writes the result. A damaged tile is made again. Collective.
    pub fn make(&self, result: &Path, directory: &Path) -> Result<DiskProductOutcome> {
        let (mut made, mut disk, world) = (DiskProductOutcome::default(), DiskUse::default(), self.site.world());
        let place = ResultPlace {
            directory,
            identity: &self.identity,
            caching: self.caching,
            buffers: self.problem.tile_buffers(self.site.ctx),
        };
        until_whole(world, &mut disk, |disk| {
            let opened = StoredResult::open(place, self.cut, self.problem.precision_bits, world.rank());
            let (mut tiles, damaged) = agreed(world, opened)?;
            tiles.share(world)?;
            disk.groups_repaired += damaged;
            disk.tiles_found = disk.tiles_found.max(tiles.own_blocks());
            let start = Instant::now();
            let multiplied = self.multiply(&mut tiles, disk, &mut made);
            // Rounded tiles are written even where the product ended with an error.
            let finished = tiles.finish();
            made.product_seconds += start.elapsed().as_secs_f64();
            agree(world, multiplied.and(finished))?;
            tiles.share(world)?;
            let start = Instant::now();
            let outcome = match self.problem.size().is_empty() {
                true => write_zeros(self.site, result, tiles.shape()),
                false => {
                    let spaces = tiles.take_spaces(self.site.ctx.threads());
                    write_file(self.site, result, &tiles, spaces)
                }
            };
            made.store_seconds += start.elapsed().as_secs_f64();
            Ok(tiles.attempt(outcome))
        })?;
        made.disk = disk;
        Ok(made)
    }

    /// Multiplies this rank's pairs of bands, of the pairs with tiles that no rank has yet.
    fn multiply(&self, tiles: &mut StoredResult, disk: &mut DiskUse, made: &mut DiskProductOutcome) -> Result<()> {
        let DiskProduct { problem, planned, bits, scanned, .. } = *self;
        let PlannedRun { engine, cutting, words, plan, .. } = planned;
        if problem.size().is_empty() {
            return Ok(());
        }
        let wanted = planned.schedule.clone().of_pairs(|pair| is_wanted(tiles, pair));
        let schedule = of_rank(wanted, self.site.team);
        if schedule.pairs().next().is_none() {
            return Ok(());
        }
        let mut workspace = self.site.ctx.workspace();
        workspace.trim(self.site.ctx.memory(), &self.needs());
        workspace.reserve_workers(plan.threads);
        let Workspace { operands, products, workers, .. } = &mut *workspace;
        let spaces = worker_spaces(&mut workers[..plan.threads], engine.magnitude_limbs(), words.scratch)?;
        let operands = NodeWindow::Alone(operands.words(words.operands)?);
        let products = NodeWindow::Alone(products.words(words.products)?);
        let options = problem.stream(cutting.cut.band_panels, cutting.cut.chunk_rows, self.caching);
        let watch = DiskWatch::default();
        watch.opened(&tiles.objects.storage);
        let (left, right) = (&problem.left, problem.right());
        let streamed = StreamedOperands::new(left, right, &schedule, cutting.chunks, options, &watch.read_bytes)?;
        let ctx = &watch.told(self.site.ctx);
        let mut clock = PhaseClock::alone(Instant::now());
        let shape = NodeShape::alone(problem.size().contracted, plan.threads);
        let run = ProductRun {
            site: Site::one_process(ctx),
            shape: &shape,
            engine: &**engine,
            cutting: *cutting,
            schedule,
            left: OperandRows { blocks: &[], shifts: &scanned.left_shifts },
            right: problem.right.as_ref().map(|_| OperandRows { blocks: &[], shifts: &scanned.right_shifts }),
            streamed: Some(&streamed),
            uplo: Uplo::Lower,
            bits,
            epilogue: Epilogue::new(None, None, None),
            owners: None,
            fault: None,
        };
        let state = &mut RunState { operands, products, spaces, clock: &mut clock };
        let outcome = run.run(state, &mut PairTiles(tiles));
        let BlockStreamStatistics { read_bytes, read_seconds, wait_seconds } = streamed.statistics();
        disk.read_bytes += read_bytes;
        made.operand_seconds += read_seconds;
        made.wait_seconds += wait_seconds;
        made.phases = Phases::new(&clock, &outcome?);
        Ok(())
    }

    fn needs(&self) -> WorkspaceNeeds {
        let plan = &self.planned.plan;
        WorkspaceNeeds {
            operand_bytes: plan.bytes.operand_window,
            product_bytes: plan.bytes.product_window,
            workers: plan.threads,
            worker_bytes: (plan.bytes.scratch + plan.bytes.integers) / plan.threads.max(1) as u64,
            planned_bytes: plan.planned_bytes,
        }
    }
}
