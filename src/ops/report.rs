//! What a call tells about itself: the plan it ran, the time of each phase, the memory it took.

use crate::matrix::Matrix;
use crate::ops::device::DeviceReport;
use serde::Serialize;

/// Seconds spent in each phase of a product.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Phases {
    /// Norms and scale exponents.
    pub scale: f64,
    /// Scaled integers and their residues.
    pub to_residues: f64,
    /// Plane products.
    pub product: f64,
    /// Residues back to integers, the range check included.
    pub reconstruct: f64,
    /// Rounding and storing the result.
    pub unscale: f64,
}

/// The plan and the timings of one call.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// `syrk` or `gemm`.
    pub operation: &'static str,
    /// Rows contracted (K).
    pub rows: usize,
    /// Columns of the result.
    pub cols: usize,
    /// Precision asked for.
    pub precision_bits: u32,
    /// Precision of the scaled integers.
    pub working_bits: u32,
    /// Worker threads.
    pub threads: usize,
    /// Name of the kernel, or `direct` for the path of tiny sizes.
    pub kernel: &'static str,
    /// Planes, a redundant one included.
    pub primes: usize,
    /// Groups of primes whose operand planes were in memory at the same time.
    pub batches: usize,
    /// Bands of columns of the result.
    pub bands: usize,
    /// Chunks of contracted rows.
    pub chunks: usize,
    /// Wall-clock seconds of the call.
    pub seconds: f64,
    /// Wall-clock seconds of its phases.
    pub phases: Phases,
    /// Bytes the plan allows for: windows, scratch, tables and the result.
    pub planned_bytes: u64,
    /// Whether a redundant prime or Freivalds' test checked the product.
    pub checked: bool,
    /// What each device did; empty on the CPU.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceReport>,
}

/// A result with its report.
#[derive(Debug)]
pub struct Outcome<R = Matrix> {
    /// What was computed.
    pub result: R,
    /// How it was computed.
    pub report: Report,
}
