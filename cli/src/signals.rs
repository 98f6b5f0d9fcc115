//! SIGINT and SIGTERM: a flag that computations look at, and a quiet end where nothing can be left half-done.
//!
//! Three modes. *Free* (reading, nothing on disk): the process ends at once with code 130. *Computing*: only the flag
//! is set; the progress callback returns it, the operation ends with `Error::Cancelled`, and destructors run.
//! *Writing*: the flag is set and looked at when the file is complete; a second signal does not hurry it. In
//! *Computing* a second signal ends the process at once.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use sunzi::{Error, Result};

/// What a signal may do now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// End the process at once.
    Free,
    /// Ask the computation to stop; end the process at the second signal.
    Computing,
    /// Ask the program to stop once the file being written is complete.
    Writing,
}

static STOP: AtomicBool = AtomicBool::new(false);
static MODE: Mutex<Mode> = Mutex::new(Mode::Free);

/// Starts the thread that answers signals. Without it (where the system refuses) signals end the process as usual.
pub fn install() {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else { return };
    let answer = move || {
        for _ in signals.forever() {
            // The lock is held while the process ends, so that no file can be begun in between.
            let mode = MODE.lock().unwrap_or_else(PoisonError::into_inner);
            // Where the process ends here, no reader is told to stop, who would say so as well.
            let second = *mode != Mode::Free && STOP.swap(true, Ordering::Relaxed);
            if *mode == Mode::Free || (*mode == Mode::Computing && second) {
                crate::output::print_error(&Error::Cancelled.to_string());
                std::process::exit(Error::Cancelled.exit_code().into());
            }
        }
    };
    // A refused thread leaves the signals registered but unanswered; that cannot be undone, and has not been seen.
    let _ = std::thread::Builder::new().name("signals".into()).spawn(answer);
}

/// Whether a signal asked to stop.
pub fn stop_requested() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// Runs `work` in `mode`, then goes back to the mode before.
///
/// # Errors
/// [`Error::Cancelled`] where a signal came before the start, and whatever `work` returns.
pub fn in_mode<T>(mode: Mode, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let _restore = Restore(set_mode(mode));
    if stop_requested() {
        return Err(Error::Cancelled);
    }
    work()
}

/// Runs `work` in mode *Computing* even where a signal came before: on one of several ranks, where only the progress
/// callback may end the work, so that all ranks end it together.
pub fn while_computing<T>(work: impl FnOnce() -> T) -> T {
    let _restore = Restore(set_mode(Mode::Computing));
    work()
}

struct Restore(Mode);

impl Drop for Restore {
    fn drop(&mut self) {
        set_mode(self.0);
    }
}

fn set_mode(mode: Mode) -> Mode {
    std::mem::replace(&mut *MODE.lock().unwrap_or_else(PoisonError::into_inner), mode)
}
