//! Ending a pause from another thread.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Ends the current pause of its mailbox or, if there is none, the next one.
#[derive(Clone, Default, Debug)]
pub struct Waker(Arc<Signal>);

#[derive(Default, Debug)]
struct Signal {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Waker {
    /// Ends the pause. The call is cheap if the mailbox has been woken already.
    pub fn wake(&self) {
        let mut woken = self.0.woken.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *woken, true) {
            self.0.changed.notify_one();
        }
    }

    /// Waits until [`Waker::wake`] has been called since the last wait, or `most` has passed; whether it was called.
    pub(in crate::comm) fn wait(&self, most: Duration) -> bool {
        let woken = self.0.woken.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.0.changed.wait_timeout_while(woken, most, |woken| !*woken);
        let (mut woken, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *woken)
    }
}
