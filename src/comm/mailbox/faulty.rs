//! A mailbox for tests: some calls of another mailbox fail, or return messages late.

use super::{Arrival, Counts, Mailbox, Payload, Waker};
use crate::error::{Error, Result};
use std::ops::Range;
use std::time::Duration;

/// The message of a planted error.
pub const PLANTED: &str = "planted in a mailbox";

/// Calls that may fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    Send,
    Receive,
    Poll,
}

/// A mailbox whose calls of one kind fail, before they do anything, while their number, from 0, is in a range.
pub struct Faulty {
    inner: Box<dyn Mailbox>,
    call: Call,
    fails: Range<usize>,
    calls: usize,
    /// Number of further polls that return nothing, even if messages are there.
    late_polls: usize,
}

impl Faulty {
    /// With calls that fail.
    pub fn failing(inner: Box<dyn Mailbox>, call: Call, fails: Range<usize>) -> Faulty {
        Faulty { inner, call, fails, calls: 0, late_polls: 0 }
    }

    /// With messages that are in transit for some time.
    pub fn late(inner: Box<dyn Mailbox>, polls: usize) -> Faulty {
        Faulty { late_polls: polls, ..Faulty::failing(inner, Call::Poll, 0..0) }
    }

    fn check(&mut self, call: Call) -> Result<()> {
        let number = self.calls;
        self.calls += usize::from(call == self.call);
        match call == self.call && self.fails.contains(&number) {
            true => Err(Error::Transport(PLANTED.into())),
            false => Ok(()),
        }
    }
}

impl Mailbox for Faulty {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn send(&mut self, to: usize, header: &[u64], payload: Option<(Payload, u64)>) -> Result<()> {
        self.check(Call::Send)?;
        self.inner.send(to, header, payload)
    }

    fn receive(&mut self, from: usize, token: u64, buffer: Vec<u64>) -> Result<()> {
        self.check(Call::Receive)?;
        self.inner.receive(from, token, buffer)
    }

    fn poll(&mut self) -> Result<Option<Arrival>> {
        self.check(Call::Poll)?;
        if self.late_polls > 0 {
            self.late_polls -= 1;
            return Ok(None);
        }
        self.inner.poll()
    }

    fn pause(&mut self, most: Duration) {
        self.inner.pause(most);
    }

    fn waker(&self) -> Waker {
        self.inner.waker()
    }

    fn counts(&self) -> Counts {
        self.inner.counts()
    }

    fn announced(&self) -> Option<usize> {
        self.inner.announced()
    }
}
