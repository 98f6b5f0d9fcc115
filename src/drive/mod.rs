//! Runs planned work on the context's threads: shared queues, separate job lists, a common stop.
//!
//! Depends on: threads and locks. Independent of: the kind of work. Promise: every item is processed at most once, and
//! exactly once unless an item fails; the results do not depend on the thread that processes it, since items own the
//! data that they write. It must be called inside [`crate::Context::install`] if there is more than one worker.
#![forbid(unsafe_code)]

mod meter;
mod ranks;
mod shared_streams;
mod streams;

pub use meter::Meter;
pub use ranks::{
    DiskEvent, DiskTiles, RankPlan, RankReport, RankTiles, Sample, SpanKind, TransferRoom, WorkSpan, WorkerReport,
    run_tiles, sample_bytes, span_bytes,
};
pub use shared_streams::{SharedStreams, Submission};
pub use streams::{HostCopy, TileStreams, slot_bytes};

use crate::context::Context;
use crate::error::{Error, Result};
use rayon::prelude::*;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Ends all workers of one step at the first error.
#[derive(Default)]
struct Stop {
    stopped: AtomicBool,
    error: Mutex<Option<Error>>,
}

impl Stop {
    fn is_set(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn set(&self, error: Error) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn into_result(self) -> Result<()> {
        self.error.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}

/// Runs `worker(index, local)` once for each local, all at the same time where there are several.
fn run_workers<L: Send>(locals: &mut [L], worker: impl Fn(usize, &mut L) + Sync) {
    if let [only] = locals {
        return worker(0, only);
    }
    let worker = &worker;
    let mut locals = locals.iter_mut().enumerate();
    in_scope(&mut |scope| {
        for (index, local) in locals.by_ref() {
            scope.spawn(move |_| worker(index, local));
        }
    });
}

/// A scope of rayon, compiled once and not for each `spawn`: its copies would be a twentieth of the library.
fn in_scope<'scope>(spawn: &mut (dyn FnMut(&rayon::Scope<'scope>) + Send)) {
    rayon::scope(|scope| spawn(scope));
}

/// Processes all items that `next` returns, with one worker for each local state.
///
/// `next` runs under a lock, so it must be quick; it may store data of the item in the worker's local state.
///
/// # Errors
/// The first error of `work`; no new item is started after it.
pub fn parallel_for<L: Send, T>(
    locals: &mut [L],
    mut next: impl FnMut(&mut L) -> Option<T> + Send,
    work: impl Fn(&mut L, T) -> Result<()> + Sync,
) -> Result<()> {
    if let [only] = locals {
        // A single worker: no lock, and the first error ends the work.
        while let Some(item) = next(only) {
            work(only, item)?;
        }
        return Ok(());
    }
    let (next, stop) = (Mutex::new(next), Stop::default());
    run_workers(locals, |_, local| {
        while !stop.is_set() {
            let item = (next.lock().unwrap_or_else(PoisonError::into_inner))(local);
            let Some(item) = item else { break };
            if let Err(error) = work(local, item) {
                stop.set(error);
            }
        }
    });
    stop.into_result()
}

/// Processes the items of one list for each local state: every worker takes items from the front of its own list, then
/// from the back of the others' lists.
///
/// # Errors
/// The first error of `work`; no new item is started after it.
pub fn parallel_queues<L: Send, T: Send>(
    locals: &mut [L],
    lists: Vec<VecDeque<T>>,
    work: impl Fn(&mut L, T) -> Result<()> + Sync,
) -> Result<()> {
    assert_eq!(locals.len(), lists.len(), "one list for each worker");
    let lists = lists.into_iter().map(Mutex::new).collect::<Vec<_>>();
    let stop = Stop::default();
    let take = |own: usize| {
        let lock = |index: usize| lists[index].lock().unwrap_or_else(PoisonError::into_inner);
        let first = lock(own).pop_front();
        first.or_else(|| (1..lists.len()).find_map(|step| lock((own + step) % lists.len()).pop_back()))
    };
    run_workers(locals, |index, local| {
        while !stop.is_set() {
            let Some(item) = take(index) else { break };
            if let Err(error) = work(local, item) {
                stop.set(error);
            }
        }
    });
    stop.into_result()
}

/// Runs `work(0), work(1), ...` on the context's threads.
pub fn map_indices<R: Send>(ctx: &Context, count: usize, work: impl Fn(usize) -> R + Send + Sync) -> Vec<R> {
    if ctx.threads() == 1 {
        return (0..count).map(work).collect();
    }
    ctx.install(|| (0..count).into_par_iter().map(work).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_done_once_on_any_number_of_workers() {
        for workers in [1usize, 2, 5] {
            let ctx = Context::builder().threads(workers).build().unwrap();
            let mut counts = vec![0u32; 100];
            let mut locals = vec![0usize; workers];
            let mut items = counts.iter_mut();
            ctx.install(|| {
                parallel_for(
                    &mut locals,
                    |_| items.next(),
                    |local, item| {
                        *item += 1;
                        *local += 1;
                        Ok(())
                    },
                )
            })
            .unwrap();
            assert_eq!((counts.iter().all(|&count| count == 1), locals.iter().sum()), (true, 100));
            let mut lists = (0..workers).map(|_| VecDeque::new()).collect::<Vec<_>>();
            lists[workers - 1].extend(counts.iter_mut()); // the others must help
            let add = |_: &mut usize, item: &mut u32| {
                *item += 1;
                Ok(())
            };
            ctx.install(|| parallel_queues(&mut locals, lists, add)).unwrap();
            assert!(counts.iter().all(|&count| count == 2));
        }
    }

    #[test]
    fn an_error_stops_the_rest_and_is_returned() {
        let ctx = Context::builder().threads(3).build().unwrap();
        let mut items = 0..1_000_000u32;
        let result = ctx.install(|| {
            parallel_for(
                &mut [(); 3],
                |_| items.next(),
                |_, item| if item == 10 { Err(Error::Cancelled) } else { Ok(()) },
            )
        });
        assert!(matches!(result, Err(Error::Cancelled)));
        assert!(items.start < 1_000_000);
    }
}
