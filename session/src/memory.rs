//! The memory limit of the whole process, or of a node that is planned for, turned into the memory that an operation
//! may allocate.
//!
//! Depends on: the memory that the process holds (resident set, from the system). Independent of: plans.

use crate::units::format_bytes;
use std::sync::atomic::{AtomicU64, Ordering};
use sunzi::comm::{Reduction, Transport};
use sunzi::{Error, Result};

/// The memory of a process in addition to matrices and planned work: the program's pages, stacks, the allocator's
/// books, buffers of files. A constant, so that the least limit is the same in every run.
const PROGRAM_BYTES: u64 = 32 << 20;
/// The same for each worker thread.
const THREAD_BYTES: u64 = 512 << 10;
/// The part of [`PROGRAM_BYTES`] that may be resident before the work begins. Libraries that hold more (of devices,
/// say) count as they are, in steps of [`STEP_BYTES`], and so does later memory.
const RESIDENT_BYTES: u64 = 26 << 20;
/// See [`RESIDENT_BYTES`].
const STEP_BYTES: u64 = 16 << 20;

/// A limit and the bytes that are already in use.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    scope: Scope,
    limit_bytes: u64,
    held_bytes: u64,
    /// The part of the held bytes that is the program itself.
    program_bytes: u64,
    /// The part of the held bytes that the program takes with its threads, on a node all its processes.
    process_bytes: u64,
}

/// The bytes of processes in the limit that the last refusal of a budget named; 0 before any.
static REFUSED_PROCESS_BYTES: AtomicU64 = AtomicU64::new(0);

/// The processes of a node that is planned for.
#[derive(Clone, Copy, Debug)]
pub struct NodeProcesses {
    /// Number of processes.
    pub count: usize,
    /// Worker threads of each process.
    pub threads: usize,
}

/// The scope of a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scope {
    /// This process.
    Process,
    /// A node of another cluster: only the planned memory counts.
    Node,
}

impl Budget {
    /// The budget of a process that holds matrices of `matrix_bytes` bytes, and has not yet started its threads.
    pub fn now(limit_bytes: u64, threads: usize, matrix_bytes: u64) -> Budget {
        let program_bytes = program_bytes(resident_bytes().saturating_sub(matrix_bytes));
        let process_bytes = program_bytes + THREAD_BYTES * threads as u64;
        let held_bytes = process_bytes;
        Budget { scope: Scope::Process, limit_bytes, held_bytes, program_bytes, process_bytes }.with_held(matrix_bytes)
    }

    /// The budget of a node of another cluster before it holds matrices.
    pub fn of_absent_node(limit_bytes: u64, processes: NodeProcesses) -> Budget {
        let program_bytes = PROGRAM_BYTES + STEP_BYTES;
        let each = program_bytes.saturating_add(THREAD_BYTES.saturating_mul(processes.threads as u64));
        let process_bytes = each.saturating_mul(processes.count as u64);
        Budget { scope: Scope::Node, limit_bytes, held_bytes: process_bytes, program_bytes, process_bytes }
    }

    /// The budget of all ranks of a node together, under the same limit; for each rank the libraries of its connection
    /// to the others are counted, even if it has not used them yet. Collective.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn of_node(self, node: &dyn Transport) -> Result<Budget> {
        let program_bytes = self.program_bytes.max(PROGRAM_BYTES + STEP_BYTES);
        let mut sums = [self.held_bytes, self.process_bytes].map(|bytes| bytes - self.program_bytes + program_bytes);
        node.all_reduce(Reduction::Sum, &mut sums)?;
        let [held_bytes, process_bytes] = sums;
        Ok(Budget { held_bytes, program_bytes, process_bytes, ..self })
    }

    /// Bytes of the process or of the processes of a node in addition to matrices and planned work.
    pub fn process_bytes(&self) -> u64 {
        self.process_bytes
    }

    /// The smallest limit for an operation that needs `needed_bytes` bytes.
    pub fn least_limit(&self, needed_bytes: u64) -> u64 {
        self.held_bytes.saturating_add(needed_bytes)
    }

    /// The budget after further memory will have been taken.
    pub fn with_held(self, bytes: u64) -> Budget {
        Budget { held_bytes: self.held_bytes.saturating_add(bytes), ..self }
    }

    /// The bytes that an operation may still allocate.
    pub fn left(&self) -> u64 {
        self.limit_bytes.saturating_sub(self.held_bytes)
    }

    /// Refuses a matrix of `bytes` bytes before it is read.
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
        REFUSED_PROCESS_BYTES.store(self.process_bytes, Ordering::Relaxed);
        let minimum_bytes = self.least_limit(needed_bytes);
        Error::MemoryLimit { limit_bytes: self.limit_bytes, minimum_bytes }
    }

    /// One line of text for the terminal.
    pub fn describe(&self) -> String {
        let scope = match self.scope {
            Scope::Process => "the process",
            Scope::Node => "each node",
        };
        let (limit, left) = (format_bytes(self.limit_bytes), format_bytes(self.left()));
        format!("{limit} for {scope}, {left} left for the operation")
    }
}

/// The part of the limit named by the last refusal of a budget that processes take in addition to matrices, in words;
/// `None` before any refusal.
pub fn refused_process_words() -> Option<String> {
    let bytes = REFUSED_PROCESS_BYTES.load(Ordering::Relaxed);
    (bytes > 0).then(|| format!("of which {} are for processes: code, libraries and threads", format_bytes(bytes)))
}

/// The memory that the process takes in addition to matrices, from the memory that it occupies before the work begins.
fn program_bytes(resident_bytes: u64) -> u64 {
    match resident_bytes.checked_sub(RESIDENT_BYTES) {
        None => PROGRAM_BYTES,
        Some(more) => PROGRAM_BYTES + (more + 1).next_multiple_of(STEP_BYTES),
    }
}

/// Bytes of memory that the process occupies now; 0 where the system does not report it.
pub fn resident_bytes() -> u64 {
    status_bytes("VmRSS:")
}

/// The most bytes that the process has occupied; 0 where the system does not report it.
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
        let (limit_bytes, held_bytes) = (100 << 20, 30 << 20);
        let budget = Budget { scope: Scope::Process, limit_bytes, held_bytes, program_bytes: 0, process_bytes: 0 };
        assert_eq!(budget.left(), 70 << 20);
        assert!(budget.admit(70 << 20).is_ok());
        let Err(Error::MemoryLimit { limit_bytes, minimum_bytes }) = budget.admit((70 << 20) + 1) else {
            panic!("must be refused")
        };
        assert_eq!(limit_bytes, 100 << 20);
        let raised = Budget { limit_bytes: minimum_bytes, ..budget };
        assert!(raised.admit((70 << 20) + 1).is_ok());
        assert!(Budget { limit_bytes: minimum_bytes - 1, ..budget }.admit((70 << 20) + 1).is_err());
        let error = budget.restate(Error::MemoryLimit { limit_bytes: 1, minimum_bytes: 80 << 20 });
        assert!(matches!(error, Error::MemoryLimit { minimum_bytes, .. } if minimum_bytes == 110 << 20), "{error}");
        assert!(matches!(budget.restate(Error::Cancelled), Error::Cancelled));
        let node = Budget::of_absent_node(7, NodeProcesses { count: 3, threads: 2 }).with_held(5);
        let Err(Error::MemoryLimit { minimum_bytes, .. }) = node.admit(3) else { panic!("must be refused") };
        let processes = 3 * (PROGRAM_BYTES + STEP_BYTES + 2 * THREAD_BYTES);
        assert_eq!((minimum_bytes, node.process_bytes()), (8 + processes, processes));
        assert!(refused_process_words().is_some_and(|words| words.contains("147.00 MiB")), "3 times 49 MiB");
    }

    #[test]
    fn what_a_program_takes_does_not_vary_with_its_pages() {
        assert_eq!((program_bytes(0), program_bytes(RESIDENT_BYTES - 1)), (PROGRAM_BYTES, PROGRAM_BYTES));
        let more = PROGRAM_BYTES + STEP_BYTES;
        assert_eq!((program_bytes(RESIDENT_BYTES), program_bytes(RESIDENT_BYTES + STEP_BYTES - 1)), (more, more));
        assert_eq!(program_bytes(RESIDENT_BYTES + STEP_BYTES), more + STEP_BYTES);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_process_occupies_memory() {
        let now = resident_bytes();
        assert!((1 << 16..1 << 40).contains(&now));
        assert!(peak_resident_bytes() >= now / 2);
    }
}
