//! Rays: why a side of a program has no feasible point.
//!
//! Where `A*(Y) + B y` is `r` and `C . Y + b^T y` is positive, any feasible x has `r^T x = X . Y + C . Y + b^T y`, so
//! that its magnitudes have a sum of at least `(C . Y + b^T y) / max |r|`. Where `A(x) = X + R` with positive
//! definite X, `B^T x = s` and `c^T x` is negative, any feasible Y and y have `-c^T x <= R . Y + s^T y`, which bounds
//! theirs. With R, r and s of 0 there is none. A ray whose rest is not 0 is corrected by the whole step of a
//! direction; where the corrected one is inside its cone, its own rest is that of rounding.
//! Source: M. J. Todd, Semidefinite optimization, Acta Numerica 10 (2001), 515-560; weak duality, as above.

use crate::block::Block;
use crate::iterate::outcome::Termination;
use crate::iterate::quality::Quality;
use crate::iterate::residuals::{Evaluation, Residuals};
use crate::iterate::restore::after_whole_step;
use crate::iterate::side::Sides;
use crate::iterate::site::Site;
use crate::iterate::system::SystemPoint;
use crate::numbers::largest;
use rug::Float;
use sunzi::{Matrix, Result};

/// Bits below the precision at which the rest of a ray may be rounding.
const SPARE_BITS: i64 = 24;

/// Where the magnitudes of a feasible point have a sum above 2 to this power, it counts as none.
const ENOUGH_BITS: i64 = 256;

/// A threshold of infeasibility with which a run looks for rays: SDPA's.
const USUAL_THRESHOLD: &str = "1e-20";

/// The ray that a point shows which has moved far along it.
#[derive(Clone, Copy, Debug)]
pub struct Ray {
    /// The infeasible side.
    pub end: Termination,
    /// The magnitudes of a feasible point have a sum of at least 2 to this power.
    pub bits: i64,
}

/// The power of two below a quotient of positive numbers; that of `most` for a rest of 0.
fn quotient_bits(value: &Float, rest: &Float, most: u32) -> i64 {
    if rest.is_zero() {
        return most.into();
    }
    let exponent = Float::with_val(64, value / rest).get_exp().map_or(0, i64::from);
    (exponent - 1).min(most.into())
}

impl Ray {
    /// The rays that Y and y, and x, show, where their rest is below the threshold relative to their objective.
    /// Collective.
    ///
    /// # Errors
    /// The errors of the library's sums.
    pub fn both(
        site: &Site<'_>,
        quality: &Quality,
        residuals: &Residuals,
        threshold: &Float,
    ) -> Result<[Option<Ray>; 2]> {
        let of_dual = Ray::of_dual(site, quality, residuals, threshold)?;
        Ok([of_dual, Ray::of_primal(site, quality, residuals, threshold)?])
    }

    fn of_dual(site: &Site<'_>, quality: &Quality, residuals: &Residuals, threshold: &Float) -> Result<Option<Ray>> {
        let Site { problem, share, bits, .. } = *site;
        let objective = Float::with_val(bits, &quality.dual_objective - &problem.constant);
        // All ranks have the objectives.
        if objective <= 0 {
            return Ok(None);
        }
        let limit = Float::with_val(bits, &objective * threshold);
        let of_groups = problem.groups.iter().zip(&residuals.dual);
        let off = of_groups.map(|(group, d)| Ok(largest(&site.arithmetic().difference(&group.costs, d)?)));
        let [off] = share.ranks.largest(bits, most(&limit, off))?;
        let bits = quotient_bits(&objective, &off, bits);
        Ok((off < limit).then_some(Ray { end: Termination::PrimalInfeasible, bits }))
    }

    fn of_primal(site: &Site<'_>, quality: &Quality, residuals: &Residuals, threshold: &Float) -> Result<Option<Ray>> {
        let Site { problem, cones, share, bits, .. } = *site;
        let objective = Float::with_val(bits, &problem.constant - &quality.primal_objective);
        if objective <= 0 {
            return Ok(None);
        }
        let limit = Float::with_val(bits, &objective * threshold);
        let free = largest(&site.agreed(site.arithmetic().difference(&problem.objective, &residuals.free))?);
        if free >= limit {
            return Ok(None);
        }
        let of_cones = (0..cones.len()).map(|at| Ok(image_rest(site, residuals, at)?.largest()));
        let [off] = share.ranks.largest(bits, most(&limit, of_cones))?;
        let bits = quotient_bits(&objective, &off.clone().max(&free), bits);
        Ok((off < limit).then_some(Ray { end: Termination::DualInfeasible, bits }))
    }

    /// Whether its rest is too small for numbers of `bits` bits to show, or feasible points would have sizes that occur
    /// in no program whose numbers are near 1.
    pub fn is_shown(&self, bits: u32) -> bool {
        self.bits >= i64::from(bits).saturating_sub(SPARE_BITS).min(ENOUGH_BITS)
    }

    /// The ray that a whole step makes of this one, by the equation of its point, where that is inside its cone.
    /// Collective.
    ///
    /// # Errors
    /// The errors of the library.
    pub fn corrected(&self, place: &SystemPoint<'_>, residuals: &Residuals) -> Result<Option<Ray>> {
        let (site, is_primal) = (&place.site, self.end == Termination::PrimalInfeasible);
        let rest = site.agreed(self.rest(site, residuals))?;
        let moved = after_whole_step(place, rest, Sides { primal: !is_primal, dual: is_primal })?;
        let Some(moved) = moved else { return Ok(None) };
        let Evaluation { residuals, quality } = Evaluation::new(site, &moved)?;
        let threshold = Float::with_val(64, 1) >> (site.bits / 2);
        let rays = Ray::both(site, &quality, &residuals, &threshold)?;
        Ok(rays.into_iter().flatten().find(|ray| ray.end == self.end))
    }

    /// The residuals of a ray in the equations of rays, as residuals of its point.
    fn rest(&self, site: &Site<'_>, residuals: &Residuals) -> Result<Residuals> {
        let (k, problem) = (site.arithmetic(), site.problem);
        let zeros = |matrix: &Matrix| Matrix::zeros(matrix.rows(), matrix.cols(), site.bits);
        if self.end == Termination::PrimalInfeasible {
            let primal = residuals.primal.iter().map(|block| Ok(block.like(zeros(block.stored())?)));
            let dual = problem.groups.iter().zip(&residuals.dual).map(|(group, d)| k.difference(d, &group.costs));
            return Ok(Residuals {
                primal: primal.collect::<Result<_>>()?,
                free: zeros(&residuals.free)?,
                dual: dual.collect::<Result<_>>()?,
            });
        }
        Ok(Residuals {
            primal: (0..site.cones.len()).map(|at| image_rest(site, residuals, at)).collect::<Result<_>>()?,
            free: k.difference(&residuals.free, &problem.objective)?,
            dual: residuals.dual.iter().map(zeros).collect::<Result<_>>()?,
        })
    }

    /// The conclusion from the ray, in words; `bits` is the precision at which the ray was computed.
    pub fn sentence(&self, bits: u32) -> String {
        let names = if self.end == Termination::PrimalInfeasible { "points x" } else { "Y and y" };
        let least = self.bits;
        format!(
            "a ray shows, up to rounding at {bits} bits, that there are no feasible {names}, or only some whose \
             magnitudes sum to more than 2^{least}"
        )
    }
}

/// The changes with which another run can end with a verdict, after one of `bits` bits with this threshold has ended
/// with a ray to half of its bits: such a ray of twice [`ENOUGH_BITS`] is one. Empty where none are known.
pub fn way_to_verdict(bits: u32, threshold: &Float) -> String {
    let least = 2 * ENOUGH_BITS as u32;
    let option = (*threshold == 0).then(|| format!("infeasibilityThreshold {USUAL_THRESHOLD}"));
    let enough = (bits < least).then(|| format!("{least} bits"));
    match Vec::from_iter(option.into_iter().chain(enough)) {
        changes if changes.is_empty() => String::new(),
        changes => format!("; a run with {} can decide whether it is", changes.join(" and ")),
    }
}

/// `A(x) - X` of a block at hand: of which X is positive definite.
fn image_rest(site: &Site<'_>, residuals: &Residuals, at: usize) -> Result<Block> {
    let cone = site.cones[at];
    let constraints = &site.problem.groups[cone.group].constraints;
    let minus = Block::scaled_identity(cone.shape, &Float::new(site.bits), site.bits)?;
    let constant = constraints.less_constant(cone.number, minus)?;
    residuals.primal[at].plus(site.arithmetic(), &Float::with_val(2, -1), &constant)
}

/// The largest of some numbers, as far as it is below `limit`; else one that is not: those behind it are not computed.
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
