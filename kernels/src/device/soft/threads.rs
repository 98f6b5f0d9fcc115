//! Threads that carry out work of a software device.

use crate::store::start_in;
use rayon::ThreadPool;
use std::panic::resume_unwind;

/// Runs `work` in a pool, from a thread that belongs to none: one that did would take up other work of its own pool
/// while it waits, which may want this device, too.
pub(super) fn apart(pool: &ThreadPool, work: impl FnOnce() + Send) {
    std::thread::scope(|scope| start_in(scope, || pool.install(work)).join())
        .unwrap_or_else(|panic| resume_unwind(panic));
}
