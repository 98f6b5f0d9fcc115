//! Messages between ranks that are threads: a mailbox per rank. A body travels as a handle, and the receiver copies it.

use crate::comm::left;
use crate::comm::post::{Arrival, Body, Counts, Post, Waker, check_message, make_room, not_announced};
use crate::error::Result;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The mailboxes of all ranks of a group.
pub(in crate::comm) struct Mailboxes {
    boxes: Vec<Mailbox>,
    /// A rank that has panicked, [`NOBODY`] where none has: the others may wait for it.
    panicked: AtomicUsize,
}

const NOBODY: usize = usize::MAX;

#[derive(Default)]
struct Mailbox {
    inside: Mutex<Inside>,
    waker: Waker,
}

#[derive(Default)]
struct Inside {
    envelopes: VecDeque<Envelope>,
    /// Tokens of the owner's bodies that have left.
    left: VecDeque<u64>,
    /// Whether the owner is gone.
    closed: bool,
}

struct Envelope {
    from: usize,
    head: Vec<u64>,
    body: Option<(Body, u64)>,
}

/// The post of one thread.
pub(in crate::comm) struct LocalPost {
    mailboxes: Arc<Mailboxes>,
    rank: usize,
    /// Bodies that have not been asked for, with their senders' tokens, by sender.
    announced: Vec<VecDeque<(Body, u64)>>,
    /// Bodies that have been asked for, with tokens of this rank.
    copied: VecDeque<(u64, Vec<u64>)>,
    counts: Counts,
}

impl Mailboxes {
    pub(in crate::comm) fn new(size: usize) -> Mailboxes {
        Mailboxes { boxes: (0..size).map(|_| Mailbox::default()).collect(), panicked: AtomicUsize::new(NOBODY) }
    }
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    fn is_empty(&self) -> bool {
        self.envelopes.is_empty() && self.left.is_empty()
    }
}

impl LocalPost {
    pub(in crate::comm) fn new(mailboxes: Arc<Mailboxes>, rank: usize) -> LocalPost {
        let announced = mailboxes.boxes.iter().map(|_| VecDeque::new()).collect();
        LocalPost { mailboxes, rank, announced, copied: VecDeque::new(), counts: Counts::default() }
    }

    fn own(&self) -> &Mailbox {
        &self.mailboxes.boxes[self.rank]
    }

    /// The error of a rank that has panicked, where there is one.
    fn check_others(&self) -> Result<()> {
        match self.mailboxes.panicked.load(Ordering::Acquire) {
            NOBODY => Ok(()),
            rank => Err(left(rank)),
        }
    }
}

impl Post for LocalPost {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.mailboxes.boxes.len()
    }

    fn send(&mut self, to: usize, head: &[u64], body: Option<(Body, u64)>) -> Result<()> {
        check_message(to, self.size(), head)?;
        let bodies = usize::from(body.is_some());
        let envelope = Envelope { from: self.rank, head: head.to_vec(), body };
        let other = &self.mailboxes.boxes[to];
        let mut inside = other.lock();
        if inside.closed {
            return Err(left(to));
        }
        inside.envelopes.push_back(envelope);
        drop(inside);
        other.waker.wake();
        self.counts.sent += 1;
        self.counts.leaving += bodies;
        Ok(())
    }

    fn receive(&mut self, from: usize, token: u64, mut buffer: Vec<u64>) -> Result<()> {
        let bodies = self.announced.get_mut(from).ok_or_else(|| not_announced(from))?;
        let (body, _) = bodies.front().ok_or_else(|| not_announced(from))?;
        buffer.clear();
        make_room(&mut buffer, body.len())?;
        buffer.extend_from_slice(body);
        if let Some((body, left)) = bodies.pop_front() {
            drop(body);
            let sender = &self.mailboxes.boxes[from];
            sender.lock().left.push_back(left);
            sender.waker.wake();
        }
        self.copied.push_back((token, buffer));
        self.counts.arriving += 1;
        Ok(())
    }

    fn poll(&mut self) -> Result<Option<Arrival>> {
        if let Some((token, body)) = self.copied.pop_front() {
            self.counts.arriving -= 1;
            return Ok(Some(Arrival::Body { token, body }));
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
        let Some(Envelope { from, head, body }) = envelope else { return self.check_others().map(|()| None) };
        self.counts.received += 1;
        let body_words = body.as_ref().map(|(body, _)| body.len());
        self.announced[from].extend(body);
        Ok(Some(Arrival::Head { from, head, body_words }))
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
        self.announced.iter().position(|bodies| !bodies.is_empty())
    }
}

impl Drop for LocalPost {
    /// Nobody takes the envelopes any more; a rank that panics tells those that may wait for it.
    fn drop(&mut self) {
        let envelopes = {
            let mut inside = self.own().lock();
            inside.closed = true;
            std::mem::take(&mut inside.envelopes)
        };
        drop(envelopes);
        if std::thread::panicking() {
            self.mailboxes.panicked.store(self.rank, Ordering::Release);
            self.mailboxes.boxes.iter().for_each(|other| other.waker.wake());
        }
    }
}
