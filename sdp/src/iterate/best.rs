//! The best point of a run, for programs whose last points are worse: without an interior, or at too low a precision.

use crate::iterate::point::Point;
use crate::iterate::quality::Quality;
use crate::iterate::site::Site;
use crate::iterate::sizes::{largest_constant, largest_costs};
use crate::numbers::largest;
use crate::options::SolverOptions;
use rug::Float;
use std::sync::Arc;
use sunzi::Result;

/// Bits of the numbers by which points are compared.
const SIZE_BITS: u32 = 64;

/// Iterations for which a run continues with points that are no longer feasible.
pub const PATIENCE: u64 = 15;

/// Iterations in a row that rounding makes worse, after which a run ends.
const WORSE: u64 = 5;

/// Bits by which an error lies above the least one where it counts as grown: without rounding none grows.
const GROWN_BITS: u32 = 10;

/// The sizes of a program's data, relative to which errors count, as the gap does relative to the objectives.
///
/// The gap is relative, and so are errors here: multiplying a program by a number changes no comparison. The thresholds
/// of SDPB's options refer to the absolute errors, and serve here only to decide which points are feasible.
#[derive(Clone, PartialEq, Debug)]
pub struct Scales {
    /// `1 + max(|C|, |b|)`.
    pub primal: Float,
    /// `1 + max |c|`.
    pub dual: Float,
}

impl Scales {
    /// The scales of a program. Collective.
    ///
    /// # Errors
    /// [`sunzi::Error::Transport`].
    pub fn new(site: &Site<'_>) -> Result<Scales> {
        let one = |size: &Float| Float::with_val(SIZE_BITS, size) + 1u32;
        let primal = largest_constant(site.problem, site.bits).max(&largest(&site.problem.objective));
        Ok(Scales { primal: one(&primal), dual: one(&largest_costs(site)?) })
    }

    /// The larger of both errors of a point, each relative to its data.
    fn error(&self, quality: &Quality) -> Float {
        let primal = Float::with_val(SIZE_BITS, quality.primal_error() / &self.primal);
        primal.max(&Float::with_val(SIZE_BITS, &quality.dual_error / &self.dual))
    }
}

/// The rank of a point: feasible points come first, by their gap, then the others, by the largest of gap and errors.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Merit {
    pub is_feasible: bool,
    pub size: Float,
}

impl Merit {
    fn of(scales: &Scales, quality: &Quality, is_feasible: bool) -> Merit {
        let gap = Float::with_val(SIZE_BITS, &quality.gap);
        Merit { is_feasible, size: if is_feasible { gap } else { gap.max(&scales.error(quality)) } }
    }

    fn is_better(&self, other: &Merit) -> bool {
        if self.is_feasible == other.is_feasible { self.size < other.size } else { self.is_feasible }
    }
}

/// A point, and when it was reached.
#[derive(Clone, Debug)]
pub(crate) struct Best {
    pub point: Point,
    pub quality: Quality,
    pub iterations: u64,
    pub merit: Merit,
}

/// The reason why no better points are expected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Past {
    /// Points have been infeasible for long, after feasible ones.
    Infeasible,
    /// Errors of rounding grow, and outweigh the gap.
    Rounding,
}

/// A record of earlier points.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Seen {
    /// The least of the largest of gap and errors.
    pub least_size: Float,
    pub least_error: Float,
    /// The error of the last one.
    pub error: Float,
}

/// The history of the points of a run at one precision, up to the point before that of its state: how they improved and
/// worsened.
///
/// A run that continues from a state with its history ends as the uninterrupted run would. A copy shares the best
/// point.
#[derive(Clone, Debug)]
pub struct Course {
    pub(crate) best: Option<Arc<Best>>,
    /// The last iteration with a feasible point.
    pub(crate) feasible: Option<u64>,
    pub(crate) seen: Option<Seen>,
    /// Iterations in a row that have made errors grow above the gap.
    pub(crate) worse: u64,
    /// The primal and dual errors from which on points counted as feasible.
    pub(crate) thresholds: [Float; 2],
}

impl Course {
    /// The course of a run with these options, which has no points yet.
    pub(crate) fn new(options: &SolverOptions) -> Course {
        let thresholds = [&options.primal_error_threshold, &options.dual_error_threshold];
        let thresholds = thresholds.map(|threshold| Float::with_val(SIZE_BITS, threshold));
        Course { best: None, feasible: None, seen: None, worse: 0, thresholds }
    }

    /// Whether it was made with the same thresholds of feasibility as in these options.
    pub(crate) fn is_of(&self, options: &SolverOptions) -> bool {
        self.thresholds == Course::new(options).thresholds
    }

    /// The course whose best point is of this quality.
    pub(crate) fn judged(mut self, scales: &Scales, quality: Quality, is_feasible: bool) -> Course {
        let merit = Merit::of(scales, &quality, is_feasible);
        // Where nothing changes, the point stays shared.
        if let Some(best) = self.best.take_if(|best| best.merit != merit || best.quality != quality) {
            self.best = Some(Arc::new(Best { quality, merit, ..Arc::unwrap_or_clone(best) }));
        }
        self
    }

    /// Takes notice of the next point.
    pub(crate) fn see(&mut self, scales: &Scales, quality: &Quality, is_feasible: bool, iterations: u64) {
        if is_feasible {
            self.feasible = Some(iterations);
        }
        let (error, size) = (scales.error(quality), Merit::of(scales, quality, false).size);
        let is_worse = |seen: &Seen| {
            let has_grown = error > Float::with_val(SIZE_BITS, &seen.least_error) << GROWN_BITS;
            has_grown && error > seen.error && size >= seen.least_size && error > quality.gap
        };
        let is_worse = !is_feasible && self.seen.as_ref().is_some_and(is_worse);
        self.worse = if is_worse { self.worse + 1 } else { 0 };
        let least = |before: Option<Float>, next: Float| match before {
            Some(before) if before < next => before,
            _ => next,
        };
        let before = self.seen.take();
        let (least_size, least_error) = before.map(|seen| (seen.least_size, seen.least_error)).unzip();
        self.seen =
            Some(Seen { least_size: least(least_size, size), least_error: least(least_error, error.clone()), error });
    }

    /// Keeps a point that was left where it is the best so far.
    pub(crate) fn leave(
        &mut self,
        scales: &Scales,
        point: Point,
        quality: &Quality,
        is_feasible: bool,
        iterations: u64,
    ) {
        let merit = Merit::of(scales, quality, is_feasible);
        if self.best.as_ref().is_none_or(|best| merit.is_better(&best.merit)) {
            self.best = Some(Arc::new(Best { point, quality: quality.clone(), iterations, merit }));
        }
    }

    /// Whether better points are not to be expected after `iterations` iterations.
    pub(crate) fn past(&self, iterations: u64) -> Option<Past> {
        if self.worse >= WORSE {
            return Some(Past::Rounding);
        }
        self.feasible.is_some_and(|feasible| iterations >= feasible + PATIENCE).then_some(Past::Infeasible)
    }

    /// The best point that was left, its quality and a sentence, where it is better than one of this quality.
    pub(crate) fn better(
        self,
        scales: &Scales,
        quality: &Quality,
        is_feasible: bool,
    ) -> Option<(Point, Quality, String)> {
        let last = Merit::of(scales, quality, is_feasible);
        let best = self.best.filter(|best| best.merit.is_better(&last))?;
        let best = Arc::unwrap_or_clone(best);
        let remark = format!("the solution is the point after {} iterations; later points are worse", best.iterations);
        Some((best.point, best.quality, remark))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sunzi::Matrix;

    fn quality(gap: f64, primal: f64, dual: f64) -> Quality {
        let number = |value: f64| Float::with_val(64, value);
        Quality {
            primal_objective: number(1.0),
            dual_objective: number(1.0),
            gap: Float::with_val(256, gap),
            primal_matrix_error: number(primal),
            primal_free_error: number(0.0),
            dual_error: number(dual),
        }
    }

    fn scales() -> Scales {
        Scales { primal: Float::with_val(64, 1), dual: Float::with_val(64, 1) }
    }

    fn course() -> Course {
        Course::new(&SolverOptions::new(crate::problem::Form::Sdpa))
    }

    /// Errors count relative to the data, as the gap does relative to the objectives.
    #[test]
    fn sizes_of_the_data_change_no_comparison() {
        let merit = |scale: f64, gap: f64, error: f64| {
            let scales = Scales { primal: Float::with_val(64, scale), dual: Float::with_val(64, scale) };
            Merit::of(&scales, &quality(gap, 0.0, error * scale), false)
        };
        assert_eq!(merit(1024.0, 1e-10, 1e-6), merit(1.0, 1e-10, 1e-6));
        assert!(merit(1024.0, 1e-3, 1e-6).is_better(&merit(1.0, 2e-3, 1e-6)));
        let scales = Scales { primal: Float::with_val(64, 4), dual: Float::with_val(64, 2) };
        assert_eq!(scales.error(&quality(0.0, 4.0, 3.0)), 1.5);
        assert_eq!(scales.error(&quality(0.0, 8.0, 3.0)), 2.0);
    }

    /// A point that is recognised by its y.
    fn point(mark: f64) -> Point {
        let y = Matrix::from_f64s(1, 1, 64, &[mark]).unwrap();
        Point { x: Vec::new(), primal: Vec::new(), y, dual: Vec::new() }
    }

    /// The verdict of a course after points of these gaps and dual errors, which are feasible where `feasible`.
    fn past(points: &[(f64, f64)], feasible: bool) -> Option<Past> {
        let mut course = course();
        for (at, &(gap, error)) in (0..).zip(points) {
            course.see(&scales(), &quality(gap, 0.0, error), feasible, at);
        }
        course.past(points.len() as u64 - 1)
    }

    #[test]
    fn errors_that_grow_above_the_gap_end_a_run_after_five_iterations() {
        let points = |last: usize, error: &dyn Fn(i32) -> f64| {
            let fallen = [(1.0, 1e-6), (1e-9, 1e-20)];
            fallen.into_iter().chain((0..last as i32).map(|at| (1e-10, error(at)))).collect::<Vec<_>>()
        };
        let grown = |at| 1e-8 * 10f64.powi(at);
        assert_eq!(past(&points(5, &grown), false), Some(Past::Rounding));
        assert_eq!(past(&points(4, &grown), false), None);
        assert_eq!(past(&points(5, &grown), true), None, "feasible points do not count");
        assert_eq!(past(&points(9, &|at| 1e-15 * 10f64.powi(at / 2)), false), None, "errors below the gap");
        assert_eq!(past(&points(9, &|_| 1e-8), false), None, "an error that stays");
        assert_eq!(
            past(&points(9, &|at| if at == 4 { 1e-9 } else { grown(at) }), false),
            None,
            "one that falls between"
        );
        let near = [(1e-30, 1e-12), (1e-30, 1.5e-12), (1e-30, 2e-12), (1e-30, 3e-12), (1e-30, 4e-12), (1e-30, 5e-12)];
        assert_eq!(past(&[&near[..], &[(1e-30, 6e-12)]].concat(), false), None, "near the least error");
        // The first of the points whose errors grow is still the best one.
        let later = |last: i32| [(1.0, 1e-20)].into_iter().chain((0..last).map(|at| (1e-10, 1e-9 * 10f64.powi(at))));
        assert_eq!(past(&later(5).collect::<Vec<_>>(), false), None);
        assert_eq!(past(&later(6).collect::<Vec<_>>(), false), Some(Past::Rounding));
        // Half of the gap, and above it, after a point that was better.
        let above =
            |share: f64| (0..7).map(|at| (1e-4, share * 1e-4 * (1.0 + f64::from(at) / 64.0))).collect::<Vec<_>>();
        let first = [(1e-5, 1e-20)];
        assert_eq!(past(&[&first[..], &above(0.5)].concat(), false), None);
        assert_eq!(past(&[&first[..], &above(2.0)].concat(), false), Some(Past::Rounding));
    }

    #[test]
    fn points_that_were_feasible_are_waited_for() {
        let mut course = course();
        course.see(&scales(), &quality(1e-3, 0.0, 0.0), true, 7);
        course.see(&scales(), &quality(1e-3, 1.0, 0.0), false, 8);
        assert_eq!((course.past(7 + PATIENCE - 1), course.past(7 + PATIENCE)), (None, Some(Past::Infeasible)));
    }

    #[test]
    fn the_best_point_is_a_feasible_one_before_all_others() {
        let left = [(1e-5, 1e-3, false), (1e-2, 1e-4, false), (1e-3, 1e-6, false), (1e-3, 1e-2, false)];
        let course = |left: &[(f64, f64, bool)]| {
            let mut course = course();
            for (at, &(gap, error, is_feasible)) in (0..).zip(left) {
                let quality = quality(gap, error / 2.0, error);
                course.leave(&scales(), point(at as f64), &quality, is_feasible, at);
            }
            course
        };
        let better = |left: &[(f64, f64, bool)], last: (f64, f64, bool)| {
            let found = course(left).better(&scales(), &quality(last.0, 0.0, last.1), last.2);
            found.map(|(point, quality, remark)| {
                assert!(remark.contains(&format!("after {} iterations", point.y.float(0, 0).to_f64())), "{remark}");
                (point.y.float(0, 0).to_f64(), quality.gap.to_f64())
            })
        };
        // The least of the larger of gap and error is that of the first and of the third, which is not better.
        assert_eq!(better(&left, (1.0, 1.0, false)), Some((0.0, 1e-5)));
        assert_eq!(better(&left, (1e-4, 1e-4, false)), None);
        assert_eq!(better(&left, (1.0, 0.0, true)), None);
        let feasible = [&left[..], &[(0.5, 0.1, true), (0.25, 0.2, true), (0.75, 0.1, true)]].concat();
        assert_eq!(better(&feasible, (1e-9, 1e-9, false)), Some((5.0, 0.25)));
        assert_eq!(better(&feasible, (0.25, 0.1, true)), None);
        assert_eq!(better(&[], (1.0, 1.0, false)), None);
    }
}
