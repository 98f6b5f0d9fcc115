//! The limit of the whole process, turned into what objects may take on each node.
//!
//! The session keeps objects within its limit. Other memory of the process is counted here: constants for the program
//! and its threads, as in the program `sunzi` (docs/decisions/038), and the parts that follow from the sizes.

use crate::Choices;
use sunzi::{Error, Result};
use sunzi_laf::chunks::Chunks;

/// The program's pages, what the allocator keeps, texts.
const PROGRAM_BYTES: u64 = 8 << 20;

/// What a thread that computes touches of its stack, and its part of the allocator.
const THREAD_BYTES: u64 = 512 << 10;

/// The threads of a directory, their requests, and its list of objects.
const DISK_BYTES: u64 = 2 << 20;

/// A task or an object in the lists of the session.
const ENTRY_BYTES: u64 = 1 << 10;

/// Tasks and objects of an iteration for each chunk of vectors.
const ENTRIES_PER_CHUNK: u64 = 64;

/// An entry while its block is made: once on its own, once in the bytes of the block.
const BYTES_PER_NEW_ENTRY: u64 = 16 + 12;

/// Vectors of a block.
const VECTORS: u64 = 8;

/// What the process takes beside objects.
///
/// A block that is made is held besides its object. Later each thread may copy a chunk of vectors that it updates while
/// the disk still writes the version before. Only one of the two happens at a time.
fn beside_objects(choices: &Choices) -> Result<u64> {
    let session = &choices.session;
    let count = Chunks::new(choices.rows, session.chunk_rows)?.count().max(1) as u128;
    // More could not be started.
    let [nodes, threads] = [session.nodes, session.threads].map(|many| many.min(1 << 20) as u128);
    let threads = nodes * threads;
    let chunk_rows = session.chunk_rows.min(choices.rows) as u128;
    // The entries beside the diagonal lie evenly in the triangle, up to a tenth.
    let evenly = (choices.rows as u128 * choices.links as u128) / (count * count).div_ceil(2);
    let making = u128::from(BYTES_PER_NEW_ENTRY) * (evenly / 10 * 11 + chunk_rows);
    let copies = threads * chunk_rows * u128::from(8 * VECTORS);
    let disks = if session.folder.is_some() { nodes } else { 0 };
    let constant = u128::from(PROGRAM_BYTES) + threads * u128::from(THREAD_BYTES) + disks * u128::from(DISK_BYTES);
    let entries = count * (count + 1) / 2 + count * u128::from(ENTRIES_PER_CHUNK);
    let all = constant + entries * u128::from(ENTRY_BYTES) + making.max(copies);
    Ok(u64::try_from(all).unwrap_or(u64::MAX))
}

/// Bytes of the objects of each node under a limit of the process, in which all nodes are.
///
/// # Errors
/// [`Error::MemoryLimit`] for one that leaves nothing.
pub fn objects_bytes(choices: &Choices, limit_bytes: u64) -> Result<u64> {
    let (beside, nodes) = (beside_objects(choices)?, choices.session.nodes.max(1) as u64);
    match limit_bytes.checked_sub(beside) {
        Some(left) if left >= nodes => Ok(left / nodes),
        _ => Err(Error::MemoryLimit { limit_bytes, minimum_bytes: beside.saturating_add(nodes) }),
    }
}

/// The largest memory that the process has occupied; 0 if the system does not report it.
pub fn peak_resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024
}
