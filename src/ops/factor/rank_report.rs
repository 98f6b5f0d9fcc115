//! The report on the ranks that shared a factorisation.

use crate::comm::Transport;
use crate::drive::RankReport;
use crate::error::Result;
use crate::runtime::Policy;
use crate::runtime::protocol::{DeliveryKind, Termination};
use crate::tile::RankGrid;
use serde::Serialize;

/// The work of one rank, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RankSummary {
    /// Tasks on its tiles.
    pub tasks: u64,
    /// Seconds that its workers computed, summed over the workers.
    pub busy_seconds: f64,
    /// Seconds that its workers waited, summed over the workers.
    pub wait_seconds: f64,
    /// Messages that it sent, including tiles.
    pub messages: u64,
    /// Part of these messages: those used only for termination.
    pub termination_messages: u64,
    /// Requests that it forwarded to another rank.
    pub forwards: u64,
    /// The largest number of times that it sent one of its own tiles.
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

const WORDS: usize = 13;

impl RankSummary {
    fn to_words(self) -> [u64; WORDS] {
        [
            self.tasks,
            self.busy_seconds.to_bits(),
            self.wait_seconds.to_bits(),
            self.messages,
            self.termination_messages,
            self.forwards,
            self.most_sends,
            self.depth,
            self.sent_bytes,
            self.received_bytes,
            self.peak_slots,
            self.peak_buffer_bytes,
            self.peak_packed_bytes,
        ]
    }

    fn from_words(words: [u64; WORDS]) -> RankSummary {
        RankSummary {
            tasks: words[0],
            busy_seconds: f64::from_bits(words[1]),
            wait_seconds: f64::from_bits(words[2]),
            messages: words[3],
            termination_messages: words[4],
            forwards: words[5],
            most_sends: words[6],
            depth: words[7],
            sent_bytes: words[8],
            received_bytes: words[9],
            peak_slots: words[10],
            peak_buffer_bytes: words[11],
            peak_packed_bytes: words[12],
        }
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
    /// All ranks.
    pub ranks: usize,
    /// The algorithm that sent tiles to ranks.
    pub delivery: DeliveryKind,
    /// How ranks ended.
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
