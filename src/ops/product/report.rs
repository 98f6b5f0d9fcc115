//! The report of a call: the plan it ran, the time of each phase, the memory it took.

use crate::matrix::Matrix;
use crate::ops::product::clock::{PhaseClock, RankPhase, RankPhases};
use crate::ops::product::device::DeviceReport;
use crate::ops::product::plan::{Plan, TeamPlan};
use crate::ops::product::problem::Accuracy;
use crate::ops::product::steps::RecoveryTime;
use serde::Serialize;

/// Seconds spent in each phase of a product.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Phases {
    /// Norms and scale exponents.
    pub scale: f64,
    /// Conversion to scaled integers and their residues.
    pub to_residues: f64,
    /// Plane products.
    pub product: f64,
    /// Conversion of residues to integers, including the range check.
    pub reconstruct: f64,
    /// Rounding and storing the result.
    pub unscale: f64,
}

impl Phases {
    /// The phases of one process; the workers' times show how much of the last step was rounding.
    pub(crate) fn new(clock: &PhaseClock, recovery: &RecoveryTime) -> Phases {
        let last = clock.seconds_in(RankPhase::Reconstruct);
        let share = last / (recovery.reconstruct + recovery.unscale).as_secs_f64().max(1e-9);
        Phases {
            scale: clock.seconds_in(RankPhase::Scale),
            to_residues: clock.seconds_in(RankPhase::ToResidues),
            product: clock.seconds_in(RankPhase::Product),
            reconstruct: share * recovery.reconstruct.as_secs_f64(),
            unscale: share * recovery.unscale.as_secs_f64(),
        }
    }

    /// The longest of each phase over the ranks of a team; the exchange between nodes counts as reconstruction.
    pub(crate) fn longest(ranks: &RankPhases) -> Phases {
        Phases {
            scale: ranks.scale.max,
            to_residues: ranks.to_residues.max,
            product: ranks.product.max,
            reconstruct: ranks.exchange.max + ranks.reconstruct.max,
            unscale: 0.0,
        }
    }
}

/// The report of one call by the ranks of a team; the same on all of them.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct TeamReport {
    /// The division of the work between the ranks.
    #[serde(flatten)]
    pub plan: TeamPlan,
    /// Seconds of the phases over the ranks.
    pub rank_phases: RankPhases,
    /// Source of the windows' memory: `heap`, `mpi` or `posix`.
    pub window: &'static str,
    /// The largest number of bytes of windows on a node.
    pub window_bytes: u64,
    /// Bytes of residues that all ranks together sent to other nodes; if ranks have devices, the bytes sent within
    /// nodes are included.
    pub exchanged_bytes: u64,
    /// The fraction of the time of the exchange during which the products continued, over all ranks; 0 without an
    /// exchange.
    pub exchange_hidden: f64,
}

/// The plan and the timings of one call.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// `syrk` or `gemm`.
    pub operation: &'static str,
    /// Rows contracted (K).
    pub rows: usize,
    /// Columns of the result.
    pub cols: usize,
    /// Requested precision.
    pub precision_bits: u32,
    /// Precision of the scaled integers.
    pub working_bits: u32,
    /// Accuracy promised for each entry.
    pub accuracy: Accuracy,
    /// Part of `working_bits`: the bits that entrywise accuracy needs for the range of exponents.
    pub range_bits: u32,
    /// Number of entries that were summed term by term, since their exponents are far outside the range of the others.
    pub single_entries: u64,
    /// Worker threads.
    pub threads: usize,
    /// Name of the kernel, or `direct` for tiny products, which are computed without residues.
    pub kernel: &'static str,
    /// Residue planes, including a redundant one.
    pub primes: usize,
    /// Groups of primes whose operand planes were in memory at the same time.
    pub batches: usize,
    /// Bands of columns of the result.
    pub bands: usize,
    /// Chunks of contracted rows.
    pub chunks: usize,
    /// Wall-clock seconds of the call.
    pub seconds: f64,
    /// Wall-clock seconds of the phases of the call.
    pub phases: Phases,
    /// Bytes that the plan allows: windows, scratch memory, tables and the result.
    pub planned_bytes: u64,
    /// Whether a redundant prime or Freivalds' test checked the product.
    pub checked: bool,
    /// The work of the ranks of a team; `None` in one process. The times above are then those of the slowest rank, and
    /// the bytes are the largest over the nodes.
    #[serde(flatten)]
    pub team: Option<TeamReport>,
    /// The work of each device; empty on the CPU.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceReport>,
}

impl Report {
    /// A report of `plan`, for a result with the requested `precision_bits`.
    pub(crate) fn new(plan: &Plan, precision_bits: u32, phases: Phases) -> Report {
        Report {
            operation: plan.operation,
            rows: plan.contracted,
            cols: plan.cols,
            precision_bits,
            working_bits: plan.working_bits,
            threads: plan.threads,
            kernel: plan.kernel,
            primes: plan.primes,
            batches: plan.batches,
            bands: plan.bands,
            chunks: plan.chunks,
            phases,
            planned_bytes: plan.planned_bytes,
            ..Report::default()
        }
    }
}

/// A result with its report: the return value of every verb that is called with options.
#[derive(Clone, Debug)]
pub struct Outcome<R = Matrix, T = Report> {
    /// The computed result.
    pub result: R,
    /// The report of the computation.
    pub report: T,
}
