//! The memory limit of the whole process, or of a node that is planned for, turned into what an operation may allocate.
//!
//! Knows: what the process holds (resident set, from the system). Does not know: plans.

use crate::units::format_bytes;
use sunzi::comm::{Reduction, Transport};
use sunzi::{Error, Result};

/// Left free for what cannot be planned: stacks, the allocator's own books, buffers of files.
const RESERVE_BYTES: u64 = 4 << 20;
/// The same for each worker thread.
const RESERVE_BYTES_PER_THREAD: u64 = 256 << 10;
/// A minimum named to the user is rounded up to a multiple of this.
const ROUND_BYTES: u64 = 1 << 20;
/// Added to a named minimum, so that it does not fail in the next run.
const SPREAD_BYTES: u64 = 4 << 20;
/// Pages of the program's own file that are taken as resident at least: how many are depends on what else the machine
/// does, so that counting them as they are would refuse in one run what another accepts.
const PROGRAM_BYTES: u64 = 8 << 20;

/// A limit and what is already taken of it.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    scope: Scope,
    limit_bytes: u64,
    held_bytes: u64,
}

/// What a limit is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scope {
    /// This process, whose resident set differs a little from run to run.
    Process,
    /// A node of a cluster elsewhere: nothing but what is planned.
    Node,
}

impl Budget {
    /// The budget at this moment: operands read, threads not yet started.
    pub fn now(limit_bytes: u64, threads: usize) -> Budget {
        let program_bytes = status_bytes("RssFile:");
        let held_bytes = resident_bytes()
            + PROGRAM_BYTES.saturating_sub(program_bytes)
            + RESERVE_BYTES
            + RESERVE_BYTES_PER_THREAD * threads as u64;
        Budget { scope: Scope::Process, limit_bytes, held_bytes }
    }

    /// The budget of a node of a cluster elsewhere, on which nothing is taken yet.
    pub fn of_absent_node(limit_bytes: u64) -> Budget {
        Budget { scope: Scope::Node, limit_bytes, held_bytes: 0 }
    }

    /// The budget of all ranks of a node together, under the same limit. Collective.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn of_node(self, node: &dyn Transport) -> Result<Budget> {
        let mut held = [self.held_bytes];
        node.all_reduce(Reduction::Sum, &mut held)?;
        Ok(Budget { held_bytes: held[0], ..self })
    }

    /// The budget after further memory will have been taken.
    pub fn with_held(self, bytes: u64) -> Budget {
        Budget { held_bytes: self.held_bytes.saturating_add(bytes), ..self }
    }

    /// What an operation may still allocate.
    pub fn left(&self) -> u64 {
        self.limit_bytes.saturating_sub(self.held_bytes)
    }

    /// Refuses a matrix of so many bytes before it is read.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`] for the process.
    pub fn admit(&self, bytes: u64) -> Result<()> {
        if bytes <= self.left() { Ok(()) } else { Err(self.refusal(bytes)) }
    }

    /// The operation's own refusal, restated for the process or node: limit and minimum include what it holds already.
    pub fn restate(&self, error: Error) -> Error {
        match error {
            Error::MemoryLimit { minimum_bytes, .. } => self.refusal(minimum_bytes),
            other => other,
        }
    }

    fn refusal(&self, needed_bytes: u64) -> Error {
        let exact_bytes = self.held_bytes.saturating_add(needed_bytes);
        let minimum_bytes = match self.scope {
            Scope::Process => {
                exact_bytes.saturating_add(SPREAD_BYTES).checked_next_multiple_of(ROUND_BYTES).unwrap_or(u64::MAX)
            }
            Scope::Node => exact_bytes,
        };
        Error::MemoryLimit { limit_bytes: self.limit_bytes, minimum_bytes }
    }

    /// One line for people.
    pub fn describe(&self) -> String {
        let scope = match self.scope {
            Scope::Process => "the process",
            Scope::Node => "each node",
        };
        let (limit, left) = (format_bytes(self.limit_bytes), format_bytes(self.left()));
        format!("{limit} for {scope}, {left} left for the operation")
    }
}

/// Bytes of memory that the process occupies now; 0 where the system does not say.
pub fn resident_bytes() -> u64 {
    status_bytes("VmRSS:")
}

/// The most bytes that it ever occupied; 0 where the system does not say.
pub fn peak_resident_bytes() -> u64 {
    status_bytes("VmHWM:")
}

fn status_bytes(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_a_minimum_that_would_be_accepted() {
        let budget = Budget { scope: Scope::Process, limit_bytes: 100 << 20, held_bytes: 30 << 20 };
        assert_eq!(budget.left(), 70 << 20);
        assert!(budget.admit(70 << 20).is_ok());
        let Err(Error::MemoryLimit { limit_bytes, minimum_bytes }) = budget.admit((70 << 20) + 1) else {
            panic!("must be refused")
        };
        assert_eq!(limit_bytes, 100 << 20);
        let raised = Budget { limit_bytes: minimum_bytes, ..budget };
        assert!(raised.admit((70 << 20) + 1).is_ok());
        let error = budget.restate(Error::MemoryLimit { limit_bytes: 1, minimum_bytes: 80 << 20 });
        assert!(matches!(error, Error::MemoryLimit { minimum_bytes, .. } if minimum_bytes == 114 << 20), "{error}");
        assert!(matches!(budget.restate(Error::Cancelled), Error::Cancelled));
        let Err(Error::MemoryLimit { minimum_bytes, .. }) = Budget::of_absent_node(7).with_held(5).admit(3) else {
            panic!("must be refused")
        };
        assert_eq!(minimum_bytes, 8, "nothing varies on a node that is not there");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_process_occupies_memory() {
        let now = resident_bytes();
        assert!((1 << 16..1 << 40).contains(&now));
        assert!(peak_resident_bytes() >= now / 2);
    }
}
