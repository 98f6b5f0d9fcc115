//! Decisions about running tasks, as state machines: facts in, work out.
//!
//! Promise: nothing here does I/O, owns a thread or reads a clock; the same facts in the same order give the same
//! answers. Knows: numbers and ids. Does not know: what a task computes, who carries it out.
#![forbid(unsafe_code)]

mod cholesky_graph;
mod scheduler;

pub use cholesky_graph::{CholeskyGraph, Task, TileId};
pub use scheduler::{Scheduler, Work};
