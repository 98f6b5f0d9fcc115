//! The report of a factorisation: its plan, times of the tasks, memory.

use crate::kernels::tiles::{TileEngine, TileTraffic};
use crate::ops::factor::direct;
use crate::ops::factor::entrywise::RangeBits;
use crate::ops::factor::plan::FactorPlan;
use crate::ops::factor::problem::FactorProblem;
use crate::ops::factor::rank_report::RanksReport;
use crate::ops::factor::spans::{Clock, Span, TaskTimes};
use crate::ops::product::problem::Accuracy;
use serde::Serialize;

/// The plan and the timings of one factorisation; the same on all ranks, except for the kernel, the devices and the
/// spans.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct CholeskyReport {
    /// `cholesky`.
    pub operation: &'static str,
    /// Rows of the matrix.
    pub order: usize,
    /// Requested precision.
    pub precision_bits: u32,
    /// Fixed-point bits inside.
    pub working_bits: u32,
    /// The accuracy that holds for each entry: by norms if it was requested, or if the requested entrywise accuracy was
    /// not reached with any number of bits tried.
    pub accuracy: Accuracy,
    /// Part of `working_bits`: the bits that entrywise accuracy needs for the range of exponents.
    pub range_bits: u32,
    /// Additional bits that entrywise accuracy would have needed; 0 if it was reached or not requested.
    pub missing_bits: u32,
    /// Number of factorisations that were repeated with more bits.
    pub repeats: u32,
    /// Worker threads used, on all ranks together.
    pub threads: usize,
    /// Name of this rank's kernel.
    pub kernel: &'static str,
    /// Planes.
    pub primes: usize,
    /// Rows of a tile.
    pub tile_rows: usize,
    /// Tile rows.
    pub tiles: usize,
    /// Wall-clock seconds of the call, on the slowest rank.
    pub seconds: f64,
    /// Seconds of the tasks, summed over all workers.
    pub tasks: TaskTimes,
    /// Bytes that the plan allows: tiles, scratch memory, tables and the factor; on several ranks, the largest number
    /// over the ranks.
    pub planned_bytes: u64,
    /// The division of the work between ranks; `None` in one process.
    #[serde(flatten)]
    pub ranks: Option<RanksReport>,
    /// The transfers of each device of this rank that ran updates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<TileTraffic>,
    /// The time span of every task, for a trace; not part of a report file.
    #[serde(skip)]
    pub spans: Vec<Span>,
}

impl CholeskyReport {
    /// The report of an entrywise factorisation that took `range`, where `needed` bits were enough, and `check_bytes`
    /// bytes for the check.
    pub(crate) fn entrywise(self, range: RangeBits, needed: u32, check_bytes: u64) -> CholeskyReport {
        let missing_bits = needed.saturating_sub(range.bits);
        CholeskyReport {
            accuracy: if missing_bits == 0 { Accuracy::Entrywise } else { Accuracy::Norm },
            range_bits: range.bits,
            missing_bits,
            repeats: range.repeats,
            planned_bytes: self.planned_bytes + check_bytes,
            ..self
        }
    }

    /// The report of a factorisation on limbs, by norms.
    pub(crate) fn direct(problem: &FactorProblem, planned_bytes: u64, seconds: f64) -> CholeskyReport {
        CholeskyReport {
            operation: "cholesky",
            order: problem.rows,
            precision_bits: problem.precision_bits,
            working_bits: problem.working_bits,
            accuracy: Accuracy::Norm,
            threads: 1,
            kernel: direct::NAME,
            tile_rows: problem.rows,
            tiles: 1,
            seconds,
            planned_bytes,
            ..CholeskyReport::default()
        }
    }

    /// The report of one rank, or of one process, on a factorisation by norms.
    pub(crate) fn new(
        problem: &FactorProblem,
        plan: &FactorPlan,
        engine: &dyn TileEngine,
        clock: &mut Clock,
    ) -> CholeskyReport {
        CholeskyReport {
            operation: "cholesky",
            order: problem.rows,
            precision_bits: problem.precision_bits,
            working_bits: problem.working_bits,
            accuracy: Accuracy::Norm,
            threads: plan.threads,
            primes: engine.primes(),
            tile_rows: plan.tiling.tile_size,
            tiles: plan.tiling.tile_rows(),
            seconds: clock.now(),
            tasks: clock.times,
            planned_bytes: plan.bytes,
            spans: std::mem::take(&mut clock.spans),
            ..CholeskyReport::default()
        }
    }
}
