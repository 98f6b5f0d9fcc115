//! Points at which a polynomial matrix is sampled, as SDPB's pmp2sdp chooses them, and its scalings there.
//!
//! For `prefactor(x) = constant base^x / prod (x - p)` the zeros of the orthogonal polynomial of degree D lie, for
//! large D, where the integral of their density `rho` on `[0, b]` is an integer plus a half; `b` is chosen such that it
//! is D in total:
//!
//! `sum_p (1 - sqrt(-p / (b - p))) - (b / 2) log(base) = D`,
//!
//! `pi int_0^z rho = sum_p (2 atan(sqrt(z (b - p)) / sqrt(-p (b - z))) - sqrt(-p / (b - p)) A)`
//! `- log(base) (sqrt(z (b - z)) + (b / 2) A)`, where `A = 2 atan(sqrt(z) / sqrt(b - z))`.
//!
//! Source: SDPB (`src/pmp/convert/sample_points.cxx`), these arc tangents equal its arc cosines, without their
//! cancellation; arXiv:2509.14307, section 4. Both left sides rise, so each root is the only one, and both are concave,
//! so a step of Newton's never ends above the root.
//! Independent of: polynomials, bases.

use super::DampedRational;
use rug::float::Constant;
use rug::{Float, ops::Pow};
use sunzi::{Error, Result};

/// Bits of the search; more come from Newton's steps.
const SEARCH_BITS: u32 = 128;

/// Steps of a search at most.
const SEARCH_STEPS: usize = 1000;

/// Bits beyond those of a result.
const GUARD_BITS: u32 = 64;

/// Poles as close to 0 as that bring a point each between 0 and the first root.
const SMALL_POLE: f64 = 1e-10;

/// Distances to a pole are at least this: SDPB's choice.
const LEAST_DISTANCE: f64 = 1e-16;

/// A rising concave function with its derivative, at a precision.
type Rising<'a> = &'a dyn Fn(&Float, u32) -> (Float, Float);

/// The root of `function` between `low` and `high`, to `bits` bits.
fn root(function: Rising<'_>, mut low: Float, mut high: Float, bits: u32) -> Float {
    let mut x = Float::with_val(SEARCH_BITS, &low + &high) / 2u32;
    for _ in 0..SEARCH_STEPS {
        let (value, slope) = function(&x, SEARCH_BITS);
        if value < 0 {
            low.clone_from(&x);
        } else {
            high.clone_from(&x);
        }
        let step = Float::with_val(SEARCH_BITS, value / slope);
        let is_done = *step.as_abs() <= Float::with_val(SEARCH_BITS, x.abs_ref()) >> (SEARCH_BITS * 3 / 4);
        x -= step;
        if is_done {
            break;
        }
        // From far above the root a step may reach the lower end or pass it. At that end the slope may be infinite, so
        // that the next step would go nowhere.
        if !(x > low && x < high) {
            x = Float::with_val(SEARCH_BITS, &low + &high) / 2u32;
        }
    }
    // Each step doubles the digits; the last one is repeated where the doubling began later than it should.
    let mut at = SEARCH_BITS;
    let target = bits + GUARD_BITS;
    loop {
        let step_bits = at.saturating_mul(3).div_ceil(2).min(target);
        let (value, slope) = function(&Float::with_val(step_bits, &x), step_bits);
        x = Float::with_val(step_bits, &x - value / slope);
        if at >= target {
            return x;
        }
        at = step_bits;
    }
}

/// A prefactor with D, and `b`.
struct Density<'a> {
    prefactor: &'a DampedRational,
    count: usize,
    end: Float,
}

impl Density<'_> {
    /// `b`, and no density yet.
    fn new(prefactor: &DampedRational, count: usize, bits: u32) -> Result<Density<'_>> {
        let total = |b: &Float, bits: u32| {
            let (mut value, mut slope) = (Float::new(bits), Float::new(bits));
            for pole in &prefactor.poles {
                let distance = Float::with_val(bits, b - pole);
                let ratio = Float::with_val(bits, -Float::with_val(bits, pole / &distance)).sqrt();
                slope += Float::with_val(bits, &ratio / &distance) / 2u32;
                value += 1u32 - ratio;
            }
            let half_log = Float::with_val(bits, prefactor.base.ln_ref()) / 2u32;
            slope -= &half_log;
            value -= half_log * b;
            (value - count, slope)
        };
        let low = Float::with_val(SEARCH_BITS, SMALL_POLE);
        let high = -Float::with_val(SEARCH_BITS, 2 * count) / Float::with_val(SEARCH_BITS, prefactor.base.ln_ref());
        if high < low || total(&low, SEARCH_BITS).0 > 0 {
            let poles = prefactor.poles.len();
            return Err(Error::InvalidArgument(format!(
                "{count} sample points cannot be chosen for a prefactor with {poles} poles and base {:.6}",
                prefactor.base
            )));
        }
        Ok(Density { prefactor, count, end: root(&total, low, high, bits) })
    }

    /// The integral of the density from 0 to `z`, and the density there.
    fn integral(&self, z: &Float, bits: u32) -> (Float, Float) {
        let b = Float::with_val(bits, &self.end);
        let rest = Float::with_val(bits, &b - z);
        let (root_z, root_rest) = (Float::with_val(bits, z.sqrt_ref()), Float::with_val(bits, rest.sqrt_ref()));
        let angle = Float::with_val(bits, root_z.atan2_ref(&root_rest)) * 2u32;
        let (mut value, mut slope) = (Float::new(bits), Float::new(bits));
        for pole in &self.prefactor.poles {
            let distance = Float::with_val(bits, &b - pole);
            let minus = Float::with_val(bits, -pole);
            let over = Float::with_val(bits, z * &distance).sqrt();
            let under = Float::with_val(bits, &minus * &rest).sqrt();
            value += over.atan2(&under) * 2u32;
            let ratio = Float::with_val(bits, &minus / &distance).sqrt();
            value -= Float::with_val(bits, &ratio * &angle);
            slope += ratio / Float::with_val(bits, z + minus);
        }
        let log = Float::with_val(bits, self.prefactor.base.ln_ref());
        let arc = Float::with_val(bits, &root_z * &root_rest) + angle * b / 2u32;
        value -= arc * &log;
        slope -= log;
        let pi = Float::with_val(bits, Constant::Pi);
        (value / &pi, slope * root_rest / root_z / pi)
    }

    /// The point at which the integral is `number + 1/2`.
    fn point(&self, number: usize, bits: u32) -> Float {
        let off = |z: &Float, bits: u32| {
            let (value, slope) = self.integral(z, bits);
            (value - number - 0.5, slope)
        };
        let high = Float::with_val(SEARCH_BITS, &self.end);
        root(&off, Float::new(SEARCH_BITS), high, bits)
    }
}

/// `count` points for a polynomial of degree `count - 1` with this prefactor, rising, to `bits` bits.
///
/// # Errors
/// [`Error::InvalidArgument`] where the base is not between 0 and 1, a pole is positive, or the poles leave no points.
pub fn sample_points(count: usize, prefactor: &DampedRational, bits: u32) -> Result<Vec<Float>> {
    if count == 1 {
        return Ok(vec![Float::new(bits)]);
    }
    if !(prefactor.base > 0 && prefactor.base < 1) {
        return Err(Error::InvalidArgument(format!(
            "the prefactor's base is {:.6}: points can be chosen only for one between 0 and 1",
            prefactor.base
        )));
    }
    if let Some(pole) = prefactor.poles.iter().find(|pole| **pole > 0) {
        return Err(Error::InvalidArgument(format!("the prefactor has a pole at {pole:.6}, which is above 0")));
    }
    let small = prefactor.poles.iter().filter(|pole| **pole >= -SMALL_POLE).count().min(count);
    let density = Density::new(prefactor, count, bits)?;
    let mut points = (small..density.count).map(|number| density.point(number, bits)).collect::<Vec<_>>();
    let end = points.first().unwrap_or(&density.end).clone();
    let first = (0..small).map(|number| Float::with_val(bits + GUARD_BITS, &end * number) / small);
    points.splice(0..0, first);
    match points.windows(2).position(|pair| pair[0] >= pair[1]) {
        None => Ok(points),
        Some(at) => Err(Error::InvalidArgument(format!(
            "sample points {at} and {} are {:.6} and {:.6}: they must increase",
            at + 1,
            points[at],
            points[at + 1]
        ))),
    }
}

/// The prefactor at each point; a point close to a pole counts as 1e-16 from it.
pub fn scalings(points: &[Float], prefactor: &DampedRational, bits: u32) -> Vec<Float> {
    let value = |point: &Float| {
        let power = Float::with_val(bits, (&prefactor.base).pow(point));
        let mut value = power * &prefactor.constant;
        for pole in &prefactor.poles {
            let distance = Float::with_val(bits, point - pole);
            let is_close = Float::with_val(SEARCH_BITS, distance.abs_ref()) < LEAST_DISTANCE;
            value /= if is_close { Float::with_val(bits, 10).pow(-16) } else { distance };
        }
        value
    };
    points.iter().map(value).collect()
}

#[cfg(test)]
#[path = "points/tests.rs"]
mod tests;
