//! One outcome for all ranks: where any rank failed, every rank returns the same error.

use crate::comm::{Reduction, Said, Say, Transport, broadcast_bytes};
use crate::error::{Error, ErrorText, MoreBits, Result};
use rug::Float;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// Returns `Ok` where every rank passes `Ok`, else on every rank the error of the first failed rank. Collective.
///
/// # Errors
/// If all ranks pass the same error, every rank gets that error. If all failing ranks lack memory, every rank gets
/// [`Error::MemoryLimit`] with the smallest limit that suffices for all of them. Otherwise every rank gets the error of
/// the first failed rank: unchanged if it is [`Error::Cancelled`] or [`Error::NotPositiveDefinite`], which concern the
/// whole matrix, else [`Error::Rank`] with the rank's number, its message and its exit code; a failed rank also gets
/// its own error. [`Error::Transport`].
pub fn agree(group: &dyn Transport, outcome: Result<()>) -> Result<()> {
    agree_on(group, outcome, 0)
}

/// Returns the value on every rank, or on every rank the error of the first rank that failed. Collective.
///
/// # Errors
/// As [`agree`].
pub fn agreed<T>(group: &dyn Transport, made: Result<T>) -> Result<T> {
    match made {
        Ok(value) => agree(group, Ok(())).map(|()| value),
        Err(error) => Err(agree(group, Err(error)).expect_err("an error was passed")),
    }
}

/// Whether all ranks pass equal values. Collective.
///
/// # Errors
/// [`Error::Transport`].
pub(crate) fn alike(group: &dyn Transport, said: &(impl Say + ?Sized)) -> Result<bool> {
    let hash = Said::hash(said);
    let mut words = [hash, !hash];
    group.all_reduce(Reduction::Max, &mut words)?;
    Ok(words[0] == !words[1])
}

/// Refuses with `refusal` where ranks pass different values. Collective.
///
/// # Errors
/// [`Error::InvalidArgument`]; [`Error::Transport`].
pub(crate) fn check_alike(group: &dyn Transport, said: &(impl Say + ?Sized), refusal: &str) -> Result<()> {
    if alike(group, said)? { Ok(()) } else { Err(Error::InvalidArgument(refusal.to_string())) }
}

/// [`agree`], and all ranks must pass the same `token`: a hash of their next step.
fn agree_on(group: &dyn Transport, outcome: Result<()>, token: u64) -> Result<()> {
    let size = group.size() as u64;
    if size == 1 {
        return outcome;
    }
    // The largest of `size - rank` over failed ranks belongs to the first of them.
    let mark = if outcome.is_err() { size - group.rank() as u64 } else { 0 };
    let said = outcome.as_ref().err().map_or(0, |error| xxh3_64(error.to_string().as_bytes()) | 1);
    let (limit_bytes, minimum_bytes, fails_otherwise) = match &outcome {
        Err(Error::MemoryLimit { limit_bytes, minimum_bytes }) => (*limit_bytes, *minimum_bytes, 0),
        other => (u64::MAX, 0, u64::from(other.is_err())),
    };
    let mut words = [mark, token, !token, said, !said, !limit_bytes, minimum_bytes, fails_otherwise];
    group.all_reduce(Reduction::Max, &mut words)?;
    if words[0] == 0 {
        assert!(words[1] == token && words[2] == !token, "ranks entered different phases");
        return Ok(());
    }
    if words[3] == said && words[4] == !said {
        return outcome; // all ranks say the same
    }
    if words[7] == 0 {
        return Err(Error::MemoryLimit { limit_bytes: !words[5], minimum_bytes: words[6] });
    }
    let first = (size - words[0]) as usize;
    let own = match &outcome {
        Err(error) if first == group.rank() => encode(error, first)?,
        _ => Vec::new(),
    };
    let told = decode(&broadcast_bytes(group, first, &own)?)?;
    Err(with_own(told, outcome.err()))
}

/// The error that all ranks get, with this rank's own one.
fn with_own(told: Error, met: Option<Error>) -> Error {
    let own = match met {
        Some(Error::Rank { own, .. }) => own,
        other => other.map(Box::new),
    };
    match told {
        Error::Rank { rank, exit_code, message, .. } => Error::Rank { rank, exit_code, message, own },
        of_all => of_all,
    }
}

/// The serialised form of an error.
#[derive(Serialize, Deserialize)]
enum WireError {
    Cancelled,
    /// Floats as their precision and their hexadecimal digits, which lose nothing.
    NotPositiveDefinite {
        index: usize,
        pivot: (u32, String),
        diagonal: (u32, String),
        more_bits: MoreBits,
        enough_bits: Option<u32>,
    },
    /// Anything else. An error that already names a rank keeps that rank.
    Rank {
        rank: usize,
        exit_code: u8,
        message: ErrorText,
    },
}

fn encode(error: &Error, rank: usize) -> Result<Vec<u8>> {
    let digits = |float: &Float| (float.prec(), float.to_string_radix(16, None));
    let told = match error {
        error if error.exit_code() == Error::Cancelled.exit_code() => WireError::Cancelled,
        Error::NotPositiveDefinite { index, pivot, diagonal, more_bits, enough_bits } => {
            WireError::NotPositiveDefinite {
                index: *index,
                pivot: digits(pivot),
                diagonal: digits(diagonal),
                more_bits: *more_bits,
                enough_bits: *enough_bits,
            }
        }
        Error::Rank { rank, exit_code, message, .. } => {
            WireError::Rank { rank: *rank, exit_code: *exit_code, message: message.clone() }
        }
        other => WireError::Rank { rank, exit_code: other.exit_code(), message: other.text() },
    };
    serde_json::to_vec(&told).map_err(|error| Error::Transport(error.to_string()))
}

fn decode(bytes: &[u8]) -> Result<Error> {
    let unreadable = |error: String| Error::Transport(format!("the error of another rank cannot be decoded: {error}"));
    let float = |(bits, digits): (u32, String)| {
        let parsed = Float::parse_radix(&digits, 16).map_err(|error| unreadable(error.to_string()))?;
        Ok(Float::with_val(bits, parsed))
    };
    Ok(match serde_json::from_slice(bytes).map_err(|error| unreadable(error.to_string()))? {
        WireError::Cancelled => Error::Cancelled,
        WireError::NotPositiveDefinite { index, pivot, diagonal, more_bits, enough_bits } => {
            let (pivot, diagonal) = (float(pivot)?, float(diagonal)?);
            Error::NotPositiveDefinite { index, pivot, diagonal, more_bits, enough_bits }
        }
        WireError::Rank { rank, exit_code, message } => Error::Rank { rank, exit_code, message, own: None },
    })
}

/// A fence: ranks wait for each other between two phases.
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
    /// `token` identifies the next phase; it must be the same on all ranks (asserted).
    ///
    /// # Errors
    /// As [`agree`].
    pub fn pass(&self, outcome: Result<()>, token: u64) -> Result<()> {
        agree_on(self.group, outcome, token)
    }
}
