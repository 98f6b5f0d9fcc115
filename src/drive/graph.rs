//! Carries out the work of a scheduler on threads: whoever is free asks for more, and sleeps while there is none.

use super::{Stop, run_workers};
use crate::error::Result;
use crate::runtime::{Scheduler, Work};
use std::sync::{Condvar, Mutex, PoisonError};

/// Works until the scheduler is complete, one worker for each local.
///
/// # Errors
/// The first error of `work`; nothing new is begun after it.
pub fn run_graph<L: Send>(
    locals: &mut [L],
    scheduler: &mut Scheduler,
    work: impl Fn(&mut L, &Work) -> Result<()> + Sync,
) -> Result<()> {
    let (scheduler, changed, stop) = (Mutex::new(scheduler), Condvar::new(), Stop::default());
    run_workers(locals, |_, local| {
        let mut state = scheduler.lock().unwrap_or_else(PoisonError::into_inner);
        while !stop.is_set() && !state.is_complete() {
            let Some(item) = state.poll() else {
                assert!(state.in_flight() > 0, "the graph has no cycle");
                state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            let result = work(local, &item);
            state = scheduler.lock().unwrap_or_else(PoisonError::into_inner);
            match result {
                Ok(()) => state.done(&item),
                Err(error) => stop.set(error),
            }
            changed.notify_all();
        }
        changed.notify_all();
    });
    stop.into_result()
}
