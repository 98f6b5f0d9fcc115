//! Tasks that do not depend on each other, distributed over threads.
//!
//! Each task runs on one thread in a context of that thread, and its result goes to the place of its number, so that no
//! result depends on which thread runs which task. A single task has all threads. Under a memory limit every task has a
//! part of the memory that remains, and one that needs more is done again when no other task runs. Independent of: what
//! the tasks are.

use rayon::prelude::*;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use sunzi::{Context, Error, Result};

/// The memory of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TaskBytes {
    /// Its result.
    pub result: u64,
    /// While it is at work, with its result: a plan, or only the result where there is none.
    pub work: u64,
}

impl TaskBytes {
    /// The memory that it takes in addition to its result.
    pub fn beside_result(self) -> u64 {
        self.work.saturating_sub(self.result)
    }

    /// Bytes of all tasks of a list: the results, and the additional memory of the `workers` tasks at work.
    pub fn together(tasks: &[TaskBytes], workers: usize) -> u64 {
        let mut beside = tasks.iter().map(|task| task.beside_result()).collect::<Vec<_>>();
        beside.sort_unstable_by_key(|&bytes| Reverse(bytes));
        tasks.iter().map(|task| task.result).sum::<u64>() + beside.iter().take(workers).sum::<u64>()
    }
}

/// Gives the memory back that a context keeps between its calls.
fn release(ctx: &Context) {
    *ctx.workspace() = Default::default();
}

/// A context for all threads, and one for each.
pub struct Workers {
    /// Under the limit, where there is one: with the memory that the permanent data leave.
    all: Context,
    single: Arc<Mutex<Vec<Context>>>,
    count: usize,
}

impl Workers {
    /// Contexts of one thread each in addition to `all`, one for each of its threads; a memory limit of `all` holds for
    /// all of them together.
    ///
    /// # Errors
    /// The errors of [`sunzi::ContextBuilder::build`].
    pub fn new(all: Context) -> Result<Workers> {
        let count = all.threads();
        let single = || {
            // A stop is requested from `all`, and the threads check there as well.
            let asked = all.clone();
            let builder = Context::builder().threads(1).progress(move |told| asked.report_progress(told).is_ok());
            match all.forced_kernel() {
                Some(kernel) => builder.kernel(kernel.name()).build(),
                None => builder.build(),
            }
        };
        let single = Arc::new(Mutex::new((0..count).map(|_| single()).collect::<Result<Vec<_>>>()?));
        Ok(Workers { all, single, count })
    }

    /// The same threads under another limit.
    pub fn under(&self, limit_bytes: Option<u64>) -> Workers {
        Workers { all: self.all.with_memory_bytes(limit_bytes), single: Arc::clone(&self.single), count: self.count }
    }

    /// The context of all threads.
    pub fn all(&self) -> &Context {
        &self.all
    }

    /// The number of the `tasks` tasks that run at a time, and whether each has one thread.
    pub fn at_work(threads: usize, tasks: usize) -> (usize, bool) {
        if threads == 1 || tasks < 2 { (tasks.min(1), false) } else { (tasks.min(threads), true) }
    }

    /// Gives back the memory that earlier calls have left, under a limit: a call that needs less would have its results
    /// in addition to all of it.
    pub fn make_room(&self) {
        if self.all.memory_bytes().is_some() {
            release(&self.all);
        }
    }

    /// The result of `work` for each of `tasks`, in their order; those of the highest `cost` begin first. `bytes` is
    /// the memory of a task, where there is a limit.
    ///
    /// # Errors
    /// The error of the first task that fails, in the order of their numbers.
    pub fn map<T: Sync, R: Send>(
        &self,
        tasks: &[T],
        (cost, bytes): (impl Fn(&T) -> u64, impl Fn(&T) -> TaskBytes),
        work: impl Fn(&Context, &T) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let limits = Limits::new(self.all.memory_bytes(), tasks.iter().map(bytes), self.count);
        self.make_room();
        if !Workers::at_work(self.count, tasks.len()).1 {
            let each = tasks.iter().enumerate();
            return each.map(|(at, task)| work(&limits.alone(&self.all, at), task)).collect();
        }
        let mut order = (0..tasks.len()).collect::<Vec<_>>();
        order.sort_by_key(|&at| (Reverse(cost(&tasks[at])), at));
        let next = AtomicUsize::new(0);
        let run = |_: usize| {
            self.on_one_thread(|ctx| {
                let mut done = Vec::new();
                while let Some(&at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    done.push((at, work(&limits.beside_others(ctx, at), &tasks[at])));
                }
                done
            })
        };
        let workers = self.count.min(tasks.len());
        let done = self.all.install(|| (0..workers).into_par_iter().map(run).collect::<Vec<_>>());
        let mut results = done.into_iter().flatten().collect::<Vec<_>>();
        results.sort_by_key(|(at, _)| *at);
        let again = |(at, result)| match result {
            // Next to the others there was too little memory for it.
            Err(Error::MemoryLimit { .. }) => self.alone(|ctx| work(&limits.alone(ctx, at), &tasks[at])),
            result => result,
        };
        results.into_iter().map(again).collect()
    }

    /// Does one of several tasks while no other is at work: on all threads, or, where these have devices, on one that
    /// has none, as it was planned; a factor on devices has no way that takes as little memory as the one on limbs.
    fn alone<R>(&self, work: impl FnOnce(&Context) -> R) -> R {
        if self.all.devices().is_empty() { work(&self.all) } else { self.on_one_thread(work) }
    }

    /// Does `work` in a context of one thread that no other thread uses meanwhile; under a limit its memory is freed
    /// afterwards.
    fn on_one_thread<R>(&self, work: impl FnOnce(&Context) -> R) -> R {
        let ctx = self.single.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let ctx = ctx.unwrap_or_else(|| self.all.clone());
        let result = work(&ctx);
        if self.all.memory_bytes().is_some() {
            release(&ctx);
        }
        self.single.lock().unwrap_or_else(PoisonError::into_inner).push(ctx);
        result
    }
}

/// The limits of tasks, under one for all of them.
struct Limits {
    /// Nothing where there is no limit.
    tasks: Option<Vec<TaskBytes>>,
    /// The part of the limit that remains when all results are there.
    left: u64,
    /// The memory that each task at work has beyond its plan.
    share: u64,
}

impl Limits {
    fn new(limit_bytes: Option<u64>, tasks: impl Iterator<Item = TaskBytes>, threads: usize) -> Limits {
        let Some(limit_bytes) = limit_bytes else { return Limits { tasks: None, left: 0, share: 0 } };
        let tasks = tasks.collect::<Vec<_>>();
        let (workers, _) = Workers::at_work(threads, tasks.len());
        let left = limit_bytes.saturating_sub(tasks.iter().map(|task| task.result).sum());
        let share = limit_bytes.saturating_sub(TaskBytes::together(&tasks, workers)) / workers.max(1) as u64;
        Limits { tasks: Some(tasks), left, share }
    }

    /// The context of a task while others are at work.
    fn beside_others<'c>(&self, ctx: &'c Context, at: usize) -> Cow<'c, Context> {
        self.under(ctx, |tasks| tasks[at].work + self.share)
    }

    /// The context of a task while none is.
    fn alone<'c>(&self, ctx: &'c Context, at: usize) -> Cow<'c, Context> {
        self.under(ctx, |tasks| tasks[at].result + self.left)
    }

    /// `ctx` under a limit, or itself where there is none, as it has none then.
    fn under<'c>(&self, ctx: &'c Context, limit: impl Fn(&[TaskBytes]) -> u64) -> Cow<'c, Context> {
        self.tasks.as_ref().map_or(Cow::Borrowed(ctx), |tasks| Cow::Owned(ctx.with_memory_bytes(Some(limit(tasks)))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free<T>(_: &T) -> TaskBytes {
        TaskBytes::default()
    }

    #[test]
    fn results_stand_in_the_order_of_their_tasks() -> Result<()> {
        for threads in [1, 2, 3] {
            let workers = Workers::new(Context::builder().threads(threads).build()?)?;
            for count in [0, 1, 2, 3, 40] {
                let tasks = (0..count).collect::<Vec<u64>>();
                let squares = workers.map(&tasks, (|task: &u64| task % 7, free), |_, task| Ok(task * task))?;
                assert!(squares.iter().enumerate().all(|(at, square)| *square == (at * at) as u64));
                assert_eq!(squares.len() as u64, count);
            }
            let tasks = [5u64, 6, 7, 8];
            let failed = workers.map(&tasks, (|task: &u64| *task, free), |_, task| match task {
                6 | 8 => Err(Error::InvalidArgument(task.to_string())),
                _ => Ok(()),
            });
            assert!(matches!(failed, Err(Error::InvalidArgument(text)) if text == "6"));
        }
        Ok(())
    }

    #[test]
    fn tasks_share_what_is_left_and_one_that_wants_more_has_it_alone() -> Result<()> {
        let bytes = |&task: &u64| TaskBytes { result: 10, work: 10 + task };
        let tasks = [5u64, 1, 9];
        let list = tasks.iter().map(bytes).collect::<Vec<_>>();
        assert_eq!([0, 1, 2, 3, 7].map(|workers| TaskBytes::together(&list, workers)), [30, 39, 44, 45, 45]);
        for threads in [1, 2] {
            let ctx = Context::builder().threads(threads).memory_bytes(50).build()?;
            let workers = Workers::new(ctx)?;
            let limit = |ctx: &Context, _: &u64| Ok(ctx.memory_bytes().unwrap());
            let found = workers.map(&tasks, (|_: &u64| 0, bytes), limit)?;
            // One at a time has 20 bytes in addition to all results; two at a time 3 more than planned.
            assert_eq!(found, if threads == 1 { [30, 30, 30] } else { [18, 14, 22] });
            let asked = Mutex::new(Vec::new());
            let wants = |ctx: &Context, task: &u64| {
                asked.lock().unwrap_or_else(PoisonError::into_inner).push(*task);
                ctx.admit(if *task == 1 { 30 } else { 1 }).map(|()| *task)
            };
            assert_eq!(workers.map(&tasks, (|_: &u64| 0, bytes), wants)?, tasks);
            let times = asked.into_inner().unwrap_or_else(PoisonError::into_inner);
            assert_eq!(times.len(), if threads == 1 { 3 } else { 4 });
            let refused = workers.map(&tasks, (|_: &u64| 0, bytes), |ctx, _| ctx.admit(31)).unwrap_err();
            assert!(matches!(refused, Error::MemoryLimit { limit_bytes: 30, minimum_bytes: 31 }), "{refused}");
        }
        Ok(())
    }
}
