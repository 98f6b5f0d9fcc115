//! The iterations at one precision.

use crate::block::Block;
use crate::iterate::advice::Advice;
use crate::iterate::best::{Course, Past, Scales};
use crate::iterate::centre::off_centre;
use crate::iterate::condition::{Conditions, conditions};
use crate::iterate::direction::Directions;
use crate::iterate::factors::{ConeFactors, Side, factor};
use crate::iterate::memory::Step as Moment;
use crate::iterate::outcome::{Iteration, PhaseSeconds, Quality, Solution, State, Termination};
use crate::iterate::point::{Cone, Point};
use crate::iterate::residuals::{Objectives, Residuals};
use crate::iterate::site::Site;
use crate::iterate::step::{Eigenvalues, step_length};
use crate::iterate::system::{Place, Singular, System};
use crate::iterate::{Control, ramp};
use crate::numbers::largest;
use crate::options::SolverOptions;
use rug::Float;
use std::time::Instant;
use sunzi::{Error, Result};

/// How often a step is halved where rounding puts its end outside.
const MOST_HALVINGS: u32 = 20;

/// A program at one precision. All methods are collective but those that only compare.
pub struct Stage<'s> {
    /// The program, the ranks and threads.
    pub site: Site<'s>,
    /// What decides when it ends.
    pub options: &'s SolverOptions,
    /// The precision at which to go on where this one is not enough; the last one ends runs.
    pub next_bits: Option<u32>,
}

/// How a stage ended.
pub enum StageEnd {
    /// The run ends as well.
    Solution(Box<Solution>),
    /// The precision is not enough: another stage goes on.
    Raise(Box<State>),
}

/// What all stages of a run have in common.
pub struct Run<'w> {
    /// When it began.
    pub start: Instant,
    /// Iterations that earlier runs had made: limits are those of each run, as in SDPB.
    pub earlier: u64,
    /// What its time was spent on.
    pub phases: PhaseSeconds,
    /// Who sees iterations.
    pub watch: &'w mut dyn FnMut(&Iteration, &State) -> Result<Control>,
}

/// What an iteration needs of its point.
struct Evaluation {
    residuals: Residuals,
    quality: Quality,
}

impl Stage<'_> {
    /// Iterates until a test ends the run, or the precision is not enough.
    ///
    /// # Errors
    /// Those of [`super::Solver::run`].
    pub fn run(&self, mut state: State, run: &mut Run<'_>) -> Result<StageEnd> {
        let scales = Scales::new(&self.site)?;
        // What was feasible under other thresholds says nothing here.
        let known = state.course.take().filter(|course| course.is_of(self.options));
        let known = known.map(|course| self.judged(&scales, course)).transpose()?;
        let mut course = known.unwrap_or_else(|| Course::new(self.options));
        let mut factors = match factor(&self.site, &state.point)? {
            Ok(factors) => factors,
            Err((at, side)) => return Err(self.not_inside("first", at, side)),
        };
        let mut evaluation = timed(&mut run.phases.residuals, || self.evaluate(&state.point))?;
        loop {
            let begun = Instant::now();
            let Evaluation { residuals, quality } = evaluation;
            let is_late = self.site.share.ranks.root_says(run.start.elapsed().as_secs() >= self.options.max_runtime)?;
            let is_feasible = self.is_feasible(&quality) == (true, true);
            // A run that goes on from here sees this point again.
            state.course = Some(course.clone());
            course.see(&scales, &quality, is_feasible, state.iterations);
            let made = state.iterations - run.earlier;
            if let Some(termination) = self.termination(&state, &quality, &residuals, (made, is_late))? {
                return Ok(self.finished((course, &scales), self.end(run, state, quality, (termination, None))));
            }
            if let Some(remark) = self.too_few_bits(&quality, course.past(state.iterations)) {
                let why = self.with_ray((Termination::PrecisionTooLow, remark), &quality, &residuals)?;
                return Ok(self.finished((course, &scales), self.end(run, state, quality, why)));
            }
            let at = Begun { state: &state, factors: &factors, quality: &quality, residuals: &residuals };
            let stepped = self.step((&at, &scales), &mut run.phases)?;
            let Step { point, next_factors, mu, off_centre, steps, beta, conditions } = match stepped {
                Ok(step) => step,
                Err(why) => {
                    let why = self.with_ray(why, &quality, &residuals)?;
                    return Ok(self.finished((course, &scales), self.end(run, state, quality, why)));
                }
            };
            evaluation = timed(&mut run.phases.residuals, || self.evaluate(&point))?;
            let is_enough = ramp::is_enough((self.options, &scales), &quality, &steps, &evaluation.quality)
                && ramp::shows(self.site.bits, &evaluation.quality.gap);
            let precision_bits = if is_enough { self.site.bits } else { self.next_bits.unwrap_or(self.site.bits) };
            let iteration = Iteration {
                number: state.iterations + 1,
                seconds: (run.start.elapsed().as_secs_f64(), begun.elapsed().as_secs_f64()),
                precision_bits: self.site.bits,
                mu,
                off_centre,
                quality,
                primal_step: steps.0.clone(),
                dual_step: steps.1.clone(),
                beta,
                conditions,
            };
            let (iterations, mut outset) = (iteration.number, std::mem::take(&mut state.outset));
            outset.see(iterations, &iteration.mu, &steps);
            let next = State { point, iterations, steps, precision_bits, course: None, outset, is_ended: false };
            let State { point, iterations, .. } = std::mem::replace(&mut state, next);
            course.leave(&scales, point, (&iteration.quality, is_feasible, iterations));
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

    /// The end of a run; before the last stage only what does not hang on the precision ends it.
    fn end(&self, run: &Run<'_>, state: State, quality: Quality, (termination, remark): NoStep) -> StageEnd {
        let is_final = matches!(termination, Termination::Stopped | Termination::MaxRuntimeExceeded);
        if let Some(precision_bits) = self.next_bits.filter(|_| !is_final) {
            return StageEnd::Raise(Box::new(State { precision_bits, course: None, ..state }));
        }
        // Other ends are ends, and a point that is the best one has no use behind them. A break before the first step
        // leaves what was there.
        let is_ended = !termination.is_break() || state.is_ended;
        StageEnd::Solution(Box::new(Solution {
            termination,
            point: state.point,
            quality,
            iterations: state.iterations,
            steps: state.steps,
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

    /// The course with what its best point comes to: a file may say anything of it. Collective.
    fn judged(&self, scales: &Scales, course: Course) -> Result<Course> {
        let Some(best) = &course.best else { return Ok(course) };
        if let Err((at, side)) = factor(&self.site, &best.point)? {
            return Err(self.not_inside("best", at, side));
        }
        let quality = self.evaluate(&best.point)?.quality;
        let is_feasible = self.is_feasible(&quality) == (true, true);
        Ok(course.judged(scales, quality, is_feasible))
    }

    fn not_inside(&self, name_of_point: &str, at: usize, side: Side) -> Error {
        let Cone { group, number, .. } = self.site.share.all[at];
        let name = if side == Side::Primal { "X" } else { "Y" };
        Error::InvalidArgument(format!(
            "block {number} of group {group} of {name} is not positive definite at the {name_of_point} point (counted \
             from 0)"
        ))
    }

    fn evaluate(&self, point: &Point) -> Result<Evaluation> {
        let site = &self.site.at(Moment::Residuals);
        let residuals = Residuals::new(site, point)?;
        let objectives = Objectives::new(site, point)?;
        let [primal_matrix_error, dual_error] = residuals.errors(site)?;
        let quality = Quality {
            gap: objectives.gap(site.problem.form),
            primal_objective: objectives.primal,
            dual_objective: objectives.dual,
            primal_matrix_error,
            primal_free_error: residuals.primal_free_error(),
            dual_error,
        };
        Ok(Evaluation { residuals, quality })
    }

    fn is_feasible(&self, quality: &Quality) -> (bool, bool) {
        let primal = *quality.primal_error() < self.options.primal_error_threshold;
        (primal, quality.dual_error < self.options.dual_error_threshold)
    }

    /// SDPB's tests, in its order; then whether a ray shows that there is nothing to find.
    fn termination(
        &self,
        state: &State,
        quality: &Quality,
        residuals: &Residuals,
        (made, is_late): (u64, bool),
    ) -> Result<Option<Termination>> {
        let options = &self.options;
        let (primal, dual) = self.is_feasible(quality);
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
        if let Some((_, termination)) = tests.into_iter().find(|(holds, _)| *holds) {
            return Ok(Some(termination));
        }
        self.ray(quality, residuals, &options.infeasibility_threshold)
    }

    /// Why precision ends a run, and what a ray shows to half of its bits of a side that is not feasible: how large its
    /// points would have to be. No verdict, as there are programs whose solutions are that large. Collective.
    fn with_ray(&self, why: NoStep, quality: &Quality, residuals: &Residuals) -> Result<NoStep> {
        if why.0 != Termination::PrecisionTooLow || self.next_bits.is_some() {
            return Ok(why);
        }
        let half = self.site.bits / 2;
        let found = self.ray(quality, residuals, &(Float::with_val(64, 1) >> half))?;
        let (primal, dual) = self.is_feasible(quality);
        let (end, names) = match found {
            Some(end @ Termination::PrimalInfeasible) if !primal => (end, "x"),
            Some(end @ Termination::DualInfeasible) if !dual => (end, "Y and y"),
            _ => return Ok(why),
        };
        let sentence = format!(
            "the program may be {end}: by a ray the magnitudes of a feasible {names} have a sum above 2^{half}, as far \
             as {} bits tell",
            self.site.bits
        );
        Ok((why.0, Some(Vec::from_iter(why.1.into_iter().chain([sentence])).join("; "))))
    }

    /// Whether a point that has moved far shows a ray: `A*(Y) + B y` small beside `C . Y + b^T y > 0`, or
    /// `A(x)` nowhere below 0 by much and `B^T x` small beside `c^T x < 0`.
    fn ray(&self, quality: &Quality, residuals: &Residuals, threshold: &Float) -> Result<Option<Termination>> {
        if *threshold == 0 {
            return Ok(None);
        }
        let Site { problem, cones, share, bits, .. } = self.site;
        let k = self.site.arithmetic();
        let dual = Float::with_val(bits, &quality.dual_objective - &problem.constant);
        // All ranks know the objectives.
        if dual > 0 {
            let limit = Float::with_val(bits, &dual * threshold);
            let of_groups = problem.groups.iter().zip(&residuals.dual);
            let off = of_groups.map(|(group, d)| Ok(largest(&k.difference(&group.costs, d)?)));
            let [off] = share.ranks.largest(bits, most(&limit, off))?;
            if off < limit {
                return Ok(Some(Termination::PrimalInfeasible));
            }
        }
        let primal = Float::with_val(bits, &problem.constant - &quality.primal_objective);
        if primal <= 0 {
            return Ok(None);
        }
        let limit = Float::with_val(bits, &primal * threshold);
        let free = largest(&self.site.agreed(k.difference(&problem.objective, &residuals.free))?);
        if free >= limit {
            return Ok(None);
        }
        let of_cones = cones.iter().zip(&residuals.primal).map(|(cone, rest)| {
            // A(x) = X + (P + C), of which X is positive definite.
            let constraints = &problem.groups[cone.group].constraints;
            let minus = Block::scaled_identity(cone.shape, &Float::new(bits), bits)?;
            let constant = constraints.less_constant(cone.number, minus)?;
            Ok(rest.plus(k, &Float::with_val(2, -1), &constant)?.largest())
        });
        let [off] = share.ranks.largest(bits, most(&limit, of_cones))?;
        Ok((off < limit).then_some(Termination::DualInfeasible))
    }
}

/// The largest of some numbers, as far as it is below `limit`; else one that is not: those behind it are not asked for.
fn most(limit: &Float, numbers: impl Iterator<Item = Result<Float>>) -> Result<[Float; 1]> {
    let mut most = Float::new(limit.prec());
    for number in numbers {
        most = most.max(&number?);
        if most >= *limit {
            break;
        }
    }
    Ok([most])
}

/// A step that was taken.
struct Step {
    point: Point,
    next_factors: Vec<ConeFactors>,
    mu: Float,
    off_centre: Option<Float>,
    steps: (Float, Float),
    beta: Float,
    conditions: Conditions,
}

/// A point at which an iteration begins, and what is known of it.
#[derive(Clone, Copy)]
struct Begun<'a> {
    state: &'a State,
    factors: &'a [ConeFactors],
    quality: &'a Quality,
    residuals: &'a Residuals,
}

/// Adds the seconds that `work` takes to `seconds`.
fn timed<R>(seconds: &mut f64, work: impl FnOnce() -> Result<R>) -> Result<R> {
    let start = Instant::now();
    let result = work();
    *seconds += start.elapsed().as_secs_f64();
    result
}

/// Why a step could not be taken.
type NoStep = (Termination, Option<String>);

impl Stage<'_> {
    fn step(
        &self,
        (at, scales): (&Begun<'_>, &Scales),
        phases: &mut PhaseSeconds,
    ) -> Result<std::result::Result<Step, NoStep>> {
        let Begun { state, factors, quality, residuals } = *at;
        let (site, options, point) = (&self.site, &self.options, &state.point);
        let k = site.arithmetic();
        let [sum] = self.site.complementarity([(point, point)])?;
        let mu = Float::with_val(k.bits, &sum / site.share.total_rows as u32);
        if mu > options.max_complementarity {
            return Ok(Err((Termination::MaxComplementarityExceeded, None)));
        }
        let place = Place { site: site.at(Moment::System), point, factors };
        let system = match timed(&mut phases.schur, || System::new(&place))? {
            Ok(system) => system,
            Err(singular) => return Ok(Err((Termination::PrecisionTooLow, Some(self.too_low(singular))))),
        };
        let conditions = timed(&mut phases.schur, || conditions(&place, &system))?;
        let measured = options.measures_centre.then(|| timed(&mut phases.predictor, || off_centre(&place, &mu)));
        let off_centre = measured.transpose()?;
        let directions = timed(&mut phases.predictor, || Directions::new(&place, (residuals, &system), &mu))?;
        let feasible = match options.ramp {
            true => ramp::is_near(options, scales, quality),
            false => self.is_feasible(quality) == (true, true),
        };
        let beta = if feasible { Float::new(k.bits) } else { options.infeasible_centering_parameter.clone() };
        let centre = Float::with_val(k.bits, &beta * &mu);
        let predictor = timed(&mut phases.predictor, || directions.find(&centre, None))?;
        let beta = self.corrector_beta((point, &predictor), (sum, &mu), feasible)?;
        let centre = Float::with_val(k.bits, &beta * &mu);
        let direction = timed(&mut phases.corrector, || directions.find(&centre, Some(&predictor)))?;
        // Both are large, and what comes needs neither.
        drop((predictor, directions));
        drop(system);
        let eigenvalues = timed(&mut phases.step_length, || Eigenvalues::new(&place, residuals, &direction))?;
        let mut primal_step = step_length(&eigenvalues.primal, &options.step_length_reduction);
        let mut dual_step = step_length(&eigenvalues.dual, &options.step_length_reduction);
        if feasible {
            let both = primal_step.min(&dual_step);
            (primal_step, dual_step) = (both.clone(), both);
        }
        for _ in 0..MOST_HALVINGS {
            let (next, factored) = timed(&mut phases.factors, || {
                let site = site.at(Moment::Next);
                let next = point.moved(site.arithmetic(), &direction, (&primal_step, &dual_step));
                let next = site.agreed(next)?;
                let factored = factor(&site, &next)?;
                Ok((next, factored))
            })?;
            match factored {
                Ok(next_factors) => {
                    let steps = (primal_step, dual_step);
                    let point = next;
                    return Ok(Ok(Step { point, next_factors, mu, off_centre, steps, beta, conditions }));
                }
                Err((_, Side::Primal)) => primal_step >>= 1u32,
                Err((_, Side::Dual)) => dual_step >>= 1u32,
            }
        }
        let remark = format!("no step stays inside at {} bits", site.bits);
        Ok(Err((Termination::PrecisionTooLow, Some(remark))))
    }

    /// The solution; where precision has ended the run the best point of it, and what precision would do.
    fn finished(&self, (course, scales): (Course, &Scales), end: StageEnd) -> StageEnd {
        let StageEnd::Solution(mut solution) = end else { return end };
        let is_over = solution.termination == Termination::PrecisionTooLow;
        if !is_over && !self.is_stuck(&solution) {
            return StageEnd::Solution(solution);
        }
        let last = solution.quality.clone();
        let is_feasible = self.is_feasible(&last) == (true, true);
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
        self.next_bits.is_none()
            && is_limit.contains(&solution.termination)
            && self.is_feasible(quality) == (true, true)
            && !ramp::is_below_threshold(self.site.bits, self.options, &quality.gap)
            && !ramp::shows(self.site.bits, &quality.gap)
    }

    fn too_low(&self, singular: Singular) -> String {
        let name = match singular {
            Singular::Schur(group) if self.site.share.group_owners.len() > 1 => {
                format!("the Schur complement of block {group}")
            }
            Singular::Schur(_) => "the Schur complement".into(),
            Singular::Free => "the matrix Q".into(),
        };
        let bits = self.site.bits;
        format!("{name} is not positive definite at {bits} bits")
    }

    /// Whether a run is over because more iterations would show no more, or points have become worse; and what there is
    /// to say of it.
    fn too_few_bits(&self, quality: &Quality, past: Option<Past>) -> Option<Option<String>> {
        let bits = self.site.bits;
        if self.is_feasible(quality) == (true, true) && ramp::hides(bits, self.options, &quality.gap) {
            return Some(Some(format!("gaps below {:.2e} do not show at {bits} bits", ramp::least_gap(bits))));
        }
        let outweighed = || format!("errors of rounding at {bits} bits outweigh the gap");
        past.map(|past| (past == Past::Rounding).then(outweighed))
    }

    /// The centring parameter of the corrector, from what the predictor would leave of the complementarity, which is
    /// `a`, its mean `mu`.
    fn corrector_beta(
        &self,
        (point, predictor): (&Point, &Point),
        (a, mu): (Float, &Float),
        feasible: bool,
    ) -> Result<Float> {
        let (k, options) = (self.site.arithmetic(), &self.options);
        let pairs = [(point, predictor), (predictor, point), (predictor, predictor)];
        let [b, c, d] = self.site.complementarity(pairs)?;
        let r = ((a + b) + (c + d)) / Float::with_val(k.bits, mu * self.site.share.total_rows as u32);
        let beta = if r < 1 { Float::with_val(k.bits, r.square_ref()) } else { r };
        Ok(if feasible {
            beta.max(&options.feasible_centering_parameter).min(&Float::with_val(k.bits, 1))
        } else {
            beta.max(&options.infeasible_centering_parameter)
        })
    }
}
