//! An out-of-core factorisation for any element type: how memory is divided, the directory, attempts until no tile is
//! damaged, the protocol, the factor as a file, and the report.

use super::{OutOfCoreOptions, OutOfCoreReport};
use crate::comm::{Reduction, agreed};
use crate::context::Context;
use crate::drive::{self, RankPlan, RankReport, RankTiles, TransferRoom};
use crate::error::{Error, Result};
use crate::io::{Block, MatrixFile, MatrixFileShape};
use crate::kernels::tiles::PANEL_ROWS;
use crate::math::float::limbs_for;
use crate::ops::disk::{DiskUse, StoredBlocks, rank_directory, until_whole, write_file};
use crate::ops::factor::problem::SQUARE;
use crate::ops::factor::report::{RankSummary, RanksReport};
use crate::ops::factor::spans::Clock;
use crate::ops::factor::tile_file::{TileFile, TileFilePlan};
use crate::plan::overhead;
use crate::runtime::protocol::{Memories, ProtocolOptions};
use crate::runtime::{
    BlockShape, CholeskyGraph, LevelBytes, LevelSearch, LevelShape, LevelTraffic, MOST_STRIP_TILES, MOST_TRANSFERS,
    Owner, count_level, least_level_bytes, level_options,
};
use crate::site::{Site, Team};
use crate::storage::{AnsweredStorage, Identity, padded_bytes};
use crate::store::{Buffer, IoBuffer};
use crate::tile::{RankGrid, TileId, TileMap};
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;

/// Least number of tile rows of a smaller matrix.
const LEAST_TILE_ROWS: usize = 8;

/// The part of the limit that buffers for reads may take, and that for writes.
const BUFFER_SHARE: u64 = 8;

/// The largest number of requests that are read into buffers at a time.
const MOST_READS: usize = 32;

/// The plan of an out-of-core factorisation.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct OutOfCorePlan {
    /// Number of rows of a tile.
    pub tile_rows: usize,
    /// Number of tile rows of the matrix.
    pub tiles: usize,
    /// Number of tiles that fit in memory.
    pub room_tiles: usize,
    /// Rows and columns of a block, counted in tiles: a block stays in memory while all columns before it are streamed.
    pub block_tiles: (usize, usize),
    /// The largest number of tiles of a block that are computed and written together.
    pub strip_tiles: usize,
    /// Bytes transferred between memory and disk.
    pub traffic: LevelTraffic,
    /// The smallest number of bytes that a factorisation in blocks of this shape can read.
    pub least_read_bytes: u64,
    /// Bytes of memory that the call needs.
    pub planned_bytes: u64,
    #[serde(skip)]
    tile_file: TileFilePlan,
}

/// Words in which each finished tile lies on the disk.
pub(super) type PayloadWords = Box<dyn Fn(TileId) -> usize + Send + Sync>;

/// The part of an out-of-core factorisation that depends on the element type.
pub(super) trait Element {
    /// Rows of a tile of a large matrix.
    const TILE_ROWS: usize;

    /// The largest number of rows of a tile.
    const MOST_TILE_ROWS: usize;

    /// Words in which each finished tile lies on the disk.
    fn payload_words(&self, tiling: &TileMap) -> PayloadWords;

    /// The memory needs of tiles.
    fn needs(&self, tiling: &TileMap) -> TileNeeds;

    /// Reads the matrix, which is checked: the rows that can be tried, and the checksum. Collective.
    ///
    /// # Errors
    /// The errors of the file; the error of an entry that the element type cannot represent.
    fn scan(&mut self, call: &DiskCall<'_>) -> Result<(usize, u64)>;

    /// The values that identify a directory.
    fn identity(&self, call: &DiskCall<'_>, checksum: u64) -> Identity;

    /// Figures for the report.
    fn figures(&self, ctx: &Context) -> ElementFigures;

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
struct DiskFactorOutcome {
    rank: RankReport,
    disk: DiskUse,
    factor_seconds: f64,
    store_seconds: f64,
}

/// The memory needs of the tiles of an element type.
#[derive(Clone, Copy)]
pub(super) struct TileNeeds {
    /// Words of a slot: of a tile before its last task, or one that updates read.
    pub slot_words: usize,
    /// Bytes of a worker: its scratch, and a tile of the factor while it is written.
    pub worker_bytes: u64,
    /// Bytes that all share: tables, and the data of finished tiles other than their words.
    pub shared_bytes: u64,
    /// The largest number of updates of a run on each of its tiles, where there is room for their operands.
    pub most_updates: usize,
}

/// The grid of the ranks that own tiles: the requested one, by default of all ranks, nearly square.
///
/// # Errors
/// [`Error::InvalidArgument`] for a grid of more ranks than there are.
pub(crate) fn grid_of(team: &Team, asked: Option<RankGrid>) -> Result<RankGrid> {
    let grid = asked.unwrap_or_else(|| RankGrid::for_ranks(team.size()));
    grid.check_ranks(team.size())?;
    Ok(grid)
}

/// The tiles of a matrix of `order` rows, by default with [`Element::TILE_ROWS`] rows, or fewer for a smaller matrix. A
/// limit does not change them, so that a run under another limit finds those of an earlier one.
pub(super) fn tiling<E: Element>(order: usize, grid: RankGrid, options: &OutOfCoreOptions) -> TileMap {
    let wanted = options.tile_rows.unwrap_or_else(|| (order / LEAST_TILE_ROWS).min(E::TILE_ROWS));
    let tile_size = wanted.clamp(1, E::MOST_TILE_ROWS).next_multiple_of(PANEL_ROWS);
    TileMap { grid, ..TileMap::symmetric(order, tile_size) }
}

/// The plan for a matrix in these tiles whose entries have `limbs` limbs. Collective.
///
/// # Errors
/// [`Error::MemoryLimit`] with the smallest limit that suffices: room for three tiles.
pub(super) fn plan_tiles(
    site: Site<'_>,
    tiling: TileMap,
    limbs: usize,
    element: &impl Element,
) -> Result<OutOfCorePlan> {
    let payload_words = element.payload_words(&tiling);
    DiskNeeds { site, tiling, limbs, tiles: element.needs(&tiling), payload_words }.plan()
}

/// Bytes of the largest tile as heads and limbs.
pub(super) fn most_entry_bytes(tiling: &TileMap, limbs: usize) -> u64 {
    8 * (tiling.most_entries() * (1 + limbs)) as u64
}

impl<'a> DiskCall<'a> {
    /// A call for a square matrix in a file, in the tiles of [`tiling`]. Collective.
    ///
    /// # Errors
    /// [`Error::NotSquare`]; those of the file; [`Error::InvalidArgument`] for a grid of more ranks than there are.
    pub fn open<E: Element>(
        site: Site<'a>,
        matrix: &Path,
        storage: &'a Path,
        options: &'a OutOfCoreOptions,
    ) -> Result<DiskCall<'a>> {
        let grid = site.agreed(grid_of(site.team, options.grid))?;
        let file = Arc::new(site.agreed(MatrixFile::open(matrix))?);
        let (rows, cols) = (file.rows(), file.cols());
        site.agree(if rows == cols { Ok(()) } else { Err(Error::NotSquare { operation: SQUARE, rows, cols }) })?;
        Ok(DiskCall { site, file, tiling: tiling::<E>(rows, grid, options), options, storage })
    }

    pub fn threads(&self) -> usize {
        self.site.ctx.threads()
    }

    /// The plan. Collective.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`] with the smallest limit that suffices: room for three tiles.
    pub fn plan(&self, element: &impl Element) -> Result<OutOfCorePlan> {
        plan_tiles(self.site, self.tiling, self.file.limbs(), element)
    }

    /// Factors the matrix into the file `path`; `clock` runs since the call began. Collective.
    ///
    /// # Errors
    /// The errors of `element`, of the directory and of the file.
    pub fn run(mut self, mut element: impl Element, path: &Path, mut clock: Clock) -> Result<OutOfCoreReport> {
        // Refused before the file is read.
        let mut plan = self.plan(&element)?;
        let (order, checksum) = element.scan(&self)?;
        let scan_seconds = clock.now();
        if order < self.tiling.rows {
            self.tiling = TileMap { rows: order, cols: order, ..self.tiling };
            plan = self.plan(&element)?;
        }
        let identity = element.identity(&self, checksum);
        let made = self.factor(&element, &plan, &identity, path, &mut clock)?;
        self.report(element.figures(self.site.ctx), plan, made, clock, scan_seconds)
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
    fn open_tiles(
        &self,
        element: &impl Element,
        plan: &OutOfCorePlan,
        identity: &Identity,
    ) -> Result<(TileFile, usize)> {
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
    fn factor(
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
            let (tile_file, damaged) = agreed(world, self.open_tiles(element, plan, identity))?;
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
    fn report(
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

/// The data from which a plan is computed.
struct DiskNeeds<'a> {
    site: Site<'a>,
    tiling: TileMap,
    /// Limbs of an entry of the matrix.
    limbs: usize,
    tiles: TileNeeds,
    payload_words: PayloadWords,
}

impl DiskNeeds<'_> {
    /// This rank, as the owner of its tiles.
    fn owner(&self) -> Owner {
        Owner { grid: self.tiling.grid, number: self.site.team.rank() }
    }

    fn entry_bytes(&self, tile: TileId) -> u64 {
        let (rows, cols) = self.tiling.shape(tile);
        let entries = if tile.row == tile.col { rows * (rows + 1) / 2 } else { rows * cols };
        8 * (entries * (1 + self.limbs)) as u64
    }

    fn finished_bytes(&self, tile: TileId) -> u64 {
        padded_bytes(8 * (self.payload_words)(tile) as u64)
    }

    fn most_finished_bytes(&self) -> u64 {
        let tile = TileId { row: 1.min(self.tiling.tile_rows().saturating_sub(1)), col: 0 };
        self.finished_bytes(tile).max(self.finished_bytes(TileId { row: 0, col: 0 }))
    }

    fn read_bytes(&self) -> u64 {
        self.most_finished_bytes().max(most_entry_bytes(&self.tiling, self.limbs))
    }

    fn fixed_bytes(&self) -> u64 {
        self.site.ctx.threads() as u64 * (self.tiles.worker_bytes + overhead::FILE_THREAD)
            + self.tiles.shared_bytes
            + overhead::DISK_TILE * CholeskyGraph::of(&self.tiling).tile_count() as u64
            + overhead::FILE_ROW * self.tiling.rows as u64
            + overhead::FILE_CALL
    }

    /// The tiles that are received and sent at a time, and the bytes of all their words.
    fn transfers(&self) -> (usize, u64) {
        if self.tiling.grid.size() == 1 {
            return (0, 0);
        }
        // Each has its words both in the form that travels and in the form on the disk.
        let each = IoBuffer::memory_bytes(self.most_finished_bytes()) + self.most_finished_bytes();
        (MOST_TRANSFERS, 2 * MOST_TRANSFERS as u64 * each)
    }

    /// The plan under the context's limit, which is that of the node. Collective.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`] with the smallest limit that suffices: room for three tiles.
    fn plan(&self) -> Result<OutOfCorePlan> {
        let (ctx, team) = (self.site.ctx, self.site.team);
        let (graph, slot_bytes) = (CholeskyGraph::of(&self.tiling), Buffer::bytes_for(self.tiles.slot_words));
        let (transfers, transfer_bytes) = self.transfers();
        let fixed = ctx.memory().total(self.fixed_bytes()) + transfer_bytes;
        let (read_bytes, write_bytes) = (self.read_bytes(), self.most_finished_bytes());
        let buffer = IoBuffer::memory_bytes;
        let least_reads = self.site.ctx.threads().max(2);
        let least_room = LevelShape::SINGLE_TILES.least_room(1);
        let least =
            fixed + least_room as u64 * slot_bytes + least_reads as u64 * buffer(read_bytes) + buffer(write_bytes);
        let node_limit = ctx.memory().limit_bytes().unwrap_or(u64::MAX);
        let limit = node_limit / team.ranks_here();
        let refusal = Error::MemoryLimit { limit_bytes: node_limit, minimum_bytes: self.site.on_node(least) };
        self.site.agree(if limit < least { Err(refusal) } else { Ok(()) })?;
        let fits = |share: u64, each: u64| usize::try_from(share / each.max(1)).unwrap_or(usize::MAX);
        let spare = limit - least;
        let reads = least_reads + fits(spare / BUFFER_SHARE, buffer(read_bytes)).min(MOST_READS);
        let spare = spare - (reads - least_reads) as u64 * buffer(read_bytes);
        let strip = fits((spare / BUFFER_SHARE).saturating_add(buffer(write_bytes)) / 2, write_bytes)
            .clamp(1, MOST_STRIP_TILES);
        let writes =
            if buffer(strip as u64 * write_bytes) * 2 <= spare / BUFFER_SHARE + buffer(write_bytes) { 2 } else { 1 };
        let write_all = writes as u64 * buffer(strip as u64 * write_bytes);
        let spare = spare.saturating_sub(write_all.saturating_sub(buffer(write_bytes)));
        let room = least_room + fits(spare, slot_bytes).min(graph.tile_count() + 4 * graph.tiles + 8);
        let shape = self.agreed_shape(self.best_shape(graph, room, strip))?;
        let tile_file = TileFilePlan {
            tiling: self.tiling,
            shape,
            read_buffers: (reads, read_bytes),
            write_buffers: (writes, strip as u64 * write_bytes),
            rank_buffers: (transfers, write_bytes),
        };
        let planned_bytes = fixed + room as u64 * slot_bytes + reads as u64 * buffer(read_bytes) + write_all;
        let bytes = LevelBytes { entries: &|tile| self.entry_bytes(tile), finished: &|tile| self.finished_bytes(tile) };
        let owner = self.owner();
        let counts = team.rank() < self.tiling.grid.size();
        Ok(OutOfCorePlan {
            tile_rows: self.tiling.tile_size,
            tiles: graph.tiles,
            room_tiles: room,
            block_tiles: (shape.blocks.rows, shape.blocks.cols),
            strip_tiles: shape.strip_tiles,
            traffic: if counts { count_level(graph, owner, shape, bytes) } else { LevelTraffic::default() },
            least_read_bytes: least_level_bytes(graph, owner, shape.blocks, bytes),
            planned_bytes,
            tile_file,
        })
    }

    /// The smallest of the ranks' choices, so that all use the same blocks. Collective.
    fn agreed_shape(&self, own: LevelShape) -> Result<LevelShape> {
        let LevelShape { blocks, strip_tiles, most_updates, room_tiles } = own;
        let mut words = [blocks.rows, blocks.cols, strip_tiles, most_updates].map(|count| count as u64);
        self.site.world().all_reduce(Reduction::Min, &mut words)?;
        let [rows, cols, strip_tiles, most_updates] = words.map(|count| count as usize);
        Ok(LevelShape { blocks: BlockShape { rows, cols }, strip_tiles, most_updates, room_tiles })
    }

    /// The blocks that read the fewest bytes.
    fn best_shape(&self, graph: CholeskyGraph, room_tiles: usize, strip_tiles: usize) -> LevelShape {
        let bytes = LevelBytes { entries: &|tile| self.entry_bytes(tile), finished: &|tile| self.finished_bytes(tile) };
        let (owner, workers, most_updates) = (self.owner(), self.site.ctx.threads(), self.tiles.most_updates);
        LevelSearch { graph, owner, room_tiles, strip_tiles, most_updates, workers, bytes }.best()
    }
}

/// The private memory of one worker.
struct StoreMemory {
    buffer: Option<IoBuffer>,
    /// Heads and limbs of a tile.
    words: Vec<u64>,
}

/// Makes entries of the words of a finished tile: heads and limbs, column by column; those above the diagonal
/// are 0 before.
pub(super) type MakeEntries<'a> = dyn Fn(TileId, &[u64], (&mut [u64], &mut [u64])) -> Result<()> + Sync + 'a;

/// Tiles of the storage, as entries of the factor.
struct FinishedEntries<'a> {
    tiling: &'a TileMap,
    tile_file: &'a TileFile,
    precision_bits: u32,
    make_entries: &'a MakeEntries<'a>,
}

/// Writes the whole factor to `path`, with `precision_bits` bits and zeros above the diagonal. Collective.
///
/// # Errors
/// The errors of `make_entries`; [`crate::Error::Io`], [`crate::Error::Cancelled`].
pub(super) fn write_factor(
    call: &DiskCall<'_>,
    path: &Path,
    tile_file: &TileFile,
    precision_bits: u32,
    make_entries: &MakeEntries<'_>,
) -> Result<()> {
    let finished = FinishedEntries { tiling: &call.tiling, tile_file, precision_bits, make_entries };
    let words = call.tiling.most_entries() * (1 + limbs_for(precision_bits));
    let local = || StoreMemory { buffer: tile_file.take_read_buffer(), words: vec![0; words] };
    let locals = (0..call.threads()).map(|_| local()).filter(|local| local.buffer.is_some()).collect();
    write_file(call.site, path, &finished, locals)
}

impl StoredBlocks for FinishedEntries<'_> {
    type Space = StoreMemory;

    fn shape(&self) -> MatrixFileShape {
        let order = self.tiling.rows;
        MatrixFileShape { rows: order, cols: order, precision_bits: self.precision_bits, symmetric: false }
    }

    fn blocks(&self) -> Box<dyn Iterator<Item = TileId> + Send + '_> {
        Box::new(self.tiling.tiles())
    }

    fn block(&self, tile: TileId) -> Block {
        Block { rows: self.tiling.row_range(tile.row), cols: self.tiling.row_range(tile.col) }
    }

    fn owner(&self, tile: TileId) -> usize {
        self.tiling.grid.owner(tile)
    }

    /// Reads a tile and makes its entries.
    fn read(&self, tile: TileId, local: &mut StoreMemory) -> Result<()> {
        self.tile_file.read_now(tile, &mut local.buffer)?;
        let entries = self.tiling.entries(tile);
        let words = &mut local.words[..entries * (1 + limbs_for(self.precision_bits))];
        if tile.row == tile.col {
            words.fill(0);
        }
        let read = local.buffer.as_ref().expect("a read leaves its buffer");
        (self.make_entries)(tile, self.tile_file.finished(tile, read.words()), words.split_at_mut(entries))
    }

    fn words<'s>(&self, local: &'s mut StoreMemory) -> &'s mut [u64] {
        &mut local.words
    }
}
