//! What a call tells about itself: the plan it ran, the time of each phase, the memory it took.

use crate::matrix::Matrix;
use crate::ops::product::device::DeviceReport;
use crate::ops::product::plan::Plan;
use crate::ops::product::ranks::report::TeamReport;
use crate::ops::product::recover::RecoveryTime;
use serde::Serialize;
use std::time::{Duration, Instant};

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

impl Phases {
    /// The phases of a process by itself; the workers' times say how much of the last step was rounding.
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
    /// What the ranks of a team did; `None` in one process. The times above are then those of the slowest rank, the bytes
    /// those of the node that takes most.
    #[serde(flatten)]
    pub team: Option<TeamReport>,
    /// What each device did; empty on the CPU.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceReport>,
}

impl Report {
    /// A report of `plan`, for a result that was asked for with `precision_bits`.
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

/// A result with its report.
#[derive(Debug)]
pub struct Outcome {
    /// The matrix computed.
    pub result: Matrix,
    /// How it was computed.
    pub report: Report,
}

/// What a rank does at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum RankPhase {
    /// Norms and scale exponents, the all-reduces included.
    Scale,
    /// Opening windows and placing their pages.
    Windows,
    /// Scaled integers and their residues.
    ToResidues,
    /// Plane products.
    Product,
    /// Residues sent to other nodes, received and added.
    Exchange,
    /// Residues back to integers, rounded and stored.
    Reconstruct,
    /// Waiting for other ranks.
    Wait,
}

/// All phases, in the order of their numbers.
pub const RANK_PHASES: [(RankPhase, &str); 7] = [
    (RankPhase::Scale, "scale"),
    (RankPhase::Windows, "windows"),
    (RankPhase::ToResidues, "to_residues"),
    (RankPhase::Product, "product"),
    (RankPhase::Exchange, "exchange"),
    (RankPhase::Reconstruct, "reconstruct"),
    (RankPhase::Wait, "wait"),
];

/// One stretch of work of a rank, in nanoseconds since all ranks began the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankSpan {
    /// What was done.
    pub phase: RankPhase,
    /// Its start.
    pub start_ns: u64,
    /// Its end.
    pub end_ns: u64,
}

/// Keeps the time of one rank.
pub(crate) struct PhaseClock {
    epoch: Instant,
    totals: [f64; RANK_PHASES.len()],
    /// What was done when; `None` for a process by itself, where nobody asks and nobody waits.
    spans: Option<Vec<RankSpan>>,
}

impl PhaseClock {
    /// A clock that starts now: right after a fence of all ranks, so that their times can be compared.
    pub fn new() -> PhaseClock {
        PhaseClock { spans: Some(Vec::new()), ..PhaseClock::alone() }
    }

    /// The clock of a process by itself.
    pub fn alone() -> PhaseClock {
        PhaseClock { epoch: Instant::now(), totals: [0.0; RANK_PHASES.len()], spans: None }
    }

    /// Runs `work` as `phase`.
    pub fn time<R>(&mut self, phase: RankPhase, work: impl FnOnce() -> R) -> R {
        let start = self.epoch.elapsed();
        let result = work();
        self.add(phase, start, self.epoch.elapsed());
        result
    }

    /// Runs `work`, which waits for other ranks where there are any.
    pub fn wait<R>(&mut self, work: impl FnOnce() -> R) -> R {
        if self.spans.is_none() { work() } else { self.time(RankPhase::Wait, work) }
    }

    fn add(&mut self, phase: RankPhase, start: Duration, end: Duration) {
        self.totals[phase as usize] += (end - start).as_secs_f64();
        if let Some(spans) = &mut self.spans {
            let (start_ns, end_ns) = (start.as_nanos() as u64, end.as_nanos() as u64);
            spans.push(RankSpan { phase, start_ns, end_ns });
        }
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.epoch.elapsed().as_secs_f64()
    }

    /// Seconds in each phase, in the order of [`RANK_PHASES`].
    pub fn totals(&self) -> [f64; RANK_PHASES.len()] {
        self.totals
    }

    /// The seconds of `phase`.
    pub fn seconds_in(&self, phase: RankPhase) -> f64 {
        self.totals[phase as usize]
    }

    /// All spans.
    pub fn into_spans(self) -> Vec<RankSpan> {
        self.spans.unwrap_or_default()
    }
}
