//! Kernels whose instructions this machine may lack, compiled a second time for the tests: on `avx512`, a model of the
//! instructions in plain Rust. All of their tests run there as well, on any machine.
//!
//! The build script copies the sources, which stay as they are: in the copies `std::arch::x86_64` reads
//! `on_model::avx512`, `kernels::x86_64` reads `on_model`, and nothing is compiled for features of a CPU. Lines keep
//! their numbers. Reasons against a trait: docs/decisions/052-ifma52-over-a-model.md.
#![allow(unused_unsafe, dead_code, unused_imports)]
// The copies have empty lines where the originals name features; lints read the originals.
#![allow(clippy::empty_line_after_doc_comments, clippy::empty_line_after_outer_attr, clippy::too_many_arguments)]

mod avx512;
mod cpu;

include!(concat!(env!("OUT_DIR"), "/on_model/kernels.rs"));

#[cfg(test)]
mod tests;
