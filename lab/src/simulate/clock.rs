//! Virtual time: events in order, and the durations of tasks and transfers.
//!
//! Promise: events come in the order of their times, and events at the same time in the order in which they were set; a
//! random number depends only on the seed.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EventKind {
    /// An envelope lies before the progress thread of a process.
    Arrive,
    /// The progress thread takes an envelope that had to wait.
    Take,
    /// An envelope with a tile gets its turn on the link out.
    Depart,
    /// A tile, by its code, has left a process.
    Sent,
    /// The tiles of a job lie where it computes.
    Loaded,
    /// A job has computed.
    Computed,
    /// The result of a job is available to others.
    Done,
    /// A disk has answered a request.
    Moved,
    /// A worker has put a tile, by its code, into its place.
    Placed,
}

const KINDS: [EventKind; 9] = [
    EventKind::Arrive,
    EventKind::Take,
    EventKind::Depart,
    EventKind::Sent,
    EventKind::Loaded,
    EventKind::Computed,
    EventKind::Done,
    EventKind::Moved,
    EventKind::Placed,
];

/// Bits of a process in an entry; the kind lies above.
const PROCESS_BITS: u32 = 28;

/// The largest number of processes.
pub(super) const MOST_PROCESSES: usize = 1 << PROCESS_BITS;

/// Ordered by time and number. Times are not negative, so their bits are in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    time: u64,
    number: u64,
    kind_process: u32,
    value: u32,
}

/// An event that happens now.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedEvent {
    /// The time of the event.
    pub time: f64,
    /// The event.
    pub kind: EventKind,
    /// The process that it concerns.
    pub process: usize,
    /// Number of an envelope, a job or a request, or code of a tile.
    pub value: u32,
}

/// Events to come.
#[derive(Default)]
pub(super) struct Clock {
    heap: BinaryHeap<Reverse<Entry>>,
    count: u64,
}

impl Clock {
    /// Sets an event.
    pub fn set(&mut self, time: f64, kind: EventKind, process: usize, value: u32) {
        debug_assert!(time >= 0.0 && process < MOST_PROCESSES);
        self.count += 1;
        let kind_process = (kind as u32) << PROCESS_BITS | process as u32;
        self.heap.push(Reverse(Entry { time: time.to_bits(), number: self.count, kind_process, value }));
    }

    /// The next event.
    pub fn next(&mut self) -> Option<TimedEvent> {
        let Reverse(Entry { time, kind_process, value, .. }) = self.heap.pop()?;
        let kind = KINDS[(kind_process >> PROCESS_BITS) as usize];
        let process = (kind_process & ((1 << PROCESS_BITS) - 1)) as usize;
        Some(TimedEvent { time: f64::from_bits(time), kind, process, value })
    }

    /// Events set so far.
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// Factors of times, drawn from a seed.
pub(super) struct Noise {
    jitter: f64,
    generator: ChaCha8Rng,
}

impl Noise {
    /// Factors from 1 to `1 + jitter`.
    pub fn new(jitter: f64, seed: u64) -> Noise {
        Noise { jitter, generator: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// The next factor.
    pub fn factor(&mut self) -> f64 {
        if self.jitter == 0.0 {
            return 1.0;
        }
        let fraction = (self.generator.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        1.0 + self.jitter * fraction
    }
}

/// Values by number; numbers that are given back are used again.
pub(super) struct Slab<T> {
    values: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    /// An empty slab.
    pub fn new() -> Slab<T> {
        Slab { values: Vec::new(), free: Vec::new() }
    }

    /// Keeps a value.
    pub fn put(&mut self, value: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.values[number as usize] = Some(value);
            return number;
        }
        self.values.push(Some(value));
        self.values.len() as u32 - 1
    }

    /// A value that is kept.
    pub fn get(&mut self, number: u32) -> &mut T {
        self.values[number as usize].as_mut().expect("the number is in use")
    }

    /// Gives a value back.
    pub fn take(&mut self, number: u32) -> T {
        self.free.push(number);
        self.values[number as usize].take().expect("the number is in use")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_by_age() {
        let mut clock = Clock::default();
        for (time, kind, value) in [(2.0, EventKind::Sent, 1), (0.5, EventKind::Done, 2), (2.0, EventKind::Arrive, 3)] {
            clock.set(time, kind, 77, value);
        }
        let all = std::iter::from_fn(|| clock.next()).map(|event| (event.kind, event.process, event.value));
        assert_eq!(
            all.collect::<Vec<_>>(),
            [(EventKind::Done, 77, 2), (EventKind::Sent, 77, 1), (EventKind::Arrive, 77, 3)]
        );
    }

    #[test]
    fn factors_lie_in_their_range_and_come_again() {
        let draw = |seed| {
            let mut noise = Noise::new(0.5, seed);
            (0..100).map(|_| noise.factor()).collect::<Vec<_>>()
        };
        assert!(draw(1).iter().all(|factor| (1.0..1.5).contains(factor)));
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
