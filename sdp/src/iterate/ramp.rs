//! The precision of the first iterations: as much as they need, up to what was asked for.
//!
//! While a point is far from meeting the equations, its direction need not be exact: errors of it show as residuals
//! that do not shrink as the steps say. As soon as they do, and matter beside the threshold and the gap, the next
//! precision takes over; what would end a run is left to the last one. So a run ends as it would have ended without,
//! with results that agree to the thresholds.

use crate::block::Block;
use crate::iterate::best::Scales;
use crate::iterate::factors::{Side, exponent, factor};
use crate::iterate::outcome::Quality;
use crate::iterate::point::Point;
use crate::iterate::site::Site;
use crate::options::SolverOptions;
use rug::Float;
use sunzi::Result;

/// The precisions, below that asked for.
const STEPS: [u32; 10] = [128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072];

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

/// A residual that counts as none for now, beside its data: `2^-24` of the gap, and the rounding of the first precision
/// at most. The gap is relative, and so is what rounding leaves: a program in other units has the same steps.
fn unseen(gap: &Float, size: &Float) -> Float {
    let most = Float::with_val(64, 1) << MOST_EXPONENT;
    Float::with_val(64, gap >> GAP_BITS).min(&most) * size
}

/// Whether a point counts as feasible for the next step, at every precision of a run with the ramp: as it does without
/// one with thresholds that are reached at once. What rounding at fewer bits has left of residuals shrinks with the gap
/// from there on.
pub fn is_near(options: &SolverOptions, scales: &Scales, quality: &Quality) -> bool {
    let is_near =
        |error: &Float, threshold: &Float, size: &Float| error < threshold || *error < unseen(&quality.gap, size);
    is_near(quality.primal_error(), &options.primal_error_threshold, &scales.primal)
        && is_near(&quality.dual_error, &options.dual_error_threshold, &scales.dual)
}

/// The precision of the first iteration.
pub fn first_bits(full: u32) -> u32 {
    next_bits(0, full).unwrap_or(full)
}

/// The precision after `bits`; none after the last.
pub fn next_bits(bits: u32, full: u32) -> Option<u32> {
    if bits >= full {
        return None;
    }
    Some(STEPS.into_iter().find(|&next| next > bits && 4 * next <= 3 * full).unwrap_or(full))
}

/// The least precision of a run that is not below `bits`, or the last one.
pub fn at_least(bits: u32, full: u32) -> u32 {
    next_bits(bits.saturating_sub(1), full).unwrap_or(full)
}

/// Whether residuals have shrunk as a step says, or are below what matters beside thresholds or the gap.
pub fn is_enough(
    (options, scales): (&SolverOptions, &Scales),
    before: &Quality,
    steps: &(Float, Float),
    after: &Quality,
) -> bool {
    let [primal_rest, dual_rest] = [&scales.primal, &scales.dual].map(|size| unseen(&after.gap, size) >> REST_BITS);
    let shrunk = |before: &Float, (step, rest): (&Float, &Float), after: &Float, threshold: &Float| {
        let mut most = Float::with_val(64, 1u32 - step) * before;
        most *= 1.0625;
        let good = Float::with_val(64, before) >> GOOD_BITS;
        let spare = Float::with_val(64, threshold) >> SPARE_BITS;
        *after <= most + good.max(&spare).max(rest)
    };
    let primal = |before, after| shrunk(before, (&steps.0, &primal_rest), after, &options.primal_error_threshold);
    primal(&before.primal_matrix_error, &after.primal_matrix_error)
        && primal(&before.primal_free_error, &after.primal_free_error)
        && shrunk(&before.dual_error, (&steps.1, &dual_rest), &after.dual_error, &options.dual_error_threshold)
}

/// The least gap that objectives of `bits` bits show.
pub fn least_gap(bits: u32) -> Float {
    Float::with_val(64, 1) >> bits.saturating_sub(SPARE_BITS)
}

/// Whether objectives of `bits` bits still show this gap: below, it would no longer shrink, and no test end the run.
pub fn shows(bits: u32, gap: &Float) -> bool {
    *gap >= least_gap(bits)
}

/// Whether a gap is below its threshold, as far as objectives of `bits` bits tell: a threshold below what they show is
/// one that no gap is known to be below.
pub fn is_below_threshold(bits: u32, options: &SolverOptions, gap: &Float) -> bool {
    let threshold = &options.duality_gap_threshold;
    gap < threshold && shows(bits, threshold)
}

/// Whether a gap and its threshold are both below what objectives of `bits` bits show, so that nothing is left to see.
pub fn hides(bits: u32, options: &SolverOptions, gap: &Float) -> bool {
    !shows(bits, gap) && !shows(bits, &options.duality_gap_threshold)
}

/// The point with a little of the identity added to blocks that are positive definite at few bits, but not at more.
/// Collective.
///
/// # Errors
/// Those of the library.
pub fn pushed_inside(site: &Site<'_>, mut point: Point) -> Result<Point> {
    let (k, bits) = (site.arithmetic(), site.bits);
    let mut shift = -(i64::from(bits) / 2);
    while let Err((number, side)) = factor(site, &point)? {
        if shift > 0 {
            break;
        }
        let list = if side == Side::Primal { &mut point.primal } else { &mut point.dual };
        let mut push = |at: usize| {
            let size = exponent(&list[at].largest()) + shift;
            let amount = Float::with_val(2, 1) << size.clamp(-(1 << 29), 1 << 29) as i32;
            let unit = Block::scaled_identity(site.cones[at].shape, &amount, bits)?;
            list[at] = list[at].plus(k, &Float::with_val(2, 1), &unit)?;
            Ok(())
        };
        let at = site.share.own.iter().position(|&own| own == number);
        site.agreed(at.map_or(Ok(()), &mut push))?;
        shift += 8;
    }
    Ok(point)
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

    /// What is left of residuals counts beside the gap, or the threshold.
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
        let near = |gap, primal, dual| is_near(&options, &units, &quality(gap, primal, dual));
        assert!(near(0, -97, -97) && !near(0, -95, -97) && !near(0, -97, -95));
        assert!(near(-100, -125, -125) && !near(-100, -123, -125) && !near(-100, -125, -123));
        assert!(near(-450, -401, -401) && !near(-450, -399, -401));
        let step = (Float::with_val(64, 0.5), Float::with_val(64, 0.5));
        let enough = |before: i32, after: i32, gap: i32| {
            is_enough((&options, &units), &quality(gap, before, -500), &step, &quality(gap, after, -500))
        };
        assert!(enough(-10, -11, 0) && !enough(-10, -10, 0));
        assert!(enough(-110, -106, 0) && !enough(-110, -103, 0) && !enough(-110, -106, -80));
        assert!(enough(-420, -413, -380) && !enough(-420, -410, -380));
        // Each beside its data: residuals of a program in other units count as those of this one.
        let scaled = |primal, dual| is_near(&options, &scales(130, 40), &quality(-100, primal, dual));
        assert!(scaled(130 - 125, 40 - 125) && !scaled(130 - 123, 40 - 125) && !scaled(130 - 125, 40 - 123));
        let large = |before: i32, after: i32| {
            let (before, after) = (quality(0, before, -500), quality(0, after, -500));
            is_enough((&options, &scales(130, 0)), &before, &step, &after)
        };
        assert!(large(130 - 110, 130 - 106) && !large(130 - 110, 130 - 103));
    }

    #[test]
    fn precisions_rise_to_that_asked_for() {
        let all = |full: u32| {
            let mut found = vec![first_bits(full)];
            while let Some(next) = next_bits(*found.last().unwrap(), full) {
                found.push(next);
            }
            found
        };
        assert_eq!(all(100), [100]);
        assert_eq!(
            [0, 128, 129, 512, 513, 760, 768, 900].map(|bits| at_least(bits, 768)),
            [128, 128, 192, 512, 768, 768, 768, 768]
        );
        assert_eq!((at_least(64, 100), at_least(99, 100)), (100, 100));
        assert_eq!(all(128), [128]);
        assert_eq!(all(256), [128, 192, 256]);
        assert_eq!(all(768), [128, 192, 256, 384, 512, 768]);
        assert_eq!(all(5000), [128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 5000]);
    }
}
