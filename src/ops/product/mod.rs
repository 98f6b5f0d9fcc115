//! The product of residue planes behind `syrk` and `gemm`: `C := alpha * X^T Y + beta * C0`.
//!
//! `problem` states the task, `plan` how it will run, `run` runs it, `report` describes the run; `call` is this
//! sequence in one process, `ranks` on many ranks, `disk` above a disk; `device` runs on devices.
//! Source: docs/ALGORITHM.md.

pub(crate) mod block;
pub(crate) mod call;
pub(crate) mod clock;
pub(crate) mod combine;
pub mod device;
pub(crate) mod direct;
pub mod disk;
pub(crate) mod entrywise;
mod exchange;
mod inner_check;
pub(crate) mod path;
pub(crate) mod plan;
pub(crate) mod problem;
pub(crate) mod ranks;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod scale;
pub(crate) mod sink;
pub(crate) mod steps;
pub(crate) mod together;
pub(crate) mod weights;
