//! Memory that all ranks of a node address, divided in phases: either all ranks read, or each writes its own share, or
//! each has pieces that it writes until it publishes them to the others (`pieces`).
//!
//! Every phase begins with a fence of the node's ranks, at which they also agree on the phase. So slices of a window
//! are as safe as slices of a `Vec`: within a process by the borrow checker, between processes (and between ranks that
//! are threads) by the agreement on one checked [`Partition`].
//! A window is closed by [`SharedWindow::close`], a collective call; dropping one frees what a single rank can free.

#[cfg(feature = "mpi")]
pub(in crate::comm) mod again;
mod heap;
pub(in crate::comm) mod huge;
mod node;
mod partition;
mod pieces;
mod posix;
pub(crate) mod room;

pub use heap::Heap;
pub use node::NodeWindow;
pub use partition::{Level, Partition, Run};
pub(crate) use pieces::{PiecesFrom, Shown, WindowPieces};
pub use posix::Posix;

use crate::comm::{Fence, Said, Transport};
use crate::error::Result;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// The source of the memory of a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WindowKind {
    /// Chooses the kind by the ranks: the heap if one process holds them all, else MPI.
    #[default]
    Auto,
    /// The heap of the one process that runs all ranks as threads.
    Heap,
    /// `MPI_Win_allocate_shared`.
    Mpi,
    /// POSIX shared memory.
    Posix,
}

impl WindowKind {
    /// The kind called `name`: `auto`, `heap`, `mpi` or `posix`.
    pub fn by_name(name: &str) -> Option<WindowKind> {
        match name {
            "auto" => Some(WindowKind::Auto),
            "heap" => Some(WindowKind::Heap),
            "mpi" => Some(WindowKind::Mpi),
            "posix" => Some(WindowKind::Posix),
            _ => None,
        }
    }
}

/// Memory that the ranks of a node share.
///
/// # Safety
/// `start` points to `len` words, aligned to 64 bytes; they are the same memory on all ranks that opened it together,
/// and stay valid until the value is closed or dropped.
pub unsafe trait Backing: Send + Sync {
    /// The first word, at this rank's address.
    fn start(&self) -> *mut u64;
    /// Number of words.
    fn len(&self) -> usize;
    /// Whether there are no words.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Source of the windows' memory: `heap`, `mpi` or `posix`.
    fn name(&self) -> &'static str;
    /// Makes what this rank has written visible to others after the next fence, and what others wrote before it
    /// visible here.
    fn sync(&self) {
        std::sync::atomic::fence(Ordering::SeqCst);
    }
    /// Releases the memory. Collective.
    ///
    /// # Errors
    /// [`crate::Error::Transport`].
    fn close(self: Box<Self>) -> Result<()>;
}

/// Bytes of a page; windows are made of whole ones and begin at one.
pub(crate) const PAGE_BYTES: usize = 4096;

/// A window of the ranks of one node.
pub struct SharedWindow {
    backing: Option<Box<dyn Backing>>,
    /// This rank, the number of ranks, and the address of the transport, which identifies the group.
    rank: usize,
    ranks: usize,
    group: usize,
    /// Distinguishes windows when ranks agree on phases; the same on all ranks.
    id: u64,
}

/// The address of a transport, by which a window recognises its group.
fn address(group: &dyn Transport) -> usize {
    std::ptr::from_ref(group).cast::<()>().addr()
}

/// The bytes of a window of `bytes` bytes whose pages `rank` provides, and so places near itself: an equal range of
/// whole pages, of huge ones where each rank has some: two ranks that provide parts of one page would conflict. A rank
/// that works on neighbouring words in the order of the ranks finds most of them near itself.
pub(crate) fn page_share(rank: usize, ranks: usize, bytes: usize) -> Range<usize> {
    let page_bytes = if bytes / huge::HUGE_BYTES >= ranks { huge::HUGE_BYTES } else { PAGE_BYTES };
    let pages = bytes.div_ceil(page_bytes);
    let at = |rank: usize| ((pages as u128 * rank as u128 / ranks as u128) as usize * page_bytes).min(bytes);
    at(rank)..at(rank + 1)
}

impl SharedWindow {
    /// A window of at least `words` words on the ranks of `node`. Collective. Contents are arbitrary.
    ///
    /// # Errors
    /// As [`Transport::open_window`].
    pub fn open(node: &dyn Transport, kind: WindowKind, words: usize) -> Result<SharedWindow> {
        let words = (SharedWindow::bytes_for(words) / 8) as usize;
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut id = [u64::from(std::process::id()) << 32 | NEXT.fetch_add(1, Ordering::Relaxed)];
        node.broadcast(0, &mut id)?;
        let backing = if words == 0 { None } else { Some(node.open_window(kind, words)?) };
        let (rank, ranks, group) = (node.rank(), node.size(), address(node));
        Ok(SharedWindow { backing, rank, ranks, group, id: id[0] })
    }

    /// The token that the ranks agree on at the fence of a phase; the fence must be of the group that opened the
    /// window.
    fn token(&self, fence: &Fence<'_>, phase: &str, hash: u64) -> u64 {
        assert!(address(fence.group()) == self.group, "a fence of another group");
        Said::hash(&(self.id, phase, hash))
    }

    /// Bytes of a window of `words` words.
    pub fn bytes_for(words: usize) -> u64 {
        let page = PAGE_BYTES as u64;
        (words as u64).saturating_mul(8).div_ceil(page).saturating_mul(page)
    }

    /// Number of words of the window.
    pub fn len(&self) -> usize {
        self.backing.as_ref().map_or(0, |backing| backing.len())
    }

    /// Whether the window is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that all ranks of the node hold together.
    pub fn bytes(&self) -> u64 {
        self.len() as u64 * 8
    }

    /// Name of the source of the memory: `heap`, `mpi`, `posix`, or `none` for a window without memory.
    pub fn kind(&self) -> &'static str {
        self.backing.as_ref().map_or("none", |backing| backing.name())
    }

    fn sync(&self) {
        if let Some(backing) = &self.backing {
            backing.sync();
        }
    }

    /// Waits for all ranks, agrees with them on `outcome`, then lets all ranks read. Collective.
    ///
    /// # Errors
    /// As [`Fence::pass`].
    pub fn read(&mut self, fence: &Fence<'_>, outcome: Result<()>) -> Result<&[u64]> {
        self.sync();
        fence.pass(outcome, self.token(fence, "read", 0))?;
        self.sync();
        Ok(self.words())
    }

    /// Waits for all ranks, agrees with them on `outcome`, then lets each write its shares of `partition`. Collective.
    ///
    /// # Errors
    /// As [`Fence::pass`].
    pub fn write<'w>(
        &'w mut self,
        fence: &Fence<'_>,
        outcome: Result<()>,
        partition: &'w Partition,
    ) -> Result<Shares<'w>> {
        self.sync();
        fence.pass(outcome, self.token(fence, "write", partition.hash()))?;
        self.sync();
        Ok(self.shares(partition))
    }

    /// The same as [`SharedWindow::write`] for this window while all ranks may read `source`. Collective.
    ///
    /// # Errors
    /// As [`Fence::pass`].
    pub fn write_from<'w>(
        &'w mut self,
        source: &'w mut SharedWindow,
        fence: &Fence<'_>,
        outcome: Result<()>,
        partition: &'w Partition,
    ) -> Result<(&'w [u64], Shares<'w>)> {
        self.sync();
        source.sync();
        fence.pass(outcome, self.token(fence, &format!("from {:x}", source.id), partition.hash()))?;
        source.sync();
        self.sync();
        Ok((source.words(), self.shares(partition)))
    }

    /// [`SharedWindow::write_from`] for two parts of this window: each rank writes its shares of `partition` and of
    /// `beside`, a second part, of which all ranks may read the words outside all shares. Collective.
    ///
    /// # Errors
    /// As [`Fence::pass`].
    ///
    /// # Panics
    /// If the parts overlap.
    pub fn write_beside<'w>(
        &'w mut self,
        source: &'w mut SharedWindow,
        fence: &Fence<'_>,
        outcome: Result<()>,
        (partition, beside): (&'w Partition, Beside<'w>),
    ) -> Result<TwoParts<'w>> {
        let (own, end) = (beside.partition, beside.end);
        assert!(own.end() <= end && end <= self.len(), "words up to {end} of {}", self.len());
        assert!(partition.start() >= end || partition.end() <= own.base(), "parts that overlap");
        self.sync();
        source.sync();
        let phase = format!("from {:x} with {:x} {end}", source.id, own.hash());
        fence.pass(outcome, self.token(fence, &phase, partition.hash()))?;
        source.sync();
        self.sync();
        let shares = self.part(partition, self.len()).into_iter();
        Ok(TwoParts { source: source.words(), shares, beside: self.part(own, end) })
    }

    fn words(&self) -> &[u64] {
        match &self.backing {
            // SAFETY: `Backing` promises `len` valid words at `start`. The ranks agreed on a phase in which nobody
            // writes them, and this rank cannot begin another phase while the slice is borrowed.
            Some(backing) => unsafe { std::slice::from_raw_parts(backing.start(), backing.len()) },
            None => &[],
        }
    }

    fn shares<'w>(&'w mut self, partition: &'w Partition) -> Shares<'w> {
        self.part(partition, self.len())
    }

    /// The shares of a partition of the first `len` words. The caller ensures that no other slice of the window covers
    /// them, and that they do not outlive the borrow of the window.
    fn part<'w>(&self, partition: &'w Partition, len: usize) -> Shares<'w> {
        assert!(partition.end() <= self.len(), "a partition of {} words in {}", partition.end(), self.len());
        assert!(partition.ranks() == self.ranks, "a partition for {} ranks", partition.ranks());
        let start = self.backing.as_ref().map_or(std::ptr::NonNull::dangling().as_ptr(), |backing| backing.start());
        Shares { start, len, partition, rank: self.rank, window: PhantomData }
    }

    /// Releases the memory. Collective.
    ///
    /// # Errors
    /// [`crate::Error::Transport`].
    pub fn close(mut self) -> Result<()> {
        self.backing.take().map_or(Ok(()), Backing::close)
    }
}

/// Words of a window, from the first cell of a partition on, that ranks read and write while other words of the window
/// are written.
#[derive(Clone, Copy)]
pub struct Beside<'w> {
    /// The assignment of the words to the ranks that write them.
    pub partition: &'w Partition,
    /// The end of these words.
    pub end: usize,
}

/// The words that one rank may read and write in a phase of two parts.
pub struct TwoParts<'w> {
    /// The window that all ranks read.
    pub source: &'w [u64],
    /// This rank's shares of the first part.
    pub shares: Walk<'w>,
    /// The shares of the second part; all other words of that part may be read.
    pub beside: Shares<'w>,
}

/// The words that one rank may write in a phase.
pub struct Shares<'w> {
    start: *mut u64,
    len: usize,
    partition: &'w Partition,
    rank: usize,
    window: PhantomData<&'w mut [u64]>,
}

// SAFETY: a `Shares` is a set of disjoint `&mut [u64]`, which may move to another thread.
unsafe impl Send for Shares<'_> {}

impl<'w> Shares<'w> {
    /// The shares of the only rank of a node in memory of its own.
    fn alone(words: &'w mut [u64], partition: &'w Partition) -> Shares<'w> {
        assert!(partition.end() <= words.len(), "a partition of {} words in {}", partition.end(), words.len());
        assert!(partition.ranks() == 1, "a partition for {} ranks", partition.ranks());
        Shares { start: words.as_mut_ptr(), len: words.len(), partition, rank: 0, window: PhantomData }
    }

    /// Splits into the words that the rank may write and the words that no rank writes, for a phase in which ranks read
    /// outside all shares.
    pub fn with_rest(self) -> (Walk<'w>, Rest<'w>) {
        let rest = Rest { start: self.start, len: self.len, partition: self.partition, window: PhantomData };
        (self.into_iter(), rest)
    }
}

impl<'w> IntoIterator for Shares<'w> {
    type Item = &'w mut [u64];
    type IntoIter = Walk<'w>;

    /// The rank's runs in order: all those of a cell, cells of the inner level, then of the outer one.
    fn into_iter(self) -> Walk<'w> {
        let Shares { start, len, partition, rank, window } = self;
        Walk { start, len, partition, runs: partition.positions(rank), outer: 0, inner: 0, run: 0, window }
    }
}

/// An iterator over the runs of one rank, in ascending order.
pub struct Walk<'w> {
    start: *mut u64,
    len: usize,
    partition: &'w Partition,
    /// Positions of the rank's runs.
    runs: Range<usize>,
    /// The position of the next run.
    outer: usize,
    inner: usize,
    run: usize,
    window: PhantomData<&'w mut [u64]>,
}

// SAFETY: as `Shares`.
unsafe impl Send for Walk<'_> {}

impl<'w> Iterator for Walk<'w> {
    type Item = &'w mut [u64];

    fn next(&mut self) -> Option<&'w mut [u64]> {
        let (outer, inner) = (self.partition.outer(), self.partition.inner());
        if self.run == self.runs.len() {
            (self.run, self.inner) = (0, self.inner + 1);
        }
        if self.inner >= inner.count {
            (self.inner, self.outer) = (0, self.outer + 1);
        }
        if self.outer >= outer.count || inner.count == 0 || self.runs.is_empty() {
            return None;
        }
        let run = &self.partition.run(self.runs.start + self.run).words;
        let first = self.partition.base() + self.outer * outer.stride + self.inner * inner.stride + run.start;
        self.run += 1;
        assert!(first.checked_add(run.len()).is_some_and(|end| end <= self.len));
        // SAFETY: inside the window by the assert. `Partition::new` has checked that runs of one cell are disjoint and
        // that cells do not overlap, each place is handed out once (`Shares` is consumed by the walk, which moves
        // forward only), and all ranks agreed on this partition in this phase, so no other slice covers these words.
        Some(unsafe { std::slice::from_raw_parts_mut(self.start.add(first), run.len()) })
    }
}

/// The words of a window outside all shares of the phase: no rank writes them.
pub struct Rest<'w> {
    start: *mut u64,
    len: usize,
    partition: &'w Partition,
    window: PhantomData<&'w [u64]>,
}

impl<'w> Rest<'w> {
    /// The words `range` of the cell `(outer, inner)`. Panics if a share overlaps them.
    pub fn words(&self, (outer, inner): (usize, usize), range: Range<usize>) -> &'w [u64] {
        assert!(self.partition.is_free(&range), "words {range:?} belong to a share");
        assert!(outer < self.partition.outer().count && inner < self.partition.inner().count);
        let cell = outer * self.partition.outer().stride + inner * self.partition.inner().stride;
        let first = self.partition.base() + cell + range.start;
        assert!(first + range.len() <= self.len);
        // SAFETY: inside the window, and inside a cell (`is_free` checks against its size) but outside all of its
        // runs, so nobody writes these words in this phase.
        unsafe { std::slice::from_raw_parts(self.start.add(first), range.len()) }
    }
}

#[cfg(test)]
mod tests;
