//! The report of a batch.

use crate::ops::product::problem::Accuracy;
use serde::Serialize;

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
    /// The accuracy that holds for each entry of all results: by norms if it was requested, or if some factor did not
    /// reach the requested entrywise accuracy, see [`crate::report::CholeskyReport::missing_bits`] of its single call.
    pub accuracy: Accuracy,
    /// The largest number of bits that entrywise accuracy needed in addition to those for accuracy by norms.
    pub range_bits: u32,
    /// Worker threads, each with its own problems; under a memory limit at most the number that the limit allows.
    pub threads: usize,
    /// Problems that were computed on limbs, without residues and tiles: the smallest products and factors, and systems
    /// computed together in lanes.
    pub direct: usize,
    /// Wall-clock seconds of the call.
    pub seconds: f64,
    /// Bytes that the plan allows: all results, lists of the problems, and the scratch memory of each worker.
    pub planned_bytes: u64,
}
