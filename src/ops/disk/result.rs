//! Results that are made of blocks, each an object of a storage directory: blocks are published, found again and
//! repaired, and written to a file in the end.
//!
//! For the file the blocks are read from the storage once more. Over ranks each rank reads the blocks that it has, and
//! rank 0 writes them, in the order of the blocks.

use super::usage::{DiskUse, progress_of};
use crate::comm::{Incoming, Outgoing, Reduction, Transport, agree};
use crate::context::Context;
use crate::drive::{self, Meter};
use crate::error::{Error, Result};
use crate::io::{Block, MatrixFileShape, MatrixFileWriter, write_blocks};
use crate::math::float::limbs_for;
use crate::site::{ROOT, Site};
use crate::storage::{
    AnsweredStorage, Caching, Completion, GroupName, Identity, NewObject, ObjectName, Priority, PublishRequest,
};
use crate::store::IoBuffer;
use crate::tile::TileId;
use rustc_hash::FxHashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The owner of a block that no rank has.
const NOBODY: u64 = u64::MAX;

/// The division of a result into blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResultCut {
    pub rows: usize,
    pub cols: usize,
    /// Rows of a block; the last may have fewer.
    pub block_rows: usize,
    /// Columns of a block; the last may have fewer.
    pub block_cols: usize,
    /// Whether only the lower triangle is stored; blocks on its diagonal are whole.
    pub is_triangle: bool,
}

impl ResultCut {
    /// Rows and columns of blocks.
    fn counts(&self) -> (usize, usize) {
        (self.rows.div_ceil(self.block_rows), self.cols.div_ceil(self.block_cols))
    }

    /// All blocks, column by column.
    pub fn blocks(&self) -> impl Iterator<Item = TileId> + Send + use<> {
        let ((rows, cols), is_triangle) = (self.counts(), self.is_triangle);
        (0..cols).flat_map(move |col| (if is_triangle { col } else { 0 }..rows).map(move |row| TileId { row, col }))
    }

    /// The entries of a block.
    pub fn block(&self, TileId { row, col }: TileId) -> Block {
        let range = |index: usize, size: usize, end: usize| index * size..((index + 1) * size).min(end);
        Block { rows: range(row, self.block_rows, self.rows), cols: range(col, self.block_cols, self.cols) }
    }

    /// Their number.
    pub fn entries(&self, id: TileId) -> usize {
        let Block { rows, cols } = self.block(id);
        rows.len() * cols.len()
    }

    /// Bytes of the largest block: heads, then limbs, column by column.
    pub fn most_bytes(&self, precision_bits: u32) -> u64 {
        let entries = self.block_rows.min(self.rows) * self.block_cols.min(self.cols);
        8 * (entries * (1 + limbs_for(precision_bits))) as u64
    }

    /// The number of a block.
    fn index(&self, TileId { row, col }: TileId) -> usize {
        col * self.counts().0 + row
    }
}

/// A directory of blocks, and how it is used.
#[derive(Clone, Copy)]
pub(crate) struct ResultPlace<'a> {
    pub directory: &'a Path,
    pub identity: &'a Identity,
    pub caching: Caching,
    /// Buffers for blocks: when the file is written, one for each worker.
    pub buffers: usize,
}

/// The blocks of a result in a storage directory.
pub(crate) struct StoredResult {
    /// The directory.
    pub objects: AnsweredStorage,
    cut: ResultCut,
    precision_bits: u32,
    /// The rank that has each block, or [`NOBODY`].
    owners: Vec<u64>,
    rank: usize,
    free: Vec<IoBuffer>,
    /// Buffers that are being written, by the tags of their blocks.
    under_way: FxHashMap<u64, Arc<IoBuffer>>,
    damaged: Mutex<Option<String>>,
}

/// The name of a block.
fn object_name(id: TileId) -> ObjectName {
    ObjectName::new(&format!("tile {} {}", id.row, id.col)).expect("a short name")
}

/// The block of a name.
fn block_of(name: &ObjectName) -> Option<TileId> {
    let (row, col) = name.as_str().strip_prefix("tile ")?.split_once(' ')?;
    Some(TileId { row: row.parse().ok()?, col: col.parse().ok()? })
}

/// The tag of a request.
fn tag(id: TileId) -> u64 {
    (id.row as u64) << 32 | id.col as u64
}

impl StoredResult {
    /// Opens the directory of a result, without blocks that are damaged; returns the number of damaged ones.
    ///
    /// # Errors
    /// The errors of [`AnsweredStorage::open`]; [`crate::Error::OutOfMemory`].
    pub fn open(
        place: ResultPlace<'_>,
        cut: ResultCut,
        precision_bits: u32,
        rank: usize,
    ) -> Result<(StoredResult, usize)> {
        let (objects, damaged) = AnsweredStorage::open(place.directory, place.identity, place.caching)?;
        let (rows, cols) = cut.counts();
        let mut owners = vec![NOBODY; rows * cols];
        let found = objects.storage.objects().into_iter().filter_map(|object| block_of(&object.name));
        found.filter(|id| id.row < rows && id.col < cols).for_each(|id| owners[cut.index(id)] = rank as u64);
        let bytes = cut.most_bytes(precision_bits) as usize;
        let free = (0..place.buffers).map(|_| IoBuffer::new(bytes)).collect::<Result<_>>()?;
        let (under_way, damaged_object) = (FxHashMap::default(), Mutex::default());
        let result =
            StoredResult { objects, cut, precision_bits, owners, rank, free, under_way, damaged: damaged_object };
        Ok((result, damaged))
    }

    /// The division of the result.
    pub fn cut(&self) -> &ResultCut {
        &self.cut
    }

    /// Shares the list of existing blocks with all ranks: of several ranks with a block the first counts. Collective.
    ///
    /// # Errors
    /// [`crate::Error::Transport`].
    pub fn share(&mut self, world: &dyn Transport) -> Result<()> {
        world.all_reduce(Reduction::Min, &mut self.owners)
    }

    /// Whether some rank has a block.
    pub fn has(&self, id: TileId) -> bool {
        self.owners[self.cut.index(id)] != NOBODY
    }

    /// Blocks of this rank.
    pub fn own_blocks(&self) -> usize {
        self.owners.iter().filter(|&&owner| owner == self.rank as u64).count()
    }

    /// Makes a block, by `fill`, from buffers of zeros or of arbitrary contents, and begins to write it.
    ///
    /// # Errors
    /// The errors of `fill`, and of earlier writes.
    pub fn publish(&mut self, id: TileId, fill: impl FnOnce(&mut [u64], &mut [u64]) -> Result<()>) -> Result<()> {
        let mut buffer = self.buffer()?;
        let entries = self.cut.entries(id);
        let words = entries * (1 + limbs_for(self.precision_bits));
        let (heads, limbs) = buffer.words_mut()[..words].split_at_mut(entries);
        fill(heads, limbs)?;
        let (buffer, tag) = (Arc::new(buffer), tag(id));
        let object = NewObject { name: object_name(id), buffer: buffer.clone(), start: 0, bytes: 8 * words as u64 };
        let group = GroupName::new(&format!("tile-{}-{}", id.col, id.row)).expect("a short name");
        self.under_way.insert(tag, buffer);
        let (objects, priority) = (vec![object], Priority::default());
        self.objects.storage.publish(PublishRequest { group, objects, tag, priority })
    }

    /// Waits for a buffer.
    fn buffer(&mut self) -> Result<IoBuffer> {
        loop {
            if let Some(buffer) = self.free.pop() {
                return Ok(buffer);
            }
            self.take_answer()?;
        }
    }

    /// Takes the next answer of the directory: a block was written.
    fn take_answer(&mut self) -> Result<()> {
        let Completion { tag, result, .. } = self.objects.answers.wait(|| Ok(()))?.expect("nobody closes the answers");
        let buffer = self.under_way.remove(&tag).expect("it was begun");
        self.free.extend(Arc::into_inner(buffer));
        result?;
        let id = TileId { row: (tag >> 32) as usize, col: (tag & 0xffff_ffff) as usize };
        let at = self.cut.index(id);
        self.owners[at] = self.rank as u64;
        Ok(())
    }

    /// Waits until all blocks are written.
    ///
    /// # Errors
    /// The error of the first block that could not be written.
    pub fn finish(&mut self) -> Result<()> {
        let mut outcome = Ok(());
        while !self.under_way.is_empty() {
            outcome = outcome.and(self.take_answer());
        }
        outcome
    }

    /// Buffers that blocks are read into, for at most `workers` workers.
    pub fn take_spaces(&mut self, workers: usize) -> Vec<Option<IoBuffer>> {
        self.free.drain(..).take(workers.max(1)).map(Some).collect()
    }

    /// The result of an attempt that ended with `outcome`.
    pub fn attempt(self, outcome: Result<()>) -> Attempt {
        let damaged = self.damaged.into_inner().unwrap_or_else(PoisonError::into_inner);
        Attempt { objects: self.objects, damaged, outcome }
    }
}

impl StoredBlocks for StoredResult {
    type Space = Option<IoBuffer>;

    fn shape(&self) -> MatrixFileShape {
        let ResultCut { rows, cols, is_triangle, .. } = self.cut;
        MatrixFileShape { rows, cols, precision_bits: self.precision_bits, symmetric: is_triangle }
    }

    fn blocks(&self) -> Box<dyn Iterator<Item = TileId> + Send + '_> {
        Box::new(self.cut.blocks())
    }

    fn block(&self, id: TileId) -> Block {
        self.cut.block(id)
    }

    fn owner(&self, id: TileId) -> usize {
        self.owners[self.cut.index(id)] as usize
    }

    fn read(&self, id: TileId, space: &mut Option<IoBuffer>) -> Result<()> {
        let read = self.objects.read_now(object_name(id), space, tag(id));
        read.inspect_err(|error| {
            if let Some(object) = Attempt::damage(error) {
                *self.damaged.lock().unwrap_or_else(PoisonError::into_inner) = Some(object);
            }
        })
    }

    fn words<'s>(&self, space: &'s mut Option<IoBuffer>) -> &'s mut [u64] {
        space.as_mut().expect("a read leaves its buffer").words_mut()
    }
}

/// The outcome of one attempt.
pub(crate) struct Attempt {
    /// The directory that it worked in.
    pub objects: AnsweredStorage,
    /// An object that was found damaged there.
    pub damaged: Option<String>,
    /// Whether the result is there.
    pub outcome: Result<()>,
}

impl Attempt {
    /// The object that an error names as damaged.
    pub fn damage(error: &Error) -> Option<String> {
        match error {
            Error::Damaged { object, .. } | Error::Truncated { object, .. } => Some(object.clone()),
            _ => None,
        }
    }
}

/// Calls `attempt`, which takes the stored objects as found and makes the missing ones; repeats it as long as some rank
/// found a damaged object, which is discarded first. Collective.
///
/// # Errors
/// The error of an attempt without damage.
pub(crate) fn until_whole(
    world: &dyn Transport,
    used: &mut DiskUse,
    mut attempt: impl FnMut(&mut DiskUse) -> Result<Attempt>,
) -> Result<()> {
    loop {
        let Attempt { objects, damaged, outcome } = attempt(used)?;
        used.add(&objects.storage);
        let mut any_damaged = [u64::from(damaged.is_some())];
        world.all_reduce(Reduction::Max, &mut any_damaged)?;
        if outcome.is_ok() || any_damaged[0] == 0 {
            return outcome;
        }
        used.groups_repaired += usize::from(damaged.is_some());
        agree(world, damaged.map_or(Ok(()), |object| objects.discard(&object)))?;
    }
}

/// Blocks of a result in storage directories.
pub(crate) trait StoredBlocks: Sync {
    /// The memory into which a worker reads a block.
    type Space: Send;

    /// The matrix that the file is to hold.
    fn shape(&self) -> MatrixFileShape;

    /// All blocks, the same on all ranks.
    fn blocks(&self) -> Box<dyn Iterator<Item = TileId> + Send + '_>;

    /// The entries of a block.
    fn block(&self, id: TileId) -> Block;

    /// The rank that has a block.
    fn owner(&self, id: TileId) -> usize;

    /// Reads a block of this rank.
    ///
    /// # Errors
    /// The errors of the storage, and of rounding.
    fn read(&self, id: TileId, space: &mut Self::Space) -> Result<()>;

    /// The words that blocks are read into, heads and then limbs; those of any block fit.
    fn words<'s>(&self, space: &'s mut Self::Space) -> &'s mut [u64];
}

/// Writes the file of a result, with one worker for each space; each rank has at least one; entries outside the blocks
/// are 0. Collective.
///
/// # Errors
/// The errors of [`StoredBlocks::read`]; [`crate::Error::Io`], [`crate::Error::Cancelled`].
pub(crate) fn write_file<S: StoredBlocks>(
    site: Site<'_>,
    path: &Path,
    stored: &S,
    mut spaces: Vec<S::Space>,
) -> Result<()> {
    by_root(site, path, stored.shape(), |writer| match writer {
        Some(writer) if site.team.size() == 1 => write_all(site.ctx, writer, stored, &mut spaces),
        writer => {
            let space = spaces.first_mut().expect("each rank can hold a block");
            over_ranks(site, writer, stored, space)
        }
    })
}

/// Writes a file whose entries are all 0. Collective.
///
/// # Errors
/// As [`write_file`].
pub(crate) fn write_zeros(site: Site<'_>, path: &Path, shape: MatrixFileShape) -> Result<()> {
    by_root(site, path, shape, |_| Ok(()))
}

/// Writes a file on rank 0 with the help of all; `body` is collective, and has the writer on rank 0.
fn by_root(
    site: Site<'_>,
    path: &Path,
    shape: MatrixFileShape,
    body: impl FnOnce(Option<&MatrixFileWriter<'_>>) -> Result<()>,
) -> Result<()> {
    if !site.is_root() {
        site.agree(Ok(()))?;
        return site.agree(body(None)).and_then(|()| site.agree(Ok(())));
    }
    // Whether all ranks have come through the blocks, once they have begun.
    let mut through = None;
    let written = write_blocks(path, shape, progress_of(site.ctx), |writer| {
        site.agree(Ok(()))?;
        let outcome = site.agree(body(Some(writer)));
        through = Some(outcome.is_ok());
        outcome
    });
    // The others wait for the beginning, or for the end of the file.
    if through == Some(false) { written } else { site.agree(written) }
}

fn entries<S: StoredBlocks>(stored: &S, id: TileId) -> usize {
    let Block { rows, cols } = stored.block(id);
    rows.len() * cols.len()
}

fn meter<'a, S: StoredBlocks>(ctx: &'a Context, stored: &S) -> Meter<'a> {
    Meter::new(ctx, stored.blocks().map(|id| entries(stored, id) as u64).sum())
}

/// Writes a block that was read.
fn write<S: StoredBlocks>(
    stored: &S,
    id: TileId,
    words: &[u64],
    writer: &MatrixFileWriter<'_>,
    meter: &Meter<'_>,
) -> Result<()> {
    let count = entries(stored, id);
    let (heads, rest) = words.split_at(count);
    writer.write_block(&stored.block(id), heads, &rest[..count * limbs_for(stored.shape().precision_bits)])?;
    meter.add("write", count as u64)
}

/// All blocks, by all workers.
fn write_all<S: StoredBlocks>(
    ctx: &Context,
    writer: &MatrixFileWriter<'_>,
    stored: &S,
    spaces: &mut [S::Space],
) -> Result<()> {
    let (meter, mut blocks) = (meter(ctx, stored), stored.blocks());
    ctx.install(|| {
        drive::parallel_for(
            spaces,
            |_| blocks.next(),
            |space, id| {
                stored.read(id, space)?;
                write(stored, id, stored.words(space), writer, &meter)
            },
        )
    })
}

/// All blocks, each by the rank that has it; the others are sent to rank 0. An error does not keep a rank from its
/// part of the transfers.
fn over_ranks<S: StoredBlocks>(
    site: Site<'_>,
    writer: Option<&MatrixFileWriter<'_>>,
    stored: &S,
    space: &mut S::Space,
) -> Result<()> {
    let (world, rank, meter) = (site.world(), site.team.rank(), meter(site.ctx, stored));
    let mut outcome = Ok(());
    for id in stored.blocks() {
        let owner = stored.owner(id);
        if owner == rank && outcome.is_ok() {
            outcome = stored.read(id, space);
        }
        let words = &mut stored.words(space)[..entries(stored, id) * (1 + limbs_for(stored.shape().precision_bits))];
        match (owner == ROOT, owner == rank) {
            (false, true) => world.exchange(&[Outgoing { to: ROOT, words }], &mut [])?,
            (false, false) if rank == ROOT => world.exchange(&[], &mut [Incoming { from: owner, words }])?,
            _ => {}
        }
        if let Some(writer) = writer.filter(|_| outcome.is_ok()) {
            outcome = write(stored, id, words, writer, &meter);
        }
    }
    outcome
}
