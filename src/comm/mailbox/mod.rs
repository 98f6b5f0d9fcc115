//! Messages that no rank waits for: on each rank one thread starts sends and receives, and polls later for messages
//! that have arrived or left.
//!
//! A message is a short *header*, which always travels, and perhaps a *payload*: words that stay with the sender until
//! the receiver requests them, so that the receiver chooses where and when they take memory. Depends on: words and
//! ranks. Independent of: the meaning of headers, and threads that work meanwhile, except for the [`Waker`] that they
//! may hold. Promise: headers from one rank to another arrive in the order in which they were sent, and their payloads
//! are delivered in that order; nothing here but [`drain`] waits for other ranks.

#[cfg(test)]
pub(crate) mod faulty;
mod local;
#[cfg(test)]
mod tests;
mod waker;

pub use waker::Waker;

pub(in crate::comm) use local::{Inboxes, LocalMailbox};

use crate::comm::{Reduction, Transport, agree};
use crate::error::{Error, Result};
use crate::store::reserve;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The words of a message's payload. Several messages may carry the same payload; a handle is returned by dropping it.
pub type Payload = Arc<Vec<u64>>;

/// The longest header in words.
pub const HEADER_WORDS: usize = 1 + (1 << 15);

/// An event of a mailbox: the arrival of a message, or the end of a transfer.
#[derive(Debug)]
pub enum Arrival {
    /// The header of a message has arrived.
    Header {
        /// The sending rank.
        from: usize,
        /// The words of the header.
        header: Vec<u64>,
        /// Length of the payload that can be received by [`Mailbox::receive`], possibly 0; `None` if the message has no
        /// payload.
        payload_words: Option<usize>,
    },
    /// A requested payload has arrived.
    Payload {
        /// The token of the request.
        token: u64,
        /// The words of the payload, in the buffer that was passed to [`Mailbox::receive`].
        payload: Vec<u64>,
    },
    /// The transfer of a payload has ended and its handle has been dropped.
    Sent {
        /// The header as it was sent.
        token: u64,
    },
}

/// Counts of messages sent, received and in transit.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Headers sent since the mailbox was opened.
    pub sent: u64,
    /// Headers that [`Mailbox::poll`] has returned since the mailbox was opened.
    pub received: u64,
    /// Headers and payloads whose transfer has not ended. The transfer of a payload counts as ended when
    /// [`Mailbox::poll`] has returned [`Arrival::Sent`] for it.
    pub leaving: usize,
    /// Payloads requested that [`Mailbox::poll`] has not returned.
    pub arriving: usize,
}

/// Asynchronous messages between the ranks of a group, as seen by the one thread of a rank that sends and receives
/// them.
///
/// [`Transport::open_mailbox`] makes one. Messages move only during calls of its methods: a thread with nothing else to
/// do calls [`Mailbox::pause`]. A rank may send to itself. The ranks call [`drain`] before they drop their mailboxes.
/// If a mailbox is dropped while messages are in transit, memory that MPI may still read or write stays allocated until
/// the process ends, since only other ranks could complete the transfers. After an error of MPI every [`Mailbox::poll`]
/// returns it.
pub trait Mailbox: Send {
    /// This rank within the group, from 0.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn size(&self) -> usize;

    /// Starts sending `header` and, if it is given, `payload`, whose token is returned in [`Arrival::Sent`].
    ///
    /// # Errors
    /// [`Error::Transport`] if rank `to` does not exist, if the header is longer than [`HEADER_WORDS`], or if the
    /// transport fails.
    fn send(&mut self, to: usize, header: &[u64], payload: Option<(Payload, u64)>) -> Result<()>;

    /// Requests the oldest payload that `from` has announced by a header and that has not been requested. It arrives as
    /// [`Arrival::Payload`] with `token`, in `buffer`, which is resized to its length.
    ///
    /// # Errors
    /// [`Error::Transport`] where `from` has announced no other payload, or the transport fails;
    /// [`Error::OutOfMemory`] where the buffer cannot grow: then the payload may be requested again.
    fn receive(&mut self, from: usize, token: u64, buffer: Vec<u64>) -> Result<()>;

    /// Returns the next arrival or end of a transfer, `None` if there is none; never waits.
    ///
    /// # Errors
    /// [`Error::Transport`], also where a payload has another length than its header announced.
    fn poll(&mut self) -> Result<Option<Arrival>>;

    /// Waits until an event may have occurred, the waker is called, or `most` has passed.
    fn pause(&mut self, most: Duration);

    /// Sets whether this rank has work for a while without new arrivals: a transport that must poll for messages then
    /// polls less often, and leaves the processor to the work.
    fn set_patient(&mut self, _patient: bool) {}

    /// A handle with which other threads of this process end the current pause or, if there is none, the next one.
    fn waker(&self) -> Waker;

    /// Counts of messages sent, received and in transit.
    fn counts(&self) -> Counts;

    /// A rank that has announced a payload which has not been requested.
    fn announced(&self) -> Option<usize>;

    /// Headers and payloads whose transfer has not ended.
    fn in_flight(&self) -> usize {
        self.counts().leaving
    }
}

/// Time for which a draining rank moves its own messages before it checks whether all ranks are done: during the check
/// it moves none, and they may be what other ranks wait for.
const DRAIN_ROUND: Duration = Duration::from_millis(10);
const DRAIN_PAUSE: Duration = Duration::from_millis(1);

/// Rounds that may fail before ranks give up messages that are still on their way.
const DRAIN_TRIES: u32 = 20;

/// Receives and discards all messages in transit between the ranks of `group`, which must be the ranks of `mailbox`.
/// Collective: each rank calls it when it has no more messages to send, at the end or after a failure.
///
/// When it returns, no message is in transit: all payloads have been returned, whether or not their receivers had
/// requested them.
///
/// # Errors
/// On every rank the error of the first failed rank, as [`agree`] returns it; [`Error::Transport`].
pub fn drain(group: &dyn Transport, mailbox: &mut dyn Mailbox) -> Result<()> {
    let mut scratch = Vec::new();
    let mut failed_rounds = 0;
    loop {
        let outcome = drain_own(mailbox, &mut scratch);
        let Counts { sent, received, leaving, arriving } = mailbox.counts();
        let mut sums = [sent, received, (leaving + arriving) as u64, outcome.is_err().into()];
        group.all_reduce(Reduction::Sum, &mut sums)?;
        let [sent, received, open, failed] = sums;
        // Memory for a payload may be available the next time; a lasting failure ends all ranks in the same round.
        failed_rounds += u32::from(failed > 0);
        if failed > 0 && failed_rounds == DRAIN_TRIES {
            return agree(group, outcome);
        }
        if failed == 0 && sent == received && open == 0 {
            return Ok(());
        }
    }
}

/// Discards arriving messages until no message of this rank is under way, or a round is over.
fn drain_own(mailbox: &mut dyn Mailbox, scratch: &mut Vec<u64>) -> Result<()> {
    let start = Instant::now();
    loop {
        discard(mailbox, scratch)?;
        let Counts { leaving, arriving, .. } = mailbox.counts();
        if leaving + arriving == 0 || start.elapsed() >= DRAIN_ROUND {
            return Ok(());
        }
        mailbox.pause(DRAIN_PAUSE);
    }
}

/// Discards the messages that are there. Requests announced payloads one at a time, so that one `scratch` is enough; at
/// the end either none is left or one is on its way.
fn discard(mailbox: &mut dyn Mailbox, scratch: &mut Vec<u64>) -> Result<()> {
    loop {
        match (mailbox.poll()?, mailbox.announced()) {
            (Some(Arrival::Payload { payload, .. }), _) => *scratch = payload,
            (Some(_), _) => {}
            (None, Some(from)) if mailbox.counts().arriving == 0 => {
                mailbox.receive(from, 0, std::mem::take(scratch))?
            }
            (None, _) => return Ok(()),
        }
    }
}

/// Refuses what cannot be sent.
pub(in crate::comm) fn check_message(to: usize, size: usize, header: &[u64]) -> Result<()> {
    if to >= size {
        return Err(Error::Transport(format!("rank {to} does not exist: the group has {size} ranks")));
    }
    if header.len() > HEADER_WORDS {
        return Err(Error::Transport(format!("a header has {} words, but the limit is {HEADER_WORDS}", header.len())));
    }
    Ok(())
}

/// The error where a payload is requested that was not announced.
pub(in crate::comm) fn not_announced(from: usize) -> Error {
    Error::Transport(format!("no payload from rank {from} is waiting to be received"))
}

/// Gives `buffer` room for `words` words.
pub(in crate::comm) fn make_room(buffer: &mut Vec<u64>, words: usize) -> Result<()> {
    reserve(buffer, words.saturating_sub(buffer.len()))
}
