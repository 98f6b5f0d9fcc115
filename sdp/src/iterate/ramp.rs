//! The precision of the first iterations: as many bits as they need, up to the requested ones.
//!
//! While a point is far from meeting the equations, its direction need not be exact: its errors show as residuals that
//! do not shrink in proportion to the steps. Where they do not, and matter relative to the threshold and the gap, the
//! step is made again at the next precision. Tests that would end a run are left to the last precision, and so are
//! steps that would. Residuals that did not matter are removed when the last one begins (`restore`), so that they do
//! not keep a run from its end. So a run ends as it would have ended without, after as many iterations, with results
//! that agree to the thresholds.

use crate::block::Block;
use crate::iterate::best::Scales;
use crate::iterate::factors::factor;
use crate::iterate::point::Point;
use crate::iterate::quality::Quality;
use crate::iterate::side::{Side, Sides};
use crate::iterate::site::Site;
use crate::numbers::column;
use crate::numbers::exponent;
use crate::options::SolverOptions;
use rug::Float;
use sunzi::{Matrix, Result};

/// Bits by which a residual must have shrunk after a step of 1 for its direction to count as good.
const GOOD_BITS: u32 = 48;

/// Bits below a threshold at which residuals no longer matter.
const SPARE_BITS: u32 = 12;

/// Bits below the gap at which residuals do not show in the points of an iteration.
const GAP_BITS: u32 = 24;

/// Residuals above this power of two count, however large the gap is.
const MOST_EXPONENT: i32 = -96;

/// Bits below a residual that counts as none at which it need not shrink.
const REST_BITS: u32 = 8;

/// The size, relative to its data, of a residual that counts as none for now: `2^-24` of the gap, and the rounding of
/// the first precision at most. The gap is relative, and so are rounding errors: a program in other units has the same
/// steps.
fn unseen(gap: &Float, size: &Float) -> Float {
    let most = Float::with_val(64, 1) << MOST_EXPONENT;
    Float::with_val(64, gap >> GAP_BITS).min(&most) * size
}

/// The part of an error that a step leaves, without rounding.
fn left(step: &Float, error: &Float) -> Float {
    Float::with_val(64, 1u32 - step) * error
}

/// The criteria for residuals of one side.
struct Measure<'a> {
    threshold: &'a Float,
    /// Below it they count as none for now. Where steps have not brought them below the threshold there is none: they
    /// follow the steps, as a point without an interior near it cannot be freed of them later.
    unseen: Option<Float>,
}

impl Measure<'_> {
    /// The criteria of both sides at a gap.
    fn both<'a>(options: &'a SolverOptions, scales: &Scales, gap: &Float, reached: Sides<bool>) -> Sides<Measure<'a>> {
        let of_side =
            |threshold, size, reached: bool| Measure { threshold, unseen: reached.then(|| unseen(gap, size)) };
        Sides {
            primal: of_side(&options.primal_error_threshold, &scales.primal, reached.primal),
            dual: of_side(&options.dual_error_threshold, &scales.dual, reached.dual),
        }
    }

    /// Whether the next step is that of a feasible point.
    fn is_near(&self, error: &Float) -> bool {
        *error < *self.threshold || self.unseen.as_ref().is_some_and(|unseen| error < unseen)
    }

    /// Whether a residual has shrunk as expected from a step: to where it counts as none, if the step should bring it
    /// there; otherwise in proportion, by 48 bits, or to where it need not shrink.
    fn is_met(&self, step: &Float, before: &Float, after: &Float) -> bool {
        let left = left(step, before);
        if self.is_near(&left) && !self.is_near(after) {
            return false;
        }
        let good = Float::with_val(64, before) >> GOOD_BITS;
        let spare = Float::with_val(64, self.threshold) >> SPARE_BITS;
        let rest =
            self.unseen.as_ref().map_or_else(|| Float::new(64), |unseen| Float::with_val(64, unseen >> REST_BITS));
        *after <= left * 1.0625 + good.max(&spare).max(&rest)
    }
}

/// Whether the primal and the dual point count as feasible for the next step, at every precision of a run with the
/// ramp: as they do without one, where steps have `reached` the thresholds. Residuals left by rounding at fewer bits
/// then shrink with the gap.
pub fn are_near(options: &SolverOptions, scales: &Scales, quality: &Quality, reached: Sides<bool>) -> Sides<bool> {
    let Sides { primal, dual } = Measure::both(options, scales, &quality.gap, reached);
    Sides { primal: primal.is_near(quality.primal_error()), dual: dual.is_near(&quality.dual_error) }
}

/// Whether a run would end at a point if its residuals had no part left by rounding.
pub fn is_end(options: &SolverOptions, scales: &Scales, quality: &Quality, reached: Sides<bool>) -> bool {
    let reaches = |bound: &Option<Float>, is_past: &dyn Fn(&Float) -> bool| bound.as_ref().is_some_and(is_past);
    match are_near(options, scales, quality, reached).into_pair() {
        (true, true) => quality.gap < options.duality_gap_threshold,
        (true, false) => reaches(&options.lower_bound, &|least| quality.primal_objective <= *least),
        (false, true) => reaches(&options.upper_bound, &|most| quality.dual_objective >= *most),
        (false, false) => false,
    }
}

/// A step: the point before it, the parts of the primal and of the dual direction that it took, and the point after it.
#[derive(Clone, Copy)]
pub struct Moved<'a> {
    before: &'a Quality,
    steps: &'a Sides<Float>,
    after: &'a Quality,
    /// Whether this step or one before has brought the primal and the dual error below their thresholds, rounding
    /// apart.
    pub reached: Sides<bool>,
}

impl<'a> Moved<'a> {
    /// The step from a point that is given with the thresholds that steps before had reached.
    pub fn new(
        options: &SolverOptions,
        before: &'a Quality,
        reached: Sides<bool>,
        steps: &'a Sides<Float>,
        after: &'a Quality,
    ) -> Moved<'a> {
        let is_below = |step, error, threshold: &Float| left(step, error) < *threshold;
        let primal = is_below(&steps.primal, before.primal_error(), &options.primal_error_threshold);
        let dual = is_below(&steps.dual, &before.dual_error, &options.dual_error_threshold);
        let reached = Sides { primal: reached.primal || primal, dual: reached.dual || dual };
        Moved { before, steps, after, reached }
    }

    /// Whether the step would end the run: by its length, or by a point that is feasible judged by the steps. Rounding
    /// may decide such an end at few bits.
    pub fn ends(&self, options: &SolverOptions) -> bool {
        let Moved { steps, reached, .. } = *self;
        (options.detect_primal_feasible_jump && steps.primal == 1)
            || (options.detect_dual_feasible_jump && steps.dual == 1)
            || steps.primal < options.min_primal_step
            || steps.dual < options.min_dual_step
            || (options.find_primal_feasible && reached.primal)
            || (options.find_dual_feasible && reached.dual)
    }

    /// Whether residuals have shrunk as expected from the step, or are too small to matter relative to thresholds or
    /// the gap; to a feasible point where that is expected.
    pub fn is_enough(&self, options: &SolverOptions, scales: &Scales) -> bool {
        let Moved { before, steps, after, reached } = *self;
        let Sides { primal, dual } = Measure::both(options, scales, &after.gap, reached);
        primal.is_met(&steps.primal, &before.primal_matrix_error, &after.primal_matrix_error)
            && primal.is_met(&steps.primal, &before.primal_free_error, &after.primal_free_error)
            && dual.is_met(&steps.dual, &before.dual_error, &after.dual_error)
    }
}

/// The least gap that objectives of `bits` bits show.
pub fn least_gap(bits: u32) -> Float {
    Float::with_val(64, 1) >> bits.saturating_sub(SPARE_BITS)
}

/// Whether objectives of `bits` bits still show this gap: below, it would no longer shrink, and no test end the run.
pub fn shows(bits: u32, gap: &Float) -> bool {
    *gap >= least_gap(bits)
}

/// Whether a gap is below its threshold, as far as objectives of `bits` bits show: no gap is known to be below a
/// threshold finer than their resolution.
pub fn is_below_threshold(bits: u32, options: &SolverOptions, gap: &Float) -> bool {
    let threshold = &options.duality_gap_threshold;
    gap < threshold && shows(bits, threshold)
}

/// Whether a gap and its threshold are both below the resolution of objectives of `bits` bits.
pub fn hides(bits: u32, options: &SolverOptions, gap: &Float) -> bool {
    !shows(bits, gap) && !shows(bits, &options.duality_gap_threshold)
}

/// The point with a little of the identity added to blocks that are positive definite at few bits, but not at more.
/// Collective.
///
/// # Errors
/// The errors of the library.
pub fn pushed_inside(site: &Site<'_>, mut point: Point) -> Result<Point> {
    let (k, bits) = (site.arithmetic(), site.bits);
    let mut shift = -(i64::from(bits) / 2);
    while let Err((number, side)) = factor(site, &point)? {
        if shift > 0 {
            break;
        }
        let list = if side == Side::Primal { &mut point.primal } else { &mut point.dual };
        let (block, row) = site.share.place_of(number);
        let mut push = |at: usize| {
            let of_row = row.map(|row| list[at].stored().float(row, 0));
            let size = exponent(&of_row.unwrap_or_else(|| list[at].largest())) + shift;
            let amount = Float::with_val(2, 1) << size.clamp(-(1 << 29), 1 << 29) as i32;
            let unit = match row {
                Some(row) => list[at].like(unit_column(list[at].stored().rows(), row, &amount, bits)?),
                None => Block::scaled_identity(site.cones[at].shape, &amount, bits)?,
            };
            list[at] = list[at].plus(k, &Float::with_val(2, 1), &unit)?;
            Ok(())
        };
        let at = site.share.own.iter().position(|&own| own == block);
        site.agreed(at.map_or(Ok(()), &mut push))?;
        shift += 8;
    }
    Ok(point)
}

/// A column with this number in a row, and zeros.
fn unit_column(rows: usize, row: usize, value: &Float, bits: u32) -> Result<Matrix> {
    column(rows, bits, |at| if at == row { value.clone() } else { Float::new(bits) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rug::ops::Pow;

    #[test]
    fn gaps_below_the_last_bits_ask_for_more() {
        let gap = |exponent: i32| Float::with_val(64, 2).pow(exponent);
        assert!(shows(128, &gap(-116)) && !shows(128, &gap(-117)) && shows(192, &gap(-117)));
        assert!(!shows(128, &Float::new(64)));
    }

    fn sides<T>(primal: T, dual: T) -> Sides<T> {
        Sides { primal, dual }
    }

    /// The rest of residuals counts relative to the gap, or to the threshold.
    #[test]
    fn residuals_far_below_the_gap_count_as_none() {
        let number = |exponent: i32| Float::with_val(64, 2).pow(exponent);
        let quality = |gap: i32, primal: i32, dual: i32| Quality {
            primal_objective: number(0),
            dual_objective: number(0),
            gap: number(gap),
            primal_matrix_error: number(primal),
            primal_free_error: number(-500),
            dual_error: number(dual),
        };
        let mut options = SolverOptions::new(crate::problem::Form::Sdpa);
        (options.primal_error_threshold, options.dual_error_threshold) = (number(-400), number(-400));
        let scales = |primal: i32, dual: i32| Scales { primal: number(primal), dual: number(dual) };
        let units = scales(0, 0);
        let all = sides(true, true);
        let near = |gap, primal, dual| are_near(&options, &units, &quality(gap, primal, dual), all) == all;
        assert!(near(0, -97, -97) && !near(0, -95, -97) && !near(0, -97, -95));
        assert!(near(-100, -125, -125) && !near(-100, -123, -125) && !near(-100, -125, -123));
        assert!(near(-450, -401, -401) && !near(-450, -399, -401));
        let step = sides(Float::with_val(64, 0.5), Float::with_val(64, 0.5));
        let enough = |before: i32, after: i32, gap: i32| {
            let (before, after) = (quality(gap, before, -500), quality(gap, after, -500));
            Moved::new(&options, &before, all, &step, &after).is_enough(&options, &units)
        };
        assert!(enough(-10, -11, 0) && !enough(-10, -10, 0));
        assert!(enough(-110, -106, 0) && !enough(-110, -103, 0) && !enough(-110, -106, -80));
        assert!(enough(-420, -413, -380) && !enough(-420, -410, -380));
        // Each relative to its data: residuals of a program in other units count as those of this one.
        let scaled = |primal, dual| are_near(&options, &scales(130, 40), &quality(-100, primal, dual), all) == all;
        assert!(scaled(130 - 125, 40 - 125) && !scaled(130 - 123, 40 - 125) && !scaled(130 - 125, 40 - 123));
        let large = |before: i32, after: i32| {
            let (before, after) = (quality(0, before, -500), quality(0, after, -500));
            Moved::new(&options, &before, all, &step, &after).is_enough(&options, &scales(130, 0))
        };
        assert!(large(130 - 110, 130 - 106) && !large(130 - 110, 130 - 103));
    }

    /// Residuals that steps have not brought below their thresholds follow the steps; a run is ended by thresholds.
    #[test]
    fn residuals_that_have_not_reached_their_thresholds_count() {
        let number = |exponent: i32| Float::with_val(64, 2).pow(exponent);
        let quality = |objectives: (i32, i32), gap: i32, errors: (i32, i32)| Quality {
            primal_objective: number(objectives.0),
            dual_objective: number(objectives.1),
            gap: number(gap),
            primal_matrix_error: number(errors.0),
            primal_free_error: number(-900),
            dual_error: number(errors.1),
        };
        let mut options = SolverOptions::new(crate::problem::Form::Sdpa);
        (options.primal_error_threshold, options.dual_error_threshold) = (number(-400), number(-300));
        options.duality_gap_threshold = number(-100);
        let scales = Scales { primal: number(0), dual: number(0) };
        let near = |reached| are_near(&options, &scales, &quality((0, 0), 0, (-200, -250)), reached);
        let single = [sides(false, true), sides(true, false)];
        assert_eq!(single.map(near), single);
        let steps = sides(Float::with_val(64, 1), Float::with_val(64, 1) - number(-40));
        let (before, after) = (quality((0, 0), 0, (-1, -258)), quality((0, 0), 0, (-120, -298)));
        let nearer = quality((0, 0), 0, (-1, -262));
        let reached = |before, reached| Moved::new(&options, before, reached, &steps, &after).reached;
        assert_eq!(reached(&before, sides(false, false)), sides(true, false));
        assert_eq!(reached(&before, sides(false, true)), sides(true, true));
        assert_eq!(reached(&nearer, sides(false, false)), sides(true, true));
        // A step of 1 may leave a residual that does not count; half of a step leaves half.
        assert!(Moved::new(&options, &before, sides(false, false), &steps, &after).is_enough(&options, &scales));
        let half = sides(Float::with_val(64, 0.5), Float::with_val(64, 0.5));
        let follows = |reached, left: i32| {
            let (before, after) = (quality((0, 0), 0, (-120, -900)), quality((0, 0), 0, (left, -900)));
            Moved::new(&options, &before, reached, &half, &after).is_enough(&options, &scales)
        };
        let none = sides(false, false);
        assert!(follows(none, -121) && !follows(none, -119) && follows(sides(true, false), -119));
        // Ends: of both sides by the gap, of one by a bound.
        let all = [none, sides(false, true), sides(true, false), sides(true, true)];
        let ends = |options: &SolverOptions, gap: i32| {
            all.map(|reached| is_end(options, &scales, &quality((2, 3), gap, (-200, -200)), reached))
        };
        assert_eq!(ends(&options, -101), [false, false, false, true]);
        assert_eq!(ends(&options, -99), [false; 4]);
        options.lower_bound = Some(number(2));
        assert_eq!(ends(&options, -99), [false, false, true, false]);
        (options.lower_bound, options.upper_bound) = (Some(number(1)), Some(number(3)));
        assert_eq!(ends(&options, -99), [false, true, false, false]);
    }

    #[test]
    fn steps_that_would_end_a_run_are_known() {
        let none = SolverOptions::new(crate::problem::Form::Sdpa);
        let quality = |error: f64| Quality {
            primal_objective: Float::new(64),
            dual_objective: Float::new(64),
            gap: Float::with_val(64, 1),
            primal_matrix_error: Float::with_val(64, error),
            primal_free_error: Float::new(64),
            dual_error: Float::with_val(64, error),
        };
        let ends = |change: &dyn Fn(&mut SolverOptions), steps: (f64, f64)| {
            let mut options = none.clone();
            change(&mut options);
            let steps = sides(Float::with_val(64, steps.0), Float::with_val(64, steps.1));
            Moved::new(&options, &quality(1.0), sides(false, false), &steps, &quality(1.0)).ends(&options)
        };
        assert!(!ends(&|_| (), (1.0, 1.0)) && !ends(&|_| (), (0.0, 0.0)));
        let both = |change: &dyn Fn(&mut SolverOptions)| [(1.0, 0.5), (0.5, 1.0)].map(|steps| ends(change, steps));
        assert_eq!(both(&|options| options.detect_primal_feasible_jump = true), [true, false]);
        assert_eq!(both(&|options| options.detect_dual_feasible_jump = true), [false, true]);
        assert_eq!(both(&|options| options.find_primal_feasible = true), [true, false]);
        assert_eq!(both(&|options| options.find_dual_feasible = true), [false, true]);
        assert_eq!(both(&|options| options.min_primal_step = Float::with_val(64, 0.75)), [false, true]);
        assert_eq!(both(&|options| options.min_dual_step = Float::with_val(64, 0.75)), [true, false]);
    }
}
