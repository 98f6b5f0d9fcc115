//! SIGINT and SIGTERM: a flag that computations look at, and a quiet end where nothing can be left half-done. In
//! addition SIGXFSZ, so that a limit on the size of files is an error of the write and not the end of the process.
//!
//! *Free* (reading, nothing on disk): the process ends at once with code 130. *Computing*: only the flag is set;
//! the progress callback returns it, the operation ends with `Error::Cancelled`, and destructors run; a second
//! signal ends the process at once. *Writing*: the flag is set, and ends the writing before the file has its final
//! name. *Together*, on several ranks: as Writing all the time, as no rank may leave while another one completes
//! the result. *Complete*: the result has its final name, and a signal no longer turns the run into a cancelled
//! one. In the last three modes another signal some seconds after the first one ends the process all the same:
//! something must keep it from ending.

use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use sunzi::advanced::store::room_for_threads;
use sunzi::{Error, Result};

/// The effect of a signal now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// End the process at once.
    Free,
    /// Requests the computation to stop; ends the process at the second signal.
    Computing,
    /// Requests the program to stop before the file being written is complete.
    Writing,
    /// Requests the ranks to stop together; kept until the result is complete.
    Together,
    /// Nothing; kept to the end.
    Complete,
}

/// The time after which another signal ends the process, if the first one could not.
const PATIENCE: Duration = Duration::from_secs(5);

static STOP: AtomicBool = AtomicBool::new(false);
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static MODE: Mutex<Mode> = Mutex::new(Mode::Free);

/// Starts the thread that answers signals. Without it (where the system refuses) signals end the process as usual.
pub fn install() {
    // A handler that only sets a flag lets the write fail; unlike a signal that is ignored, it is not inherited.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    if room_for_threads(1).is_err() {
        return; // a thread that finds no room while it starts would end the process
    }
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else { return };
    let answer = move || {
        let mut first = None;
        for signal in signals.forever() {
            // The lock is held while the process ends, so that no file can be begun in between.
            let mode = MODE.lock().unwrap_or_else(PoisonError::into_inner);
            if first.is_none() {
                INTERRUPTED.store(signal == SIGINT, Ordering::Relaxed);
            }
            let waited = first.get_or_insert_with(Instant::now).elapsed();
            // Where the process ends here, no reader is told to stop, which would print a message as well.
            let second = !matches!(*mode, Mode::Free | Mode::Complete) && STOP.swap(true, Ordering::Relaxed);
            let ends = match *mode {
                Mode::Free => true,
                Mode::Computing => second,
                Mode::Writing | Mode::Together | Mode::Complete => waited >= PATIENCE,
            };
            if ends {
                crate::output::print_error(&Error::Cancelled.to_string());
                std::process::exit(Error::Cancelled.exit_code().into());
            }
        }
    };
    // A refused thread leaves the signals registered but unanswered; that cannot be undone, and has not been seen.
    let _ = std::thread::Builder::new().name("signals".into()).spawn(answer);
}

/// From now on this process is one of several ranks.
pub fn work_together() {
    set_mode(Mode::Together);
}

/// From now on the result is complete, whatever signals came before.
pub fn complete() {
    set_mode(Mode::Complete);
    STOP.store(false, Ordering::Relaxed);
}

/// Whether a signal requested a stop.
pub fn stop_requested() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// Whether the first signal was that of Ctrl-C.
pub fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
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

/// Runs `work` in `mode` even where a signal came before: for writing the results of a run that was stopped.
pub fn even_after_a_signal<T>(mode: Mode, work: impl FnOnce() -> T) -> T {
    let _restore = Restore(set_mode(mode));
    work()
}

/// Runs `work` in mode *Computing* even where a signal came before: on one of several ranks, where only the progress
/// callback may end the work, so that all ranks end it together.
pub fn while_computing<T>(work: impl FnOnce() -> T) -> T {
    even_after_a_signal(Mode::Computing, work)
}

struct Restore(Mode);

impl Drop for Restore {
    fn drop(&mut self) {
        set_mode(self.0);
    }
}

/// Changes the mode, where the one before is not kept; returns that one.
fn set_mode(mode: Mode) -> Mode {
    let mut now = MODE.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = *now == Mode::Complete || (*now == Mode::Together && mode != Mode::Complete);
    let before = *now;
    *now = if kept { before } else { mode };
    before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_modes_are_kept() {
        let now = || *MODE.lock().unwrap();
        assert_eq!(in_mode(Mode::Writing, || Ok(now())).unwrap(), Mode::Writing);
        assert_eq!(now(), Mode::Free);
        work_together();
        while_computing(|| assert_eq!(now(), Mode::Together));
        STOP.store(true, Ordering::Relaxed);
        assert!(matches!(in_mode(Mode::Writing, || Ok(())), Err(Error::Cancelled)));
        complete();
        assert!(!stop_requested());
        assert_eq!(in_mode(Mode::Writing, || Ok(now())).unwrap(), Mode::Complete);
        assert_eq!(now(), Mode::Complete);
    }
}
