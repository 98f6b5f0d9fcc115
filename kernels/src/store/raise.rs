//! Refusals where code cannot return errors: panics that carry the error, so that the catcher recognises it by its type
//! and not by its text.

use crate::error::Error;
use std::panic::panic_any;
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// Ends work that cannot return `error`, which was caused by the system or a limit: a panic with the error as its
/// payload.
pub fn raise(error: Error) -> ! {
    panic_any(error)
}

/// Starts a thread in `scope`; if the system refuses it, panics with [`Error::Threads`], see [`raise`]. The caller
/// checks beforehand whether memory allows the threads ([`super::room_for_threads`]).
pub fn start_in<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, T> {
    let started = Builder::new().spawn_scoped(scope, work);
    started.unwrap_or_else(|refused| raise(Error::Threads { threads: 1, reason: refused.to_string() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_raised_is_caught_as_what_it_is() {
        let caught = std::panic::catch_unwind(|| raise(Error::OutOfMemory { bytes: 7 }));
        let error = caught.unwrap_err().downcast::<Error>().unwrap();
        assert!(matches!(*error, Error::OutOfMemory { bytes: 7 }));
    }

    #[test]
    fn threads_of_a_scope_give_what_they_made() {
        assert_eq!(std::thread::scope(|scope| start_in(scope, || 5).join().unwrap()), 5);
    }
}
