//! Progress of one file: the part done, reported to the caller's callback, which may cancel.
//!
//! Independent of: files.

use crate::context::{Progress, ProgressCallback};
use crate::error::{Error, Result};
use std::sync::Arc;

/// The most units of work between two calls of the callback, which may cancel.
const MOST_UNITS: u64 = 1 << 20;

/// Counts units of work and calls the callback about a thousand times in all, more often where there are very many.
pub(super) struct Reporter {
    callback: Option<Arc<ProgressCallback>>,
    phase: &'static str,
    done: u64,
    total: u64,
    next: u64,
}

impl Reporter {
    /// Work of `total` units under the name `phase`; `total` is 0 where it is not known.
    pub fn new(callback: Option<Arc<ProgressCallback>>, phase: &'static str, total: u64) -> Self {
        Reporter { callback, phase, done: 0, total, next: 0 }
    }

    /// Adds `units` to the work done.
    ///
    /// # Errors
    /// [`Error::Cancelled`] where the callback returns `false`.
    pub fn advance(&mut self, units: u64) -> Result<()> {
        self.done += units;
        if self.done < self.next {
            return Ok(());
        }
        self.next = self.done + (self.total / 1000).clamp(1, MOST_UNITS);
        self.tell()
    }

    /// Reports the end: all is done, and an unknown total is known now.
    ///
    /// # Errors
    /// As [`Reporter::advance`].
    pub fn finish(&mut self) -> Result<()> {
        self.total = self.done.max(self.total);
        self.done = self.total;
        self.tell()
    }

    fn tell(&self) -> Result<()> {
        let Some(callback) = &self.callback else { return Ok(()) };
        let go_on = callback(Progress::new(self.phase, self.done, self.total));
        if go_on { Ok(()) } else { Err(Error::Cancelled) }
    }
}
