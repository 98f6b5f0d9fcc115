//! How long a run still takes, from the rate at which it nears its end. Independent of: clocks, terminals.

use crate::iterate::Iteration;
use crate::options::SolverOptions;
use rug::Float;
use std::collections::VecDeque;

/// Iterations from which a rate is taken, at most and at least.
const WINDOW: (usize, usize) = (10, 4);

/// Iterations from whose time that of later ones is estimated: they have the same precision, or one near it.
const RECENT: usize = 3;

/// Bits by which a number must fall in an iteration for its end to be in sight.
const LEAST_RATE: f64 = 1.0 / 64.0;

/// Bits of the last iterations for each bit of the gap at which a run ends, and beyond that: with a ramp the precision
/// follows the gap.
const BITS_PER_GAP_BIT: f64 = 1.4;
const SPARE_BITS: f64 = 64.0;

/// The time of an iteration is proportional to its bits to this power.
const POWER: f64 = 1.3;

/// The gap of objectives that agree about their size.
const AGREED: f64 = 0.5;

/// An estimate of the remaining time of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Left {
    /// Iterations.
    pub iterations: f64,
    /// Seconds.
    pub seconds: f64,
}

/// The last iterations of a run, from which its end is estimated.
///
/// Complementarity and errors decrease by a factor in each iteration, which changes slowly. The values of the last ten
/// iterations are extrapolated to the thresholds; the estimate is the slowest of the necessary values, or the limit of
/// iterations or time if that is reached first. With [`Pace::up_to`] the estimate includes that iterations with more
/// bits take longer. Accuracy: a rough estimate, good if steps are long; `None` if a value does not decrease any more.
/// The estimate does not include an end by a jump, a ray or too low a precision.
///
/// Cost: some logarithms in doubles for each iteration; the values of the last ten are kept. Source:
/// docs/decisions/079-ends-as-users-know-them.md.
pub struct Pace {
    options: SolverOptions,
    rows: usize,
    /// The most bits of an iteration, where they are known.
    most_bits: Option<u32>,
    seen: VecDeque<SeenIteration>,
    /// The number of the first recorded iteration.
    first: Option<u64>,
}

struct SeenIteration {
    seconds: f64,
    /// Bits by which `X . Y`, primal and dual error stand above their thresholds.
    heights: [f64; 3],
    /// Bits of the objectives, relative to which the gap counts.
    size: f64,
}

/// Bits of `value` above `limit`; far below for 0.
fn height(value: &Float, limit: &Float) -> f64 {
    if value.is_zero() { f64::NEG_INFINITY } else { bits(value) - bits(limit) }
}

/// The logarithm to base 2 of a number that is not negative, in doubles: a guess is made of it.
fn bits(value: &Float) -> f64 {
    let (fraction, exponent) = value.to_f64_exp();
    fraction.log2() + f64::from(exponent)
}

impl Pace {
    /// A new estimate for a run with these options, of a program with `rows` rows of X.
    pub fn new(options: &SolverOptions, rows: usize) -> Pace {
        Pace { options: options.clone(), rows, most_bits: None, seen: VecDeque::new(), first: None }
    }

    /// The pace of a run whose last iterations have up to `precision_bits` bits, the precision of its program.
    pub fn up_to(self, precision_bits: u32) -> Pace {
        Pace { most_bits: Some(precision_bits), ..self }
    }

    /// Records the next iteration; returns what remains of the run after it, if that can be estimated.
    pub fn see(&mut self, iteration: &Iteration) -> Option<Left> {
        let Iteration { quality, mu, seconds: (total, own), .. } = iteration;
        // At feasible points X . Y is the difference of the objectives; their common value is known as soon as they
        // agree.
        let difference = Float::with_val(64, mu * self.rows as u64);
        let size = Float::with_val(64, quality.primal_objective.abs_ref()) + &*quality.dual_objective.as_abs();
        let size = if quality.gap < AGREED { bits(&size).max(0.0) } else { 0.0 };
        let heights = [
            height(&difference, &self.options.duality_gap_threshold),
            height(quality.primal_error(), &self.options.primal_error_threshold),
            height(&quality.dual_error, &self.options.dual_error_threshold),
        ];
        self.seen.push_back(SeenIteration { seconds: *own, heights, size });
        if self.seen.len() > WINDOW.0 {
            self.seen.pop_front();
        }
        let first = *self.first.get_or_insert(iteration.number);
        let most = self.options.max_iterations.saturating_sub(iteration.number + 1 - first) as f64;
        let iterations = (self.iterations()? - 1.0).clamp(0.0, most);
        let recent = self.seen.iter().rev().take(RECENT).map(|seen| seen.seconds);
        let seconds = iterations * recent.clone().sum::<f64>() / recent.count() as f64;
        let seconds = seconds * self.growth(f64::from(iteration.precision_bits));
        let rest = (self.options.max_runtime as f64 - total).max(0.0);
        Some(Left { iterations, seconds: seconds.min(rest) })
    }

    /// The mean time of the iterations to come, relative to that of one with `bits` bits: from there their bits rise
    /// evenly to those that the gap at the end takes.
    fn growth(&self, bits: f64) -> f64 {
        let Some(most) = self.most_bits.map(f64::from).filter(|_| self.options.ramp) else { return 1.0 };
        let gap_bits = -self::bits(&self.options.duality_gap_threshold);
        let ratio = (BITS_PER_GAP_BIT * gap_bits + SPARE_BITS).min(most) / bits;
        match ratio > 1.0 {
            true => (ratio.powf(POWER + 1.0) - 1.0) / ((POWER + 1.0) * (ratio - 1.0)),
            false => 1.0,
        }
    }

    /// Iterations from the point that was seen last.
    fn iterations(&self) -> Option<f64> {
        let (first, last) = (self.seen.front()?, self.seen.back()?);
        if self.seen.len() < WINDOW.1 {
            return None;
        }
        let steps = (self.seen.len() - 1) as f64;
        let [gap, primal, dual] = std::array::from_fn(|at| {
            let rate = (first.heights[at] - last.heights[at]) / steps;
            let now = last.heights[at] - if at == 0 { last.size } else { 0.0 };
            match now <= 0.0 {
                true => Some(0.0),
                false => (rate >= LEAST_RATE && rate.is_finite()).then(|| now / rate),
            }
        });
        let both = gap.zip(primal).zip(dual).map(|((gap, primal), dual): ((f64, f64), f64)| gap.max(primal).max(dual));
        let ends = [
            both,
            primal.filter(|_| self.options.find_primal_feasible),
            dual.filter(|_| self.options.find_dual_feasible),
        ];
        ends.into_iter().flatten().min_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iterate::{Conditions, Quality};
    use crate::problem::Form;

    fn iteration(number: u64, mu: f64, error: f64) -> Iteration {
        let float = |value: f64| Float::with_val(64, value);
        let quality = Quality {
            primal_objective: float(0.5),
            dual_objective: float(0.25),
            gap: float(1.0),
            primal_matrix_error: float(0.0),
            primal_free_error: float(error),
            dual_error: float(0.0),
        };
        Iteration {
            number,
            seconds: (2.0 * number as f64, 2.0),
            precision_bits: 64,
            mu: float(mu),
            off_centre: None,
            quality,
            primal_step: float(1.0),
            dual_step: float(1.0),
            beta: float(0.1),
            conditions: Conditions { free: float(1.0), block: float(1.0), name: String::new() },
        }
    }

    /// To a gap of 2^-480 from 64 bits on: 736 bits at the end, or as many as the program has.
    #[test]
    fn later_iterations_take_as_long_as_their_bits() {
        let mut options = SolverOptions::new(Form::Sdpa);
        options.duality_gap_threshold = Float::with_val(64, 1) >> 480;
        let growth = |options: &SolverOptions, most| Pace::new(options, 4).up_to(most).growth(64.0);
        // The means of (1 + 10.5 x)^1.3 and (1 + x)^1.3 for x from 0 to 1.
        assert!((growth(&options, 1024) - 11.353).abs() < 0.01, "{}", growth(&options, 1024));
        assert!((growth(&options, 128) - 1.706).abs() < 0.01, "{}", growth(&options, 128));
        assert_eq!((growth(&options, 64), Pace::new(&options, 4).growth(64.0)), (1.0, 1.0));
        options.ramp = false;
        assert_eq!(growth(&options, 1024), 1.0);
    }

    #[test]
    fn rates_are_carried_on_to_the_thresholds() {
        let mut options = SolverOptions::new(Form::Sdpa);
        let power = |exponent: i32| Float::with_val(64, 1) << exponent;
        (options.duality_gap_threshold, options.primal_error_threshold) = (power(-60), power(-60));
        // Complementarity times four rows falls by 4 bits an iteration from 2^20, and the error by 2 from 1.
        let told = |options: &SolverOptions, count: u64| {
            let mut pace = Pace::new(options, 4);
            let one = |at: u64| (2f64.powi(18 - 4 * at as i32), 2f64.powi(-2 * at as i32));
            (0..count).fold(None, |_, at| pace.see(&iteration(at + 1, one(at).0, one(at).1)))
        };
        assert_eq!(told(&options, 3), None);
        // After the tenth the error stands at 2^-18: 21 iterations of 2 bits, of which that one is the first.
        assert_eq!(told(&options, 10), Some(Left { iterations: 20.0, seconds: 40.0 }));
        options.primal_error_threshold = power(-20);
        assert_eq!(told(&options, 10), Some(Left { iterations: 10.0, seconds: 20.0 }));
        (options.max_iterations, options.max_runtime) = (16, u64::MAX);
        assert_eq!(told(&options, 10), Some(Left { iterations: 6.0, seconds: 12.0 }));
        options.max_runtime = 25;
        assert_eq!(told(&options, 10), Some(Left { iterations: 6.0, seconds: 5.0 }));
        (options.find_primal_feasible, options.max_iterations) = (true, 500);
        assert_eq!(told(&options, 10), Some(Left { iterations: 0.0, seconds: 0.0 }));
        // For a value that does not fall no end is predicted, nor for a threshold of 0.
        let mut pace = Pace::new(&SolverOptions::new(Form::Sdpa), 4);
        assert!((1..20).all(|number| pace.see(&iteration(number, 1.0, 0.0)).is_none()));
        options.find_primal_feasible = false;
        options.duality_gap_threshold = Float::new(64);
        assert_eq!(told(&options, 10), None);
    }
}
