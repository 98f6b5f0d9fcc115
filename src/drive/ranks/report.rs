//! The report of a rank on its part of a factorisation: times, messages, bytes, and spans.

use crate::runtime::protocol::Counters;
use crate::tile::TileId;
use serde::Serialize;
use std::time::Instant;

/// The kind of a span.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanKind {
    /// SYRK or GEMM: the number of them; if it is 0, the tile was loaded before its tasks.
    Updates(u32),
    /// Updates, then POTRF or TRSM.
    Finish(u32),
    /// A finished tile was packed.
    Pack,
    /// A received tile was made an operand.
    Unpack,
    /// A tile was in transit from another rank, from the time of its request at the mailbox.
    Receive {
        /// The sender.
        from: u32,
    },
    /// A tile was in transit to another rank.
    Send {
        /// The receiver.
        to: u32,
    },
}

/// A stretch of work of a worker, or a transfer; times are nanoseconds since the rank began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct WorkSpan {
    /// The kind of the span.
    pub kind: SpanKind,
    /// Tile row; of a strip that of its first tile.
    pub row: u32,
    /// Tile column.
    pub col: u32,
    /// Its start.
    pub start_ns: u64,
    /// Its end.
    pub end_ns: u64,
}

/// Numbers of ready tasks and held tiles over time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Sample {
    /// Nanoseconds since the rank began.
    pub at_ns: u64,
    /// Ready tiles that no worker has taken.
    pub ready: u32,
    /// Workers with something to do.
    pub busy: u32,
    /// Bytes of tiles of other ranks, and of finished own ones that wait to be sent.
    pub held_bytes: u64,
}

/// The work of one worker.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct WorkerReport {
    /// Runs and conversions.
    pub jobs: u64,
    /// Seconds of work, and of requests for more.
    pub busy_seconds: f64,
    /// Seconds asleep, while there was none.
    pub wait_seconds: f64,
    /// The spans of its work.
    pub spans: Vec<WorkSpan>,
}

/// The work of one rank.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct RankReport {
    /// The counters of its task machine.
    pub counters: Counters,
    /// Its workers.
    pub workers: Vec<WorkerReport>,
    /// Seconds from the first task to the last message.
    pub seconds: f64,
    /// Bytes of tiles sent.
    pub sent_bytes: u64,
    /// Bytes of tiles received.
    pub received_bytes: u64,
    /// The largest number of bytes of buffers for tiles of other ranks.
    pub peak_buffer_bytes: u64,
    /// The largest number of bytes of finished own tiles that waited to be sent. Elements that travel as they are take
    /// no more memory for it.
    pub peak_packed_bytes: u64,
    /// Transfers, where they are recorded.
    pub transfers: Vec<WorkSpan>,
    /// At many times, evenly thinned.
    pub samples: Vec<Sample>,
}

impl RankReport {
    /// Seconds that all workers were busy.
    pub fn busy_seconds(&self) -> f64 {
        self.workers.iter().map(|worker| worker.busy_seconds).sum()
    }

    /// Seconds that all workers had nothing to do.
    pub fn wait_seconds(&self) -> f64 {
        self.workers.iter().map(|worker| worker.wait_seconds).sum()
    }
}

/// Notes spans where they are wanted.
pub(super) struct SpanLog {
    epoch: Instant,
    spans: Option<Vec<WorkSpan>>,
}

impl SpanLog {
    pub fn new(epoch: Instant, wanted: bool) -> SpanLog {
        SpanLog { epoch, spans: wanted.then(Vec::new) }
    }

    /// The time now, where it is to be noted.
    pub fn now(&self) -> Option<Instant> {
        self.spans.is_some().then(Instant::now)
    }

    /// Notes a span that ends now, where `start` was noted.
    pub fn add(&mut self, kind: SpanKind, tile: TileId, start: Option<Instant>) {
        let Some((spans, start)) = self.spans.as_mut().zip(start) else { return };
        let nanoseconds = |time: Instant| time.duration_since(self.epoch).as_nanos() as u64;
        let (row, col) = (tile.row as u32, tile.col as u32);
        spans.push(WorkSpan { kind, row, col, start_ns: nanoseconds(start), end_ns: nanoseconds(Instant::now()) });
    }

    pub fn into_spans(self) -> Vec<WorkSpan> {
        self.spans.unwrap_or_default()
    }
}

/// Elements for which a list that is not empty has room.
const LEAST_GROWTH: usize = 4;

/// The largest number of samples that are kept.
const MOST_SAMPLES: usize = 4096;

/// Most bytes of the samples of `events` events; lists grow by doubling.
pub fn sample_bytes(events: usize) -> u64 {
    (events.min(MOST_SAMPLES).next_power_of_two().max(LEAST_GROWTH) * size_of::<Sample>()) as u64
}

/// Most bytes of the spans of `events` events.
pub fn span_bytes(events: usize) -> u64 {
    (events.next_power_of_two().max(LEAST_GROWTH) * size_of::<WorkSpan>()) as u64
}

/// Samples of which every second one is dropped when there are too many, so that they stay evenly spread over events.
pub(super) struct SampleLog {
    samples: Vec<Sample>,
    /// One of `stride` events is kept.
    stride: u64,
    events: u64,
}

impl SampleLog {
    pub fn new() -> SampleLog {
        SampleLog { samples: Vec::new(), stride: 1, events: 0 }
    }

    /// Processes an event; `sample` is called if the event is to be recorded.
    pub fn event(&mut self, sample: impl FnOnce() -> Sample) {
        if self.events.is_multiple_of(self.stride) {
            if self.samples.len() == MOST_SAMPLES {
                let mut index = 0;
                self.samples.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.stride *= 2;
            }
            self.samples.push(sample());
        }
        self.events += 1;
    }

    pub fn into_samples(self) -> Vec<Sample> {
        self.samples
    }
}
