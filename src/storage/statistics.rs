//! The bytes moved, and the time taken.
//!
//! Independent of: what a request is.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The work of a storage directory since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StorageStatistics {
    /// Bytes read from files: objects with their padding, and headers.
    pub read_bytes: u64,
    /// Bytes written to files: objects with their padding, and headers.
    pub written_bytes: u64,
    /// Requests to read that were carried out.
    pub reads: u64,
    /// Reads from elsewhere that were carried out.
    pub fetches: u64,
    /// Groups published.
    pub publications: u64,
    /// Groups deleted.
    pub deletions: u64,
    /// Requests that failed.
    pub failures: u64,
    /// Seconds during which at least one request was active.
    pub busy_seconds: f64,
    /// The longest duration of a request.
    pub longest_seconds: f64,
    /// Requests that are active now.
    pub under_way: usize,
    /// Requests that wait to begin.
    pub waiting: usize,
}

/// The requests under way, and since when.
#[derive(Default)]
pub struct Activity {
    begun: BTreeMap<u64, Instant>,
    next: u64,
    busy_since: Option<Instant>,
    busy: Duration,
    longest: Duration,
}

impl Activity {
    /// Something begins; the number is for [`Activity::end`].
    pub fn begin(&mut self, now: Instant) -> u64 {
        self.busy_since.get_or_insert(now);
        self.next += 1;
        self.begun.insert(self.next, now);
        self.next
    }

    /// It ends; returns how long it took.
    pub fn end(&mut self, number: u64, now: Instant) -> Duration {
        let took = self.begun.remove(&number).map_or(Duration::ZERO, |begun| now - begun);
        self.longest = self.longest.max(took);
        if self.begun.is_empty() {
            self.busy += self.busy_since.take().map_or(Duration::ZERO, |since| now - since);
        }
        took
    }

    /// For how long the oldest one has been under way.
    pub fn oldest(&self, now: Instant) -> Option<Duration> {
        self.begun.values().next().map(|&begun| now - begun)
    }

    /// Adds the time with any request under way, and the longest time of one.
    pub fn add_to(&self, statistics: &mut StorageStatistics, now: Instant) {
        let running = self.busy_since.map_or(Duration::ZERO, |since| now - since);
        statistics.busy_seconds = (self.busy + running).as_secs_f64();
        statistics.longest_seconds = self.longest.max(self.oldest(now).unwrap_or_default()).as_secs_f64();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_counts_what_overlaps_once() {
        let (start, mut activity) = (Instant::now(), Activity::default());
        let at = |seconds| start + Duration::from_secs(seconds);
        let (a, b) = (activity.begin(at(0)), activity.begin(at(1)));
        assert_eq!(activity.oldest(at(4)), Some(Duration::from_secs(4)));
        assert_eq!(activity.end(a, at(4)), Duration::from_secs(4));
        assert_eq!(activity.oldest(at(5)), Some(Duration::from_secs(4)));
        activity.end(b, at(6));
        let c = activity.begin(at(10));
        let mut statistics = StorageStatistics::default();
        activity.add_to(&mut statistics, at(11));
        assert_eq!((statistics.busy_seconds, statistics.longest_seconds), (7.0, 5.0));
        assert_eq!((activity.end(c, at(12)), activity.oldest(at(13))), (Duration::from_secs(2), None));
    }
}
