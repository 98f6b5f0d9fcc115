//! One outcome for all ranks: where any rank failed, every rank returns the same error.

use crate::comm::{Reduction, Transport, broadcast_bytes};
use crate::error::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

/// Returns `Ok` where every rank passes `Ok`, else on every rank the error of the first failed rank. Collective.
///
/// # Errors
/// Where all ranks pass the same error, that error. Else [`Error::Rank`] with the number of the first failed rank, its
/// message and its exit code, or [`Error::Cancelled`] where it was cancelled. [`Error::Transport`].
pub fn agree(group: &dyn Transport, outcome: Result<()>) -> Result<()> {
    agree_on(group, outcome, 0)
}

/// A value that every rank has, or on every rank the error of the first that has not. Collective.
///
/// # Errors
/// As [`agree`].
pub fn agreed<T>(group: &dyn Transport, made: Result<T>) -> Result<T> {
    match made {
        Ok(value) => agree(group, Ok(())).map(|()| value),
        Err(error) => Err(agree(group, Err(error)).expect_err("an error was passed")),
    }
}

/// [`agree`], and all ranks must pass the same `token`: what they are about to do, as a hash.
fn agree_on(group: &dyn Transport, outcome: Result<()>, token: u64) -> Result<()> {
    let size = group.size() as u64;
    // The largest of `size - rank` over failed ranks belongs to the first of them.
    let mark = if outcome.is_err() { size - group.rank() as u64 } else { 0 };
    let said = outcome.as_ref().err().map_or(0, |error| xxh3_64(error.to_string().as_bytes()) | 1);
    let mut words = [mark, token, !token, said, !said];
    group.all_reduce(Reduction::Max, &mut words)?;
    if words[0] == 0 {
        assert!(words[1] == token && words[2] == !token, "ranks entered different phases");
        return Ok(());
    }
    if words[3] == said && words[4] == !said {
        return outcome; // all ranks say the same
    }
    let first = (size - words[0]) as usize;
    let own = match &outcome {
        Err(error) if first == group.rank() => encode(error, first),
        _ => Vec::new(),
    };
    Err(decode(&broadcast_bytes(group, first, &own)?))
}

/// Exit code, rank and message as bytes. An error that already speaks for a rank keeps that rank.
fn encode(error: &Error, rank: usize) -> Vec<u8> {
    let (rank, message) = match error {
        Error::Rank { rank, message, .. } => (*rank, message.clone()),
        other => (rank, other.to_string()),
    };
    let mut bytes = vec![error.exit_code()];
    bytes.extend_from_slice(&(rank as u64).to_le_bytes());
    bytes.extend_from_slice(message.as_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Error {
    let (head, message) = bytes.split_at(9);
    let mut rank = [0; 8];
    rank.copy_from_slice(&head[1..]);
    let error = Error::Rank {
        rank: u64::from_le_bytes(rank) as usize,
        exit_code: head[0],
        message: String::from_utf8_lossy(message).into_owned(),
    };
    if error.exit_code() == Error::Cancelled.exit_code() { Error::Cancelled } else { error }
}

/// The place where ranks wait for each other between phases.
pub struct Fence<'a> {
    group: &'a dyn Transport,
}

impl<'a> Fence<'a> {
    /// A fence for the ranks of `group`.
    pub fn new(group: &'a dyn Transport) -> Fence<'a> {
        Fence { group }
    }

    /// The group.
    pub fn group(&self) -> &'a dyn Transport {
        self.group
    }

    /// Waits for all ranks, then returns the outcome they agree on. Collective.
    ///
    /// `token` says what comes next; it must be the same on all ranks (asserted).
    ///
    /// # Errors
    /// As [`agree`].
    pub fn pass(&self, outcome: Result<()>, token: u64) -> Result<()> {
        agree_on(self.group, outcome, token)
    }
}
