//! The plain loop: each entry of Q as a chain of MPFR fused multiply-adds, as a user would write it first.

use rug::{Assign, Float};
use serde::Serialize;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use sunzi::Matrix;
use sunzi::advanced::store::start_in;
use sunzi_session::units::{counted, format_seconds};

/// The measurements of the loop.
#[derive(Serialize)]
pub struct PlainLoop {
    /// Threads at work, each on entries of its own.
    pub threads: usize,
    /// Entries computed before time was up.
    pub entries: u64,
    /// Entries of the whole triangle.
    pub all_entries: u64,
    /// Seconds measured.
    pub seconds: f64,
    /// Seconds for the whole, in proportion to the entries: each is the same chain of multiply-adds.
    pub total_seconds: f64,
}

/// Runs the loop on the lower triangle of `P^T P` until it is done or `limit_seconds` have passed.
pub fn measure(p: &Matrix, threads: usize, limit_seconds: f64) -> PlainLoop {
    let columns: Vec<Vec<Float>> =
        (0..p.cols()).map(|col| (0..p.rows()).map(|row| p.float(row, col)).collect()).collect();
    let all_entries = p.cols() * (p.cols() + 1) / 2;
    let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
    let start = Instant::now();
    let deadline = start + Duration::from_secs_f64(limit_seconds);
    let work = || {
        let mut sum = Float::new(p.precision_bits());
        while Instant::now() < deadline {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= all_entries {
                break;
            }
            let (row, col) = place(index);
            entry(&mut sum, &columns[row], &columns[col]);
            std::hint::black_box(&sum);
            done.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            start_in(scope, work);
        }
        work();
    });
    let seconds = start.elapsed().as_secs_f64();
    let (entries, all_entries) = (done.into_inner(), all_entries as u64);
    let total_seconds = seconds * all_entries as f64 / entries.max(1) as f64;
    PlainLoop { threads, entries, all_entries, seconds, total_seconds }
}

/// `sum := x . y`, one rounding for each term.
fn entry(sum: &mut Float, x: &[Float], y: &[Float]) {
    sum.assign(0);
    for (x, y) in x.iter().zip(y) {
        *sum += x * y; // one call of mpfr_fma
    }
}

/// Row and column of entry number `index` of a lower triangle, row by row.
fn place(index: usize) -> (usize, usize) {
    let row = ((8 * index + 1).isqrt() - 1) / 2;
    (row, index - row * (row + 1) / 2)
}

impl PlainLoop {
    /// One line for people that states what was measured and what was not.
    pub fn describe(&self, our_seconds: f64) -> String {
        let PlainLoop { threads, entries, all_entries, seconds, total_seconds } = self;
        let basis = if entries == all_entries {
            format!("{} for all {all_entries} entries", format_seconds(*seconds))
        } else {
            format!(
                "{} for {entries} of {all_entries} entries, so about {} for all (extrapolated in proportion)",
                format_seconds(*seconds),
                format_seconds(*total_seconds)
            )
        };
        let (threads, times) = (counted(*threads, "thread"), total_seconds / our_seconds);
        format!("A plain MPFR loop on {threads}: {basis}; {times:.0} times as long as Sunzi.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sunzi::gallery::{Kind, Size, generate};

    #[test]
    fn places_count_the_triangle_row_by_row() {
        let mut expected = (0..200).flat_map(|row| (0..=row).map(move |col| (row, col)));
        assert!((0..200 * 201 / 2).all(|index| Some(place(index)) == expected.next()));
    }

    #[test]
    fn the_whole_loop_is_not_extrapolated() {
        let p = generate(Kind::Minij, Size { rows: 9, cols: 5, precision_bits: 64 }, 0).unwrap();
        let all = measure(&p, 2, 1000.0);
        assert_eq!((all.entries, all.all_entries), (15, 15));
        assert!((all.total_seconds - all.seconds).abs() <= 1e-9 * all.seconds);
        let none = measure(&p, 1, 0.0);
        assert_eq!(none.entries, 0);
        let mut sum = Float::with_val(64, 7);
        entry(&mut sum, &[Float::with_val(64, 3)], &[Float::with_val(64, 5)]);
        assert_eq!(sum, 15);
    }
}
