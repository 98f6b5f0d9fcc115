//! The tiles of one rank in a factorisation: own tiles, unfinished or finished, and tiles received from other ranks.
//!
//! One process is a grid of one rank, which owns all tiles. The protocol (`runtime::protocol`) decides the next step,
//! and `drive` runs it here.

use crate::comm::mailbox::Payload;
use crate::context::{Context, WorkerSpace};
use crate::drive::{self, DiskTiles, Meter, RankTiles};
use crate::error::{Error, Result};
use crate::kernels::tiles::{DiagonalData, UpdateTile};
use crate::math::pivot::RowWeight;
use crate::matrix::{Matrix, MatrixView};
use crate::ops::distribution::matrix::DistMatrix;
use crate::ops::factor::node_tiles::NodeTiles;
use crate::ops::factor::plan::units;
use crate::ops::factor::spans::{TaskKind, TaskLog};
use crate::ops::factor::tile_file::{Encoded, FileTiles, TileFile};
use crate::ops::factor::tile_work::{ColumnOfTile, FailedRow, TileWork};
use crate::ops::factor::unpoisoned;
use crate::runtime::protocol::TileRun;
use crate::store::IoBuffer;
use crate::tile::{OwnTiles, RankGrid, TileId};
use rustc_hash::FxHashMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

/// The entries of a tile that is to be factored.
pub(crate) type TileViews<'a> = dyn Fn(TileId) -> Result<MatrixView<'a>> + Sync + 'a;

/// The private memory of one worker.
pub(crate) struct WorkerMemory<'w> {
    pub scratch: &'w mut [u64],
    /// Out of core, if a slot cannot hold the integers of a finished tile: words of a whole tile.
    pub whole_tile: &'w mut [u64],
    /// Out of core: finished tiles of the current run.
    pub encoded: Encoded,
    pub log: TaskLog,
}

impl<'w> WorkerMemory<'w> {
    /// The memory of the workers in `spaces`, each with these numbers of words; with the spans of all tasks where
    /// `spans` are wanted.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn of_workers(
        spaces: &'w mut [WorkerSpace],
        scratch_words: usize,
        whole_tile_words: usize,
        start: Instant,
        spans: bool,
    ) -> Result<Vec<WorkerMemory<'w>>> {
        let local = |(worker, space): (usize, &'w mut WorkerSpace)| {
            let words = space.scratch.words(scratch_words + whole_tile_words)?;
            let (scratch, whole_tile) = words.split_at_mut(scratch_words);
            let log = TaskLog::new(start, worker, spans);
            Ok(WorkerMemory { scratch, whole_tile, encoded: Encoded::default(), log })
        };
        spaces.iter_mut().enumerate().map(local).collect()
    }
}

/// A tile that came.
struct RemoteTile<'w> {
    words: &'w mut [u64],
    weights: Vec<RowWeight>,
    data: Option<Box<dyn DiagonalData>>,
}

/// Received tiles, and room for more.
#[derive(Default)]
struct RemoteTiles<'w> {
    tiles: RwLock<FxHashMap<TileId, Arc<RemoteTile<'w>>>>,
    free: Mutex<Vec<&'w mut [u64]>>,
}

/// Words of an own tile.
enum TileWords<'w> {
    /// They hold no entries of the matrix yet.
    Fresh(&'w mut [u64]),
    Own(&'w mut [u64]),
    /// The tile is finished, and other ranks read it.
    Shown(&'w [u64]),
}

impl Deref for TileWords<'_> {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        match self {
            TileWords::Fresh(words) | TileWords::Own(words) => words,
            TileWords::Shown(words) => words,
        }
    }
}

impl DerefMut for TileWords<'_> {
    fn deref_mut(&mut self) -> &mut [u64] {
        match self {
            TileWords::Fresh(words) | TileWords::Own(words) => words,
            TileWords::Shown(_) => panic!("a tile that others read is written"),
        }
    }
}

impl TileWords<'_> {
    /// The entries of the tile are in them now.
    fn loaded(&mut self) {
        match std::mem::replace(self, TileWords::Shown(&[])) {
            TileWords::Fresh(words) => *self = TileWords::Own(words),
            other => *self = other,
        }
    }
}

/// A finished tile that is read.
enum TileOperand<'t, 'w> {
    Own(RwLockReadGuard<'t, TileWords<'w>>),
    /// A tile of a rank that shares its memory with this one.
    Near(&'w [u64]),
    Remote(Arc<RemoteTile<'w>>),
}

/// Memory of the tiles of one rank.
pub(crate) struct TileMemory<'w> {
    /// Words of the own tiles, in their order.
    pub own: Vec<&'w mut [u64]>,
    /// The window of the node, if it contains these tiles.
    pub node: Option<NodeTiles<'w>>,
    /// Words for tiles of other ranks.
    pub remote: &'w mut [u64],
    /// Words of one of these.
    pub remote_words: usize,
}

/// The tiles of one rank.
pub(crate) struct TileStore<'a, 'w> {
    work: TileWork<'a>,
    entries: &'a TileViews<'a>,
    own: OwnTiles,
    /// The devices of this rank, as a grid over its own tiles.
    devices: RankGrid,
    /// By the numbers of own tiles, or by slots.
    words: Vec<RwLock<TileWords<'w>>>,
    /// Where ranks of the node read each other's tiles.
    node: Option<NodeTiles<'w>>,
    /// For out-of-core tiles.
    tile_file: Option<TileFile>,
    /// Data of finished own tiles on the diagonal, by tile column.
    diagonals: Vec<RwLock<Option<Arc<dyn DiagonalData>>>>,
    /// By tile row: the running sums that the tile finished last in it has left, or the first ones.
    weights: Vec<Mutex<Vec<RowWeight>>>,
    /// Of each own tile that others read, the weights of its rows after it.
    after: Vec<OnceLock<Box<[RowWeight]>>>,
    remote: RemoteTiles<'w>,
    failed: OnceLock<FailedRow>,
    meter: Meter<'a>,
}

impl TileOperand<'_, '_> {
    fn words(&self) -> &[u64] {
        match self {
            TileOperand::Own(words) => words,
            TileOperand::Near(words) => words,
            TileOperand::Remote(tile) => tile.words,
        }
    }
}

impl<'w> RemoteTiles<'w> {
    fn get(&self, tile: TileId) -> Arc<RemoteTile<'w>> {
        unpoisoned(self.tiles.read()).get(&tile).expect("an operand is here before its task").clone()
    }
}

impl<'a, 'w> TileStore<'a, 'w> {
    /// The tiles of `rank` in `memory`, none of them loaded; `weights` are the first ones of all rows.
    pub fn new(
        ctx: &'a Context,
        work: TileWork<'a>,
        rank: usize,
        memory: TileMemory<'w>,
        entries: &'a TileViews<'a>,
        weights: &[RowWeight],
    ) -> TileStore<'a, 'w> {
        let (tiling, tiles) = (work.tiling, work.tiling.tile_rows());
        let own = OwnTiles::new(tiling.grid, tiles, rank);
        let total = own.in_columns(0..tiles).map(|tile| units(tiling, tile, tile.col + 1)).sum();
        let words = memory.own.into_iter().map(|words| RwLock::new(TileWords::Fresh(words))).collect::<Vec<_>>();
        assert!(words.len() == own.count(), "memory for {} of {} tiles", words.len(), own.count());
        let free = memory.remote.chunks_exact_mut(memory.remote_words.max(1)).collect();
        let remote = RemoteTiles { free: Mutex::new(free), ..RemoteTiles::default() };
        let after = (0..own.count()).map(|_| OnceLock::new()).collect();
        let store = TileStore::of_words(work, own, words, weights, Meter::new(ctx, total));
        TileStore { entries, remote, after, node: memory.node, ..store }
    }

    /// Own tiles in these words.
    fn of_words(
        work: TileWork<'a>,
        own: OwnTiles,
        words: Vec<RwLock<TileWords<'w>>>,
        weights: &[RowWeight],
        meter: Meter<'a>,
    ) -> TileStore<'a, 'w> {
        let (tiling, tiles) = (work.tiling, work.tiling.tile_rows());
        TileStore {
            entries: &|_| unreachable!("no entries were given"),
            devices: RankGrid::for_ranks(work.engine.device_count()),
            words,
            node: None,
            tile_file: None,
            diagonals: (0..tiles).map(|_| RwLock::new(None)).collect(),
            weights: (0..tiles).map(|row| Mutex::new(weights[tiling.row_range(row)].to_vec())).collect(),
            after: Vec::new(),
            remote: RemoteTiles::default(),
            failed: OnceLock::new(),
            meter,
            own,
            work,
        }
    }

    /// The tiles of an out-of-core factorisation: `words` are divided into as many slots for tiles as they hold.
    pub fn above_disk(
        ctx: &'a Context,
        work: TileWork<'a>,
        words: &'w mut [u64],
        rank: usize,
        tile_file: TileFile,
        weights: &[RowWeight],
    ) -> TileStore<'a, 'w> {
        let own = OwnTiles::new(work.tiling.grid, work.tiling.tile_rows(), rank);
        let slot_words = words.len() / tile_file.shape.room_tiles.max(1);
        let slots = words.chunks_exact_mut(slot_words.max(1)).map(|words| RwLock::new(TileWords::Own(words)));
        let total = tile_file.units_left(rank);
        let store = TileStore::of_words(work, own, slots.collect(), weights, Meter::new(ctx, total));
        TileStore { tile_file: Some(tile_file), ..store }
    }

    /// The file of the tiles that do not fit in memory.
    pub fn into_tile_file(self) -> Option<TileFile> {
        self.tile_file
    }

    /// The row that ended the factorisation, where this rank found it.
    pub fn failed(&self) -> Option<&FailedRow> {
        self.failed.get()
    }

    /// The weights of the rows of an own tile after it: the current ones at the first call, since no other tile of the
    /// row is finished before this one is known to be.
    fn weights_after(&self, tile: TileId) -> &[RowWeight] {
        let weights = || unpoisoned(self.weights[tile.row].lock()).as_slice().into();
        if tile.row == tile.col { &[] } else { self.after[self.own.index(tile)].get_or_init(weights) }
    }

    fn own(&self, tile: TileId) -> &RwLock<TileWords<'w>> {
        &self.words[self.tile_file.as_ref().map_or_else(|| self.own.index(tile), |tile_file| tile_file.slot(tile))]
    }

    /// Words of an unfinished tile in its place.
    fn tile_words(&self, tile: TileId) -> usize {
        let (engine, shape) = (self.work.engine, self.work.shape(tile));
        if self.tile_file.is_some() { engine.update_words(shape) } else { engine.tile_words(shape) }
    }

    fn operand(&self, tile: TileId) -> TileOperand<'_, 'w> {
        if self.tile_file.is_some() || self.own.contains(tile) {
            return TileOperand::Own(unpoisoned(self.own(tile).read()));
        }
        match self.node.as_ref().and_then(|node| node.words(tile)) {
            Some(words) => TileOperand::Near(words),
            None => TileOperand::Remote(self.remote.get(tile)),
        }
    }

    /// Takes the entries of the tiles in, where no run has done so before.
    fn load(
        &self,
        local: &mut WorkerMemory<'_>,
        run: &TileRun,
        own: &mut [RwLockWriteGuard<'_, TileWords<'_>>],
    ) -> Result<()> {
        let is_fresh = |words: &TileWords<'_>| matches!(words, TileWords::Fresh(_));
        if !own.iter().any(|words| is_fresh(words)) {
            return Ok(());
        }
        for (tile, words) in run.tiles().zip(own).filter(|(_, words)| is_fresh(words)) {
            self.work.load(tile, (self.entries)(tile)?, &mut words[..self.tile_words(tile)], local.scratch);
            words.loaded();
        }
        local.log.add(TaskKind::Load, run.tile);
        Ok(())
    }

    /// SYRK and GEMM.
    fn update(
        &self,
        local: &mut WorkerMemory<'_>,
        run: &TileRun,
        own: &mut [RwLockWriteGuard<'_, TileWords<'_>>],
    ) -> Result<()> {
        let of_row = |row: usize| run.updates.clone().map(|col| self.operand(TileId { row, col })).collect::<Vec<_>>();
        let is_right = |row: usize| row == run.tile.col;
        let left = run.tiles().map(|tile| if is_right(tile.row) { Vec::new() } else { of_row(tile.row) });
        let (left, right) = (left.collect::<Vec<_>>(), of_row(run.tile.col));
        let y = right.iter().map(TileOperand::words).collect::<Vec<_>>();
        let mut tiles = Vec::with_capacity(run.count);
        for ((tile, words), left) in run.tiles().zip(own).zip(&left) {
            let x = if is_right(tile.row) { y.clone() } else { left.iter().map(TileOperand::words).collect() };
            let device = self.devices.owner(self.own.grid().within(tile));
            let words = &mut words[..self.tile_words(tile)];
            tiles.push(UpdateTile { shape: self.work.shape(tile), words, x, device });
        }
        self.work.update(run.tile, &mut tiles, &y, local.scratch)?;
        let kind = if is_right(run.tile.row) && run.count == 1 { TaskKind::Syrk } else { TaskKind::Gemm };
        local.log.add(kind, run.tile);
        Ok(())
    }

    /// Takes over the weights that the tile before this one in its row has left, where that one was received; it was
    /// just read.
    fn inherit(&self, tile: TileId) {
        let before = TileId { col: tile.col - 1, ..tile };
        if let Some(tile_file) = &self.tile_file {
            if let Some(weights) = tile_file.weights(before) {
                *unpoisoned(self.weights[tile.row].lock()) = weights;
            }
        } else if !self.own.contains(before) {
            let mut weights = unpoisoned(self.weights[tile.row].lock());
            match self.node.as_ref().and_then(|node| node.words(before)) {
                Some(words) => *weights = self.work.read_weights(before, &words[self.tile_words(before)..]),
                None => weights.clone_from(&self.remote.get(before).weights),
            }
        }
    }

    /// POTRF or TRSM.
    fn finish(&self, local: &mut WorkerMemory<'_>, tile: TileId, words: &mut [u64]) -> Result<()> {
        let mut weights = unpoisoned(self.weights[tile.row].lock());
        if tile.row == tile.col {
            let factored = self.work.factor(tile, words, &mut weights, local.scratch);
            local.log.add(TaskKind::Potrf, tile);
            return match factored {
                Ok(data) => {
                    *unpoisoned(self.diagonals[tile.col].write()) = Some(data.into());
                    Ok(())
                }
                Err(failed) => {
                    let _ = self.failed.set(failed);
                    Err(Error::Cancelled) // ends the others; the caller says what happened
                }
            };
        }
        let above = self.operand(TileId { row: tile.col, col: tile.col });
        let own = unpoisoned(self.diagonals[tile.col].read()).clone();
        let data = match &above {
            TileOperand::Own(_) => own.as_deref(),
            TileOperand::Near(words) => self.node.as_ref().map(|node| node.diagonal(tile.col, &self.work, words)),
            TileOperand::Remote(remote) => remote.data.as_deref(),
        };
        let data = data.expect("the diagonal tile is finished");
        self.work.solve(tile, words, &mut weights, above.words(), data, local.scratch);
        local.log.add(TaskKind::Trsm, tile);
        Ok(())
    }

    /// Lets the ranks of the node read a finished tile with the weights of its rows after it, in a common window.
    fn show(&self, tile: TileId, own: &mut TileWords<'w>) {
        let Some(node) = &self.node else { return };
        if let TileWords::Own(words) = std::mem::replace(own, TileWords::Shown(&[])) {
            let weights = unpoisoned(self.weights[tile.row].lock());
            self.work.pack_weights(tile, &weights, &mut words[self.tile_words(tile)..]);
            *own = TileWords::Shown(node.show(self.own.index(tile), words));
        }
    }

    /// Rounds the rows of the factor into `factor`, which has as many rows as the matrix; all tiles are own ones.
    ///
    /// # Errors
    /// [`Error::ExponentRange`], with the place in the matrix; [`Error::Cancelled`].
    pub fn store_whole(&self, factor: &mut Matrix, locals: &mut [WorkerMemory<'_>]) -> Result<()> {
        let (order, precision_bits, width) = (factor.rows(), factor.precision_bits(), factor.limbs_per_element());
        if order == 0 {
            return Ok(());
        }
        let tiles = self.words.iter().map(|tile| unpoisoned(tile.read())).collect::<Vec<_>>();
        let (heads, limbs) = factor.parts_mut();
        let mut columns = heads.chunks_exact_mut(order).zip(limbs.chunks_exact_mut(order * width)).enumerate();
        let tiling = self.work.tiling;
        locals[0].log.begin();
        drive::parallel_for(
            locals,
            |_| columns.next(),
            |local, (col, (heads, limbs))| {
                let tile_col = col / tiling.tile_size;
                for tile_row in tile_col..order.div_ceil(tiling.tile_size) {
                    let tile = TileId { row: tile_row, col: tile_col };
                    let rows = tiling.row_range(tile_row).start..tiling.row_range(tile_row).end.min(order);
                    let column = ColumnOfTile {
                        col: col - tiling.col_range(tile_col).start,
                        heads: &mut heads[rows.clone()],
                        limbs: &mut limbs[rows.start * width..rows.end * width],
                        precision_bits,
                    };
                    self.work.store_column(tile, &tiles[self.own.index(tile)], column, local.scratch)?;
                }
                // Cancellation is checked once for each tile column.
                if col % tiling.tile_size == 0 { self.meter.add("unscale", 0) } else { Ok(()) }
            },
        )?;
        locals[0].log.add(TaskKind::Store, TileId { row: 0, col: 0 });
        Ok(())
    }

    /// Rounds the finished own tiles into those of `factor`, as many rows as each has there.
    ///
    /// # Errors
    /// [`Error::ExponentRange`], with the place in the whole matrix; [`Error::Cancelled`].
    pub fn store_tiles(&self, ctx: &Context, factor: &mut DistMatrix, locals: &mut [WorkerMemory<'_>]) -> Result<()> {
        let tile_rows = self.work.tiling.tile_rows();
        let mut tiles = factor.tiles_mut().iter_mut().filter(|(tile, _)| tile.row < tile_rows);
        let work = |local: &mut WorkerMemory<'_>, (tile, matrix): &mut (TileId, Matrix)| {
            let tile = *tile;
            self.work.store(tile, &unpoisoned(self.own(tile).read()), matrix, local.scratch)?;
            self.meter.add("unscale", 0)
        };
        ctx.install(|| drive::parallel_for(locals, |_| tiles.next(), work))
    }
}

impl<'w> RankTiles for TileStore<'_, 'w> {
    type Local = WorkerMemory<'w>;

    const UNPACKS: bool = true;

    fn run(&self, local: &mut WorkerMemory<'w>, run: &TileRun) -> Result<()> {
        let mut own = run.tiles().map(|tile| unpoisoned(self.own(tile).write())).collect::<Vec<_>>();
        local.log.begin();
        if self.tile_file.is_none() {
            self.load(local, run, &mut own)?;
        }
        if !run.updates.is_empty() {
            if let Some(tile_file) = &self.tile_file {
                tile_file.count_use(run);
            }
            self.update(local, run, &mut own)?;
        }
        for (tile, mut words) in run.tiles().zip(own) {
            if !run.updates.is_empty() && run.updates.end == tile.col {
                self.inherit(tile);
            }
            // The guard of a tile on the diagonal ends here: the tiles below read it.
            if run.finish {
                let own = &mut words[..self.tile_words(tile)];
                match &self.tile_file {
                    Some(tile_file) => self.finish_above_disk(local, tile, own, tile_file)?,
                    None => self.finish(local, tile, own)?,
                }
                self.show(tile, &mut words);
            }
        }
        self.meter.add("factor", run.tiles().map(|tile| units(self.work.tiling, tile, run.tasks_each())).sum())
    }

    fn pack(&self, local: &mut WorkerMemory<'w>, tile: TileId) -> Result<Payload> {
        let mut payload = vec![0; self.payload_words(tile)];
        let weights = self.weights_after(tile);
        let words = unpoisoned(self.own(tile).read());
        self.work.pack(tile, &words, weights, &mut payload, local.scratch);
        Ok(Arc::new(payload))
    }

    fn pack_later(&self, tile: TileId) {
        self.weights_after(tile);
    }

    fn payload_words(&self, tile: TileId) -> usize {
        self.work.payload_words(tile)
    }

    fn unpack(&self, local: &mut WorkerMemory<'w>, tile: TileId, body: &Payload) -> Result<()> {
        let slot = unpoisoned(self.remote.free.lock()).pop().expect("a tile comes only where a slot is free");
        let words = &mut slot[..self.work.operand_words(tile)];
        let data = self.work.unpack(tile, body, words, local.scratch);
        let weights = self.work.unpack_weights(tile, body);
        let remote = Arc::new(RemoteTile { words: slot, weights, data });
        unpoisoned(self.remote.tiles.write()).insert(tile, remote);
        Ok(())
    }

    fn disk(&self) -> Option<&dyn DiskTiles<WorkerMemory<'w>>> {
        self.tile_file.as_ref().map(|_| self as _)
    }

    fn release(&self, tile: TileId) {
        let gone = unpoisoned(self.remote.tiles.write()).remove(&tile);
        // Its readers are done, so this is the last handle.
        if let Some(remote) = gone.and_then(Arc::into_inner) {
            unpoisoned(self.remote.free.lock()).push(remote.words);
        }
    }
}

// Tiles out of core: their conversion when they are read, and their words on the disk.

impl<'w> TileStore<'_, 'w> {
    /// POTRF or TRSM of an out-of-core tile, and its bytes for the disk: only here are its integers available.
    fn finish_above_disk(
        &self,
        local: &mut WorkerMemory<'w>,
        tile: TileId,
        words: &mut [u64],
        tile_file: &TileFile,
    ) -> Result<()> {
        let whole_words = self.work.engine.tile_words(self.work.shape(tile));
        if whole_words <= words.len() {
            self.finish(local, tile, words)?;
            return self.encode_tile(local, tile, words, tile_file);
        }
        let whole = std::mem::take(&mut local.whole_tile);
        let (tile_words, _) = whole.split_at_mut(whole_words);
        tile_words[..words.len()].copy_from_slice(words);
        let mut finished = self.finish(local, tile, tile_words);
        if finished.is_ok() {
            words.copy_from_slice(&tile_words[..words.len()]);
            finished = self.encode_tile(local, tile, tile_words, tile_file);
        }
        local.whole_tile = whole;
        finished
    }

    fn encode_tile(
        &self,
        local: &mut WorkerMemory<'w>,
        tile: TileId,
        words: &[u64],
        tile_file: &TileFile,
    ) -> Result<()> {
        let weights = unpoisoned(self.weights[tile.row].lock());
        let WorkerMemory { encoded, scratch, .. } = local;
        tile_file.encode(encoded, tile, |payload| self.work.pack(tile, words, &weights, payload, scratch))
    }
}

impl<'w> FileTiles<WorkerMemory<'w>> for TileStore<'_, 'w> {
    fn tile_file(&self) -> &TileFile {
        self.tile_file.as_ref().expect("the tiles are above a disk")
    }

    fn take_in(&self, local: &mut WorkerMemory<'w>, tile: TileId, read: &IoBuffer) -> Result<()> {
        let tile_file = self.tile_file();
        let mut words = unpoisoned(self.own(tile).write());
        local.log.begin();
        if tile_file.is_published(tile) {
            let payload = tile_file.finished(tile, read.words());
            let words = &mut words[..self.work.operand_words(tile)];
            let data = self.work.unpack(tile, payload, words, local.scratch);
            if let Some(data) = data {
                *unpoisoned(self.diagonals[tile.col].write()) = Some(data.into());
            }
            tile_file.keep_weights(tile, self.work.unpack_weights(tile, payload));
        } else {
            let words = &mut words[..self.tile_words(tile)];
            self.work.load(tile, tile_file.entries(tile, read.words())?, words, local.scratch);
        }
        local.log.add(TaskKind::Load, tile);
        Ok(())
    }

    fn encoded<'l>(local: &'l mut WorkerMemory<'w>) -> &'l mut Encoded {
        &mut local.encoded
    }

    fn forget(&self, tile: TileId) {
        self.tile_file().forget_weights(tile);
        if tile.row == tile.col {
            *unpoisoned(self.diagonals[tile.col].write()) = None;
        }
    }

    fn wait(&self) -> Result<()> {
        self.meter.add("factor", 0)
    }
}
