//! Decisions before any work: how a product is cut into blocks, jobs, batches, bands and chunks, and what it costs.
//!
//! Pure functions of numbers: no I/O, clock, thread or `unsafe`; knows no kernel and no matrix.
#![forbid(unsafe_code)]

mod blocks;
mod jobs;
mod lpt;
mod memory;

pub use blocks::{BLOCK, BLOCK_WORDS, BlockGrid};
pub use jobs::{Job, JobList, plan_jobs};
pub use lpt::{Assignment, assign};
pub use memory::{Cut, LEAST_CHUNK_ROWS, PlanBytes, PlanInput, WindowWords};
