//! The front end: matrices that are made when they are needed, and gone when their handles are.
//!
//! An operation adds tasks, one or a few for each chunk, and gives a handle on their result. Nothing is computed before
//! a number is requested ([`Small::get`], [`Tall::numbers`](TallMatrix::numbers)). Handles are cheap to clone; when the
//! last one of an object is dropped, and no task needs it any more, its memory is free.
//! Promise: results depend only on the operands and the length of chunks. Sums over chunks are added up in the order of
//! [`crate::sum`].

#[cfg(test)]
pub(crate) mod fixture;
mod read;
mod small;
mod sparse;
mod tall;
#[cfg(test)]
mod tests;

pub use small::Small;
pub use sparse::{SparseMatrix, Symmetry};
pub use tall::{TallMatrix, inner, times_small};

use crate::chunks::Chunks;
use crate::engine::{Engine, EngineOptions, Kernel, NodeTraffic, Sample};
use crate::partition::{Layout, Partition};
use crate::sum;
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use sunzi::advanced::runtime::graph::{ObjectId, TaskSpec};
use sunzi::{Error, Result};

/// Options of a session: where and how matrices are stored and computed.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Rows of a chunk.
    pub chunk_rows: usize,
    /// Number of chunks whose products a partial result of a sparse product sums, one after another, at least 1. Larger
    /// numbers need less memory, and allow less parallel work; on several nodes the number should divide the number of
    /// chunks of a band, or of half a band in two dimensions. The bits of results depend on it, as on the chunks.
    pub run_chunks: usize,
    /// Emulated nodes.
    pub nodes: usize,
    /// The partition of the blocks of symmetric matrices over the nodes.
    pub layout: Layout,
    /// Threads of each node.
    pub threads: usize,
    /// Bytes of memory for objects on each node.
    pub memory_bytes: u64,
    /// A folder for objects that do not fit in memory; with `None` all objects must fit.
    pub folder: Option<PathBuf>,
    /// Whether the states of nodes are recorded for plots.
    pub trace: bool,
}

impl Default for SessionOptions {
    /// One node of one thread, chunks of 65,536 rows, memory without limit and no disk.
    fn default() -> Self {
        SessionOptions {
            chunk_rows: 1 << 16,
            run_chunks: sum::ARITY,
            nodes: 1,
            layout: Layout::OneDimensional,
            threads: 1,
            memory_bytes: u64::MAX / 2,
            folder: None,
            trace: false,
        }
    }
}

/// Where matrices live. Clones refer to the same session.
#[derive(Clone)]
pub struct Session {
    inner: Rc<Inner>,
}

struct Inner {
    engine: RefCell<Engine>,
    partition: Partition,
    chunk_rows: usize,
    run_chunks: usize,
    folder: Option<PathBuf>,
}

/// A handle on one object.
struct Handle {
    session: Session,
    object: ObjectId,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.session.inner.engine.borrow_mut().release(self.object);
    }
}

impl Session {
    /// # Errors
    /// [`sunzi::Error::InvalidArgument`] for options that are not valid; the errors of threads and directories.
    pub fn new(options: &SessionOptions) -> Result<Session> {
        let partition = Partition::new(options.layout, options.nodes)?;
        Chunks::new(0, options.chunk_rows)?;
        if options.run_chunks == 0 {
            return Err(Error::InvalidArgument("run_chunks = 0 is not valid; choose 1 or more".to_string()));
        }
        let &SessionOptions { nodes, threads, memory_bytes, ref folder, trace, .. } = options;
        let engine = Engine::new(EngineOptions { nodes, threads, memory_bytes, folder: folder.clone(), trace })?;
        let (engine, chunk_rows, run_chunks) = (RefCell::new(engine), options.chunk_rows, options.run_chunks);
        let folder = options.folder.clone();
        Ok(Session { inner: Rc::new(Inner { engine, partition, chunk_rows, run_chunks, folder }) })
    }

    /// The division of `rows` rows into chunks.
    ///
    /// # Errors
    /// The errors of [`Chunks::new`].
    pub fn chunks(&self, rows: usize) -> Result<Chunks> {
        Chunks::new(rows, self.inner.chunk_rows)
    }

    /// The transfers and computing time of each node until now.
    pub fn traffic(&self) -> Vec<NodeTraffic> {
        self.inner.engine.borrow().traffic()
    }

    /// The recorded states of the nodes, if they are recorded.
    pub fn trace(&self) -> Vec<Sample> {
        self.inner.engine.borrow().trace().to_vec()
    }

    fn owner(&self, chunks: Chunks, chunk: usize) -> usize {
        self.inner.partition.owner(chunks, chunk)
    }

    fn block_owner(&self, chunks: Chunks, row: usize, col: usize) -> usize {
        self.inner.partition.block_owner(chunks, row, col)
    }

    /// A new object of `words` words.
    fn declare(&self, words: usize) -> Rc<Handle> {
        let object = self.inner.engine.borrow_mut().declare(words);
        Rc::new(Handle { session: self.clone(), object })
    }

    /// Adds a task.
    fn add(&self, task: NewTask<'_>, kernel: Kernel) {
        let ids = |handles: &[&Rc<Handle>]| handles.iter().map(|handle| handle.object).collect();
        let NewTask { reads, updates, creates, node } = task;
        let spec = TaskSpec { reads: ids(reads), updates: ids(updates), creates: ids(creates), node: Some(node) };
        self.inner.engine.borrow_mut().add(spec, kernel);
    }

    fn evaluate(&self, handle: &Handle) -> Result<()> {
        self.inner.engine.borrow_mut().evaluate(handle.object)
    }

    fn is_same(&self, other: &Session) -> bool {
        Rc::ptr_eq(&self.inner, &other.inner)
    }
}

/// The objects that a task reads and writes, its computation, and its node.
#[derive(Default)]
struct NewTask<'a> {
    reads: &'a [&'a Rc<Handle>],
    updates: &'a [&'a Rc<Handle>],
    creates: &'a [&'a Rc<Handle>],
    node: usize,
}

/// The words of an object as numbers.
fn numbers(words: &[u64]) -> &[f64] {
    bytemuck::cast_slice(words)
}

/// The words of an object as numbers, to change.
fn numbers_mut(words: &mut [u64]) -> &mut [f64] {
    bytemuck::cast_slice_mut(words)
}
