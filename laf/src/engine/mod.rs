//! Runs tasks on nodes emulated in one process: threads that compute, memories with limits, disks.
//!
//! A node emulates a machine of a cluster: it has its own memory limit, threads and directory. Bytes sent from one node
//! to another are counted as communication, bytes of disks separately. Promise: the objects on a node never exceed its
//! memory limit. This module is independent of the computations of tasks.

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
    /// Computing threads of each node, at least 1.
    pub threads: usize,
    /// Bytes of memory for objects on each node.
    pub memory_bytes: u64,
    /// A folder for objects that do not fit in memory: each node has a directory in it, which is removed with the
    /// engine. With `None` all objects must fit in memory.
    pub folder: Option<PathBuf>,
    /// Whether the state of each node is recorded at every event, for plots.
    pub trace: bool,
}
