//! Many problems in one call: the verbs on small matrices, the threads share the problems.
//!
//! Each problem is the single call, on one thread, in the workspace of its worker, so its bits are those of the single
//! call; memory in addition to the results is allocated once for each worker. `run` defines a problem, its memory and
//! the loop; the other files are pages of the verbs.

mod cholesky;
mod products;
mod run;
mod trsm;

pub use cholesky::{cholesky_batch, cholesky_batch_into, cholesky_batch_with};
pub use products::{GemmProblem, gemm_batch, gemm_batch_into, gemm_batch_with};
pub use products::{SyrkProblem, syrk_batch, syrk_batch_into, syrk_batch_with};
pub use trsm::{TrsmProblem, trsm_batch, trsm_batch_into, trsm_batch_with};

use crate::matrix::{Matrix, MatrixView, SymmetricMatrix};
use crate::ops::product::problem::Accuracy;
use serde::Serialize;

/// A matrix or a view of one, as an operand of a problem in a batch.
///
/// Every type that converts to a [`MatrixView`] has it. As a trait of this package it lets the compiler rule out that a
/// pair of operands is an operand itself.
pub trait Operand<'a>: Into<MatrixView<'a>> {}

impl<'a> Operand<'a> for MatrixView<'a> {}

impl<'a> Operand<'a> for &'a Matrix {}

impl<'a> Operand<'a> for &'a SymmetricMatrix {}

/// The plan and the time of one batch.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct BatchReport {
    /// `syrk_batch`, `gemm_batch`, `cholesky_batch` or `trsm_batch`.
    pub operation: &'static str,
    /// Problems in the batch.
    pub problems: usize,
    /// Problems that have an error instead of a result.
    pub failed: usize,
    /// Precision of all results.
    pub precision_bits: u32,
    /// The accuracy that holds for each entry of all results: by norms also where entrywise accuracy was requested and
    /// some factor did not reach it, see [`crate::report::CholeskyReport::missing_bits`] of its single call.
    pub accuracy: Accuracy,
    /// The most bits that entrywise accuracy took beyond those of norms.
    pub range_bits: u32,
    /// Worker threads, each with problems of its own; under a memory limit as many as it has room for.
    pub threads: usize,
    /// Problems that went without residues and tiles, on limbs: the path of the smallest products and factors,
    /// and of systems side by side.
    pub direct: usize,
    /// Wall-clock seconds of the call.
    pub seconds: f64,
    /// Bytes the plan allows for: all results, lists of the problems, and the scratch of each worker.
    pub planned_bytes: u64,
}
