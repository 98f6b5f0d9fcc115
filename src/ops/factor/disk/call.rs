//! An out-of-core factorisation for any element type: the directory, attempts until no tile is damaged, the protocol,
//! and the report.

use super::plan::{DiskNeeds, OutOfCorePlan, TileNeeds};
use super::{OutOfCoreOptions, OutOfCoreReport};
use crate::comm::{Reduction, agreed};
use crate::context::Context;
use crate::drive::{self, RankPlan, RankReport, RankTiles, TransferRoom};
use crate::error::{Error, Result};
use crate::io::MatrixFile;
use crate::ops::disk::{DiskUse, rank_directory, until_whole};
use crate::ops::factor::problem::SQUARE;
use crate::ops::factor::rank_report::{RankSummary, RanksReport};
use crate::ops::factor::spans::Clock;
use crate::ops::factor::tile_file::TileFile;
use crate::runtime::protocol::{Memories, ProtocolOptions};
use crate::runtime::{CholeskyGraph, LevelShape, level_options};
use crate::site::Site;
use crate::storage::{AnsweredStorage, Identity};
use crate::tile::{TileId, TileMap};
use std::path::Path;
use std::sync::Arc;

/// The part of an out-of-core factorisation that depends on the element type.
pub(super) trait Element {
    /// Words in which each finished tile lies on the disk.
    fn payload_words(&self, tiling: &TileMap) -> Box<dyn Fn(TileId) -> usize + Send + Sync>;

    /// The memory needs of tiles; a finished tile takes `payload_words` words.
    fn needs<'n>(&self, tiling: &TileMap, payload_words: &'n dyn Fn(TileId) -> usize) -> TileNeeds<'n>;

    /// Runs until all tiles are finished or an error occurs; the inner error is one of the run. Collective.
    ///
    /// # Errors
    /// The error that kept the run from starting.
    fn run(
        &self,
        call: &DiskCall<'_>,
        tile_file: TileFile,
        clock: &mut Clock,
    ) -> Result<(TileFile, Result<RankReport>)>;

    /// Writes the factor, all of whose tiles are finished. Collective.
    ///
    /// # Errors
    /// The errors of the storage and of the file; the error of a factorisation that did not finish.
    fn write(&self, call: &DiskCall<'_>, path: &Path, tile_file: &TileFile) -> Result<()>;
}

/// Figures of the element type for the report.
pub(super) struct ElementFigures {
    pub element: &'static str,
    pub precision_bits: u32,
    pub working_bits: u32,
    pub kernel: &'static str,
    pub primes: usize,
}

/// A factorisation under way.
pub(super) struct DiskCall<'a> {
    pub site: Site<'a>,
    pub file: Arc<MatrixFile>,
    pub tiling: TileMap,
    pub options: &'a OutOfCoreOptions,
    pub storage: &'a Path,
}

/// The outcome of a run.
#[derive(Default)]
pub(super) struct DiskFactorOutcome {
    rank: RankReport,
    disk: DiskUse,
    factor_seconds: f64,
    store_seconds: f64,
}

/// Refuses a file whose matrix is not square. Collective.
///
/// # Errors
/// [`Error::NotSquare`].
pub(super) fn check_square(site: Site<'_>, file: &MatrixFile) -> Result<()> {
    let refusal = Error::NotSquare { operation: SQUARE, rows: file.rows(), cols: file.cols() };
    site.agree(if file.rows() == file.cols() { Ok(()) } else { Err(refusal) })
}

impl DiskCall<'_> {
    pub fn threads(&self) -> usize {
        self.site.ctx.threads()
    }

    /// The plan. Collective.
    ///
    /// # Errors
    /// The errors of [`DiskNeeds::plan`].
    pub fn plan(&self, element: &impl Element) -> Result<OutOfCorePlan> {
        let payload_words = element.payload_words(&self.tiling);
        let tiles = element.needs(&self.tiling, &payload_words);
        let DiskCall { site, ref file, ref tiling, .. } = *self;
        DiskNeeds { tiling, file, tiles, threads: self.threads(), site }.plan()
    }

    /// The values that identify a directory, common to all element types; an element type may append others.
    pub fn identify(&self, operation: &str, bits: Option<u32>, checksum: u64) -> Identity {
        let identity = Identity::new(operation).with("order", self.tiling.rows);
        let identity = bits.into_iter().fold(identity, |identity, bits| identity.with("precision_bits", bits));
        identity
            .with("matrix_precision_bits", self.file.precision_bits())
            .with("matrix_checksum", format!("{checksum:016x}"))
            .with("tile_rows", self.tiling.tile_size)
    }

    /// The file of tiles, without groups that are damaged; and the number of damaged groups.
    fn open(&self, element: &impl Element, plan: &OutOfCorePlan, identity: &Identity) -> Result<(TileFile, usize)> {
        let directory = rank_directory(self.site, self.storage)?;
        let (objects, damaged) = AnsweredStorage::open(&directory, identity, self.options.caching)?;
        let tile_file =
            TileFile::new(objects, self.file.clone(), &plan.tile_file, element.payload_words(&self.tiling))?;
        Ok((tile_file, damaged))
    }

    /// Factors all tiles that are not finished, and writes the factor. A damaged tile is made again. Collective.
    ///
    /// # Errors
    /// The errors of `element`; the errors of the directory.
    pub fn factor(
        &self,
        element: &impl Element,
        plan: &OutOfCorePlan,
        identity: &Identity,
        path: &Path,
        clock: &mut Clock,
    ) -> Result<DiskFactorOutcome> {
        let (mut made, world) = (DiskFactorOutcome::default(), self.site.world());
        let mut disk = DiskUse::default();
        until_whole(world, &mut disk, |disk| {
            let (tile_file, damaged) = agreed(world, self.open(element, plan, identity))?;
            disk.groups_repaired += damaged;
            disk.tiles_found = disk.tiles_found.max(tile_file.found());
            let start = clock.now();
            let (tile_file, outcome) = element.run(self, tile_file, clock)?;
            let factored = clock.now();
            made.factor_seconds += factored - start;
            let outcome = outcome.and_then(|rank| {
                made.rank = rank;
                element.write(self, path, &tile_file)
            });
            made.store_seconds += clock.now() - factored;
            disk.reused_bytes += tile_file.reused_bytes();
            Ok(tile_file.attempt(outcome))
        })?;
        made.disk = disk;
        Ok(made)
    }

    /// The choices of the protocol. There is a slot for each tile of other ranks, since these tiles lie on the disk.
    fn protocol(&self, shape: &LevelShape) -> ProtocolOptions {
        let slots = self.tiling.grid.useful_slots(self.tiling.tile_rows(), usize::MAX);
        ProtocolOptions { slots, ..level_options(shape, self.threads()) }
    }

    /// Carries out the tasks of `tiles`, under the order of blocks. Collective.
    ///
    /// # Errors
    /// The errors of [`drive::run_tiles`].
    pub fn run_tiles<W: RankTiles>(
        &self,
        ctx: &Context,
        shape: &LevelShape,
        tiles: &W,
        locals: &mut [W::Local],
    ) -> Result<RankReport> {
        let (graph, grid) = (CholeskyGraph::of(&self.tiling), self.tiling.grid);
        let plan = RankPlan {
            grid,
            memories: Memories::apart(),
            graph,
            protocol: self.protocol(shape),
            spans: self.options.spans,
            room: TransferRoom::ANY,
        };
        drive::run_tiles(ctx, self.site.world(), &plan, tiles, locals)
    }

    /// The report of the call, with the work of all ranks together and of each rank. Collective.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn report(
        &self,
        of: ElementFigures,
        plan: OutOfCorePlan,
        mut made: DiskFactorOutcome,
        mut clock: Clock,
        scan_seconds: f64,
    ) -> Result<OutOfCoreReport> {
        let world = self.site.world();
        let mut threads = [self.threads() as u64];
        world.all_reduce(Reduction::Sum, &mut threads)?;
        made.disk.sum(world)?;
        let protocol = self.protocol(&plan.tile_file.shape);
        let ranks = RanksReport {
            grid: self.tiling.grid,
            ranks: world.size(),
            delivery: protocol.delivery,
            termination: protocol.termination,
            policy: protocol.policy,
            slots: protocol.slots,
            shared_tiles: false,
            per_rank: RankSummary::gather(world, &made.rank)?,
        };
        Ok(OutOfCoreReport {
            operation: "cholesky",
            element: of.element,
            order: self.tiling.rows,
            precision_bits: of.precision_bits,
            working_bits: of.working_bits,
            kernel: of.kernel,
            primes: of.primes,
            threads: threads[0] as usize,
            ranks: (world.size() > 1).then_some(ranks),
            plan,
            disk: made.disk,
            seconds: clock.now(),
            scan_seconds,
            factor_seconds: made.factor_seconds,
            store_seconds: made.store_seconds,
            tasks: clock.times,
            spans: std::mem::take(&mut clock.spans),
            rank: made.rank,
        })
    }
}
