//! The memory of a batch, and the number of workers that share it.
//!
//! Results and lists stay for the whole call. The rest is shared evenly; a worker's share must be enough for the
//! largest problem without a limit, else there are fewer workers. A single worker has all the rest for problems that
//! are cut to fit, as the single call cuts them.

use crate::context::{Context, MemoryBudget};
use crate::error::{Error, Result};
use crate::ops::batch::verb::{Item, Verb};

/// The memory of one batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchMemory {
    /// The budget of the whole call.
    whole: MemoryBudget,
    /// Bytes of all results and lists.
    fixed_bytes: u64,
    /// Workers at the same time.
    pub workers: usize,
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
    pub fn new<V: Verb>(ctx: &Context, verb: &V, items: &[Item<'_, '_, V>]) -> Result<BatchMemory> {
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

    /// The same under a limit.
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
            together.extend(verb.together_bytes(&apart, shape));
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
    pub fn has_room(&self, bytes: u64) -> bool {
        self.share_bytes.is_none_or(|share_bytes| bytes <= share_bytes)
    }

    /// Whether a worker has less memory for a problem than the whole call.
    pub fn is_shared(&self) -> bool {
        self.share_bytes.is_some() && self.workers > 1
    }

    /// The budget of a problem that runs next to others.
    pub fn of_worker(&self, result_bytes: u64) -> MemoryBudget {
        match self.share_bytes {
            None => MemoryBudget::default(),
            Some(_) if self.workers == 1 => self.alone(result_bytes),
            Some(share_bytes) => MemoryBudget::new(Some(share_bytes + result_bytes)),
        }
    }

    /// The budget of a problem that has all workers' shares.
    pub fn alone(&self, result_bytes: u64) -> MemoryBudget {
        self.whole.holding(self.fixed_bytes.saturating_sub(result_bytes))
    }

    /// Whether problems have budgets of their own.
    pub fn is_limited(&self) -> bool {
        self.share_bytes.is_some()
    }

    /// Bytes of the whole call, in which the workers took `worker_bytes` in addition to their results.
    pub fn planned_bytes(&self, worker_bytes: u64, is_bound: bool) -> u64 {
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
