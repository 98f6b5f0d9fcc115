//! The loop over the problems of a batch.

use crate::context::{Context, Progress};
use crate::drive;
use crate::error::{Error, Result};
use crate::kernels::problem_lanes::LEAST_TOGETHER;
use crate::ops::batch::memory::BatchMemory;
use crate::ops::batch::report::BatchReport;
use crate::ops::batch::verb::{CallFigures, Item, PROBLEMS, Verb};
use crate::ops::product::problem::Accuracy;
use crate::ops::product::together::LanesDone;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The phase in progress reports.
const PHASE: &str = "batch";

/// A worker: its context, and the memory of its problems.
struct BatchWorker {
    ctx: Context,
    /// Bytes of the largest problem in addition to its result.
    largest_bytes: u64,
    /// The same of the smallest: where they differ, memory of several sizes is kept.
    smallest_bytes: u64,
    counts: BatchCounts,
}

/// The figures of the report for all problems together.
#[derive(Clone, Copy, Default)]
struct BatchCounts {
    direct: usize,
    /// Results that are accurate only by norms.
    by_norms: usize,
    range_bits: u32,
}

impl BatchCounts {
    fn and(self, other: BatchCounts) -> BatchCounts {
        BatchCounts {
            direct: self.direct + other.direct,
            by_norms: self.by_norms + other.by_norms,
            range_bits: self.range_bits.max(other.range_bits),
        }
    }
}

impl BatchWorker {
    fn new(ctx: Context) -> BatchWorker {
        BatchWorker { ctx, largest_bytes: 0, smallest_bytes: u64::MAX, counts: BatchCounts::default() }
    }

    fn note(&mut self, done: &CallFigures, result_bytes: u64) {
        self.note_bytes(done.planned_bytes.saturating_sub(result_bytes));
        let (direct, by_norms) = (usize::from(done.direct), usize::from(done.accuracy == Accuracy::Norm));
        self.counts = self.counts.and(BatchCounts { direct, by_norms, range_bits: done.range_bits });
    }

    fn note_bytes(&mut self, own_bytes: u64) {
        self.largest_bytes = self.largest_bytes.max(own_bytes);
        self.smallest_bytes = self.smallest_bytes.min(own_bytes);
    }

    /// Peak bytes in addition to results.
    fn bytes(&self) -> u64 {
        let kept_bytes = if self.smallest_bytes < self.largest_bytes { self.ctx.workspace().bytes() } else { 0 };
        self.largest_bytes + kept_bytes
    }
}

/// A batch under way.
struct Batch<'b, V> {
    ctx: &'b Context,
    verb: &'b V,
    memory: BatchMemory,
    done: Arc<AtomicU64>,
    total: u64,
}

/// Pairs problems with the places of their results.
///
/// # Errors
/// [`Error::InvalidArgument`] where there are not as many of each.
pub(super) fn pair<'p, 'r, V: Verb>(
    verb: &V,
    problems: impl Iterator<Item = V::Problem<'p>>,
    mut outputs: impl Iterator<Item = V::Output<'r>>,
) -> Result<Vec<Item<'p, 'r, V>>> {
    let mut items = Vec::with_capacity(problems.size_hint().0);
    let mut missing = 0usize;
    for (number, problem) in problems.enumerate() {
        match outputs.next() {
            Some(output) => {
                items.push(Item { shape: verb.shape(&problem), number, problem, output, outcome: Ok(()) });
            }
            None => missing += 1,
        }
    }
    let (problems, outputs) = (items.len() + missing, items.len() + outputs.count());
    match problems == outputs {
        true => Ok(items),
        false => Err(Error::InvalidArgument(format!(
            "{}: there are {problems} problems, but {outputs} places for results",
            V::OPERATION
        ))),
    }
}

/// Runs all items: the outcome of each, in the order of their numbers.
///
/// # Errors
/// Those that end the whole call: [`Error::MemoryLimit`], [`Error::Cancelled`], [`Error::OutOfMemory`].
pub(super) fn run<V: Verb>(
    ctx: &Context,
    verb: &V,
    mut items: Vec<Item<'_, '_, V>>,
) -> Result<(Vec<Result<()>>, BatchReport)> {
    let start = Instant::now();
    let memory = BatchMemory::new(ctx, verb, &items)?;
    let batch = Batch { ctx, verb, memory, done: Arc::default(), total: items.len() as u64 };
    ctx.report_progress(Progress::new(PHASE, 0, batch.total))?;
    let mut workers = ctx.workers(memory.workers).map(|ctx| BatchWorker::new(batch.watched(ctx))).collect::<Vec<_>>();
    // Long problems first, so that the workers end at about the same time, and those of one shape together.
    items.sort_unstable_by_key(|item| (Reverse(item.shape.work()), item.shape, item.number));
    let refused = batch.run_all(&mut workers, &mut items)?;
    let mut counts = BatchCounts::default();
    if refused {
        // The memory that the others keep would leave too little for the one that continues.
        counts = workers.drain(1..).fold(counts, |counts, worker| counts.and(worker.counts));
        batch.run_refused(&mut workers[0], &mut items)?;
    }
    let counts = workers.iter().fold(counts, |counts, worker| counts.and(worker.counts));
    let (count, precision_bits) = (items.len(), verb.precision_bits());
    let mut outcomes = (0..count).map(|_| Ok(())).collect::<Vec<Result<()>>>();
    for Item { number, outcome, .. } in items {
        let named = |error| Error::Problem { problem: number, count, error: Box::new(error) };
        outcomes[number] = outcome.map_err(named);
    }
    let report = BatchReport {
        operation: V::OPERATION,
        problems: count,
        failed: outcomes.iter().filter(|outcome| outcome.is_err()).count(),
        precision_bits,
        accuracy: if counts.by_norms > 0 { Accuracy::Norm } else { verb.accuracy() },
        range_bits: counts.range_bits,
        threads: memory.workers,
        direct: counts.direct,
        planned_bytes: memory
            .planned_bytes(workers.iter().map(BatchWorker::bytes).sum(), verb.plans_are_bounds() && !refused),
        seconds: start.elapsed().as_secs_f64(),
    };
    Ok((outcomes, report))
}

/// The results of all problems, or the error of the first that has none.
///
/// # Errors
/// [`Error::Problem`].
pub(super) fn all_or_first<R>(results: Vec<Result<R>>) -> Result<Vec<R>> {
    results.into_iter().collect()
}

/// Results with the outcomes of their problems.
pub(super) fn with_outcomes<R>(results: Vec<R>, outcomes: Vec<Result<()>>) -> Vec<Result<R>> {
    results.into_iter().zip(outcomes).map(|(result, outcome)| outcome.map(|()| result)).collect()
}

impl<V: Verb> Batch<'_, V> {
    /// A worker's context whose progress is that of the batch.
    fn watched(&self, worker: Context) -> Context {
        if !self.ctx.is_watched() {
            return worker;
        }
        let (ctx, done, total) = (self.ctx.clone(), Arc::clone(&self.done), self.total);
        worker.with_progress(move |_| {
            ctx.report_progress(Progress::new(PHASE, done.load(Ordering::Relaxed), total)).is_ok()
        })
    }

    /// Every item once; whether any was refused by its worker's share of the memory.
    fn run_all(&self, workers: &mut [BatchWorker], items: &mut [Item<'_, '_, V>]) -> Result<bool> {
        let of_one_shape = items.chunk_by_mut(|one, other| one.shape == other.shape);
        let (count, ctx) = (workers.len(), workers[0].ctx.clone());
        let mut next = of_one_shape.flat_map(move |items| {
            let most = items.len().div_ceil(count).min(PROBLEMS);
            let is_together = most >= LEAST_TOGETHER && self.is_together(&ctx, &items[0]);
            items.chunks_mut(if is_together { most } else { 1 })
        });
        let mut run = || drive::parallel_for(workers, |_| next.next(), |worker, items| self.attempt_all(worker, items));
        if self.memory.workers == 1 { run() } else { self.ctx.install(run) }?;
        Ok(self.memory.is_shared() && items.iter().any(is_refused))
    }

    /// Whether items of that shape go side by side.
    fn is_together(&self, ctx: &Context, item: &Item<'_, '_, V>) -> bool {
        self.verb.together_bytes(ctx, item.shape).is_some_and(|bytes| self.memory.has_room(bytes))
    }

    /// Some items of one shape, side by side where there are several; the remaining ones one after the other.
    fn attempt_all(&self, worker: &mut BatchWorker, items: &mut [Item<'_, '_, V>]) -> Result<()> {
        let mut done = 0;
        if items.len() > 1 {
            let ctx = self.context_for(worker, 0);
            let LanesDone { mask, range_bits } = self.verb.run_together(&ctx, items)?;
            let planned_bytes = self.verb.together_bytes(&ctx, items[0].shape).unwrap_or(0);
            drop(ctx);
            done = mask;
            worker.note_bytes(planned_bytes);
            let direct = done.count_ones() as usize;
            let range_bits = if direct > 0 { range_bits } else { 0 };
            worker.counts = worker.counts.and(BatchCounts { direct, by_norms: 0, range_bits });
            (0..done.count_ones()).try_for_each(|_| self.add_one())?;
        }
        let left = items.iter_mut().enumerate().filter(|(at, _)| done >> at & 1 == 0);
        left.map(|(_, item)| item).try_for_each(|item| self.attempt(worker, item))
    }

    /// A worker's context with its share of the memory, for results of `result_bytes` bytes.
    fn context_for<'w>(&self, worker: &'w BatchWorker, result_bytes: u64) -> Cow<'w, Context> {
        match self.memory.is_limited() {
            true => Cow::Owned(worker.ctx.with_memory(self.memory.of_worker(result_bytes))),
            false => Cow::Borrowed(&worker.ctx),
        }
    }

    /// One item, on its worker's share.
    fn attempt(&self, worker: &mut BatchWorker, item: &mut Item<'_, '_, V>) -> Result<()> {
        let result_bytes = item.shape.result_bytes(self.verb.precision_bits());
        let ctx = self.context_for(worker, result_bytes);
        let outcome = self.verb.run(&ctx, &item.problem, &mut item.output);
        drop(ctx);
        self.note(worker, item, outcome)?;
        if self.memory.is_shared() && is_refused(item) {
            return Ok(());
        }
        self.add_one()
    }

    /// The items that were refused, one at a time with the memory of all workers.
    fn run_refused(&self, worker: &mut BatchWorker, items: &mut [Item<'_, '_, V>]) -> Result<()> {
        for item in items.iter_mut().filter(|item| is_refused(item)) {
            let result_bytes = item.shape.result_bytes(self.verb.precision_bits());
            let ctx = worker.ctx.with_memory(self.memory.alone(result_bytes));
            ctx.release(); // what earlier problems left is in the way
            let outcome = self.verb.run(&ctx, &item.problem, &mut item.output);
            self.note(worker, item, outcome)?;
            self.add_one()?;
        }
        Ok(())
    }

    /// Keeps the outcome of an item; an error that ends the whole call is returned.
    fn note(&self, worker: &mut BatchWorker, item: &mut Item<'_, '_, V>, outcome: Result<CallFigures>) -> Result<()> {
        item.outcome = match outcome {
            Ok(done) => {
                worker.note(&done, item.shape.result_bytes(self.verb.precision_bits()));
                Ok(())
            }
            Err(error @ (Error::Cancelled | Error::OutOfMemory { .. })) => return Err(error),
            Err(error) => Err(error),
        };
        Ok(())
    }

    fn add_one(&self) -> Result<()> {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        self.ctx.report_progress(Progress::new(PHASE, done, self.total))
    }
}

fn is_refused<V: Verb>(item: &Item<'_, '_, V>) -> bool {
    matches!(item.outcome, Err(Error::MemoryLimit { .. }))
}
