//! A batch: the declaration of a verb's problems, the memory of the whole call, and the loop over the problems.
//!
//! Results and lists stay for the whole call. The rest of the memory is shared evenly; a worker's share must be enough
//! for the largest problem without a limit, else there are fewer workers. A single worker has all the rest for problems
//! that are cut to fit, as the single call cuts them.

use super::BatchReport;
use crate::context::{Context, MemoryBudget, Progress};
use crate::drive;
use crate::error::{Error, Result};
use crate::kernels::problem_lanes::LEAST_TOGETHER;
pub(super) use crate::kernels::problem_lanes::PROBLEMS;
use crate::matrix::Matrix;
use crate::ops::product::problem::Accuracy;
use crate::ops::product::report::Outcome;
use crate::ops::product::together::LanesDone;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The phase in progress reports.
const PHASE: &str = "batch";

/// The sizes of a problem: its plan and its work follow from them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ProblemShape {
    /// Rows of the result.
    pub rows: usize,
    /// Columns of the result.
    pub cols: usize,
    /// Terms of an entry.
    pub depth: usize,
}

/// A verb on one problem at a time.
pub(super) trait Verb: Sync {
    /// The name of the verb, such as `syrk_batch`.
    const OPERATION: &'static str;
    /// Operands.
    type Problem<'p>: Send + Sync;
    /// The destination of a result.
    type Output<'p>: Send;
    /// A result by itself.
    type Result;
    /// The method by which problems of one shape are computed at once.
    type Lanes;

    /// Precision of all results.
    fn precision_bits(&self) -> u32;
    /// Accuracy promised for each entry.
    fn accuracy(&self) -> Accuracy;
    /// Whether plans from only the sizes cover the memory of the problems.
    fn plans_are_bounds(&self) -> bool {
        self.accuracy() == Accuracy::Norm
    }
    /// The sizes of a problem.
    fn shape(&self, problem: &Self::Problem<'_>) -> ProblemShape;
    /// Bytes of the single call, the result included.
    fn plan(&self, ctx: &Context, shape: ProblemShape) -> Result<u64>;
    /// The path on which problems of this shape go side by side, where this machine has one that is faster than single
    /// calls.
    fn lanes(&self, ctx: &Context, shape: ProblemShape) -> Option<LanePath<Self::Lanes>>;
    /// Up to [`PROBLEMS`] problems of one shape side by side; those that are not done are left to single calls.
    fn run_lanes(&self, ctx: &Context, lanes: Self::Lanes, items: &mut [Item<'_, '_, Self>]) -> Result<LanesDone>
    where
        Self: Sized;
    /// The single call.
    fn run(&self, ctx: &Context, problem: &Self::Problem<'_>, output: &mut Self::Output<'_>) -> Result<CallFigures>;
}

/// The method by which problems of one shape are computed at once, and the bytes that it takes in addition to the
/// results.
pub(super) struct LanePath<L> {
    pub lanes: L,
    pub bytes: u64,
}

/// The figures of a single call.
pub(super) struct CallFigures {
    pub planned_bytes: u64,
    pub direct: bool,
    /// The accuracy that holds for each entry, and the bits that it took beyond those of norms.
    pub accuracy: Accuracy,
    pub range_bits: u32,
}

/// One problem and the place of its result.
pub(super) struct Item<'p, 'r, V: Verb> {
    pub shape: ProblemShape,
    pub number: usize,
    pub problem: V::Problem<'p>,
    pub output: V::Output<'r>,
    pub outcome: Result<()>,
}

impl ProblemShape {
    /// Approximate amount of work.
    pub fn work(&self) -> u128 {
        self.rows as u128 * self.cols as u128 * (self.depth as u128 + 8)
    }

    /// Whether lanes of AVX2 gain on single calls of such a product: from 31 terms and 16 x 16 entries on, the shape
    /// that gained where 20 terms and 10 x 10 entries lost.
    pub fn is_large_product(&self) -> bool {
        self.depth >= 31 && self.rows.min(self.cols) >= 16
    }

    /// Bytes of the result.
    pub fn result_bytes(&self, precision_bits: u32) -> u64 {
        Matrix::bytes_for(self.rows, self.cols, precision_bits)
    }
}

/// The memory of one batch.
#[derive(Clone, Copy, Debug)]
struct BatchMemory {
    /// The budget of the whole call.
    whole: MemoryBudget,
    /// Bytes of all results and lists.
    fixed_bytes: u64,
    /// Workers at the same time.
    workers: usize,
    /// Bytes in addition to its result that each of them may take; `None` without a limit.
    share_bytes: Option<u64>,
    /// Bytes in addition to its result that the largest problem takes, where that was planned.
    largest_bytes: u64,
}

impl BatchMemory {
    /// Plans a batch of these items.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`] with the smallest limit that suffices.
    fn new<V: Verb>(ctx: &Context, verb: &V, items: &[Item<'_, '_, V>]) -> Result<BatchMemory> {
        let list_bytes =
            items.len() * (size_of::<Item<'_, '_, V>>() + 2 * size_of::<Result<()>>() + size_of::<V::Result>());
        let results = items.iter().map(|item| item.shape.result_bytes(verb.precision_bits()));
        let fixed_bytes = results.fold(list_bytes as u64, u64::saturating_add);
        let workers = ctx.threads().min(items.len()).max(1);
        let whole = ctx.memory();
        let memory = BatchMemory { whole, fixed_bytes, workers, share_bytes: None, largest_bytes: 0 };
        match whole.limit_bytes() {
            None => Ok(memory),
            Some(limit_bytes) => memory.within(ctx, limit_bytes, verb, items),
        }
    }

    /// The plan under a limit.
    fn within<V: Verb>(self, ctx: &Context, limit_bytes: u64, verb: &V, items: &[Item<'_, '_, V>]) -> Result<Self> {
        let mut shapes = items.iter().map(|item| item.shape).collect::<Vec<_>>();
        shapes.sort_unstable();
        shapes.dedup();
        let apart = ctx.apart();
        let (mut least_bytes, mut largest_bytes) = (self.whole.total(self.fixed_bytes), 0);
        let mut together = Vec::new();
        for shape in shapes {
            let result_bytes = shape.result_bytes(verb.precision_bits());
            // An error in a problem is reported where it runs.
            if let Err(Error::MemoryLimit { minimum_bytes, .. }) =
                verb.plan(&apart.with_memory(self.alone(result_bytes)), shape)
            {
                least_bytes = least_bytes.max(minimum_bytes);
            }
            // The largest limit there is, so that only one engine is kept.
            let roomy = apart.with_memory(MemoryBudget::new(Some(u64::MAX)));
            largest_bytes = largest_bytes.max(verb.plan(&roomy, shape).unwrap_or(0).saturating_sub(result_bytes));
            together.extend(verb.lanes(&apart, shape).map(|lanes| lanes.bytes));
        }
        self.whole.admit_total(least_bytes)?;
        let room = limit_bytes - self.whole.total(self.fixed_bytes);
        let workers = (room / largest_bytes.max(1)).clamp(1, self.workers as u64) as usize;
        let share_bytes = room / workers as u64;
        // More workers come first; problems lie side by side where there is room for it then.
        let largest_bytes = together.into_iter().filter(|&bytes| bytes <= share_bytes).fold(largest_bytes, u64::max);
        Ok(BatchMemory { workers, share_bytes: Some(share_bytes), largest_bytes, ..self })
    }

    /// Whether `bytes` bytes fit a worker's share in addition to results.
    fn has_room(&self, bytes: u64) -> bool {
        self.share_bytes.is_none_or(|share_bytes| bytes <= share_bytes)
    }

    /// Whether a worker has less memory for a problem than the whole call.
    fn is_shared(&self) -> bool {
        self.share_bytes.is_some() && self.workers > 1
    }

    /// The budget of a problem that runs next to others.
    fn of_worker(&self, result_bytes: u64) -> MemoryBudget {
        match self.share_bytes {
            None => MemoryBudget::default(),
            Some(_) if self.workers == 1 => self.alone(result_bytes),
            Some(share_bytes) => MemoryBudget::new(Some(share_bytes + result_bytes)),
        }
    }

    /// The budget of a problem that has all workers' shares.
    fn alone(&self, result_bytes: u64) -> MemoryBudget {
        self.whole.holding(self.fixed_bytes.saturating_sub(result_bytes))
    }

    /// Whether problems have budgets of their own.
    fn is_limited(&self) -> bool {
        self.share_bytes.is_some()
    }

    /// Bytes of the whole call, in which the workers took `worker_bytes` in addition to their results.
    fn planned_bytes(&self, worker_bytes: u64, is_bound: bool) -> u64 {
        let workers_bytes = match (self.share_bytes, is_bound) {
            (None, _) => worker_bytes,
            (Some(_), true) if self.largest_bytes <= self.share_bytes.unwrap_or(0) => {
                // A worker may still hold windows of a problem of another shape, as long as they are within its share.
                let workers = self.workers as u64;
                (self.largest_bytes * workers).max(worker_bytes).min(self.share_bytes.unwrap_or(0) * workers)
            }
            (Some(share_bytes), _) => share_bytes * self.workers as u64,
        };
        self.whole.total(self.fixed_bytes.saturating_add(workers_bytes))
    }
}

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
fn pair<'p, 'r, V: Verb>(
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
            "{}: there are {problems} problems, but {outputs} matrices for results",
            V::OPERATION
        ))),
    }
}

/// Runs all problems, each with a place for its result: the outcome of each, in their order.
///
/// # Errors
/// The errors that end the whole call: [`Error::MemoryLimit`], [`Error::Cancelled`], [`Error::OutOfMemory`];
/// [`Error::InvalidArgument`] if the number of results differs from the number of problems.
pub(super) fn run_into<'p, 'r, V: Verb>(
    ctx: &Context,
    verb: &V,
    problems: impl Iterator<Item = V::Problem<'p>>,
    outputs: impl Iterator<Item = V::Output<'r>>,
) -> Result<Outcome<Vec<Result<()>>, BatchReport>> {
    let mut items = pair(verb, problems, outputs)?;
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
    Ok(Outcome { result: outcomes, report })
}

/// Runs all problems in new memory: the result of each, or its error.
///
/// # Errors
/// The errors of [`run_into`].
pub(super) fn run_new<'p, V: Verb>(
    ctx: &Context,
    verb: &V,
    problems: impl Iterator<Item = V::Problem<'p>>,
) -> Result<Outcome<Vec<Result<V::Result>>, BatchReport>>
where
    V::Result: Default,
    for<'r> V::Output<'r>: From<&'r mut V::Result>,
{
    let problems = problems.collect::<Vec<_>>();
    let mut results = problems.iter().map(|_| V::Result::default()).collect::<Vec<_>>();
    let Outcome { result: outcomes, report } =
        run_into(ctx, verb, problems.into_iter(), results.iter_mut().map(Into::into))?;
    let results = results.into_iter().zip(outcomes).map(|(result, outcome)| outcome.map(|()| result));
    Ok(Outcome { result: results.collect(), report })
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
        self.verb.lanes(ctx, item.shape).is_some_and(|lanes| self.memory.has_room(lanes.bytes))
    }

    /// Some items of one shape, side by side where there are several; the remaining ones one after the other.
    fn attempt_all(&self, worker: &mut BatchWorker, items: &mut [Item<'_, '_, V>]) -> Result<()> {
        let mut done = 0;
        if items.len() > 1 {
            let ctx = self.context_for(worker, 0);
            let (LanesDone { mask, range_bits }, lane_bytes) = match self.verb.lanes(&ctx, items[0].shape) {
                Some(LanePath { lanes, bytes }) => (self.verb.run_lanes(&ctx, lanes, items)?, bytes),
                None => (LanesDone::default(), 0),
            };
            drop(ctx);
            done = mask;
            worker.note_bytes(lane_bytes);
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
