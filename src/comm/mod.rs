//! Groups of ranks: messages, collective calls, and memory that the ranks of a node share.
//!
//! Depends on: words and ranks. Independent of: matrices, residues, owners of tiles. [`Transport`] is implemented by
//! `local` (the ranks are threads of one process) and by MPI; all code above the trait is shared. Promise: calls that
//! all ranks of a group must make ("collective") are matched only by their order, so that a program which makes the
//! same calls on every rank cannot deadlock; an error that one rank meets between two collective calls reaches all of
//! them by [`agree`].

mod agree;
mod fingerprint;
pub(crate) mod idle;
mod launch;
pub mod local;
pub mod mailbox;
#[cfg(feature = "mpi")]
pub mod mpi;
mod planned;
pub mod window;

pub use agree::{Fence, agree, agreed};
pub(crate) use agree::{alike, check_alike};
pub(crate) use fingerprint::{Said, Say, say_as_number, say_fields};
pub use launch::launched;
pub(crate) use planned::PlannedRank;

use crate::error::{Error, Result};
use mailbox::Mailbox;
use window::{Backing, WindowKind};

/// The operation of an all-reduce on the words of all ranks, element by element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduction {
    /// The largest.
    Max,
    /// The least.
    Min,
    /// The sum modulo `2^64`.
    Sum,
}

/// Words to send.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The receiving rank.
    pub to: usize,
    /// The words sent.
    pub words: &'a [u64],
}

/// Words to receive.
#[derive(Debug)]
pub struct Incoming<'a> {
    /// The sending rank.
    pub from: usize,
    /// Filled by exactly as many words as are sent.
    pub words: &'a mut [u64],
}

/// A group of ranks, seen from one of them.
///
/// All methods except `rank`, `size`, `post`, `settle` and `abort` are collective over the group;
/// [`Transport::exchange`] is collective over the ranks named in it.
///
/// # Safety
/// Windows rely on [`Transport::all_reduce`]: it returns on no rank before all ranks of the group have called it, it
/// returns the same result on all ranks, and what a rank wrote before its call is visible to every rank after that
/// rank's call.
pub unsafe trait Transport: Send + Sync {
    /// This rank within the group, from 0.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn size(&self) -> usize;

    /// Combines the `words` of all ranks, element by element, and stores the result in `words` on every rank; all ranks
    /// pass the same number of words.
    ///
    /// # Errors
    /// [`crate::Error::Transport`], as for all calls below.
    fn all_reduce(&self, reduction: Reduction, words: &mut [u64]) -> Result<()>;

    /// Copies the words of rank `root` to all ranks; all ranks pass the same number of words.
    ///
    /// # Errors
    /// See [`Transport::all_reduce`].
    fn broadcast(&self, root: usize, words: &mut [u64]) -> Result<()>;

    /// Fills `all` with the words of rank 0, then of rank 1, and so on; all ranks pass the same number of words.
    ///
    /// # Errors
    /// See [`Transport::all_reduce`].
    fn all_gather(&self, own: &[u64], all: &mut [u64]) -> Result<()>;

    /// Sends and receives at the same time; returns when all transfers have ended.
    ///
    /// Messages between two ranks are matched in the order of the calls and, within a call, of the lists.
    ///
    /// # Errors
    /// See [`Transport::all_reduce`].
    fn exchange(&self, sends: &[Outgoing<'_>], receives: &mut [Incoming<'_>]) -> Result<()>;

    /// Sends a copy of `words` without waiting for the receiver, which receives it by [`Transport::exchange`], in the
    /// order in which this rank sends. The copy stays in memory until it has been sent, so a rank that posts must call
    /// [`Transport::settle`] at the end.
    ///
    /// # Errors
    /// See [`Transport::all_reduce`].
    fn post(&self, to: usize, words: &[u64]) -> Result<()>;

    /// Waits until all posted words have been sent. The call is not collective, but the receivers must receive the
    /// words.
    ///
    /// # Errors
    /// See [`Transport::all_reduce`].
    fn settle(&self) -> Result<()>;

    /// The ranks that pass the same `color`, as a separate group in which they keep their order.
    ///
    /// # Errors
    /// See [`Transport::all_reduce`].
    fn split(&self, color: usize) -> Result<Box<dyn Transport>>;

    /// A number that is the same on all ranks that can share memory with this one, and on no others.
    ///
    /// # Errors
    /// See [`Transport::all_reduce`].
    fn machine(&self) -> Result<usize>;

    /// Memory of `words` zero words that all ranks of the group address; the ranks must be able to share memory.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`] on every rank if the system refuses the memory, which is reserved at once and not
    /// at its first use; [`crate::Error::InvalidArgument`] for a kind that this transport does not have.
    fn open_window(&self, kind: WindowKind, words: usize) -> Result<Box<dyn Backing>>;

    /// Opens a mailbox for asynchronous messages, which are separate from those of all other calls. Under MPI the
    /// thread that uses it must be one that may call MPI.
    ///
    /// # Errors
    /// See [`Transport::all_reduce`].
    fn open_mailbox(&self) -> Result<Box<dyn Mailbox>>;

    /// Ends the processes of all ranks at once, for failures that no agreement can handle.
    fn abort(&self, exit_code: u8) -> !;
}

/// Waits until all ranks of the group have called it.
///
/// # Errors
/// [`crate::Error::Transport`].
pub fn barrier(group: &dyn Transport) -> Result<()> {
    group.all_reduce(Reduction::Max, &mut [0])
}

/// Gives every rank the bytes of rank `root`; the bytes that the others pass are ignored.
///
/// # Errors
/// [`crate::Error::Transport`].
pub fn broadcast_bytes(group: &dyn Transport, root: usize, bytes: &[u8]) -> Result<Vec<u8>> {
    let mut count = [bytes.len() as u64];
    group.broadcast(root, &mut count)?;
    let mut words = vec![0u64; (count[0] as usize).div_ceil(8)];
    if group.rank() == root {
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
    }
    group.broadcast(root, &mut words)?;
    Ok(bytemuck::cast_slice(&words)[..count[0] as usize].to_vec())
}

/// The error of a rank that waits for one that is gone.
fn left(rank: usize) -> Error {
    Error::Transport(format!("rank {rank} has left the group"))
}
