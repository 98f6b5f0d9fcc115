//! The sides of a benchmark, each with its measured times.

use super::check::Samples;
use super::spread::Spread;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::{Matrix, Op};
use crate::ops::verify::{VerifyOptions, verify_gemm, verify_syrk};
use crate::ops::{GemmOptions, Report, SyrkOptions, gemm_into, syrk_into};
use crate::rivals::{self, Problem, Rival};
use crate::store::{allocated_bytes, peak_bytes, reset_peak_bytes};
use std::time::Instant;
use xxhash_rust::xxh3::Xxh3;

/// A single run shorter than this is repeated inside the clock.
const LEAST_SECONDS: f64 = 0.01;
/// Random vectors of the verification of our result.
const VECTORS: usize = 3;
/// A rival's warm-up that takes longer than this counts as its first run.
const LONG_SECONDS: f64 = 20.0;

/// Our product, its results and times.
pub struct Ours<'a> {
    ctx: &'a Context,
    a: &'a Matrix,
    b: Option<&'a Matrix>,
    result: Matrix,
    repeats: usize,
    peak_bytes: u64,
    planned_bytes: u64,
    first_hash: u128,
    runs: Vec<(f64, Report)>,
}

impl<'a> Ours<'a> {
    /// Runs once outside the clock, and notes the most bytes that this first call held.
    ///
    /// # Errors
    /// Those of the product.
    pub fn new(ctx: &'a Context, a: &'a Matrix, b: Option<&'a Matrix>) -> Result<Ours<'a>> {
        let result = Matrix::zeros(0, 0, a.precision_bits())?;
        let mut ours =
            Ours { ctx, a, b, result, repeats: 1, peak_bytes: 0, planned_bytes: 0, first_hash: 0, runs: Vec::new() };
        let before = allocated_bytes();
        reset_peak_bytes();
        // Only the first call allocates its result, so its plan is the one to hold against the peak.
        ours.planned_bytes = ours.product()?.planned_bytes;
        ours.peak_bytes = peak_bytes() - before;
        let start = Instant::now();
        ours.product()?;
        ours.repeats = repeats(start.elapsed().as_secs_f64());
        ours.first_hash = hash(&ours.result);
        Ok(ours)
    }

    fn product(&mut self) -> Result<Report> {
        let (bits, result) = (self.a.precision_bits(), &mut self.result);
        match self.b {
            None => syrk_into(self.ctx, self.a, bits, &SyrkOptions::default(), result),
            Some(b) => {
                let options = GemmOptions { op_a: Op::Transpose, ..GemmOptions::default() };
                gemm_into(self.ctx, (self.a, b), bits, &options, result)
            }
        }
    }

    /// One timed run; its result must have the bits of the first.
    ///
    /// # Errors
    /// Those of the product; [`Error::Verification`] where bits changed.
    pub fn run(&mut self) -> Result<()> {
        self.result.clear();
        let start = Instant::now();
        let mut report = self.product()?;
        for _ in 1..self.repeats {
            report = self.product()?;
        }
        self.runs.push((start.elapsed().as_secs_f64() / self.repeats as f64, report));
        if hash(&self.result) == self.first_hash {
            return Ok(());
        }
        Err(Error::Verification(format!("run {} gave other bits than the first", self.runs.len())))
    }

    /// Verifies the result by exact residuals and sampled entries.
    ///
    /// # Errors
    /// [`Error::Verification`].
    pub fn verify(&self) -> Result<()> {
        let options = VerifyOptions { vector_count: VECTORS, ..VerifyOptions::default() };
        let bits = self.a.precision_bits();
        match self.b {
            None => verify_syrk(self.ctx, self.a, &self.result, bits, &options),
            Some(b) => {
                let options = VerifyOptions { op: Op::Transpose, ..options };
                verify_gemm(self.ctx, (self.a, b), &self.result, bits, &options)
            }
        }
        .map(drop)
    }

    pub fn result(&self) -> &Matrix {
        &self.result
    }

    pub fn threads(&self) -> usize {
        self.ctx.threads()
    }

    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    pub fn planned_bytes(&self) -> u64 {
        self.planned_bytes
    }

    pub fn seconds(&self) -> Spread {
        Spread::of(&self.runs.iter().map(|(seconds, _)| *seconds).collect::<Vec<_>>())
    }

    /// The report of the run nearest to the median.
    pub fn median_report(&self) -> &Report {
        let median = self.seconds().median;
        let distance = |run: &&(f64, Report)| (run.0 - median).abs();
        let nearest = self.runs.iter().min_by(|x, y| distance(x).total_cmp(&distance(y)));
        &nearest.expect("at least one run").1
    }
}

/// One rival and its times.
pub struct Theirs {
    rival: Box<dyn Rival>,
    repeats: usize,
    seconds: Vec<f64>,
    phases: Vec<Vec<(&'static str, f64)>>,
    /// Whether the next run's time is known already: a long warm-up.
    counted: bool,
    right: bool,
}

impl Theirs {
    /// Prepares a rival and runs it once outside the clock.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where this build lacks it or the problem is not one it takes.
    pub fn new(name: &str, problem: Problem<'_>) -> Result<Theirs> {
        let rival = rivals::by_name(name, problem).map_err(Error::InvalidArgument)?;
        let (seconds, phases) = (Vec::new(), Vec::new());
        let mut theirs = Theirs { rival, repeats: 1, seconds, phases, counted: false, right: true };
        let warm_up = theirs.time();
        if warm_up > LONG_SECONDS {
            theirs.seconds.push(warm_up);
            theirs.phases.push(theirs.rival.phases());
            theirs.counted = true;
        } else {
            let seconds = if warm_up < 1.0 { theirs.time() } else { warm_up };
            theirs.repeats = repeats(seconds);
        }
        Ok(theirs)
    }

    fn time(&mut self) -> f64 {
        let start = Instant::now();
        for _ in 0..self.repeats {
            self.rival.run();
        }
        start.elapsed().as_secs_f64() / self.repeats as f64
    }

    /// One timed run, its result held against the samples.
    pub fn run(&mut self, samples: &Samples) {
        if !std::mem::take(&mut self.counted) {
            let seconds = self.time();
            self.seconds.push(seconds);
            self.phases.push(self.rival.phases());
        }
        // A NaN compares false, and so counts as wrong.
        self.right &= samples.worst_error(|i, j| self.rival.entry(i, j)) <= samples.rival_allowance();
    }

    pub fn name(&self) -> &'static str {
        self.rival.name()
    }

    pub fn form(&self) -> String {
        self.rival.form()
    }

    pub fn seconds(&self) -> Spread {
        Spread::of(&self.seconds)
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

fn repeats(seconds: f64) -> usize {
    (LEAST_SECONDS / seconds.max(1e-7)).ceil().clamp(1.0, 100_000.0) as usize
}

fn hash(matrix: &Matrix) -> u128 {
    let (heads, limbs) = matrix.parts();
    let mut hasher = Xxh3::new();
    hasher.update(bytemuck::cast_slice(heads));
    hasher.update(bytemuck::cast_slice(limbs));
    hasher.digest128()
}
