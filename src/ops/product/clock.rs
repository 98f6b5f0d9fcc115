//! The time of each phase of a product, on one rank and over all ranks.

use crate::comm::Transport;
use crate::error::Result;
use crate::store::room_for_threads;
use serde::Serialize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The phases of a rank's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum RankPhase {
    /// Norms and scale exponents, including the all-reduces.
    Scale,
    /// Opening windows and placing their pages in memory.
    Windows,
    /// Conversion to scaled integers and their residues.
    ToResidues,
    /// Plane products.
    Product,
    /// Exchange of residues with other nodes: sent, received and added.
    Exchange,
    /// Reconstruction of integers from residues, rounded and stored.
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
    /// The kind of work.
    pub phase: RankPhase,
    /// Start of the span.
    pub start_ns: u64,
    /// End of the span.
    pub end_ns: u64,
}

/// Keeps the time of one rank.
pub(crate) struct PhaseClock {
    epoch: Instant,
    totals: [f64; RANK_PHASES.len()],
    /// Words that were sent to other nodes, or to other ranks with devices.
    sent_words: u64,
    /// Seconds of the exchange during which products were formed.
    hidden: f64,
    /// End of the last phase.
    last: Duration,
    /// The spans of time so far; `None` for one process, which waits for no rank.
    spans: Option<Vec<RankSpan>>,
}

impl PhaseClock {
    /// A clock that starts now: right after a fence of all ranks, so that their times can be compared.
    pub fn new() -> PhaseClock {
        PhaseClock { spans: Some(Vec::new()), ..PhaseClock::alone(Instant::now()) }
    }

    /// The clock of one process, which began its call at `start`. A phase begins where the previous one ended, or at a
    /// [`PhaseClock::skip`]: reading the time is a noticeable part of the smallest calls.
    pub fn alone(start: Instant) -> PhaseClock {
        PhaseClock {
            epoch: start,
            totals: [0.0; RANK_PHASES.len()],
            sent_words: 0,
            hidden: 0.0,
            last: Duration::ZERO,
            spans: None,
        }
    }

    /// Excludes the time since the last phase from all phases.
    pub fn skip(&mut self) {
        self.last = self.epoch.elapsed();
    }

    /// Runs `work` as `phase`.
    pub fn time<R>(&mut self, phase: RankPhase, work: impl FnOnce() -> R) -> R {
        let start = if self.spans.is_none() { self.last } else { self.epoch.elapsed() };
        let result = work();
        self.last = self.epoch.elapsed();
        self.add(phase, start, self.last);
        result
    }

    /// Runs `work`, which waits for other ranks where there are any.
    pub fn wait<R>(&mut self, work: impl FnOnce() -> R) -> R {
        if self.spans.is_none() { work() } else { self.time(RankPhase::Wait, work) }
    }

    /// Runs `multiply` as the product on a thread of its own while the calling thread runs `exchange`; runs them one
    /// after the other where no thread can be started.
    pub fn beside<R: Send>(
        &mut self,
        multiply: impl FnOnce() -> R + Send,
        exchange: impl FnOnce() -> Result<u64>,
    ) -> (R, Result<()>) {
        let epoch = self.epoch;
        let timed = move || {
            let start = epoch.elapsed();
            (multiply(), start, epoch.elapsed())
        };
        let exchanged = || {
            let start = epoch.elapsed();
            (exchange(), start, epoch.elapsed())
        };
        let (sent, product) = match room_for_threads(1) {
            Err(_) => (exchanged(), timed()),
            Ok(()) => {
                // The new thread takes it, or this one where the system refuses a thread.
                let product = Mutex::new(Some(timed));
                let take = || product.lock().unwrap_or_else(PoisonError::into_inner).take().expect("taken once");
                std::thread::scope(|scope| {
                    let thread = std::thread::Builder::new().spawn_scoped(scope, || {
                        let product = take();
                        product()
                    });
                    let sent = exchanged();
                    let product = match thread {
                        Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                        Err(_) => take()(),
                    };
                    (sent, product)
                })
            }
        };
        let ((sent, from, to), (done, start, end)) = (sent, product);
        self.add(RankPhase::Product, start, end);
        self.add(RankPhase::Exchange, from, to);
        self.hidden += to.min(end).saturating_sub(from.max(start)).as_secs_f64();
        self.last = self.epoch.elapsed();
        (done, sent.map(|words| self.note_sent(words)))
    }

    /// Seconds of the exchange during which products were formed.
    pub fn hidden_seconds(&self) -> f64 {
        self.hidden
    }

    fn add(&mut self, phase: RankPhase, start: Duration, end: Duration) {
        self.totals[phase as usize] += (end - start).as_secs_f64();
        if let Some(spans) = &mut self.spans {
            let (start_ns, end_ns) = (start.as_nanos() as u64, end.as_nanos() as u64);
            spans.push(RankSpan { phase, start_ns, end_ns });
        }
    }

    /// Notes words that were sent to other nodes.
    pub fn note_sent(&mut self, words: u64) {
        self.sent_words += words;
    }

    /// Words that were sent to other nodes.
    pub fn sent_words(&self) -> u64 {
        self.sent_words
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

/// Seconds over ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// The smallest number of seconds.
    pub min: f64,
    /// The median.
    pub median: f64,
    /// The largest number of seconds.
    pub max: f64,
}

/// Seconds of each phase over all ranks; waiting time is separate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RankPhases {
    /// Norms and scale exponents.
    pub scale: Spread,
    /// Opening windows and placing their pages in memory.
    pub windows: Spread,
    /// Conversion to scaled integers and their residues.
    pub to_residues: Spread,
    /// Plane products.
    pub product: Spread,
    /// Exchange of residues: sent, received and added.
    pub exchange: Spread,
    /// Reconstruction of integers from residues, rounded and stored.
    pub reconstruct: Spread,
    /// Waiting for other ranks.
    pub wait: Spread,
}

/// Gathers the totals of all ranks. Collective.
///
/// # Errors
/// [`crate::Error::Transport`].
pub(crate) fn spread_over_ranks(world: &dyn Transport, totals: &[f64; RANK_PHASES.len()]) -> Result<RankPhases> {
    let own = totals.map(f64::to_bits);
    let mut all = vec![0; own.len() * world.size()];
    world.all_gather(&own, &mut all)?;
    let spread = |phase: RankPhase| {
        let of_rank = all.iter().skip(phase as usize).step_by(own.len());
        let mut seconds = of_rank.map(|&bits| f64::from_bits(bits)).collect::<Vec<_>>();
        seconds.sort_by(f64::total_cmp);
        Spread { min: seconds[0], median: seconds[seconds.len() / 2], max: seconds[seconds.len() - 1] }
    };
    Ok(RankPhases {
        scale: spread(RankPhase::Scale),
        windows: spread(RankPhase::Windows),
        to_residues: spread(RankPhase::ToResidues),
        product: spread(RankPhase::Product),
        exchange: spread(RankPhase::Exchange),
        reconstruct: spread(RankPhase::Reconstruct),
        wait: spread(RankPhase::Wait),
    })
}
