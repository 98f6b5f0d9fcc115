//! Tasks that do not depend on each other, shared out over threads.
//!
//! Each task runs on one thread in a context of that thread, and its result goes where its number says: who runs what
//! shows nowhere. A single task has all threads. Does not know: what the tasks are.

use rayon::prelude::*;
use std::cmp::Reverse;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use sunzi::{Context, Result};

/// A context for all threads, and one for each.
pub struct Workers {
    all: Context,
    single: Mutex<Vec<Context>>,
    count: usize,
}

impl Workers {
    /// Contexts of one thread each beside `all`, as many as that has threads; `limits` are those of the memory of a
    /// call on all threads, and of one on a single thread.
    ///
    /// # Errors
    /// Those of [`sunzi::ContextBuilder::build`].
    pub fn new(all: Context, limits: Option<(u64, u64)>) -> Result<Workers> {
        let (count, all) = (all.threads(), all.with_memory_bytes(limits.map(|limits| limits.0)));
        let single = || {
            // Who wants to stop says so to `all`, and the threads ask there as well.
            let asked = all.clone();
            let builder = Context::builder().threads(1).progress(move |told| asked.report_progress(told).is_ok());
            let builder = match limits {
                Some((_, bytes)) => builder.memory_bytes(bytes),
                None => builder,
            };
            match all.forced_kernel() {
                Some(kernel) => builder.kernel(kernel.name()).build(),
                None => builder.build(),
            }
        };
        let single = Mutex::new((0..count).map(|_| single()).collect::<Result<Vec<_>>>()?);
        Ok(Workers { all, single, count })
    }

    /// The context of all threads.
    pub fn all(&self) -> &Context {
        &self.all
    }

    /// The result of `work` for each of `tasks`, in their order; those of the highest `cost` begin first.
    ///
    /// # Errors
    /// The error of the first task, by number, that has one.
    pub fn map<T: Sync, R: Send>(
        &self,
        tasks: &[T],
        cost: impl Fn(&T) -> u64,
        work: impl Fn(&Context, &T) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        if self.count == 1 || tasks.len() < 2 {
            return tasks.iter().map(|task| work(&self.all, task)).collect();
        }
        let mut order = (0..tasks.len()).collect::<Vec<_>>();
        order.sort_by_key(|&at| (Reverse(cost(&tasks[at])), at));
        let next = AtomicUsize::new(0);
        let run = |_: usize| {
            let ctx = self.single.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let ctx = ctx.unwrap_or_else(|| self.all.clone());
            let mut done = Vec::new();
            while let Some(&at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                done.push((at, work(&ctx, &tasks[at])));
            }
            self.single.lock().unwrap_or_else(PoisonError::into_inner).push(ctx);
            done
        };
        let workers = self.count.min(tasks.len());
        let done = self.all.install(|| (0..workers).into_par_iter().map(run).collect::<Vec<_>>());
        let mut results = done.into_iter().flatten().collect::<Vec<_>>();
        results.sort_by_key(|(at, _)| *at);
        results.into_iter().map(|(_, result)| result).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sunzi::Error;

    #[test]
    fn results_stand_in_the_order_of_their_tasks() -> Result<()> {
        for threads in [1, 2, 3] {
            let workers = Workers::new(Context::builder().threads(threads).build()?, None)?;
            for count in [0, 1, 2, 3, 40] {
                let tasks = (0..count).collect::<Vec<u64>>();
                let squares = workers.map(&tasks, |task| task % 7, |_, task| Ok(task * task))?;
                assert!(squares.iter().enumerate().all(|(at, square)| *square == (at * at) as u64));
                assert_eq!(squares.len() as u64, count);
            }
            let tasks = [5u64, 6, 7, 8];
            let failed = workers.map(
                &tasks,
                |task| *task,
                |_, task| match task {
                    6 | 8 => Err(Error::InvalidArgument(task.to_string())),
                    _ => Ok(()),
                },
            );
            assert!(matches!(failed, Err(Error::InvalidArgument(text)) if text == "6"));
        }
        Ok(())
    }
}
