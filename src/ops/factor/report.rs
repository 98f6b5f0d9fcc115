//! The report of a factorisation: its plan, times of the tasks, memory, and the ranks that shared it.

use crate::comm::Transport;
use crate::drive::RankReport;
use crate::error::Result;
use crate::kernels::tiles::{TileEngine, TileTraffic};
use crate::ops::factor::direct;
use crate::ops::factor::entrywise::RangeBits;
use crate::ops::factor::plan::FactorPlan;
use crate::ops::factor::problem::FactorProblem;
use crate::ops::factor::spans::{Clock, Span, TaskTimes};
use crate::ops::product::problem::Accuracy;
use crate::runtime::Policy;
use crate::runtime::protocol::{DeliveryKind, Termination};
use crate::tile::RankGrid;
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
    /// Fixed-point bits of the computation.
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
    /// Number of residue planes.
    pub primes: usize,
    /// Rows of a tile.
    pub tile_rows: usize,
    /// Number of tile rows.
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

    /// The figures that the reports of all factorisations by norms have.
    fn by_norms(problem: &FactorProblem, planned_bytes: u64, seconds: f64) -> CholeskyReport {
        CholeskyReport {
            operation: "cholesky",
            order: problem.rows,
            precision_bits: problem.precision_bits,
            working_bits: problem.working_bits,
            accuracy: Accuracy::Norm,
            seconds,
            planned_bytes,
            ..CholeskyReport::default()
        }
    }

    /// The report of a factorisation on limbs, by norms.
    pub(crate) fn direct(problem: &FactorProblem, planned_bytes: u64, seconds: f64) -> CholeskyReport {
        let report = CholeskyReport::by_norms(problem, planned_bytes, seconds);
        CholeskyReport { threads: 1, kernel: direct::NAME, tile_rows: problem.rows, tiles: 1, ..report }
    }

    /// The report of one rank, or of one process, on a factorisation by norms.
    pub(crate) fn new(
        problem: &FactorProblem,
        plan: &FactorPlan,
        engine: &dyn TileEngine,
        clock: &mut Clock,
    ) -> CholeskyReport {
        CholeskyReport {
            threads: plan.threads,
            primes: engine.primes(),
            tile_rows: plan.tiling.tile_size,
            tiles: plan.tiling.tile_rows(),
            tasks: clock.times,
            spans: std::mem::take(&mut clock.spans),
            ..CholeskyReport::by_norms(problem, plan.bytes, clock.now())
        }
    }
}

/// The work of one rank, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RankSummary {
    /// Number of tasks on its tiles.
    pub tasks: u64,
    /// Seconds during which its workers computed, summed over the workers.
    pub busy_seconds: f64,
    /// Seconds during which its workers waited, summed over the workers.
    pub wait_seconds: f64,
    /// Messages that it sent, including tiles.
    pub messages: u64,
    /// Part of these messages: those used only for termination.
    pub termination_messages: u64,
    /// Requests that it forwarded to another rank.
    pub forwards: u64,
    /// The largest number of times that the rank sent one of its own tiles.
    pub most_sends: u64,
    /// Longest chain of transfers from the owner of a tile to this rank.
    pub depth: u64,
    /// Bytes of tiles that it sent.
    pub sent_bytes: u64,
    /// Bytes of tiles that it received.
    pub received_bytes: u64,
    /// The largest number of slots for tiles of other ranks that it used.
    pub peak_slots: u64,
    /// The largest number of bytes of buffers for tiles of other ranks.
    pub peak_buffer_bytes: u64,
    /// The largest number of bytes of own tiles that waited to be sent.
    pub peak_packed_bytes: u64,
}

/// Words in which a summary travels.
const WORDS: usize = 13;

impl RankSummary {
    /// All counts, in the order in which they travel after the seconds.
    fn counts(&mut self) -> [&mut u64; WORDS - 2] {
        [
            &mut self.tasks,
            &mut self.messages,
            &mut self.termination_messages,
            &mut self.forwards,
            &mut self.most_sends,
            &mut self.depth,
            &mut self.sent_bytes,
            &mut self.received_bytes,
            &mut self.peak_slots,
            &mut self.peak_buffer_bytes,
            &mut self.peak_packed_bytes,
        ]
    }

    fn to_words(mut self) -> [u64; WORDS] {
        let mut words = [self.busy_seconds.to_bits(); WORDS];
        words[1] = self.wait_seconds.to_bits();
        words[2..].copy_from_slice(&self.counts().map(|count| *count));
        words
    }

    fn from_words(words: [u64; WORDS]) -> RankSummary {
        let [busy_seconds, wait_seconds] = [words[0], words[1]].map(f64::from_bits);
        let mut summary = RankSummary { busy_seconds, wait_seconds, ..RankSummary::default() };
        summary.counts().into_iter().zip(&words[2..]).for_each(|(count, word)| *count = *word);
        summary
    }

    fn of(report: &RankReport) -> RankSummary {
        let counters = &report.counters;
        RankSummary {
            tasks: counters.tasks,
            busy_seconds: report.busy_seconds(),
            wait_seconds: report.wait_seconds(),
            messages: counters.notices + counters.requests + counters.forwards + counters.tiles + counters.finished,
            termination_messages: counters.finished,
            forwards: counters.forwards,
            most_sends: counters.most_sends.into(),
            depth: counters.depth.into(),
            sent_bytes: report.sent_bytes,
            received_bytes: report.received_bytes,
            peak_slots: counters.peak_slots,
            peak_buffer_bytes: report.peak_buffer_bytes,
            peak_packed_bytes: report.peak_packed_bytes,
        }
    }

    /// The summaries of all ranks, in their order. Collective.
    ///
    /// # Errors
    /// [`crate::Error::Transport`].
    pub(crate) fn gather(world: &dyn Transport, own: &RankReport) -> Result<Vec<RankSummary>> {
        let mut all = vec![[0; WORDS]; world.size()];
        world.all_gather(&RankSummary::of(own).to_words(), all.as_flattened_mut())?;
        Ok(all.into_iter().map(RankSummary::from_words).collect())
    }
}

/// The division of a factorisation between ranks; the same on all of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RanksReport {
    /// Rows and columns of the grid of ranks that own tiles.
    pub grid: RankGrid,
    /// Number of ranks.
    pub ranks: usize,
    /// The algorithm that sent tiles to ranks.
    pub delivery: DeliveryKind,
    /// The rule by which a rank detected that it could end.
    pub termination: Termination,
    /// The order of ready tasks.
    pub policy: Policy,
    /// Tiles of other ranks that each rank could hold; 0 if no tile was sent.
    pub slots: usize,
    /// Whether the ranks of a node kept their tiles in one shared window, in which they read each other's tiles; on one
    /// node no tile was sent then. The system clears the window's pages when it is opened; the window is kept for the
    /// next call, until [`crate::distributed::Team::release`] or a call under a memory limit. Source:
    /// docs/decisions/083-finished-tiles-in-a-window.md.
    pub shared_tiles: bool,
    /// The work of each rank.
    pub per_rank: Vec<RankSummary>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_come_back_from_words() {
        let words = std::array::from_fn(|at| (at as u64 + 1) << 50 | 7);
        assert_eq!(RankSummary::from_words(words).to_words(), words);
    }
}
