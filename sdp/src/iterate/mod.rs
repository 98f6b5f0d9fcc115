//! The iteration: a primal-dual predictor-corrector method, step by step as in SDPB.
//!
//! At a point: residuals and objectives, the tests for an end, the factored Schur complement (`system`), a predictor
//! and a corrector direction (`direction`), step lengths (`step`), the next point and the factors of its blocks
//! (`factors`). That is a `stage` at one precision; the first ones may have few bits (`ramp`). One code for both
//! forms of programs. Source: arXiv:1502.02033, section 2.4; SDPA's HKM direction.
//!
//! Each rank works on its part (`share`, `site`); where parts meet, numbers are combined in the program's order.
//! Promise: the bits of every number depend on the program, the options and the precision, not on threads or ranks.

mod advice;
mod best;
mod centre;
mod condition;
mod crew;
mod definite;
mod dimacs;
mod direction;
mod factors;
mod fingerprint;
mod inside;
mod memory;
mod outcome;
mod outline;
mod outset;
mod point;
mod precisions;
mod quality;
mod ramp;
mod ray;
mod residuals;
mod restore;
mod share;
mod side;
mod site;
mod sizes;
mod stage;
mod step;
mod system;
mod visit;

pub use best::Course;
pub(crate) use best::{Best, Merit, Seen};
pub use condition::Conditions;
pub(crate) use fingerprint::Fingerprint;
pub(crate) use memory::of_iteration;
pub use memory::{MemoryPlan, PrecisionPlan};
pub use outcome::{Iteration, PhaseSeconds, Solution, State, Termination};
pub use outset::Outset;
pub(crate) use point::block_numbers;
pub use point::{Cone, Point, cones};
pub use quality::Quality;
pub(crate) use share::Share;

use crate::options::SolverOptions;
use crate::problem::Problem;
use crate::ranks::Ranks;
use crate::workers::Workers;
use crew::Crew;
use inside::Inside;
use memory::{IterationStep, Limit, Memory, ProgramPart, of_rank};
use outline::Outline;
use rug::Float;
use site::Site;
use stage::{Later, Run, Stage, StageEnd};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;
use sunzi::distributed::Team;
use sunzi::{Context, Error, Matrix, Result};
use visit::Visitor as _;

/// The caller's answer after an iteration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    /// Continue the run.
    Continue,
    /// End here.
    Stop,
}

/// A solver of one program: in one process, or on one of several ranks, with the same bits.
///
/// On several ranks every method except [`Solver::threads`], [`Solver::rank`] and [`Solver::part_of`] is collective:
/// all ranks call it in the same order, and all return the same error if it fails on one of them. States and solutions
/// have the rank's part of X, Y and x.
pub struct Solver<'p> {
    /// The part of this rank.
    problem: Cow<'p, Problem>,
    /// The differences between the solver's program and options and the caller's.
    inside: Inside,
    options: SolverOptions,
    /// One plan for each precision under a limit, by the bits; else one for all precisions.
    crews: Vec<(u32, Crew)>,
    share: Share,
    /// The distribution of the caller's program over the ranks, if the solver's program differs from it.
    callers: Option<Share>,
    cones: Vec<Cone>,
    limit: Option<Limit>,
}

impl<'p> Solver<'p> {
    /// A solver of `problem` at its precision, in this process. The memory limit of `ctx` holds for all memory that a
    /// run allocates, the program itself excluded.
    ///
    /// # Errors
    /// [`sunzi::Error::InvalidArgument`] for a threshold of 0 or below; the errors of contexts;
    /// [`sunzi::Error::MemoryLimit`] with the bytes of [`Solver::plan`] if they exceed the limit.
    pub fn new(ctx: Context, problem: &'p Problem, options: SolverOptions) -> Result<Solver<'p>> {
        options.check()?;
        let caller = problem;
        let (mut inside, problem) = Inside::of(caller)?;
        let options = inside.options(options);
        let (share, callers) = inside.shares(Ranks::alone(), &problem, caller);
        let cones = share.cones();
        let limit_bytes = ctx.memory_bytes();
        let workers = Workers::new(ctx)?;
        let free = || vec![(problem.precision_bits, Crew::free(&workers))];
        let under = |limit_bytes| {
            let memory =
                Memory::new(workers.all(), ProgramPart { problem: &problem, cones: &cones, share: &share }, &options)?;
            let memory = memory.beside(inside.bytes(&problem));
            memory.plan()?.admit(limit_bytes)?;
            Ok(Crew::each(memory, &workers, limit_bytes))
        };
        let crews = limit_bytes.map_or_else(|| Ok(free()), under)?;
        let limit = limit_bytes.map(Limit::alone);
        Ok(Solver { problem, inside, options, crews, share, callers, cones, limit })
    }

    /// The solver of this rank of `team`, which copies its part of `problem`: every rank passes the whole program, and
    /// may drop it afterwards. Collective.
    ///
    /// Each group of polynomial matrices is on one rank with all its data; for sparse matrices the blocks of X and Y
    /// are distributed, and all ranks have the matrices. The solution is bitwise that of a run in one process. The
    /// memory limit of `ctx` is that of a node: its ranks divide the memory that is left by their plans. It holds for
    /// all memory that a run allocates, including the rank's part of the program and excluding the whole program.
    ///
    /// # Errors
    /// On all ranks: [`sunzi::Error::InvalidArgument`] if ranks have different programs or options, by a hash of all
    /// numbers, or only some of them have a limit, and for a threshold of 0 or below; [`sunzi::Error::MemoryLimit`]
    /// with the smallest limit for every node; the errors of contexts; [`sunzi::Error::Transport`].
    pub fn on_ranks(ctx: Context, team: Team, problem: &Problem, options: SolverOptions) -> Result<Solver<'static>> {
        let ranks = Ranks::of(team)?;
        ranks.agreed(options.check())?;
        let limit_bytes = ctx.memory_bytes();
        ranks.compare(u64::from(limit_bytes.is_some()), "some ranks have a memory limit, and some have none")?;
        let mut outline = Outline::new("options");
        outline.options(&options);
        visit::visit(problem, &mut outline);
        ranks.compare(outline.digest(), "ranks have different programs or options")?;
        let workers = ranks.agreed(Workers::new(ctx))?;
        let caller = problem;
        let (mut inside, problem) = ranks.agreed(Inside::of(caller))?;
        let options = inside.options(options);
        let (share, callers) = inside.shares(ranks, &problem, caller);
        let (part, cones) = (share.part(&problem), share.cones());
        let mut crews = vec![(part.precision_bits, Crew::free(&workers))];
        let mut limit = None;
        if let Some(limit_bytes) = limit_bytes {
            let memory =
                Memory::new(workers.all(), ProgramPart { problem: &part, cones: &cones, share: &share }, &options);
            let memory = memory.map(|memory| memory.beside(inside.bytes(&part)));
            let memory = share.ranks.agreed(memory.and_then(|memory| Ok((memory.plan()?, memory))))?;
            let own = of_rank(&share.ranks, &memory.0, limit_bytes)?;
            (crews, limit) = (Crew::each(memory.1, &workers, own.own_bytes), Some(own));
        }
        Ok(Solver { problem: Cow::Owned(part), inside, options, crews, share, callers, cones, limit })
    }

    /// Releases the resources that ranks share.
    ///
    /// # Errors
    /// [`sunzi::Error::Transport`].
    pub fn close(self) -> Result<()> {
        let Solver { share, callers, .. } = self;
        drop(callers);
        Arc::into_inner(share.ranks).map_or(Ok(()), Ranks::close)
    }

    /// The largest memory that a run needs, the program itself excluded: the smallest limit under which it runs. On
    /// several ranks it is the memory of this rank, including its part of the program. The method is then collective:
    /// all ranks call it, or none.
    ///
    /// It is an upper bound if the ratios of the eigenvalues of X and Y do not exceed the gap at which a run ends.
    /// Other programs may need more memory in entrywise accurate products; under a limit, such a call is refused.
    ///
    /// # Errors
    /// The errors of the library's plans.
    pub fn plan(&self) -> Result<MemoryPlan> {
        let part = ProgramPart { problem: &self.problem, cones: &self.cones, share: &self.share };
        let memory = Memory::new(self.crew(0).at(IterationStep::Next).all(), part, &self.options);
        let beside = self.inside.bytes(&self.problem);
        self.share.ranks.agreed(memory.and_then(|memory| memory.beside(beside).plan()))
    }

    /// The six errors of the DIMACS challenge, which benchmarks use to compare solutions: `||c - A*(Y) - B y||` over
    /// `1 + max |c|`, `||A(x) - C - X|| + ||b - B^T x||` over `1 + max(|C|, |b|)`, the gap `p - d` and `X . Y` over
    /// `1 + |p| + |d|` (objectives without f) are the first, third, fifth and sixth; the others are 0, since X and Y
    /// are positive definite.
    ///
    /// # Errors
    /// The errors of the library's products.
    pub fn dimacs_errors(&self, solution: &Solution) -> Result<[f64; 6]> {
        let problem = self.share.ranks.agreed(self.inside.in_own_units(&self.problem))?;
        let solution = self.share.ranks.agreed(self.inside.reduced(solution))?;
        dimacs::errors(&self.site(&problem), &solution).map_err(|error| self.restated(error))
    }

    /// A refusal of a call as one under the limit that the caller gave.
    fn restated(&self, error: Error) -> Error {
        match &self.limit {
            Some(limit) => limit.restated(error, self.threads()),
            None => error,
        }
    }

    /// Threads of this rank that share the work.
    pub fn threads(&self) -> usize {
        self.crew(0).at(IterationStep::Next).all().threads()
    }

    /// The number of this rank, from 0, and the number of ranks.
    pub fn rank(&self) -> (usize, usize) {
        (self.share.ranks.rank(), self.share.ranks.size())
    }

    /// This rank's part of a whole state, such as the state of a checkpoint. It is not collective;
    /// [`Solver::first_state`] also checks that all ranks have the same state.
    pub fn part_of(&self, state: State) -> State {
        let with_part = |course: Course| {
            let best = course.best.map(Arc::unwrap_or_clone);
            let best = best.map(|best| Arc::new(Best { point: self.share().part_of(best.point), ..best }));
            Course { best, ..course }
        };
        State { point: self.share().part_of(state.point), course: state.course.map(with_part), ..state }
    }

    /// Gathers the whole point on rank 0 from the parts of all ranks.
    ///
    /// # Errors
    /// [`sunzi::Error::OutOfMemory`], [`sunzi::Error::Transport`].
    pub fn gathered(&self, point: &Point) -> Result<Option<Point>> {
        self.share().gathered(point)
    }

    /// The solution with the whole point, and with its history, on rank 0.
    ///
    /// # Errors
    /// As [`Solver::gathered`].
    pub fn gathered_solution(&self, solution: &Solution) -> Result<Option<Solution>> {
        let (whole, course) = (self.gathered(&solution.point)?, self.gathered_course(solution.course.as_ref())?);
        let (quality, remark, steps) = (solution.quality.clone(), solution.remark.clone(), solution.steps.clone());
        let outset = solution.outset.clone();
        Ok(whole.map(|point| Solution { point, quality, remark, steps, course, outset, ..*solution }))
    }

    /// The state with the whole points, on rank 0, as [`crate::save_checkpoint`] writes it.
    ///
    /// # Errors
    /// As [`Solver::gathered`].
    pub fn gathered_state(&self, state: &State) -> Result<Option<State>> {
        let (whole, course) = (self.gathered(&state.point)?, self.gathered_course(state.course.as_ref())?);
        let (steps, outset) = (state.steps.clone(), state.outset.clone());
        Ok(whole.map(|point| State { point, steps, course, outset, ..*state }))
    }

    /// A course with the whole best point, on rank 0.
    fn gathered_course(&self, course: Option<&Course>) -> Result<Option<Course>> {
        let Some(course) = course else { return Ok(None) };
        let Some(best) = course.best.as_ref().filter(|_| self.share.ranks.are_several()) else {
            return Ok(Some(course.clone()));
        };
        let whole = self.gathered(&best.point)?;
        let (quality, merit) = (best.quality.clone(), best.merit.clone());
        let best = whole.map(|point| Arc::new(Best { point, quality, merit, ..**best }));
        Ok(Some(Course { best, ..course.clone() }))
    }

    /// Whether `own` is true on any rank.
    ///
    /// # Errors
    /// [`sunzi::Error::Transport`].
    pub fn any_says(&self, own: bool) -> Result<bool> {
        self.share.ranks.any(own)
    }

    /// Whether `own` is true on rank 0.
    ///
    /// # Errors
    /// [`sunzi::Error::Transport`].
    pub fn root_says(&self, own: bool) -> Result<bool> {
        self.share.ranks.root_says(own)
    }

    /// The results of all ranks, or the error of the first rank that failed.
    ///
    /// # Errors
    /// The error of that rank.
    pub fn agreed<T>(&self, made: Result<T>) -> Result<T> {
        self.share.ranks.agreed(made)
    }

    /// The workers at a precision.
    fn crew(&self, bits: u32) -> &Crew {
        let found = self.crews.iter().position(|(known, _)| *known == bits);
        &self.crews[found.unwrap_or(self.crews.len() - 1)].1
    }

    fn site<'s>(&'s self, problem: &'s Problem) -> Site<'s> {
        let (bits, crew) = (problem.precision_bits, self.crew(problem.precision_bits));
        Site { problem, cones: &self.cones, share: &self.share, crew, workers: crew.at(IterationStep::Residuals), bits }
    }

    /// The initial state of a run.
    ///
    /// # Errors
    /// The errors of [`Point::initial`].
    pub fn begin(&self) -> Result<State> {
        let bits = self.problem.precision_bits;
        let point = Point::initial(&self.problem, &self.cones, &self.options, bits);
        let mut point = self.share.ranks.agreed(point)?;
        self.share.ranks.agreed(self.inside.leave(&mut point, &self.cones))?;
        let precision_bits = if self.options.ramp { precisions::first_bits(bits) } else { bits };
        Ok(State {
            point,
            iterations: 0,
            steps: (Float::new(64), Float::new(64)),
            reached: (false, false),
            precision_bits,
            course: None,
            outset: Outset::default(),
            is_ended: false,
        })
    }

    /// The state from which a run continues: this rank's part of the whole state that every rank passes as `found`, for
    /// example from a checkpoint, or the state of [`Solver::begin`] if no rank passes one.
    ///
    /// # Errors
    /// [`sunzi::Error::InvalidArgument`] if ranks found different states, or only some of them found one, because they
    /// see different folders; the errors of [`Solver::begin`].
    pub fn first_state(&self, found: Option<State>) -> Result<State> {
        let mut whole = Outline::new("whole");
        found.iter().for_each(|state| whole.points(state));
        self.same_states(found.as_ref(), whole.digest())?;
        found.map_or_else(|| self.begin(), |state| Ok(self.part_of(state)))
    }

    /// Refuses ranks that found parts of different states, by the data that all ranks have of these and by a number
    /// that depends on the rest. Collective.
    ///
    /// # Errors
    /// [`sunzi::Error::InvalidArgument`], on all ranks.
    pub(crate) fn same_states(&self, found: Option<&State>, mark: u64) -> Result<()> {
        let mut outline = Outline::new(if found.is_some() { "found" } else { "none" });
        if let Some(state) = found {
            outline.shared(state);
            outline.word(mark);
        }
        let message = "ranks found different states to resume from: all must see the same checkpoint, or none";
        self.share.ranks.compare(outline.digest(), message)
    }

    /// The parts of x that all ranks have: those of groups of sparse matrices.
    fn shared_variables<'s>(&'s self, state: &'s State) -> impl Iterator<Item = &'s Matrix> {
        self.share().shared().map(|at| &state.point.x[at])
    }

    /// The rank that has each part of the caller's program.
    pub(crate) fn share(&self) -> &Share {
        self.callers.as_ref().unwrap_or(&self.share)
    }

    /// Iterates until a termination test ends the run, or until `watch`, which is called after every iteration with the
    /// iteration and the new state, ends it; on several ranks, the `watch` of any rank can end it.
    ///
    /// # Errors
    /// [`sunzi::Error::InvalidArgument`] if the initial point has blocks that are not positive definite, and if ranks
    /// are at different iterations or have different y; [`sunzi::Error::MemoryLimit`] if a call needs more than
    /// planned; the errors of the library and of `watch`.
    pub fn run(
        &self,
        mut state: State,
        mut watch: impl FnMut(&Iteration, &State) -> Result<Control>,
    ) -> Result<Solution> {
        let (full, ranks) = (self.problem.precision_bits, &self.share.ranks);
        let mut outline = Outline::new("run");
        outline.shared(&state);
        self.shared_variables(&state).for_each(|x| outline.matrix(x));
        ranks.compare(outline.digest(), "ranks have parts of different states")?;
        let (start, earlier) = (Instant::now(), state.iterations);
        ranks.agreed(self.inside.enter_state(&mut state, &self.cones))?;
        let mut watch = |iteration: &Iteration, state: &State| {
            watch(&self.inside.own_iteration(iteration), &*self.inside.own_state(state, &self.cones)?)
        };
        let mut run = Run { start, earlier, phases: PhaseSeconds::default(), watch: &mut watch };
        // A checkpoint may have been written where the precision was raised, or have more bits than the program: points
        // of another precision are pushed inside.
        let mut is_raised = state.iterations > 0 && state.course.is_none();
        loop {
            // It may have a precision that this run does not have: it goes on at the next one.
            let bits = if self.options.ramp { precisions::at_least(state.precision_bits, full) } else { full };
            if bits != state.precision_bits {
                is_raised = true;
                (state.precision_bits, state.course) = (bits, None);
            }
            state.point = ranks.agreed(state.point.rounded(bits))?;
            let rounded = (bits != full).then(|| self.problem.rounded(bits)).transpose();
            let rounded = ranks.agreed(rounded)?;
            let site = self.site(rounded.as_ref().unwrap_or(&self.problem));
            if is_raised {
                state.point = ramp::pushed_inside(&site, state.point).map_err(|error| self.restated(error))?;
            }
            let later = precisions::next_bits(bits, full).map(|next_bits| Later { next_bits, last_bits: full });
            if is_raised && self.options.ramp && later.is_none() {
                let reached = state.reached_sides();
                let restored = restore::restored(&site, &self.options, state.point, reached);
                state.point = restored.map_err(|error| self.restated(error))?;
            }
            is_raised = true;
            let stage = Stage { site, options: &self.options, later };
            match stage.run(state, &mut run).map_err(|error| self.restated(error))? {
                StageEnd::Solution(mut solution) => {
                    let said = [solution.outset.remark(&self.options), solution.small_objectives()];
                    let said = said.into_iter().flatten().chain(self.inside.sentences());
                    let reasons = solution.remark.take().into_iter().chain(said);
                    let reasons = reasons.collect::<Vec<_>>();
                    solution.remark = (!reasons.is_empty()).then(|| reasons.join("; "));
                    let own = self.inside.own_solution(*solution, &self.cones);
                    return ranks.agreed(own.and_then(|own| own.rounded(full)));
                }
                StageEnd::Raise(raised) => state = *raised,
            }
        }
    }
}
