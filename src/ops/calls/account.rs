//! The bytes of one call: those that copies hold of a memory limit, on this rank and on its node, and those that the
//! rank has at each step: one count for the call and for its plan, so that a report states the planned bytes.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::ops::Accuracy;
use std::borrow::Cow;
use std::cell::Cell;

/// The bytes of one call.
pub struct CallAccount<'a> {
    ctx: &'a Context,
    accuracy: Accuracy,
    /// Bytes of the memory limit used by copies of operands.
    held_bytes: Cell<u64>,
    /// Bytes of it used by other ranks of the node, which share the limit.
    others_bytes: Cell<u64>,
    /// Whether any of the ranks that make the call has a memory limit.
    limited: Cell<bool>,
    /// The bytes of a call over ranks at each step.
    tally: Cell<Tally>,
}

impl<'a> CallAccount<'a> {
    /// The account of a call with the accuracy `accuracy`.
    pub fn new(ctx: &'a Context, accuracy: Accuracy) -> CallAccount<'a> {
        let (held_bytes, others_bytes) = (Cell::default(), Cell::default());
        CallAccount { ctx, accuracy, held_bytes, others_bytes, limited: Cell::default(), tally: Cell::default() }
    }

    /// The requested accuracy of entries.
    pub fn accuracy(&self) -> Accuracy {
        self.accuracy
    }

    /// The context, with the part of the memory limit that remains after the copies of operands.
    pub fn context(&self) -> Cow<'a, Context> {
        match self.ctx.memory_bytes() {
            None => Cow::Borrowed(self.ctx),
            Some(limit) => Cow::Owned(self.ctx.with_memory_bytes(Some(limit.saturating_sub(self.counted_bytes())))),
        }
    }

    /// Bytes that count as held: this rank's, and those of the node's other ranks.
    fn counted_bytes(&self) -> u64 {
        self.held_bytes.get().saturating_add(self.others_bytes.get())
    }

    /// Bytes of the memory limit that this rank holds.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes.get()
    }

    /// The memory limit of this rank's context.
    pub fn limit_bytes(&self) -> Option<u64> {
        self.ctx.memory_bytes()
    }

    /// Notes the bytes that the other ranks of the node hold.
    pub(super) fn note_others(&self, bytes: u64) {
        self.others_bytes.set(bytes);
    }

    /// Whether any of the ranks that make the call has a memory limit; the same on all of them.
    pub(super) fn is_limited(&self) -> bool {
        self.limited.get()
    }

    /// Begins to count the steps of a call over `ranks` ranks.
    pub fn count_ranks(&self, ranks: usize) {
        self.tally.set(Tally::new(self.limit_bytes().is_none(), ranks));
    }

    /// Records whether any of the ranks that make the call has a memory limit.
    pub fn note_limited(&self, limited: bool) {
        self.limited.set(limited);
    }

    /// Counts a step of a call over ranks.
    pub(super) fn count(&self, step: impl FnOnce(&mut Tally)) {
        let mut tally = self.tally.get();
        step(&mut tally);
        self.tally.set(tally);
    }

    /// The bytes of the step that needs the most.
    pub fn most_bytes(&self) -> u64 {
        self.tally.get().most()
    }

    /// Reserves `bytes` bytes of the memory limit.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`].
    pub fn hold_bytes(&self, bytes: u64) -> Result<()> {
        let held = self.held_bytes.get().saturating_add(bytes);
        self.ctx.admit(held.saturating_add(self.others_bytes.get()))?;
        self.held_bytes.set(held);
        Ok(())
    }

    /// Returns `bytes` bytes to the memory limit.
    pub fn release_bytes(&self, bytes: u64) {
        self.held_bytes.set(self.held_bytes.get().saturating_sub(bytes));
    }

    /// Converts a result of the library on the reduced limit: limits in errors then refer to the whole limit.
    ///
    /// # Errors
    /// The errors of the result.
    pub fn done<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| match error {
            Error::MemoryLimit { minimum_bytes, .. } => Error::MemoryLimit {
                limit_bytes: self.ctx.memory_bytes().unwrap_or(u64::MAX),
                minimum_bytes: minimum_bytes.saturating_add(self.counted_bytes()),
            },
            other => other,
        })
    }
}

/// Bytes that one of several ranks takes in addition to those that the library counts: MPI's requests and its data for
/// each other rank, and memory that the allocator keeps from freed blocks of other lengths. Measured: 0.2 to
/// 0.6 MB (docs/BENCHMARKS.md).
const PROCESS_BYTES: u64 = 512 << 10;

/// The memory of the process of one of `ranks` ranks.
pub(super) fn process_bytes(ranks: usize) -> u64 {
    if ranks > 1 { PROCESS_BYTES } else { 0 }
}

/// The bytes of a rank, step by step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Whether the context has no limit, so that it keeps copies and memory for the next step and the next call.
    keeps: bool,
    /// Bytes at this time, and bytes that the context keeps from copies that have been freed.
    now: u64,
    /// Bytes of the longest messages that have been freed: the allocator keeps them for later messages.
    freed: u64,
    most: u64,
}

impl Tally {
    /// The tally of one of `ranks` ranks.
    pub fn new(keeps: bool, ranks: usize) -> Tally {
        Tally { keeps, now: process_bytes(ranks), ..Tally::default() }
    }

    /// Whether copies are kept for the next step.
    pub fn keeps(&self) -> bool {
        self.keeps
    }

    /// The largest number of bytes at one time.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// Counts `more` additional bytes for a step.
    pub fn at_most(&mut self, more: u64) {
        self.most = self.most.max(self.now.saturating_add(self.freed).saturating_add(more));
    }

    /// Counts messages of `messages` bytes, and `more` bytes in addition to them.
    pub fn travel(&mut self, messages: u64, more: u64) {
        self.at_most(more.saturating_add(messages.saturating_sub(self.freed)));
        self.freed = self.freed.max(messages);
    }

    /// Bytes that stay.
    pub fn hold(&mut self, bytes: u64) {
        self.now = self.now.saturating_add(bytes);
        self.at_most(0);
    }

    /// Bytes that go.
    pub fn release(&mut self, bytes: u64) {
        self.now = self.now.saturating_sub(bytes);
    }

    /// A copy is freed, or kept for the next call.
    pub fn drop_copy(&mut self, bytes: u64) {
        self.release(if self.keeps { 0 } else { bytes });
    }

    /// Memory of a step that the context keeps after it, if it has no limit.
    fn keep(&mut self, bytes: u64) {
        self.now += if self.keeps { bytes } else { 0 };
    }

    /// Stores a result of `placed` bytes where an operand was: if that was copied, the memory kept from the copy makes
    /// room.
    pub fn store_again(&mut self, messages: u64, placed: u64, was_copied: bool) {
        self.travel(messages, if was_copied && self.keeps { 0 } else { placed });
    }

    /// A factorisation that takes `planned` bytes: its matrix of `taken` bytes goes, the factor of `made` bytes stays.
    pub fn factor(&mut self, planned: u64, taken: u64, made: u64) {
        self.at_most(planned);
        self.release(taken);
        self.hold(made);
        self.keep(planned.saturating_sub(made));
    }
}
