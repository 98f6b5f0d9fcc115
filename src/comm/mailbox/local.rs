//! Messages between ranks that are threads: a mailbox per rank. A payload travels as a handle, and the receiver copies
//! it.

use crate::comm::left;
use crate::comm::mailbox::{Arrival, Counts, Mailbox, Payload, Waker, check_message, make_room, not_announced};
use crate::error::Result;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The inboxes of all ranks of a group.
pub(in crate::comm) struct Inboxes {
    boxes: Vec<Inbox>,
    /// A rank that has panicked, [`NOBODY`] where none has: the others may wait for it.
    panicked: AtomicUsize,
}

const NOBODY: usize = usize::MAX;

#[derive(Default)]
struct Inbox {
    inside: Mutex<Inside>,
    waker: Waker,
}

#[derive(Default)]
struct Inside {
    envelopes: VecDeque<LocalEnvelope>,
    /// Tokens of the owner's payloads that have left.
    left: VecDeque<u64>,
    /// Whether the owner is gone.
    closed: bool,
}

struct LocalEnvelope {
    from: usize,
    header: Vec<u64>,
    payload: Option<(Payload, u64)>,
}

/// The mailbox of one thread.
pub(in crate::comm) struct LocalMailbox {
    inboxes: Arc<Inboxes>,
    rank: usize,
    /// Payloads that have not been requested, with their senders' tokens, by sender.
    announced: Vec<VecDeque<(Payload, u64)>>,
    /// Payloads that have been requested, with tokens of this rank.
    copied: VecDeque<(u64, Vec<u64>)>,
    counts: Counts,
}

impl Inboxes {
    pub(in crate::comm) fn new(size: usize) -> Inboxes {
        Inboxes { boxes: (0..size).map(|_| Inbox::default()).collect(), panicked: AtomicUsize::new(NOBODY) }
    }
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    fn is_empty(&self) -> bool {
        self.envelopes.is_empty() && self.left.is_empty()
    }
}

impl LocalMailbox {
    pub(in crate::comm) fn new(inboxes: Arc<Inboxes>, rank: usize) -> LocalMailbox {
        let announced = inboxes.boxes.iter().map(|_| VecDeque::new()).collect();
        LocalMailbox { inboxes, rank, announced, copied: VecDeque::new(), counts: Counts::default() }
    }

    fn own(&self) -> &Inbox {
        &self.inboxes.boxes[self.rank]
    }

    /// The error of a rank that has panicked, where there is one.
    fn check_others(&self) -> Result<()> {
        match self.inboxes.panicked.load(Ordering::Acquire) {
            NOBODY => Ok(()),
            rank => Err(left(rank)),
        }
    }
}

impl Mailbox for LocalMailbox {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.inboxes.boxes.len()
    }

    fn send(&mut self, to: usize, header: &[u64], payload: Option<(Payload, u64)>) -> Result<()> {
        check_message(to, self.size(), header)?;
        let payloads = usize::from(payload.is_some());
        let envelope = LocalEnvelope { from: self.rank, header: header.to_vec(), payload };
        let other = &self.inboxes.boxes[to];
        let mut inside = other.lock();
        if inside.closed {
            return Err(left(to));
        }
        inside.envelopes.push_back(envelope);
        drop(inside);
        other.waker.wake();
        self.counts.sent += 1;
        self.counts.leaving += payloads;
        Ok(())
    }

    fn receive(&mut self, from: usize, token: u64, mut buffer: Vec<u64>) -> Result<()> {
        let payloads = self.announced.get_mut(from).ok_or_else(|| not_announced(from))?;
        let (payload, _) = payloads.front().ok_or_else(|| not_announced(from))?;
        buffer.clear();
        make_room(&mut buffer, payload.len())?;
        buffer.extend_from_slice(payload);
        if let Some((payload, left)) = payloads.pop_front() {
            drop(payload);
            let sender = &self.inboxes.boxes[from];
            sender.lock().left.push_back(left);
            sender.waker.wake();
        }
        self.copied.push_back((token, buffer));
        self.counts.arriving += 1;
        Ok(())
    }

    fn poll(&mut self) -> Result<Option<Arrival>> {
        if let Some((token, payload)) = self.copied.pop_front() {
            self.counts.arriving -= 1;
            return Ok(Some(Arrival::Payload { token, payload }));
        }
        let (left, envelope) = {
            let mut inside = self.own().lock();
            let left = inside.left.pop_front();
            (left, if left.is_none() { inside.envelopes.pop_front() } else { None })
        };
        if let Some(token) = left {
            self.counts.leaving -= 1;
            return Ok(Some(Arrival::Sent { token }));
        }
        let Some(LocalEnvelope { from, header, payload }) = envelope else { return self.check_others().map(|()| None) };
        self.counts.received += 1;
        let payload_words = payload.as_ref().map(|(payload, _)| payload.len());
        self.announced[from].extend(payload);
        Ok(Some(Arrival::Header { from, header, payload_words }))
    }

    fn pause(&mut self, most: Duration) {
        if self.copied.is_empty() && self.own().lock().is_empty() {
            self.own().waker.wait(most);
        }
    }

    fn waker(&self) -> Waker {
        self.own().waker.clone()
    }

    fn counts(&self) -> Counts {
        self.counts
    }

    fn announced(&self) -> Option<usize> {
        self.announced.iter().position(|payloads| !payloads.is_empty())
    }
}

impl Drop for LocalMailbox {
    /// The envelopes will not be taken any more; a rank that panics notifies those that may wait for it.
    fn drop(&mut self) {
        let envelopes = {
            let mut inside = self.own().lock();
            inside.closed = true;
            std::mem::take(&mut inside.envelopes)
        };
        drop(envelopes);
        if std::thread::panicking() {
            self.inboxes.panicked.store(self.rank, Ordering::Release);
            self.inboxes.boxes.iter().for_each(|other| other.waker.wake());
        }
    }
}
