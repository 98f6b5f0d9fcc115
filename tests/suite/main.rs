//! What the library promises, proven from outside through its public calls.
//!
//! One program, so that the library is linked once and what the tests share is compiled once. A part of it runs by
//! name: `cargo test --test suite factors::trsm`. tests/README.md says which module proves what.

mod accuracies;
mod balls;
mod batch;
mod common;
mod devices;
mod factors;
mod files;
mod out_of_core;
mod products;
mod ranks;
mod reach;
mod storage;
mod vectors;
