//! Many problems in one call: the verbs on small matrices, the threads share the problems.
//!
//! Each problem is the single call, on one thread, in the workspace of its worker, so its bits are those of the single
//! call; memory in addition to the results is allocated once for each worker. `run` defines a problem, its memory and
//! the loop; the other files are pages of the verbs.

mod cholesky;
mod products;
mod run;
mod trsm;
mod weighted;

pub use cholesky::{cholesky_batch, cholesky_batch_into, cholesky_batch_with};
pub use products::{GemmProblem, gemm_batch, gemm_batch_into, gemm_batch_with};
pub use products::{SyrkProblem, syrk_batch, syrk_batch_into, syrk_batch_with};
pub use trsm::{TrsmProblem, trsm_batch, trsm_batch_into, trsm_batch_with};
pub use weighted::{WeightedGramProblem, weighted_gram_batch, weighted_gram_batch_into, weighted_gram_batch_with};

use crate::matrix::{Matrix, MatrixView, SymmetricMatrix};
use crate::ops::product::problem::Accuracy;
use serde::Serialize;

/// A matrix or a view of one, as an operand of a problem in a batch.
///
/// Every type that converts to a [`MatrixView`] implements it. The trait belongs to this package, so that the compiler
/// can exclude that a pair of operands is itself an operand.
pub trait Operand<'a>: Into<MatrixView<'a>> {}

impl<'a> Operand<'a> for MatrixView<'a> {}

impl<'a> Operand<'a> for &'a Matrix {}

impl<'a> Operand<'a> for &'a SymmetricMatrix {}

/// The plan and the time of one batch.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct BatchReport {
    /// `syrk_batch`, `gemm_batch`, `weighted_gram_batch`, `cholesky_batch` or `trsm_batch`.
    pub operation: &'static str,
    /// Problems in the batch.
    pub problems: usize,
    /// Problems that have an error instead of a result.
    pub failed: usize,
    /// Precision of all results.
    pub precision_bits: u32,
    /// The accuracy that holds for each entry of all results: by norms if it was requested, or if some factor did not
    /// reach the requested entrywise accuracy; the report of a single call on that matrix has its
    /// [`crate::report::CholeskyReport::missing_bits`].
    pub accuracy: Accuracy,
    /// The largest number of bits that entrywise accuracy needed in addition to those for accuracy by norms.
    pub range_bits: u32,
    /// Worker threads, each with its own problems; under a memory limit at most the number that the limit allows.
    pub threads: usize,
    /// Problems that were computed on limbs, without residues and tiles: the smallest products and factors, and systems
    /// computed together, one in each lane of a vector register.
    pub direct: usize,
    /// Wall-clock seconds of the call.
    pub seconds: f64,
    /// Bytes that the plan allows: all results, lists of the problems, and the scratch memory of each worker.
    pub planned_bytes: u64,
}
