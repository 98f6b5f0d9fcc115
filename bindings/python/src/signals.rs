//! Looks for signals such as Ctrl-C in loops over entries, in which other threads of Python get their turn.

use pyo3::prelude::*;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Entries of which each may take a tenth of a millisecond, between two looks for signals.
const ENTRIES_AT_A_TIME: usize = 256;

/// How long the interpreter's lock is held. A waiting thread requests the lock after 5 ms, and counts anew when it sees
/// the lock free: if the lock were released more often, the converting thread would nearly always be the first to take
/// it again.
const LOCK_TIME: Duration = Duration::from_millis(10);

/// Looks for signals such as Ctrl-C now and then in a loop over entries, and lets other threads of Python run.
///
/// # Errors
/// The exception of the signal's handler.
pub fn look_for_signals(py: Python<'_>, index: usize) -> PyResult<()> {
    if index % ENTRIES_AT_A_TIME != ENTRIES_AT_A_TIME - 1 {
        return Ok(());
    }
    look_for_signals_now(py)
}

/// Checks for signals at every call, for loops over matrices that may have few entries each.
///
/// # Errors
/// As [`look_for_signals`].
pub fn look_for_signals_now(py: Python<'_>) -> PyResult<()> {
    thread_local! {
        static LOCKED_SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
    }
    let since = LOCKED_SINCE.get();
    if since.is_none_or(|since| since.elapsed() >= LOCK_TIME) {
        if since.is_some() {
            py.detach(|| ());
        }
        LOCKED_SINCE.set(Some(Instant::now()));
    }
    py.check_signals()
}
