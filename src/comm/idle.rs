//! The behaviour of a thread while it waits for other ranks.
//!
//! A wait spins at first, as most are over within microseconds; then it yields its core to others; and where a rank may
//! be late by seconds it sleeps between looks.
#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

/// The method of waiting: spinning or sleeping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Patience {
    /// Sleeps in the end: for short operations that may come late.
    Sleep,
    /// Yields its core, but never sleeps: for operations that need steady attention.
    Yield,
}

/// The duration of spinning, after which a wait sleeps.
const SPIN: Duration = Duration::from_micros(20);
const YIELD: Duration = Duration::from_micros(300);

/// A sleep lasts for this fraction of the time waited so far, within limits: so it adds little to the wait, and long
/// waits take almost no processor time.
const SLEEP_PART: u32 = 20;
const SHORTEST_SLEEP: Duration = Duration::from_micros(50);
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// One look's worth of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum IdleStep {
    Spin,
    Yield,
    Sleep(Duration),
}

impl IdleStep {
    /// The action after a wait of that length.
    fn after(waited: Duration, patience: Patience) -> IdleStep {
        if waited < SPIN {
            IdleStep::Spin
        } else if waited < YIELD || patience == Patience::Yield {
            IdleStep::Yield
        } else {
            IdleStep::Sleep((waited / SLEEP_PART).clamp(SHORTEST_SLEEP, LONGEST_SLEEP))
        }
    }
}

/// Time that passes without anything to do.
pub(crate) struct Idle {
    patience: Patience,
    since: Option<Instant>,
}

impl Idle {
    /// Nothing has passed yet.
    pub fn new(patience: Patience) -> Idle {
        Idle { patience, since: None }
    }

    /// Passes some time.
    pub fn pass(&mut self) {
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        match IdleStep::after(waited, self.patience) {
            IdleStep::Spin => std::hint::spin_loop(),
            IdleStep::Yield => std::thread::yield_now(),
            IdleStep::Sleep(time) => std::thread::sleep(time),
        }
    }

    /// The same on a thread of a pool, which does other work of its pool first: ranks that are threads of one process
    /// may share a pool, and the wait may be for such work.
    pub fn pass_in_pool(&mut self) {
        if rayon::yield_now() != Some(rayon::Yield::Executed) {
            self.pass();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// The only thread of a pool waits for work of this pool, which its own work or another thread has put there.
    #[test]
    fn who_waits_in_a_pool_does_its_other_work() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        for (patience, inside) in [Patience::Sleep, Patience::Yield].into_iter().flat_map(|p| [(p, true), (p, false)]) {
            let done = Arc::new(AtomicBool::new(false));
            let other = Arc::clone(&done);
            let work = move || other.store(true, Ordering::Release);
            let is_done = pool.install(|| {
                match inside {
                    true => rayon::spawn(work),
                    false => std::thread::scope(|scope| drop(scope.spawn(|| pool.spawn(work)))),
                }
                let mut idle = Idle::new(patience);
                (0..1000).any(|_| {
                    idle.pass_in_pool();
                    done.load(Ordering::Acquire)
                })
            });
            assert!(is_done, "{patience:?}, {inside}");
        }
    }

    #[test]
    fn long_waits_sleep_unless_they_need_attention() {
        let after = |micros: u64, patience| IdleStep::after(Duration::from_micros(micros), patience);
        for patience in [Patience::Sleep, Patience::Yield] {
            assert_eq!(
                [0, 19, 20, 299].map(|micros| after(micros, patience)),
                [IdleStep::Spin, IdleStep::Spin, IdleStep::Yield, IdleStep::Yield]
            );
        }
        let slept = [300, 1000, 4000, 30_000].map(|micros| after(micros, Patience::Sleep));
        assert_eq!(slept, [50, 50, 200, 1000].map(|micros| IdleStep::Sleep(Duration::from_micros(micros))));
        assert_eq!(after(30_000, Patience::Yield), IdleStep::Yield);
    }
}
