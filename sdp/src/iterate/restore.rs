//! A point without the residuals that rounding at fewer bits has left.
//!
//! Where they count as none relative to the gap, a step at more bits shrinks them only as much as the gap, so that
//! points would be feasible long after the gap is closed. A whole step in the direction of the residuals only makes
//! them vanish at once; it is as small as they are, while eigenvalues are as large as the gap.

use crate::block::Block;
use crate::iterate::best::Scales;
use crate::iterate::direction::Directions;
use crate::iterate::factors::factor;
use crate::iterate::memory::IterationStep;
use crate::iterate::point::Point;
use crate::iterate::ramp::are_near;
use crate::iterate::residuals::{Evaluation, Residuals};
use crate::iterate::side::Sides;
use crate::iterate::site::Site;
use crate::iterate::system::{System, SystemPoint};
use crate::options::SolverOptions;
use rug::Float;
use sunzi::{Matrix, Result};

/// The point after a correction that reduces its residuals to rounding errors of this precision. Only the sides whose
/// residuals already count as 0 are corrected. The point is unchanged if there are no such sides, or if the step would
/// leave the cones. Collective.
///
/// # Errors
/// The errors of the library.
pub fn restored(site: &Site<'_>, options: &SolverOptions, point: Point, reached: Sides<bool>) -> Result<Point> {
    let Evaluation { residuals, quality } = Evaluation::new(site, &point)?;
    let primal = *quality.primal_error() >= options.primal_error_threshold;
    let dual = quality.dual_error >= options.dual_error_threshold;
    let near = are_near(options, &Scales::new(site)?, &quality, reached);
    let sides = Sides { primal: primal && near.primal, dual: dual && near.dual };
    if !sides.any() {
        return Ok(point);
    }
    let Ok(factors) = factor(site, &point)? else { return Ok(point) };
    let residuals = site.agreed(of_sides(residuals, sides, site.bits))?;
    let place = SystemPoint { site: site.at(IterationStep::System), point: &point, factors: &factors };
    Ok(after_whole_step(&place, residuals, Sides { primal: true, dual: true })?.unwrap_or(point))
}

/// The point after a full step of x and X, of y and Y, or of both, in the direction of these residuals only. `None` if
/// the equation for the direction is singular, or if the step leaves the cones. Collective.
///
/// # Errors
/// The errors of the library.
pub fn after_whole_step(place: &SystemPoint<'_>, residuals: Residuals, sides: Sides<bool>) -> Result<Option<Point>> {
    let site = &place.site;
    let Ok(system) = System::new(place)? else { return Ok(None) };
    let [sum] = site.complementarity([Sides { primal: place.point, dual: place.point }])?;
    let mu = sum / site.share.total_rows as u32;
    let direction = Directions::new(place, &residuals, &system, &mu)?.restoring()?;
    drop((system, residuals));
    let step = |is_taken| Float::with_val(2, u32::from(is_taken));
    let (primal, dual) = (step(sides.primal), step(sides.dual));
    let next = site.at(IterationStep::Next);
    let moved =
        next.agreed(place.point.moved(next.arithmetic(), &direction, Sides { primal: &primal, dual: &dual }))?;
    Ok(factor(&next, &moved)?.is_ok().then_some(moved))
}

/// The residuals of only these sides.
fn of_sides(mut residuals: Residuals, sides: Sides<bool>, bits: u32) -> Result<Residuals> {
    let zeros = |matrix: &Matrix| Matrix::zeros(matrix.rows(), matrix.cols(), bits);
    if !sides.primal {
        let blocks = residuals.primal.iter().map(|block| Ok(block.like(zeros(block.stored())?)));
        residuals.primal = blocks.collect::<Result<Vec<Block>>>()?;
        residuals.free = zeros(&residuals.free)?;
    }
    if !sides.dual {
        residuals.dual = residuals.dual.iter().map(zeros).collect::<Result<_>>()?;
    }
    Ok(residuals)
}
