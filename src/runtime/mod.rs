//! Decisions about running tasks, as state machines: facts in, work out.
//!
//! Promise: nothing here does I/O, owns a thread or reads a clock; the same facts in the same order give the same
//! answers. Knows: numbers and ids. Does not know: what a task computes, who carries it out.
#![forbid(unsafe_code)]

mod bottom_level;
mod cholesky_graph;
mod count;
pub mod graph;
mod local;
mod policy;
pub mod protocol;
mod residency;

pub use bottom_level::{BottomLevels, Weights};
pub use cholesky_graph::{CholeskyGraph, Task};
pub use count::{Baseline, CountOptions, baseline_bytes, baseline_traffic, count_moves};
pub use local::{LocalScheduler, NO_SPARE, Planned, Ticket, creates, reads};
pub use policy::Policy;
pub use residency::{
    Access, Admission, CacheCounters, Eviction, EvictionOrder, Lease, Limits, Move, Owner, Residency, TaskMoves,
    TileState, TileUse, least_room_tiles,
};
