//! Carries out the work of a scheduler on threads: whoever is free asks for more, and sleeps while there is none.

use super::{Stop, run_workers};
use crate::error::{Error, Result};
use crate::runtime::{Scheduler, Work};
use std::sync::{Condvar, Mutex, PoisonError};

/// Stops and wakes the other workers where work panics: they would wait for it for ever.
struct Alarm<'a, W: Fn()> {
    stop: &'a Stop,
    /// Waits until every worker that is about to sleep does so.
    wake: W,
    changed: &'a Condvar,
}

impl<W: Fn()> Drop for Alarm<'_, W> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.stop.set(Error::Cancelled);
            (self.wake)();
            self.changed.notify_all();
        }
    }
}

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
            let alarm = Alarm { stop: &stop, wake: || drop(scheduler.lock()), changed: &changed };
            let result = work(local, &item);
            drop(alarm);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;
    use crate::runtime::CholeskyGraph;
    use crate::tile::TileId;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_panic_in_one_piece_of_work_ends_all_workers() {
        for workers in [1, 2, 4] {
            let ctx = Context::builder().threads(workers).build().unwrap();
            let mut scheduler = Scheduler::new(CholeskyGraph { tiles: 6 }, workers);
            let mut locals = vec![(); workers];
            let run = || {
                ctx.install(|| {
                    run_graph(&mut locals, &mut scheduler, |(), work| {
                        assert!(work.tiles().all(|tile| tile != TileId { row: 2, col: 2 }), "planted");
                        Ok(())
                    })
                })
            };
            assert!(catch_unwind(AssertUnwindSafe(run)).is_err(), "{workers} workers");
        }
    }

    #[test]
    fn an_error_ends_all_workers() {
        let ctx = Context::builder().threads(3).build().unwrap();
        let mut scheduler = Scheduler::new(CholeskyGraph { tiles: 6 }, 3);
        let fail = |(): &mut (), work: &Work| if work.col == 3 { Err(Error::Cancelled) } else { Ok(()) };
        let result = ctx.install(|| run_graph(&mut [(); 3], &mut scheduler, fail));
        assert!(matches!(result, Err(Error::Cancelled)));
    }
}
