//! The best feasible point of a run, for programs whose last points are worse: without an interior, or at too low a
//! precision.

use crate::iterate::outcome::Quality;
use crate::iterate::point::Point;

/// Iterations for which a run goes on with points that are no longer feasible.
const PATIENCE: u64 = 15;

/// A point, and when it was reached.
pub struct Best {
    point: Point,
    quality: Quality,
    iterations: u64,
    /// When a point was feasible last.
    feasible: u64,
}

impl Best {
    /// Takes a feasible point where it has the least gap so far.
    pub fn offer(best: &mut Option<Best>, point: &Point, quality: &Quality, iterations: u64) {
        match best {
            Some(best) if quality.gap >= best.quality.gap => best.feasible = iterations,
            _ => {
                let (point, quality) = (point.clone(), quality.clone());
                *best = Some(Best { point, quality, iterations, feasible: iterations });
            }
        }
    }

    /// Whether points have been infeasible for so long that better ones are not to come.
    pub fn is_past(&self, iterations: u64) -> bool {
        iterations >= self.feasible + PATIENCE
    }

    /// The point, its quality, and a sentence where it is not that of the last of so many iterations.
    pub fn take(self, iterations: u64) -> (Point, Quality, Option<String>) {
        let reached = self.iterations;
        let remark = format!("the solution is that after {reached} iterations; later points are worse");
        (self.point, self.quality, (reached != iterations).then_some(remark))
    }
}
