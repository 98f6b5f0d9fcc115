//! The results of an iteration and of a run.

use crate::iterate::best::Course;
use crate::iterate::condition::Conditions;
use crate::iterate::outset::Outset;
use crate::iterate::point::Point;
use crate::iterate::quality::Quality;
use crate::iterate::side::Sides;
use rug::Float;
use serde::Serialize;
use std::fmt;
use sunzi::Result;

/// Bits by which objectives lie below 1 where a remark notes that the gap, which is relative to 1 there, shows fewer
/// digits.
const SMALL_BITS: u32 = 16;

/// The reason why a run ended. The texts are SDPB's if SDPB has the same reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Termination {
    /// Both points are feasible, and the gap is below its threshold.
    PrimalDualOptimal,
    /// The primal point is feasible, and the run was to stop there.
    PrimalFeasible,
    /// The dual point is feasible, and the run was to stop there.
    DualFeasible,
    /// A primal step of 1 was taken.
    PrimalFeasibleJumpDetected,
    /// A dual step of 1 was taken.
    DualFeasibleJumpDetected,
    /// The complementarity exceeds its limit.
    MaxComplementarityExceeded,
    /// The limit on iterations was reached.
    MaxIterationsExceeded,
    /// The limit on time was reached.
    MaxRuntimeExceeded,
    /// The primal step was smaller than allowed.
    PrimalStepTooSmall,
    /// The dual step was smaller than allowed.
    DualStepTooSmall,
    /// A dual ray shows that no primal point is feasible.
    PrimalInfeasible,
    /// A primal ray shows that no dual point is feasible.
    DualInfeasible,
    /// The primal objective of a primal feasible point is not above the given lower bound.
    PrimalUnbounded,
    /// The dual objective of a dual feasible point is not below the given upper bound.
    DualUnbounded,
    /// The equation for the direction is singular at this precision.
    PrecisionTooLow,
    /// A stop was requested.
    Stopped,
    /// The user requested a stop from the terminal, as reported by the caller of the solver.
    Interrupted,
}

impl Termination {
    /// Whether the run was broken off, rather than ended by its results.
    pub(super) fn is_break(self) -> bool {
        let is_stop = matches!(self, Termination::Stopped | Termination::Interrupted);
        is_stop || matches!(self, Termination::MaxRuntimeExceeded | Termination::MaxIterationsExceeded)
    }
}

impl fmt::Display for Termination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Termination::PrimalDualOptimal => "found primal-dual optimal solution",
            Termination::PrimalFeasible => "found primal feasible solution",
            Termination::DualFeasible => "found dual feasible solution",
            Termination::PrimalFeasibleJumpDetected => "primal feasible jump detected",
            Termination::DualFeasibleJumpDetected => "dual feasible jump detected",
            Termination::MaxComplementarityExceeded => "maxComplementarity exceeded",
            Termination::MaxIterationsExceeded => "maxIterations exceeded",
            Termination::MaxRuntimeExceeded => "maxRuntime exceeded",
            Termination::PrimalStepTooSmall => "primal step too small",
            Termination::DualStepTooSmall => "dual step too small",
            Termination::PrimalInfeasible => "primal infeasible",
            Termination::DualInfeasible => "dual infeasible",
            Termination::PrimalUnbounded => "primal objective below lowerBound",
            Termination::DualUnbounded => "dual objective above upperBound",
            Termination::PrecisionTooLow => "precision too low",
            Termination::Stopped => "SIGTERM signal received",
            Termination::Interrupted => "SIGINT signal received",
        })
    }
}

/// One iteration: the point at which it began, and its step.
#[derive(Clone, Debug)]
pub struct Iteration {
    /// Its number, from 1.
    pub number: u64,
    /// Seconds since the run began, and of this iteration.
    pub seconds: (f64, f64),
    /// Precision of the iteration in bits.
    pub precision_bits: u32,
    /// `Tr(X Y)` divided by the number of rows.
    pub mu: Float,
    /// The largest magnitude of an entry of `mu I - X Y`, if it is measured: with an error of about `2^-16 mu`, or of
    /// the rounding of X Y at the iteration's precision if that is larger.
    pub off_centre: Option<Float>,
    /// The point before the step.
    pub quality: Quality,
    /// The step length of x and X.
    pub primal_step: Float,
    /// The step length of y and Y.
    pub dual_step: Float,
    /// The centring parameter of the corrector.
    pub beta: Float,
    /// The condition numbers of its matrices.
    pub conditions: Conditions,
}

/// The state of a run between two iterations.
#[derive(Clone, Debug)]
pub struct State {
    /// The point.
    pub point: Point,
    /// Iterations made.
    pub iterations: u64,
    /// The last primal and dual steps; 0 before the first.
    pub steps: (Float, Float),
    /// Whether the steps, without rounding errors, would have reduced the primal and the dual error below their
    /// thresholds.
    pub reached: (bool, bool),
    /// Bits of the next iteration; if the point was read from a file with fewer bits, the bits of the file.
    pub precision_bits: u32,
    /// The history of earlier points at this precision; `None` at the first point.
    pub course: Option<Course>,
    /// The summary of the first iterations, for a remark at the end of a run.
    pub outset: Outset,
    /// Whether a termination test has ended the run here: a continued run goes beyond it, and the tests of its last
    /// steps are ignored. Limits of iterations or time, and a requested stop, only interrupt a run: a continued run
    /// ends as without the interruption.
    pub is_ended: bool,
}

impl State {
    /// [`State::reached`] by its sides.
    pub(super) fn reached_sides(&self) -> Sides<bool> {
        Sides { primal: self.reached.0, dual: self.reached.1 }
    }
}

/// Seconds of the parts of an iteration, summed over all iterations.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct PhaseSeconds {
    /// Objectives and residuals.
    pub residuals: f64,
    /// The Schur complement and its factor, and the matrix Q and its factor.
    pub schur: f64,
    /// Search directions of the predictor.
    pub predictor: f64,
    /// Search directions of the corrector.
    pub corrector: f64,
    /// Eigenvalues for the step lengths.
    pub step_length: f64,
    /// The next point, and factors and inverses of its blocks.
    pub factors: f64,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Solution {
    /// The reason of the end.
    pub termination: Termination,
    /// The last point.
    pub point: Point,
    /// Objectives, gap and errors of the point.
    pub quality: Quality,
    /// Number of iterations, including those before a restart.
    pub iterations: u64,
    /// The last primal and dual step lengths.
    pub steps: (Float, Float),
    /// Whether the steps, without rounding errors, would have reduced the primal and the dual error below their
    /// thresholds.
    pub reached: (bool, bool),
    /// The history of earlier points, if this is the last one.
    pub course: Option<Course>,
    /// The summary of the first iterations.
    pub outset: Outset,
    /// Whether a termination test has ended the run or, if the run made no iteration, the run before.
    pub is_ended: bool,
    /// Seconds of this run.
    pub seconds: f64,
    /// The parts of an iteration on which they were spent.
    pub phases: PhaseSeconds,
    /// Bits of the last iteration.
    pub precision_bits: u32,
    /// Bits that would have sufficed, estimated from gap and errors, if the precision ended the run.
    pub advised_bits: Option<u32>,
    /// A remark on the end of the run, if there is more to report than the reason.
    pub remark: Option<String>,
}

impl Solution {
    /// The state from which another run can continue.
    pub fn state(&self) -> State {
        State {
            point: self.point.clone(),
            iterations: self.iterations,
            steps: self.steps.clone(),
            reached: self.reached,
            precision_bits: self.precision_bits,
            course: self.course.clone(),
            outset: self.outset.clone(),
            is_ended: self.is_ended,
        }
    }

    /// A remark on objectives of an optimum that are far below 1, relative to which the gap then counts.
    pub(super) fn small_objectives(&self) -> Option<String> {
        let [primal, dual] = [&self.quality.primal_objective, &self.quality.dual_objective];
        let size = Float::with_val(64, primal.abs_ref()) + Float::with_val(64, dual.abs_ref());
        let is_small = size < Float::with_val(64, 1) >> SMALL_BITS;
        if self.termination != Termination::PrimalDualOptimal || !is_small || size.is_zero() {
            return None;
        }
        let off = Float::with_val(64, primal - dual).abs();
        let digits = (Float::with_val(64, &size / 2u32) / off).log10().to_f64().floor();
        let shown = if digits < 1.0 { "no digit".into() } else { format!("about {digits} digits") };
        let words = format!(
            "both objectives are below 1, so the gap is an absolute difference; the objectives agree to {shown}"
        );
        digits.is_finite().then_some(words)
    }

    /// The solution with numbers of `bits` bits.
    ///
    /// # Errors
    /// The errors of [`sunzi::Matrix::from_fn`].
    pub(super) fn rounded(self, bits: u32) -> Result<Solution> {
        Ok(Solution { point: self.point.rounded(bits)?, ..self })
    }
}
