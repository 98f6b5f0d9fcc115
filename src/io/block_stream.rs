//! Blocks of matrix files, read ahead in a given order by a thread of its own.
//!
//! Promise: blocks come in order, each exactly once, and an error in place of the first block that cannot be read; no
//! more is held than the buffers made at the start; dropping the stream ends its thread. Independent of: what the
//! blocks are for.

use crate::error::{Error, Result};
use crate::io::{Block, MatrixFile};
use crate::matrix::MatrixView;
use crate::plan::overhead;
use crate::store::{IoBuffer, room_for_threads, with_room};
use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// A block of a file.
#[derive(Clone, Debug)]
pub struct FileBlock {
    /// The file.
    pub file: Arc<MatrixFile>,
    /// The block.
    pub block: Block,
}

/// The options of a stream of blocks.
#[derive(Clone, Copy, Debug)]
pub struct BlockStreamOptions {
    /// Number of buffers, at least 1; with 2 the next block is read while one is in use.
    pub buffers: usize,
    /// Words of each buffer, see [`MatrixFile::block_words`].
    pub buffer_words: usize,
    /// Whether the system is requested to drop the bytes read from its cache.
    pub forget: bool,
}

/// Statistics of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BlockStreamStatistics {
    /// Bytes read by all streams that share the counter.
    pub read_bytes: u64,
    /// Seconds during which the thread was reading.
    pub read_seconds: f64,
    /// Seconds during which [`BlockStream::next_block`] waited for a block.
    pub wait_seconds: f64,
}

/// Blocks of a file in a given order, read in advance by a thread.
///
/// ```
/// use std::sync::Arc;
/// use sunzi::io::{self, Block, BlockStream, BlockStreamOptions, FileBlock, MatrixFile};
/// use sunzi::Matrix;
///
/// # fn main() -> sunzi::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("A.bin");
/// io::write(&path, &Matrix::zeros(6, 4, 100)?, &Default::default())?;
/// let file = Arc::new(MatrixFile::open(&path)?);
/// let blocks = [0..3, 3..6].map(|rows| FileBlock { file: file.clone(), block: Block { rows, cols: 1..4 } });
/// let options = BlockStreamOptions { buffers: 2, buffer_words: 3 * 3 * (1 + file.limbs()), forget: true };
/// let stream = BlockStream::new(options, blocks.into_iter())?;
/// while let Some(block) = stream.next_block() {
///     assert!(block?.view()?.get(2, 2).head.is_zero());
/// }
/// # Ok(())
/// # }
/// ```
pub struct BlockStream {
    shared: Arc<StreamShared>,
    reader: Mutex<Option<JoinHandle<()>>>,
}

/// A block that was read. Dropping the block returns its buffer to the stream.
pub struct StreamedBlock {
    place: FileBlock,
    buffer: IoBuffer,
    shared: Arc<StreamShared>,
}

#[derive(Default)]
struct StreamShared {
    state: Mutex<StreamState>,
    read_bytes: Arc<AtomicU64>,
    changed: Condvar,
}

#[derive(Default)]
struct StreamState {
    free: Vec<IoBuffer>,
    ready: VecDeque<Result<(FileBlock, IoBuffer)>>,
    /// Set when no more blocks are wanted.
    closed: bool,
    /// Nothing more comes.
    ended: bool,
    reading: Duration,
    waiting: Duration,
}

impl StreamShared {
    /// The guarded data is valid even if a holder panicked.
    fn lock(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, StreamState>) -> MutexGuard<'s, StreamState> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer to read into; `None` once the stream is dropped.
    fn free_buffer(&self) -> Option<IoBuffer> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(buffer) = state.free.pop() {
                return Some(buffer);
            }
            state = self.wait(state);
        }
    }
}

/// Announces the end of the stream, also where the thread panics.
struct End(Arc<StreamShared>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.lock().ended = true;
        self.0.changed.notify_all();
    }
}

impl BlockStream {
    /// Starts to read the blocks of `order`, one after the other.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Threads`].
    pub fn new(
        options: BlockStreamOptions,
        order: impl Iterator<Item = FileBlock> + Send + 'static,
    ) -> Result<BlockStream> {
        BlockStream::counting(options, order, Arc::default())
    }

    /// As [`BlockStream::new`]; the bytes are also added to a counter as they are read.
    ///
    /// # Errors
    /// As [`BlockStream::new`].
    pub fn counting(
        options: BlockStreamOptions,
        order: impl Iterator<Item = FileBlock> + Send + 'static,
        read_bytes: Arc<AtomicU64>,
    ) -> Result<BlockStream> {
        room_for_threads(1)?;
        let shared = Arc::new(StreamShared { read_bytes, ..StreamShared::default() });
        let buffers = options.buffers.max(1);
        // A number of buffers whose list does not fit memory is refused before the first one is made.
        let mut free = with_room(buffers)?;
        for _ in 0..buffers {
            free.push(IoBuffer::new(options.buffer_words.saturating_mul(8))?);
        }
        shared.lock().free = free;
        let end = End(shared.clone());
        let read = move || read_all(&end.0, order, options.forget);
        let reader = Builder::new().name("sunzi read-ahead".into()).spawn(read);
        let reader = reader.map_err(|error| Error::Threads { threads: 1, reason: error.to_string() })?;
        Ok(BlockStream { shared, reader: Mutex::new(Some(reader)) })
    }

    /// Bytes of memory that a stream uses; `widest` are the columns of the widest block of a symmetric file.
    pub fn memory_bytes(options: &BlockStreamOptions, widest: usize, limbs: usize) -> u64 {
        let buffer = IoBuffer::memory_bytes((options.buffer_words as u64).saturating_mul(8));
        let buffers = (options.buffers.max(1) as u64).saturating_mul(buffer);
        buffers.saturating_add(line_bytes(widest, limbs)).saturating_add(overhead::FILE_THREAD)
    }

    /// Waits for the next block in order; `None` after the last one, and after an error.
    ///
    /// # Errors
    /// The errors of [`MatrixFile::read_block`]; [`Error::InvalidArgument`] for a block that is larger than a buffer. A
    /// caller that holds as many blocks as there are buffers waits forever.
    pub fn next_block(&self) -> Option<Result<StreamedBlock>> {
        let start = Instant::now();
        let mut state = self.shared.lock();
        while state.ready.is_empty() && !state.ended {
            state = self.shared.wait(state);
        }
        state.waiting += start.elapsed();
        let next = state.ready.pop_front();
        drop(state);
        match next {
            Some(read) => {
                Some(read.map(|(place, buffer)| StreamedBlock { place, buffer, shared: self.shared.clone() }))
            }
            None => {
                self.join();
                None
            }
        }
    }

    /// The statistics so far.
    pub fn statistics(&self) -> BlockStreamStatistics {
        let state = self.shared.lock();
        BlockStreamStatistics {
            read_bytes: self.shared.read_bytes.load(Ordering::Relaxed),
            read_seconds: state.reading.as_secs_f64(),
            wait_seconds: state.waiting.as_secs_f64(),
        }
    }

    /// Waits for the thread, which has ended or is about to, and panics as it did.
    fn join(&self) {
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Err(panic)) = reader.map(JoinHandle::join) {
            resume_unwind(panic);
        }
    }
}

impl Drop for BlockStream {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
        let reader = self.reader.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // The caller has been told of a panic of the thread; this drop may itself be part of another panic.
        reader.map(JoinHandle::join);
    }
}

impl std::fmt::Debug for BlockStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BlockStream({:?})", self.statistics())
    }
}

impl StreamedBlock {
    /// The file, and the rows and columns of the block in it.
    pub fn place(&self) -> &FileBlock {
        &self.place
    }

    /// The entries of the block. In a symmetric file the entries above the diagonal are read from their mirror images.
    ///
    /// # Errors
    /// The errors of [`MatrixView::from_parts`].
    pub fn view(&self) -> Result<MatrixView<'_>> {
        let FileBlock { file, block } = &self.place;
        let (rows, cols) = (block.rows.len(), block.cols.len());
        let (heads, rest) = self.buffer.words().split_at(rows * cols);
        let limbs = &rest[..rows * cols * file.limbs()];
        MatrixView::from_parts((heads, limbs), (rows, cols), rows, file.precision_bits())
    }
}

impl Drop for StreamedBlock {
    fn drop(&mut self) {
        self.shared.lock().free.push(std::mem::take(&mut self.buffer));
        self.shared.changed.notify_all();
    }
}

/// The work of the thread.
fn read_all(shared: &StreamShared, order: impl Iterator<Item = FileBlock>, forget: bool) {
    let mut line = Vec::new();
    for place in order {
        let Some(mut buffer) = shared.free_buffer() else { return };
        let start = Instant::now();
        let read = read_one(&place, &mut buffer, &mut line, forget);
        let failed = read.is_err();
        shared.read_bytes.fetch_add(*read.as_ref().unwrap_or(&0), Ordering::Relaxed);
        let mut state = shared.lock();
        state.reading += start.elapsed();
        state.ready.push_back(read.map(|_| (place, buffer)));
        shared.changed.notify_all();
        if failed {
            return;
        }
    }
}

fn read_one(place: &FileBlock, buffer: &mut IoBuffer, line: &mut Vec<u64>, forget: bool) -> Result<u64> {
    let FileBlock { file, block } = place;
    let (words, room) = (file.block_words(block), buffer.words().len());
    if words > room {
        return Err(Error::InvalidArgument(format!("a block of {words} words does not fit a buffer of {room}")));
    }
    let words = &mut buffer.words_mut()[..words];
    let stored = file.read_block(block, words)?;
    if forget {
        file.forget_block(block);
    }
    Ok(stored + read_mirrored(file, block, words, line, forget)?)
}

/// Bytes of the longest line that [`read_mirrored`] reads.
fn line_bytes(cols: usize, limbs: usize) -> u64 {
    (limbs as u64).saturating_add(1).saturating_mul(cols as u64).saturating_mul(8)
}

/// Fills the entries of a block that a symmetric file does not store, row by row from the columns that it stores.
fn read_mirrored(
    file: &MatrixFile,
    block: &Block,
    words: &mut [u64],
    line: &mut Vec<u64>,
    forget: bool,
) -> Result<u64> {
    let (limbs, height) = (file.limbs(), block.rows.len());
    let (heads, rest) = words.split_at_mut(height * block.cols.len());
    let mut total = 0;
    for row in block.rows.clone().filter(|_| file.is_symmetric()) {
        let cols = block.cols.start.max(row + 1)..block.cols.end;
        if cols.is_empty() {
            break;
        }
        let stored = Block { rows: cols.clone(), cols: row..row + 1 };
        line.resize(file.block_words(&stored), 0);
        total += file.read_block(&stored, line)?;
        if forget {
            file.forget_block(&stored);
        }
        let (line_heads, line_limbs) = line.split_at(cols.len());
        for (at, col) in cols.enumerate() {
            let entry = (col - block.cols.start) * height + row - block.rows.start;
            heads[entry] = line_heads[at];
            rest[entry * limbs..][..limbs].copy_from_slice(&line_limbs[at * limbs..][..limbs]);
        }
    }
    Ok(total)
}
