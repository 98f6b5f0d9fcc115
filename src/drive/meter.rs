//! Counts the work done in a call and calls the progress callback.

use crate::context::{Context, Progress};
use crate::error::Result;
use std::sync::atomic::{AtomicU64, Ordering};

/// Progress of one call, shared by its workers.
pub struct Meter<'a> {
    ctx: &'a Context,
    done: AtomicU64,
    total: u64,
}

impl<'a> Meter<'a> {
    /// A meter for `total` units of work.
    pub fn new(ctx: &'a Context, total: u64) -> Meter<'a> {
        Meter { ctx, done: AtomicU64::new(0), total }
    }

    /// The context of the call.
    pub fn ctx(&self) -> &'a Context {
        self.ctx
    }

    /// Adds `units` finished units of `phase` and reports them; with 0 units it only checks for cancellation.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`] if the callback requests a stop.
    pub fn add(&self, phase: &'static str, units: u64) -> Result<()> {
        let done = self.done.fetch_add(units, Ordering::Relaxed) + units;
        self.ctx.report_progress(Progress::new(phase, done.min(self.total), self.total))
    }
}
