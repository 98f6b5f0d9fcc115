//! The iterations at one precision.

use crate::iterate::Control;
use crate::iterate::advice::Advice;
use crate::iterate::best::{Course, PATIENCE, Past, Scales};
use crate::iterate::centre::off_centre;
use crate::iterate::condition::{Conditions, conditions};
use crate::iterate::direction::Directions;
use crate::iterate::factors::{ConeFactors, factor};
use crate::iterate::memory::IterationStep;
use crate::iterate::outcome::{Iteration, PhaseSeconds, Solution, State, Termination};
use crate::iterate::point::{Cone, Point};
use crate::iterate::quality::Quality;
use crate::iterate::ramp::{self, Moved};
use crate::iterate::ray::{Ray, way_to_verdict};
use crate::iterate::residuals::{Evaluation, Residuals};
use crate::iterate::side::{Side, Sides};
use crate::iterate::site::Site;
use crate::iterate::step::{Eigenvalues, step_length};
use crate::iterate::system::{Singular, System, SystemPoint};
use crate::options::SolverOptions;
use rug::Float;
use std::time::Instant;
use sunzi::{Error, Result};

/// The number of halvings of a step whose end rounding puts outside the cones.
const MOST_HALVINGS: u32 = 20;

/// A program at one precision. All methods are collective except those that only compare.
pub struct Stage<'s> {
    /// The program, the ranks and threads.
    pub site: Site<'s>,
    /// The options that decide when it ends.
    pub options: &'s SolverOptions,
    /// The precision at which to continue if this one is not sufficient, and the last precision, which ends runs.
    pub later: Option<Later>,
}

/// The precisions behind that of a stage.
#[derive(Clone, Copy)]
pub struct Later {
    /// The next one.
    pub next_bits: u32,
    /// The precision of the program.
    pub last_bits: u32,
}

/// The end of a stage.
pub enum StageEnd {
    /// The run ends as well.
    Solution(Box<Solution>),
    /// The precision is not sufficient: another stage continues.
    Raise(Box<State>),
}

/// Data that all stages of a run share.
pub struct Run<'w> {
    /// The start of the run.
    pub start: Instant,
    /// Iterations that earlier runs had made: limits are those of each run, as in SDPB.
    pub earlier: u64,
    /// The parts on which its time was spent.
    pub phases: PhaseSeconds,
    /// The function that sees iterations.
    pub watch: &'w mut dyn FnMut(&Iteration, &State) -> Result<Control>,
}

impl Stage<'_> {
    /// Iterates until a test ends the run, or the precision is not enough.
    ///
    /// # Errors
    /// The errors of [`super::Solver::run`].
    pub fn run(&self, mut state: State, run: &mut Run<'_>) -> Result<StageEnd> {
        let scales = Scales::new(&self.site)?;
        let mut course = self.course_of(&scales, &mut state)?;
        let mut factors = self.factors_inside("first", &state.point)?;
        let mut evaluation = timed(&mut run.phases.residuals, || Evaluation::new(&self.site, &state.point))?;
        loop {
            let begun = Instant::now();
            let Evaluation { residuals, quality } = evaluation;
            let is_late = self.site.share.ranks.root_says(run.start.elapsed().as_secs() >= self.options.max_runtime)?;
            let is_feasible = self.is_feasible(&quality).both();
            // A run that goes on from here sees this point again.
            state.course = Some(course.clone());
            course.see(&scales, &quality, is_feasible, state.iterations);
            if let Some(bits) = self.bits_at_end(&scales, &quality, state.reached_sides()) {
                return Ok(raised(state, bits));
            }
            let made = state.iterations - run.earlier;
            let at =
                Begun { state: &state, factors: &factors, quality: &quality, residuals: &residuals, made, is_late };
            if let Some(why) = self.ended(&at, &course)? {
                return Ok(self.finished(course, &scales, self.end(run, state, quality, why)));
            }
            let stepped = self.step(&at, &scales, &mut run.phases)?;
            let TakenStep { point, next_factors, mu, off_centre, steps, beta, conditions } = match stepped {
                Ok(step) => step,
                Err(why) => {
                    let why = self.with_ray(why, &at)?;
                    return Ok(self.finished(course, &scales, self.end(run, state, quality, why)));
                }
            };
            evaluation = timed(&mut run.phases.residuals, || Evaluation::new(&self.site, &point))?;
            let moved = Moved::new(self.options, &quality, state.reached_sides(), &steps, &evaluation.quality);
            let reached = moved.reached.into_pair();
            if let Some(bits) = self.bits_again(&scales, moved) {
                return Ok(raised(state, bits));
            }
            let precision_bits = self.next_bits(&evaluation.quality.gap);
            let iteration = Iteration {
                number: state.iterations + 1,
                seconds: (run.start.elapsed().as_secs_f64(), begun.elapsed().as_secs_f64()),
                precision_bits: self.site.bits,
                mu,
                off_centre,
                quality,
                primal_step: steps.primal.clone(),
                dual_step: steps.dual.clone(),
                beta,
                conditions,
            };
            let iterations = iteration.number;
            state.outset.see(iterations, &iteration.mu, &steps);
            let (steps, outset) = (steps.into_pair(), std::mem::take(&mut state.outset));
            let next =
                State { point, iterations, steps, reached, precision_bits, course: None, outset, is_ended: false };
            let State { point, iterations, .. } = std::mem::replace(&mut state, next);
            course.leave(&scales, point, &iteration.quality, is_feasible, iterations);
            // At another precision points are compared anew.
            state.course = (precision_bits == self.site.bits).then(|| course.clone());
            factors = next_factors;
            let control = self.site.agreed((run.watch)(&iteration, &state))?;
            if self.site.share.ranks.any(control == Control::Stop)? {
                return Ok(self.end(run, state, evaluation.quality, (Termination::Stopped, None)));
            }
            if precision_bits != self.site.bits {
                return Ok(StageEnd::Raise(Box::new(state)));
            }
        }
    }

    /// The precision that decides whether the run ends at a point: the last one, where the run would end there if
    /// residuals had no part left by rounding.
    fn bits_at_end(&self, scales: &Scales, quality: &Quality, reached: Sides<bool>) -> Option<u32> {
        let later = self.later?;
        ramp::is_end(self.options, scales, quality, reached).then_some(later.last_bits)
    }

    /// The precision of the next iteration: the next one, where objectives no longer show the gap.
    fn next_bits(&self, gap: &Float) -> u32 {
        let later = self.later.filter(|_| !ramp::shows(self.site.bits, gap));
        later.map_or(self.site.bits, |later| later.next_bits)
    }

    /// The precision at which a step is made again, as rounding shows in it, or it may end the run.
    fn bits_again(&self, scales: &Scales, moved: Moved<'_>) -> Option<u32> {
        let later = self.later?;
        if moved.ends(self.options) {
            return Some(later.last_bits);
        }
        (!moved.is_enough(self.options, scales)).then_some(later.next_bits)
    }

    /// The end of a run; before the last stage only tests that do not depend on the precision end it.
    fn end(&self, run: &Run<'_>, state: State, quality: Quality, (termination, remark): NoStep) -> StageEnd {
        let is_final = matches!(termination, Termination::Stopped | Termination::MaxRuntimeExceeded);
        if let Some(later) = self.later.filter(|_| !is_final) {
            return raised(state, later.next_bits);
        }
        // All other terminations are ends, behind which the best point is of no use. A break before the first step
        // leaves the state as it was.
        let is_ended = !termination.is_break() || state.is_ended;
        StageEnd::Solution(Box::new(Solution {
            termination,
            point: state.point,
            quality,
            iterations: state.iterations,
            steps: state.steps,
            reached: state.reached,
            course: state.course.filter(|_| !is_ended),
            outset: state.outset,
            is_ended,
            seconds: run.start.elapsed().as_secs_f64(),
            phases: run.phases,
            advised_bits: None,
            remark,
            precision_bits: state.precision_bits,
        }))
    }

    /// The course of earlier points of a state. Collective.
    fn course_of(&self, scales: &Scales, state: &mut State) -> Result<Course> {
        // A course under other thresholds of feasibility does not apply here.
        let known = state.course.take().filter(|course| course.is_of(self.options));
        let known = known.map(|course| self.judged(scales, course)).transpose()?;
        Ok(known.unwrap_or_else(|| Course::new(self.options)))
    }

    /// The course with the quality of its best point computed anew: a file may claim anything. Collective.
    fn judged(&self, scales: &Scales, course: Course) -> Result<Course> {
        let Some(best) = &course.best else { return Ok(course) };
        self.factors_inside("best", &best.point)?;
        let quality = Evaluation::new(&self.site, &best.point)?.quality;
        let is_feasible = self.is_feasible(&quality).both();
        Ok(course.judged(scales, quality, is_feasible))
    }

    /// The factors of a point that has to be inside the cones. Collective.
    fn factors_inside(&self, name_of_point: &str, point: &Point) -> Result<Vec<ConeFactors>> {
        factor(&self.site, point)?.map_err(|(at, side)| self.not_inside(name_of_point, at, side))
    }

    fn not_inside(&self, name_of_point: &str, at: usize, side: Side) -> Error {
        let share = self.site.share;
        let (block, row) = share.place_of(at);
        let Cone { group, number, .. } = share.all[block];
        let group = share.callers_group(group, row.unwrap_or(0));
        let name = if side == Side::Primal { "X" } else { "Y" };
        Error::InvalidArgument(format!(
            "block {number} of group {group} of {name} is not positive definite at the {name_of_point} point (counted \
             from 0): the matrices of a checkpoint must be, and initial matrix scales must be above 0"
        ))
    }

    fn is_feasible(&self, quality: &Quality) -> Sides<bool> {
        let primal = *quality.primal_error() < self.options.primal_error_threshold;
        Sides { primal, dual: quality.dual_error < self.options.dual_error_threshold }
    }

    /// The reason for which the run ends at a point: one of SDPB's tests, in its order; a ray that proves
    /// infeasibility; or that no better points are expected. Collective.
    fn ended(&self, at: &Begun<'_>, course: &Course) -> Result<Option<NoStep>> {
        if let Some(termination) = self.termination(at) {
            return Ok(Some((termination, None)));
        }
        if let Some(why) = self.infeasible(at)? {
            return Ok(Some(why));
        }
        let Some(remark) = self.too_few_bits(at.quality, course.past(at.state.iterations)) else { return Ok(None) };
        self.with_ray((Termination::PrecisionTooLow, Some(remark)), at).map(Some)
    }

    /// SDPB's tests, in its order.
    fn termination(&self, at: &Begun<'_>) -> Option<Termination> {
        let Begun { state, quality, made, is_late, .. } = *at;
        let options = &self.options;
        let Sides { primal, dual } = self.is_feasible(quality);
        // A run that was broken off ends by its last steps as without the break; one that they have ended goes on.
        let begun = state.iterations > 0 && !state.is_ended;
        let tests = [
            (
                primal && dual && ramp::is_below_threshold(self.site.bits, options, &quality.gap),
                Termination::PrimalDualOptimal,
            ),
            (dual && options.find_dual_feasible, Termination::DualFeasible),
            (primal && options.find_primal_feasible, Termination::PrimalFeasible),
            (begun && state.steps.1 == 1 && options.detect_dual_feasible_jump, Termination::DualFeasibleJumpDetected),
            (
                begun && state.steps.0 == 1 && options.detect_primal_feasible_jump,
                Termination::PrimalFeasibleJumpDetected,
            ),
            (made >= options.max_iterations, Termination::MaxIterationsExceeded),
            (is_late, Termination::MaxRuntimeExceeded),
            (begun && state.steps.0 < options.min_primal_step, Termination::PrimalStepTooSmall),
            (begun && state.steps.1 < options.min_dual_step, Termination::DualStepTooSmall),
            (
                primal && !dual && options.lower_bound.as_ref().is_some_and(|least| quality.primal_objective <= *least),
                Termination::PrimalUnbounded,
            ),
            (
                dual && !primal && options.upper_bound.as_ref().is_some_and(|most| quality.dual_objective >= *most),
                Termination::DualUnbounded,
            ),
        ];
        tests.into_iter().find(|(holds, _)| *holds).map(|(_, termination)| termination)
    }

    /// The reason why precision ends a run, and what a ray shows, to half of its bits, about a side that is not
    /// feasible: how large its points would have to be. No verdict, as there are programs whose solutions are that
    /// large. Collective.
    fn with_ray(&self, why: NoStep, at: &Begun<'_>) -> Result<NoStep> {
        let may_show = [Termination::PrecisionTooLow, Termination::MaxComplementarityExceeded];
        if !may_show.contains(&why.0) || self.later.is_some() {
            return Ok(why);
        }
        let threshold = Float::with_val(64, 1) >> (self.site.bits / 2);
        let rays = Ray::both(&self.site, at.quality, at.residuals, &threshold)?;
        let is_feasible = self.is_feasible(at.quality);
        let is_feasible = |ray: &Ray| match ray.end {
            Termination::PrimalInfeasible => is_feasible.primal,
            _ => is_feasible.dual,
        };
        let Some(ray) = rays.into_iter().flatten().find(|ray| !is_feasible(ray)) else { return Ok(why) };
        let way = way_to_verdict(self.site.bits, &self.options.infeasibility_threshold);
        let sentence = format!("the program may be {}: {}{way}", ray.end, ray.sentence(self.site.bits));
        Ok((why.0, Some(Vec::from_iter(why.1.into_iter().chain([sentence])).join("; "))))
    }

    /// Whether a ray shows that a side has no feasible point: one to the threshold that is a ray to nearly all bits, as
    /// it is, or when it is corrected and still inside its cone. Collective.
    fn infeasible(&self, at: &Begun<'_>) -> Result<Option<NoStep>> {
        let (site, threshold) = (&self.site, &self.options.infeasibility_threshold);
        if *threshold == 0 {
            return Ok(None);
        }
        for ray in Ray::both(site, at.quality, at.residuals, threshold)?.into_iter().flatten() {
            let place =
                SystemPoint { site: site.at(IterationStep::System), point: &at.state.point, factors: at.factors };
            let shown = if ray.is_shown(site.bits) { Some(ray) } else { ray.corrected(&place, at.residuals)? };
            if let Some(ray) = shown.filter(|ray| ray.is_shown(site.bits)) {
                return Ok(Some((ray.end, Some(ray.sentence(site.bits)))));
            }
        }
        Ok(None)
    }
}

/// A step that was taken.
struct TakenStep {
    point: Point,
    next_factors: Vec<ConeFactors>,
    mu: Float,
    off_centre: Option<Float>,
    steps: Sides<Float>,
    beta: Float,
    conditions: Conditions,
}

/// A point at which an iteration begins, and the data computed for it.
#[derive(Clone, Copy)]
struct Begun<'a> {
    state: &'a State,
    factors: &'a [ConeFactors],
    quality: &'a Quality,
    residuals: &'a Residuals,
    /// Iterations of this run before it.
    made: u64,
    /// Whether the time of the run is over.
    is_late: bool,
}

/// The state from which a later stage goes on.
fn raised(state: State, precision_bits: u32) -> StageEnd {
    StageEnd::Raise(Box::new(State { precision_bits, course: None, ..state }))
}

/// Adds the seconds that `work` takes to `seconds`.
fn timed<R>(seconds: &mut f64, work: impl FnOnce() -> Result<R>) -> Result<R> {
    let start = Instant::now();
    let result = work();
    *seconds += start.elapsed().as_secs_f64();
    result
}

/// A remark on a complementarity above its limit.
fn too_complementary(mu: &Float, options: &SolverOptions) -> String {
    let limit = &options.max_complementarity;
    format!(
        "Tr(X Y) divided by the number of rows is {mu:.2e}, above the limit {limit:.2e}; a program with large numbers, \
         or a large initial point, may need a higher limit"
    )
}

/// The reason why a step could not be taken.
type NoStep = (Termination, Option<String>);

impl Stage<'_> {
    fn step(
        &self,
        at: &Begun<'_>,
        scales: &Scales,
        phases: &mut PhaseSeconds,
    ) -> Result<std::result::Result<TakenStep, NoStep>> {
        let Begun { state, factors, quality, residuals, .. } = *at;
        let (site, options, point) = (&self.site, &self.options, &state.point);
        let k = site.arithmetic();
        let [sum] = self.site.complementarity([Sides { primal: point, dual: point }])?;
        let mu = Float::with_val(k.bits, &sum / site.share.total_rows as u32);
        if mu > options.max_complementarity {
            return Ok(Err((Termination::MaxComplementarityExceeded, Some(too_complementary(&mu, options)))));
        }
        let place = SystemPoint { site: site.at(IterationStep::System), point, factors };
        let system = match timed(&mut phases.schur, || System::new(&place))? {
            Ok(system) => system,
            Err(singular) => return Ok(Err((Termination::PrecisionTooLow, Some(self.too_low(singular))))),
        };
        let conditions = timed(&mut phases.schur, || conditions(&place, &system))?;
        let measured = options.measures_centre.then(|| timed(&mut phases.predictor, || off_centre(&place, &mu)));
        let off_centre = measured.transpose()?;
        let directions = timed(&mut phases.predictor, || Directions::new(&place, residuals, &system, &mu))?;
        let feasible = match options.ramp {
            true => ramp::are_near(options, scales, quality, state.reached_sides()).both(),
            false => self.is_feasible(quality).both(),
        };
        let beta = if feasible { Float::new(k.bits) } else { options.infeasible_centering_parameter.clone() };
        let centre = Float::with_val(k.bits, &beta * &mu);
        let predictor = timed(&mut phases.predictor, || directions.find(&centre, None))?;
        let beta = self.corrector_beta(point, &predictor, sum, &mu, feasible)?;
        let centre = Float::with_val(k.bits, &beta * &mu);
        let direction = timed(&mut phases.corrector, || directions.find(&centre, Some(&predictor)))?;
        // Both are large and not needed any more.
        drop((predictor, directions));
        drop(system);
        let eigenvalues = timed(&mut phases.step_length, || Eigenvalues::new(&place, residuals, &direction))?;
        let mut steps = Sides {
            primal: step_length(&eigenvalues.primal, &options.step_length_reduction),
            dual: step_length(&eigenvalues.dual, &options.step_length_reduction),
        };
        if feasible {
            let both = steps.primal.min(&steps.dual);
            steps = Sides { primal: both.clone(), dual: both };
        }
        for _ in 0..MOST_HALVINGS {
            let (next, factored) = timed(&mut phases.factors, || {
                let site = site.at(IterationStep::Next);
                let next =
                    point.moved(site.arithmetic(), &direction, Sides { primal: &steps.primal, dual: &steps.dual });
                let next = site.agreed(next)?;
                let factored = factor(&site, &next)?;
                Ok((next, factored))
            })?;
            match factored {
                Ok(next_factors) => {
                    let point = next;
                    return Ok(Ok(TakenStep { point, next_factors, mu, off_centre, steps, beta, conditions }));
                }
                Err((_, Side::Primal)) => steps.primal >>= 1u32,
                Err((_, Side::Dual)) => steps.dual >>= 1u32,
            }
        }
        let remark = format!("no step stays inside the cones at {} bits", site.bits);
        Ok(Err((Termination::PrecisionTooLow, Some(remark))))
    }

    /// The solution; where precision has ended the run, its best point and the precision that would suffice.
    fn finished(&self, course: Course, scales: &Scales, end: StageEnd) -> StageEnd {
        let StageEnd::Solution(mut solution) = end else { return end };
        let is_over = solution.termination == Termination::PrecisionTooLow;
        if !is_over && !self.is_stuck(&solution) {
            return StageEnd::Solution(solution);
        }
        let last = solution.quality.clone();
        let is_feasible = self.is_feasible(&last).both();
        let mut reasons = Vec::from_iter(solution.remark.take());
        if let Some((point, quality, better)) = course.better(scales, &last, is_feasible).filter(|_| is_over) {
            reasons.push(better);
            let (steps, outset) = (solution.steps.clone(), std::mem::take(&mut solution.outset));
            *solution = Solution { point, quality, remark: None, steps, course: None, outset, ..*solution };
        }
        let advice = Advice::new(self.options, self.site.bits, &solution.quality);
        reasons.push(advice.sentence);
        (solution.advised_bits, solution.remark) = (advice.bits, Some(reasons.join("; ")));
        StageEnd::Solution(solution)
    }

    /// Whether a run came to a limit because its gap is below the last bits of the objectives, where it stays.
    fn is_stuck(&self, solution: &Solution) -> bool {
        let quality = &solution.quality;
        let is_limit = [Termination::MaxIterationsExceeded, Termination::MaxRuntimeExceeded];
        self.later.is_none()
            && is_limit.contains(&solution.termination)
            && self.is_feasible(quality).both()
            && !ramp::is_below_threshold(self.site.bits, self.options, &quality.gap)
            && !ramp::shows(self.site.bits, &quality.gap)
    }

    fn too_low(&self, singular: Singular) -> String {
        let name = match singular {
            Singular::Schur(group) if self.site.share.callers_groups() > 1 => {
                format!("the Schur complement of block {group}")
            }
            Singular::Schur(_) => "the Schur complement".into(),
            Singular::Free => "the matrix Q".into(),
        };
        let bits = self.site.bits;
        format!("{name} is not positive definite at {bits} bits")
    }

    /// The reason why a run is over because more iterations would bring no improvement, or points have become worse.
    fn too_few_bits(&self, quality: &Quality, past: Option<Past>) -> Option<String> {
        let bits = self.site.bits;
        if self.is_feasible(quality).both() && ramp::hides(bits, self.options, &quality.gap) {
            return Some(format!("gaps below {:.2e} are not resolved at {bits} bits", ramp::least_gap(bits)));
        }
        past.map(|past| match past {
            Past::Rounding => format!("rounding errors at {bits} bits exceed the gap"),
            Past::Infeasible => {
                format!("after feasible points the last {PATIENCE} points are infeasible at {bits} bits")
            }
        })
    }

    /// The centring parameter of the corrector, from the complementarity that the predictor would leave, which is `a`,
    /// its mean `mu`.
    fn corrector_beta(&self, point: &Point, predictor: &Point, a: Float, mu: &Float, feasible: bool) -> Result<Float> {
        let (k, options) = (self.site.arithmetic(), &self.options);
        let points = [
            Sides { primal: point, dual: predictor },
            Sides { primal: predictor, dual: point },
            Sides { primal: predictor, dual: predictor },
        ];
        let [b, c, d] = self.site.complementarity(points)?;
        let r = ((a + b) + (c + d)) / Float::with_val(k.bits, mu * self.site.share.total_rows as u32);
        let beta = if r < 1 { Float::with_val(k.bits, r.square_ref()) } else { r };
        Ok(if feasible {
            beta.max(&options.feasible_centering_parameter).min(&Float::with_val(k.bits, 1))
        } else {
            beta.max(&options.infeasible_centering_parameter)
        })
    }
}
