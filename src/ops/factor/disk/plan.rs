//! The division of memory in an out-of-core factorisation: slots for tiles, buffers, scratch; and which blocks read the
//! fewest bytes.

use crate::comm::Reduction;
use crate::error::{Error, Result};
use crate::io::MatrixFile;
use crate::kernels::tiles::PANEL_ROWS;
use crate::ops::disk::LARGEST_TILE;
use crate::ops::factor::tile_file::TileFilePlan;
use crate::plan::overhead;
use crate::runtime::{
    BlockShape, CholeskyGraph, LevelBytes, LevelSearch, LevelShape, LevelTraffic, MOST_STRIP_TILES, MOST_TRANSFERS,
    Owner, count_level, least_level_bytes,
};
use crate::site::{Site, Team};
use crate::storage::padded_bytes;
use crate::store::{Buffer, IoBuffer};
use crate::tile::{RankGrid, TileId, TileMap};
use serde::Serialize;

/// Least number of tile rows of a smaller matrix.
const LEAST_TILE_ROWS: usize = 8;

/// The part of the limit that buffers for reads may take, and that for writes.
const BUFFER_SHARE: u64 = 8;

/// Most requests that are read into buffers at a time.
const MOST_READS: usize = 32;

/// The plan of an out-of-core factorisation.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct OutOfCorePlan {
    /// Rows of a tile.
    pub tile_rows: usize,
    /// Number of tile rows of the matrix.
    pub tiles: usize,
    /// Tiles that fit in memory.
    pub room_tiles: usize,
    /// Rows and columns of a block, counted in tiles: a block stays in memory while all columns before it are streamed.
    pub block_tiles: (usize, usize),
    /// The largest number of tiles of a block that are computed and written together.
    pub strip_tiles: usize,
    /// Bytes transferred between memory and disk.
    pub traffic: LevelTraffic,
    /// The smallest number of bytes that blocks of this shape can read.
    pub least_read_bytes: u64,
    /// Bytes of memory that the call needs.
    pub planned_bytes: u64,
    #[serde(skip)]
    pub(super) tile_file: TileFilePlan,
}

/// Rows and columns of tiles: they depend only on the order, so that a run under another limit finds the tiles.
///
/// By default `most`, or fewer for a smaller matrix.
pub(super) fn tiling(order: usize, tile_rows: Option<usize>, most: usize, grid: RankGrid) -> TileMap {
    let wanted = tile_rows.unwrap_or_else(|| (order / LEAST_TILE_ROWS).min(most));
    TileMap { grid, ..TileMap::symmetric(order, wanted.clamp(1, LARGEST_TILE).next_multiple_of(PANEL_ROWS)) }
}

/// The memory needs of the tiles of an element type.
#[derive(Clone, Copy)]
pub(super) struct TileNeeds<'a> {
    /// Words of a slot: of a tile before its last task, or one that updates read.
    pub slot_words: usize,
    /// Words in which a finished tile lies on the disk.
    pub payload_words: &'a dyn Fn(TileId) -> usize,
    /// Bytes of a worker: its scratch, and a tile of the factor while it is written.
    pub worker_bytes: u64,
    /// Bytes that all share: tables, and the data of finished tiles other than their words.
    pub shared_bytes: u64,
    /// Most updates of a run on each of its tiles, where there is room for their operands.
    pub most_updates: usize,
}

/// The inputs of a plan.
pub(super) struct DiskNeeds<'a> {
    pub tiling: &'a TileMap,
    pub file: &'a MatrixFile,
    pub tiles: TileNeeds<'a>,
    pub threads: usize,
    pub site: Site<'a>,
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

/// Bytes of the largest tile as heads and limbs.
pub(super) fn most_entry_bytes(tiling: &TileMap, limbs: usize) -> u64 {
    8 * (tiling.most_entries() * (1 + limbs)) as u64
}

impl DiskNeeds<'_> {
    /// Whose tiles are this rank's.
    fn owner(&self) -> Owner {
        Owner { grid: self.tiling.grid, number: self.site.team.rank() }
    }

    fn entry_bytes(&self, tile: TileId) -> u64 {
        let (rows, cols) = self.tiling.shape(tile);
        let entries = if tile.row == tile.col { rows * (rows + 1) / 2 } else { rows * cols };
        8 * (entries * (1 + self.file.limbs())) as u64
    }

    fn finished_bytes(&self, tile: TileId) -> u64 {
        padded_bytes(8 * (self.tiles.payload_words)(tile) as u64)
    }

    fn most_finished_bytes(&self) -> u64 {
        let tile = TileId { row: 1.min(self.tiling.tile_rows().saturating_sub(1)), col: 0 };
        self.finished_bytes(tile).max(self.finished_bytes(TileId { row: 0, col: 0 }))
    }

    fn read_bytes(&self) -> u64 {
        self.most_finished_bytes().max(most_entry_bytes(self.tiling, self.file.limbs()))
    }

    fn fixed_bytes(&self) -> u64 {
        self.threads as u64 * (self.tiles.worker_bytes + overhead::FILE_THREAD)
            + self.tiles.shared_bytes
            + overhead::DISK_TILE * CholeskyGraph::of(self.tiling).tile_count() as u64
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
    pub fn plan(&self) -> Result<OutOfCorePlan> {
        let (ctx, team) = (self.site.ctx, self.site.team);
        let (graph, slot_bytes) = (CholeskyGraph::of(self.tiling), Buffer::bytes_for(self.tiles.slot_words));
        let (transfers, transfer_bytes) = self.transfers();
        let fixed = ctx.memory().total(self.fixed_bytes()) + transfer_bytes;
        let (read_bytes, write_bytes) = (self.read_bytes(), self.most_finished_bytes());
        let buffer = IoBuffer::memory_bytes;
        let least_reads = self.threads.max(2);
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
            tiling: *self.tiling,
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
        let (owner, workers, most_updates) = (self.owner(), self.threads, self.tiles.most_updates);
        LevelSearch { graph, owner, room_tiles, strip_tiles, most_updates, workers, bytes }.best()
    }
}
