//! Carries out tasks on nodes of one process: threads that compute, memories with limits, disks.
//!
//! A node emulates a machine of a cluster: its own memory limit, its own threads, its own directory. Bytes that go from
//! one node to another are counted as communication, bytes of disks separately.
//! Promise: objects take no more memory on a node than its limit. Does not know: what tasks compute.

mod disk;
mod run;
mod workers;

pub use run::{Engine, NodeTraffic, Sample};
pub use workers::{Kernel, Operands};

use std::path::PathBuf;

/// The number of nodes, and the resources of each.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Nodes, at least 1.
    pub nodes: usize,
    /// Threads of each that compute, at least 1.
    pub threads: usize,
    /// Bytes of the objects in the memory of each.
    pub memory_bytes: u64,
    /// A folder for objects that do not fit: each node has a directory in it, which goes with the engine. `None` where
    /// all has to fit.
    pub folder: Option<PathBuf>,
    /// Whether the state of each node is kept for plots at every event.
    pub trace: bool,
}
