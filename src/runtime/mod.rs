//! Decisions about running tasks, as state machines: facts in, work out.
//!
//! Promise: nothing here does I/O, owns a thread or reads a clock; the same facts in the same order give the same
//! answers. Knows: numbers and ids. Does not know: what a task computes, who carries it out.
#![forbid(unsafe_code)]

mod bottom_level;
mod cholesky_graph;
mod coherence;
mod conductor;
mod evict;
mod policy;
pub mod protocol;
mod task_queue;

pub use bottom_level::{BottomLevels, Weights};
pub use cholesky_graph::{CholeskyGraph, Task};
pub use coherence::{Access, Admission, CacheCounters, Lease, Limits, Move, TileCache, TileState, TileUse};
pub use conductor::{Conductor, ConductorOptions, Step, baseline_bytes, baseline_traffic, least_room_tiles, simulate};
pub use evict::{EvictionOrder, Victim};
pub use policy::{Chooser, Policy};
pub use task_queue::TaskQueue;
