//! The report of an LU factorisation.

use crate::context::Context;
use crate::ops::factor::entrywise::RangeBits;
use crate::ops::lu::NAME;
use crate::ops::lu::problem::LuProblem;
use crate::ops::lu::run::Factors;
use crate::ops::product::problem::Accuracy;
use serde::Serialize;
use std::time::Instant;

/// Numbers of an LU factorisation: its bits, its memory, its time.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct LuReport {
    /// `lu`.
    pub operation: &'static str,
    /// Rows of the matrix.
    pub order: usize,
    /// Requested precision.
    pub precision_bits: u32,
    /// Fixed-point bits of the factors during the factorisation.
    pub working_bits: u32,
    /// The accuracy that holds. It is by norms also if the largest number of bits was too small for entrywise accuracy.
    pub accuracy: Accuracy,
    /// Bits beyond those of accuracy by norms.
    pub range_bits: u32,
    /// Bits by which these were too few for entrywise accuracy.
    pub missing_bits: u32,
    /// Factorisations with fewer bits before the last one.
    pub repeats: u32,
    /// The largest entry of `U`, each divided by a power of two that is at least as large as its column of `A`, is at
    /// most `2^growth_bits`.
    pub growth_bits: u32,
    /// Name of the kernel; `direct` for a small matrix, which is factored without residues.
    pub kernel: &'static str,
    /// Primes of the residues; 0 without residues.
    pub primes: usize,
    /// Worker threads.
    pub threads: usize,
    /// Wall-clock seconds of the call.
    pub seconds: f64,
    /// Bytes of the plan, including the factors.
    pub planned_bytes: u64,
}

impl LuReport {
    /// The report of a factorisation about to begin.
    pub(crate) fn new(ctx: &Context, problem: &LuProblem) -> LuReport {
        LuReport {
            operation: NAME,
            order: problem.order,
            precision_bits: problem.precision_bits,
            working_bits: problem.working_bits,
            accuracy: Accuracy::Norm,
            threads: ctx.threads(),
            ..LuReport::default()
        }
    }

    /// The report of a factorisation by norms that began at `start`.
    pub(crate) fn made(self, factors: &Factors, start: Instant) -> LuReport {
        LuReport { growth_bits: factors.growth_bits, seconds: start.elapsed().as_secs_f64(), ..self }
    }

    /// The report of an entrywise factorisation that took `range`, where `needed` bits were enough, and `check_bytes`
    /// bytes for the check.
    pub(crate) fn entrywise(self, range: RangeBits, needed: u32, check_bytes: u64) -> LuReport {
        let missing_bits = needed.saturating_sub(range.bits);
        LuReport {
            accuracy: if missing_bits == 0 { Accuracy::Entrywise } else { Accuracy::Norm },
            range_bits: range.bits,
            missing_bits,
            repeats: range.repeats,
            planned_bytes: self.planned_bytes + check_bytes,
            ..self
        }
    }
}
