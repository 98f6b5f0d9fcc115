//! The iteration: a primal-dual predictor-corrector method, step by step as in SDPB.
//!
//! At a point: residuals and objectives, the tests for an end, the factored Schur complement (`system`), a predictor
//! and a corrector direction (`direction`), step lengths (`step`), the next point and the factors of its blocks
//! (`factors`). That is a `stage` at one precision; the first ones may have few bits (`ramp`). One code for both
//! forms of programs. Source: arXiv:1502.02033, section 2.4; SDPA's HKM direction.
//!
//! Promise: the bits of every number depend on the program, the options and the precision, not on threads.

mod best;
mod dimacs;
mod direction;
mod factors;
mod memory;
mod outcome;
mod point;
mod ramp;
mod residuals;
mod stage;
mod step;
mod system;

pub use memory::MemoryPlan;
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
    /// The plan, and the limit that it is kept under.
    limit: Option<(MemoryPlan, u64)>,
}

impl<'p> Solver<'p> {
    /// A solver of `problem` at its precision. A memory limit of `ctx` is kept for all that a run allocates, the
    /// program itself excluded.
    ///
    /// # Errors
    /// Those of contexts; [`sunzi::Error::MemoryLimit`] with what [`Solver::plan`] says where that is more.
    pub fn new(ctx: Context, problem: &'p Problem, options: SolverOptions) -> Result<Solver<'p>> {
        let cones = cones(problem);
        let limit = match ctx.memory_bytes() {
            None => None,
            Some(bytes) => Some((MemoryPlan::new(&ctx, problem, &cones, &options)?, bytes)),
        };
        let limits = limit.map(|(plan, bytes)| plan.limits(bytes, ctx.threads())).transpose()?;
        Ok(Solver { problem, options, workers: Workers::new(ctx, limits)?, cones, limit })
    }

    /// What a run takes of memory at most, the program itself excluded: the least limit under which it runs.
    ///
    /// An upper bound where eigenvalues of X and Y lie no further apart than the gap at which a run ends. Others may
    /// take more in products that are right entry by entry; where there is a limit, such a call is refused.
    ///
    /// # Errors
    /// Those of the library's plans.
    pub fn plan(&self) -> Result<MemoryPlan> {
        MemoryPlan::new(self.workers.all(), self.problem, &self.cones, &self.options)
    }

    /// The six errors of the DIMACS challenge, by which benchmarks compare solutions: `||c - A*(Y) - B y||` over
    /// `1 + max |c|`, `||A(x) - C - X|| + ||b - B^T x||` over `1 + max(|C|, |b|)`, the gap `p - d` and `X . Y` over
    /// `1 + |p| + |d|` (objectives without f) are the first, third, fifth and sixth; the others are 0, since X and Y
    /// are positive definite.
    ///
    /// # Errors
    /// Those of the library's products.
    pub fn dimacs_errors(&self, solution: &Solution) -> Result<[f64; 6]> {
        dimacs::errors(&self.workers, self.problem, &self.cones, solution)
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
    /// [`sunzi::Error::InvalidArgument`] where the first point has blocks that are not positive definite;
    /// [`sunzi::Error::MemoryLimit`] where a call takes more than was planned for; those of the library.
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
            let ended = stage.run(state, &mut run).map_err(|error| match &self.limit {
                Some((plan, bytes)) => plan.restate(error, *bytes, self.threads()),
                None => error,
            });
            match ended? {
                StageEnd::Solution(solution) => return solution.rounded(full),
                StageEnd::Raise(raised) => state = raised,
            }
        }
    }
}
