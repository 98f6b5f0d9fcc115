//! How a thread passes the time while it waits for other ranks.
//!
//! A wait spins at first, as most are over within microseconds; then it offers its core to others; and where a rank
//! may be late by seconds it sleeps between looks.
#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

/// How a wait passes its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Patience {
    /// Sleeps in the end: for what does not take time itself, but may come late.
    Sleep,
    /// Offers its core, but never sleeps: for what needs steady attention.
    Yield,
}

/// How long a wait spins, and from when on it sleeps.
const SPIN: Duration = Duration::from_micros(20);
const YIELD: Duration = Duration::from_micros(300);

/// A sleep lasts for a part of what has been waited, within limits: so it adds little to the wait, and long waits cost
/// next to no time of the processor.
const SLEEP_PART: u32 = 20;
const SHORTEST_SLEEP: Duration = Duration::from_micros(50);
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

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
        if waited < SPIN {
            std::hint::spin_loop();
        } else if waited < YIELD || self.patience == Patience::Yield {
            std::thread::yield_now();
        } else {
            std::thread::sleep((waited / SLEEP_PART).clamp(SHORTEST_SLEEP, LONGEST_SLEEP));
        }
    }

    /// The same on a thread of a pool, which does other work of its pool first: ranks that are threads of one process
    /// may share a pool, and what is waited for may be such work.
    pub fn pass_in_pool(&mut self) {
        if rayon::yield_now() != Some(rayon::Yield::Executed) {
            self.pass();
        }
    }
}
