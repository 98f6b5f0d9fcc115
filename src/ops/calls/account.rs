//! The bytes of one call: those that copies hold of a memory limit, on this rank and on its node, and those of each
//! step.

use super::tally::Tally;
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

    /// The context of the call, with the whole limit.
    pub fn whole_context(&self) -> &'a Context {
        self.ctx
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
    pub fn is_limited(&self) -> bool {
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
    pub fn count(&self, step: impl FnOnce(&mut Tally)) {
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
