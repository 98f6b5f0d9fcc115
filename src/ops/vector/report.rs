//! The report of a call on vectors.

use serde::Serialize;

/// The shape, the memory and the time of one call on vectors.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct VectorReport {
    /// `gemv`, `symv`, `trmv`, `trsv`, `ger`, `axpy`, `hadamard`, `spmm` or `sddmm`.
    pub operation: &'static str,
    /// Number of entries of the result, or its rows for `ger`, `hadamard` and `spmm`.
    pub rows: usize,
    /// Number of terms of the longest sum, or columns of the result for `ger`, `hadamard` and `spmm`.
    pub cols: usize,
    /// Requested precision.
    pub precision_bits: u32,
    /// Worker threads.
    pub threads: usize,
    /// Wall-clock seconds of the call.
    pub seconds: f64,
    /// Bytes that the call needs, including the result.
    pub planned_bytes: u64,
}
