//! The tiles of a factorisation that do not fit in memory: entries in the file of the matrix, finished tiles in a
//! storage directory. Reads and writes begun here are answered by events. Tiles enter and leave slots of the memory.
//!
//! A finished tile is an object of the storage, the tiles that one run finished are a group. Buffers are made once:
//! a writer waits for a free one, a read waits in the queue. Independent of: the contents of tiles.

use crate::context::DiskProgress;
use crate::drive::{DiskEvent, DiskTiles};
use crate::error::{Error, Result};
use crate::io::{Block, MatrixFile};
use crate::math::pivot::RowWeight;
use crate::matrix::MatrixView;
use crate::ops::disk::{Attempt, disk_progress};
use crate::ops::factor::plan::units;
use crate::ops::factor::unpoisoned;
use crate::runtime::LevelShape;
use crate::runtime::protocol::TileRun;
use crate::storage::{
    AnsweredStorage, Completion, ExternalSource, FetchRequest, GroupName, NewObject, ObjectName, Priority,
    PublishRequest, ReadRequest, padded_bytes,
};
use crate::store::IoBuffer;
use crate::tile::{OwnTiles, TileId, TileMap};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// The bytes used without a read.
fn reused([used, read]: &[AtomicU64; 2]) -> u64 {
    used.load(Ordering::Relaxed).saturating_sub(read.load(Ordering::Relaxed))
}

/// Buffers that tiles are read into, and the tiles that wait for one.
#[derive(Default)]
struct Reads {
    free: Vec<IoBuffer>,
    waiting: VecDeque<TileId>,
}

/// Buffers that tiles are written from.
#[derive(Default)]
struct Writes {
    free: Vec<IoBuffer>,
    under_way: FxHashMap<u64, (Vec<TileId>, Arc<IoBuffer>)>,
    closed: bool,
}

/// A tile's part of the matrix.
struct TileEntries {
    file: Arc<MatrixFile>,
    block: Block,
}

impl ExternalSource for TileEntries {
    fn read(&self, buffer: &mut IoBuffer) -> Result<u64> {
        let words = self.file.block_words(&self.block);
        let bytes = self.file.read_block(&self.block, &mut buffer.words_mut()[..words])?;
        self.file.forget_block(&self.block);
        Ok(bytes)
    }
}

/// The division of memory out of core.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileFilePlan {
    /// The tiles.
    pub tiling: TileMap,
    /// Slots and blocks.
    pub shape: LevelShape,
    /// Buffers to read into, and the bytes of each.
    pub read_buffers: (usize, u64),
    /// Buffers to write from, and the bytes of each.
    pub write_buffers: (usize, u64),
    /// Buffers for tiles of other ranks, as many again for tiles that others get, and the bytes of each.
    pub rank_buffers: (usize, u64),
}

/// Finished tiles of a run under way, ready to be written, and the words that they take.
#[derive(Default)]
pub(crate) struct Encoded(Option<(IoBuffer, usize)>);

impl Encoded {
    /// All of them; the run has finished tiles.
    pub fn take(&mut self) -> IoBuffer {
        self.0.take().expect("the run has finished tiles").0
    }
}

/// The disk below the tiles.
pub(crate) struct TileFile {
    pub objects: AnsweredStorage,
    pub shape: LevelShape,
    file: Arc<MatrixFile>,
    tiling: TileMap,
    /// The slots of the tiles in memory.
    slots: Slots,
    /// Words in which each tile travels.
    payload_words: Box<dyn Fn(TileId) -> usize + Send + Sync>,
    /// Tiles that were finished before this run.
    before: FxHashSet<TileId>,
    /// Tiles that lie in the storage now.
    published: Mutex<FxHashSet<TileId>>,
    reads: Mutex<Reads>,
    writes: Mutex<Writes>,
    written: Condvar,
    /// The largest number of tiles that are received from other ranks at a time, and that are in transit to others.
    transfers: usize,
    /// Buffers for arrived tiles, and for tiles that are sent to others.
    keeps: Mutex<Vec<IoBuffer>>,
    sends: Mutex<Vec<IoBuffer>>,
    /// Bytes of finished tiles that tasks have used, and bytes read from the disk for them.
    used: Arc<[AtomicU64; 2]>,
    /// An object that was found damaged.
    damaged: Mutex<Option<String>>,
    /// Running sums after tiles in memory, where these came from the storage.
    weights: Mutex<FxHashMap<TileId, Vec<RowWeight>>>,
}

/// The name of a finished tile.
fn object_name(tile: TileId) -> ObjectName {
    ObjectName::new(&format!("tile {} {}", tile.row, tile.col)).expect("a short name")
}

/// The tile of a name.
fn tile_of(name: &ObjectName) -> Option<TileId> {
    let (row, col) = name.as_str().strip_prefix("tile ")?.split_once(' ')?;
    Some(TileId { row: row.parse().ok()?, col: col.parse().ok()? })
}

/// An operation on a tile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TileAccess {
    /// It is read for tasks.
    Read,
    /// It was finished here, and is written.
    Write,
    /// It is read for other ranks.
    ReadToSend,
    /// It came from another rank, and is written.
    Keep,
}

impl TileAccess {
    const ALL: [TileAccess; 4] = [TileAccess::Read, TileAccess::Write, TileAccess::ReadToSend, TileAccess::Keep];
}

/// The tag of a request: the tile and the operation.
fn tag(tile: TileId, work: TileAccess) -> u64 {
    (tile.row as u64) << 33 | (tile.col as u64) << 2 | work as u64
}

/// The tile and the operation of a tag.
fn of_tag(tag: u64) -> (TileId, TileAccess) {
    let tile = TileId { row: (tag >> 33) as usize, col: (tag >> 2 & 0x7fff_ffff) as usize };
    (tile, TileAccess::ALL[(tag & 3) as usize])
}

impl TileFile {
    /// Over an open storage, with the buffers of `plan`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn new(
        objects: AnsweredStorage,
        file: Arc<MatrixFile>,
        plan: &TileFilePlan,
        payload_words: impl Fn(TileId) -> usize + Send + Sync + 'static,
    ) -> Result<TileFile> {
        let before =
            objects.storage.objects().iter().filter_map(|object| tile_of(&object.name)).collect::<FxHashSet<_>>();
        let buffers = |(count, bytes): (usize, u64)| {
            (0..count).map(|_| IoBuffer::new(bytes as usize)).collect::<Result<Vec<_>>>()
        };
        let reads = Reads { free: buffers(plan.read_buffers)?, waiting: VecDeque::new() };
        let writes = Writes { free: buffers(plan.write_buffers)?, ..Writes::default() };
        Ok(TileFile {
            objects,
            shape: plan.shape,
            file,
            tiling: plan.tiling,
            slots: Slots::new(plan.tiling.tile_rows(), plan.shape.room_tiles),
            payload_words: Box::new(payload_words),
            published: Mutex::new(before.clone()),
            before,
            reads: Mutex::new(reads),
            writes: Mutex::new(writes),
            written: Condvar::new(),
            transfers: plan.rank_buffers.0,
            keeps: Mutex::new(buffers(plan.rank_buffers)?),
            sends: Mutex::new(buffers(plan.rank_buffers)?),
            used: Arc::default(),
            damaged: Mutex::new(None),
            weights: Mutex::new(FxHashMap::default()),
        })
    }

    /// Tiles that were finished before this run.
    pub fn found(&self) -> usize {
        self.before.len()
    }

    /// Whether a tile was finished before this run.
    pub fn was_finished(&self, tile: TileId) -> bool {
        self.before.contains(&tile)
    }

    /// Units of work on the tiles of a rank that were not finished.
    pub fn units_left(&self, rank: usize) -> u64 {
        let (tiling, tiles) = (&self.tiling, self.tiling.tile_rows());
        let own = OwnTiles::new(tiling.grid, tiles, rank);
        let left = own.in_columns(0..tiles).filter(|&tile| !self.was_finished(tile));
        left.map(|tile| units(tiling, tile, tile.col + 1)).sum()
    }

    /// Whether a tile lies in the storage.
    pub fn is_published(&self, tile: TileId) -> bool {
        unpoisoned(self.published.lock()).contains(&tile)
    }

    /// The slot of a tile that has one.
    pub fn slot(&self, tile: TileId) -> usize {
        self.slots.of(tile)
    }

    /// Finds a slot for a tile and begins to read it, or lets it wait for a buffer.
    fn fetch(&self, tile: TileId) -> Result<()> {
        self.slots.take(tile);
        let mut reads = unpoisoned(self.reads.lock());
        match reads.free.pop() {
            Some(buffer) => {
                drop(reads);
                self.begin_read(tile, buffer)
            }
            None => {
                reads.waiting.push_back(tile);
                Ok(())
            }
        }
    }

    fn begin_read(&self, tile: TileId, buffer: IoBuffer) -> Result<()> {
        let (tag, priority) = (tag(tile, TileAccess::Read), Priority::default());
        if self.is_published(tile) {
            self.used[1].fetch_add(8 * (self.payload_words)(tile) as u64, Ordering::Relaxed);
            return self.objects.storage.read(ReadRequest { objects: vec![object_name(tile)], buffer, tag, priority });
        }
        let source = Arc::new(TileEntries { file: self.file.clone(), block: self.block(tile) });
        self.objects.storage.fetch(FetchRequest { source, buffer, tag, priority })
    }

    fn block(&self, tile: TileId) -> Block {
        Block { rows: self.tiling.row_range(tile.row), cols: self.tiling.row_range(tile.col) }
    }

    /// The words of a finished tile that was read.
    pub fn finished<'b>(&self, tile: TileId, words: &'b [u64]) -> &'b [u64] {
        &words[..(self.payload_words)(tile)]
    }

    /// Counts the finished tiles that the updates of a run read.
    pub fn count_use(&self, run: &TileRun) {
        let tiles = run.updates.clone().flat_map(|col| run.operand_rows().map(move |row| TileId { row, col }));
        let bytes = tiles.map(|tile| 8 * (self.payload_words)(tile) as u64).sum::<u64>();
        self.used[0].fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes of finished tiles that tasks have read and that were still in memory.
    pub fn reused_bytes(&self) -> u64 {
        reused(&self.used)
    }

    /// The progress of the disk at the time of each call, while this object lives.
    pub fn progress(&self) -> impl Fn() -> Option<DiskProgress> + Send + Sync + use<> {
        let (storage, used) = (Arc::downgrade(&self.objects.storage), self.used.clone());
        move || Some(disk_progress(&*storage.upgrade()?, 0, reused(&used)))
    }

    /// The entries of a tile that were read.
    pub fn entries<'b>(&self, tile: TileId, words: &'b [u64]) -> Result<MatrixView<'b>> {
        let (rows, cols) = self.tiling.shape(tile);
        let (heads, rest) = words.split_at(rows * cols);
        let limbs = &rest[..rows * cols * self.file.limbs()];
        MatrixView::from_parts((heads, limbs), (rows, cols), rows, self.file.precision_bits())
    }

    /// Takes back a buffer for reads: the next tile in the queue gets it.
    fn give_back(&self, buffer: IoBuffer) -> Result<()> {
        let mut reads = unpoisoned(self.reads.lock());
        match reads.waiting.pop_front() {
            Some(tile) => {
                drop(reads);
                self.begin_read(tile, buffer)
            }
            None => {
                reads.free.push(buffer);
                Ok(())
            }
        }
    }

    /// Waits for a buffer to write from.
    ///
    /// # Errors
    /// [`Error::Cancelled`] once the run has ended.
    fn write_buffer(&self) -> Result<IoBuffer> {
        let mut writes = unpoisoned(self.writes.lock());
        loop {
            if writes.closed {
                return Err(Error::Cancelled);
            }
            if let Some(buffer) = writes.free.pop() {
                return Ok(buffer);
            }
            writes = unpoisoned(self.written.wait(writes));
        }
    }

    /// Words of a finished tile in a buffer: whole blocks.
    fn object_words(&self, tile: TileId) -> usize {
        padded_bytes(8 * (self.payload_words)(tile) as u64) as usize / 8
    }

    /// Lets `fill` write the words of a finished tile after the tiles that the same run has finished.
    ///
    /// # Errors
    /// As [`TileFile::write_buffer`].
    pub fn encode(&self, encoded: &mut Encoded, tile: TileId, fill: impl FnOnce(&mut [u64])) -> Result<()> {
        let (mut bytes, start) = match encoded.0.take() {
            Some(begun) => begun,
            None => (self.write_buffer()?, 0),
        };
        fill(&mut bytes.words_mut()[start..][..(self.payload_words)(tile)]);
        encoded.0 = Some((bytes, start + self.object_words(tile)));
        Ok(())
    }

    /// The run that has finished these tiles has failed: another one may wait for the buffer.
    fn abandon(&self, encoded: &mut Encoded) {
        if let Some((buffer, _)) = encoded.0.take() {
            unpoisoned(self.writes.lock()).free.push(buffer);
            self.written.notify_one();
        }
    }

    /// Begins to write finished tiles, which lie one after another in a buffer.
    fn publish(&self, tiles: Vec<TileId>, buffer: IoBuffer) -> Result<()> {
        self.begin_write(tiles, buffer, TileAccess::Write)
    }

    /// The largest numbers of tiles that are received from other ranks at a time, and that are in transit to others.
    fn transfers(&self) -> (usize, usize) {
        (self.transfers, self.transfers)
    }

    /// Begins to write a tile that came from another rank.
    fn keep(&self, tile: TileId, words: &[u64]) -> Result<()> {
        let mut buffer = unpoisoned(self.keeps.lock()).pop().expect("no more come than there are buffers");
        buffer.words_mut()[..words.len()].copy_from_slice(words);
        self.begin_write(vec![tile], buffer, TileAccess::Keep)
    }

    /// Begins to read a tile that other ranks get.
    fn fetch_to_send(&self, tile: TileId) -> Result<()> {
        let buffer = unpoisoned(self.sends.lock()).pop().expect("no more are read than there are buffers");
        let (objects, tag, priority) =
            (vec![object_name(tile)], tag(tile, TileAccess::ReadToSend), Priority::default());
        self.objects.storage.read(ReadRequest { objects, buffer, tag, priority })
    }

    fn begin_write(&self, tiles: Vec<TileId>, buffer: IoBuffer, work: TileAccess) -> Result<()> {
        let (buffer, mut start, mut objects) = (Arc::new(buffer), 0, Vec::with_capacity(tiles.len()));
        for &tile in &tiles {
            let bytes = 8 * (self.payload_words)(tile) as u64;
            objects.push(NewObject { name: object_name(tile), buffer: buffer.clone(), start, bytes });
            start += 8 * self.object_words(tile);
        }
        let first = tiles[0];
        let group = GroupName::new(&format!("tiles-{}-{}", first.col, first.row)).expect("a short name");
        let tag = tag(first, work);
        unpoisoned(self.writes.lock()).under_way.insert(tag, (tiles, buffer));
        self.objects.storage.publish(PublishRequest { group, objects, tag, priority: Priority::default() })
    }

    /// Waits for the next event of the disk; `None` after [`TileFile::close`].
    /// While nothing happens, `quiet` is called every second; its error is an event.
    fn next_event(&self, quiet: impl Fn() -> Result<()>) -> Option<DiskEvent> {
        let Completion { tag, result, buffer, .. } = match self.objects.answers.wait(quiet) {
            Ok(answer) => answer?,
            Err(error) => return Some(DiskEvent::Failed(error)),
        };
        let (tile, work) = of_tag(tag);
        if matches!(work, TileAccess::Write | TileAccess::Keep) {
            let tiles = self.has_written(tag, work, result.is_ok());
            return Some(result.map_or_else(DiskEvent::Failed, |()| DiskEvent::Written(tiles)));
        }
        let buffer = buffer.expect("a read has a buffer");
        Some(match (result, work) {
            (Err(error), _) => {
                self.note(&error);
                DiskEvent::Failed(error)
            }
            (Ok(()), TileAccess::Read) => DiskEvent::Read(tile, buffer),
            (Ok(()), _) => {
                let words = Arc::new(buffer.words()[..(self.payload_words)(tile)].to_vec());
                unpoisoned(self.sends.lock()).push(buffer);
                DiskEvent::ReadToSend(tile, words)
            }
        })
    }

    /// The tiles of a write that has ended; its buffer is free.
    fn has_written(&self, tag: u64, work: TileAccess, is_whole: bool) -> Vec<TileId> {
        let mut writes = unpoisoned(self.writes.lock());
        let (tiles, bytes) = writes.under_way.remove(&tag).expect("it was begun");
        let buffer = Arc::into_inner(bytes);
        match work {
            TileAccess::Keep => unpoisoned(self.keeps.lock()).extend(buffer),
            _ => writes.free.extend(buffer),
        }
        drop(writes);
        self.written.notify_one();
        if is_whole {
            unpoisoned(self.published.lock()).extend(&tiles);
        }
        tiles
    }

    /// Notes the damaged object, if damage ends the run.
    fn note(&self, error: &Error) {
        if let Some(object) = Attempt::damage(error) {
            *unpoisoned(self.damaged.lock()) = Some(object);
        }
    }

    /// The result of an attempt that ended with `outcome`.
    pub fn attempt(self, outcome: Result<()>) -> Attempt {
        let damaged = unpoisoned(self.damaged.into_inner());
        Attempt { objects: self.objects, damaged, outcome }
    }

    /// A buffer for reading. After the end of the run each worker can take one.
    pub fn take_read_buffer(&self) -> Option<IoBuffer> {
        unpoisoned(self.reads.lock()).free.pop()
    }

    /// Reads a finished tile into a buffer, which stays, and waits for it.
    ///
    /// # Errors
    /// The errors of the storage.
    pub fn read_now(&self, tile: TileId, buffer: &mut Option<IoBuffer>) -> Result<()> {
        let read = self.objects.read_now(object_name(tile), buffer, tag(tile, TileAccess::Read));
        read.inspect_err(|error| self.note(error))
    }

    /// Ends the events.
    fn close(&self) {
        self.objects.answers.close();
        unpoisoned(self.writes.lock()).closed = true;
        self.written.notify_all();
    }

    /// The running sums that a tile in memory has left, where it came from the storage.
    pub fn weights(&self, tile: TileId) -> Option<Vec<RowWeight>> {
        unpoisoned(self.weights.lock()).get(&tile).cloned()
    }

    /// Keeps them while the tile is in memory.
    pub fn keep_weights(&self, tile: TileId, weights: Vec<RowWeight>) {
        unpoisoned(self.weights.lock()).insert(tile, weights);
    }

    /// The tile leaves.
    pub fn forget_weights(&self, tile: TileId) {
        unpoisoned(self.weights.lock()).remove(&tile);
    }
}

/// The number of a tile of the lower triangle among all of them, row by row.
fn number(tile: TileId) -> usize {
    tile.row * (tile.row + 1) / 2 + tile.col
}

/// The slots of a memory, and the tiles in them.
struct Slots {
    /// By [`number`].
    of: Vec<AtomicUsize>,
    free: Mutex<Vec<usize>>,
}

impl Slots {
    /// `slots` free slots for the lower triangle of a matrix of `tile_rows` rows of tiles.
    fn new(tile_rows: usize, slots: usize) -> Slots {
        let of = (0..tile_rows * (tile_rows + 1) / 2).map(|_| AtomicUsize::new(usize::MAX)).collect();
        Slots { of, free: Mutex::new((0..slots).collect()) }
    }

    /// The slot of a tile that has one.
    fn of(&self, tile: TileId) -> usize {
        self.of[number(tile)].load(Ordering::Acquire)
    }

    /// Finds a slot for a tile.
    fn take(&self, tile: TileId) {
        let slot = unpoisoned(self.free.lock()).pop();
        self.of[number(tile)].store(slot.expect("the level keeps to its limit"), Ordering::Release);
    }

    /// A tile leaves its slot.
    fn give_back(&self, tile: TileId) {
        let slot = self.of[number(tile)].swap(usize::MAX, Ordering::AcqRel);
        unpoisoned(self.free.lock()).push(slot);
    }
}

/// The differences between element types out of core; `L` is the private memory of a worker.
pub(super) trait FileTiles<L>: Sync {
    /// The file of the tiles that do not fit in memory.
    fn tile_file(&self) -> &TileFile;

    /// Converts the entries or words read for a tile to the form that tasks use, in its slot.
    ///
    /// # Errors
    /// Any error that ends the factorisation.
    fn take_in(&self, local: &mut L, tile: TileId, read: &IoBuffer) -> Result<()>;

    /// The finished tiles of the run that the worker has under way.
    fn encoded(local: &mut L) -> &mut Encoded;

    /// The tile leaves its slot: the data kept in addition to its words may be dropped.
    fn forget(&self, _tile: TileId) {}

    /// Reports that no event happens.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    fn wait(&self) -> Result<()>;
}

impl<L, T: FileTiles<L>> DiskTiles<L> for T {
    fn shape(&self) -> LevelShape {
        self.tile_file().shape
    }

    fn was_finished(&self, tile: TileId) -> bool {
        self.tile_file().was_finished(tile)
    }

    fn fetch(&self, tile: TileId) -> Result<()> {
        self.tile_file().fetch(tile)
    }

    fn place(&self, local: &mut L, tile: TileId, read: IoBuffer) -> Result<()> {
        self.take_in(local, tile, &read)?;
        self.tile_file().give_back(read)
    }

    fn encode(&self, local: &mut L) -> Result<IoBuffer> {
        Ok(T::encoded(local).take())
    }

    fn abandon(&self, local: &mut L) {
        self.tile_file().abandon(T::encoded(local));
    }

    fn write(&self, run: &TileRun, bytes: IoBuffer) -> Result<()> {
        self.tile_file().publish(run.tiles().collect(), bytes)
    }

    fn drop_tile(&self, tile: TileId) {
        self.tile_file().slots.give_back(tile);
        self.forget(tile);
    }

    fn is_written(&self, tile: TileId) -> bool {
        self.tile_file().is_published(tile)
    }

    fn transfers(&self) -> (usize, usize) {
        self.tile_file().transfers()
    }

    fn keep(&self, tile: TileId, words: &[u64]) -> Result<()> {
        self.tile_file().keep(tile, words)
    }

    fn fetch_to_send(&self, tile: TileId) -> Result<()> {
        self.tile_file().fetch_to_send(tile)
    }

    fn next_event(&self) -> Option<DiskEvent> {
        self.tile_file().next_event(|| self.wait())
    }

    fn close(&self) {
        self.tile_file().close();
    }
}
