//! The rate at which memory is read: sums over a plain array, the best of a few trials.

use std::hint::black_box;
use std::time::Instant;
use sunzi::advanced::store::{room_for_threads, start_in};

/// Trials of which the best is one measurement.
const TRIALS: usize = 4;
/// Bytes of the least trial: an array that is smaller is read again, so that starting the threads does not count.
const TRIAL_BYTES: usize = 64 << 20;
/// Bytes of the smallest and the largest array.
const BYTES: std::ops::RangeInclusive<f64> = 1048576.0..=1073741824.0;
/// Sums that run in parallel, so that additions do not wait for each other.
const LANES: usize = 32;

/// An array to read, its pages in place.
pub struct Reading {
    words: Vec<u64>,
    threads: usize,
}

impl Reading {
    /// An array as large as the data that an operation reads: where those fit in a cache, so does the array.
    pub fn new(bytes: f64, threads: usize) -> Reading {
        let count = (bytes.clamp(*BYTES.start(), *BYTES.end()) / 8.0) as usize;
        Reading { words: (0..count as u64).collect(), threads }
    }

    /// Bytes per second, of all threads together.
    pub fn rate(&self) -> f64 {
        let bytes = self.words.len() * 8;
        let passes = TRIAL_BYTES.div_ceil(bytes);
        let seconds = (0..TRIALS).map(|_| self.trial(passes)).fold(f64::INFINITY, f64::min);
        (passes * bytes) as f64 / seconds.max(1e-9)
    }

    /// Seconds in which every thread reads its part `passes` times.
    fn trial(&self, passes: usize) -> f64 {
        let read = |part: &[u64]| {
            (0..passes).for_each(|_| {
                black_box(sum(black_box(part)));
            })
        };
        let start = Instant::now();
        if self.threads == 1 || room_for_threads(self.threads).is_err() {
            read(&self.words);
        } else {
            std::thread::scope(|scope| {
                for part in self.words.chunks(self.words.len().div_ceil(self.threads)) {
                    start_in(scope, move || read(part));
                }
            });
        }
        start.elapsed().as_secs_f64()
    }
}

fn sum(words: &[u64]) -> u64 {
    let mut lanes = [0u64; LANES];
    let chunks = words.chunks_exact(LANES);
    let rest = chunks.remainder().iter().fold(0u64, |sum, word| sum.wrapping_add(*word));
    for chunk in chunks {
        for (lane, word) in lanes.iter_mut().zip(chunk) {
            *lane = lane.wrapping_add(*word);
        }
    }
    lanes.iter().fold(rest, |sum, lane| sum.wrapping_add(*lane))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_words_are_read() {
        for count in [0, 1, 31, 32, 33, 1000] {
            assert_eq!(sum(&(0..count).collect::<Vec<u64>>()), count * count.saturating_sub(1) / 2);
        }
        let reading = Reading::new(0.0, 2);
        assert_eq!(reading.words.len(), 1 << 17);
        assert!(reading.rate() > 0.0);
    }
}
