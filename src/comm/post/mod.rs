//! Messages that no rank waits for: each rank's one thread that moves them starts sends and receives, and learns later
//! what has arrived and what has left.
//!
//! A message is a short *head*, which always travels, and perhaps a *body*: words that stay with the sender until the
//! receiver asks for them, so that the receiver chooses where and when they take memory. Knows: words and ranks. Does
//! not know: what heads say, and threads that work meanwhile, but for the [`Waker`] that they may hold.
//! Promise: heads from one rank to another arrive in the order in which they were sent, and their bodies are given out
//! in that order; nothing here but [`drain`] waits for other ranks.

#[cfg(test)]
pub(crate) mod faulty;
mod local;
#[cfg(test)]
mod tests;
mod waker;

pub use waker::Waker;

pub(in crate::comm) use local::{LocalPost, Mailboxes};

use crate::comm::{Reduction, Transport, agree};
use crate::error::{Error, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Words of a body. Several messages may carry the same; a handle is given back by dropping it.
pub type Body = Arc<Vec<u64>>;

/// The longest head in words.
pub const HEAD_WORDS: usize = 1 + (1 << 15);

/// What has arrived or ended.
#[derive(Debug)]
pub enum Arrival {
    /// A head.
    Head {
        /// The sending rank.
        from: usize,
        /// What it sent.
        head: Vec<u64>,
        /// Length of the body that waits for [`Post::receive`], which may be 0; `None` where there is no body.
        body_words: Option<usize>,
    },
    /// A body that was asked for.
    Body {
        /// As it was asked for.
        token: u64,
        /// Its words, in the buffer that was given.
        body: Vec<u64>,
    },
    /// A body has left: its handle has been dropped.
    Sent {
        /// As it was sent.
        token: u64,
    },
}

/// What has been sent and received, and what is under way.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Heads sent since the post was opened.
    pub sent: u64,
    /// Heads that [`Post::poll`] has returned since then.
    pub received: u64,
    /// Heads and bodies sent that have not left. A body has left when [`Post::poll`] has said so.
    pub leaving: usize,
    /// Bodies asked for that [`Post::poll`] has not returned.
    pub arriving: usize,
}

/// Asynchronous messages between the ranks of a group, seen from the one thread of a rank that moves them.
///
/// [`Transport::open_post`] makes one. Messages move only while it is called: who has nothing else to do calls
/// [`Post::pause`]. A rank may send to itself.
/// Before they drop their posts the ranks call [`drain`]. A post that is dropped while messages are under way gives up:
/// what MPI may still read or write then stays in memory until the process ends, as only other ranks could end it.
/// After an error of MPI every [`Post::poll`] returns it.
pub trait Post: Send {
    /// This rank within the group, from 0.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn size(&self) -> usize;

    /// Starts sending `head`, and `body` where there is one; its token comes back in [`Arrival::Sent`].
    ///
    /// # Errors
    /// [`Error::Transport`] where there is no rank `to`, where the head is longer than [`HEAD_WORDS`], or where the
    /// transport fails.
    fn send(&mut self, to: usize, head: &[u64], body: Option<(Body, u64)>) -> Result<()>;

    /// Asks for the oldest body that `from` has announced by a head and that has not been asked for. It comes in
    /// [`Arrival::Body`] with `token`, in `buffer`, which takes its length.
    ///
    /// # Errors
    /// [`Error::Transport`] where `from` has announced no other body, or the transport fails;
    /// [`Error::OutOfMemory`] where the buffer cannot grow: then the body may be asked for again.
    fn receive(&mut self, from: usize, token: u64, buffer: Vec<u64>) -> Result<()>;

    /// What has arrived or ended since the last call, one by one; never waits.
    ///
    /// # Errors
    /// [`Error::Transport`], also where a body is not as long as its head said.
    fn poll(&mut self) -> Result<Option<Arrival>>;

    /// Waits until something may have happened, somebody has called the waker, or `most` has passed.
    fn pause(&mut self, most: Duration);

    /// Says whether this rank has work for a while without what may arrive: a transport that has to look for messages
    /// then looks less often, and leaves the processor to the work.
    fn set_patient(&mut self, _patient: bool) {}

    /// A handle with which other threads of this process end a pause, this one or, if there is none, the next.
    fn waker(&self) -> Waker;

    /// What has been sent and received, and what is under way.
    fn counts(&self) -> Counts;

    /// A rank that has announced a body which has not been asked for.
    fn announced(&self) -> Option<usize>;

    /// Heads and bodies sent that have not left.
    fn in_flight(&self) -> usize {
        self.counts().leaving
    }
}

/// How long a rank that drains sees to its own messages before it asks whether all ranks are done: asking keeps it from
/// moving them, and each of the other ranks may be what they wait for.
const DRAIN_ROUND: Duration = Duration::from_millis(10);
const DRAIN_PAUSE: Duration = Duration::from_millis(1);

/// Rounds that may fail before ranks give up what is still on its way.
const DRAIN_TRIES: u32 = 20;

/// Receives and throws away all that is still on its way between the ranks of `group`, those of `post`. Collective:
/// each rank calls it when it sends no more, be it at the end or because it has failed.
///
/// Nothing of the messages is left when it returns: all bodies have been given back, whether or not their receivers
/// had asked for them.
///
/// # Errors
/// On every rank the first rank's error, as [`agree`] gives it; [`Error::Transport`].
pub fn drain(group: &dyn Transport, post: &mut dyn Post) -> Result<()> {
    let mut scratch = Vec::new();
    let mut failed_rounds = 0;
    loop {
        let outcome = drain_own(post, &mut scratch);
        let Counts { sent, received, leaving, arriving } = post.counts();
        let mut sums = [sent, received, (leaving + arriving) as u64, outcome.is_err().into()];
        group.all_reduce(Reduction::Sum, &mut sums)?;
        let [sent, received, open, failed] = sums;
        // Memory for a body may be there the next time; what stays broken ends all ranks in the same round.
        failed_rounds += u32::from(failed > 0);
        if failed > 0 && failed_rounds == DRAIN_TRIES {
            return agree(group, outcome);
        }
        if failed == 0 && sent == received && open == 0 {
            return Ok(());
        }
    }
}

/// Throws away what comes until nothing of this rank is under way, or a round is over.
fn drain_own(post: &mut dyn Post, scratch: &mut Vec<u64>) -> Result<()> {
    let start = Instant::now();
    loop {
        discard(post, scratch)?;
        let Counts { leaving, arriving, .. } = post.counts();
        if leaving + arriving == 0 || start.elapsed() >= DRAIN_ROUND {
            return Ok(());
        }
        post.pause(DRAIN_PAUSE);
    }
}

/// Throws away what is there. Asks for announced bodies one at a time, so that one `scratch` does; at the end either
/// none is left or one is on its way.
fn discard(post: &mut dyn Post, scratch: &mut Vec<u64>) -> Result<()> {
    loop {
        match (post.poll()?, post.announced()) {
            (Some(Arrival::Body { body, .. }), _) => *scratch = body,
            (Some(_), _) => {}
            (None, Some(from)) if post.counts().arriving == 0 => post.receive(from, 0, std::mem::take(scratch))?,
            (None, _) => return Ok(()),
        }
    }
}

/// Refuses what cannot be sent.
pub(in crate::comm) fn check_message(to: usize, size: usize, head: &[u64]) -> Result<()> {
    if to >= size {
        return Err(Error::Transport(format!("a message to rank {to} of a group of {size}")));
    }
    if head.len() > HEAD_WORDS {
        return Err(Error::Transport(format!("a head of {} words, of at most {HEAD_WORDS}", head.len())));
    }
    Ok(())
}

/// The error where a body is asked for that nobody has announced.
pub(in crate::comm) fn not_announced(from: usize) -> Error {
    Error::Transport(format!("rank {from} has announced no body that has not been asked for"))
}

/// Gives `buffer` room for `words` words.
pub(in crate::comm) fn make_room(buffer: &mut Vec<u64>, words: usize) -> Result<()> {
    let more = words.saturating_sub(buffer.len());
    buffer.try_reserve_exact(more).map_err(|_| Error::OutOfMemory { bytes: words as u64 * 8 })
}
