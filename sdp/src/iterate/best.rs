//! The best point of a run, for programs whose last points are worse: without an interior, or at too low a precision.

use crate::iterate::outcome::Quality;
use crate::iterate::point::Point;
use rug::Float;

/// Iterations for which a run goes on with points that are no longer feasible.
const PATIENCE: u64 = 15;

/// Iterations in a row that rounding makes worse, after which a run ends.
const WORSE: u64 = 5;

/// Bits by which an error lies above the least one where it counts as grown: without rounding none grows.
const GROWN_BITS: u32 = 10;

/// How good a point is: feasible ones come first, by their gap, then the others, by the largest of gap and errors.
#[derive(Clone, PartialEq, Debug)]
struct Merit {
    is_feasible: bool,
    size: Float,
}

impl Merit {
    fn of(quality: &Quality, is_feasible: bool) -> Merit {
        let is_of_gap = is_feasible || quality.gap > *error(quality);
        Merit { is_feasible, size: if is_of_gap { quality.gap.clone() } else { error(quality).clone() } }
    }

    fn is_better(&self, other: &Merit) -> bool {
        if self.is_feasible == other.is_feasible { self.size < other.size } else { self.is_feasible }
    }
}

/// The largest error of a point.
fn error(quality: &Quality) -> &Float {
    let (primal, dual) = (quality.primal_error(), &quality.dual_error);
    if primal > dual { primal } else { dual }
}

/// A point, and when it was reached.
struct Best {
    point: Point,
    quality: Quality,
    iterations: u64,
    merit: Merit,
}

/// Why better points are not to come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Past {
    /// Points have been infeasible for long, after feasible ones.
    Infeasible,
    /// Errors of rounding grow, and outweigh the gap.
    Rounding,
}

/// What is known of earlier points.
struct Seen {
    /// The least of the largest of gap and errors.
    least_size: Float,
    least_error: Float,
    /// That of the last one.
    error: Float,
}

/// How the points of a stage have become better and worse.
#[derive(Default)]
pub struct Course {
    best: Option<Best>,
    /// When a point was feasible last.
    feasible: Option<u64>,
    seen: Option<Seen>,
    /// Iterations in a row that have made errors grow above the gap.
    worse: u64,
}

impl Course {
    /// Takes notice of the next point.
    pub fn see(&mut self, quality: &Quality, is_feasible: bool, iterations: u64) {
        if is_feasible {
            self.feasible = Some(iterations);
        }
        let (error, size) = (error(quality), Merit::of(quality, false).size);
        let is_worse = |seen: &Seen| {
            let has_grown = *error > Float::with_val(64, &seen.least_error) << GROWN_BITS;
            has_grown && *error > seen.error && size >= seen.least_size && *error > quality.gap
        };
        let is_worse = !is_feasible && self.seen.as_ref().is_some_and(is_worse);
        self.worse = if is_worse { self.worse + 1 } else { 0 };
        let least = |before: Option<Float>, next: Float| match before {
            Some(before) if before < next => before,
            _ => next,
        };
        let before = self.seen.take();
        let (least_size, least_error) = before.map(|seen| (seen.least_size, seen.least_error)).unzip();
        self.seen = Some(Seen {
            least_size: least(least_size, size),
            least_error: least(least_error, error.clone()),
            error: error.clone(),
        });
    }

    /// Keeps a point that was left where it is the best so far.
    pub fn leave(&mut self, point: Point, quality: &Quality, is_feasible: bool, iterations: u64) {
        let merit = Merit::of(quality, is_feasible);
        if self.best.as_ref().is_none_or(|best| merit.is_better(&best.merit)) {
            self.best = Some(Best { point, quality: quality.clone(), iterations, merit });
        }
    }

    /// Whether better points are not to come after so many iterations.
    pub fn past(&self, iterations: u64) -> Option<Past> {
        if self.worse >= WORSE {
            return Some(Past::Rounding);
        }
        self.feasible.is_some_and(|feasible| iterations >= feasible + PATIENCE).then_some(Past::Infeasible)
    }

    /// The best point that was left, its quality and a sentence, where it is better than one of this quality.
    pub fn better(self, quality: &Quality, is_feasible: bool) -> Option<(Point, Quality, String)> {
        let best = self.best.filter(|best| best.merit.is_better(&Merit::of(quality, is_feasible)))?;
        let remark = format!("the solution is that after {} iterations; later points are worse", best.iterations);
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

    /// A point that is told by its y.
    fn point(mark: f64) -> Point {
        let y = Matrix::from_f64s(1, 1, 64, &[mark]).unwrap();
        Point { x: Vec::new(), primal: Vec::new(), y, dual: Vec::new() }
    }

    /// What a course says after points of these gaps and dual errors, those of `feasible` being so.
    fn past(points: &[(f64, f64)], feasible: bool) -> Option<Past> {
        let mut course = Course::default();
        for (at, &(gap, error)) in (0..).zip(points) {
            course.see(&quality(gap, 0.0, error), feasible, at);
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
        // Half of the gap, and above it, beside a point that was better.
        let above =
            |share: f64| (0..7).map(|at| (1e-4, share * 1e-4 * (1.0 + f64::from(at) / 64.0))).collect::<Vec<_>>();
        let first = [(1e-5, 1e-20)];
        assert_eq!(past(&[&first[..], &above(0.5)].concat(), false), None);
        assert_eq!(past(&[&first[..], &above(2.0)].concat(), false), Some(Past::Rounding));
    }

    #[test]
    fn points_that_were_feasible_are_waited_for() {
        let mut course = Course::default();
        course.see(&quality(1e-3, 0.0, 0.0), true, 7);
        course.see(&quality(1e-3, 1.0, 0.0), false, 8);
        assert_eq!((course.past(7 + PATIENCE - 1), course.past(7 + PATIENCE)), (None, Some(Past::Infeasible)));
    }

    #[test]
    fn the_best_point_is_a_feasible_one_before_all_others() {
        let left = [(1e-5, 1e-3, false), (1e-2, 1e-4, false), (1e-3, 1e-6, false), (1e-3, 1e-2, false)];
        let course = |left: &[(f64, f64, bool)]| {
            let mut course = Course::default();
            for (at, &(gap, error, is_feasible)) in (0..).zip(left) {
                course.leave(point(at as f64), &quality(gap, error / 2.0, error), is_feasible, at);
            }
            course
        };
        let better = |left: &[(f64, f64, bool)], last: (f64, f64, bool)| {
            let found = course(left).better(&quality(last.0, 0.0, last.1), last.2);
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
