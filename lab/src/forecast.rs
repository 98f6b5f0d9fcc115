//! Predicts the time of an operation on this machine: small runs of it are timed now, and the time is extrapolated to
//! its size.
//!
//! The time of a run is taken as `a` times its products plus `b` times the entries that it converts; runs of different
//! sizes and one precision, of the same shape unless it is long and thin, determine `a` and `b`. The prediction is
//! within a factor 1.5 of the time of a run on an idle machine, from some hundred rows on. Independent of: plans,
//! files, devices.

use std::time::Instant;
use sunzi::gallery::{Kind, Size, generate};
use sunzi::{
    Accuracy, CholeskyOptions, Context, Error, GemmOptions, LuOptions, Matrix, Op, RefineOptions, Result, Symmetric,
    SyrkOptions, TrsmOptions, cholesky_with, gemm_with, inverse_with, lu_with, solve_refined_with, solve_with,
    syrk_with, trsm_with,
};

/// Products of numbers in the first run.
const FIRST_PRODUCTS: f64 = 40.0 * 40.0 * 40.0;

/// How much longer each side of a run is than that of the run before.
const STEP: f64 = 1.5;

/// Seconds from which a run is long enough to show the pace.
const ENOUGH_SECONDS: f64 = 0.1;

/// How much longer a first run may take than a second.
const FIRST_RUN: f64 = 1.25;

/// How many times shorter than the last a run may be and still count.
const TELLING: f64 = 30.0;

/// Sizes that need not be made smaller: below, a call goes another way.
const LEAST_SIDE: usize = 8;

/// How many times longer than the shortest another side may be for small runs of the same shape.
const LONGEST_SIDE: usize = 64;

/// Least determinant, relative to the product of its squares, at which runs of several sizes determine two paces.
const TELLING_APART: f64 = 1e-3;

/// Bytes of the numbers of a run, which a memory limit must allow.
pub const TIMED_BYTES: u64 = 32 << 20;

/// An operation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ForecastOperation {
    /// `P^T P`; the sides are rows contracted and columns.
    Syrk,
    /// `A^T B`; rows contracted, columns of `B`, columns of `A`.
    Gemm,
    /// `A = L L^T`; rows.
    Cholesky,
    /// `T X = B`; rows, right-hand sides.
    Trsm,
    /// `A X = B`; rows, right-hand sides.
    Solve {
        /// Precision of the factor, where the solution is refined.
        refine_from: Option<u32>,
    },
    /// `A^-1`; rows.
    Inverse,
    /// `P A = L U`; rows.
    Lu,
    /// `A X = B` for a general `A`; rows, right-hand sides.
    LuSolve,
}

/// An operation of a given size.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// The operation.
    pub operation: ForecastOperation,
    /// The dimensions, as the operation defines them; 1 for those that it does not have.
    pub sides: [usize; 3],
    /// Bits of every significand.
    pub precision_bits: u32,
    /// The accuracy that is promised for each entry.
    pub accuracy: Accuracy,
}

/// The parts of the work that take most of the time: products, and entries that are converted.
#[derive(Clone, Copy, PartialEq, Debug)]
struct ForecastWork {
    products: f64,
    entries: f64,
}

impl Workload {
    fn work(&self) -> ForecastWork {
        let [k, n, m] = self.sides.map(|side| side as f64);
        let (products, entries) = match self.operation {
            ForecastOperation::Syrk => (k * n * n / 2.0, k * n + n * n),
            ForecastOperation::Gemm => (k * n * m, k * (n + m) + n * m),
            ForecastOperation::Cholesky => (k * k * k / 6.0, k * k),
            ForecastOperation::Trsm => (k * k * n / 2.0, k * k + k * n),
            ForecastOperation::Solve { .. } => (k * k * (k / 6.0 + n), k * k + k * n),
            ForecastOperation::Inverse => (k * k * k / 2.0, k * k),
            ForecastOperation::Lu => (k * k * k / 3.0, 2.0 * k * k),
            ForecastOperation::LuSolve => (k * k * (k / 3.0 + n), 2.0 * k * k + k * n),
        };
        ForecastWork { products, entries }
    }

    /// The sides that the operation has.
    fn own_sides(&self) -> &[usize] {
        let count = match self.operation {
            ForecastOperation::Cholesky | ForecastOperation::Inverse | ForecastOperation::Lu => 1,
            ForecastOperation::Syrk | ForecastOperation::Trsm => 2,
            ForecastOperation::Solve { .. } | ForecastOperation::LuSolve => 2,
            ForecastOperation::Gemm => 3,
        };
        &self.sides[..count]
    }

    /// The shortest side, taken as no shorter than a call takes it, where another one is very much longer.
    fn thin_side(&self) -> Option<usize> {
        let shortest = self.own_sides().iter().copied().min().unwrap_or(0).max(LEAST_SIDE);
        self.own_sides().iter().any(|&side| side / LONGEST_SIDE > shortest).then_some(shortest)
    }

    /// The same operation with every side times `factor`, but for sides that are short already. Where some sides are
    /// very much longer than the shortest, all are cut at its length times `factor`.
    fn scaled(&self, factor: f64) -> Workload {
        let times = |side: usize| (side as f64 * factor).round() as usize;
        let scaled = |side: usize| times(self.thin_side().unwrap_or(side)).clamp(side.min(LEAST_SIDE), side);
        Workload { sides: self.sides.map(scaled), ..*self }
    }

    /// Bytes of its numbers.
    fn bytes(&self) -> u64 {
        Matrix::bytes_for(self.work().entries as usize, 1, self.precision_bits)
    }

    /// Runs the operation on matrices made for it; returns the seconds without making them.
    fn time(&self, ctx: &Context) -> Result<f64> {
        let (bits, [k, n, m]) = (self.precision_bits, self.sides);
        let make = |kind, rows, cols| generate(kind, Size { rows, cols, precision_bits: bits }, 1);
        let random = |rows, cols| make(Kind::Random, rows, cols);
        // Definite, with entries of all bits, and far from singular.
        let definite = || make(Kind::Lehmer, k, k);
        let options = CholeskyOptions::new().accuracy(self.accuracy);
        match self.operation {
            ForecastOperation::Syrk => {
                let p = random(k, n)?;
                timed(|| syrk_with(ctx, &p, bits, &SyrkOptions::new().accuracy(self.accuracy)).map(drop))
            }
            ForecastOperation::Gemm => {
                let (a, b) = (random(k, m)?, random(k, n)?);
                let options = GemmOptions::new().op_a(Op::Transpose).accuracy(self.accuracy);
                timed(|| gemm_with(ctx, &a, &b, bits, &options).map(drop))
            }
            ForecastOperation::Cholesky => {
                let a = definite()?;
                timed(|| cholesky_with(ctx, Symmetric::lower(&a), bits, &options).map(drop))
            }
            ForecastOperation::Trsm => {
                let (t, b) = (definite()?, random(k, n)?);
                timed(|| trsm_with(ctx, &t, &b, bits, &TrsmOptions::new().accuracy(self.accuracy)).map(drop))
            }
            ForecastOperation::Solve { refine_from } => {
                let (a, b): (Matrix, Matrix) = (definite()?, random(k, n)?);
                let a = Symmetric::lower(&a);
                timed(|| match refine_from {
                    Some(from) => {
                        solve_refined_with(ctx, a, &b, bits, &RefineOptions::new().factor_bits(from)).map(drop)
                    }
                    None => solve_with(ctx, a, &b, bits, &options).map(drop),
                })
            }
            ForecastOperation::Inverse => {
                let a = definite()?;
                timed(|| inverse_with(ctx, Symmetric::lower(&a), bits, &options).map(drop))
            }
            ForecastOperation::Lu => {
                let (a, options) = (random(k, k)?, LuOptions::new().accuracy(self.accuracy));
                timed(|| lu_with(ctx, &a, bits, &options).map(drop))
            }
            ForecastOperation::LuSolve => {
                let (a, b, options) = (random(k, k)?, random(k, n)?, LuOptions::new().accuracy(self.accuracy));
                timed(|| lu_with(ctx, &a, bits, &options)?.result.solve(ctx, &b, bits).map(drop))
            }
        }
    }
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64())
}

/// The seconds that `workload` takes on the threads of `ctx`, from runs of less than a second together. `None` if the
/// memory limit does not allow even these runs, or if [`TIMED_BYTES`] allows none.
///
/// # Errors
/// [`Error::Cancelled`], and the errors of the operation except for memory.
pub fn forecast(ctx: &Context, workload: &Workload) -> Result<Option<f64>> {
    match extrapolate(workload, |small| small.time(ctx)) {
        Err(Error::MemoryLimit { .. } | Error::OutOfMemory { .. }) => Ok(None),
        found => found,
    }
}

/// A run that was timed.
struct TimedRun {
    work: ForecastWork,
    seconds: f64,
}

/// Times runs of growing size, and carries their pace over.
fn extrapolate(workload: &Workload, mut time: impl FnMut(&Workload) -> Result<f64>) -> Result<Option<f64>> {
    let whole = workload.work();
    if whole.products < 1.0 {
        return Ok(Some(0.0));
    }
    let Some(mut factor) = first_factor(workload) else { return Ok(None) };
    let mut runs = Vec::<TimedRun>::new();
    loop {
        let small = workload.scaled(factor);
        let seconds = time(&small)?;
        if small.sides == workload.sides {
            return Ok(Some(seconds));
        }
        let longer = factor * STEP;
        if seconds >= ENOUGH_SECONDS || workload.scaled(longer).bytes() > TIMED_BYTES {
            // Something else may have run in between. A second run finds its memory there already, a first one not.
            let seconds = seconds.min(FIRST_RUN * time(&small)?);
            runs.push(TimedRun { work: small.work(), seconds });
            return Ok(Some(carry_over(&runs, whole)));
        }
        runs.push(TimedRun { work: small.work(), seconds });
        factor = longer;
    }
}

/// The factor of the first run: about [`FIRST_PRODUCTS`] products. Sides that are short already stay as they are, so
/// the others may have to be much shorter. `None` where the least run takes more than [`TIMED_BYTES`].
fn first_factor(workload: &Workload) -> Option<f64> {
    let mut factor = match workload.thin_side() {
        Some(side) => FIRST_PRODUCTS.cbrt() / side as f64,
        None => (FIRST_PRODUCTS / workload.work().products).cbrt().min(1.0),
    };
    loop {
        let run = workload.scaled(factor);
        if run.work().products <= 2.0 * FIRST_PRODUCTS && run.bytes() <= TIMED_BYTES {
            return Some(factor);
        }
        if run.sides.iter().all(|&side| side <= LEAST_SIDE) {
            return None;
        }
        factor /= STEP;
    }
}

/// The seconds of the work `whole`, by the paces that fit the times of the runs best, with relative errors. The last
/// run took longest.
fn carry_over(runs: &[TimedRun], whole: ForecastWork) -> f64 {
    let Some(&TimedRun { work, seconds }) = runs.last() else { return 0.0 };
    let by_products = seconds * whole.products / work.products;
    let by_entries = seconds * whole.entries / work.entries;
    // Short runs take time that has little to do with their size. The last run counts as much as all others.
    let told = runs.iter().filter(|run| run.seconds >= seconds / TELLING);
    let mut sums = [0.0; 5];
    for (at, run) in told.clone().enumerate() {
        let weight = if at + 1 == told.clone().count() { at.max(1) as f64 } else { 1.0 };
        let (x, y) = (run.work.products / run.seconds, run.work.entries / run.seconds);
        let terms = [x * x, x * y, y * y, x, y];
        sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += weight * term);
    }
    let [xx, xy, yy, x, y] = sums;
    let determinant = xx * yy - xy * xy;
    let (a, b) = ((x * yy - y * xy) / determinant, (y * xx - x * xy) / determinant);
    // Runs of one ratio of products to entries determine one pace. Noise makes a pace negative where its part of the
    // time is small.
    match (determinant > TELLING_APART * xx * yy, a < 0.0, b < 0.0) {
        (false, ..) | (_, _, true) => by_products,
        (_, true, _) => by_entries,
        _ => a * whole.products + b * whole.entries,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(operation: ForecastOperation, sides: [usize; 3]) -> Workload {
        Workload { operation, sides, precision_bits: 200, accuracy: Accuracy::Norm }
    }

    const ALL: [(ForecastOperation, [usize; 3]); 8] = [
        (ForecastOperation::Syrk, [3000, 900, 1]),
        (ForecastOperation::Gemm, [800, 700, 5]),
        (ForecastOperation::Cholesky, [1200, 1, 1]),
        (ForecastOperation::Trsm, [900, 400, 1]),
        (ForecastOperation::Solve { refine_from: None }, [900, 1, 1]),
        (ForecastOperation::Inverse, [700, 1, 1]),
        (ForecastOperation::Lu, [900, 1, 1]),
        (ForecastOperation::LuSolve, [700, 300, 1]),
    ];

    /// Where times follow two paces exactly, the forecast is exact (nearly, where runs cannot separate them), and no
    /// run is long.
    #[test]
    fn two_paces_are_found_and_carried_over() {
        for (operation, sides) in ALL {
            let workload = workload(operation, sides);
            let seconds = |work: ForecastWork| 3e-9 * work.products + 2e-7 * work.entries;
            let mut longest = 0.0;
            let found = extrapolate(&workload, |small| {
                longest = f64::max(longest, seconds(small.work()));
                Ok(seconds(small.work()))
            });
            let (found, want) = (found.unwrap().unwrap(), seconds(workload.work()));
            let error = if workload.thin_side().is_some() { 2e-3 } else { 1e-6 };
            assert!((found - want).abs() <= error * want, "{operation:?}: {found} for {want}");
            assert!(longest < 4.0 * ENOUGH_SECONDS, "{operation:?}: {longest}");
        }
    }

    /// Noise of a tenth moves it by less than a half.
    #[test]
    fn noise_moves_it_little() {
        for (operation, sides) in ALL {
            let workload = workload(operation, sides);
            for first in [0.9, 1.1] {
                let mut noise = [first, 2.0 - first].into_iter().cycle();
                let seconds = |work: ForecastWork| 3e-9 * work.products + 5e-8 * work.entries;
                let found = extrapolate(&workload, |small| Ok(seconds(small.work()) * noise.next().unwrap()));
                let ratio = found.unwrap().unwrap() / seconds(workload.work());
                assert!((0.66..1.5).contains(&ratio), "{operation:?}: {ratio}");
            }
        }
    }

    /// Long thin matrices: runs are small in products and bytes, and give the time, also with noise of a tenth.
    #[test]
    fn runs_of_long_thin_matrices_are_small_too() {
        let thin = [
            (ForecastOperation::Syrk, [100_000_000, 10, 1]),
            (ForecastOperation::Syrk, [1_000_000_000, 100, 1]),
            (ForecastOperation::Syrk, [10_000_000_000, 1, 1]),
            (ForecastOperation::Syrk, [10, 1_000_000, 1]),
            (ForecastOperation::Gemm, [1_000_000_000, 2, 3]),
            (ForecastOperation::Gemm, [100, 1_000_000, 1_000_000]),
            (ForecastOperation::Trsm, [8, 1_000_000_000, 1]),
            (ForecastOperation::Solve { refine_from: None }, [8, 1_000_000_000, 1]),
        ];
        for ((operation, sides), bits) in thin.into_iter().flat_map(|of| [128, 1024, 20_000].map(|bits| (of, bits))) {
            for (first_noise, entry_seconds) in [(1.0, 2e-7), (0.9, 2e-7), (1.1, 2e-7), (1.0, 0.0), (0.9, 2e-9)] {
                let workload = Workload { precision_bits: bits, ..workload(operation, sides) };
                let mut noise = [first_noise, 2.0 - first_noise].into_iter().cycle();
                let seconds = |work: ForecastWork| 3e-9 * work.products + entry_seconds * work.entries;
                let (mut first, mut runs) = (None, 0);
                let found = extrapolate(&workload, |small| {
                    first.get_or_insert(small.work().products);
                    runs += 1;
                    assert!(small.bytes() <= TIMED_BYTES, "{operation:?}, {bits} bits: {:?}", small.sides);
                    Ok(seconds(small.work()) * noise.next().unwrap())
                });
                let (found, want) = (found.unwrap().unwrap(), seconds(workload.work()));
                // Of 20,000 bits there is room for few entries.
                let is_near = (0.5..2.0).contains(&(found / want));
                assert!(is_near || bits > 1024, "{operation:?}, {sides:?}, {bits} bits: {found} for {want}");
                assert!(first.unwrap() <= 2.0 * FIRST_PRODUCTS && runs < 30, "{operation:?}: {first:?}, {runs} runs");
            }
        }
        let huge = Workload { precision_bits: 1 << 30, ..workload(ForecastOperation::Cholesky, [900, 1, 1]) };
        assert_eq!(extrapolate(&huge, |_| panic!("nothing fits")).unwrap(), None);
    }

    #[test]
    fn every_operation_runs_small() {
        let ctx = Context::builder().threads(1).build().unwrap();
        let refined = (ForecastOperation::Solve { refine_from: Some(100) }, [20, 3, 1]);
        for (operation, sides) in ALL.into_iter().chain([refined]) {
            let small = workload(operation, sides.map(|side| side.min(24)));
            assert!(forecast(&ctx, &small).unwrap().is_some_and(|seconds| seconds > 0.0), "{operation:?}");
        }
        assert_eq!(forecast(&ctx, &workload(ForecastOperation::Syrk, [0, 5, 1])).unwrap(), Some(0.0));
        let tight = Context::builder().threads(1).memory_bytes(1).build().unwrap();
        assert_eq!(forecast(&tight, &workload(ForecastOperation::Cholesky, [900, 1, 1])).unwrap(), None);
    }
}
