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
