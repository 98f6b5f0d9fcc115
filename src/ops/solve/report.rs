//! The report of a solve: its path, its bands, its bytes, its time.

use crate::context::Context;
use crate::ops::factor::report::CholeskyReport;
use crate::ops::product::problem::Accuracy;
use crate::ops::solve::cut::kernel_name;
use crate::ops::solve::path::{Method, Path};
use crate::ops::solve::problem::{SolveBits, SystemShape};
use serde::Serialize;
use std::time::Instant;

/// The plan and the time of a triangular solve, of a solve with a factor, or of an operation made of such solves.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct SolveReport {
    /// `trsm`, `solve`, `solve_refined`, `ldlt` or `inverse`.
    pub operation: &'static str,
    /// Rows of the triangle, or of the matrix.
    pub order: usize,
    /// Right-hand sides; for `ldlt` the columns of the first panel, for `inverse` the order.
    pub columns: usize,
    /// Requested precision.
    pub precision_bits: u32,
    /// Bits of right-hand sides and unknowns during the solve.
    pub working_bits: u32,
    /// The algorithm that computed the unknowns.
    pub path: Path,
    /// The accuracy that holds for the residual; for a solve with a given factor, the residual of the system whose
    /// matrix is the product of the factors. It is accuracy by norms also if the factorisation before the solve had too
    /// few bits for entrywise accuracy.
    pub accuracy: Accuracy,
    /// Name of the kernel.
    pub kernel: &'static str,
    /// Worker threads.
    pub threads: usize,
    /// Bands of right-hand sides that were solved one after the other.
    pub bands: usize,
    /// Wall-clock seconds of the call.
    pub seconds: f64,
    /// Bytes that the plan allows under a memory limit, including the result. Without a limit, the bytes of the first
    /// pass: right-hand sides that are solved with more bits need more.
    pub planned_bytes: u64,
    /// Approximate number of correct digits of the result, see [`crate::Cholesky::solution_digits`]; `None` if it was
    /// not requested, or if the memory limit was too small for an estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digits: Option<f64>,
    /// The report of the factorisation at the start of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factorisation: Option<CholeskyReport>,
}

impl SolveReport {
    /// The report of a call about to begin.
    pub(crate) fn new(
        ctx: &Context,
        operation: &'static str,
        shape: SystemShape,
        bits: SolveBits,
        method: Method,
    ) -> SolveReport {
        let Method { path, accuracy } = method;
        SolveReport {
            operation,
            order: shape.order,
            columns: shape.columns,
            precision_bits: bits.precision,
            working_bits: bits.working,
            path,
            accuracy,
            kernel: kernel_name(ctx, method, shape.order, bits.working),
            threads: ctx.threads(),
            ..SolveReport::default()
        }
    }

    /// The report of a call that began at `start` with a factorisation.
    pub(crate) fn after(self, factorisation: CholeskyReport, start: Instant) -> SolveReport {
        let planned_bytes = self.planned_bytes.max(factorisation.planned_bytes);
        let seconds = start.elapsed().as_secs_f64();
        // Both have it, or neither.
        let both = [self.accuracy, factorisation.accuracy] == [Accuracy::Entrywise; 2];
        let accuracy = if both { Accuracy::Entrywise } else { Accuracy::Norm };
        SolveReport { planned_bytes, seconds, accuracy, factorisation: Some(factorisation), ..self }
    }
}
