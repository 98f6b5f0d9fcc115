//! Decisions before the computation: the division of a product into blocks, jobs, batches, bands and chunks, and its
//! cost.
//!
//! Pure functions of numbers: no I/O, clock, thread or `unsafe`; they depend on no kernel and no matrix.
#![forbid(unsafe_code)]

mod blocks;
mod cost;
mod device;
mod jobs;
mod lpt;
mod memory;
mod nodes;
mod order;
pub mod overhead;
mod tile_size;

pub use blocks::{BLOCK, BLOCK_WORDS, BlockGrid};
pub use device::{DEVICE_ALIGN, DeviceBytes, DeviceCut, DeviceInput, Strip, shares};
pub use jobs::{Job, JobList, plan_jobs};
pub use lpt::{Assignment, assign};
pub use memory::{Cut, DiskInput, LEAST_CHUNK_ROWS, PlanBytes, PlanInput, WindowWords, part_primes};
pub use nodes::{NodeShape, even_share, rank_chunk};
pub use order::{BandPair, band_pairs, pieces};
pub use tile_size::default_tile_size;
