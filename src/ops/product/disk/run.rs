//! A product from the headers of its files to its report: missing tiles are made, then the file is written. Pairs of
//! bands are rounded into tiles of the result.

use super::operands::{FileProduct, Scanned, StreamedOperands};
use super::plan::of_rank;
use super::{OutOfCoreProductOptions, OutOfCoreProductReport, ProductPaths};
use crate::comm::{Reduction, agree, agreed};
use crate::context::Workspace;
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
use crate::ops::product::run::{ProductRun, RunMemory, RunPlan};
use crate::ops::product::sink::{Region, ResultSink, SegmentIter, tile_segments};
use crate::plan::{BLOCK, BandPair, NodeShape};
use crate::site::Site;
use crate::storage::{Caching, Identity};
use crate::tile::TileId;
use std::ops::Range;
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
        operation: size.operation(),
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
        let PlannedRun { run, plan } = planned;
        if problem.size().is_empty() {
            return Ok(());
        }
        let wanted = run.schedule.clone().of_pairs(|pair| is_wanted(tiles, pair));
        let schedule = of_rank(wanted, self.site.team);
        if schedule.pairs().next().is_none() {
            return Ok(());
        }
        let mut workspace = self.site.ctx.workspace();
        workspace.trim(self.site.ctx.memory(), &plan.needs());
        workspace.reserve_workers(plan.threads);
        let Workspace { operands, products, workers, .. } = &mut *workspace;
        let cutting = run.cutting;
        let options = problem.stream(cutting.cut.band_panels, cutting.cut.chunk_rows, self.caching);
        let watch = DiskWatch::default();
        watch.opened(&tiles.objects.storage);
        let (left, right) = (&problem.left, problem.right());
        let streamed = StreamedOperands::new(left, right, &schedule, cutting.chunks, options, &watch.read_bytes)?;
        let ctx = &watch.told(self.site.ctx);
        let mut clock = PhaseClock::alone(Instant::now());
        let run = ProductRun {
            site: Site::one_process(ctx),
            shape: &NodeShape::alone(problem.size().contracted, plan.threads),
            plan: &RunPlan { schedule, ..run.clone() },
            left: OperandRows { blocks: &[], shifts: &scanned.left_shifts },
            right: problem.right.as_ref().map(|_| OperandRows { blocks: &[], shifts: &scanned.right_shifts }),
            source: Some(&streamed),
            uplo: Uplo::Lower,
            half: None,
            bits,
            epilogue: Epilogue::new(None, None, None),
            owners: None,
            fault: None,
        };
        let memory = RunMemory { operands, products, workers: &mut workers[..plan.threads] };
        let outcome = run.run_alone(memory, &mut clock, &mut PairTiles(tiles));
        let BlockStreamStatistics { read_bytes, read_seconds, wait_seconds } = streamed.statistics();
        disk.read_bytes += read_bytes;
        made.operand_seconds += read_seconds;
        made.wait_seconds += wait_seconds;
        made.phases = Phases::new(&clock, &outcome?);
        Ok(())
    }
}

/// The tiles of a pair of bands that no rank has.
fn missing(tiles: &StoredResult, left: &Range<usize>, right: &Range<usize>, is_triangle: bool) -> Vec<TileId> {
    let tile_panels = tiles.cut().block_rows / BLOCK;
    // Panels of a band are whole tiles.
    let of = |panels: &Range<usize>| panels.start / tile_panels..panels.end.div_ceil(tile_panels);
    let (rows, cols) = (of(left), of(right));
    let all = cols.flat_map(|col| rows.clone().map(move |row| TileId { row, col }));
    all.filter(|tile| (!is_triangle || tile.row >= tile.col) && !tiles.has(*tile)).collect()
}

/// Whether a pair of bands has a tile that no rank has.
fn is_wanted(tiles: &StoredResult, pair: &BandPair) -> bool {
    !missing(tiles, &pair.left, &pair.right, pair.grid.triangle).is_empty()
}

/// The tiles that pairs of bands are rounded into.
struct PairTiles<'t>(&'t mut StoredResult);

impl ResultSink for PairTiles<'_> {
    fn fill(&mut self, region: Region, fill: &mut dyn FnMut(SegmentIter<'_>) -> Result<()>) -> Result<()> {
        let left = region.first_left..region.first_left + region.grid.rows;
        let right = region.first_right..region.first_right + region.grid.cols;
        let tile_blocks = self.0.cut().block_rows / BLOCK;
        for tile in missing(self.0, &left, &right, region.grid.triangle) {
            let rows = self.0.cut().block(tile).rows.len();
            self.0.publish(tile, |heads, limbs| {
                if region.grid.triangle {
                    // Entries outside the triangle are 0 in its tiles.
                    heads.fill(0);
                    limbs.fill(0);
                }
                fill(Box::new(tile_segments(region, tile, tile_blocks, rows, heads, limbs)))
            })?;
        }
        Ok(())
    }
}
