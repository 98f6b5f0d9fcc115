//! Waiting for requests without burning the core that another rank may need.
//!
//! A wait spins at first, as most are over within microseconds; then it offers its core to others; and where a rank
//! may be late by seconds it sleeps between looks. MPI moves messages only while it is called, so waits for long
//! messages do not sleep.

use crate::comm::mpi::gate::Gate;
use crate::comm::mpi::{result, sys};
use crate::error::Result;
use std::time::{Duration, Instant};

/// How a wait passes its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Patience {
    /// Sleeps in the end: for short messages, whose transfer does not take time but whose sender may.
    Sleep,
    /// Offers its core, but never sleeps: for long messages, which need steady attention.
    Yield,
}

/// Messages up to this many words are short.
const SHORT_WORDS: usize = 4096;

/// How long a wait spins, and from when on it sleeps.
const SPIN: Duration = Duration::from_micros(20);
const YIELD: Duration = Duration::from_micros(300);

/// A sleep lasts for a part of what has been waited, within limits: so it adds little to the wait, and long waits cost
/// next to no time of the processor.
const SLEEP_PART: u32 = 20;
const SHORTEST_SLEEP: Duration = Duration::from_micros(50);
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

impl Patience {
    /// For messages of `words` words in all.
    pub fn for_words(words: usize) -> Patience {
        if words <= SHORT_WORDS { Patience::Sleep } else { Patience::Yield }
    }
}

/// Waits until all `requests` are done, whatever becomes of them, and calls `finished` with the index and status of
/// each that succeeded. Returns the first error.
///
/// # Safety
/// All requests are live, and what they read and write stays until this returns.
pub unsafe fn wait(
    gate: &Gate,
    requests: &mut [sys::MPI_Request],
    patience: Patience,
    mut finished: impl FnMut(usize, &sys::MPI_Status) -> Result<()>,
) -> Result<()> {
    let mut outcome = Ok(());
    let mut idle = Idle { patience, since: None };
    for (index, request) in requests.iter_mut().enumerate() {
        let done = loop {
            // SAFETY: live by contract; the loop ends with the first answer that it is done.
            match gate.call(|| unsafe { result::test(request) }) {
                Ok(None) => idle.pass(),
                Ok(Some(status)) => break gate.call(|| finished(index, &status)),
                Err(error) => break Err(error),
            }
        };
        outcome = outcome.and(done);
    }
    outcome
}

/// Time that passes without anything to do.
struct Idle {
    patience: Patience,
    since: Option<Instant>,
}

impl Idle {
    fn pass(&mut self) {
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        if waited < SPIN {
            std::hint::spin_loop();
        } else if waited < YIELD || self.patience == Patience::Yield {
            std::thread::yield_now();
        } else {
            std::thread::sleep((waited / SLEEP_PART).clamp(SHORTEST_SLEEP, LONGEST_SLEEP));
        }
    }
}
