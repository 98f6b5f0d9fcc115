//! Waiting for requests without burning the core that another rank may need. MPI moves messages only while it is
//! called, so waits for long messages do not sleep.

use crate::comm::idle::{Idle, Patience};
use crate::comm::mpi::gate::Gate;
use crate::comm::mpi::{result, sys};
use crate::error::Result;

/// Messages up to this many words are short.
const SHORT_WORDS: usize = 4096;

/// For messages of `words` words in all.
pub fn patience_for(words: usize) -> Patience {
    if words <= SHORT_WORDS { Patience::Sleep } else { Patience::Yield }
}

/// Waits until all `requests` are done, with or without errors, and calls `finished` with the index and status of each
/// that succeeded. Returns the first error.
///
/// # Safety
/// All requests are live, and the memory that they read and write stays until this returns.
pub unsafe fn wait(
    gate: &Gate,
    requests: &mut [sys::MPI_Request],
    patience: Patience,
    mut finished: impl FnMut(usize, &sys::MPI_Status) -> Result<()>,
) -> Result<()> {
    let mut outcome = Ok(());
    let mut idle = Idle::new(patience);
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
