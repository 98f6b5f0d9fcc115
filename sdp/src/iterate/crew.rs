//! The workers for the steps of an iteration.

use crate::iterate::memory::{IterationStep, Ledger, Memory, STEPS};
use crate::workers::Workers;

/// The workers for the steps of an iteration: under a limit each step has the memory that the permanent data leave.
pub struct Crew {
    steps: [Workers; STEPS.len()],
    ledger: Option<Ledger>,
}

impl Crew {
    /// Without a limit.
    pub fn free(workers: &Workers) -> Crew {
        Crew { steps: STEPS.map(|_| workers.under(None)), ledger: None }
    }

    /// The crews at each precision of a run, by its bits, under a limit.
    pub fn each(memory: Memory, workers: &Workers, limit_bytes: u64) -> Vec<(u32, Crew)> {
        let crew = |ledger: Ledger| (ledger.bits, Crew::limited(workers, ledger, limit_bytes));
        memory.into_ledgers().into_iter().map(crew).collect()
    }

    /// Under one for all together.
    fn limited(workers: &Workers, ledger: Ledger, limit_bytes: u64) -> Crew {
        let steps = STEPS.map(|step| workers.under(Some(ledger.room(step, limit_bytes))));
        Crew { steps, ledger: Some(ledger) }
    }

    /// The workers of a step.
    pub fn at(&self, step: IterationStep) -> &Workers {
        &self.steps[step as usize]
    }

    /// The memory in use at each step, where there is a limit.
    pub fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref()
    }
}
