//! The program that is solved, where it differs from the caller's, and the conversion of states and results between
//! both.
//!
//! It is without equations that follow from others, in units in which its numbers are near 1, and with its one-point
//! blocks combined. Points, objectives and sums of products of X and Y are the caller's outside of a run; gaps and
//! errors, which thresholds are compared with, are those of the program that is solved everywhere.

use crate::iterate::best::{Best, Course};
use crate::iterate::outcome::{Iteration, Solution, State};
use crate::iterate::point::{Cone, Point};
use crate::iterate::quality::Quality;
use crate::iterate::share::Share;
use crate::numbers::shift;
use crate::options::SolverOptions;
use crate::problem::{Dependent, Merged, Problem, Units};
use crate::ranks::Ranks;
use rug::Float;
use std::borrow::Cow;
use std::sync::Arc;
use sunzi::{Error, Result};

/// Bytes of a one-point block in lists of both programs, and of its matrices in two points in addition to their
/// numbers.
const SINGLE_BYTES: u64 = 768;

/// The transformation of the caller's program to the one that is solved; see the module.
#[derive(Debug, Default)]
pub struct Inside {
    dependent: Option<Dependent>,
    units: Option<Units>,
    /// For the program of all ranks at first, then for the part of this rank.
    merged: Option<Merged>,
}

impl Inside {
    /// The program that is solved in place of this one.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where equations contradict each other, or none is left; the errors of copies.
    pub fn of(problem: &Problem) -> Result<(Inside, Cow<'_, Problem>)> {
        let units = Units::of(problem);
        let mut inside = Cow::Borrowed(problem);
        if let Some(units) = &units {
            inside = Cow::Owned(units.applied(problem)?);
        }
        // Combinations of equations have factors near 1 in these units.
        let dependent = Dependent::of(&inside)?;
        let mut found = Inside { dependent, units, merged: None };
        if let Some(left_out) = &found.dependent {
            inside = Cow::Owned(left_out.applied(&inside)?);
            if inside.variables() == 0 {
                return Err(Error::InvalidArgument("all constraints are 0 = 0: there is nothing to optimise".into()));
            }
            found.units = found.units.map(|units| left_out.units(&units));
        }
        found.merged = Merged::of(&inside);
        if let Some(merged) = &found.merged {
            inside = Cow::Owned(merged.applied(&inside)?);
        }
        Ok((found, inside))
    }

    /// The distribution over the ranks of the program that is solved, and of the caller's program if it differs. From
    /// here on points are those of this rank.
    pub fn shares(&mut self, ranks: Ranks, inside: &Problem, caller: &Problem) -> (Share, Option<Share>) {
        let is_other = self.is_other();
        let share = Share::new(ranks, inside, self.merged.take());
        let callers = is_other.then(|| share.of_caller(caller));
        self.merged = callers.as_ref().and_then(|callers| share.merged_part(callers));
        (share, callers)
    }

    fn is_other(&self) -> bool {
        self.dependent.is_some() || self.units.is_some() || self.merged.is_some()
    }

    /// The options with bounds of its objectives.
    pub fn options(&self, mut options: SolverOptions) -> SolverOptions {
        for bound in [&mut options.lower_bound, &mut options.upper_bound].into_iter().flatten() {
            *bound = self.objective(bound);
        }
        options
    }

    /// Bytes of this program in addition to the caller's, and of the points of the caller that one iteration shows.
    pub fn bytes(&self, problem: &Problem) -> u64 {
        let singles = self.merged.as_ref().map_or(0, Merged::singles) as u64;
        let beside = SINGLE_BYTES * singles;
        if self.is_other() { problem.bytes() + 2 * problem.point_bytes() + beside } else { 0 }
    }

    /// The program in the caller's units.
    ///
    /// # Errors
    /// The errors of copies of matrices.
    pub fn in_own_units<'p>(&self, problem: &'p Problem) -> Result<Cow<'p, Problem>> {
        self.units.as_ref().map_or(Ok(Cow::Borrowed(problem)), |units| Ok(Cow::Owned(units.removed(problem)?)))
    }

    /// The solution of the caller as one of [`Inside::in_own_units`].
    ///
    /// # Errors
    /// The errors of copies of matrices.
    pub fn reduced<'s>(&self, solution: &'s Solution) -> Result<Cow<'s, Solution>> {
        if self.dependent.is_none() && self.merged.is_none() {
            return Ok(Cow::Borrowed(solution));
        }
        let mut solution = solution.clone();
        if let Some(dependent) = &self.dependent {
            shortened(dependent, &mut solution.point)?;
        }
        if let Some(merged) = &self.merged {
            joined(merged, &mut solution.point)?;
        }
        Ok(Cow::Owned(solution))
    }

    /// Remarks on it for the end of a run.
    pub fn sentences(&self) -> impl Iterator<Item = String> + '_ {
        let units = "thresholds, gap, errors and sizes refer to the program scaled to numbers near 1";
        let of_units = self.units.iter().map(|_| units.to_string());
        self.dependent.iter().map(Dependent::sentence).chain(of_units)
    }

    fn objective(&self, value: &Float) -> Float {
        self.units.as_ref().map_or_else(|| value.clone(), |units| units.objective(value))
    }

    fn own_objective(&self, value: &Float) -> Float {
        self.units.as_ref().map_or_else(|| value.clone(), |units| units.own_objective(value))
    }

    /// Turns a point of the caller into one of this program.
    ///
    /// # Errors
    /// The errors of copies of matrices.
    pub fn enter(&self, point: &mut Point, cones: &[Cone]) -> Result<()> {
        if let Some(dependent) = &self.dependent {
            shortened(dependent, point)?;
        }
        self.units.iter().for_each(|units| shifted(units, point, cones, 1));
        self.merged.as_ref().map_or(Ok(()), |merged| joined(merged, point))
    }

    /// Turns a point of this program into one of the caller.
    ///
    /// # Errors
    /// The errors of copies of matrices.
    pub fn leave(&self, point: &mut Point, cones: &[Cone]) -> Result<()> {
        if let Some(merged) = &self.merged {
            parted(merged, point)?;
        }
        self.units.iter().for_each(|units| shifted(units, point, cones, -1));
        let Some(dependent) = &self.dependent else { return Ok(()) };
        for x in &mut point.x {
            *x = dependent.lengthened(x, false)?;
        }
        point.y = dependent.lengthened(&point.y, true)?;
        Ok(())
    }

    /// Turns a state of the caller into one of this program.
    ///
    /// # Errors
    /// The errors of copies of matrices.
    pub fn enter_state(&self, state: &mut State, cones: &[Cone]) -> Result<()> {
        if !self.is_other() {
            return Ok(());
        }
        self.enter(&mut state.point, cones)?;
        changed(&mut state.course, |best| {
            quality(&mut best.quality, |value| self.objective(value));
            self.enter(&mut best.point, cones)
        })
    }

    /// A state as the caller has it.
    ///
    /// # Errors
    /// The errors of copies of matrices.
    pub fn own_state<'s>(&self, state: &'s State, cones: &[Cone]) -> Result<Cow<'s, State>> {
        if !self.is_other() {
            return Ok(Cow::Borrowed(state));
        }
        let mut state = state.clone();
        self.leave(&mut state.point, cones)?;
        self.leave_course(&mut state.course, cones)?;
        Ok(Cow::Owned(state))
    }

    fn leave_course(&self, course: &mut Option<Course>, cones: &[Cone]) -> Result<()> {
        changed(course, |best| {
            quality(&mut best.quality, |value| self.own_objective(value));
            self.leave(&mut best.point, cones)
        })
    }

    /// An iteration as the caller sees it.
    pub fn own_iteration<'i>(&self, iteration: &'i Iteration) -> Cow<'i, Iteration> {
        if self.units.is_none() {
            return Cow::Borrowed(iteration);
        }
        let mut iteration = iteration.clone();
        iteration.mu = self.own_objective(&iteration.mu);
        iteration.off_centre = iteration.off_centre.as_ref().map(|value| self.own_objective(value));
        quality(&mut iteration.quality, |value| self.own_objective(value));
        Cow::Owned(iteration)
    }

    /// A solution as the caller has it.
    ///
    /// # Errors
    /// The errors of copies of matrices.
    pub fn own_solution(&self, mut solution: Solution, cones: &[Cone]) -> Result<Solution> {
        if self.is_other() {
            self.leave(&mut solution.point, cones)?;
            quality(&mut solution.quality, |value| self.own_objective(value));
            self.leave_course(&mut solution.course, cones)?;
        }
        Ok(solution)
    }
}

/// Takes the variables of dependent equations out of a point.
fn shortened(dependent: &Dependent, point: &mut Point) -> Result<()> {
    for x in &mut point.x {
        *x = dependent.shortened(x, false)?;
    }
    point.y = dependent.shortened(&point.y, true)?;
    Ok(())
}

/// Puts the one-point blocks of a point together.
fn joined(merged: &Merged, point: &mut Point) -> Result<()> {
    point.x = merged.columns(std::mem::take(&mut point.x))?;
    point.primal = merged.diagonals(std::mem::take(&mut point.primal))?;
    point.dual = merged.diagonals(std::mem::take(&mut point.dual))?;
    Ok(())
}

/// Gives each one-point block of a point its own matrices.
fn parted(merged: &Merged, point: &mut Point) -> Result<()> {
    point.x = merged.own_columns(std::mem::take(&mut point.x))?;
    point.primal = merged.own_blocks(std::mem::take(&mut point.primal))?;
    point.dual = merged.own_blocks(std::mem::take(&mut point.dual))?;
    Ok(())
}

/// Brings a point into these units, or out of them where `sign` is -1.
fn shifted(units: &Units, point: &mut Point, cones: &[Cone], sign: i64) {
    point.x.iter_mut().for_each(|x| shift(x, |at, _| sign * units.of_x(at)));
    shift(&mut point.y, |at, _| sign * units.of_y(at));
    let both = point.primal.iter_mut().zip(&mut point.dual);
    for (cone, (primal, dual)) in cones.iter().zip(both) {
        shift(primal.stored_mut(), |at, _| sign * units.of_primal(cone.number, at));
        shift(dual.stored_mut(), |at, _| sign * units.of_dual(cone.number, at));
    }
}

fn quality(quality: &mut Quality, convert: impl Fn(&Float) -> Float) {
    quality.primal_objective = convert(&quality.primal_objective);
    quality.dual_objective = convert(&quality.dual_objective);
}

/// Changes the best point of a course.
fn changed(course: &mut Option<Course>, change: impl Fn(&mut Best) -> Result<()>) -> Result<()> {
    let Some(best) = course.as_mut().and_then(|course| course.best.as_mut()) else { return Ok(()) };
    let mut own = Best::clone(best);
    change(&mut own)?;
    *best = Arc::new(own);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Shape;
    use crate::iterate::{Solver, cones};
    use crate::problem::{Entry, SparseCone};
    use sunzi::{Context, Matrix};

    /// Points go in and out with the same bits, but for variables of equations that were left out.
    #[test]
    fn points_come_back_as_they_went_in() -> Result<()> {
        let entry =
            |row, col, value: f64, exponent: i32| Entry { row, col, value: Float::with_val(53, value) << exponent };
        let dense = SparseCone {
            shape: Shape::Dense(2),
            active: vec![0, 1, 2],
            entries: vec![vec![entry(0, 0, 1.0, 90)], vec![entry(0, 0, 3.0, 90)], vec![entry(1, 1, 1.0, 0)]],
            constant: vec![entry(1, 0, 1.0, -70)],
        };
        let diagonal = SparseCone {
            shape: Shape::Diagonal(2),
            active: vec![2],
            entries: vec![vec![entry(0, 0, 1.0, 5), entry(1, 1, -1.0, -90)]],
            constant: vec![entry(1, 1, -1.0, 0)],
        };
        let costs = Matrix::from_f64s(3, 1, 100, &[1.0, 3.0, 2.0])?;
        let problem = Problem::standard(100, costs, vec![dense, diagonal], None)?;
        let solver = Solver::new(Context::new()?, &problem, SolverOptions::new(problem.form))?;
        assert!(solver.inside.units.is_some() && solver.inside.sentences().count() == 2);
        let (begun, cones) = (solver.begin()?.point, cones(&problem));
        assert_eq!(begun.x[0].rows(), 3);
        let mut point = begun.clone();
        solver.inside.enter(&mut point, &cones)?;
        assert!(point.x[0].rows() == 2 && point.primal != begun.primal && point.dual != begun.dual);
        let scale = &solver.options.initial_matrix_scale_primal;
        assert!(point.primal.iter().all(|block| block.largest() == *scale));
        solver.inside.leave(&mut point, &cones)?;
        assert!(point == begun);
        Ok(())
    }
}
