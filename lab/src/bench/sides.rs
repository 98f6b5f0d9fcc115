//! The sides of a benchmark, each with its measured times.

use super::check::Verifier;
use super::spread::Spread;
use super::task::{Account, Task};
use crate::baselines::{self, Baseline, Problem};
use rug::Float;
use std::time::Instant;
use sunzi::advanced::store::{allocated_bytes, peak_bytes, reset_peak_bytes};
use sunzi::{Context, Error, Matrix, Result};
use xxhash_rust::xxh3::Xxh3;

/// A single run shorter than this is repeated inside the clock.
const LEAST_SECONDS: f64 = 0.01;
/// A warm-up that takes longer than this is not repeated to have its time.
const SLOW_SECONDS: f64 = 1.0;
/// A baseline's warm-up that takes longer than this counts as its first run.
const LONG_SECONDS: f64 = 20.0;
/// A baseline whose timed runs have taken this long in total sits out the remaining rounds.
const MOST_SECONDS: f64 = 60.0;

/// Our operation, its result and times.
pub struct Ours<'a> {
    ctx: &'a Context,
    task: Box<dyn Task + 'a>,
    repeats: usize,
    peak_bytes: u64,
    planned_bytes: Option<u64>,
    first_hash: u128,
    runs: Vec<(f64, Account)>,
}

impl<'a> Ours<'a> {
    /// Runs once or twice outside the clock, and notes the most bytes that the first call held.
    ///
    /// # Errors
    /// The errors of the operation.
    pub fn new(ctx: &'a Context, mut task: Box<dyn Task + 'a>) -> Result<Ours<'a>> {
        let before = allocated_bytes();
        reset_peak_bytes();
        let start = Instant::now();
        // Only the first call allocates all that it needs, so its plan is the one to hold against the peak.
        let planned_bytes = task.run(ctx)?.planned_bytes;
        let peak_bytes = peak_bytes() - before;
        let mut seconds = start.elapsed().as_secs_f64();
        if seconds < SLOW_SECONDS {
            let start = Instant::now();
            task.run(ctx)?;
            seconds = start.elapsed().as_secs_f64();
        }
        let first_hash = hash(task.result());
        Ok(Ours { ctx, task, repeats: repeats(seconds), peak_bytes, planned_bytes, first_hash, runs: Vec::new() })
    }

    /// One timed run; its result must have the bits of the first.
    ///
    /// # Errors
    /// The errors of the operation; [`Error::Verification`] where the bits changed from one run to the next.
    pub fn run(&mut self) -> Result<()> {
        self.task.clear();
        let start = Instant::now();
        let mut account = self.task.run(self.ctx)?;
        for _ in 1..self.repeats {
            account = self.task.run(self.ctx)?;
        }
        self.runs.push((start.elapsed().as_secs_f64() / self.repeats as f64, account));
        if hash(self.task.result()) == self.first_hash {
            return Ok(());
        }
        Err(Error::verification(format!(
            "the result of run {} differs bitwise from that of the first",
            self.runs.len()
        )))
    }

    /// Verifies the whole result, as far as the operation can.
    ///
    /// # Errors
    /// [`Error::Verification`].
    pub fn verify(&self) -> Result<()> {
        self.task.verify(self.ctx)
    }

    /// Entry (i, j) of the result.
    pub fn entry(&self, i: usize, j: usize) -> Float {
        self.task.entry(i, j)
    }

    pub fn threads(&self) -> usize {
        self.ctx.threads()
    }

    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    pub fn planned_bytes(&self) -> Option<u64> {
        self.planned_bytes
    }

    pub fn seconds(&self) -> Spread {
        Spread::of(&self.runs.iter().map(|(seconds, _)| *seconds).collect::<Vec<_>>())
    }

    /// The account of the run nearest to the median.
    pub fn median_account(&self) -> &Account {
        let median = self.seconds().median;
        let distance = |run: &&(f64, Account)| (run.0 - median).abs();
        let nearest = self.runs.iter().min_by(|x, y| distance(x).total_cmp(&distance(y)));
        &nearest.expect("at least one run").1
    }
}

/// A baseline with its measured times.
pub struct TimedBaseline {
    baseline: Box<dyn Baseline>,
    repeats: usize,
    seconds: Vec<f64>,
    phases: Vec<Vec<(&'static str, f64)>>,
    /// Whether the warm-up took long and therefore counts as the next run.
    counted: bool,
    right: bool,
}

impl TimedBaseline {
    /// Prepares a baseline and runs it once outside the clock.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where this build lacks the baseline or the baseline does not take the problem.
    pub fn new(name: &str, problem: Problem<'_>) -> Result<TimedBaseline> {
        let mut timed = TimedBaseline::prepare(name, problem)?;
        let warm_up = timed.time();
        if warm_up > LONG_SECONDS {
            timed.seconds.push(warm_up);
            timed.phases.push(timed.baseline.phases());
            timed.counted = true;
        } else {
            let seconds = if warm_up < SLOW_SECONDS { timed.time() } else { warm_up };
            timed.repeats = repeats(seconds);
        }
        Ok(timed)
    }

    /// Prepares a baseline without a run.
    ///
    /// # Errors
    /// As [`TimedBaseline::new`].
    pub fn prepare(name: &str, problem: Problem<'_>) -> Result<TimedBaseline> {
        let baseline = baselines::by_name(name, problem).map_err(Error::InvalidArgument)?;
        let (seconds, phases) = (Vec::new(), Vec::new());
        Ok(TimedBaseline { baseline, repeats: 1, seconds, phases, counted: false, right: true })
    }

    /// One run, which the caller times.
    pub fn run_once(&mut self) {
        self.baseline.run();
    }

    /// Whether the last result is right.
    pub fn is_right_by(&self, verifier: &dyn Verifier) -> bool {
        // A NaN compares false, and so counts as wrong.
        verifier.worst_error(&|i, j| self.baseline.entry(i, j)) <= verifier.baseline_allowance()
    }

    fn time(&mut self) -> f64 {
        let start = Instant::now();
        for _ in 0..self.repeats {
            self.baseline.run();
        }
        start.elapsed().as_secs_f64() / self.repeats as f64
    }

    /// One timed run, whose result `verifier` then checks; no run once the runs have taken [`MOST_SECONDS`].
    pub fn run(&mut self, verifier: &dyn Verifier) {
        if !std::mem::take(&mut self.counted) {
            if is_enough(&self.seconds, self.repeats) {
                return;
            }
            let seconds = self.time();
            self.seconds.push(seconds);
            self.phases.push(self.baseline.phases());
        }
        self.right &= self.is_right_by(verifier);
    }

    pub fn name(&self) -> &'static str {
        self.baseline.name()
    }

    pub fn form(&self) -> String {
        self.baseline.form()
    }

    pub fn seconds(&self) -> Spread {
        Spread::of(&self.seconds)
    }

    /// Timed runs.
    pub fn runs(&self) -> usize {
        self.seconds.len()
    }

    /// Phases of the run nearest to the median.
    pub fn phases(&self) -> Vec<(&'static str, f64)> {
        let median = self.seconds().median;
        let distance = |index: &usize| (self.seconds[*index] - median).abs();
        let nearest = (0..self.seconds.len()).min_by(|x, y| distance(x).total_cmp(&distance(y)));
        nearest.map(|index| self.phases[index].clone()).unwrap_or_default()
    }

    pub fn is_right(&self) -> bool {
        self.right
    }
}

/// Whether timed runs of `repeats` repetitions each, with these means, have taken [`MOST_SECONDS`] together.
fn is_enough(seconds: &[f64], repeats: usize) -> bool {
    seconds.iter().sum::<f64>() * repeats as f64 >= MOST_SECONDS
}

/// Runs inside the clock of a side that takes so long.
pub(super) fn repeats(seconds: f64) -> usize {
    (LEAST_SECONDS / seconds.max(1e-7)).ceil().clamp(1.0, 100_000.0) as usize
}

/// A hash of all numbers of a matrix: two results of one hash have the same bits.
pub(crate) fn hash(matrix: &Matrix) -> u128 {
    let (heads, limbs) = matrix.parts();
    let mut hasher = Xxh3::new();
    hasher.update(bytemuck::cast_slice(heads));
    hasher.update(bytemuck::cast_slice(limbs));
    hasher.digest128()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_baseline_sits_out_after_a_minute() {
        assert!(!is_enough(&[], 1));
        assert!(!is_enough(&[29.0, 30.0], 1) && is_enough(&[29.0, 31.0], 1));
        assert!(!is_enough(&[0.5; 5], 20) && is_enough(&[0.6; 5], 20));
    }
}
