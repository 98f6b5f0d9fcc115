//! The first iterations of a run: whether they show that its first point was too small.
//!
//! X and Y begin as multiples of the identity, which have to be larger than the solution. Where feasible points lie far
//! beyond, directions are large relative to the point, steps to the boundary are small, and the point grows by little
//! more than the corrector adds, for hundreds of iterations. Independent of: points.

use crate::iterate::side::Sides;
use crate::options::SolverOptions;
use rug::Float;

/// The step below which one has not moved.
const SMALL_STEP: f64 = 0.01;

/// Powers of ten by which scales are advised to be larger.
const MORE_DIGITS: f64 = 20.0;

/// The summary of the first iterations of a run; if later runs continue from its states, of the original run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outset {
    /// The complementarity at the first and at the last of the iterations that had only small steps.
    pub(crate) mu: Option<(Float, Float)>,
    /// The number of these iterations, from the first one on.
    pub(crate) small: u64,
}

impl Outset {
    /// Iterations that are looked at.
    pub(crate) const ITERATIONS: u64 = 10;

    /// Takes notice of an iteration, by its number from 1, its complementarity and its primal and dual steps.
    pub(crate) fn see(&mut self, number: u64, mu: &Float, steps: &Sides<Float>) {
        if number > Outset::ITERATIONS
            || self.small + 1 != number
            || steps.primal >= SMALL_STEP
            || steps.dual >= SMALL_STEP
        {
            return;
        }
        self.small = number;
        let first = self.mu.take().map_or_else(|| mu.clone(), |(first, _)| first);
        self.mu = Some((first, mu.clone()));
    }

    /// A remark where all of them had small steps and the complementarity grew, for a run whose first point had the
    /// scales of its options; a point that was read has its own.
    pub(crate) fn remark(&self, options: &SolverOptions) -> Option<String> {
        let (first, last) = self.mu.as_ref().filter(|_| self.small == Outset::ITERATIONS)?;
        let scales = [&options.initial_matrix_scale_primal, &options.initial_matrix_scale_dual];
        let begun = Float::with_val(64, scales[0] * scales[1]);
        let is_own = Float::with_val(64, first - &begun).abs() <= Float::with_val(64, &begun >> 16u32);
        if !is_own || last <= first {
            return None;
        }
        let log10 = |value: &Float| Float::with_val(64, value).log10().to_f64();
        let [primal, dual] = scales.map(|scale| (log10(scale) + MORE_DIGITS).ceil() as i64);
        // The first complementarity is the product of both, and a run that begins above its limit ends at once.
        let room = (primal + dual) as f64 >= log10(&options.max_complementarity);
        let limit = if room { format!(", maxComplementarity 1e{}", primal + dual + 100) } else { String::new() };
        Some(format!(
            "the first {} steps are below {SMALL_STEP} while the complementarity grows: feasible points may be much \
             larger than the initial point; try larger initial matrices \
             (initialMatrixScalePrimal 1e{primal}, initialMatrixScaleDual 1e{dual}{limit})",
            Outset::ITERATIONS
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Form;

    #[test]
    fn ten_small_steps_and_a_growing_complementarity_ask_for_a_larger_scale() {
        let options = SolverOptions::new(Form::Sdpb);
        let said = |first: u64, count: u64, steps: &dyn Fn(u64) -> (f64, f64), mu: &dyn Fn(u64) -> f64| {
            let mut outset = Outset::default();
            for number in first..first + count {
                let (primal, dual) = steps(number);
                let steps = Sides { primal: Float::with_val(64, primal), dual: Float::with_val(64, dual) };
                outset.see(number, &Float::with_val(64, mu(number)), &steps);
            }
            outset.remark(&options)
        };
        let small = |_: u64| (1e-4, 0.0);
        let grows = |number: u64| 1e40 * (1.0 + 1e-6 * (number - 1) as f64);
        let remark = said(1, 200, &small, &grows).unwrap();
        assert!(remark.contains("initialMatrixScalePrimal 1e40, initialMatrixScaleDual 1e40)"), "{remark}");
        assert!(said(1, 10, &small, &grows).is_some() && said(1, 9, &small, &grows).is_none());
        assert!(said(2, 30, &small, &grows).is_none(), "of a run that goes on");
        assert!(said(1, 30, &small, &|number| 1e40 / number as f64).is_none());
        assert!(said(1, 30, &small, &|number| 1e36 * number as f64).is_none(), "another first point");
        assert!(said(1, 30, &|number| if number == 10 { (0.0, 0.01) } else { (0.0, 0.0) }, &grows).is_none());
        assert!(said(1, 30, &|number| if number == 11 { (1.0, 1.0) } else { (0.0, 0.0) }, &grows).is_some());
        assert!(said(1, 30, &|number| if number == 1 { (0.5, 0.0) } else { (0.0, 0.0) }, &grows).is_none());
        let mut outset = Outset::default();
        let scale = |digits: u32| Float::with_val(300, Float::u_pow_u(10, digits));
        let large = SolverOptions {
            initial_matrix_scale_primal: scale(40),
            initial_matrix_scale_dual: scale(40),
            ..SolverOptions::new(Form::Sdpb)
        };
        let mu = |number: u64| Float::with_val(300, scale(80) * (1.0 + 1e-6 * (number - 1) as f64));
        let steps = Sides { primal: Float::new(64), dual: Float::new(64) };
        (1..=10).for_each(|number| outset.see(number, &mu(number), &steps));
        let remark = outset.remark(&large).unwrap();
        assert!(remark.contains("Dual 1e60, maxComplementarity 1e220)"), "{remark}");
    }
}
