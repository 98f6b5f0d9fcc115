//! Decisions about running tasks, as state machines: events in, actions out.
//!
//! Promise: nothing here does I/O, owns a thread or reads a clock; the same events in the same order give the same
//! actions. Depends on: numbers and ids. Independent of: the computation of a task, the code that carries it out.
#![forbid(unsafe_code)]

mod bottom_level;
mod cholesky_graph;
mod count;
pub mod graph;
mod level_count;
mod level_shape;
mod local;
mod outgoing;
mod policy;
pub mod protocol;
mod residency;
mod tile_level;

pub use bottom_level::{BottomLevels, TaskWeights};
pub use cholesky_graph::{CholeskyGraph, Task};
pub use count::{Baseline, CountOptions, baseline_bytes, baseline_traffic, count_moves};
pub use level_count::{LevelBytes, LevelTraffic, count_level, least_level_bytes, level_options};
pub use level_shape::{LevelSearch, MOST_STRIP_TILES};
pub use local::{LocalScheduler, NO_SPARE, Planned, Ticket, creates, reads};
pub use outgoing::{MOST_TRANSFERS, Outgoing};
pub use policy::{BlockShape, Policy};
pub use residency::{
    Access, Admission, CacheCounters, Eviction, EvictionOrder, Lease, Limits, Move, Owner, Residency, TaskMoves,
    TileState, TileUse, least_room_tiles,
};
pub use tile_level::{LevelShape, TileLevel};
