//! The iteration: a primal-dual predictor-corrector method, step by step as in SDPB.
//!
//! At a point: residuals and objectives, the tests for an end, the factored Schur complement (`system`), a predictor
//! and a corrector direction (`direction`), step lengths (`step`), the next point and the factors of its blocks
//! (`factors`). That is a `stage` at one precision; the first ones may have few bits (`ramp`). One code for both
//! forms of programs. Source: arXiv:1502.02033, section 2.4; SDPA's HKM direction.
//!
//! Promise: the bits of every number depend on the program, the options and the precision, not on threads.

mod best;
mod direction;
mod factors;
mod outcome;
mod point;
mod ramp;
mod residuals;
mod stage;
mod step;
mod system;

pub use outcome::{Iteration, PhaseSeconds, Quality, Solution, State, Termination};
pub use point::{Cone, Point, cones};

use crate::options::SolverOptions;
use crate::problem::Problem;
use crate::workers::Workers;
use rug::Float;
use stage::{Run, Stage, StageEnd};
use std::time::Instant;
use sunzi::{Context, Result};

/// What a caller answers to an iteration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    /// Go on.
    Continue,
    /// End here.
    Stop,
}

/// A program on its way to a solution.
pub struct Solver<'p> {
    problem: &'p Problem,
    options: SolverOptions,
    workers: Workers,
    cones: Vec<Cone>,
}

impl<'p> Solver<'p> {
    /// A solver of `problem` at its precision.
    ///
    /// # Errors
    /// Those of contexts.
    pub fn new(ctx: Context, problem: &'p Problem, options: SolverOptions) -> Result<Solver<'p>> {
        let (workers, cones) = (Workers::new(ctx)?, cones(problem));
        Ok(Solver { problem, options, workers, cones })
    }

    /// Threads that share the work.
    pub fn threads(&self) -> usize {
        self.workers.all().threads()
    }

    /// The state in which a run begins.
    ///
    /// # Errors
    /// Those of [`Point::initial`].
    pub fn begin(&self) -> Result<State> {
        let bits = self.problem.precision_bits;
        let point = Point::initial(self.problem, &self.options, bits)?;
        let precision_bits = if self.options.ramp { ramp::first_bits(bits) } else { bits };
        Ok(State { point, iterations: 0, steps: (Float::new(64), Float::new(64)), precision_bits })
    }

    /// Iterates until a test ends the run, or `watch`, which sees every iteration and the state after it.
    ///
    /// # Errors
    /// [`sunzi::Error::InvalidArgument`] where the first point has blocks that are not positive definite; those of the
    /// library.
    pub fn run(
        &self,
        mut state: State,
        mut watch: impl FnMut(&Iteration, &State) -> Result<Control>,
    ) -> Result<Solution> {
        let full = self.problem.precision_bits;
        let mut run = Run { start: Instant::now(), phases: PhaseSeconds::default(), watch: &mut watch };
        if !self.options.ramp {
            state.precision_bits = full;
        }
        let mut is_first = true;
        loop {
            let bits = state.precision_bits.min(full);
            state.point = state.point.rounded(bits)?;
            if !is_first {
                state.point = ramp::pushed_inside(&self.workers, bits, &self.cones, state.point)?;
            }
            is_first = false;
            let rounded = if bits == full { None } else { Some(self.problem.rounded(bits)?) };
            let stage = Stage {
                problem: rounded.as_ref().unwrap_or(self.problem),
                options: &self.options,
                workers: &self.workers,
                cones: &self.cones,
                bits,
                next_bits: ramp::next_bits(bits, full),
            };
            match stage.run(state, &mut run)? {
                StageEnd::Solution(solution) => return solution.rounded(full),
                StageEnd::Raise(raised) => state = raised,
            }
        }
    }
}
