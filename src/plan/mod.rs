//! Decisions before any work: how a product is cut into blocks, jobs, batches, bands and chunks, and what it costs.
//!
//! Pure functions of numbers: no I/O, clock, thread or `unsafe`; knows no kernel and no matrix.
#![forbid(unsafe_code)]

mod blocks;

pub use blocks::{BLOCK, BLOCK_WORDS, BlockGrid};
