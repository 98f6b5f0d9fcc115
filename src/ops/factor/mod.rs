//! Factorisations in tiles, in one process or on many ranks: the problem, its tiles, the run.
//!
//! `problem` scales the matrix, `plan` cuts it into tiles and counts the memory, `run` carries it out in one process
//! and `ranks` on many, both with the tiles of `tile_store` and the protocol of `runtime`. `tile_work` is the
//! arithmetic of one tile, `payload` the words in which a finished one travels, `node_tiles` its place in the memory of
//! a node. `disk` does it for a matrix larger than memory, with the tiles' `tile_file`, of big floats and of doubles.
//! `double` factors tiles of doubles in memory.
//! Independent of: solves with a factor.

pub(crate) mod diagnose;
pub(crate) mod direct;
pub mod disk;
pub mod double;
pub(crate) mod entrywise;
pub(crate) mod kernel;
pub(crate) mod node_tiles;
pub(crate) mod options;
mod payload;
pub(crate) mod plan;
pub(crate) mod problem;
pub mod ranks;
pub(crate) mod reference;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod spans;
mod tile_file;
mod tile_store;
mod tile_work;
pub(crate) mod together;

use std::sync::PoisonError;

/// The guarded data is valid even if a holder panicked; such a call ends with the panic.
pub(crate) fn unpoisoned<G>(locked: Result<G, PoisonError<G>>) -> G {
    locked.unwrap_or_else(PoisonError::into_inner)
}
