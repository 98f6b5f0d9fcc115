//! States and results of a run between the units of its program and those of the caller.
//!
//! Points, objectives and sums of products of X and Y are the caller's outside of a run; gaps and errors, which
//! thresholds are compared with, are those of the program that is solved everywhere.

use crate::iterate::best::{Best, Course};
use crate::iterate::outcome::{Iteration, Quality, Solution, State};
use crate::iterate::point::Cone;
use crate::problem::Units;
use rug::Float;
use std::sync::Arc;

fn quality(quality: &mut Quality, convert: impl Fn(&Float) -> Float) {
    quality.primal_objective = convert(&quality.primal_objective);
    quality.dual_objective = convert(&quality.dual_objective);
}

/// A course whose best point is changed.
fn course(course: Course, change: impl Fn(&mut Best)) -> Course {
    let best = course.best.map(|best| {
        let mut best = Arc::unwrap_or_clone(best);
        change(&mut best);
        Arc::new(best)
    });
    Course { best, ..course }
}

/// Brings a state of the caller into the units of the program.
pub fn apply(units: &Units, state: &mut State, cones: &[Cone]) {
    units.apply(&mut state.point, cones);
    state.course = state.course.take().map(|known| {
        course(known, |best| {
            units.apply(&mut best.point, cones);
            quality(&mut best.quality, |value| units.objective(value));
        })
    });
}

fn own_course(units: &Units, known: Course, cones: &[Cone]) -> Course {
    course(known, |best| {
        units.remove(&mut best.point, cones);
        quality(&mut best.quality, |value| units.own_objective(value));
    })
}

/// A state as the caller has it.
pub fn removed(units: &Units, state: &State, cones: &[Cone]) -> State {
    let mut state = state.clone();
    units.remove(&mut state.point, cones);
    state.course = state.course.take().map(|known| own_course(units, known, cones));
    state
}

/// An iteration as the caller sees it.
pub fn iteration(units: &Units, iteration: &Iteration) -> Iteration {
    let mut iteration = iteration.clone();
    iteration.mu = units.own_objective(&iteration.mu);
    iteration.off_centre = iteration.off_centre.as_ref().map(|value| units.own_objective(value));
    quality(&mut iteration.quality, |value| units.own_objective(value));
    iteration
}

/// A solution as the caller has it.
pub fn solution(units: &Units, mut solution: Solution, cones: &[Cone]) -> Solution {
    units.remove(&mut solution.point, cones);
    quality(&mut solution.quality, |value| units.own_objective(value));
    solution.course = solution.course.take().map(|known| own_course(units, known, cones));
    solution
}
